//! Super-instructions: two operations of `f32` or `f64` in one pass, with the bits of the two in turn.

use super::PrimFn;
use super::block;
use crate::simd::Isa;
use bh_bytecode::{DType, Opcode, scalar};

/// The functions that pairs are made of.
macro_rules! pairs {
    ($shape:ident, $isa:expr, $first:expr, $second:expr, $swapped:expr, $dtype:expr) => {
        match $dtype {
            DType::F64 => pairs!(@first $shape, $isa, $first, $second, $swapped, f64),
            DType::F32 => pairs!(@first $shape, $isa, $first, $second, $swapped, f32),
            _ => None,
        }
    };
    (@first $shape:ident, $isa:expr, $first:expr, $second:expr, $swapped:expr, $type:ty) => {
        match $first {
            Opcode::Add => pairs!(@second $shape, $isa, add, $second, $swapped, $type),
            Opcode::Subtract => pairs!(@second $shape, $isa, subtract, $second, $swapped, $type),
            Opcode::Multiply => pairs!(@second $shape, $isa, multiply, $second, $swapped, $type),
            Opcode::Divide => pairs!(@second $shape, $isa, divide, $second, $swapped, $type),
            _ => None,
        }
    };
    (@second $shape:ident, $isa:expr, $first:ident, $second:expr, $swapped:expr, $type:ty) => {
        match $second {
            Opcode::Add => pairs!(@sides $shape, $isa, $first, add, $swapped, $type),
            Opcode::Subtract => pairs!(@sides $shape, $isa, $first, subtract, $swapped, $type),
            Opcode::Multiply => pairs!(@sides $shape, $isa, $first, multiply, $swapped, $type),
            Opcode::Divide => pairs!(@sides $shape, $isa, $first, divide, $swapped, $type),
            Opcode::Absolute if !$swapped => {
                block::binary($isa, |a: $type, b: $type| scalar::absolute(scalar::$first(a, b)))
            }
            _ => None,
        }
    };
    (@sides $shape:ident, $isa:expr, $first:ident, $second:ident, $swapped:expr, $type:ty) => {
        if $swapped {
            block::$shape($isa, |a: $type, b: $type, c: $type| scalar::$second(c, scalar::$first(a, b)))
        } else {
            block::$shape($isa, |a: $type, b: $type, c: $type| scalar::$second(scalar::$first(a, b), c))
        }
    };
}

/// The primitive `second(first(a, b), c)`, or `second(c, first(a, b))` if `swapped`, for sums, differences, products and
/// quotients; also `|first(a, b)|`.
pub fn lookup_fused(isa: Isa, first: Opcode, second: Opcode, swapped: bool, dtype: DType) -> Option<PrimFn> {
    pairs!(ternary, isa, first, second, swapped, dtype)
}

/// [`lookup_fused`] where `c` points to a single element instead of a block.
pub fn lookup_fused_const(isa: Isa, first: Opcode, second: Opcode, swapped: bool, dtype: DType) -> Option<PrimFn> {
    pairs!(with_constant_third, isa, first, second, swapped, dtype)
}
