//! Systems, factorisations and decompositions of matrices of all types: right, and with the same bits for any number of
//! threads.

use crate::support;

use bh_bytecode::interp::Memory;
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, View};
use bh_core::{Component, Result};
use support::chains::Dice;
use support::{Driver, singletons};

const TYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

/// A matrix in rows, or a vector as one column; real and imaginary parts.
#[derive(Clone, Debug, PartialEq)]
struct Matrix {
    rows: usize,
    columns: usize,
    elements: Vec<[f64; 2]>,
}

impl Matrix {
    fn new(rows: usize, columns: usize, mut element: impl FnMut(usize, usize) -> [f64; 2]) -> Matrix {
        let elements = (0..rows * columns).map(|at| element(at / columns, at % columns)).collect();
        Matrix { rows, columns, elements }
    }

    fn random(dice: &mut Dice, dtype: DType, rows: usize, columns: usize) -> Matrix {
        // Multiples of 1/64 are exact in all types.
        let mut part = |there: bool| if there { dice.pick(-64, 64) as f64 / 64.0 } else { 0.0 };
        Matrix::new(rows, columns, |_, _| [part(true), part(dtype.is_complex())])
    }

    fn at(&self, row: usize, column: usize) -> [f64; 2] {
        self.elements[row * self.columns + column]
    }

    fn adjoint(&self) -> Matrix {
        Matrix::new(self.columns, self.rows, |row, column| {
            let [re, im] = self.at(column, row);
            [re, -im]
        })
    }

    fn times(&self, other: &Matrix) -> Matrix {
        assert_eq!(self.columns, other.rows);
        let mut product = Matrix::new(self.rows, other.columns, |_, _| [0.0; 2]);
        for row in 0..self.rows {
            for (inner, [a, b]) in (0..self.columns).map(|inner| (inner, self.at(row, inner))) {
                let to = &mut product.elements[row * other.columns..][..other.columns];
                for (to, [c, d]) in to.iter_mut().zip(&other.elements[inner * other.columns..]) {
                    *to = [to[0] + a * c - b * d, to[1] + a * d + b * c];
                }
            }
        }
        product
    }

    fn diagonal(values: &[[f64; 2]]) -> Matrix {
        Matrix::new(values.len(), values.len(), |row, column| if row == column { values[row] } else { [0.0; 2] })
    }

    /// The part for which `wanted` holds, zeros elsewhere.
    fn part(&self, wanted: impl Fn(usize, usize) -> bool) -> Matrix {
        Matrix::new(
            self.rows,
            self.columns,
            |row, column| if wanted(row, column) { self.at(row, column) } else { [0.0; 2] },
        )
    }

    fn bytes(&self, dtype: DType) -> Vec<u8> {
        let part = |number: f64, bytes: &mut Vec<u8>| match dtype.real_part() {
            DType::F32 => bytes.extend((number as f32).to_ne_bytes()),
            _ => bytes.extend(number.to_ne_bytes()),
        };
        let mut bytes = Vec::new();
        for &[re, im] in &self.elements {
            part(re, &mut bytes);
            if dtype.is_complex() {
                part(im, &mut bytes);
            }
        }
        bytes
    }

    fn from_bytes(rows: usize, columns: usize, dtype: DType, bytes: &[u8]) -> Matrix {
        let numbers: Vec<f64> = match dtype {
            DType::I64 => bytes.chunks(8).map(|part| i64::from_ne_bytes(part.try_into().unwrap()) as f64).collect(),
            _ if dtype.real_part() == DType::F32 => {
                bytes.chunks(4).map(|part| f32::from_ne_bytes(part.try_into().unwrap()).into()).collect()
            }
            _ => bytes.chunks(8).map(|part| f64::from_ne_bytes(part.try_into().unwrap())).collect(),
        };
        let elements = if dtype.is_complex() {
            numbers.chunks(2).map(|parts| [parts[0], parts[1]]).collect()
        } else {
            numbers.into_iter().map(|re| [re, 0.0]).collect()
        };
        Matrix { rows, columns, elements }
    }
}

