//! Plans folds with a fixed tree along the cut axis: each rank folds whole chunks of the tree, and the output's owner joins their
//! results by halving, as one engine does. So the bits are those of one rank.

use crate::plan::boxes::IndexBox;
use crate::plan::fold::{OwnInstr, combiner};
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::{Local, Place, Transfer};
use crate::plan::workers::ArrayView;
use bh_bytecode::{AxisOrder, BatchRef, Instr, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use bh_kernel::schedule::{fixed_rows, halvings};

/// How the ranks' work is cut.
struct Cut {
    /// The cut axis, and its rows of a chunk.
    axis: usize,
    rows: i64,
    /// The order of a fold of several chunks side by side, an axis more.
    order: u16,
}

impl Planner {
    /// Plans the fold of a view into an array on rank 0; `beside` is its second input. False if chunks are no rows of the cut axis, or
    /// there is only one.
    pub(crate) fn reduce_by_chunks(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        source: ArrayView<'_>,
        beside: Option<(u64, View)>,
    ) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        let (Some(cut), Some(output)) = (cut(instr, source.view.shape()), instr.operands()[0].as_view()) else {
            return Ok(false);
        };
        let Some(shares) = self.owned_by(&self.owners(source, true), source) else { return Ok(false) };
        let Some(shares) = aligned(shares, source.view.shape(), &cut) else { return Ok(false) };
        let inputs: Vec<(u64, View)> = [(source.id, *source.view)].into_iter().chain(beside).collect();
        for (id, view) in &inputs {
            let at = self.fetchable(*id);
            if !self.is_available(*id, view, &shares)? && self.fetch(*id, view, &shares, at)?.is_err() {
                return Ok(false);
            }
        }
        let target = self.target(batch, index, output, None)?;
        let view = batch.view(output);
        let (results, stage) = self.chunk_results(batch, index, &inputs, &shares, &cut)?;
        self.join_chunks(batch, index, (target, &view), results, stage + 1)
    }

    /// Lets each rank fold its chunks, one result behind the other; also returns the stage of that.
    fn chunk_results(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        inputs: &[(u64, View)],
        shares: &[Share],
        cut: &Cut,
    ) -> Result<(Vec<(usize, Place)>, usize)> {
        let instr = &batch.instrs[index as usize];
        let like = self.arrays[&inputs[0].0].base;
        let mut stage = self.stage_of(self.arrays[&inputs[0].0].wrote);
        let mut places = Vec::with_capacity(shares.len());
        for share in shares {
            let mut all = Vec::with_capacity(inputs.len());
            for (id, view) in inputs {
                let (place, ready) = self.locate(*id, view, *share)?;
                stage = stage.max(ready);
                all.push(place);
            }
            places.push(all);
        }
        let mut results = Vec::with_capacity(shares.len());
        for ((rank, part), places) in shares.iter().zip(&places) {
            let rows = part.extent()[cut.axis];
            let (whole, rest) = (rows / cut.rows, rows % cut.rows);
            let kept = part.without(u32::from(instr.param));
            let count = whole + i64::from(rest > 0);
            let result = self.scratch(*rank, &like, &[&[count], kept.extent()].concat())?;
            if whole > 0 {
                let own = Instr { param: instr.param << 1, order: cut.order, ..*instr };
                let out = Place { view: rows_of(&result.view, 0, 0, whole)?, ..result };
                let inputs =
                    places.iter().map(|place| Ok(Place { view: in_chunks(&place.view, cut, whole)?, ..*place }));
                self.fold(stage, *rank, (&own, index), out, inputs)?;
            }
            if rest > 0 {
                let out = Place { view: one_of(&result.view, whole)?, ..result };
                let inputs = places
                    .iter()
                    .map(|place| Ok(Place { view: rows_of(&place.view, cut.axis, whole * cut.rows, rest)?, ..*place }));
                self.fold(stage, *rank, (instr, index), out, inputs)?;
            }
            results.push((*rank, result));
        }
        inputs.iter().for_each(|(id, _)| self.reads(*id, stage));
        Ok((results, stage))
    }

    /// Appends a fold to a rank's work.
    fn fold(
        &mut self,
        stage: usize,
        rank: usize,
        (instr, index): (&Instr, u32),
        out: Place,
        inputs: impl Iterator<Item = Result<Place>>,
    ) -> Result<()> {
        let operands = std::iter::once(Ok(out)).chain(inputs);
        let operands = operands.map(|place| place.map(Local::Data)).collect::<Result<Vec<Local>>>()?;
        self.stages.push(stage, rank, instr, index, &operands);
        Ok(())
    }

    /// Brings the chunks' results to rank 0, in their order, and joins them by halving; they are there from stage `after` on.
    fn join_chunks(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (target, view): (u64, &View),
        results: Vec<(usize, Place)>,
        after: usize,
    ) -> Result<bool> {
        let stage = after.max(self.after_use(target) + 1);
        let shape = results[0].1.view.shape()[1..].to_vec();
        let count: i64 = results.iter().map(|(_, place)| place.view.shape()[0]).sum();
        let all = self.scratch(0, &results[0].1.base, &[&[count], &shape[..]].concat())?;
        let copy = OwnInstr::new(batch, index, Opcode::Copy, 2);
        let mut first = 0;
        for (rank, place) in results {
            let own = place.view.shape()[0];
            let to = Place { view: rows_of(&all.view, 0, first, own)?, ..all };
            if rank == 0 {
                self.stages.push(stage, 0, &copy.instr, copy.index, &[Local::Data(to), Local::Data(place)]);
            } else if self.stages.hosts(rank) || self.stages.hosts(0) {
                self.stages.transfer(stage, Transfer { from: rank, to: 0, source: place, target: to });
            }
            self.stages.push_system(stage, rank, Opcode::Discard, &place.base);
            first += own;
        }
        let combine = combiner(batch, index)?;
        for (pairs, half) in halvings(count) {
            let to = Place { view: rows_of(&all.view, 0, 0, pairs)?, ..all };
            let from = Place { view: rows_of(&all.view, 0, half, pairs)?, ..all };
            self.stages.push(stage, 0, &combine.instr, combine.index, &[to, to, from].map(Local::Data));
        }
        let shard = self.shard(target, 0);
        let out = Place { base: shard.base, view: IndexBox::whole(view.shape()).of(view, shard.window.low)? };
        self.put_result(batch, index, stage, 0, (out, Place { view: one_of(&all.view, 0)?, ..all }));
        self.stages.push_system(stage, 0, Opcode::Discard, &all.base);
        self.finish(target, view, stage, false);
        Ok(true)
    }
}

