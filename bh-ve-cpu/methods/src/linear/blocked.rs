//! LU and Cholesky factors in blocks of columns. The part outside a block follows in strips of fixed sizes, side by side, so
//! that bits depend on the shape alone and not on the number of threads.
//!
//! The algorithms are LAPACK's `getrf` (right-looking; a block by halves, as `getrf2`) and `potrf`, over faer's products
//! and triangular solutions.

use super::{Inexact, Matrix};
use crate::Parallel;
use faer::dyn_stack::MemStack;
use faer::linalg::cholesky::llt::factor::{LltRegularization, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::prelude::*;
use faer::traits::math_utils::{abs1, from_real, one, real, recip, zero};
use faer::{Accum, Par, Spec};
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

/// Columns of a block.
const BLOCK: usize = 64;
/// Columns that are factored one by one.
const NARROW: usize = 8;
/// Rows whose sums of products are made together.
const ROWS: usize = 64;
/// Columns, or rows, of a strip beside a block.
const STRIP: usize = 128;
/// Right sides that are solved for together.
const SIDES: usize = 32;

/// Parts of a matrix, each of which one participant takes.
struct Parts<'a, T>(Vec<Mutex<Option<MatMut<'a, T>>>>);

impl<'a, T: Inexact> Parts<'a, T> {
    /// Strips of `size` columns.
    fn of_columns(mut matrix: MatMut<'a, T>, size: usize) -> Parts<'a, T> {
        let mut parts = Vec::with_capacity(matrix.ncols().div_ceil(size));
        while matrix.ncols() > 0 {
            let columns = size.min(matrix.ncols());
            let (part, rest) = matrix.split_at_col_mut(columns);
            parts.push(Mutex::new(Some(part)));
            matrix = rest;
        }
        Parts(parts)
    }

    /// Strips of `size` rows.
    fn of_rows(mut matrix: MatMut<'a, T>, size: usize) -> Parts<'a, T> {
        let mut parts = Vec::with_capacity(matrix.nrows().div_ceil(size));
        while matrix.nrows() > 0 {
            let rows = size.min(matrix.nrows());
            let (part, rest) = matrix.split_at_row_mut(rows);
            parts.push(Mutex::new(Some(part)));
            matrix = rest;
        }
        Parts(parts)
    }

    /// How many there are.
    fn len(&self) -> usize {
        self.0.len()
    }

    /// A part, for the first caller.
    fn take(&self, number: usize) -> Option<MatMut<'a, T>> {
        self.0[number].lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// L (its diagonal of ones left out) and U in place of a matrix, the largest element of a column its pivot. `order`, the
/// numbers of the rows, follows their exchanges. A column of zeros has no pivot and is passed over.
pub(super) fn lu<T: Inexact>(matrix: &mut Matrix<T>, order: &mut [i64], threads: &mut dyn Parallel) {
    let (rows, columns) = (matrix.rows, matrix.columns);
    for first in (0..rows.min(columns)).step_by(BLOCK) {
        let width = BLOCK.min(rows.min(columns) - first);
        let (left, rest) = matrix.view_mut().subrows_mut(first, rows - first).split_at_col_mut(first);
        let (mut block, right) = rest.split_at_col_mut(width);
        let mut swaps = [0; BLOCK];
        let swaps = &mut swaps[..width];
        panel(block.rb_mut(), swaps);
        let swaps = &*swaps;
        swaps.iter().enumerate().for_each(|(step, &other)| order.swap(first + step, first + other));
        let units = 2 * (rows - first) * width * right.ncols() + width * first;
        let (left, right) = (Parts::of_columns(left, STRIP), Parts::of_columns(right, STRIP));
        let (upper, lower) = block.as_ref().split_at_row(width);
        let follow = |number: usize| {
            let of_left = number < left.len();
            let part = if of_left { left.take(number) } else { right.take(number - left.len()) };
            let Some(mut all) = part else { return };
            exchange(all.rb_mut(), swaps);
            if !of_left {
                eliminate(upper, lower, all);
            }
        };
        side_by_side(threads, units, left.len() + right.len(), &follow);
    }
}

/// Rows below a block that are next to its columns: the first rows become those of U, and what they explain is taken from
/// the others.
fn eliminate<T: Inexact>(upper: MatRef<'_, T>, lower: MatRef<'_, T>, beside: MatMut<'_, T>) {
    let (mut top, rest) = beside.split_at_row_mut(upper.nrows());
    solve_unit_lower_triangular_in_place(upper, top.rb_mut(), Par::Seq);
    matmul(rest, Accum::Add, lower, top.rb(), -one::<T>(), Par::Seq);
}

/// Exchanges row `i` with row `swaps[i]`, in this order.
fn exchange<T: Inexact>(mut matrix: MatMut<'_, T>, swaps: &[usize]) {
    for column in 0..matrix.ncols() {
        for (step, &other) in swaps.iter().enumerate() {
            let kept = matrix[(step, column)];
            matrix[(step, column)] = matrix[(other, column)];
            matrix[(other, column)] = kept;
        }
    }
}

/// The factors of a block, which has at least as many rows as columns, by halves; and the exchanges of rows.
fn panel<T: Inexact>(mut block: MatMut<'_, T>, swaps: &mut [usize]) {
    let columns = block.ncols();
    if columns <= NARROW {
        return narrow(block, swaps);
    }
    let half = (columns / 2).next_multiple_of(NARROW);
    panel(block.rb_mut().subcols_mut(0, half), &mut swaps[..half]);
    let (left, mut right) = block.rb_mut().split_at_col_mut(half);
    exchange(right.rb_mut(), &swaps[..half]);
    let (upper, lower) = left.into_const().split_at_row(half);
    eliminate(upper, lower, right.rb_mut());
    let rows = right.nrows();
    panel(right.subrows_mut(half, rows - half), &mut swaps[half..]);
    let later = block.subrows_mut(half, rows - half).subcols_mut(0, half);
    exchange(later, &swaps[half..]);
    swaps[half..].iter_mut().for_each(|other| *other += half);
}

/// The factors of a few columns, one after the other, in the order of LAPACK's `getf2`: small matrices that are singular lose
/// their pivots where they do in LAPACK.
fn narrow<T: Inexact>(mut block: MatMut<'_, T>, swaps: &mut [usize]) {
    for (step, swap) in swaps.iter_mut().enumerate() {
        subtract_products(block.rb_mut(), step);
        let mut pivot = step;
        let mut size = abs1(&block[(step, step)]);
        for row in step + 1..block.nrows() {
            let other = abs1(&block[(row, step)]);
            if other > size {
                (pivot, size) = (row, other);
            }
        }
        *swap = pivot;
        if size == zero() {
            continue;
        }
        for column in 0..block.ncols() {
            let kept = block[(step, column)];
            block[(step, column)] = block[(pivot, column)];
            block[(pivot, column)] = kept;
        }
        let inverse = recip(&block[(step, step)]);
        for row in step + 1..block.nrows() {
            block[(row, step)] *= inverse;
        }
    }
}

/// Subtracts the products of the factors before a column from its elements: one sum of products from each.
fn subtract_products<T: Inexact>(block: MatMut<'_, T>, step: usize) {
    let (done, rest) = block.split_at_col_mut(step);
    let (done, mut column) = (done.into_const(), rest.col_mut(0));
    for row in 1..step {
        let sum = (0..row).fold(zero::<T>(), |sum, before| sum + done[(row, before)] * column[before]);
        column[row] -= sum;
    }
    let mut sums = [zero::<T>(); ROWS];
    for first in (step..column.nrows()).step_by(ROWS) {
        let sums = &mut sums[..ROWS.min(column.nrows() - first)];
        sums.fill(zero());
        for before in 0..step {
            let (factor, lower) = (column[before], done.col(before));
            sums.iter_mut().enumerate().for_each(|(row, sum)| *sum += lower[first + row] * factor);
        }
        sums.iter().enumerate().for_each(|(row, &sum)| column[first + row] -= sum);
    }
}

/// Turns right sides into solutions by the factors of [`lu`]; `false` if the matrix is singular.
pub(super) fn solve<T: Inexact>(
    factors: &Matrix<T>,
    order: &[i64],
    sides: &mut Matrix<T>,
    threads: &mut dyn Parallel,
) -> bool {
    let rows = factors.rows;
    if (0..rows).any(|number| factors.elements[number * rows + number] == zero()) {
        return false;
    }
    let factors = MatRef::from_column_major_slice(&factors.elements, rows, rows);
    let columns = sides.columns;
    let parts = Parts::of_columns(sides.view_mut(), SIDES);
    let each = |number: usize| {
        let Some(mut sides) = parts.take(number) else { return };
        for column in 0..sides.ncols() {
            permute(sides.rb_mut().col_mut(column), order);
        }
        solve_unit_lower_triangular_in_place(factors, sides.rb_mut(), Par::Seq);
        solve_upper_triangular_in_place(factors, sides, Par::Seq);
    };
    side_by_side(threads, 2 * rows * rows * columns, parts.len(), &each);
    true
}

/// Brings elements into an order: element `i` becomes what `order[i]` was.
fn permute<T: Inexact>(mut elements: ColMut<'_, T>, order: &[i64]) {
    // Each cycle is walked once, from its smallest place.
    for start in 0..elements.nrows() {
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

/// The Cholesky factor in place of the lower triangle, zeros above the diagonal; `false` if there is none.
pub(super) fn cholesky<T: Inexact>(matrix: &mut Matrix<T>, threads: &mut dyn Parallel) -> bool {
    let rows = matrix.rows;
    for first in (0..rows).step_by(BLOCK) {
        let width = BLOCK.min(rows - first);
        let rest = rows - first - width;
        let trailing = matrix.view_mut().submatrix_mut(first, first, rows - first, rows - first);
        let (mut block, right) = trailing.split_at_col_mut(width);
        let (mut factor, mut below) = block.rb_mut().split_at_row_mut(width);
        if !diagonal(factor.rb_mut()) {
            return false;
        }
        let factor = factor.as_ref();
        let strips = Parts::of_rows(below.rb_mut(), STRIP);
        let beside = |number: usize| {
            if let Some(strip) = strips.take(number) {
                solve_lower_triangular_in_place(factor.conjugate(), strip.transpose_mut(), Par::Seq);
            }
        };
        side_by_side(threads, rest * width * width, strips.len(), &beside);
        let below = below.as_ref();
        let strips = Parts::of_columns(right.subrows_mut(width, rest), STRIP);
        let update = |number: usize| {
            let Some(strip) = strips.take(number) else { return };
            let (above, columns) = (number * STRIP, strip.ncols());
            let (left, right) = (below.subrows(above, rest - above), below.subrows(above, columns).adjoint());
            matmul(strip.subrows_mut(above, rest - above), Accum::Add, left, right, -one::<T>(), Par::Seq);
        };
        side_by_side(threads, rest * rest * width, strips.len(), &update);
    }
    for column in 0..rows {
        matrix.elements[column * rows..][..column].fill(zero());
    }
    true
}

/// The factor of a small matrix; `false` if there is none.
fn diagonal<T: Inexact>(mut block: MatMut<'_, T>) -> bool {
    let size = block.nrows();
    for step in 0..size {
        // The imaginary part of the diagonal is not part of a Hermitian matrix.
        block[(step, step)] = from_real(&real(&block[(step, step)]));
    }
    let request = cholesky_in_place_scratch::<T>(size, Par::Seq, Spec::default());
    let mut memory = [MaybeUninit::<u8>::uninit(); (BLOCK + 8) * 2 * 16];
    debug_assert!(request.unaligned_bytes_required() <= memory.len());
    let stack = MemStack::new(&mut memory);
    let done = cholesky_in_place(block.rb_mut(), LltRegularization::default(), Par::Seq, stack, Spec::default());
    // NaN is not positive either.
    done.is_ok() && (0..size).all(|step| real(&block[(step, step)]) > zero())
}

/// Runs `body` for every task; `operations`: additions or multiplications in all.
fn side_by_side(threads: &mut dyn Parallel, operations: usize, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
    let participants = threads.participants(operations as u64).min(tasks.max(1));
    threads.run(participants, tasks, &|tasks| tasks.for_each(body));
}
