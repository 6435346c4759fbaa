//! Collecting a chain of blocks that may run tile by tile, with the arrays that their nests touch.

use super::grid::{self, Grid, Position};
use super::part::{Area, Block, Parts, area};
use super::split::split;
use crate::boxes::meet;
use crate::tiling::TileRename;
use crate::{BufferRef, SlotMode, Stage};
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::{BatchRef, Opcode};

/// The most nests of a chain.
const NESTS: usize = 256;
/// The most slots of its nests.
const SLOTS: usize = 2048;

/// The most rows, or columns, that lie between what a nest touches of one array at a time.
const SPREAD: i64 = 64;

/// Rows, columns, and elements of these.
pub(super) const AXES: [usize; 3] = [0, 1, 2];

/// The array of a slot that addresses no memory.
pub(super) const NONE: u32 = u32::MAX;

/// An array of a chain: a version of a base.
pub(super) struct Array {
    pub(super) base: u32,
    pub(super) grid: Grid,
    /// Bytes of an element.
    pub(super) size: i64,
    /// Made by a rename in the chain.
    pub(super) fresh: bool,
    /// A rename in the chain has put another one in its place.
    pub(super) replaced: bool,
    /// It becomes the other end of an alias.
    pub(super) aliased: bool,
    /// A nest writes it, or reads it.
    pub(super) written: bool,
    pub(super) read: bool,
    /// Does it have elements that no nest has written where one reads them?
    pub(super) needs_old: bool,
    /// A nest touches it otherwise than row by row and column by column.
    pub(super) irregular: bool,
    /// The boxes that nests have written, and the one that is all of it.
    boxes: Vec<Area>,
    pub(super) whole: bool,
    /// Its first row, column and element of that, as all arrays of the chain count them.
    pub(super) offset: Option<[i64; 3]>,
}

/// A nest of a chain.
pub(super) struct Nest {
    pub(super) block: u32,
    pub(super) stage: Stage,
    /// The array of each slot, or [`NONE`].
    pub(super) arrays: Vec<u32>,
    /// Where each slot is; `None` where it goes its own way.
    pub(super) places: Vec<Option<Position>>,
}

/// A chain under construction.
pub(super) struct Chain<'a> {
    pub(super) batch: &'a BatchRef<'a>,
    parts: &'a Parts<'a>,
    pub(super) first: u32,
    pub(super) end: u32,
    pub(super) kernels: u32,
    /// The last block that was taken in computes something.
    pub(super) computed: bool,
    /// No further block may follow.
    pub(super) ends: bool,
    slots: usize,
    pub(super) nests: Vec<Nest>,
    pub(super) arrays: Vec<Array>,
    pub(super) renames: Vec<TileRename>,
    /// The array that each base is now.
    pub(super) current: Vec<u32>,
}

