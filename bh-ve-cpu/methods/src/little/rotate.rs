//! Eigenvalues of Hermitian matrices and singular values, several matrices side by side, by Jacobi's rotations.
//!
//! A rotation that is not needed in one system is the identity there, so that a system's bits do not depend on those beside it.
//! Singular values are those of one-sided rotations (Hestenes): columns become orthogonal. Left vectors are the reflections of a QR
//! factorisation of these columns, so that they are orthonormal also where singular values are zero.

use super::SIDE;
use super::orthogonal::{self, largest, unit};
use super::pack::{Number, Part, Real, Scalar};

/// Sweeps over all pairs, at most. Quadratic convergence needs about eight.
const SWEEPS: usize = 40;

/// A rotation of two columns: p becomes c·p - s·q, and q becomes s·p + c·q, each time with q·phase for q.
#[derive(Clone, Copy)]
struct Rotation<N: Number> {
    cos: N::Real,
    sin: N::Real,
    /// The sine and the cosine, times the phase.
    turned: [N; 2],
}

impl<N: Number> Rotation<N> {
    /// The one that makes the product of two columns zero, of which the squares differ by `apart`, the second less the first, and what it
    /// moves from the first square to the second. Where the product is at most `limit`, the identity; `None` if it is everywhere.
    #[inline(always)]
    fn new(product: N, apart: N::Real, limit: N::Real) -> Option<(Rotation<N>, N::Real)> {
        let (zero, one) = (N::Real::ZERO, N::Real::ONE);
        let size = product.magnitude();
        let is_needed = size.above(limit);
        if !N::Real::any(is_needed, N::LANES) {
            return None;
        }
        let twice = size.add(size);
        let steep = apart.size().add(apart.mul(apart).plus_product(twice, twice).root()).or(is_needed, one);
        let tangent = twice.div(steep).signed(apart).or(is_needed, zero);
        let cos = one.div(one.plus_product(tangent, tangent).root());
        let sin = tangent.mul(cos);
        let phase = product.conj().phase(size).or(is_needed, N::ONE);
        Some((Rotation { cos, sin, turned: [phase.scaled(sin), phase.scaled(cos)] }, tangent.mul(size)))
    }

    #[inline(always)]
    fn turn(&self, p: &mut N, q: &mut N) {
        let (one, other) = (*p, *q);
        *p = one.scaled(self.cos).minus_product(self.turned[0], other);
        *q = one.scaled(self.sin).plus_product(self.turned[1], other);
    }

    /// That of conjugated columns.
    #[inline(always)]
    fn conj(&self) -> Rotation<N> {
        let [sin, cos] = self.turned;
        Rotation { turned: [sin.conj(), cos.conj()], ..*self }
    }

    /// Turns two columns of a matrix.
    #[inline(always)]
    fn columns(&self, matrix: &mut [N], rows: usize, [p, q]: [usize; 2]) {
        let (before, after) = matrix.split_at_mut(q * rows);
        let (p, q) = (&mut before[p * rows..][..rows], &mut after[..rows]);
        for (p, q) in p.iter_mut().zip(q) {
            self.turn(p, q);
        }
    }
}

/// All pairs below `n`, the first one smaller, in rounds of pairs that have nothing in common: the round and place of a pair are those of
/// a tournament. The processor begins with one rotation of a round before another one ends.
#[inline(always)]
fn tournament(n: usize, round: usize) -> ([[usize; 2]; SIDE / 2], usize) {
    let others = n.next_multiple_of(2).max(2) - 1;
    let (mut pairs, mut count) = ([[0; 2]; SIDE / 2], 0);
    for place in 0..others.div_ceil(2) {
        let [p, q] =
            if place == 0 { [round, others] } else { [(round + place) % others, (round + others - place) % others] };
        if p.max(q) < n {
            pairs[count] = [p.min(q), p.max(q)];
            count += 1;
        }
    }
    (pairs, count)
}

/// Rounds of a tournament of `n`.
fn rounds(n: usize) -> usize {
    n.next_multiple_of(2).max(2) - 1
}

