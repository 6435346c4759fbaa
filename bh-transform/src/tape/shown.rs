//! A tape as the recorder sees it: what shows it batches, and asks it what the program may do.

use super::copies::{Known, skip};
use super::{Tape, insert};
use crate::bounded::Bounded;
use bh_bytecode::{Base, Batch};
use bh_core::Error;
use bh_recorder::{ArrayId, Ending, Errand};
use std::collections::HashMap;
use std::sync::Arc;

impl bh_recorder::Tape for Tape {
    fn followed(&self) -> Option<Vec<ArrayId>> {
        let of_states = |bounded: &Bounded| bounded.history.followed().chain(self.own_arrays()).collect();
        Some(self.bounded.as_deref().map_or_else(Vec::new, of_states))
    }

    fn longest(&self) -> usize {
        self.bounded.as_ref().map_or(usize::MAX, |bounded| bounded.history.longest())
    }

    fn expect(&mut self, ending: Ending) {
        self.ending = ending;
    }

    fn release(&mut self) -> Vec<ArrayId> {
        self.bounded.as_mut().map_or_else(Vec::new, |bounded| bounded.history.take_released())
    }

    /// Takes a batch before it runs, and puts the copies of overwritten values into it. The bases of the copies are appended
    /// without identities. Returns the bases that have to be kept, by their places.
    fn take(&mut self, batch: &mut Batch) -> Vec<u32> {
        let ending = std::mem::take(&mut self.ending);
        if !self.follows_copies {
            let is_stopped = |base: &Base| self.stopped.contains(&base.id);
            let is_unchanged = |base: &Base| self.arguments.get(&base.id) == Some(&false);
            self.has_left_out |=
                skip(batch, &Known { ends: &ending.bases, is_stopped: &is_stopped, is_unchanged: &is_unchanged });
        }
        let original = Arc::new(batch.clone());
        let copies = match self.bounded.take() {
            Some(mut bounded) => {
                let copies = self.take_bounded(&mut bounded, &ending, (&original, batch));
                self.bounded = Some(bounded);
                copies
            }
            None => self.take_all(&original, batch),
        };
        insert(batch, copies);
        let asked = self.bounded.as_ref().map_or_else(Vec::new, |bounded| bounded.history.asks().0);
        let places: HashMap<u64, u32> = original.bases.iter().map(|base| base.id).zip(0..).collect();
        self.fresh.iter().chain(&asked).filter_map(|id| places.get(id).copied()).collect()
    }

    /// Takes the arrays of the batch shown last: of the bases to keep, and of the copies, in their order.
    fn receive(&mut self, kept: &[(u64, ArrayId)], made: &[(u64, ArrayId)]) {
        let mut kept = kept.iter().peekable();
        for base in std::mem::take(&mut self.fresh) {
            if let Some(&(id, array)) = kept.next_if(|(id, _)| *id == base) {
                self.held.insert(id, Some(array));
            }
        }
        let (own, others) = made.split_at(std::mem::take(&mut self.copies).min(made.len()));
        let first = self.saved.len() - own.len();
        for (saved, &(id, array)) in self.saved[first..].iter_mut().zip(own) {
            (saved.base, saved.array) = (id, Some(array));
        }
        if let Some(bounded) = &mut self.bounded {
            let rest: Vec<(u64, ArrayId)> = kept.copied().collect();
            bounded.history.receive(&rest, others);
        }
    }

    /// Does the base depend on the arguments?
    fn depends(&self, base: u64) -> bool {
        self.active.contains(&base)
    }

    fn refusal(&self) -> &'static str {
        "the values of an array that depends on the arguments of a derivative are read: they would count as constant. \
         Use the array itself, or read bh.stop_gradient(array)"
    }

    /// Does the base hold values that the tape relies on, or that depend on the arguments?
    fn relies_on(&self, base: u64) -> bool {
        let runs_again = self.bounded.as_ref().is_some_and(|bounded| bounded.history.knows(base));
        self.depends(base) || self.held.contains_key(&base) || runs_again
    }

    fn errand(&mut self) -> Option<Errand> {
        self.bounded.as_mut()?.errand()
    }

    /// Notes why there can be no derivative.
    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}
