//! Runs programs on a stack: writes the data through maps, runs the batch, and reads the results.

use bh_bytecode::interp::Memory;
use bh_bytecode::random::Program;
use bh_bytecode::{Base, Batch, Instr, Opcode, Operand, View, base_flags};
use bh_core::abi::{access, status};
use bh_core::error::{Error, Result};
use bh_core::stack::Stack;
use std::sync::atomic::Ordering;

/// A batch whose bases have unique ids in a stack.
pub struct Bound {
    /// The batch.
    pub batch: Batch,
    /// The ids in the program.
    ids: Vec<u64>,
}

/// Gives a program's bases new ids. `first` must be higher than any id used in the stack before.
pub fn bind(batch: &Batch, first: u64) -> Bound {
    let mut batch = batch.clone();
    let ids = batch.bases.iter().map(|base| base.id).collect();
    for (base, id) in batch.bases.iter_mut().zip(first..) {
        base.id = id;
    }
    Bound { batch, ids }
}

/// Runs a program and returns the contents of the bases that still have data. Afterwards, the stack holds none of its
/// arrays, even after errors.
pub fn run(stack: &mut Stack, program: &Program) -> Result<Memory> {
    let count = program.batch.bases.len() as u64;
    let first = stack.services().base_ids().fetch_add(count, Ordering::Relaxed);
    let bound = bind(&program.batch, first);
    let outcome = run_bound(stack, program, &bound);
    let cleaned = discard(stack, &bound.batch);
    let memory = outcome?;
    cleaned.map(|()| memory)
}

/// How a program is divided into batches, with reads of some arrays between them.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    /// Instructions per batch.
    pub length: usize,
    /// Reads one array after each batch, in rotation.
    pub reads: bool,
}

/// Like [`run`], in several batches.
pub fn run_cut(stack: &mut Stack, program: &Program, cuts: Cuts) -> Result<Memory> {
    let count = program.batch.bases.len() as u64;
    let first = stack.services().base_ids().fetch_add(count, Ordering::Relaxed);
    let bound = bind(&program.batch, first);
    let outcome = run_parts(stack, program, &bound, cuts);
    let cleaned = discard(stack, &bound.batch);
    let memory = outcome?;
    cleaned.map(|()| memory)
}

fn run_parts(stack: &mut Stack, program: &Program, bound: &Bound, cuts: Cuts) -> Result<Memory> {
    bring_bound(stack, program, bound)?;
    let whole = &bound.batch;
    let mut alive: Vec<bool> = bound.ids.iter().map(|&id| program.memory.get(id).is_some()).collect();
    for (number, first) in (0..whole.instrs.len()).step_by(cuts.length.max(1)).enumerate() {
        let instrs = &whole.instrs[first..whole.instrs.len().min(first + cuts.length.max(1))];
        let part = part(whole, instrs, &mut alive);
        let ticket = stack.execute(&part.as_ref(), &[])?;
        stack.wait(ticket)?;
        let at = (7 * number + cuts.length) % whole.bases.len().max(1);
        if cuts.reads && alive.get(at) == Some(&true) {
            read(stack, &whole.bases[at])?;
        }
    }
    memory_of(stack, bound)
}

/// Some instructions as a batch. `alive`: for each base, whether it has data before and, on return, after the batch.
fn part(whole: &Batch, instrs: &[Instr], alive: &mut [bool]) -> Batch {
    let mut part = whole.clone();
    part.instrs = instrs.to_vec();
    for (index, base) in part.bases.iter_mut().enumerate() {
        let uses = |instr: &&Instr| {
            let views = instr.operands().iter().filter_map(|operand| operand.as_view());
            views.map(|view| whole.views[view as usize].base).any(|used| used == index as u32)
        };
        base.flags &= base_flags::PINNED;
        if !alive[index] {
            base.flags |= base_flags::BORN;
        }
        let dropped =
            instrs.iter().filter(|instr| matches!(instr.opcode, Opcode::Free | Opcode::Discard)).any(|it| uses(&it));
        base.flags |= if dropped { base_flags::DIES } else { base_flags::LIVE_OUT };
        if let Some(last) = instrs.iter().rfind(uses) {
            alive[index] = !matches!(last.opcode, Opcode::Free | Opcode::Discard);
        }
    }
    part
}

fn run_bound(stack: &mut Stack, program: &Program, bound: &Bound) -> Result<Memory> {
    execute_bound(stack, program, bound)??;
    memory_of(stack, bound)
}

/// The contents of the bases that still have data.
fn memory_of(stack: &mut Stack, bound: &Bound) -> Result<Memory> {
    let mut memory = Memory::new();
    for (index, base) in bound.batch.bases.iter().enumerate() {
        if !is_dropped(&bound.batch, index as u32) {
            memory.insert(bound.ids[index], read(stack, base)?);
        }
    }
    Ok(memory)
}

