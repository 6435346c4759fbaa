//! Factors of matrices and Fourier transforms by a library: random sizes, types, values and layouts; factors are multiplied again. On
//! OpenCL, the library is one of the tests, which works on the host; with `BH_TEST_DRIVER=cuda` it is NVIDIA's.

mod numbers;
mod platform;

use crate::support::alone;
use bh_bytecode::batch::Extension;
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, View, base_flags};
use bh_core::export::LazyTable;
use bh_core::stack::Stack;
use bh_core::{Error, Result};
use bh_device::Engine;
use bh_tests::{run, stacks};
use numbers::{C, Matrix, add};
use platform::Hosted;
use std::cmp::Ordering;
use std::io::Write;

const TYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

/// The stack of the engine with a library alone, with these keys; none where there is no device.
fn load(keys: &str) -> Option<Stack> {
    static TABLE: LazyTable = LazyTable::new();
    let component = if stacks::driver() == "opencl" { "hosted" } else { "opencl" };
    let text = format!(
        "[stacks]\nit = ['filter', 'fuser', 'node', '{component}']\n[components.{component}]\ndevice = 'cpu'\ngroup = 16\n\
         cache_dir = ''\n{keys}\n"
    );
    let config = stacks::from_text("library-tests.toml", &text).unwrap();
    let config = config.with_component("bh_hosted", TABLE.get::<Engine<Hosted>>("bh-ve-opencl", "1"));
    match Stack::load(&config, Some("it")) {
        Ok(stack) => Some(stack),
        Err(error) => {
            assert!(stacks::is_absent(&error), "{error}");
            // Past the capture of the test harness: what was left out is part of the result.
            let mut output = std::io::stdout();
            writeln!(output, "left out: {error}").unwrap();
            None
        }
    }
}

/// A view of a matrix or a vector in memory of its own: by rows, by columns, or backward with gaps.
fn operand(program: &mut Program, rng: &mut Rng, dtype: DType, shape: &[i64], values: Option<&Matrix>) -> Operand {
    let gap = 1 + i64::from(rng.chance(30));
    let (columns, rows) = (shape.get(1).copied().unwrap_or(1), shape[0]);
    let (mut start, mut stride) = match rng.below(3) {
        0 => (0, vec![columns * gap, gap]),
        1 => (0, vec![gap, rows * gap]),
        _ => ((rows - 1) * columns * gap, vec![-columns * gap, gap]),
    };
    start += 2;
    stride.truncate(shape.len());
    let (id, elements) = (program.batch.bases.len() as u64 + 1, rows * columns * gap + 4);
    if let Some(matrix) = values {
        let mut bytes = vec![0; elements as usize * dtype.size()];
        for (at, value) in bh_bytecode::interp::offsets(start, shape, &stride).zip(&matrix.values) {
            bytes[at as usize * dtype.size()..][..dtype.size()].copy_from_slice(&C::bytes(dtype, &[*value]));
        }
        program.memory.insert(id, bytes);
    }
    let flags = base_flags::LIVE_OUT | if values.is_some() { 0 } else { base_flags::BORN };
    let base = program.batch.push_base(Base { flags, ..Base::new(id, dtype, elements) });
    Operand::view(program.batch.push_view(base, &View::new(start, shape, &stride).unwrap()))
}

/// The outputs of a method for matrices, of these types and shapes.
fn call(
    stack: &mut Stack,
    rng: &mut Rng,
    (name, dtype): (&str, DType),
    inputs: &[&Matrix],
    outputs: &[(DType, &[usize])],
) -> Result<Vec<Matrix>> {
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    let opcode = Opcode(Opcode::FIRST_EXTENSION + 1);
    if !stack.extmethod(name, opcode)? {
        return Err(Error::new(0, format!("no component knows {name}")));
    }
    let (text, name_len) = program.batch.push_string(name);
    program.batch.extensions.push(Extension { opcode, reserved: 0, name: text, name_len });
    let shapes: Vec<Vec<i64>> = outputs.iter().map(|(_, shape)| shape.iter().map(|&it| it as i64).collect()).collect();
    let mut operands = Vec::new();
    for ((dtype, _), shape) in outputs.iter().zip(&shapes) {
        operands.push(operand(&mut program, rng, *dtype, shape, None));
    }
    for matrix in inputs {
        let shape = [matrix.rows as i64, matrix.columns as i64];
        operands.push(operand(&mut program, rng, dtype, &shape, Some(matrix)));
    }
    program.batch.push_instr(Instr { outputs: outputs.len() as u8, ..Instr::new(opcode, &operands) });
    let memory = run::run(stack, &program)?;
    let read = |(operand, (dtype, shape)): (&Operand, &(DType, &[usize]))| {
        let batch = program.batch.as_ref();
        let view = batch.view(operand.as_view().unwrap());
        let all = C::read(*dtype, memory.get(batch.base_of(operand.as_view().unwrap()).unwrap().id).unwrap());
        let places = bh_bytecode::interp::offsets(view.start(), view.shape(), view.stride());
        let columns = shape.get(1).copied().unwrap_or(1);
        Matrix { rows: shape[0], columns, values: places.map(|at| all[at as usize]).collect() }
    };
    Ok(operands.iter().zip(outputs).map(read).collect())
}

