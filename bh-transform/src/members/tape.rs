//! The program of one member as it was recorded, and which of its arrays differ among the members.

use crate::rules::Rule;
use crate::tape::{is_whole, place_of, rule_of};
use bh_bytecode::view::overlap;
use bh_bytecode::{Base, Batch, BatchRef, Instr, Opcode, Operand, Overlap, View};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Tape as _};
use std::collections::{HashMap, HashSet};

/// The arrays that differ among the members of a function, and the values of other arrays that it reads.
#[derive(Default)]
pub(crate) struct MemberTape {
    pub(crate) segments: Vec<Segment>,
    /// Bases whose values differ.
    varied: HashSet<u64>,
    /// Bases of the function itself, and whether they have values that all members have in common.
    own: HashMap<u64, bool>,
    /// Bases in common of which the function's members read these views. The number counts the values that a base has had.
    reads: HashMap<u64, (u32, Vec<View>)>,
    /// Bases in common that members read last.
    pub(crate) held: HashMap<u64, Option<ArrayId>>,
    /// Copies of bases in common from before they were overwritten, by their bases and the number of the values.
    pub(crate) saved: HashMap<(u64, u32), ArrayId>,
    /// New bases that count as constant for derivatives.
    pub(crate) stopped: HashSet<u64>,
    /// Bases whose values differ that the function has written.
    written: HashSet<u64>,
    /// The bases of the batch shown last whose values the tape needs.
    fresh: Vec<u64>,
    /// Copies that were put into the batch shown last.
    copies: Vec<(u64, u32)>,
    error: Option<Error>,
}

/// A batch of the function as it was recorded, and what to do for the members.
pub(crate) struct Segment {
    pub(crate) batch: Batch,
    pub(crate) steps: Vec<Step>,
}

/// A step for the members.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// An instruction.
    Run(u32),
    /// From here on, the values of a base differ. They begin with what it had in common.
    Vary(Base),
    /// A base in common gets new values.
    Renew(u64),
    /// A base ends.
    End(u64),
}

impl bh_recorder::Tape for MemberTape {
    /// Takes what differs among the members out of a batch before it runs, and puts copies of values into it that members read
    /// and the function overwrites. Returns the bases that have to be kept, by their places.
    fn take(&mut self, batch: &mut Batch) -> Vec<u32> {
        let original = batch.clone();
        let tables = original.as_ref();
        for base in original.bases.iter().filter(|base| base.has(bh_bytecode::base_flags::BORN)) {
            self.own.entry(base.id).or_insert(false);
        }
        let mut steps = Vec::new();
        batch.instrs.clear();
        for (at, instr) in tables.instrs.iter().enumerate() {
            if instr.opcode.is_system() {
                self.end(&tables, instr, &mut steps);
                batch.instrs.push(*instr);
            } else if self.is_varied(&tables, instr) {
                self.follow(&tables, at as u32, &mut steps);
            } else {
                self.pass(&tables, instr, batch, &mut steps);
                batch.instrs.push(*instr);
            }
        }
        let place = |id: &u64| original.bases.iter().position(|base| base.id == *id).map(|at| at as u32);
        let kept = std::mem::take(&mut self.fresh).iter().filter_map(place).collect();
        if !steps.is_empty() {
            self.segments.push(Segment { batch: original, steps });
        }
        kept
    }

    /// Takes the arrays of the batch shown last: of the bases to keep, and of the copies, in their order.
    fn receive(&mut self, kept: &[(u64, ArrayId)], made: &[(u64, ArrayId)]) {
        for &(id, array) in kept {
            self.held.insert(id, Some(array));
        }
        for (key, &(_, array)) in std::mem::take(&mut self.copies).into_iter().zip(made) {
            self.saved.insert(key, array);
        }
    }

    /// Do the values of the base differ among the members?
    fn depends(&self, base: u64) -> bool {
        self.varies(base)
    }

    fn refusal(&self) -> &'static str {
        "vmap: the values of an array that differs among the members are read, as by a condition, float(x), or a mask that \
         selects elements. There is one program for all members: use where(condition, x, y), or compute with the array"
    }

    /// Does the tape rely on the values of the base, or do they differ?
    fn relies_on(&self, base: u64) -> bool {
        self.varies(base) || self.held.contains_key(&base)
    }

    /// Notes why the function cannot run for several members.
    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}

impl MemberTape {
    /// A tape on which the values of these bases differ.
    pub(crate) fn new(arguments: impl IntoIterator<Item = u64>) -> MemberTape {
        MemberTape { varied: arguments.into_iter().collect(), ..MemberTape::default() }
    }

    /// Lets a base count as the function's own.
    #[cfg(test)]
    pub(crate) fn adopt(&mut self, base: u64, has_values: bool) {
        self.own.insert(base, has_values);
    }

