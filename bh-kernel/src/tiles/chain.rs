//! Collecting a chain of blocks that may run tile by tile, with the arrays that their nests touch.

use super::draft::Manner;
use super::grid::{self, Area, Grid, Position, area};
use super::split::split;
use crate::arrays::{self, Arrays, NO_ARRAY};
use crate::boxes::meet;
use crate::survey::Survey;
use crate::{Lowered, SlotMode, Stage};
use bh_bytecode::{BatchRef, Opcode};

/// The most nests of a chain.
const NESTS: usize = 256;
/// The most slots of its nests.
const SLOTS: usize = 2048;

/// The most rows, or columns, between two elements of one array that a nest touches at a time.
const SPREAD: i64 = 64;

/// Rows, columns, and elements of these.
pub(super) const AXES: [usize; 3] = [0, 1, 2];

/// An array of a chain.
pub(super) type Array = arrays::Array<Facts>;

/// The facts that tiles need of an array.
pub(super) struct Facts {
    pub(super) grid: Grid,
    /// A nest reads it.
    pub(super) read: bool,
    /// Does it have elements that no nest has written where one reads them?
    pub(super) needs_old: bool,
    /// The boxes that nests have written, and whether one of them is all of it.
    boxes: Vec<Area>,
    pub(super) whole: bool,
    /// Its first row, column and element of that, as all arrays of the chain count them.
    pub(super) offset: Option<[i64; 3]>,
}

impl Facts {
    fn new(survey: &Survey<'_>, base: u32) -> Facts {
        let grid = survey.grids()[base as usize];
        Facts { grid, read: false, needs_old: false, boxes: Vec::new(), whole: false, offset: None }
    }
}

/// A nest of a chain.
pub(super) struct Nest {
    pub(super) block: u32,
    pub(super) stage: Stage,
    /// The array of each slot, or [`NO_ARRAY`].
    pub(super) arrays: Vec<u32>,
    /// Where each slot is; `None` if it does not go by rows and columns.
    pub(super) places: Vec<Option<Position>>,
}

/// A chain under construction.
pub(super) struct Chain<'a> {
    pub(super) batch: &'a BatchRef<'a>,
    pub(super) survey: &'a Survey<'a>,
    pub(super) manner: Manner,
    pub(super) first: u32,
    pub(super) end: u32,
    pub(super) kernels: u32,
    /// The last block that was taken in computes something.
    pub(super) computed: bool,
    /// No further block may follow.
    pub(super) ends: bool,
    slots: usize,
    pub(super) nests: Vec<Nest>,
    pub(super) arrays: Arrays<'a, Facts>,
}

impl<'a> Chain<'a> {
    pub(super) fn new(survey: &'a Survey<'a>, manner: Manner, first: u32) -> Chain<'a> {
        Chain {
            batch: survey.batch,
            survey,
            manner,
            first,
            end: first,
            kernels: 0,
            computed: false,
            ends: false,
            slots: 0,
            nests: Vec::new(),
            arrays: Arrays::new(survey, Facts::new),
        }
    }

    /// Takes in the next block, if it may.
    pub(super) fn extend(&mut self) -> bool {
        if self.ends || self.end as usize == self.batch.blocks.len() {
            return false;
        }
        self.computed = match self.survey.block(self.end) {
            Lowered::Nothing if self.nests.is_empty() => return false,
            Lowered::Nothing => false,
            _ if !self.survey.is_elementwise(self.end) || !self.block() => return false,
            _ => {
                self.kernels += 1;
                true
            }
        };
        self.ends = self.survey.ends(self.end, &[Opcode::Free, Opcode::Sync])
            || self.nests.len() >= NESTS
            || self.slots >= SLOTS;
        self.end += 1;
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
        [row, column, if self.by_threads() { 0 } else { element }]
    }

    /// Where a slot is at the first iteration, along all axes that count.
    pub(super) fn at(&self, place: Position) -> [i64; 3] {
        [place.row, place.column, if self.by_threads() { 0 } else { place.rest }]
    }

    fn block(&mut self) -> bool {
        self.arrays.begin(self.end, &[]);
        let survey = self.survey;
        let joined = survey.stages(self.end).all(|stage| self.nest(stage));
        self.arrays.end();
        joined
    }

    /// Do threads do the tiles?
    fn by_threads(&self) -> bool {
        self.manner == Manner::Thread
    }

    /// Takes in a nest, or one for each array that it writes. False if it cannot run in tiles with the others.
    fn nest(&mut self, stage: &Stage) -> bool {
        if let Some(mut nest) = self.placed(stage) {
            let copies = if self.by_threads() { self.versions(&mut nest) } else { Vec::new() };
            self.take(nest);
            copies.into_iter().for_each(|copy| self.take(copy));
            return true;
        }
        let mut written: Vec<(u32, Area)> = Vec::new();
        for stage in split(stage) {
            let Some(nest) = self.placed(&stage) else { return false };
            for (slot, &array) in nest.arrays.iter().enumerate().filter(|(_, array)| **array != NO_ARRAY) {
                let Some(own) = nest.places[slot].and_then(|place| area(&nest.stage, slot, place)) else {
                    if self.arrays[array as usize].written {
                        return false;
                    }
                    continue;
                };
                if nest.stage.kernel.slots[slot].mode.writes() {
                    written.push((array, own));
                } else if written.iter().any(|(other, there)| *other == array && meet(&own, there)) {
                    // It must find the earlier elements.
                    return false;
                }
            }
            self.take(nest);
        }
        !written.is_empty()
    }

    /// A nest with the arrays of its slots and their places; `None` if it does not walk all that is written in one way.
    fn placed(&mut self, stage: &Stage) -> Option<Nest> {
        let slots = &stage.kernel.slots;
        let arrays = self.arrays.of_slots(stage);
        let guide = slots.iter().position(|slot| slot.mode == SlotMode::Write)?;
        let grid = self.arrays.get(arrays[guide] as usize)?.grid;
        let stage = grid::cut(stage, guide, grid)?;
        let place = |slot: usize| {
            let array = self.arrays.get(arrays[slot] as usize)?;
            grid::place(&stage, slot, array.grid).filter(|_| self.by_threads() || by_element(&stage, slot))
        };
        let places: Vec<Option<Position>> = (0..arrays.len()).map(place).collect();
        for (slot, &number) in arrays.iter().enumerate() {
            let Some(array) = self.arrays.get(number as usize) else { continue };
            let own = || (0..arrays.len()).filter(|&other| arrays[other] == number);
            if !array.written && !own().any(|other| slots[other].mode.writes()) {
                continue;
            }
            // All nests touch a written array row by row and column by column.
            let place = places[slot].filter(|_| !array.irregular)?;
            let far = |other: Position| (0..3).any(|axis| (self.at(place)[axis] - self.at(other)[axis]).abs() > SPREAD);
            if own().filter_map(|other| places[other]).any(far) {
                return None;
            }
        }
        Some(Nest { block: self.end, stage, arrays, places })
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

    /// Notes the boxes that a nest reads and writes.
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
                    let whole = [array.rows(), Some(array.columns()), Some(array.grid.column)];
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
    pub(super) fn rows(&self) -> Option<i64> {
        (self.len % self.grid.row == 0).then_some(self.len / self.grid.row)
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
