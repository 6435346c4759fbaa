//! Tapes: the batches of a program as they ran, and the values among them that reverse mode reads.
//!
//! A tape sees each batch before it runs. It follows which arrays depend on the arguments, notes which values the rules of the
//! operations read, keeps the arrays that hold them, and has a view copied before the program overwrites such values in it.

use crate::rules::{Form, Needs, Rule, programs, rule};
use bh_bytecode::view::overlap;
use bh_bytecode::{Base, Batch, BatchRef, DType, Instr, Opcode, Operand, Overlap, View};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Tape as _};
use std::collections::{HashMap, HashSet};

/// This many views of one base are taken as the whole of it.
const MOST_VIEWS: usize = 64;

/// A program as it ran, with the values that its derivative reads.
#[derive(Default)]
pub(crate) struct Tape {
    pub(crate) segments: Vec<Segment>,
    /// Bases whose values depend on the arguments.
    active: HashSet<u64>,
    /// New bases whose first values count as constant.
    stopped: HashSet<u64>,
    /// Views of bases that rules read, in their present values.
    reads: HashMap<u64, Vec<View>>,
    /// Bases that reads or saved values need.
    pub(crate) held: HashMap<u64, Option<ArrayId>>,
    pub(crate) saved: Vec<Saved>,
    /// The bases of the arguments, and whether the program has written them.
    arguments: HashMap<u64, bool>,
    /// What the batch shown last needs of its bases.
    fresh: Vec<u64>,
    /// Copies that were put into the batch shown last, by their bases there.
    copies: Vec<u32>,
    error: Option<Error>,
}

/// A batch of the program, and its operations that matter.
pub(crate) struct Segment {
    pub(crate) batch: Batch,
    pub(crate) steps: Vec<Step>,
}

/// An operation through which derivatives flow, or that overwrites values that depend on the arguments or that are saved.
pub(crate) struct Step {
    /// The instruction.
    pub(crate) at: u32,
    pub(crate) needs: Needs,
    /// For outputs whose old values were saved: the output, and its place among the saved.
    pub(crate) saves: Vec<(u8, u32)>,
}

/// A view that was copied before it was overwritten.
pub(crate) struct Saved {
    /// The base of the copy, which it fills in C order.
    pub(crate) base: u64,
    pub(crate) array: Option<ArrayId>,
    /// Does an earlier operation's rule read the old values?
    pub(crate) restored: bool,
}

/// The name of an extension method that an instruction calls.
pub(crate) fn method<'a>(batch: &BatchRef<'a>, instr: &Instr) -> Option<&'a str> {
    if instr.opcode.is_extension() { batch.extension_name(instr.opcode) } else { None }
}

/// The rule of an instruction.
pub(crate) fn rule_of(batch: &BatchRef<'_>, instr: &Instr) -> Rule {
    let operands = || instr.inputs().iter().filter_map(|&operand| batch.dtype(operand));
    let numeric = operands().find(|dtype| *dtype != DType::Bool);
    let rule = rule(instr.opcode, method(batch, instr), numeric.unwrap_or(DType::Bool));
    match rule {
        Rule::Form(form) if form.is_factorization() && !is_determined(batch, instr, form) => Rule::Missing,
        Rule::Form(form) if (form.is_factorization() || form == Form::Solve) && takes_stack(batch, instr) => {
            Rule::Missing
        }
        rule => rule,
    }
}

/// Is the first input a stack of matrices? Rules of linear algebra are those of one matrix.
fn takes_stack(batch: &BatchRef<'_>, instr: &Instr) -> bool {
    let matrix = instr.inputs().first().and_then(|&operand| place_of(batch, operand));
    matrix.is_some_and(|(_, view)| view.rank() > 2)
}

fn is_determined(batch: &BatchRef<'_>, instr: &Instr, form: Form) -> bool {
    let view = |&operand: &Operand| place_of(batch, operand).map(|(_, view)| view);
    let outputs: Vec<View> = instr.outputs().iter().filter_map(view).collect();
    instr.inputs().first().and_then(view).is_none_or(|input| form.is_determined(&outputs, &input))
}

/// A view of an array, and the array.
pub(crate) fn place_of(batch: &BatchRef<'_>, operand: Operand) -> Option<(Base, View)> {
    let index = operand.as_view()?;
    Some((*batch.base_of(index)?, batch.view(index).canonical()))
}

pub(crate) fn is_inexact(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex()
}

/// Does an injective view have all elements of its base?
pub(crate) fn is_whole(base: &Base, view: &View) -> bool {
    view.len() == base.len
}

