//! Derivatives of elementwise operations as small expressions over the operation's inputs and its output.

use bh_bytecode::{Constant, DType, Opcode, c128};

/// A number for each element, of the type of the operation's output.
#[derive(Debug)]
pub(crate) enum Expression {
    /// An input of the operation, as it was when the operation ran.
    Input(u8),
    /// The operation's result.
    Output,
    /// A number.
    Number(f64),
    /// The exponent of POWI times the input to the power of the exponent less one.
    LowerPower,
    /// An elementwise operation with one input.
    Of(Opcode, &'static Expression),
    /// An elementwise operation with two inputs.
    Both(Opcode, &'static Expression, &'static Expression),
    /// The second expression where a comparison of the first two is true, else the third.
    Where(Opcode, [&'static Expression; 2], &'static Expression, &'static Expression),
}

/// A number of an expression. The imaginary part of a complex one is −0, so that sums with it, and differences from it, keep the sign
/// of the other operand's zero: functions with branch cuts choose their side by it.
pub(crate) fn constant(value: f64, dtype: DType) -> Constant {
    if dtype.is_complex() {
        return Constant::from_value(c128::new(value, -0.0)).cast(dtype);
    }
    Constant::from_value(value).cast(dtype)
}

impl Expression {
    /// The inputs that the expression reads, a bit each, and whether it reads the output.
    pub(crate) fn reads(&self) -> (u8, bool) {
        let join = |a: (u8, bool), b: (u8, bool)| (a.0 | b.0, a.1 | b.1);
        match self {
            Expression::Input(at) => (1 << at, false),
            Expression::LowerPower => (1, false),
            Expression::Output => (0, true),
            Expression::Number(_) => (0, false),
            Expression::Of(_, a) => a.reads(),
            Expression::Both(_, a, b) => join(a.reads(), b.reads()),
            Expression::Where(_, [a, b], yes, no) => join(join(a.reads(), b.reads()), join(yes.reads(), no.reads())),
        }
    }
}

/// The derivative of an elementwise operation's output by one of its inputs.
#[derive(Debug)]
pub(crate) enum Partial {
    /// One.
    One,
    /// Minus one.
    MinusOne,
    /// An expression.
    Times(&'static Expression),
    /// One over an expression.
    Over(&'static Expression),
}

impl Partial {
    /// As [`Expression::reads`].
    pub(crate) fn reads(&self) -> (u8, bool) {
        match self {
            Partial::One | Partial::MinusOne => (0, false),
            Partial::Times(expression) | Partial::Over(expression) => expression.reads(),
        }
    }
}
