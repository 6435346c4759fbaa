//! Linear systems, factorisations and decompositions of matrices, in work memory of the host.

mod blocked;
mod decompose;

pub(crate) use decompose::{eig, eigh, qr, svd};

use crate::parallel::all;
use crate::scratch::{Scratch, Zeroed};
use crate::{Call, Parallel, Strided};
use bh_bytecode::{Complex, DType, Element};
use bh_core::abi::status;
use bh_core::{Error, Result};
use faer::traits::ComplexField;
use faer::traits::math_utils::conj;
use faer::{MatMut, MatRef, c32, c64};
use std::ops::{Mul, Sub};

/// A number with a fraction, real or complex.
trait Inexact: ComplexField + Zeroed + Copy + Send + Sync + Sub<Output = Self> + Mul<Output = Self> {
    /// From a real and an imaginary part, which real numbers drop.
    fn new(re: f64, im: f64) -> Self;

    /// The real and the imaginary part.
    fn parts(self) -> (f64, f64);
}

macro_rules! inexact {
    ($($real:ident $complex:ident),*) => {$(
        impl Inexact for $real {
            fn new(re: f64, _: f64) -> $real {
                re as $real
            }

            fn parts(self) -> (f64, f64) {
                (self.into(), 0.0)
            }
        }

        impl Inexact for $complex {
            fn new(re: f64, im: f64) -> $complex {
                $complex { re: re as $real, im: im as $real }
            }

            fn parts(self) -> (f64, f64) {
                (self.re.into(), self.im.into())
            }
        }
    )*};
}
inexact!(f32 c32, f64 c64);

/// Evaluates an expression with the type of an array's elements; the complex ones of single and double precision are given.
macro_rules! in_one_of {
    ([$single:ty, $double:ty], $dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::C64 => {
                type $T = $single;
                $body
            }
            _ => {
                type $T = $double;
                $body
            }
        }
    };
}

/// Evaluates an expression with the type of an array's elements, as the algorithms have them.
macro_rules! in_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        in_one_of!([c32, c64], $dtype, $T => $body)
    };
}

/// Evaluates an expression with the type of an array's elements, as arrays have them.
macro_rules! in_parts {
    ($dtype:expr, $T:ident => $body:expr) => {
        in_one_of!([Complex<f32>, Complex<f64>], $dtype, $T => $body)
    };
}

/// Evaluates an expression with double precision, real or complex.
macro_rules! in_double {
    ($dtype:expr, $T:ident => $body:expr) => {
        if $dtype.is_complex() {
            type $T = c64;
            $body
        } else {
            type $T = f64;
            $body
        }
    };
}
use in_double;

/// `x` with `a · x = b`, for one right side or several in the columns of `b`.
pub(crate) fn solve(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    in_type!(call.inputs[0].dtype, T => {
        let mut factors = Matrix::<T>::read(call, &call.inputs[0])?;
        let mut sides = Matrix::<T>::read(call, &call.inputs[1])?;
        let mut order = rows(call, factors.rows)?;
        blocked::lu(&mut factors, &mut order, threads);
        if !blocked::solve(&factors, &order, &mut sides, threads) {
            return Err(Error::new(status::EXECUTION, "solve: the matrix is singular"));
        }
        sides.write(&call.outputs[0], threads);
        Ok(())
    })
}

/// The factors of `a` with its rows permuted: L (its diagonal of ones left out) and U in one matrix, and as a second
/// output the permutation: row `i` of the product is row `p[i]` of `a`.
pub(crate) fn lu(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    lu_factors(call, threads)
}

/// The same of a matrix that may have more rows than columns: ranks of a cluster factor some of the columns of a larger one.
pub(crate) fn lu_panel(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    let ([factors, order], [matrix]) = (call.outputs, call.inputs) else {
        return Err(Error::new(status::ARGUMENT, "lu_panel: two outputs and an input"));
    };
    if !(matrix.dtype.is_float() || matrix.dtype.is_complex())
        || factors.dtype != matrix.dtype
        || order.dtype != DType::I64
    {
        return Err(Error::new(status::TYPE, "lu_panel: an inexact matrix, factors of its type, and an order"));
    }
    if !matches!(matrix.shape, &[rows, columns] if rows >= columns)
        || factors.shape != matrix.shape
        || order.shape != &matrix.shape[..1]
    {
        return Err(Error::new(
            status::SHAPE,
            "lu_panel: as many rows as columns, factors of this shape, and an order of the rows",
        ));
    }
    lu_factors(call, threads)
}

