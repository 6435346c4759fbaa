//! Vector mathematics on blocks: real functions of `f64` (at most 2 ULP, erfc 4) and `f32` (at most 1 ULP), written once
//! over [`Vector`] and compiled for every instruction-set level. No table, no library and no compiler is needed at run
//! time.
//!
//! `f32` is computed in `f64` lanes with shorter polynomials: half the lanes, but no error analysis for a format without
//! room for one, and nearly always correctly rounded; only exp and log have `f32` lanes of their own (`single`). Special
//! values are found by vector comparisons; where they need more than a blend, a branch that is taken only if some lane asks
//! for it replaces those lanes and no others, so that a result never depends on its neighbours. Functions of complex numbers
//! are made of these (`complex`).

mod coefficients;
mod complex;
mod dd;
mod division;
mod entry;
mod error_function;
mod exponential;
mod inverse;
mod logarithm;
mod modulus;
mod parts;
mod payne_hanek;
mod power;
mod root;
mod rooted;
mod rounding;
mod single;
mod trigonometric;

pub use complex::COMPLEX;
pub use modulus::{modulus_of_all, square_of_modulus};
pub use rooted::lookup_rooted;
pub(crate) use single::evaluate_single;

use crate::simd::{Isa, Vector};
use bh_bytecode::{DType, Opcode};

/// A block primitive: `n` elements from up to three blocks into `dst`.
///
/// Unused operands may be null. `dst` may be the same block as an input; other overlap is not allowed. Blocks need the
/// alignment of their elements only. The C calling convention lets compiled kernels call it.
///
/// # Safety
/// The pointers must be valid for `n` elements of the primitive's types, and the machine must have the level that the
/// primitive was looked up for.
pub type PrimFn = unsafe extern "C" fn(n: usize, dst: *mut u8, a: *const u8, b: *const u8, c: *const u8);

/// A function of one number.
pub(crate) trait Unary: 'static {
    /// Applies it to every lane; `SINGLE` asks for no more than `f32` precision from arguments that are `f32` values.
    fn eval<V: Vector, const SINGLE: bool>(x: V) -> V;
}

/// A function of two numbers.
pub(crate) trait Binary: 'static {
    /// Applies it to every lane; `SINGLE` as for [`Unary`].
    fn eval<V: Vector, const SINGLE: bool>(x: V, y: V) -> V;
}

macro_rules! functions {
    (unary { $($unary:ident = $unary_module:ident::$unary_function:ident,)* } binary { $($binary:ident = $binary_module:ident::$binary_function:ident,)* }) => {
        /// The functions as types, to instantiate entry points with.
        mod kernels {
            use super::*;
            $(
                pub(super) struct $unary;
                impl Unary for $unary {
                    #[inline(always)]
                    fn eval<V: Vector, const SINGLE: bool>(x: V) -> V {
                        $unary_module::$unary_function::<V, SINGLE>(x)
                    }
                }
            )*
            $(
                pub(super) struct $binary;
                impl Binary for $binary {
                    #[inline(always)]
                    fn eval<V: Vector, const SINGLE: bool>(x: V, y: V) -> V {
                        $binary_module::$binary_function::<V, SINGLE>(x, y)
                    }
                }
            )*
        }

        /// The opcodes of one argument that this module implements for real floats.
        pub const UNARY: &[Opcode] = &[$(Opcode::$unary),*];
        /// The opcodes of two arguments that this module implements for real floats.
        pub const BINARY: &[Opcode] = &[$(Opcode::$binary),*];

        /// The block primitive of an opcode on floats or complex numbers at a level, if the opcode is one of this
        /// module's.
        pub fn lookup(isa: Isa, opcode: Opcode, dtype: DType) -> Option<PrimFn> {
            match (opcode, dtype) {
                (Opcode::Absolute, DType::C128) => return Some(modulus::primitive(isa)),
                (_, DType::C64 | DType::C128) => return complex::lookup(isa, opcode, dtype),
                _ => {}
            }
            if dtype == DType::F32
                && let Some(found) = single::lookup(isa, opcode)
            {
                return Some(found);
            }
            match (opcode, dtype) {
                $((Opcode::$unary, DType::F64) => Some(entry::unary::<kernels::$unary, f64>(isa)),
                (Opcode::$unary, DType::F32) => Some(entry::unary::<kernels::$unary, f32>(isa)),)*
                $((Opcode::$binary, DType::F64) => Some(entry::binary::<kernels::$binary, f64>(isa)),
                (Opcode::$binary, DType::F32) => Some(entry::binary::<kernels::$binary, f32>(isa)),)*
                _ => None,
            }
        }

        /// The result of an opcode's `f64` primitive for one vector `x`, or for `x` and `y`; with `single`, the result
        /// of its `f32` primitive, where that computes in `f64` lanes. For vectors of other kinds than those of this
        /// crate: code generators get the same operations in the same order.
        pub fn evaluate<V: Vector>(opcode: Opcode, single: bool, x: V, y: V) -> Option<V> {
            match (opcode, single) {
                $((Opcode::$unary, false) => Some($unary_module::$unary_function::<V, false>(x)),
                (Opcode::$unary, true) => Some($unary_module::$unary_function::<V, true>(x)),)*
                $((Opcode::$binary, false) => Some($binary_module::$binary_function::<V, false>(x, y)),
                (Opcode::$binary, true) => Some($binary_module::$binary_function::<V, true>(x, y)),)*
                _ => None,
            }
        }
    };
}

functions! {
    unary {
        Cos = trigonometric::cos,
        Sin = trigonometric::sin,
        Tan = trigonometric::tan,
        Cosh = exponential::cosh,
        Sinh = exponential::sinh,
        Tanh = exponential::tanh,
        Arcsin = inverse::asin,
        Arccos = inverse::acos,
        Arctan = inverse::atan,
        Arcsinh = logarithm::asinh,
        Arccosh = logarithm::acosh,
        Arctanh = logarithm::atanh,
        Exp = exponential::exp,
        Exp2 = exponential::exp2,
        Expm1 = exponential::expm1,
        Log = logarithm::log,
        Log2 = logarithm::log2,
        Log10 = logarithm::log10,
        Log1p = logarithm::log1p,
        Sqrt = root::sqrt,
        Cbrt = root::cbrt,
        Ceil = rounding::ceil,
        Trunc = rounding::trunc,
        Floor = rounding::floor,
        Rint = rounding::rint,
        Erf = error_function::erf,
        Erfc = error_function::erfc,
    }
    binary {
        Power = power::pow,
        Arctan2 = inverse::atan2,
        Fmod = division::fmod,
        Remainder = division::remainder,
        FloorDivide = division::floor_divide,
    }
}
