//! Running bound programs: threads, and the drivers that have them run lines. Both tiers and sliding windows are driven by
//! the same code.

mod accumulate;
mod kept;
mod map;
mod partials;
mod pool;
mod queue;
mod reduction;
mod scatter;
mod scratch;
mod side_by_side;
mod tiles;
mod window;
mod workers;

pub(crate) use accumulate::accumulate;
pub(crate) use scatter::scatter;
pub(crate) use scratch::Scratch;
pub(crate) use tiles::run_tiles;
pub(crate) use window::run_window;
pub(crate) use workers::Workers;

use crate::block::{Aligned, Bound, Loops};
use bh_core::Result;

/// Runs a program.
pub(crate) fn run(bound: Bound<'_>, workers: &mut Workers, partials: &mut Aligned) -> Result<()> {
    match &bound.program.loops {
        Loops::Map(level) => {
            map::run(bound, level, workers);
            Ok(())
        }
        Loops::Fold(reduction) => reduction::run(bound, reduction, workers, partials),
    }
}
