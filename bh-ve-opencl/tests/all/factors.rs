//! Factors of matrices and solutions of systems on devices whose groups have any number of items: matrices of whole numbers, whose
//! factors are multiplied again. Machines without OpenCL leave these tests out, and say so.

use crate::support;

use bh_bytecode::batch::Extension;
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, View, base_flags};
use bh_core::stack::Stack;
use bh_tests::run;
use support::{alone, count, load_with_groups};

/// A matrix in rows.
struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

impl Matrix {
    fn new(rows: usize, columns: usize, value: impl Fn(usize, usize) -> f64) -> Matrix {
        let values = (0..rows * columns).map(|at| value(at / columns, at % columns)).collect();
        Matrix { rows, columns, values }
    }

    fn random(rng: &mut Rng, rows: usize, columns: usize) -> Matrix {
        let values = (0..rows * columns).map(|_| rng.below(19) as f64 - 9.0).collect();
        Matrix { rows, columns, values }
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.columns + column]
    }

    fn turned(&self) -> Matrix {
        Matrix::new(self.columns, self.rows, |row, column| self.at(column, row))
    }

    fn times(&self, right: &Matrix) -> Matrix {
        let sum = |row, column| (0..self.columns).map(|k| self.at(row, k) * right.at(k, column)).sum();
        Matrix::new(self.rows, right.columns, sum)
    }

    fn largest(&self) -> f64 {
        self.values.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
    }

    /// Fails unless all elements are those of another matrix but for this much, of which NaN is not.
    fn is_near(&self, other: &Matrix, bound: f64, what: &str) {
        let distance = |at: usize| (self.values[at] - other.values[at]).abs();
        let far = (0..self.values.len()).find(|&at| distance(at).is_nan() || distance(at) > bound);
        let told = |at: usize| (at / self.columns, at % self.columns, self.values[at], other.values[at]);
        assert_eq!((self.rows, self.columns), (other.rows, other.columns), "{what}");
        assert!(far.is_none(), "{what}: more than {bound} from what it should be: {:?}", far.map(told));
    }
}

fn bytes(dtype: DType, value: f64) -> Vec<u8> {
    match dtype {
        DType::F32 => (value as f32).to_ne_bytes().to_vec(),
        _ => value.to_ne_bytes().to_vec(),
    }
}

fn number(dtype: DType, bytes: &[u8]) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::from_ne_bytes(bytes.try_into().unwrap())),
        DType::I64 => i64::from_ne_bytes(bytes.try_into().unwrap()) as f64,
        _ => f64::from_ne_bytes(bytes.try_into().unwrap()),
    }
}

/// The outputs of a method of the device for matrices, of these types, rows, and columns (0 for a vector).
fn call(
    stack: &mut Stack,
    (name, dtype): (&str, DType),
    inputs: &[&Matrix],
    outputs: &[(DType, usize, usize)],
) -> Vec<Matrix> {
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    let opcode = Opcode(Opcode::FIRST_EXTENSION + 1);
    assert!(stack.extmethod(name, opcode).unwrap(), "{name}");
    let (text, name_len) = program.batch.push_string(name);
    program.batch.extensions.push(Extension { opcode, reserved: 0, name: text, name_len });
    let mut operand = |dtype, shape: &[i64], flags| {
        let id = program.batch.bases.len() as u64 + 1;
        let elements = shape.iter().product();
        let base = program.batch.push_base(Base { flags, ..Base::new(id, dtype, elements) });
        Operand::view(program.batch.push_view(base, &View::contiguous(shape).unwrap()))
    };
    let mut operands = Vec::new();
    for &(dtype, rows, columns) in outputs {
        let shape = [rows as i64, columns as i64];
        let shape = if columns == 0 { &shape[..1] } else { &shape[..] };
        operands.push(operand(dtype, shape, base_flags::LIVE_OUT | base_flags::BORN));
    }
    for matrix in inputs {
        operands.push(operand(dtype, &[matrix.rows as i64, matrix.columns as i64], base_flags::LIVE_OUT));
    }
    for (matrix, at) in inputs.iter().zip(outputs.len() as u64 + 1..) {
        program.memory.insert(at, matrix.values.iter().flat_map(|&value| bytes(dtype, value)).collect());
    }
    program.batch.push_instr(Instr { outputs: outputs.len() as u8, ..Instr::new(opcode, &operands) });
    let memory = run::run(stack, &program).unwrap();
    let read = |(&(dtype, rows, columns), id): (&(DType, usize, usize), u64)| {
        let values = memory.get(id).unwrap().chunks_exact(dtype.size()).map(|bytes| number(dtype, bytes)).collect();
        Matrix { rows, columns: columns.max(1), values }
    };
    outputs.iter().zip(1..).map(read).collect()
}

