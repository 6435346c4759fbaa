//! Traces: what a function records while it runs, kept as a [`Recording`].
//!
//! While a thread traces, everything it does is recorded: nothing is carried out at once, no scalar is known, no limit ends the
//! batch, and what needs values of arrays is refused. If another thread records meanwhile, the batch holds operations of both: it
//! is run, and nothing is kept of it. Data that the program gives meanwhile goes to arrays of its own, which
//! the recording keeps and the batch copies, so that what the function does with its copy changes nothing for later calls.

use crate::batch::recording::Recording;
use crate::data::dense_stride;
use crate::process::patience::Patience;
use crate::record::Input;
use crate::state::State;
use crate::state::trace::Trace;
use crate::sync::current;
use crate::{ArrayId, Location, Recorder, SendPtr};
use bh_bytecode::Opcode;
use bh_core::abi::{access, status};
use bh_core::error::{Error, Result};
use bh_core::strided::Side;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Instructions of a trace, at most.
const LONGEST: usize = 1 << 18;

impl Recorder {
    /// Begins to trace what this thread does. `arguments`: arrays that [`Recorder::guard`] has words for.
    pub fn begin_trace(&self, arguments: &[ArrayId]) -> Result<()> {
        let mut state = self.state();
        if state.running()?.options.eager {
            return Err(Error::new(status::UNSUPPORTED, "nothing is traced in eager mode"));
        }
        if state.trace.is_some() {
            return Err(Error::new(status::UNSUPPORTED, "another thread traces a function"));
        }
        if !state.tapes.is_empty() {
            return Err(Error::new(status::UNSUPPORTED, "nothing is traced while a derivative is taken"));
        }
        let places = state.places_of(arguments)?;
        state.hand_out(&places);
        let submitted = state.submit_all()?;
        // Numbers of another trace may have been used since.
        state.builder.marks.clear();
        let first = state.running()?.ids.load(Ordering::Relaxed);
        let (kept, postponed) = (Vec::new(), Vec::new());
        state.trace = Some(Trace { thread: current().id(), first, kept, postponed, broken: None, disturbed: false });
        state.set_gate();
        drop(state);
        submitted.drive().inspect_err(|_| {
            let mut state = self.state();
            state.trace = None;
            state.set_gate();
        })
    }

    /// Ends the trace, and hands over what was recorded. A recording for `results`, `None` if another thread has recorded
    /// meanwhile, or the reason why there can be none; the operations are carried out all the same.
    pub fn end_trace(self: &Arc<Recorder>, arguments: &[ArrayId], results: &[ArrayId]) -> Result<Option<Recording>> {
        let mut state = self.state();
        let Some(trace) = state.trace.take() else {
            return Err(Error::new(status::ARGUMENT, "nothing is traced"));
        };
        let recording = match trace.broken {
            Some(reason) => Err(Error::new(status::UNSUPPORTED, reason)),
            None if trace.disturbed => Ok(None),
            None => Recording::new(self, &mut state, &trace, arguments, results).map(Some),
        };
        self.leave_trace(state, &trace, matches!(recording, Ok(Some(_))))?;
        recording
    }

    /// Ends the trace of a function that failed. The operations that it recorded still run.
    pub fn abandon_trace(&self) -> Result<()> {
        let mut state = self.state();
        match state.trace.take() {
            Some(trace) => self.leave_trace(state, &trace, false),
            None => Ok(()),
        }
    }

    fn leave_trace(&self, mut state: crate::sync::MutexGuard<'_, State>, trace: &Trace, keep: bool) -> Result<()> {
        let submitted = state.submit();
        state.set_gate();
        drop(state);
        let kept = if keep { &[][..] } else { &trace.kept };
        trace.postponed.iter().chain(kept).for_each(|&array| self.free_later(array));
        submitted?.drive()
    }

