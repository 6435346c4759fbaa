//! Element-wise primitives for every opcode and legal type, expanded from the opcode table.

use super::block::{self, SCALAR};
use super::{PrimFn, quotient};
use crate::math;
use crate::simd::Isa;
use bh_bytecode::opcode::SAME_BITS;
use bh_bytecode::{DType, Opcode, c64, c128, for_each_opcode, scalar, types_of};

/// Primitives of a generic scalar function for each type of a set.
macro_rules! by_type {
    ($builder:ident, $isa:expr, $dtype:expr, $scalar:ident, [$(($type:ty, $variant:ident)),*]) => {
        match $dtype {
            $(DType::$variant => block::$builder($isa, scalar::$scalar::<$type>),)*
            #[allow(unreachable_patterns, reason = "some sets hold every type")]
            _ => None,
        }
    };
}

macro_rules! powi_by_type {
    ($isa:expr, $dtype:expr, $exponent:expr, [$(($type:ty, $variant:ident)),*]) => {
        match ($dtype, $exponent) {
            $(
                (DType::$variant, 2) => block::unary($isa, |x: $type| scalar::powi(x, 2)),
                (DType::$variant, 3) => block::unary($isa, |x: $type| scalar::powi(x, 3)),
                (DType::$variant, 4) => block::unary($isa, |x: $type| scalar::powi(x, 4)),
                (DType::$variant, 5) => block::unary($isa, |x: $type| scalar::powi(x, 5)),
            )*
            _ => None,
        }
    };
}

macro_rules! cast_to {
    ($isa:expr, $source:ty, $output:expr, [$(($type:ty, $variant:ident)),*]) => {
        match $output {
            $(DType::$variant => block::unary($isa, scalar::cast::<$source, $type>),)*
            #[allow(unreachable_patterns, reason = "real numbers convert to every type")]
            _ => None,
        }
    };
}

macro_rules! cast_from_real {
    ($isa:expr, $input:expr, $output:expr, [$(($type:ty, $variant:ident)),*]) => {
        match $input {
            $(DType::$variant => types_of!(ALL, cast_to, $isa, $type, $output),)*
            DType::C64 => types_of!(COMPLEX, cast_to, $isa, c64, $output),
            DType::C128 => types_of!(COMPLEX, cast_to, $isa, c128, $output),
        }
    };
}

/// One row of the opcode table.
macro_rules! row {
    // Vector mathematics has the floats; here are the complex numbers.
    ($isa:ident $param:ident $input:ident $output:ident, Elementwise 1 same INEXACT $scalar:ident) => {
        types_of!(COMPLEX, by_type, unary, SCALAR, $input, $scalar)
    };
    ($isa:ident $param:ident $input:ident $output:ident, Elementwise $inputs:tt same FLOAT $scalar:ident) => {
        None
    };
    // Divisions: those of floats are vector mathematics, and those of integers are quotients.
    ($isa:ident $param:ident $input:ident $output:ident, Elementwise 2 same REAL $scalar:ident) => {
        None
    };
    // Powers have no vector instructions.
    ($isa:ident $param:ident $input:ident $output:ident, Elementwise 2 same NUMERIC power) => {
        match $input {
            DType::C64 | DType::C128 => types_of!(COMPLEX, by_type, binary, SCALAR, $input, power),
            _ => types_of!(INT, by_type, binary, SCALAR, $input, power),
        }
    };
    ($isa:ident $param:ident $input:ident $output:ident, Elementwise 2 same NUMERIC divide) => {
        match $input {
            DType::F32 | DType::F64 => types_of!(FLOAT, by_type, binary, $isa, $input, divide),
            _ => types_of!(COMPLEX, by_type, binary, $isa, $input, divide),
        }
    };
    ($isa:ident $param:ident $input:ident $output:ident, Elementwise 1 same NUMERIC powi) => {
        types_of!(NUMERIC, powi_by_type, $isa, $input, $param)
    };
    ($isa:ident $param:ident $input:ident $output:ident, Elementwise 1 cast ALL $scalar:ident) => {
        types_of!(ORDERED, cast_from_real, $isa, $input, $output)
    };
    ($isa:ident $param:ident $input:ident $output:ident, Elementwise 1 $signature:ident $set:ident $scalar:ident) => {
        types_of!($set, by_type, unary, $isa, $input, $scalar)
    };
    ($isa:ident $param:ident $input:ident $output:ident, Elementwise 2 $signature:ident $set:ident $scalar:ident) => {
        types_of!($set, by_type, binary, $isa, $input, $scalar)
    };
    ($isa:ident $param:ident $input:ident $output:ident, Elementwise 3 $signature:ident $set:ident $scalar:ident) => {
        types_of!($set, by_type, ternary, $isa, $input, $scalar)
    };
    ($($other:tt)*) => {
        None
    };
}

