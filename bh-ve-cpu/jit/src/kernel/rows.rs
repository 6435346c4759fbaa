//! The values of the current rows.

use super::{Parameters, Uniform};
use crate::builder::Value;
use crate::division::InvariantDivisor;
use std::collections::HashMap;

/// Rows that are computed side by side, and their values.
pub(crate) struct Rows<'c> {
    pub(crate) count: u16,
    /// The number of the first one.
    pub(crate) number: Value<'c>,
    /// Where slots are, in rows counted from the first one.
    pub(crate) positions: HashMap<(usize, i64), Value<'c>>,
    /// Where each fold has the lanes or elements of each row.
    pub(crate) accumulators: Vec<Vec<Value<'c>>>,
    /// The values of slots that are constant along a row, for each row.
    pub(crate) invariants: HashMap<(u16, u16), Uniform<'c>>,
    /// The prepared forms of those that divide.
    pub(crate) divisors: Vec<InvariantDivisor<'c>>,
    /// The memory that is fetched when the rows end.
    pub(crate) ahead: Vec<Ahead<'c>>,
}

impl<'c> Rows<'c> {
    /// No rows.
    pub(crate) fn new(parameters: &Parameters<'c>) -> Rows<'c> {
        Rows {
            count: 1,
            number: parameters.rows,
            positions: HashMap::new(),
            accumulators: Vec::new(),
            invariants: HashMap::new(),
            divisors: Vec::new(),
            ahead: Vec::new(),
        }
    }

    /// Where a slot is in a row, counted from the first of those that are done side by side.
    pub(crate) fn position(&self, slot: usize, row: i64) -> Value<'c> {
        self.positions[&(slot, row)]
    }

    /// Where a fold has its lanes or elements of a row.
    pub(crate) fn accumulator(&self, fold: usize, row: u16) -> Value<'c> {
        self.accumulators[fold][usize::from(row)]
    }

    /// The value, in a row, of a slot that is constant along each row.
    pub(crate) fn invariant(&self, slot: u16, width: u16, row: u16) -> Value<'c> {
        self.invariants[&(slot, row)].of_width(width)
    }
}

/// A slot of which the next rows are fetched: the element from which on they are, the distance by which the row itself is fetched
/// ahead until then, and the distance of the next rows.
#[derive(Clone, Copy)]
pub(crate) struct Ahead<'c> {
    pub(crate) slot: usize,
    pub(crate) turn: Value<'c>,
    pub(crate) along: Value<'c>,
    pub(crate) next: Value<'c>,
}
