//! Plans reductions and accumulates along the cut axis: every rank reduces its own elements, and the results are
//! combined in a fixed order of ranks. Equal numbers of ranks give equal bits.

use crate::plan::array::Shard;
use crate::plan::boxes::IndexBox;
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::{Local, Place, Transfer};
use crate::plan::stages::Stages;
use crate::plan::workers::{ArrayView, RankList};
use bh_bytecode::order::is_fixed;
use bh_bytecode::{Base, BatchRef, Instr, Opcode, Operand, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

/// Results combined on one rank per step: few enough that messages do not queue, enough that a handful of ranks takes
/// one step. A power of two, so that the tree equals that of pairs.
const FAN_IN: usize = 16;

/// The result of one rank.
#[derive(Clone, Copy)]
struct Partial {
    rank: usize,
    /// The box of results that it contributes to.
    part: IndexBox,
    place: Place,
}

/// The results of all ranks, in order. Those of other processes' ranks are only described.
pub(crate) struct Partials {
    members: RankList,
    /// In the order of ranks.
    mine: Vec<Partial>,
    like: Base,
    shape: Vec<i64>,
}

impl Partials {
    /// Each rank's result, all of this shape.
    pub(crate) fn of_all(members: RankList, places: Vec<(usize, Place)>, like: Base, shape: &[i64]) -> Partials {
        let part = IndexBox::whole(shape);
        let mine = places.into_iter().map(|(rank, place)| Partial { rank, part, place }).collect();
        Partials { members, mine, like, shape: shape.to_vec() }
    }

    /// The result at a place. On other processes' ranks, the base has id 0.
    fn at(&self, place: usize) -> Result<Partial> {
        let rank = self.members.at(place);
        if let Ok(found) = self.mine.binary_search_by_key(&rank, |partial| partial.rank) {
            return Ok(self.mine[found]);
        }
        let view = View::contiguous(&self.shape).map_err(|error| Error::new(status::BATCH, error.0))?;
        let base = Base { id: 0, len: view.len().max(1), row_hint: 0, flags: 0, ..self.like };
        Ok(Partial { rank, part: IndexBox::whole(&self.shape), place: Place { base, view } })
    }

    /// The first places of the groups to combine when every `step`th result is left, limited to groups that involve
    /// this process.
    fn groups(&self, stages: &Stages, step: usize) -> Vec<usize> {
        if stages.complete() {
            return (0..self.members.len()).step_by(FAN_IN * step).collect();
        }
        let left = self.members.hosted(stages).into_iter().filter(|place| place % step == 0);
        let mut groups: Vec<usize> = left.map(|place| place - place % (FAN_IN * step)).collect();
        groups.dedup();
        groups
    }
}

/// An instruction that the planner adds, with the source line of the program's instruction.
pub(crate) struct OwnInstr {
    pub(crate) index: u32,
    pub(crate) instr: Instr,
}

impl OwnInstr {
    pub(crate) fn new(batch: &BatchRef<'_>, index: u32, opcode: Opcode, operands: usize) -> OwnInstr {
        let mut instr = Instr::new(opcode, &vec![Operand::view(0); operands]);
        instr.origin = batch.instrs[index as usize].origin;
        OwnInstr { index, instr }
    }
}

impl Planner {
    /// Plans a reduction. False if it must run on one rank.
    pub(crate) fn reduce(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        let mask = u32::from(instr.param);
        let (Some(output), Some(input)) = (instr.operands()[0].as_view(), self.folded_input(batch, index)) else {
            return Ok(false);
        };
        let beside = beside(batch, index, input);
        let source = batch.view(input);
        let widen = |_: usize, part: &IndexBox| part.widen(mask, source.shape());
        self.know_inputs(batch, instr);
        let Some(id) = batch.base_of(input).map(|base| base.id) else { return Ok(false) };
        if self.arrays[&id].cuts.is_first() || source.is_empty() {
            return self.by_output(batch, index, &widen);
        }
        let from = ArrayView { id, view: &source };
        let mut workers = self.owners(from, beside.is_some());
        let Some(mut shares) = self.owned_by(&workers, from) else { return self.by_output(batch, index, &widen) };
        let one_each = shares.windows(2).all(|pair| pair[0].0 != pair[1].0);
        let kept_whole = shares.iter().all(|(_, part)| part.is_whole(source.shape(), !mask));
        let folded_whole = shares.iter().all(|(_, part)| part.is_whole(source.shape(), mask));
        let base = batch.base_of(output).ok_or_else(|| Error::new(status::BATCH, "an output is no view of a base"))?;
        let to_first = match self.arrays.get(&base.id) {
            Some(array) => array.cuts.is_first(),
            None => base.bytes() <= self.settings.small_bytes,
        };
        // A fixed tree has places for results of chunks. Where these are no rows, the output's owners fold all of it.
        if !folded_whole && is_fixed(instr.order) {
            let by_chunks = to_first && self.reduce_by_chunks(batch, index, from, beside)?;
            return if by_chunks { Ok(true) } else { self.by_output(batch, index, &widen) };
        }
        if !one_each || !(kept_whole || (folded_whole && to_first)) || (folded_whole && shares.len() == 1 && !to_first)
        {
            return self.by_output(batch, index, &widen);
        }
        // The mask, or the other factor, moves to the elements.
        if let Some((mask, chosen)) = &beside {
            let at = self.fetchable(*mask);
            if !self.is_available(*mask, chosen, &shares)? && self.fetch(*mask, chosen, &shares, at)?.is_err() {
                return self.by_output(batch, index, &widen);
            }
        }
        let target = self.target(batch, index, output, None)?;
        let by_tree = kept_whole && self.arrays[&target].cuts.is_first();
        if !by_tree && !workers.uniform.is_empty() {
            // This method needs every rank's result.
            workers = self.owners(from, true);
            shares = match self.owned_by(&workers, from) {
                Some(shares) => shares,
                None => return self.by_output(batch, index, &widen),
            };
        }
        let members = workers.members(&shares);
        shares.retain(|(rank, _)| workers.uniform.is_empty() || self.stages.hosts(*rank));
        let (partials, folded) = self.partials(batch, index, (id, &source), beside, &shares)?;
        let view = batch.view(output);
        if !kept_whole {
            return self.gather_results(batch, index, (target, &view), &partials, folded + 1);
        }
        let partials = Partials { members, mine: partials, like: self.arrays[&id].base, shape: view.shape().to_vec() };
        self.combine_partials(batch, index, ArrayView { id: target, view: &view }, partials, folded + 1)
    }

    /// The view that is reduced in place: the first input, or the second factor of a contraction if ranks share that
    /// one while rank 0 has the first.
    fn folded_input(&self, batch: &BatchRef<'_>, index: u32) -> Option<u32> {
        let instr = &batch.instrs[index as usize];
        let first = instr.inputs().first()?.as_view()?;
        let is_first = |view: u32| Some(self.arrays.get(&batch.base_of(view)?.id)?.cuts.is_first());
        match instr.inputs().get(1).and_then(|input| input.as_view()) {
            Some(second) if instr.opcode == Opcode::Contract => {
                Some(if is_first(first) == Some(true) && is_first(second) == Some(false) { second } else { first })
            }
            _ => Some(first),
        }
    }

    /// Combines results, available from stage `after` on, for the output's owners.
    pub(crate) fn combine_partials(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        target: ArrayView<'_>,
        partials: Partials,
        after: usize,
    ) -> Result<bool> {
        match self.arrays[&target.id].cuts.is_first() {
            true => self.reduce_tree(batch, index, (target.id, target.view), &partials, after),
            false => self.reduce_scatter(batch, index, (target.id, target.view), &partials.mine, after),
        }
    }

    /// Lets every rank reduce its share into a temporary; also returns the stage of that.
    fn partials(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (id, source): (u64, &View),
        mask: Option<(u64, View)>,
        shares: &[Share],
    ) -> Result<(Vec<Partial>, usize)> {
        let instr = &batch.instrs[index as usize];
        let mut stage = self.stage_of(self.arrays[&id].wrote);
        let mut places = Vec::new();
        for share in shares {
            places.push(match &mask {
                None => None,
                Some((mask, chosen)) => {
                    let (place, ready) = self.locate(*mask, chosen, *share)?;
                    stage = stage.max(ready);
                    Some(Local::Data(place))
                }
            });
        }
        let mut partials = Vec::new();
        for (&(rank, part), mask) in shares.iter().zip(places) {
            let shard = self.shard(id, rank);
            let kept = part.without(u32::from(instr.param));
            let place = self.scratch(rank, &shard.base, kept.extent())?;
            let from = Place { base: shard.base, view: part.of(source, shard.window.low)? };
            let operands: Vec<Local> = [Local::Data(place), Local::Data(from)].into_iter().chain(mask).collect();
            self.stages.push(stage, rank, instr, index, &operands);
            partials.push(Partial { rank, part: kept, place });
        }
        self.reads(id, stage);
        if let Some((mask, _)) = mask {
            self.reads(mask, stage);
        }
        Ok((partials, stage))
    }

    /// A temporary on a rank.
    pub(crate) fn scratch(&mut self, rank: usize, like: &Base, shape: &[i64]) -> Result<Place> {
        let view = View::contiguous(shape).map_err(|error| Error::new(status::BATCH, error.0))?;
        Ok(Place { base: self.local_base(rank, like, view.len(), 0), view })
    }

    /// Combines results along a tree on rank 0; they are available from stage `after` on.
    pub(crate) fn reduce_tree(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (target, view): (u64, &View),
        partials: &Partials,
        after: usize,
    ) -> Result<bool> {
        let combine = combiner(batch, index)?;
        let mut stage = after;
        let (mut step, count) = (1, partials.members.len());
        while step < count {
            for first in partials.groups(&self.stages, step) {
                let group: Vec<usize> = (first..count).step_by(step).take(FAN_IN).collect();
                self.combine_group(&combine, stage, partials, &group)?;
            }
            step *= FAN_IN;
            stage += 1;
        }
        let root = &partials.at(0)?;
        let mut result = root.place;
        if root.rank != 0 {
            result = self.scratch(0, &root.place.base, root.place.view.shape())?;
            self.send(stage, root, 0, result);
            self.stages.push_system(stage, root.rank, Opcode::Discard, &root.place.base);
            stage += 1;
        }
        let last = (stage - 1).max(self.after_use(target));
        let shard = self.shard(target, 0);
        let out = Place { base: shard.base, view: whole(view, &shard)? };
        self.put_result(batch, index, last, 0, (out, result));
        self.stages.push_system(last, 0, Opcode::Discard, &result.base);
        self.finish(target, view, last, false);
        Ok(true)
    }

    /// Writes a result to the output, or adds it if the operation updates its output.
    pub(crate) fn put_result(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        stage: usize,
        rank: usize,
        (out, result): (Place, Place),
    ) {
        let adds = batch.instrs[index as usize].opcode.reads_output();
        let (opcode, operands) = match adds {
            true => (Opcode::Add, vec![Local::Data(out), Local::Data(out), Local::Data(result)]),
            false => (Opcode::Copy, vec![Local::Data(out), Local::Data(result)]),
        };
        let own = OwnInstr::new(batch, index, opcode, operands.len());
        self.stages.push(stage, rank, &own.instr, own.index, &operands);
    }

    /// Combines values of one rank pairwise, into the first of them.
    pub(crate) fn combine_pairs(&mut self, combine: &OwnInstr, stage: usize, rank: usize, values: &[Place]) {
        let mut distance = 1;
        while distance < values.len() {
            for left in (0..values.len() - distance).step_by(2 * distance) {
                let operands = [values[left], values[left], values[left + distance]].map(Local::Data);
                self.stages.push(stage, rank, &combine.instr, combine.index, &operands);
            }
            distance *= 2;
        }
    }

    /// Sends a group's results to its first rank, which combines them pairwise.
    fn combine_group(&mut self, combine: &OwnInstr, stage: usize, partials: &Partials, group: &[usize]) -> Result<()> {
        let into = partials.at(group[0])?;
        let mut places = vec![into.place];
        for &member in &group[1..] {
            let from = &partials.at(member)?;
            let arrived = self.scratch(into.rank, &from.place.base, from.place.view.shape())?;
            self.send(stage, from, into.rank, arrived);
            self.stages.push_system(stage, from.rank, Opcode::Discard, &from.place.base);
            places.push(arrived);
        }
        self.combine_pairs(combine, stage, into.rank, &places);
        for arrived in &places[1..] {
            self.stages.push_system(stage, into.rank, Opcode::Discard, &arrived.base);
        }
        Ok(())
    }

    fn send(&mut self, stage: usize, from: &Partial, to: usize, target: Place) {
        if self.stages.hosts(from.rank) || self.stages.hosts(to) {
            self.stages.transfer(stage, Transfer { from: from.rank, to, source: from.place, target });
        }
    }

    /// Sends every owner its part of all results, from stage `moved` on; it combines them in the order of ranks.
    fn reduce_scatter(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (target, view): (u64, &View),
        partials: &[Partial],
        moved: usize,
    ) -> Result<bool> {
        let combine = combiner(batch, index)?;
        let stage = moved.max(self.after_use(target));
        let Some(shares) = self.shares(target, view) else {
            for partial in partials {
                self.stages.push_system(moved, partial.rank, Opcode::Discard, &partial.place.base);
            }
            return Ok(false);
        };
        let mut unused = Vec::new();
        for (rank, part) in shares {
            let mut values = Vec::new();
            for partial in partials {
                let source = Place { base: partial.place.base, view: part.of(&partial.place.view, 0)? };
                if partial.rank == rank {
                    values.push(source);
                    continue;
                }
                let arrived = self.scratch(rank, &partial.place.base, part.extent())?;
                self.send(moved, &Partial { place: source, ..*partial }, rank, arrived);
                unused.push((rank, arrived.base));
                values.push(arrived);
            }
            self.combine_pairs(&combine, stage, rank, &values);
            let shard = self.shard(target, rank);
            let out = Place { base: shard.base, view: part.of(view, shard.window.low)? };
            self.put_result(batch, index, stage, rank, (out, values[0]));
        }
        unused.extend(partials.iter().map(|partial| (partial.rank, partial.place.base)));
        for (rank, base) in unused {
            self.stages.push_system(stage, rank, Opcode::Discard, &base);
        }
        self.finish(target, view, stage, false);
        Ok(true)
    }

    /// Collects results of different ranks, available from stage `after` on, as different elements of an array on rank
    /// 0.
    fn gather_results(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (target, view): (u64, &View),
        partials: &[Partial],
        after: usize,
    ) -> Result<bool> {
        let copy = OwnInstr::new(batch, index, Opcode::Copy, 2);
        let stage = after.max(self.after_use(target) + 1);
        let shard = self.shard(target, 0);
        for partial in partials {
            let out = Place { base: shard.base, view: partial.part.of(view, shard.window.low)? };
            if partial.rank == 0 {
                let operands = [Local::Data(out), Local::Data(partial.place)];
                self.stages.push(stage, 0, &copy.instr, copy.index, &operands);
            } else {
                self.send(stage, partial, 0, out);
            }
            self.stages.push_system(stage, partial.rank, Opcode::Discard, &partial.place.base);
        }
        self.finish(target, view, stage, false);
        Ok(true)
    }

    /// Plans an accumulate. False if it must run on one rank.
    pub(crate) fn accumulate(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<bool> {
        if self.by_output(batch, index, &|_, part| *part)? {
            return Ok(true);
        }
        let instr = &batch.instrs[index as usize];
        if is_fixed(instr.order) {
            return Ok(false);
        }
        let axis = instr.param.trailing_zeros() as usize;
        let (Some(output), Some(input)) = (instr.operands()[0].as_view(), instr.operands()[1].as_view()) else {
            return Ok(false);
        };
        let (view, source) = (batch.view(output), batch.view(input));
        let (Some(target), Some(id)) = (batch.base_of(output), batch.base_of(input)) else { return Ok(false) };
        let (target, id) = (target.id, id.id);
        let written = ArrayView { id: target, view: &view };
        let Some(mut shares) = self.owned_by(&self.owners(written, true), written) else { return Ok(false) };
        shares.sort_by_key(|(_, part)| part.first()[axis]);
        let apart = shares.iter().all(|(_, part)| part.is_whole(view.shape(), !(1 << axis)));
        if !apart || shares.len() < 2 || self.arrays[&target].extension != (0, 0) {
            return Ok(false);
        }
        let at = self.fetchable(id);
        if !self.is_available(id, &source, &shares)? && self.fetch(id, &source, &shares, at)?.is_err() {
            return Ok(false);
        }
        let mut stage = self.after_use(target);
        let mut places = Vec::new();
        for share in &shares {
            let (place, ready) = self.locate(id, &source, *share)?;
            stage = stage.max(ready);
            places.push(place);
        }
        let copy = OwnInstr::new(batch, index, Opcode::Copy, 2);
        let mut partials = Vec::new();
        let mut outs = Vec::new();
        for ((rank, part), place) in shares.iter().zip(places) {
            let shard = self.shard(target, *rank);
            let out = Place { base: shard.base, view: part.of(&view, shard.window.low)? };
            self.stages.push(stage, *rank, instr, index, &[Local::Data(out), Local::Data(place)]);
            let last = out.view.slice(axis, Some(-1), None, 1).map_err(|error| Error::new(status::BATCH, error.0))?;
            let total = self.scratch(*rank, &shard.base, last.shape())?;
            let operands = [Local::Data(total), Local::Data(Place { base: out.base, view: last })];
            self.stages.push(stage, *rank, &copy.instr, copy.index, &operands);
            partials.push(Partial { rank: *rank, part: *part, place: total });
            outs.push(out);
        }
        self.reads(id, stage);
        let last = self.scan(batch, index, stage, &partials, &outs)?;
        self.finish(target, &view, last, false);
        Ok(true)
    }

    /// Adds the total of all lower ranks to each rank's accumulate; returns the last stage.
    fn scan(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        first: usize,
        totals: &[Partial],
        outs: &[Place],
    ) -> Result<usize> {
        let combine = combiner(batch, index)?;
        let (mut stage, mut distance) = (first + 1, 1);
        while distance < totals.len() {
            // From the last one down: each adds the value that its source had before this stage.
            for right in (distance..totals.len()).rev() {
                let (from, into) = (&totals[right - distance], &totals[right]);
                let arrived = self.scratch(into.rank, &from.place.base, from.place.view.shape())?;
                self.send(stage, from, into.rank, arrived);
                let operands = [into.place, arrived, into.place].map(Local::Data);
                self.stages.push(stage, into.rank, &combine.instr, combine.index, &operands);
                self.stages.push_system(stage, into.rank, Opcode::Discard, &arrived.base);
            }
            distance *= 2;
            stage += 1;
        }
        for (right, out) in outs.iter().enumerate().skip(1) {
            let (from, into) = (&totals[right - 1], &totals[right]);
            let arrived = self.scratch(into.rank, &from.place.base, from.place.view.shape())?;
            self.send(stage, from, into.rank, arrived);
            let spread = arrived.view.broadcast_to(out.view.shape());
            let spread = spread.map_err(|error| Error::new(status::BATCH, error.0))?;
            let operands = [*out, Place { view: spread, ..arrived }, *out].map(Local::Data);
            self.stages.push(stage, into.rank, &combine.instr, combine.index, &operands);
            self.stages.push_system(stage, into.rank, Opcode::Discard, &arrived.base);
        }
        for total in totals {
            self.stages.push_system(stage, total.rank, Opcode::Discard, &total.place.base);
        }
        Ok(stage)
    }
}

/// The mask of a masked reduction, or the other factor of a contraction, and its view.
fn beside(batch: &BatchRef<'_>, index: u32, input: u32) -> Option<(u64, View)> {
    let [first, second] = batch.instrs[index as usize].inputs() else { return None };
    let other = if first.as_view() == Some(input) { second } else { first }.as_view()?;
    Some((batch.base_of(other)?.id, batch.view(other)))
}

/// The instruction that combines two results: an addition for methods and scatter-adds.
pub(crate) fn combiner(batch: &BatchRef<'_>, index: u32) -> Result<OwnInstr> {
    let opcode = batch.instrs[index as usize].opcode;
    if opcode.is_extension() || opcode == Opcode::ScatterAdd {
        return Ok(OwnInstr::new(batch, index, Opcode::Add, 3));
    }
    let combiner = opcode.combiner().ok_or_else(|| Error::new(status::BATCH, format!("{opcode} combines nothing")))?;
    Ok(OwnInstr::new(batch, index, combiner, 3))
}

/// The whole view within a shard.
fn whole(view: &View, shard: &Shard) -> Result<View> {
    IndexBox::whole(view.shape()).of(view, shard.window.low)
}