/// Writes a program's data into a stack; returns its batch, to run and to discard.
pub fn bring(stack: &mut Stack, program: &Program) -> Result<Batch> {
    let count = program.batch.bases.len() as u64;
    let first = stack.services().base_ids().fetch_add(count, Ordering::Relaxed);
    let bound = bind(&program.batch, first);
    bring_bound(stack, program, &bound)?;
    Ok(bound.batch)
}

fn bring_bound(stack: &mut Stack, program: &Program, bound: &Bound) -> Result<()> {
    bh_bytecode::validate(&bound.batch.as_ref()).map_err(|error| Error::new(status::BATCH, error.to_string()))?;
    for (base, &id) in bound.batch.bases.iter().zip(&bound.ids) {
        if let Some(bytes) = program.memory.get(id) {
            write(stack, base, bytes)?;
        }
    }
    Ok(())
}

/// Writes a program's data and runs its batch; the inner result is the batch's.
fn execute_bound(stack: &mut Stack, program: &Program, bound: &Bound) -> Result<Result<()>> {
    bring_bound(stack, program, bound)?;
    let tables = bound.batch.as_ref();
    Ok(stack.execute(&tables, &[]).and_then(|ticket| stack.wait(ticket)))
}

/// The result of a program that may fail in part.
pub struct Outcome {
    /// The batch's result.
    pub result: Result<()>,
    /// By base of the program, the result of reading it; `None` for dropped ones.
    pub bases: Vec<Option<Result<Vec<u8>>>>,
}

/// Runs a program and reads every remaining base, lost or not. Afterwards, the stack holds none of its arrays.
pub fn run_failing(stack: &mut Stack, program: &Program) -> Result<Outcome> {
    let count = program.batch.bases.len() as u64;
    let first = stack.services().base_ids().fetch_add(count, Ordering::Relaxed);
    let bound = bind(&program.batch, first);
    let result = execute_bound(stack, program, &bound)?;
    let left = |index: u32| !is_dropped(&bound.batch, index);
    let bases = bound.batch.bases.iter().zip(0..).map(|(base, index)| left(index).then(|| read(stack, base))).collect();
    discard(stack, &bound.batch)?;
    Ok(Outcome { result, bases })
}

/// Does the batch drop the base's data, and not write it again?
pub fn is_dropped(batch: &Batch, base: u32) -> bool {
    let touches = |instr: &&Instr| {
        instr
            .operands()
            .iter()
            .any(|operand| operand.as_view().is_some_and(|view| batch.views[view as usize].base == base))
    };
    let last = batch.instrs.iter().rfind(touches);
    last.is_some_and(|instr| matches!(instr.opcode, Opcode::Free | Opcode::Discard))
}

/// Reads the data of a base from a stack.
pub fn read(stack: &mut Stack, base: &Base) -> Result<Vec<u8>> {
    let data = stack.map(base, None, access::READ)?;
    // SAFETY: the map exposes the whole base for reading until `unmap`.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast_const(), base.bytes() as usize) }.to_vec();
    stack.unmap(base)?;
    Ok(bytes)
}

/// Writes the data of a base to a stack.
pub fn write(stack: &mut Stack, base: &Base, bytes: &[u8]) -> Result<()> {
    if bytes.len() as u64 != base.bytes() {
        let text = format!("{} bytes do not fill base {} of {} bytes", bytes.len(), base.id, base.bytes());
        return Err(Error::new(status::ARGUMENT, text));
    }
    let data = stack.map(base, None, access::WRITE | access::DISCARD)?;
    // SAFETY: the map exposes the whole base for writing until `unmap`.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
    stack.unmap(base)
}

/// Drops all bases of a batch that it does not drop itself.
pub fn discard(stack: &mut Stack, batch: &Batch) -> Result<()> {
    let mut cleanup = Batch::default();
    for (index, base) in batch.bases.iter().enumerate() {
        let discarded = batch.instrs.iter().any(|instr| {
            instr.opcode == Opcode::Discard
                && instr.operands()[0].as_view().is_some_and(|view| batch.views[view as usize].base == index as u32)
        });
        if !discarded {
            let place = cleanup.push_base(Base { flags: bh_bytecode::base_flags::DIES, ..*base });
            let whole = View::contiguous(&[base.len]).map_err(|error| Error::new(status::ARGUMENT, error.0))?;
            let view = cleanup.push_view(place, &whole);
            cleanup.push_instr(Instr::new(Opcode::Discard, &[Operand::view(view)]));
        }
    }
    let ticket = stack.execute(&cleanup.as_ref(), &[])?;
    stack.wait(ticket)
}
