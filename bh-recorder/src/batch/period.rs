//! Finds the period of a program's loop from the structure of the instructions as they are recorded, so that batches
//! can be cut where they repeat, and where in a turn the least would go through memory from one batch to the next.

use crate::array::small_view::mix;

/// Places of the table of last positions; a power of two.
const PLACES: usize = 1024;
/// How many hashes are remembered.
const RING: u64 = 4096;
/// This many repeated instructions in a row are taken for the beginning of a turn.
const LIKELY: u64 = 16;

/// Watches the stream of structural hashes. Positions count from the start of the program.
pub(crate) struct Period {
    /// Ring of the last hashes.
    ring: Vec<u64>,
    /// For each hash value (by its low bits) the last position where it occurred, plus one.
    last: Vec<u64>,
    position: u64,
    /// Loops of more instructions than this are not looked for.
    longest: u64,
    period: u64,
    /// How many instructions in a row equalled the one `period` before.
    run: u64,
    /// Where the first repetition of this period began, minus `period`: the head of the loop.
    head: u64,
    /// Arrays that are dropped some time after their last use count as dropped behind it.
    lazy: bool,
    /// Ring of the bytes of arrays that exist behind each instruction; the most where no turn can end.
    lives: Vec<i64>,
    /// Ring of the bytes of arrays that exist but are not used any more, as differences.
    unused: Vec<i64>,
    /// Facts about instructions before this position are complete.
    complete: u64,
    /// The bytes that are not used any more there.
    unused_there: i64,
    /// The fewest bytes of arrays that were in use in the turn so far, counted from the head, and behind which instruction.
    least: (i64, u64),
    /// Where turns are to end: where the last complete one had the fewest bytes in use.
    end: u64,
}

impl Period {
    pub(crate) fn new() -> Period {
        Period {
            ring: vec![0; RING as usize],
            last: vec![0; PLACES],
            position: 0,
            longest: RING,
            period: 0,
            run: 0,
            head: 0,
            lazy: false,
            lives: vec![0; RING as usize],
            unused: vec![0; RING as usize],
            complete: 0,
            unused_there: 0,
            least: (i64::MAX, 0),
            end: 0,
        }
    }

    /// Looks for loops of at most `instructions` instructions. Longer ones are of no use to the caller, and would hide the
    /// loop inside of a repeated part of the program. `lazy`: batches that end wait for arrays that the next iteration drops.
    pub(crate) fn set(&mut self, instructions: usize, lazy: bool) {
        (self.longest, self.lazy) = (RING.min(instructions as u64), lazy);
    }

    /// The position of the next instruction.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Takes the hash of the next instruction, and how many bytes of arrays exist behind it. `dropped`: the bytes that it drops,
    /// and the position of the instruction that was the last to use them.
    #[inline]
    pub(crate) fn push(&mut self, hash: u64, live: i64, dropped: Option<(u64, u64)>) {
        let at = self.position;
        let place = (mix(hash, 0) >> 32) as usize % PLACES;
        let repeats = self.period != 0 && self.ring[((at - self.period) % RING) as usize] == hash;
        if repeats {
            self.run += 1;
        } else {
            let before = self.last[place];
            self.period = match before.checked_sub(1) {
                Some(position) if at - position < self.longest && self.ring[(position % RING) as usize] == hash => {
                    at - position
                }
                _ => 0,
            };
            self.run = u64::from(self.period != 0);
            self.head = at - self.period;
            (self.least, self.end) = ((i64::MAX, 0), self.head);
        }
        let here = (at % RING) as usize;
        self.lives[here] = live;
        if self.lazy
            && let Some((used, bytes)) = dropped
        {
            // Turns end behind operations: what is dropped next ends with them.
            self.lives[here] = i64::MAX;
            let from = (used.clamp(self.complete, at) % RING) as usize;
            self.unused[from] = self.unused[from].saturating_add_unsigned(bytes);
            self.unused[here] = self.unused[here].saturating_sub_unsigned(bytes);
        }
        self.ring[here] = hash;
        self.last[place] = at + 1;
        self.position = at + 1;
        self.find_end();
    }

    /// Looks for the place where the fewest bytes are in use, so far behind that what a turn made was dropped by the next one.
    #[inline]
    fn find_end(&mut self) {
        let behind = if self.lazy { (self.period + self.period / 4 + LIKELY).min(RING - 1) } else { 0 };
        while self.complete + behind < self.position {
            let at = self.complete;
            let place = (at % RING) as usize;
            self.unused_there += std::mem::take(&mut self.unused[place]);
            self.complete = at + 1;
            if self.period == 0 || at < self.head {
                continue;
            }
            let live = self.lives[place];
            if live != i64::MAX && live - self.unused_there <= self.least.0 {
                self.least = (live - self.unused_there, at + 1);
            }
            if (at + 1 - self.head).is_multiple_of(self.period) && self.least.1 > 0 {
                self.end = self.least.1;
                self.least = (i64::MAX, 0);
            }
        }
    }

