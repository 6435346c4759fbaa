//! The state of a program's array as every rank knows it: its cuts, and the elements that each rank has.

use crate::plan::boxes::Span;
use crate::plan::coverage::{Coverage, CoverageRuns};
#[cfg(debug_assertions)]
use crate::plan::grid::layout;
use crate::plan::grid::layout::GridLayout;
use crate::plan::layout::{Cuts, Weights};
#[cfg(debug_assertions)]
use bh_bytecode::interp::offsets;
use bh_bytecode::{Base, View};
use bh_core::error::Error;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// A stage of the current plan; stages of earlier plans have run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct When {
    /// The number of the plan: counts the runs of stages.
    pub flush: u64,
    /// The stage.
    pub stage: usize,
}

/// The shard of an array in a rank's memory.
#[derive(Clone, Copy, Debug)]
pub struct Shard {
    /// The rank's own base.
    pub base: Base,
    /// The elements that its memory covers.
    pub window: Span,
    /// The elements with current values.
    pub valid: Span,
}

/// A packed copy of a view in a rank's memory.
#[derive(Clone, Copy, Debug)]
pub struct PackedCopy {
    /// The rank's own base.
    pub base: Base,
    /// The stage in which it is complete.
    pub ready: When,
    /// The last program that used it.
    pub used: u64,
}

/// An array of the program.
#[derive(Clone, Debug)]
pub struct Array {
    /// The program's base.
    pub base: Base,
    /// Elements per row.
    pub row: i64,
    /// Which rank owns which elements.
    pub cuts: Cuts,
    /// The layout on a grid of ranks; `None` if the array is cut in rows. With a layout, cuts and runs do not describe
    /// the elements of ranks.
    pub layout: Option<Box<GridLayout>>,
    /// Elements before and behind its own that each rank computes redundantly instead of receiving them.
    pub extension: (i64, i64),
    /// It lives within one program, so its windows have no margin.
    pub temporary: bool,
    /// It is small: every rank that has it has all of it.
    pub small: bool,
    /// It is small, and all ranks have its current values.
    pub everywhere: bool,
    /// Its memory must stay on rank 0, because the program uses it.
    pub fixed: bool,
    /// The error that lost its data.
    pub lost: Option<Error>,
    /// The bases of this process's ranks.
    pub shards: BTreeMap<usize, Base>,
    /// The elements with current values on each rank, unless `everywhere`.
    pub valid_runs: CoverageRuns,
    /// The elements that each rank's memory covers.
    pub window_runs: CoverageRuns,
    /// Packed copies of views, by rank and view.
    pub copies: HashMap<(usize, View), PackedCopy>,
    /// The last write.
    pub wrote: When,
    /// The last arrival of elements from other ranks.
    pub arrived: When,
    /// The last read.
    pub read: When,
}

impl Array {
    /// An array of zeros without memory on any rank. `with_margin`: its windows will have space for rows of neighbours.
    pub fn new(base: &Base, row: i64, cuts: Cuts, small: bool, with_margin: bool) -> Array {
        let ranks = cuts.ranks();
        let window = if small || with_margin { Coverage::WithMargin } else { Coverage::Around(0, 0) };
        Array {
            base: *base,
            row,
            cuts,
            layout: None,
            extension: (0, 0),
            temporary: false,
            small,
            everywhere: small,
            fixed: false,
            lost: None,
            shards: BTreeMap::new(),
            valid_runs: CoverageRuns::new(ranks, Coverage::Around(0, 0)),
            window_runs: CoverageRuns::new(ranks, window),
            copies: HashMap::new(),
            wrote: When::default(),
            arrived: When::default(),
            read: When::default(),
        }
    }

    /// Puts the array on a grid. Its cuts then only tell that several ranks share it.
    pub fn put_on(&mut self, layout: GridLayout) {
        self.cuts = Cuts::rows(self.base.len, 1, &Weights::even(self.cuts.ranks()));
        (self.layout, self.extension, self.everywhere) = (Some(Box::new(layout)), (0, 0), false);
    }

    /// All elements.
    pub fn all(&self) -> Span {
        Span::new(0, self.base.len)
    }

    /// Length and row, which similar arrays have in common.
    pub fn kind(&self) -> (i64, i64) {
        (self.base.len, self.row)
    }

