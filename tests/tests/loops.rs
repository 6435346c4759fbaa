//! Loops of a program find their partitions again: long ones without reads, and ones over ever smaller views.

use bh_bytecode::{Constant, DType, Opcode, View};
use bh_recorder::{ArrayId, Input, Location, Options, Recorder};
use bh_tests::stacks;
use std::sync::Arc;

fn recorder() -> Arc<Recorder> {
    let recorder = Recorder::new();
    recorder.start(Options::default(), || Ok(Box::new(stacks::load("cpu")?))).unwrap();
    recorder
}

fn counter(recorder: &Recorder, name: &str) -> u64 {
    recorder.sync().unwrap();
    recorder.with_stack(|stack| Ok(stack.stats().get(name).unwrap_or(0))).unwrap()
}

fn new(recorder: &Recorder, opcode: Opcode, param: u16, inputs: &[Input]) -> ArrayId {
    recorder.operate_new(opcode, param, None, inputs, Location::UNKNOWN).unwrap()
}

/// A window on an n×n grid.
fn window(recorder: &Recorder, grid: ArrayId, rows: [i64; 2], columns: [i64; 2]) -> ArrayId {
    let cut =
        |view: &View| view.slice(0, Some(rows[0]), Some(rows[1]), 1)?.slice(1, Some(columns[0]), Some(columns[1]), 1);
    recorder.derive(grid, cut).unwrap()
}

fn drop_all(recorder: &Recorder, arrays: &[ArrayId]) {
    arrays.iter().for_each(|&array| recorder.free(array).unwrap());
}

/// One step of the heat equation whose change nobody reads.
fn heat_step(recorder: &Recorder, grid: ArrayId, n: i64) {
    let inside = [1, n - 1];
    let windows = [(inside, inside), ([0, n - 2], inside), ([2, n], inside), (inside, [0, n - 2]), (inside, [2, n])]
        .map(|(rows, columns)| window(recorder, grid, rows, columns));
    let mut sum = windows[0];
    for &next in &windows[1..] {
        let more = new(recorder, Opcode::Add, 0, &[Input::Array(sum), Input::Array(next)]);
        if sum != windows[0] {
            recorder.free(sum).unwrap();
        }
        sum = more;
    }
    let factor = Input::Constant(Constant::from_value(0.2));
    recorder.operate(Opcode::Multiply, 0, windows[0], &[Input::Array(sum), factor], Location::UNKNOWN).unwrap();
    recorder.free(sum).unwrap();
    drop_all(recorder, &windows);
}

#[test]
fn a_long_loop_without_reads_is_cut_where_it_repeats() {
    let (recorder, n) = (recorder(), 20);
    let grid = recorder.full(Constant::from_value(1.5), &[n, n], Location::UNKNOWN).unwrap();
    (0..4_000).for_each(|_| heat_step(&recorder, grid, n));
    let (hits, misses) = (counter(&recorder, "fuser.cache_hits"), counter(&recorder, "fuser.cache_misses"));
    // 36,000 instructions in batches of about a thousand: all but the first, the last, and one between are equal.
    assert!(hits >= 15 && misses <= 4, "{hits} hits, {misses} misses");
    // A kernel is a step, as ever.
    let kernels = counter(&recorder, "fuser.kernels");
    assert!((4_000..4_020).contains(&kernels), "{kernels} kernels");
    recorder.free(grid).unwrap();
    recorder.shutdown().unwrap();
}

#[test]
fn elimination_over_shrinking_views_is_partitioned_once() {
    let (recorder, n) = (recorder(), 40);
    let matrix = recorder.full(Constant::from_value(2.0), &[n, n], Location::UNKNOWN).unwrap();
    for step in 0..n - 1 {
        let below = [step + 1, n];
        let pivot = window(&recorder, matrix, [step, step + 1], [step, step + 1]);
        let column = window(&recorder, matrix, below, [step, step + 1]);
        let row = window(&recorder, matrix, [step, step + 1], [step, n]);
        let rest = window(&recorder, matrix, below, [step, n]);
        let factors = new(&recorder, Opcode::Divide, 0, &[Input::Array(column), Input::Array(pivot)]);
        let product = new(&recorder, Opcode::Multiply, 0, &[Input::Array(factors), Input::Array(row)]);
        let inputs = [Input::Array(rest), Input::Array(product)];
        recorder.operate(Opcode::Subtract, 0, rest, &inputs, Location::UNKNOWN).unwrap();
        drop_all(&recorder, &[pivot, column, row, rest, factors, product]);
        recorder.flush().unwrap();
    }
    let hits = counter(&recorder, "fuser.assignment_hits");
    let misses = counter(&recorder, "fuser.cache_misses");
    // Views of one row or one column relate in ways of their own.
    assert!(misses >= 39 && hits + 4 >= misses, "{hits} of {misses} batches found their assignment");
    recorder.free(matrix).unwrap();
    recorder.shutdown().unwrap();
}

#[test]
fn sums_keep_their_kernels_in_a_loop() {
    let recorder = recorder();
    let values = recorder.full(Constant::from_value(0.5), &[100], Location::UNKNOWN).unwrap();
    for _ in 0..50 {
        let twice = new(&recorder, Opcode::Add, 0, &[Input::Array(values), Input::Array(values)]);
        let sum = new(&recorder, Opcode::AddReduce, 1, &[Input::Array(twice)]);
        recorder.free(twice).unwrap();
        assert_eq!(recorder.read_scalar(sum).unwrap(), Constant::from_value(100.0).cast(DType::F64));
        recorder.free(sum).unwrap();
    }
    let (kernels, misses) = (counter(&recorder, "fuser.kernels"), counter(&recorder, "fuser.cache_misses"));
    assert!((50..53).contains(&kernels) && misses <= 4, "{kernels} kernels, {misses} misses");
    recorder.free(values).unwrap();
    recorder.shutdown().unwrap();
}
