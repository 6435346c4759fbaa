//! Classes of constants: the facts about a constant's value that rewriting rules, and the keys of their results, use.

use crate::batch::Constant;
use crate::complex::c128;
use crate::dtype::DType;

/// The class of a constant, by which rewriting rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstantClass {
    /// A whole number of small magnitude; its zero is not negative.
    Integer(i8),
    /// Negative zero.
    NegativeZero,
    /// Anything else.
    Other,
}

impl ConstantClass {
    /// The largest magnitude of a small whole number.
    pub const LARGEST: i8 = 16;

    /// The class of a constant. A complex one is a whole number only if its imaginary part is positive zero.
    pub fn of(constant: &Constant) -> ConstantClass {
        let value = if constant.dtype().is_complex() {
            let value: c128 = constant.cast(DType::C128).value().unwrap_or_default();
            if value.im.to_bits() != 0 {
                return ConstantClass::Other;
            }
            value.re
        } else {
            constant.to::<f64>()
        };
        if value == 0.0 && value.is_sign_negative() {
            ConstantClass::NegativeZero
        } else if value.fract() == 0.0 && value.abs() <= Self::LARGEST as f64 {
            ConstantClass::Integer(value as i8)
        } else {
            ConstantClass::Other
        }
    }

    /// A number for keys.
    pub fn code(self) -> u64 {
        match self {
            ConstantClass::Integer(value) => value as u8 as u64,
            ConstantClass::NegativeZero => 0x100,
            ConstantClass::Other => 0x101,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::Truth;

    #[test]
    fn classes_of_constants() {
        let class = ConstantClass::of;
        assert_eq!(class(&Constant::from_value(Truth::TRUE)), ConstantClass::Integer(1));
        assert_eq!(class(&Constant::from_value(-1i64)), ConstantClass::Integer(-1));
        assert_eq!(class(&Constant::from_value(0.0f32)), ConstantClass::Integer(0));
        assert_eq!(class(&Constant::from_value(-0.0f32)), ConstantClass::NegativeZero);
        assert_eq!(class(&Constant::from_value(0.5)), ConstantClass::Other);
        assert_eq!(class(&Constant::from_value(f64::NAN)), ConstantClass::Other);
        assert_eq!(class(&Constant::from_value(u64::MAX)), ConstantClass::Other);
        assert_eq!(class(&Constant::from_value(c128::new(2.0, 0.0))), ConstantClass::Integer(2));
        assert_eq!(class(&Constant::from_value(c128::new(2.0, -0.0))), ConstantClass::Other);
    }
}
