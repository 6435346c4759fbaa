//! Tapes: what sees each batch before it is handed over, and may put operations into it.
//!
//! While there is a tape, everything is recorded: nothing is carried out at once, no scalar is known, and no result stays a
//! recipe, as in a trace. Unlike in a trace, batches run as always, so that the program may read what the tape allows.
//! An array whose last handle goes in the batch under construction ends only once the tapes have seen the batch, as they may
//! keep it.

use crate::batch::builder::Builder;
use crate::state::State;
use crate::{ArrayId, Recorder};
use bh_bytecode::batch::NO_SLOT;
use bh_bytecode::{Base, Batch, Instr, Operand, base_flags};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::HashMap;

/// Observes the batches of a context. It is called under the recorder's lock, and must not call the recorder.
pub trait Tape: Send {
    /// Arrays whose ends the tape follows; `None` if it follows none. Where there are some, [`Tape::expect`] comes before each batch.
    fn followed(&self) -> Option<Vec<ArrayId>> {
        None
    }

    /// Hears what ends with the batch shown next.
    fn expect(&mut self, _ending: Ending) {}

    /// Hands out arrays of the tape's that end behind the batch shown last.
    fn release(&mut self) -> Vec<ArrayId> {
        Vec::new()
    }

    /// The most operations that the next batch may have.
    fn longest(&self) -> usize {
        usize::MAX
    }

    /// Looks at a batch that is complete but for the ends of some arrays, and puts operations into it, before, between or behind
    /// its own. New bases are appended with identity 0, and have to be written as a whole before they are read. Returns the
    /// bases that have to be kept, by their places in the batch.
    fn take(&mut self, batch: &mut Batch) -> Vec<u32>;

    /// Gets flat arrays on the bases to keep and on the new ones of the batch shown last, with the identities of their bases.
    /// They are the tape's to free.
    fn receive(&mut self, kept: &[(u64, ArrayId)], made: &[(u64, ArrayId)]);

    /// May the program not read the values of a base?
    fn depends(&self, base: u64) -> bool;

    /// Why the program may not read the values of bases that [`Tape::depends`] names, for its user.
    fn refusal(&self) -> &'static str;

    /// May the program not change a base otherwise than by operations?
    fn relies_on(&self, base: u64) -> bool;

    /// Work with arrays of the batches shown so far, which may wait for them: it is done once the lock is open.
    fn errand(&mut self) -> Option<Errand> {
        None
    }

    /// Hears that what it asked for was not done.
    fn fail(&mut self, error: Error);
}

/// Work of a tape at the recorder whose batches it sees.
pub type Errand = Box<dyn FnOnce(&Recorder) -> Result<()> + Send>;

/// The arrays on which a program has no handles any more.
#[derive(Debug, Default)]
pub struct Ending {
    /// For each base of a batch: does it end with the batch, but for the tape's own handles?
    pub bases: Vec<bool>,
    /// Arrays of the tape's, of those that it follows, that have the only handles of their bases.
    pub alone: Vec<ArrayId>,
}

/// The tapes of a context, the innermost last.
#[derive(Default)]
pub(crate) struct Tapes {
    all: Vec<(u64, Box<dyn Tape>)>,
    /// The number of the tape begun last.
    last: u64,
    /// Handles of arrays that end behind the batch under construction.
    ending: Vec<u32>,
    /// The most operations of the batch under construction; 0 if no tape says so.
    longest: usize,
    /// Work that is to be done once the lock is open.
    pub(crate) errands: Vec<Errand>,
}

impl Tapes {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Ends all tapes. Their numbers are not used again, as their owners may still end them.
    pub(crate) fn end_all(&mut self) {
        *self = Tapes { last: self.last, ..Tapes::default() };
    }

    /// The most operations of the batch under construction, where a batch has this many at most.
    #[inline]
    pub(crate) fn limit(&self, most: usize) -> usize {
        if self.longest == 0 { most } else { most.min(self.longest) }
    }

    fn ask_limit(&mut self) {
        let least = self.all.iter().map(|(_, tape)| tape.longest()).min();
        self.longest = least.filter(|&least| least < usize::MAX).map_or(0, |least| least.max(1));
    }
}

impl Recorder {
    /// Shows a tape all batches from here on, until [`Recorder::end_tape`] gets the number that this returns. The arguments are
    /// arrays whose values the program gets by operations only.
    pub fn begin_tape(&self, tape: Box<dyn Tape>, arguments: &[ArrayId]) -> Result<u64> {
        let mut state = self.state();
        state.running()?;
        state.refuse_in_trace("is differentiated")?;
        let places = state.places_of(arguments)?;
        state.hand_out(&places);
        let submitted = state.submit_all()?;
        places.iter().for_each(|&place| state.forget_value(place));
        state.tapes.last += 1;
        let number = state.tapes.last;
        state.tapes.all.push((number, tape));
        state.tapes.ask_limit();
        state.set_gate();
        drop(state);
        submitted.drive().inspect_err(|_| _ = self.end_tape(number))?;
        Ok(number)
    }

