//! Redistributes arrays after a change of shares.

use crate::plan::array::{Array, Shard};
use crate::plan::boxes::Span;
use crate::plan::coverage::{Coverage, CoverageRuns};
use crate::plan::layout::{Cuts, row_of};
use crate::plan::planner::Planner;
use bh_bytecode::{Base, Opcode};
use bh_core::error::Result;
use std::collections::HashMap;

impl Planner {
    /// The distributed arrays, ordered by id, so that the order does not depend on a hash table.
    pub fn shared(&self) -> Vec<Base> {
        let shared = self.arrays.values().filter(|array| !array.small && !array.fixed && array.lost.is_none());
        let mut bases: Vec<Base> = shared.map(|array| array.base).collect();
        bases.sort_by_key(|base| base.id);
        bases
    }

    /// Arrays up to this size are not split.
    pub fn small_bytes(&self) -> u64 {
        self.settings.small_bytes
    }

    /// Gathers all arrays into rank 0's memory; returns them with their former `fixed`. `None` if one is lost.
    pub fn gather_all_to_rank0(&mut self) -> Option<Vec<(Base, bool)>> {
        if self.arrays.values().any(|array| array.lost.is_some()) {
            return None;
        }
        let mut all: Vec<(Base, bool)> = self.arrays.values().map(|array| (array.base, array.fixed)).collect();
        all.sort_by_key(|(base, _)| base.id);
        for (base, _) in &all {
            self.gather_to_rank0(base).ok()?;
            let stage = self.after_use(base.id);
            let Some(array) = self.arrays.get_mut(&base.id) else { continue };
            let copies = std::mem::take(&mut array.copies);
            self.drop_copies(stage, copies.into_iter().map(|((rank, _), copy)| (rank, copy.base)).collect());
        }
        Some(all)
    }

    /// Forgets an array that only rank 0 has; returns rank 0's base.
    pub fn release(&mut self, base: &Base) -> Base {
        let own = self.shard(base.id, 0).base;
        if let Some(array) = self.arrays.remove(&base.id) {
            #[cfg(debug_assertions)]
            self.stages.versions.forget(&array);
            drop(array);
        }
        self.copied.remove(&base.id);
        own
    }

    /// Registers an array that only rank 0 has. `fixed`: its memory must not move.
    pub fn take_over(&mut self, base: &Base, own: &Base, fixed: bool) {
        let (row, small) = (row_of(base, None), !fixed && base.bytes() <= self.settings.small_bytes);
        let cuts = match small || fixed {
            true => Cuts::first(base.len, self.ranks()),
            false => Cuts::rows(base.len, row, &self.settings.weights),
        };
        let mut array = Array::new(base, row, cuts, small, false);
        (array.everywhere, array.fixed) = (false, fixed);
        array.shards.insert(0, *own);
        #[cfg(debug_assertions)]
        self.stages.versions.trust(&array);
        self.arrays.insert(base.id, array);
    }

    /// Redistributes an array in rows by the current weights. No other work may be planned.
    pub fn redistribute(&mut self, id: u64) -> Result<()> {
        self.grid_to_rows(id)?;
        let array = &self.arrays[&id];
        let cuts = self.rows_by_weights(array);
        if array.cuts == cuts {
            return Ok(());
        }
        let at = self.fetchable(id);
        let mut grown: HashMap<usize, Shard> = HashMap::new();
        for rank in 0..self.ranks() {
            let own = cuts.own(rank);
            if !own.is_empty() && !self.arrays[&id].valid(rank).contains(own) {
                self.widen(id, rank, own, at, &mut grown)?;
            }
        }
        let (stage, ranks) = (self.after_use(id), self.ranks());
        let Some(array) = self.arrays.get_mut(&id) else { return Ok(()) };
        let had: Vec<(Span, Span)> = (0..ranks).map(|rank| (array.valid(rank), array.window(rank))).collect();
        (array.cuts, array.extension, array.temporary) = (cuts, (0, 0), false);
        // Elements that arrived on a rank are its own from now on.
        array.wrote = array.wrote.max(array.arrived);
        (array.valid_runs, array.window_runs) =
            (CoverageRuns::new(ranks, Coverage::Around(0, 0)), CoverageRuns::new(ranks, Coverage::Around(0, 0)));
        let mut left = Vec::new();
        for (rank, (valid, window)) in had.into_iter().enumerate() {
            if array.cuts.own(rank).is_empty() {
                left.extend(array.shards.remove(&rank).map(|base| (rank, base)));
                continue;
            }
            let (valid, window) = (array.around(rank, valid), array.around(rank, window));
            array.valid_runs.set(rank..rank + 1, valid);
            array.window_runs.set(rank..rank + 1, window);
        }
        let copies = std::mem::take(&mut array.copies);
        left.extend(copies.into_iter().map(|((rank, _), copy)| (rank, copy.base)));
        left.sort_by_key(|(rank, base)| (*rank, base.id));
        left.into_iter().for_each(|(rank, base)| self.stages.push_system(stage, rank, Opcode::Discard, &base));
        Ok(())
    }
}
