//! Copies that a tape does not follow: of elements that a program reads and assigns, as in `a[i] += a[i - 1]`.
//!
//! Each element that a program reads becomes an array of its own, and each assignment copies one. The operation between them
//! reads and writes the elements in place instead, so that one operation remains of four. Values stay the same, as nothing
//! changes the elements in between. So do the bits of adjoints: nothing else reads the elements in between, so each
//! element gets its terms in the same order.

use super::{is_inexact, rule_of};
use bh_bytecode::view::{MAX_RANK, ViewRef, overlap};
use bh_bytecode::{Base, Batch, Instr, Kind, Opcode, Operand, Overlap, View, base_flags};

/// The most instructions between a copy and the operation that takes its place.
const FARTHEST: usize = 64;

/// How the operations of a batch use one of its bases.
#[derive(Clone, Copy, Default)]
struct Uses {
    writes: u32,
    writer: u32,
    /// Operands that read it, and the instruction that has the last of them.
    reads: u32,
    reader: u32,
}

/// The tape's facts about the bases of a batch, by their places in it.
pub(super) struct Known<'a> {
    /// Does the program drop the base with the batch?
    pub(super) ends: &'a [bool],
    /// Do the first values of the base count as constant?
    pub(super) is_stopped: &'a dyn Fn(&Base) -> bool,
    /// Has the program never changed the base?
    pub(super) is_unchanged: &'a dyn Fn(&Base) -> bool,
}

/// Takes copies out of a batch whose source or target another operation can use itself. Says whether there were some.
pub(super) fn skip(batch: &mut Batch, known: &Known<'_>) -> bool {
    let mut copies = Copies { uses: uses_of(batch), gone: vec![false; batch.instrs.len()], batch, known };
    for at in 0..copies.batch.instrs.len() {
        if let Some((to, from)) = copies.plain_copy(at)
            && (copies.forward(at, to, from).is_some() || copies.write_through(at, to, from).is_some())
        {
            copies.gone[at] = true;
        }
    }
    let Copies { gone, batch, .. } = copies;
    let count = batch.instrs.len();
    let mut gone = gone.into_iter();
    batch.instrs.retain(|_| !gone.next().unwrap_or(false));
    batch.instrs.len() < count
}

fn uses_of(batch: &Batch) -> Vec<Uses> {
    let mut uses = vec![Uses::default(); batch.bases.len()];
    for (at, instr) in batch.instrs.iter().enumerate() {
        for (position, operand) in instr.operands().iter().enumerate() {
            let base = operand.as_view().map_or(u32::MAX, |view| batch.views[view as usize].base);
            let Some(uses) = uses.get_mut(base as usize) else { continue };
            if position < usize::from(instr.outputs) {
                (uses.writes, uses.writer) = (uses.writes + 1, at as u32);
            }
            if position >= usize::from(instr.outputs) || instr.opcode.reads_output() {
                (uses.reads, uses.reader) = (uses.reads + 1, at as u32);
            }
        }
    }
    uses
}

struct Copies<'a> {
    batch: &'a mut Batch,
    known: &'a Known<'a>,
    uses: Vec<Uses>,
    gone: Vec<bool>,
}

