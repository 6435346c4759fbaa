//! What of a batch is kept from run to run: its blocks, sliding windows and tilings as programs. Nothing here touches data.

mod blocks;
mod cache;
mod tiles;
mod windows;

pub use blocks::plan_blocks;
pub(crate) use blocks::{BlockPlan, BlockWork, temporary_bytes};
pub(crate) use cache::{BatchPlans, PlanCache};
pub(crate) use tiles::{TilePlan, TileProgram};
pub(crate) use windows::{LineBuffer, WindowNest, WindowPlan, WindowTurn, plan_windows};
