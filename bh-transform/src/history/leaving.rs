//! States that leave memory for the disk, and the arrays that go with them.

use super::{History, Values};
use crate::disk::Stored;
use crate::levels::Place;
use bh_bytecode::Base;
use bh_recorder::ArrayId;
use std::collections::BTreeMap;

/// Where the values of a base of a state are.
pub(crate) enum Home {
    Array(ArrayId),
    Stored(Stored),
}

impl Values {
    /// A state does without them. Returns the array with them, if no other needs it.
    pub(super) fn give_up(&mut self) -> Option<ArrayId> {
        self.states -= 1;
        if self.states > 0 {
            return None;
        }
        self.stored = None;
        self.home.take()
    }
}

impl History {
    /// The units at which states are kept, and whether they are on disk.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.states.iter().map(|state| (state.unit as u64, state.on_disk)).collect()
    }

    /// Moves the earliest states to the disk until at most `most` are in memory.
    pub(crate) fn keep_in_memory(&mut self, most: u64) {
        let in_memory = self.states.iter().filter(|state| !state.on_disk).count() as u64;
        let earliest = self.states.iter_mut().filter(|state| !state.on_disk);
        earliest.take(in_memory.saturating_sub(most) as usize).for_each(|state| state.on_disk = true);
    }

    /// Takes the arrays that only states on disk need, to be written there.
    pub(crate) fn take_leaving(&mut self) -> Vec<(ArrayId, Base, Stored)> {
        let mut on_disk: BTreeMap<usize, usize> = BTreeMap::new();
        let states = self.states.iter().filter(|state| state.on_disk);
        states.flat_map(|state| state.values.values()).for_each(|&values| *on_disk.entry(values).or_default() += 1);
        let mut leaving = Vec::new();
        for (values, states) in on_disk {
            let kept = &mut self.values[values];
            if kept.states == states
                && let Some(array) = kept.home.take()
            {
                let stored = Stored::default();
                kept.stored = Some(stored.clone());
                leaving.push((array, kept.base, stored));
            }
        }
        leaving
    }

    /// Where the values of a state are, by their bases.
    pub(crate) fn state(&self, at: usize) -> impl Iterator<Item = (Base, Home)> {
        self.states[at].values.iter().filter_map(move |(id, &values)| {
            let kept = &self.values[values];
            let own = || self.bases.get(id).filter(|current| current.values == Some(values))?.array;
            let stored = || kept.stored.clone().map(Home::Stored);
            Some((kept.base, stored().or_else(|| kept.home.or_else(own).map(Home::Array))?))
        })
    }
}
