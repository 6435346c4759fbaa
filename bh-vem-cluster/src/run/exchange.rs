//! Runs gathers and scatters: ranks send requests to the owners of elements, one message each; for gathers, the owners
//! send elements back.

use crate::command::failure::Failure;
use crate::plan::exchange::{Exchange, NUMBER, Part, Values};
use crate::plan::stage::{Local, LocalBatch, Place};
use crate::run::machine::{Machine, timed};
use crate::transport::Class;
use bh_bytecode::{Base, BatchRef, DType, Instr, Opcode, View};
use bh_core::abi::{access, status};
use bh_core::error::{Error, Result};
use std::collections::{BTreeMap, HashMap};

/// Requests by hosted owner and requesting rank: numbers of elements, and their new values for a scatter.
type Received = BTreeMap<usize, Vec<(Vec<i64>, Vec<u8>)>>;

/// A rank's requests by owner: numbers of elements, relative to the owner's first, and their new values for a scatter.
#[derive(Default)]
struct Requests {
    numbers: Vec<Vec<i64>>,
    values: Vec<Vec<u8>>,
    /// The owner of each index, in the order of the indices.
    owners: Vec<u32>,
}

impl Exchange {
    /// Reads the indices of a part: the elements of the base that they name through the view; `None` where the mask is
    /// false. Fails if an index is out of range.
    fn elements(&self, machine: &mut Machine, part: &Part) -> Result<Vec<Option<i64>>> {
        let bytes = machine.elements(part.rank, &part.indices)?;
        let mask = part.mask.as_ref().map(|mask| machine.elements(part.rank, mask)).transpose()?;
        let signed = part.indices.base.dtype() == DType::I64;
        let length = self.view.len();
        let element = |(place, word): (usize, &[u8; NUMBER])| {
            if mask.as_ref().is_some_and(|mask| mask[place] == 0) {
                return Ok(None);
            }
            let index = match signed {
                true => i128::from(i64::from_ne_bytes(*word)),
                false => i128::from(u64::from_ne_bytes(*word)),
            };
            let from_start = if index < 0 { index + i128::from(length) } else { index };
            match i64::try_from(from_start) {
                Ok(flat) if (0..length).contains(&flat) => Ok(Some(at(&self.view, flat))),
                _ => {
                    let place = self.position(part, place as i64);
                    let text = format!("index {index} at position {place} is out of range for {length} elements");
                    Err(Error::new(status::EXECUTION, text))
                }
            }
        };
        bytes.as_chunks::<NUMBER>().0.iter().enumerate().map(element).collect()
    }

    /// The position among all indices of an index in a part.
    fn position(&self, part: &Part, mut place: i64) -> i64 {
        let (mut position, mut step) = (0, 1);
        for dim in (0..self.shape.len()).rev() {
            let extent = part.which.extent()[dim];
            position += (part.which.first()[dim] + place % extent) * step;
            place /= extent;
            step *= self.shape[dim];
        }
        position
    }

    /// Adds the requests of a rank's part.
    fn collect_requests(&self, machine: &mut Machine, part: &Part, requests: &mut Requests) -> Result<()> {
        let elements = self.elements(machine, part)?;
        let values = match &part.values {
            _ if self.gathers => Vec::new(),
            Values::Same(value) => value.clone(),
            Values::Data(place) => machine.elements(part.rank, place)?,
        };
        let size = if matches!(part.values, Values::Same(_)) { 0 } else { self.size() };
        let firsts = self.cuts.list();
        for (place, element) in elements.into_iter().enumerate() {
            let Some(element) = element else { continue };
            let owner = firsts.partition_point(|&first| first <= element) - 1;
            requests.numbers[owner].push(element - firsts[owner]);
            if self.gathers {
                requests.owners.push(owner as u32);
            } else {
                requests.values[owner].extend_from_slice(&values[place * size..][..self.size()]);
            }
        }
        Ok(())
    }

    fn size(&self) -> usize {
        self.owned.values().next().map_or(1, |place| place.base.dtype().size())
    }
}

