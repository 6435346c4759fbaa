//! Recordings: batches that are recorded once and run again with other arrays.
//!
//! A recording is made of a trace's batch. Of each of its bases it is known what it stands for: an argument, a result, data that
//! the recording keeps, or nothing outside of the batch. A call fills the batch under construction from the recording's tables,
//! with the identities of its own arrays, and hands it over.

use crate::array::small_view::SmallView;
use crate::batch::builder::close;
use crate::executor::Executor;
use crate::state::State;
use crate::state::layout::Layout;
use crate::state::trace::Trace;
use crate::{ArrayId, Recorder};
use bh_bytecode::batch::NO_SLOT;
use bh_bytecode::{Base, Batch, Constant, DType, Opcode, base_flags};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// A batch to be run with other arrays. Belongs to the run of a context in which it was made.
pub struct Recording {
    executor: Weak<Executor>,
    batch: Batch,
    /// For each base of the batch.
    roles: Vec<Role>,
    /// For each argument, where its view began.
    starts: Vec<i64>,
    results: Vec<Made>,
    work_bytes: u64,
    /// Constants of the batch that calls give: their places, and their numbers.
    marks: Vec<(u32, u16)>,
    kept: Vec<ArrayId>,
    recorder: Weak<Recorder>,
}

/// The role of a base of the batch.
enum Role {
    /// That of the argument at this position. The layout that it has afterwards, if the batch writes it.
    Argument(usize, Option<Layout>),
    /// One that lives in the batch alone.
    Local,
    /// A new one that results look at.
    Result(Layout),
    /// That of kept data.
    Kept(usize),
}

/// A result of a call.
struct Made {
    home: Home,
    view: SmallView,
}

/// Where the elements of a result are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    /// In the base of an argument.
    Argument(usize),
    /// In this base of the batch.
    Batch(usize),
    /// In a base that nothing writes: its type and its number of elements.
    Unwritten(DType, i64),
}

/// A result of a call, as its caller gets it.
#[derive(Clone, Copy, Debug)]
pub struct Replayed {
    /// Its name.
    pub array: ArrayId,
    /// How many elements later its view begins than in the trace.
    pub shift: i64,
}

impl Recording {
    /// The recording of the batch under construction.
    pub(crate) fn new(
        recorder: &Arc<Recorder>,
        state: &mut State,
        trace: &Trace,
        arguments: &[ArrayId],
        results: &[ArrayId],
    ) -> Result<Recording> {
        let places = state.places_of(arguments)?;
        let starts = arguments.iter().map(|&array| Ok(state.handles.at(state.find(array)?).view.start));
        let starts = starts.collect::<Result<Vec<i64>>>()?;
        let results = state.results_of(trace, &places, results)?;
        let roles = (0..state.builder.batch.bases.len()).map(|base| state.role_of(base, trace, &places, &results));
        let roles = roles.collect::<Result<Vec<Role>>>()?;
        let executor = Arc::downgrade(&state.executor()?);
        close(&mut state.builder.batch);
        let mut batch = state.builder.batch.clone();
        batch.sign();
        Ok(Recording {
            executor,
            batch,
            roles,
            starts,
            results,
            work_bytes: state.builder.work_bytes,
            marks: std::mem::take(&mut state.builder.marks),
            kept: trace.kept.clone(),
            recorder: Arc::downgrade(recorder),
        })
    }

    /// Operations of a call.
    pub fn operations(&self) -> usize {
        self.batch.instrs.iter().filter(|instr| !instr.opcode.is_system()).count()
    }

    /// The constants that calls give: the type of each, and its number, as marked in the trace.
    pub fn numbers(&self) -> impl Iterator<Item = (DType, u16)> {
        self.marks.iter().map(|&(at, mark)| (self.batch.constants[at as usize].dtype(), mark))
    }

    /// Does a view of an argument leave its base?
    fn leaves(&self, base: usize, shift: i64, len: i64) -> bool {
        let views = self.batch.views.iter().filter(|view| view.base as usize == base);
        let ends = |view: &bh_bytecode::ViewRec| {
            let dims = &self.batch.dims[view.dims as usize..][..2 * view.rank as usize];
            let (shape, stride) = dims.split_at(view.rank as usize);
            let reach = shape.iter().zip(stride).map(|(&extent, &stride)| (extent - 1) * stride);
            let (low, high) = reach.fold((0, 0), |(low, high), step| (low + step.min(0), high + step.max(0)));
            (view.len > 0).then_some((view.start + shift + low, view.start + shift + high))
        };
        views.filter_map(ends).any(|(low, high)| low < 0 || high >= len)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(recorder) = self.recorder.upgrade() {
            self.kept.iter().for_each(|&array| recorder.free_later(array));
        }
    }
}

