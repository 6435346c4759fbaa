//! Finds the period of a program's loop from the structure of the instructions as they are recorded, so that batches
//! can be cut where they repeat, and where in a turn the least would go through memory from one batch to the next.

use crate::array::small_view::mix;

/// Places of the table of last positions; a power of two.
const PLACES: usize = 1024;
/// How many hashes are remembered.
const RING: u64 = 4096;
/// So many repeated instructions in a row are taken for the beginning of a turn.
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
    /// Instructions until the turn ends, counted from the head.
    left: u64,
    /// Where the first repetition of this period began, minus `period`: the head of the loop.
    head: u64,
    /// The fewest bytes of arrays that were in use in the turn so far, counted from the head, and behind which instruction.
    least: (i64, u64),
    /// Where turns are to end: where the last complete one had the fewest bytes in use, if that are fewer than at its end.
    end: u64,
}

impl Period {
    pub(crate) fn new() -> Period {
        let (ring, last) = (vec![0; RING as usize], vec![0; PLACES]);
        Period {
            ring,
            last,
            position: 0,
            longest: RING,
            period: 0,
            run: 0,
            left: 0,
            head: 0,
            least: (i64::MAX, 0),
            end: 0,
        }
    }

    /// Looks for loops of at most so many instructions. Longer ones are of no use to who asks, and would hide the loop inside
    /// of a repeated part of the program.
    pub(crate) fn set_longest(&mut self, instructions: usize) {
        self.longest = RING.min(instructions as u64);
    }

    /// Takes the hash of the next instruction, and how many bytes of arrays are in use behind it.
    #[inline]
    pub(crate) fn push(&mut self, hash: u64, live: i64) {
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
            self.left = self.period;
            self.head = at - self.period;
            (self.least, self.end) = ((i64::MAX, 0), self.head);
        }
        if live < self.least.0 {
            self.least = (live, at + 1);
        }
        if self.period != 0 {
            self.left -= 1;
            if self.left == 0 {
                self.end = if live <= self.least.0 { self.head } else { self.least.1 };
                (self.least.0, self.left) = (i64::MAX, self.period);
            }
        }
        self.ring[(at % RING) as usize] = hash;
        self.last[place] = at + 1;
        self.position = at + 1;
    }

    /// The period, once a whole repetition of it has been seen.
    pub(crate) fn found(&self) -> Option<u64> {
        (self.period != 0 && self.run >= self.period).then_some(self.period)
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
            period.push(hash, 0);
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
        (0..100).for_each(|hash| period.push(hash, 0));
        assert!(!period.is_likely());
        (0..LIKELY).for_each(|hash| period.push(hash, 0));
        assert!(period.is_likely() && period.found().is_none());
        period.push(1000, 0);
        assert!(!period.is_likely());
    }

    #[test]
    fn a_loop_in_a_repeated_program_is_found() {
        let program = (100..103).chain((0..12).flat_map(|_| 0..50));
        let stream: Vec<u64> = program.clone().chain(program).collect();
        let second = |longest: usize| {
            let mut period = Period::new();
            period.set_longest(longest);
            let push = |(index, &hash): (usize, &u64)| {
                period.push(hash, 0);
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
            period.push(hash, 100 + live);
            period.at_boundary().then_some(index + 1)
        };
        let found: Vec<usize> = [turn; 6].as_flattened().iter().enumerate().filter_map(push).collect();
        // Before the loop is seen, its three equal instructions are one.
        assert_eq!(found, [2, 3, 10, 11, 22, 30, 38, 46]);
    }

    #[test]
    fn straight_code_has_no_period() {
        assert!(boundaries(&(0..500).collect::<Vec<u64>>()).is_empty());
    }
}
