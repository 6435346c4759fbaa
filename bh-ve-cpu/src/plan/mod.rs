//! The plans of a batch, kept from run to run: its blocks and chains of blocks as programs. Nothing here touches data.

mod blocks;
mod cache;
mod chains;
mod layout;
mod tiles;

pub use blocks::plan_blocks;
pub(crate) use blocks::{BlockPlan, BlockWork, temporary_bytes};
pub(crate) use cache::{BatchPlans, PlanCache};
pub(crate) use chains::plan_chains;
pub(crate) use tiles::{LineBuffer, TilePlan, TileProgram, TileTurn};
