//! How two views of one base relate, with containment, fast for views in one grid.
//!
//! Views whose strides form a chain of divisors are boxes of digits in a mixed-radix grid, and boxes compare digit by
//! digit. Everything else is asked of [`bh_bytecode::view::overlap`].

use bh_bytecode::view::overlap;
use bh_bytecode::{BatchRef, MAX_RANK, Overlap};
use bh_kernel::table::Table;

/// How view `a` relates to view `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The same elements in the same order under the same shape.
    Identical,
    /// No common element.
    Disjoint,
    /// Common elements, or not proved otherwise; `a` contains all of `b`.
    Contains,
    /// Common elements, or not proved otherwise; `b` contains all of `a`.
    Inside,
    /// Common elements, or not proved otherwise.
    Overlapping,
}

impl Relation {
    /// All of them, by their numbers.
    const ALL: [Relation; 5] =
        [Relation::Identical, Relation::Disjoint, Relation::Contains, Relation::Inside, Relation::Overlapping];

    /// Do the views share elements, for all that is known?
    #[inline]
    pub fn touches(self) -> bool {
        self != Relation::Disjoint
    }

    /// The relation seen from the other side.
    pub fn reversed(self) -> Relation {
        match self {
            Relation::Contains => Relation::Inside,
            Relation::Inside => Relation::Contains,
            other => other,
        }
    }
}

/// A view as digits: (stride, extent), largest stride first, above its lowest offset.
#[derive(Clone, Copy)]
pub(crate) struct Digits {
    pub low: i64,
    pub dims: [(i64, i64); MAX_RANK],
    pub count: usize,
}

impl Digits {
    /// The digits of a view, or `None` if it is empty or two dimensions have one stride.
    pub fn of(batch: &BatchRef<'_>, view: u32) -> Option<Digits> {
        let mut digits = Digits { low: batch.views[view as usize].start, dims: [(0, 0); MAX_RANK], count: 0 };
        for (&extent, &stride) in batch.shape(view).iter().zip(batch.stride(view)) {
            if extent == 0 {
                return None;
            }
            if extent == 1 || stride == 0 {
                continue;
            }
            if stride < 0 {
                digits.low += stride * (extent - 1);
            }
            let stride = stride.abs();
            let mut at = digits.count;
            while at > 0 && digits.dims[at - 1].0 <= stride {
                if digits.dims[at - 1].0 == stride {
                    return None;
                }
                digits.dims[at] = digits.dims[at - 1];
                at -= 1;
            }
            digits.dims[at] = (stride, extent);
            digits.count += 1;
        }
        Some(digits)
    }

    pub fn dims(&self) -> &[(i64, i64)] {
        &self.dims[..self.count]
    }
}

/// The relation of two views (indices) on one base of a validated batch.
pub fn relation(batch: &BatchRef<'_>, a: u32, b: u32) -> Relation {
    if batch.views[a as usize].len == 0 || batch.views[b as usize].len == 0 {
        return Relation::Disjoint;
    }
    if a == b {
        return Relation::Identical;
    }
    if let (Some(left), Some(right)) = (Digits::of(batch, a), Digits::of(batch, b))
        && let Some(found) = compare_boxes(&left, &right)
    {
        // Equal boxes may still be walked in different orders, and nobody below may know less than this says.
        return match found {
            (Relation::Identical, _) => whole_test(batch, a, b, Relation::Contains),
            (Relation::Disjoint, true) => whole_test(batch, a, b, Relation::Overlapping),
            (found, _) => found,
        };
    }
    whole_test(batch, a, b, Relation::Overlapping)
}

fn whole_test(batch: &BatchRef<'_>, a: u32, b: u32, otherwise: Relation) -> Relation {
    match overlap(&batch.view(a), &batch.view(b)) {
        Overlap::Identical => Relation::Identical,
        Overlap::Disjoint => Relation::Disjoint,
        Overlap::Overlapping => otherwise,
    }
}

/// Compares two boxes in the grid of both views' strides; `None` if the strides are no chain of divisors or a box
/// crosses a period of the grid. `Identical` means equal sets of elements; true if a run of elements had to be split.
fn compare_boxes(a: &Digits, b: &Digits) -> Option<(Relation, bool)> {
    let (mut a, mut b) = (Walk::new(a), Walk::new(b));
    let mut previous = 0i64;
    let (mut contains, mut inside, mut disjoint) = (true, true, false);
    while a.at < a.digits.count || b.at < b.digits.count {
        let stride = a.stride().max(b.stride());
        if previous % stride != 0 {
            return None;
        }
        previous = stride;
        let (a_first, a_last) = a.digit(stride)?;
        let (b_first, b_last) = b.digit(stride)?;
        disjoint |= a_last < b_first || b_last < a_first;
        contains &= a_first <= b_first && b_last <= a_last;
        inside &= b_first <= a_first && a_last <= b_last;
    }
    let found = match (disjoint || a.rest != b.rest, contains, inside) {
        (true, ..) => Relation::Disjoint,
        (_, true, true) => Relation::Identical,
        (_, true, _) => Relation::Contains,
        (_, _, true) => Relation::Inside,
        _ => Relation::Overlapping,
    };
    Some((found, a.split || b.split))
}

/// Takes a box apart from the largest stride to the smallest.
pub(crate) struct Walk {
    digits: Digits,
    at: usize,
    rest: i64,
    split: bool,
}

impl Walk {
    pub fn new(digits: &Digits) -> Walk {
        Walk { digits: *digits, at: 0, rest: digits.low, split: false }
    }

