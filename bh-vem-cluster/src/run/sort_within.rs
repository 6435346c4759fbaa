//! Sorts a line over the ranks of one process without messages: sorted parts stay on their ranks. Keys are looked for in samples of
//! them, and in the pieces between two samples; owners get their parts by peer copies, and sort them once more.

use crate::plan::sort_select::{Method, SortSelect};
use crate::plan::stage::{Place, Transfer};
use crate::run::keys::Keys;
use crate::run::machine::Machine;
use crate::run::search::Search;
use crate::run::sort_select::{Splits, line};
use bh_bytecode::{BatchRef, Instr, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::HashMap;

/// The sorted part of a rank.
struct Sorted {
    rank: usize,
    place: Place,
    /// From an element of the sample to the next.
    step: usize,
    sample: Vec<u8>,
    /// The pieces that were read, by the element of the sample that they begin with.
    pieces: HashMap<usize, Vec<u8>>,
}

/// Some neighbours of a line.
fn part(place: &Place, first: usize, end: usize) -> Result<Place> {
    let view = place.view.slice(0, Some(first as i64), Some(end as i64), 1);
    view.map(|view| Place { base: place.base, view }).map_err(|why| Error::new(status::BATCH, why.to_string()))
}

impl Sorted {
    fn len(&self) -> usize {
        self.place.view.len() as usize
    }

    /// How many elements have keys up to a number.
    fn up_to(&mut self, machine: &mut Machine, keys: Keys, number: u64) -> Result<usize> {
        let Some(piece) = keys.up_to(&self.sample, number).checked_sub(1) else { return Ok(0) };
        let (first, end) = (piece * self.step, ((piece + 1) * self.step).min(self.len()));
        if !self.pieces.contains_key(&piece) {
            let read = machine.elements(self.rank, &part(&self.place, first, end)?)?;
            self.pieces.insert(piece, read);
        }
        Ok(first + keys.up_to(&self.pieces[&piece], number))
    }

    /// How many elements have keys up to a number at least, and at most, as far as the sample says.
    fn bounds(&self, keys: Keys, number: u64) -> [usize; 2] {
        let found = keys.up_to(&self.sample, number);
        [found.checked_sub(1).map_or(0, |before| before * self.step + 1), (found * self.step).min(self.len())]
    }
}

/// The keys at the wanted positions of all parts together lie between these, as far as the samples say.
fn between(parts: &[Sorted], keys: Keys, wanted: &[i64]) -> Vec<(u64, u64)> {
    let size = keys.dtype.size();
    let mut known: Vec<u64> =
        parts.iter().flat_map(|part| part.sample.chunks_exact(size)).map(|element| keys.of(element)).collect();
    known.sort_unstable();
    let first = |wanted: i64, bound: usize| {
        let few =
            |number: &u64| parts.iter().map(|part| part.bounds(keys, *number)[bound] as i64).sum::<i64>() <= wanted;
        known.get(known.partition_point(few)).copied()
    };
    wanted.iter().map(|&wanted| (first(wanted, 1).unwrap_or(0), first(wanted, 0).unwrap_or(keys.highest()))).collect()
}

impl Machine {
    /// Is everything of a sort on ranks of this process, which copy from each other?
    pub(crate) fn sorts_within(&self, plan: &SortSelect) -> bool {
        let hosts_all = (0..self.port.ranks()).all(|rank| self.port.hosts(rank));
        plan.method == Method::Sort && self.peer_copies && self.pool.is_some() && hosts_all
    }

    /// Sorts so, after all earlier work.
    pub(crate) fn sort_within(&mut self, batch: &BatchRef<'_>, index: u32, plan: &SortSelect) -> Result<()> {
        let mut parts = Vec::new();
        let mut outcome = self.sort_parts(batch, index, plan, &mut parts);
        if outcome.is_ok() {
            outcome = self.join_parts(batch, index, plan, &mut parts);
        }
        for part in &parts {
            let (state, child) = self.rank(part.rank);
            outcome = outcome.and(state.forget(child, &part.place.base));
        }
        outcome
    }

    /// Sorts the parts of all ranks, and takes samples.
    fn sort_parts(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        plan: &SortSelect,
        parts: &mut Vec<Sorted>,
    ) -> Result<()> {
        for own in plan.parts.iter().filter(|own| !own.inputs[0].view.is_empty()) {
            let place = line(self, plan.dtype, own.inputs[0].view.len() as usize)?;
            let step = place.view.len().isqrt().max(1) as usize;
            parts.push(Sorted { rank: own.rank, place, step, sample: Vec::new(), pieces: HashMap::new() });
            let method = batch.instrs[index as usize];
            self.run_on_rank(batch, own.rank, &[(method, index, vec![place, own.inputs[0]])], &[])?;
        }
        for sorted in parts.iter_mut() {
            let count = sorted.len().div_ceil(sorted.step);
            let some = View::new(0, &[count as i64], &[sorted.step as i64]);
            let some = Place { base: sorted.place.base, view: some.map_err(|why| Error::new(status::BATCH, why.0))? };
            let sample = line(self, plan.dtype, count)?;
            let copied = self.copy_on_rank(batch, index, sorted.rank, [sample, some]);
            let read = self.take_elements(sorted.rank, &sample);
            copied?;
            sorted.sample = read?;
        }
        Ok(())
    }

    /// Copies elements within a rank.
    fn copy_on_rank(&mut self, batch: &BatchRef<'_>, index: u32, rank: usize, places: [Place; 2]) -> Result<()> {
        let mut copy = Instr::new(Opcode::Copy, &[Default::default(); 2]);
        copy.origin = batch.instrs[index as usize].origin;
        self.run_on_rank(batch, rank, &[(copy, index, places.to_vec())], &[])
    }

    /// Brings the owners their parts, which they sort.
    fn join_parts(&mut self, batch: &BatchRef<'_>, index: u32, plan: &SortSelect, parts: &mut [Sorted]) -> Result<()> {
        let ends = self.ends_within(plan, parts)?;
        let (mut transfers, mut sorts) = (Vec::new(), Vec::new());
        for (number, owner) in plan.owners.iter().enumerate() {
            let begin = |rank: usize| if number == 0 { 0 } else { ends[&rank][number - 1] };
            let given: Vec<(&Sorted, usize, usize)> = parts
                .iter()
                .map(|part| (part, begin(part.rank), ends[&part.rank][number]))
                .filter(|(_, begin, end)| begin < end)
                .collect();
            let is_sorted = given.len() < 2;
            let target = if is_sorted { owner.place } else { line(self, plan.dtype, owner.numbers.len() as usize)? };
            let mut at = 0;
            for (sorted, begin, end) in given {
                let source = part(&sorted.place, begin, end)?;
                let target = part(&target, at, at + end - begin)?;
                at += end - begin;
                if sorted.rank == owner.rank {
                    self.copy_on_rank(batch, index, owner.rank, [target, source])?;
                } else {
                    transfers.push(Transfer { from: sorted.rank, to: owner.rank, source, target });
                }
            }
            if !is_sorted {
                sorts.push((owner, target));
            }
        }
        let (filled, begun) = self.begin_peer_copies(&transfers, &[]);
        let mut outcome = begun.and(self.end_peer_copies(filled));
        let method = batch.instrs[index as usize];
        for (owner, data) in sorts {
            let sort = (method, index, vec![owner.place, data]);
            outcome = outcome.and(self.run_on_rank(batch, owner.rank, &[sort], &[data]));
        }
        outcome
    }

    /// Where the owners' parts end within each sorted part.
    fn ends_within(&mut self, plan: &SortSelect, parts: &mut [Sorted]) -> Result<Splits> {
        let keys = plan.keys();
        let wanted = plan.inner_ends();
        let search = Search::between(wanted.clone(), between(parts, keys, &wanted));
        let places: HashMap<usize, usize> = parts.iter().enumerate().map(|(place, part)| (part.rank, place)).collect();
        let lens: Vec<usize> =
            self.port.hosted().map(|rank| places.get(&rank).map_or(0, |place| parts[*place].len())).collect();
        let first = self.port.hosted().start;
        let mut count = |machine: &mut Machine, hosted: usize, number: u64| {
            let place = places.get(&(first + hosted));
            place.map_or(Ok(0), |place| parts[*place].up_to(machine, keys, number)).map(|count| count as i64)
        };
        self.splits_of_sorted(search, &wanted, &lens, &mut count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::{Base, DType};

    #[test]
    fn samples_bound_the_keys_at_all_positions() {
        let keys = Keys { dtype: DType::I64, by_value: false };
        let sorted = |values: &[i64], step: usize| {
            let view = View::contiguous(&[values.len() as i64]).unwrap();
            let sample = values.iter().step_by(step).flat_map(|value| value.to_ne_bytes()).collect();
            let place = Place { base: Base::new(1, DType::I64, values.len() as i64), view };
            Sorted { rank: 0, place, step, sample, pieces: HashMap::new() }
        };
        let lines: [&[i64]; 3] = [&[-5, -1, 0, 0, 0, 3, 8, 8, 9, 70], &[0, 0, 0, 0], &[-9]];
        let mut all = lines.concat();
        all.sort_unstable();
        let wanted: Vec<i64> = (0..all.len() as i64).collect();
        for step in 1..5 {
            let parts = lines.map(|line| sorted(line, step));
            for (position, (low, high)) in between(&parts, keys, &wanted).into_iter().enumerate() {
                let key = keys.of(&all[position].to_ne_bytes());
                assert!(low <= key && key <= high, "step {step}, position {position}");
                assert!(step > 1 || low == high, "position {position}");
            }
        }
    }
}
