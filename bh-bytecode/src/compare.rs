//! When two results count as equal: the accuracy that each opcode promises, and the comparison of buffers.
//!
//! Integers, comparisons, moves and correctly rounded operations are equal bit by bit, but for the payload of NaN.
//! Functions are equal within their bound, to which the oracle's own error is added. Reductions are equal within
//! 2nε·Σ|x|, and infinities and NaN are the same wherever they do not depend on the order.

use crate::complex::{c64, c128};
use crate::dtype::DType;
use crate::element::Element;
use crate::opcode::{Kind, Opcode};
use crate::with_dtype;
use std::fmt;

/// How far a result may be from the oracle's.
#[derive(Clone, Debug, PartialEq)]
pub enum Tolerance {
    /// The same bits; any NaN equals any NaN.
    Exact,
    /// At most this number of representable numbers apart, and zeros of the same sign.
    Ulps(u32),
    /// A complex distance of at most this factor times ε times the expected modulus.
    Normwise(f64),
    /// The same for powers of complex numbers, of which products may make NaN of one part where another overflows.
    Power(f64),
    /// An absolute distance of at most 2nε times the magnitude that belongs to the element (Σ|x|, or n times Π|x|).
    /// Infinities and NaN must be the same where every order gives them.
    Sum {
        /// How many elements were combined.
        count: u64,
        /// For each element of the result, the magnitude of the finite numbers in it; NaN if NaN went in.
        magnitudes: Vec<f64>,
        /// Were they multiplied, instead of added?
        product: bool,
    },
}

/// The functions whose real results are not correctly rounded everywhere: code of many instructions.
pub const FUNCTIONS: &[Opcode] = &[
    Opcode::Power,
    Opcode::Cos,
    Opcode::Sin,
    Opcode::Tan,
    Opcode::Cosh,
    Opcode::Sinh,
    Opcode::Tanh,
    Opcode::Arcsin,
    Opcode::Arccos,
    Opcode::Arctan,
    Opcode::Arcsinh,
    Opcode::Arccosh,
    Opcode::Arctanh,
    Opcode::Arctan2,
    Opcode::Exp,
    Opcode::Exp2,
    Opcode::Expm1,
    Opcode::Log,
    Opcode::Log2,
    Opcode::Log10,
    Opcode::Log1p,
    Opcode::Cbrt,
    Opcode::Erf,
];

/// The tolerance of an elementwise opcode on inputs of a type; [`Tolerance::Exact`] for opcodes of other kinds, of which
/// only sums and products of floats and complex numbers may differ (see [`may_differ`] and [`Tolerance::Sum`]).
pub fn tolerance(opcode: Opcode, input: DType) -> Tolerance {
    if opcode.kind() != Kind::Elementwise || !(input.is_float() || input.is_complex()) {
        return Tolerance::Exact;
    }
    if input.is_complex() {
        return match opcode {
            // The modulus is real, and a function of two parts.
            Opcode::Absolute => Tolerance::Ulps(2),
            Opcode::Sign => Tolerance::Normwise(4.0),
            // exp(b·log a) loses as many digits as b·log a has before the point.
            Opcode::Power if input == DType::C64 => Tolerance::Power(256.0),
            Opcode::Power => Tolerance::Power(2048.0),
            // 8ε, and the oracle's own error: a rounding, and for c128 up to 2ε.
            _ if opcode == Opcode::Sqrt || FUNCTIONS.contains(&opcode) => {
                Tolerance::Normwise(if input == DType::C64 { 8.5 } else { 10.0 })
            }
            _ => Tolerance::Exact,
        };
    }
    match (opcode, input) {
        (Opcode::Erfc, DType::F32) => Tolerance::Ulps(4),
        (Opcode::Erfc, _) => Tolerance::Ulps(5),
        (_, DType::F32) if FUNCTIONS.contains(&opcode) => Tolerance::Ulps(1),
        _ if FUNCTIONS.contains(&opcode) => Tolerance::Ulps(4),
        _ => Tolerance::Exact,
    }
}

