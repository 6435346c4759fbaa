//! From a chain to the draft of a tiling: where its arrays live, how far each nest lags behind, and how much more than the tile it
//! does.

use super::chain::{AXES, Array, Chain, Nest};
use super::lags::lags;
use crate::Step;
use crate::arrays::NO_ARRAY;
use crate::tiling::{Reach, TileSlot};
use bh_bytecode::{Opcode, base_flags};
use std::ops::Range;

/// Bytes of a line of the caches.
const LINE: i64 = 64;

/// Where an array lives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// In memory: no nest writes it, or none reads it.
    Base,
    /// In the fresh buffer of its base.
    Fresh,
    /// In rows of the tile; its content is read from memory before, or goes there at the end.
    Rows { load: bool, store: Option<TileSlot> },
}

/// A nest of the chain, or a copy between memory and rows.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Nest(usize),
    Load(usize),
    Store(usize),
}

/// An access of a nest to an array.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) array: usize,
    pub(super) write: bool,
    /// Row, column and element of it at the first iteration.
    pub(super) place: [i64; 3],
}

/// A nest under construction.
pub(super) struct DraftNest {
    pub(super) source: Source,
    pub(super) accesses: Vec<Access>,
    /// Threads do all elements of a column together, as one.
    pub(super) extents: [i64; 3],
    /// Iterations within a row and a column.
    pub(super) inner: i64,
    /// Bytes of all arrays, each once if it is read and once if it is written, for an iteration of rows and columns.
    pub(super) bytes: i64,
    /// The arithmetic of an iteration of rows and columns, in additions of a byte.
    pub(super) arithmetic: i64,
    pub(super) rows: Rows,
    /// Lines of an iteration of the rows go along the columns.
    pub(super) flat: bool,
    pub(super) late: i64,
    pub(super) reach: [Reach; 3],
}

/// The rows that a nest touches at a time.
#[derive(Clone, Copy, Default)]
pub(super) struct Rows {
    /// Bytes of all of them.
    pub(super) bytes: i64,
    /// Bytes of an iteration that an earlier one has touched as another row.
    pub(super) again: i64,
}

/// Rows and columns that are in use of an array.
#[derive(Clone, Copy)]
pub(super) struct Use {
    /// The first row, from the time, and how many more are kept.
    pub(super) first: i64,
    pub(super) kept: i64,
    /// Columns beside those of the tile.
    pub(super) columns: Reach,
}

/// A tiling of a chain before its sizes are chosen.
pub(super) struct Draft {
    pub(super) nests: Vec<DraftNest>,
    pub(super) homes: Vec<Home>,
    pub(super) uses: Vec<Option<Use>>,
    pub(super) area: [Range<i64>; 3],
    /// Elements of a column, and of its type, by array.
    pub(super) columns: Vec<(i64, i64)>,
}

/// How tiles compute rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// A thread, nest by nest.
    Thread,
    /// An item for each column, or element of one: it finds the results of others when a row of all nests is complete.
    Items,
}

/// Drafts the tiling of a chain; `None` if there is none.
pub(super) fn draft(chain: &Chain<'_>) -> Option<Draft> {
    let home = |(number, array)| match chain.manner {
        Manner::Items if often_read(chain, number) => loaded(chain, array, None).or_else(|| home(chain, array)),
        _ => home(chain, array),
    };
    let mut homes = chain.arrays.iter().enumerate().map(home).collect::<Option<Vec<Home>>>()?;
    loop {
        let mut nests = order(chain, &homes)?;
        lags(chain, &mut nests);
        let nests = needs(chain, &homes, nests);
        if !keep_apart(chain, &mut homes, &nests)? {
            let uses = uses(chain, &nests);
            let area = area(chain, &homes, &nests)?;
            let columns = chain.arrays.iter().map(|array| (array.grid.column, array.size())).collect();
            return Some(Draft { nests, homes, uses, area, columns });
        }
    }
}

/// The tile that an element in memory is in writes it, no other one: arrays of a nest with a halo go through
/// rows. Returns whether there was such an array.
fn keep_apart(chain: &Chain<'_>, homes: &mut [Home], nests: &[DraftNest]) -> Option<bool> {
    let mut found = false;
    for nest in nests {
        for access in nest.accesses.iter().filter(|access| access.write) {
            let own = tile(chain, &chain.arrays[access.array], access.place);
            if !matches!(homes[access.array], Home::Rows { .. }) && nest.reach != own {
                homes[access.array] = through_rows(chain, &chain.arrays[access.array])?;
                found = true;
            }
        }
    }
    Some(found)
}

/// The reach of a nest that computes just the tile of an array, at this place at its first iteration.
fn tile(chain: &Chain<'_>, array: &Array, place: [i64; 3]) -> [Reach; 3] {
    let offset = chain.offset(array);
    AXES.map(|axis| Reach::default().shifted(-place[axis] - offset[axis]))
}

