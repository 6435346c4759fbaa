//! Linear systems and factorisations of matrices, in work memory of the host, column by column.

use crate::scratch::Scratch;
use crate::{Call, Methods, Parallel, Strided, Walk};
use bh_bytecode::DType;
use bh_core::abi::status;
use bh_core::{Error, Result};
use nalgebra::{Complex, ComplexField};

/// Calls a generic function with the element type of inexact numbers.
macro_rules! with_inexact {
    ($call:expr, $T:ident => $body:expr) => {
        match $call.inputs[0].dtype {
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
            _ => {
                type $T = Complex<f64>;
                $body
            }
        }
    };
}

/// `x` with `a · x = b`, for one right side or several in the columns of `b`.
pub(crate) fn solve(_: &mut Methods, call: &Call<'_, '_>, _: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    with_inexact!(call, T => {
        let mut factors = Matrix::<T>::read(call, &call.inputs[0])?;
        let mut sides = Matrix::<T>::read(call, &call.inputs[1])?;
        let mut order = rows(call, factors.rows)?;
        factors.factor(&mut order);
        if !factors.solve(&order, &mut sides) {
            return Err(Error::new(status::EXECUTION, "solve: the matrix is singular"));
        }
        sides.write(&call.outputs[0]);
        Ok(())
    })
}

/// The factors of `a` with its rows permuted: L (its diagonal of ones left out) and U in one matrix, and as a second
/// output the permutation: row `i` of the product is row `p[i]` of `a`.
pub(crate) fn lu(_: &mut Methods, call: &Call<'_, '_>, _: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    let mut order = rows(call, call.inputs[0].shape[0] as usize)?;
    with_inexact!(call, T => {
        let mut factors = Matrix::<T>::read(call, &call.inputs[0])?;
        factors.factor(&mut order);
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

/// The lower triangular L with L · Lᴴ = a; only the lower triangle of `a` is read.
pub(crate) fn cholesky(_: &mut Methods, call: &Call<'_, '_>, _: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    with_inexact!(call, T => {
        let mut factor = Matrix::<T>::read(call, &call.inputs[0])?;
        if !factor.cholesky() {
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

/// to - factor · from, element by element.
fn subtract<T: ComplexField + Copy>(to: &mut [T], factor: T, from: &[T]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to -= factor * from;
    }
}

impl<T: ComplexField + Copy> Matrix<T> {
    /// Copies a view of one or two dimensions, whose type must have the layout of `T`.
    fn read(call: &Call<'_, '_>, view: &Strided<'_>) -> Result<Matrix<T>> {
        let (rows, columns) =
            (view.shape.first().map_or(1, |&n| n as usize), view.shape.get(1).map_or(1, |&n| n as usize));
        // SAFETY: zeros are numbers.
        let mut elements = unsafe { Scratch::<T>::zeros(call.memory, rows.saturating_mul(columns))? };
        let mut walk = Walk::new(view.shape, [view]);
        for row in 0..rows {
            for column in 0..columns {
                let [at] = walk.at;
                walk.next();
                // SAFETY: the walk stays inside the view.
                elements[column * rows + row] = unsafe { at.cast::<T>().read_unaligned() };
            }
        }
        Ok(Matrix { elements, rows, columns })
    }

    /// Copies the matrix to a view of its shape.
    fn write(&self, view: &Strided<'_>) {
        let mut walk = Walk::new(view.shape, [view]);
        for row in 0..self.rows {
            for column in 0..self.columns {
                let [at] = walk.at;
                walk.next();
                // SAFETY: the walk stays inside the view.
                unsafe { at.cast::<T>().write_unaligned(self.elements[column * self.rows + row]) };
            }
        }
    }

    /// A column, and all after it.
    fn columns_at(&mut self, column: usize) -> (&mut [T], &mut [T]) {
        let rows = self.rows;
        self.elements[column * rows..].split_at_mut(rows)
    }

    /// Gauss' elimination in place, with the largest element of a column as pivot. `order` follows the exchanges of rows.
    fn factor(&mut self, order: &mut [i64]) {
        let rows = self.rows;
        for step in 0..self.columns.min(rows) {
            let column = &self.elements[step * rows..][..rows];
            let size = |row: usize| column[row].norm1();
            let pivot = (step + 1..rows).fold(step, |best, row| if size(row) > size(best) { row } else { best });
            if column[pivot].is_zero() {
                continue;
            }
            if pivot != step {
                order.swap(step, pivot);
                self.elements.chunks_exact_mut(rows).for_each(|column| column.swap(step, pivot));
            }
            let (column, rest) = self.columns_at(step);
            let inverse = T::one() / column[step];
            column[step + 1..].iter_mut().for_each(|element| *element *= inverse);
            for other in rest.chunks_exact_mut(rows) {
                let factor = other[step];
                subtract(&mut other[step + 1..], factor, &column[step + 1..]);
            }
        }
    }

    /// Turns right sides into solutions by the factors; `false` if the matrix is singular.
    fn solve(&self, order: &[i64], sides: &mut Matrix<T>) -> bool {
        let rows = self.rows;
        let column = |number: usize| &self.elements[number * rows..][..rows];
        if (0..rows).any(|number| column(number)[number].is_zero()) {
            return false;
        }
        for side in sides.elements.chunks_exact_mut(rows.max(1)) {
            permute(side, order);
            for number in 0..rows {
                let factor = side[number];
                subtract(&mut side[number + 1..], factor, &column(number)[number + 1..]);
            }
            for number in (0..rows).rev() {
                side[number] /= column(number)[number];
                let factor = side[number];
                subtract(&mut side[..number], factor, &column(number)[..number]);
            }
        }
        true
    }

    /// The Cholesky factor in place, zeros above the diagonal; `false` if there is none.
    fn cholesky(&mut self) -> bool {
        let rows = self.rows;
        for step in 0..rows {
            let (column, rest) = self.columns_at(step);
            let square = column[step];
            // NaN is not positive either.
            let positive = square.imaginary() == nalgebra::zero() && square.real() > nalgebra::zero();
            let Some(root) = square.try_sqrt().filter(|_| positive) else { return false };
            column[..step].fill(T::zero());
            column[step] = root;
            column[step + 1..].iter_mut().for_each(|element| *element /= root);
            for (number, other) in rest.chunks_exact_mut(rows).enumerate() {
                let row = step + 1 + number;
                let factor = column[row].conjugate();
                subtract(&mut other[row..], factor, &column[row..]);
                // What rounding leaves on the diagonal beside its real part is no part of the matrix.
                other[row] = T::from_real(other[row].real());
            }
        }
        true
    }
}

/// Brings elements into an order: element `i` becomes what `order[i]` was.
fn permute<T: Copy>(elements: &mut [T], order: &[i64]) {
    // Each cycle is walked once, from its smallest place.
    for start in 0..elements.len() {
        let mut place = order[start] as usize;
        while place > start {
            place = order[place] as usize;
        }
        if place < start {
            continue;
        }
        let first = elements[start];
        let mut place = start;
        while order[place] as usize != start {
            elements[place] = elements[order[place] as usize];
            place = order[place] as usize;
        }
        elements[place] = first;
    }
}
