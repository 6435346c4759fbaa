//! Views as array handles keep them: canonical, small, with their hash and the facts that every operation asks for.

use bh_bytecode::{View, ViewError};

/// Dimensions that fit without a heap allocation.
const INLINE: usize = 4;
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// One step of the hash used throughout the recorder.
#[inline(always)]
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER)
}

/// A view in canonical form.
#[derive(Clone)]
pub(super) struct SmallView {
    pub(super) start: i64,
    pub(super) len: i64,
    /// Hash of start, shape and stride.
    pub(super) hash: u64,
    dims: Dims,
    rank: u8,
    pub(super) injective: bool,
    /// Do all axes go forward, and those with smaller strides inside of those with larger ones?
    pub(super) in_c_order: bool,
}

/// Extents, then strides.
#[derive(Clone)]
enum Dims {
    Inline([i64; 2 * INLINE]),
    Heap(Box<[i64]>),
}

impl SmallView {
    pub(super) fn new(view: &View) -> SmallView {
        let view = view.canonical();
        let injective = view.is_contiguous() || view.is_injective();
        SmallView::from_parts(view.start(), view.len(), view.shape(), view.stride(), injective)
    }

    #[inline]
    fn from_parts(start: i64, len: i64, shape: &[i64], stride: &[i64], injective: bool) -> SmallView {
        let rank = shape.len();
        let dims = if rank <= INLINE {
            let mut dims = [0; 2 * INLINE];
            dims[..rank].copy_from_slice(shape);
            dims[rank..2 * rank].copy_from_slice(stride);
            Dims::Inline(dims)
        } else {
            Dims::Heap(shape.iter().chain(stride).copied().collect())
        };
        let steps = stride.iter().copied().filter(|&stride| stride != 0);
        let in_c_order = steps.clone().all(|step| step > 0) && steps.is_sorted_by(|outer, inner| outer >= inner);
        let mut view = SmallView { start, len, hash: 0, dims, rank: rank as u8, injective, in_c_order };
        view.hash = view.dims().iter().fold(mix(rank as u64, start as u64), |hash, &word| mix(hash, word as u64));
        view
    }

    /// The contiguous view of a legal shape with `len` elements, from element 0.
    #[inline]
    pub(super) fn contiguous(shape: &[i64], len: i64) -> SmallView {
        let mut stride = [0i64; bh_bytecode::MAX_RANK];
        let mut step = 1i64;
        if len > 0 {
            for dim in (0..shape.len()).rev() {
                if shape[dim] != 1 {
                    stride[dim] = step;
                    step *= shape[dim];
                }
            }
        }
        SmallView::from_parts(0, len, shape, &stride[..shape.len()], true)
    }

    #[inline]
    pub(super) fn rank(&self) -> usize {
        self.rank as usize
    }

    /// Extents, then strides.
    #[inline]
    pub(super) fn dims(&self) -> &[i64] {
        match &self.dims {
            Dims::Inline(dims) => &dims[..2 * self.rank as usize],
            Dims::Heap(dims) => dims,
        }
    }

    #[inline]
    pub(super) fn shape(&self) -> &[i64] {
        &self.dims()[..self.rank as usize]
    }

    #[inline]
    pub(super) fn stride(&self) -> &[i64] {
        &self.dims()[self.rank as usize..]
    }

    pub(super) fn view(&self) -> View {
        View::new(self.start, self.shape(), self.stride()).expect("made from a legal view")
    }

    pub(super) fn broadcast_to(&self, shape: &[i64]) -> Result<SmallView, ViewError> {
        self.view().broadcast_to(shape).map(|view| SmallView::new(&view))
    }

    #[inline]
    pub(super) fn same(&self, other: &SmallView) -> bool {
        self.hash == other.hash && self.start == other.start && self.rank == other.rank && self.dims() == other.dims()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_views_agree_with_the_general_form() {
        for shape in [&[][..], &[7], &[2, 3], &[1, 5, 1], &[0, 4], &[2, 1, 3, 1, 4, 2]] {
            let view = View::contiguous(shape).unwrap();
            let (small, direct) = (SmallView::new(&view), SmallView::contiguous(shape, view.len()));
            assert!(small.same(&direct), "{shape:?}");
            assert_eq!(small.view(), view.canonical());
            assert!(direct.injective && small.injective);
        }
    }

    #[test]
    fn broadcasts_are_not_injective() {
        let view = SmallView::contiguous(&[3], 3).broadcast_to(&[2, 3]).unwrap();
        assert_eq!((view.shape(), view.stride(), view.injective), (&[2, 3][..], &[0, 1][..], false));
    }
}
