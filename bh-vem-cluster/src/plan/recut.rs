//! Cuts arrays anew when shares have changed: what ranks get moves to them.

use crate::plan::array::{Array, Piece};
use crate::plan::boxes::Span;
use crate::plan::held::{Has, Runs};
use crate::plan::layout::{Cuts, row_of};
use crate::plan::planner::Planner;
use bh_bytecode::{Base, Opcode};
use bh_core::error::Result;
use std::collections::HashMap;

impl Planner {
    /// The arrays that ranks share, in an order that does not depend on a hash table.
    pub fn shared(&self) -> Vec<Base> {
        let shared = self.arrays.values().filter(|array| !array.small && !array.fixed && array.lost.is_none());
        let mut bases: Vec<Base> = shared.map(|array| array.base).collect();
        bases.sort_by_key(|base| base.id);
        bases
    }

    /// Arrays of no more bytes are not split.
    pub fn small_bytes(&self) -> u64 {
        self.settings.small_bytes
    }

    /// Brings all arrays to rank 0's memory; these, and whether they must stay there. None if one is lost.
    pub fn bring_all_home(&mut self) -> Option<Vec<(Base, bool)>> {
        if self.arrays.values().any(|array| array.lost.is_some()) {
            return None;
        }
        let mut all: Vec<(Base, bool)> = self.arrays.values().map(|array| (array.base, array.fixed)).collect();
        all.sort_by_key(|(base, _)| base.id);
        for (base, _) in &all {
            self.bring_home(base).ok()?;
            let stage = self.after_use(base.id);
            let Some(array) = self.arrays.get_mut(&base.id) else { continue };
            let copies = std::mem::take(&mut array.copies);
            self.drop_copies(stage, copies.into_iter().map(|((rank, _), copy)| (rank, copy.base)).collect());
        }
        Some(all)
    }

    /// Forgets an array that rank 0 has whole, and nobody else; rank 0's base.
    pub fn leave(&mut self, base: &Base) -> Base {
        let own = self.piece(base.id, 0).base;
        if let Some(array) = self.arrays.remove(&base.id) {
            #[cfg(debug_assertions)]
            self.stages.versions.forget(&array);
            drop(array);
        }
        self.copied.remove(&base.id);
        own
    }

    /// Takes an array that rank 0 has whole, in memory that must stay or need not.
    pub fn take_over(&mut self, base: &Base, own: &Base, fixed: bool) {
        let (row, small) = (row_of(base, None), !fixed && base.bytes() <= self.settings.small_bytes);
        let cuts = match small || fixed {
            true => Cuts::first(base.len, self.ranks()),
            false => Cuts::rows(base.len, row, &self.settings.weights),
        };
        let mut array = Array::new(base, row, cuts, small, false);
        (array.everywhere, array.fixed) = (false, fixed);
        array.pieces.insert(0, *own);
        #[cfg(debug_assertions)]
        self.stages.versions.trust(&array);
        self.arrays.insert(base.id, array);
    }

    /// Lets an array be cut by the present weights; nothing is planned beside.
    pub fn recut(&mut self, id: u64) -> Result<()> {
        self.leave_mesh(id)?;
        let array = &self.arrays[&id];
        let cuts = self.rows_by_weights(array);
        if array.cuts == cuts {
            return Ok(());
        }
        let at = self.fetchable(id);
        let mut grown: HashMap<usize, Piece> = HashMap::new();
        for rank in 0..self.ranks() {
            let own = cuts.own(rank);
            if !own.is_empty() && !self.arrays[&id].valid(rank).contains(own) {
                self.widen(id, rank, own, at, &mut grown)?;
            }
        }
        let (stage, ranks) = (self.after_use(id), self.ranks());
        let Some(array) = self.arrays.get_mut(&id) else { return Ok(()) };
        let had: Vec<(Span, Span)> = (0..ranks).map(|rank| (array.valid(rank), array.window(rank))).collect();
        (array.cuts, array.extension, array.passing) = (cuts, (0, 0), false);
        // What has come to a rank is its own from now on.
        array.wrote = array.wrote.max(array.arrived);
        (array.held, array.rooms) = (Runs::new(ranks, Has::Around(0, 0)), Runs::new(ranks, Has::Around(0, 0)));
        let mut left = Vec::new();
        for (rank, (valid, window)) in had.into_iter().enumerate() {
            if array.cuts.own(rank).is_empty() {
                left.extend(array.pieces.remove(&rank).map(|base| (rank, base)));
                continue;
            }
            let (valid, window) = (array.around(rank, valid), array.around(rank, window));
            array.held.set(rank..rank + 1, valid);
            array.rooms.set(rank..rank + 1, window);
        }
        let copies = std::mem::take(&mut array.copies);
        left.extend(copies.into_iter().map(|((rank, _), copy)| (rank, copy.base)));
        left.sort_by_key(|(rank, base)| (*rank, base.id));
        left.into_iter().for_each(|(rank, base)| self.stages.push_system(stage, rank, Opcode::Discard, &base));
        Ok(())
    }
}
