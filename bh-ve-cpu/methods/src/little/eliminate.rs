//! Gauss's elimination of several systems side by side, each with pivots of its own, and Cholesky factors.
//!
//! Exact zeros among pivots make a matrix singular for LAPACK, and rounding decides whether there are any. Matrices whose pivots are
//! as small as rounding makes them are *doubtful*: [`is_doubtful`] compares each pivot with the terms that it is the sum of, so that
//! neither scaled rows nor scaled columns count.

use super::pack::{Mask, Number, Part, Real, Scalar};

/// Rounding errors of a pivot for each row of a matrix, as a share of the terms that it is the sum of.
const ERRORS: f64 = 8.0;

/// Facts about each system that the pivots of its elimination show.
pub(super) struct Pivots<N: Number> {
    /// The product of the pivots, and of the signs of exchanges of rows.
    pub(super) determinant: N,
    /// Is a pivot zero?
    pub(super) has_zero: Mask<N>,
    /// Are all pivots beyond doubt, by the largest terms in their columns? Others may be, too.
    pub(super) is_sound: Mask<N>,
    /// Are all leading products of pivots far from overflow and underflow?
    pub(super) is_in_range: Mask<N>,
}

/// Makes an upper triangle of each `n` × `n` matrix, with the reciprocals of the pivots on its diagonal; `sides`, whose rows have
/// `columns` numbers, follow.
#[inline(always)]
pub(super) fn eliminate<N: Number>(a: &mut [N], sides: &mut [N], [n, columns]: [usize; 2]) -> Pivots<N> {
    let splat = N::Real::splat;
    let never = splat(Part::<N>::ZERO).above(splat(Part::<N>::ZERO));
    let always = N::Real::not(never);
    let mut pivots = Pivots { determinant: N::ONE, has_zero: never, is_sound: always, is_in_range: always };
    let mut terms = [N::Real::ZERO; super::SIDE];
    for row in a[..n * n].chunks_exact(n) {
        for (term, x) in terms.iter_mut().zip(row) {
            *term = term.larger(x.size());
        }
    }
    let errors = splat(Part::<N>::EPSILON.times(Part::<N>::of(ERRORS * n as f64)));
    for k in 0..n {
        let [mut best, mut place] = [a[k * n + k].size(), splat(Part::<N>::of(k as f64))];
        for i in k + 1..n {
            let size = a[i * n + k].size();
            let is_larger = size.above(best);
            [best, place] = [size.or(is_larger, best), splat(Part::<N>::of(i as f64)).or(is_larger, place)];
        }
        let mut sign = N::Real::ONE;
        for i in k + 1..n {
            let is_here = place.equals(splat(Part::<N>::of(i as f64)));
            if !N::Real::any(is_here, N::LANES) {
                continue;
            }
            sign = N::Real::ZERO.sub(N::Real::ONE).or(is_here, sign);
            exchange(a, [k * n + k, i * n + k], n - k, is_here);
            exchange(sides, [k * columns, i * columns], columns, is_here);
        }
        let is_regular = N::Real::and(
            best.above(errors.mul(terms[k]).larger(splat(Part::<N>::SMALLEST))),
            splat(Part::<N>::LARGEST).above(best),
        );
        pivots.is_sound = N::Real::and(pivots.is_sound, is_regular);
        let is_zero = best.equals(N::Real::ZERO);
        pivots.has_zero = N::Real::not(N::Real::and(N::Real::not(pivots.has_zero), N::Real::not(is_zero)));
        let pivot = a[k * n + k];
        pivots.determinant = pivots.determinant.mul(pivot).scaled(sign);
        let size = pivots.determinant.size();
        let is_in_range = N::Real::and(size.above(splat(Part::<N>::SMALLEST)), splat(Part::<N>::LARGEST).above(size));
        pivots.is_in_range = N::Real::and(pivots.is_in_range, is_in_range);
        // Below a pivot of zero there are zeros.
        let inverse = N::ZERO.or(is_zero, pivot.reciprocal());
        a[k * n + k] = inverse;
        let (done, rest) = a.split_at_mut((k + 1) * n);
        let upper = &done[k * n + k + 1..];
        for (term, x) in terms[k + 1..].iter_mut().zip(upper) {
            *term = term.add(x.size());
        }
        let (side, later) = sides.split_at_mut((k + 1) * columns);
        let side = &side[k * columns..];
        for (i, row) in rest[..(n - k - 1) * n].chunks_exact_mut(n).enumerate() {
            let factor = row[k].mul(inverse);
            subtract(&mut row[k + 1..], factor, upper);
            subtract(&mut later[i * columns..][..columns], factor, side);
        }
    }
    pivots
}