macro_rules! define_lookup {
    ($(($variant:ident, $name:tt, $code:tt, $kind:ident, $inputs:tt, $signature:ident $set:ident, $scalar:ident, $neutral:ident, $cost:literal, $expression:tt, [$($front:literal),*], $doc:tt)),* $(,)?) => {
        /// The primitive of an opcode in plain loops.
        fn by_table(isa: Isa, opcode: Opcode, param: u16, input: DType, output: DType) -> Option<PrimFn> {
            match opcode {
                $(Opcode::$variant => row!(isa param input output, $kind $inputs $signature $set $scalar),)*
                _ => None,
            }
        }
    };
}
for_each_opcode!(define_lookup);

/// Conversions of floats to integers that have vector instructions, without the branches of the saturating `as`: NaN is
/// taken out first, then the range is confined, and the rest truncates.
fn float_to_integer(isa: Isa, input: DType, output: DType) -> Option<PrimFn> {
    macro_rules! convert {
        ($x:expr, $type:ty) => {{
            let x: f64 = $x;
            let number = if x.is_nan() { 0.0 } else { x };
            let (low, high) = (<$type>::MIN as f64, <$type>::MAX as f64);
            let above = if number < low { low } else { number };
            let confined = if above > high { high } else { above };
            // SAFETY: truncated, the number is in the range of the type and so in that of i32.
            unsafe { confined.to_int_unchecked::<i32>() as $type }
        }};
    }
    // Of 64 bits, and unsigned ones of 32, the greatest number is no float, or has no conversion before AVX-512. NEON has them.
    let has_wide = matches!(isa, Isa::Avx512 | Isa::Neon);
    macro_rules! convert_wide {
        ($x:expr, $type:ty, $end:expr) => {{
            let x: f64 = $x;
            let number = if x.is_nan() { 0.0 } else { x };
            let low = <$type>::MIN as f64;
            let above = if number < low { low } else { number };
            let is_beyond = above >= $end;
            let inside = if is_beyond { 0.0 } else { above };
            // SAFETY: truncated, the number is in the range of the type.
            let whole = unsafe { inside.to_int_unchecked::<$type>() };
            if is_beyond { <$type>::MAX } else { whole }
        }};
    }
    macro_rules! to {
        ($source:ty) => {
            match output {
                DType::I64 if has_wide => {
                    block::unary(isa, |x: $source| convert_wide!(f64::from(x), i64, 9_223_372_036_854_775_808.0))
                }
                DType::U32 if has_wide => {
                    block::unary(isa, |x: $source| convert_wide!(f64::from(x), u32, 4_294_967_296.0))
                }
                DType::U64 if has_wide => {
                    block::unary(isa, |x: $source| convert_wide!(f64::from(x), u64, 18_446_744_073_709_551_616.0))
                }
                DType::I8 => block::unary(isa, |x: $source| convert!(f64::from(x), i8)),
                DType::I16 => block::unary(isa, |x: $source| convert!(f64::from(x), i16)),
                DType::I32 => block::unary(isa, |x: $source| convert!(f64::from(x), i32)),
                DType::U8 => block::unary(isa, |x: $source| convert!(f64::from(x), u8)),
                DType::U16 => block::unary(isa, |x: $source| convert!(f64::from(x), u16)),
                _ => None,
            }
        };
    }
    match input {
        DType::F32 => to!(f32),
        DType::F64 => to!(f64),
        _ => None,
    }
}

/// Conversions of floats to integers as x86-64 has them, in vector instructions where the level has some: what the type in
/// between lacks becomes its smallest number.
fn float_to_wrapped(isa: Isa, input: DType, output: DType) -> Option<PrimFn> {
    macro_rules! convert {
        ($source:ty, $through:ty, $type:ty) => {
            block::unary(isa, |x: $source| {
                let low = <$through>::MIN as $source;
                let below = if x < -low { x } else { low };
                let inside = if below < low { low } else { below };
                // SAFETY: the number is in the range of the type in between.
                unsafe { inside.to_int_unchecked::<$through>() as $type }
            })
        };
    }
    macro_rules! to {
        ($source:ty) => {
            match output {
                DType::I8 => convert!($source, i32, i8),
                DType::I16 => convert!($source, i32, i16),
                DType::I32 => convert!($source, i32, i32),
                DType::I64 => convert!($source, i64, i64),
                DType::U8 => convert!($source, i32, u8),
                DType::U16 => convert!($source, i32, u16),
                DType::U32 => convert!($source, i64, u32),
                DType::U64 => block::unary(isa, scalar::wrap::<$source, u64>),
                _ => None,
            }
        };
    }
    match input {
        DType::F32 => to!(f32),
        DType::F64 => to!(f64),
        _ => None,
    }
}

