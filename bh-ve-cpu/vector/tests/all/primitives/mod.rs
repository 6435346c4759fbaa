//! Every primitive against the scalar functions, at every level, length and alignment that matters.

mod elementwise;
mod fold;
mod moves;
mod quotients;
mod sums;
mod support;

use bh_bytecode::{DType, Element, Kind, Opcode, scalar, types_of};
use bh_vector::prims::*;
use bh_vector::simd::Isa;
