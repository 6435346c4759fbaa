//! Running bound programs: threads, and the drivers that have them run lines. Both tiers and chains are driven by
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
mod workers;

pub(crate) use accumulate::accumulate;
pub(crate) use scatter::scatter;
pub(crate) use scratch::Scratch;
pub(crate) use tiles::run_tiles;
pub(crate) use workers::Workers;

use crate::block::{Aligned, Bound};
use bh_core::Result;
use bh_kernel::schedule::Schedule;

/// Runs a program.
pub(crate) fn run(bound: Bound<'_>, workers: &mut Workers, partials: &mut Aligned) -> Result<()> {
    match &bound.program.schedule {
        Schedule::Map(map) => {
            map::run(bound, map, workers);
            Ok(())
        }
        Schedule::Fold(loops) => reduction::run(bound, loops, workers, partials),
    }
}
