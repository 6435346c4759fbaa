//! Runs sort, argsort, flatnonzero and compress on distributed arrays: each rank computes a local result, ranks agree
//! where the owners' parts of the output begin in it, and send each owner one message.

use crate::command::failure::Failure;
use crate::plan::sort_select::{Method, Owner, Part, SortSelect};
use crate::plan::stage::{Local, LocalBatch, Place};
use crate::run::keys::Keys;
use crate::run::machine::{Machine, timed};
use crate::run::search::Search;
use crate::transport::Class;
use bh_bytecode::{Base, BatchRef, DType, Instr, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::BTreeMap;

/// Bytes of a position.
const POSITION: usize = 8;

/// A rank's local result.
#[derive(Default)]
struct LocalResult {
    values: Vec<u8>,
    /// The elements' positions in the input, for methods that return positions.
    positions: Vec<u8>,
}

/// The end of each owner's part within each rank's local result.
pub(crate) type Splits = BTreeMap<usize, Vec<usize>>;

/// How many elements of a rank's sorted local result (its number among this process's) have keys up to a number.
pub(crate) type Count<'a> = dyn FnMut(&mut Machine, usize, u64) -> Result<i64> + 'a;

impl SortSelect {
    /// Where the parts of all owners but the last end in the output.
    pub(crate) fn inner_ends(&self) -> Vec<i64> {
        let mut ends: Vec<i64> = self.owners.iter().map(|owner| owner.numbers.high).collect();
        // The last owner's part ends with the local result.
        ends.pop();
        ends
    }

    /// Bytes of an element's value and position in messages.
    fn sizes(&self) -> [usize; 2] {
        match self.method {
            Method::Sort | Method::Compress => [self.dtype.size(), 0],
            Method::Argsort => [self.dtype.size(), POSITION],
            Method::Flatnonzero => [0, POSITION],
        }
    }

    pub(crate) fn keys(&self) -> Keys {
        Keys { dtype: self.dtype, by_value: self.method == Method::Argsort }
    }
}

/// A temporary line on a rank.
pub(crate) fn line(machine: &mut Machine, dtype: DType, count: usize) -> Result<Place> {
    let view = View::contiguous(&[count as i64]).map_err(|error| Error::new(status::BATCH, error.0))?;
    Ok(Place { base: Base::new(machine.planner.new_base(), dtype, count.max(1) as i64), view })
}

/// An owner's part of a rank's local result.
fn slice<'a>(made: &'a LocalResult, sizes: [usize; 2], ends: &[usize], owner: usize) -> [&'a [u8]; 2] {
    let (first, end) = (if owner == 0 { 0 } else { ends[owner - 1] }, ends[owner]);
    [&made.values[first * sizes[0]..end * sizes[0]], &made.positions[first * sizes[1]..end * sizes[1]]]
}

impl Machine {
    /// Runs such a method after all earlier work. Returns the failure of the lowest rank.
    pub fn sort_or_select(&mut self, batch: &BatchRef<'_>, index: u32, plan: &SortSelect) -> Result<Option<Failure>> {
        let mut failed = self.run(batch);
        let failure = |error: Error| Failure::new(Some(index), error.at_instr(batch, index).unplaced());
        if failed.is_none() && self.sorts_within(plan) {
            let outcome = self.sort_within(batch, index, plan);
            self.planner.note_external_write(plan.written.0, &plan.written.1);
            return Ok(outcome.err().map(failure));
        }
        let mut made = BTreeMap::new();
        for part in plan.parts.iter().filter(|part| self.port.hosts(part.rank)).collect::<Vec<_>>() {
            if failed.is_none() {
                match self.compute_local(batch, index, plan, part) {
                    Ok(own) => drop(made.insert(part.rank, own)),
                    Err(error) => failed = Some(failure(error)),
                }
            }
        }
        if let Some(failure) = self.agree(failed)? {
            return Ok(Some(failure));
        }
        let ends = match plan.method.keeps_length() {
            true => {
                let (keys, none) = (plan.keys(), LocalResult::default());
                let own: Vec<&LocalResult> = self.port.hosted().map(|rank| made.get(&rank).unwrap_or(&none)).collect();
                let lens: Vec<usize> = own.iter().map(|made| made.values.len() / keys.dtype.size()).collect();
                let wanted = plan.inner_ends();
                let mut count =
                    |_: &mut Machine, hosted: usize, number: u64| Ok(keys.up_to(&own[hosted].values, number) as i64);
                self.splits_of_sorted(Search::new(wanted.clone(), keys), &wanted, &lens, &mut count)?
            }
            false => match self.splits_by_counts(plan, &made)? {
                Ok(ends) => ends,
                Err(error) => return Ok(Some(failure(error))),
            },
        };
        self.send_results(plan, &made, &ends)?;
        let outcome = self.assemble(batch, index, plan, (&made, &ends));
        self.planner.note_external_write(plan.written.0, &plan.written.1);
        self.agree(outcome.err().map(failure))
    }