impl Copies<'_> {
    /// Target and source of a copy within one type.
    fn plain_copy(&self, at: usize) -> Option<(u32, u32)> {
        let instr = &self.batch.instrs[at];
        let [to, from] = *instr.operands() else { return None };
        let tables = self.batch.as_ref();
        let is_copy = instr.opcode == Opcode::Copy && tables.dtype(to) == tables.dtype(from);
        let (to, from) = (to.as_view()?, from.as_view()?);
        let is_stopped = |view| tables.base_of(view).is_none_or(self.known.is_stopped);
        (is_copy && !is_stopped(to) && !is_stopped(from)).then_some((to, from))
    }

    fn base_of(&self, view: u32) -> usize {
        self.batch.views[view as usize].base as usize
    }

    fn view(&self, view: u32) -> ViewRef<'_> {
        let tables = self.batch.as_ref();
        ViewRef { start: tables.views[view as usize].start, shape: tables.shape(view), stride: tables.stride(view) }
    }

    /// Is it the whole of a base that one instruction of the batch writes and one operand reads, and that nothing else sees?
    fn is_temporary(&self, view: u32) -> bool {
        let place = self.base_of(view);
        let (base, uses) = (&self.batch.bases[place], &self.uses[place]);
        let is_own = base.has(base_flags::BORN) && self.known.ends.get(place).copied().unwrap_or(false);
        is_own && uses.writes == 1 && uses.reads == 1 && self.batch.views[view as usize].len == base.len
    }

    /// Lets the operation that reads a copy read its source.
    fn forward(&mut self, at: usize, to: u32, from: u32) -> Option<()> {
        let reader = self.uses[self.base_of(to)].reader as usize;
        if !self.is_temporary(to) || reader <= at || self.overlaps(at + 1..reader, from)? {
            return None;
        }
        let instr = self.batch.instrs[reader];
        let position = instr
            .operands()
            .iter()
            .position(|operand| operand.as_view().is_some_and(|view| self.base_of(view) == self.base_of(to)))?;
        let (read, source) = (self.view(instr.operands[position].as_view()?), self.batch.as_ref().view(from));
        let source = if overlap(read, self.view(to)) == Overlap::Identical {
            source
        } else if source.len() == 1 {
            View::new(source.start(), read.shape, &[0; MAX_RANK][..read.shape.len()]).ok()?
        } else {
            return None;
        };
        let is_unchanged = || {
            let base = self.base_of(from);
            self.uses[base].writes == 0 && (self.known.is_unchanged)(&self.batch.bases[base])
        };
        let (inputs, _) = self.needs(&instr);
        if !self.takes(&instr, position, (self.base_of(from), &source))
            || inputs >> (position - usize::from(instr.outputs)) & 1 == 1 && !is_unchanged()
        {
            return None;
        }
        let base = self.base_of(from);
        let view = self.batch.push_view(base as u32, &source);
        self.batch.instrs[reader].operands[position] = Operand::view(view);
        if self.uses[base].reader as usize == at {
            self.uses[base].reader = reader as u32;
        }
        Some(())
    }

    /// Lets the operation that writes what a copy reads write the copy's target.
    fn write_through(&mut self, at: usize, to: u32, from: u32) -> Option<()> {
        let writer = self.uses[self.base_of(from)].writer as usize;
        if !self.is_temporary(from) || writer >= at || self.gone[writer] || self.overlaps(writer + 1..at, to)? {
            return None;
        }
        let instr = self.batch.instrs[writer];
        let target = self.batch.as_ref().view(to);
        let is_same = overlap(self.view(instr.operands[0].as_view()?), self.view(from)) == Overlap::Identical;
        let (_, outputs) = self.needs(&instr);
        if instr.outputs != 1 || !is_same || outputs != 0 || !self.takes(&instr, 0, (self.base_of(to), &target)) {
            return None;
        }
        self.batch.instrs[writer].operands[0] = Operand::view(to);
        let place = self.base_of(to);
        if self.uses[place].writer as usize == at {
            self.uses[place].writer = writer as u32;
        }
        Some(())
    }

    /// Does an instruction of a range use elements of a view? `None` if the range is long.
    fn overlaps(&self, range: std::ops::Range<usize>, view: u32) -> Option<bool> {
        let uses = |operand: &Operand| {
            let other = operand.as_view().filter(|&other| self.base_of(other) == self.base_of(view));
            other.is_some_and(|other| overlap(self.view(other), self.view(view)) != Overlap::Disjoint)
        };
        let instrs = range.filter(|&at| !self.gone[at]);
        (instrs.clone().count() <= FARTHEST)
            .then(|| instrs.into_iter().any(|at| self.batch.instrs[at].operands().iter().any(uses)))
    }

    /// May an operand be this view? The operation's other operands have no elements of it, but for those of an elementwise operation
    /// that works in place.
    fn takes(&self, instr: &Instr, position: usize, (base, view): (usize, &View)) -> bool {
        let is_elementwise = instr.opcode.kind() == Kind::Elementwise;
        let outputs = usize::from(instr.outputs);
        let fits = |(other, operand): (usize, &Operand)| {
            let Some(index) = operand.as_view().filter(|&index| self.base_of(index) == base) else { return true };
            match overlap(self.view(index), view) {
                Overlap::Disjoint => true,
                Overlap::Identical => is_elementwise && (other < outputs || position < outputs),
                Overlap::Overlapping => false,
            }
        };
        (is_elementwise || instr.opcode.kind() == Kind::Reduction)
            && instr.operands().iter().enumerate().filter(|(other, _)| *other != position).all(fits)
    }

    /// The inputs and outputs that the derivative reads, whichever inputs depend on the arguments.
    fn needs(&self, instr: &Instr) -> (u8, u8) {
        let tables = self.batch.as_ref();
        let depends = |operand: Operand| operand.as_view().is_some() && tables.dtype(operand).is_some_and(is_inexact);
        let inputs = instr.inputs();
        let active = inputs.iter().enumerate().fold(0, |all, (at, &operand)| all | u8::from(depends(operand)) << at);
        let needs = rule_of(&tables, instr).needs(active, (instr.outputs().len(), inputs.len()));
        (needs.inputs, needs.outputs)
    }
}
