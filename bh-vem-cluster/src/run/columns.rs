//! Runs LU and Cholesky factorizations and linear systems on columns that are distributed in blocks: the rank of a
//! block factors it and broadcasts the factors to the ranks with blocks behind it (right-looking, as LAPACK's `getrf`
//! and `potrf`; one-dimensional, as LINPACK on the first hypercubes). The stacks below compute on blocks that are equal
//! for any number of ranks.

use crate::command::failure::Failure;
use crate::plan::boxes::IndexBox;
use crate::plan::columns::{Block, Columns, Factoring};
use crate::plan::fold::OwnInstr;
use crate::plan::methods::{CHOLESKY, PANEL, PRODUCT, SOLVE};
use crate::plan::stage::Place;
use crate::run::machine::{Machine, timed};
use crate::transport::Class;
use crate::transport::tree::{tree_children, tree_parent};
use bh_bytecode::{Base, BatchRef, DType, Instr, Opcode, View};
use bh_core::abi::{access, status};
use bh_core::error::{Error, Result};
use std::collections::BTreeMap;

/// The first byte of a block's message, after a failure or a success.
const FAILED: u8 = 0;
const DONE: u8 = 1;

/// Some rows of a matrix on a rank.
fn rows(place: &Place, first: i64, count: i64) -> Result<Place> {
    let part = IndexBox::whole(place.view.shape()).with(0, first, count);
    Ok(Place { base: place.base, view: part.of(&place.view, 0)? })
}

fn transposed(place: &Place) -> Result<Place> {
    let view = place.view.transpose(&[1, 0]).map_err(|error| Error::new(status::BATCH, error.0))?;
    Ok(Place { base: place.base, view })
}

/// A method or operation: opcode, number of outputs, and the places of outputs and inputs.
type Step = (Opcode, u8, Vec<Place>);

/// A factorization in progress.
struct Work<'a, 'b> {
    machine: &'a mut Machine,
    batch: &'a BatchRef<'b>,
    index: u32,
    columns: &'a Columns,
    size: usize,
    dtype: DType,
    /// The matrix's row numbers in pivot order.
    order: Vec<i64>,
    /// The first failure of a rank of this process.
    failed: Option<Error>,
}

impl Machine {
    /// Runs such a method after all earlier work. Returns the failure of the lowest rank.
    pub fn factor(&mut self, batch: &BatchRef<'_>, index: u32, columns: &Columns) -> Result<Option<Failure>> {
        let failed = self.run(batch);
        if let Some(failure) = self.agree(failed)? {
            self.planner.drop_columns(columns);
            return Ok(Some(failure));
        }
        let dtype = columns.matrix[0].place.base.dtype();
        let order = (0..columns.rows).collect();
        let mut work = Work { machine: self, batch, index, columns, size: dtype.size(), dtype, order, failed: None };
        work.factor()?;
        let mut failed = work.agree()?;
        if failed.is_none() && columns.factoring == Factoring::Solution {
            work.substitute()?;
            failed = work.agree()?;
        }
        let order = work.order;
        if failed.is_some() {
            self.planner.drop_columns(columns);
            return Ok(failed);
        }
        let blocks = if columns.factoring == Factoring::Solution { &columns.sides } else { &columns.matrix };
        self.planner.send_columns(&columns.outputs[0], blocks)?;
        if let Some(output) = columns.outputs.get(1) {
            self.give_order(output, columns.members[0], &order)?;
        }
        self.planner.drop_columns(columns);
        Ok(None)
    }

    /// Sends the order of rows to the owners of an output.
    fn give_order(&mut self, output: &(u64, View), rank: usize, order: &[i64]) -> Result<()> {
        let count = order.len() as i64;
        let place = self.planner.scratch(rank, &Base::new(0, DType::I64, 1), &[count, 1])?;
        if self.port.hosts(rank) {
            let bytes: Vec<u8> = order.iter().flat_map(|number| number.to_ne_bytes()).collect();
            let (state, child) = self.rank(rank);
            state.unpack(child, &place, &bytes)?;
        }
        self.planner.send_columns(output, &[Block { rank, first: 0, width: 1, place }])?;
        let at = self.planner.after_use(output.0);
        self.planner.stages.push_system(at, rank, Opcode::Discard, &place.base);
        Ok(())
    }