impl bh_recorder::Tape for Tape {
    /// Takes a batch before it runs, and puts the copies of overwritten values into it. The bases of the copies are appended
    /// without identities. Returns the bases that have to be kept, by their places.
    fn take(&mut self, batch: &mut Batch) -> Vec<u32> {
        let original = batch.clone();
        let tables = original.as_ref();
        let mut steps = Vec::new();
        batch.instrs.clear();
        for (at, instr) in tables.instrs.iter().enumerate() {
            if instr.opcode == Opcode::Discard {
                self.forget(&tables, instr);
            }
            let step = if instr.opcode.is_system() { None } else { self.follow(&tables, at as u32, batch) };
            batch.instrs.push(*instr);
            self.finish(&tables, instr, step, &mut steps);
        }
        let kept = |id: &u64| original.bases.iter().position(|base| base.id == *id).map(|at| at as u32);
        let kept: Vec<u32> = std::mem::take(&mut self.fresh).iter().filter_map(kept).collect();
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
        let first = self.saved.len() - self.copies.len();
        for (saved, &(id, array)) in self.saved[first..].iter_mut().zip(made) {
            (saved.base, saved.array) = (id, Some(array));
        }
        self.copies.clear();
    }

    /// Does the base depend on the arguments?
    fn depends(&self, base: u64) -> bool {
        self.active.contains(&base)
    }

    fn refusal(&self) -> &'static str {
        "the values of an array that depends on the arguments of a derivative are read: they would count as constant. \
         Use the array itself, or read bh.stop_gradient(array)"
    }

    /// Does the base hold values that the tape relies on, or that depend on the arguments?
    fn relies_on(&self, base: u64) -> bool {
        self.depends(base) || self.held.contains_key(&base)
    }

    /// Notes why there can be no derivative.
    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}

impl Tape {
    /// A tape on which the values of these bases are what is differentiated by.
    pub(crate) fn new(arguments: impl IntoIterator<Item = u64>) -> Tape {
        let arguments: HashMap<u64, bool> = arguments.into_iter().map(|base| (base, false)).collect();
        Tape { active: arguments.keys().copied().collect(), arguments, ..Tape::default() }
    }

    /// Has the program written the base of an argument?
    pub(crate) fn has_written(&self, base: u64) -> bool {
        self.arguments.get(&base).copied().unwrap_or(false)
    }

    /// Lets the first values of a new base count as constant.
    pub(crate) fn stop(&mut self, base: u64) {
        self.stopped.insert(base);
    }

    /// Lets the values of a base count as what is differentiated by, from here on.
    pub(crate) fn start(&mut self, base: u64) {
        self.active.insert(base);
    }

    /// Why there is no derivative, if there is none.
    pub(crate) fn check(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// All arrays that the tape holds.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = ArrayId> {
        self.held.values().copied().chain(self.saved.iter().map(|saved| saved.array)).flatten()
    }

    fn forget(&mut self, tables: &BatchRef<'_>, instr: &Instr) {
        if let Some((base, _)) = place_of(tables, instr.operands()[0]) {
            self.active.remove(&base.id);
        }
    }

    /// Follows an operation up to where it writes. Puts copies of what it overwrites into the batch.
    fn follow(&mut self, tables: &BatchRef<'_>, at: u32, batch: &mut Batch) -> Option<Step> {
        let instr = &tables.instrs[at as usize];
        let outs: Vec<(Base, View)> = instr.outputs().iter().filter_map(|&out| place_of(tables, out)).collect();
        let needs = self.needs(tables, instr, &outs);
        let before: Vec<bool> = outs.iter().map(|out| self.is_read(out)).collect();
        self.note_inputs(tables, instr, needs.inputs);
        let mut saves = Vec::new();
        for (position, (out, restored)) in outs.iter().zip(before).enumerate() {
            if self.is_read(out) {
                let from = instr.outputs()[position];
                saves.push((position as u8, self.save(out, restored, (from, instr.origin), batch)));
            }
            if let Some(written) = self.arguments.get_mut(&out.0.id) {
                *written = true;
            }
        }
        let touches = outs.iter().any(|(base, _)| self.active.contains(&base.id));
        (needs.flows != 0 || touches || !saves.is_empty()).then_some(Step { at, needs, saves })
    }