impl Recorder {
    /// The array properties that calls of one recording must share: types, shapes, strides, which share memory and how, and
    /// the orders that folds have there. `None` where an array's memory is shared with the program, or has no data.
    pub fn guard(&self, arguments: &[ArrayId]) -> Result<Option<Vec<u64>>> {
        let mut state = self.state();
        let places = state.places_of(arguments)?;
        state.rely_on(&places);
        let mut words = Vec::with_capacity(8 * arguments.len());
        for (position, &array) in arguments.iter().enumerate() {
            let handle = state.handles.at(state.find(array)?);
            let entry = state.bases.at(handle.base);
            if !state.is_free_standing(handle.base)
                || !(entry.known || entry.settled.is_some() || entry.scalar.is_some())
            {
                return Ok(None);
            }
            let same = places.iter().position(|&place| place == handle.base).unwrap_or(position);
            words.push(entry.base.dtype() as u64 | (handle.view.rank() as u64) << 8 | (same as u64) << 16);
            words.extend(handle.view.dims().iter().map(|&word| word as u64));
            if same < position {
                let first = state.handles.at(state.find(arguments[same])?).view.start;
                words.push((handle.view.start - first) as u64);
            }
            words.extend(entry.layout.words(&handle.view));
        }
        Ok(Some(words))
    }

    /// Records and hands over a recording's batch with these arrays, which the recording's guard fits, and numbers in the order
    /// of [`Recording::numbers`]. `None` if it cannot be run with them.
    pub fn replay(
        &self,
        recording: &Recording,
        arguments: &[ArrayId],
        numbers: &[Constant],
    ) -> Result<Option<Vec<Replayed>>> {
        let mut state = self.state();
        let executor = state.executor()?;
        if !std::ptr::eq(recording.executor.as_ptr(), Arc::as_ptr(&executor)) || state.records_all() {
            return Ok(None);
        }
        let begin = state.clock();
        let places = state.places_of(arguments)?;
        let shifts = arguments
            .iter()
            .zip(&recording.starts)
            .map(|(&array, &start)| state.find(array).map(|handle| state.handles.at(handle).view.start - start));
        let shifts = shifts.collect::<Result<Vec<i64>>>()?;
        if !state.fits(recording, &places, &shifts) {
            return Ok(None);
        }
        let results = state.make_results(recording, &places, &shifts)?;
        let earlier = state.hand_out(&places).then(|| state.submit()).transpose()?;
        state.fill(recording, &places, &shifts, &results, numbers)?;
        let submitted = state.submit()?;
        state.count_recording(begin);
        let made = |(handle, shift): (u32, i64)| Replayed { array: state.name(handle), shift };
        let made: Vec<Replayed> = results.into_iter().map(made).collect();
        drop(state);
        if let Some(earlier) = earlier {
            earlier.start();
        }
        let driven = submitted.drive();
        driven.inspect_err(|_| made.iter().for_each(|made| self.free_later(made.array)))?;
        Ok(Some(made))
    }
}

impl State {
    /// The bases of arrays.
    pub(crate) fn places_of(&self, arrays: &[ArrayId]) -> Result<Vec<u32>> {
        arrays.iter().map(|&array| self.find(array).map(|handle| self.handles.at(handle).base)).collect()
    }

    /// Gives the stack the known values and settled data of bases. Does the batch under construction have instructions?
    pub(crate) fn hand_out(&mut self, places: &[u32]) -> bool {
        self.rely_on(places);
        places.iter().for_each(|&place| self.settle(place));
        !self.builder.is_empty()
    }

