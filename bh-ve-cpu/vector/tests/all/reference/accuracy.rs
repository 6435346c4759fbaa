//! Measures the error of the vector functions in units in the last place.

use super::mpfr::{Function, Mpfr};
use bh_bytecode::{DType, Opcode};
use bh_vector::math::{self, PrimFn};
use bh_vector::simd::Isa;

/// A function, its name in the reference, its bound for `f64`, and where its arguments are drawn from.
pub struct Subject {
    /// The opcode.
    pub opcode: Opcode,
    /// The name behind `mpfr_`.
    pub reference: &'static str,
    /// The number of arguments.
    pub inputs: usize,
    /// The largest error allowed for `f64`, in units in the last place.
    pub bound: f64,
    /// Intervals of interest of the first argument, beside all magnitudes.
    pub intervals: &'static [(f64, f64)],
}

const fn unary(opcode: Opcode, reference: &'static str, bound: f64, intervals: &'static [(f64, f64)]) -> Subject {
    Subject { opcode, reference, inputs: 1, bound, intervals }
}

/// All functions that are not correctly rounded.
pub const SUBJECTS: &[Subject] = &[
    unary(Opcode::Cos, "cos", 2.0, &[(-4.0, 4.0), (-1e3, 1e3), (-2e6, 2e6)]),
    unary(Opcode::Sin, "sin", 2.0, &[(-4.0, 4.0), (-1e3, 1e3), (-2e6, 2e6)]),
    unary(Opcode::Tan, "tan", 2.0, &[(-4.0, 4.0), (-1e3, 1e3), (-2e6, 2e6)]),
    unary(Opcode::Cosh, "cosh", 2.0, &[(-1.0, 1.0), (-30.0, 30.0), (-711.0, 711.0)]),
    unary(Opcode::Sinh, "sinh", 2.0, &[(-1.0, 1.0), (-30.0, 30.0), (-711.0, 711.0)]),
    unary(Opcode::Tanh, "tanh", 2.0, &[(-1.0, 1.0), (-22.0, 22.0)]),
    unary(Opcode::Arcsin, "asin", 2.0, &[(-1.0, 1.0), (0.4, 0.6), (0.99, 1.0)]),
    unary(Opcode::Arccos, "acos", 2.0, &[(-1.0, 1.0), (0.4, 0.6), (0.99, 1.0)]),
    unary(Opcode::Arctan, "atan", 2.0, &[(-1.0, 1.0), (0.0, 3.0), (-100.0, 100.0)]),
    unary(Opcode::Arcsinh, "asinh", 2.0, &[(-1.0, 1.0), (-100.0, 100.0), (0.0, 1e-3)]),
    unary(Opcode::Arccosh, "acosh", 2.0, &[(1.0, 2.0), (1.0, 100.0), (1.0, 1.000001)]),
    unary(Opcode::Arctanh, "atanh", 2.0, &[(-1.0, 1.0), (0.0, 1e-3), (0.999, 1.0)]),
    unary(Opcode::Exp, "exp", 2.0, &[(-1.0, 1.0), (-40.0, 40.0), (-746.0, 710.0)]),
    unary(Opcode::Exp2, "exp2", 2.0, &[(-1.0, 1.0), (-40.0, 40.0), (-1076.0, 1024.0)]),
    unary(Opcode::Expm1, "expm1", 2.0, &[(-1.0, 1.0), (-40.0, 40.0), (-1.0, 710.0)]),
    unary(Opcode::Log, "log", 2.0, &[(0.5, 2.0), (0.0, 100.0), (0.999, 1.001)]),
    unary(Opcode::Log2, "log2", 2.0, &[(0.5, 2.0), (0.0, 100.0), (0.999, 1.001)]),
    unary(Opcode::Log10, "log10", 2.0, &[(0.5, 2.0), (0.0, 100.0), (0.999, 1.001)]),
    unary(Opcode::Log1p, "log1p", 2.0, &[(-1.0, 1.0), (0.0, 100.0), (-1e-3, 1e-3)]),
    unary(Opcode::Cbrt, "cbrt", 2.0, &[(-1.0, 1.0), (-100.0, 100.0), (-1e300, 1e300), (-1e-310, 1e-310)]),
    unary(Opcode::Erf, "erf", 2.0, &[(-1.0, 1.0), (0.9, 1.1), (-6.0, 6.0)]),
    unary(Opcode::Erfc, "erfc", 4.0, &[(-1.0, 1.0), (-6.0, 28.0), (0.4, 2.0), (20.0, 27.3)]),
    Subject {
        opcode: Opcode::Power,
        reference: "pow",
        inputs: 2,
        bound: 2.0,
        intervals: &[(0.5, 2.0), (0.0, 100.0), (0.99, 1.01)],
    },
    Subject {
        opcode: Opcode::Arctan2,
        reference: "atan2",
        inputs: 2,
        bound: 2.0,
        intervals: &[(-1.0, 1.0), (-10.0, 10.0)],
    },
];