/// An output: its type, rows and, unless it is a vector, columns.
type Form = (DType, usize, Option<usize>);

/// Calls a method with some numbers of threads, and checks that the bits are the same.
fn call(name: &str, dtype: DType, inputs: &[&Matrix], outputs: &[Form]) -> Result<Vec<Matrix>> {
    let one = call_with("1", name, dtype, inputs, outputs)?;
    for threads in ["2", "5"] {
        let more = call_with(threads, name, dtype, inputs, outputs)?;
        assert_eq!(one, more, "{name} of {dtype} with {threads} threads");
    }
    let matrix = |(&(dtype, rows, columns), bytes): (&Form, &Vec<u8>)| {
        Matrix::from_bytes(rows, columns.unwrap_or(1), dtype, bytes)
    };
    Ok(outputs.iter().zip(&one).map(matrix).collect())
}

fn call_with(threads: &str, name: &str, dtype: DType, inputs: &[&Matrix], outputs: &[Form]) -> Result<Vec<Vec<u8>>> {
    let mut driver = Driver::new(&[("threads", threads)])?;
    let opcode = Opcode(Opcode::FIRST_EXTENSION + 1);
    assert!(driver.engine.extmethod(name, opcode)?, "{name}");
    let (mut batch, mut memory) = (Batch::default(), Memory::new());
    let given = inputs.iter().map(|input| (dtype, input.rows, Some(input.columns)));
    let mut operands = Vec::new();
    for (index, (dtype, rows, columns)) in outputs.iter().copied().chain(given).enumerate() {
        let elements = (rows * columns.unwrap_or(1)) as i64;
        let base = batch.push_base(Base::new(index as u64 + 1, dtype, elements));
        let view = match columns {
            Some(columns) => View::contiguous(&[rows as i64, columns as i64]),
            None => View::contiguous(&[rows as i64]),
        };
        operands.push(Operand::view(batch.push_view(base, &view.unwrap())));
        let data = match index.checked_sub(outputs.len()) {
            Some(input) => inputs[input].bytes(dtype),
            None => vec![0; elements as usize * dtype.size()],
        };
        memory.insert(index as u64 + 1, data);
    }
    let mut instr = Instr::new(opcode, &operands);
    instr.outputs = outputs.len() as u8;
    batch.push_instr(instr);
    let after = driver.run_on(&singletons(&batch).as_ref(), &memory)?;
    Ok((1..=outputs.len() as u64).map(|id| after.get(id).unwrap().to_vec()).collect())
}

/// Differences are at most some roundings of the largest element.
fn close(actual: &Matrix, expected: &Matrix, dtype: DType, what: &str) {
    let epsilon = if dtype.real_part() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let largest = expected.elements.iter().fold(1.0f64, |most, &[re, im]| most.max(re.hypot(im)));
    let limit = epsilon * 30.0 * largest * (expected.rows.max(4) as f64);
    assert_eq!((actual.rows, actual.columns), (expected.rows, expected.columns), "{what}");
    for (actual, expected) in actual.elements.iter().zip(&expected.elements) {
        let difference = (actual[0] - expected[0]).hypot(actual[1] - expected[1]);
        assert!(difference <= limit, "{what} of {dtype}: {actual:?}, expected {expected:?}, limit {limit:e}");
    }
}

fn identity(size: usize) -> Matrix {
    Matrix::diagonal(&vec![[1.0, 0.0]; size])
}

/// A positive definite matrix.
fn positive(dice: &mut Dice, dtype: DType, size: usize) -> Matrix {
    let root = Matrix::random(dice, dtype, size, size);
    let mut product = root.times(&root.adjoint());
    (0..size).for_each(|number| product.elements[number * (size + 1)][0] += 1.0);
    // Round the elements to the type, so that the reference is for the same matrix.
    Matrix::from_bytes(size, size, dtype, &product.bytes(dtype))
}