/// The element of the base at a position of a view, in C order.
fn at(view: &View, mut flat: i64) -> i64 {
    let mut element = view.start();
    for (extent, step) in view.shape().iter().zip(view.stride()).rev() {
        element += flat % extent * step;
        flat /= extent;
    }
    element
}

impl Machine {
    /// Exchanges elements after all earlier work. Returns the failure of the lowest rank.
    pub fn exchange(&mut self, batch: &BatchRef<'_>, index: u32, exchange: &Exchange) -> Result<Option<Failure>> {
        let mut failed = self.run(batch);
        let failure = |error: Error| Failure::new(Some(index), error.at_instr(batch, index).unplaced());
        let ranks = self.port.ranks();
        let mut requests: BTreeMap<usize, Requests> = BTreeMap::new();
        for rank in self.port.hosted() {
            let fresh =
                Requests { numbers: vec![Vec::new(); ranks], values: vec![Vec::new(); ranks], owners: Vec::new() };
            requests.insert(rank, fresh);
        }
        for part in &exchange.parts {
            if let (Some(requests), None) = (requests.get_mut(&part.rank), &failed) {
                failed = exchange.collect_requests(self, part, requests).err().map(failure);
            }
        }
        if let Some(failure) = self.agree(failed)? {
            return Ok(Some(failure));
        }
        let received = self.send_requests(exchange, &mut requests)?;
        let outcome = match exchange.gathers {
            true => self.reply(exchange, &received, requests),
            false => self.update(batch, index, exchange, received),
        };
        let written = &exchange.written;
        self.planner.note_external_write(written.0, &written.1);
        self.agree(outcome.err().map(failure))
    }

    /// Sends requests to the owners; returns those received, by hosted owner, in the order of ranks. Ranks also send
    /// empty requests.
    fn send_requests(&mut self, exchange: &Exchange, requests: &mut BTreeMap<usize, Requests>) -> Result<Received> {
        for (&rank, requests) in requests.iter() {
            for &owner in exchange.owned.keys().filter(|&&owner| owner != rank) {
                let mut message: Vec<u8> =
                    requests.numbers[owner].iter().flat_map(|number| number.to_ne_bytes()).collect();
                message.extend_from_slice(&requests.values[owner]);
                let class = if message.is_empty() { Class::Control } else { Class::Payload };
                self.port.send(class, rank, owner, message)?;
            }
        }
        let each = NUMBER + if exchange.gathers { 0 } else { exchange.size() };
        let mut received = BTreeMap::new();
        for &owner in exchange.owned.keys().filter(|&&owner| self.port.hosts(owner)).collect::<Vec<_>>() {
            let mut all = Vec::new();
            for rank in 0..self.port.ranks() {
                if rank == owner {
                    let own = requests.entry(rank).or_default();
                    all.push((own.numbers[owner].clone(), std::mem::take(&mut own.values[owner])));
                    continue;
                }
                let message = timed(&mut self.spent.wait, || self.port.receive(owner, rank))?;
                let (numbers, values) = message.split_at(message.len() / each * NUMBER);
                let numbers = numbers.as_chunks::<NUMBER>().0.iter().map(|word| i64::from_ne_bytes(*word)).collect();
                all.push((numbers, values.to_vec()));
            }
            received.insert(owner, all);
        }
        Ok(received)
    }

