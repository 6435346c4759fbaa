//! Coverage: the elements of an array that each rank has, relative to the elements that it computes. Run-length encoded
//! over ranks, so thousands of ranks take as many runs as four.

use crate::plan::boxes::Span;
use std::ops::Range;

/// The elements of an array that a rank has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// The elements that it computes, and this many before and behind, up to the array's ends.
    Around(i64, i64),
    /// The elements that it computes, with the margin for neighbours' rows.
    WithMargin,
    /// This span.
    Exactly(Span),
}

impl Coverage {
    /// Appends it to a description.
    fn describe(self, words: &mut Vec<u64>) {
        let (kind, low, high) = match self {
            Coverage::Around(up, down) => (0, up, down),
            Coverage::WithMargin => (1, 0, 0),
            Coverage::Exactly(span) => (2, span.low, span.high),
        };
        words.extend([kind, low as u64, high as u64]);
    }
}

/// Up to this many ranks of a run are handled one by one.
const FEW: usize = 16;

/// The coverage of all ranks: the first rank of each run, in order, beginning with 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverageRuns {
    ranks: usize,
    runs: Vec<(usize, Coverage)>,
}

impl CoverageRuns {
    /// The same coverage on this many ranks.
    pub fn new(ranks: usize, coverage: Coverage) -> CoverageRuns {
        CoverageRuns { ranks, runs: vec![(0, coverage)] }
    }

    fn place(&self, rank: usize) -> usize {
        self.runs.partition_point(|(first, _)| *first <= rank) - 1
    }

    /// The rank behind a run.
    fn end(&self, place: usize) -> usize {
        self.runs.get(place + 1).map_or(self.ranks, |(next, _)| *next)
    }

    /// The coverage of a rank.
    pub fn get(&self, rank: usize) -> Coverage {
        self.runs[self.place(rank)].1
    }

    /// The runs that intersect some ranks, cut to these ranks.
    pub fn within(&self, ranks: Range<usize>) -> impl Iterator<Item = (Range<usize>, Coverage)> + '_ {
        let cut = move |place: usize| {
            let (first, coverage) = self.runs[place];
            (first.max(ranks.start)..self.end(place).min(ranks.end), coverage)
        };
        let first = self.place(ranks.start);
        (first..self.runs.len()).map(cut).take_while(|(run, _)| !run.is_empty())
    }

    /// The run that contains a rank, cut to some ranks.
    pub fn around(&self, rank: usize, ranks: Range<usize>) -> Range<usize> {
        let place = self.place(rank);
        self.runs[place].0.max(ranks.start)..self.end(place).min(ranks.end)
    }

    /// Sets the coverage of some ranks.
    pub fn set(&mut self, ranks: Range<usize>, coverage: Coverage) {
        if ranks.is_empty() {
            return;
        }
        let (first, last) = (self.place(ranks.start), self.place(ranks.end - 1));
        // Adjacent runs may merge with the new one.
        let (from, to) = (first.saturating_sub(1), (last + 2).min(self.runs.len()));
        let mut all: Vec<(usize, Coverage)> = Vec::with_capacity(5);
        all.extend((from < first).then(|| self.runs[from]));
        all.extend((self.runs[first].0 < ranks.start).then(|| self.runs[first]));
        all.push((ranks.start, coverage));
        all.extend((ranks.end < self.end(last)).then(|| (ranks.end, self.runs[last].1)));
        all.extend((last + 1 < to).then(|| self.runs[last + 1]));
        all.dedup_by_key(|(_, coverage)| *coverage);
        self.runs.splice(from..to, all);
    }

    /// Maps each run; `None` if `one` returns it.
    pub fn mapped(&self, one: impl Fn(Range<usize>, Coverage) -> Option<Coverage>) -> Option<CoverageRuns> {
        let mut all = CoverageRuns::new(self.ranks, Coverage::Around(0, 0));
        for (ranks, coverage) in self.within(0..self.ranks) {
            // Ranks at the ends of an array may differ, so short runs are mapped rank by rank.
            let each = if ranks.len() <= FEW { 1 } else { ranks.len() };
            for first in ranks.clone().step_by(each) {
                let some = first..first + each;
                all.set(some.clone(), one(some, coverage)?);
            }
        }
        Some(all)
    }

    /// Appends the runs to a description.
    pub fn describe(&self, words: &mut Vec<u64>) {
        words.push(self.runs.len() as u64);
        for (first, coverage) in &self.runs {
            words.push(*first as u64);
            coverage.describe(words);
        }
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.runs[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_as_few_as_they_can_be() {
        let mut runs = CoverageRuns::new(12, Coverage::WithMargin);
        let mut list = [Coverage::WithMargin; 12];
        let kinds = [Coverage::WithMargin, Coverage::Around(1, 0), Coverage::Exactly(Span::new(2, 5))];
        for turn in 0usize..400 {
            let from = turn * 7 % 12;
            let to = (from + 1 + turn * 5 % 6).min(12);
            let coverage = kinds[turn * turn / 3 % 3];
            runs.set(from..to, coverage);
            list[from..to].fill(coverage);
            let least = 1 + list.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let found: Vec<Coverage> = (0..12).map(|rank| runs.get(rank)).collect();
            assert_eq!(found, list);
            assert_eq!(runs.within(0..12).count(), least, "{runs:?}");
            for (run, coverage) in runs.within(from..12) {
                assert!(list[run].iter().all(|other| *other == coverage));
            }
        }
    }
}
