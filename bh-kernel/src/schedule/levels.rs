//! Walking over some of the dimensions of a nest, with the positions of all slots.

use super::chunks::split;
use crate::BufferRef;

/// Where a slot's elements lie, in bytes (in numbers for index views).
#[derive(Clone, Debug)]
pub struct SlotPlan {
    /// Its memory.
    pub buffer: BufferRef,
    /// Where its first element is.
    pub start: isize,
    /// One for each dimension of the nest.
    pub strides: Vec<isize>,
    /// From line to line of a plane; see [`Lines::plane_stride`](super::lines::Lines::plane_stride).
    pub plane: isize,
}

/// The dimensions of one loop level, outermost first, as (dimension, extent).
#[derive(Clone, Debug, Default)]
pub struct LoopLevel(pub Vec<(usize, i64)>);

impl LoopLevel {
    /// These dimensions of a nest.
    pub fn of(extents: &[i64], dims: impl Iterator<Item = usize>) -> LoopLevel {
        LoopLevel(dims.map(|dim| (dim, extents[dim])).collect())
    }

    /// The number of iterations.
    #[inline]
    pub fn count(&self) -> i64 {
        self.0.iter().map(|&(_, extent)| extent).product()
    }

    /// The number of iterations within one of the outermost loop.
    #[inline]
    pub fn inner(&self) -> i64 {
        self.0.iter().skip(1).map(|&(_, extent)| extent).product()
    }

    /// Sets `to` to the positions at iteration `linear`, counted from `from`.
    #[inline]
    pub fn seek(&self, linear: i64, slots: &[SlotPlan], from: &[*mut u8], to: &mut [*mut u8], index: &mut Vec<i64>) {
        to.copy_from_slice(from);
        index.clear();
        index.resize(self.0.len(), 0);
        if linear == 0 {
            return;
        }
        let mut rest = linear;
        for (at, &(dim, extent)) in self.0.iter().enumerate().rev() {
            (rest, index[at]) = split(rest, extent);
            for (position, slot) in to.iter_mut().zip(slots) {
                *position = position.wrapping_offset((index[at] as isize).wrapping_mul(slot.strides[dim]));
            }
        }
    }

    /// The iterations from here on to the end of the innermost dimension; 1 without dimensions.
    #[inline]
    pub fn ahead(&self, index: &[i64]) -> i64 {
        self.0.last().zip(index.last()).map_or(1, |(&(_, extent), at)| extent - at)
    }

    /// Goes to the next iteration.
    #[inline]
    pub fn next(&self, slots: &[SlotPlan], to: &mut [*mut u8], index: &mut [i64]) {
        self.skip(1, slots, to, index);
    }

    /// Goes `by` iterations on, at most [`LoopLevel::ahead`].
    #[inline]
    pub fn skip(&self, by: i64, slots: &[SlotPlan], to: &mut [*mut u8], index: &mut [i64]) {
        let mut by = by;
        for (at, &(dim, extent)) in self.0.iter().enumerate().rev() {
            index[at] += by;
            let wraps = index[at] >= extent;
            if wraps {
                // Back to the first, and on along the next dimension.
                (index[at], by) = (0, by - extent);
            }
            for (position, slot) in to.iter_mut().zip(slots) {
                *position = position.wrapping_offset(slot.strides[dim].wrapping_mul(by as isize));
            }
            if !wraps {
                return;
            }
            by = 1;
        }
    }
}
