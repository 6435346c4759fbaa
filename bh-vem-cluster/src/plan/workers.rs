//! The ranks that a rank examines when it plans: itself, those that need its elements, and one representative of all
//! ranks in the same situation. Results are recorded in runs, so the effort is the same on thousands of ranks as on a
//! few.

use crate::plan::boxes::{IndexBox, Span, inside, span_of};
use crate::plan::coverage::Coverage;
use crate::plan::layout::{Cuts, first_of, outermost};
use crate::plan::planner::{Planner, Share};
use crate::plan::stages::Stages;
use bh_bytecode::{BatchRef, Instr, View};
use bh_core::error::Result;
use std::ops::Range;

/// Maps a box of the output to the box of an operand that it needs. Operands count from the first input.
pub(crate) type BoxOf<'a> = &'a dyn Fn(usize, &IndexBox) -> IndexBox;

/// Fewer ranks are examined one by one.
const LEAST_UNIFORM: usize = 3;

/// With more ranks than this outside of the uniform range, all ranks are examined one by one.
const MOST_OUTSIDE: usize = 16;

/// The ranks that compute an operation's output.
#[derive(Clone, Debug)]
pub(crate) struct Workers {
    pub(crate) ranks: Range<usize>,
    /// The ranks in the same situation: the elements that they need have equal offsets from those that they compute.
    /// Empty if these ranks are few.
    pub(crate) uniform: Range<usize>,
    /// Each of them computes the whole output.
    pub(crate) everywhere: bool,
}

/// A view of an array: an operation's output or operand.
#[derive(Clone, Copy)]
pub(crate) struct ArrayView<'a> {
    pub(crate) id: u64,
    pub(crate) view: &'a View,
}

/// The needs of an operand to examine.
pub(crate) struct Needs {
    /// Shares, including one representative of the uniform ranks.
    pub(crate) shares: Vec<Share>,
    /// Ranks that the first of them represents.
    pub(crate) uniform: Range<usize>,
}

/// Ranks in ascending order, as ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankList(Vec<Range<usize>>);

impl RankList {
    /// Appends ranks above the present ones.
    pub(crate) fn push(&mut self, ranks: Range<usize>) {
        match self.0.last_mut() {
            Some(last) if last.end == ranks.start => last.end = ranks.end,
            _ if ranks.is_empty() => {}
            _ => self.0.push(ranks),
        }
    }

    /// The number of ranks.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(ExactSizeIterator::len).sum()
    }

    /// The rank at a place.
    pub(crate) fn at(&self, mut place: usize) -> usize {
        for ranks in &self.0 {
            if place < ranks.len() {
                return ranks.start + place;
            }
            place -= ranks.len();
        }
        self.0.last().map_or(0, |ranks| ranks.end)
    }

    /// The places of this process's ranks.
    pub(crate) fn hosted(&self, stages: &Stages) -> Vec<usize> {
        let (mut before, mut places) = (0, Vec::new());
        for ranks in &self.0 {
            let hosted = stages.hosted();
            let (first, end) = (ranks.start.max(hosted.start), ranks.end.min(hosted.end));
            places.extend((first..end).map(|rank| before + rank - ranks.start));
            before += ranks.len();
        }
        places
    }

    /// The places from `have` to before `behind` whose transfers involve this process, if each receives from the place
    /// that is its own modulo `have`.
    pub(crate) fn concerned(&self, stages: &Stages, have: usize, behind: usize) -> Vec<usize> {
        if stages.complete() {
            return (have..behind).collect();
        }
        let mut places = Vec::new();
        for place in self.hosted(stages) {
            match place < have {
                true => places.extend((place + have..behind).step_by(have)),
                false => places.extend((place < behind).then_some(place)),
            }
        }
        places.sort_unstable();
        places
    }

    /// The ranges in order.
    pub(crate) fn ranges(&self) -> &[Range<usize>] {
        &self.0
    }
}

/// Offsets of spans from the elements that a rank computes, before and behind.
type Offsets = Vec<[i64; 2]>;

/// The number of ranks outside of the uniform ones.
fn outside(ranks: &Range<usize>, uniform: &Range<usize>) -> usize {
    ranks.len() - uniform.len()
}