/// Conversions of floats to narrower integers as AArch64's vector instructions make them, by way of integers of the float's width.
fn float_to_narrowed(isa: Isa, input: DType, output: DType) -> Option<PrimFn> {
    match (input, output) {
        (DType::F32, DType::I8) => block::unary(isa, scalar::narrow::<f32, i8>),
        (DType::F32, DType::I16) => block::unary(isa, scalar::narrow::<f32, i16>),
        (DType::F32, DType::U8) => block::unary(isa, scalar::narrow::<f32, u8>),
        (DType::F32, DType::U16) => block::unary(isa, scalar::narrow::<f32, u16>),
        (DType::F64, DType::I8) => block::unary(isa, scalar::narrow::<f64, i8>),
        (DType::F64, DType::I16) => block::unary(isa, scalar::narrow::<f64, i16>),
        (DType::F64, DType::I32) => block::unary(isa, scalar::narrow::<f64, i32>),
        (DType::F64, DType::U8) => block::unary(isa, scalar::narrow::<f64, u8>),
        (DType::F64, DType::U16) => block::unary(isa, scalar::narrow::<f64, u16>),
        (DType::F64, DType::U32) => block::unary(isa, scalar::narrow::<f64, u32>),
        _ => None,
    }
}

/// The arithmetic that programs do in place, and that folds along outer axes consist of.
fn in_place(isa: Isa, opcode: Opcode, dtype: DType) -> Option<PrimFn> {
    macro_rules! by_opcode {
        ($type:ty) => {
            match opcode {
                Opcode::Add => block::binary_in_place(isa, scalar::add::<$type>),
                Opcode::Subtract => block::binary_in_place(isa, scalar::subtract::<$type>),
                Opcode::Multiply => block::binary_in_place(isa, scalar::multiply::<$type>),
                Opcode::Maximum => block::binary_in_place(isa, scalar::maximum::<$type>),
                Opcode::Minimum => block::binary_in_place(isa, scalar::minimum::<$type>),
                _ => None,
            }
        };
    }
    match dtype {
        DType::I32 => by_opcode!(i32),
        DType::I64 => by_opcode!(i64),
        DType::F32 => by_opcode!(f32),
        DType::F64 => by_opcode!(f64),
        _ => None,
    }
}

/// Single instructions of `f32` need no detour through `f64` lanes.
fn native_f32(isa: Isa, opcode: Opcode) -> Option<PrimFn> {
    // Without the rounding instructions of SSE4.1 the compiler would call a library.
    let rounds = matches!(isa, Isa::Avx2 | Isa::Avx512 | Isa::Neon);
    match opcode {
        Opcode::Sqrt => block::unary(isa, f32::sqrt),
        Opcode::Floor if rounds => block::unary(isa, f32::floor),
        Opcode::Ceil if rounds => block::unary(isa, f32::ceil),
        Opcode::Trunc if rounds => block::unary(isa, f32::trunc),
        Opcode::Rint if rounds => block::unary(isa, f32::round_ties_even),
        _ => None,
    }
}

/// The primitive of an element-wise opcode, by the type of its last operand and of its result; `param` is that of the
/// instruction. None if the opcode is not element-wise or the types are not legal for it.
pub fn lookup(isa: Isa, opcode: Opcode, param: u16, input: DType, output: DType) -> Option<PrimFn> {
    if input == DType::F32
        && let Some(found) = native_f32(isa, opcode)
    {
        return Some(found);
    }
    if let Some(found) = in_place(isa, opcode, input) {
        return Some(found);
    }
    if opcode == Opcode::Copy
        && let Some(found) = match param {
            1 => float_to_wrapped(isa, input, output),
            2 if output.size() < input.size() => float_to_narrowed(isa, input, output),
            _ => None,
        }
    {
        return Some(found);
    }
    if opcode == Opcode::Copy
        && let Some(found) = float_to_integer(isa, input, output)
    {
        return Some(found);
    }
    if let Some(found) = quotient::lookup(isa, opcode, input, false) {
        return Some(found);
    }
    let level = if param == SAME_BITS && opcode.has_variants() { isa.fused() } else { isa };
    math::lookup(level, opcode, input).or_else(|| by_table(isa, opcode, param, input, output))
}