    /// The elements that a rank computes: its own and its extension.
    pub fn reach(&self, rank: usize) -> Span {
        let own = self.cuts.own(rank);
        if own.is_empty() || self.extension == (0, 0) {
            return own;
        }
        Span::new(own.low - self.extension.0, own.high + self.extension.1).meet(self.all())
    }

    /// The range of ranks that compute elements of a span.
    pub fn reaching(&self, span: Span) -> Range<usize> {
        self.cuts.range(Span::new(span.low - self.extension.1, span.high + self.extension.0).meet(self.all()))
    }

    /// The elements whose current values a rank has.
    pub fn valid(&self, rank: usize) -> Span {
        if self.everywhere { self.all() } else { self.span(rank, self.valid_runs.get(rank)) }
    }

    /// Has every rank all elements?
    pub fn all_have_all(&self) -> bool {
        let all = self.all();
        let mut runs = self.valid_runs.within(0..self.cuts.ranks());
        runs.all(|(ranks, coverage)| {
            coverage == Coverage::Exactly(all) || ranks.len() == 1 && self.span(ranks.start, coverage) == all
        })
    }

    /// The elements that a rank's memory covers.
    pub fn window(&self, rank: usize) -> Span {
        self.span(rank, self.window_runs.get(rank))
    }

    /// The elements of a coverage on a rank.
    fn span(&self, rank: usize, coverage: Coverage) -> Span {
        match coverage {
            Coverage::Exactly(span) => span,
            Coverage::WithMargin => self.with_margin(self.reach(rank)),
            Coverage::Around(up, down) => {
                let reach = self.reach(rank);
                if reach.is_empty() || (up, down) == (0, 0) {
                    return reach;
                }
                Span::new(reach.low - up, reach.high + down).meet(self.all())
            }
        }
    }

    /// The coverage of a span on a rank.
    pub fn around(&self, rank: usize, span: Span) -> Coverage {
        let reach = self.reach(rank);
        match (reach.is_empty(), span.is_empty()) {
            (true, true) => Coverage::Around(0, 0),
            (false, _) if span.contains(reach) => Coverage::Around(reach.low - span.low, span.high - reach.high),
            _ => Coverage::Exactly(span),
        }
    }

    /// Sets the valid elements of a rank.
    pub fn set_valid(&mut self, rank: usize, valid: Span) {
        self.valid_runs.set(rank..rank + 1, self.around(rank, valid));
    }

    /// The elements of a view in a span, with their offsets in the rank's shard. On a grid: the elements of the view
    /// that the rank owns.
    #[cfg(debug_assertions)]
    pub fn places_in(&self, rank: usize, span: Span, view: &View) -> Vec<(i64, i64)> {
        let Some(layout) = &self.layout else {
            let (low, elements) = (self.window(rank).low, offsets(view.start(), view.shape(), view.stride()));
            let inside = |&element: &i64| span.contains(Span::new(element, element + 1));
            return elements.filter(inside).map(|element| (element, element - low)).collect();
        };
        let axes = layout::axes_of(&layout.shape, view);
        let part = axes.zip(layout.own(rank)).and_then(|(axes, own)| layout::part(&axes, view.shape(), &own));
        part.and_then(|part| part.of(view, 0).ok()).map_or(Vec::new(), |part| layout.places(rank, &part))
    }

    /// The valid elements of a rank, with their offsets in its shard.
    #[cfg(debug_assertions)]
    pub fn places_of_valid(&self, rank: usize) -> Vec<(i64, i64)> {
        if let Some(layout) = &self.layout {
            let views = layout.valid(rank).into_iter().filter_map(|region| layout.view(&region).ok());
            return views.flat_map(|view| layout.places(rank, &view)).collect();
        }
        let valid = self.valid(rank);
        let first = if self.shards.contains_key(&rank) { self.window(rank).low } else { valid.low };
        (valid.low..valid.high).map(|element| (element, element - first)).collect()
    }

    /// The shard of a rank of this process.
    pub fn shard(&self, rank: usize) -> Option<Shard> {
        let base = *self.shards.get(&rank)?;
        Some(Shard { base, window: self.window(rank), valid: self.valid(rank) })
    }

    /// A span extended by the margin for rows of neighbours.
    pub fn with_margin(&self, span: Span) -> Span {
        if self.small {
            return self.all();
        }
        let margin = self.margin();
        if self.temporary || span.len() < 4 * margin {
            return span;
        }
        Span::new(span.low - margin, span.high + margin).meet(self.all())
    }

