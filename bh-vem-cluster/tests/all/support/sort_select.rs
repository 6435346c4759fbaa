//! Random sorts and selections: their results equal those of a stack without ranks.

use super::{Part, Program};
use bh_bytecode::random::Rng;
use bh_bytecode::{DType, Opcode, View};
use bh_core::stack::Stack;

const TYPES: [DType; 8] =
    [DType::Bool, DType::I8, DType::U16, DType::I32, DType::I64, DType::U64, DType::F32, DType::F64];

/// Elements with many duplicates, and some NaNs for floating-point types.
fn elements(rng: &mut Rng, dtype: DType, count: i64) -> Vec<u8> {
    let kinds = rng.between(1, 40);
    let mut bytes = Vec::new();
    for _ in 0..count {
        let number = rng.between(-kinds, kinds);
        let odd = rng.below(30);
        match dtype {
            DType::Bool => bytes.push(u8::from(number > 0)),
            DType::F32 => {
                let value = [f32::NAN, -f32::NAN, -0.0, f32::INFINITY].get(odd).copied();
                bytes.extend(value.unwrap_or(number as f32 / 3.0).to_ne_bytes());
            }
            DType::F64 => {
                let value = [f64::NAN, -f64::NAN, -0.0, f64::NEG_INFINITY].get(odd).copied();
                bytes.extend(value.unwrap_or(number as f64 / 3.0).to_ne_bytes());
            }
            _ => {
                let all = if odd == 0 { number.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) } else { number };
                bytes.extend_from_slice(&all.to_le_bytes()[..dtype.size()]);
            }
        }
    }
    bytes
}

/// A view of a line, with fewer elements or reversed.
fn some(rng: &mut Rng, length: i64) -> View {
    let all = View::contiguous(&[length]).unwrap();
    match rng.below(5) {
        0 => all.reverse(0).unwrap(),
        1 => all.slice(0, Some(rng.between(0, length / 2)), None, 1).unwrap(),
        2 => all.slice(0, None, None, 2).unwrap(),
        _ => all,
    }
}

/// The results of a program with this seed.
fn outcome(stack: &mut Stack, seed: u64) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(seed);
    let mut program = Program::new(stack);
    let dtype = *rng.pick(&TYPES).unwrap();
    let (rows, columns) = (rng.between(1, 400), rng.between(1, 5));
    let length = rows * columns;
    let bytes = elements(&mut rng, dtype, length);
    let source = program.data(dtype, &[rows, columns], &bytes);
    let truths = elements(&mut rng, DType::Bool, length);
    let mask = program.data(DType::Bool, &[rows, columns], &truths);
    let line = some(&mut rng, length);
    let count = line.len();
    let mut results = Vec::new();
    for _ in 0..3 {
        let chosen = truths.iter().filter(|truth| **truth != 0).count() as i64;
        let result = match rng.below(5) {
            0 => {
                let sorted = program.array_of(dtype, &[count]);
                program.method("sort", program.all(sorted), &[(source, line)]);
                sorted
            }
            1 => {
                let order = program.whole(&[count]);
                program.method("argsort", program.all(order), &[(source, line)]);
                order
            }
            2 if chosen > 0 => {
                let values = program.array_of(dtype, &[chosen]);
                program.method("compress", program.all(values), &[program.all(mask), program.all(source)]);
                values
            }
            3 if chosen > 0 => {
                let numbers = program.whole(&[chosen]);
                let flat: Part = (mask, View::contiguous(&[length]).unwrap());
                program.method("flatnonzero", program.all(numbers), &[flat]);
                numbers
            }
            _ => {
                let places = program.numbers(&(0..length).map(|_| rng.between(-7, 6)).collect::<Vec<_>>());
                let values = program.numbers(&(0..length).map(|_| rng.between(-99, 99)).collect::<Vec<_>>());
                let sums = program.numbers(&[1, 2, 3, 4, 5, 6, 7]);
                program.op(Opcode::ScatterAdd, program.all(sums), &[program.all(values), program.all(places)]);
                sums
            }
        };
        if rng.below(2) == 0 {
            program.run();
        }
        results.push(result);
    }
    program.run();
    let left = results.into_iter().map(|array| program.bytes(array)).collect();
    program.end();
    left
}

/// Runs programs of these seeds on both stacks.
pub fn compare(stack: &mut Stack, plain: &mut Stack, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        assert_eq!(outcome(stack, seed), outcome(plain, seed), "seed {seed}");
    }
}
