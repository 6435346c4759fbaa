//! Where a program is cut into units that are taken back one at a time: between the iterations of its loops, which are found by
//! their structure, where the fewest bytes are alive.

use bh_bytecode::{BatchRef, Instr};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// So many operations in a row that repeat earlier ones are taken for a loop, or a whole iteration if that is longer.
const LIKELY: usize = 8;
/// Iterations of more operations are not looked for.
const LONGEST: usize = 1 << 14;
/// Outside of loops a unit has this many operations, and up to as many again to find a better place.
const WINDOW: usize = 32;

/// Finds the cuts of a program, batch after batch.
pub(crate) struct Units {
    /// Hashes of all operations so far, apart from the bases that they use.
    likes: Vec<u64>,
    last: HashMap<u64, usize>,
    /// The operations repeat those this far before, and since when.
    period: usize,
    begin: usize,
    /// Where an iteration of the present loop was cut.
    phase: Option<usize>,
    /// The last cut.
    cut: usize,
    window: usize,
}

impl Default for Units {
    fn default() -> Units {
        Units::of(WINDOW)
    }
}

/// A hash of an operation, apart from the bases that it uses.
pub(crate) fn likeness(tables: &BatchRef<'_>, instr: &Instr) -> u64 {
    let mut hasher = DefaultHasher::new();
    (instr.opcode.0, instr.param, instr.order).hash(&mut hasher);
    for operand in instr.operands() {
        tables.dtype(*operand).map(|dtype| dtype as u16).hash(&mut hasher);
        if let Some(view) = operand.as_view() {
            (tables.views[view as usize].start, tables.shape(view), tables.stride(view)).hash(&mut hasher);
        }
    }
    hasher.finish()
}

impl Units {
    /// `window`: the fewest operations of a unit outside of loops.
    pub(crate) fn of(window: usize) -> Units {
        let likes = Vec::new();
        Units { likes, last: HashMap::new(), period: 0, begin: 0, phase: None, cut: 0, window }
    }

    /// The cuts in a batch, as the numbers of the operations behind them. `likes`: what its operations are like; `live`: the bytes that
    /// are alive before each of them and behind the last.
    pub(crate) fn find(&mut self, likes: &[u64], live: &[u64]) -> Vec<usize> {
        let first = self.likes.len();
        let mut cuts = Vec::new();
        let mut done = first;
        for &like in likes {
            let at = self.likes.len();
            if self.period == 0 || self.likes[at - self.period] != like {
                if let Some(loops) = self.found(at) {
                    self.cut_loop(loops, (first, live), &mut done, &mut cuts);
                }
                let before = self.last.get(&like).copied().filter(|before| at - before <= LONGEST);
                self.period = before.map_or(0, |before| at - before);
                (self.begin, self.phase) = (at, None);
            }
            self.last.insert(like, at);
            self.likes.push(like);
        }
        let end = self.likes.len();
        if let Some(loops) = self.found(end) {
            self.cut_loop(loops, (first, live), &mut done, &mut cuts);
        }
        self.cut_evenly(done..end, (first, live), &mut cuts);
        cuts.into_iter().map(|cut| cut - first).collect()
    }

    /// A cut where the program asks for one, behind all operations so far. Is it a new one?
    pub(crate) fn cut_here(&mut self) -> bool {
        let here = self.likes.len();
        let is_new = self.cut < here;
        (self.cut, self.period, self.phase) = (here, 0, None);
        is_new
    }

    /// The loop up to an operation, if there is one.
    fn found(&self, end: usize) -> Option<Range<usize>> {
        (self.period > 0 && end - self.begin >= self.period.max(LIKELY)).then(|| self.begin - self.period..end)
    }

    /// Cuts the part of a loop that is in the batch, which begins at `first`. `done`: up to where the batch is cut.
    fn cut_loop(
        &mut self,
        loops: Range<usize>,
        (first, live): (usize, &[u64]),
        done: &mut usize,
        cuts: &mut Vec<usize>,
    ) {
        let (begin, period) = (loops.start.max(*done), self.period);
        let of = |at: usize| live[at - first];
        let phase = match self.phase {
            Some(phase) => phase,
            // Of the last iteration, as the first ones may still hold what came before.
            None => (loops.end.saturating_sub(period).max(begin)..loops.end).min_by_key(|&at| of(at)).unwrap_or(begin),
        };
        self.phase = Some(phase);
        let shift = (phase % period + period - begin % period) % period;
        let mut places = (begin + shift..=loops.end).step_by(period).filter(|&at| at < first + live.len()).peekable();
        if let Some(&place) = places.peek() {
            self.cut_evenly(*done..place, (first, live), cuts);
        }
        for place in places {
            self.push(place, cuts);
        }
        *done = loops.end;
    }

    /// Cuts straight code.
    fn cut_evenly(&mut self, part: Range<usize>, (first, live): (usize, &[u64]), cuts: &mut Vec<usize>) {
        for at in part {
            if at + 1 >= self.cut + 2 * self.window {
                let from = (self.cut + self.window).max(first);
                let place = (from..=at).min_by_key(|&place| live[place - first]).unwrap_or(at);
                self.push(place, cuts);
            }
        }
    }

    fn push(&mut self, place: usize, cuts: &mut Vec<usize>) {
        if place > self.cut {
            self.cut = place;
            cuts.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cuts of a program in batches, whose operations are given with the bytes that are alive before them.
    fn cuts(batches: &[Vec<(u64, u64)>]) -> Vec<usize> {
        let mut units = Units::default();
        let mut first = 0;
        let mut all = Vec::new();
        for batch in batches {
            let likes: Vec<u64> = batch.iter().map(|&(like, _)| like).collect();
            let live: Vec<u64> = batch.iter().map(|&(_, live)| live).chain([30]).collect();
            all.extend(units.find(&likes, &live).into_iter().map(|cut| cut + first));
            first += batch.len();
        }
        all
    }

    #[test]
    fn loops_are_cut_where_the_least_is_alive() {
        let turn = [(1, 20), (2, 30), (3, 10), (4, 20), (5, 30)];
        let program: Vec<(u64, u64)> = [(9, 5), (8, 5)].into_iter().chain([turn; 6].into_iter().flatten()).collect();
        let whole = cuts(std::slice::from_ref(&program));
        assert_eq!(whole, [4, 9, 14, 19, 24, 29]);
        // Wherever batches end.
        assert_eq!(cuts(&[program[..17].to_vec(), program[17..].to_vec()]), whole);
    }

    #[test]
    fn straight_code_is_cut_into_pieces() {
        let program: Vec<(u64, u64)> = (0..200).map(|at| (1000 + at, 100 - at % 40)).collect();
        let found = cuts(&[program]);
        assert!(found.windows(2).all(|pair| (WINDOW..=2 * WINDOW).contains(&(pair[1] - pair[0]))), "{found:?}");
    }
}
