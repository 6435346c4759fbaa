//! A bh engine in Rust: a few f64 operations on host memory, block by block, with scratch for what never leaves a block.
//! Everything else is left to the engine below. Copy it and replace [`operation`] and [`Kit::run_instr`]. The numbers E-…
//! are those of docs/engines.md.

use bh_bytecode::interp::offsets;
use bh_bytecode::{BatchRef, Block, DType, Instr, Opcode, Operand};
use bh_core::abi::{Capabilities, access, kind, status};
use bh_core::component::enter_block;
use bh_core::{Child, Component, Counter, Error, Host, Loan, Registry, Report, Result, Ticket};
use std::collections::HashMap;

/// The operations that this engine runs, on f64.
fn operation(opcode: Opcode) -> Option<fn(f64, f64) -> f64> {
    Some(match opcode {
        Opcode::Copy => |a, _| a,
        Opcode::Add => |a, b| a + b,
        Opcode::Subtract => |a, b| a - b,
        Opcode::Multiply => |a, b| a * b,
        Opcode::Divide => |a, b| a / b,
        Opcode::Absolute => |a, _| a.abs(),
        Opcode::Sqrt => |a, _| a.sqrt(),
        _ => return None,
    })
}

/// The engine. `child` gets what this engine refuses; the host sees to it.
pub struct Kit {
    child: Option<Child>,
    registry: Option<Registry>,
    instructions: Counter,
}

// SAFETY: all that it is given lies in it, and ends with it.
unsafe impl Component for Kit {
    const NAME: &'static str = "kit-rust";
    const KIND: u32 = kind::ENGINE;
    const KEYS: &'static [bh_core::config::Row] = &[];

    fn create(host: Host, children: Vec<Child>) -> Result<Kit> {
        let instructions = host.counter("instructions");
        Ok(Kit { child: children.into_iter().next(), registry: None, instructions })
    }

    fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    fn capabilities(&mut self) -> Capabilities {
        Capabilities { parallelism: 1, bandwidth: 5e9, launch_seconds: 1e-6, ..Capabilities::default() }
    }

    fn bind(&mut self, registry: Registry) -> Result<()> {
        self.registry = Some(registry);
        Ok(())
    }

    fn supports(&mut self, batch: &BatchRef<'_>, block: u32) -> bool {
        let block = &batch.blocks[block as usize];
        let takes = |&index: &u32| {
            let instr = &batch.instrs[index as usize];
            let is_f64 = |&operand: &Operand| batch.dtype(operand) == Some(DType::F64);
            instr.opcode.is_system() || operation(instr.opcode).is_some() && instr.operands().iter().all(is_f64)
        };
        block.rename_count == 0 && batch.block_instrs(block).iter().all(takes)
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], _report: &mut Report) -> Result<Ticket> {
        let Some(registry) = self.registry else {
            return Err(Error::new(status::INIT, "kit-rust needs a data manager above it"));
        };
        let all: Vec<u32> = (0..batch.blocks.len() as u32).collect();
        for &block in if blocks.is_empty() { &all } else { blocks } {
            enter_block(block); // names the block in errors (E-40)
            let found = &batch.blocks[block as usize];
            let memory = Memory::borrow(registry, batch, found)?;
            for &index in batch.block_instrs(found) {
                let instr = &batch.instrs[index as usize];
                if let Some(operation) = operation(instr.opcode) {
                    self.run_instr(batch, instr, operation, &memory);
                }
            }
        }
        Ok(Ticket::DONE)
    }
}

