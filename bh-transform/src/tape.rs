//! Tapes: the batches of a program as they ran, and the values among them that reverse mode reads.
//!
//! A tape sees each batch before it runs. It follows which arrays depend on the arguments, notes which values the rules of the
//! operations read, keeps the arrays that hold them, and has a view copied before the program overwrites such values in it.

mod copies;
mod shown;

use crate::bounded::{Bounded, Plan};
use crate::identities::{BaseSet, ByBase};
use crate::rules::{Form, Needs, Rule, programs, rule};
use bh_bytecode::view::overlap;
use bh_bytecode::{Base, Batch, BatchRef, DType, Instr, Opcode, Operand, Overlap, View};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Ending, Tape as _};
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// This many views of one base are taken as the whole of it.
const MOST_VIEWS: usize = 64;

/// A program as it ran, with the values that its derivative reads.
#[derive(Default)]
pub(crate) struct Tape {
    pub(crate) segments: Vec<Segment>,
    /// Bases whose values depend on the arguments.
    active: BaseSet,
    /// New bases whose first values count as constant.
    stopped: BaseSet,
    /// Those of them that have got these values in the batch shown last.
    first_written: Vec<u64>,
    /// Views of bases that rules read, in their present values.
    reads: ByBase<Vec<View>>,
    /// Bases that reads or saved values need.
    pub(crate) held: ByBase<Option<ArrayId>>,
    pub(crate) saved: Vec<Saved>,
    /// Copies to make before the instruction followed last.
    pending: Vec<Pending>,
    /// Bytes of what is held and saved.
    bytes: u64,
    /// The bases of the arguments, and whether the program has written them.
    arguments: ByBase<bool>,
    /// The bases of the batch shown last whose values the tape needs.
    fresh: Vec<u64>,
    /// How many copies were put into the batch shown last.
    copies: usize,
    /// The places on the tape that were asked for: segments and units before them.
    places: Vec<(usize, usize)>,
    /// The bases that end with the batch shown next.
    ending: Ending,
    /// Does the tape follow all copies of elements?
    pub(crate) follows_copies: bool,
    /// Has it left some out?
    pub(crate) has_left_out: bool,
    /// How much memory the tape may take, and how it does with that.
    pub(crate) bounded: Option<Box<Bounded>>,
    error: Option<Error>,
}

/// A batch of the program, and its operations that matter.
pub(crate) struct Segment {
    pub(crate) batch: Arc<Batch>,
    pub(crate) steps: Vec<Step>,
}

/// An operation through which derivatives flow, or that overwrites values that depend on the arguments or that are saved.
pub(crate) struct Step {
    /// The instruction.
    pub(crate) at: u32,
    pub(crate) rule: Rule,
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

/// A view that is to be copied before an instruction overwrites it, which has it as this operand.
pub(crate) struct Pending {
    pub(crate) saved: usize,
    pub(crate) base: Base,
    pub(crate) view: View,
    pub(crate) operand: Operand,
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
        rule => rule,
    }
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

impl Tape {
    /// A tape on which the values of these bases are what is differentiated by.
    pub(crate) fn new(arguments: impl IntoIterator<Item = u64>) -> Tape {
        let arguments: ByBase<bool> = arguments.into_iter().map(|base| (base, false)).collect();
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

    /// Ends the program. Returns what its derivative does with its memory, if there is a bound.
    pub(crate) fn end(&mut self) -> Option<Plan> {
        let (bytes, bounded) = (self.bytes, self.bounded.as_mut()?);
        bounded.history.end();
        if let Err(error) = bounded.check(bytes) {
            self.error.get_or_insert(error);
        }
        Some(bounded.plan(bytes))
    }

    /// All arrays that the tape holds.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = ArrayId> {
        self.own_arrays().chain(self.bounded.iter().flat_map(|bounded| bounded.history.arrays()))
    }

    /// The arrays with values that rules read.
    fn own_arrays(&self) -> impl Iterator<Item = ArrayId> {
        self.held.values().copied().chain(self.saved.iter().map(|saved| saved.array)).flatten()
    }

    /// A tape of a part of a program that runs again: what depended on the arguments before it, and bases whose first values,
    /// which it makes, count as constant.
    pub(crate) fn again(active: &[u64], stopped: &[u64]) -> Tape {
        let set = |ids: &[u64]| ids.iter().copied().collect();
        Tape { active: set(active), stopped: set(stopped), ..Tape::default() }
    }

    /// A place on the tape, behind all that it has seen.
    pub(crate) fn mark(&mut self) -> usize {
        let active = self.snapshot();
        let units = self.bounded.as_mut().map_or(0, |bounded| {
            bounded.history.cut_here(active);
            bounded.history.units.len() - 1
        });
        self.places.push((self.segments.len(), units));
        self.places.len()
    }

