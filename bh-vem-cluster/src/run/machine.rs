//! The machine: this process's ranks with their planner, their stacks and the connection to other ranks.

use crate::command::Command;
use crate::coordinator::membership::Membership;
use crate::plan::boxes::{Span, span_of};
use crate::plan::choice::Savings;
use crate::plan::methods::{CHOLESKY, PANEL, PRODUCT, QR, SOLVE};
use crate::plan::planner::Planner;
use crate::plan::plans::Plans;
use crate::plan::stage::{LocalBatch, Place};
use crate::run::called::{self, Called};
use crate::run::file_region::{COMMAND, FileRegion};
use crate::run::local::{LocalRank, memory_of};
use crate::run::shares::Shares;
use crate::transport::multiplex::Multiplexed;
use crate::transport::remote::{Remote, Wire};
use crate::transport::{Class, Port, Transport};
use bh_bytecode::{Base, Opcode, View};
use bh_core::abi::fork;
use bh_core::component::{Child, Host, Ticket};
use bh_core::error::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::time::Instant;

/// Time of this process's ranks by activity, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// In the stacks below.
    pub compute: u64,
    /// Waiting for messages of elements.
    pub wait: u64,
    /// Packing and unpacking messages.
    pub pack: u64,
}

/// The ranks of this process.
pub struct Machine {
    /// The planner that all ranks have.
    pub planner: Planner,
    /// The connection to the other ranks.
    pub port: Port,
    /// The stacks below. Ranks share them round-robin if there are fewer stacks.
    pub children: Vec<Child>,
    /// Threads for all stacks but the first, if each rank has its own.
    pub(crate) pool: Option<ThreadPool>,
    /// Siblings run at the same time: operations that may fail do not delay planning, and operations for one rank are
    /// divided among siblings.
    pub(crate) side_by_side: bool,
    /// Time by activity.
    pub spent: Spent,
    /// The file for the next transfers.
    pub region: Option<FileRegion>,
    /// The function for the next calls.
    pub called: Option<Called>,
    pub(crate) locals: Vec<LocalRank>,
    /// Devices of this process copy from each other directly if they can.
    pub peer_copies: bool,
    pub(crate) plans: Plans,
    pub(crate) shares: Shares,
    pub(crate) savings: Savings,
    /// How many batches had a cached plan.
    pub planned_before: u64,
    /// How often elements moved between ranks.
    pub(crate) exchanges: usize,
}

/// Runs `work` and adds its time to `sum`.
pub(crate) fn timed<T>(sum: &mut u64, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = work();
    *sum += begin.elapsed().as_nanos() as u64;
    result
}

/// Threads for all ranks but the first, if each has its own stack. `None` if one thread is enough or none can start.
fn pool(ranks: usize, stacks: usize) -> Option<ThreadPool> {
    let threads = ThreadPoolBuilder::new().num_threads(ranks.saturating_sub(1));
    (ranks > 1 && ranks <= stacks).then(|| threads.thread_name(|_| "bh-sibling".into()).build().ok())?
}

/// Maps `work` over items, in parallel if there is a pool; returns the outcomes in order. An error does not stop the
/// others.
pub(super) fn for_each<T: Send>(
    pool: Option<&ThreadPool>,
    things: impl Iterator<Item = T>,
    work: &(impl Fn(T) -> Result<()> + Sync),
) -> Vec<Result<()>> {
    let Some(pool) = pool else { return things.map(work).collect() };
    let things: Vec<T> = things.collect();
    let mut outcomes = vec![Ok(()); things.len()];
    pool.in_place_scope(|scope| {
        let mut all = things.into_iter().zip(&mut outcomes);
        let own = all.next();
        for (thing, outcome) in all {
            scope.spawn(move |_| *outcome = work(thing));
        }
        if let Some((thing, outcome)) = own {
            *outcome = work(thing);
        }
    });
    outcomes
}

impl Machine {
    /// Prepares for a fork of the process or recovers after it, with all stacks below.
    pub(crate) fn fork(&mut self, moment: u32) -> Result<()> {
        if moment == fork::CHILD {
            // The child has no threads, and may inherit locked locks: leak the pool.
            let pool = pool(self.locals.len(), self.children.len());
            std::mem::forget(std::mem::replace(&mut self.pool, pool));
        }
        self.children.iter_mut().try_for_each(|child| child.fork(moment))
    }