    /// Computes a rank's local result.
    fn compute_local(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        plan: &SortSelect,
        part: &Part,
    ) -> Result<LocalResult> {
        let count = part.inputs[0].view.len() as usize;
        let done = |machine: &mut Machine, dtype: DType, count: usize| {
            let result = line(machine, dtype, count)?;
            let operands: Vec<Place> = std::iter::once(result).chain(part.inputs.iter().copied()).collect();
            let done = machine.run_on_rank(batch, part.rank, &[(batch.instrs[index as usize], index, operands)], &[]);
            let elements = machine.take_elements(part.rank, &result);
            done.and(elements)
        };
        Ok(match plan.method {
            Method::Sort => LocalResult { values: done(self, plan.dtype, count)?, positions: Vec::new() },
            Method::Argsort => {
                let (order, size) = (done(self, DType::I64, count)?, plan.dtype.size());
                let unsorted = self.elements(part.rank, &part.inputs[0])?;
                let mut made = LocalResult::default();
                for word in order.as_chunks::<POSITION>().0 {
                    let own = i64::from_ne_bytes(*word);
                    made.values.extend_from_slice(&unsorted[own as usize * size..][..size]);
                    made.positions.extend_from_slice(&(part.first + own).to_ne_bytes());
                }
                made
            }
            Method::Flatnonzero => {
                let mask = self.elements(part.rank, &part.inputs[0])?;
                let numbers = (part.first..).zip(&mask).filter(|(_, chosen)| **chosen != 0);
                let positions = numbers.flat_map(|(number, _)| number.to_ne_bytes()).collect();
                LocalResult { values: Vec::new(), positions }
            }
            Method::Compress => {
                let mask = self.elements(part.rank, &part.inputs[0])?;
                let chosen = mask.iter().filter(|chosen| **chosen != 0).count();
                let values = if chosen == 0 { Vec::new() } else { done(self, plan.dtype, chosen)? };
                LocalResult { values, positions: Vec::new() }
            }
        })
    }

    /// The splits if the output is the concatenation of local results. All ranks get the same error.
    fn splits_by_counts(&mut self, plan: &SortSelect, made: &BTreeMap<usize, LocalResult>) -> Result<Result<Splits>> {
        let (sizes, ranks) = (plan.sizes(), self.port.ranks());
        let mine: Vec<Vec<i64>> = self
            .port
            .hosted()
            .map(|rank| {
                let mut counts = vec![0; ranks];
                counts[rank] = made
                    .get(&rank)
                    .map_or(0, |made| (made.values.len() + made.positions.len()) / (sizes[0] + sizes[1]))
                    as i64;
                counts
            })
            .collect();
        let counts = self.scan(&mine)?.all;
        let (found, expected) = (counts.iter().sum::<i64>(), plan.owners.last().map_or(0, |last| last.numbers.high));
        if found != expected {
            let text = format!("the mask chooses {found} elements, but the output has {expected}");
            return Ok(Err(Error::new(status::EXECUTION, text)));
        }
        let mut before = 0;
        let mut ends = BTreeMap::new();
        for part in &plan.parts {
            let count = counts[part.rank];
            let end = |owner: &Owner| (owner.numbers.high - before).clamp(0, count) as usize;
            ends.insert(part.rank, plan.owners.iter().map(end).collect());
            before += count;
        }
        Ok(Ok(ends))
    }

    /// The splits of sorted local results of these lengths, for this process's ranks: how many of their elements precede each owner's
    /// end. Elements of lower ranks precede equal ones.
    pub(crate) fn splits_of_sorted(
        &mut self,
        mut search: Search,
        wanted: &[i64],
        lens: &[usize],
        count: &mut Count<'_>,
    ) -> Result<Splits> {
        loop {
            let asked = search.probes();
            if asked.is_empty() {
                break;
            }
            let counts = self.counts(lens.len(), &asked, count)?;
            let counts = self.scan(&counts)?.all;
            search.narrow(&asked, &counts);
        }
        // The counts below the next owner's first key, and equal to it.
        let found: Vec<u64> = search.found().collect();
        let below: Vec<u64> = found.iter().map(|number| number.saturating_sub(1)).collect();
        let (below, up_to) = (self.counts(lens.len(), &below, count)?, self.counts(lens.len(), &found, count)?);
        let places = wanted.len();
        let counts: Vec<Vec<i64>> = below
            .iter()
            .zip(&up_to)
            .map(|(below, up_to)| {
                let less = |place: usize| if found[place] == 0 { 0 } else { below[place] };
                (0..places).map(less).chain((0..places).map(|place| up_to[place] - less(place))).collect()
            })
            .collect();
        let sums = self.scan(&counts)?;
        let mut ends = BTreeMap::new();
        for ((rank, len), (counts, before)) in self.port.hosted().zip(lens).zip(counts.iter().zip(&sums.before)) {
            let end = |place: usize| {
                let left = wanted[place] - sums.all[place] - before[places + place];
                (counts[place] + left.clamp(0, counts[places + place])) as usize
            };
            ends.insert(rank, (0..places).map(end).chain([*len]).collect());
        }
        Ok(ends)
    }

