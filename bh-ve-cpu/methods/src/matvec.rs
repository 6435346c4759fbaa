//! Products of a matrix and a vector, whose time is that of reading the matrix. Each element of the result is a sum of its own,
//! in an order that depends on the number of terms alone, so that it does not matter which part of the matrix a call gets.

use std::borrow::Cow;
use std::marker::PhantomData;

/// An element in memory that may begin at any byte.
#[derive(Clone, Copy)]
#[repr(C, packed)]
pub(crate) struct Unaligned<T>(pub(crate) T);

/// The rows of a matrix, or its columns, if the elements of each follow each other.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'a, T> {
    data: *const Unaligned<T>,
    count: usize,
    length: usize,
    stride: isize,
    of: PhantomData<&'a T>,
}

impl<'a, T> Lines<'a, T> {
    /// `count` lines of `length` elements that begin `stride` elements apart.
    ///
    /// # Safety
    /// The `length` elements of each of the `count` lines must be readable, aligned or not, and stay as they are as
    /// long as this lives.
    pub(crate) unsafe fn new(data: *const T, count: usize, length: usize, stride: isize) -> Lines<'a, T> {
        Lines { data: data.cast(), count, length, stride, of: PhantomData }
    }

    #[inline(always)]
    fn line(&self, number: usize) -> &'a [Unaligned<T>] {
        assert!(number < self.count);
        if self.length == 0 {
            return &[];
        }
        let first = self.data.wrapping_offset(number as isize * self.stride);
        // SAFETY: the line is one of the `count`, with `length` elements, which are readable, as [`Lines::new`] asks.
        unsafe { std::slice::from_raw_parts(first, self.length) }
    }
}

impl<'a, T: Copy> Lines<'a, T> {
    /// All elements as one line.
    pub(crate) fn joined(&self) -> Cow<'a, [Unaligned<T>]> {
        if self.count * self.length > 0 && (self.stride == self.length as isize || self.count == 1) {
            // The lines follow each other, so that their elements are one.
            return Cow::Borrowed(Lines { count: 1, length: self.count * self.length, ..*self }.line(0));
        }
        Cow::Owned((0..self.count).flat_map(|number| self.line(number)).copied().collect())
    }
}

/// A vector to be written.
pub(crate) struct Output<T> {
    data: *mut Unaligned<T>,
    count: usize,
    stride: isize,
}

impl<T> Output<T> {
    /// `count` elements, `stride` elements apart.
    ///
    /// # Safety
    /// The `count` elements must be writable, aligned or not, and nobody else use them as long as this lives.
    pub(crate) unsafe fn new(data: *mut T, count: usize, stride: isize) -> Output<T> {
        Output { data: data.cast(), count, stride }
    }

    #[inline(always)]
    fn put(&mut self, number: usize, value: T) {
        assert!(number < self.count);
        // SAFETY: the element is one of the `count`, which nobody else uses, as [`Output::new`] asks.
        unsafe { self.data.wrapping_offset(number as isize * self.stride).write(Unaligned(value)) };
    }
}

/// Terms of a row that are added side by side.
const LANES: usize = 16;
/// Rows whose sums are made side by side: more would not fit in the registers of AVX2.
const BESIDE: usize = 2;
/// Columns that are added at once.
const AT_ONCE: usize = 4;
/// Elements of the result that stay in the nearest cache while columns are added to them.
const BLOCK: usize = 512;

/// A floating-point number.
pub(crate) trait Float: Copy + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self> {
    const ZERO: Self;
    fn fused(self, factor: Self, sum: Self) -> Self;
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Float for $type {
            const ZERO: Self = 0.0;

            #[inline(always)]
            fn fused(self, factor: Self, sum: Self) -> Self {
                self.mul_add(factor, sum)
            }
        }
    )*};
}
floats!(f32, f64);