    fn results_of(&self, trace: &Trace, places: &[u32], results: &[ArrayId]) -> Result<Vec<Made>> {
        let made = |&array: &ArrayId| {
            let handle = self.handles.at(self.find(array)?);
            let (entry, view) = (self.bases.at(handle.base), handle.view.clone());
            let in_batch = self.builder.batch.bases.iter().position(|base| base.id == entry.base.id);
            let argument = places.iter().position(|&place| place == handle.base);
            let home = match (argument, in_batch) {
                (Some(argument), _) => Home::Argument(argument),
                (None, Some(base)) if self.builder.batch.bases[base].has(base_flags::BORN) => Home::Batch(base),
                (None, None) if entry.base.id >= trace.first && !entry.known => {
                    Home::Unwritten(entry.base.dtype(), entry.base.len)
                }
                _ => return Err(refused("returns an array that was there before and is no argument")),
            };
            Ok(Made { home, view })
        };
        results.iter().map(made).collect()
    }

    /// The role of a base of the batch.
    fn role_of(&self, index: usize, trace: &Trace, places: &[u32], results: &[Made]) -> Result<Role> {
        let base = &self.builder.batch.bases[index];
        let id_of = |place: u32| self.bases.at(place).base.id;
        let is_written = || {
            let batch = &self.builder.batch;
            let writes = |instr: &bh_bytecode::Instr| {
                let views = instr.outputs().iter().filter_map(|operand| operand.as_view());
                views.into_iter().any(|view| batch.views[view as usize].base as usize == index)
            };
            batch.instrs.iter().any(writes)
        };
        if let Some(position) = places.iter().position(|&place| id_of(place) == base.id) {
            let layout = is_written().then(|| self.bases.at(places[position]).layout);
            return Ok(Role::Argument(position, layout));
        }
        let of_kept = |&array: &ArrayId| self.find(array).is_ok_and(|h| id_of(self.handles.at(h).base) == base.id);
        if let Some(kept) = trace.kept.iter().position(of_kept) {
            return if is_written() {
                Err(self.refused_at(index, "changes memory of the program"))
            } else {
                Ok(Role::Kept(kept))
            };
        }
        match (base.has(base_flags::BORN), base.has(base_flags::DIES)) {
            (true, true) => Ok(Role::Local),
            (true, false) if results.iter().any(|made| made.home == Home::Batch(index)) => {
                Ok(Role::Result(self.bases.at(self.builder.places[index]).layout))
            }
            (true, false) => Err(self.refused_at(index, "keeps an array that it does not return")),
            (false, _) => Err(self.refused_at(index, "uses an array that is neither an argument nor named by it")),
        }
    }

    /// An error that names where a base was used first.
    fn refused_at(&self, base: usize, what: &str) -> Error {
        let batch = &self.builder.batch;
        let uses = |instr: &&bh_bytecode::Instr| {
            let mut views = instr.operands().iter().filter_map(|operand| operand.as_view());
            views.any(|view| batch.views[view as usize].base as usize == base)
        };
        let place = batch.instrs.iter().find(uses).and_then(|instr| (instr.origin as usize).checked_sub(1));
        let origin = place.map(|at| {
            let origin = batch.origins[at];
            let file = &batch.strings[origin.file as usize..][..origin.file_len as usize];
            (String::from_utf8_lossy(file).into_owned(), origin.line)
        });
        Error { origin, ..refused(what) }
    }

    /// Do all views of a recording lie in the bases of these arrays?
    fn fits(&self, recording: &Recording, places: &[u32], shifts: &[i64]) -> bool {
        let inside = |(index, role): (usize, &Role)| {
            let Role::Argument(position, _) = *role else { return true };
            let (len, shift) = (self.bases.at(places[position]).base.len, shifts[position]);
            shift == 0 && len == recording.batch.bases[index].len || !recording.leaves(index, shift, len)
        };
        let results = recording.results.iter().all(|made| match made.home {
            Home::Argument(position) => {
                let len = self.bases.at(places[position]).base.len;
                let view = made.view.view();
                view.extent().is_none_or(|(low, high)| low + shifts[position] >= 0 && high + shifts[position] < len)
            }
            _ => true,
        });
        results && recording.roles.iter().enumerate().all(inside)
    }