/// The largest error found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worst {
    /// In units in the last place.
    pub ulp: f64,
    /// The arguments.
    pub at: (f64, f64),
    /// The result there.
    pub got: f64,
}

impl std::fmt::Display for Worst {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} ULP at {:e}, {:e}, where it is {:e}", self.ulp, self.at.0, self.at.1, self.got)
    }
}

impl Worst {
    fn note(&mut self, ulp: f64, at: (f64, f64), got: f64) {
        // A NaN error is the worst of all.
        if ulp > self.ulp || ulp.is_nan() {
            *self = Worst { ulp: if ulp.is_nan() { f64::INFINITY } else { ulp }, at, got };
        }
    }
}

/// Numbers that look random and are the same in every run (SplitMix64).
pub struct Numbers(pub u64);

impl Numbers {
    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in an interval.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.bits() >> 11) as f64 * 2f64.powi(-53))
    }
}

/// Arguments at which such functions have gone wrong: limits of ranges, neighbours of multiples of π/2, of powers of two.
pub fn hard_cases() -> Vec<f64> {
    let mut cases = vec![
        0.0,
        1.0,
        0.5,
        2.0,
        1e-300,
        5e-324,
        1e-310,
        f64::MIN_POSITIVE,
        f64::MAX,
        // The worst cases of reduction modulo π/2 in double precision.
        6381956970095103.0 * 2f64.powi(797),
        5319372648326541.0 * 2f64.powi(100),
        708.0,
        709.782712893384,
        710.4758600739439,
        -745.1332191019412,
        -708.3964185322641,
        27.226017111108366,
        0.41421356237309503,
        2.414213562373095,
        0.84375,
        std::f64::consts::FRAC_1_SQRT_2,
        std::f64::consts::SQRT_2,
        std::f64::consts::LN_2 / 2.0,
    ];
    for n in 1..2000 {
        cases.push(f64::from(n) * std::f64::consts::FRAC_PI_2);
        cases.push(f64::from(n * n * 7 + 1) * std::f64::consts::FRAC_PI_4);
    }
    for e in -1070..1023 {
        cases.push(2f64.powi(e));
        cases.push(2f64.powi(e) * (1.0 + f64::EPSILON));
    }
    for n in -300..300 {
        cases.push(10f64.powi(n));
        cases.push(1.0 + f64::from(n) * f64::EPSILON);
    }
    let near: Vec<f64> = cases
        .iter()
        .flat_map(|&x| [f64::from_bits(x.to_bits() + 1), f64::from_bits(x.to_bits().saturating_sub(1))])
        .collect();
    cases.extend(near);
    let negative: Vec<f64> = cases.iter().map(|x| -x).collect();
    cases.extend(negative);
    cases.retain(|x| x.is_finite());
    cases
}

/// `count` argument pairs for a subject, the hard cases apart.
pub fn samples(subject: &Subject, count: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut numbers = Numbers(seed ^ u64::from(subject.opcode.0) << 32);
    let (mut xs, mut ys) = (Vec::with_capacity(count), Vec::with_capacity(count));
    while xs.len() < count {
        let pick = numbers.bits() as usize % (subject.intervals.len() + 1);
        let x = match subject.intervals.get(pick) {
            Some(&(low, high)) => numbers.between(low, high),
            None => f64::from_bits(numbers.bits()),
        };
        // For powers mostly an exponent that neither overflows nor vanishes.
        let y = match (subject.opcode, numbers.bits() % 4) {
            (Opcode::Power, 0) => numbers.between(-20.0, 20.0).round(),
            (Opcode::Power, _) if x > 0.0 => numbers.between(-745.0, 709.7) / x.ln().abs().max(1e-3),
            (_, 0) => f64::from_bits(numbers.bits()),
            _ => numbers.between(-3.0, 3.0),
        };
        if x.is_finite() && y.is_finite() {
            xs.push(x);
            ys.push(y);
        }
    }
    (xs, ys)
}

/// Runs a primitive in blocks of an odd size, so that tails are part of every measurement.
pub fn run<T: Copy + Default>(function: PrimFn, xs: &[T], ys: &[T]) -> Vec<T> {
    let mut out = vec![T::default(); xs.len()];
    for ((out, x), y) in out.chunks_mut(509).zip(xs.chunks(509)).zip(ys.chunks(509)) {
        // SAFETY: three blocks of the same length; the level is available because the caller got it from `available`.
        unsafe {
            function(out.len(), out.as_mut_ptr().cast(), x.as_ptr().cast(), y.as_ptr().cast(), std::ptr::null());
        }
    }
    out
}

/// log2 of the unit in the last place of the format with this precision and lowest exponent.
fn unit_exponent(value: f64, precision: i32, lowest: i32) -> i32 {
    let exponent = (value.abs().to_bits() >> 52) as i32 - 1023;
    (exponent - (precision - 1)).max(lowest)
}