    /// A machine without arrays.
    pub fn new(planner: Planner, port: Port, mut children: Vec<Child>) -> Machine {
        let on_device: Vec<bool> = children.iter_mut().map(|child| memory_of(child).is_some()).collect();
        let ranks = on_device.iter().cycle().map(|&on_device| LocalRank::new(on_device));
        let locals: Vec<LocalRank> = ranks.take(port.hosted().len()).collect();
        let pool = pool(locals.len(), children.len());
        Machine {
            planner,
            port,
            children,
            pool,
            side_by_side: false,
            spent: Spent::default(),
            region: None,
            called: None,
            locals,
            peer_copies: true,
            plans: Plans::default(),
            shares: Shares::default(),
            savings: Savings::default(),
            planned_before: 0,
            exchanges: 0,
        }
    }

    /// The machine of one process of several. `given`: the configuration sets the shares.
    pub fn remote(host: Host, remote: Remote, membership: Membership, children: Vec<Child>, given: bool) -> Machine {
        let wire: Box<dyn Transport> = match membership.counts.iter().all(|&count| count == 1) {
            true => Box::new(Wire::new(remote)),
            false => Box::new(Multiplexed::new(Box::new(remote), &membership.counts)),
        };
        let port = Port::new(wire);
        let new_id = Box::new(move || host.new_base_id());
        let mut machine =
            Machine::new(Planner::new(port.ranks(), port.hosted(), membership.settings, new_id), port, children);
        machine.limit_shares_by_memory(&membership.memory, given);
        machine.follow_work(false);
        machine
    }

    /// Enables concurrent work of siblings, if all ranks are siblings of this process. Not if all are devices: they run
    /// asynchronously, and more planning would delay their start.
    pub fn work_side_by_side(&mut self) {
        let wait = self.locals.iter().any(|rank| !rank.on_device);
        self.side_by_side = wait && self.pool.is_some() && self.port.is_alone();
        self.planner.spreads_single_rank_work = self.side_by_side;
    }

    /// Are there several ranks, all in this process, each with its own stack?
    pub fn is_of_siblings(&self) -> bool {
        self.pool.is_some() && self.port.is_alone()
    }

    /// Has the first rank all shares, with no change pending?
    pub fn first_has_all_shares(&self) -> bool {
        let weights = self.planner.settings.weights.as_slice();
        weights.split_first().is_some_and(|(_, others)| others.iter().all(|weight| *weight == 0.0))
            && !self.shares.change()
    }

    /// Records a ticket of the first rank's stack.
    pub fn began(&mut self, ticket: Ticket) -> Result<()> {
        self.locals[0].opened(&mut self.children[0], ticket)
    }

    /// Forgets dropped bases of the first rank.
    pub fn lose_names(&mut self, bases: &[u64]) {
        bases.iter().for_each(|&base| self.locals[0].lose_name(base));
    }

    /// The last batch started on each rank; `None` if all are finished.
    pub fn begun(&self) -> Option<Vec<u64>> {
        let marks = || self.locals.iter().map(|rank| rank.mark().unwrap_or_default()).collect();
        self.locals.iter().any(|rank| rank.mark().is_some()).then(marks)
    }

    /// Waits for the batches of [`Machine::begun`].
    pub fn wait(&mut self, marks: &[u64]) -> Result<()> {
        let begin = Instant::now();
        let mut outcome = Ok(());
        for (place, &mark) in marks.iter().enumerate() {
            let child = place % self.children.len();
            outcome = outcome.and(self.locals[place].wait(&mut self.children[child], mark));
        }
        self.spent.compute += begin.elapsed().as_nanos() as u64;
        outcome
    }

