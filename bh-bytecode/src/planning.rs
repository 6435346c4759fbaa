//! How much planning a batch is worth: the one place that decides it, for every component that plans.
//!
//! Planning is an investment: it may cost a share of what running the batch is estimated to cost, and more when the structure of
//! the batch came before, as it is likely to come again. Levels follow from counts and estimates, never from clocks, so that
//! a program is planned alike in every run. They never change results.

use crate::batch::{BatchHeader, BatchRef};

/// How much planning a batch gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// One pass in program order, and no search.
    Linear,
    /// Everything there is.
    Full,
}

/// Elements that an operation goes through on average from which on full planning pays at once: about ten times of what it
/// costs.
const ELEMENTS: u64 = 1 << 14;
/// Each time that the structure came before, so many times fewer elements are enough.
const HOTTER: u32 = 2;
/// A structure that came so often is planned in full whatever it does.
const HOT: u32 = 3;

/// What a batch does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Operations, data management aside.
    pub operations: u64,
    /// Elements that these go through.
    pub elements: u64,
}

impl Work {
    /// The work of a batch.
    pub fn of(batch: &BatchRef<'_>) -> Work {
        let mut work = Work::default();
        for instr in batch.instrs.iter().filter(|instr| !instr.opcode.is_system()) {
            let views = instr.operands().iter().filter_map(|operand| operand.as_view());
            let elements = views.map(|view| batch.views[view as usize].len).max().unwrap_or(0);
            work.operations += 1;
            work.elements = work.elements.saturating_add(elements as u64);
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
pub const PLANNING: [(&str, Planning); 3] =
    [("auto", Planning::Auto), ("linear", Planning::Always(Level::Linear)), ("full", Planning::Always(Level::Full))];

/// The value with this name.
pub fn by_name(name: &str) -> Option<Planning> {
    PLANNING.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
}

impl Planning {
    /// The level for a batch whose structure came `seen` times before.
    pub fn level(self, work: Work, seen: u32) -> Level {
        match self {
            Planning::Always(level) => level,
            Planning::Auto if seen >= HOT => Level::Full,
            Planning::Auto => {
                let weight = work.elements.saturating_mul(1 << (HOTTER * seen));
                if weight >= work.operations.saturating_mul(ELEMENTS) { Level::Full } else { Level::Linear }
            }
        }
    }
}

impl Planning {
    /// The level for a batch with this header: what the header asks for, unless a level is forced. Of the times that its
    /// structure came before, by the header and as the component knows, the larger number counts.
    pub fn level_of(self, header: &BatchHeader, work: Work, seen: u32) -> Level {
        match (self, header.level) {
            (Planning::Auto, 1) => Level::Linear,
            (Planning::Auto, 2..) => Level::Full,
            _ => self.level(work, seen.max(header.seen)),
        }
    }
}

impl Level {
    /// The number that asks for the level in the header of a batch.
    pub fn code(self) -> u32 {
        match self {
            Level::Linear => 1,
            Level::Full => 2,
        }
    }

    /// The level's name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Linear => "linear",
            Level::Full => "full",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_rise_with_work_and_with_repetition() {
        let level = |elements: u64, seen| Planning::Auto.level(Work { operations: 10, elements: 10 * elements }, seen);
        assert_eq!(level(100, 0), Level::Linear);
        assert_eq!(level(1 << 20, 0), Level::Full);
        assert_eq!((level(5000, 0), level(5000, 1)), (Level::Linear, Level::Full));
        assert_eq!((level(1, 2), level(1, 3), level(1, u32::MAX)), (Level::Linear, Level::Full, Level::Full));
        assert_eq!(Planning::Always(Level::Linear).level(Work { operations: 1, elements: 1 << 40 }, 9), Level::Linear);
        assert_eq!(Planning::Auto.level(Work::default(), 0), Level::Full);
        let small = Work { operations: 10, elements: 10 };
        let level = |planning: Planning, level, seen| {
            planning.level_of(&BatchHeader { level, seen, ..BatchHeader::default() }, small, 0)
        };
        assert_eq!((level(Planning::Auto, 0, 0), level(Planning::Auto, 0, 3)), (Level::Linear, Level::Full));
        assert_eq!((level(Planning::Auto, 1, 9), level(Planning::Auto, 2, 0)), (Level::Linear, Level::Full));
        assert_eq!(level(Planning::Always(Level::Linear), 2, 9), Level::Linear);
    }
}
