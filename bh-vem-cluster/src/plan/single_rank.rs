//! Plans operations that run on one rank, which fetches its inputs and sends its outputs to the owners. Siblings divide
//! such operations among them, so that several run at once.

use crate::plan::boxes::{IndexBox, span_of};
use crate::plan::layout::covers;
use crate::plan::planner::Planner;
use crate::plan::stage::{Local, Place};
use bh_bytecode::{BatchRef, Instr, Opcode, View};
use bh_core::error::Result;
use std::collections::HashMap;

/// The location of an operand on the rank.
enum Location {
    /// The rank's shard.
    Shard,
    /// A temporary, whose elements are sent to the owners.
    Temporary(Box<Place>),
}

impl Planner {
    /// Plans an instruction on one rank.
    pub(crate) fn run_on_one_rank(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<()> {
        let instr = &batch.instrs[index as usize];
        self.know_inputs(batch, instr);
        for output in instr.outputs().iter().filter_map(|operand| operand.as_view()) {
            if let Some(base) = batch.base_of(output) {
                self.array(base, Some(&batch.view(output)));
            }
        }
        let rank = self.choose_rank(batch, instr);
        let (mut stage, mut locations) = (0, Vec::new());
        for (place, operand) in instr.operands().iter().enumerate() {
            let Some((number, base)) = operand.as_view().and_then(|view| Some((view, batch.base_of(view)?))) else {
                locations.push(Location::Shard);
                continue;
            };
            let view = batch.view(number);
            if place < usize::from(instr.outputs) && self.uses_temporary(batch, instr, place, rank) {
                let like = self.arrays[&base.id].base;
                locations.push(Location::Temporary(Box::new(self.scratch(rank, &like, view.shape())?)));
                continue;
            }
            locations.push(Location::Shard);
            self.fetch_to(rank, base.id, &view, place < usize::from(instr.outputs))?;
        }
        // Located after all fetches, because a window that grows is another base.
        let mut operands = Vec::with_capacity(locations.len());
        for (place, (operand, locations)) in instr.operands().iter().zip(&locations).enumerate() {
            operands.push(match (operand.as_view().map(|view| (view, batch.base_of(view))), locations) {
                (None, _) => Local::Same(*operand),
                (Some((number, None)), _) => Local::Index(batch.view(number)),
                (_, Location::Temporary(place)) => Local::Data(**place),
                (Some((number, Some(base))), Location::Shard) => {
                    let (view, whole) = (batch.view(number), IndexBox::whole(batch.shape(number)));
                    let (found, ready) = match place < usize::from(instr.outputs) {
                        true => {
                            let shard = self.shard(base.id, rank);
                            let view = whole.of(&view, shard.window.low)?;
                            (Place { base: shard.base, view }, self.after_use(base.id))
                        }
                        false => self.locate(base.id, &view, (rank, whole))?,
                    };
                    stage = stage.max(ready);
                    Local::Data(found)
                }
            });
        }
        self.stages.push(stage, rank, instr, index, &operands);
        self.note_single_rank(batch, index, stage);
        for (output, locations) in instr.outputs().iter().zip(locations) {
            let Some((number, base)) = output.as_view().and_then(|view| Some((view, batch.base_of(view)?))) else {
                continue;
            };
            self.send_to_owners(base.id, &batch.view(number), (rank, locations), stage)?;
        }
        Ok(())
    }

    /// Fetches a view to a rank that needs all of it. `written`: the rank also writes it.
    fn fetch_to(&mut self, rank: usize, id: u64, view: &View, written: bool) -> Result<()> {
        let (span, whole) = (span_of(view), [(rank, IndexBox::whole(view.shape()))]);
        if span.is_empty()
            || self.arrays[&id].valid(rank).contains(span)
            || !written && self.is_available(id, view, &whole)?
        {
            return Ok(());
        }
        let at = self.fetchable(id);
        // A packed copy lets other ranks fetch theirs in the same stage.
        let copies = self.spreads_single_rank_work && !written && !self.arrays[&id].small;
        if copies && self.pack(id, rank, view, at, &HashMap::new())? {
            return Ok(());
        }
        // Fetching the whole span is correct, and a single contiguous transfer.
        self.widen(id, rank, span, at, &mut HashMap::new())
    }

    /// Records an instruction that runs on one rank in a stage, for the warning if its arrays are distributed.
    fn note_single_rank(&mut self, batch: &BatchRef<'_>, index: u32, stage: usize) {
        let instr = &batch.instrs[index as usize];
        let views = instr.operands().iter().filter_map(|operand| operand.as_view());
        let ids: Vec<u64> = views.filter_map(|view| Some(batch.base_of(view)?.id)).collect();
        if ids.iter().any(|id| !self.arrays[id].cuts.is_first()) {
            self.on_one_rank.push(index);
        }
        ids.into_iter().for_each(|id| self.reads(id, stage));
    }

    /// The rank that runs an instruction. Among siblings: the one that would finish first, by elements and weights.
    fn choose_rank(&mut self, batch: &BatchRef<'_>, instr: &Instr) -> usize {
        let views = || instr.operands().iter().filter_map(|operand| operand.as_view());
        let fixed = |view: u32| batch.base_of(view).is_some_and(|base| self.arrays[&base.id].fixed);
        let outputs = usize::from(instr.outputs);
        let movable = || (0..outputs).all(|output| self.uses_temporary(batch, instr, output, 1)) && !views().any(fixed);
        if !self.spreads_single_rank_work || !movable() {
            return 0;
        }
        let elements: f64 = views().map(|view| batch.views[view as usize].len as f64).sum();
        let weights = self.settings.weights.as_slice();
        self.single_rank_load.resize(self.ranks(), 0.0);
        let ranks =
            (0..self.single_rank_load.len()).filter(|&rank| weights.get(rank).is_none_or(|weight| *weight > 0.0));
        let until = |&rank: &usize| (self.single_rank_load[rank] + elements) / weights.get(rank).unwrap_or(&1.0);
        let rank = ranks.min_by(|one, other| until(one).total_cmp(&until(other))).unwrap_or(0);
        self.single_rank_load[rank] += elements;
        rank
    }

    /// Is an output a temporary on the rank? It must be a contiguous view that a method overwrites, in an array that
    /// the rank does not own as a whole.
    fn uses_temporary(&self, batch: &BatchRef<'_>, instr: &Instr, output: usize, rank: usize) -> bool {
        let base_of = |operand: usize| Some(batch.views[instr.operands()[operand].as_view()? as usize].base);
        let (Some(number), Some(own)) = (instr.operands()[output].as_view(), base_of(output)) else { return false };
        let Some(array) = batch.base_of(number).and_then(|base| self.arrays.get(&base.id)) else { return false };
        let others = (0..instr.operands().len()).filter(|&other| other != output);
        let run = batch.view(number).is_contiguous() && !batch.view(number).is_empty();
        run && instr.opcode.is_extension()
            && !array.fixed
            && others.into_iter().all(|other| base_of(other) != Some(own))
            && (rank != 0 || !array.cuts.is_first() && (self.spreads_single_rank_work || covers(batch, number)))
    }

    /// Sends a view that a rank wrote in a stage to its owners.
    fn send_to_owners(
        &mut self,
        id: u64,
        view: &View,
        (from, locations): (usize, Location),
        stage: usize,
    ) -> Result<()> {
        let span = span_of(view);
        let (source, window, temporary) = match locations {
            Location::Shard => {
                let shard = self.shard(id, from);
                (shard.base, shard.window, false)
            }
            Location::Temporary(place) => (place.base, span, true),
        };
        let used = if temporary { self.after_use(id).max(stage) } else { stage };
        let mut last = stage;
        for rank in self.arrays[&id].reaching(span) {
            let part = self.arrays[&id].reach(rank).meet(span);
            if part.is_empty() || (rank == from && !temporary) {
                continue;
            }
            last = used + 1;
            let shard = self.shard(id, rank);
            let (source, target) = (Place::run(source, part, window)?, Place::run(shard.base, part, shard.window)?);
            self.move_data(id, from, rank, source, target, last);
        }
        if temporary {
            self.stages.push_system(last, from, Opcode::Discard, &source);
        }
        self.finish(id, view, last, false);
        Ok(())
    }
}