    /// Overwrites an array from user memory by an operation, in a trace or on a tape: the data goes to an array of its own, which a
    /// recording keeps.
    ///
    /// # Safety
    /// As [`Recorder::write`].
    pub(crate) unsafe fn write_traced(&self, array: ArrayId, data: *const u8, stride: Option<&[i64]>) -> Result<()> {
        let info = self.info(array)?;
        let constant = self.empty(info.dtype, info.view.shape())?;
        let held = self.hold(constant, access::WRITE)?;
        let stride = stride.map_or_else(|| Cow::Owned(dense_stride(&held.base, &held.view)), Cow::Borrowed);
        let (base, view, stride, source) = (held.base, held.view, &*stride, SendPtr(data.cast_mut()));
        let written = self.with_data(&held, &mut Patience::endless(), |data| {
            // SAFETY: `data` is valid for reading all elements until this returns, as `# Safety` asks; the base is new,
            // so its memory is elsewhere, and has the shape of the array.
            unsafe { data.write(&base, &view, Side { data: source.get(), stride }) }
        });
        self.let_go(held);
        let copied =
            written.and_then(|()| self.operate(Opcode::Copy, 0, array, &[Input::Array(constant)], Location::UNKNOWN));
        let mut state = self.state();
        if state.trace.is_some() {
            state.keep(constant);
        } else {
            state.free_now(constant);
        }
        copied
    }
}

impl Recorder {
    /// Does data that the calling thread gives reach arrays by operations?
    pub(crate) fn writes_by_operations(&self) -> bool {
        let state = self.state();
        state.traces_here() || !state.tapes.is_empty()
    }
}

impl State {
    /// Does the calling thread trace a function?
    #[inline]
    pub(crate) fn traces_here(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.thread == current().id())
    }

    /// Refuses what a traced function must not do.
    #[inline]
    pub(crate) fn refuse_in_trace(&self, what: &str) -> Result<()> {
        if self.trace.is_some() && self.traces_here() { Err(refused(what)) } else { Ok(()) }
    }

    /// Notes that the batch under construction ends in the midst of a trace.
    #[inline]
    pub(crate) fn note_cut(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.disturbed = true;
        }
    }

    /// Notes that the calling thread adds to the batch under construction.
    #[inline]
    pub(crate) fn note_use(&mut self) {
        if self.trace.is_some() && !self.traces_here() {
            self.note_cut();
        }
    }

    /// Is what is traced too long to go on?
    pub(crate) fn outgrows_trace(&mut self) -> bool {
        let length = self.builder.batch.instrs.len();
        let Some(trace) = self.trace.as_mut().filter(|_| length >= LONGEST) else { return false };
        trace.broken = Some("the function records more operations than a trace may have: 262,144");
        true
    }

    /// Frees an array that was there before the trace, or that is another thread's, only after it, so that the batch has nothing
    /// of it.
    pub(crate) fn postpones(&mut self, array: ArrayId, handle: u32) -> bool {
        let Some(trace) = &mut self.trace else { return false };
        let entry = self.bases.at(self.handles.at(handle).base);
        let is_elsewhere = entry.base.id < trace.first || entry.known && entry.epoch != self.builder.epoch;
        if is_elsewhere {
            trace.postponed.push(array);
        }
        is_elsewhere
    }

    /// Keeps data that was given during a trace for its recording.
    pub(crate) fn keep(&mut self, array: ArrayId) {
        if let Some(trace) = &mut self.trace {
            trace.kept.push(array);
        }
    }

    /// May an access to a base go on, in a trace? Only of one that is new gets data.
    pub(crate) fn check_access_in_trace(&self, base: u32, reads: bool) -> Result<()> {
        let Some(trace) = self.trace.as_ref().filter(|_| self.traces_here()) else { return Ok(()) };
        let entry = self.bases.at(base);
        let is_new = entry.base.id >= trace.first && !entry.known && entry.epoch != self.builder.epoch;
        if is_new && !reads {
            Ok(())
        } else {
            Err(refused("reads or changes elements of an array in the program's memory"))
        }
    }
}

fn refused(what: &str) -> Error {
    let text = format!("a traced function {what}, which its later calls would not do");
    Error::new(status::UNSUPPORTED, text)
}