    /// The next stride of the box itself, or 0.
    fn stride(&self) -> i64 {
        self.digits.dims().get(self.at).map_or(0, |dim| dim.0)
    }

    /// The range of the digit of this stride, which no stride of the box that is left exceeds; `None` if the smaller
    /// digits cross its period.
    pub fn digit(&mut self, stride: i64) -> Option<(i64, i64)> {
        let first = self.rest.div_euclid(stride);
        self.rest = self.rest.rem_euclid(stride);
        let mut last = first;
        if self.at < self.digits.count {
            let (own, extent) = self.digits.dims[self.at];
            if own == stride {
                last += extent - 1;
                self.at += 1;
            } else if own * extent >= stride && stride % own == 0 && own * extent % stride == 0 && self.rest < own {
                // A run that fills whole periods has two digits here.
                last += own * extent / stride - 1;
                self.digits.dims[self.at].1 = stride / own;
                self.split = true;
            }
        }
        let reach: i64 = self.digits.dims[self.at..self.digits.count].iter().map(|dim| dim.0 * (dim.1 - 1)).sum();
        (self.rest + reach < stride).then_some((first, last))
    }
}

/// Remembers relations within one batch.
#[derive(Default)]
pub struct RelationCache(Table);

impl RelationCache {
    /// Forgets everything; `views` is the number of views of the next batch.
    pub fn reset(&mut self, views: usize) {
        self.0.reset(2 * views);
    }

    /// The relation of two views on one base.
    #[inline]
    pub fn get(&mut self, batch: &BatchRef<'_>, a: u32, b: u32) -> Relation {
        if a == b {
            return if batch.views[a as usize].len == 0 { Relation::Disjoint } else { Relation::Identical };
        }
        if a > b {
            return self.ordered(batch, b, a).reversed();
        }
        self.ordered(batch, a, b)
    }

    fn ordered(&mut self, batch: &BatchRef<'_>, a: u32, b: u32) -> Relation {
        let known = self.0.get(a, b);
        if let Some(known) = Relation::ALL.get(known as usize) {
            return *known;
        }
        let found = relation(batch, a, b);
        self.0.set(a, b, found as u32);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::{Base, Batch, DType, View};

    fn batch(views: &[(i64, &[i64], &[i64])]) -> Batch {
        let mut batch = Batch::default();
        batch.push_base(Base::new(1, DType::F64, 1000));
        for (start, shape, stride) in views {
            batch.push_view(0, &View::new(*start, shape, stride).unwrap());
        }
        batch
    }

    fn check(a: (i64, &[i64], &[i64]), b: (i64, &[i64], &[i64]), expected: Relation) {
        let batch = batch(&[a, b]);
        assert_eq!(relation(&batch.as_ref(), 0, 1), expected);
        assert_eq!(relation(&batch.as_ref(), 1, 0), expected.reversed());
    }

    #[test]
    fn windows_of_a_grid() {
        let grid: (i64, &[i64], &[i64]) = (0, &[10, 10], &[10, 1]);
        let center: (i64, &[i64], &[i64]) = (11, &[8, 8], &[10, 1]);
        let north: (i64, &[i64], &[i64]) = (1, &[8, 8], &[10, 1]);
        check(grid, center, Relation::Contains);
        check(center, north, Relation::Overlapping);
        check(center, (0, &[10], &[1]), Relation::Disjoint);
        check(center, (19, &[10], &[10]), Relation::Disjoint);
        check(center, (15, &[], &[]), Relation::Contains);
        check((0, &[60], &[1]), (20, &[3, 10], &[10, 1]), Relation::Contains);
        check((0, &[100], &[1]), center, Relation::Contains);
        check((0, &[5], &[2]), (1, &[5], &[2]), Relation::Disjoint);
    }

    #[test]
    fn never_more_permissive_than_the_bytecode() {
        let mut state = 12345u64;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for _ in 0..20_000 {
            let mut make = || {
                let (rows, cols) = (next(4) as i64 + 1, next(4) as i64 + 1);
                let strides = [[12, 1], [12, 2], [1, 12], [6, 1], [24, 3], [12, -1], [0, 1], [5, 2], [1, 1], [12, -12]];
                let strides = strides[next(10) as usize];
                let view = View::new(next(40) as i64 + 60, &[rows, cols], &strides).unwrap();
                let elements: Vec<i64> = (0..rows)
                    .flat_map(|r| (0..cols).map(move |c| view.start() + r * strides[0] + c * strides[1]))
                    .collect();
                (view, elements)
            };
            let (a, a_elements) = make();
            let (b, b_elements) = make();
            let mut batch = Batch::default();
            batch.push_base(Base::new(1, DType::F64, 1000));
            batch.push_view(0, &a);
            batch.push_view(0, &b);
            let touches = a_elements.iter().any(|element| b_elements.contains(element));
            let found = relation(&batch.as_ref(), 0, 1);
            match found {
                Relation::Disjoint => assert!(!touches, "{a:?} {b:?}"),
                Relation::Contains => assert!(b_elements.iter().all(|e| a_elements.contains(e)), "{a:?} {b:?}"),
                Relation::Inside => assert!(a_elements.iter().all(|e| b_elements.contains(e)), "{a:?} {b:?}"),
                Relation::Identical => assert_eq!(a_elements, b_elements),
                Relation::Overlapping => {}
            }
            if found == Relation::Disjoint {
                assert_eq!(overlap(&batch.as_ref().view(0), &batch.as_ref().view(1)), Overlap::Disjoint);
            }
        }
    }
}
