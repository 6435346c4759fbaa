//! Linear systems, factorisations and decompositions of matrices, in work memory of the host.

mod blocked;
mod decompose;

pub(crate) use decompose::{eig, eigh, qr, svd};

use crate::scratch::Scratch;
use crate::{Call, Parallel, Strided, Walk};
use bh_bytecode::DType;
use bh_core::abi::status;
use bh_core::{Error, Result};
use faer::traits::ComplexField;
use faer::traits::math_utils::conj;
use faer::{MatMut, MatRef, c32, c64};
use std::ops::{Mul, Sub};

/// A number with a fraction, real or complex.
trait Inexact: ComplexField + Copy + Send + Sync + Sub<Output = Self> + Mul<Output = Self> {
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

/// Evaluates an expression with the type of an array's elements.
macro_rules! in_type {
    ($dtype:expr, $T:ident => $body:expr) => {
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
                type $T = c32;
                $body
            }
            _ => {
                type $T = c64;
                $body
            }
        }
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
        sides.write(&call.outputs[0]);
        Ok(())
    })
}

/// The factors of `a` with its rows permuted: L (its diagonal of ones left out) and U in one matrix, and as a second
/// output the permutation: row `i` of the product is row `p[i]` of `a`.
pub(crate) fn lu(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    let mut order = rows(call, call.inputs[0].shape[0] as usize)?;
    in_type!(call.inputs[0].dtype, T => {
        let mut factors = Matrix::<T>::read(call, &call.inputs[0])?;
        blocked::lu(&mut factors, &mut order, threads);
        factors.write(&call.outputs[0]);
    });
    if let Some(view) = call.outputs.get(1) {
        let mut walk = Walk::new(view.shape, [view]);
        for &row in order.iter() {
            let [at] = walk.at;
            walk.next();
            // SAFETY: the walk stays inside the view, whose elements are i64.
            unsafe { at.cast::<i64>().write_unaligned(row) };
        }
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
        factor.write(&call.outputs[0]);
        Ok(())
    })
}

/// The numbers of rows in their order.
fn rows(call: &Call<'_, '_>, count: usize) -> Result<Scratch<i64>> {
    // SAFETY: zero is an i64.
    let mut order = unsafe { Scratch::<i64>::zeros(call.memory, count)? };
    order.iter_mut().zip(0..).for_each(|(row, number)| *row = number);
    Ok(order)
}

/// A matrix in columns.
struct Matrix<T: Copy> {
    elements: Scratch<T>,
    rows: usize,
    columns: usize,
}

impl<T: Inexact> Matrix<T> {
    fn zeros(call: &Call<'_, '_>, rows: usize, columns: usize) -> Result<Matrix<T>> {
        // SAFETY: zeros are numbers.
        let elements = unsafe { Scratch::<T>::zeros(call.memory, rows.saturating_mul(columns))? };
        Ok(Matrix { elements, rows, columns })
    }

    /// Copies a view of one or two dimensions, which are inexact numbers.
    fn read(call: &Call<'_, '_>, view: &Strided<'_>) -> Result<Matrix<T>> {
        let extent = |axis: usize| view.shape.get(axis).map_or(1, |&extent| extent as usize);
        let mut matrix = Matrix::zeros(call, extent(0), extent(1))?;
        let mut walk = Walk::new(view.shape, [view]);
        for row in 0..matrix.rows {
            for column in 0..matrix.columns {
                let [at] = walk.at;
                walk.next();
                // SAFETY: the walk stays inside the view, whose elements are of this type.
                matrix.elements[column * matrix.rows + row] = unsafe { load(view.dtype, at) };
            }
        }
        Ok(matrix)
    }

    /// Copies the matrix to a view of its shape; real numbers take the real part.
    fn write(&self, view: &Strided<'_>) {
        self.write_each(view, |row, column| self.elements[column * self.rows + row]);
    }

    /// Copies the conjugate transpose to a view of its shape.
    fn write_adjoint(&self, view: &Strided<'_>) {
        self.write_each(view, |row, column| conj(&self.elements[row * self.rows + column]));
    }

    fn write_each(&self, view: &Strided<'_>, element: impl Fn(usize, usize) -> T) {
        let extent = |axis: usize| view.shape.get(axis).map_or(1, |&extent| extent as usize);
        let mut walk = Walk::new(view.shape, [view]);
        for row in 0..extent(0) {
            for column in 0..extent(1) {
                let [at] = walk.at;
                walk.next();
                // SAFETY: the walk stays inside the view, whose elements are of this type.
                unsafe { store(element(row, column), view.dtype, at) };
            }
        }
    }

    fn view(&self) -> MatRef<'_, T> {
        MatRef::from_column_major_slice(&self.elements, self.rows, self.columns)
    }

    fn view_mut(&mut self) -> MatMut<'_, T> {
        MatMut::from_column_major_slice_mut(&mut self.elements, self.rows, self.columns)
    }
}

/// # Safety
/// There is an element of this type, an inexact one.
unsafe fn load<T: Inexact>(dtype: DType, at: *const u8) -> T {
    // SAFETY: the caller's promise; complex numbers are two parts.
    unsafe {
        match dtype {
            DType::F32 => T::new(at.cast::<f32>().read_unaligned().into(), 0.0),
            DType::F64 => T::new(at.cast::<f64>().read_unaligned(), 0.0),
            DType::C64 => {
                let [re, im] = at.cast::<[f32; 2]>().read_unaligned();
                T::new(re.into(), im.into())
            }
            _ => {
                let [re, im] = at.cast::<[f64; 2]>().read_unaligned();
                T::new(re, im)
            }
        }
    }
}

/// # Safety
/// There is room for an element of this type, an inexact one.
unsafe fn store<T: Inexact>(value: T, dtype: DType, at: *mut u8) {
    let (re, im) = value.parts();
    // SAFETY: the caller's promise.
    unsafe {
        match dtype {
            DType::F32 => at.cast::<f32>().write_unaligned(re as f32),
            DType::F64 => at.cast::<f64>().write_unaligned(re),
            DType::C64 => at.cast::<[f32; 2]>().write_unaligned([re as f32, im as f32]),
            _ => at.cast::<[f64; 2]>().write_unaligned([re, im]),
        }
    }
}