/// Is an array that no nest writes read at several places, row by row?
fn often_read(chain: &Chain<'_>, number: usize) -> bool {
    let array = &chain.arrays[number];
    let reads = chain.nests.iter().flat_map(|nest| &nest.arrays).filter(|&&read| read as usize == number).count();
    !array.written && !array.irregular && reads > 1
}

fn home(chain: &Chain<'_>, array: &Array) -> Option<Home> {
    if !array.written {
        return Some(Home::Base);
    }
    if array.dies(chain.survey, chain.end) {
        return if array.needs_old {
            loaded(chain, array, None)
        } else {
            Some(Home::Rows { load: false, store: None })
        };
    }
    if array.read {
        return through_rows(chain, array);
    }
    Some(if array.fresh { Home::Fresh } else { Home::Base })
}

/// The home of an array that lives on and goes through rows.
fn through_rows(chain: &Chain<'_>, array: &Array) -> Option<Home> {
    if array.dies(chain.survey, chain.end) {
        return None;
    }
    let fresh = TileSlot::Fresh(array.base);
    if array.fresh || !array.whole || array.needs_old {
        // Other tiles may read its earlier elements.
        return loaded(chain, array, Some(fresh));
    }
    array.rows()?;
    Some(Home::Rows { load: false, store: Some(TileSlot::Base(array.base)) })
}

fn loaded(chain: &Chain<'_>, array: &Array, store: Option<TileSlot>) -> Option<Home> {
    array.rows()?;
    let pinned = chain.batch.bases[array.base as usize].has(base_flags::PINNED);
    (store.is_none() || !pinned).then_some(Home::Rows { load: !array.fresh, store })
}

/// All nests in order: copies from memory come before the first use, copies to memory at the end.
fn order(chain: &Chain<'_>, homes: &[Home]) -> Option<Vec<DraftNest>> {
    let mut nests = Vec::with_capacity(chain.nests.len() + chain.arrays.len());
    let mut known = vec![false; chain.arrays.len()];
    for (number, nest) in chain.nests.iter().enumerate() {
        for &array in nest.arrays.iter().filter(|&&array| array != NO_ARRAY) {
            let seen = std::mem::replace(&mut known[array as usize], true);
            if !seen && matches!(homes[array as usize], Home::Rows { load: true, .. }) {
                nests.push(copy(chain, array as usize, Source::Load(array as usize))?);
            }
        }
        nests.push(of_chain(chain, number, nest));
    }
    for (array, home) in homes.iter().enumerate() {
        if matches!(home, Home::Rows { store: Some(_), .. }) {
            nests.push(copy(chain, array, Source::Store(array))?);
        }
    }
    Some(nests)
}

/// Bytes of all arrays of a nest, each once if it is read and once if it is written.
pub(super) fn bytes(chain: &Chain<'_>, nest: &Nest) -> u64 {
    let mut known: Vec<(u32, bool)> = Vec::with_capacity(nest.arrays.len());
    for (slot, &array) in nest.arrays.iter().enumerate() {
        let access = (array, nest.stage.kernel.slots[slot].mode.writes());
        if array != NO_ARRAY && nest.places[slot].is_some() && !known.contains(&access) {
            known.push(access);
        }
    }
    let size: i64 = known.iter().map(|(array, _)| chain.arrays[*array as usize].size()).sum();
    size.saturating_mul(nest.stage.parameters.iterations()) as u64
}

/// A quotient or a root costs a thread this many times the cost in the table of operations, if its operands are in the caches:
/// a vector of them takes as long as a hundred additions, one after the other.
const QUOTIENT: u64 = 20;

/// The arithmetic of all iterations of a nest, in additions of a byte.
pub(super) fn arithmetic(nest: &Nest, manner: Manner) -> u64 {
    let cost = |step: &Step| match *step {
        Step::Compute { opcode, input, output, .. } => {
            let slow = manner == Manner::Thread && matches!(opcode, Opcode::Divide | Opcode::Sqrt);
            let each = u64::from(opcode.info().cost) * if slow { QUOTIENT } else { 1 };
            each * input.size().max(output.size()) as u64
        }
        _ => 0,
    };
    let each: u64 = nest.stage.kernel.steps.iter().map(cost).sum();
    each.saturating_mul(nest.stage.parameters.iterations() as u64)
}

/// The rows that a nest touches at a time.
pub(super) fn rows(chain: &Chain<'_>, nest: &Nest) -> Rows {
    let mut known: Vec<(u32, i64)> = Vec::with_capacity(nest.arrays.len());
    let mut rows = Rows::default();
    for (&array, place) in nest.arrays.iter().zip(&nest.places) {
        let Some(place) = place.filter(|place| !known.contains(&(array, place.row))) else { continue };
        let own = &chain.arrays[array as usize];
        rows.bytes = rows.bytes.saturating_add(own.grid.row.saturating_mul(own.size()));
        rows.again += if known.iter().any(|(other, _)| *other == array) { own.size() } else { 0 };
        known.push((array, place.row));
    }
    rows
}

