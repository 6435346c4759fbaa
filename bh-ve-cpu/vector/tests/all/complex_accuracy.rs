//! Complex functions: at most 8 units of relative error, normwise; powers 8 (1 + |y log x|), as they are computed that way.

use crate::reference::{accuracy, mpc};
use bh_bytecode::{DType, Opcode, c64, c128};
use bh_vector::prims;
use bh_vector::simd::Isa;

const SAMPLES: usize = 1600;

/// Points of ordinary size, near the axes, near ±1 and ±i, and of all magnitudes.
fn points(seed: u64, wide: bool) -> Vec<c128> {
    let mut numbers = accuracy::Numbers(seed);
    let mut points = Vec::new();
    for i in 0..SAMPLES {
        let (a, b) = (numbers.between(-3.0, 3.0), numbers.between(-3.0, 3.0));
        let scale = if wide { 2f64.powi((numbers.bits() % 200) as i32 - 100) } else { 10.0 };
        let tiny = 2f64.powi(-((numbers.bits() % 60) as i32));
        points.push(match i % 8 {
            0 | 1 => c128::new(a, b),
            2 => c128::new(a * scale, b * scale),
            3 => c128::new(a, b * tiny),
            4 => c128::new(a * tiny, b),
            5 => c128::new(1.0 + a * tiny, b * tiny),
            6 => c128::new(a * tiny, -1.0 + b * tiny),
            _ => c128::new(a.cos(), a.sin()),
        });
    }
    points
}

/// How far a power is from its argument's rounding: 1 + |y log x|; 1 for all else.
fn condition(opcode: Opcode, x: c128, y: c128) -> f64 {
    if opcode != Opcode::Power {
        return 1.0;
    }
    1.0 + f64::hypot(y.re, y.im) * f64::hypot(f64::hypot(x.re, x.im).ln(), f64::atan2(x.im, x.re))
}

fn check(opcode: Opcode, name: &str, wide: bool) {
    Isa::available().for_each(|isa| check_on(isa, opcode, name, wide));
}

fn check_on(isa: Isa, opcode: Opcode, name: &str, wide: bool) {
    let mut reference = mpc::Mpc::load().expect("the multiple-precision reference");
    let (xs, ys) = (points(1, wide), points(2, wide));
    let inputs = opcode.info().inputs;
    let complex_result = opcode != Opcode::Absolute;
    let mut worst = (0.0, String::new());
    let run = prims::lookup(isa, opcode, 0, DType::C128, if complex_result { DType::C128 } else { DType::F64 });
    let run = run.expect("a complex primitive");
    let mut out = vec![c128::new(0.0, 0.0); xs.len()];
    // SAFETY: blocks of equal length, with room for the larger result.
    unsafe { run(xs.len(), out.as_mut_ptr().cast(), xs.as_ptr().cast(), ys.as_ptr().cast(), std::ptr::null()) };
    // SAFETY: a real result fills half of the same memory.
    let moduli = unsafe { std::slice::from_raw_parts(out.as_ptr().cast::<f64>(), xs.len()) };
    for i in 0..xs.len() {
        let (x, y) = (xs[i], ys[i]);
        let got = if complex_result { [out[i].re, out[i].im] } else { [moduli[i], 0.0] };
        let second = (inputs == 2).then_some([y.re, y.im]);
        if let Some(error) = reference.error(name, [x.re, x.im], second, got).expect("a function of the reference")
            && exceeds(error / condition(opcode, x, y), worst.0)
        {
            worst = (error / condition(opcode, x, y), format!("{x:?} {y:?} gives {got:?}"));
        }
    }
    assert!(worst.0 <= 8.0 * f64::EPSILON, "{isa}: {name} c128: {} eps at {}", worst.0 / f64::EPSILON, worst.1);

    let run = prims::lookup(isa, opcode, 0, DType::C64, if complex_result { DType::C64 } else { DType::F32 });
    let run = run.expect("a complex primitive");
    let single = |z: &c128| c64::new(z.re as f32, z.im as f32);
    let (xs, ys): (Vec<c64>, Vec<c64>) = (xs.iter().map(single).collect(), ys.iter().map(single).collect());
    let mut out = vec![c64::new(0.0, 0.0); xs.len()];
    // SAFETY: blocks of equal length, with room for the larger result.
    unsafe { run(xs.len(), out.as_mut_ptr().cast(), xs.as_ptr().cast(), ys.as_ptr().cast(), std::ptr::null()) };
    // SAFETY: a real result fills half of the same memory.
    let moduli = unsafe { std::slice::from_raw_parts(out.as_ptr().cast::<f32>(), xs.len()) };
    let wide = |z: c64| [f64::from(z.re), f64::from(z.im)];
    for i in 0..xs.len() {
        let got = if complex_result { wide(out[i]) } else { [f64::from(moduli[i]), 0.0] };
        let size = f64::hypot(got[0], got[1]);
        if !(1e-30..1e30).contains(&size) {
            continue;
        }
        let second = (inputs == 2).then_some(wide(ys[i]));
        if let Some(error) = reference.error(name, wide(xs[i]), second, got).expect("a function of the reference") {
            let bound = 8.0 * f64::from(f32::EPSILON);
            assert!(error <= bound, "{isa}: {name} c64 at {:?} {:?}: {got:?}", xs[i], ys[i]);
        }
    }
}

/// Is the value greater, or NaN, which no bound allows?
fn exceeds(value: f64, limit: f64) -> bool {
    value.is_nan() || value > limit
}

#[test]
fn exponential_and_logarithms() {
    check(Opcode::Exp, "exp", false);
    check(Opcode::Log, "log", true);
    check(Opcode::Log10, "log10", true);
    check(Opcode::Sqrt, "sqrt", true);
}

#[test]
fn trigonometric() {
    check(Opcode::Sin, "sin", false);
    check(Opcode::Cos, "cos", false);
    check(Opcode::Tan, "tan", false);
}

#[test]
fn hyperbolic() {
    check(Opcode::Sinh, "sinh", false);
    check(Opcode::Cosh, "cosh", false);
    check(Opcode::Tanh, "tanh", false);
}

#[test]
fn arithmetic() {
    check(Opcode::Multiply, "mul", true);
    check(Opcode::Divide, "div", true);
    check(Opcode::Power, "pow", false);
}
