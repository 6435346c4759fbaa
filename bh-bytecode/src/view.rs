//! Views: regularly strided windows on a base, with checked arithmetic.

pub use crate::injective::is_injective;
pub use crate::overlap::{Overlap, ViewRef, overlap};
use crate::subscript::{indexed, sliced};
use std::fmt;

/// The highest number of dimensions of a view.
pub const MAX_RANK: usize = 16;

/// Elements of a view, at most: no processor addresses more bytes, and products with the size of an element, or sums over the
/// views of an operation, stay far from the ends of 64 bits.
pub const MAX_ELEMENTS: i64 = 1 << 56;

/// Why a view could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewError(pub String);

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ViewError {}

fn error<T>(text: impl Into<String>) -> Result<T, ViewError> {
    Err(ViewError(text.into()))
}

/// Do these strides make one dense run of the elements, in C order? If there are none, the answer may be either.
#[inline]
pub fn is_contiguous(shape: &[i64], stride: &[i64]) -> bool {
    let mut step = 1;
    for (&extent, &stride) in shape.iter().zip(stride).rev() {
        if extent != 1 && stride != step {
            return false;
        }
        step *= extent;
    }
    true
}

/// The lowest and highest offset; `None` if they do not fit the type.
#[inline]
pub(crate) fn reach(start: i64, shape: &[i64], stride: &[i64]) -> Option<(i64, i64)> {
    let (mut low, mut high) = (start, start);
    for (&extent, &stride) in shape.iter().zip(stride) {
        let reach = (extent - 1).max(0).checked_mul(stride)?;
        if reach < 0 {
            low = low.checked_add(reach)?;
        } else {
            high = high.checked_add(reach)?;
        }
    }
    Some((low, high))
}

/// A window on a base: element `i` lies at `start + Σ i[d]·stride[d]`, in elements of the base.
///
/// The value does not name its base: a view's owner knows its base. Rank and extents are checked where views are made; the
/// product of the extents fits `i64`.
#[derive(Clone, Copy)]
pub struct View {
    start: i64,
    rank: u8,
    shape: [i64; MAX_RANK],
    stride: [i64; MAX_RANK],
}

impl View {
    /// A view with explicit strides. Fails when ranks differ or exceed [`MAX_RANK`], an extent is negative, or
    /// the element count exceeds [`MAX_ELEMENTS`], or a reachable offset overflows 64 bits.
    pub fn new(start: i64, shape: &[i64], stride: &[i64]) -> Result<View, ViewError> {
        if shape.len() != stride.len() {
            return error(format!("shape has {} dimensions but stride has {}", shape.len(), stride.len()));
        }
        if shape.len() > MAX_RANK {
            return error(format!("rank {} exceeds the limit of {MAX_RANK} dimensions", shape.len()));
        }
        let mut view = View::default();
        view.put(start, shape, stride)?;
        Ok(view)
    }

    /// Becomes the view with these dimensions, in place, as views are large to move. Fails as [`View::new`] does.
    #[inline]
    pub fn put(&mut self, start: i64, shape: &[i64], stride: &[i64]) -> Result<(), ViewError> {
        if shape.len() != stride.len() || shape.len() > MAX_RANK {
            return View::new(start, shape, stride).map(|view| *self = view);
        }
        (self.start, self.rank) = (start, shape.len() as u8);
        self.shape[..shape.len()].copy_from_slice(shape);
        self.stride[..shape.len()].copy_from_slice(stride);
        let is_legal = element_count(shape).is_some() && shape.iter().all(|&extent| extent >= 0);
        if is_legal && self.checked_extent().is_some() { Ok(()) } else { self.refuse() }
    }

