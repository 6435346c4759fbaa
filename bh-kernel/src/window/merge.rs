//! Values that several nests of a chain need of the same arrays: each of them gets a nest that makes its dear values once
//! (see `reuse`), and where two of these would compute some value both, one nest makes the values of both. It covers what
//! the two cover, so that at the edges a few values are made that nobody needs.

use super::Apart;
use super::chain::{Array, Chain, Nest};
use super::reuse::{self, DEAR, Grid};
use super::union::{Kind, Part, Union, United};
use crate::{SlotMode, Stage};

/// The nest of both has at most this part more iterations than the larger one.
const GROWTH: i64 = 8;

/// What a chain was, as far as nests that join change it.
pub(super) struct Snapshot {
    arrays: Vec<Array>,
    nests: Vec<Nest>,
    unit: i64,
    spared: u64,
}

impl Chain<'_> {
    pub(super) fn snapshot(&self) -> Snapshot {
        let (arrays, nests) = (self.arrays.clone(), self.nests.clone());
        Snapshot { arrays, nests, unit: self.unit, spared: self.spared }
    }

    pub(super) fn restore(&mut self, known: Snapshot) {
        Snapshot { arrays: self.arrays, nests: self.nests, unit: self.unit, spared: self.spared } = known;
    }

    /// The rows of an array.
    pub(super) fn grid(&self, array: u32) -> Grid {
        self.arrays
            .get(array as usize)
            .map_or(Grid { pitch: 1, len: 0 }, |array| Grid { pitch: array.pitch, len: array.len })
    }

    /// Takes in a nest that makes values for another one: as a part of an earlier one of this kind, or as a nest.
    pub(super) fn maker(&mut self, block: u32, stage: &Stage, fresh: &[(u32, u32)]) -> Result<(), Apart> {
        let arrays = self.slot_arrays(block, stage, fresh);
        for at in (0..self.nests.len()).rev() {
            if self.nests[at].arrays.iter().any(|array| arrays.contains(array))
                && self.makes_only(at)
                && self.merge(at, block, stage, &arrays)
            {
                return Ok(());
            }
            // What a nest writes cannot be read before it.
            if self.writes_any(at, &arrays) {
                break;
            }
        }
        self.place(block, stage, arrays)
    }

    /// Are all results of a nest there for other nests of the window only?
    fn makes_only(&self, nest: usize) -> bool {
        let Nest { stage, arrays, .. } = &self.nests[nest];
        let mut slots = stage.kernel.slots.iter().zip(arrays);
        slots.all(|(slot, &array)| !slot.mode.writes() || self.arrays[array as usize].reused)
    }

    fn writes_any(&self, nest: usize, arrays: &[u32]) -> bool {
        let Nest { stage, arrays: own, .. } = &self.nests[nest];
        let mut slots = stage.kernel.slots.iter().zip(own);
        slots.any(|(slot, array)| slot.mode.writes() && arrays.contains(array))
    }

    /// Lets an earlier nest make the values of this one, too, if it computes some of them anyway.
    fn merge(&mut self, at: usize, block: u32, stage: &Stage, arrays: &[u32]) -> bool {
        let into = Part { stage: &self.nests[at].stage, arrays: &self.nests[at].arrays };
        let Some(merged) = merge(self, into, Part { stage, arrays }) else { return false };
        // What both read is read once.
        let common = arrays.iter().enumerate().filter(|(slot, array)| {
            stage.kernel.slots[*slot].mode == SlotMode::Read
                && !arrays[..*slot].contains(array)
                && into.arrays.contains(array)
        });
        let bytes = |array: u32| {
            let Grid { pitch, len } = self.grid(array);
            let rows = stage.parameters.extents[0].saturating_mul(pitch).min(len);
            rows as u64 * self.arrays[array as usize].dtype.size() as u64
        };
        let spared: u64 = common.map(|(_, &array)| bytes(array)).sum();
        let known = self.snapshot();
        self.effort.look(8 * (self.arrays.len() + self.nests.len()));
        self.spared += spared;
        let mut later = self.nests.split_off(at).into_iter();
        for array in &mut self.arrays {
            array.retain_before(at as u32);
        }
        let first = later.next().map_or(block, |nest| nest.block);
        let mut placed = self.place(first, &merged.stage, merged.arrays);
        for nest in later {
            placed = placed.and_then(|()| self.place(nest.block, &nest.stage, nest.arrays));
        }
        if placed.is_err() {
            self.restore(known);
            return false;
        }
        // What the nest was to make of a value that the other one keeps already.
        for (own, kept) in merged.same {
            self.current.values_mut().filter(|array| **array == own).for_each(|array| *array = kept);
        }
        true
    }
}

/// One nest that makes what two nests do, if they have a dear value in common.
fn merge(chain: &Chain<'_>, into: Part<'_>, other: Part<'_>) -> Option<United> {
    let (a, b) = (&into.stage.parameters, &other.stage.parameters);
    let (kept, own) = (into.first_store()?, other.first_store()?);
    if a.extents.len() != b.extents.len() || !into.is_plain() || !other.is_plain() {
        return None;
    }
    if a.stride(kept) != b.stride(own) || chain.grid(into.arrays[kept]).len != chain.grid(other.arrays[own]).len {
        return None;
    }
    // Where the second nest begins in the loops of the first one, and where both together do.
    let begin = reuse::distances(&a.extents, a.stride(kept), b.starts[own] - a.starts[kept])?;
    let first: Vec<i64> = begin.iter().map(|&begin| begin.min(0)).collect();
    let dims = 0..a.extents.len();
    let extents: Vec<i64> =
        dims.clone().map(|dim| a.extents[dim].max(begin[dim] + b.extents[dim]) - first[dim]).collect();
    let iterations: i64 = extents.iter().product();
    if (iterations - a.iterations().max(b.iterations())) * GROWTH > iterations {
        return None;
    }
    let mut union = Union::new(chain, Kind::Makers, extents);
    union.add(into, &first)?;
    let saved = union.add(other, &dims.map(|dim| first[dim] - begin[dim]).collect::<Vec<_>>())?;
    (saved >= DEAR).then(|| union.finish())
}
