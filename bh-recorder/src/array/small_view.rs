//! Views as array handles keep them: canonical, small, with their hash and the facts that every operation asks for.

use bh_bytecode::View;
use bh_bytecode::view::{ViewRef, is_contiguous, is_injective};

/// Dimensions that fit without a heap allocation.
const INLINE: usize = 4;
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// One step of the hash used throughout the recorder.
#[inline(always)]
pub(crate) fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER)
}

/// A view in canonical form.
#[derive(Clone)]
pub(crate) struct SmallView {
    pub(crate) start: i64,
    pub(crate) len: i64,
    /// Hash of start, shape and stride.
    pub(crate) hash: u64,
    dims: Dims,
    rank: u8,
    pub(crate) injective: bool,
    /// Do all axes go forward, and those with smaller strides inside of those with larger ones?
    pub(crate) in_c_order: bool,
}

/// Extents, then strides.
#[derive(Clone)]
enum Dims {
    Inline([i64; 2 * INLINE]),
    Heap(Box<[i64]>),
}

/// A view under construction: its extents and strides are filled in, in place, before it is [`Draft::finish`]ed.
pub(crate) struct Draft(SmallView);

impl Draft {
    /// A view of this rank with all extents and strides 0.
    #[inline]
    pub(crate) fn new(rank: usize) -> Draft {
        let dims = match rank <= INLINE {
            true => Dims::Inline([0; 2 * INLINE]),
            false => Dims::Heap(vec![0; 2 * rank].into()),
        };
        let (injective, in_c_order) = (false, false);
        Draft(SmallView { start: 0, len: 0, hash: 0, dims, rank: rank as u8, injective, in_c_order })
    }

    /// The extents and the strides.
    #[inline]
    pub(crate) fn dims(&mut self) -> (&mut [i64], &mut [i64]) {
        let rank = self.0.rank();
        match &mut self.0.dims {
            Dims::Inline(dims) => dims[..2 * rank].split_at_mut(rank),
            Dims::Heap(dims) => dims.split_at_mut(rank),
        }
    }

    /// The view from this start, in canonical form: legal, with at most as many elements as views may have. `distinct`: its
    /// elements are known to be at different offsets.
    #[inline]
    pub(crate) fn finish(mut self, start: i64, distinct: bool) -> SmallView {
        self.seal(start, distinct);
        self.0
    }

    /// Works in place, so that the view is moved only once it is whole.
    #[inline]
    fn seal(&mut self, start: i64, distinct: bool) {
        let (shape, stride) = self.dims();
        let len: i64 = shape.iter().product();
        for (&extent, stride) in shape.iter().zip(&mut *stride) {
            if extent == 1 || len == 0 {
                *stride = 0;
            }
        }
        let in_c_order = goes_in_c_order(shape, stride);
        let injective = distinct || len <= 1 || is_contiguous(shape, stride) || is_injective(shape, stride);
        let view = &mut self.0;
        view.start = if len == 0 { 0 } else { start };
        (view.len, view.injective, view.in_c_order) = (len, injective, in_c_order);
        let begin = mix(view.rank() as u64, view.start as u64);
        view.hash = view.dims().iter().fold(begin, |hash, &word| mix(hash, word as u64));
    }
}

/// As [`SmallView::in_c_order`], of a view in any form.
#[inline]
pub(crate) fn goes_in_c_order(shape: &[i64], stride: &[i64]) -> bool {
    let mut outer = i64::MAX;
    shape.contains(&0)
        || shape.iter().zip(stride).filter(|&(&extent, &step)| extent != 1 && step != 0).all(|(_, &step)| {
            let fits = step > 0 && step <= outer;
            outer = step;
            fits
        })
}

impl SmallView {
    pub(crate) fn new(view: &View) -> SmallView {
        let mut draft = Draft::new(view.rank());
        let (shape, stride) = draft.dims();
        shape.copy_from_slice(view.shape());
        stride.copy_from_slice(view.stride());
        draft.finish(view.start(), false)
    }

