//! A model that tracks the version of every element on every rank, in builds with debug assertions. It follows plans in
//! planning order, which is equivalent to the order of stages, as [`crate::plan::order`] checks.

use crate::plan::array::Array;
use crate::plan::boxes::packed;
use crate::plan::stage::{Local, Place};
use bh_bytecode::interp::offsets;
use bh_bytecode::{Base, View};
use std::collections::HashMap;

/// Arrays with more elements are not tracked.
const MOST_ELEMENTS: i64 = 1 << 16;

/// The content of an element of a rank's base: version in the upper half, element of the program's array in the lower.
/// Versions are unique across arrays, so they also identify the array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held(u64);

impl Held {
    /// A result of the current instruction.
    const RESULT: Held = Held(u64::MAX);

    /// The zero value if the element was never written.
    fn new(version: u32, element: i64) -> Held {
        if version == 0 { Held(0) } else { Held(u64::from(version) << 32 | element as u64) }
    }
}

/// The versions of all elements known to the planner and to this process's ranks.
#[derive(Debug, Default)]
pub struct Versions {
    complete: bool,
    last: u32,
    /// Versions of the program's arrays, by element; 0 if it was never written.
    newest: HashMap<u64, Vec<u32>>,
    /// Contents of the ranks' bases, by element; zeros if missing.
    held: HashMap<u64, Vec<Held>>,
    /// Dropped bases that may still be sent.
    dropped: Vec<u64>,
}

fn places(view: &View) -> impl Iterator<Item = i64> {
    offsets(view.start(), view.shape(), view.stride())
}

/// Pairs of an element of a packed copy and the array's element that it holds.
fn copied(view: &View) -> impl Iterator<Item = (i64, i64)> {
    let packed = packed(view).expect("the copy was made so");
    places(&packed).zip(places(view)).collect::<Vec<_>>().into_iter()
}

impl Versions {
    /// Nothing written yet. `complete`: this process hosts all ranks; otherwise nothing is tracked.
    pub fn new(complete: bool) -> Versions {
        Versions { complete, ..Versions::default() }
    }

    fn follows(&self, base: &Base) -> bool {
        self.complete && base.len <= MOST_ELEMENTS
    }

    fn held(&mut self, base: &Base) -> &mut Vec<Held> {
        self.held.entry(base.id).or_insert_with(|| vec![Held::default(); base.len as usize])
    }

    /// Records a part of the program's instruction on a rank.
    pub fn run(&mut self, operands: &[Local], outputs: usize) {
        for operand in operands.iter().take(outputs) {
            if let Local::Data(place) = operand {
                self.result(place);
            }
        }
    }

    /// Records results of the current instruction.
    pub fn result(&mut self, place: &Place) {
        if self.follows(&place.base) {
            let held = self.held(&place.base);
            places(&place.view).for_each(|element| held[element as usize] = Held::RESULT);
        }
    }

    /// Records a copy of elements.
    pub fn copy(&mut self, source: &Place, target: &Place) {
        if !self.follows(&target.base) || !self.follows(&source.base) {
            return;
        }
        let there = self.held.get(&source.base.id);
        let what = |element: i64| there.map_or(Held::default(), |held| held[element as usize]);
        let from: Vec<Held> = places(&source.view).map(what).collect();
        let held = self.held(&target.base);
        places(&target.view).zip(from).for_each(|(element, what)| held[element as usize] = what);
    }

    /// Records that a base is dropped.
    pub fn drop(&mut self, base: &Base) {
        self.dropped.push(base.id);
    }

    /// Forgets dropped bases; all planned stages are about to run.
    pub fn settle(&mut self) {
        for base in self.dropped.drain(..) {
            self.held.remove(&base);
        }
    }

    /// Forgets an array of the program.
    pub fn forget(&mut self, array: &Array) {
        self.newest.remove(&array.base.id);
    }

    /// Records that an array becomes zeros.
    pub fn clear(&mut self, array: &Array) {
        self.forget(array);
        for base in array.shards.values() {
            self.held.remove(&base.id);
        }
    }

    /// Records a write that is no part of a plan: by the program, a file or an exchange.
    pub fn note_external_write(&mut self, array: &Array, view: &View) {
        for &rank in array.shards.keys() {
            let Some(shard) = array.shard(rank).filter(|shard| self.follows(&shard.base)) else { continue };
            let held = self.held(&shard.base);
            let mine = array.places_in(rank, array.reach(rank), view);
            mine.into_iter().for_each(|(_, place)| held[place as usize] = Held::RESULT);
        }
    }

    /// Records that a view was written by the ranks that compute its elements, or by all ranks. Panics if one of them
    /// has not.
    pub fn finish(&mut self, array: &Array, view: &View, everywhere: bool) {
        if !self.follows(&array.base) || array.lost.is_some() {
            return;
        }
        self.last += 1;
        let version = self.last;
        let newest = self.newest.entry(array.base.id).or_insert_with(|| vec![0; array.base.len as usize]);
        places(view).for_each(|element| newest[element as usize] = version);
        for &rank in array.shards.keys() {
            let Some(shard) = array.shard(rank) else { continue };
            let reach = if everywhere { array.all() } else { array.reach(rank) };
            let held = self.held(&shard.base);
            for (element, place) in array.places_in(rank, reach, view) {
                let there = &mut held[place as usize];
                let id = array.base.id;
                assert!(*there == Held::RESULT, "rank {rank} does not write element {element} of array {id}");
                *there = Held::new(version, element);
            }
        }
    }