const NOWHERE: Reach = Reach { low: i64::MAX, high: i64::MIN };

/// How long a nest is along all axes: threads do all elements of a column together.
fn lengths(rows: i64, columns: i64, inner: i64, manner: Manner) -> [i64; 3] {
    [rows, columns, if manner == Manner::Thread { 1 } else { inner }]
}

fn of_chain(chain: &Chain<'_>, number: usize, nest: &Nest) -> DraftNest {
    let extents = &nest.stage.parameters.extents;
    let mut accesses: Vec<Access> = Vec::with_capacity(nest.arrays.len());
    for (slot, (&array, place)) in nest.arrays.iter().zip(&nest.places).enumerate() {
        let (true, Some(place)) = (array != NO_ARRAY, place) else { continue };
        let write = nest.stage.kernel.slots[slot].mode.writes();
        accesses.push(Access { array: array as usize, write, place: chain.at(*place) });
    }
    let inner = extents[2..].iter().product::<i64>();
    let each = |all: u64| all as i64 / nest.stage.parameters.iterations() * inner;
    let (bytes, arithmetic) = (each(bytes(chain, nest)), each(arithmetic(nest, chain.manner)));
    let (source, flat) = (Source::Nest(number), extents.len() == 2);
    let extents = lengths(extents[0], extents[1], inner, chain.manner);
    let rows = rows(chain, nest);
    DraftNest { source, accesses, extents, inner, bytes, arithmetic, rows, flat, late: 0, reach: [NOWHERE; 3] }
}

fn copy(chain: &Chain<'_>, array: usize, source: Source) -> Option<DraftNest> {
    let known = &chain.arrays[array];
    let column = known.grid.column;
    let extents = lengths(known.rows()?, known.columns(), column, chain.manner);
    let accesses = vec![Access { array, write: matches!(source, Source::Load(_)), place: [0; 3] }];
    let (bytes, flat, reach) = (2 * known.size() * column, column == 1, [NOWHERE; 3]);
    let (arithmetic, rows) = (0, Rows::default());
    Some(DraftNest { source, accesses, extents, inner: column, bytes, arithmetic, rows, flat, late: 0, reach })
}

impl DraftNest {
    /// The column and its element of which one item does this nest's first iteration: that of the first array that it writes.
    pub(super) fn align(&self, chain: &Chain<'_>) -> [i64; 2] {
        let first = self.accesses.iter().find(|access| access.write).or(self.accesses.first());
        first.map_or([0, 0], |access| self.column(chain, access))
    }

    /// How many columns, and elements of them, beside the item's own one an access is.
    pub(super) fn beside(&self, chain: &Chain<'_>, access: &Access) -> [i64; 2] {
        let (own, align) = (self.column(chain, access), self.align(chain));
        [own[0] - align[0], own[1] - align[1]]
    }

    fn column(&self, chain: &Chain<'_>, access: &Access) -> [i64; 2] {
        let offset = chain.offset(&chain.arrays[access.array]);
        [access.place[1] + offset[1], access.place[2] + offset[2]]
    }
}

/// The reach of each nest, from the last one to the first. Nests whose results no other nest needs are dropped.
fn needs(chain: &Chain<'_>, homes: &[Home], mut nests: Vec<DraftNest>) -> Vec<DraftNest> {
    let mut needed: Vec<Option<[Reach; 3]>> = vec![None; chain.arrays.len()];
    for nest in nests.iter_mut().rev() {
        let mut reach: Option<[Reach; 3]> = None;
        let mut add = |more: [Reach; 3]| {
            let known = reach.unwrap_or(more);
            reach = Some(AXES.map(|axis| known[axis].hull(more[axis])));
        };
        let tile = |place: [i64; 3], array: usize| tile(chain, &chain.arrays[array], place);
        for access in &nest.accesses {
            match (nest.source, homes[access.array]) {
                (Source::Store(array), _) => add(tile([0; 3], array)),
                (_, Home::Rows { .. }) if access.write => {
                    if let Some(needed) = needed[access.array] {
                        add(AXES.map(|axis| needed[axis].shifted(-access.place[axis])));
                    }
                }
                (_, Home::Base | Home::Fresh) if access.write => add(tile(access.place, access.array)),
                _ => {}
            }
        }
        let Some(reach) = reach else { continue };
        nest.reach = reach;
        for access in nest.accesses.iter().filter(|access| !access.write) {
            let more = AXES.map(|axis| reach[axis].shifted(access.place[axis]));
            let known = needed[access.array].unwrap_or(more);
            needed[access.array] = Some(AXES.map(|axis| known[axis].hull(more[axis])));
        }
    }
    nests.retain(|nest| nest.reach[0] != NOWHERE);
    nests
}