    /// The contiguous view of a legal shape, from element 0.
    #[inline]
    pub(crate) fn contiguous(extents: &[i64]) -> SmallView {
        let mut draft = Draft::new(extents.len());
        let (shape, stride) = draft.dims();
        let mut step = 1i64;
        for (dim, &extent) in extents.iter().enumerate().rev() {
            (shape[dim], stride[dim]) = (extent, step);
            step *= extent;
        }
        draft.finish(0, true)
    }

    /// The view that a new array of this shape has.
    #[inline]
    pub(crate) fn as_new(&self) -> SmallView {
        // Of views with elements, one without gaps from the first element on is that.
        let is_new = self.start == 0 && self.len > 0 && is_contiguous(self.shape(), self.stride());
        if is_new { self.clone() } else { SmallView::contiguous(self.shape()) }
    }

    #[inline]
    pub(crate) fn rank(&self) -> usize {
        self.rank as usize
    }

    /// Extents, then strides.
    #[inline]
    pub(crate) fn dims(&self) -> &[i64] {
        match &self.dims {
            Dims::Inline(dims) => &dims[..2 * self.rank as usize],
            Dims::Heap(dims) => dims,
        }
    }

    #[inline]
    pub(crate) fn shape(&self) -> &[i64] {
        &self.dims()[..self.rank as usize]
    }

    #[inline]
    pub(crate) fn stride(&self) -> &[i64] {
        &self.dims()[self.rank as usize..]
    }

    pub(crate) fn view(&self) -> View {
        View::new(self.start, self.shape(), self.stride()).expect("made from a legal view")
    }

    /// Stretched to a shape that [`broadcasts`](crate::record::check::broadcasts) says it can be stretched to.
    pub(crate) fn broadcast_to(&self, extents: &[i64]) -> SmallView {
        let mut draft = Draft::new(extents.len());
        let (shape, stride) = draft.dims();
        shape.copy_from_slice(extents);
        // Dimensions of extent 1 have stride 0 already.
        stride[extents.len() - self.rank()..].copy_from_slice(self.stride());
        draft.finish(self.start, false)
    }

    /// The same view `elements` elements later; it has elements.
    pub(crate) fn shifted(self, elements: i64) -> SmallView {
        let (start, distinct) = (self.start + elements, self.injective);
        Draft(self).finish(start, distinct)
    }

    #[inline]
    pub(crate) fn same(&self, other: &SmallView) -> bool {
        self.hash == other.hash && self.start == other.start && self.rank == other.rank && self.dims() == other.dims()
    }
}

impl<'a> From<&'a SmallView> for ViewRef<'a> {
    #[inline]
    fn from(view: &'a SmallView) -> ViewRef<'a> {
        ViewRef { start: view.start, shape: view.shape(), stride: view.stride() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_views_agree_with_the_general_form() {
        for shape in [&[][..], &[7], &[2, 3], &[1, 5, 1], &[0, 4], &[2, 1, 3, 1, 4, 2]] {
            let view = View::contiguous(shape).unwrap();
            let (small, direct) = (SmallView::new(&view), SmallView::contiguous(shape));
            assert!(small.same(&direct), "{shape:?}");
            assert_eq!((small.view(), small.len), (view.canonical(), view.len()));
            assert!(direct.injective && small.injective);
            for other in [view, view.reversed(), View::new(3, shape, view.stride()).unwrap()] {
                assert!(SmallView::new(&other).as_new().same(&SmallView::contiguous(other.shape())), "{shape:?}");
            }
        }
    }

    #[test]
    fn broadcasts_agree_with_the_general_form() {
        for from in [&[][..], &[3], &[1, 3], &[2, 1], &[2, 3], &[1, 1, 1]] {
            let view = View::contiguous(from).unwrap();
            for to in [&[2, 3][..], &[4, 2, 3], &[5, 1, 2, 2, 3], &[0, 2, 3], &[1, 1]] {
                let Ok(wide) = view.broadcast_to(to) else { continue };
                let (small, general) = (SmallView::contiguous(from).broadcast_to(to), SmallView::new(&wide));
                assert!(small.same(&general), "{from:?} {to:?}");
                assert_eq!((small.view(), small.injective), (wide.canonical(), wide.is_injective()));
            }
        }
    }
}
