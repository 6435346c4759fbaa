//! Linear systems and factorizations with distributed columns: equal bits on any number of ranks, equal to one rank up
//! to the last bits, and no more traffic than the columns that ranks need of each other.

use crate::support;

use bh_bytecode::random::Rng;
use bh_bytecode::{DType, View};
use bh_core::stack::Stack;
use support::{Part, Program, cluster_on, cluster_with};

const BELOW: &str = "'fuser', 'node', 've-cpu'";

/// A method and its matrix.
#[derive(Clone, Copy, Debug)]
struct Case {
    method: &'static str,
    rows: i64,
    sides: i64,
    dtype: DType,
    turned: bool,
    seed: u64,
}

fn number(rng: &mut Rng) -> f64 {
    rng.between(-1000, 1000) as f64 / 250.0
}

fn element(dtype: DType, re: f64, im: f64) -> Vec<u8> {
    match dtype {
        DType::F32 => (re as f32).to_ne_bytes().to_vec(),
        DType::F64 => re.to_ne_bytes().to_vec(),
        DType::C64 => [(re as f32).to_ne_bytes(), (im as f32).to_ne_bytes()].concat(),
        _ => [re.to_ne_bytes(), im.to_ne_bytes()].concat(),
    }
}

/// A random matrix; positive definite for Cholesky.
fn matrix(case: &Case, rng: &mut Rng) -> Vec<u8> {
    let n = case.rows;
    let positive = case.method == "cholesky";
    let mut entries = vec![(0.0, 0.0); (n * n) as usize];
    for row in 0..n {
        for column in 0..n {
            let (re, im) = (number(rng), number(rng));
            let at = |row: i64, column: i64| (row * n + column) as usize;
            match (positive, row == column) {
                (true, true) => entries[at(row, row)] = (8.0 * n as f64 + re, 0.0),
                (true, false) if row > column => {
                    (entries[at(row, column)], entries[at(column, row)]) = ((re, im), (re, -im));
                }
                (true, false) => {}
                (false, _) => entries[at(row, column)] = (re, im),
            }
        }
    }
    entries.into_iter().flat_map(|(re, im)| element(case.dtype, re, im)).collect()
}

/// A stack's results, and the bytes of the rank that sends the most.
fn outcome(stack: &mut Stack, case: &Case) -> (Vec<Vec<u8>>, u64) {
    let (mut rng, n) = (Rng::new(case.seed), case.rows);
    let mut program = Program::new(stack);
    let bytes = matrix(case, &mut rng);
    let source = program.data(case.dtype, &[n, n], &bytes);
    let side: Vec<u8> = (0..n * case.sides).flat_map(|_| element(case.dtype, number(&mut rng), 1.0)).collect();
    let side = program.data(case.dtype, &[n, case.sides], &side);
    let whole = View::contiguous(&[n, n]).unwrap();
    let given: Part = (source, if case.turned { whole.transpose(&[1, 0]).unwrap() } else { whole });
    let mut results = vec![program.array_of(case.dtype, &[n, if case.method == "solve" { case.sides } else { n }])];
    let mut inputs = vec![given];
    match case.method {
        "solve" => inputs.push(program.all(side)),
        "lu" => results.push(program.whole(&[n])),
        _ => {}
    }
    program.run();
    let before = program.traffic();
    let outputs: Vec<Part> = results.iter().map(|result| program.all(*result)).collect();
    program.method_into(case.method, &outputs, &inputs);
    program.run();
    let sent = program.traffic() - before;
    let left = results.into_iter().map(|result| program.bytes(result)).collect();
    program.end();
    (left, sent.most_bytes)
}

fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    match dtype {
        DType::F32 | DType::C64 => bytes.as_chunks().0.iter().map(|word| f32::from_ne_bytes(*word).into()).collect(),
        DType::I64 => bytes.as_chunks().0.iter().map(|word| i64::from_ne_bytes(*word) as f64).collect(),
        _ => bytes.as_chunks().0.iter().map(|word| f64::from_ne_bytes(*word)).collect(),
    }
}

fn near(dtype: DType, found: &[u8], wanted: &[u8]) -> bool {
    let (found, wanted) = (numbers(dtype, found), numbers(dtype, wanted));
    let largest = wanted.iter().fold(1.0, |largest: f64, value| largest.max(value.abs()));
    let error = if dtype.size() == 4 || dtype == DType::C64 { 2e-3 } else { 1e-9 };
    found.len() == wanted.len() && found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() <= error * largest)
}