/// Sizes around the blocks of the algorithms.
fn sizes(dtype: DType) -> &'static [usize] {
    if dtype == DType::F64 { &[1, 2, 9, 64, 65, 200, 330] } else { &[1, 7, 66, 130] }
}

#[test]
fn factors_multiply_to_the_matrix() {
    let dice = &mut Dice(1);
    for dtype in TYPES {
        for &size in sizes(dtype) {
            let matrix = Matrix::random(dice, dtype, size, size);
            let forms = [(dtype, size, Some(size)), (DType::I64, size, None)];
            let found = call("lu", dtype, &[&matrix], &forms).unwrap();
            let (factors, order) = (&found[0], &found[1]);
            let mut lower = factors.part(|row, column| column < row);
            (0..size).for_each(|number| lower.elements[number * (size + 1)] = [1.0, 0.0]);
            assert!(lower.elements.iter().all(|[re, im]| re.hypot(*im) <= 1.5), "pivots are the largest");
            let permuted = Matrix::new(size, size, |row, column| matrix.at(order.at(row, 0)[0] as usize, column));
            close(&lower.times(&factors.part(|row, column| column >= row)), &permuted, dtype, "L U");
            let matrix = positive(dice, dtype, size);
            let factor = call("cholesky", dtype, &[&matrix], &[(dtype, size, Some(size))]).unwrap().remove(0);
            assert_eq!(factor, factor.part(|row, column| column <= row), "a lower triangle");
            close(&factor.times(&factor.adjoint()), &matrix, dtype, "L Lᴴ");
        }
    }
}

#[test]
fn solutions_fulfil_their_systems() {
    let dice = &mut Dice(2);
    for dtype in TYPES {
        for &size in sizes(dtype) {
            let matrix = positive(dice, dtype, size);
            for count in [1, 40] {
                let sides = Matrix::random(dice, dtype, size, count);
                let found = call("solve", dtype, &[&matrix, &sides], &[(dtype, size, Some(count))]).unwrap().remove(0);
                let residue = matrix.times(&found);
                let scale =
                    matrix.elements.iter().chain(&found.elements).fold(1.0f64, |most, [re, _]| most.max(re.abs()));
                let divide = |matrix: &Matrix| {
                    Matrix::new(size, count, |row, column| matrix.at(row, column).map(|part| part / scale / scale))
                };
                close(&divide(&residue), &divide(&sides), dtype, "a x = b");
            }
        }
    }
}

