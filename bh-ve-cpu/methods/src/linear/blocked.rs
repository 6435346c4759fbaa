//! LU and Cholesky factors in blocks of columns. What is outside a block follows in strips of fixed sizes, side by side, so
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
use std::ops::Range;

/// Columns of a block.
const BLOCK: usize = 64;
/// Columns that are factored one by one.
const NARROW: usize = 8;
/// Columns, or rows, of a strip beside a block.
const STRIP: usize = 128;
/// Right sides that are solved for together.
const SIDES: usize = 32;

/// The elements of a matrix in columns, for participants that use disjoint parts of it.
struct Shared<T> {
    data: *mut T,
    rows: usize,
}

// SAFETY: whoever takes parts promises that they are disjoint from those of others.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T: Inexact> Shared<T> {
    fn new(matrix: &mut Matrix<T>) -> Shared<T> {
        Shared { data: matrix.elements.as_mut_ptr(), rows: matrix.rows }
    }

    /// A part of the matrix.
    ///
    /// # Safety
    /// It lies inside of the matrix, which outlives it, and nobody else uses it.
    unsafe fn part<'a>(&self, rows: Range<usize>, columns: Range<usize>) -> MatMut<'a, T> {
        let first = self.data.wrapping_add(columns.start * self.rows + rows.start);
        // SAFETY: the caller's promise.
        unsafe { MatMut::from_raw_parts_mut(first, rows.len(), columns.len(), 1, self.rows as isize) }
    }
}

/// A range in strips: strip `number`, and how many there are.
fn strip(range: &Range<usize>, size: usize, number: usize) -> Range<usize> {
    let first = range.start + number * size;
    first..range.end.min(first + size)
}

/// L (its diagonal of ones left out) and U in place of a matrix, the largest element of a column its pivot. `order`, the
/// numbers of the rows, follows their exchanges. A column of zeros has no pivot and is passed over.
pub(super) fn lu<T: Inexact>(matrix: &mut Matrix<T>, order: &mut [i64], threads: &mut dyn Parallel) {
    let (rows, columns) = (matrix.rows, matrix.columns);
    let shared = &Shared::new(matrix);
    for first in (0..rows.min(columns)).step_by(BLOCK) {
        let block = first..(first + BLOCK).min(rows.min(columns));
        let mut swaps = [0; BLOCK];
        let swaps = &mut swaps[..block.len()];
        // SAFETY: nobody else is at work.
        panel(unsafe { shared.part(first..rows, block.clone()) }, swaps);
        let swaps = &*swaps;
        swaps.iter().enumerate().for_each(|(step, &other)| order.swap(first + step, first + other));
        let (left, right) = (0..first, block.end..columns);
        let lefts = left.len().div_ceil(STRIP);
        let follow = |number: usize| {
            let of_left = number < lefts;
            let columns = if of_left { strip(&left, STRIP, number) } else { strip(&right, STRIP, number - lefts) };
            // SAFETY: strips are disjoint, and none is of the block.
            let mut all = unsafe { shared.part(first..rows, columns) };
            exchange(all.rb_mut(), swaps);
            if !of_left {
                // SAFETY: the block is only read now.
                let factors = unsafe { shared.part(first..rows, block.clone()) }.into_const();
                let (upper, lower) = factors.split_at_row(block.len());
                eliminate(upper, lower, all);
            }
        };
        let units = 2 * (rows - first) * block.len() * right.len() + swaps.len() * first;
        side_by_side(threads, units, lefts + right.len().div_ceil(STRIP), &follow);
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

/// The factors of a few columns, one after the other.
fn narrow<T: Inexact>(mut block: MatMut<'_, T>, swaps: &mut [usize]) {
    for (step, swap) in swaps.iter_mut().enumerate() {
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
        let (done, mut rest) = block.rb_mut().split_at_col_mut(step + 1);
        let mut column = done.col_mut(step);
        for row in step + 1..column.nrows() {
            column[row] *= inverse;
        }
        for other in 0..rest.ncols() {
            let factor = rest[(step, other)];
            for row in step + 1..column.nrows() {
                rest[(row, other)] -= factor * column[row];
            }
        }
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
    let all = 0..sides.columns;
    let shared = &Shared::new(sides);
    let each = |number: usize| {
        // SAFETY: strips are disjoint.
        let mut sides = unsafe { shared.part(0..rows, strip(&all, SIDES, number)) };
        for column in 0..sides.ncols() {
            permute(sides.rb_mut().col_mut(column), order);
        }
        solve_unit_lower_triangular_in_place(factors, sides.rb_mut(), Par::Seq);
        solve_upper_triangular_in_place(factors, sides, Par::Seq);
    };
    side_by_side(threads, 2 * rows * rows * all.len(), all.len().div_ceil(SIDES), &each);
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
    let shared = &Shared::new(matrix);
    for first in (0..rows).step_by(BLOCK) {
        let block = first..(first + BLOCK).min(rows);
        // SAFETY: nobody else is at work.
        if !diagonal(unsafe { shared.part(block.clone(), block.clone()) }) {
            return false;
        }
        let below = block.end..rows;
        let strips = below.len().div_ceil(STRIP);
        let beside = |number: usize| {
            // SAFETY: strips are disjoint, and the block on the diagonal is only read.
            let (factor, below) = unsafe {
                let factor = shared.part(block.clone(), block.clone()).into_const();
                (factor, shared.part(strip(&below, STRIP, number), block.clone()))
            };
            solve_lower_triangular_in_place(factor.conjugate(), below.transpose_mut(), Par::Seq);
        };
        side_by_side(threads, below.len() * block.len() * block.len(), strips, &beside);
        let update = |number: usize| {
            let columns = strip(&below, STRIP, number);
            let rows = columns.start..rows;
            // SAFETY: strips are disjoint, and the columns of the block are only read.
            let (to, left, right) = unsafe {
                let left = shared.part(rows.clone(), block.clone()).into_const();
                let right = shared.part(columns.clone(), block.clone()).into_const();
                (shared.part(rows, columns), left, right.adjoint())
            };
            matmul(to, Accum::Add, left, right, -one::<T>(), Par::Seq);
        };
        side_by_side(threads, below.len() * below.len() * block.len(), strips, &update);
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
        // What is not real on the diagonal is no part of a Hermitian matrix.
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

/// Runs `body` for every task; the work is of so many additions or multiplications in all.
fn side_by_side(threads: &mut dyn Parallel, operations: usize, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
    let participants = threads.participants(operations as u64).min(tasks.max(1));
    threads.run(participants, tasks, &|tasks| tasks.for_each(body));
}