    /// Follows an operation from where it has written.
    fn finish(&mut self, tables: &BatchRef<'_>, instr: &Instr, step: Option<Step>, steps: &mut Vec<Step>) {
        let Some(step) = step else { return };
        for (position, &operand) in instr.outputs().iter().enumerate() {
            let Some((base, view)) = place_of(tables, operand) else { continue };
            if step.needs.flows != 0 && is_inexact(base.dtype()) {
                self.active.insert(base.id);
            } else if is_whole(&base, &view) && !keeps_elements(rule_of(tables, instr)) {
                self.active.remove(&base.id);
            }
            if step.needs.outputs >> position & 1 == 1 {
                self.note_read(&base, view);
            }
        }
        steps.push(step);
    }

    /// What the derivative of an operation reads.
    fn needs(&mut self, tables: &BatchRef<'_>, instr: &Instr, outs: &[(Base, View)]) -> Needs {
        let mut active = 0u8;
        for (position, &input) in instr.inputs().iter().enumerate() {
            let depends = |index| tables.base_of(index).is_some_and(|base| self.active.contains(&base.id));
            if input.as_view().is_some_and(depends) && tables.dtype(input).is_some_and(is_inexact) {
                active |= 1 << position;
            }
        }
        let stopped = outs.iter().filter(|(base, _)| self.stopped.remove(&base.id)).count() > 0;
        if stopped || !outs.iter().any(|(base, _)| is_inexact(base.dtype())) {
            active = 0;
        }
        let rule = rule_of(tables, instr);
        let is_known = match (rule, method(tables, instr)) {
            (Rule::Form(Form::Program), Some(name)) => programs::is_known(name, active),
            (rule, _) => !matches!(rule, Rule::Missing),
        };
        if active != 0 && !is_known {
            self.fail(missing(tables, instr));
            return Needs::default();
        }
        if active == 0 && !outs.iter().any(|(base, _)| self.active.contains(&base.id)) {
            return Needs::default();
        }
        rule.needs(active, (outs.len(), instr.inputs().len()))
    }

    fn note_inputs(&mut self, tables: &BatchRef<'_>, instr: &Instr, inputs: u8) {
        for (position, &operand) in instr.inputs().iter().enumerate() {
            if inputs >> position & 1 == 1
                && let Some((base, view)) = place_of(tables, operand)
            {
                self.note_read(&base, view);
            }
        }
    }

    /// Notes that a rule reads a view in its present values.
    fn note_read(&mut self, base: &Base, view: View) {
        let views = self.reads.entry(base.id).or_default();
        if !views.contains(&view) {
            views.push(view);
        }
        if views.len() > MOST_VIEWS {
            views.clear();
            views.extend(View::contiguous(&[base.len]));
        }
        if let std::collections::hash_map::Entry::Vacant(entry) = self.held.entry(base.id) {
            entry.insert(None);
            self.fresh.push(base.id);
        }
    }

    /// Does a rule read values that a write of this view overwrites?
    fn is_read(&self, (base, view): &(Base, View)) -> bool {
        let views = self.reads.get(&base.id).map_or(&[][..], |views| views);
        views.iter().any(|read| overlap(read, view) != Overlap::Disjoint)
    }

    /// Puts a copy of a view, which the operand is, into the batch, and returns its place among the saved.
    fn save(
        &mut self,
        (base, view): &(Base, View),
        restored: bool,
        (from, origin): (Operand, u32),
        batch: &mut Batch,
    ) -> u32 {
        let copy = batch.push_base(Base { id: 0, len: view.len(), flags: 0, row_hint: 0, ..*base });
        let to = batch.push_view(copy, &View::contiguous(view.shape()).unwrap_or_default());
        batch.instrs.push(Instr { origin, ..Instr::new(Opcode::Copy, &[Operand::view(to), from]) });
        self.copies.push(copy);
        self.saved.push(Saved { base: 0, array: None, restored });
        if let Some(views) = self.reads.get_mut(&base.id) {
            views.retain(|read| read != view && !is_whole(base, view));
        }
        self.saved.len() as u32 - 1
    }
}

fn keeps_elements(rule: Rule) -> bool {
    matches!(rule, Rule::Form(form) if form.keeps_elements())
}

/// The error of an operation that has no rule.
fn missing(tables: &BatchRef<'_>, instr: &Instr) -> Error {
    let name = tables.operation_name(instr.opcode);
    let text = format!(
        "{name}: its derivative is not known to bh; bh.custom_vjp gives a function a derivative of its own, and \
         bh.stop_gradient lets what it reads count as constant"
    );
    let origin = tables.origin(instr).map(|(file, line)| (file.to_owned(), line));
    Error { origin, ..Error::new(status::UNSUPPORTED, text) }
}