/// Factors of matrices of `n` rows, and a solution.
fn check(stack: &mut Stack, rng: &mut Rng, dtype: DType, n: usize, what: &str) {
    let bound = 64.0 * n as f64 * if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let square = Matrix::random(rng, n, n);
    let found = call(stack, ("lu", dtype), &[&square], &[(dtype, n, n), (DType::I64, n, 0)]);
    let (lu, order) = (&found[0], &found[1]);
    let lower = Matrix::new(n, n, |row, column| match row.cmp(&column) {
        std::cmp::Ordering::Greater => lu.at(row, column),
        same => f64::from(u8::from(same.is_eq())),
    });
    let upper = Matrix::new(n, n, |row, column| if row > column { 0.0 } else { lu.at(row, column) });
    assert!(lower.largest() <= 1.0, "{what}: a pivot is not the largest of its column");
    let ordered = Matrix::new(n, n, |row, column| square.at(order.at(row, 0) as usize, column));
    lower.times(&upper).is_near(&ordered, bound * upper.largest(), &format!("lu, {what}"));

    let definite = square.times(&square.turned());
    let definite =
        Matrix::new(n, n, |row, column| definite.at(row, column) + if row == column { n as f64 } else { 0.0 });
    let found = call(stack, ("cholesky", dtype), &[&definite], &[(dtype, n, n)]);
    found[0].times(&found[0].turned()).is_near(&definite, bound * definite.largest(), &format!("cholesky, {what}"));

    let count = 1 + rng.below(20);
    let sides = Matrix::random(rng, n, count);
    let found = call(stack, ("solve", dtype), &[&definite, &sides], &[(dtype, n, sides.columns)]);
    let size = definite.largest() * found[0].largest() * n as f64;
    definite.times(&found[0]).is_near(&sides, bound * size, &format!("solve, {what}"));

    let (rows, columns) = if rng.below(2) == 0 { (n, 1 + rng.below(40)) } else { (1 + rng.below(40), n) };
    let (matrix, least) = (Matrix::random(rng, rows, columns), rows.min(columns));
    let found = call(stack, ("qr", dtype), &[&matrix], &[(dtype, rows, least), (dtype, least, columns)]);
    let unit = Matrix::new(least, least, |row, column| f64::from(u8::from(row == column)));
    found[0].times(&found[1]).is_near(
        &matrix,
        bound * found[1].largest(),
        &format!("qr of {rows} x {columns}, {what}"),
    );
    found[0].turned().times(&found[0]).is_near(&unit, bound, &format!("q of {rows} x {columns}, {what}"));
}

/// Random sizes from 1 to 130, by groups of 1 to 256 items.
#[test]
fn factors_are_right_whatever_the_groups() {
    let _alone = alone();
    let mut rng = Rng::new(41);
    for group in (0..=8).map(|power| 1 << power) {
        let Some(mut stack) = load_with_groups(group, "'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
        let dtype = if rng.below(3) == 0 { DType::F32 } else { DType::F64 };
        let mut sizes = vec![(dtype, 1 + rng.below(130))];
        if group == 16 {
            sizes.push((DType::F64, 70));
        }
        for (dtype, n) in sizes {
            check(&mut stack, &mut rng, dtype, n, &format!("{dtype}, {n} rows, groups of {group}"));
        }
        assert!(count(&stack, "kernels") > 0);
    }
}