    /// Says what is wrong with a view.
    #[cold]
    fn refuse(&self) -> Result<(), ViewError> {
        let (shape, stride) = (self.shape(), self.stride());
        if let Some(dim) = shape.iter().position(|&extent| extent < 0) {
            return error(format!("extent {} of dimension {dim} is negative", shape[dim]));
        }
        if element_count(shape).is_none() {
            return error(too_many_elements(shape));
        }
        error(format!("offsets of shape {shape:?} with strides {stride:?} overflow 64 bits"))
    }

    /// A contiguous view in C order from element 0.
    pub fn contiguous(shape: &[i64]) -> Result<View, ViewError> {
        if shape.len() > MAX_RANK {
            return error(format!("rank {} exceeds the limit of {MAX_RANK} dimensions", shape.len()));
        }
        if shape.iter().any(|&extent| extent < 0) || element_count(shape).is_none() {
            return View::new(0, shape, &[0; MAX_RANK][..shape.len()]);
        }
        let mut stride = [0; MAX_RANK];
        let mut step = 1i64;
        for dim in (0..shape.len()).rev() {
            stride[dim] = step;
            step = step.saturating_mul(shape[dim].max(1));
        }
        View::new(0, shape, &stride[..shape.len()])
    }

    /// The offset of element (0, …, 0) in the base.
    #[inline]
    pub fn start(&self) -> i64 {
        self.start
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank as usize
    }

    /// The extents, outermost first.
    #[inline]
    pub fn shape(&self) -> &[i64] {
        &self.shape[..self.rank as usize]
    }

    /// The strides in elements, outermost first.
    #[inline]
    pub fn stride(&self) -> &[i64] {
        &self.stride[..self.rank as usize]
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> i64 {
        self.shape().iter().product()
    }

    /// Has it no elements?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }

    /// The canonical form: strides of extent-1 dimensions are 0; an empty view starts at 0 with strides 0.
    /// Equal canonical views address the same elements in the same order.
    pub fn canonical(mut self) -> View {
        if self.is_empty() {
            self.start = 0;
            self.stride = [0; MAX_RANK];
        } else {
            for dim in 0..self.rank() {
                if self.shape[dim] == 1 {
                    self.stride[dim] = 0;
                }
            }
        }
        self
    }

    /// The lowest and highest offset reached, or `None` when empty.
    pub fn extent(&self) -> Option<(i64, i64)> {
        if self.is_empty() { None } else { self.checked_extent() }
    }

    #[inline]
    fn checked_extent(&self) -> Option<(i64, i64)> {
        reach(self.start, self.shape(), self.stride())
    }

    /// Does every element lie inside a base of `length` elements?
    pub fn fits(&self, length: i64) -> bool {
        self.extent().is_none_or(|(low, high)| low >= 0 && high < length)
    }

    /// Is it one dense run of elements in C order?
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(self.shape(), self.stride()) || self.is_empty()
    }

    /// Are all elements at different offsets? See [`is_injective`].
    pub fn is_injective(&self) -> bool {
        is_injective(self.shape(), self.stride())
    }