impl Kit {
    /// Runs one instruction; all its views have one shape (E-13).
    fn run_instr(&self, batch: &BatchRef<'_>, instr: &Instr, operation: fn(f64, f64) -> f64, memory: &Memory) {
        let inputs = instr.inputs();
        let out = instr.outputs()[0].as_view().expect("outputs are views");
        let element = |operand: Option<&Operand>| -> (*const f64, Box<dyn Iterator<Item = i64>>) {
            match operand.map(|operand| (operand.as_view(), operand.as_constant())) {
                Some((Some(view), _)) => (memory.data(batch, view), walk(batch, view)),
                Some((_, Some(constant))) => {
                    (batch.constants[constant as usize].bits.as_ptr().cast(), Box::new(std::iter::repeat(0)))
                }
                _ => (&0.0, Box::new(std::iter::repeat(0))), // unary: whatever it is, it is ignored
            }
        };
        let ((a, a_walk), (b, b_walk)) = (element(inputs.first()), element(inputs.get(1)));
        let target = memory.data(batch, out);
        for ((to, a_at), b_at) in walk(batch, out).zip(a_walk).zip(b_walk) {
            // SAFETY: the host validated that views stay inside their bases, which `memory` holds as a whole.
            unsafe { *target.offset(to as isize) = operation(*a.offset(a_at as isize), *b.offset(b_at as isize)) }
        }
        self.instructions.add(1);
    }
}

/// The offsets of a view's elements in its base.
fn walk(batch: &BatchRef<'_>, view: u32) -> Box<dyn Iterator<Item = i64>> {
    Box::new(offsets(batch.views[view as usize].start, batch.shape(view), batch.stride(view)))
}

/// The bases of a block: borrowed from the registry, or scratch if they never leave the block (E-16).
struct Memory {
    /// They end with this value, on failure too (E-20).
    loans: Vec<Loan>,
    scratch: Vec<Vec<f64>>,
    /// Element 0 of each base.
    data: HashMap<u32, *mut f64>,
}

impl Memory {
    /// Borrows what a block uses.
    fn borrow(registry: Registry, batch: &BatchRef<'_>, block: &Block) -> Result<Memory> {
        let mut memory = Memory { loans: Vec::new(), scratch: Vec::new(), data: HashMap::new() };
        for (base, access) in uses(batch, block) {
            let record = &batch.bases[base as usize];
            let data = if batch.contracted(block).contains(&base) {
                memory.scratch.push(vec![0.0; record.len as usize]);
                memory.scratch.last_mut().map_or(std::ptr::null_mut(), |scratch| scratch.as_mut_ptr())
            } else {
                memory.loans.push(registry.acquire(record, access)?);
                memory.loans.last().map_or(std::ptr::null_mut(), |loan| loan.data().cast())
            };
            memory.data.insert(base, data);
        }
        Ok(memory)
    }

    /// Element 0 of the base of a view; null if the view has no elements.
    fn data(&self, batch: &BatchRef<'_>, view: u32) -> *mut f64 {
        self.data.get(&batch.views[view as usize].base).copied().unwrap_or(std::ptr::null_mut())
    }
}

/// The bases that a block sees an element of, with the access that each needs (E-21): the old values, unless the first instruction
/// that touches the base overwrites all of it.
fn uses(batch: &BatchRef<'_>, block: &Block) -> HashMap<u32, u32> {
    let mut found = HashMap::new();
    let work = batch.block_instrs(block).iter().map(|&index| &batch.instrs[index as usize]);
    let seen = |operand: &Operand| operand.as_view().filter(|&view| batch.views[view as usize].len > 0);
    for instr in work.filter(|instr| !instr.opcode.is_system()) {
        for view in instr.inputs().iter().filter_map(seen) {
            found.entry(batch.views[view as usize].base).or_insert(access::READ);
        }
        for view in instr.outputs().iter().filter_map(seen) {
            let record = &batch.views[view as usize];
            // An output reaches no element twice, so one that has as many as the base covers it.
            let whole = record.len == batch.bases[record.base as usize].len;
            let first = if whole { access::WRITE | access::DISCARD } else { access::WRITE };
            let access = found.entry(record.base).or_insert(first);
            *access |= access::WRITE;
        }
    }
    found
}

bh_core::export_component!(Kit);
