//! Walking over some of the dimensions of a nest, with the positions of all slots.

use crate::program::SlotPlan;

/// The dimensions of one loop level, outermost first, as (dimension, extent).
#[derive(Clone, Debug, Default)]
pub(crate) struct Level(pub(crate) Vec<(usize, i64)>);

impl Level {
    /// The number of iterations.
    pub(crate) fn count(&self) -> i64 {
        self.0.iter().map(|&(_, extent)| extent).product()
    }

    /// Sets `to` to the positions at iteration `linear`, counted from `from`.
    pub(crate) fn seek(
        &self,
        linear: i64,
        slots: &[SlotPlan],
        from: &[*mut u8],
        to: &mut [*mut u8],
        index: &mut Vec<i64>,
    ) {
        to.copy_from_slice(from);
        index.clear();
        index.resize(self.0.len(), 0);
        if linear == 0 {
            return;
        }
        let mut rest = linear;
        for (at, &(dim, extent)) in self.0.iter().enumerate().rev() {
            index[at] = rest % extent;
            rest /= extent;
            for (position, slot) in to.iter_mut().zip(slots) {
                *position = position.wrapping_offset((index[at] as isize).wrapping_mul(slot.strides[dim]));
            }
        }
    }

    /// Goes to the next iteration.
    #[inline]
    pub(crate) fn next(&self, slots: &[SlotPlan], to: &mut [*mut u8], index: &mut [i64]) {
        for (at, &(dim, extent)) in self.0.iter().enumerate().rev() {
            index[at] += 1;
            if index[at] < extent {
                for (position, slot) in to.iter_mut().zip(slots) {
                    *position = position.wrapping_offset(slot.strides[dim]);
                }
                return;
            }
            index[at] = 0;
            for (position, slot) in to.iter_mut().zip(slots) {
                *position = position.wrapping_offset(slot.strides[dim].wrapping_mul(1 - extent as isize));
            }
        }
    }
}
