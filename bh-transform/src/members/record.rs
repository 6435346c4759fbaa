//! A function of one member at a recorder: what it records is recorded again for all members.

use super::replay::Replay;
use super::tape::MemberTape;
use crate::members::replay::with_axis;
use crate::record::{Emitter, Taping, Window};
use crate::shared::Shared;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{Array, ArrayId, Recorder};
use std::collections::HashMap;
use std::sync::Arc;

/// A function that is being recorded for one member.
pub struct Members {
    recorder: Arc<Recorder>,
    tape: Shared<MemberTape>,
    number: u64,
    /// The bases of the arguments of one member.
    arguments: Vec<u64>,
    ended: bool,
}

/// The results of a function for all members.
pub struct Results {
    /// Of each result: an array of all members, with them as the first axis; `None` if they have it in common.
    pub arrays: Vec<Option<Array>>,
    /// Of each array that stood for one member's: has the function written it?
    pub changed: Vec<bool>,
}

impl Members {
    /// Begins to record. Each of the arguments stands for one member's; it has to be the whole of a base of its own.
    pub fn begin(recorder: &Arc<Recorder>, arguments: &[ArrayId]) -> Result<Members> {
        let bases = arguments.iter().map(|&array| recorder.info(array).map(|info| info.base));
        let bases = bases.collect::<Result<Vec<u64>>>()?;
        let tape = Shared::new(MemberTape::new(bases.iter().copied()));
        let number = recorder.begin_tape(tape.watcher(), arguments)?;
        Ok(Members { recorder: recorder.clone(), tape, number, arguments: bases, ended: false })
    }

    /// Lets a new array count as constant for derivatives.
    pub fn stop(&self, array: ArrayId) -> Result<()> {
        let base = self.recorder.info(array)?.base;
        self.tape.lock().stopped.insert(base);
        Ok(())
    }

    /// Lets a new array, the whole of a base of its own, stand for one member's, as an argument does.
    pub fn vary(&mut self, array: ArrayId) -> Result<()> {
        let base = self.recorder.info(array)?.base;
        // Operations recorded before belong to no member.
        self.recorder.flush()?;
        self.tape.lock().start(base);
        self.arguments.push(base);
        Ok(())
    }

    /// Ends the function, and records it for all members. `given`: for each argument and each array of
    /// [`Members::vary`] a flat base of all members in C order, which
    /// gets what the function leaves in the argument. `outer`: stretches around it that are differentiated.
    pub fn end(mut self, count: i64, given: &[ArrayId], results: &[ArrayId], outer: &[&Taping]) -> Result<Results> {
        self.ended = true;
        self.recorder.end_tape(self.number)?;
        let tape = self.tape.take_all();
        let own = |id: ArrayId| Arc::new(Array::new(self.recorder.clone(), id));
        let held: HashMap<u64, Arc<Array>> =
            tape.held.iter().filter_map(|(&base, &array)| Some((base, own(array?)))).collect();
        let saved: HashMap<(u64, u32), Arc<Array>> =
            tape.saved.iter().map(|(&key, &array)| (key, own(array))).collect();
        tape.check()?;
        if given.len() != self.arguments.len() {
            let text = format!("{} arrays of all members given for {} arguments", given.len(), self.arguments.len());
            return Err(Error::new(status::ARGUMENT, text));
        }
        let mut all = HashMap::new();
        for (&base, &array) in self.arguments.iter().zip(given) {
            all.insert(base, own(self.recorder.duplicate(array)?));
        }
        let source = |base: u64, number: u32| saved.get(&(base, number)).or_else(|| held.get(&base)).cloned();
        let stop = |array: &Arc<Array>| outer.iter().try_for_each(|taping| taping.stop(array.id()));
        let mut emit = Emitter::new(&self.recorder);
        let mut replay = Replay::new(&mut emit, &tape, count, all, &source, &stop);
        replay.run()?;
        let arrays = results.iter().map(|&result| self.result(&replay, result, count));
        let arrays = arrays.collect::<Result<Vec<Option<Array>>>>()?;
        Ok(Results { arrays, changed: self.arguments.iter().map(|base| tape.has_written(*base)).collect() })
    }

    fn result(&self, replay: &Replay<'_, Emitter>, result: ArrayId, count: i64) -> Result<Option<Array>> {
        let window = Window::of(&self.recorder, result)?;
        let Some(all) = replay.find(window.base()) else { return Ok(None) };
        let view = with_axis(window.view(), count, window.base_len())?;
        let id = self.recorder.window(all.id(), &view)?;
        Ok(Some(Array::new(self.recorder.clone(), id)))
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        if !self.ended {
            // A function that failed: its arrays go with the tape.
            let _ = self.recorder.end_tape(self.number);
            let tape = self.tape.take_all();
            tape.arrays().for_each(|array| self.recorder.free_later(array));
        }
    }
}
