//! Broadcasts a small array to many ranks along a tree, so that no rank sends more messages than the logarithm of their
//! number.

use crate::plan::boxes::span_of;
use crate::plan::coverage::Coverage;
use crate::plan::planner::Planner;
use crate::plan::stage::{Place, Transfer};
use crate::plan::workers::{Needs, RankList};
use bh_bytecode::View;
use bh_core::error::Result;

/// The growth of the number of ranks that have the array, per step.
const FAN_OUT: usize = 4;

impl Planner {
    /// Broadcasts a small array from rank 0 to the ranks that need it and lack it, from stage `at` on.
    pub(crate) fn broadcast_small(&mut self, id: u64, view: &View, needs: &Needs, at: usize) -> Result<()> {
        let mut ranks = RankList::default();
        ranks.push(0..1);
        let mut last = 0;
        for (rank, part) in &needs.shares {
            let there = self.arrays[&id].valid(*rank).contains(span_of(&part.of(view, 0)?));
            let stood_for = needs.uniform.contains(rank) && *rank != needs.uniform.start;
            if there || stood_for || *rank == last {
                continue;
            }
            last = *rank;
            ranks.push(if needs.uniform.contains(rank) { needs.uniform.clone() } else { *rank..rank + 1 });
        }
        if ranks.len() == 1 {
            return Ok(());
        }
        let (mut stage, mut have) = (at, 1);
        while have < ranks.len() {
            self.broadcast_step(id, &ranks, have, stage)?;
            have *= FAN_OUT;
            stage += 1;
        }
        let now = self.now(stage.saturating_sub(1).max(at));
        if let Some(array) = self.arrays.get_mut(&id) {
            let all = array.all();
            for ranks in ranks.ranges() {
                array.valid_runs.set(ranks.start.max(1)..ranks.end, Coverage::Exactly(all));
            }
            array.arrived = array.arrived.max(now);
            array.everywhere = array.all_have_all();
        }
        self.reads(id, now.stage);
        Ok(())
    }

    /// The first `have` ranks send the array to the following ones, up to FAN_OUT − 1 each.
    fn broadcast_step(&mut self, id: u64, ranks: &RankList, have: usize, stage: usize) -> Result<()> {
        let behind = (FAN_OUT * have).min(ranks.len());
        let all = self.arrays[&id].all();
        for place in ranks.concerned(&self.stages, have, behind) {
            let (from, to) = (ranks.at(place % have), ranks.at(place));
            let (source, target) = (self.shard(id, from), self.shard(id, to));
            let source = Place::run(source.base, all, source.window)?;
            let target = Place::run(target.base, all, target.window)?;
            self.stages.transfer(stage, Transfer { from, to, source, target });
        }
        Ok(())
    }
}
