//! How a loop nest is cut into lines and blocks, and its folds into chunks: from extents, strides and roles alone, so that a
//! fold has one tree whatever else its kernel does.

mod chunks;
mod levels;
mod nest;
mod reduction;
mod repeat;
mod tree;

pub(crate) use chunks::split;
pub(crate) use levels::{LoopLevel, SlotPlan};
pub(crate) use nest::{LONG_ROW, LoopNest, LoopShape};
pub(crate) use reduction::{Reduction, Unit};
pub(crate) use repeat::RepeatForm;
pub(crate) use tree::ReductionTree;