    /// Elements around a shard that neighbours' rows are likely to need.
    pub fn margin(&self) -> i64 {
        if self.row > 1 { self.row } else { 16 }
    }

    /// A span rounded outwards to whole rows.
    pub fn whole_rows(&self, span: Span) -> Span {
        let row = self.row.max(1);
        Span::new(span.low.div_euclid(row) * row, (span.high + row - 1).div_euclid(row) * row).meet(self.all())
    }

    /// The packed copies, sorted, so that their order does not depend on a hash table.
    fn sorted_copies(&self) -> Vec<(&(usize, View), &PackedCopy)> {
        let mut copies: Vec<_> = self.copies.iter().collect();
        let place = |view: &View| (view.start(), view.shape().to_vec(), view.stride().to_vec());
        copies.sort_by_cached_key(|((rank, view), _)| (*rank, place(view)));
        copies
    }

    /// Appends everything that planning depends on, except for the ids of bases.
    pub fn describe(&self, words: &mut Vec<u64>) {
        let flags = [self.temporary, self.small, self.everywhere, self.fixed];
        let flags = flags.iter().fold(1, |word, &flag| word << 1 | u64::from(flag));
        words.extend([flags, self.row as u64, self.extension.0 as u64, self.extension.1 as u64]);
        self.cuts.describe(words);
        words.push(u64::from(self.layout.is_some()));
        self.layout.iter().for_each(|layout| layout.describe(words));
        self.valid_runs.describe(words);
        self.window_runs.describe(words);
        words.push(self.shards.len() as u64);
        for (&rank, base) in &self.shards {
            words.extend([rank as u64, base.len as u64, base.row_hint as u64]);
        }
        words.push(self.copies.len() as u64);
        if self.copies.is_empty() {
            return;
        }
        for ((rank, view), _) in self.sorted_copies() {
            words.extend([*rank as u64, view.start() as u64, view.rank() as u64]);
            words.extend(view.shape().iter().chain(view.stride()).map(|&dim| dim as u64));
        }
    }

    /// Appends the bases of this process's ranks. Arrays with equal descriptions give them in the same order.
    pub fn bases(&self, ids: &mut Vec<u64>) {
        ids.extend(self.shards.values().map(|base| base.id));
        if !self.copies.is_empty() {
            ids.extend(self.sorted_copies().into_iter().map(|(_, copy)| copy.base.id).filter(|&id| id != 0));
        }
    }

    /// Replaces each base's id.
    pub fn each_base(&mut self, mut replace: impl FnMut(&mut u64)) {
        self.shards.values_mut().for_each(|base| replace(&mut base.id));
        self.copies.values_mut().for_each(|copy| replace(&mut copy.base.id));
    }

    /// The array after all planned stages have run.
    pub fn settled(&self) -> Array {
        let over = When::default();
        let mut array = Array { wrote: over, arrived: over, read: over, ..self.clone() };
        array.copies.values_mut().for_each(|copy| copy.ready = over);
        array
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        let shards = self.shards.len() * size_of::<(usize, Base)>();
        let copies = self.copies.len() * size_of::<((usize, View), PackedCopy)>();
        let layout = self.layout.as_ref().map_or(0, |layout| layout.bytes());
        size_of::<Array>()
            + layout
            + self.cuts.bytes()
            + self.valid_runs.bytes()
            + self.window_runs.bytes()
            + shards
            + copies
    }

    /// Lets each rank compute this many elements before and behind its own; keeps shards and their contents. False,
    /// without a change, if some rank lacks memory for these elements or their current values. `fresh`: no rank has a
    /// shard yet; `renewed`: the whole array is about to be overwritten from other arrays.
    pub fn reach_out(&mut self, extension: (i64, i64), fresh: bool, renewed: bool) -> bool {
        let mut wide = Array { extension, ..self.clone() };
        let none = Coverage::Around(0, 0);
        let window_of = |ranks, coverage| if fresh { Some(none) } else { self.seen_from(&wide, ranks, coverage) };
        let valid_runs = |ranks, coverage| self.seen_from(&wide, ranks, coverage).or(renewed.then_some(none));
        let (Some(window_runs), Some(valid_runs)) =
            (self.window_runs.mapped(window_of), self.valid_runs.mapped(valid_runs))
        else {
            return false;
        };
        (wide.window_runs, wide.valid_runs) = (window_runs, valid_runs);
        *self = wide;
        true
    }