fn lu_factors(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    let mut order = rows(call, call.inputs[0].shape[0] as usize)?;
    in_type!(call.inputs[0].dtype, T => {
        let mut factors = Matrix::<T>::read(call, &call.inputs[0])?;
        blocked::lu(&mut factors, &mut order, threads);
        factors.write(&call.outputs[0], threads);
    });
    if let Some(view) = call.outputs.get(1) {
        view.output::<i64>().put_line(&mut all(threads), 0, order.iter().copied());
    }
    Ok(())
}

/// The lower triangular L with L · Lᴴ = a; only the lower triangle of `a` is read, and of its diagonal the real part.
pub(crate) fn cholesky(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    in_type!(call.inputs[0].dtype, T => {
        let mut factor = Matrix::<T>::read(call, &call.inputs[0])?;
        if !blocked::cholesky(&mut factor, threads) {
            return Err(Error::new(status::EXECUTION, "cholesky: the matrix is not positive definite"));
        }
        factor.write(&call.outputs[0], threads);
        Ok(())
    })
}

/// The numbers of rows in their order.
fn rows(call: &Call<'_, '_>, count: usize) -> Result<Scratch<i64>> {
    let mut order = Scratch::<i64>::zeros(call.memory, count)?;
    order.iter_mut().zip(0..).for_each(|(row, number)| *row = number);
    Ok(order)
}

/// A matrix in columns.
struct Matrix<T: Inexact> {
    elements: Scratch<T>,
    rows: usize,
    columns: usize,
}

impl<T: Inexact> Matrix<T> {
    fn zeros(call: &Call<'_, '_>, rows: usize, columns: usize) -> Result<Matrix<T>> {
        let elements = Scratch::<T>::zeros(call.memory, rows.saturating_mul(columns))?;
        Ok(Matrix { elements, rows, columns })
    }

    /// Copies a view of one or two dimensions, which are inexact numbers.
    fn read(call: &Call<'_, '_>, view: &Strided<'_>) -> Result<Matrix<T>> {
        let extent = |axis: usize| view.shape.get(axis).map_or(1, |&extent| extent as usize);
        let mut matrix = Matrix::zeros(call, extent(0), extent(1))?;
        in_parts!(view.dtype, S => {
            let elements = view.elements::<S>();
            let mut elements = elements.from(0);
            for row in 0..matrix.rows {
                for (column, element) in (0..matrix.columns).zip(&mut elements) {
                    let (re, im) = Parted::parts(element);
                    matrix.elements[column * matrix.rows + row] = T::new(re, im);
                }
            }
        });
        Ok(matrix)
    }

    /// Copies the matrix to a view of its shape; real numbers take the real part.
    fn write(&self, view: &Strided<'_>, threads: &mut dyn Parallel) {
        Matrix::write_each(view, threads, |row, column| self.elements[column * self.rows + row]);
    }

    /// Copies the conjugate transpose to a view of its shape.
    fn write_adjoint(&self, view: &Strided<'_>, threads: &mut dyn Parallel) {
        Matrix::write_each(view, threads, |row, column| conj(&self.elements[row * self.rows + column]));
    }

    fn write_each(view: &Strided<'_>, threads: &mut dyn Parallel, element: impl Fn(usize, usize) -> T) {
        let extent = |axis: usize| view.shape.get(axis).map_or(1, |&extent| extent as usize);
        let mut own = all(threads);
        in_parts!(view.dtype, S => {
            let (output, element) = (view.output::<S>(), |row, column| {
                let (re, im) = Inexact::parts(element(row, column));
                S::of_parts(re, im)
            });
            if view.shape.len() == 1 {
                return output.put_line(&mut own, 0, (0..extent(0)).map(|row| element(row, 0)));
            }
            for row in 0..extent(0) {
                output.put_line(&mut own, row as i64, (0..extent(1)).map(|column| element(row, column)));
            }
        });
    }

    fn view(&self) -> MatRef<'_, T> {
        MatRef::from_column_major_slice(&self.elements, self.rows, self.columns)
    }

    fn view_mut(&mut self) -> MatMut<'_, T> {
        MatMut::from_column_major_slice_mut(&mut self.elements, self.rows, self.columns)
    }
}

/// An element of an array of inexact numbers, in its parts.
trait Parted: Element {
    fn parts(self) -> (f64, f64);
    fn of_parts(re: f64, im: f64) -> Self;
}

macro_rules! parted {
    ($($real:ident),*) => {$(
        impl Parted for $real {
            fn parts(self) -> (f64, f64) {
                (self.into(), 0.0)
            }

            fn of_parts(re: f64, _: f64) -> $real {
                re as $real
            }
        }

        impl Parted for Complex<$real> {
            fn parts(self) -> (f64, f64) {
                (self.re.into(), self.im.into())
            }

            fn of_parts(re: f64, im: f64) -> Complex<$real> {
                Complex { re: re as $real, im: im as $real }
            }
        }
    )*};
}
parted!(f32, f64);