/// The rows and columns in use of each array that nests go through row by row.
fn uses(chain: &Chain<'_>, nests: &[DraftNest]) -> Vec<Option<Use>> {
    let mut uses: Vec<Option<(Reach, Reach)>> = vec![None; chain.arrays.len()];
    for nest in nests {
        for access in &nest.accesses {
            let row = access.place[0] - nest.late;
            let (rows, columns) = (Reach { low: row, high: row }, nest.reach[1].shifted(access.place[1]));
            let known = uses[access.array].unwrap_or((rows, columns));
            uses[access.array] = Some((known.0.hull(rows), known.1.hull(columns)));
        }
    }
    let finish = |(array, known): (&Array, Option<(Reach, Reach)>)| {
        let (rows, mut columns) = known?;
        if array.grid.column == 1 {
            // A column lies at the same place of a line of the caches in all arrays, as in memory: a vector that is read at
            // the column that is written crosses none.
            let line = LINE / array.size();
            columns.low = columns.low.div_euclid(line) * line;
        }
        Some(Use { first: rows.low, kept: rows.extra(), columns })
    };
    chain.arrays.iter().zip(uses).map(finish).collect()
}

/// All rows, columns and elements that go to memory.
fn area(chain: &Chain<'_>, homes: &[Home], nests: &[DraftNest]) -> Option<[Range<i64>; 3]> {
    let mut area: Option<[Range<i64>; 3]> = None;
    for nest in nests {
        let store = matches!(nest.source, Source::Store(_));
        let outputs = nest
            .accesses
            .iter()
            .filter(|access| store || (access.write && !matches!(homes[access.array], Home::Rows { .. })));
        for access in outputs {
            let offset = chain.offset(&chain.arrays[access.array]);
            let own = AXES.map(|axis| {
                let start = access.place[axis] + offset[axis];
                start..start + nest.extents[axis]
            });
            area = Some(match area {
                None => own,
                Some(known) => {
                    AXES.map(|axis| known[axis].start.min(own[axis].start)..known[axis].end.max(own[axis].end))
                }
            });
        }
    }
    area
}

impl Draft {
    /// Is an array in rows of the tile?
    pub(super) fn in_rows(&self, array: usize) -> bool {
        matches!(self.homes[array], Home::Rows { .. })
    }

    /// Do rows take turns in memory? Those that have columns of several elements are too long to move, and long enough for a
    /// nest to do one at a time.
    pub(super) fn rings(&self) -> bool {
        (0..self.columns.len()).any(|array| self.in_rows(array) && self.columns[array].0 > 1)
    }

    /// Bytes to and from memory, in tiles of this many rows, columns and elements.
    pub(super) fn memory_bytes(&self, tile: [i64; 3]) -> f64 {
        // The bytes read and written of each array, once: several nests find them in the caches.
        let mut moved = vec![(0.0f64, 0.0f64); self.homes.len()];
        for nest in &self.nests {
            let more = |axis: usize| 1.0 + nest.reach[axis].extra() as f64 / tile[axis].max(1) as f64;
            let more = more(0) * more(1) * more(2);
            let area = (nest.extents[0] * nest.extents[1] * nest.inner) as f64;
            for access in &nest.accesses {
                let bytes = area * self.columns[access.array].1 as f64;
                let (read, written) = &mut moved[access.array];
                match (nest.source, self.in_rows(access.array)) {
                    (Source::Nest(_), true) => {}
                    (Source::Nest(_), false) if !access.write => *read = read.max(bytes * more),
                    (Source::Load(_), _) => *read = bytes * more,
                    (Source::Nest(_) | Source::Store(_), _) => *written = written.max(bytes),
                }
            }
        }
        moved.iter().map(|(read, written)| read + written).sum()
    }

    /// Elements from row to row of an array in tiles of this many columns: whole lines of the caches, no power of two apart.
    pub(super) fn pitch(&self, array: usize, columns: i64) -> i64 {
        const PAGE: i64 = 4096;
        let (column, size) = self.columns[array];
        let extra = self.uses[array].map_or(0, |used| used.columns.extra());
        let bytes = ((columns + extra) * column * size + LINE - 1) / LINE * LINE;
        (if bytes % PAGE == 0 { bytes + LINE } else { bytes }) / size
    }

    /// The arrays that are in rows of the tile, in the order of their numbers there.
    pub(super) fn with_rows(&self) -> impl Iterator<Item = (usize, Use)> + '_ {
        let used = self.uses.iter().enumerate().filter(|(array, _)| self.in_rows(*array));
        used.filter_map(|(array, used)| Some((array, (*used)?)))
    }
}
