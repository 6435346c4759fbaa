//! Loops of a program reuse their partitions: long ones without reads, and ones over shrinking views.

use bh_bytecode::{Constant, DType, Kind, Opcode, View};
use bh_recorder::{ArrayId, Input, Location, Options, Recipes, Recorder};
use bh_tests::stacks;
use std::sync::Arc;

fn recorder() -> Arc<Recorder> {
    let recorder = Recorder::new();
    recorder
        .start(Options { immediate_bytes: 0, ..Options::default() }, || Ok(Box::new(stacks::load("cpu")?)))
        .unwrap();
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

/// One step of the heat equation, without reading its change.
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
    // 36,000 instructions in batches of a few steps, and of four times as many after frequent repetition: each kind is
    // planned once.
    assert!(hits >= 15 && misses <= 4, "{hits} hits, {misses} misses");
    // A step is still one kernel.
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
    // Views of one row or one column have special relations.
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

/// Some values of a type.
fn values(dtype: DType) -> Vec<Constant> {
    let numbers = [0.0, 1.0, -1.0, 2.5, 3.0, 117.0, -0.0, 1e-300, f64::INFINITY, f64::NAN];
    let all = numbers.map(|number| Constant::from_value(number).cast(dtype));
    let mut kept: Vec<Constant> = Vec::new();
    for value in all {
        if !kept.iter().any(|known| known.bits == value.bits) {
            kept.push(value);
        }
    }
    kept
}

/// An array of one element of a base of two, whose value is unknown before its batch has run.
fn unknown(recorder: &Recorder, value: Constant) -> ArrayId {
    let pair = recorder.full(value, &[2], Location::UNKNOWN).unwrap();
    let one = recorder.derive(pair, |_| View::new(1, &[], &[])).unwrap();
    recorder.free(pair).unwrap();
    one
}

/// Compares an operation on known scalars with the same on unknown ones, bit by bit.
fn check_scalars(recorder: &Recorder, opcode: Opcode, param: u16, dtype: Option<DType>, inputs: &[Constant]) {
    let results = [true, false].map(|known| {
        let place = Location::UNKNOWN;
        let array = |&value: &Constant| match known {
            true => recorder.full(value, &[], place).unwrap(),
            false => unknown(recorder, value),
        };
        let arrays: Vec<ArrayId> = inputs.iter().map(array).collect();
        let inputs: Vec<Input> = arrays.iter().map(|&array| Input::Array(array)).collect();
        let made = recorder.operate_new(opcode, param, dtype, &inputs, place).unwrap();
        // Again in place of the first input.
        let again = (dtype.is_none() && recorder.info(made).unwrap().dtype == recorder.info(arrays[0]).unwrap().dtype)
            .then(|| recorder.operate(opcode, param, arrays[0], &inputs, place).unwrap());
        let result = recorder.read_scalar(made).unwrap();
        let second = again.map(|()| recorder.read_scalar(arrays[0]).unwrap());
        arrays.into_iter().chain([made]).for_each(|array| recorder.free(array).unwrap());
        (result, second)
    });
    assert_eq!(results[0], results[1], "{opcode} {param} of {inputs:?}");
}

#[test]
fn known_scalars_are_computed_as_batches_compute_them() {
    let recorder = recorder();
    let mut compared = 0;
    for &opcode in Opcode::ALL.iter().filter(|opcode| opcode.kind() == Kind::Elementwise) {
        for dtype in DType::ALL {
            let types: Vec<DType> = match opcode {
                Opcode::Where => vec![DType::Bool, dtype, dtype],
                _ => vec![dtype; opcode.info().inputs as usize],
            };
            let outputs: Vec<Option<DType>> = match opcode {
                Opcode::Copy => DType::ALL.iter().map(|&output| Some(output)).collect(),
                _ => vec![None],
            };
            let legal = |output: &Option<DType>| {
                let output = output.or_else(|| bh_recorder::result_type(opcode, &types));
                output.is_some_and(|output| opcode.check_types(output, &types))
            };
            for output in outputs.into_iter().filter(legal) {
                let (first, last) = (values(types[0]), values(types[types.len() - 1]));
                for at in 0..first.len().max(last.len()) {
                    let inputs: Vec<Constant> = (0..types.len())
                        .map(
                            |input| {
                                if input == 0 { first[at % first.len()] } else { last[(at * 3 + input) % last.len()] }
                            },
                        )
                        .collect();
                    let params = if opcode == Opcode::Powi { 2..=5 } else { 0..=0 };
                    params.for_each(|param| check_scalars(&recorder, opcode, param, output, &inputs));
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 3_000, "{compared}");
    recorder.shutdown().unwrap();
}

#[test]
fn known_scalars_need_no_batch_and_mix_with_arrays() {
    let recorder = recorder();
    let (place, number) = (Location::UNKNOWN, |value: f64| Input::Constant(Constant::from_value(value)));
    let x = recorder.full(Constant::from_value(1.0), &[], place).unwrap();
    recorder.sync().unwrap();
    let before = recorder.statistics().batches;
    for _ in 0..1000 {
        recorder.operate(Opcode::Multiply, 0, x, &[Input::Array(x), number(1.5)], place).unwrap();
        recorder.operate(Opcode::Subtract, 0, x, &[Input::Array(x), number(0.5)], place).unwrap();
        assert_eq!(recorder.read_scalar(x).unwrap(), Constant::from_value(1.0));
    }
    assert_eq!((recorder.statistics().batches - before, recorder.statistics().pending), (0, 0));
    // Used by arrays before and after it changes, reduced, written, and read again.
    let a = recorder.full(Constant::from_value(2.0), &[3], place).unwrap();
    recorder.operate(Opcode::Multiply, 0, a, &[Input::Array(a), Input::Array(x)], place).unwrap();
    recorder.operate(Opcode::Add, 0, x, &[Input::Array(x), number(1.0)], place).unwrap();
    recorder.operate(Opcode::Multiply, 0, a, &[Input::Array(a), Input::Array(x)], place).unwrap();
    let total = recorder.operate_new(Opcode::AddReduce, 1, None, &[Input::Array(a)], place).unwrap();
    recorder.operate(Opcode::AddReduce, 1, x, &[Input::Array(a)], place).unwrap();
    for array in [total, x] {
        assert_eq!(recorder.read_scalar(array).unwrap(), Constant::from_value(12.0));
    }
    // A read value is known until it is written.
    let y = recorder.operate_new(Opcode::Add, 0, None, &[Input::Array(x), number(1.0)], place).unwrap();
    assert_eq!(recorder.read_scalar(y).unwrap(), Constant::from_value(13.0));
    let value = 7.0f64;
    // SAFETY: there is one element.
    unsafe { recorder.write(x, (&raw const value).cast(), None).unwrap() };
    recorder.operate(Opcode::Add, 0, y, &[Input::Array(x), number(1.0)], place).unwrap();
    assert_eq!(recorder.read_scalar(y).unwrap(), Constant::from_value(8.0));
    // A value without readers is never stored; a mapped one is.
    let z = recorder.full(Constant::from_value(3.0), &[1, 1], place).unwrap();
    let mapped = recorder.map(z, bh_core::abi::access::READ).unwrap().cast::<f64>();
    // SAFETY: the map lasts until `unmap`.
    assert_eq!(unsafe { mapped.read() }, 3.0);
    recorder.unmap(z).unwrap();
    let unused = recorder.full(Constant::from_value(4.0), &[], place).unwrap();
    [a, x, y, z, total, unused].into_iter().for_each(|array| recorder.free(array).unwrap());
    recorder.shutdown().unwrap();
}

/// Runs 1,500 small operations without repetition, in batches of at most `max_instructions`; returns the number of
/// batches and the results.
fn little(max_instructions: usize) -> (u64, Vec<Constant>) {
    let (recorder, place) = (Recorder::new(), Location::UNKNOWN);
    let options = Options { max_instructions, immediate_bytes: 0, ..Options::default() };
    recorder.start(options, || Ok(Box::new(stacks::load("cpu")?))).unwrap();
    let opcodes = [Opcode::Add, Opcode::Subtract, Opcode::Maximum, Opcode::Arctan2, Opcode::Minimum, Opcode::Arctan2];
    let arrays: Vec<ArrayId> =
        (0..7).map(|at| recorder.full(Constant::from_value(0.25 * f64::from(at)), &[50], place).unwrap()).collect();
    let mut state = 1u64;
    for _ in 0..1500 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pick = |from: u32, count: usize| (state >> from) as usize % count;
        let (into, one, two) = (pick(33, 7), pick(39, 7), pick(45, 7));
        let inputs = [Input::Array(arrays[one]), Input::Array(arrays[two])];
        recorder.operate(opcodes[pick(51, opcodes.len())], 0, arrays[into], &inputs, place).unwrap();
    }
    recorder.sync().unwrap();
    let batches = recorder.statistics().batches;
    let sum = |&array: &ArrayId| {
        let total = recorder.operate_new(Opcode::AddReduce, 1, None, &[Input::Array(array)], place).unwrap();
        let value = recorder.read_scalar(total).unwrap();
        drop_all(&recorder, &[total]);
        value
    };
    let values = arrays.iter().map(sum).collect();
    drop_all(&recorder, &arrays);
    recorder.shutdown().unwrap();
    (batches, values)
}

#[test]
fn batches_that_do_little_and_repeat_nothing_end_earlier_with_the_same_bits() {
    let limits = [7, 256, 1000, 8000].map(little);
    assert!(limits.iter().all(|(_, values)| *values == limits[0].1), "{limits:?}");
    // A quarter of the maximum, but at least 256.
    let batches = limits.map(|(batches, _)| batches);
    assert!(batches[0] > 200 && batches[1] == batches[2] && batches[2] > 5 && batches[3] == 1, "{batches:?}");
}

/// Runs steps of the heat equation on an n×n grid; returns the numbers of batches and of planned ones, and the sum of
/// the grid.
fn heat(recipes: Recipes, n: i64, steps: usize) -> (u64, u64, Constant) {
    let (recorder, place) = (Recorder::new(), Location::UNKNOWN);
    let options = Options { immediate_bytes: 0, recipes, ..Options::default() };
    recorder.start(options, || Ok(Box::new(stacks::load("cpu")?))).unwrap();
    let grid = recorder.full(Constant::from_value(1.5), &[n, n], place).unwrap();
    let inside = window(&recorder, grid, [1, n - 1], [1, n - 1]);
    recorder.operate(Opcode::Copy, 0, inside, &[Input::Constant(Constant::from_value(0.1))], place).unwrap();
    (0..steps).for_each(|_| heat_step(&recorder, grid, n));
    recorder.sync().unwrap();
    let batches = recorder.statistics().batches;
    let planned = counter(&recorder, "fuser.cache_misses");
    let total = recorder.operate_new(Opcode::AddReduce, 3, None, &[Input::Array(grid)], place).unwrap();
    let value = recorder.read_scalar(total).unwrap();
    drop_all(&recorder, &[total, inside, grid]);
    recorder.shutdown().unwrap();
    (batches, planned, value)
}

#[test]
fn turns_that_do_little_are_planned_once() {
    let [(batches, planned, value), (long, _, same)] =
        [Recipes::Auto, Recipes::Off].map(|recipes| heat(recipes, 100, 200));
    assert_eq!(value, same);
    assert!(batches > 20 && planned < 5 && long < 8, "{batches} {planned} {long}");
    // Frequent batches grow.
    let (more, ..) = heat(Recipes::Auto, 100, 4_000);
    assert!(more < 14 * batches, "{more} {batches}");
    // Iterations over large arrays share a batch, which may run them in tiles.
    let [large, long] = [Recipes::Auto, Recipes::Off].map(|recipes| heat(recipes, 400, 100));
    assert_eq!((large.0, large.2), (long.0, long.2));
}
