//! Brings a small array to many ranks by a tree, so that none sends more messages than the logarithm of their number.

use crate::plan::boxes::span_of;
use crate::plan::held::Has;
use crate::plan::near::{Needs, Ranks};
use crate::plan::planner::Planner;
use crate::plan::stage::{Place, Transfer};
use bh_bytecode::View;
use bh_core::error::Result;

/// In each step, this many times as many ranks have the array.
const FAN_OUT: usize = 4;

impl Planner {
    /// Brings a small array to the ranks that need it and have not got it, from stage `at` on. Rank 0 has it.
    pub(crate) fn hand_round(&mut self, id: u64, view: &View, needs: &Needs, at: usize) -> Result<()> {
        let mut ranks = Ranks::default();
        ranks.push(0..1);
        let mut last = 0;
        for (rank, part) in &needs.shares {
            let there = self.arrays[&id].valid(*rank).contains(span_of(&part.of(view, 0)?));
            let stood_for = needs.alike.contains(rank) && *rank != needs.alike.start;
            if there || stood_for || *rank == last {
                continue;
            }
            last = *rank;
            ranks.push(if needs.alike.contains(rank) { needs.alike.clone() } else { *rank..rank + 1 });
        }
        if ranks.len() == 1 {
            return Ok(());
        }
        let (mut stage, mut have) = (at, 1);
        while have < ranks.len() {
            self.hand_on(id, &ranks, have, stage)?;
            have *= FAN_OUT;
            stage += 1;
        }
        let now = self.now(stage.saturating_sub(1).max(at));
        if let Some(array) = self.arrays.get_mut(&id) {
            let all = array.all();
            for ranks in ranks.ranges() {
                array.held.set(ranks.start.max(1)..ranks.end, Has::Only(all));
            }
            array.arrived = array.arrived.max(now);
            array.everywhere = array.all_have_all();
        }
        self.reads(id, now.stage);
        Ok(())
    }

    /// The first `have` ranks have the array; each sends it to the next that have not.
    fn hand_on(&mut self, id: u64, ranks: &Ranks, have: usize, stage: usize) -> Result<()> {
        let behind = (FAN_OUT * have).min(ranks.len());
        let all = self.arrays[&id].all();
        for place in ranks.concerned(&self.stages, have, behind) {
            let (from, to) = (ranks.at(place % have), ranks.at(place));
            let (source, target) = (self.piece(id, from), self.piece(id, to));
            let source = Place::run(source.base, all, source.window)?;
            let target = Place::run(target.base, all, target.window)?;
            self.stages.transfer(stage, Transfer { from, to, source, target });
        }
        Ok(())
    }
}