/// The unit matrix, by columns.
#[inline(always)]
fn identity<N: Number>(matrix: &mut [N], n: usize) {
    matrix[..n * n].fill(N::ZERO);
    for k in 0..n {
        matrix[k * n + k] = N::ONE;
    }
}

/// The sum of squares of all elements.
#[inline(always)]
fn square<N: Number>(elements: &[N]) -> N::Real {
    let mut sum = N::Real::ZERO;
    for x in elements {
        sum = sum.add(x.square());
    }
    sum
}

/// Scales numbers, the largest of which is between 1 and 2 then; what undoes it.
#[inline(always)]
fn normalise<N: Number>(elements: &mut [N]) -> N::Real {
    let [scale, power] = unit(largest(elements));
    for x in elements {
        *x = x.scaled(scale);
    }
    power
}

#[inline(always)]
fn splat<N: Number>(value: f64) -> N::Real {
    N::Real::splat(Part::<N>::of(value))
}

/// Makes eigenvalues of Hermitian matrices of their lower triangles, in `values`, and eigenvectors in the columns of `vectors`, if there
/// is room for these. False if rotations do not end.
#[inline(always)]
pub(super) fn eigen<N: Number>(a: &mut [N], values: &mut [N::Real; SIDE], vectors: Option<&mut [N]>, n: usize) -> bool {
    // By rows, so that a[i * n + j] with j ≤ i is the lower triangle; what is above is not read.
    for i in 0..n {
        a[i * n + i] = N::of(a[i * n + i].real());
        a[i * n + i + 1..(i + 1) * n].fill(N::ZERO);
    }
    let power = normalise(&mut a[..n * n]);
    let epsilon: f64 = Part::<N>::EPSILON.into();
    let limit = square(&a[..n * n]).root().mul(splat::<N>(epsilon / (4 * n.max(1)) as f64));
    let mut vectors = vectors;
    if let Some(vectors) = vectors.as_deref_mut() {
        identity(vectors, n);
    }
    let mut sweeps = 0;
    loop {
        let mut is_done = true;
        for round in 0..rounds(n) {
            let (pairs, count) = tournament(n, round);
            let mut rotations = [None; SIDE / 2];
            for (rotation, &[p, q]) in rotations.iter_mut().zip(&pairs[..count]) {
                let apart = a[q * n + q].real().sub(a[p * n + p].real());
                *rotation = Rotation::new(a[q * n + p].conj(), apart, limit);
            }
            for (rotation, &[p, q]) in rotations.iter().zip(&pairs[..count]) {
                let Some((rotation, by)) = rotation else { continue };
                is_done = false;
                a[p * n + p] = N::of(a[p * n + p].real().sub(*by));
                a[q * n + q] = N::of(a[q * n + q].real().add(*by));
                rotate_triangle(a, n, [p, q], rotation);
                if let Some(vectors) = vectors.as_deref_mut() {
                    rotation.columns(vectors, n, [p, q]);
                }
            }
        }
        sweeps += 1;
        if is_done || sweeps == SWEEPS {
            for k in 0..n {
                values[k] = a[k * n + k].real().mul(power);
            }
            return is_done;
        }
    }
}

/// Turns rows and columns of Hermitian matrices, of which the lower triangle is there, but for their diagonals.
#[inline(always)]
fn rotate_triangle<N: Number>(a: &mut [N], n: usize, [p, q]: [usize; 2], rotation: &Rotation<N>) {
    let conjugated = rotation.conj();
    for k in 0..p {
        let [mut x, mut y] = [a[p * n + k], a[q * n + k]];
        conjugated.turn(&mut x, &mut y);
        [a[p * n + k], a[q * n + k]] = [x, y];
    }
    for k in p + 1..q {
        let [mut x, mut y] = [a[k * n + p], a[q * n + k].conj()];
        rotation.turn(&mut x, &mut y);
        [a[k * n + p], a[q * n + k]] = [x, y.conj()];
    }
    for k in q + 1..n {
        let [mut x, mut y] = [a[k * n + p], a[k * n + q]];
        rotation.turn(&mut x, &mut y);
        [a[k * n + p], a[k * n + q]] = [x, y];
    }
    // The element left where the rotation is the identity is below the limit.
    let kept = a[q * n + p];
    let is_turned = rotation.sin.size().above(N::Real::ZERO);
    a[q * n + p] = N::ZERO.or(is_turned, kept);
}

