//! Runs methods whose result is one row of elements of all ranks: each makes its part, the ranks agree where the owners' parts of
//! the result begin in it, and one message from each to each owner carries them.

use crate::command::failure::Failure;
use crate::plan::dealing::{Dealing, Dealt, Owner, Part};
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

/// Elements of a rank's part of the result.
#[derive(Default)]
struct Made {
    values: Vec<u8>,
    /// Where they came from, if that is the result.
    positions: Vec<u8>,
}

/// Where the parts of the owners end in what each rank made.
type Ends = BTreeMap<usize, Vec<usize>>;

impl Dealing {
    /// Bytes of an element of what is sent: its value and its position.
    fn sizes(&self) -> [usize; 2] {
        match self.dealt {
            Dealt::Sorted | Dealt::Chosen => [self.dtype.size(), 0],
            Dealt::Order => [self.dtype.size(), POSITION],
            Dealt::Numbers => [0, POSITION],
        }
    }

    fn keys(&self) -> Keys {
        Keys { dtype: self.dtype, by_value: self.dealt == Dealt::Order }
    }
}

/// A line of a rank that is not the program's.
fn line(machine: &mut Machine, dtype: DType, count: usize) -> Result<Place> {
    let view = View::contiguous(&[count as i64]).map_err(|error| Error::new(status::BATCH, error.0))?;
    Ok(Place { base: Base::new(machine.planner.new_base(), dtype, count.max(1) as i64), view })
}

/// The part of what a rank made that an owner gets.
fn slice<'a>(made: &'a Made, sizes: [usize; 2], ends: &[usize], owner: usize) -> [&'a [u8]; 2] {
    let (first, end) = (if owner == 0 { 0 } else { ends[owner - 1] }, ends[owner]);
    [&made.values[first * sizes[0]..end * sizes[0]], &made.positions[first * sizes[1]..end * sizes[1]]]
}

impl Machine {
    /// Does such a method; all that was planned before is done. The failure is that of some rank.
    pub fn deal(&mut self, batch: &BatchRef<'_>, index: u32, dealing: &Dealing) -> Result<Option<Failure>> {
        let mut failed = self.run(batch);
        let failure = |error: Error| Failure::new(Some(index), error.at_instr(batch, index).unplaced());
        let mut made = BTreeMap::new();
        for part in dealing.parts.iter().filter(|part| self.port.hosts(part.rank)).collect::<Vec<_>>() {
            if failed.is_none() {
                match self.make(batch, index, dealing, part) {
                    Ok(own) => drop(made.insert(part.rank, own)),
                    Err(error) => failed = Some(failure(error)),
                }
            }
        }
        if let Some(failure) = self.agree(failed)? {
            return Ok(Some(failure));
        }
        let ends = match dealing.dealt.keeps_all() {
            true => self.ends_in_order(dealing, &made)?,
            false => match self.ends_one_by_one(dealing, &made)? {
                Ok(ends) => ends,
                Err(error) => return Ok(Some(failure(error))),
            },
        };
        self.send_made(dealing, &made, &ends)?;
        let outcome = self.take_made(batch, index, dealing, (&made, &ends));
        self.planner.take_in(dealing.written.0, &dealing.written.1);
        self.agree(outcome.err().map(failure))
    }