/// The tolerance of an elementwise opcode that an OpenCL device computes with its own functions: the bounds that OpenCL
/// sets for them, and the oracle's own error.
pub fn opencl_tolerance(opcode: Opcode, input: DType) -> Tolerance {
    let own = tolerance(opcode, input);
    if own == Tolerance::Exact {
        return own;
    }
    if input.is_complex() {
        // Some functions of parts, one after the other.
        return match own {
            Tolerance::Ulps(_) => Tolerance::Ulps(8),
            Tolerance::Normwise(bound) => Tolerance::Normwise(4.0 * bound),
            Tolerance::Power(bound) => Tolerance::Power(4.0 * bound),
            other => other,
        };
    }
    let bound = match opcode {
        Opcode::Power | Opcode::Erf | Opcode::Erfc => 16,
        Opcode::Arctan2 => 6,
        Opcode::Tan | Opcode::Arctan | Opcode::Tanh => 5,
        Opcode::Exp | Opcode::Exp2 | Opcode::Expm1 | Opcode::Log | Opcode::Log2 | Opcode::Log10 => 3,
        Opcode::Log1p => 2,
        _ => 4,
    };
    Tolerance::Ulps(bound + if input == DType::F32 { 1 } else { 2 })
}

/// May two right results of the opcode on inputs of a type differ at all? Sums and products depend on the order of their
/// elements, and so does the sign of a zero that is the extreme of zeros of both signs.
pub fn may_differ(opcode: Opcode, input: DType) -> bool {
    let inexact = input.is_float() || input.is_complex();
    let folds = matches!(
        opcode,
        Opcode::AddReduce
            | Opcode::MultiplyReduce
            | Opcode::MinimumReduce
            | Opcode::MaximumReduce
            | Opcode::MaskedAddReduce
            | Opcode::MaskedMultiplyReduce
            | Opcode::MaskedMinimumReduce
            | Opcode::MaskedMaximumReduce
            | Opcode::Contract
            | Opcode::AddAccumulate
            | Opcode::MultiplyAccumulate
    );
    (inexact && folds) || tolerance(opcode, input) != Tolerance::Exact
}

/// The first difference between two buffers.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct Difference {
    /// The place in C order.
    pub index: usize,
    /// The oracle's value.
    pub expected: String,
    /// The value that was found.
    pub actual: String,
    /// How many elements differ.
    pub count: usize,
    /// The rule that was broken.
    pub rule: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { index, expected, actual, count, rule } = self;
        write!(f, "element {index} is {actual} instead of {expected} ({rule}); {count} elements differ")
    }
}

/// Compares two buffers of elements; fails with the first difference. Truth values are equal whatever the byte of a true one is.
pub fn compare(dtype: DType, expected: &[u8], actual: &[u8], tolerance: &Tolerance) -> Result<(), Difference> {
    with_dtype!(dtype, T => compare_as::<T>(expected, actual, tolerance))
}

/// The value as the real and imaginary parts in f64, and the ε of its type.
fn parts<T: Element>(value: T) -> (c128, f64) {
    let mut bytes = [0u8; 16];
    value.write(&mut bytes);
    let real = |re: f64| c128::new(re, 0.0);
    match T::DTYPE {
        DType::F32 => (real(f32::read(&bytes) as f64), f32::EPSILON as f64),
        DType::F64 => (real(f64::read(&bytes)), f64::EPSILON),
        DType::C64 => {
            let value = c64::read(&bytes);
            (c128::new(value.re as f64, value.im as f64), f32::EPSILON as f64)
        }
        DType::C128 => (c128::read(&bytes), f64::EPSILON),
        _ => (real(0.0), 0.0),
    }
}

fn compare_as<T: Element>(expected: &[u8], actual: &[u8], tolerance: &Tolerance) -> Result<(), Difference> {
    let size = T::DTYPE.size();
    let rule = match tolerance {
        Tolerance::Exact => "equal bits".to_string(),
        Tolerance::Ulps(ulps) => format!("at most {ulps} ULP apart"),
        Tolerance::Normwise(bound) | Tolerance::Power(bound) => format!("within {bound} ε of the modulus"),
        Tolerance::Sum { count, .. } => format!("within 2·{count}·ε of the magnitude"),
    };
    if expected.len() != actual.len() {
        let text = |bytes: &[u8]| format!("{} bytes", bytes.len());
        return Err(Difference { index: 0, expected: text(expected), actual: text(actual), count: 1, rule });
    }
    let mut first = None;
    let mut count = 0;
    for (index, (expected, actual)) in expected.chunks_exact(size).zip(actual.chunks_exact(size)).enumerate() {
        if expected == actual {
            continue;
        }
        let (expected, actual) = (T::read(expected), T::read(actual));
        if !equal(expected, actual, index, tolerance) {
            count += 1;
            first.get_or_insert((index, expected, actual));
        }
    }
    match first {
        None => Ok(()),
        Some((index, expected, actual)) => {
            Err(Difference { index, expected: format!("{expected:?}"), actual: format!("{actual:?}"), count, rule })
        }
    }
}

