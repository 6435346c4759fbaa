//! The lanes that are active at a point of a program, and their values there.

use crate::builder::Value;

/// Which lanes are at a point.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mask<'c> {
    /// All that the vector has.
    All,
    Some(Value<'c>),
    Nobody,
}

/// The state at a point.
#[derive(Clone)]
pub(super) struct State<'c> {
    pub(super) registers: Vec<Value<'c>>,
    pub(super) active: Mask<'c>,
    /// For each enclosing block, innermost last, the lanes that have left it.
    pub(super) exits: Vec<Exit<'c>>,
}

/// The lanes that have left a block.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Exit<'c> {
    /// All come back there that came to the block, so that nobody keeps count.
    Uncounted,
    Counted(Mask<'c>),
}