    /// The period, once a whole repetition of it has been seen.
    pub(crate) fn found(&self) -> Option<u64> {
        (self.period != 0 && self.run >= self.period).then_some(self.period)
    }

    /// How many instructions in a row have repeated those a period before.
    pub(crate) fn repeated(&self) -> u64 {
        self.run
    }

    /// May a period be found soon? Many instructions in a row have repeated earlier ones.
    pub(crate) fn is_likely(&self) -> bool {
        self.period != 0 && self.run >= LIKELY
    }

    /// Has the instruction taken last completed a turn of the loop?
    pub(crate) fn at_boundary(&self) -> bool {
        self.found().is_some_and(|period| (self.position - self.end).is_multiple_of(period))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boundaries(stream: &[u64]) -> Vec<usize> {
        let mut period = Period::new();
        let push = |(index, &hash): (usize, &u64)| {
            period.push(hash, 0, None);
            period.at_boundary().then_some(index + 1)
        };
        stream.iter().enumerate().filter_map(push).collect()
    }

    #[test]
    fn finds_the_loop_after_a_prologue() {
        let mut stream = vec![100, 101, 102];
        for _ in 0..5 {
            stream.extend([1, 2, 3, 4]);
        }
        assert_eq!(boundaries(&stream), [11, 15, 19, 23]);
    }

    #[test]
    fn a_repeated_instruction_inside_the_body_settles_on_the_whole_body() {
        let mut stream = Vec::new();
        for _ in 0..6 {
            stream.extend([1, 2, 2, 3]);
        }
        let found = boundaries(&stream);
        let tail: Vec<usize> = found.iter().copied().filter(|&at| at > 12).collect();
        assert!(tail.windows(2).all(|pair| pair[1] - pair[0] == 4) && tail.len() >= 2, "{found:?}");
    }

    #[test]
    fn a_second_turn_that_has_begun_makes_a_period_likely() {
        let mut period = Period::new();
        (0..100).for_each(|hash| period.push(hash, 0, None));
        assert!(!period.is_likely());
        (0..LIKELY).for_each(|hash| period.push(hash, 0, None));
        assert!(period.is_likely() && period.found().is_none());
        period.push(1000, 0, None);
        assert!(!period.is_likely());
    }

    #[test]
    fn a_loop_in_a_repeated_program_is_found() {
        let program = (100..103).chain((0..12).flat_map(|_| 0..50));
        let stream: Vec<u64> = program.clone().chain(program).collect();
        let second = |longest: usize| {
            let mut period = Period::new();
            period.set(longest, false);
            let push = |(index, &hash): (usize, &u64)| {
                period.push(hash, 0, None);
                (period.at_boundary() && index >= 603).then_some(index + 1)
            };
            stream.iter().enumerate().filter_map(push).collect::<Vec<usize>>()
        };
        let turns: Vec<usize> = (2..=12).map(|turn| 606 + 50 * turn).collect();
        assert_eq!(second(100), turns);
        assert_eq!(second(1000), [1206]);
    }

    #[test]
    fn turns_end_where_the_least_is_in_use() {
        // The first instructions of a turn are alike, so that the loop is first seen at the fourth, where arrays are in use.
        let turn = [(1, 10), (1, 20), (1, 30), (2, 30), (3, 20), (4, 0), (5, 5), (6, 5)];
        let mut period = Period::new();
        let push = |(index, &(hash, live)): (usize, &(u64, i64))| {
            period.push(hash, 100 + live, None);
            period.at_boundary().then_some(index + 1)
        };
        let found: Vec<usize> = [turn; 6].as_flattened().iter().enumerate().filter_map(push).collect();
        // Before the loop is seen, its three equal instructions are one.
        assert_eq!(found, [2, 3, 10, 11, 22, 30, 38, 46]);
    }

    #[test]
    fn turns_end_where_the_least_is_used_again() {
        // Two results of a turn live until the next one has made them anew: there are as many at any time.
        let mut period = Period::new();
        period.set(100, true);
        let mut found = Vec::new();
        let mut made: [Option<u64>; 2] = [None; 2];
        for _ in 0..12 {
            for (name, last) in (0..).zip(&made) {
                period.push(10 + name, 30, None);
                found.extend(period.at_boundary().then(|| period.position()));
                if let Some(used) = *last {
                    period.push(20 + name, 20, Some((used, 10)));
                }
            }
            let update = period.position();
            made = [Some(update); 2];
            period.push(30, 20, None);
            found.extend(period.at_boundary().then(|| period.position()));
        }
        let turns: Vec<u64> = found.iter().copied().filter(|at| *at > 30).collect();
        assert_eq!(turns, [33, 38, 43, 48, 53, 58]);
    }

    #[test]
    fn straight_code_has_no_period() {
        assert!(boundaries(&(0..500).collect::<Vec<u64>>()).is_empty());
    }
}