/// Do two elements with different bits count as equal?
fn equal<T: Element>(expected: T, actual: T, index: usize, tolerance: &Tolerance) -> bool {
    if T::DTYPE == DType::Bool {
        return expected == actual;
    }
    let ((expected, epsilon), (actual, _)) = (parts(expected), parts(actual));
    if epsilon == 0.0 {
        return false;
    }
    let each = |test: &dyn Fn(f64, f64) -> bool| test(expected.re, actual.re) && test(expected.im, actual.im);
    if each(&same) {
        return true;
    }
    let special = |x: f64, y: f64| !x.is_finite() || !y.is_finite();
    let tiny = if epsilon == f64::EPSILON { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE as f64 };
    let distance = (expected.re - actual.re).hypot(expected.im - actual.im);
    match tolerance {
        Tolerance::Exact => false,
        Tolerance::Ulps(ulps) => {
            let close = |x: f64, y: f64| {
                let steps = if epsilon == f64::EPSILON { steps_f64(x, y) } else { steps_f32(x as f32, y as f32) };
                same(x, y)
                    || (!x.is_nan()
                        && !y.is_nan()
                        && steps <= *ulps as u64
                        && x.is_sign_negative() == y.is_sign_negative())
            };
            each(&close)
        }
        Tolerance::Normwise(bound) | Tolerance::Power(bound) => {
            let overflows = expected.re.is_infinite() || expected.im.is_infinite();
            if overflows && matches!(tolerance, Tolerance::Power(_)) {
                return special(actual.re, actual.im);
            }
            // Special values are the same: infinities and NaN, and zeros beside them, whose signs count.
            if special(expected.re, expected.im) || special(actual.re, actual.im) {
                let nonzero = |x: f64| x.is_finite() && x != 0.0;
                let close =
                    |x: f64, y: f64| nonzero(x) && nonzero(y) && (x - y).abs() <= bound * epsilon * x.abs().max(tiny);
                return each(&|x, y| same(x, y) || close(x, y));
            }
            distance <= bound * epsilon * expected.re.hypot(expected.im).max(tiny)
        }
        Tolerance::Sum { count, magnitudes, product } => {
            let magnitude = magnitudes.get(index).copied().unwrap_or(0.0);
            let largest = if epsilon == f64::EPSILON { f64::MAX } else { f32::MAX as f64 };
            let complex = T::DTYPE.is_complex();
            if magnitude.is_nan() {
                // It comes through in every order. In complex numbers it may spread to other parts, or, in products, become
                // infinite, depending on the order.
                return complex
                    && (actual.re.is_nan() || actual.im.is_nan() || *product && special(actual.re, actual.im));
            }
            // A part of the elements may overflow in one order and not in another.
            if magnitude >= largest / 2.0 {
                return true;
            }
            // Products below the normal numbers are rounded to multiples of the smallest one.
            let bound = 2.0 * (*count).max(1) as f64 * epsilon * magnitude.max(tiny);
            match (special(expected.re, expected.im), *product) {
                (false, _) => distance <= bound,
                // Infinities went in, which nothing takes away again.
                (true, false) => each(&|x, y| same(x, y) || (x - y).abs() <= bound),
                // But they become NaN where a product of the others vanishes first.
                (true, true) => complex || !actual.re.is_finite(),
            }
        }
    }
}

/// Equal bits, or both NaN.
fn same(x: f64, y: f64) -> bool {
    x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan())
}

/// The number of representable numbers from one to the other; the ends are not NaN.
fn steps_f64(x: f64, y: f64) -> u64 {
    let rank = |value: f64| {
        let magnitude = (value.to_bits() & !(1 << 63)) as i64;
        if value.is_sign_negative() { -magnitude } else { magnitude }
    };
    rank(x).abs_diff(rank(y))
}