    /// Broadcasts a message from the first of some ranks along a tree; returns it for each rank of this process among
    /// them.
    fn broadcast_along(&mut self, ranks: &[usize], message: Option<Vec<u8>>) -> Result<BTreeMap<usize, Vec<u8>>> {
        let mut messages = BTreeMap::new();
        let mut first = message;
        for (place, &rank) in ranks.iter().enumerate().filter(|(_, rank)| self.port.hosts(**rank)).collect::<Vec<_>>() {
            let bytes = match first.take() {
                Some(bytes) if place == 0 => bytes,
                _ => timed(&mut self.spent.wait, || self.port.receive(rank, ranks[tree_parent(place)]))?,
            };
            for other in tree_children(place, ranks.len()) {
                self.port.send(Class::Payload, rank, ranks[other], bytes.clone())?;
            }
            messages.insert(rank, bytes);
        }
        Ok(messages)
    }
}

impl Work<'_, '_> {
    fn factor(&mut self) -> Result<()> {
        match self.columns.factoring {
            Factoring::Cholesky => self.cholesky(),
            Factoring::Lu | Factoring::Solution => self.lu(),
        }
    }

    /// The failure that counts for all ranks.
    fn agree(&mut self) -> Result<Option<Failure>> {
        let (batch, index) = (self.batch, self.index);
        let failure = |error: Error| Failure::new(Some(index), error.at_instr(batch, index).unplaced());
        let failed = self.failed.clone().map(failure);
        self.machine.agree(failed)
    }

    /// Does this process host a rank?
    fn hosts(&self, rank: usize) -> bool {
        self.machine.port.hosts(rank)
    }