/// The product of a matrix, given by its rows or its columns, and a vector of as many elements as it has columns.
pub(crate) fn multiply<T: Float>(lines: Lines<'_, T>, are_rows: bool, vector: &[Unaligned<T>], out: Output<T>) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
        // SAFETY: the processor has what this version needs.
        return unsafe { in_avx512(lines, are_rows, vector, out) };
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: as above.
        return unsafe { in_fma(lines, are_rows, vector, out) };
    }
    // Every AArch64 processor has fused multiply-add.
    product::<T, { cfg!(target_arch = "aarch64") }>(lines, are_rows, vector, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
fn in_avx512<T: Float>(lines: Lines<'_, T>, are_rows: bool, vector: &[Unaligned<T>], out: Output<T>) {
    product::<T, true>(lines, are_rows, vector, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn in_fma<T: Float>(lines: Lines<'_, T>, are_rows: bool, vector: &[Unaligned<T>], out: Output<T>) {
    product::<T, true>(lines, are_rows, vector, out);
}

#[inline(always)]
fn product<T: Float, const FUSED: bool>(lines: Lines<'_, T>, are_rows: bool, vector: &[Unaligned<T>], out: Output<T>) {
    if are_rows {
        by_rows::<T, FUSED>(lines, vector, out);
    } else {
        by_columns::<T, FUSED>(lines, vector, out);
    }
}

/// The sum and a product, rounded once if the processor does so.
#[inline(always)]
fn add<T: Float, const FUSED: bool>(a: T, b: T, sum: T) -> T {
    if FUSED { a.fused(b, sum) } else { a * b + sum }
}

/// Sums of rows.
#[inline(always)]
fn by_rows<T: Float, const FUSED: bool>(rows: Lines<'_, T>, vector: &[Unaligned<T>], mut out: Output<T>) {
    let mut next = 0;
    while next + BESIDE <= rows.count {
        let sums = sums::<T, FUSED, BESIDE>(std::array::from_fn(|beside| rows.line(next + beside)), vector);
        sums.into_iter().enumerate().for_each(|(beside, sum)| out.put(next + beside, sum));
        next += BESIDE;
    }
    for number in next..rows.count {
        let [sum] = sums::<T, FUSED, 1>([rows.line(number)], vector);
        out.put(number, sum);
    }
}

/// The sums of products of some rows with a vector, all of one length. Lanes are passed by value and loops go by number, so that the
/// compiler keeps the lanes in registers.
#[inline(always)]
fn sums<T: Float, const FUSED: bool, const N: usize>(rows: [&[Unaligned<T>]; N], vector: &[Unaligned<T>]) -> [T; N] {
    let mut lanes = [[T::ZERO; LANES]; N];
    let (factors, last_factors) = vector.as_chunks::<LANES>();
    for (number, factors) in factors.iter().enumerate() {
        let (first, factors) = (number * LANES, factors.map(|factor| factor.0));
        for row in 0..N {
            let terms = rows[row][first..].first_chunk::<LANES>();
            lanes[row] = terms.map_or(lanes[row], |terms| added::<T, FUSED>(lanes[row], terms, &factors));
        }
    }
    let first = factors.len() * LANES;
    for (lanes, row) in lanes.iter_mut().zip(rows) {
        for ((lane, term), factor) in lanes.iter_mut().zip(&row[first..]).zip(last_factors) {
            *lane = add::<T, FUSED>(term.0, factor.0, *lane);
        }
    }
    lanes.map(|mut lanes| {
        let mut half = LANES / 2;
        while half > 0 {
            for lane in 0..half {
                lanes[lane] = lanes[lane] + lanes[lane + half];
            }
            half /= 2;
        }
        lanes[0]
    })
}

/// Lanes with a product of their own added to each.
#[inline(always)]
fn added<T: Float, const FUSED: bool>(
    lanes: [T; LANES],
    terms: &[Unaligned<T>; LANES],
    factors: &[T; LANES],
) -> [T; LANES] {
    std::array::from_fn(|lane| add::<T, FUSED>(terms[lane].0, factors[lane], lanes[lane]))
}

/// Adds columns, one after the other.
#[inline(always)]
fn by_columns<T: Float, const FUSED: bool>(columns: Lines<'_, T>, vector: &[Unaligned<T>], mut out: Output<T>) {
    let mut block = [T::ZERO; BLOCK];
    let vector = &vector[..columns.count];
    for first in (0..columns.length).step_by(BLOCK) {
        let sums = &mut block[..BLOCK.min(columns.length - first)];
        sums.fill(T::ZERO);
        let rows = first..first + sums.len();
        let part = |number: usize| &columns.line(number)[rows.clone()];
        let (groups, rest) = vector.as_chunks::<AT_ONCE>();
        let mut next = 0;
        for factors in groups {
            let [a, b, c, d] = [0, 1, 2, 3].map(|beside| part(next + beside));
            let factors = factors.map(|factor| factor.0);
            for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                for (term, factor) in [a.0, b.0, c.0, d.0].into_iter().zip(factors) {
                    *sum = add::<T, FUSED>(term, factor, *sum);
                }
            }
            next += AT_ONCE;
        }
        for (number, factor) in (next..).zip(rest) {
            for (sum, term) in sums.iter_mut().zip(part(number)) {
                *sum = add::<T, FUSED>(term.0, factor.0, *sum);
            }
        }
        sums.iter().enumerate().for_each(|(place, &sum)| out.put(first + place, sum));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements that begin at an odd byte.
    fn odd(elements: &[f64]) -> Vec<u8> {
        std::iter::once(0).chain(elements.iter().flat_map(|element| element.to_ne_bytes())).collect()
    }

    #[test]
    fn products_by_rows_and_by_columns_are_those_of_loops() {
        for (rows, columns) in [(1, 1), (3, 40), (9, 16), (5, 0), (530, 3)] {
            let matrix: Vec<f64> = (0..rows * columns).map(|at| (at * 7 % 13) as f64).collect();
            let vector: Vec<f64> = (0..columns).map(|at| (at % 5) as f64 - 1.0).collect();
            let row = |row: usize| (0..columns).map(|at| matrix[row * columns + at] * vector[at]).sum::<f64>();
            let wanted: Vec<f64> = (0..rows).map(row).collect();
            let turned: Vec<f64> =
                (0..columns).flat_map(|at| (0..rows).map(move |row| row * columns + at)).map(|at| matrix[at]).collect();
            for (elements, are_rows) in [(odd(&matrix), true), (odd(&turned), false)] {
                let (count, length) = if are_rows { (rows, columns) } else { (columns, rows) };
                let (vector, mut out) = (odd(&vector), vec![-1.0; 2 * rows]);
                // SAFETY: all three have these elements.
                let (lines, vector, result) = unsafe {
                    (
                        Lines::<f64>::new(elements[1..].as_ptr().cast(), count, length, length as isize),
                        Lines::<f64>::new(vector[1..].as_ptr().cast(), columns, 1, 1),
                        Output::new(out.as_mut_ptr(), rows, 2),
                    )
                };
                multiply(lines, are_rows, &vector.joined(), result);
                assert_eq!(out.iter().copied().step_by(2).collect::<Vec<f64>>(), wanted, "{rows}x{columns} {are_rows}");
            }
        }
    }
}