    /// How many segments and units are before a place; the begin is place 0.
    pub(crate) fn place(&self, place: usize) -> (usize, usize) {
        place.checked_sub(1).and_then(|at| self.places.get(at)).copied().unwrap_or((0, 0))
    }

    /// The bases that depend on the arguments.
    pub(crate) fn snapshot(&self) -> Arc<Vec<u64>> {
        let mut active: Vec<u64> = self.active.iter().copied().collect();
        active.sort_unstable();
        Arc::new(active)
    }

    /// Bytes of what rules read, as far as it is noted.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Forgets all values that rules read, and what led to them. Returns the arrays that had them.
    pub(crate) fn forget_values(&mut self) -> Vec<ArrayId> {
        let arrays = self.own_arrays().collect();
        self.segments.clear();
        self.reads.clear();
        self.held.clear();
        self.saved.clear();
        self.pending.clear();
        self.fresh.clear();
        (self.bytes, self.copies) = (0, 0);
        arrays
    }

    /// Gives what depends on the arguments and what counts as constant the state of an earlier time.
    pub(crate) fn go_back(&mut self, active: BaseSet, stopped: BaseSet) {
        (self.active, self.stopped) = (active, stopped);
    }

    /// The state that [`Tape::go_back`] takes.
    pub(crate) fn now(&self) -> (BaseSet, BaseSet) {
        (self.active.clone(), self.stopped.clone())
    }

    /// Ends bases, of which nothing depends on the arguments any more.
    pub(crate) fn end_bases(&mut self, bases: impl Iterator<Item = u64>) {
        bases.for_each(|base| _ = self.active.remove(&base));
    }

    /// Bases that have got first values that count as constant since this was asked last.
    pub(crate) fn take_first_written(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.first_written)
    }

    /// Follows a batch, whose values are kept. `before` is called with the place of each operation. Returns the copies to be made.
    pub(crate) fn keep_all(
        &mut self,
        original: &Arc<Batch>,
        batch: &mut Batch,
        mut before: impl FnMut(&mut Tape, usize),
    ) -> Inserts {
        let tables = Batch::as_ref(original);
        let (mut steps, mut copies) = (Vec::new(), Vec::new());
        for (at, instr) in tables.instrs.iter().enumerate() {
            before(self, at);
            let step = self.follow(&tables, at as u32);
            for pending in std::mem::take(&mut self.pending) {
                let copy = insert_copy(batch, &pending.base, &pending.view, (pending.operand, instr.origin));
                copies.push((at, copy));
                self.copies += 1;
            }
            steps.extend(self.finish(&tables, instr, step));
        }
        if !steps.is_empty() {
            self.segments.push(Segment { batch: original.clone(), steps });
        }
        copies
    }

    fn take_all(&mut self, original: &Arc<Batch>, batch: &mut Batch) -> Inserts {
        self.keep_all(original, batch, |_, _| ())
    }

    /// The copies to make before the instruction followed last.
    pub(crate) fn take_pending(&mut self) -> Vec<Pending> {
        std::mem::take(&mut self.pending)
    }

    fn forget(&mut self, tables: &BatchRef<'_>, instr: &Instr) {
        if let Some((base, _)) = place_of(tables, instr.operands()[0]) {
            self.active.remove(&base.id);
        }
    }

    /// Follows an operation up to where it writes.
    pub(crate) fn follow(&mut self, tables: &BatchRef<'_>, at: u32) -> Option<Step> {
        let instr = &tables.instrs[at as usize];
        if instr.opcode == Opcode::Discard {
            self.forget(tables, instr);
        }
        if instr.opcode.is_system() {
            return None;
        }
        let outs: Vec<(Base, View)> = instr.outputs().iter().filter_map(|&out| place_of(tables, out)).collect();
        let active = self.active_inputs(tables, instr, &outs);
        let touches = outs.iter().any(|(base, _)| self.active.contains(&base.id));
        let rule = (active != 0 || touches).then(|| rule_of(tables, instr));
        let needs = rule.map_or_else(Needs::default, |rule| self.needs(tables, instr, (rule, active)));
        let before: Vec<bool> = outs.iter().map(|out| self.is_read(out)).collect();
        self.note_inputs(tables, instr, needs.inputs);
        let mut saves = Vec::new();
        for (position, (out, restored)) in outs.iter().zip(before).enumerate() {
            if self.is_read(out) {
                saves.push((position as u8, self.save(out, restored, instr.outputs()[position])));
            }
            if let Some(written) = self.arguments.get_mut(&out.0.id) {
                *written = true;
            }
        }
        let matters = needs.flows != 0 || touches || !saves.is_empty();
        matters.then(|| Step { at, rule: rule.unwrap_or_else(|| rule_of(tables, instr)), needs, saves })
    }

