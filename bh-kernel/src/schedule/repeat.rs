//! How slots lie where short rows may be one long row for compiled code.

use crate::{Slot, SlotMode, Stage, Stride};

/// How a slot with these strides from row to row and along rows of `row` elements lies in one row of all of them: it goes on from
/// row to row, or each row is one element, the next one of its neighbours, or all rows are the same neighbours. `None` if it does
/// something else.
pub fn joined(slot: &Slot, (outer, inner): (i64, i64), row: i64) -> Option<Stride> {
    let may = slot.mode == SlotMode::Read && !slot.dtype.is_complex();
    match (outer, inner) {
        _ if outer == inner.wrapping_mul(row) => Some(Stride::of(inner)),
        (1, 0) if may => Some(Stride::Again),
        (0, 1) if may => Some(Stride::Cycle),
        _ => None,
    }
}

/// Do the slots of a stage without folds go on from row to row or repeat elements?
pub(super) fn repeats(Stage { kernel, parameters }: &Stage) -> bool {
    let dim = parameters.extents.len() - 1;
    let repeats = |(index, slot): (usize, &Slot)| {
        let strides = parameters.stride(index);
        joined(slot, (strides[dim - 1], strides[dim]), parameters.extents[dim]).is_some()
    };
    !kernel.reduces() && kernel.slots.iter().enumerate().all(repeats)
}