impl Workers {
    /// All ranks compute the whole output.
    pub(crate) fn everywhere(ranks: usize) -> Workers {
        Workers { ranks: 0..ranks, uniform: 0..ranks, everywhere: true }
    }

    /// The ranks of some shares, with all uniform ranks in place of their representative.
    pub(crate) fn members(&self, shares: &[Share]) -> RankList {
        let mut members = RankList::default();
        let mut last = None;
        for (rank, _) in shares.iter().filter(|(rank, _)| *rank == self.uniform.start || !self.uniform.contains(rank)) {
            if last.replace(*rank) == Some(*rank) {
                continue;
            }
            members.push(if *rank == self.uniform.start && !self.uniform.is_empty() {
                self.uniform.clone()
            } else {
                *rank..rank + 1
            });
        }
        members
    }

    /// The ranks to examine: one representative of `uniform`, those `near`, and all ranks outside of it.
    fn examined(&self, uniform: &Range<usize>, near: &[usize]) -> Vec<usize> {
        if uniform.is_empty() {
            return self.ranks.clone().collect();
        }
        let mut inside: Vec<usize> = near.iter().copied().filter(|rank| uniform.contains(rank)).collect();
        inside.push(uniform.start);
        inside.sort_unstable();
        inside.dedup();
        (self.ranks.start..uniform.start).chain(inside).chain(uniform.end..self.ranks.end).collect()
    }
}

impl Planner {
    /// The ranks that compute a view of an array.
    pub(crate) fn workers(
        &self,
        batch: &BatchRef<'_>,
        instr: &Instr,
        target: ArrayView<'_>,
        box_of: BoxOf<'_>,
    ) -> Workers {
        let array = &self.arrays[&target.id];
        let ranks = array.reaching(span_of(target.view));
        let each = Workers { ranks, uniform: 0..0, everywhere: false };
        let step = outermost(target.view.shape()).map_or(0, |dim| target.view.stride()[dim]);
        if self.stages.complete() || step <= 0 || array.cuts.step() % step != 0 {
            return each;
        }
        let mut sources = Vec::new();
        for (place, input) in instr.inputs().iter().enumerate() {
            let Some(view) = input.as_view() else { continue };
            let Some(source) = batch.base_of(view).and_then(|base| self.arrays.get(&base.id)) else { continue };
            if !source.small {
                sources.push((place, source.base.id, batch.view(view)));
            }
        }
        let axes_of = |rank: usize| {
            let [part] = inside(target.view, array.reach(rank))?[..] else { return None };
            let mut axes_of = vec![around(span_of(&part.of(target.view, 0).ok()?), array.reach(rank))];
            for (place, id, view) in &sources {
                let source = &self.arrays[id];
                let span = span_of(&box_of(*place, &part).of(view, 0).ok()?);
                axes_of.push(around(span, source.reach(rank)));
                axes_of.push(around(source.whole_rows(span), source.reach(rank)));
            }
            Some(axes_of)
        };
        let cuts = sources.iter().map(|(_, id, _)| &self.arrays[id].cuts);
        let Some(uniform) = self.uniform(&each.ranks, &array.cuts, cuts, axes_of) else { return each };
        let over = |(place, id, view): &(usize, u64, View)| {
            let [part] = inside(target.view, array.reach(uniform.start))?[..] else { return None };
            let (source, span) = (&self.arrays[id], span_of(&box_of(*place, &part).of(view, 0).ok()?));
            let spare = source.cuts.rows_of(uniform.start) - source.cuts.least_rows() + 1;
            (span.meet(source.reach(uniform.start)).len() >= spare * source.cuts.step()).then_some(())
        };
        match sources.iter().all(|source| over(source).is_some() && self.is_large(source.1)) {
            true => Workers { uniform, ..each },
            false => each,
        }
    }

    /// Is each rank's part so large that windows grow equally on all of them?
    fn is_large(&self, id: u64) -> bool {
        let array = &self.arrays[&id];
        array.temporary || array.cuts.least_rows() * array.cuts.step() >= 4 * array.margin()
    }

