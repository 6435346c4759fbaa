//! The plans of a batch, kept from run to run: its blocks and chains of blocks as programs. Nothing here touches data.

mod batch;
mod blocks;
mod cache;
mod chains;
mod layout;
mod tiles;

pub(crate) use batch::Planned;
pub use blocks::plan_blocks;
pub(crate) use blocks::{BlockPlan, BlockWork, temporary_bytes};
pub(crate) use cache::PlanCache;
pub(crate) use tiles::{LineBuffer, TilePlan, TileProgram, TileTurn};