    /// The counts of this process's ranks for some numbers.
    fn counts(&mut self, ranks: usize, numbers: &[u64], count: &mut Count<'_>) -> Result<Vec<Vec<i64>>> {
        (0..ranks).map(|hosted| numbers.iter().map(|&number| count(self, hosted, number)).collect()).collect()
    }

    /// Sends local results to the owners. If receivers do not know the sizes, empty messages are sent, too.
    fn send_results(&mut self, plan: &SortSelect, made: &BTreeMap<usize, LocalResult>, ends: &Splits) -> Result<()> {
        for (&rank, own) in made {
            for (number, owner) in plan.owners.iter().enumerate().filter(|(_, owner)| owner.rank != rank) {
                let message = slice(own, plan.sizes(), &ends[&rank], number).concat();
                let class = if message.is_empty() { Class::Control } else { Class::Payload };
                if class == Class::Payload || plan.method.keeps_length() {
                    self.port.send(class, rank, owner.rank, message)?;
                }
            }
        }
        Ok(())
    }

    /// Assembles the parts of this process's owners, in the order of ranks.
    fn assemble(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        plan: &SortSelect,
        (made, ends): (&BTreeMap<usize, LocalResult>, &Splits),
    ) -> Result<()> {
        let sizes = plan.sizes();
        let mut outcome = Ok(());
        for (number, owner) in plan.owners.iter().enumerate() {
            if !self.port.hosts(owner.rank) {
                continue;
            }
            let mut got = LocalResult::default();
            let mut senders = 0;
            for part in &plan.parts {
                let known = ends.get(&part.rank);
                let nothing = known.is_some_and(|ends| ends[number] == if number == 0 { 0 } else { ends[number - 1] });
                if part.rank == owner.rank {
                    let [values, positions] = slice(&made[&part.rank], sizes, &ends[&part.rank], number);
                    got.values.extend_from_slice(values);
                    got.positions.extend_from_slice(positions);
                    senders += usize::from(!nothing);
                } else if plan.method.keeps_length() || !nothing {
                    let message = timed(&mut self.spent.wait, || self.port.receive(owner.rank, part.rank))?;
                    let count = message.len() / (sizes[0] + sizes[1]);
                    got.values.extend_from_slice(&message[..count * sizes[0]]);
                    got.positions.extend_from_slice(&message[count * sizes[0]..]);
                    senders += usize::from(count > 0);
                }
            }
            let sorted = !plan.method.keeps_length() || senders < 2;
            let put = match sorted {
                true => self.put(owner, if sizes[1] > 0 { &got.positions } else { &got.values }),
                false => self.merge(batch, index, plan, owner, &got),
            };
            outcome = outcome.and(put);
        }
        outcome
    }

    fn put(&mut self, owner: &Owner, bytes: &[u8]) -> Result<()> {
        let (state, child) = self.rank(owner.rank);
        state.unpack(child, &owner.place, bytes).map(drop)
    }

    /// Sorts an owner's part that came sorted from several ranks.
    fn merge(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        plan: &SortSelect,
        owner: &Owner,
        got: &LocalResult,
    ) -> Result<()> {
        let count = owner.numbers.len() as usize;
        let method = batch.instrs[index as usize];
        let data = line(self, plan.dtype, count)?;
        let (state, child) = self.rank(owner.rank);
        state.unpack(child, &data, &got.values)?;
        if plan.method == Method::Sort {
            return self.run_on_rank(batch, owner.rank, &[(method, index, vec![owner.place, data])], &[data]);
        }
        let (order, positions) = (line(self, DType::I64, count)?, line(self, DType::I64, count)?);
        let (state, child) = self.rank(owner.rank);
        state.unpack(child, &positions, &got.positions)?;
        let mut gather = Instr::new(Opcode::Gather, &[Default::default(); 3]);
        gather.origin = method.origin;
        let steps = [(method, index, vec![order, data]), (gather, index, vec![owner.place, positions, order])];
        self.run_on_rank(batch, owner.rank, &steps, &[data, order, positions])
    }

    /// Runs instructions on places of a rank's stack, then drops some places.
    pub(crate) fn run_on_rank(
        &mut self,
        batch: &BatchRef<'_>,
        rank: usize,
        steps: &[(Instr, u32, Vec<Place>)],
        dropped: &[Place],
    ) -> Result<()> {
        let mut local = LocalBatch::default();
        for (like, index, places) in steps {
            let operands: Vec<Local> = places.iter().map(|place| Local::Data(*place)).collect();
            local.push(like, *index, &operands);
        }
        dropped.iter().for_each(|place| local.push_system(Opcode::Discard, &place.base));
        local.complete(batch);
        let (state, child) = self.rank(rank);
        state.run(child, &mut local)
    }

    /// Takes the elements of a temporary line, and drops it.
    pub(crate) fn take_elements(&mut self, rank: usize, place: &Place) -> Result<Vec<u8>> {
        let bytes = self.elements(rank, place);
        let (state, child) = self.rank(rank);
        state.forget(child, &place.base)?;
        bytes
    }
}
