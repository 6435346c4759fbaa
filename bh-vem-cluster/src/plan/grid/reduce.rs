//! Plans reductions of arrays on a grid along cut axes: each rank reduces its box, and the ranks of a line combine
//! their results for the owners, in the order of ranks.

use crate::plan::boxes::{IndexBox, Span};
use crate::plan::fold::{OwnInstr, Partials, combiner};
use crate::plan::grid::layout::{Axis, GridLayout, axes_of, part, region_of};
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::{Local, Place, Transfer};
use crate::plan::workers::RankList;
use bh_bytecode::{Base, BatchRef, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::BTreeMap;

/// The ranks' partial results.
struct Folded {
    layout: GridLayout,
    axes: Vec<Axis>,
    shape: Vec<i64>,
    mask: u32,
    like: Base,
    /// By rank of this process.
    places: BTreeMap<usize, Place>,
}

impl Folded {
    /// The results to which a rank contributes.
    fn kept(&self, rank: usize) -> Option<IndexBox> {
        Some(part(&self.axes, &self.shape, &self.layout.own(rank)?)?.without(self.mask))
    }

    /// A rank's partial results. On other processes' ranks, the base has id 0.
    fn place(&self, rank: usize, kept: &IndexBox) -> Result<Place> {
        if let Some(place) = self.places.get(&rank) {
            return Ok(*place);
        }
        let view = View::contiguous(kept.extent()).map_err(|error| Error::new(status::BATCH, error.0))?;
        Ok(Place { base: Base { id: 0, len: view.len().max(1), row_hint: 0, flags: 0, ..self.like }, view })
    }

    /// The groups of ranks that contribute to the same results, among those that contribute to `wanted`: the results,
    /// and the ranks in order.
    fn groups(&self, wanted: &IndexBox) -> Vec<(IndexBox, Vec<usize>)> {
        let mut region = region_of(&self.axes);
        for (axis, span) in self.axes.iter().zip(&mut region) {
            if let Some(dim) = axis.dim.filter(|dim| self.mask >> dim & 1 == 0) {
                let at = (0..dim).filter(|dim| self.mask >> dim & 1 == 0).count();
                let first = wanted.first()[at];
                *span = axis.reach(Span::new(first, first + wanted.extent()[at]));
            }
        }
        let mut groups: Vec<(IndexBox, Vec<usize>)> = Vec::new();
        for rank in self.layout.owners(&region) {
            let Some(kept) = self.kept(rank) else { continue };
            match groups.iter_mut().find(|(known, _)| *known == kept) {
                Some((_, ranks)) => ranks.push(rank),
                None => groups.push((kept, vec![rank])),
            }
        }
        groups
    }
}

impl Planner {
    /// Plans a reduction of an array on a grid into rows or a small array. False if another way suits it.
    pub(crate) fn reduce_on_grid(&mut self, batch: &BatchRef<'_>, index: u32, mask: u32) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        let [Some(output), Some(input)] = [0, 1].map(|place| instr.operands()[place].as_view()) else {
            return Ok(false);
        };
        let (Some(base), Some(id)) = (batch.base_of(output), batch.base_of(input).map(|base| base.id)) else {
            return Ok(false);
        };
        let source = batch.view(input);
        let Some(layout) = self.arrays[&id].layout.as_deref().cloned() else { return Ok(false) };
        let Some(axes) = axes_of(&layout.shape, &source) else { return Ok(false) };
        if instr.opcode.combiner().is_none() || base.id == id || self.is_on_grid(base.id) {
            return Ok(false);
        }
        let target = self.target(batch, index, output, None)?;
        let like = self.arrays[&id].base;
        let mut folded = Folded { layout, axes, shape: source.shape().to_vec(), mask, like, places: BTreeMap::new() };
        let stage = self.reduce_boxes(batch, index, (id, &source), &mut folded)?;
        let view = batch.view(output);
        let target = (target, &view);
        if !self.arrays[&target.0].cuts.is_first() {
            let Some(shares) = self.shares(target.0, &view) else {
                self.drop_folded(&folded, stage);
                return Ok(false);
            };
            self.give_results(batch, index, target, &folded, (&shares, stage + 1))?;
            return Ok(true);
        }
        let is_reduced = |&axis: &usize| folded.axes[axis].dim.is_none_or(|dim| mask >> dim & 1 == 1);
        if folded.layout.cut().iter().all(is_reduced) {
            let mut members = RankList::default();
            folded.layout.owners(&region_of(&folded.axes)).into_iter().for_each(|rank| members.push(rank..rank + 1));
            let partials = Partials::of_all(members, folded.places.into_iter().collect(), like, view.shape());
            return self.reduce_tree(batch, index, target, &partials, stage + 1);
        }
        self.reduce_groups(batch, index, target, &folded, stage)?;
        Ok(true)
    }

    /// Lets each rank of this process reduce its box; returns the stage of that.
    fn reduce_boxes(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (id, source): (u64, &View),
        folded: &mut Folded,
    ) -> Result<usize> {
        let stage = self.stage_of(self.arrays[&id].wrote);
        for rank in self.stages.hosted().clone() {
            let Some(mine) = folded.layout.own(rank).and_then(|own| part(&folded.axes, source.shape(), &own)) else {
                continue;
            };
            let place = self.scratch(rank, &folded.like, mine.without(folded.mask).extent())?;
            let from = self.on_rank(id, rank, &mine.of(source, 0)?)?;
            let instr = &batch.instrs[index as usize];
            self.stages.push(stage, rank, instr, index, &[place, from].map(Local::Data));
            folded.places.insert(rank, place);
        }
        self.reads(id, stage);
        Ok(stage)
    }

    /// Lets the first rank of each group combine its results, available after `stage`, and send them to rank 0.
    fn reduce_groups(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (target, view): (u64, &View),
        folded: &Folded,
        stage: usize,
    ) -> Result<()> {
        let groups = folded.groups(&IndexBox::whole(view.shape()));
        let shares: Vec<Share> = groups.iter().map(|(kept, ranks)| (ranks[0], *kept)).collect();
        let last = (stage + 2).max(self.after_use(target));
        for share in shares {
            let rank = share.0;
            for (kept, result) in self.combine(batch, index, folded, share, [stage + 1; 2])? {
                let mut arrived = result;
                if rank != 0 {
                    arrived = self.scratch(0, &folded.like, kept.extent())?;
                    if self.stages.hosts(rank) || self.stages.hosts(0) {
                        self.stages.transfer(last, Transfer { from: rank, to: 0, source: result, target: arrived });
                    }
                }
                self.write_result(batch, index, (target, view), (0, kept, arrived), last)?;
                for (rank, place) in [(rank, result), (0, arrived)].into_iter().take(if rank == 0 { 1 } else { 2 }) {
                    self.stages.push_system(last, rank, Opcode::Discard, &place.base);
                }
            }
        }
        self.drop_folded(folded, stage + 1);
        self.finish(target, view, last, false);
        Ok(())
    }

    /// Drops the partial results after a stage.
    fn drop_folded(&mut self, folded: &Folded, stage: usize) {
        for (&rank, place) in &folded.places {
            self.stages.push_system(stage, rank, Opcode::Discard, &place.base);
        }
    }

    /// Sends every owner its results from the ranks that contribute to them, from stage `moved` on.
    fn give_results(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (target, view): (u64, &View),
        folded: &Folded,
        (shares, moved): (&[Share], usize),
    ) -> Result<()> {
        let stage = moved.max(self.after_use(target));
        let mine: Vec<IndexBox> = self.stages.hosted().clone().filter_map(|rank| folded.kept(rank)).collect();
        for &(rank, wanted) in shares {
            if !self.stages.hosts(rank) && !mine.iter().any(|kept| kept.meet(&wanted).is_some()) {
                continue;
            }
            for (kept, result) in self.combine(batch, index, folded, (rank, wanted), [moved, stage])? {
                self.write_result(batch, index, (target, view), (rank, kept, result), stage)?;
                self.stages.push_system(stage, rank, Opcode::Discard, &result.base);
            }
        }
        self.drop_folded(folded, stage);
        self.finish(target, view, stage, false);
        Ok(())
    }

    /// Sends a rank the partial results for a box in stage `moved`; it combines them in `stage`, group by group.
    fn combine(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        folded: &Folded,
        (rank, wanted): Share,
        [moved, stage]: [usize; 2],
    ) -> Result<Vec<(IndexBox, Place)>> {
        let (combine, copy) = (combiner(batch, index)?, OwnInstr::new(batch, index, Opcode::Copy, 2));
        let mut results = Vec::new();
        for (kept, ranks) in folded.groups(&wanted) {
            let Some(both) = kept.meet(&wanted) else { continue };
            let mut values = Vec::new();
            for from in ranks {
                let place = folded.place(from, &kept)?;
                let source = Place { base: place.base, view: both.within(&kept).of(&place.view, 0)? };
                let arrived = self.scratch(rank, &folded.like, both.extent())?;
                if from == rank {
                    self.stages.push(stage, rank, &copy.instr, copy.index, &[arrived, source].map(Local::Data));
                } else if self.stages.hosts(from) || self.stages.hosts(rank) {
                    self.stages.transfer(moved, Transfer { from, to: rank, source, target: arrived });
                }
                values.push(arrived);
            }
            self.combine_pairs(&combine, stage, rank, &values);
            for arrived in &values[1..] {
                self.stages.push_system(stage, rank, Opcode::Discard, &arrived.base);
            }
            results.push((both, values[0]));
        }
        Ok(results)
    }

    /// Writes some of the results to their owner's shard.
    fn write_result(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (target, view): (u64, &View),
        (rank, kept, result): (usize, IndexBox, Place),
        stage: usize,
    ) -> Result<()> {
        let shard = self.shard(target, rank);
        let out = Place { base: shard.base, view: kept.of(view, shard.window.low)? };
        self.put_result(batch, index, stage, rank, (out, result));
        Ok(())
    }
}
