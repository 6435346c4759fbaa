//! Operations of one operand on a single number, for programs that compute numbers themselves.

use crate::{Opcode, Truth, for_each_opcode, scalar};

/// A result as a number: 1 for true.
trait Number {
    fn number(self) -> f64;
}

impl Number for f64 {
    fn number(self) -> f64 {
        self
    }
}

impl Number for Truth {
    fn number(self) -> f64 {
        f64::from(u8::from(self.get()))
    }
}

macro_rules! row {
    ($x:ident, powi $($other:tt)*) => {
        None
    };
    ($x:ident, $scalar:ident Elementwise 1 same NUMERIC) => {
        Some(scalar::$scalar($x).number())
    };
    ($x:ident, $scalar:ident Elementwise 1 same INEXACT) => {
        Some(scalar::$scalar($x).number())
    };
    ($x:ident, $scalar:ident Elementwise 1 same FLOAT) => {
        Some(scalar::$scalar($x).number())
    };
    ($x:ident, $scalar:ident Elementwise 1 abs $set:ident) => {
        Some(scalar::$scalar($x).number())
    };
    ($x:ident, $scalar:ident Elementwise 1 test $set:ident) => {
        Some(scalar::$scalar($x).number())
    };
    ($($other:tt)*) => {
        None
    };
}

macro_rules! define_of_number {
    ($(($variant:ident, $name:literal, $code:literal, $kind:ident, $inputs:tt, $signature:ident $set:ident, $scalar:ident, $neutral:ident, $cost:literal, $expression:literal, [$($front:literal),*], $doc:literal)),* $(,)?) => {
        /// The result of an operation of one operand for a number, 1 for true; `None` for other operations.
        pub fn of_number(opcode: Opcode, x: f64) -> Option<f64> {
            match opcode {
                $(Opcode::$variant => row!(x, $scalar $kind $inputs $signature $set),)*
                _ => None,
            }
        }
    };
}
for_each_opcode!(define_of_number);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Kind};

    #[test]
    fn every_operation_of_one_float_is_known_and_no_other() {
        for &opcode in Opcode::ALL {
            let info = opcode.info();
            let takes = info.kind == Kind::Elementwise && info.inputs == 1 && info.types.contains(DType::F64);
            let known = takes && !matches!(opcode, Opcode::Copy | Opcode::Powi);
            assert_eq!(of_number(opcode, 0.5).is_some(), known, "{opcode}");
        }
        assert_eq!(of_number(Opcode::Absolute, -2.5), Some(2.5));
        assert_eq!(of_number(Opcode::Isnan, f64::NAN), Some(1.0));
        assert_eq!(of_number(Opcode::Trunc, -2.5), Some(-2.0));
    }
}
