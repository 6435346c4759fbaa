//! The rows of a window that are in use at once, and rows that several arrays use one after the other. If every nest uses
//! only its own row of an array, the array lives from its first nest to its last one, within each strip. An array that begins
//! later takes its place, and so does the result that the last nest computes from it, element by element. Fewer
//! rows allow longer strips in closer caches.

use super::chain::{Access, Array, Chain};
use super::finish;
use crate::SlotMode;

/// The most bytes of rows in use where folds need several at once, or no row is needed again after its strip, in units of
/// a window's limit: rows that spill into the next cache still cost less than memory does. Otherwise strips of one
/// row fit the cache.
const SPILL: i64 = 2;

/// The common facts of arrays in one place: bytes of a row, and the row that all nests are at.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Still {
    pitch: i64,
    size: usize,
    row: i64,
    early: i64,
}

/// A place in memory: the array that it belongs to, and the one that uses it last.
struct Storage {
    still: Still,
    first: usize,
    last: usize,
}

impl Chain<'_> {
    /// The rows of an array that are in use at once, seen from the front: the first, and how far the last lies behind
    /// the strip's end.
    pub(super) fn in_use(&self, array: &Array) -> Option<(i64, i64)> {
        let place = |access: &Access| {
            let late = self.nests[access.nest as usize].late;
            (access.rows.first - late, access.rows.last - late)
        };
        array.accesses.iter().map(place).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Bytes of rows in use with strips of `strip` times.
    pub(super) fn bytes(&self, strip: i64) -> i64 {
        self.arrays.iter().filter_map(|array| self.rows(array, strip)).fold(0, i64::saturating_add)
    }

    /// Bytes of an array's rows in use.
    fn rows(&self, array: &Array, strip: i64) -> Option<i64> {
        let (first, end) = self.in_use(array)?;
        let height = (strip + end - first).max(0).saturating_mul(array.pitch);
        Some(height.saturating_mul(array.dtype.size() as i64))
    }

    /// Are the rows in use more than may be, even if arrays share places?
    pub(super) fn exceeds(&self, bytes: i64) -> bool {
        let most = if self.bytes(0) == 0 { SPILL * bytes } else { bytes };
        let fits = |one: i64, unit: i64| one <= most && unit <= SPILL * bytes;
        let (one, unit) = (self.bytes(1), self.bytes(self.unit));
        if fits(one, unit) {
            return false;
        }
        let rolling: Vec<bool> = self.arrays.iter().map(|array| finish::is_rolling(self, array)).collect();
        self.effort.look(4 * self.arrays.len());
        let places = self.places(&rolling);
        let shared = |strip: i64| -> i64 {
            let arrays = self.arrays.iter().zip(&places).filter(|(_, place)| place.is_some());
            arrays.filter_map(|(array, _)| self.rows(array, strip)).fold(0, i64::saturating_add)
        };
        !fits(one - shared(1), unit - shared(self.unit))
    }

    /// For each array whose rows may lie in the place of another one's the array that the place belongs to.
    pub(super) fn places(&self, rolling: &[bool]) -> Vec<Option<u32>> {
        let mut order: Vec<usize> = (0..self.arrays.len()).filter(|&at| rolling[at]).collect();
        order.sort_by_key(|&at| self.arrays[at].accesses.first().map(|access| access.nest));
        let mut places: Vec<Storage> = Vec::new();
        let mut taken = vec![None; self.arrays.len()];
        for at in order {
            let Some(still) = self.still(&self.arrays[at]) else { continue };
            let fits = |place: &Storage, in_place: bool| {
                place.still == still && self.follows(&self.arrays[place.last], &self.arrays[at], in_place)
            };
            self.effort.look(places.len());
            let known = [true, false].into_iter().find_map(|way| places.iter().position(|place| fits(place, way)));
            match known {
                Some(known) => {
                    taken[at] = Some(places[known].first as u32);
                    places[known].last = at;
                }
                None => places.push(Storage { still, first: at, last: at }),
            }
        }
        taken
    }

    /// Which row of the array all nests are at, if that is one, between chunks as well.
    fn still(&self, array: &Array) -> Option<Still> {
        let of = |access: &Access| {
            let nest = &self.nests[access.nest as usize];
            let (pitch, dtype) = (array.pitch, array.dtype);
            let (row, early) = (access.rows.first - nest.late, access.rows.first - nest.early);
            Still { pitch, size: dtype.size(), row, early }
        };
        let still = of(array.accesses.first()?);
        let moves = |access: &Access| access.rows.first != access.rows.last || of(access) != still;
        (!array.accesses.iter().any(moves)).then_some(still)
    }

    /// Does an array begin when another one has ended? `in_place`: in the nest that makes it of that, element by element.
    fn follows(&self, before: &Array, array: &Array, in_place: bool) -> bool {
        let (Some(last), Some(first)) = (before.accesses.last(), array.accesses.first()) else { return false };
        if !in_place || last.nest != first.nest {
            return !in_place && last.nest < first.nest;
        }
        let stage = &self.nests[first.nest as usize].stage;
        let slots = |array: &Array| -> Vec<usize> {
            let accesses = array.accesses.iter().filter(|access| access.nest == first.nest);
            accesses.map(|access| access.slot as usize).collect()
        };
        let parameters = &stage.parameters;
        let mode = |slot: usize| stage.kernel.slots[slot].mode;
        let same = |a: usize, b: usize| {
            mode(a) == SlotMode::Read
                && mode(b) == SlotMode::Write
                && stage.kernel.slots[a].dtype == stage.kernel.slots[b].dtype
                && parameters.starts[a] == parameters.starts[b]
                && parameters.stride(a) == parameters.stride(b)
        };
        let (read, written) = (slots(before), slots(array));
        read.iter().all(|&a| written.iter().all(|&b| same(a, b)))
    }

    /// Lets arrays use the places of others.
    pub(super) fn share(&mut self, places: &[Option<u32>]) {
        for (at, place) in places.iter().enumerate() {
            let Some(place) = *place else { continue };
            let accesses = std::mem::take(&mut self.arrays[at].accesses);
            for access in &accesses {
                let nest = &mut self.nests[access.nest as usize];
                let slot = access.slot as usize;
                nest.arrays[slot] = place;
                // Slots of one nest in one place are those of one buffer.
                let (kernel, parameters) = (&mut nest.stage.kernel, &mut nest.stage.parameters);
                let there = (0..slot).chain(slot + 1..kernel.slots.len()).find(|&other| {
                    nest.arrays[other] == place && kernel.slots[other].mode == SlotMode::Read && access.write
                });
                if let Some(read) = there {
                    parameters.buffers[slot] = parameters.buffers[read];
                    kernel.slots[slot].same_as = kernel.slots[read].same_as;
                }
            }
            self.arrays[place as usize].accesses.extend(accesses);
        }
    }
}
