//! Parts of arrays by a list of subscripts, as `a[1, 2:, None, ..., ::-1]` in NumPy: worked out on the small form of views, as
//! programs that loop over rows and elements make more parts than they record operations.

use crate::array::small_view::{Draft, SmallView};
use crate::{ArrayId, Recorder};
use bh_bytecode::MAX_RANK;
use bh_bytecode::subscript::{indexed, sliced};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

/// One subscript of [`Recorder::part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscript {
    /// One index of a dimension, which is removed; negative ones count from the end.
    Index(i64),
    /// Python's `start:stop:step`.
    Slice {
        /// First index; `None` for the end where the slice begins.
        start: Option<i64>,
        /// Index that the slice ends before; `None` for the end of the dimension.
        stop: Option<i64>,
        /// Distance of the indices.
        step: i64,
    },
    /// A whole dimension.
    Whole,
    /// A new dimension of extent 1.
    NewAxis,
    /// All dimensions that the others leave over.
    Ellipsis,
}

impl Recorder {
    /// The part of an array that a list of subscripts names, as a new handle on the same data; dimensions after the list are
    /// whole. As in Python, an index outside the array is an error, and bounds of slices are clipped. The list may have errors
    /// of its own, which are returned where they are met.
    pub fn part(&self, array: ArrayId, list: impl Iterator<Item = Result<Subscript>> + Clone) -> Result<ArrayId> {
        let mut state = self.state();
        let handle = state.find(array)?;
        let entry = state.handles.at(handle);
        // Inside of the base, as the array is.
        let (base, view) = (entry.base, entry.view.part(list)?);
        let part = state.new_handle(base, view)?;
        Ok(state.name(part))
    }
}

/// The effect of a list of subscripts on the number of dimensions.
#[derive(Default)]
struct Count {
    indices: usize,
    /// Indices, and subscripts that keep a dimension.
    consumed: usize,
    new: usize,
}

impl Count {
    #[inline]
    fn of(list: impl Iterator<Item = Result<Subscript>>) -> Count {
        let mut count = Count::default();
        for entry in list.flatten() {
            match entry {
                Subscript::Index(_) => count.indices += 1,
                Subscript::NewAxis => count.new += 1,
                _ => {}
            }
            count.consumed += usize::from(!matches!(entry, Subscript::NewAxis | Subscript::Ellipsis));
        }
        count
    }
}

impl SmallView {
    /// See [`Recorder::part`].
    #[inline]
    fn part(&self, list: impl Iterator<Item = Result<Subscript>> + Clone) -> Result<SmallView> {
        let count = Count::of(list.clone());
        let rank = self.rank();
        let Some(left_over) = rank.checked_sub(count.consumed) else { return Err(self.too_many(count.consumed)) };
        // A list that makes more dimensions than there may be is refused below, before it fills more.
        let mut draft = Draft::new((rank + count.new - count.indices).min(MAX_RANK));
        let (shape, stride) = draft.dims();
        let (extents, steps) = (self.shape(), self.stride());
        let (mut start, mut left_over) = (self.start, Some(left_over));
        // The next dimensions of this view and of the part.
        let (mut from, mut to) = (0, 0);
        for entry in list {
            match entry? {
                Subscript::Index(index) => {
                    let at = indexed(extents[from], index).ok_or_else(|| outside(index, to, extents[from]))?;
                    start += at * steps[from];
                    from += 1;
                }
                Subscript::Slice { step: 0, .. } => return Err(bounds("slice step is zero")),
                Subscript::Slice { start: first, stop, step } => {
                    let (first, count) = sliced(extents[from], first, stop, step);
                    // Products that the extent does not bound may overflow.
                    (shape[to], stride[to]) = (count, if count > 1 { steps[from] * step } else { 0 });
                    start += if count > 0 { first * steps[from] } else { 0 };
                    (from, to) = (from + 1, to + 1);
                }
                Subscript::NewAxis => {
                    if to + rank - from == MAX_RANK {
                        return Err(bounds(format!(
                            "rank {} exceeds the limit of {MAX_RANK} dimensions",
                            MAX_RANK + 1
                        )));
                    }
                    (shape[to], stride[to]) = (1, 0);
                    to += 1;
                }
                kept => {
                    let count = match kept {
                        Subscript::Whole => 1,
                        _ => left_over.take().ok_or_else(two_ellipses)?,
                    };
                    shape[to..to + count].copy_from_slice(&extents[from..from + count]);
                    stride[to..to + count].copy_from_slice(&steps[from..from + count]);
                    (from, to) = (from + count, to + count);
                }
            }
        }
        shape[to..].copy_from_slice(&extents[from..]);
        stride[to..].copy_from_slice(&steps[from..]);
        // No two elements of a part are one of the array.
        Ok(draft.finish(start, self.injective))
    }

    #[cold]
    fn too_many(&self, count: usize) -> Error {
        let text = format!("{count} subscripts are given for an array of shape {:?}", self.shape());
        Error::new(status::SHAPE, text)
    }
}

#[cold]
fn bounds(text: impl Into<String>) -> Error {
    Error::new(status::BOUNDS, text.into())
}

#[cold]
fn outside(index: i64, dim: usize, extent: i64) -> Error {
    bounds(format!("index {index} is out of range for dimension {dim} of extent {extent}"))
}

#[cold]
fn two_ellipses() -> Error {
    Error::new(status::ARGUMENT, "more than one ellipsis is given")
}

#[cfg(test)]
mod tests;