    /// Follows an operation from where it has written.
    pub(crate) fn finish(&mut self, tables: &BatchRef<'_>, instr: &Instr, step: Option<Step>) -> Option<Step> {
        let step = step?;
        for (position, &operand) in instr.outputs().iter().enumerate() {
            let Some((base, view)) = place_of(tables, operand) else { continue };
            if step.needs.flows != 0 && is_inexact(base.dtype()) {
                self.active.insert(base.id);
            } else if is_whole(&base, &view) && !keeps_elements(step.rule) {
                self.active.remove(&base.id);
            }
            if step.needs.outputs >> position & 1 == 1 {
                self.note_read(&base, view);
            }
        }
        Some(step)
    }

    /// The inputs that depend on the arguments, a bit for each; none if the first values of an output count as constant.
    fn active_inputs(&mut self, tables: &BatchRef<'_>, instr: &Instr, outs: &[(Base, View)]) -> u8 {
        let mut active = 0u8;
        for (position, &input) in instr.inputs().iter().enumerate() {
            let depends = |index| tables.base_of(index).is_some_and(|base| self.active.contains(&base.id));
            if input.as_view().is_some_and(depends) && tables.dtype(input).is_some_and(is_inexact) {
                active |= 1 << position;
            }
        }
        let stopped = outs.iter().map(|(base, _)| base.id).filter(|base| self.stopped.remove(base));
        let known = self.first_written.len();
        self.first_written.extend(stopped);
        let is_constant = self.first_written.len() > known || !outs.iter().any(|(base, _)| is_inexact(base.dtype()));
        if is_constant { 0 } else { active }
    }

    /// The values that the derivative of an operation reads, if these inputs depend on the arguments.
    fn needs(&mut self, tables: &BatchRef<'_>, instr: &Instr, (rule, active): (Rule, u8)) -> Needs {
        let is_known = match (rule, method(tables, instr)) {
            (Rule::Form(Form::Program), Some(name)) => programs::is_known(name, active),
            (rule, _) => !matches!(rule, Rule::Missing),
        };
        if active != 0 && !is_known {
            self.fail(missing(tables, instr));
            return Needs::default();
        }
        rule.needs(active, (instr.outputs().len(), instr.inputs().len()))
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
        if let Entry::Vacant(entry) = self.held.entry(base.id) {
            entry.insert(None);
            self.fresh.push(base.id);
            self.bytes += base.bytes();
        }
    }

    /// Does a rule read values that a write of this view overwrites?
    fn is_read(&self, (base, view): &(Base, View)) -> bool {
        let views = self.reads.get(&base.id).map_or(&[][..], |views| views);
        views.iter().any(|read| overlap(read, view) != Overlap::Disjoint)
    }

    /// Lets a view, which the operand is, be copied. Returns its place among the saved.
    fn save(&mut self, (base, view): &(Base, View), restored: bool, operand: Operand) -> u32 {
        let saved = self.saved.len();
        self.pending.push(Pending { saved, base: *base, view: *view, operand });
        self.saved.push(Saved { base: 0, array: None, restored });
        self.bytes += Base { len: view.len(), ..*base }.bytes();
        if let Some(views) = self.reads.get_mut(&base.id) {
            views.retain(|read| read != view && !is_whole(base, view));
        }
        saved as u32
    }
}

/// Instructions to be put before others, by the places of these.
pub(crate) type Inserts = Vec<(usize, Instr)>;

/// Appends a base for a copy of a view, which the operand is, to a batch. Returns the instruction that copies.
pub(crate) fn insert_copy(batch: &mut Batch, base: &Base, view: &View, (from, origin): (Operand, u32)) -> Instr {
    let copy = batch.push_base(Base { id: 0, len: view.len(), flags: 0, row_hint: 0, ..*base });
    let to = batch.push_view(copy, &View::contiguous(view.shape()).unwrap_or_default());
    Instr { origin, ..Instr::new(Opcode::Copy, &[Operand::view(to), from]) }
}

/// Puts instructions before others, in their order.
fn insert(batch: &mut Batch, mut inserts: Inserts) {
    if inserts.is_empty() {
        return;
    }
    inserts.sort_by_key(|(at, _)| *at);
    let mut inserts = inserts.into_iter().peekable();
    for (at, instr) in std::mem::take(&mut batch.instrs).into_iter().enumerate() {
        while let Some((_, copy)) = inserts.next_if(|(before, _)| *before == at) {
            batch.instrs.push(copy);
        }
        batch.instrs.push(instr);
    }
}

pub(crate) fn keeps_elements(rule: Rule) -> bool {
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
