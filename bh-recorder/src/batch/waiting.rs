//! A batch that a limit has cut at a turn of the program's loop waits for what the next turn drops.
//!
//! A name of the program keeps an array until it is bound again, which the next turn does. A batch that was handed over before
//! would store what its last turn made, which is in no other turn's way, and have kernels that no other turn has. So it waits for
//! as many instructions as a turn has, or until somebody asks for something of it, and what is dropped meanwhile without
//! having been used again ends in it.

use super::submit::Submitted;
use crate::Recipes;
use crate::batch::builder::close;
use crate::executor::{Executor, Job, Runner};
use crate::state::State;
use crate::state::waiting::{Closed, Waiting};
use bh_bytecode::batch::NO_SLOT;
use bh_bytecode::planning::{Planning, Work};
use bh_bytecode::{Instr, Opcode, Operand, ViewRec, base_flags};
use bh_core::error::Result;
use std::sync::Arc;

impl State {
    /// Lets the batch under construction wait for a turn of `turn` instructions. False if nothing that it makes lives on.
    pub(crate) fn wait_a_turn(&mut self, turn: u64) -> bool {
        let lives = |base: &bh_bytecode::Base| base.has(base_flags::BORN) && !base.has(base_flags::DIES);
        let lazy = self.running.as_ref().is_some_and(|running| running.options.recipes != Recipes::Off);
        if !lazy || self.waiting.is_some() || self.records_all() || !self.builder.batch.bases.iter().any(lives) {
            return false;
        }
        let closed = self.close_batch();
        self.waiting = Some(Waiting { closed, turn });
        true
    }

    /// Ends a base in the waiting batch, if that was the last to use it.
    #[inline]
    pub(crate) fn discard_in_waiting(&mut self, handle: u32) -> bool {
        let Some(waiting) = &mut self.waiting else { return false };
        let entry = self.bases.at(self.handles.at(handle).base);
        if entry.epoch != waiting.closed.job.epoch {
            return false;
        }
        let (index, slot, bytes) = (entry.index, entry.slot, entry.base.bytes());
        let (view, batch) = (&self.handles.at(handle).view, &mut waiting.closed.job.batch);
        let (dims, at) = (batch.dims.len() as u32, batch.views.len() as u32);
        batch.dims.extend_from_slice(view.dims());
        let record =
            ViewRec { base: index, rank: view.rank() as u32, start: view.start, len: view.len, dims, reserved: 0 };
        batch.views.push(record);
        batch.instrs.push(Instr::new(Opcode::Discard, &[Operand::view(at)]));
        let base = &mut batch.bases[index as usize];
        base.flags |= base_flags::DIES;
        if slot != NO_SLOT {
            if base.has(base_flags::BORN) {
                batch.slots[index as usize] = NO_SLOT;
            }
            self.slots.free(slot);
        }
        self.builder.live_bytes = self.builder.live_bytes.saturating_sub_unsigned(bytes);
        // Turns of a loop look alike, wherever what they drop ends.
        self.builder.note_discard(self.handles.at(handle).view.hash, bytes);
        true
    }

    /// Takes the batch under construction, and begins the next one.
    pub(crate) fn close_batch(&mut self) -> Closed {
        self.note_cut();
        self.show_tapes();
        let (epoch, work, signed) = (self.builder.epoch, self.builder.work_bytes, self.builder.signed);
        let exported = std::mem::take(&mut self.builder.exported);
        let unmaps = std::mem::take(&mut self.builder.unmaps);
        let given = std::mem::take(&mut self.builder.given);
        self.give_slots();
        let batch = self.builder.take(std::mem::take(&mut self.spare));
        Closed { job: Job { batch, epoch, exported, unmaps, given, work }, signed }
    }

    /// Hands a batch to the executor. Says who is to run it.
    pub(crate) fn hand_over(&mut self, executor: &Executor, closed: Closed) -> Result<Runner> {
        let Closed { mut job, signed } = closed;
        self.little.hand_over(job.epoch, job.work);
        close(&mut job.batch);
        if !signed {
            job.batch.sign();
        }
        let seen = self.seen.count(job.batch.header.signature);
        let does = Work::of(&job.batch.as_ref());
        let header = &mut job.batch.header;
        (header.seen, header.level) = (seen, Planning::Auto.level(does, seen).code());
        // A small batch is run by the caller, as that is quicker than waking the executor.
        let small = job.work <= self.running()?.options.small_bytes;
        self.spare = executor.hand_over(job);
        Ok(if small { Runner::Here } else { Runner::Thread })
    }

    /// Hands the waiting batch over, if there is one.
    pub(crate) fn end_wait(&mut self, executor: &Executor) -> Result<Option<Runner>> {
        self.waiting.take().map(|waiting| self.hand_over(executor, waiting.closed)).transpose()
    }

    /// Hands the waiting batch over, and leaves the one under construction.
    pub(crate) fn submit_waiting(&mut self) -> Result<Submitted> {
        let (executor, epoch): (Arc<Executor>, u64) = (self.executor()?, self.first_pending());
        let runner = self.end_wait(&executor)?;
        Ok(Submitted { executor, epoch, runner })
    }
}