    /// What a rank's own elements come to.
    fn make(&mut self, batch: &BatchRef<'_>, index: u32, dealing: &Dealing, part: &Part) -> Result<Made> {
        let count = part.inputs[0].view.len() as usize;
        let done = |machine: &mut Machine, dtype: DType, count: usize| {
            let result = line(machine, dtype, count)?;
            let operands: Vec<Place> = std::iter::once(result).chain(part.inputs.iter().copied()).collect();
            let done = machine.own(batch, part.rank, &[(batch.instrs[index as usize], index, operands)], &[]);
            let elements = machine.taken_out(part.rank, &result);
            done.and(elements)
        };
        Ok(match dealing.dealt {
            Dealt::Sorted => Made { values: done(self, dealing.dtype, count)?, positions: Vec::new() },
            Dealt::Order => {
                let (order, size) = (done(self, DType::I64, count)?, dealing.dtype.size());
                let unsorted = self.elements(part.rank, &part.inputs[0])?;
                let mut made = Made::default();
                for word in order.as_chunks::<POSITION>().0 {
                    let own = i64::from_ne_bytes(*word);
                    made.values.extend_from_slice(&unsorted[own as usize * size..][..size]);
                    made.positions.extend_from_slice(&(part.first + own).to_ne_bytes());
                }
                made
            }
            Dealt::Numbers => {
                let mask = self.elements(part.rank, &part.inputs[0])?;
                let numbers = (part.first..).zip(&mask).filter(|(_, chosen)| **chosen != 0);
                let positions = numbers.flat_map(|(number, _)| number.to_ne_bytes()).collect();
                Made { values: Vec::new(), positions }
            }
            Dealt::Chosen => {
                let mask = self.elements(part.rank, &part.inputs[0])?;
                let chosen = mask.iter().filter(|chosen| **chosen != 0).count();
                let values = if chosen == 0 { Vec::new() } else { done(self, dealing.dtype, chosen)? };
                Made { values, positions: Vec::new() }
            }
        })
    }

    /// Where the owners' parts end in what ranks made, which follows each other. An error is that of all ranks.
    fn ends_one_by_one(&mut self, dealing: &Dealing, made: &BTreeMap<usize, Made>) -> Result<Result<Ends>> {
        let (sizes, ranks) = (dealing.sizes(), self.port.ranks());
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
        let (found, room) = (counts.iter().sum::<i64>(), dealing.owners.last().map_or(0, |last| last.numbers.high));
        if found != room {
            let text = format!("the mask chooses {found} elements, but the output has {room}");
            return Ok(Err(Error::new(status::EXECUTION, text)));
        }
        let mut before = 0;
        let mut ends = BTreeMap::new();
        for part in &dealing.parts {
            let count = counts[part.rank];
            let end = |owner: &Owner| (owner.numbers.high - before).clamp(0, count) as usize;
            ends.insert(part.rank, dealing.owners.iter().map(end).collect());
            before += count;
        }
        Ok(Ok(ends))
    }

    /// The same of sorted parts, for the ranks of this process: how many of their elements come before the end of each owner's. Of
    /// equal ones, those of lower ranks come first.
    fn ends_in_order(&mut self, dealing: &Dealing, made: &BTreeMap<usize, Made>) -> Result<Ends> {
        let (keys, none) = (dealing.keys(), Made::default());
        let own: Vec<&Made> = self.port.hosted().map(|rank| made.get(&rank).unwrap_or(&none)).collect();
        let count = |made: &&Made, up_to: u64| keys.up_to(&made.values, up_to) as i64;
        let mut wanted: Vec<i64> = dealing.owners.iter().map(|owner| owner.numbers.high).collect();
        // All comes before the end of the last one's.
        wanted.pop();
        let mut search = Search::new(wanted.clone(), keys);
        loop {
            let asked = search.asks();
            if asked.is_empty() {
                break;
            }
            let counts: Vec<Vec<i64>> =
                own.iter().map(|made| asked.iter().map(|number| count(made, *number)).collect()).collect();
            let counts = self.scan(&counts)?.all;
            search.learn(&asked, &counts);
        }
        // How many are below the first element of the next owner, and how many are equal to it.
        let below = |made: &&Made, number: u64| number.checked_sub(1).map_or(0, |number| count(made, number));
        let places = wanted.len();
        let counts: Vec<Vec<i64>> = own
            .iter()
            .map(|made| {
                let less = search.found().map(|number| below(made, number));
                let equal = search.found().map(|number| count(made, number) - below(made, number));
                less.chain(equal).collect()
            })
            .collect();
        let sums = self.scan(&counts)?;
        let mut ends = BTreeMap::new();
        for ((rank, own), (counts, before)) in self.port.hosted().zip(own).zip(counts.iter().zip(&sums.before)) {
            let end = |place: usize| {
                let left = wanted[place] - sums.all[place] - before[places + place];
                (counts[place] + left.clamp(0, counts[places + place])) as usize
            };
            ends.insert(rank, (0..places).map(end).chain([own.values.len() / keys.dtype.size()]).collect());
        }
        Ok(ends)
    }