#[test]
fn decompositions_multiply_to_the_matrix() {
    let dice = &mut Dice(3);
    for dtype in TYPES {
        let (real, complex) =
            (dtype.real_part(), if dtype.real_part() == DType::F32 { DType::C64 } else { DType::C128 });
        for size in [1, 2, 5, 40, 150] {
            let matrix = Matrix::random(dice, dtype, size, size);
            let hermitian = positive(dice, dtype, size);
            let found = call("eigh", dtype, &[&hermitian], &[(real, size, None), (dtype, size, Some(size))]).unwrap();
            let (values, vectors) = (&found[0].elements, &found[1]);
            assert!(values.is_sorted_by(|one, next| one[0] <= next[0]), "{values:?}");
            close(&vectors.adjoint().times(vectors), &identity(size), dtype, "Vᴴ V");
            close(&vectors.times(&Matrix::diagonal(values)).times(&vectors.adjoint()), &hermitian, dtype, "V w Vᴴ");
            let alone = call("eigh", dtype, &[&hermitian], &[(real, size, None)]).unwrap().remove(0);
            close(&alone, &found[0], dtype, "w alone");

            let found = call("eig", dtype, &[&matrix], &[(complex, size, None), (complex, size, Some(size))]).unwrap();
            let vectors = &found[1];
            close(&matrix.times(vectors), &vectors.times(&Matrix::diagonal(&found[0].elements)), dtype, "a V = V w");
            let lengths = vectors.adjoint().times(vectors).part(|row, column| row == column);
            close(&lengths, &identity(size), dtype, "lengths");
            assert!(call("eig", dtype, &[&matrix], &[(complex, size, None)]).is_ok());
        }
        for (rows, columns) in [(1, 1), (3, 5), (5, 3), (40, 90), (120, 30), (70, 70)] {
            let matrix = Matrix::random(dice, dtype, rows, columns);
            let short = rows.min(columns);
            for side in [short, rows] {
                let forms = [(dtype, rows, Some(side)), (dtype, side, Some(columns))];
                let found = call("qr", dtype, &[&matrix], &forms).unwrap();
                close(&found[0].adjoint().times(&found[0]), &identity(side), dtype, "Qᴴ Q");
                close(&found[0].times(&found[1]), &matrix, dtype, "Q R");
                assert_eq!(found[1], found[1].part(|row, column| row <= column), "an upper triangle");
            }
            for [left, right] in [[short, short], [rows, columns]] {
                let forms = [(dtype, rows, Some(left)), (real, short, None), (dtype, right, Some(columns))];
                let found = call("svd", dtype, &[&matrix], &forms).unwrap();
                let values = &found[1].elements;
                assert!(
                    values.is_sorted_by(|one, next| one[0] >= next[0]) && values.iter().all(|value| value[0] >= 0.0)
                );
                let middle = Matrix::new(left, right, |row, column| if row == column { values[row] } else { [0.0; 2] });
                close(&found[0].times(&middle).times(&found[2]), &matrix, dtype, "U s Vᴴ");
                close(&found[0].adjoint().times(&found[0]), &identity(left), dtype, "Uᴴ U");
                close(&found[2].times(&found[2].adjoint()), &identity(right), dtype, "Vᴴ V");
                let alone = call("svd", dtype, &[&matrix], &[(real, short, None)]).unwrap().remove(0);
                close(&alone, &found[1], dtype, "s alone");
            }
        }
    }
}

/// As LAPACK has it: the last pivots of these are sums whose products round to what they are taken from.
#[test]
fn small_whole_numbers_that_are_singular_have_no_solution() {
    for rows in
        [[[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[2, 1, 3], [2, 1, 3], [1, 0, 1]], [[1, 4, 7], [2, 5, 8], [3, 6, 9]]]
    {
        for dtype in TYPES {
            let matrix = Matrix::new(3, 3, |row, column| [f64::from(rows[row][column]), 0.0]);
            let error = call("solve", dtype, &[&matrix, &identity(3)], &[(dtype, 3, Some(3))]).unwrap_err();
            assert!(error.text.contains("the matrix is singular"), "{dtype}: {error}");
        }
    }
}

#[test]
fn matrices_without_factors_are_errors_or_keep_their_zeros() {
    let dice = &mut Dice(4);
    for size in [3, 90] {
        let full = Matrix::random(dice, DType::F64, size, size);
        let singular = full.part(|_, column| column != size / 2);
        let form = [(DType::F64, size, Some(size))];
        let factors = call("lu", DType::F64, &[&singular], &form).unwrap().remove(0);
        assert!(factors.elements.iter().all(|[re, _]| re.is_finite()), "a column of zeros divides nothing");
        let error = call("solve", DType::F64, &[&singular, &full], &form).unwrap_err();
        assert!(error.text.contains("singular"), "{error}");
        let mut indefinite = positive(dice, DType::F64, size);
        indefinite.elements[size * size - 1][0] = -1.0;
        let error = call("cholesky", DType::F64, &[&indefinite], &form).unwrap_err();
        assert!(error.text.contains("not positive definite"), "{error}");
        let mut infinite = full;
        infinite.elements[1][0] = f64::NAN;
        for (name, forms) in [
            ("eigh", vec![(DType::F64, size, None)]),
            ("eig", vec![(DType::C128, size, None)]),
            ("svd", vec![(DType::F64, size, None)]),
        ] {
            // A Hermitian matrix is its lower triangle.
            let given = if name == "eigh" { infinite.adjoint() } else { infinite.clone() };
            let error = call(name, DType::F64, &[&given], &forms).unwrap_err();
            assert!(error.text.contains("not a number"), "{error}");
        }
    }
}