/// A matrix of numbers between -1 and 1.
fn random(rng: &mut Rng, dtype: DType, rows: usize, columns: usize) -> Matrix {
    let mut part = || rng.below(2001) as f64 / 1000.0 - 1.0;
    Matrix::new(rows, columns, |_, _| C(part(), if dtype.is_complex() { part() } else { 0.0 }))
}

fn epsilon(dtype: DType) -> f64 {
    if dtype.real_part() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

/// A Hermitian matrix, and a positive definite one whose upper triangle is something else, which nobody reads.
fn hermitian(rng: &mut Rng, dtype: DType, n: usize) -> (Matrix, Matrix) {
    let a = random(rng, dtype, n, n);
    let mut own = a.times(&a.adjoint());
    (0..n).for_each(|at| own.values[at * n + at] = add(own.values[at * n + at], C(1.0, 0.0)));
    let given = Matrix::new(n, n, |row, column| if column > row { C(5.0, 0.0) } else { own.at(row, column) });
    (own, given)
}

fn triangles(stack: &mut Stack, rng: &mut Rng, dtype: DType, n: usize, what: &str) {
    let bound = 64.0 * n as f64 * epsilon(dtype);
    let square = random(rng, dtype, n, n);
    let found = call(stack, rng, ("lu", dtype), &[&square], &[(dtype, &[n, n]), (DType::I64, &[n])]).unwrap();
    let (lu, order) = (&found[0], &found[1]);
    let lower = Matrix::new(n, n, |row, column| match row.cmp(&column) {
        Ordering::Greater => lu.at(row, column),
        same => C(f64::from(u8::from(same.is_eq())), 0.0),
    });
    let upper = Matrix::new(n, n, |row, column| if row > column { C(0.0, 0.0) } else { lu.at(row, column) });
    let ordered = Matrix::new(n, n, |row, column| square.at(order.at(row, 0).0 as usize, column));
    lower.times(&upper).is_near(&ordered, bound * upper.largest(), &format!("lu, {what}"));

    let (own, given) = hermitian(rng, dtype, n);
    let found = call(stack, rng, ("cholesky", dtype), &[&given], &[(dtype, &[n, n])]).unwrap();
    found[0].times(&found[0].adjoint()).is_near(&own, bound * own.largest(), &format!("cholesky, {what}"));
    let above = (0..n).flat_map(|row| (row + 1..n).map(move |column| (row, column)));
    assert!(above.into_iter().all(|(row, column)| found[0].at(row, column) == C(0.0, 0.0)), "cholesky, {what}");

    let count = 1 + rng.below(20);
    let sides = random(rng, dtype, n, count);
    let found = call(stack, rng, ("solve", dtype), &[&own, &sides], &[(dtype, &[n, count])]).unwrap();
    let size = own.largest() * found[0].largest() * n as f64;
    own.times(&found[0]).is_near(&sides, bound * size, &format!("solve, {what}"));

    // A library substitutes where elements above the diagonal are zero, or below it, or both.
    for (below, above) in [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0)] {
        let triangle = Matrix::new(n, n, |row, column| match row.cmp(&column) {
            Ordering::Greater => numbers::scale(square.at(row, column), below),
            Ordering::Less => numbers::scale(square.at(row, column), above),
            Ordering::Equal => add(square.at(row, column), C(n as f64, 0.0)),
        });
        let found = call(stack, rng, ("solve", dtype), &[&triangle, &sides], &[(dtype, &[n, count])]).unwrap();
        let size = triangle.largest() * found[0].largest() * n as f64;
        triangle.times(&found[0]).is_near(&sides, bound * size, &format!("solve of a triangle, {what}"));
    }
}

