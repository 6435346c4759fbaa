//! The question whether all elements of a view are at different offsets.

use crate::view::MAX_RANK;

/// Steps of the exact search. Views that need more are so tangled that they are reported as not injective.
const BUDGET: u32 = 20_000;

/// Are all elements of a view of this shape and these strides at different offsets? Exact for all but views of several
/// dimensions that are tangled beyond search, of which it says no.
pub fn is_injective(shape: &[i64], stride: &[i64]) -> bool {
    let mut dims = [(0i64, 0i64); MAX_RANK];
    let mut count = 0;
    for (&extent, &stride) in shape.iter().zip(stride) {
        if extent == 0 {
            return true;
        }
        if extent > 1 {
            dims[count] = (extent, stride.saturating_abs());
            count += 1;
        }
    }
    dims[..count].sort_unstable_by_key(|&(_, stride)| stride);
    are_apart(&dims[..count])
}

/// Are the elements at different offsets, for dimensions as (extent, |stride|), all of extent 2 and more, ascending by
/// stride?
///
/// Nested strides, where each exceeds the reach of all smaller ones together, decide at once (the corrected form of the rule
/// of Li, 2010, §4.3.1). Others are searched for two elements at one offset.
fn are_apart(dims: &[(i64, i64)]) -> bool {
    let (mut reach, mut count, mut nested) = (0i128, 1i128, true);
    for &(extent, stride) in dims {
        if stride == 0 {
            return false;
        }
        nested &= i128::from(stride) > reach;
        reach += i128::from(extent - 1) * i128::from(stride);
        count = count.saturating_mul(extent.into());
    }
    // More elements than places cannot be apart.
    nested || (count <= reach + 1 && Search::new(dims).collides(dims.len(), 0, false) == Some(false))
}

/// Looks for differences of indices, not all 0, whose offsets cancel: Σ dₖ·strideₖ = 0 with |dₖ| < extentₖ.
struct Search<'a> {
    dims: &'a [(i64, i64)],
    /// Of the first k dimensions: how far they reach together, and what divides all their strides.
    reach: Vec<i128>,
    divisor: Vec<i128>,
    budget: u32,
}

impl Search<'_> {
    fn new(dims: &[(i64, i64)]) -> Search<'_> {
        let (mut reach, mut divisor) = (vec![0], vec![0]);
        for (k, &(extent, stride)) in dims.iter().enumerate() {
            reach.push(reach[k] + i128::from(extent - 1) * i128::from(stride));
            divisor.push(gcd(divisor[k], stride.into()));
        }
        Search { dims, reach, divisor, budget: BUDGET }
    }

    /// Can differences in the first `k` dimensions bring `offset` to 0? `started`: is a difference not 0 already? `None` if
    /// the search takes too long.
    fn collides(&mut self, k: usize, offset: i128, started: bool) -> Option<bool> {
        if offset.abs() > self.reach[k] || (offset != 0 && offset % self.divisor[k] != 0) {
            return Some(false);
        }
        // One dimension can cancel the offset, as its reach and its stride allow it.
        if k <= 1 {
            return Some(started);
        }
        self.budget = self.budget.checked_sub(1)?;
        let (extent, stride) = (i128::from(self.dims[k - 1].0), i128::from(self.dims[k - 1].1));
        let (reach, divisor) = (self.reach[k - 1], self.divisor[k - 1]);
        // The smaller dimensions must be able to do the rest.
        let low = if started { (-reach - offset).div_euclid(stride).max(-(extent - 1)) } else { 0 };
        let high = (reach - offset).div_euclid(stride).min(extent - 1);
        let common = gcd(divisor, stride);
        let step = divisor / common;
        let first = (-offset / common).rem_euclid(step) * inverse(stride / common, step) % step;
        let mut difference = low + (first - low).rem_euclid(step);
        while difference <= high {
            if self.collides(k - 1, offset + difference * stride, started || difference != 0)? {
                return Some(true);
            }
            self.budget = self.budget.checked_sub(1)?;
            difference += step;
        }
        Some(false)
    }
}

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

/// The inverse of `a` modulo `m`, which have no common divisor; 0 for m = 1.
fn inverse(a: i128, m: i128) -> i128 {
    let (mut old, mut new) = ((a.rem_euclid(m), 1), (m, 0));
    while new.0 != 0 {
        let quotient = old.0 / new.0;
        (old, new) = (new, (old.0 - quotient * new.0, old.1 - quotient * new.1));
    }
    old.1.rem_euclid(m)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    fn decided(dims: &[(i64, i64)]) -> bool {
        let mut sorted = dims.to_vec();
        sorted.sort_by_key(|&(_, stride)| stride);
        are_apart(&sorted)
    }

    #[test]
    fn small_views_are_decided_as_by_counting() {
        let mut rng = Rng::new(5);
        let mut found = [0; 2];
        for _ in 0..20_000 {
            let rank = rng.between(1, 4) as usize;
            let widest = [4, 12, 40][rng.below(3)];
            let dims: Vec<(i64, i64)> = (0..rank).map(|_| (rng.between(2, 5), rng.between(0, widest))).collect();
            let mut offsets = vec![0];
            for &(extent, stride) in &dims {
                offsets = offsets.iter().flat_map(|offset| (0..extent).map(move |i| offset + i * stride)).collect();
            }
            let count = offsets.len();
            offsets.sort_unstable();
            offsets.dedup();
            assert_eq!(decided(&dims), offsets.len() == count, "{dims:?}");
            found[usize::from(offsets.len() == count)] += 1;
        }
        assert!(found[0] > 3000 && found[1] > 3000, "{found:?}");
    }

    #[test]
    fn large_views_are_decided_without_counting() {
        assert!(decided(&[(3, 2), (2, 3)]));
        assert!(!decided(&[(4, 2), (3, 3)]));
        let (a, b) = (1_000_003, 1_000_033);
        assert!(decided(&[(b, a), (a, b)]), "coprime strides: the first to meet lie just outside");
        assert!(!decided(&[(b + 1, a), (a + 1, b)]));
        assert!(decided(&[(1 << 20, 3), (2, 1)]));
        assert!(!decided(&[(i64::MAX, 1), (2, i64::MAX - 1)]));
        assert!(decided(&[(i64::MAX, 1), (2, i64::MAX)]));
    }
}
