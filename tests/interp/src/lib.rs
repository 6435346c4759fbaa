//! The reference interpreter as an engine: slow, simple, and the smallest example of a component in Rust. Its [`usage`]
//! also serves other test components.

pub mod usage;

use bh_bytecode::interp::{Interpreter, Memory};
use bh_bytecode::{Base, BatchRef, Opcode};
use bh_core::abi::{Capabilities, capability, kind, status};
use bh_core::component::{Child, Component, Host, Registry, Report, Ticket};
use bh_core::error::{Error, Result};
use usage::{Use, block_usage};

/// The engine: copies a block's arrays into the interpreter's memory, runs it there, and copies the results back.
pub struct Interp {
    child: Option<Child>,
    registry: Option<Registry>,
}

// SAFETY: all state is in this value, and ends with it.
unsafe impl Component for Interp {
    const NAME: &'static str = "ve-interp";
    const KIND: u32 = kind::ENGINE;
    const KEYS: &'static [bh_core::config::Row] = &[];

    fn create(_host: Host, children: Vec<Child>) -> Result<Interp> {
        Ok(Interp { child: children.into_iter().next(), registry: None })
    }

    fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    fn capabilities(&mut self) -> Capabilities {
        let flags = capability::RENAMES | capability::ACQUIRES_FIRST;
        Capabilities { flags, parallelism: 1, bandwidth: 1e8, ..Capabilities::default() }
    }

    fn bind(&mut self, registry: Registry) -> Result<()> {
        self.registry = Some(registry);
        Ok(())
    }

    fn supports(&mut self, batch: &BatchRef<'_>, block: u32) -> bool {
        let block = &batch.blocks[block as usize];
        !batch.block_instrs(block).iter().any(|&instr| batch.instrs[instr as usize].opcode.is_extension())
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        let registry =
            self.registry.ok_or_else(|| Error::new(status::INIT, "ve-interp has no data manager above it"))?;
        for &block in blocks {
            run_block(&registry, batch, block, report).map_err(|error| error.in_block(block))?;
        }
        Ok(Ticket::DONE)
    }

    fn extmethod(&mut self, _name: &str, _opcode: Opcode) -> Result<bool> {
        Ok(false)
    }
}

/// Runs one block. All data is read before the work begins, so a block that fails has changed nothing. Single failed
/// instructions are reported after the others.
fn run_block(registry: &Registry, batch: &BatchRef<'_>, block: u32, report: &mut Report) -> Result<()> {
    let uses = block_usage(batch, block);
    let mut memory = Memory::new();
    for wanted in &uses {
        let base = &batch.bases[wanted.base as usize];
        memory.insert(base.id, load(registry, base, wanted)?);
    }
    let failed = interpret(batch, block, &mut memory);
    for written in uses.iter().filter(|wanted| wanted.writes) {
        let base = &batch.bases[written.base as usize];
        store(registry, base, written, memory.get(base.id).unwrap_or_default())?;
    }
    carry_out_renames(registry, batch, block)?;
    failed.iter().for_each(|(instr, error)| report.fail(block, *instr, error));
    Ok(())
}

/// Runs the instructions of a block, except for system instructions, on the data in `memory`. Returns the failed ones;
/// the others have run, with the values that the failed ones left.
fn interpret(batch: &BatchRef<'_>, block: u32, memory: &mut Memory) -> Vec<(u32, Error)> {
    let instrs = batch.block_instrs(&batch.blocks[block as usize]).iter();
    let work = instrs.filter(|&&instr| !batch.instrs[instr as usize].opcode.is_system());
    work.filter_map(|&instr| Some((instr, interpret_one(batch, instr, memory).err()?))).collect()
}

/// Runs one instruction on the data in `memory`.
pub fn interpret_one(batch: &BatchRef<'_>, instr: u32, memory: &mut Memory) -> Result<()> {
    let mut interpreter = Interpreter { memory, extensions: None, magnitudes: None };
    interpreter.execute_instr(batch, instr as usize).map_err(|text| {
        let name = batch.instrs[instr as usize].opcode.name();
        Error::new(status::EXECUTION, format!("{name}: {text}")).at_instr(batch, instr)
    })
}

/// The bytes of a base for a block: its values, or zeros if the block overwrites all of them.
fn load(registry: &Registry, base: &Base, wanted: &Use) -> Result<Vec<u8>> {
    if !wanted.needs_old {
        return Ok(vec![0; base.bytes() as usize]);
    }
    let loan = registry.acquire(base, bh_core::abi::access::READ)?;
    // SAFETY: the loan holds the whole base until it is released.
    let bytes = unsafe { std::slice::from_raw_parts(loan.data().cast::<u8>(), base.bytes() as usize) }.to_vec();
    Ok(bytes)
}

fn store(registry: &Registry, base: &Base, written: &Use, bytes: &[u8]) -> Result<()> {
    let loan = registry.acquire(base, written.access())?;
    // SAFETY: the loan has space for the whole base, and the interpreter's copy has its size.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), loan.data().cast::<u8>(), bytes.len()) };
    Ok(())
}

/// The interpreter needs no second buffer, but a rename may promise an alias of the old version, which is made here.
fn carry_out_renames(registry: &Registry, batch: &BatchRef<'_>, block: u32) -> Result<()> {
    for rename in batch.renames(&batch.blocks[block as usize]) {
        let Some(alias) = batch.bases.get(rename.alias as usize) else { continue };
        registry.alias(alias, &batch.bases[rename.base as usize], &batch.view(rename.alias_view))?;
    }
    Ok(())
}

bh_core::export_component!(Interp);