    /// Owners send the requested elements; ranks store them.
    fn reply(&mut self, exchange: &Exchange, received: &Received, requests: BTreeMap<usize, Requests>) -> Result<()> {
        let size = exchange.size();
        let mut own: HashMap<usize, Vec<u8>> = HashMap::new();
        let mut outcome = Ok(());
        for (&owner, all) in received {
            for (rank, (numbers, _)) in all.iter().enumerate().filter(|(_, (numbers, _))| !numbers.is_empty()) {
                let reply = self.picked(owner, &exchange.owned[&owner], numbers).unwrap_or_else(|error| {
                    outcome = Err(error);
                    vec![0; numbers.len() * size]
                });
                if rank == owner {
                    own.insert(rank, reply);
                } else {
                    self.port.send(Class::Payload, owner, rank, reply)?;
                }
            }
        }
        for (rank, requests) in requests {
            let mut answers = vec![Vec::new(); self.port.ranks()];
            for &owner in exchange.owned.keys().filter(|&&owner| !requests.numbers[owner].is_empty()) {
                answers[owner] = match owner == rank {
                    true => own.remove(&rank).unwrap_or_default(),
                    false => timed(&mut self.spent.wait, || self.port.receive(rank, owner))?,
                };
            }
            let mut taken = vec![0; answers.len()];
            let mut elements = Vec::with_capacity(requests.owners.len() * size);
            for owner in requests.owners {
                let place = &mut taken[owner as usize];
                elements.extend_from_slice(&answers[owner as usize][*place..*place + size]);
                *place += size;
            }
            let mut rest = &elements[..];
            for part in exchange.parts.iter().filter(|part| part.rank == rank) {
                let Values::Data(place) = &part.values else { continue };
                let (state, child) = self.rank(rank);
                rest = state.unpack(child, place, rest)?;
            }
        }
        outcome
    }

    /// Elements of a rank, by their numbers.
    fn picked(&mut self, rank: usize, place: &Place, numbers: &[i64]) -> Result<Vec<u8>> {
        let size = place.base.dtype().size();
        let (state, child) = self.rank(rank);
        state.know(&place.base);
        let data = child.map(&place.base, Some(&place.view), access::READ)?;
        let mut bytes = vec![0; numbers.len() * size];
        for (into, number) in bytes.chunks_exact_mut(size).zip(numbers) {
            let from = (place.view.start() + number) as usize * size;
            // SAFETY: the map exposes the view's elements until `unmap`; the numbers are within the view, because
            // requesting ranks computed them from the same cuts.
            unsafe { std::ptr::copy_nonoverlapping(data.add(from), into.as_mut_ptr(), size) };
        }
        child.unmap(&place.base)?;
        Ok(bytes)
    }

    /// Owners update elements in the order of ranks, which is that of the indices.
    fn update(&mut self, batch: &BatchRef<'_>, index: u32, exchange: &Exchange, received: Received) -> Result<()> {
        let mut outcome = Ok(());
        for (owner, all) in received {
            let numbers: Vec<u8> =
                all.iter().flat_map(|(numbers, _)| numbers).flat_map(|number| number.to_ne_bytes()).collect();
            let values: Vec<u8> = all.into_iter().flat_map(|(_, values)| values).collect();
            let count = (numbers.len() / NUMBER) as i64;
            if count > 0 {
                let changed = self.update_own(batch, index, exchange, owner, (count, &numbers, &values));
                outcome = outcome.and(changed);
            }
        }
        outcome
    }

    /// Runs the update on the owner's stack, as a scatter to its own elements.
    fn update_own(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        exchange: &Exchange,
        owner: usize,
        (count, numbers, values): (i64, &[u8], &[u8]),
    ) -> Result<()> {
        let target = exchange.owned[&owner];
        let list = View::contiguous(&[count]).map_err(|error| Error::new(status::BATCH, error.0))?;
        let base = |id: u64, dtype: DType| Base::new(id, dtype, count);
        let indices = Place { base: base(self.planner.new_base(), DType::I64), view: list };
        let data = Place { base: base(self.planner.new_base(), target.base.dtype()), view: list };
        let opcode = if exchange.opcode == Opcode::ScatterAdd { Opcode::ScatterAdd } else { Opcode::Scatter };
        let mut like = Instr::new(opcode, &[Default::default(); 3]);
        like.origin = batch.instrs[index as usize].origin;
        let mut local = LocalBatch::default();
        local.push(&like, index, &[target, data, indices].map(Local::Data));
        [data, indices].iter().for_each(|place| local.push_system(Opcode::Discard, &place.base));
        local.complete(batch);
        let (state, child) = self.rank(owner);
        state.unpack(child, &data, values)?;
        state.unpack(child, &indices, numbers)?;
        state.run(child, &mut local)
    }

    /// The elements of a place, packed.
    pub(crate) fn elements(&mut self, rank: usize, place: &Place) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let (state, child) = self.rank(rank);
        state.pack(child, place, &mut bytes)?;
        Ok(bytes)
    }
}
