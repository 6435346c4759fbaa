//! Which results of a batch may stay recipes, and which of its operations make them.

use crate::state::State;
use crate::state::recipe::{Draft, Drafted, Scratch};
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::{Batch, Instr, Kind, Opcode, Operand, base_flags};

/// The most operations of a recipe.
const MOST_STEPS: usize = 64;

impl State {
    /// Results of the batch that live on and that the batch was not ended for, by index.
    pub(super) fn find_unread(&self, least: u64, found: &mut Vec<usize>) {
        let batch = &self.builder.batch;
        let is_free = |at: usize| {
            let base = &batch.bases[at];
            if !base.has(base_flags::BORN) || base.has(base_flags::DIES) || base.bytes() < least || base.len < 2 {
                return false;
            }
            let entry = self.bases.at(self.builder.places[at]);
            entry.base.id == base.id
                && self.is_free_standing(self.builder.places[at])
                && entry.relied_on == 0
                && entry.scalar.is_none()
                && entry.settled.is_none()
        };
        found.clear();
        found.extend((0..batch.bases.len()).filter(|&at| is_free(at)));
        if !found.is_empty() {
            for instr in batch.instrs.iter().filter(|instr| instr.opcode == Opcode::Sync) {
                let read = instr.operands()[0].as_view().map(|view| batch.views[view as usize].base as usize);
                found.retain(|&at| Some(at) != read);
            }
        }
    }

    /// Finds the operations that make a result, from arrays that are there behind the batch. False if there is no recipe.
    pub(super) fn draft(&self, at: usize, scratch: &mut Scratch) -> bool {
        let Scratch { draft, dies, last, .. } = scratch;
        draft.begin(at);
        if let Some(position) = self.copied_at(at, dies, last) {
            draft.copied = true;
            draft.steps.push(Drafted { position, stored: 0, early: 0 });
            return true;
        }
        draft.needed.push(at);
        for position in (0..self.builder.batch.instrs.len()).rev() {
            if !self.draft_step(position, draft, dies, last) {
                return false;
            }
        }
        draft.steps.reverse();
        // A base that is read before any write cannot be made again: only memory has its values.
        draft.needed.is_empty()
    }

    /// Looks at an instruction, from the end of the batch on. False if it makes the recipe impossible.
    fn draft_step(&self, position: usize, draft: &mut Draft, dies: &[bool], last: &[u32]) -> bool {
        let batch = &self.builder.batch;
        let instr = &batch.instrs[position];
        let Some(out) = instr.outputs().first().and_then(|operand| operand.as_view()) else { return true };
        let target = batch.views[out as usize].base as usize;
        if instr.opcode.is_system() || !draft.needed.contains(&target) {
            return true;
        }
        let repeatable =
            matches!(instr.opcode.kind(), Kind::Elementwise | Kind::Generator | Kind::Reduction | Kind::Accumulate);
        if !repeatable || instr.attributes != 0 || instr.outputs != 1 || draft.steps.len() == MOST_STEPS {
            return false;
        }
        let base_of = |operand: &Operand| operand.as_view().map(|view| batch.views[view as usize].base);
        let reads = instr.inputs().iter().filter_map(base_of);
        let whole = batch.views[out as usize].len == batch.bases[target].len;
        if whole && reads.clone().all(|base| base as usize != target) {
            draft.needed.retain(|&base| base != target);
        }
        let (mut stored, mut early) = (0, 0);
        for (number, operand) in instr.operands().iter().enumerate().skip(1) {
            let Some(base) = base_of(operand) else { continue };
            if base == NO_BASE {
                return false;
            }
            let base = base as usize;
            let stays = !dies[base] && last[base] as usize <= position && self.may_be_input(base);
            if stays && !draft.needed.contains(&base) {
                stored |= 1 << number;
            } else if !batch.bases[base].has(base_flags::BORN) {
                if batch.bases[base].bytes() > draft.copied_bytes {
                    return false;
                }
                early |= 1 << number;
            } else if !draft.needed.contains(&base) {
                draft.needed.push(base);
            }
        }
        draft.steps.push(Drafted { position, stored, early });
        true
    }

    /// Where a batch copies all of a result into an array that stays as it is then.
    fn copied_at(&self, at: usize, dies: &[bool], last: &[u32]) -> Option<usize> {
        let batch = &self.builder.batch;
        let copies = |&position: &usize| {
            let instr = &batch.instrs[position];
            let (Some(to), Some(from)) = (instr.operands()[0].as_view(), instr.operands()[1].as_view()) else {
                return false;
            };
            let (to, from) = (&batch.views[to as usize], &batch.views[from as usize]);
            let (target, behind) = (to.base as usize, position as u32 + 1);
            from.base as usize == at
                && from.len == batch.bases[at].len
                && target != at
                && batch.bases[target].dtype() == batch.bases[at].dtype()
                && last[at] < behind
                && last[target] == behind
                && !dies[target]
                && self.may_be_input(target)
        };
        let mut places = (0..batch.instrs.len()).filter(|&position| batch.instrs[position].opcode == Opcode::Copy);
        places.find(copies).filter(|&position| {
            let from = batch.instrs[position].operands()[1].as_view();
            from.is_some_and(|view| batch.as_ref().view(view).is_injective())
        })
    }

    /// Can recipes rely on a base of the batch staying as it is until a program changes it by a call?
    fn may_be_input(&self, at: usize) -> bool {
        let entry = self.bases.at(self.builder.places[at]);
        entry.base.id == self.builder.batch.bases[at].id
            && entry.settled.is_none()
            && entry.recipe.is_none()
            && entry.base.len > 1
            && (entry.pins, entry.maps, entry.exported) == (0, 0, false)
    }
}

/// For each base of a batch, how many operations come before the first that writes it, and the position behind the last
/// instruction that does; 0 if none does.
pub(super) fn find_writes(batch: &Batch, first: &mut Vec<u32>, last: &mut Vec<u32>) {
    first.clear();
    first.resize(batch.bases.len(), u32::MAX);
    last.clear();
    last.resize(batch.bases.len(), 0);
    let computing = (1..).zip(&batch.instrs).filter(|(_, instr)| !instr.opcode.is_system());
    for (before, (behind, instr)) in (0..).zip(computing) {
        for view in instr.outputs().iter().filter_map(|operand| operand.as_view()) {
            let base = batch.views[view as usize].base as usize;
            first[base] = first[base].min(before);
            last[base] = behind;
        }
    }
}

/// The first position behind `position` of an instruction that writes a base or ends it.
pub(super) fn next_change(batch: &Batch, base: usize, position: usize) -> usize {
    let of_base =
        |operand: &Operand| operand.as_view().is_some_and(|view| batch.views[view as usize].base as usize == base);
    let changes = |instr: &Instr| match instr.opcode {
        Opcode::Discard | Opcode::Free => instr.operands().iter().any(of_base),
        _ => !instr.opcode.is_system() && instr.outputs().iter().any(of_base),
    };
    let later = batch.instrs.iter().skip(position + 1).position(changes);
    later.map_or(batch.instrs.len(), |later| position + 1 + later)
}