impl<'a> Chain<'a> {
    pub(super) fn new(parts: &'a Parts<'a>, first: u32) -> Chain<'a> {
        let batch = parts.survey.batch;
        Chain {
            batch,
            parts,
            first,
            end: first,
            kernels: 0,
            computed: false,
            ends: false,
            slots: 0,
            nests: Vec::new(),
            arrays: Vec::new(),
            renames: Vec::new(),
            current: vec![NONE; batch.bases.len()],
        }
    }

    /// Takes in the next block, if it may.
    pub(super) fn extend(&mut self) -> bool {
        let parts = self.parts;
        let (Some(block), false) = (parts.blocks.get(self.end as usize), self.ends) else { return false };
        let record = &self.batch.blocks[self.end as usize];
        self.computed = match block {
            Block::Apart => return false,
            Block::Nothing if self.nests.is_empty() => return false,
            Block::Nothing => false,
            Block::Stages(stages) => {
                if !self.block(stages) {
                    return false;
                }
                self.kernels += 1;
                true
            }
        };
        self.end += 1;
        let last = |&instr: &u32| matches!(self.batch.instrs[instr as usize].opcode, Opcode::Free | Opcode::Sync);
        self.ends = self.batch.block_instrs(record).iter().any(last)
            || self.batch.renames(record).iter().any(|rename| rename.alias != NO_BASE)
            || self.nests.len() >= NESTS
            || self.slots >= SLOTS;
        true
    }

    /// Bytes of all bases that nests touch.
    pub(super) fn bytes(&self) -> u64 {
        let mut bases: Vec<u32> = self.arrays.iter().map(|array| array.base).collect();
        bases.sort_unstable();
        bases.dedup();
        bases.iter().map(|&base| self.batch.bases[base as usize].bytes()).fold(0, u64::saturating_add)
    }

    /// The first row, column and element of an array, as all arrays of the chain count them. Threads do all elements of a column
    /// together, so that these do not count.
    pub(super) fn offset(&self, array: &Array) -> [i64; 3] {
        let [row, column, element] = array.offset.unwrap_or_default();
        [row, column, if self.parts.threads { 0 } else { element }]
    }

    /// Where a slot is at the first iteration, along all axes that count.
    pub(super) fn at(&self, place: Position) -> [i64; 3] {
        [place.row, place.column, if self.parts.threads { 0 } else { place.rest }]
    }

    fn block(&mut self, stages: &[Stage]) -> bool {
        let block = self.end;
        let record = &self.batch.blocks[block as usize];
        let mut fresh: Vec<(u32, u32)> = Vec::new();
        for rename in self.batch.renames(record) {
            // What the base was must be known before the new array takes its place.
            self.known(rename.base);
            fresh.push((rename.base, self.array(rename.base, true)));
        }
        for stage in stages {
            if !self.nest(block, stage, &fresh) {
                return false;
            }
        }
        for rename in self.batch.renames(record) {
            let alias = (rename.alias != NO_BASE).then_some((rename.alias, rename.alias_view));
            self.renames.push(TileRename { base: rename.base, alias });
        }
        for (base, array) in fresh {
            let old = std::mem::replace(&mut self.current[base as usize], array);
            self.arrays[old as usize].replaced = true;
            let aliased = self.renames.iter().any(|rename| rename.base == base && rename.alias.is_some());
            self.arrays[array as usize].aliased = aliased;
        }
        true
    }

    pub(super) fn array(&mut self, base: u32, fresh: bool) -> u32 {
        self.arrays.push(Array {
            base,
            grid: self.parts.grids[base as usize],
            size: self.batch.bases[base as usize].dtype().size() as i64,
            fresh,
            replaced: false,
            aliased: false,
            written: false,
            read: false,
            needs_old: false,
            irregular: false,
            boxes: Vec::new(),
            whole: fresh,
            offset: None,
        });
        (self.arrays.len() - 1) as u32
    }

    /// The array that a base is now.
    fn known(&mut self, base: u32) -> u32 {
        if self.current[base as usize] == NONE {
            self.current[base as usize] = self.array(base, false);
        }
        self.current[base as usize]
    }

    /// Does the array's content end in the chain?
    pub(super) fn dies(&self, array: &Array) -> bool {
        let ends = self.parts.end(array.base).is_some_and(|last| last < self.end);
        array.replaced || (ends && !array.aliased)
    }

    /// Takes in a nest, or one for each array that it writes. False if it cannot run in tiles with the others.
    fn nest(&mut self, block: u32, stage: &Stage, fresh: &[(u32, u32)]) -> bool {
        if let Some(mut nest) = self.placed(block, stage, fresh) {
            let copies = if self.parts.threads { self.versions(&mut nest) } else { Vec::new() };
            self.take(nest);
            copies.into_iter().for_each(|copy| self.take(copy));
            return true;
        }
        let mut written: Vec<(u32, Area)> = Vec::new();
        for stage in split(stage) {
            let Some(nest) = self.placed(block, &stage, fresh) else { return false };
            for (slot, &array) in nest.arrays.iter().enumerate().filter(|(_, array)| **array != NONE) {
                let Some(own) = nest.places[slot].and_then(|place| area(&nest.stage, slot, place)) else {
                    if self.arrays[array as usize].written {
                        return false;
                    }
                    continue;
                };
                if nest.stage.kernel.slots[slot].mode.writes() {
                    written.push((array, own));
                } else if written.iter().any(|(other, there)| *other == array && meet(&own, there)) {
                    // It must find what was there before.
                    return false;
                }
            }
            self.take(nest);
        }
        !written.is_empty()
    }

    /// A nest with the arrays of its slots and their places; `None` if it does not walk all that is written in one way.
    fn placed(&mut self, block: u32, stage: &Stage, fresh: &[(u32, u32)]) -> Option<Nest> {
        let slots = &stage.kernel.slots;
        let arrays: Vec<u32> = stage
            .parameters
            .buffers
            .iter()
            .map(|&buffer| match buffer {
                BufferRef::Base(base) => self.known(base),
                BufferRef::Fresh(base) => fresh.iter().find(|known| known.0 == base).map_or(NONE, |known| known.1),
                BufferRef::Temporary(_) | BufferRef::None => NONE,
            })
            .collect();
        let guide = slots.iter().position(|slot| slot.mode == SlotMode::Write)?;
        let grid = self.arrays.get(arrays[guide] as usize)?.grid;
        let stage = grid::cut(stage, guide, grid)?;
        let place = |slot: usize| {
            let array = self.arrays.get(arrays[slot] as usize)?;
            grid::place(&stage, slot, array.grid).filter(|_| self.parts.threads || by_element(&stage, slot))
        };
        let places: Vec<Option<Position>> = (0..arrays.len()).map(place).collect();
        for (slot, &number) in arrays.iter().enumerate() {
            let Some(array) = self.arrays.get(number as usize) else { continue };
            let own = || (0..arrays.len()).filter(|&other| arrays[other] == number);
            if !array.written && !own().any(|other| slots[other].mode.writes()) {
                continue;
            }
            // What is written is so row by row and column by column, by all nests.
            let place = places[slot].filter(|_| !array.irregular)?;
            let far = |other: Position| (0..3).any(|axis| (self.at(place)[axis] - self.at(other)[axis]).abs() > SPREAD);
            if own().filter_map(|other| places[other]).any(far) {
                return None;
            }
        }
        Some(Nest { block, stage, arrays, places })
    }

    fn take(&mut self, nest: Nest) {
        self.slots += nest.arrays.len();
        for (slot, &array) in nest.arrays.iter().enumerate() {
            let Some(array) = self.arrays.get_mut(array as usize) else { continue };
            array.irregular |= nest.places[slot].is_none();
            array.written |= nest.stage.kernel.slots[slot].mode.writes();
        }
        self.shift(&nest);
        self.note(&nest);
        self.nests.push(nest);
    }

    /// Gives arrays that are new their place beside those that are known.
    fn shift(&mut self, nest: &Nest) {
        let slots = || nest.arrays.iter().zip(&nest.places).filter_map(|(&array, place)| Some((array, (*place)?)));
        // Where nothing is known, the first array begins the count.
        if slots().all(|(array, _)| self.arrays[array as usize].offset.is_none())
            && let Some((array, _)) = slots().next()
        {
            self.arrays[array as usize].offset = Some([0; 3]);
        }
        let mut seen: Option<[(i64, i64); 3]> = None;
        for (array, at) in slots() {
            let Some(offset) = self.arrays[array as usize].offset else { continue };
            let there = AXES.map(|axis| self.at(at)[axis] + offset[axis]);
            let known = seen.unwrap_or(there.map(|there| (there, there)));
            seen = Some(AXES.map(|axis| (known[axis].0.min(there[axis]), known[axis].1.max(there[axis]))));
        }
        let middle = seen.map(|seen| seen.map(|(low, high)| (low + high).div_euclid(2)));
        for (array, at) in slots() {
            let offset = middle.map_or([0; 3], |middle| AXES.map(|axis| middle[axis] - self.at(at)[axis]));
            self.arrays[array as usize].offset.get_or_insert(offset);
        }
    }

    /// Notes what a nest reads and writes of arrays that are written.
    fn note(&mut self, nest: &Nest) {
        for write in [false, true] {
            for (slot, &array) in nest.arrays.iter().enumerate() {
                let Some(array) = self.arrays.get_mut(array as usize) else { continue };
                if nest.stage.kernel.slots[slot].mode.writes() != write {
                    continue;
                }
                let area = nest.places[slot].and_then(|place| area(&nest.stage, slot, place));
                if write {
                    array.boxes.extend(area);
                    let whole = [array.rows(self.batch), Some(array.columns()), Some(array.grid.column)];
                    let covers = |area: Area| {
                        area.iter().zip(whole).all(|(&(low, high), extent)| low == 0 && Some(high + 1) == extent)
                    };
                    array.whole |= area.is_some_and(covers);
                } else {
                    let inside = |area: &Area, other: &Area| {
                        area.iter().zip(other).all(|(own, other)| own.0 >= other.0 && own.1 <= other.1)
                    };
                    let known = area.is_some_and(|area| array.boxes.iter().any(|other| inside(&area, other)));
                    array.read = true;
                    array.needs_old |= !array.fresh && !array.whole && !known;
                }
            }
        }
    }
}

impl Array {
    /// Rows of it, if they are all of it.
    pub(super) fn rows(&self, batch: &BatchRef<'_>) -> Option<i64> {
        let len = batch.bases[self.base as usize].len;
        (len % self.grid.row == 0).then_some(len / self.grid.row)
    }

    pub(super) fn columns(&self) -> i64 {
        self.grid.row / self.grid.column
    }
}

/// Does a nest's innermost loop, beside those of rows and columns, go from element to element of a slot?
fn by_element(stage: &Stage, slot: usize) -> bool {
    let (extents, strides) = (&stage.parameters.extents, stage.parameters.stride(slot));
    let dims = extents.iter().zip(strides).skip(2);
    extents.len() <= 3 && dims.into_iter().all(|(extent, stride)| *extent == 1 || *stride == 1)
}
