//! How much planning a batch is worth: the one place that decides it, for every component that plans.
//!
//! Planning is an investment: it may cost what it would have saved if it had been made at once, by an estimate that grows with
//! the work of a batch and with each time that its structure comes: one rents until the rent would have paid for buying.
//! Levels follow from counts and estimates, never from clocks, so that a program is planned alike in every run. They never
//! change results.

use crate::batch::{BatchHeader, BatchRef};

/// How much planning a batch gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing: operations run one by one as they are recorded, where the engine can do that.
    Direct,
    /// One pass in program order, and no search.
    Linear,
    /// Everything there is.
    Full,
}

/// Nanoseconds that planning an operation in full takes, all stages together, about (`bench planning`).
const COST: u64 = 8_000;
/// Nanoseconds that an operation of a planned batch saves over one that runs by itself: the way to it, and what fused
/// operations neither store nor load, for each element.
const SAVED: u64 = 500;
const SAVED_ELEMENTS: u64 = 2;
/// Elements of the largest operation up to which a batch is not planned at all before it is planned in full: about as many as
/// are computed in the time that planning an operation takes.
pub const LITTLE: u64 = 8 << 10;

/// The work of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Operations, data management aside.
    pub operations: u64,
    /// Elements that these go through.
    pub elements: u64,
    /// Elements that the largest of them goes through.
    pub largest: u64,
}

impl Work {
    /// Adds an operation on `elements` elements.
    pub fn add(&mut self, elements: u64) {
        self.operations += 1;
        self.elements = self.elements.saturating_add(elements);
        self.largest = self.largest.max(elements);
    }

    /// The work of a batch.
    pub fn of(batch: &BatchRef<'_>) -> Work {
        let mut work = Work::default();
        for instr in batch.instrs.iter().filter(|instr| !instr.opcode.is_system()) {
            let views = instr.operands().iter().filter_map(|operand| operand.as_view());
            let elements = views.map(|view| batch.views[view as usize].len).max().unwrap_or(0);
            work.add(elements as u64);
        }
        work
    }
}

/// How levels are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planning {
    /// By what a batch does and how often its structure came before.
    Auto,
    /// The same for all batches.
    Always(Level),
}

/// Names and values of [`Planning`], for configurations.
pub const PLANNING: [(&str, Planning); 4] = [
    ("auto", Planning::Auto),
    ("direct", Planning::Always(Level::Direct)),
    ("linear", Planning::Always(Level::Linear)),
    ("full", Planning::Always(Level::Full)),
];

/// The value with this name.
pub fn by_name(name: &str) -> Option<Planning> {
    PLANNING.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
}

impl Planning {
    /// The level for a batch whose structure came `seen` times before.
    pub fn level(self, work: Work, seen: u32) -> Level {
        match self {
            Planning::Always(level) => level,
            Planning::Auto => {
                // A plan may cost the time that the runs so far, this one among them, would have saved: whether the batch
                // never repeats or repeats for ever, no choice made beforehand takes less than half of the time.
                let saved = work.operations.saturating_mul(SAVED).saturating_add(work.elements / SAVED_ELEMENTS);
                let runs = u64::from(seen).saturating_add(1);
                match runs.saturating_mul(saved) >= work.operations.saturating_mul(COST) {
                    true => Level::Full,
                    false if work.largest <= LITTLE => Level::Direct,
                    false => Level::Linear,
                }
            }
        }
    }
}

impl Planning {
    /// The level for a batch with this header: what the header asks for, unless a level is forced. Of the times that its
    /// structure came before, by the header and as the component knows, the larger number counts.
    pub fn level_of(self, header: &BatchHeader, work: Work, seen: u32) -> Level {
        match (self, header.level) {
            (Planning::Auto, 1) => Level::Direct,
            (Planning::Auto, 2) => Level::Linear,
            (Planning::Auto, 3..) => Level::Full,
            _ => self.level(work, seen.max(header.seen)),
        }
    }
}

impl Level {
    /// The number that asks for the level in the header of a batch.
    pub fn code(self) -> u32 {
        match self {
            Level::Direct => 1,
            Level::Linear => 2,
            Level::Full => 3,
        }
    }

    /// The level's name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Direct => "direct",
            Level::Linear => "linear",
            Level::Full => "full",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(elements: u64, seen: u32) -> Level {
        Planning::Auto.level(Work { operations: 10, elements: 10 * elements, largest: elements }, seen)
    }

    #[test]
    fn levels_rise_with_work_and_with_repetition() {
        assert_eq!(
            (level(100, 0), level(LITTLE, 0), level(LITTLE + 1, 0)),
            (Level::Direct, Level::Direct, Level::Linear)
        );
        assert_eq!(level(1 << 20, 0), Level::Full);
        assert_eq!([0, 1, 2].map(|seen| level(5000, seen)), [Level::Direct, Level::Direct, Level::Full]);
        assert_eq!([0, 1, 14, 15, u32::MAX].map(|seen| level(1, seen).code()), [1, 1, 1, 3, 3]);
        assert_eq!([0, 1].map(|seen| level(LITTLE + 1, seen)), [Level::Linear, Level::Full]);
        let huge = Work { operations: 1, elements: 1 << 40, largest: 1 << 40 };
        assert_eq!(Planning::Always(Level::Linear).level(huge, 9), Level::Linear);
        assert_eq!(Planning::Auto.level(Work::default(), 0), Level::Full);
    }

    #[test]
    fn one_large_operation_among_many_is_planned() {
        let mut work = Work::default();
        (0..100).for_each(|_| work.add(1));
        assert_eq!(Planning::Auto.level(work, 0), Level::Direct);
        work.add(LITTLE + 1);
        assert_eq!(Planning::Auto.level(work, 0), Level::Linear);
    }

    #[test]
    fn headers_ask_for_levels() {
        let small = Work { operations: 10, elements: 10, largest: 1 };
        let level = |planning: Planning, level, seen| {
            planning.level_of(&BatchHeader { level, seen, ..BatchHeader::default() }, small, 0)
        };
        assert_eq!((level(Planning::Auto, 0, 0), level(Planning::Auto, 0, 20)), (Level::Direct, Level::Full));
        for wanted in [Level::Direct, Level::Linear, Level::Full] {
            assert_eq!(level(Planning::Auto, wanted.code(), 9), wanted);
            assert_eq!(level(Planning::Always(Level::Linear), wanted.code(), 9), Level::Linear);
        }
    }
}