    /// Ends a tape: it has then seen all that was recorded so far.
    pub fn end_tape(&self, number: u64) -> Result<()> {
        let mut state = self.state();
        let submitted = state.submit();
        state.end_arrays();
        state.tapes.all.retain(|&(other, _)| other != number);
        state.tapes.ask_limit();
        let errands = std::mem::take(&mut state.tapes.errands);
        state.set_gate();
        drop(state);
        let driven = submitted.and_then(|submitted| submitted.drive());
        driven.and(self.run(errands))
    }

    /// Does the work of tapes: all of it, also if some fails.
    pub(crate) fn run(&self, errands: Vec<Errand>) -> Result<()> {
        errands.into_iter().map(|errand| errand(self)).fold(Ok(()), Result::and)
    }

    /// Is there a tape?
    pub fn is_taped(&self) -> bool {
        !self.state().tapes.is_empty()
    }

    /// Is the array the only handle of its base?
    pub fn is_only_handle(&self, array: ArrayId) -> Result<bool> {
        let state = self.state();
        let handle = state.find(array)?;
        Ok(state.bases.at(state.handles.at(handle).base).references == 1)
    }

    /// Refuses accesses of the program that tapes forbid.
    pub(crate) fn check_tapes(&self, array: ArrayId, reads: bool) -> Result<()> {
        let mut state = self.state();
        if state.tapes.is_empty() {
            return Ok(());
        }
        let handle = state.find(array)?;
        let entry = state.bases.at(state.handles.at(handle).base);
        let (id, used) = (entry.base.id, entry.epoch == state.builder.epoch);
        if !entry.known {
            return Ok(());
        }
        // The uses of the array in the batch under construction are known once the tapes have seen it.
        let submitted = if used { Some(state.submit()?) } else { None };
        let tapes = state.tapes.all.iter().rev();
        let depends = tapes.clone().find(|(_, tape)| tape.depends(id)).map(|(_, tape)| tape.refusal());
        let relies = !reads && tapes.into_iter().any(|(_, tape)| tape.relies_on(id));
        drop(state);
        submitted.map_or(Ok(()), |submitted| submitted.drive())?;
        let shared = relies
            .then_some("memory of an array that a derivative or vmap needs is changed, or shared with the program");
        depends.or(shared).map_or(Ok(()), |text| Err(Error::new(status::UNSUPPORTED, text)))
    }
}

impl State {
    /// Is everything recorded, and nothing known or carried out where it is called?
    #[inline]
    pub(crate) fn records_all(&self) -> bool {
        self.trace.is_some() || !self.tapes.is_empty()
    }

    /// Lets an array whose last handle goes end behind the batch under construction, if that uses it and there is a tape.
    #[inline]
    pub(crate) fn ends_later(&mut self, handle: u32) -> bool {
        if self.tapes.is_empty() {
            return false;
        }
        let entry = self.bases.at(self.handles.at(handle).base);
        let ends = entry.references == 1 && entry.maps == 0 && entry.known && entry.epoch == self.builder.epoch;
        if ends {
            self.tapes.ending.push(handle);
        }
        ends
    }