    /// Reverts [`Array::reach_out`].
    pub fn draw_back(&mut self) {
        let mut own = Array { extension: (0, 0), ..self.clone() };
        let seen = |ranks, coverage| self.seen_from(&own, ranks, coverage);
        let window_runs = self.window_runs.mapped(|ranks, coverage| seen(ranks, coverage).or(Some(coverage)));
        let valid_runs =
            self.valid_runs.mapped(|ranks, coverage| seen(ranks, coverage).or(Some(Coverage::Around(0, 0))));
        if let (Some(window_runs), Some(valid_runs)) = (window_runs, valid_runs) {
            (own.window_runs, own.valid_runs) = (window_runs, valid_runs);
            *self = own;
        }
    }

    /// The coverage of some ranks expressed for an array with another extension; `None` if it is less than those ranks
    /// compute there.
    fn seen_from(&self, other: &Array, ranks: Range<usize>, coverage: Coverage) -> Option<Coverage> {
        if ranks.len() == 1 {
            let (rank, span) = (ranks.start, self.span(ranks.start, coverage));
            let reach = other.reach(rank);
            return (reach.is_empty() || span.contains(reach)).then(|| other.around(rank, span));
        }
        let margin = self.margin();
        let (up, down) = match coverage {
            Coverage::Around(up, down) => (up, down),
            Coverage::WithMargin
                if !self.small && !self.temporary && self.cuts.least_rows() * self.cuts.step() >= 4 * margin =>
            {
                (margin, margin)
            }
            Coverage::Exactly(span) if ranks.clone().all(|rank| span.contains(other.reach(rank))) => {
                return Some(coverage);
            }
            _ => return None,
        };
        let (up, down) = (up + self.extension.0 - other.extension.0, down + self.extension.1 - other.extension.1);
        (up >= 0 && down >= 0).then_some(Coverage::Around(up, down))
    }

    /// Records that owners changed elements of this span: copies of them on other ranks become invalid.
    pub fn changed(&mut self, span: Span) {
        if let Some(layout) = &mut self.layout {
            layout.halo.fill([0, 0]);
            layout.corners = false;
            return;
        }
        let runs: Vec<(Range<usize>, Coverage)> = self.valid_runs.within(0..self.cuts.ranks()).collect();
        for (ranks, coverage) in runs {
            match coverage {
                Coverage::Around(0, 0) => {}
                Coverage::Around(up, down) => self.trim(ranks, (up, down), span),
                Coverage::Exactly(valid) if valid.meet(span).is_empty() => {}
                _ => self.valid_runs.set(ranks, Coverage::Around(0, 0)),
            }
        }
    }

    /// The same for ranks with this many valid elements around their own. If the span contains or misses the borders of
    /// all of them, one step does all.
    fn trim(&mut self, ranks: Range<usize>, (up, down): (i64, i64), span: Span) {
        let (first, last) = (self.reach(ranks.start), self.reach(ranks.end - 1));
        if ranks.len() == 1 {
            let mut valid = self.valid(ranks.start);
            if !Span::new(valid.low, first.low).meet(span).is_empty() {
                valid.low = valid.low.max(span.high.min(first.low));
            }
            if !Span::new(first.high, valid.high).meet(span).is_empty() {
                valid.high = valid.high.min(span.low.max(first.high));
            }
            return self.set_valid(ranks.start, valid);
        }
        let left = |borders: Span, width: i64| match borders.meet(self.all()) {
            _ if width == 0 => Some(0),
            borders if span.contains(borders) => Some(0),
            borders if span.meet(borders).is_empty() => Some(width),
            _ => None,
        };
        let above = left(Span::new(first.low - up, last.low), up);
        let below = left(Span::new(first.high, last.high + down), down);
        if let (Some(above), Some(below)) = (above, below) {
            return self.valid_runs.set(ranks, Coverage::Around(above, below));
        }
        let middle = ranks.start + ranks.len() / 2;
        self.trim(ranks.start..middle, (up, down), span);
        self.trim(middle..ranks.end, (up, down), span);
    }
}
