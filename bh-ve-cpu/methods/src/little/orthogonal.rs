//! QR factors of several matrices side by side, by Householder's reflections with LAPACK's signs.

use super::SIDE;
use super::pack::{Number, Real, Scalar};

/// A power of two for each system by which the largest of some numbers becomes one between 1 and 2, and its reciprocal.
#[inline(always)]
pub(super) fn unit<R: Real>(largest: R) -> [R; 2] {
    let power = largest.larger(R::splat(R::Element::SMALLEST)).power_below();
    [power.reciprocal(), power]
}

/// The largest size of some numbers.
#[inline(always)]
pub(super) fn largest<N: Number>(numbers: &[N]) -> N::Real {
    let mut most = N::Real::ZERO;
    for x in numbers {
        most = most.larger(x.size());
    }
    most
}

/// A reflection 1 - τ·v·vᴴ of the rows from `first` on.
struct Reflection<N> {
    first: usize,
    factor: N,
    vector: [N; SIDE],
}

impl<N: Number> Reflection<N> {
    /// That one whose adjoint makes a column a multiple of a unit vector, from row `first` on; and the multiple.
    #[inline(always)]
    fn of_column(column: &[N], first: usize) -> (Reflection<N>, N) {
        let mut vector = [N::ZERO; SIDE];
        let one = N::Real::ONE;
        let [scale, power] = unit(largest(&column[first..]));
        let alpha = column[first].scaled(scale);
        let mut below = N::Real::ZERO;
        for x in &column[first + 1..] {
            below = below.add(x.scaled(scale).square());
        }
        let is_there = below.add(alpha.imaginary().square()).above(N::Real::ZERO);
        let beta = N::Real::ZERO.sub(below.add(alpha.square()).root().signed(alpha.real()));
        let ratio = one.div(beta.or(is_there, one));
        let inverse = alpha.sub(N::of(beta)).or(is_there, N::ONE).reciprocal();
        vector[first] = N::ONE;
        for (v, x) in vector[first + 1..].iter_mut().zip(&column[first + 1..]) {
            *v = x.scaled(scale).mul(inverse).or(is_there, N::ZERO);
        }
        let factor = N::of(beta).sub(alpha).scaled(ratio).or(is_there, N::ZERO);
        // An infinite element or a NaN gives NaN when it is scaled and subtracted from itself, and NaN is not above zero.
        let kept = column[first].add(alpha.sub(alpha)).add(N::of(below));
        let multiple = N::of(beta.mul(power)).or(is_there, kept);
        (Reflection { first, factor, vector }, multiple)
    }

    /// Subtracts `factor`·v·(vᴴ·column) from a column.
    #[inline(always)]
    fn apply(&self, factor: N, column: &mut [N]) {
        let (column, vector) = (&mut column[self.first..], &self.vector[self.first..]);
        let mut product = N::ZERO;
        for (&x, v) in column.iter().zip(vector) {
            product = product.plus_product(v.conj(), x);
        }
        product = product.mul(factor);
        for (x, &v) in column.iter_mut().zip(vector) {
            *x = x.minus_product(v, product);
        }
    }
}

/// Factors of each matrix, which is given by `columns` columns of `rows` numbers: R takes its place, with zeros below the diagonal, and
/// the first `count` columns of Q are in `q`.
#[inline(always)]
pub(super) fn factor<N: Number>(a: &mut [N], q: &mut [N], [rows, columns, count]: [usize; 3]) {
    let mut reflections: [Option<Reflection<N>>; SIDE] = [const { None }; SIDE];
    for k in 0..rows.min(columns) {
        let (done, later) = a.split_at_mut((k + 1) * rows);
        let column = &mut done[k * rows..];
        let (reflection, multiple) = Reflection::of_column(column, k);
        column[k] = multiple;
        column[k + 1..].fill(N::ZERO);
        for column in later[..(columns - k - 1) * rows].chunks_exact_mut(rows) {
            reflection.apply(reflection.factor.conj(), column);
        }
        reflections[k] = Some(reflection);
    }
    q[..rows * count].fill(N::ZERO);
    for k in 0..count {
        q[k * rows + k] = N::ONE;
    }
    for reflection in reflections.iter().rev().flatten() {
        // Columns before this one are unit vectors still.
        for column in q[reflection.first.min(count) * rows..rows * count].chunks_exact_mut(rows) {
            reflection.apply(reflection.factor, column);
        }
    }
}
