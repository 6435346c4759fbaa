//! Which ranks a rank looks at when it plans: itself, those that need its elements, and one for all that do alike. What these
//! have is noted in runs, so that the work is the same on thousands of ranks as on a few.

use crate::plan::boxes::{IndexBox, Span, inside, span_of};
use crate::plan::held::Has;
use crate::plan::layout::{Cuts, first_of, outermost};
use crate::plan::planner::{Planner, Share};
use crate::plan::stages::Stages;
use bh_bytecode::{BatchRef, Instr, View};
use bh_core::error::Result;
use std::ops::Range;

/// Which indices of an operand a box of the output needs: `operand` counts from the first input.
pub(crate) type BoxOf<'a> = &'a dyn Fn(usize, &IndexBox) -> IndexBox;

/// Fewer ranks are looked at one by one.
const LEAST_ALIKE: usize = 3;

/// More than this many ranks that differ from the others are looked at one by one, with all others.
const MOST_APART: usize = 16;

/// The ranks that compute an operation's output.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    pub(crate) ranks: Range<usize>,
    /// Those for which the elements that they need lie alike around what they compute of the arrays; none if they are few.
    pub(crate) alike: Range<usize>,
    /// All of them compute all of it.
    pub(crate) everywhere: bool,
}

/// An operation's output or one of its operands.
#[derive(Clone, Copy)]
pub(crate) struct Use<'a> {
    pub(crate) id: u64,
    pub(crate) view: &'a View,
}

/// What is looked at of an operand.
pub(crate) struct Needs {
    /// The shares of ranks.
    pub(crate) shares: Vec<Share>,
    /// Ranks with the fate of the first of them, which is among the shares.
    pub(crate) alike: Range<usize>,
}

/// Ranks in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranks(Vec<Range<usize>>);

impl Ranks {
    /// Appends ranks behind those that are there.
    pub(crate) fn push(&mut self, ranks: Range<usize>) {
        match self.0.last_mut() {
            Some(last) if last.end == ranks.start => last.end = ranks.end,
            _ if ranks.is_empty() => {}
            _ => self.0.push(ranks),
        }
    }

    /// How many.
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

    /// The places of ranks, those of this process only.
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

    /// The places from `have` to before `behind` that this process sends to or receives for, if each gets from the place that is
    /// the rest of its own, divided by `have`.
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

    /// In order.
    pub(crate) fn ranges(&self) -> &[Range<usize>] {
        &self.0
    }
}

/// Where a rank's work and the elements for it begin and end, counted from what it computes of the arrays.
type Lie = Vec<[i64; 2]>;

/// The ranks of a range but those of a smaller one, in which they lie alike.
fn apart(ranks: &Range<usize>, alike: &Range<usize>) -> usize {
    ranks.len() - alike.len()
}

impl Crowd {
    /// All ranks compute all.
    pub(crate) fn everywhere(ranks: usize) -> Crowd {
        Crowd { ranks: 0..ranks, alike: 0..ranks, everywhere: true }
    }

    /// The ranks of some shares and those that are alike.
    pub(crate) fn members(&self, shares: &[Share]) -> Ranks {
        let mut members = Ranks::default();
        let mut last = None;
        for (rank, _) in shares.iter().filter(|(rank, _)| *rank == self.alike.start || !self.alike.contains(rank)) {
            if last.replace(*rank) == Some(*rank) {
                continue;
            }
            members.push(if *rank == self.alike.start && !self.alike.is_empty() {
                self.alike.clone()
            } else {
                *rank..rank + 1
            });
        }
        members
    }

    /// The ranks to look at, and all in the place of which the first of `alike` stands.
    fn looked(&self, alike: &Range<usize>, near: &[usize]) -> Vec<usize> {
        if alike.is_empty() {
            return self.ranks.clone().collect();
        }
        let mut inside: Vec<usize> = near.iter().copied().filter(|rank| alike.contains(rank)).collect();
        inside.push(alike.start);
        inside.sort_unstable();
        inside.dedup();
        (self.ranks.start..alike.start).chain(inside).chain(alike.end..self.ranks.end).collect()
    }
}

