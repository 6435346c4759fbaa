//! Tier 0: kernels as programs of block operations, and what runs their lines, in blocks or by compiled code.

mod analysis;
mod bound;
mod compile;
mod emit;
mod executor;
mod failure;
mod gather;
mod memory;
mod operations;
mod places;
mod prefetch;
mod program;
mod registers;
mod sums;
mod superinstructions;

pub(crate) use bound::{Binding, Bound};
pub(crate) use compile::{TileMemory, compile, compile_in_tile};
pub(crate) use executor::{BlockExecutor, Folding};
pub(crate) use failure::Failure;
pub(crate) use gather::{BadIndex, offset, resolve};
pub(crate) use memory::{Aligned, BlockScratch, taken};
pub(crate) use prefetch::prefetch;
pub(crate) use program::{Fold, Program};
