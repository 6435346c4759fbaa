//! Tiles in time on a device: the items of a group have a column of a tile each, and go down its rows together. Of its own
//! column an item keeps some rows of each array in registers; rows that others read are in local memory.
//!
//! A nest comes to a row in the same turn as those before it as long as items need their own column alone, and a turn later if
//! it reads columns beside that. So one barrier for each turn is enough.
//!
//! Where columns have elements, as in three dimensions, an item has an element of some columns that follow each other: the items of
//! a group have a square of columns and elements, and go down the rows, which are planes then.

use super::chain::{AXES, Chain};
use super::draft::{self, Draft, DraftNest, Manner};
use super::model::Size;
use super::{Model, search};
use crate::Survey;
use crate::tiling::{Reach, TileSlot, Tiling};
use bh_bytecode::DType;
use std::ops::Range;

/// Options of a device for tiles.
#[derive(Clone, Copy, Debug)]
pub struct ColumnOptions {
    /// Items of a group, a power of two: columns of a tile and those beside it.
    pub items: i64,
    /// Columns of an item that has an element of each of them, a power of two.
    pub each: i64,
    /// Groups that keep the device busy.
    pub groups: i64,
    /// Bytes of local memory that a group may use.
    pub local_bytes: i64,
    /// Batches of fewer bytes are not worth it.
    pub least_bytes: u64,
    /// Chains of this many kernels, wherever that is possible; `None`: the model chooses the number.
    pub kernels: Option<u32>,
}

/// An array of which a tile has rows.
#[derive(Clone, Copy, Debug)]
pub struct ColumnArray {
    /// Type of its elements.
    pub dtype: DType,
    /// The rows of its own column that an item keeps, from the turn.
    pub own: Reach,
    /// The first row that others read, from the turn, and how many have room in local memory, a power of two; row `r` is at `r`
    /// modulo that.
    pub shared: Option<(i64, i64)>,
}

/// Facts that complete a nest of a tiling for items.
#[derive(Clone, Debug)]
pub struct ColumnNest {
    /// The column and its element of which one item does the first iteration of a row.
    pub align: [i64; 2],
    /// For each slot in rows of the tile: the row from the turn, and the columns and elements from the item's own one.
    pub near: Vec<[i64; 3]>,
    /// It is a side of a border, in which few tiles have a part.
    pub thin: bool,
}

/// A chain of kernels that runs tile by tile on a device.
#[derive(Clone, Debug)]
pub struct ColumnTiling {
    /// The nests, where arrays live, and the sizes of tiles.
    pub tiling: Tiling,
    /// For each nest.
    pub nests: Vec<ColumnNest>,
    /// For each array in rows.
    pub arrays: Vec<ColumnArray>,
    /// Columns and elements that a group has; items of neighbouring elements follow each other.
    pub square: [i64; 2],
    /// Columns of an item.
    pub each: i64,
    /// The most columns, and elements, between an item's own one and those that it reads.
    pub margin: [i64; 2],
    /// Columns, and elements, of items before the first one of the tile, and behind the last one.
    pub columns: [Reach; 2],
    /// The first turn, from the first row of a tile, and one past the last, from that past its last row.
    pub turns: Reach,
}

/// The chains of a batch that run tile by tile on a device, and those that could and would gain too little.
pub fn column_tilings(survey: &Survey<'_>, options: &ColumnOptions) -> (Vec<ColumnTiling>, Vec<(Range<u32>, f64)>) {
    let batch = survey.batch;
    let total = batch.bases.iter().map(|base| base.bytes()).fold(0, u64::saturating_add);
    if options.kernels.is_none() && (batch.blocks.len() < 2 || total < options.least_bytes) {
        return Default::default();
    }
    let model = Columns { options, cost: 0.0, bytes: 0, nests: 0 };
    let (found, declined) = search(survey, &model, options.kernels, true);
    let finish = |it: super::Found<'_>| {
        let layout = Layout::of(&it.chain, &it.draft)?;
        let tiling = it.draft.finish(&it.chain, &it.size, it.plain);
        let nests = it.draft.nests.iter().zip(&tiling.nests).map(|(draft, nest)| {
            let align = draft.align(&it.chain);
            let near = |(slot, place): (&TileSlot, &[i64; 3])| match *slot {
                TileSlot::Rows(rows) => {
                    let offset = it.chain.offset(&it.chain.arrays[layout.numbers[rows as usize]]);
                    let beside = [0, 1].map(|axis| place[axis + 1] + offset[axis + 1] - align[axis]);
                    [place[0] - nest.late, beside[0], beside[1]]
                }
                _ => [0; 3],
            };
            let near = nest.slots.iter().zip(&nest.places).map(near).collect();
            ColumnNest { align, near, thin: it.draft.is_thin(draft) }
        });
        let nests = nests.collect();
        let Layout { arrays, margin, columns, turns, .. } = layout;
        let square = [0, 1].map(|axis| tiling.tile[axis + 1] + columns[axis].extra());
        let each = square[0] * square[1] / options.items;
        Some(ColumnTiling { tiling, nests, arrays, square, each, margin, columns, turns })
    };
    (found.into_iter().filter_map(finish).collect(), declined)
}