    /// Assumes that the ranks' elements of an array are current: its plan has run before, or it is the user's memory.
    pub fn trust(&mut self, array: &Array) {
        if !self.follows(&array.base) {
            return;
        }
        self.last += 1;
        let mut newest = vec![self.last; array.base.len as usize];
        for rank in (0..array.cuts.ranks()).filter(|rank| !array.shards.contains_key(rank)) {
            array.places_of_valid(rank).into_iter().for_each(|(element, _)| newest[element as usize] = 0);
        }
        for (rank, base) in &array.shards {
            let held = self.held(base);
            for (element, place) in array.places_of_valid(*rank) {
                held[place as usize] = Held::new(newest[element as usize], element);
            }
        }
        for ((_, view), copy) in &array.copies {
            let held = self.held(&copy.base);
            for (place, element) in copied(view) {
                held[place as usize] = Held::new(newest[element as usize], element);
            }
        }
        self.newest.insert(array.base.id, newest);
    }

    /// Panics if an element on a rank has another version than the planner assumes.
    pub fn check(&self, array: &Array) {
        if !self.complete {
            return;
        }
        for rank in 0..array.cuts.ranks() {
            if self.follows(&array.base) {
                self.compare(
                    array,
                    rank,
                    array.shards.get(&rank),
                    array.places_of_valid(rank).into_iter().map(|(element, place)| (place, element)),
                );
            }
        }
        for ((rank, view), copy) in &array.copies {
            self.compare(array, *rank, Some(&copy.base), copied(view));
        }
    }

    /// Panics if a place of a rank differs from the current view of an array.
    pub fn expect(&self, array: &Array, view: &View, rank: usize, place: &Place) {
        // A view may repeat few elements very often.
        if view.len() > MOST_ELEMENTS {
            return;
        }
        self.compare(array, rank, Some(&place.base), places(&place.view).zip(places(view)));
    }

    /// Panics if elements of a rank's base, or zeros without one, are not the newest of the array's elements.
    fn compare(&self, array: &Array, rank: usize, base: Option<&Base>, elements: impl Iterator<Item = (i64, i64)>) {
        if !self.follows(&array.base) || array.lost.is_some() {
            return;
        }
        let (id, newest) = (array.base.id, self.newest.get(&array.base.id));
        let held = base.and_then(|base| self.held.get(&base.id));
        for (place, element) in elements {
            let wanted = Held::new(newest.map_or(0, |newest| newest[element as usize]), element);
            let there = held.map_or(Held::default(), |held| held[place as usize]);
            assert!(there == wanted, "rank {rank} has {there:x?} for element {element} of array {id}, not {wanted:x?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::boxes::Span;
    use crate::plan::coverage::Coverage;
    use crate::plan::layout::Cuts;
    use bh_bytecode::DType;

    /// An array of ten elements on two ranks; the second also has two of the first's.
    fn array() -> Array {
        let base = Base::new(1, DType::F64, 10);
        let cuts = Cuts::rows(10, 1, &crate::plan::layout::Weights::even(2));
        let mut array = Array::new(&base, 1, cuts, false, false);
        let local = |id, len: i64| Base::new(id, DType::F64, len);
        array.shards = [(0, local(7, 5)), (1, local(8, 7))].into();
        array.window_runs.set(1..2, Coverage::Around(2, 0));
        array.set_valid(1, Span::new(3, 10));
        array
    }

    fn run(array: &Array, rank: usize, span: Span) -> Place {
        let shard = array.shard(rank).unwrap();
        Place::run(shard.base, span, shard.window).unwrap()
    }

    fn written(versions: &mut Versions, array: &mut Array, span: Span) {
        for rank in 0..2 {
            let part = span.meet(array.cuts.own(rank));
            versions.run(&[Local::Data(run(array, rank, part))], 1);
        }
        let view = View::new(span.low, &[span.len()], &[1]).unwrap();
        versions.finish(array, &view, false);
        array.changed(span);
    }

    #[test]
    fn fetched_elements_are_as_new_as_the_owners() {
        let (mut versions, mut array) = (Versions::new(true), array());
        versions.check(&array);
        written(&mut versions, &mut array, Span::new(0, 10));
        versions.check(&array);
        array.set_valid(1, Span::new(3, 10));
        versions.copy(&run(&array, 0, Span::new(3, 5)), &run(&array, 1, Span::new(3, 5)));
        versions.check(&array);
    }

    #[test]
    #[should_panic(expected = "rank 1 has Held(0) for element 3")]
    fn elements_that_were_never_fetched_are_found() {
        let (mut versions, mut array) = (Versions::new(true), array());
        written(&mut versions, &mut array, Span::new(0, 10));
        array.set_valid(1, Span::new(3, 10));
        versions.check(&array);
    }

    #[test]
    #[should_panic(expected = "for element 3 of array 1")]
    fn elements_out_of_place_are_found() {
        let (mut versions, mut array) = (Versions::new(true), array());
        written(&mut versions, &mut array, Span::new(0, 10));
        array.set_valid(1, Span::new(3, 10));
        versions.copy(&run(&array, 0, Span::new(2, 4)), &run(&array, 1, Span::new(3, 5)));
        versions.check(&array);
    }

    #[test]
    #[should_panic(expected = "rank 1 does not write element 5")]
    fn owners_must_write() {
        let (mut versions, array) = (Versions::new(true), array());
        versions.run(&[Local::Data(run(&array, 0, Span::new(0, 5)))], 1);
        versions.finish(&array, &View::contiguous(&[10]).unwrap(), false);
    }
}