fn case(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    Case {
        method: ["solve", "lu", "cholesky"][rng.below(3)],
        rows: rng.between(9, 90),
        sides: rng.between(1, 40),
        dtype: [DType::F64, DType::F32, DType::C64, DType::C128][rng.below(4)],
        turned: rng.below(4) == 0,
        seed,
    }
}

#[test]
fn systems_and_factors_have_the_same_bits_on_any_number_of_ranks() {
    let variable = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (programs, first) = (variable("BH_TEST_PROGRAMS", 60), variable("BH_TEST_FIRST", 0));
    let mut plain = cluster_on(BELOW, 1, 64);
    let mut stacks: Vec<Stack> = [2usize, 3, 7, 16]
        .into_iter()
        .map(|ranks| {
            let shares = ["1", "0", "2", "0.5", "3", "0.1", "1"];
            let weights = if ranks == 7 { format!("weights = [{}]", shares.join(", ")) } else { String::new() };
            cluster_with(BELOW, ranks, if ranks == 3 { 300 } else { 64 }, &weights)
        })
        .collect();
    for seed in first..first + programs {
        let case = case(seed);
        let (wanted, _) = outcome(&mut plain, &case);
        let mut bits = None;
        for stack in &mut stacks {
            let (found, _) = outcome(stack, &case);
            for (place, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                let dtype = if place == 1 { DType::I64 } else { case.dtype };
                assert!(near(dtype, found, wanted), "{case:?}, output {place}");
            }
            assert_eq!(*bits.get_or_insert_with(|| found.clone()), found, "{case:?}");
        }
    }
}

#[test]
fn matrices_move_only_the_columns_that_ranks_need() {
    for (method, sides) in [("solve", 1), ("solve", 96), ("lu", 1), ("cholesky", 1)] {
        for ranks in [2usize, 4, 16, 64] {
            let case = Case { method, rows: 512, sides, dtype: DType::F64, turned: false, seed: 7 };
            let mut stack = cluster_on(BELOW, ranks, 64);
            let (_, most) = outcome(&mut stack, &case);
            let matrix = (case.rows * case.rows * 8) as u64;
            // The matrix moves there and back, and each rank receives at most the other ranks' blocks, half of each on
            // average. If few ranks have right sides, one of them forwards more.
            let limit = 3 * matrix / ranks as u64 + matrix * 3 / 4 + if sides > 1 { matrix } else { 0 };
            assert!(most <= limit, "{method} on {ranks} ranks: {most} of {limit}");
            let program = Program::new(&mut stack);
            assert_eq!(program.count("cluster.operations brought to one rank"), 0, "{method} on {ranks} ranks");
        }
    }
}

#[test]
fn matrices_without_a_solution_are_an_error_of_all_ranks() {
    for ranks in [1usize, 2, 5] {
        let mut stack = cluster_on(BELOW, ranks, 64);
        let mut program = Program::new(&mut stack);
        let value =
            |at: i64| if at % 40 == 31 { 0.0 } else { (at * at % 101) as f64 + f64::from(at % 41 == 0) * 300.0 };
        let source = program.grid(&[40, 40], value);
        let negative = program.grid(&[40, 40], |at| if at % 41 == 0 { 20.0 - at as f64 / 41.0 } else { 0.0 });
        let (side, out, other) =
            (program.grid(&[40, 3], |at| at as f64), program.zeros(&[40, 3]), program.zeros(&[40, 40]));
        program.run();
        program.method("solve", program.all(out), &[program.all(source), program.all(side)]);
        let error = program.try_run().unwrap_err().to_string();
        assert!(error.contains("singular"), "{ranks} ranks: {error}");
        program.method("cholesky", program.all(other), &[program.all(negative)]);
        let error = program.try_run().unwrap_err().to_string();
        assert!(error.contains("positive definite"), "{ranks} ranks: {error}");
        // The remaining arrays are usable.
        assert_eq!(program.values(side)[5], 5.0);
        program.method("solve", program.all(out), &[program.all(negative), program.all(side)]);
        assert!(program.try_run().is_err(), "a row of zeros has no solution");
        program.end();
    }
}
