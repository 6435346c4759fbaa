//! How a stage's iterations are gone through: lines and blocks, the loops around them, and the units and chunks of its folds.
//! All of it comes from extents, strides and roles alone, so that a fold has one tree whatever else its kernel does.

mod chunks;
mod fold;
mod levels;
mod lines;
mod repeat;
mod schedule;

pub(crate) use chunks::split;
pub(crate) use fold::{FoldLoops, FoldTree, Unit};
pub(crate) use levels::{LoopLevel, SlotPlan};
pub(crate) use lines::{LONG_ROW, Lines, LoopShape};
pub(crate) use repeat::joined;
pub(crate) use schedule::{MapLoops, Schedule};
