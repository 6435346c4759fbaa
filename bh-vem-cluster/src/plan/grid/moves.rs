//! Moves arrays between rows and grids of ranks.

use crate::plan::array::Array;
use crate::plan::boxes::{IndexBox, Span, inside, span_of};
use crate::plan::coverage::{Coverage, CoverageRuns};
use crate::plan::grid::layout::{GridLayout, Region, meet};
use crate::plan::layout::Cuts;
use crate::plan::planner::Planner;
use crate::plan::stage::Place;
use bh_bytecode::{Base, BatchRef, Instr, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::BTreeMap;

/// The rows of an array in a span of its elements, which must be whole rows.
fn rows_of(shape: &[i64], span: Span, row: i64) -> Region {
    let all = shape.iter().map(|&extent| Span::new(0, extent));
    std::iter::once(Span::new(span.low / row, span.high / row)).chain(all.skip(1)).collect()
}

impl Planner {
    /// Moves the arrays of an instruction from grids to rows, if the instruction needs rows.
    pub fn operands_to_rows(&mut self, batch: &BatchRef<'_>, instr: &Instr) -> Result<()> {
        let views = instr.operands().iter().filter_map(|operand| operand.as_view());
        let ids: Vec<u64> = views.filter_map(|view| Some(batch.base_of(view)?.id)).collect();
        ids.into_iter().try_for_each(|id| self.grid_to_rows(id))
    }

    /// Moves an array from a grid to rows.
    pub fn grid_to_rows(&mut self, id: u64) -> Result<()> {
        let Some(layout) = self.arrays.get(&id).and_then(|array| array.layout.as_deref()).cloned() else {
            return Ok(());
        };
        let (like, at) = (self.arrays[&id].base, self.fetchable(id));
        let row: i64 = layout.shape[1..].iter().product();
        let cuts = Cuts::rows(like.len, row, &self.settings.weights);
        if self.arrays[&id].lost.is_some() {
            if let Some(array) = self.replace_shards(id, BTreeMap::new(), at) {
                (array.layout, array.cuts, array.row) = (None, cuts, row.max(1));
            }
            return Ok(());
        }
        let mine = |planner: &Planner| -> Vec<usize> {
            if planner.stages.complete() {
                return planner.stages.hosted().clone().collect();
            }
            let hosted = planner.stages.hosted().clone();
            let own = hosted.clone().filter_map(|rank| layout.own(rank));
            let mut all: Vec<usize> =
                own.flat_map(|own| cuts.range(Span::new(own[0].low * row, own[0].high * row))).collect();
            all.extend(hosted);
            all.sort_unstable();
            all.dedup();
            all
        };
        let mut shards = BTreeMap::new();
        for to in mine(self) {
            let own = cuts.own(to);
            if own.is_empty() {
                continue;
            }
            let base = self.local_base(to, &like, own.len(), row);
            if base.id != 0 {
                shards.insert(to, base);
            }
            let region = rows_of(&layout.shape, own, row);
            for from in layout.owners(&region) {
                let Some(both) = layout.own(from).and_then(|own| meet(&own, &region)) else { continue };
                if self.stages.hosts(from) || self.stages.hosts(to) {
                    let view = layout.view(&both)?;
                    let source = self.on_rank(id, from, &view)?;
                    let view = IndexBox::whole(view.shape()).of(&view, own.low)?;
                    self.move_data(id, from, to, source, Place { base, view }, at);
                }
            }
        }
        self.left_grids += 1;
        if let Some(array) = self.replace_shards(id, shards, at) {
            (array.layout, array.cuts, array.row, array.extension) = (None, cuts, row.max(1), (0, 0));
        }
        Ok(())
    }

    /// Moves an array from rows to a grid.
    pub(crate) fn rows_to_grid(&mut self, id: u64, mut layout: GridLayout) -> Result<()> {
        let (like, at) = (self.arrays[&id].base, self.fetchable(id));
        if let Some(capacity) = self.grid_capacities.get(&layout.shape) {
            layout.capacity.clone_from(capacity);
        }
        let row: i64 = layout.shape[1..].iter().product();
        let cuts = self.arrays[&id].cuts.clone();
        let mut receivers: Vec<usize> = self.stages.hosted().clone().collect();
        for rank in self.stages.hosted().clone().filter(|_| !self.stages.complete()) {
            let own = cuts.own(rank);
            let rows = Span::new(own.low.div_euclid(row), (own.high + row - 1).div_euclid(row));
            receivers.extend(layout.owners(&rows_of(&layout.shape, Span::new(rows.low * row, rows.high * row), row)));
        }
        receivers.sort_unstable();
        receivers.dedup();
        let mut shards = BTreeMap::new();
        for to in receivers {
            let (Some(own), Some(window)) = (layout.own(to), layout.window(to)) else { continue };
            let base = self.base_of_region(to, &like, &window);
            if base.id != 0 {
                shards.insert(to, base);
            }
            let view = layout.view(&own)?;
            for (from, part) in self.rows_by_owner(&cuts, &view, to)? {
                let shard = self.shard(id, from);
                let source = Place { base: shard.base, view: part.of(&view, shard.window.low)? };
                let target = Place { base, view: layout.local(&window, &part.of(&view, 0)?)? };
                self.move_data(id, from, to, source, target, at);
            }
        }
        if let Some(array) = self.replace_shards(id, shards, at) {
            array.put_on(layout);
        }
        Ok(())
    }

    /// The boxes of a view by owner, limited to transfers that involve this process.
    fn rows_by_owner(&self, cuts: &Cuts, view: &View, to: usize) -> Result<Vec<(usize, IndexBox)>> {
        let mut parts = Vec::new();
        for rank in cuts.owners(span_of(view)) {
            if self.stages.hosts(rank) || self.stages.hosts(to) {
                let boxes = inside(view, cuts.own(rank));
                let boxes = boxes.ok_or_else(|| Error::new(status::EXECUTION, "rows of a grid are too many boxes"))?;
                parts.extend(boxes.into_iter().map(|part| (rank, part)));
            }
        }
        Ok(parts)
    }

    /// Replaces an array's shards by those that its elements have moved to in a stage.
    fn replace_shards(&mut self, id: u64, shards: BTreeMap<usize, Base>, at: usize) -> Option<&mut Array> {
        self.reads(id, at);
        let (stage, now) = (self.after_use(id).max(at), self.now(at));
        let array = self.arrays.get_mut(&id)?;
        let ranks = array.cuts.ranks();
        let old = std::mem::replace(&mut array.shards, shards);
        array.wrote = array.wrote.max(array.arrived).max(now);
        (array.valid_runs, array.window_runs) =
            (CoverageRuns::new(ranks, Coverage::Around(0, 0)), CoverageRuns::new(ranks, Coverage::Around(0, 0)));
        let copies = std::mem::take(&mut array.copies);
        let mut unused: Vec<(usize, Base)> = old.into_iter().collect();
        unused.extend(copies.into_iter().map(|((rank, _), copy)| (rank, copy.base)));
        unused.sort_by_key(|(rank, base)| (*rank, base.id));
        for (rank, base) in unused {
            self.stages.push_system(stage, rank, Opcode::Discard, &base);
        }
        self.arrays.get_mut(&id)
    }
}
