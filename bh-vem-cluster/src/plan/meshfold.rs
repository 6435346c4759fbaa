//! Plans reductions of arrays on a grid of ranks, along axes that are cut: each rank folds its box, and ranks of a line combine what
//! they have for the owners of the results, in the order of ranks.

use crate::plan::boxes::{IndexBox, Span};
use crate::plan::fold::{Own, Partials, combiner};
use crate::plan::mesh::{Axis, Mesh, lie, part, region_of};
use crate::plan::near::Ranks;
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::{Local, Place, Transfer};
use bh_bytecode::{Base, BatchRef, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::BTreeMap;

/// What ranks have folded.
struct Folded {
    mesh: Mesh,
    axes: Vec<Axis>,
    shape: Vec<i64>,
    mask: u32,
    like: Base,
    /// By rank of this process.
    places: BTreeMap<usize, Place>,
}

impl Folded {
    /// Which results a rank has a part of.
    fn kept(&self, rank: usize) -> Option<IndexBox> {
        Some(part(&self.axes, &self.shape, &self.mesh.own(rank)?)?.without(self.mask))
    }

    /// Where a rank has them; those of other processes have no identity.
    fn place(&self, rank: usize, kept: &IndexBox) -> Result<Place> {
        if let Some(place) = self.places.get(&rank) {
            return Ok(*place);
        }
        let view = View::contiguous(kept.extent()).map_err(|error| Error::new(status::BATCH, error.0))?;
        Ok(Place { base: Base { id: 0, len: view.len().max(1), row_hint: 0, flags: 0, ..self.like }, view })
    }

    /// Groups of ranks that have parts of the same results, in order: for each, which results, and the ranks in order. Only those
    /// that have some of these results.
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
        for rank in self.mesh.owners(&region) {
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
    /// Plans a reduction of an array on a grid into one that is cut in rows, or small. False if it is not done so.
    pub(crate) fn fold_on_mesh(&mut self, batch: &BatchRef<'_>, index: u32, mask: u32) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        let [Some(output), Some(input)] = [0, 1].map(|place| instr.operands()[place].as_view()) else {
            return Ok(false);
        };
        let (Some(base), Some(id)) = (batch.base_of(output), batch.base_of(input).map(|base| base.id)) else {
            return Ok(false);
        };
        let source = batch.view(input);
        let Some(mesh) = self.arrays[&id].mesh.as_deref().cloned() else { return Ok(false) };
        let Some(axes) = lie(&mesh.shape, &source) else { return Ok(false) };
        if instr.opcode.combiner().is_none() || base.id == id || self.is_on_mesh(base.id) {
            return Ok(false);
        }
        let target = self.target(batch, index, output, None)?;
        let like = self.arrays[&id].base;
        let mut folded = Folded { mesh, axes, shape: source.shape().to_vec(), mask, like, places: BTreeMap::new() };
        let stage = self.stage_of(self.arrays[&id].wrote);
        for rank in self.stages.hosted().clone() {
            let Some(mine) = folded.mesh.own(rank).and_then(|own| part(&folded.axes, source.shape(), &own)) else {
                continue;
            };
            let place = self.scratch(rank, &like, mine.without(mask).extent())?;
            let from = self.on_rank(id, rank, &mine.of(&source, 0)?)?;
            self.stages.push(stage, rank, instr, index, &[place, from].map(Local::Data));
            folded.places.insert(rank, place);
        }
        self.reads(id, stage);
        let view = batch.view(output);
        let whole = IndexBox::whole(view.shape());
        let first = self.arrays[&target].cuts.is_first();
        if first && folded.mesh.cut().iter().all(|&axis| folded.axes[axis].dim.is_none_or(|dim| mask >> dim & 1 == 1)) {
            let mut members = Ranks::default();
            folded.mesh.owners(&region_of(&folded.axes)).into_iter().for_each(|rank| members.push(rank..rank + 1));
            let places = folded.places.into_iter().collect();
            return self.tree(
                batch,
                index,
                (target, &view),
                &Partials::of_all(members, places, like, view.shape()),
                stage + 1,
            );
        }
        if !first {
            let Some(shares) = self.shares(target, &view) else {
                self.drop_folded(&folded, stage);
                return Ok(false);
            };
            self.give_results(batch, index, (target, &view), &folded, (&shares, stage + 1))?;
            return Ok(true);
        }
        // The first rank of each group combines its results, and sends them to rank 0.
        let shares: Vec<Share> = folded.groups(&whole).iter().map(|(kept, ranks)| (ranks[0], *kept)).collect();
        let last = (stage + 2).max(self.after_use(target));
        for (rank, kept) in shares {
            let found = self.combine(batch, index, &folded, (rank, kept), [stage + 1; 2])?;
            for (kept, result) in found {
                let mut arrived = result;
                if rank != 0 {
                    arrived = self.scratch(0, &like, kept.extent())?;
                    if self.stages.hosts(rank) || self.stages.hosts(0) {
                        self.stages.transfer(last, Transfer { from: rank, to: 0, source: result, target: arrived });
                    }
                }
                self.write_result(batch, index, (target, &view), (0, kept, arrived), last)?;
                for (rank, place) in [(rank, result), (0, arrived)].into_iter().take(if rank == 0 { 1 } else { 2 }) {
                    self.stages.push_system(last, rank, Opcode::Discard, &place.base);
                }
            }
        }
        self.drop_folded(&folded, stage + 1);
        self.finish(target, &view, last, false);
        Ok(true)
    }

    /// What ranks folded is not needed any more after a stage.
    fn drop_folded(&mut self, folded: &Folded, stage: usize) {
        for (&rank, place) in &folded.places {
            self.stages.push_system(stage, rank, Opcode::Discard, &place.base);
        }
    }

    /// Every owner of results gets its part of them from the ranks that have some, from stage `moved` on.
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

    /// A rank gets parts of some results in stage `moved`, and combines them in `stage`, for each group of ranks that has them.
    fn combine(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        folded: &Folded,
        (rank, wanted): Share,
        [moved, stage]: [usize; 2],
    ) -> Result<Vec<(IndexBox, Place)>> {
        let (combine, copy) = (combiner(batch, index)?, Own::new(batch, index, Opcode::Copy, 2));
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

    /// Writes a part of the results where it belongs.
    fn write_result(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (target, view): (u64, &View),
        (rank, kept, result): (usize, IndexBox, Place),
        stage: usize,
    ) -> Result<()> {
        let piece = self.piece(target, rank);
        let out = Place { base: piece.base, view: kept.of(view, piece.window.low)? };
        self.put_result(batch, index, stage, rank, (out, result));
        Ok(())
    }
}
