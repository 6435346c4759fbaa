//! Running programs: binding them to memory, and driving their blocks on the participants.

mod cursor;
mod division;
mod failure;
mod fold;
mod frame;
mod gather;
mod map;
mod margin;
mod partials;
mod pool;
mod queue;
mod scratch;
mod sweep;
mod workers;

pub(crate) use failure::Failure;
pub(crate) use gather::{Form as GatherForm, resolve};
pub(crate) use margin::prefetch;
pub(crate) use scratch::{Aligned, taken};
pub(crate) use sweep::run_sweep;
pub(crate) use workers::Workers;

use crate::primitives::Primitives;
use crate::program::Program;
use bh_core::Result;
pub(crate) use cursor::Level;
pub(crate) use division::Division;

/// The memory and values that a program runs on.
#[derive(Default)]
pub(crate) struct Binding {
    /// The first element of each slot; the first number of index views, as an address.
    pub(crate) slots: Vec<*mut u8>,
    /// The first element of each gather's source.
    pub(crate) gathers: Vec<*const u8>,
    /// The constants' bytes.
    pub(crate) constants: Vec<[u8; 16]>,
    /// Where failures go.
    pub(crate) failure: Failure,
}

// SAFETY: the memory behind the pointers is divided among the participants by the drivers.
unsafe impl Send for Binding {}
// SAFETY: as above.
unsafe impl Sync for Binding {}

/// Runs a program on its memory.
///
/// # Safety
/// The binding must give valid memory for every slot and source of the program.
pub(crate) unsafe fn run(
    program: &Program,
    binding: &Binding,
    primitives: Primitives,
    workers: &mut Workers,
    partials: &mut Aligned,
) -> Result<()> {
    // SAFETY: promised by the caller.
    unsafe {
        match &program.loops {
            Loops::Map(level) => {
                map::run(program, level, binding, primitives, workers);
                Ok(())
            }
            Loops::Fold(division) => fold::run(program, division, binding, primitives, workers, partials),
        }
    }
}

/// Bytes of partial results that a program needs.
pub(crate) fn partial_bytes(program: &Program) -> usize {
    match &program.loops {
        Loops::Map(_) => 0,
        Loops::Fold(division) => partials::partial_bytes(program, division),
    }
}

/// How a program's iterations are shared out.
#[derive(Debug)]
pub(crate) enum Loops {
    /// Without folds: the loops around lines.
    Map(Level),
    /// With folds.
    Fold(Division),
}
