//! New versions of arrays that nests overwrite, as in renames, so that a tile does not read elements that it overwrites.

use super::chain::{Chain, Nest};
use super::grid::{Area, Grid, Position, area};
use crate::boxes::subtract;
use crate::{Arg, BufferRef, Dim, Kernel, Parameters, Slot, SlotMode, Stage, Step};
use bh_bytecode::{DType, base_flags};

/// A nest that writes most of an array leaves at most this fraction of it: one part of `MOST_COPIED`.
const MOST_COPIED: i64 = 4;

impl Chain<'_> {
    /// Makes a new version of each array that a nest overwrites for the most part and does not read. Returns the nests that copy the
    /// rest.
    pub(super) fn versions(&mut self, nest: &mut Nest) -> Vec<Nest> {
        let mut copies = Vec::new();
        for slot in 0..nest.arrays.len() {
            let old = nest.arrays[slot];
            let Some(rest) = self.rest(nest, slot) else { continue };
            let array = &self.arrays[old as usize];
            let (base, dtype, grid, offset) = (array.base, array.dtype, array.grid, array.offset);
            let new = self.arrays.renew(base);
            self.arrays[new as usize].offset = offset;
            nest.arrays[slot] = new;
            copies.extend(rest.into_iter().map(|area| {
                let place = Position { row: area[0].0, column: area[1].0, rest: area[2].0 };
                let (stage, places) = (copy(base, dtype, grid, area), vec![Some(place); 2]);
                Nest { block: nest.block, stage, arrays: vec![old, new], places }
            }));
        }
        copies
    }

    /// The boxes of the array of a slot that the nest does not write, if the array may get a new version.
    fn rest(&self, nest: &Nest, slot: usize) -> Option<Vec<Area>> {
        let number = nest.arrays[slot];
        let array = self.arrays.get(number as usize)?;
        let base = &self.batch.bases[array.base as usize];
        let uses = nest.arrays.iter().filter(|&&other| other == number).count();
        let writes = nest.stage.kernel.slots[slot].mode == SlotMode::Write && uses == 1;
        if !writes || base.has(base_flags::PINNED) || self.arrays.current(BufferRef::Base(array.base)) != Some(number) {
            return None;
        }
        let own = area(&nest.stage, slot, nest.places[slot]?)?;
        let whole = [array.rows()?, array.columns(), array.grid.column].map(|extent| (0, extent - 1));
        let mut rest = Vec::new();
        subtract(whole, &own, &mut rest);
        let copied: i64 = rest.iter().map(|area| lengths(area).product::<i64>()).sum();
        let new = base.has(base_flags::BORN);
        // An array that the nest writes first and as a whole needs no new version; the rest of an array that is born in this
        // batch may never be written.
        let wanted = if rest.is_empty() { array.written || array.read } else { !new };
        (wanted && copied <= base.len / MOST_COPIED).then_some(rest)
    }
}

fn lengths(area: &Area) -> impl Iterator<Item = i64> {
    area.iter().map(|(low, high)| high - low + 1)
}

/// A copy of an area of a base to its fresh buffer, cut as the nests of chains are.
fn copy(base: u32, dtype: DType, grid: Grid, area: Area) -> Stage {
    let (mut extents, mut strides): (Vec<i64>, _) = (lengths(&area).collect(), vec![grid.row, grid.column, 1]);
    if extents[2] == 1 {
        extents.truncate(2);
        strides.truncate(2);
    }
    let start = area[0].0 * grid.row + area[1].0 * grid.column + area[2].0;
    Stage {
        kernel: copy_kernel(dtype, extents.len()),
        parameters: Parameters {
            buffers: vec![BufferRef::Base(base), BufferRef::Fresh(base)],
            starts: vec![start; 2],
            strides: [strides.clone(), strides].concat(),
            extents,
            instrs: vec![0, 0],
            ..Parameters::default()
        },
    }
}

/// A kernel of `dims` dimensions that copies elements.
pub(super) fn copy_kernel(dtype: DType, dims: usize) -> Kernel {
    let slot = |mode, same_as| Slot { dtype, mode, same_as };
    Kernel {
        dims: vec![Dim::Kept; dims],
        slots: vec![slot(SlotMode::Read, 0), slot(SlotMode::Write, 1)],
        constants: Vec::new(),
        steps: vec![Step::Load { slot: 0 }, Step::Store { slot: 1, arg: Arg::Value(0) }],
    }
}