/// Makes columns of each matrix orthogonal: `a` has `columns` columns of `rows` numbers, no fewer than columns. `v`, if there is room, is
/// what it is multiplied with for that, and `values` the lengths of its columns. False if rotations do not end.
#[inline(always)]
pub(super) fn singular<N: Number>(
    a: &mut [N],
    values: &mut [N::Real; SIDE],
    v: Option<&mut [N]>,
    [rows, columns]: [usize; 2],
) -> bool {
    let power = normalise(&mut a[..rows * columns]);
    let epsilon: f64 = Part::<N>::EPSILON.into();
    // Sums of products have about this many rounding errors.
    let share = square(&a[..rows * columns]).root().mul(splat::<N>(epsilon * (rows + 2) as f64));
    let mut v = v;
    if let Some(v) = v.as_deref_mut() {
        identity(v, columns);
    }
    let mut sweeps = 0;
    loop {
        let mut is_done = true;
        for round in 0..rounds(columns) {
            let (pairs, count) = tournament(columns, round);
            let mut rotations = [None; SIDE / 2];
            for (rotation, &[p, q]) in rotations.iter_mut().zip(&pairs[..count]) {
                let (x, y) = (&a[p * rows..][..rows], &a[q * rows..][..rows]);
                let [mut product, mut one, mut other] = [N::ZERO, N::ZERO, N::ZERO];
                for (&x, &y) in x.iter().zip(y) {
                    product = product.plus_product(x.conj(), y);
                    one = one.plus_product(x.conj(), x);
                    other = other.plus_product(y.conj(), y);
                }
                let [one, other] = [one.real(), other.real()];
                *rotation = Rotation::new(product, other.sub(one), one.larger(other).root().mul(share));
            }
            for (rotation, &[p, q]) in rotations.iter().zip(&pairs[..count]) {
                let Some((rotation, _)) = rotation else { continue };
                is_done = false;
                rotation.columns(a, rows, [p, q]);
                if let Some(v) = v.as_deref_mut() {
                    rotation.columns(v, columns, [p, q]);
                }
            }
        }
        sweeps += 1;
        if is_done || sweeps == SWEEPS {
            for (value, column) in values.iter_mut().zip(a[..rows * columns].chunks_exact(rows.max(1))) {
                *value = square(column).root().mul(power);
            }
            return is_done;
        }
    }
}

/// Brings values into rising or falling order, and columns of matrices with them.
#[inline(always)]
pub(super) fn sort<N: Number, const M: usize>(
    values: &mut [N::Real],
    mut matrices: [(&mut [N], usize); M],
    is_rising: bool,
) {
    let count = values.len();
    for [p, q] in (0..count).flat_map(|p| (p + 1..count).map(move |q| [p, q])) {
        let (first, second) = if is_rising { (values[p], values[q]) } else { (values[q], values[p]) };
        let swaps = first.above(second);
        if !N::Real::any(swaps, N::LANES) {
            continue;
        }
        let [one, other] = [values[p], values[q]];
        [values[p], values[q]] = [other.or(swaps, one), one.or(swaps, other)];
        for (matrix, rows) in &mut matrices {
            let (before, after) = matrix.split_at_mut(q * *rows);
            for (x, y) in before[p * *rows..][..*rows].iter_mut().zip(&mut after[..*rows]) {
                [*x, *y] = [y.or(swaps, *x), x.or(swaps, *y)];
            }
        }
    }
}

/// Left singular vectors, `count` columns in `u`, of orthogonal columns that are in falling order.
#[inline(always)]
pub(super) fn left<N: Number>(a: &mut [N], u: &mut [N], [rows, columns, count]: [usize; 3]) {
    orthogonal::factor(a, u, [rows, columns, count]);
    for k in 0..columns.min(count) {
        let sign = N::Real::ONE.signed(a[k * rows + k].real());
        for x in &mut u[k * rows..][..rows] {
            *x = x.scaled(sign);
        }
    }
}
