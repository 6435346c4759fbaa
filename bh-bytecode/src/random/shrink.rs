//! Delta debugging of random programs: leaves out what a failure does not need.

use super::Program;
use crate::batch::{Batch, Instr, NO_BASE, Operand, base_flags};
use crate::interp::Memory;
use crate::opcode::Opcode;

/// A smaller program that still fails. `fails` says whether a program fails; it sees only valid programs, and the result
/// fails if the given program does.
pub fn shrink(program: &Program, mut fails: impl FnMut(&Program) -> bool) -> Program {
    let mut best = program.clone();
    let mut size = best.batch.instrs.len().div_ceil(2).max(1);
    loop {
        let mut progress = false;
        let mut first = 0;
        while first < best.batch.instrs.len() {
            let end = (first + size).min(best.batch.instrs.len());
            let kept: Vec<Instr> = (0..best.batch.instrs.len())
                .filter(|index| !(first..end).contains(index))
                .map(|index| best.batch.instrs[index])
                .collect();
            match rebuild(&best, &kept).filter(|candidate| !kept.is_empty() && fails(candidate)) {
                Some(candidate) => {
                    best = candidate;
                    progress = true;
                }
                None => first = end,
            }
        }
        if size == 1 && !progress {
            return best;
        }
        size = if progress { size } else { size.div_ceil(2) };
    }
}

/// A table under renumbering: the new index of each entry in use.
struct Renumbered {
    new: Vec<Option<u32>>,
    order: Vec<usize>,
}

impl Renumbered {
    fn new(entries: usize) -> Renumbered {
        Renumbered { new: vec![None; entries], order: Vec::new() }
    }

    fn index(&mut self, old: u32) -> u32 {
        *self.new[old as usize].get_or_insert_with(|| {
            self.order.push(old as usize);
            self.order.len() as u32 - 1
        })
    }
}

/// The program with other instructions and without what they do not use. Bases that would be read before they are
/// written become inputs of zeros; `None` if one is read after its data was dropped.
fn rebuild(program: &Program, instrs: &[Instr]) -> Option<Program> {
    let old = program.batch.as_ref();
    let (mut bases, mut views) = (Renumbered::new(old.bases.len()), Renumbered::new(old.views.len()));
    let mut batch = Batch {
        origins: program.batch.origins.clone(),
        strings: program.batch.strings.clone(),
        extensions: program.batch.extensions.clone(),
        ..Batch::default()
    };
    for instr in instrs {
        let mut instr = *instr;
        for operand in &mut instr.operands[..instr.count as usize] {
            if let Some(constant) = operand.as_constant() {
                *operand = Operand::constant(batch.push_constant(old.constants[constant as usize]));
            } else if let Some(view) = operand.as_view() {
                *operand = Operand::view(views.index(view));
            }
        }
        batch.push_instr(instr);
    }
    for &view in &views.order {
        let base = old.views[view].base;
        let base = if base == NO_BASE { NO_BASE } else { bases.index(base) };
        batch.push_view(base, &old.view(view as u32));
    }
    let mut memory = Memory::new();
    for &base in &bases.order {
        let record = old.bases[base];
        if let Some(bytes) = program.memory.get(record.id) {
            memory.insert(record.id, bytes.to_vec());
        }
        batch.push_base(record);
    }
    for index in 0..batch.bases.len() {
        let first_use = first_uses(&batch, index as u32)?;
        let mut base = batch.bases[index];
        let mut flags = base.flags & base_flags::PINNED;
        if first_use == Use::Read && memory.get(base.id).is_none() {
            memory.insert(base.id, vec![0; base.bytes() as usize]);
        }
        flags |= if memory.get(base.id).is_none() { base_flags::BORN } else { 0 };
        let drops = |instr: &Instr| matches!(instr.opcode, Opcode::Free | Opcode::Discard);
        let dies = batch.instrs.iter().any(|instr| drops(instr) && names(&batch, instr.operands[0], index as u32));
        flags |= if dies { base_flags::DIES } else { base_flags::LIVE_OUT };
        base.flags = flags;
        batch.bases[index] = base;
    }
    Some(Program { batch, memory })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It is overwritten as a whole before anything else.
    Overwrite,
    /// Data that was there before matters.
    Read,
}

/// Is the operand a view of the base?
fn names(batch: &Batch, operand: Operand, base: u32) -> bool {
    operand.as_view().is_some_and(|view| batch.views[view as usize].base == base)
}

/// How a base is first used; `None` if it is read after its data was dropped.
fn first_uses(batch: &Batch, base: u32) -> Option<Use> {
    let mut first = None;
    let mut dropped = false;
    for instr in &batch.instrs {
        if !instr.operands().iter().any(|&operand| names(batch, operand, base)) {
            continue;
        }
        if matches!(instr.opcode, Opcode::Free | Opcode::Discard) {
            first.get_or_insert(Use::Read);
            dropped = true;
            continue;
        }
        let whole = |&operand: &Operand| {
            names(batch, operand, base) && batch.views[operand.0 as usize].len == batch.bases[base as usize].len
        };
        let read = instr.opcode.reads_output() || instr.inputs().iter().any(|&operand| names(batch, operand, base));
        let usage = if !read && instr.outputs().iter().any(whole) { Use::Overwrite } else { Use::Read };
        if dropped && usage == Use::Read {
            return None;
        }
        dropped = false;
        first.get_or_insert(usage);
    }
    Some(first.unwrap_or(Use::Read))
}