/// Subtracts multiples of some numbers from others.
#[inline(always)]
fn subtract<N: Number>(from: &mut [N], factor: N, numbers: &[N]) {
    for (x, &number) in from.iter_mut().zip(numbers) {
        *x = x.minus_product(factor, number);
    }
}

/// Exchanges numbers that begin at two places where the mask is true.
#[inline(always)]
fn exchange<N: Number>(numbers: &mut [N], [first, second]: [usize; 2], count: usize, mask: Mask<N>) {
    let (above, below) = numbers.split_at_mut(second);
    for (x, y) in above[first..][..count].iter_mut().zip(&mut below[..count]) {
        (*x, *y) = (y.or(mask, *x), x.or(mask, *y));
    }
}

/// Makes solutions of right sides, by what [`eliminate`] made of both.
#[inline(always)]
pub(super) fn substitute<N: Number>(a: &[N], sides: &mut [N], [n, columns]: [usize; 2]) {
    for k in (0..n).rev() {
        let (above, below) = sides.split_at_mut(k * columns);
        let solved = &mut below[..columns];
        for x in solved.iter_mut() {
            *x = x.mul(a[k * n + k]);
        }
        for (i, row) in above.chunks_exact_mut(columns).enumerate() {
            subtract(row, a[i * n + k], solved);
        }
    }
}

/// Could LAPACK find a pivot of zero in a matrix, or one that is infinite or not a number? Elements in parts, by rows; `epsilon`: that
/// of their type.
pub(super) fn is_doubtful(elements: &mut [(f64, f64)], n: usize, epsilon: f64) -> bool {
    let size = |(re, im): (f64, f64)| re.abs() + im.abs();
    let mut terms: Vec<f64> = elements.iter().map(|&element| size(element)).collect();
    let tiny = |value: f64, terms: f64| !value.is_finite() || value <= epsilon * ERRORS * n as f64 * terms;
    for k in 0..n {
        let rows = || k..n;
        if rows().all(|i| tiny(size(elements[i * n + k]), terms[i * n + k])) {
            return true;
        }
        let pivot =
            rows().fold(k, |best, i| if size(elements[i * n + k]) > size(elements[best * n + k]) { i } else { best });
        for j in 0..n {
            elements.swap(k * n + j, pivot * n + j);
            terms.swap(k * n + j, pivot * n + j);
        }
        let (re, im) = elements[k * n + k];
        // Scaled, so that squares do not overflow.
        let scale = 1.0 / re.abs().max(im.abs());
        let (re, im) = (re * scale, im * scale);
        let inverse = (re / (re * re + im * im) * scale, -im / (re * re + im * im) * scale);
        let times = |(a, b): (f64, f64), (c, d): (f64, f64)| (a * c - b * d, a * d + b * c);
        for i in k + 1..n {
            let factor = times(elements[i * n + k], inverse);
            for j in k + 1..n {
                let product = times(factor, elements[k * n + j]);
                elements[i * n + j].0 -= product.0;
                elements[i * n + j].1 -= product.1;
                terms[i * n + j] += size(product);
            }
        }
    }
    false
}

/// The Cholesky factor of each matrix, of which the lower triangle is read, with zeros above; says which ones have one.
#[inline(always)]
pub(super) fn cholesky<N: Number>(a: &mut [N], n: usize) -> Mask<N> {
    let zero = N::Real::ZERO;
    let mut is_definite = N::Real::not(zero.above(zero));
    for j in 0..n {
        let (done, rest) = a.split_at_mut((j + 1) * n);
        let row = &mut done[j * n..];
        let mut left = row[j].real();
        for x in &row[..j] {
            left = left.sub(x.square());
        }
        is_definite = N::Real::and(is_definite, left.above(zero));
        let root = left.root();
        let inverse = root.reciprocal();
        row[j] = N::of(root);
        row[j + 1..].fill(N::ZERO);
        for below in rest[..(n - j - 1) * n].chunks_exact_mut(n) {
            let mut left = below[j];
            for (&x, y) in below[..j].iter().zip(&row[..j]) {
                left = left.minus_product(x, y.conj());
            }
            below[j] = left.scaled(inverse);
        }
    }
    is_definite
}
