//! Lowering: a block of the kernel partition becomes loop nests that an engine can run or generate code from.
//!
//! [`lower`] turns one block into [`Lowered`]: nothing, one operation that has an algorithm of its own, or one or two
//! [`Stage`]s. A stage is a [`Kernel`] (structure: loads, operations, stores and reductions over a loop nest whose
//! dimensions are merged and in memory order) and its [`Parameters`] (extents, strides, offsets, buffers and constants).
//! Kernels hold no sizes, so a changed shape or scalar gives an equal kernel and different parameters. The second stage
//! is the epilogue over the kept axes of the first stage's reductions.
//!
//! All loads of a stage come before all its stores in meaning: identical loads are made once, a read of what the block
//! has written takes the value itself, and writes to contracted bases vanish.

mod arrays;
pub mod boxes;
mod draft;
mod effort;
mod footprint;
mod kernel;
mod lower;
mod nest;
pub mod schedule;
mod stride;
mod survey;
pub mod table;
#[cfg(test)]
mod tests;
mod text;
mod tiles;
mod tiling;
mod uses;
mod window;
pub mod wire;

pub use footprint::footprint;
pub use kernel::{
    Arg, BufferRef, ConstantRef, Dim, GatherSource, Kernel, Lowered, Parameters, Slot, SlotMode, Special, Stage, Step,
    Temporary,
};
pub use lower::{copy_stage, lower, lower_product};
pub use nest::{Axis, FoldAxes, IN_ORDER, Runner, folds_in_order};
pub use stride::Stride;
pub use survey::Survey;
pub use text::describe;
pub use tiles::{ColumnArray, ColumnNest, ColumnOptions, ColumnTiling, TileOptions, Tilings, column_tilings, tilings};
pub use tiling::{LateNest, Reach, Steps, TileNest, TileRename, TileRows, TileSlot, Tiling, Turn};
pub use uses::{BaseUse, Uses};
pub use window::{Apart, SlidingWindows, WindowOptions, windows};