/// The rows in registers of items and in local memory.
struct Layout {
    arrays: Vec<ColumnArray>,
    /// The array of the chain behind each.
    numbers: Vec<usize>,
    margin: [i64; 2],
    columns: [Reach; 2],
    turns: Reach,
}

impl Layout {
    /// None if an item would write a column that is not its own.
    fn of(chain: &Chain<'_>, draft: &Draft) -> Option<Layout> {
        let mut seen: Vec<[Option<Reach>; 2]> = vec![[None; 2]; chain.arrays.len()];
        let (mut columns, mut turns, mut margin): ([Option<Reach>; 2], Option<Reach>, [i64; 2]) = Default::default();
        for nest in &draft.nests {
            let hull = |known: &mut Option<Reach>, more: Reach| *known = Some(known.map_or(more, |it| it.hull(more)));
            for (axis, columns) in columns.iter_mut().enumerate() {
                hull(columns, nest.reach[axis + 1].shifted(nest.align(chain)[axis]));
            }
            hull(&mut turns, nest.reach[0].shifted(nest.late));
            for access in &nest.accesses {
                let beside = nest.beside(chain, access);
                margin = [0, 1].map(|axis| margin[axis].max(beside[axis].abs()));
                if access.write && beside != [0, 0] {
                    return None;
                }
                let row = access.place[0] - nest.late;
                let row = Reach { low: row, high: row };
                let [own, shared] = &mut seen[access.array];
                match beside {
                    [0, 0] => hull(own, row),
                    _ => hull(shared, row),
                }
            }
        }
        let (mut arrays, mut numbers) = (Vec::new(), Vec::new());
        for (array, _) in draft.with_rows() {
            let known = &chain.arrays[array];
            let [own, shared] = seen[array];
            let own = own?;
            // From the first row that others read to the last that is written.
            let rows = |shared: Reach| (own.high - shared.low.min(own.high) + 1).max(1) as u64;
            arrays.push(ColumnArray {
                dtype: known.dtype,
                own,
                shared: shared.map(|shared| (shared.low, rows(shared).next_power_of_two() as i64)),
            });
            numbers.push(array);
        }
        Some(Layout { arrays, numbers, margin, columns: [columns[0]?, columns[1]?], turns: turns? })
    }

    /// Bytes of local memory for groups with this number of columns and elements, and of registers for an element.
    fn bytes(&self, square: [i64; 2]) -> (i64, i64) {
        let size = |array: &ColumnArray| array.dtype.size() as i64;
        let row = (square[0] + 2 * self.margin[0]) * (square[1] + 2 * self.margin[1]);
        let shared = |array: &ColumnArray| array.shared.map_or(0, |(_, rows)| rows) * row * size(array);
        let local = self.arrays.iter().map(shared).sum();
        let own = self.arrays.iter().map(|array| (array.own.extra() + 1) * size(array).max(4)).sum();
        (local, own)
    }
}

/// A byte to or from memory costs as much as this many instructions of an item.
const MEMORY: f64 = 10.0;
/// An addition of a byte, a load or a store, and the question whether an item has to do a row of a nest.
const ARITHMETIC: f64 = 0.25;
const SLOT: f64 = 4.0;
const ASKED: f64 = 2.0;
/// Bytes of arrays that an item keeps at most.
const REGISTERS: i64 = 320;
/// Rows of a tile for each row that is done before the first or after the last one, at least.
const ROWS: i64 = 4;
/// Nests that are smaller than the area along an axis by this factor are sides of a border.
const THIN: i64 = 16;

impl Draft {
    /// Is the nest a side of a border, in which few tiles have a part?
    fn is_thin(&self, nest: &DraftNest) -> bool {
        AXES.iter().any(|&axis| nest.extents[axis] * THIN < self.area[axis].end - self.area[axis].start)
    }
}

/// The model of a device, and the costs of the kernels so far, one by one.
#[derive(Clone, Copy)]
struct Columns<'a> {
    options: &'a ColumnOptions,
    cost: f64,
    bytes: u64,
    nests: usize,
}

/// Memory and items work at the same time; this part of the one that takes less is seen nevertheless.
const SEEN: f64 = 0.3;

/// The cost of memory and of items that work at the same time.
fn together(memory: f64, items: f64) -> f64 {
    memory.max(items) + SEEN * memory.min(items)
}