    /// Would [`Machine::wait`] return immediately?
    pub fn is_done(&mut self, marks: &[u64]) -> Result<bool> {
        for (place, &mark) in marks.iter().enumerate() {
            let child = place % self.children.len();
            if !self.locals[place].is_done(&mut self.children[child], mark)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Records that a base of a rank has data.
    pub fn know(&mut self, rank: usize, base: &Base) {
        self.rank(rank).0.know(base);
    }

    /// Runs a batch on each rank, in parallel if each has its own stack; returns the outcomes by rank.
    pub(crate) fn run_ranks(&mut self, batches: &mut [LocalBatch]) -> Vec<Result<()>> {
        // One batch runs on this thread.
        let several = batches.iter().filter(|batch| !batch.only_drops()).count() > 1;
        let pool = self.pool.as_ref().filter(|_| several);
        let (ranks, stacks) = (self.locals.iter_mut().zip(batches), self.children.len());
        match pool {
            Some(_) => for_each(pool, self.children.iter_mut().zip(ranks), &|(child, (rank, batch)): (
                &mut Child,
                (&mut LocalRank, &mut LocalBatch),
            )| rank.run(child, batch)),
            None => {
                let run = |(number, (rank, batch)): (usize, (&mut LocalRank, &mut LocalBatch))| {
                    rank.run(&mut self.children[number % stacks], batch)
                };
                ranks.enumerate().map(run).collect()
            }
        }
    }

    pub(crate) fn rank(&mut self, rank: usize) -> (&mut LocalRank, &mut Child) {
        let place = rank - self.port.hosted().start;
        let child = place % self.children.len();
        (&mut self.locals[place], &mut self.children[child])
    }

    /// Executes a command of rank 0, which gets the same errors.
    pub fn execute_command(&mut self, command: &Command) -> Result<()> {
        match command {
            Command::Execute(program) => self.execute(program.shape, &program.batch.as_ref(), &program.order),
            Command::Read(base, span) => self.read(base, *span, &mut []),
            Command::Write(base, span) => self.write(base, *span, &[]),
            Command::Know(base) => {
                self.planner.array(base, None);
                Ok(())
            }
            Command::ReadView(base, view) => match self.planner.parts_of_view(base, view, false) {
                Some(parts) => self.read_view(base, view, &parts, None),
                None => Ok(()),
            },
            Command::WriteView(base, view) => match self.planner.parts_of_view(base, view, true) {
                Some(parts) => self.write_view(base, view, &parts, None),
                None => Ok(()),
            },
            Command::ToRows(base) => self.cut_in_rows(base),
            Command::Renew(base) => self.planner.renew(base, Span::new(0, base.len)),
            Command::Changed(base) => self.changed(base),
            Command::Adopt(base) => {
                self.planner.adopt(base);
                self.run_planned()
            }
            Command::GatherToRank0(base) => self.planner.gather_to_rank0(base).and_then(|_| self.run_planned()),
            Command::Method(name, opcode) => self.register_method(name, Opcode(*opcode)).map(drop),
            Command::Message(text) if text.starts_with(COMMAND) => {
                self.region = FileRegion::read(text);
                Ok(())
            }
            Command::Message(text) if text.starts_with(called::COMMAND) => {
                self.called = Called::read(text);
                Ok(())
            }
            Command::Message(text) => {
                for child in &mut self.children {
                    child.message(text)?;
                }
                Ok(())
            }
            Command::Open(..) | Command::Traffic | Command::Close => Ok(()),
        }
    }

    /// Registers a method's number in the stacks below; false if one of them lacks the method.
    pub fn register_method(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        let mut all = |name: &str, opcode: Opcode| {
            self.children
                .iter_mut()
                .try_fold(true, |known, child| Ok::<_, Error>(child.extmethod(name, opcode)? && known))
        };
        if ["qr", "svd"].contains(&name) {
            self.planner.factors = all("qr", QR)? && all("matmul", PRODUCT)?;
        }
        if ["solve", "lu", "cholesky"].contains(&name) {
            let known = [("lu_panel", PANEL), ("solve", SOLVE), ("cholesky", CHOLESKY), ("matmul", PRODUCT)];
            self.planner.solves = known
                .into_iter()
                .try_fold(true, |known, (name, opcode)| Ok::<_, Error>(all(name, opcode)? && known))?;
        }
        all(name, opcode)
    }

    /// Records that rank 0 changed an array in place.
    pub fn changed(&mut self, base: &Base) -> Result<()> {
        let whole = View::contiguous(&[base.len]).unwrap_or_default();
        self.planner.note_external_write(base.id, &whole);
        self.run_planned()
    }

    /// Runs the stages planned outside of a program.
    pub fn run_planned(&mut self) -> Result<()> {
        let none = bh_bytecode::Batch::default();
        let outcome = self.run(&none.as_ref()).map_or(Ok(()), |failure| Err(failure.error));
        self.local(outcome)
    }

    /// Aborts the job if work that only one rank does has failed: the others cannot know of it, and would wait for this
    /// rank.
    pub(crate) fn local<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if let (Err(error), false) = (&outcome, self.port.is_alone()) {
            self.port.abort(&error.to_string());
        }
        outcome
    }

    /// Moves an array from a grid to rows.
    pub fn cut_in_rows(&mut self, base: &Base) -> Result<()> {
        if !self.planner.is_on_grid(base.id) {
            return Ok(());
        }
        self.planner.grid_to_rows(base.id)?;
        self.run_planned()
    }

    /// Copies elements of an array to rank 0. On rank 0, `into` has space for the whole array; elsewhere it is empty.
    pub fn read(&mut self, base: &Base, span: Span, into: &mut [u8]) -> Result<()> {
        self.cut_in_rows(base)?;
        let Some(array) = self.planner.arrays.get(&base.id) else { return Ok(()) };
        if let Some(error) = &array.lost {
            return Err(error.clone());
        }
        if self.port.is_alone() {
            return self.read_alone(base, span, into);
        }
        let size = base.dtype().size();
        let cuts = array.cuts.clone();
        for rank in cuts.owners(span) {
            let part = cuts.own(rank).meet(span);
            let shard = self.planner.shard(base.id, rank);
            let mut bytes = Vec::new();
            if self.port.hosts(rank) && self.port.hosts(0) {
                let place = Place::run(shard.base, part, shard.window)?;
                self.port.note_message(rank, if rank == 0 { 0 } else { place.bytes() });
                let (state, child) = self.rank(rank);
                let read = state.read(child, &place, &mut into[part.low as usize * size..part.high as usize * size]);
                self.local(read)?;
                continue;
            }
            if self.port.hosts(rank) {
                let place = Place::run(shard.base, part, shard.window)?;
                let (state, child) = self.rank(rank);
                let packed = state.pack(child, &place, &mut bytes);
                self.local(packed)?;
                if rank != 0 {
                    self.port.send(Class::Payload, rank, 0, std::mem::take(&mut bytes))?;
                }
            }
            if self.port.hosts(0) {
                if rank != 0 {
                    bytes = self.port.receive(0, rank)?;
                }
                into[part.low as usize * size..][..bytes.len()].copy_from_slice(&bytes);
            }
        }
        Ok(())
    }

    /// Overwrites elements of an array from rank 0. On rank 0, `from` has the whole array; elsewhere it is empty.
    pub fn write(&mut self, base: &Base, span: Span, from: &[u8]) -> Result<()> {
        self.planner.renew(base, span)?;
        self.cut_in_rows(base)?;
        match self.port.is_alone() {
            true => self.write_alone(base, span, from)?,
            false => self.send_from_rank0(base, span, from)?,
        }
        let view = View::new(span.low, &[span.len()], &[1]).unwrap_or_default();
        self.planner.note_external_write(base.id, &view);
        debug_assert_eq!(span_of(&view), span);
        self.run_planned()
    }

    /// Sends elements from rank 0 to all ranks that compute them.
    fn send_from_rank0(&mut self, base: &Base, span: Span, from: &[u8]) -> Result<()> {
        let size = base.dtype().size();
        for rank in self.planner.arrays[&base.id].reaching(span) {
            let part = self.planner.arrays[&base.id].reach(rank).meet(span);
            if part.is_empty() {
                continue;
            }
            let shard = self.planner.shard(base.id, rank);
            if self.port.hosts(rank) && self.port.hosts(0) {
                let place: Place = Place::run(shard.base, part, shard.window)?;
                self.port.note_message(0, if rank == 0 { 0 } else { place.bytes() });
                let (state, child) = self.rank(rank);
                let written = state.unpack(child, &place, &from[part.low as usize * size..]).map(drop);
                self.local(written)?;
                continue;
            }
            let mut bytes = Vec::new();
            if self.port.hosts(0) {
                bytes = from[part.low as usize * size..part.high as usize * size].to_vec();
                if rank != 0 {
                    self.port.send(Class::Payload, 0, rank, std::mem::take(&mut bytes))?;
                }
            }
            if self.port.hosts(rank) {
                if rank != 0 {
                    bytes = self.port.receive(rank, 0)?;
                }
                let place: Place = Place::run(shard.base, part, shard.window)?;
                let (state, child) = self.rank(rank);
                let unpacked = state.unpack(child, &place, &bytes).map(drop);
                self.local(unpacked)?;
            }
        }
        Ok(())
    }
}
