//! Primitives with one constant operand, for the arithmetic and comparisons of the types that programs use most.

use super::block;
use super::{PrimFn, quotient};
use crate::simd::Isa;
use bh_bytecode::{DType, Opcode, scalar};

/// Which operand is the constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    Left,
    /// The second.
    Right,
}

macro_rules! operations {
    ($isa:expr, $left:expr, $opcode:expr, $type:ty, [$($variant:ident = $scalar:ident),*]) => {
        match $opcode {
            $(Opcode::$variant => block::with_constant($isa, $left, scalar::$scalar::<$type>),)*
            _ => None,
        }
    };
}

macro_rules! types {
    ($isa:expr, $left:expr, $opcode:expr, $dtype:expr, [$(($type:ty, $variant:ident)),*], $operations:tt) => {
        match $dtype {
            $(DType::$variant => operations!($isa, $left, $opcode, $type, $operations),)*
            _ => None,
        }
    };
}

/// The primitive of a binary opcode whose operand on one side is a single element instead of a block, if there is one.
/// The operands keep their places: `a` or `b` points to the one element.
pub fn lookup_const(isa: Isa, opcode: Opcode, side: Side, dtype: DType) -> Option<PrimFn> {
    let left = side == Side::Left;
    if !left && let Some(found) = quotient::lookup(isa, opcode, dtype, true) {
        return Some(found);
    }
    if let DType::F32 | DType::F64 = dtype
        && opcode == Opcode::Divide
    {
        return types!(isa, left, opcode, dtype, [(f32, F32), (f64, F64)], [Divide = divide]);
    }
    types!(
        isa,
        left,
        opcode,
        dtype,
        [(i32, I32), (i64, I64), (f32, F32), (f64, F64)],
        [
            Add = add,
            Subtract = subtract,
            Multiply = multiply,
            Maximum = maximum,
            Minimum = minimum,
            Greater = greater,
            GreaterEqual = greater_equal,
            Less = less,
            LessEqual = less_equal,
            Equal = equal,
            NotEqual = not_equal
        ]
    )
}