    /// Keeps the first failure.
    fn keep<T: Default>(&mut self, outcome: Result<T>) -> T {
        outcome.unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            T::default()
        })
    }

    /// Runs steps on a rank's stack, then drops some places.
    fn run(&mut self, rank: usize, steps: Vec<Step>, dropped: &[Place]) {
        let own = |(opcode, outputs, places): Step| -> (Instr, u32, Vec<Place>) {
            let mut own = OwnInstr::new(self.batch, self.index, opcode, places.len());
            own.instr.outputs = outputs;
            (own.instr, own.index, places)
        };
        let steps: Vec<_> = steps.into_iter().map(own).collect();
        let done = self.machine.run_on_rank(self.batch, rank, &steps, dropped);
        self.keep(done);
    }

    fn scratch(&mut self, rank: usize, dtype: DType, shape: &[i64]) -> Result<Place> {
        self.machine.planner.scratch(rank, &Base::new(0, dtype, 1), shape)
    }

    /// A matrix on a rank with these elements.
    fn made(&mut self, rank: usize, shape: [i64; 2], bytes: &[u8]) -> Result<Place> {
        let place = self.scratch(rank, self.dtype, &shape)?;
        let (state, child) = self.machine.rank(rank);
        let made = state.unpack(child, &place, bytes).map(drop);
        self.keep(made);
        Ok(place)
    }

    /// The elements of a place; zeros if they are lost.
    fn elements(&mut self, rank: usize, place: &Place) -> Vec<u8> {
        let elements = self.machine.elements(rank, place);
        let bytes = self.keep(elements);
        if bytes.is_empty() { vec![0; place.bytes()] } else { bytes }
    }

    /// The ranks of some blocks, with `first` in front.
    fn listeners<'c>(&self, first: usize, blocks: impl Iterator<Item = &'c Block>) -> Vec<usize> {
        let mut ranks: Vec<usize> = blocks.map(|block| block.rank).filter(|rank| *rank != first).collect();
        ranks.sort_unstable();
        ranks.dedup();
        // In cyclic order from `first`, so that the work of broadcasting rotates.
        let behind = ranks.partition_point(|rank| *rank < first);
        ranks.rotate_left(behind);
        ranks.insert(0, first);
        ranks
    }

    /// The message of a block's rank: whether it failed, and the data for the others.
    fn message_of(&self, mut parts: Vec<u8>) -> Vec<u8> {
        parts.insert(0, if self.failed.is_some() { FAILED } else { DONE });
        parts
    }

    /// Factors the matrix, and applies the same steps to the right sides.
    fn lu(&mut self) -> Result<()> {
        let columns = self.columns;
        let keeps_lower = columns.factoring == Factoring::Lu;
        for (number, block) in columns.matrix.iter().enumerate() {
            let left = if keeps_lower { &columns.matrix[..number] } else { &[] };
            let right: Vec<&Block> = columns.matrix[number + 1..].iter().chain(&columns.sides).collect();
            let ranks = self.listeners(block.rank, left.iter().chain(right.iter().copied()));
            let message = if self.hosts(block.rank) { Some(self.panel(block)?) } else { None };
            let messages = self.machine.broadcast_along(&ranks, message)?;
            for (&rank, message) in &messages {
                if message[0] == FAILED {
                    return Ok(());
                }
                let count = (columns.rows - block.first) as usize;
                let (order, factors) = message[1..].split_at(8 * count);
                let order: Vec<i64> = order.as_chunks().0.iter().map(|word| i64::from_ne_bytes(*word)).collect();
                for own in left.iter().chain(right.iter().copied()).filter(|own| own.rank == rank) {
                    self.exchange(own, block.first, &order)?;
                }
                let of_rank: Vec<&Block> = right.iter().copied().filter(|own| own.rank == rank).collect();
                self.eliminate(block, &of_rank, factors)?;
                if rank == *messages.keys().next().unwrap_or(&rank) {
                    let before = self.order[block.first as usize..].to_vec();
                    let after = order.iter().map(|&row| before[row as usize]);
                    self.order.splice(block.first as usize.., after);
                }
            }
        }
        Ok(())
    }

    /// Factors a block of columns in place, from its diagonal on; returns the message with the order of its rows and
    /// the factors.
    fn panel(&mut self, block: &Block) -> Result<Vec<u8>> {
        let (rank, count) = (block.rank, self.columns.rows - block.first);
        let own = rows(&block.place, block.first, count)?;
        let factors = self.scratch(rank, self.dtype, &[count, block.width])?;
        let order = self.scratch(rank, DType::I64, &[count])?;
        self.run(rank, vec![(PANEL, 2, vec![factors, order, own]), (Opcode::Copy, 1, vec![own, factors])], &[]);
        let mut message_of = self.elements(rank, &order);
        let bytes = self.elements(rank, &factors);
        let step = (block.width as usize + 1) * self.size;
        let part = self.part();
        // Zeros of either sign.
        let none = |number: &[u8]| number[..part - 1].iter().all(|byte| *byte == 0) && number[part - 1] & 0x7f == 0;
        let zero = |place: usize| bytes[place * step..][..self.size].chunks_exact(part).all(none);
        if self.columns.factoring == Factoring::Solution && (0..block.width as usize).any(zero) {
            self.keep::<()>(Err(Error::new(status::EXECUTION, "solve: the matrix is singular")));
        }
        message_of.extend_from_slice(&bytes);
        self.run(rank, Vec::new(), &[factors, order]);
        Ok(self.message_of(message_of))
    }

    /// Permutes a block's rows from `first` on.
    fn exchange(&mut self, block: &Block, first: i64, order: &[i64]) -> Result<()> {
        let row = block.width as usize * self.size;
        let moved: Vec<(usize, usize)> =
            order.iter().enumerate().map(|(to, &from)| (to, from as usize)).filter(|(to, from)| to != from).collect();
        if moved.is_empty() {
            return Ok(());
        }
        let (_, child) = self.machine.rank(block.rank);
        let data = match child.map(&block.place.base, None, access::READ | access::WRITE) {
            Ok(data) => data,
            Err(error) => {
                self.keep::<()>(Err(error));
                return Ok(());
            }
        };
        // SAFETY: the map exposes all rows of the block until `unmap`, and this rank's stack runs nothing in the
        // meantime.
        let all = unsafe { std::slice::from_raw_parts_mut(data, block.place.bytes()) };
        let all = &mut all[first as usize * row..];
        let kept: Vec<u8> = moved.iter().flat_map(|(_, from)| &all[from * row..][..row]).copied().collect();
        for ((to, _), bytes) in moved.iter().zip(kept.chunks_exact(row)) {
            all[to * row..][..row].copy_from_slice(bytes);
        }
        let ended = child.unmap(&block.place.base);
        self.keep(ended);
        Ok(())
    }

    /// Eliminates a block from the blocks behind it on a rank.
    fn eliminate(&mut self, block: &Block, behind: &[&Block], factors: &[u8]) -> Result<()> {
        let Some(rank) = behind.first().map(|own| own.rank) else { return Ok(()) };
        let (width, below) = (block.width, self.columns.rows - block.first - block.width);
        let (upper, lower) = factors.split_at(width as usize * width as usize * self.size);
        let mut unit = upper.to_vec();
        let one = self.one();
        for row in 0..width as usize {
            let line = &mut unit[row * width as usize * self.size..][..width as usize * self.size];
            line[row * self.size..].fill(0);
            line[row * self.size..][..self.size].copy_from_slice(&one);
        }
        let unit = self.made(rank, [width; 2], &unit)?;
        let lower = if below > 0 { Some(self.made(rank, [below, width], lower)?) } else { None };
        let mut dropped: Vec<Place> = lower.into_iter().chain([unit]).collect();
        let mut steps = Vec::new();
        for own in behind {
            let top = rows(&own.place, block.first, width)?;
            let solved = self.scratch(rank, self.dtype, &[width, own.width])?;
            steps.extend([(SOLVE, 1, vec![solved, unit, top]), (Opcode::Copy, 1, vec![top, solved])]);
            dropped.push(solved);
            if let Some(lower) = lower {
                let rest = rows(&own.place, block.first + width, below)?;
                self.take(rank, (rest, lower, solved), &mut steps, &mut dropped)?;
            }
        }
        self.run(rank, steps, &dropped);
        Ok(())
    }

    /// Subtracts a product from a place.
    fn take(
        &mut self,
        rank: usize,
        (from, left, right): (Place, Place, Place),
        steps: &mut Vec<Step>,
        dropped: &mut Vec<Place>,
    ) -> Result<()> {
        let product = self.scratch(rank, self.dtype, from.view.shape())?;
        steps.extend([(PRODUCT, 1, vec![product, left, right]), (Opcode::Subtract, 1, vec![from, from, product])]);
        dropped.push(product);
        Ok(())
    }

    /// Bytes of a real number of the type.
    fn part(&self) -> usize {
        self.size / if self.dtype.is_complex() { 2 } else { 1 }
    }

    /// The bytes of 1.
    fn one(&self) -> Vec<u8> {
        let mut bytes = match self.part() {
            4 => 1f32.to_ne_bytes().to_vec(),
            _ => 1f64.to_ne_bytes().to_vec(),
        };
        bytes.resize(self.size, 0);
        bytes
    }

    /// Solves the upper triangular system, from the last rows on, after L has been applied to the right sides.
    fn substitute(&mut self) -> Result<()> {
        let columns = self.columns;
        for block in columns.matrix.iter().rev() {
            let ranks = self.listeners(block.rank, columns.sides.iter());
            let end = block.first + block.width;
            let message = match self.hosts(block.rank) {
                true => {
                    let place = rows(&block.place, 0, end)?;
                    Some(self.elements(block.rank, &place))
                }
                false => None,
            };
            for (rank, message) in self.machine.broadcast_along(&ranks, message)? {
                let own: Vec<&Block> = columns.sides.iter().filter(|side| side.rank == rank).collect();
                if !own.is_empty() {
                    self.substitute_one(rank, block, &own, message)?;
                }
            }
        }
        Ok(())
    }

    fn substitute_one(&mut self, rank: usize, block: &Block, sides: &[&Block], mut factors: Vec<u8>) -> Result<()> {
        let row = block.width as usize * self.size;
        let upper = block.first as usize * row;
        for place in 1..block.width as usize {
            // Clears L's elements below the diagonal.
            factors[upper + place * row..][..place * self.size].fill(0);
        }
        let diagonal = self.made(rank, [block.width; 2], &factors[upper..])?;
        let above =
            if block.first > 0 { Some(self.made(rank, [block.first, block.width], &factors[..upper])?) } else { None };
        let mut dropped: Vec<Place> = above.into_iter().chain([diagonal]).collect();
        let mut steps = Vec::new();
        for side in sides {
            let own = rows(&side.place, block.first, block.width)?;
            let solved = self.scratch(rank, self.dtype, &[block.width, side.width])?;
            steps.extend([(SOLVE, 1, vec![solved, diagonal, own]), (Opcode::Copy, 1, vec![own, solved])]);
            dropped.push(solved);
            if let Some(above) = above {
                let rest = rows(&side.place, 0, block.first)?;
                self.take(rank, (rest, above, solved), &mut steps, &mut dropped)?;
            }
        }
        self.run(rank, steps, &dropped);
        Ok(())
    }

    /// Factors a positive definite matrix. Blocks have no elements above the diagonal; zeros replace them.
    fn cholesky(&mut self) -> Result<()> {
        let columns = self.columns;
        for (number, block) in columns.matrix.iter().enumerate() {
            let right = &columns.matrix[number + 1..];
            let ranks = self.listeners(block.rank, right.iter());
            let message = if self.hosts(block.rank) { Some(self.positive(block)?) } else { None };
            for (rank, message) in self.machine.broadcast_along(&ranks, message)? {
                if message[0] == FAILED {
                    return Ok(());
                }
                let own: Vec<&Block> = right.iter().filter(|own| own.rank == rank).collect();
                if !own.is_empty() {
                    self.reduce(rank, block, &own, &message[1..])?;
                }
            }
        }
        Ok(())
    }

    /// Factors a block of columns in place; returns the message with the rows below its diagonal block.
    fn positive(&mut self, block: &Block) -> Result<Vec<u8>> {
        let (rank, width) = (block.rank, block.width);
        let below = self.columns.rows - block.first - width;
        let (own, rest) = (rows(&block.place, block.first, width)?, rows(&block.place, block.first + width, below)?);
        let factor = self.scratch(rank, self.dtype, &[width; 2])?;
        let mut steps = vec![(CHOLESKY, 1, vec![factor, own]), (Opcode::Copy, 1, vec![own, factor])];
        let mut dropped = vec![factor];
        if below > 0 {
            // Solve L X = Aᴴ for the rows below.
            let solved = self.scratch(rank, self.dtype, &[width, below])?;
            let conjugate = self.conjugate(rank, transposed(&rest)?, &mut steps, &mut dropped)?;
            steps.push((SOLVE, 1, vec![solved, factor, conjugate]));
            let back = if self.dtype.is_complex() { Opcode::Conj } else { Opcode::Copy };
            steps.push((back, 1, vec![rest, transposed(&solved)?]));
            dropped.push(solved);
        }
        self.run(rank, steps, &dropped);
        let bytes = if below > 0 && self.failed.is_none() { self.elements(rank, &rest) } else { Vec::new() };
        Ok(self.message_of(bytes))
    }

    /// The conjugate of a place; the place itself for real numbers.
    fn conjugate(
        &mut self,
        rank: usize,
        place: Place,
        steps: &mut Vec<Step>,
        dropped: &mut Vec<Place>,
    ) -> Result<Place> {
        if !self.dtype.is_complex() {
            return Ok(place);
        }
        let made = self.scratch(rank, self.dtype, place.view.shape())?;
        steps.push((Opcode::Conj, 1, vec![made, place]));
        dropped.push(made);
        Ok(made)
    }

    /// Subtracts a block's contribution from the blocks behind it on a rank.
    fn reduce(&mut self, rank: usize, block: &Block, behind: &[&Block], lower: &[u8]) -> Result<()> {
        let first = block.first + block.width;
        let lower = self.made(rank, [self.columns.rows - first, block.width], lower)?;
        let (mut steps, mut dropped) = (Vec::new(), vec![lower]);
        for own in behind {
            let count = self.columns.rows - own.first;
            let (left, beside) = (rows(&lower, own.first - first, count)?, rows(&lower, own.first - first, own.width)?);
            let right = self.conjugate(rank, transposed(&beside)?, &mut steps, &mut dropped)?;
            let rest = rows(&own.place, own.first, count)?;
            self.take(rank, (rest, left, right), &mut steps, &mut dropped)?;
        }
        self.run(rank, steps, &dropped);
        Ok(())
    }
}