fn orthonormal(stack: &mut Stack, rng: &mut Rng, dtype: DType, n: usize, what: &str) {
    let other = 33 + rng.below(40);
    let (rows, columns) = if rng.chance(50) { (n, other) } else { (other, n) };
    let (short, bound) = (rows.min(columns), 256.0 * n.max(other) as f64 * epsilon(dtype));
    let is_full = rng.chance(50);
    let matrix = random(rng, dtype, rows, columns);
    let what = format!("{what}, {rows} x {columns}{}", if is_full { ", full" } else { "" });
    let k = if is_full { rows } else { short };
    let found = call(stack, rng, ("qr", dtype), &[&matrix], &[(dtype, &[rows, k]), (dtype, &[k, columns])]).unwrap();
    found[0].times(&found[1]).is_near(&matrix, bound, &format!("qr, {what}"));
    found[0].adjoint().times(&found[0]).is_near(&Matrix::unit(k), bound, &format!("q, {what}"));
    for (row, column) in (0..k).flat_map(|row| (0..columns.min(row)).map(move |column| (row, column))) {
        assert_eq!(found[1].at(row, column), C(0.0, 0.0), "r, {what}");
    }

    let real = dtype.real_part();
    let (left, right) = if is_full { (rows, columns) } else { (short, short) };
    let outputs: [(DType, &[usize]); 3] = [(dtype, &[rows, left]), (real, &[short]), (dtype, &[right, columns])];
    let found = call(stack, rng, ("svd", dtype), &[&matrix], &outputs).unwrap();
    let (u, s, v) = (&found[0], &found[1], &found[2]);
    assert!(s.values.windows(2).all(|pair| pair[0].0 >= pair[1].0), "svd, {what}");
    let middle = Matrix::new(left, right, |row, column| if row == column { s.at(row, 0) } else { C(0.0, 0.0) });
    u.times(&middle).times(v).is_near(&matrix, bound * s.largest(), &format!("svd, {what}"));
    u.adjoint().times(u).is_near(&Matrix::unit(left), bound, &format!("u, {what}"));
    v.times(&v.adjoint()).is_near(&Matrix::unit(right), bound, &format!("v, {what}"));
    let alone = call(stack, rng, ("svd", dtype), &[&matrix], &[(real, &[short])]).unwrap();
    alone[0].is_near(s, bound * s.largest(), &format!("singular values, {what}"));
}

fn eigenvalues(stack: &mut Stack, rng: &mut Rng, dtype: DType, n: usize, what: &str) {
    let (bound, real) = (64.0 * n as f64 * epsilon(dtype), dtype.real_part());
    let (own, given) = hermitian(rng, dtype, n);
    let outputs: [(DType, &[usize]); 2] = [(real, &[n]), (dtype, &[n, n])];
    let found = call(stack, rng, ("eigh", dtype), &[&given], &outputs).unwrap();
    let (values, vectors) = (&found[0], &found[1]);
    let scaled = Matrix::new(n, n, |row, column| numbers::times(vectors.at(row, column), values.at(column, 0)));
    own.times(vectors).is_near(&scaled, bound * own.largest() * n as f64, &format!("eigh, {what}"));
    vectors.adjoint().times(vectors).is_near(&Matrix::unit(n), bound, &format!("eigenvectors, {what}"));
    assert!(values.values.windows(2).all(|pair| pair[0].0 <= pair[1].0), "eigh, {what}");
    let alone = call(stack, rng, ("eigh", dtype), &[&given], &[(real, &[n])]).unwrap();
    alone[0].is_near(values, bound * values.largest(), &format!("eigenvalues, {what}"));
}

#[test]
fn factors_of_all_types_and_layouts_are_right() {
    let _alone = alone();
    let programs = std::env::var("BH_TEST_PROGRAMS").map_or(8, |text| text.parse().unwrap());
    let Some(mut stack) = load("specialise = 'off'") else { return };
    for seed in 0..programs {
        let mut rng = Rng::new(seed);
        let dtype = TYPES[seed as usize % TYPES.len()];
        let n = if rng.chance(20) { 1 + rng.below(32) } else { 33 + rng.below(40) };
        let what = format!("seed {seed}, {dtype}, {n}");
        triangles(&mut stack, &mut rng, dtype, n, &what);
        orthonormal(&mut stack, &mut rng, dtype, n, &what);
        eigenvalues(&mut stack, &mut rng, dtype, n, &what);
    }
    let told = stack.message("info").unwrap();
    assert!(told.contains("a library on the host: 1") || told.contains("cuSOLVER: 1"), "{told}");
}

