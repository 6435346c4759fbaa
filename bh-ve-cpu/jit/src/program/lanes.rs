//! Which lanes are at a point of a program, and what they have there.

use crate::builder::Value;

/// Which lanes are at a point.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mask<'c> {
    /// All that the vector has.
    All,
    Some(Value<'c>),
    Nobody,
}

/// What is known at a point.
#[derive(Clone)]
pub(super) struct State<'c> {
    pub(super) registers: Vec<Value<'c>>,
    pub(super) active: Mask<'c>,
    /// For each block around, innermost last, who has left for what is behind it.
    pub(super) exits: Vec<Exit<'c>>,
}

/// Who has left a block.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Exit<'c> {
    /// All come back there that came to the block, so that nobody keeps count.
    Uncounted,
    Counted(Mask<'c>),
}
