//! Rows: an array of a window is cut into rows of one pitch, and every nest advances one row at each position of its
//! outermost loop, or of several iterations of it.

use crate::boxes::subtract;
use crate::tiling::Steps;
use crate::{BufferRef, SlotMode, Stage};

/// The rows that a slot touches at position 0; at position `p` they lie `p` rows further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rows {
    pub(super) first: i64,
    pub(super) last: i64,
}

/// A box of elements that are surely touched, or the hull of those that may be: rows and columns.
pub(super) type Region = [(i64, i64); 2];

/// The lowest and highest offset that the inner loops add.
fn inner_span(stage: &Stage, slot: usize) -> (i64, i64) {
    let parameters = &stage.parameters;
    let (mut low, mut high) = (0, 0);
    for (&extent, &stride) in parameters.extents.iter().zip(parameters.stride(slot)).skip(1) {
        let reach = stride.saturating_mul(extent - 1);
        low += reach.min(0);
        high += reach.max(0);
    }
    (low, high)
}

/// Does the slot address memory, other elements at each iteration of the outermost loop? Results do if that loop is
/// kept: the fold of an iteration is complete when it ends.
fn walks(stage: &Stage, slot: usize) -> bool {
    stage.kernel.slots[slot].mode != SlotMode::Index
        && stage.parameters.buffers[slot] != BufferRef::None
        && stage.parameters.stride(slot)[0] > 0
}

/// The stride along the outermost loop; 0 if the loop has one iteration, so that any pitch fits.
fn outer_stride(stage: &Stage, slot: usize) -> i64 {
    stage.parameters.stride(slot)[0]
}

/// How a nest steps through rows, given the pitch of each slot's array: as its first written array asks, or, if it writes
/// none, the first that it reads.
pub(super) fn steps(stage: &Stage, pitch: impl Fn(usize) -> i64) -> Option<Steps> {
    let slots = &stage.kernel.slots;
    let fits = |&slot: &usize| walks(stage, slot) && pitch(slot) % outer_stride(stage, slot) == 0;
    let guide = (0..slots.len())
        .filter(|&slot| slots[slot].mode == SlotMode::Write)
        .find(fits)
        .or_else(|| (0..slots.len()).find(fits))?;
    let (pitch, stride) = (pitch(guide), outer_stride(stage, guide));
    let per = pitch / stride;
    let phase = stage.parameters.starts[guide].rem_euclid(pitch) / stride;
    let phase = if per == 1 { 0 } else { phase };
    let extent = stage.parameters.extents[0];
    Some(Steps { per, phase, positions: (extent + phase + per - 1) / per })
}

/// The rows of a slot, or `None` if it does not advance one row at each position.
pub(super) fn rows(stage: &Stage, slot: usize, steps: Steps, pitch: i64) -> Option<Rows> {
    let stride = outer_stride(stage, slot);
    if !walks(stage, slot) || stride.checked_mul(steps.per) != Some(pitch) {
        return None;
    }
    let start = stage.parameters.starts[slot] - steps.phase * stride;
    let (low, high) = inner_span(stage, slot);
    let last = start + (steps.per - 1) * stride + high;
    Some(Rows { first: (start + low).div_euclid(pitch), last: last.div_euclid(pitch) })
}

/// The elements that a slot with one row for each position touches. `exact` asks for elements that are surely touched;
/// `None` if that cannot be told.
pub(super) fn region(stage: &Stage, slot: usize, steps: Steps, rows: Rows, pitch: i64, exact: bool) -> Option<Region> {
    let parameters = &stage.parameters;
    let stride = outer_stride(stage, slot);
    let range = (rows.first, rows.last + steps.positions - 1);
    if rows.first != rows.last {
        return (!exact).then_some([range, (0, pitch - 1)]);
    }
    let (low, high) = inner_span(stage, slot);
    let start = parameters.starts[slot];
    let moving = parameters.extents.iter().zip(parameters.stride(slot)).skip(1).filter(|(_, stride)| **stride != 0);
    let inner: i64 = moving.map(|(extent, _)| extent).product();
    let (first, last, count) = if steps.per == 1 {
        (start + low, start + high, inner)
    } else if steps.positions == 1 {
        let extent = parameters.extents[0];
        (start + low, start + (extent - 1) * stride + high, extent * inner)
    } else if steps.phase == 0 && parameters.extents[0] % steps.per == 0 {
        (start + low, start + (steps.per - 1) * stride + high, steps.per * inner)
    } else {
        return (!exact).then_some([range, (0, pitch - 1)]);
    };
    let column = first.rem_euclid(pitch);
    let columns = (column, column + last - first);
    // Distinct elements fill their hull if there are as many.
    (!exact || count == last - first + 1).then_some([range, columns])
}

/// Do the boxes together contain the region?
pub(super) fn covered(region: Region, boxes: &[Region]) -> bool {
    const PIECES: usize = 64;
    let mut rest = vec![region];
    for other in boxes {
        let mut left = Vec::with_capacity(rest.len());
        for piece in rest {
            subtract(piece, other, &mut left);
        }
        if left.is_empty() {
            return true;
        }
        if left.len() > PIECES {
            return false;
        }
        rest = left;
    }
    false
}
