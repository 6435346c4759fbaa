//! The error bounds of the vector functions, on hard cases and samples; the `accuracy` example runs the long sweeps.

use crate::reference::{accuracy, mpfr};

use accuracy::{SUBJECTS, hard_cases, measure_f32, measure_f64, samples, scalar_reference};
use bh_bytecode::{DType, Opcode};
use bh_vector::math;
use bh_vector::simd::Isa;
use mpfr::Mpfr;

/// Arguments of a function per run; the hard cases come on top.
const SAMPLES: usize = 100_000;

fn check_f64(subjects: &[&str]) {
    let isas: Vec<Isa> = Isa::available().collect();
    let mut mpfr = Mpfr::load().expect("the multiple-precision reference");
    for subject in SUBJECTS.iter().filter(|subject| subjects.contains(&subject.reference)) {
        let (mut xs, mut ys) = samples(subject, SAMPLES, 1);
        for (i, x) in hard_cases().into_iter().enumerate() {
            xs.push(x);
            ys.push([1.0, -1.0, 0.5, 2.0, 3.0, 1e3][i % 6]);
        }
        let worst = measure_f64(&mut mpfr, subject, &isas, &xs, &ys).expect("a known function");
        for (isa, worst) in isas.iter().zip(worst) {
            assert!(worst.ulp <= subject.bound, "{} f64 {isa}: {worst}", subject.reference);
        }
    }
}

#[test]
fn exponentials_f64() {
    check_f64(&["exp", "exp2", "expm1", "sinh", "cosh", "tanh"]);
}

#[test]
fn logarithms_f64() {
    check_f64(&["log", "log2", "log10", "log1p", "pow"]);
}

#[test]
fn inverse_hyperbolic_f64() {
    check_f64(&["asinh", "acosh", "atanh"]);
}

#[test]
fn trigonometric_f64() {
    check_f64(&["sin", "cos", "tan"]);
}

#[test]
fn inverse_trigonometric_f64() {
    check_f64(&["asin", "acos", "atan", "atan2"]);
}

#[test]
fn error_functions_f64() {
    check_f64(&["erf", "erfc"]);
}

#[test]
fn unary_f32() {
    let isas: Vec<Isa> = Isa::available().collect();
    let xs: Vec<f32> = (0..u32::MAX).step_by(100_003).map(f32::from_bits).collect();
    for &opcode in math::UNARY {
        let reference = scalar_reference(opcode).expect("a function of one argument");
        let wanted: Vec<f64> = xs.iter().map(|&x| reference(f64::from(x))).collect();
        let worst = measure_f32(opcode, &wanted, &isas, &xs, &xs).expect("a known function");
        for (isa, worst) in isas.iter().zip(worst) {
            assert!(worst.ulp <= 1.0, "{} f32 {isa}: {worst}", opcode.name());
        }
    }
}

#[test]
fn binary_f32() {
    let isas: Vec<Isa> = Isa::available().collect();
    let mut numbers = accuracy::Numbers(3);
    let count = SAMPLES;
    let xs: Vec<f32> = (0..count)
        .map(|i| if i % 3 == 0 { f32::from_bits(numbers.bits() as u32) } else { numbers.between(-9.0, 9.0) as f32 })
        .collect();
    let ys: Vec<f32> = (0..count)
        .map(|i| if i % 5 == 0 { f32::from_bits(numbers.bits() as u32) } else { numbers.between(-30.0, 30.0) as f32 })
        .collect();
    for (opcode, reference) in [(Opcode::Power, f64::powf as fn(f64, f64) -> f64), (Opcode::Arctan2, f64::atan2)] {
        let wanted: Vec<f64> = xs.iter().zip(&ys).map(|(&x, &y)| reference(f64::from(x), f64::from(y))).collect();
        let worst = measure_f32(opcode, &wanted, &isas, &xs, &ys).expect("a known function");
        for (isa, worst) in isas.iter().zip(worst) {
            assert!(worst.ulp <= 1.0, "{} f32 {isa}: {worst}", opcode.name());
        }
    }
}