/// The largest errors of a function of `f64` on these arguments, one entry per level.
pub fn measure_f64(
    mpfr: &mut Mpfr,
    subject: &Subject,
    isas: &[Isa],
    xs: &[f64],
    ys: &[f64],
) -> Result<Vec<Worst>, String> {
    let reference: Function = mpfr.function(subject.reference, subject.inputs)?;
    let mut results = Vec::new();
    for &isa in isas {
        let function = math::lookup(isa, subject.opcode, DType::F64).ok_or("no such function")?;
        results.push(run(function, xs, ys));
    }
    let mut worst = vec![Worst::default(); isas.len()];
    for i in 0..xs.len() {
        let wanted = mpfr.evaluate(reference, xs[i], ys[i]);
        for (level, result) in results.iter().enumerate() {
            let got = result[i];
            let error = if got.to_bits() == wanted.to_bits() {
                // Rounded correctly; how close to the middle does not matter.
                continue;
            } else if got.is_nan() || wanted.is_nan() {
                if got.is_nan() && wanted.is_nan() { 0.0 } else { f64::NAN }
            } else if wanted == 0.0 && got == 0.0 {
                // The sign of zero is part of the result.
                f64::NAN
            } else if got.is_infinite() || wanted.is_infinite() {
                // Against the largest finite number, in its units.
                let near = if got.is_infinite() { f64::MAX.copysign(got) } else { got };
                mpfr.distance(near, 971) + if got.is_infinite() { 1.0 } else { 0.0 }
            } else {
                mpfr.distance(got, unit_exponent(wanted, 53, -1074))
            };
            worst[level].note(error, (xs[i], ys[i]), got);
        }
    }
    Ok(worst)
}

/// The largest errors of a function of `f32` on these arguments, against its values in `f64`.
pub fn measure_f32(opcode: Opcode, wanted: &[f64], isas: &[Isa], xs: &[f32], ys: &[f32]) -> Result<Vec<Worst>, String> {
    let mut results = Vec::new();
    for &isa in isas {
        let function = math::lookup(isa, opcode, DType::F32).ok_or("no such function")?;
        results.push(run(function, xs, ys));
    }
    let mut worst = vec![Worst::default(); isas.len()];
    for i in 0..xs.len() {
        let wanted = wanted[i];
        let rounded = wanted as f32;
        for (level, result) in results.iter().enumerate() {
            let got = result[i];
            if got.to_bits() == rounded.to_bits() || (got.is_nan() && rounded.is_nan()) {
                continue;
            }
            let error = if got.is_nan() || rounded.is_nan() || got == rounded {
                f64::NAN
            } else {
                // An infinity stands for the power of two that follows the largest number.
                let value = if got.is_infinite() { 2f64.powi(128).copysign(f64::from(got)) } else { f64::from(got) };
                let wanted = wanted.clamp(-(2f64.powi(128)), 2f64.powi(128));
                (value - wanted).abs() * 2f64.powi(-unit_exponent(wanted, 24, -149).min(104))
            };
            worst[level].note(error, (f64::from(xs[i]), f64::from(ys[i])), f64::from(got));
        }
    }
    Ok(worst)
}

/// The scalar function of `f64` behind an opcode of one argument.
pub fn scalar_reference(opcode: Opcode) -> Option<fn(f64) -> f64> {
    use bh_bytecode::scalar::*;
    Some(match opcode {
        Opcode::Cos => cos::<f64>,
        Opcode::Sin => sin::<f64>,
        Opcode::Tan => tan::<f64>,
        Opcode::Cosh => cosh::<f64>,
        Opcode::Sinh => sinh::<f64>,
        Opcode::Tanh => tanh::<f64>,
        Opcode::Arcsin => arcsin::<f64>,
        Opcode::Arccos => arccos::<f64>,
        Opcode::Arctan => arctan::<f64>,
        Opcode::Arcsinh => arcsinh::<f64>,
        // The scalar function does not see every argument below 1.
        Opcode::Arccosh => |x| if x < 1.0 { f64::NAN } else { arccosh(x) },
        Opcode::Arctanh => arctanh::<f64>,
        Opcode::Exp => exp::<f64>,
        Opcode::Exp2 => exp2::<f64>,
        Opcode::Expm1 => expm1::<f64>,
        Opcode::Log => log::<f64>,
        Opcode::Log2 => log2::<f64>,
        Opcode::Log10 => log10::<f64>,
        Opcode::Log1p => log1p::<f64>,
        Opcode::Sqrt => sqrt::<f64>,
        Opcode::Cbrt => cbrt::<f64>,
        Opcode::Ceil => ceil::<f64>,
        Opcode::Trunc => trunc::<f64>,
        Opcode::Floor => floor::<f64>,
        Opcode::Rint => rint::<f64>,
        Opcode::Erf => erf::<f64>,
        Opcode::Erfc => erfc::<f64>,
        _ => return None,
    })
}
