//! Margins: elements before and after lines that a rename leaves unwritten. They are copied with the lines, while the caches
//! have both versions of them; a pass of their own would move a cache line for each element.

use super::{Program, SlotPlan};
use crate::run::Loops;
use bh_bytecode::View;
use bh_fuser::lower::BufferRef;

/// The most bytes of a margin.
const WIDEST: usize = 64;
/// Lines whose margins are copied together are a multiple of this, as compiled code takes so many side by side.
const TOGETHER: i64 = bh_jit_abi::ROW_SETS as i64;

/// A copy of a few bytes for each line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Margin {
    /// The slots, which only have positions.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) bytes: usize,
}

impl Program {
    /// Takes the copy of a view from a base to its fresh buffer upon itself. False if the view does not go along the lines
    /// that are written there.
    pub(crate) fn add_margin(&mut self, base: u32, view: &View, size: usize) -> bool {
        let geometry = &self.geometry;
        let dims = geometry.line_dim;
        let whole = match &self.loops {
            Loops::Map(_) => !geometry.spans(),
            Loops::Fold(division) => division.folds_lines(geometry),
        };
        if !whole || dims == 0 || geometry.iterations() == 0 {
            return false;
        }
        let scaled = |stride: &i64| *stride as isize * size as isize;
        let steps: Vec<(i64, isize)> = view.shape().iter().copied().zip(view.stride().iter().map(scaled)).collect();
        // The last dimension may be along the line.
        let wide = steps.split_last().filter(|((_, stride), _)| *stride == size as isize);
        let wide = wide.map(|((count, _), outer)| (merged(outer), *count as usize * size));
        let forms = [Some((merged(&steps), size)), wide];
        let goes_along = |slot: &SlotPlan| {
            let lines: Vec<(i64, isize)> =
                geometry.extents.iter().copied().zip(slot.strides.iter().copied()).take(dims).collect();
            let lines = merged(&lines);
            forms.iter().flatten().find(|(outer, bytes)| *outer == lines && *bytes <= WIDEST).map(|(_, bytes)| *bytes)
        };
        let written = self.slots.iter().filter(|slot| slot.buffer == BufferRef::Fresh(base));
        let Some((slot, bytes)) = written.filter_map(|slot| Some((slot, goes_along(slot)?))).next() else {
            return false;
        };
        let start = view.start() as isize * size as isize;
        let to = SlotPlan { start, ..slot.clone() };
        let from = SlotPlan { buffer: BufferRef::Base(base), ..to.clone() };
        self.margins.push(Margin { from: self.slots.len(), to: self.slots.len() + 1, bytes });
        self.slots.extend([from, to]);
        true
    }

    /// How many lines may run before their margins are copied: as many as keep within `cache` bytes.
    pub(crate) fn lines_of_margins(&self, cache: i64) -> i64 {
        let kernel = self.slots.len() - 2 * self.margins.len();
        let bytes = |slot: &SlotPlan| self.geometry.line * slot.strides[self.geometry.line_dim].abs() as i64;
        let line: i64 = self.slots[..kernel].iter().map(bytes).sum();
        (cache / line.max(1) / TOGETHER * TOGETHER).max(TOGETHER)
    }
}

/// Dimensions without those of one iteration, and with neighbours together that follow each other in memory.
fn merged(dims: &[(i64, isize)]) -> Vec<(i64, isize)> {
    let mut merged: Vec<(i64, isize)> = Vec::with_capacity(dims.len());
    for &(extent, stride) in dims.iter().filter(|(extent, _)| *extent != 1) {
        match merged.last_mut() {
            Some(outer) if outer.1 == extent as isize * stride => *outer = (outer.0 * extent, stride),
            _ => merged.push((extent, stride)),
        }
    }
    merged
}
