//! What ranks have of an array, in runs of ranks that have the same beside what they compute: as many on thousands of ranks as
//! on four.

use crate::plan::boxes::Span;
use std::ops::Range;

/// Elements of an array that a rank has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Has {
    /// What it computes, and this many elements before and behind that, as far as there are.
    Around(i64, i64),
    /// What it computes, with the room that neighbours are likely to ask for.
    Roomy,
    /// These.
    Only(Span),
}

impl Has {
    /// Appends it to a description.
    fn describe(self, words: &mut Vec<u64>) {
        let (kind, low, high) = match self {
            Has::Around(up, down) => (0, up, down),
            Has::Roomy => (1, 0, 0),
            Has::Only(span) => (2, span.low, span.high),
        };
        words.extend([kind, low as u64, high as u64]);
    }
}

/// Ranks of a run that are no more work than one.
const FEW: usize = 16;

/// What the ranks have: the first rank of each run, in order, beginning with 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    ranks: usize,
    runs: Vec<(usize, Has)>,
}

impl Runs {
    /// All of this many ranks have the same.
    pub fn new(ranks: usize, has: Has) -> Runs {
        Runs { ranks, runs: vec![(0, has)] }
    }

    fn place(&self, rank: usize) -> usize {
        self.runs.partition_point(|(first, _)| *first <= rank) - 1
    }

    /// The rank behind a run.
    fn end(&self, place: usize) -> usize {
        self.runs.get(place + 1).map_or(self.ranks, |(next, _)| *next)
    }

    /// What a rank has.
    pub fn get(&self, rank: usize) -> Has {
        self.runs[self.place(rank)].1
    }

    /// The runs that some ranks are in, cut to them.
    pub fn within(&self, ranks: Range<usize>) -> impl Iterator<Item = (Range<usize>, Has)> + '_ {
        let cut = move |place: usize| {
            let (first, has) = self.runs[place];
            (first.max(ranks.start)..self.end(place).min(ranks.end), has)
        };
        let first = self.place(ranks.start);
        (first..self.runs.len()).map(cut).take_while(|(run, _)| !run.is_empty())
    }

    /// The run that a rank is in, cut to some ranks.
    pub fn around(&self, rank: usize, ranks: Range<usize>) -> Range<usize> {
        let place = self.place(rank);
        self.runs[place].0.max(ranks.start)..self.end(place).min(ranks.end)
    }

    /// Lets some ranks have this.
    pub fn set(&mut self, ranks: Range<usize>, has: Has) {
        if ranks.is_empty() {
            return;
        }
        let (first, last) = (self.place(ranks.start), self.place(ranks.end - 1));
        // The runs beside may become one with the new one.
        let (from, to) = (first.saturating_sub(1), (last + 2).min(self.runs.len()));
        let mut all: Vec<(usize, Has)> = Vec::with_capacity(5);
        all.extend((from < first).then(|| self.runs[from]));
        all.extend((self.runs[first].0 < ranks.start).then(|| self.runs[first]));
        all.push((ranks.start, has));
        all.extend((ranks.end < self.end(last)).then(|| (ranks.end, self.runs[last].1)));
        all.extend((last + 1 < to).then(|| self.runs[last + 1]));
        all.dedup_by_key(|(_, has)| *has);
        self.runs.splice(from..to, all);
    }

    /// What a function makes of what each run has; `None` if it does of one of them.
    pub fn mapped(&self, one: impl Fn(Range<usize>, Has) -> Option<Has>) -> Option<Runs> {
        let mut all = Runs::new(self.ranks, Has::Around(0, 0));
        for (ranks, has) in self.within(0..self.ranks) {
            // Those at the ends of an array are seen one by one where that is little work.
            let each = if ranks.len() <= FEW { 1 } else { ranks.len() };
            for first in ranks.clone().step_by(each) {
                let some = first..first + each;
                all.set(some.clone(), one(some, has)?);
            }
        }
        Some(all)
    }

    /// Appends them to a description.
    pub fn describe(&self, words: &mut Vec<u64>) {
        words.push(self.runs.len() as u64);
        for (first, has) in &self.runs {
            words.push(*first as u64);
            has.describe(words);
        }
    }

    /// About what they take in memory.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.runs[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_as_few_as_they_can_be() {
        let mut runs = Runs::new(12, Has::Roomy);
        let mut list = [Has::Roomy; 12];
        let kinds = [Has::Roomy, Has::Around(1, 0), Has::Only(Span::new(2, 5))];
        for turn in 0usize..400 {
            let from = turn * 7 % 12;
            let to = (from + 1 + turn * 5 % 6).min(12);
            let has = kinds[turn * turn / 3 % 3];
            runs.set(from..to, has);
            list[from..to].fill(has);
            let least = 1 + list.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let found: Vec<Has> = (0..12).map(|rank| runs.get(rank)).collect();
            assert_eq!(found, list);
            assert_eq!(runs.within(0..12).count(), least, "{runs:?}");
            for (run, has) in runs.within(from..12) {
                assert!(list[run].iter().all(|other| *other == has));
            }
        }
    }
}
