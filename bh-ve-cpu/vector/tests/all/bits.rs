//! Functions with the same bits everywhere: all levels with fused multiply-add agree with the plain one, whose operations are those of
//! IEEE 754, and all machines agree with the hashes of a table.

use crate::reference::accuracy::{Numbers, hard_cases, run};
use bh_bytecode::{DType, Opcode};
use bh_vector::math;
use bh_vector::simd::Isa;
use std::fmt::Write;

/// The hashes of all results of each function, in double and in single precision.
const HASHES: &str = include_str!("bits.txt");

/// Random bits, numbers of ordinary size, multiples of π/2 of all sizes, and hard cases.
fn arguments() -> (Vec<f64>, Vec<f64>) {
    let mut numbers = Numbers(5);
    let mut xs = hard_cases();
    for i in 0..30_000 {
        xs.push(match i % 3 {
            0 => f64::from_bits(numbers.bits()),
            1 => numbers.between(-20.0, 20.0),
            _ => (numbers.bits() >> (numbers.bits() % 64)) as f64 * std::f64::consts::FRAC_PI_2,
        });
    }
    xs.extend([f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0]);
    let ys = xs.iter().rev().enumerate().map(|(i, &x)| if i % 4 == 0 { numbers.between(-9.0, 9.0).round() } else { x });
    let ys = ys.collect();
    (xs, ys)
}

/// The results of a function; NaN have the same bits.
fn results(isa: Isa, opcode: Opcode, [xs, ys]: [&[f64]; 2]) -> Vec<u64> {
    let function = math::lookup(isa, opcode, DType::F64).expect("a known function");
    run(function, xs, ys).into_iter().map(|x| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }).collect()
}

/// The same in single precision.
fn single_results(isa: Isa, opcode: Opcode, numbers: [&[f64]; 2]) -> Vec<u64> {
    let function = math::lookup(isa, opcode, DType::F32).expect("a known function");
    let [xs, ys] = numbers.map(|all| all.iter().map(|&x| x as f32).collect::<Vec<f32>>());
    let bits = |x: f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
    run(function, &xs, &ys).into_iter().map(|x| bits(x).into()).collect()
}

#[test]
fn functions_have_the_same_bits_on_all_levels() {
    let (xs, ys) = arguments();
    let isas: Vec<Isa> = Isa::available().filter(|isa| isa.fused() == *isa).collect();
    for &opcode in math::UNARY.iter().chain(math::BINARY) {
        for results in [results, single_results] {
            let plain = results(Isa::Fused, opcode, [&xs, &ys]);
            for &isa in &isas {
                let found = results(isa, opcode, [&xs, &ys]);
                let other = (0..xs.len()).find(|&i| found[i] != plain[i]);
                assert_eq!(other.map(|i| (xs[i], ys[i])), None, "{opcode:?} {isa}");
            }
        }
    }
}

/// A hash of words that depends on their order (FNV-1a, a word at a time).
fn hash(words: &[u64]) -> u64 {
    words.iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn functions_have_the_same_bits_on_all_machines() {
    let (xs, ys) = arguments();
    let mut found = String::new();
    for &opcode in math::UNARY.iter().chain(math::BINARY) {
        let [double, single] = [results, single_results].map(|results| hash(&results(Isa::Fused, opcode, [&xs, &ys])));
        writeln!(found, "{opcode:?} {double:016x} {single:016x}").unwrap();
    }
    let differing: Vec<&str> = found.lines().filter(|line| !HASHES.lines().any(|known| known == *line)).collect();
    assert!(differing.is_empty(), "tests/all/bits.txt has other hashes than\n{}", differing.join("\n"));
}