    /// Shows the tapes the batch under construction, the innermost first.
    pub(crate) fn show_tapes(&mut self) {
        if self.tapes.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.tapes.all);
        for (_, tape) in all.iter_mut().rev() {
            let known = (self.builder.batch.bases.len(), self.builder.batch.views.len());
            if let Some(followed) = tape.followed() {
                tape.expect(self.ending(&followed));
            }
            let kept = tape.take(&mut self.builder.batch);
            self.builder.signed = false;
            let answer = self.keep_bases(&kept).and_then(|kept| Ok((kept, self.make_bases(known)?)));
            match answer {
                Ok((kept, made)) => tape.receive(&kept, &made),
                Err(error) => tape.fail(error),
            }
            self.tapes.errands.extend(tape.errand());
            for array in tape.release() {
                let handle = self.find(array);
                self.tapes.ending.extend(handle);
            }
        }
        let first = self.builder.batch.instrs.len();
        self.end_arrays();
        self.builder.place_ends(first);
        self.tapes.all = all;
        self.tapes.ask_limit();
    }

    /// The arrays without handles of the program behind the batch under construction. `followed`: arrays of the tape that
    /// calls.
    fn ending(&self, followed: &[ArrayId]) -> Ending {
        let mut own: HashMap<u32, u32> = HashMap::new();
        let of = |handle: u32| self.handles.at(handle).base;
        let followed: Vec<(ArrayId, u32)> =
            followed.iter().filter_map(|&array| Some((array, of(self.find(array).ok()?)))).collect();
        let leaving = self.tapes.ending.iter().map(|&handle| of(handle));
        followed.iter().map(|&(_, place)| place).chain(leaving).for_each(|place| *own.entry(place).or_default() += 1);
        let is_alone = |place: u32| {
            let entry = self.bases.at(place);
            entry.maps == 0 && entry.references <= own.get(&place).copied().unwrap_or(0)
        };
        let batch = &self.builder.batch;
        let ends = |(base, &place): (&Base, &u32)| {
            base.has(base_flags::DIES) || (self.bases.at(place).base.id == base.id && is_alone(place))
        };
        Ending {
            bases: batch.bases.iter().zip(&self.builder.places).map(ends).collect(),
            alone: followed.into_iter().filter(|&(_, place)| is_alone(place)).map(|(array, _)| array).collect(),
        }
    }

    /// Ends the arrays whose last handles went while there were tapes.
    fn end_arrays(&mut self) {
        for handle in std::mem::take(&mut self.tapes.ending) {
            self.release_now(handle);
        }
    }

    /// New handles on bases of the batch.
    fn keep_bases(&mut self, kept: &[u32]) -> Result<Vec<(u64, ArrayId)>> {
        let mut all = Vec::with_capacity(kept.len());
        for &index in kept {
            let (place, base) = (self.builder.places[index as usize], self.builder.batch.bases[index as usize]);
            if self.bases.at(place).base.id == base.id {
                let handle = self.new_handle(place, crate::array::small_view::SmallView::contiguous(&[base.len]))?;
                all.push((base.id, self.name(handle)));
            }
        }
        Ok(all)
    }

    /// Makes the bases known that a tape has appended to the batch. `known`: the bases and views before.
    fn make_bases(&mut self, known: (usize, usize)) -> Result<Vec<(u64, ArrayId)>> {
        let mut made = Vec::new();
        for index in known.0..self.builder.batch.bases.len() {
            match self.make_base(index) {
                Ok(array) => made.push(array),
                Err(error) => {
                    self.builder.drop_appended(index, known.1);
                    return Err(error);
                }
            }
        }
        Ok(made)
    }

    fn make_base(&mut self, index: usize) -> Result<(u64, ArrayId)> {
        let Base { len, row_hint, .. } = self.builder.batch.bases[index];
        let handle = self.new_contiguous(self.builder.batch.bases[index].dtype(), &[len], len)?;
        let (place, epoch) = (self.handles.at(handle).base, self.builder.epoch);
        let entry = self.bases.at_mut(place);
        entry.base.row_hint = row_hint.max(1);
        (entry.known, entry.epoch, entry.written, entry.index) = (true, epoch, epoch, index as u32);
        let base = Base { flags: base_flags::BORN, ..entry.base };
        self.builder.batch.bases[index] = base;
        self.builder.enter_next(base, NO_SLOT, place);
        Ok((base.id, self.name(handle)))
    }
}

impl Builder {
    /// Puts the ends of bases, which the instructions from `first` on are, behind the last uses of these bases.
    fn place_ends(&mut self, first: usize) {
        let Batch { instrs, views, .. } = &mut self.batch;
        let ends = instrs.split_off(first);
        if ends.is_empty() {
            return;
        }
        let base_of = |operand: &Operand| operand.as_view().map(|view| views[view as usize].base);
        let mut behind: HashMap<u32, usize> = HashMap::new();
        for (at, instr) in instrs.iter().enumerate() {
            instr.operands().iter().filter_map(base_of).for_each(|base| _ = behind.insert(base, at + 1));
        }
        let place = |end: &Instr| end.operands().first().and_then(base_of).and_then(|base| behind.get(&base).copied());
        let mut ends: Vec<(usize, Instr)> = ends.into_iter().map(|end| (place(&end).unwrap_or(0), end)).collect();
        ends.sort_by_key(|(place, _)| *place);
        let mut ends = ends.into_iter().peekable();
        for (at, instr) in std::mem::take(instrs).into_iter().enumerate() {
            while let Some((_, end)) = ends.next_if(|(place, _)| *place == at) {
                instrs.push(end);
            }
            instrs.push(instr);
        }
        instrs.extend(ends.map(|(_, end)| end));
    }

    /// Takes appended bases and views out of the batch again, with all operations on them.
    fn drop_appended(&mut self, bases: usize, views: usize) {
        let is_old = |view: u32| (view as usize) < views;
        let Batch { instrs, .. } = &mut self.batch;
        instrs.retain(|instr| instr.operands().iter().filter_map(|operand| operand.as_view()).all(is_old));
        self.batch.views.truncate(views);
        self.batch.bases.truncate(bases);
    }
}
