//! Tiles: where a nest reads several planes of an array around the one that it is at, and these do not fit the cache, it
//! goes through all planes a few rows at a time, so that each row comes from memory once; and parts of lines that are folded
//! together.

use super::nest::LoopNest;
use bh_kernel::{BufferRef, Dim, SlotMode, Stage};
use std::collections::HashMap;

/// The fewest iterations of the second dimension in a tile: rows at a tile's edge are read twice.
const LEAST: i64 = 16;

/// How many iterations of the nest's second dimension make a tile; `None` if all of them are done at once. `cache` is
/// how many bytes the planes that are in use may take.
pub(crate) fn choose(stage: &Stage, nest: &LoopNest, cache: i64) -> Option<i64> {
    let parameters = &stage.parameters;
    if nest.line_dim < 2 {
        return None;
    }
    // The views of each array, as the range of where they start.
    let mut arrays: HashMap<(BufferRef, &[i64]), (usize, i64, i64)> = HashMap::new();
    let mut bytes = 0;
    for (slot, form) in stage.kernel.slots.iter().enumerate() {
        let start = parameters.starts[slot];
        match form.mode {
            SlotMode::Read => {
                let views = (parameters.buffers[slot], parameters.stride(slot));
                let (_, low, high) = arrays.entry(views).or_insert((slot, start, start));
                (*low, *high) = ((*low).min(start), (*high).max(start));
            }
            SlotMode::Write => bytes += bytes_of(stage, slot, 1) as i64,
            SlotMode::Result | SlotMode::Index => {}
        }
    }
    let mut is_reused = false;
    for (slot, low, high) in arrays.into_values() {
        let pitch = parameters.stride(slot)[0].abs();
        let planes = if pitch > 0 { (high - low) / pitch + 1 } else { 1 };
        is_reused |= planes > 1;
        bytes += bytes_of(stage, slot, 1) as i64 * planes;
    }
    let rows = nest.extents[1];
    if !is_reused || bytes <= cache || rows == 0 {
        return None;
    }
    let fitting = (cache / (bytes / rows).max(1)).max(LEAST);
    // Equal tiles.
    let tiles = (rows + fitting - 1) / fitting;
    (tiles > 1).then(|| (rows + tiles - 1) / tiles)
}

/// Kept elements that are folded together, at most: what they are folded into fits the nearest cache.
pub(crate) const FOLDED: i64 = 4096;
/// The fewest: each call folds so many of all lines.
const LEAST_FOLDED: i64 = 256;
/// Bytes of the nearest cache that they may use.
const NEAREST: i64 = 24 << 10;

/// How many elements of kept lines to fold together: as many as the nearest cache holds, where all of what is folded reads
/// the same lines again.
pub(crate) fn folded(stage: &Stage, nest: &LoopNest) -> i64 {
    let (kernel, parameters) = (&stage.kernel, &stage.parameters);
    let stays = |slot: usize| {
        let strides = parameters.stride(slot);
        let mut folded = strides.iter().zip(&kernel.dims).filter(|(_, dim)| **dim == Dim::Reduced);
        strides[nest.line_dim] != 0 && folded.all(|(stride, _)| *stride == 0)
    };
    let (mut bytes, mut again) = (0, false);
    for (slot, form) in kernel.slots.iter().enumerate() {
        match form.mode {
            SlotMode::Result => bytes += form.dtype.size() as i64,
            SlotMode::Read if stays(slot) => {
                bytes += form.dtype.size() as i64;
                again = true;
            }
            _ => {}
        }
    }
    if again { (NEAREST / bytes.max(1)).clamp(LEAST_FOLDED, FOLDED) } else { FOLDED }
}

/// Bytes that a slot touches in one iteration of the dimensions before `first`.
pub(crate) fn bytes_of(stage: &Stage, slot: usize, first: usize) -> u64 {
    let parameters = &stage.parameters;
    let moves = |(&extent, &stride): (&i64, &i64)| if stride == 0 { 1 } else { extent };
    let elements: i64 = parameters.extents.iter().zip(parameters.stride(slot)).skip(first).map(moves).product();
    elements as u64 * stage.kernel.slots[slot].dtype.size() as u64
}
