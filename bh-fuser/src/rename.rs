//! Renames: what a block's writes leave of a base, and whether copying it is worth a fresh buffer.

use crate::facts::Facts;
use crate::relation::{Digits, Walk};
use bh_bytecode::{BatchRef, View};
use bh_kernel::boxes::subtract;

/// The most views that a rename may copy.
const MOST_VIEWS: usize = 32;
/// The most views that a block with a rename may write: what they leave is looked for anew with each that comes.
const MOST_WRITES: usize = 64;

/// A box in the grid: the range of each digit, largest stride first.
type Ranges = Vec<(i64, i64)>;

/// May a block that writes these views give the base a fresh buffer? The rest to copy must be small, at most `percent` of what
/// is written, and made of few views.
pub fn affordable(
    batch: &BatchRef<'_>,
    facts: &Facts,
    percent: u32,
    base: u32,
    writes: impl Iterator<Item = u32> + Clone,
) -> bool {
    let written: u64 = writes.clone().map(|view| facts.views[view as usize].bytes).sum();
    leaves_little(batch, percent, base, written) && uncovered(batch, base, writes).is_some()
}

/// Is what a write of `written` bytes leaves of a base at most `percent` of that, so that it may be copied?
pub fn leaves_little(batch: &BatchRef<'_>, percent: u32, base: u32, written: u64) -> bool {
    let rest = batch.bases[base as usize].bytes().saturating_sub(written);
    rest as u128 * 100 <= written as u128 * u128::from(percent)
}

/// The views of a base that disjoint writes leave untouched; `None` if they cannot be told or are too many.
pub fn uncovered(batch: &BatchRef<'_>, base: u32, writes: impl Iterator<Item = u32> + Clone) -> Option<Vec<View>> {
    if writes.clone().nth(MOST_WRITES).is_some() {
        return None;
    }
    let digits: Vec<Digits> = writes.map(|view| Digits::of(batch, view)).collect::<Option<_>>()?;
    let mut strides: Vec<i64> = digits.iter().flat_map(|digits| digits.dims()).map(|&(stride, _)| stride).collect();
    strides.push(1);
    strides.sort_unstable_by(|a, b| b.cmp(a));
    strides.dedup();
    if strides.windows(2).any(|pair| pair[0] % pair[1] != 0) {
        return None;
    }
    let mut rest = whole(batch.bases[base as usize].len, &strides);
    for digits in &digits {
        let written = ranges(digits, &strides)?;
        let mut next = Vec::with_capacity(rest.len() + 4);
        for piece in rest {
            subtract(piece, &written, &mut next);
        }
        if next.len() > MOST_VIEWS {
            return None;
        }
        rest = next;
    }
    rest.iter().map(|piece| to_view(piece, &strides)).collect()
}

/// The elements `0..len` as boxes.
fn whole(len: i64, strides: &[i64]) -> Vec<Ranges> {
    let mut boxes = Vec::new();
    let (mut rest, mut fixed) = (len, Ranges::new());
    for (level, &stride) in strides.iter().enumerate() {
        let count = rest / stride;
        if count > 0 {
            let mut piece = fixed.clone();
            piece.push((0, count - 1));
            piece.extend(strides[level..].windows(2).map(|pair| (0, pair[0] / pair[1] - 1)));
            boxes.push(piece);
        }
        fixed.push((count, count));
        rest %= stride;
    }
    boxes
}

/// A view's digits in the grid; `None` if it crosses a period.
fn ranges(digits: &Digits, strides: &[i64]) -> Option<Ranges> {
    let mut walk = Walk::new(digits);
    strides.iter().map(|&stride| walk.digit(stride)).collect()
}

fn to_view(piece: &Ranges, strides: &[i64]) -> Option<View> {
    let (mut start, mut shape, mut stride) = (0, Vec::new(), Vec::new());
    for (&(first, last), &step) in piece.iter().zip(strides) {
        start += first * step;
        let extent = last - first + 1;
        if extent == 1 {
            continue;
        }
        match (shape.last_mut(), stride.last_mut()) {
            (Some(outer), Some(outer_step)) if *outer_step == extent * step => {
                *outer *= extent;
                *outer_step = step;
            }
            _ => {
                shape.push(extent);
                stride.push(step);
            }
        }
    }
    View::new(start, &shape, &stride).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::{Base, Batch, DType};

    fn check(len: i64, writes: &[(i64, &[i64], &[i64])]) -> usize {
        let mut batch = Batch::default();
        batch.push_base(Base::new(1, DType::F64, len));
        let mut hits = vec![0; len as usize];
        let mut mark = |view: &View| {
            let mut offsets = vec![view.start()];
            for (&extent, &stride) in view.shape().iter().zip(view.stride()) {
                offsets = offsets.iter().flat_map(|o| (0..extent).map(move |i| o + i * stride)).collect();
            }
            offsets.iter().for_each(|&offset| hits[offset as usize] += 1);
        };
        for (start, shape, stride) in writes {
            let view = View::new(*start, shape, stride).unwrap();
            mark(&view);
            batch.push_view(0, &view);
        }
        let rest = uncovered(&batch.as_ref(), 0, 0..writes.len() as u32).unwrap();
        rest.iter().for_each(mark);
        assert!(hits.iter().all(|&count| count == 1), "{hits:?}");
        rest.len()
    }

    #[test]
    fn borders_of_a_grid() {
        assert_eq!(check(100, &[(11, &[8, 8], &[10, 1])]), 4);
        assert_eq!(check(100, &[(0, &[100], &[1])]), 0);
        assert_eq!(check(103, &[(11, &[8, 8], &[10, 1])]), 5);
        assert_eq!(check(1000, &[(111, &[8, 8, 8], &[100, 10, 1])]), 6);
        check(100, &[(11, &[8, 8], &[10, 1]), (0, &[10], &[1])]);
        check(100, &[(1, &[50], &[2])]);
        check(100, &[(98, &[5, 4], &[-20, -1])]);
        check(7, &[(3, &[], &[])]);
    }

    #[test]
    fn views_across_periods_are_refused() {
        let mut batch = Batch::default();
        batch.push_base(Base::new(1, DType::F64, 100));
        batch.push_view(0, &View::new(5, &[3, 8], &[10, 1]).unwrap());
        batch.push_view(0, &View::new(0, &[3, 8], &[30, 7]).unwrap());
        assert!(uncovered(&batch.as_ref(), 0, [0].into_iter()).is_none());
        assert!(uncovered(&batch.as_ref(), 0, [1].into_iter()).is_none());
    }
}
