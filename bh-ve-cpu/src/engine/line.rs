//! The fold of one line by the calling thread, as planned kernels do it.

use super::elementwise::{BLOCK, Buffers};
use crate::primitives::{LANES, Primitives};
use bh_bytecode::neutral::neutral;
use bh_bytecode::{AxisOrder, DType, Opcode};

/// The elements of an operand along a line: the first one, and how far apart they are, in elements.
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub(super) first: *const u8,
    pub(super) stride: isize,
}

/// The axis that a reduction folds, and its number of elements, if it folds all of a shape forward and no other axis has more
/// than one element.
pub(super) fn only_axis(shape: &[i64], axes: u16, order: u16) -> Option<(usize, i64)> {
    let all = (1u32 << shape.len()) - 1;
    let mut long = (0..shape.len()).filter(|&axis| shape[axis] != 1);
    let axis = long.next().or_else(|| shape.len().checked_sub(1))?;
    let backward = AxisOrder::decode(order, shape.len()).map_or(0, |order| order.backward());
    let fits = u32::from(axes) == all && long.next().is_none() && shape[axis] > 0 && backward == 0;
    fits.then(|| (axis, shape[axis]))
}

/// Folds a line into `out`: element `i` goes into lane `i % 32`, and the lanes are folded by halving; where the mask is false,
/// there is the neutral element. False, and nothing has happened, if there is no primitive for it.
///
/// # Safety
/// The lines must have so many elements, those of the mask truth values, and `out` room for one.
pub(super) unsafe fn fold(
    primitives: Primitives,
    (opcode, dtype): (Opcode, DType),
    elements: usize,
    out: *mut u8,
    from: Line,
    mask: Option<Line>,
) -> bool {
    let Some((into_lanes, join)) = opcode.combiner().and_then(|combiner| primitives.lanes(combiner, dtype)) else {
        return false;
    };
    let masked = match mask {
        None => None,
        Some(mask) => match primitives.elementwise(Opcode::Where, 0, dtype, dtype) {
            Some(select) => Some((select, mask)),
            None => return false,
        },
    };
    let size = dtype.size();
    let mut lanes = Buffers::new();
    let [lanes, block, others, bits] = lanes.0.each_mut().map(|buffer| buffer.as_mut_ptr().cast::<u8>());
    let (step, null) = (from.stride * size as isize, std::ptr::null());
    let identity = neutral(opcode, dtype);
    // SAFETY: promised by the caller; a buffer has room for the lanes, and for a block, of the largest type.
    unsafe {
        primitives.fill(size)(LANES, lanes, identity.as_ptr());
        if masked.is_some() {
            primitives.fill(size)(BLOCK, others, identity.as_ptr());
        }
        if from.stride == 1 && masked.is_none() {
            into_lanes(elements, lanes, from.first, null);
        } else {
            // Blocks are whole numbers of lanes.
            for first in (0..elements).step_by(BLOCK) {
                let count = BLOCK.min(elements - first);
                let position = from.first.wrapping_offset(first as isize * step);
                primitives.gather_strided(size)(count, block, position, step);
                if let Some((select, mask)) = masked {
                    let position = mask.first.wrapping_offset(first as isize * mask.stride);
                    primitives.gather_strided(1)(count, bits, position, mask.stride);
                    select(count, block, bits, block, others);
                }
                into_lanes(count, lanes, block, null);
            }
        }
        join(lanes, lanes);
        std::ptr::copy_nonoverlapping(lanes, out, size);
    }
    true
}
