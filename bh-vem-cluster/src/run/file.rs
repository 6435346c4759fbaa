//! Parallel file access: each rank reads or writes its own elements at their place in the file. A command names the
//! file; extension methods move the elements.

use crate::command::failure::Failure;
use crate::plan::boxes::{Span, span_of};
use crate::plan::planner::Planner;
use crate::plan::stage::Place;
use crate::run::file_region::{FileRegion, READ};
use crate::run::machine::Machine;
use bh_bytecode::{Base, BatchRef, Instr};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

/// Elements of one rank, and their offset in bytes from the first.
struct Part {
    rank: usize,
    place: Place,
    byte: u64,
}

impl Machine {
    /// Moves elements between an array and the file of the last command, after all earlier work. Returns the failure of
    /// the lowest rank.
    pub fn transfer(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<Option<Failure>> {
        let mut failed = self.run(batch);
        let instr = &batch.instrs[index as usize];
        let reads = batch.extension_name(instr.opcode) == Some(READ);
        let parts = self.planner.plan_transfer(batch, instr, reads)?;
        let region = self.region.clone().ok_or_else(|| Error::new(status::ARGUMENT, "no file was named"));
        if failed.is_none() {
            let moved = region.and_then(|region| {
                parts.iter().try_for_each(|part| match self.port.hosts(part.rank) {
                    true => self.transfer_part(&region, part, reads),
                    false => Ok(()),
                })
            });
            let failure = |error: Error| Failure::new(Some(index), error.at_instr(batch, index).unplaced());
            failed = moved.err().map(failure);
        }
        self.agree(failed)
    }

    fn transfer_part(&mut self, region: &FileRegion, part: &Part, reads: bool) -> Result<()> {
        let place = &part.place;
        let at = region.offset + part.byte;
        let (state, child) = self.rank(part.rank);
        if reads {
            let mut bytes = vec![0; place.view.len() as usize * place.base.dtype().size()];
            let file = File::open(&region.path).and_then(|file| file.read_exact_at(&mut bytes, at));
            file.map_err(|error| region.error(&error))?;
            return state.unpack(child, place, &bytes).map(drop);
        }
        let mut bytes = Vec::new();
        state.pack(child, place, &mut bytes)?;
        let file = OpenOptions::new().write(true).open(&region.path);
        let written = file.and_then(|file| file.write_all_at(&bytes, at).and_then(|()| file.sync_data()));
        written.map_err(|error| region.error(&error))
    }
}

impl Planner {
    /// The parts that ranks read or write. All ranks get the same error.
    fn plan_transfer(&mut self, batch: &BatchRef<'_>, instr: &Instr, reads: bool) -> Result<Vec<Part>> {
        self.check_inputs(batch, instr)?;
        let operand = if reads { instr.outputs().first() } else { instr.inputs().first() };
        let unfit = || Error::new(status::ARGUMENT, "elements of a file are those of an array in one piece");
        let number = operand.and_then(|operand| operand.as_view()).ok_or_else(unfit)?;
        let (base, view) = (*batch.base_of(number).ok_or_else(unfit)?, batch.view(number));
        if !view.is_contiguous() {
            return Err(unfit());
        }
        let span = span_of(&view);
        self.array(&base, Some(&view));
        if reads {
            self.renew(&base, span)?;
        }
        let parts = self.parts_of(&base, span, reads)?;
        if let Some(written) = instr.outputs().first().and_then(|operand| operand.as_view())
            && let Some(target) = batch.base_of(written)
        {
            let view = batch.view(written);
            self.array(target, Some(&view));
            self.note_external_write(target.id, &view);
        }
        Ok(parts)
    }

    /// The elements of a span by rank: those that it owns, or for a read from the file, all that it computes.
    fn parts_of(&mut self, base: &Base, span: Span, reads: bool) -> Result<Vec<Part>> {
        let size = base.dtype().size() as i64;
        let mut parts = Vec::new();
        for rank in self.arrays[&base.id].reaching(span) {
            let array = &self.arrays[&base.id];
            let part = if reads { array.reach(rank) } else { array.cuts.own(rank) }.meet(span);
            if !part.is_empty() {
                let shard = self.shard(base.id, rank);
                let place = Place::run(shard.base, part, shard.window)?;
                parts.push(Part { rank, place, byte: ((part.low - span.low) * size) as u64 });
            }
        }
        Ok(parts)
    }
}