impl Planner {
    /// The ranks that compute a view of an array, from operands of which each box of theirs needs another.
    pub(crate) fn crowd(&self, batch: &BatchRef<'_>, instr: &Instr, target: Use<'_>, box_of: BoxOf<'_>) -> Crowd {
        let array = &self.arrays[&target.id];
        let ranks = array.reaching(span_of(target.view));
        let each = Crowd { ranks, alike: 0..0, everywhere: false };
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
        let lie = |rank: usize| {
            let [part] = inside(target.view, array.reach(rank))?[..] else { return None };
            let mut lie = vec![around(span_of(&part.of(target.view, 0).ok()?), array.reach(rank))];
            for (place, id, view) in &sources {
                let source = &self.arrays[id];
                let span = span_of(&box_of(*place, &part).of(view, 0).ok()?);
                lie.push(around(span, source.reach(rank)));
                lie.push(around(source.whole_rows(span), source.reach(rank)));
            }
            Some(lie)
        };
        let cuts = sources.iter().map(|(_, id, _)| &self.arrays[id].cuts);
        let Some(alike) = self.alike(&each.ranks, &array.cuts, cuts, lie) else { return each };
        let over = |(place, id, view): &(usize, u64, View)| {
            let [part] = inside(target.view, array.reach(alike.start))?[..] else { return None };
            let (source, span) = (&self.arrays[id], span_of(&box_of(*place, &part).of(view, 0).ok()?));
            let spare = source.cuts.rows_of(alike.start) - source.cuts.least_rows() + 1;
            (span.meet(source.reach(alike.start)).len() >= spare * source.cuts.step()).then_some(())
        };
        match sources.iter().all(|source| over(source).is_some() && self.is_large(source.1)) {
            true => Crowd { alike, ..each },
            false => each,
        }
    }

    /// Have all ranks this many elements that pieces grow alike?
    fn is_large(&self, id: u64) -> bool {
        let array = &self.arrays[&id];
        array.passing || array.cuts.least_rows() * array.cuts.step() >= 4 * array.margin()
    }

