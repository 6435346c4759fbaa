//! What of a batch is kept from run to run: its blocks and sliding windows as programs. Nothing here touches data.

mod blocks;
mod cache;
mod windows;

pub use blocks::plan_blocks;
pub(crate) use blocks::{BlockPlan, BlockWork, temporary_bytes};
pub(crate) use cache::{BatchPlans, PlanCache};
pub(crate) use windows::{LineBuffer, WindowNest, WindowPlan, WindowTurn, plan_windows};
