//! Derivatives of the elementwise operations whose output has the type of their inputs.
//!
//! Complex functions are differentiated as functions of a complex number: the derivative is a factor, without a conjugate.

use super::expression::Expression::{Both, Input, LowerPower, Number, Of, Output, Where};
use super::expression::Partial::{MinusOne, One, Over, Times};
use super::expression::{Expression, Partial};
use bh_bytecode::Opcode;
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};

const X: Expression = Input(0);
const Z: Expression = Input(1);
const Y: Expression = Output;
const ONE: Expression = Number(1.0);
const MINUS_ONE: Expression = Number(-1.0);
const XX: Expression = Both(Opcode::Multiply, &X, &X);
const YY: Expression = Both(Opcode::Multiply, &Y, &Y);
/// 1 − x².
const ONE_LESS_XX: Expression = Both(Opcode::Subtract, &ONE, &XX);
/// 1 + x².
const ONE_AND_XX: Expression = Both(Opcode::Add, &ONE, &XX);
/// √(1 − x²).
const ROOT: Expression = Of(Opcode::Sqrt, &ONE_LESS_XX);
/// x² + z², of the inputs.
const SQUARES: Expression = Both(Opcode::Add, &XX, &Both(Opcode::Multiply, &Z, &Z));
/// 2/√π·exp(−x²).
const BELL: Expression =
    Both(Opcode::Multiply, &Number(FRAC_2_SQRT_PI), &Of(Opcode::Exp, &Both(Opcode::Subtract, &Number(-0.0), &XX)));
/// One where the first input is larger, one half at ties, else zero.
const FIRST_LARGER: Expression =
    Where(Opcode::Equal, [&X, &Z], &Number(0.5), &Where(Opcode::Greater, [&X, &Z], &ONE, &Number(0.0)));
/// One where the first input is smaller, one half at ties, else zero.
const FIRST_SMALLER: Expression =
    Where(Opcode::Equal, [&X, &Z], &Number(0.5), &Where(Opcode::Less, [&X, &Z], &ONE, &Number(0.0)));

pub(super) const ADD: &[Partial] = &[One, One];
pub(super) const SUBTRACT: &[Partial] = &[One, MinusOne];
pub(super) const MULTIPLY: &[Partial] = &[Times(&Z), Times(&X)];
pub(super) const DIVIDE: &[Partial] =
    &[Over(&Z), Times(&Both(Opcode::Subtract, &Number(-0.0), &Both(Opcode::Divide, &Y, &Z)))];
pub(super) const FMOD: &[Partial] =
    &[One, Times(&Both(Opcode::Subtract, &Number(-0.0), &Of(Opcode::Trunc, &Both(Opcode::Divide, &X, &Z))))];
pub(super) const REMAINDER: &[Partial] =
    &[One, Times(&Both(Opcode::Subtract, &Number(-0.0), &Of(Opcode::Floor, &Both(Opcode::Divide, &X, &Z))))];
/// x to the power z: by x, zero where z is zero; by z, zero where x is zero.
pub(super) const POWER: &[Partial] = &[
    Times(&Where(
        Opcode::Equal,
        [&Z, &Number(0.0)],
        &Number(0.0),
        &Both(Opcode::Multiply, &Z, &Both(Opcode::Power, &X, &Both(Opcode::Add, &Z, &MINUS_ONE))),
    )),
    Times(&Where(Opcode::Equal, [&X, &Number(0.0)], &Number(0.0), &Both(Opcode::Multiply, &Y, &Of(Opcode::Log, &X)))),
];
pub(super) const POWI: &[Partial] = &[Times(&LowerPower)];
pub(super) const MAXIMUM: &[Partial] = &[Times(&FIRST_LARGER), Times(&Both(Opcode::Subtract, &ONE, &FIRST_LARGER))];
pub(super) const MINIMUM: &[Partial] = &[Times(&FIRST_SMALLER), Times(&Both(Opcode::Subtract, &ONE, &FIRST_SMALLER))];
pub(super) const COS: &[Partial] = &[Times(&Both(Opcode::Subtract, &Number(-0.0), &Of(Opcode::Sin, &X)))];
pub(super) const SIN: &[Partial] = &[Times(&Of(Opcode::Cos, &X))];
pub(super) const TAN: &[Partial] = &[Times(&Both(Opcode::Add, &ONE, &YY))];
pub(super) const COSH: &[Partial] = &[Times(&Of(Opcode::Sinh, &X))];
pub(super) const SINH: &[Partial] = &[Times(&Of(Opcode::Cosh, &X))];
pub(super) const TANH: &[Partial] = &[Times(&Both(Opcode::Subtract, &ONE, &YY))];
pub(super) const ARCSIN: &[Partial] = &[Over(&ROOT)];
pub(super) const ARCCOS: &[Partial] = &[Over(&Both(Opcode::Subtract, &Number(-0.0), &ROOT))];
pub(super) const ARCTAN: &[Partial] = &[Over(&ONE_AND_XX)];
pub(super) const ARCSINH: &[Partial] = &[Over(&Of(Opcode::Sqrt, &ONE_AND_XX))];
/// 1/(√(x − 1)·√(x + 1)), which is on the right branch for complex numbers too.
pub(super) const ARCCOSH: &[Partial] = &[Over(&Both(
    Opcode::Multiply,
    &Of(Opcode::Sqrt, &Both(Opcode::Add, &X, &MINUS_ONE)),
    &Of(Opcode::Sqrt, &Both(Opcode::Add, &X, &ONE)),
))];
pub(super) const ARCTANH: &[Partial] = &[Over(&ONE_LESS_XX)];
pub(super) const ARCTAN2: &[Partial] = &[
    Times(&Both(Opcode::Divide, &Z, &SQUARES)),
    Times(&Both(Opcode::Subtract, &Number(-0.0), &Both(Opcode::Divide, &X, &SQUARES))),
];
pub(super) const EXP: &[Partial] = &[Times(&Y)];
pub(super) const EXP2: &[Partial] = &[Times(&Both(Opcode::Multiply, &Y, &Number(LN_2)))];
pub(super) const EXPM1: &[Partial] = &[Times(&Both(Opcode::Add, &Y, &ONE))];
pub(super) const LOG: &[Partial] = &[Over(&X)];
pub(super) const LOG2: &[Partial] = &[Over(&Both(Opcode::Multiply, &X, &Number(LN_2)))];
pub(super) const LOG10: &[Partial] = &[Over(&Both(Opcode::Multiply, &X, &Number(LN_10)))];
pub(super) const LOG1P: &[Partial] = &[Over(&Both(Opcode::Add, &ONE, &X))];
pub(super) const SQRT: &[Partial] = &[Over(&Both(Opcode::Multiply, &Y, &Number(2.0)))];
pub(super) const ERF: &[Partial] = &[Times(&BELL)];
pub(super) const ERFC: &[Partial] = &[Times(&Both(Opcode::Subtract, &Number(-0.0), &BELL))];
pub(super) const CBRT: &[Partial] = &[Over(&Both(Opcode::Multiply, &YY, &Number(3.0)))];
pub(super) const RECIPROCAL: &[Partial] = &[Times(&Both(Opcode::Subtract, &Number(-0.0), &YY))];
/// The modulus of a real number; that of a complex one is a [`super::Form`].
pub(super) const ABSOLUTE: &[Partial] = &[Times(&Of(Opcode::Sign, &X))];
