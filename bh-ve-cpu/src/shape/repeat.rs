//! How slots lie where short rows may be one long row for compiled code.

use bh_kernel::{Slot, SlotMode, Stage};

/// How a slot repeats elements where short rows are one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepeatForm {
    /// Not at all: it goes on from row to row.
    None,
    /// Each row is an element, the next one of its neighbours.
    Again,
    /// All rows are the same neighbours.
    Cycle,
}

impl RepeatForm {
    /// How a slot with these strides from row to row and along rows of `row` elements does that; `None` if it does
    /// something else.
    pub(crate) fn of(slot: &Slot, (outer, inner): (i64, i64), row: i64) -> Option<RepeatForm> {
        let may = slot.mode == SlotMode::Read && !slot.dtype.is_complex();
        match (outer, inner) {
            _ if outer == inner.wrapping_mul(row) => Some(RepeatForm::None),
            (1, 0) if may => Some(RepeatForm::Again),
            (0, 1) if may => Some(RepeatForm::Cycle),
            _ => None,
        }
    }
}

/// Do the slots of a stage without folds go on from row to row or repeat elements?
pub(super) fn repeats(Stage { kernel, parameters }: &Stage) -> bool {
    let dim = parameters.extents.len() - 1;
    let repeats = |(index, slot): (usize, &Slot)| {
        let strides = parameters.stride(index);
        RepeatForm::of(slot, (strides[dim - 1], strides[dim]), parameters.extents[dim]).is_some()
    };
    !kernel.reduces() && kernel.slots.iter().enumerate().all(repeats)
}
