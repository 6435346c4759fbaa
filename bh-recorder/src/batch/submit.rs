//! The batch under construction is handed over: when a limit is passed, and when something of it is asked for.

use super::limit;
use crate::Recipes;
use crate::executor::{Executor, Runner};
use crate::state::State;
use bh_bytecode::base_flags;
use bh_bytecode::batch::NO_SLOT;
use bh_core::error::Result;
use std::sync::Arc;

/// A batch that was handed over, or the last one that was if there was nothing to hand over.
#[must_use = "nobody may run the batch otherwise"]
pub(crate) struct Submitted {
    pub(crate) executor: Arc<Executor>,
    /// The epoch to wait for until everything is done.
    pub(crate) epoch: u64,
    pub(crate) runner: Option<Runner>,
}

impl Submitted {
    /// Sees to it that the batch is run. Waits, helping, while too many are under way; fails if that wait is ended.
    pub(crate) fn drive(&self) -> Result<()> {
        self.runner.map_or(Ok(()), |runner| self.executor.drive(runner, true))
    }

    /// As [`Submitted::drive`], but never waits for another batch.
    pub(crate) fn start(&self) {
        if let Some(runner) = self.runner {
            // Nothing is waited for.
            let _ = self.executor.drive(runner, false);
        }
    }
}

impl State {
    /// Hands the pending batch over, as something of it is asked for or it is large. Its other results may stay recipes.
    pub(crate) fn submit_part(&mut self) -> Result<Submitted> {
        self.make_all_chosen();
        self.bound_recipes();
        self.keep_recipes();
        self.submit()
    }

    /// Hands the pending batch over, as everything is asked for.
    pub(crate) fn submit_all(&mut self) -> Result<Submitted> {
        self.make_all_recipes();
        self.submit()
    }

    /// Hands pending operations, if there are any, to the executor. The returned batch goes on once the lock is open.
    pub(crate) fn submit(&mut self) -> Result<Submitted> {
        let executor = self.executor()?;
        let mut runner = self.end_wait(&executor)?;
        if !self.builder.is_empty() {
            let closed = self.close_batch();
            runner = Some(self.hand_over(&executor, closed)?);
        }
        Ok(Submitted { executor, epoch: self.builder.epoch - 1, runner })
    }

    /// Gives the bases that live on behind the closed batch their slots: first those of bases that it ends, so that each turn
    /// of a loop finds the same ones.
    pub(crate) fn give_slots(&mut self) {
        self.builder.freed_slots.drain(..).for_each(|slot| self.slots.free(slot));
        let batch = &mut self.builder.batch;
        for (at, slot) in batch.slots.iter_mut().enumerate() {
            if *slot == NO_SLOT && !batch.bases[at].has(base_flags::DIES) {
                *slot = self.slots.take();
                self.bases.at_mut(self.builder.places[at]).slot = *slot;
            }
        }
        batch.header.slot_count = self.slots.count();
    }

    /// Submits when a limit is passed, at a turn of the program's loop if one is found; and what has waited for a turn.
    #[inline]
    pub(crate) fn check_limits(&mut self) -> Option<Submitted> {
        if self.trace.is_some() && !self.outgrows_trace() {
            return None;
        }
        let waited = self.waiting.as_ref().is_some_and(|waiting| self.builder.turned() >= waiting.turn);
        let earlier = if waited { self.submit_waiting().ok() } else { None };
        if let Some(turn) = self.ends_at_turn() {
            return if self.wait_a_turn(turn) { earlier } else { self.submit_part().ok() };
        }
        self.check_size().or(earlier)
    }

    /// The turn of a loop that does little, if the batch is to end behind it, so that batches are alike and one plan serves them.
    #[inline]
    fn ends_at_turn(&mut self) -> Option<u64> {
        let instructions = self.builder.batch.instrs.len();
        let period = &self.builder.period;
        // A few operations that are alike are no loop.
        let repeated = period.repeated() as usize;
        if !limit::may_end_at_turn(instructions.min(repeated)) || self.waiting.is_some() || !period.at_boundary() {
            return None;
        }
        let running = self.running.as_ref()?;
        let turn = period.found()?;
        let here = running.immediate.is_some() && !running.device;
        let waits = here && running.options.recipes != Recipes::Off && !self.records_all();
        if !waits
            || turn >= running.options.max_instructions as u64
            || limit::gains_from_turns(instructions, self.builder.work_bytes)
        {
            return None;
        }
        if instructions < limit::GROWTH * self.builder.outgrown {
            return None;
        }
        let came = self.seen.count([self.builder.computes, instructions as u64]);
        if limit::is_outgrown(instructions, came) {
            self.builder.outgrown = instructions;
            return None;
        }
        Some(turn)
    }

    /// Submits when a limit is passed.
    fn check_size(&mut self) -> Option<Submitted> {
        let running = self.running.as_ref()?;
        let (instructions, bytes) = (self.builder.batch.instrs.len(), self.builder.held_bytes);
        let options = &running.options;
        let longest = self.tapes.limit(options.max_instructions);
        // Arrays that a batch frees have memory. Those that it makes have none yet, and in the midst of a statement most are
        // temporaries, which ending the batch would store.
        let full = match limit::is_short(instructions) {
            true => self.builder.freed_bytes >= running.step_bytes,
            false => bytes >= options.max_bytes,
        };
        if instructions < limit::shortest(longest) && !full {
            return None;
        }
        let repeats = self.builder.period.found().is_some_and(|period| period < longest as u64);
        let most = limit::limit(instructions, self.builder.work_bytes, repeats, longest);
        if instructions < most && !full {
            return None;
        }
        let over = instructions >= 2 * longest || bytes >= running.step_bytes.max(options.max_bytes.saturating_mul(2));
        let period = &self.builder.period;
        let found = period.found().filter(|_| repeats);
        let looping = match period.found() {
            Some(_) => repeats,
            // A batch that ends in the middle of a turn stores all that the rest of the turn needs.
            None => period.is_likely(),
        };
        let at_turn = looping && period.at_boundary();
        if !over && looping && !at_turn {
            return None;
        }
        if let Some(turn) = found
            && at_turn
            && !full
            && self.wait_a_turn(turn)
        {
            return None;
        }
        // Only a context without an executor refuses, and that was ruled out above.
        self.submit_part().ok()
    }
}
