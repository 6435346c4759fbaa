//! A distributed multiway search: finds the keys at given positions of a sorted sequence by counting elements up to
//! probe keys. Each round divides the remaining intervals by PARTS.

use crate::run::keys::Keys;

/// Parts of each interval that a round distinguishes.
const PARTS: u64 = 16;

/// The wanted positions, and for each the interval of keys that are still possible.
pub struct Search {
    wanted: Vec<i64>,
    between: Vec<(u64, u64)>,
}

impl Search {
    /// A search with full intervals.
    pub fn new(wanted: Vec<i64>, keys: Keys) -> Search {
        Search { between: vec![(0, keys.highest()); wanted.len()], wanted }
    }

    /// A search for keys that lie between these.
    pub fn between(wanted: Vec<i64>, between: Vec<(u64, u64)>) -> Search {
        Search { wanted, between }
    }

    /// The keys to count elements up to; none at the end of the search.
    pub fn probes(&self) -> Vec<u64> {
        if self.between.iter().all(|(low, high)| low == high) {
            return Vec::new();
        }
        let ask = |(low, high): (u64, u64), part: u64| {
            low + (u128::from(high - low) * u128::from(part) / u128::from(PARTS)) as u64
        };
        self.between.iter().flat_map(|&between| (1..PARTS).map(move |part| ask(between, part))).collect()
    }

    /// Narrows the intervals with the counts for each probe.
    pub fn narrow(&mut self, asked: &[u64], counts: &[i64]) {
        let each = PARTS as usize - 1;
        let answers = asked.chunks(each).zip(counts.chunks(each));
        for ((between, wanted), (asked, counts)) in self.between.iter_mut().zip(&self.wanted).zip(answers) {
            let enough = counts.partition_point(|count| count <= wanted);
            let high = asked.get(enough).map_or(between.1, |number| *number);
            let low = if enough == 0 { between.0 } else { asked[enough - 1].saturating_add(1).max(between.0) };
            *between = (low.min(high), high);
        }
    }

    /// The keys at the wanted positions, after the search.
    pub fn found(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        self.between.iter().map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::DType;

    #[test]
    fn keys_at_positions_are_found() {
        for dtype in [DType::U8, DType::F32, DType::U64] {
            let keys = Keys { dtype, by_value: false };
            let highest = keys.highest();
            let line = [0, 0, 1, 5, 5, 5, 200, highest / 3 + 7, highest - 1, highest, highest];
            let mut line = line.map(|number| number.min(highest));
            line.sort_unstable();
            let mut search = Search::new((0..line.len() as i64).collect(), keys);
            let mut turns = 0;
            loop {
                let asked = search.probes();
                if asked.is_empty() {
                    break;
                }
                let counts: Vec<i64> =
                    asked.iter().map(|ask| line.iter().filter(|number| *number <= ask).count() as i64).collect();
                search.narrow(&asked, &counts);
                turns += 1;
            }
            assert_eq!(search.found().collect::<Vec<_>>(), line);
            assert!(turns <= 2 * dtype.size() + 1, "{turns} turns");
        }
    }
}