    /// Handles for the results of a call, and how far their views are shifted.
    fn make_results(&mut self, recording: &Recording, places: &[u32], shifts: &[i64]) -> Result<Vec<(u32, i64)>> {
        let mut made: Vec<(u32, i64)> = Vec::with_capacity(recording.results.len());
        for (at, result) in recording.results.iter().enumerate() {
            let view = result.view.clone();
            let earlier = recording.results[..at].iter().position(|other| other.home == result.home);
            let handle = match (result.home, earlier) {
                (Home::Argument(position), _) if view.len > 0 => {
                    self.new_handle(places[position], view.shifted(shifts[position]))
                }
                (Home::Argument(position), _) => self.new_handle(places[position], view),
                (Home::Batch(_), Some(other)) => self.new_handle(self.handles.at(made[other].0).base, view),
                (Home::Batch(base), None) => {
                    let base = &recording.batch.bases[base];
                    self.new_array(base.dtype(), view, base.len)
                }
                (Home::Unwritten(dtype, len), _) => self.new_array(dtype, view, len),
            };
            let shift = if let Home::Argument(position) = result.home { shifts[position] } else { 0 };
            match handle {
                Ok(handle) => made.push((handle, shift)),
                Err(error) => {
                    made.into_iter().for_each(|(handle, _)| self.release(handle));
                    return Err(error);
                }
            }
        }
        Ok(made)
    }

    /// Fills the batch under construction, which has no instructions.
    fn fill(
        &mut self,
        recording: &Recording,
        places: &[u32],
        shifts: &[i64],
        results: &[(u32, i64)],
        numbers: &[Constant],
    ) -> Result<()> {
        let kept = self.places_of(&recording.kept)?;
        let locals = recording.roles.iter().filter(|role| matches!(role, Role::Local)).count() as u64;
        let mut next = self.running()?.ids.fetch_add(locals, Ordering::Relaxed);
        self.builder.refill(&recording.batch);
        for (index, role) in recording.roles.iter().enumerate() {
            let place = match *role {
                Role::Local => {
                    self.builder.batch.bases[index].id = next;
                    next += 1;
                    self.builder.places.push(0);
                    self.builder.batch.slots.push(NO_SLOT);
                    continue;
                }
                Role::Argument(position, _) => places[position],
                Role::Kept(at) => kept[at],
                Role::Result(_) => {
                    let of = recording.results.iter().position(|made| made.home == Home::Batch(index));
                    self.handles.at(results[of.unwrap_or_default()].0).base
                }
            };
            self.enter(recording, index, place);
            if let Role::Argument(position, _) = *role
                && shifts[position] != 0
            {
                let views = self.builder.batch.views.iter_mut();
                let moved = views.filter(|view| view.base as usize == index && view.len > 0);
                moved.for_each(|view| view.start += shifts[position]);
                self.builder.signed = false;
            }
        }
        for (&(at, _), number) in recording.marks.iter().zip(numbers) {
            self.builder.batch.constants[at as usize] = *number;
        }
        self.builder.work_bytes = recording.work_bytes;
        self.recorded += recording.batch.instrs.len() as u64;
        Ok(())
    }

    /// Enters a base that lives on into the filled batch.
    fn enter(&mut self, recording: &Recording, index: usize, place: u32) {
        let (epoch, traced) = (self.builder.epoch, recording.batch.bases[index]);
        let layout = match recording.roles[index] {
            Role::Argument(_, layout) => layout,
            Role::Result(layout) => Some(layout),
            Role::Local | Role::Kept(_) => None,
        };
        if layout.is_some() {
            self.forget_value(place);
        }
        let entry = self.bases.at_mut(place);
        if let Some(layout) = layout {
            (entry.written, entry.layout) = (epoch, layout);
            if entry.base.row_hint == 0 {
                entry.base.row_hint = traced.row_hint;
            }
        }
        (entry.epoch, entry.index, entry.known) = (epoch, index as u32, true);
        let base = Base { flags: traced.flags, ..entry.base };
        self.builder.signed &= (base.len, base.row_hint) == (traced.len, traced.row_hint);
        self.builder.batch.bases[index] = base;
        self.builder.batch.slots.push(entry.slot);
        self.builder.places.push(place);
        if traced.has(base_flags::BORN) {
            let live = &mut self.builder.live_bytes;
            *live = live.saturating_add_unsigned(traced.bytes());
        }
    }
}

fn refused(what: &str) -> Error {
    Error::new(status::UNSUPPORTED, format!("a traced function {what}"))
}

/// Can a constant of this operation be another number in another call?
pub(crate) fn takes_any_number(opcode: Opcode) -> bool {
    // The operations of a power depend on its exponent.
    opcode != Opcode::Power
}