    /// Sends what ranks of this process made to the owners. Where not all know how much that is, one of nothing says so.
    fn send_made(&mut self, dealing: &Dealing, made: &BTreeMap<usize, Made>, ends: &Ends) -> Result<()> {
        for (&rank, own) in made {
            for (number, owner) in dealing.owners.iter().enumerate().filter(|(_, owner)| owner.rank != rank) {
                let message = slice(own, dealing.sizes(), &ends[&rank], number).concat();
                let class = if message.is_empty() { Class::Control } else { Class::Payload };
                if class == Class::Payload || dealing.dealt.keeps_all() {
                    self.port.send(class, rank, owner.rank, message)?;
                }
            }
        }
        Ok(())
    }

    /// Puts together what owners of this process got, in the order of ranks.
    fn take_made(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        dealing: &Dealing,
        (made, ends): (&BTreeMap<usize, Made>, &Ends),
    ) -> Result<()> {
        let sizes = dealing.sizes();
        let mut outcome = Ok(());
        for (number, owner) in dealing.owners.iter().enumerate() {
            if !self.port.hosts(owner.rank) {
                continue;
            }
            let mut got = Made::default();
            let mut senders = 0;
            for part in &dealing.parts {
                let known = ends.get(&part.rank);
                let nothing = known.is_some_and(|ends| ends[number] == if number == 0 { 0 } else { ends[number - 1] });
                if part.rank == owner.rank {
                    let [values, positions] = slice(&made[&part.rank], sizes, &ends[&part.rank], number);
                    got.values.extend_from_slice(values);
                    got.positions.extend_from_slice(positions);
                    senders += usize::from(!nothing);
                } else if dealing.dealt.keeps_all() || !nothing {
                    let message = timed(&mut self.spent.wait, || self.port.receive(owner.rank, part.rank))?;
                    let count = message.len() / (sizes[0] + sizes[1]);
                    got.values.extend_from_slice(&message[..count * sizes[0]]);
                    got.positions.extend_from_slice(&message[count * sizes[0]..]);
                    senders += usize::from(count > 0);
                }
            }
            let sorted = !dealing.dealt.keeps_all() || senders < 2;
            let put = match sorted {
                true => self.put(owner, if sizes[1] > 0 { &got.positions } else { &got.values }),
                false => self.join(batch, index, dealing, owner, &got),
            };
            outcome = outcome.and(put);
        }
        outcome
    }

    fn put(&mut self, owner: &Owner, bytes: &[u8]) -> Result<()> {
        let (state, child) = self.rank(owner.rank);
        state.unpack(child, &owner.place, bytes).map(drop)
    }

    /// Sorts what came sorted from several ranks.
    fn join(&mut self, batch: &BatchRef<'_>, index: u32, dealing: &Dealing, owner: &Owner, got: &Made) -> Result<()> {
        let count = owner.numbers.len() as usize;
        let method = batch.instrs[index as usize];
        let data = line(self, dealing.dtype, count)?;
        let (state, child) = self.rank(owner.rank);
        state.unpack(child, &data, &got.values)?;
        if dealing.dealt == Dealt::Sorted {
            return self.own(batch, owner.rank, &[(method, index, vec![owner.place, data])], &[data]);
        }
        let (order, positions) = (line(self, DType::I64, count)?, line(self, DType::I64, count)?);
        let (state, child) = self.rank(owner.rank);
        state.unpack(child, &positions, &got.positions)?;
        let mut gather = Instr::new(Opcode::Gather, &[Default::default(); 3]);
        gather.origin = method.origin;
        let steps = [(method, index, vec![order, data]), (gather, index, vec![owner.place, positions, order])];
        self.own(batch, owner.rank, &steps, &[data, order, positions])
    }

    /// Lets the stack of a rank do some instructions on places of its own; some of them are dropped then.
    pub(crate) fn own(
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

    /// The elements of a line that is not the program's, which is dropped.
    fn taken_out(&mut self, rank: usize, place: &Place) -> Result<Vec<u8>> {
        let bytes = self.elements(rank, place);
        let (state, child) = self.rank(rank);
        state.forget(child, &place.base)?;
        bytes
    }
}