    /// Do the values of a base differ among the members?
    pub(crate) fn varies(&self, base: u64) -> bool {
        self.varied.contains(&base)
    }

    /// Lets the values of a base differ from here on.
    pub(crate) fn start(&mut self, base: u64) {
        self.varied.insert(base);
    }

    /// Has the function written values that differ into the base?
    pub(crate) fn has_written(&self, base: u64) -> bool {
        self.written.contains(&base)
    }

    /// Why the function cannot run for several members.
    pub(crate) fn check(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// All arrays that the tape holds.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = ArrayId> {
        self.held.values().copied().flatten().chain(self.saved.values().copied())
    }

    fn end(&mut self, tables: &BatchRef<'_>, instr: &Instr, steps: &mut Vec<Step>) {
        if instr.opcode == Opcode::Discard
            && let Some((base, _)) = place_of(tables, instr.operands()[0])
            && self.varied.remove(&base.id)
        {
            steps.push(Step::End(base.id));
        }
    }

    /// Does an operation give each member something of its own? Random numbers do.
    fn is_varied(&self, tables: &BatchRef<'_>, instr: &Instr) -> bool {
        let differs = |&operand: &Operand| place_of(tables, operand).is_some_and(|(base, _)| self.varies(base.id));
        instr.opcode == Opcode::Random || instr.operands().iter().any(differs)
    }

    /// Follows an operation whose results differ.
    fn follow(&mut self, tables: &BatchRef<'_>, at: u32, steps: &mut Vec<Step>) {
        let instr = &tables.instrs[at as usize];
        for (base, view) in instr.inputs().iter().filter_map(|&input| place_of(tables, input)) {
            if !self.varies(base.id) {
                self.note_read(&base, view);
            }
        }
        let keeps = matches!(rule_of(tables, instr), Rule::Form(form) if form.keeps_elements());
        for (base, view) in instr.outputs().iter().filter_map(|&out| place_of(tables, out)) {
            self.written.insert(base.id);
            if self.varies(base.id) {
                continue;
            }
            match self.own.get(&base.id) {
                None => return self.fail(foreign(tables, instr)),
                Some(true) if keeps || !is_whole(&base, &view) => {
                    self.note_read(&base, View::contiguous(&[base.len]).unwrap_or_default());
                    steps.push(Step::Vary(base));
                }
                Some(_) => {}
            }
            self.varied.insert(base.id);
        }
        steps.push(Step::Run(at));
    }

    /// Follows an operation that all members have in common.
    fn pass(&mut self, tables: &BatchRef<'_>, instr: &Instr, batch: &mut Batch, steps: &mut Vec<Step>) {
        for (base, view) in instr.outputs().iter().filter_map(|&out| place_of(tables, out)) {
            if let Some(has_values) = self.own.get_mut(&base.id) {
                *has_values = true;
            }
            let Some((number, views)) = self.reads.get_mut(&base.id) else { continue };
            if views.iter().all(|read| overlap(read, &view) == Overlap::Disjoint) {
                continue;
            }
            self.copies.push((base.id, *number));
            *number += 1;
            views.clear();
            steps.push(Step::Renew(base.id));
            save(&base, (tables, instr), batch);
        }
    }

    fn note_read(&mut self, base: &Base, view: View) {
        let (_, views) = self.reads.entry(base.id).or_default();
        if !views.contains(&view) {
            views.push(view);
        }
        if let std::collections::hash_map::Entry::Vacant(entry) = self.held.entry(base.id) {
            entry.insert(None);
            self.fresh.push(base.id);
        }
    }
}

/// Puts a copy of a base into a batch before an instruction.
fn save(base: &Base, (tables, instr): (&BatchRef<'_>, &Instr), batch: &mut Batch) {
    let place = tables.bases.iter().position(|other| other.id == base.id).unwrap_or_default();
    let whole = View::contiguous(&[base.len]).unwrap_or_default();
    let copy = batch.push_base(Base { id: 0, flags: 0, row_hint: 0, ..*base });
    let (to, from) = (batch.push_view(copy, &whole), batch.push_view(place as u32, &whole));
    let operands = [Operand::view(to), Operand::view(from)];
    batch.instrs.push(Instr { origin: instr.origin, ..Instr::new(Opcode::Copy, &operands) });
}

/// The error of a write that would give an array of the caller several values.
fn foreign(tables: &BatchRef<'_>, instr: &Instr) -> Error {
    let text = "vmap: values that differ among the members are written into an array from outside of the function, \
                which has room for one of them; write them into an array that the function makes, or map the argument";
    let origin = tables.origin(instr).map(|(file, line)| (file.to_owned(), line));
    Error { origin, ..Error::new(status::UNSUPPORTED, text) }
}
