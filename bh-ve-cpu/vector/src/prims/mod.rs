//! Block primitives: what tier 0 runs a kernel with, operation by operation, on blocks that stay in the first-level cache.
//!
//! Every primitive exists for each instruction-set level where wider vectors help; the bits are those of the scalar
//! functions of the opcode table, except for the functions of [`crate::math`], which have error bounds and the same bits
//! on one level. Blocks need the alignment of their elements and nothing more.

mod block;
mod constant;
mod elementwise;
mod fold;
mod fused;
mod generate;
mod levels;
mod moves;
mod quotient;
mod repeat;
mod sum;

pub use crate::math::PrimFn;
pub use constant::{Side, lookup_const};
pub use elementwise::lookup;
pub use fold::{JoinFn, LANES, LanesFn, fold_lanes, reduce_lanes, reduce_lanes_of};
pub use fused::{lookup_fused, lookup_fused_const};
pub use generate::{IotaFn, PhiloxFn, RunFn, iota, is_run, philox};
pub use moves::{CopyFn, FillFn, STREAMS, StridedFn, copy_streaming, fence, fill, gather_strided, scatter_strided};
pub use repeat::{RepeatFn, repeat};
pub use sum::{MOST_SQUARES, SumFn, lookup_sum};