/// [`steps_f64`] among f32.
fn steps_f32(x: f32, y: f32) -> u64 {
    let rank = |value: f32| {
        let magnitude = (value.to_bits() & !(1 << 31)) as i64;
        if value.is_sign_negative() { -magnitude } else { magnitude }
    };
    rank(x).abs_diff(rank(y))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::complex::Complex;

    fn bytes<T: Element>(values: &[T]) -> Vec<u8> {
        let mut bytes = vec![0; values.len() * T::DTYPE.size()];
        for (chunk, value) in bytes.chunks_exact_mut(T::DTYPE.size()).zip(values) {
            value.write(chunk);
        }
        bytes
    }

    fn check<T: Element>(expected: &[T], actual: &[T], tolerance: &Tolerance) -> Result<(), Difference> {
        compare(T::DTYPE, &bytes(expected), &bytes(actual), tolerance)
    }

    #[test]
    fn exact_means_bits_but_for_nan() {
        check(&[1i8, 2], &[1, 2], &Tolerance::Exact).unwrap();
        check(&[f64::NAN], &[-f64::NAN], &Tolerance::Exact).unwrap();
        check(&[0.0f32], &[-0.0], &Tolerance::Exact).unwrap_err();
        let difference = check(&[1i8, 2, 3], &[1, 4, 5], &Tolerance::Exact).unwrap_err();
        assert_eq!(difference.to_string(), "element 1 is 4 instead of 2 (equal bits); 2 elements differ");
        check(&[1u8, 2], &[1], &Tolerance::Exact).unwrap_err();
        compare(DType::Bool, &[0, 1], &[0, 128], &Tolerance::Exact).unwrap();
        compare(DType::Bool, &[0, 1], &[2, 1], &Tolerance::Exact).unwrap_err();
    }

    #[test]
    fn ulps_count_representable_numbers() {
        let next = |x: f32, steps: u32| f32::from_bits(x.to_bits() + steps);
        check(&[1.0f32], &[next(1.0, 2)], &Tolerance::Ulps(2)).unwrap();
        check(&[1.0f32], &[next(1.0, 3)], &Tolerance::Ulps(2)).unwrap_err();
        check(&[f64::MAX], &[f64::INFINITY], &Tolerance::Ulps(1)).unwrap();
        check(&[f64::NAN], &[1.0], &Tolerance::Ulps(9)).unwrap_err();
        check(&[0.0f64], &[-0.0], &Tolerance::Ulps(9)).unwrap_err();
        check(&[Complex::new(1.0f32, 2.0)], &[Complex::new(next(1.0, 1), 2.0)], &Tolerance::Ulps(1)).unwrap();
    }

    #[test]
    fn complex_distance_is_relative_to_the_modulus() {
        let expected = Complex::new(1.0f64, 1e-20);
        check(&[expected], &[Complex::new(1.0, 2e-17)], &Tolerance::Normwise(8.0)).unwrap();
        check(&[expected], &[Complex::new(1.0, 1e-14)], &Tolerance::Normwise(8.0)).unwrap_err();
        let infinite = Complex::new(f64::INFINITY, f64::NAN);
        check(&[infinite], &[Complex::new(f64::INFINITY, -f64::NAN)], &Tolerance::Normwise(8.0)).unwrap();
        check(&[infinite], &[Complex::new(f64::NEG_INFINITY, f64::NAN)], &Tolerance::Normwise(8.0)).unwrap_err();
        check(&[infinite], &[expected], &Tolerance::Normwise(8.0)).unwrap_err();
        let beside = |part: f64| [Complex::new(part, f64::NAN)];
        check(&beside(1.0), &beside(1.0 + 4.0 * f64::EPSILON), &Tolerance::Normwise(8.0)).unwrap();
        check(&beside(0.0), &beside(-0.0), &Tolerance::Normwise(8.0)).unwrap_err();
    }

    #[test]
    fn powers_that_overflow_may_be_nan_in_parts() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let (infinite, finite) = (Complex::new(-inf, inf), Complex::new(1.0, inf.recip()));
        check(&[infinite], &[Complex::new(-inf, nan)], &Tolerance::Power(8.0)).unwrap();
        check(&[infinite], &[Complex::new(-inf, nan)], &Tolerance::Normwise(8.0)).unwrap_err();
        check(&[infinite], &[finite], &Tolerance::Power(8.0)).unwrap_err();
        check(&[finite], &[infinite], &Tolerance::Power(8.0)).unwrap_err();
        check(&[Complex::new(nan, nan)], &[infinite], &Tolerance::Power(8.0)).unwrap_err();
        check(&[finite], &[Complex::new(1.0 + 4.0 * f64::EPSILON, 0.0)], &Tolerance::Power(8.0)).unwrap();
        check(&[finite], &[Complex::new(1.0 + 9.0 * f64::EPSILON, 0.0)], &Tolerance::Power(8.0)).unwrap_err();
    }

    #[test]
    fn sums_are_bounded_by_their_magnitude() {
        let tolerance = Tolerance::Sum { count: 4, magnitudes: vec![100.0, 1.0], product: false };
        check(&[0.0f64, 1.0], &[8.0 * f64::EPSILON * 99.0, 1.0], &tolerance).unwrap();
        check(&[0.0f64, 1.0], &[0.0, 1.0 + 9.0 * f64::EPSILON], &tolerance).unwrap_err();
    }

    #[test]
    fn what_every_order_makes_infinite_or_nan_must_be_so() {
        let (nan, inf, zero) = (f64::NAN, f64::INFINITY, Complex::new(0.0, 0.0));
        let fold = |magnitude: f64, product| Tolerance::Sum { count: 4, magnitudes: vec![magnitude], product };
        // NaN went in.
        for product in [false, true] {
            check(&[nan], &[-nan], &fold(nan, product)).unwrap();
            check(&[nan], &[1.0], &fold(nan, product)).unwrap_err();
            check(&[nan], &[inf], &fold(nan, product)).unwrap_err();
            check(&[Complex::new(nan, 1.0)], &[Complex::new(nan, nan)], &fold(nan, product)).unwrap();
            check(&[Complex::new(nan, nan)], &[zero], &fold(nan, product)).unwrap_err();
        }
        check(&[Complex::new(nan, nan)], &[Complex::new(inf, 0.0)], &fold(nan, true)).unwrap();
        check(&[Complex::new(nan, nan)], &[Complex::new(inf, 0.0)], &fold(nan, false)).unwrap_err();
        // Infinities did, of one sign or of both.
        check(&[inf], &[1.0], &fold(8.0, false)).unwrap_err();
        check(&[inf], &[-inf], &fold(8.0, false)).unwrap_err();
        check(&[nan], &[inf], &fold(8.0, false)).unwrap_err();
        check(&[Complex::new(inf, 1.0)], &[Complex::new(inf, 1.0 + f64::EPSILON)], &fold(8.0, false)).unwrap();
        check(&[Complex::new(inf, 1.0)], &[Complex::new(inf, 2.0)], &fold(8.0, false)).unwrap_err();
        check(&[inf], &[nan], &fold(8.0, true)).unwrap();
        check(&[inf], &[3.0], &fold(8.0, true)).unwrap_err();
        check(&[1.0], &[inf], &fold(8.0, false)).unwrap_err();
        // Finite numbers that overflow in some orders.
        check(&[inf], &[nan], &fold(f64::MAX, false)).unwrap();
        check(&[inf as f32], &[1e30f32], &fold(f32::MAX as f64, false)).unwrap();
    }

    #[test]
    fn tolerances_follow_the_type() {
        assert_eq!(tolerance(Opcode::Add, DType::F64), Tolerance::Exact);
        assert_eq!(tolerance(Opcode::Power, DType::I64), Tolerance::Exact);
        assert_eq!(tolerance(Opcode::Sin, DType::F32), Tolerance::Ulps(1));
        assert_eq!(tolerance(Opcode::Sqrt, DType::F64), Tolerance::Exact);
        assert!(may_differ(Opcode::AddReduce, DType::F32) && !may_differ(Opcode::AddReduce, DType::I32));
        assert!(may_differ(Opcode::Sqrt, DType::C64));
        assert!(may_differ(Opcode::MaximumReduce, DType::F64) && !may_differ(Opcode::MaximumReduce, DType::I64));
    }
}
