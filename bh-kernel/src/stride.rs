//! The one classification of strides along a row, for block programs, compiled code and its cache.

use serde::{Deserialize, Serialize};

/// How a slot's elements lie along a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stride {
    /// Always the same element.
    Zero,
    /// Neighbours in memory.
    Unit,
    /// Anything else.
    Other,
    /// Every second element of memory, of a slot that is read; the elements between may be read as well.
    Two,
    /// Every third one, likewise.
    Three,
    /// Every fourth one, likewise.
    Four,
    /// Neighbours in memory, each read several times.
    Again,
    /// Some neighbours in memory, read again and again.
    Cycle,
}

impl Stride {
    /// That of elements which are `step` elements of memory apart.
    pub fn of(step: i64) -> Stride {
        match step {
            0 => Stride::Zero,
            1 => Stride::Unit,
            2 => Stride::Two,
            3 => Stride::Three,
            4 => Stride::Four,
            _ => Stride::Other,
        }
    }

    /// Elements of memory from one to the next, if that is a part of the code.
    pub fn step(self) -> Option<u16> {
        match self {
            Stride::Zero | Stride::Other | Stride::Again | Stride::Cycle => None,
            Stride::Unit => Some(1),
            Stride::Two => Some(2),
            Stride::Three => Some(3),
            Stride::Four => Some(4),
        }
    }

    /// Are elements of memory repeated?
    pub fn repeats(self) -> bool {
        matches!(self, Stride::Again | Stride::Cycle)
    }

    /// Are elements of memory left out, a few each time?
    pub fn is_sparse(self) -> bool {
        self.step() > Some(1)
    }
}
