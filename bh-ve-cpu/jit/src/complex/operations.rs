//! Element-wise operations of complex numbers, in the order of the scalar functions.

use super::split;
use crate::arithmetic::{Operation, powers};
use crate::builder::{Builder, Element, Value};
use crate::mathematics::{modulus_of_all, square_of_modulus};
use bh_bytecode::{DType, Opcode};
use inkwell::FloatPredicate as Float;

impl Operation {
    /// The instructions of an operation that has complex numbers among its operands or makes them; `None` if there are
    /// none.
    pub(crate) fn complex<'c>(&self, b: &Builder<'c>, [x, y, z]: [Value<'c>; 3]) -> Option<Value<'c>> {
        let part = self.input.real_part();
        let parts = Operation { input: part, output: part, ..*self };
        let product = |x, y| join(b, parts.product(b, split(b, x), split(b, y)));
        Some(match self.opcode {
            Opcode::Copy => return self.convert(b, x),
            Opcode::Where => {
                let (y, z) = (split(b, y), split(b, z));
                join(b, [0, 1].map(|half| b.select(x, y[half], z[half])))
            }
            Opcode::Add => self.add(b, x, y),
            Opcode::Subtract => self.subtract(b, x, y),
            Opcode::Multiply => product(x, y),
            Opcode::Powi => {
                let one = |x| {
                    let [re, im] = split(b, x);
                    join(b, [b.splat(re.kind, 1.0), b.splat(im.kind, 0.0)])
                };
                let power = powers(self.param, x, product, |x| product(one(x), x))?;
                // Zeros of any signs give 0.
                let parts = split(b, x);
                let [re, im] = parts.map(|part| b.compare(Float::OEQ, part, b.splat(part.kind, 0.0)));
                let is_zero = b.and(re, im);
                join(b, split(b, power).map(|part| b.select(is_zero, b.splat(part.kind, 0.0), part)))
            }
            Opcode::Divide => join(b, parts.quotient(b, split(b, x), split(b, y))),
            Opcode::Conj => {
                let [re, im] = split(b, x);
                join(b, [re, b.neg(im)])
            }
            Opcode::Real => split(b, x)[0],
            Opcode::Imag => split(b, x)[1],
            Opcode::Absolute => parts.modulus(b, split(b, x)),
            Opcode::Equal | Opcode::NotEqual => {
                let (x, y) = (split(b, x), split(b, y));
                let is_equal = self.opcode == Opcode::Equal;
                let predicate = if is_equal { Float::OEQ } else { Float::UNE };
                let [re, im] = [0, 1].map(|half| b.compare(predicate, x[half], y[half]));
                if is_equal { b.and(re, im) } else { b.or(re, im) }
            }
            Opcode::Isnan | Opcode::Isinf | Opcode::Isfinite => {
                let [re, im] = split(b, x);
                let (re, im) = (parts.emit(b, [re; 3])?, parts.emit(b, [im; 3])?);
                if self.opcode == Opcode::Isfinite { b.and(re, im) } else { b.or(re, im) }
            }
            _ => return None,
        })
    }

    /// A conversion to complex numbers, from such or from real ones.
    fn convert<'c>(&self, b: &Builder<'c>, x: Value<'c>) -> Option<Value<'c>> {
        if self.input == self.output {
            return Some(x);
        }
        let parts = Operation { input: self.input.real_part(), output: self.output.real_part(), ..*self };
        let halves = if self.input.is_complex() {
            let [re, im] = split(b, x);
            [parts.emit(b, [re; 3])?, parts.emit(b, [im; 3])?]
        } else {
            let re = parts.emit(b, [x; 3])?;
            [re, b.splat(re.kind, 0.0)]
        };
        Some(join(b, halves))
    }

    /// The product, of the parts' type.
    fn product<'c>(
        &self,
        b: &Builder<'c>,
        [x_re, x_im]: [Value<'c>; 2],
        [y_re, y_im]: [Value<'c>; 2],
    ) -> [Value<'c>; 2] {
        let re = self.subtract(b, self.multiply(b, x_re, y_re), self.multiply(b, x_im, y_im));
        let im = self.add(b, self.multiply(b, x_re, y_im), self.multiply(b, x_im, y_re));
        [re, im]
    }

    /// The quotient by Smith's method: with the divisor's larger part first, both cases are one formula but for a sign.
    fn quotient<'c>(
        &self,
        b: &Builder<'c>,
        [x_re, x_im]: [Value<'c>; 2],
        [y_re, y_im]: [Value<'c>; 2],
    ) -> [Value<'c>; 2] {
        let [re_size, im_size] = [y_re, y_im].map(|part| b.intrinsic("fabs", &[part]));
        let mostly_real = b.compare(Float::OGE, re_size, im_size);
        let larger = b.select(mostly_real, y_re, y_im);
        let smaller = b.select(mostly_real, y_im, y_re);
        let first = b.select(mostly_real, x_re, x_im);
        let second = b.select(mostly_real, x_im, x_re);
        let ratio = self.divide(b, smaller, larger);
        let sum = self.add(b, larger, self.multiply(b, smaller, ratio));
        let scale = self.divide(b, b.splat(sum.kind, 1.0), sum);
        let re = self.add(b, first, self.multiply(b, second, ratio));
        let first_part = self.multiply(b, first, ratio);
        let (real, imaginary) = (self.subtract(b, second, first_part), self.subtract(b, first_part, second));
        let im = b.select(mostly_real, real, imaginary);
        // By zero the parts are divided one by one: as if multiplied by infinity.
        let [zero, infinity] = [0.0, f64::INFINITY].map(|number| b.splat(sum.kind, number));
        let [re_zero, im_zero] = [y_re, y_im].map(|part| b.compare(Float::OEQ, part, zero));
        let by_zero = b.and(re_zero, im_zero);
        let scale = b.select(by_zero, infinity, scale);
        [(x_re, re), (x_im, im)].map(|(dividend, sum)| {
            let dividend = b.select(by_zero, dividend, sum);
            self.multiply(b, dividend, scale)
        })
    }

    /// The modulus of numbers with these parts.
    fn modulus<'c>(&self, b: &Builder<'c>, parts: [Value<'c>; 2]) -> Value<'c> {
        if self.input == DType::F64 {
            let [square, _] = square_of_modulus(b, self.level, parts);
            return modulus_of_all(b, self.level, parts, square);
        }
        // The squares are exact in the wider type, and an infinite part wins over NaN.
        let squares = parts.map(|part| {
            let part = b.widen(part, Element::F64);
            b.mul(part, part)
        });
        let root = b.intrinsic("sqrt", &[b.add(squares[0], squares[1])]);
        let root = b.narrow(root, Element::F32);
        let infinity = b.splat(root.kind, f64::INFINITY);
        let infinite = parts.map(|part| b.compare(Float::OEQ, b.intrinsic("fabs", &[part]), infinity));
        b.select(b.or(infinite[0], infinite[1]), infinity, root)
    }
}

/// Real and imaginary parts as one value.
fn join<'c>(b: &Builder<'c>, [re, im]: [Value<'c>; 2]) -> Value<'c> {
    b.concatenate(re, im)
}
