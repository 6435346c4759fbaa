//! The table's rows made executable: for each opcode and legal type, the call of its scalar function.

use super::Step;
use super::fold::{plain, product, sum};
use crate::complex::{c64, c128};
use crate::dtype::DType;
use crate::element::{CastFrom, Element};
use crate::opcode::Opcode;
use crate::{for_each_opcode, scalar, types_of, with_dtype};

/// A match on the type of operand `$at` over a list of types.
macro_rules! match_types {
    ($step:ident, $at:literal, $T:ident => $body:expr, [$(($type:ty, $variant:ident)),*]) => {
        match $step.batch.dtype($step.instr.operands[$at]) {
            $(Some(DType::$variant) => {
                type $T = $type;
                $body
            })*
            other => Err(format!("operand {} has the type {other:?}", $at)),
        }
    };
}

macro_rules! unary {
    ($step:ident, $scalar:ident, $types:tt) => {
        match_types!($step, 1, T => $step.unary(scalar::$scalar::<T>), $types)
    };
}

macro_rules! binary {
    ($step:ident, $scalar:ident, $types:tt) => {
        match_types!($step, 1, T => $step.binary(scalar::$scalar::<T>), $types)
    };
}

macro_rules! powi {
    ($step:ident, $types:tt) => {{
        let exponent = $step.instr.param;
        match_types!($step, 1, T => $step.unary(|x: T| scalar::powi(x, exponent)), $types)
    }};
}

/// How the scalar function of a reduction or accumulate folds.
macro_rules! accumulator {
    (add, $neutral:ident, $T:ident) => {
        sum::<$T>()
    };
    (multiply, $neutral:ident, $T:ident) => {
        product::<$T>()
    };
    ($scalar:ident, $neutral:ident, $T:ident) => {
        plain(scalar::$neutral::<$T>(), scalar::$scalar::<$T>)
    };
}

macro_rules! reduction {
    ($step:ident, $scalar:ident, $neutral:ident, $types:tt) => {
        match_types!($step, 1, T => $step.reduce(accumulator!($scalar, $neutral, T)), $types)
    };
}

macro_rules! accumulate {
    ($step:ident, $scalar:ident, $neutral:ident, $types:tt) => {
        match_types!($step, 1, T => $step.accumulate(accumulator!($scalar, $neutral, T)), $types)
    };
}

macro_rules! range {
    ($step:ident, $types:tt) => {
        match_types!($step, 0, T => $step.range::<T>(), $types)
    };
}

macro_rules! random {
    ($step:ident, $types:tt) => {
        match_types!($step, 0, T => $step.random::<T>(), $types)
    };
}

macro_rules! indexed {
    ($step:ident, $method:ident, $types:tt) => {
        match_types!($step, 0, T => $step.$method::<T>(), $types)
    };
}

/// The execution of one row of the table.
macro_rules! row {
    (Elementwise cast 1, $step:ident, $set:ident, $scalar:ident, $neutral:ident) => {
        cast($step)
    };
    (Elementwise select 3, $step:ident, $set:ident, $scalar:ident, $neutral:ident) => {
        types_of!($set, indexed, $step, select)
    };
    (Elementwise same 1, $step:ident, $set:ident, powi, $neutral:ident) => {
        types_of!($set, powi, $step)
    };
    (Elementwise $signature:ident 1, $step:ident, $set:ident, $scalar:ident, $neutral:ident) => {
        types_of!($set, unary, $step, $scalar)
    };
    (Elementwise $signature:ident 2, $step:ident, $set:ident, $scalar:ident, $neutral:ident) => {
        types_of!($set, binary, $step, $scalar)
    };
    (Reduction reduce 1, $step:ident, $set:ident, $scalar:ident, $neutral:ident) => {
        types_of!($set, reduction, $step, $scalar, $neutral)
    };
    (Reduction masked 2, $step:ident, $set:ident, $scalar:ident, $neutral:ident) => {
        types_of!($set, reduction, $step, $scalar, $neutral)
    };
    (Reduction product 2, $step:ident, $set:ident, $scalar:ident, $neutral:ident) => {
        types_of!($set, indexed, $step, contract)
    };
    (Accumulate same 1, $step:ident, $set:ident, $scalar:ident, $neutral:ident) => {
        types_of!($set, accumulate, $step, $scalar, $neutral)
    };
    (Generator index 1, $step:ident, $set:ident, $scalar:ident, $neutral:ident) => {
        types_of!($set, range, $step)
    };
    (Generator random 2, $step:ident, $set:ident, $scalar:ident, $neutral:ident) => {
        types_of!($set, random, $step)
    };
    (Index gather 2, $step:ident, $set:ident, $scalar:ident, $neutral:ident) => {
        types_of!($set, indexed, $step, gather)
    };
    (Index scatter 2, $step:ident, $set:ident, add, $neutral:ident) => {
        types_of!($set, indexed, $step, scatter_add)
    };
    (Index $signature:ident $inputs:tt, $step:ident, $set:ident, $scalar:ident, $neutral:ident) => {
        types_of!($set, indexed, $step, scatter)
    };
    (System system 0, $step:ident, $set:ident, $scalar:ident, $neutral:ident) => {
        $step.system()
    };
}

macro_rules! define_execute {
    ($(($variant:ident, $name:literal, $code:literal, $kind:ident, $inputs:tt, $signature:ident $set:ident, $scalar:ident, $neutral:ident, $cost:literal, $expression:literal, [$($front:literal),*], $doc:literal)),* $(,)?) => {
        /// Executes the instruction of a step; it is not an extension method's.
        pub(super) fn execute(step: &mut Step) -> Result<(), String> {
            match step.instr.opcode {
                $(Opcode::$variant => row!($kind $signature $inputs, step, $set, $scalar, $neutral),)*
                other => Err(format!("{other:?} is not an opcode of the table")),
            }
        }
    };
}
for_each_opcode!(define_execute);

/// COPY: the one opcode whose types are free of each other.
fn cast(step: &mut Step) -> Result<(), String> {
    let rule = step.instr.param;
    let (output, input) = (step.batch.dtype(step.instr.operands[0]), step.batch.dtype(step.instr.operands[1]));
    let (Some(output), Some(input)) = (output, input) else {
        return Err("an index view has no data".into());
    };
    macro_rules! from_real {
        ($step:ident, [$(($type:ty, $variant:ident)),*]) => {
            match input {
                $(DType::$variant if rule == 1 => with_dtype!(output, D => step.unary(scalar::wrap::<$type, D>)),
                DType::$variant if rule == 2 => with_dtype!(output, D => step.unary(scalar::narrow::<$type, D>)),
                DType::$variant => with_dtype!(output, D => step.unary(scalar::cast::<$type, D>)),)*
                DType::C64 => cast_complex::<c64>(step, output),
                DType::C128 => cast_complex::<c128>(step, output),
            }
        };
    }
    types_of!(ORDERED, from_real, step)
}

fn cast_complex<S: Element>(step: &mut Step, output: DType) -> Result<(), String>
where
    c64: CastFrom<S>,
    c128: CastFrom<S>,
{
    match output {
        DType::C64 => step.unary(scalar::cast::<S, c64>),
        DType::C128 => step.unary(scalar::cast::<S, c128>),
        other => Err(format!("a complex number has no conversion to {other}")),
    }
}
