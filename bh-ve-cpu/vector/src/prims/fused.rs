//! Super-instructions: two operations of `f32` or `f64` in one pass, with the bits of the two in turn.

use super::PrimFn;
use super::block;
use crate::simd::Isa;
use bh_bytecode::{DType, Opcode, scalar};

macro_rules! second {
    ($shape:ident, $isa:expr, $first:ident, $second:expr, $swapped:expr, $type:ty, [$($variant:ident = $scalar:ident),*]) => {
        match ($second, $swapped) {
            $(
                (Opcode::$variant, false) => {
                    block::$shape($isa, |a: $type, b: $type, c: $type| scalar::$scalar(scalar::$first(a, b), c))
                }
                (Opcode::$variant, true) => {
                    block::$shape($isa, |a: $type, b: $type, c: $type| scalar::$scalar(c, scalar::$first(a, b)))
                }
            )*
            (Opcode::Absolute, false) => {
                block::binary($isa, |a: $type, b: $type| scalar::absolute(scalar::$first(a, b)))
            }
            _ => None,
        }
    };
}

macro_rules! first {
    ($shape:ident, $isa:expr, $first:expr, $second:expr, $swapped:expr, $type:ty, [$($variant:ident = $scalar:ident),*]) => {
        match $first {
            $(Opcode::$variant => second!($shape, $isa, $scalar, $second, $swapped, $type,
                [Add = add, Subtract = subtract, Multiply = multiply]),)*
            _ => None,
        }
    };
}

/// The primitive `second(first(a, b), c)`, or `second(c, first(a, b))` if `swapped`, for sums, differences and products.
pub fn lookup_fused(isa: Isa, first: Opcode, second: Opcode, swapped: bool, dtype: DType) -> Option<PrimFn> {
    match dtype {
        DType::F64 => {
            first!(ternary, isa, first, second, swapped, f64, [Add = add, Subtract = subtract, Multiply = multiply])
        }
        DType::F32 => {
            first!(ternary, isa, first, second, swapped, f32, [Add = add, Subtract = subtract, Multiply = multiply])
        }
        _ => None,
    }
}

/// [`lookup_fused`] where `c` points to a single element instead of a block.
pub fn lookup_fused_const(isa: Isa, first: Opcode, second: Opcode, swapped: bool, dtype: DType) -> Option<PrimFn> {
    match dtype {
        DType::F64 => {
            first!(
                with_constant_third,
                isa,
                first,
                second,
                swapped,
                f64,
                [Add = add, Subtract = subtract, Multiply = multiply]
            )
        }
        DType::F32 => {
            first!(
                with_constant_third,
                isa,
                first,
                second,
                swapped,
                f32,
                [Add = add, Subtract = subtract, Multiply = multiply]
            )
        }
        _ => None,
    }
}