#[test]
fn transforms_of_all_layouts_are_right() {
    let _alone = alone();
    let programs = std::env::var("BH_TEST_PROGRAMS").map_or(6, |text| text.parse().unwrap());
    let Some(mut stack) = load("specialise = 'off'") else { return };
    for seed in 0..programs {
        let mut rng = Rng::new(seed);
        let dtype = [DType::C64, DType::C128][seed as usize % 2];
        // Some are short work, which kernels do.
        let (lines, len) = (1 + rng.below(300), 2 + rng.below(120));
        let what = format!("seed {seed}, {lines} lines of {len}, {dtype}");
        let given = random(&mut rng, dtype, lines, len);
        let outputs: [(DType, &[usize]); 1] = [(dtype, &[lines, len])];
        let forward = call(&mut stack, &mut rng, ("fft", dtype), &[&given], &outputs).unwrap();
        let turn = -2.0 * std::f64::consts::PI / len as f64;
        let root = |row: usize, column: usize| {
            let angle = turn * (row * column % len) as f64;
            C(angle.cos(), angle.sin())
        };
        let bound = 64.0 * len as f64 * epsilon(dtype);
        forward[0].is_near(&given.times(&Matrix::new(len, len, root)), bound, &format!("fft, {what}"));
        let back = call(&mut stack, &mut rng, ("ifft", dtype), &[&forward[0]], &outputs).unwrap();
        back[0].is_near(&given, bound, &format!("ifft, {what}"));
        let real = dtype.real_part();
        let given = random(&mut rng, real, lines, len);
        let half = len / 2 + 1;
        let found = call(&mut stack, &mut rng, ("rfft", real), &[&given], &[(dtype, &[lines, half])]).unwrap();
        found[0].is_near(&given.times(&Matrix::new(len, half, root)), bound, &format!("rfft, {what}"));
        let back = call(&mut stack, &mut rng, ("irfft", dtype), &[&found[0]], &[(real, &[lines, len])]).unwrap();
        back[0].is_near(&given, bound, &format!("irfft, {what}"));
    }
}

#[test]
fn matrices_without_factors_are_errors_with_the_usual_texts() {
    let _alone = alone();
    let Some(mut stack) = load("specialise = 'off'") else { return };
    let (mut rng, n) = (Rng::new(3), 40);
    let one = |n: usize, at: usize, value: f64| {
        let mut matrix = Matrix::unit(n);
        matrix.values[at] = C(value, 0.0);
        matrix
    };
    let last = n * n - 1;
    for dtype in TYPES {
        let real = dtype.real_part();
        let mut fails = |name: &str, inputs: &[&Matrix], outputs: &[(DType, &[usize])], text: &str| {
            let error = call(&mut stack, &mut rng, (name, dtype), inputs, outputs).unwrap_err();
            assert!(error.to_string().contains(text), "{name} of {dtype}: {error}");
            assert_eq!(error.instr, Some(0), "{error}");
        };
        let square: (DType, &[usize]) = (dtype, &[n, n]);
        let definite = "cholesky: the matrix is not positive definite";
        for value in [-1.0, 0.0, f64::NAN] {
            fails("cholesky", &[&one(n, last, value)], &[square], definite);
        }
        fails("solve", &[&one(n, 0, 0.0), &Matrix::unit(n)], &[square], "solve: the matrix is singular");
        let full = Matrix::new(n, n, |_, _| C(1.0, 0.0));
        fails("solve", &[&full, &Matrix::unit(n)], &[square], "solve: the matrix is singular");
        let not_finite = "the matrix has elements that are infinite or not a number";
        fails("eigh", &[&one(n, n, f64::NAN)], &[(real, &[n])], not_finite);
        fails("svd", &[&one(n, 5, f64::INFINITY)], &[(real, &[n])], not_finite);
        // The upper triangle is not read.
        let outcome = call(&mut stack, &mut rng, ("eigh", dtype), &[&one(n, 1, f64::NAN)], &[(real, &[n])]);
        outcome.unwrap()[0].is_near(&Matrix::new(n, 1, |_, _| C(1.0, 0.0)), 1e-5, "eigh");
    }
    if stacks::driver() == "opencl" {
        let zeros = Matrix::new(n, n, |_, _| C(0.0, 0.0));
        let error = call(&mut stack, &mut rng, ("svd", DType::F64), &[&zeros], &[(DType::F64, &[n])]).unwrap_err();
        assert!(error.to_string().contains("svd: the iterations do not converge"), "{error}");
    }
}

#[test]
fn without_the_placement_no_library_is_used() {
    let _alone = alone();
    let Some(mut stack) = load("specialise = 'off'\nplacements = 'private, local'") else { return };
    let mut rng = Rng::new(4);
    let eigenvalues = call(&mut stack, &mut rng, ("eigh", DType::F64), &[&Matrix::unit(40)], &[(DType::F64, &[40])]);
    assert!(eigenvalues.unwrap_err().to_string().contains("no component"));
    let found = call(&mut stack, &mut rng, ("cholesky", DType::F64), &[&Matrix::unit(40)], &[(DType::F64, &[40, 40])]);
    found.unwrap()[0].is_near(&Matrix::unit(40), 0.0, "cholesky");
}