    /// The uniform ranks among some: cuts and views follow the same rows, and `offsets` are equal.
    pub(crate) fn uniform<'a>(
        &self,
        ranks: &Range<usize>,
        own: &Cuts,
        others: impl Iterator<Item = &'a Cuts>,
        axes_of: impl Fn(usize) -> Option<Offsets>,
    ) -> Option<Range<usize>> {
        let mut uniform = own.beside(own)?;
        for cuts in others {
            let beside = cuts.beside(own)?;
            uniform = uniform.start.max(beside.start)..uniform.end.min(beside.end);
        }
        uniform = uniform.start.max(ranks.start)..uniform.end.min(ranks.end);
        // The ends of arrays and views clip the needs of some ranks. If two distant ranks have equal offsets, none in
        // between is clipped.
        while uniform.len() >= LEAST_UNIFORM && outside(ranks, &uniform) <= MOST_OUTSIDE {
            #[cfg(test)]
            self.examined.set(self.examined.get() + 2);
            let (first, last) = (axes_of(uniform.start), axes_of(uniform.end - 1));
            if first.is_some() && first == last {
                return Some(uniform);
            }
            uniform = uniform.start + 1..uniform.end - 1;
        }
        None
    }

    /// The boxes of a view that a rank computes; `None` if there are too many.
    pub(crate) fn work(&self, workers: &Workers, target: ArrayView<'_>, rank: usize) -> Option<Vec<IndexBox>> {
        match workers.everywhere {
            true => Some(vec![IndexBox::whole(target.view.shape())]),
            false => inside(target.view, self.arrays[&target.id].reach(rank)),
        }
    }

    /// The shares of representatives and of this process's ranks.
    pub(crate) fn representative_shares(&self, workers: &Workers, target: ArrayView<'_>) -> Option<Vec<Share>> {
        let own: Vec<usize> = self.stages.hosted().clone().collect();
        self.shares_of(workers, target, &workers.examined(&workers.uniform, &own))
    }

    fn shares_of(&self, workers: &Workers, target: ArrayView<'_>, ranks: &[usize]) -> Option<Vec<Share>> {
        #[cfg(test)]
        self.examined.set(self.examined.get() + ranks.len());
        let mut shares = Vec::with_capacity(ranks.len());
        for &rank in ranks {
            shares.extend(self.work(workers, target, rank)?.into_iter().map(|part| (rank, part)));
        }
        Some(shares)
    }

    /// The needs of an operand that this process must examine.
    pub(crate) fn needs(
        &self,
        workers: &Workers,
        target: ArrayView<'_>,
        (place, source): (usize, ArrayView<'_>),
        box_of: BoxOf<'_>,
    ) -> Result<Option<Needs>> {
        let mut uniform = workers.uniform.clone();
        let mut near: Vec<usize> = self.stages.hosted().clone().collect();
        if !uniform.is_empty() && !workers.everywhere {
            uniform = self.uniform_before(source.id, &workers.ranks, uniform);
            let parts = |rank: usize| -> Result<Vec<View>> {
                let boxes = self.work(workers, target, rank).unwrap_or_default();
                boxes.iter().map(|part| box_of(place, part).of(source.view, 0)).collect()
            };
            uniform = self.uniform_after(source.id, &workers.ranks, uniform, parts)?;
            for part in uniform.clone().next().map(parts).transpose()?.unwrap_or_default() {
                near.extend(self.receivers(source.id, &uniform, span_of(&part)));
            }
        }
        let Some(mut shares) = self.shares_of(workers, target, &workers.examined(&uniform, &near)) else {
            return Ok(None);
        };
        shares.iter_mut().for_each(|(_, part)| *part = box_of(place, part));
        Ok(Some(Needs { shares, uniform }))
    }

    /// The uniform ranks with equal coverage now; empty if too many ranks differ.
    fn uniform_before(&self, id: u64, ranks: &Range<usize>, uniform: Range<usize>) -> Range<usize> {
        let array = &self.arrays[&id];
        let middle = uniform.start + uniform.len() / 2;
        let mut kind = array.valid_runs.around(middle, uniform.clone());
        kind = array.window_runs.around(middle, kind);
        if kind.len() < LEAST_UNIFORM || outside(ranks, &kind) > MOST_OUTSIDE { 0..0 } else { kind }
    }

    /// The uniform ranks with equal coverage after these parts have arrived; the ends of an array limit it. Empty if
    /// too many ranks differ, or a part comes as a packed copy.
    fn uniform_after(
        &self,
        id: u64,
        ranks: &Range<usize>,
        mut uniform: Range<usize>,
        parts: impl Fn(usize) -> Result<Vec<View>>,
    ) -> Result<Range<usize>> {
        let end = |rank: usize| -> Result<Option<Vec<[Coverage; 2]>>> {
            parts(rank)?.iter().map(|part| self.coverage_after(id, rank, part)).collect()
        };
        while uniform.len() >= LEAST_UNIFORM && outside(ranks, &uniform) <= MOST_OUTSIDE {
            #[cfg(test)]
            self.examined.set(self.examined.get() + 2);
            let (first, last) = (end(uniform.start)?, end(uniform.end - 1)?);
            if first.is_some() && first == last {
                return Ok(uniform);
            }
            uniform = uniform.start + 1..uniform.end - 1;
        }
        Ok(0..0)
    }

    /// The uniform ranks to which this process's rank must send, if the first of them needs this span.
    fn receivers(&self, id: u64, uniform: &Range<usize>, span: Span) -> Range<usize> {
        let array = &self.arrays[&id];
        let own = array.cuts.own(self.stages.hosted().start);
        if array.small || own.is_empty() {
            return 0..0;
        }
        let [up, down] = around(array.whole_rows(span), array.reach(uniform.start));
        let first = first_of(uniform.clone(), |rank| array.reach(rank).high + down > own.low);
        first..first_of(first..uniform.end, |rank| array.reach(rank).low - up >= own.high)
    }

    /// The owners of a view's elements; uniform ranks own parts with equal offsets. `each`: all ranks must be examined.
    pub(crate) fn owners(&self, source: ArrayView<'_>, each: bool) -> Workers {
        let cuts = &self.arrays[&source.id].cuts;
        let mut workers = Workers { ranks: cuts.range(span_of(source.view)), uniform: 0..0, everywhere: false };
        let step = outermost(source.view.shape()).map_or(0, |dim| source.view.stride()[dim]);
        if each || self.stages.complete() || step <= 0 || cuts.step() % step != 0 {
            return workers;
        }
        let axes_of = |rank: usize| {
            let [part] = inside(source.view, cuts.own(rank))?[..] else { return None };
            Some(vec![around(span_of(&part.of(source.view, 0).ok()?), cuts.own(rank))])
        };
        workers.uniform = self.uniform(&workers.ranks, cuts, std::iter::empty(), axes_of).unwrap_or_default();
        workers
    }

    /// The boxes of a view that representatives and this process's ranks own.
    pub(crate) fn owned_by(&self, workers: &Workers, source: ArrayView<'_>) -> Option<Vec<Share>> {
        let cuts = &self.arrays[&source.id].cuts;
        let own: Vec<usize> = self.stages.hosted().clone().collect();
        let mut shares = Vec::new();
        let ranks = workers.examined(&workers.uniform, &own);
        #[cfg(test)]
        self.examined.set(self.examined.get() + ranks.len());
        for rank in ranks {
            shares.extend(inside(source.view, cuts.own(rank))?.into_iter().map(|part| (rank, part)));
        }
        Some(shares)
    }

    /// Gives all uniform ranks the coverage of the first.
    pub(crate) fn apply_uniformly(&mut self, id: u64, uniform: &Range<usize>) {
        if let (false, Some(array)) = (uniform.is_empty(), self.arrays.get_mut(&id)) {
            let (valid_runs, window) = (array.valid_runs.get(uniform.start), array.window_runs.get(uniform.start));
            array.valid_runs.set(uniform.clone(), valid_runs);
            array.window_runs.set(uniform.clone(), window);
        }
    }
}

/// How far a span begins before another and ends behind it.
fn around(span: Span, other: Span) -> [i64; 2] {
    [other.low - span.low, span.high - other.high]
}