/// Instructions of an iteration.
fn instructions(arithmetic: f64, slots: usize) -> f64 {
    arithmetic * ARITHMETIC + slots as f64 * SLOT
}

impl Model for Columns<'_> {
    const MANNER: Manner = Manner::Items;

    fn beside(&self, _: u32) -> u64 {
        0
    }

    fn block(&mut self, chain: &Chain<'_>) {
        let (mut moved, mut done) = (0, 0.0);
        for nest in &chain.nests[self.nests..] {
            moved += draft::bytes(chain, nest);
            let slots = nest.arrays.len() as f64 * nest.stage.parameters.iterations() as f64;
            done += draft::arithmetic(nest, Manner::Items) as f64 * ARITHMETIC + slots * SLOT;
        }
        self.nests = chain.nests.len();
        self.bytes += moved;
        self.cost += together(moved as f64 * MEMORY, done);
    }

    fn plain(&self) -> (f64, u64) {
        (self.cost, self.bytes)
    }

    fn is_large(&self, _: &Chain<'_>) -> bool {
        true
    }

    fn size(&self, chain: &Chain<'_>, draft: &Draft) -> Option<Size> {
        let layout = Layout::of(chain, draft)?;
        let fits = |square: &[i64; 2]| {
            let narrow = (0..2).any(|axis| layout.columns[axis].extra() * 2 > square[axis]);
            !narrow && layout.bytes(*square).1 * square[0] * square[1] / self.options.items <= REGISTERS
        };
        self.best(&layout, draft, fits)
    }

    fn least(&self, chain: &Chain<'_>, draft: &Draft) -> Option<Size> {
        self.best(&Layout::of(chain, draft)?, draft, |_| true)
    }
}

impl Columns<'_> {
    /// The sizes that cost least, of groups whose columns and elements `fits` suits.
    fn best(&self, layout: &Layout, draft: &Draft, fits: impl Fn(&[i64; 2]) -> bool) -> Option<Size> {
        let sized = self.squares(draft).filter(fits).filter_map(|square| self.sized(layout, draft, square));
        sized.min_by(|one, other| one.cost.total_cmp(&other.cost))
    }

    /// Columns and elements that a group may have: as many of both, or more elements.
    fn squares(&self, draft: &Draft) -> impl Iterator<Item = [i64; 2]> + use<> {
        let ColumnOptions { items, each, .. } = *self.options;
        let all = items * each;
        let is_flat = draft.area[2].end - draft.area[2].start == 1;
        let first = 1 << all.ilog2().div_ceil(2);
        let wider = std::iter::successors(Some(first), |width| Some(width * 2));
        let deep = wider.map(move |width| [all / width, width]).take_while(move |square| square[0] >= each);
        deep.take(if is_flat { 0 } else { usize::MAX }).chain(is_flat.then_some([items, 1]))
    }

    fn sized(&self, layout: &Layout, draft: &Draft, square: [i64; 2]) -> Option<Size> {
        let options = self.options;
        let length = |axis: usize| draft.area[axis].end - draft.area[axis].start;
        let rows = length(0);
        let width = [0, 1].map(|axis| square[axis] - layout.columns[axis].extra());
        let (local, _) = layout.bytes(square);
        if width.iter().any(|&it| it < 1) || local > options.local_bytes || AXES.iter().any(|&axis| length(axis) < 1) {
            return None;
        }
        let across = (0..2).map(|axis| (length(axis + 1) + width[axis] - 1) / width[axis]).product::<i64>();
        let parts = (options.groups / across).max(1);
        let height = ((rows + parts - 1) / parts).max(ROWS * layout.turns.extra()).clamp(1, rows);
        let groups = (rows + height - 1) / height * across;
        let tile = [height, width[0], width[1]];
        // All items go through the turns of all nests but those that are sides of a border.
        let asked = (groups * (height + layout.turns.extra()) * options.items) as f64;
        let turns = asked * (square[0] * square[1] / options.items) as f64;
        let mut done = 0.0;
        for nest in &draft.nests {
            let each = instructions(nest.arithmetic as f64 / nest.inner as f64, nest.accesses.len());
            let again = |axis: usize| 1.0 + nest.reach[axis].extra() as f64 / tile[axis] as f64;
            let own = nest.extents.iter().product::<i64>() as f64 * again(0) * again(1) * again(2);
            done += (if draft.is_thin(nest) { own } else { turns }) * each + asked * ASKED;
        }
        let bytes = draft.memory_bytes(tile);
        // Few groups leave a part of the device without work.
        let idle = (options.groups as f64 / groups as f64).max(1.0);
        let cost = together(bytes * MEMORY, done) * idle;
        Some(Size { tile, strip: 1, cost, bytes: bytes as u64, in_use: local as u64 })
    }
}