/// Square roots, roundings and remainders have exact bits: those of the scalar functions.
#[test]
fn exact_functions() {
    use bh_bytecode::scalar;
    let mut numbers = accuracy::Numbers(4);
    let specials = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -2.5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e300,
        -1e-300,
        5e-324,
        3e15,
        4503599627370497.5,
    ];
    let mut pairs: Vec<(f64, f64)> = specials.iter().flat_map(|&x| specials.map(|y| (x, y))).collect();
    for i in 0..200_000 {
        let (x, y) = match i % 4 {
            0 => (f64::from_bits(numbers.bits()), f64::from_bits(numbers.bits())),
            1 => (numbers.between(-1e3, 1e3).round(), numbers.between(-10.0, 10.0).round()),
            2 => (numbers.between(-1e17, 1e17), numbers.between(-10.0, 10.0)),
            _ => (numbers.between(-50.0, 50.0), numbers.between(-3.0, 3.0)),
        };
        pairs.push((x, y));
    }
    let xs: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
    let ys: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
    let singles = (xs.iter().map(|&x| x as f32).collect::<Vec<_>>(), ys.iter().map(|&y| y as f32).collect::<Vec<_>>());
    macro_rules! check {
        ($isa:expr, $opcode:ident, $function:expr) => {
            let function = math::lookup($isa, Opcode::$opcode, DType::F64).expect("a known function");
            for (i, got) in accuracy::run(function, &xs, &ys).into_iter().enumerate() {
                let wanted: f64 = $function(xs[i], ys[i]);
                let same = got.to_bits() == wanted.to_bits() || (got.is_nan() && wanted.is_nan());
                assert!(same, "{}({:e}, {:e}) f64 {}: {got:e} for {wanted:e}", stringify!($opcode), xs[i], ys[i], $isa);
            }
            let function = math::lookup($isa, Opcode::$opcode, DType::F32).expect("a known function");
            let (xs, ys) = &singles;
            for (i, got) in accuracy::run(function, xs, ys).into_iter().enumerate() {
                let wanted: f32 = $function(xs[i], ys[i]);
                let same = got.to_bits() == wanted.to_bits() || (got.is_nan() && wanted.is_nan());
                assert!(same, "{}({:e}, {:e}) f32 {}: {got:e} for {wanted:e}", stringify!($opcode), xs[i], ys[i], $isa);
            }
        };
    }
    for isa in Isa::available() {
        check!(isa, Sqrt, |x, _| scalar::sqrt(x));
        check!(isa, Floor, |x, _| scalar::floor(x));
        check!(isa, Ceil, |x, _| scalar::ceil(x));
        check!(isa, Trunc, |x, _| scalar::trunc(x));
        check!(isa, Rint, |x, _| scalar::rint(x));
        check!(isa, Fmod, scalar::fmod);
        check!(isa, Remainder, scalar::remainder);
        check!(isa, FloorDivide, scalar::floor_divide);
    }
}

/// Powers of zeros and infinities, and those with huge exponents, have C's bits, and angles of points on the axes, at zero, at
/// infinity and of extreme size differ by one unit at most.
#[test]
fn special_pairs() {
    let sizes = [0.0, 5e-324, 1e-300, 1e-140, 0.5, 1.0, 2.0, 3.0, 1e16, 1e25, 1e140, 1.7e308, f64::INFINITY, f64::NAN];
    let numbers: Vec<f64> = sizes.iter().flat_map(|&size| [size, -size]).collect();
    let (xs, ys): (Vec<f64>, Vec<f64>) = numbers.iter().flat_map(|&x| numbers.iter().map(move |&y| (x, y))).unzip();
    for isa in Isa::available().chain([Isa::Fused]) {
        let [powers, angles] = [Opcode::Power, Opcode::Arctan2].map(|opcode| {
            let function = math::lookup(isa, opcode, DType::F64).expect("a known function");
            accuracy::run(function, &xs, &ys)
        });
        for (i, (&x, &y)) in xs.iter().zip(&ys).enumerate() {
            let apart = |got: f64, wanted: f64| match (got.is_nan(), wanted.is_nan()) {
                (true, true) => 0,
                (false, false) => got.to_bits().abs_diff(wanted.to_bits()),
                _ => u64::MAX,
            };
            let special = x == 0.0 || !x.is_finite() || y.is_nan() || y.abs() >= 1e25;
            if special {
                assert_eq!(apart(powers[i], x.powf(y)), 0, "{x:e} to the power of {y:e} {isa}: {:e}", powers[i]);
            }
            let wanted = x.atan2(y);
            assert!(apart(angles[i], wanted) <= 1, "angle of ({y:e}, {x:e}) {isa}: {:e} for {wanted:e}", angles[i]);
        }
    }
}
