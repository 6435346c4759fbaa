//! What the current rows have.

use super::{Parameters, Uniform};
use crate::builder::Value;
use crate::division::InvariantDivisor;
use std::collections::HashMap;

/// Rows that are done side by side, and what they have.
pub(crate) struct Rows<'c> {
    pub(crate) count: u16,
    /// The number of the first one.
    pub(crate) number: Value<'c>,
    /// Where slots are, in rows counted from the first one.
    pub(crate) positions: HashMap<(usize, i64), Value<'c>>,
    /// Where each fold has the lanes or elements of each row.
    pub(crate) accumulators: Vec<Vec<Value<'c>>>,
    /// What slots have that stay the same along a row, for each row.
    pub(crate) invariants: HashMap<(u16, u16), Uniform<'c>>,
    /// What is made of these where they divide.
    pub(crate) divisors: Vec<InvariantDivisor<'c>>,
    /// What is fetched when the rows end.
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

    /// What a slot that stays the same along each row has in a row.
    pub(crate) fn invariant(&self, slot: u16, width: u16, row: u16) -> Value<'c> {
        self.invariants[&(slot, row)].of_width(width)
    }
}

/// For a slot of which the next rows are fetched: the element from which on they are, how far ahead of what is read the
/// row itself is fetched until then, and how far from it the next rows are.
#[derive(Clone, Copy)]
pub(crate) struct Ahead<'c> {
    pub(crate) slot: usize,
    pub(crate) turn: Value<'c>,
    pub(crate) along: Value<'c>,
    pub(crate) next: Value<'c>,
}
