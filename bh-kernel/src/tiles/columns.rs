//! Tiles in time on a device: the items of a group have a column of a tile each, and go down its rows together. Of its own
//! column an item keeps some rows of each array in registers; of what others read there are some rows in local memory.
//!
//! A nest comes to a row in the same turn as those before it as long as items need their own column alone, and a turn later if
//! it reads what lies beside that. So one barrier for each turn is enough.

use super::chain::{Chain, Facts};
use super::draft::{self, Draft, Manner};
use super::model::Size;
use super::{Model, Reach, TileSlot, Tiling, search};
use bh_bytecode::{BatchRef, DType};
use std::ops::Range;

/// What a device wants of tiles.
#[derive(Clone, Copy, Debug)]
pub struct ColumnOptions {
    /// Items of a group, a power of two: columns of a tile and those beside it.
    pub items: i64,
    /// Groups that keep the device busy.
    pub groups: i64,
    /// Bytes of local memory that a group may use.
    pub local_bytes: i64,
    /// Batches of fewer bytes are not worth it.
    pub least_bytes: u64,
    /// Chains of this many kernels, wherever that is possible; `None`: of as many as the model gains from.
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

/// What completes a nest of a tiling for items.
#[derive(Clone, Debug)]
pub struct ColumnNest {
    /// The column of which one item does the first iteration of a row.
    pub align: i64,
    /// For each slot in rows of the tile: the row from the turn, and the columns from the item's own one.
    pub near: Vec<[i64; 2]>,
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
    /// The most columns that what an item reads is beside its own one.
    pub margin: i64,
    /// Columns of items before the first one of the tile, and behind the last one.
    pub columns: Reach,
    /// The first turn, from the first row of a tile, and one past the last, from that past its last row.
    pub turns: Reach,
}

/// The chains of a batch that run tile by tile on a device, and those that could and would gain too little.
pub fn column_tilings(batch: &BatchRef<'_>, options: &ColumnOptions) -> (Vec<ColumnTiling>, Vec<(Range<u32>, f64)>) {
    let total = batch.bases.iter().map(|base| base.bytes()).fold(0, u64::saturating_add);
    if options.kernels.is_none() && (batch.blocks.len() < 2 || total < options.least_bytes) {
        return Default::default();
    }
    let facts = Facts::new(batch, false);
    let model = Columns { options, cost: 0.0, bytes: 0, nests: 0 };
    let (found, declined) = search(batch, &facts, &model, options.kernels);
    let finish = |it: super::Found<'_>| {
        let layout = Layout::of(&it.chain, &it.draft)?;
        let tiling = it.draft.finish(&it.chain, &it.size, it.plain);
        let nests = it.draft.nests.iter().zip(&tiling.nests).map(|(draft, nest)| {
            let near = |(slot, place): (&TileSlot, &[i64; 2])| match *slot {
                TileSlot::Rows(rows) => {
                    let array = layout.numbers[rows as usize];
                    let offset = it.chain.offset(&it.chain.arrays[array])[1];
                    [place[0] - nest.late, place[1] + offset - draft.align(&it.chain)]
                }
                _ => [0, 0],
            };
            ColumnNest { align: draft.align(&it.chain), near: nest.slots.iter().zip(&nest.places).map(near).collect() }
        });
        let nests = nests.collect();
        let Layout { arrays, margin, columns, turns, .. } = layout;
        Some(ColumnTiling { tiling, nests, arrays, margin, columns, turns })
    };
    (found.into_iter().filter_map(finish).collect(), declined)
}

/// What items and local memory hold.
struct Layout {
    arrays: Vec<ColumnArray>,
    /// The array of the chain behind each.
    numbers: Vec<usize>,
    margin: i64,
    columns: Reach,
    turns: Reach,
}