/// How the fold of a shape is cut; `None` if its chunks are no rows of its first folded axis, walked forward, or there are as many rows
/// as a chunk has.
fn cut(instr: &Instr, shape: &[i64]) -> Option<Cut> {
    let order = AxisOrder::decode(instr.order, shape.len())?;
    let (axis, rows) = fixed_rows(shape, instr.param, &order)?;
    let forward = order.backward() >> axis & 1 == 0;
    let wide: Vec<(u8, bool)> = std::iter::once((0, false))
        .chain(order.axes().iter().map(|&axis| (axis + 1, order.backward() >> axis & 1 == 1)))
        .collect();
    let wide = AxisOrder::of_axes(&wide)?.fixed();
    let is_coded = AxisOrder::decode(wide.code(), shape.len() + 1) == Some(wide);
    (forward && is_coded && rows < shape[axis]).then(|| Cut { axis, rows, order: wide.code() })
}

/// Shares of whole chunks; `None` if the shares are no rows of the cut axis, one for each rank.
fn aligned(mut shares: Vec<Share>, shape: &[i64], cut: &Cut) -> Option<Vec<Share>> {
    let others = !(1 << cut.axis);
    let first = |share: &Share| share.1.first()[cut.axis];
    shares.sort_by_key(first);
    let distinct = shares.windows(2).all(|pair| pair[0].0 != pair[1].0);
    if !distinct || !shares.iter().all(|(_, part)| part.is_whole(shape, others)) {
        return None;
    }
    let begin = |row: i64| ((row + cut.rows - 1) / cut.rows * cut.rows).min(shape[cut.axis]);
    let ends: Vec<i64> = shares.iter().skip(1).map(|share| begin(first(share))).chain([shape[cut.axis]]).collect();
    let parts = shares.iter().zip(ends).map(|(share, end)| {
        let low = begin(first(share)).min(end);
        (share.0, share.1.with(cut.axis, low, end - low))
    });
    Some(parts.filter(|(_, part)| part.len() > 0).collect())
}

/// Some rows of a view along an axis.
fn rows_of(view: &View, axis: usize, first: i64, rows: i64) -> Result<View> {
    IndexBox::whole(view.shape()).with(axis, first, rows).of(view, 0)
}

/// The part of a view at an index of its first axis, without that axis.
fn one_of(view: &View, at: i64) -> Result<View> {
    let start = view.start() + at * view.stride()[0];
    View::new(start, &view.shape()[1..], &view.stride()[1..]).map_err(|error| Error::new(status::BATCH, error.0))
}

/// A view's rows along the cut axis in whole chunks, which are its first axis.
fn in_chunks(view: &View, cut: &Cut, chunks: i64) -> Result<View> {
    let (mut shape, step) = (view.shape().to_vec(), view.stride()[cut.axis]);
    shape[cut.axis] = cut.rows;
    let (shape, stride) = ([&[chunks], &shape[..]].concat(), [&[cut.rows * step], view.stride()].concat());
    View::new(view.start(), &shape, &stride).map_err(|error| Error::new(status::BATCH, error.0))
}
