//! From a draft to a tiling: the nests with their slots, and the rows that tiles keep.

use super::chain::{Chain, Nest};
use super::draft::{Draft, DraftNest, Home, Source};
use super::model::Size;
use super::versions;
use crate::tiling::{Steps, TileNest, TileRename, TileRows, TileSlot, Tiling, Turn};
use crate::{BufferRef, Parameters, Stage};

impl Draft {
    /// The tiling, with these sizes. `plain`: the cost of its kernels otherwise, and the bytes that they move.
    pub(super) fn finish(&self, chain: &Chain<'_>, size: &Size, plain: (f64, u64)) -> Tiling {
        let mut numbers = vec![0; chain.arrays.len()];
        let mut rows = Vec::new();
        for (array, used) in self.with_rows() {
            numbers[array] = rows.len() as u32;
            let (column, bytes) = self.columns[array];
            rows.push(TileRows {
                size: bytes as usize,
                pitch: self.pitch(array, size.tile[1]),
                column,
                first: used.first,
                kept: used.kept,
                left: used.columns.low,
                gap: (0, 0),
                apart: self.rings(),
            });
        }
        let finish = Finish { chain, draft: self, numbers: &numbers, rows: &rows };
        let nests: Vec<TileNest> = self.nests.iter().map(|nest| finish.nest(nest)).collect();
        let transient = |array: &usize| matches!(self.homes[*array], Home::Rows { load: false, store: None });
        let mut renames: Vec<TileRename> = Vec::new();
        for (array, home) in chain.arrays.iter().zip(&self.homes) {
            let fresh = matches!(home, Home::Fresh | Home::Rows { store: Some(TileSlot::Fresh(_)), .. });
            if fresh {
                let rename = chain.arrays.renames.iter().rev().find(|(_, rename)| rename.base == array.base);
                let alias = rename.and_then(|(_, rename)| rename.alias);
                renames.push(TileRename { base: array.base, alias });
            }
        }
        Tiling {
            blocks: chain.first..chain.end,
            kernels: chain.kernels,
            turns: (0..nests.len() as u32).map(|nest| Turn { nests: vec![nest], joined: None }).collect(),
            nests,
            after: Vec::new(),
            transient: (0..chain.arrays.len()).filter(transient).map(|array| chain.arrays[array].base).collect(),
            temporaries: Vec::new(),
            renames,
            area: self.area.clone(),
            tile: size.tile,
            borders: None,
            strip: size.strip,
            plain_bytes: plain.1,
            bytes: size.bytes,
            in_use: size.in_use,
            gain: size.cost / plain.0,
            rows,
        }
    }
}

/// Completes nests.
struct Finish<'a> {
    chain: &'a Chain<'a>,
    draft: &'a Draft,
    /// The number of each array's rows.
    numbers: &'a [u32],
    rows: &'a [TileRows],
}

impl Finish<'_> {
    fn nest(&self, nest: &DraftNest) -> TileNest {
        let (stage, slots) = match nest.source {
            Source::Nest(number) => self.of_chain(&self.chain.nests[number]),
            Source::Load(array) => self.copy(array, TileSlot::Base(self.chain.arrays[array].base), true),
            Source::Store(array) => {
                let base = TileSlot::Base(self.chain.arrays[array].base);
                let Home::Rows { store, .. } = self.draft.homes[array] else { unreachable!("only rows are stored") };
                self.copy(array, store.unwrap_or(base), false)
            }
        };
        let block = match nest.source {
            Source::Nest(number) => self.chain.nests[number].block,
            Source::Load(_) => self.chain.first,
            Source::Store(_) => self.chain.end - 1,
        };
        let places = match nest.source {
            Source::Nest(number) => {
                let places = self.chain.nests[number].places.iter();
                places.map(|place| place.map_or([0; 3], |place| self.chain.at(place))).collect()
            }
            Source::Load(_) | Source::Store(_) => vec![[0; 3]; slots.len()],
        };
        let steps = Steps::single(stage.parameters.extents[0]);
        TileNest { block, stage, slots, places, steps, reach: nest.reach, late: nest.late }
    }

    fn of_chain(&self, nest: &Nest) -> (Stage, Vec<TileSlot>) {
        let mut stage = nest.stage.clone();
        let rank = stage.parameters.extents.len();
        let mut slots = Vec::with_capacity(nest.arrays.len());
        for (slot, (&number, place)) in nest.arrays.iter().zip(&nest.places).enumerate() {
            let Some(array) = self.chain.arrays.get(number as usize) else {
                slots.push(TileSlot::Index);
                continue;
            };
            slots.push(match (place, self.draft.homes[number as usize]) {
                // A slot that does not go by rows and columns reads an array that no nest writes: memory has all of it.
                (None, _) | (_, Home::Base) => TileSlot::Base(array.base),
                (_, Home::Fresh) => TileSlot::Fresh(array.base),
                (_, Home::Rows { .. }) => TileSlot::Rows(self.numbers[number as usize]),
            });
            if let (TileSlot::Rows(rows), Some(place)) = (slots[slot], place) {
                let rows = &self.rows[rows as usize];
                stage.parameters.starts[slot] = place.row * rows.pitch + place.column * rows.column + place.rest;
                stage.parameters.strides[slot * rank] = rows.pitch;
                stage.parameters.strides[slot * rank + 1] = rows.column;
            }
        }
        (stage, slots)
    }

    /// A copy of an array's rows from memory, or to it.
    fn copy(&self, array: usize, memory: TileSlot, load: bool) -> (Stage, Vec<TileSlot>) {
        let known = &self.chain.arrays[array];
        let rows = &self.rows[self.numbers[array] as usize];
        let column = known.grid.column;
        let mut extents = vec![known.rows().unwrap_or(0), known.columns()];
        let (mut there, mut here) = (vec![known.grid.row, column], vec![rows.pitch, column]);
        if column > 1 {
            [&mut extents, &mut there, &mut here]
                .into_iter()
                .zip([column, 1, 1])
                .for_each(|(list, last)| list.push(last));
        }
        let kernel = versions::copy_kernel(known.dtype, extents.len());
        let (from, to) = if load { (there, here) } else { (here, there) };
        let parameters = Parameters {
            extents,
            buffers: vec![BufferRef::Base(known.base), BufferRef::Fresh(known.base)],
            starts: vec![0, 0],
            strides: [from, to].concat(),
            instrs: vec![0, 0],
            ..Parameters::default()
        };
        let own = TileSlot::Rows(self.numbers[array]);
        (Stage { kernel, parameters }, if load { vec![memory, own] } else { vec![own, memory] })
    }
}