    /// Those among some ranks that lie alike, as cuts and views follow the same rows.
    pub(crate) fn alike<'a>(
        &self,
        ranks: &Range<usize>,
        own: &Cuts,
        others: impl Iterator<Item = &'a Cuts>,
        lie: impl Fn(usize) -> Option<Lie>,
    ) -> Option<Range<usize>> {
        let mut alike = own.beside(own)?;
        for cuts in others {
            let beside = cuts.beside(own)?;
            alike = alike.start.max(beside.start)..alike.end.min(beside.end);
        }
        alike = alike.start.max(ranks.start)..alike.end.min(ranks.end);
        // What is cut off at the ends of arrays and views differs from rank to rank: nothing is, where ranks far from each other
        // lie alike.
        while alike.len() >= LEAST_ALIKE && apart(ranks, &alike) <= MOST_APART {
            #[cfg(test)]
            self.looked.set(self.looked.get() + 2);
            let (first, last) = (lie(alike.start), lie(alike.end - 1));
            if first.is_some() && first == last {
                return Some(alike);
            }
            alike = alike.start + 1..alike.end - 1;
        }
        None
    }

    /// What a rank computes of a view; `None` if it is too many boxes.
    pub(crate) fn work(&self, crowd: &Crowd, target: Use<'_>, rank: usize) -> Option<Vec<IndexBox>> {
        match crowd.everywhere {
            true => Some(vec![IndexBox::whole(target.view.shape())]),
            false => inside(target.view, self.arrays[&target.id].reach(rank)),
        }
    }

    /// The shares of ranks that stand for all, and of this process's.
    pub(crate) fn some_shares(&self, crowd: &Crowd, target: Use<'_>) -> Option<Vec<Share>> {
        let own: Vec<usize> = self.stages.hosted().clone().collect();
        self.shares_of(crowd, target, &crowd.looked(&crowd.alike, &own))
    }

    fn shares_of(&self, crowd: &Crowd, target: Use<'_>, ranks: &[usize]) -> Option<Vec<Share>> {
        #[cfg(test)]
        self.looked.set(self.looked.get() + ranks.len());
        let mut shares = Vec::with_capacity(ranks.len());
        for &rank in ranks {
            shares.extend(self.work(crowd, target, rank)?.into_iter().map(|part| (rank, part)));
        }
        Some(shares)
    }

    /// What this process looks at to bring an operand to the ranks that need it.
    pub(crate) fn needs(
        &self,
        crowd: &Crowd,
        target: Use<'_>,
        (place, source): (usize, Use<'_>),
        box_of: BoxOf<'_>,
    ) -> Result<Option<Needs>> {
        let mut alike = crowd.alike.clone();
        let mut near: Vec<usize> = self.stages.hosted().clone().collect();
        if !alike.is_empty() && !crowd.everywhere {
            alike = self.of_one_kind(source.id, &crowd.ranks, alike);
            let parts = |rank: usize| -> Result<Vec<View>> {
                let boxes = self.work(crowd, target, rank).unwrap_or_default();
                boxes.iter().map(|part| box_of(place, part).of(source.view, 0)).collect()
            };
            alike = self.of_one_end(source.id, &crowd.ranks, alike, parts)?;
            for part in alike.clone().next().map(parts).transpose()?.unwrap_or_default() {
                near.extend(self.receivers(source.id, &alike, span_of(&part)));
            }
        }
        let Some(mut shares) = self.shares_of(crowd, target, &crowd.looked(&alike, &near)) else { return Ok(None) };
        shares.iter_mut().for_each(|(_, part)| *part = box_of(place, part));
        Ok(Some(Needs { shares, alike }))
    }

    /// Those of the ranks that lie alike which have and have room for the same; none if the others are many.
    fn of_one_kind(&self, id: u64, ranks: &Range<usize>, alike: Range<usize>) -> Range<usize> {
        let array = &self.arrays[&id];
        let middle = alike.start + alike.len() / 2;
        let mut kind = array.held.around(middle, alike.clone());
        kind = array.rooms.around(middle, kind);
        if kind.len() < LEAST_ALIKE || apart(ranks, &kind) > MOST_APART { 0..0 } else { kind }
    }

    /// Those of the ranks that lie alike which will have and have room for the same when these parts have come to them: at the
    /// ends of an array there is less to have. None if the others are many, or a part is copied.
    fn of_one_end(
        &self,
        id: u64,
        ranks: &Range<usize>,
        mut alike: Range<usize>,
        parts: impl Fn(usize) -> Result<Vec<View>>,
    ) -> Result<Range<usize>> {
        let end = |rank: usize| -> Result<Option<Vec<[Has; 2]>>> {
            parts(rank)?.iter().map(|part| self.with_rows(id, rank, part)).collect()
        };
        while alike.len() >= LEAST_ALIKE && apart(ranks, &alike) <= MOST_APART {
            #[cfg(test)]
            self.looked.set(self.looked.get() + 2);
            let (first, last) = (end(alike.start)?, end(alike.end - 1)?);
            if first.is_some() && first == last {
                return Ok(alike);
            }
            alike = alike.start + 1..alike.end - 1;
        }
        Ok(0..0)
    }

    /// The ranks among those that lie alike to which this process's rank must send, if the first of them needs this span.
    fn receivers(&self, id: u64, alike: &Range<usize>, span: Span) -> Range<usize> {
        let array = &self.arrays[&id];
        let own = array.cuts.own(self.stages.hosted().start);
        if array.small || own.is_empty() {
            return 0..0;
        }
        let [up, down] = around(array.whole_rows(span), array.reach(alike.start));
        let first = first_of(alike.clone(), |rank| array.reach(rank).high + down > own.low);
        first..first_of(first..alike.end, |rank| array.reach(rank).low - up >= own.high)
    }

    /// The ranks that own elements of a view, those in `alike` a part of it that lies alike. `each`: all must be looked at.
    pub(crate) fn owners(&self, source: Use<'_>, each: bool) -> Crowd {
        let cuts = &self.arrays[&source.id].cuts;
        let mut crowd = Crowd { ranks: cuts.range(span_of(source.view)), alike: 0..0, everywhere: false };
        let step = outermost(source.view.shape()).map_or(0, |dim| source.view.stride()[dim]);
        if each || self.stages.complete() || step <= 0 || cuts.step() % step != 0 {
            return crowd;
        }
        let lie = |rank: usize| {
            let [part] = inside(source.view, cuts.own(rank))?[..] else { return None };
            Some(vec![around(span_of(&part.of(source.view, 0).ok()?), cuts.own(rank))])
        };
        crowd.alike = self.alike(&crowd.ranks, cuts, std::iter::empty(), lie).unwrap_or_default();
        crowd
    }

    /// The boxes of a view that ranks own: of those that stand for all, and of this process's.
    pub(crate) fn owned_by(&self, crowd: &Crowd, source: Use<'_>) -> Option<Vec<Share>> {
        let cuts = &self.arrays[&source.id].cuts;
        let own: Vec<usize> = self.stages.hosted().clone().collect();
        let mut shares = Vec::new();
        let ranks = crowd.looked(&crowd.alike, &own);
        #[cfg(test)]
        self.looked.set(self.looked.get() + ranks.len());
        for rank in ranks {
            shares.extend(inside(source.view, cuts.own(rank))?.into_iter().map(|part| (rank, part)));
        }
        Some(shares)
    }

    /// Lets ranks have of an array what the first of them has.
    pub(crate) fn do_alike(&mut self, id: u64, alike: &Range<usize>) {
        if let (false, Some(array)) = (alike.is_empty(), self.arrays.get_mut(&id)) {
            let (held, room) = (array.held.get(alike.start), array.rooms.get(alike.start));
            array.held.set(alike.clone(), held);
            array.rooms.set(alike.clone(), room);
        }
    }
}

/// How far a span begins before another and ends behind it.
fn around(span: Span, other: Span) -> [i64; 2] {
    [other.low - span.low, span.high - other.high]
}
