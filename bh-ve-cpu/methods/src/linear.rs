//! Linear systems and factorisations of matrices.

use crate::{Call, Methods, Parallel, Strided, Walk};
use bh_bytecode::DType;
use bh_core::abi::status;
use bh_core::{Error, Result};
use nalgebra::{Complex, ComplexField, DMatrix};

/// Calls a generic function with the element type of inexact numbers.
macro_rules! with_inexact {
    ($call:expr, $dtype:expr, $T:ident => $body:expr) => {
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
                type $T = Complex<f32>;
                $body
            }
            DType::C128 => {
                type $T = Complex<f64>;
                $body
            }
            _ => $call.type_error(),
        }
    };
}

/// `x` with `a · x = b`, for one right side or several in the columns of `b`.
pub(crate) fn solve(_: &mut Methods, call: &Call<'_, '_>, _: &mut dyn Parallel) -> Result<()> {
    call.check_counts(1..=1, 2)?;
    let dtype = call.one_type()?;
    let n = square(call)?;
    if call.inputs[1].shape.first() != Some(&n)
        || call.inputs[1].shape.len() > 2
        || call.outputs[0].shape != call.inputs[1].shape
    {
        return call.shape_error();
    }
    with_inexact!(call, dtype, T => {
        let solution = read::<T>(&call.inputs[0]).lu().solve(&read::<T>(&call.inputs[1]));
        let singular = || Error::new(status::EXECUTION, "solve: the matrix is singular");
        write(&call.outputs[0], &solution.ok_or_else(singular)?);
        Ok(())
    })
}

/// The factors of `a` with its rows permuted: L (its diagonal of ones left out) and U in one matrix, and as a second
/// output the permutation: row `i` of the product is row `p[i]` of `a`.
pub(crate) fn lu(_: &mut Methods, call: &Call<'_, '_>, _: &mut dyn Parallel) -> Result<()> {
    call.check_counts(1..=2, 1)?;
    let n = square(call)?;
    let dtype = call.inputs[0].dtype;
    let permutation = call.outputs.get(1);
    if call.outputs[0].dtype != dtype || permutation.is_some_and(|view| view.dtype != DType::I64) {
        return call.type_error();
    }
    if call.outputs[0].shape != [n, n] || permutation.is_some_and(|view| view.shape != [n]) {
        return call.shape_error();
    }
    with_inexact!(call, dtype, T => {
        let factors = read::<T>(&call.inputs[0]).lu();
        write(&call.outputs[0], factors.lu_internal());
        if let Some(view) = permutation {
            let mut rows = DMatrix::<i64>::from_fn(n as usize, 1, |row, _| row as i64);
            factors.p().permute_rows(&mut rows);
            write(view, &rows);
        }
        Ok(())
    })
}

/// The lower triangular L with L · Lᴴ = a; only the lower triangle of `a` is read.
pub(crate) fn cholesky(_: &mut Methods, call: &Call<'_, '_>, _: &mut dyn Parallel) -> Result<()> {
    call.check_counts(1..=1, 1)?;
    let dtype = call.one_type()?;
    let n = square(call)?;
    if call.outputs[0].shape != [n, n] {
        return call.shape_error();
    }
    with_inexact!(call, dtype, T => {
        let factor = read::<T>(&call.inputs[0]).cholesky();
        let indefinite = || Error::new(status::EXECUTION, "cholesky: the matrix is not positive definite");
        write(&call.outputs[0], &factor.ok_or_else(indefinite)?.l());
        Ok(())
    })
}

/// The order of the square matrix that is the first input.
fn square(call: &Call<'_, '_>) -> Result<i64> {
    match call.inputs[0].shape {
        &[rows, columns] if rows == columns => Ok(rows),
        _ => call.shape_error(),
    }
}

/// Copies a view of one or two dimensions, whose type must have the layout of `T`.
fn read<T: ComplexField>(view: &Strided<'_>) -> DMatrix<T> {
    let (rows, columns) = (view.shape.first().copied().unwrap_or(1), view.shape.get(1).copied().unwrap_or(1));
    let mut walk = Walk::new(view.shape, [view]);
    let elements = (0..rows * columns).map(|_| {
        let [at] = walk.at;
        walk.next();
        // SAFETY: the walk stays inside the view.
        unsafe { at.cast::<T>().read_unaligned() }
    });
    DMatrix::from_row_iterator(rows as usize, columns as usize, elements)
}

/// Copies a matrix to a view of its shape.
fn write<T: nalgebra::Scalar>(view: &Strided<'_>, matrix: &DMatrix<T>) {
    let mut walk = Walk::new(view.shape, [view]);
    for row in matrix.row_iter() {
        for element in &row {
            let [at] = walk.at;
            walk.next();
            // SAFETY: the walk stays inside the view.
            unsafe { at.cast::<T>().write_unaligned(element.clone()) }
        }
    }
}
