//! Complex numbers, and matrices of them in rows.

use bh_bytecode::DType;

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct C(pub f64, pub f64);

pub fn add(a: C, b: C) -> C {
    C(a.0 + b.0, a.1 + b.1)
}

pub fn less(a: C, b: C) -> C {
    C(a.0 - b.0, a.1 - b.1)
}

pub fn times(a: C, b: C) -> C {
    C(a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

pub fn scale(a: C, by: f64) -> C {
    C(a.0 * by, a.1 * by)
}

pub fn conjugate(a: C) -> C {
    C(a.0, -a.1)
}

pub fn size(a: C) -> f64 {
    a.0.hypot(a.1)
}

pub fn divide(a: C, b: C) -> C {
    scale(times(a, conjugate(b)), 1.0 / (b.0 * b.0 + b.1 * b.1))
}

impl C {
    /// Elements of a type; whole numbers, too.
    pub fn read(dtype: DType, bytes: &[u8]) -> Vec<C> {
        let real = |bytes: &[u8]| match dtype.real_part() {
            DType::F32 => f64::from(f32::from_ne_bytes(bytes.try_into().unwrap())),
            DType::I64 => i64::from_ne_bytes(bytes.try_into().unwrap()) as f64,
            _ => f64::from_ne_bytes(bytes.try_into().unwrap()),
        };
        let part = dtype.real_part().size();
        let one = |bytes: &[u8]| C(real(&bytes[..part]), if dtype.is_complex() { real(&bytes[part..]) } else { 0.0 });
        bytes.chunks_exact(dtype.size()).map(one).collect()
    }

    /// The bytes of elements in a type.
    pub fn bytes(dtype: DType, values: &[C]) -> Vec<u8> {
        let real = |value: f64| match dtype.real_part() {
            DType::F32 => (value as f32).to_ne_bytes().to_vec(),
            _ => value.to_ne_bytes().to_vec(),
        };
        let one = |value: &C| if dtype.is_complex() { [real(value.0), real(value.1)].concat() } else { real(value.0) };
        values.iter().flat_map(one).collect()
    }
}

/// A matrix in rows.
#[derive(Clone, Debug)]
pub struct Matrix {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<C>,
}

impl Matrix {
    pub fn new(rows: usize, columns: usize, mut value: impl FnMut(usize, usize) -> C) -> Matrix {
        let values = (0..rows * columns).map(|at| value(at / columns, at % columns)).collect();
        Matrix { rows, columns, values }
    }

    pub fn unit(n: usize) -> Matrix {
        Matrix::new(n, n, |row, column| C(f64::from(u8::from(row == column)), 0.0))
    }

    pub fn at(&self, row: usize, column: usize) -> C {
        self.values[row * self.columns + column]
    }

    pub fn adjoint(&self) -> Matrix {
        Matrix::new(self.columns, self.rows, |row, column| conjugate(self.at(column, row)))
    }

    pub fn times(&self, right: &Matrix) -> Matrix {
        let term = |row, column, k| times(self.at(row, k), right.at(k, column));
        let sum = |row, column| (0..self.columns).fold(C(0.0, 0.0), |sum, k| add(sum, term(row, column, k)));
        Matrix::new(self.rows, right.columns, sum)
    }

    pub fn largest(&self) -> f64 {
        self.values.iter().fold(0.0, |most: f64, value| most.max(size(*value)))
    }

    /// Fails unless all elements are those of another matrix but for this much, of which NaN is not.
    pub fn is_near(&self, other: &Matrix, bound: f64, what: &str) {
        assert_eq!((self.rows, self.columns), (other.rows, other.columns), "{what}");
        for (at, (found, wanted)) in self.values.iter().zip(&other.values).enumerate() {
            let place = (at / self.columns, at % self.columns);
            assert!(
                size(less(*found, *wanted)) <= bound,
                "{what}: {found:?} at {place:?} is more than {bound} from {wanted:?}"
            );
        }
    }
}
