//! Eigenvalues and vectors of symmetric matrices, which are what they must be.

use super::Program;
use bh_bytecode::DType;
use bh_bytecode::random::Rng;
use bh_core::stack::Stack;
use std::ops::Range;

/// A symmetric matrix: of any numbers, of a few that come often, of a band, of one value many times, or almost diagonal.
fn matrix(rng: &mut Rng, n: usize) -> Vec<f64> {
    let kind = rng.below(5);
    let mut all = vec![0.0; n * n];
    for row in 0..n {
        for column in 0..=row {
            let number = rng.between(-1000, 1000) as f64 / 250.0;
            let value = match kind {
                0 => number,
                1 => f64::from(number > 0.0),
                2 => {
                    if row - column < 3 {
                        number
                    } else {
                        0.0
                    }
                }
                3 => f64::from(row == column) * 3.0 + if row == n - 1 { number } else { 0.0 },
                _ => {
                    if row == column {
                        row as f64
                    } else {
                        number * 1e-12
                    }
                }
            };
            (all[row * n + column], all[column * n + row]) = (value, value);
        }
    }
    all
}

fn bytes(dtype: DType, values: &[f64]) -> Vec<u8> {
    match dtype {
        DType::F32 => values.iter().flat_map(|value| (*value as f32).to_ne_bytes()).collect(),
        _ => values.iter().flat_map(|value| value.to_ne_bytes()).collect(),
    }
}

fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    match dtype {
        DType::F32 => bytes.as_chunks().0.iter().map(|word| f32::from_ne_bytes(*word).into()).collect(),
        _ => bytes.as_chunks().0.iter().map(|word| f64::from_ne_bytes(*word)).collect(),
    }
}

/// Panics if a stack does not find those of random matrices.
pub fn compare(stack: &mut Stack, seeds: Range<u64>) {
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let n = rng.between(64, 130) as usize;
        let dtype = if rng.below(3) == 0 { DType::F32 } else { DType::F64 };
        let given = numbers(dtype, &bytes(dtype, &matrix(&mut rng, n)));
        let shape = [n as i64, n as i64];
        let mut program = Program::new(stack);
        // Only the lower triangle is read.
        let lower: Vec<f64> = (0..n * n).map(|at| if at % n > at / n { 77.0 } else { given[at] }).collect();
        let source = program.data(dtype, &shape, &bytes(dtype, &lower));
        let [values, alone] = [(); 2].map(|()| program.array_of(dtype, &[n as i64]));
        let vectors = program.array_of(dtype, &shape);
        program.method_into("eigh", &[program.all(values), program.all(vectors)], &[program.all(source)]);
        program.method_into("eigh", &[program.all(alone)], &[program.all(source)]);
        program.run();
        let [values, alone, vectors] = [values, alone, vectors].map(|array| numbers(dtype, &program.bytes(array)));
        let most = given.iter().fold(1.0, |most: f64, value| most.max(value.abs())) * n as f64;
        let error = if dtype == DType::F32 { 1e-6 } else { 1e-13 };
        assert!(values.windows(2).all(|pair| pair[0] <= pair[1]), "seed {seed}: values are not in order");
        let near = |one: f64, two: f64, scale: f64| (one - two).abs() <= error * scale * 10.0;
        assert!(values.iter().zip(&alone).all(|(one, two)| near(*one, *two, most)), "seed {seed}: values alone differ");
        for column in 0..n {
            for row in 0..n {
                let product: f64 = (0..n).map(|inner| given[row * n + inner] * vectors[inner * n + column]).sum();
                let wanted = values[column] * vectors[row * n + column];
                assert!(near(product, wanted, most), "seed {seed}: vector {column}, row {row}: {product} {wanted}");
                let square: f64 = (0..n).map(|inner| vectors[inner * n + row] * vectors[inner * n + column]).sum();
                assert!(
                    near(square, f64::from(u8::from(row == column)), n as f64),
                    "seed {seed}: {row} {column} {square}"
                );
            }
        }
        assert_eq!(program.count("cluster.operations brought to one rank"), 0, "seed {seed}");
        program.end();
    }
}