    /// Python's `[start:stop:step]` in one dimension; `None` bounds mean the end in the direction of `step`,
    /// negative bounds count from the end, and bounds past the ends are clipped, as in NumPy.
    pub fn slice(&self, dim: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> Result<View, ViewError> {
        if dim >= self.rank() {
            return error(format!("dimension {dim} does not exist in a view of rank {}", self.rank()));
        }
        if step == 0 {
            return error("slice step is zero");
        }
        let (first, count) = sliced(self.shape[dim], start, stop, step);
        let mut view = *self;
        if count > 0 {
            view.start += first * self.stride[dim];
        }
        view.shape[dim] = count;
        view.stride[dim] = if count > 1 { self.stride[dim] * step } else { self.stride[dim] };
        Ok(view)
    }

    /// Removes one dimension by fixing its index; negative indices count from the end.
    pub fn index(&self, dim: usize, index: i64) -> Result<View, ViewError> {
        if dim >= self.rank() {
            return error(format!("dimension {dim} does not exist in a view of rank {}", self.rank()));
        }
        let Some(at) = indexed(self.shape[dim], index) else {
            let extent = self.shape[dim];
            return error(format!("index {index} is out of range for dimension {dim} of extent {extent}"));
        };
        let mut view = *self;
        view.start += at * self.stride[dim];
        view.remove_dim(dim);
        Ok(view)
    }

    fn remove_dim(&mut self, dim: usize) {
        let rank = self.rank();
        self.shape.copy_within(dim + 1..rank, dim);
        self.stride.copy_within(dim + 1..rank, dim);
        self.shape[rank - 1] = 1;
        self.stride[rank - 1] = 0;
        self.rank -= 1;
    }

    /// Walks one dimension backwards.
    pub fn reverse(&self, dim: usize) -> Result<View, ViewError> {
        self.slice(dim, None, None, -1)
    }

    /// Reorders dimensions: dimension `d` of the result is dimension `axes[d]` of `self`.
    pub fn transpose(&self, axes: &[usize]) -> Result<View, ViewError> {
        let mut seen = 0u32;
        if axes.len() != self.rank() || axes.iter().any(|&axis| axis >= self.rank()) {
            return error(format!("{axes:?} is no permutation of {} dimensions", self.rank()));
        }
        let mut view = *self;
        for (dim, &axis) in axes.iter().enumerate() {
            if seen >> axis & 1 == 1 {
                return error(format!("{axes:?} is no permutation of {} dimensions", self.rank()));
            }
            seen |= 1 << axis;
            view.shape[dim] = self.shape[axis];
            view.stride[dim] = self.stride[axis];
        }
        Ok(view)
    }

    /// The dimensions in reverse.
    pub fn reversed(&self) -> View {
        let (mut view, rank) = (*self, self.rank());
        view.shape[..rank].reverse();
        view.stride[..rank].reverse();
        view
    }

    /// Inserts a dimension of extent 1 before `dim`.
    pub fn new_axis(&self, dim: usize) -> Result<View, ViewError> {
        if self.rank() == MAX_RANK {
            return error(format!("rank {} exceeds the limit of {MAX_RANK} dimensions", MAX_RANK + 1));
        }
        if dim > self.rank() {
            return error(format!("cannot insert a dimension at {dim} in a view of rank {}", self.rank()));
        }
        let mut view = *self;
        let rank = self.rank();
        view.shape.copy_within(dim..rank, dim + 1);
        view.stride.copy_within(dim..rank, dim + 1);
        view.shape[dim] = 1;
        view.stride[dim] = 0;
        view.rank += 1;
        Ok(view)
    }

    /// NumPy's broadcasting: extents of 1 are stretched with stride 0 and missing outer dimensions are added.
    pub fn broadcast_to(&self, shape: &[i64]) -> Result<View, ViewError> {
        let mut stride = [0i64; MAX_RANK];
        let refuse = || error(format!("shape {:?} cannot be broadcast to {shape:?}", self.shape()));
        if shape.len() > MAX_RANK || shape.len() < self.rank() {
            return refuse();
        }
        let shift = shape.len() - self.rank();
        for dim in 0..self.rank() {
            if self.shape[dim] == shape[shift + dim] {
                stride[shift + dim] = self.stride[dim];
            } else if self.shape[dim] != 1 {
                return refuse();
            }
        }
        View::new(self.start, shape, &stride[..shape.len()])
    }

    /// The same elements in the same C order under another shape, without a copy; `None` when strides do not allow it.
    /// Fails when the element counts differ.
    pub fn reshape(&self, shape: &[i64]) -> Result<Option<View>, ViewError> {
        let target = View::contiguous(shape)?;
        if target.len() != self.len() {
            return error(format!(
                "cannot reshape {:?} ({} elements) to {shape:?} ({} elements)",
                self.shape(),
                self.len(),
                target.len()
            ));
        }
        if self.is_empty() {
            return Ok(Some(View { start: self.start, ..target }));
        }
        // Match groups of old and new dimensions with equal products; each old group must be evenly strided.
        let old: Vec<(i64, i64)> = self
            .shape()
            .iter()
            .copied()
            .zip(self.stride().iter().copied())
            .filter(|&(extent, _)| extent != 1)
            .collect();
        let mut stride = [0i64; MAX_RANK];
        let (mut o, mut n) = (0, 0);
        while o < old.len() {
            let (o_first, n_first) = (o, n);
            let (mut o_count, mut n_count) = (old[o].0, 1);
            o += 1;
            while n_count != o_count {
                if n_count < o_count {
                    if n == shape.len() {
                        return Ok(None);
                    }
                    n_count *= shape[n];
                    n += 1;
                } else {
                    if o == old.len() {
                        return Ok(None);
                    }
                    o_count *= old[o].0;
                    o += 1;
                }
            }
            for pair in old[o_first..o].windows(2) {
                if Some(pair[0].1) != pair[1].1.checked_mul(pair[1].0) {
                    return Ok(None);
                }
            }
            let mut step = old[o - 1].1;
            for dim in (n_first..n).rev() {
                stride[dim] = step;
                // Only the stride of a dimension that does not follow overflows.
                step = step.wrapping_mul(shape[dim]);
            }
        }
        View::new(self.start, shape, &stride[..shape.len()]).map(Some)
    }

    /// The main diagonal of dimensions `a` and `b` as a last dimension, shifted by `offset` towards `b`.
    pub fn diagonal(&self, offset: i64, a: usize, b: usize) -> Result<View, ViewError> {
        if a == b || a >= self.rank() || b >= self.rank() {
            return error(format!("({a}, {b}) are no two dimensions of a view of rank {}", self.rank()));
        }
        let (skip_a, skip_b) = if offset < 0 { (offset.saturating_neg(), 0) } else { (0, offset) };
        let length = (self.shape[a].saturating_sub(skip_a)).min(self.shape[b].saturating_sub(skip_b)).max(0);
        let mut view = *self;
        if length > 0 {
            view.start += skip_a * self.stride[a] + skip_b * self.stride[b];
        }
        let stride = if length > 1 { self.stride[a] + self.stride[b] } else { 0 };
        view.remove_dim(a.max(b));
        view.remove_dim(a.min(b));
        let rank = view.rank();
        view.shape[rank] = length;
        view.stride[rank] = stride;
        view.rank += 1;
        Ok(view)
    }
}

impl Default for View {
    /// The view of rank 0 on element 0.
    fn default() -> View {
        View { start: 0, rank: 0, shape: [1; MAX_RANK], stride: [0; MAX_RANK] }
    }
}

impl PartialEq for View {
    fn eq(&self, other: &View) -> bool {
        self.start == other.start && self.shape() == other.shape() && self.stride() == other.stride()
    }
}

impl Eq for View {}

impl std::hash::Hash for View {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.start.hash(state);
        self.shape().hash(state);
        self.stride().hash(state);
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View{{start {}, shape {:?}, stride {:?}}}", self.start, self.shape(), self.stride())
    }
}

/// The number of elements of `shape`, or `None` when it exceeds [`MAX_ELEMENTS`].
///
/// The product of the non-zero extents must fit, so that an empty shape cannot hide an absurd one.
#[inline]
pub fn element_count(shape: &[i64]) -> Option<i64> {
    let full =
        shape.iter().filter(|&&extent| extent != 0).try_fold(1i64, |count, &extent| count.checked_mul(extent))?;
    (full <= MAX_ELEMENTS).then_some(if shape.contains(&0) { 0 } else { full })
}

/// The message for a shape that has no [`element_count`].
pub fn too_many_elements(shape: &[i64]) -> String {
    format!("the number of elements of shape {shape:?} exceeds the limit of {MAX_ELEMENTS}")
}