impl Layout {
    /// None if an item would write a column that is not its own, or lines have more dimensions.
    fn of(chain: &Chain<'_>, draft: &Draft) -> Option<Layout> {
        let mut seen: Vec<[Option<Reach>; 2]> = vec![[None; 2]; chain.arrays.len()];
        let (mut columns, mut turns, mut margin): (Option<Reach>, Option<Reach>, i64) = (None, None, 0);
        for nest in &draft.nests {
            if !nest.flat {
                return None;
            }
            let hull = |known: &mut Option<Reach>, more: Reach| *known = Some(known.map_or(more, |it| it.hull(more)));
            hull(&mut columns, nest.reach[1].shifted(nest.align(chain)));
            hull(&mut turns, nest.reach[0].shifted(nest.late));
            for access in &nest.accesses {
                let beside = nest.beside(chain, access);
                margin = margin.max(beside.abs());
                if access.write && beside != 0 {
                    return None;
                }
                let row = access.place[0] - nest.late;
                let row = Reach { low: row, high: row };
                let [own, shared] = &mut seen[access.array];
                match beside {
                    0 => hull(own, row),
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
                dtype: chain.batch.bases[known.base as usize].dtype(),
                own,
                shared: shared.map(|shared| (shared.low, rows(shared).next_power_of_two() as i64)),
            });
            numbers.push(array);
        }
        Some(Layout { arrays, numbers, margin, columns: columns?, turns: turns? })
    }

    /// Bytes of local memory for groups of this many items, and of registers of an item.
    fn bytes(&self, items: i64) -> (i64, i64) {
        let size = |array: &ColumnArray| array.dtype.size() as i64;
        let local = self
            .arrays
            .iter()
            .map(|array| array.shared.map_or(0, |(_, rows)| rows) * (items + 2 * self.margin) * size(array))
            .sum();
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

/// The model of a device, and what the kernels so far cost one by one.
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

    fn block(&mut self, chain: &Chain<'_>) {
        let (mut moved, mut done) = (0, 0.0);
        for nest in &chain.nests[self.nests..] {
            moved += draft::bytes(chain, nest);
            let slots = nest.arrays.len() as f64 * nest.stage.parameters.iterations() as f64;
            done += draft::arithmetic(nest) as f64 * ARITHMETIC + slots * SLOT;
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
        let fits = layout.bytes(self.options.items).1 <= REGISTERS;
        (fits && layout.columns.extra() * 2 <= self.options.items).then(|| self.sized(&layout, draft)).flatten()
    }

    fn least(&self, chain: &Chain<'_>, draft: &Draft) -> Option<Size> {
        self.sized(&Layout::of(chain, draft)?, draft)
    }
}

impl Columns<'_> {
    fn sized(&self, layout: &Layout, draft: &Draft) -> Option<Size> {
        let options = self.options;
        let length = |axis: usize| draft.area[axis].end - draft.area[axis].start;
        let (rows, columns) = (length(0), length(1));
        let width = options.items - layout.columns.extra();
        let (local, _) = layout.bytes(options.items);
        if width < 1 || local > options.local_bytes || rows < 1 || columns < 1 {
            return None;
        }
        let across = (columns + width - 1) / width;
        let parts = (options.groups / across).max(1);
        let height = ((rows + parts - 1) / parts).max(ROWS * layout.turns.extra()).clamp(1, rows);
        let groups = ((rows + height - 1) / height * across) as f64;
        let mut done = 0.0;
        for nest in &draft.nests {
            let more = |extra: i64, own: i64| 1.0 + extra as f64 / own as f64;
            let again = more(nest.reach[0].extra(), height) * more(nest.reach[1].extra(), width);
            let area = (nest.extents[0] * nest.extents[1]) as f64;
            done += area * instructions(nest.arithmetic as f64, nest.accesses.len()) * again;
            done += groups * (height + layout.turns.extra()) as f64 * options.items as f64 * ASKED;
        }
        let bytes = draft.memory_bytes([height, width]);
        // Few groups leave a part of the device without work.
        let idle = (options.groups as f64 / groups).max(1.0);
        let cost = together(bytes * MEMORY, done) * idle;
        Some(Size { tile: [height, width], strip: 1, cost, bytes: bytes as u64, in_use: local as u64 })
    }
}
