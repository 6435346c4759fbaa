//! The machine: the ranks of this process with their planner, their stacks and their way to the others.

use crate::command::Command;
use crate::lead::roster::Roster;
use crate::plan::boxes::{Span, span_of};
use crate::plan::choice::Savings;
use crate::plan::methods::{CHOLESKY, PANEL, PRODUCT, QR, SOLVE};
use crate::plan::planner::Planner;
use crate::plan::plans::Plans;
use crate::plan::stage::{LocalBatch, Place};
use crate::run::called::{self, Called};
use crate::run::local::{LocalRank, memory_of};
use crate::run::region::{COMMAND, Region};
use crate::run::rooms::Rooms;
use crate::run::shares::Shares;
use crate::transport::crossing::Crossing;
use crate::transport::remote::{Remote, Wire};
use crate::transport::{Class, Port, Transport};
use bh_bytecode::{Base, Opcode, View};
use bh_core::abi::fork;
use bh_core::component::{Child, Host, Ticket};
use bh_core::error::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::time::Instant;

/// Where the time of this process's ranks went, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// In the stacks below.
    pub compute: u64,
    /// Waiting for messages with elements.
    pub wait: u64,
    /// Putting elements into messages and taking them out.
    pub pack: u64,
}

/// The ranks of this process.
pub struct Machine {
    /// The planner that all ranks have.
    pub planner: Planner,
    /// The way to the other ranks.
    pub port: Port,
    /// The stacks below; ranks take turns if there are fewer stacks.
    pub children: Vec<Child>,
    /// Threads for the stacks but the first, where each rank has one of its own.
    pub(crate) crew: Option<ThreadPool>,
    /// Operations that may fail do not keep others from being planned, and those of one rank are shared out.
    pub(crate) side_by_side: bool,
    /// Where the time went.
    pub spent: Spent,
    /// The file that elements go to or come from next.
    pub region: Option<Region>,
    /// The function that is called next.
    pub called: Option<Called>,
    pub(crate) locals: Vec<LocalRank>,
    /// Memory between ranks of this process.
    pub(crate) rooms: Rooms,
    pub(crate) plans: Plans,
    pub(crate) shares: Shares,
    pub(crate) savings: Savings,
    /// How many batches found a plan that served before.
    pub planned_before: u64,
    /// How often elements have moved between ranks.
    pub(crate) exchanges: usize,
}

/// Adds the time that something takes.
pub(crate) fn timed<T>(sum: &mut u64, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = work();
    *sum += begin.elapsed().as_nanos() as u64;
    result
}

/// Threads that work for as many ranks, each with a stack of its own; none where one thread is enough, or refused.
fn crew(ranks: usize, stacks: usize) -> Option<ThreadPool> {
    let threads = ThreadPoolBuilder::new().num_threads(ranks.saturating_sub(1));
    (ranks > 1 && ranks <= stacks).then(|| threads.thread_name(|_| "bh-sibling".into()).build().ok())?
}

/// Does something with each of some things, by the threads of a crew if there is one; the outcomes in their order. None stops the
/// others.
pub(super) fn each<T: Send>(
    crew: Option<&ThreadPool>,
    things: impl Iterator<Item = T>,
    work: &(impl Fn(T) -> Result<()> + Sync),
) -> Vec<Result<()>> {
    let Some(crew) = crew else { return things.map(work).collect() };
    let things: Vec<T> = things.collect();
    let mut outcomes = vec![Ok(()); things.len()];
    crew.in_place_scope(|scope| {
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
    /// Follows a fork of the process, with all stacks below.
    pub(crate) fn fork(&mut self, moment: u32) -> Result<()> {
        if moment == fork::CHILD {
            // The threads are gone, and their locks may be held for ever.
            let crew = crew(self.locals.len(), self.children.len());
            std::mem::forget(std::mem::replace(&mut self.crew, crew));
        }
        self.children.iter_mut().try_for_each(|child| child.fork(moment))
    }

    /// A machine without arrays.
    pub fn new(planner: Planner, port: Port, mut children: Vec<Child>) -> Machine {
        let on_device: Vec<bool> = children.iter_mut().map(|child| memory_of(child).is_some()).collect();
        let ranks = on_device.iter().cycle().map(|&on_device| LocalRank::new(on_device));
        let locals: Vec<LocalRank> = ranks.take(port.hosted().len()).collect();
        let crew = crew(locals.len(), children.len());
        Machine {
            planner,
            port,
            children,
            crew,
            side_by_side: false,
            spent: Spent::default(),
            region: None,
            called: None,
            locals,
            rooms: Rooms::default(),
            plans: Plans::default(),
            shares: Shares::default(),
            savings: Savings::default(),
            planned_before: 0,
            exchanges: 0,
        }
    }

    /// The machine of one process among several. `given`: the configuration says how work is shared out.
    pub fn remote(host: Host, remote: Remote, roster: Roster, children: Vec<Child>, given: bool) -> Machine {
        let wire: Box<dyn Transport> = match roster.counts.iter().all(|&count| count == 1) {
            true => Box::new(Wire::new(remote)),
            false => Box::new(Crossing::new(Box::new(remote), &roster.counts)),
        };
        let port = Port::new(wire);
        let new_id = Box::new(move || host.new_base_id());
        let mut machine =
            Machine::new(Planner::new(port.ranks(), port.hosted(), roster.settings, new_id), port, children);
        machine.heed_memory(&roster.memory, given);
        machine.heed_work(false);
        machine
    }

    /// Lets ranks that are siblings, all of one process, do what does not depend on each other at the same time. Devices go on by
    /// themselves, and begin later where more is planned first.
    pub fn work_side_by_side(&mut self) {
        let wait = self.locals.iter().any(|rank| !rank.on_device);
        self.side_by_side = wait && self.crew.is_some() && self.port.is_alone();
        self.planner.shares_out = self.side_by_side;
    }

    /// Has each rank, all of this process, a stack of its own, and is there more than one?
    pub fn is_of_siblings(&self) -> bool {
        self.crew.is_some() && self.port.is_alone()
    }

    /// Has the first rank all shares, and is nothing about to change that?
    pub fn first_has_all_shares(&self) -> bool {
        let weights = self.planner.settings.weights.as_slice();
        weights.split_first().is_some_and(|(_, others)| others.iter().all(|weight| *weight == 0.0))
            && !self.shares.change()
    }

    /// Notes that the first rank's stack has begun something.
    pub fn began(&mut self, ticket: Ticket) -> Result<()> {
        self.locals[0].opened(&mut self.children[0], ticket)
    }

    /// Forgets bases of the first rank that are dropped.
    pub fn lose_names(&mut self, bases: &[u64]) {
        bases.iter().for_each(|&base| self.locals[0].lose_name(base));
    }

    /// What the stacks below have begun and nobody has waited for: the batches of each rank, by number.
    pub fn begun(&self) -> Option<Vec<u64>> {
        let marks = || self.locals.iter().map(|rank| rank.mark().unwrap_or_default()).collect();
        self.locals.iter().any(|rank| rank.mark().is_some()).then(marks)
    }

    /// Waits for batches that [`Machine::begun`] has named.
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

    /// Would [`Machine::wait`] return at once?
    pub fn is_done(&mut self, marks: &[u64]) -> Result<bool> {
        for (place, &mark) in marks.iter().enumerate() {
            let child = place % self.children.len();
            if !self.locals[place].is_done(&mut self.children[child], mark)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Notes that a base of a rank has data.
    pub fn know(&mut self, rank: usize, base: &Base) {
        self.rank(rank).0.know(base);
    }

    /// Runs a batch for each rank, side by side where each has a stack of its own; the outcomes by rank.
    pub(crate) fn run_ranks(&mut self, batches: &mut [LocalBatch]) -> Vec<Result<()>> {
        // Nobody is woken for one.
        let several = batches.iter().filter(|batch| !batch.only_drops()).count() > 1;
        let crew = self.crew.as_ref().filter(|_| several);
        let (ranks, stacks) = (self.locals.iter_mut().zip(batches), self.children.len());
        match crew {
            Some(_) => each(crew, self.children.iter_mut().zip(ranks), &|(child, (rank, batch)): (
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

    /// Does what rank 0 told this rank to do. Errors are those that rank 0 has, too.
    pub fn obey(&mut self, command: &Command) -> Result<()> {
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
            Command::Rows(base) => self.cut_in_rows(base),
            Command::Renew(base) => self.planner.renew(base, Span::new(0, base.len)),
            Command::Changed(base) => self.changed(base),
            Command::Adopt(base) => {
                self.planner.adopted(base);
                self.settle()
            }
            Command::Home(base) => self.planner.bring_home(base).and_then(|_| self.settle()),
            Command::Method(name, opcode) => self.learn(name, Opcode(*opcode)).map(drop),
            Command::Message(text) if text.starts_with(COMMAND) => {
                self.region = Region::read(text);
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

    /// Tells the stacks below the number of a method; false if one of them has none of this name.
    pub fn learn(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
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

    /// Notes that an array was changed in rank 0's memory, where it lives.
    pub fn changed(&mut self, base: &Base) -> Result<()> {
        let whole = View::contiguous(&[base.len]).unwrap_or_default();
        self.planner.take_in(base.id, &whole);
        self.settle()
    }

    /// Runs what is planned outside of a program.
    pub fn settle(&mut self) -> Result<()> {
        let none = bh_bytecode::Batch::default();
        let outcome = self.run(&none.as_ref()).map_or(Ok(()), |failure| Err(failure.error));
        self.local(outcome)
    }

    /// The outcome of what only one rank does. The others cannot know of a failure, and would wait for this rank.
    pub(crate) fn local<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if let (Err(error), false) = (&outcome, self.port.is_alone()) {
            self.port.abort(&error.to_string());
        }
        outcome
    }

    /// Lets an array that is cut on a grid of ranks be cut in rows.
    pub fn cut_in_rows(&mut self, base: &Base) -> Result<()> {
        if !self.planner.is_on_mesh(base.id) {
            return Ok(());
        }
        self.planner.leave_mesh(base.id)?;
        self.settle()
    }

    /// Copies elements of an array to rank 0. `into` has room for all of it where rank 0 is, and is empty elsewhere.
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
            let piece = self.planner.piece(base.id, rank);
            let mut bytes = Vec::new();
            if self.port.hosts(rank) && self.port.hosts(0) {
                let place = Place::run(piece.base, part, piece.window)?;
                self.port.note_message(rank, if rank == 0 { 0 } else { place.bytes() });
                let (state, child) = self.rank(rank);
                let read = state.read(child, &place, &mut into[part.low as usize * size..part.high as usize * size]);
                self.local(read)?;
                continue;
            }
            if self.port.hosts(rank) {
                let place = Place::run(piece.base, part, piece.window)?;
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

    /// Overwrites elements of an array with rank 0's. `from` has all of the array where rank 0 is, and is empty elsewhere.
    pub fn write(&mut self, base: &Base, span: Span, from: &[u8]) -> Result<()> {
        self.planner.renew(base, span)?;
        self.cut_in_rows(base)?;
        match self.port.is_alone() {
            true => self.write_alone(base, span, from)?,
            false => self.hand_out(base, span, from)?,
        }
        let view = View::new(span.low, &[span.len()], &[1]).unwrap_or_default();
        self.planner.take_in(base.id, &view);
        debug_assert_eq!(span_of(&view), span);
        self.settle()
    }

    /// Sends rank 0's elements to all ranks that have some.
    fn hand_out(&mut self, base: &Base, span: Span, from: &[u8]) -> Result<()> {
        let size = base.dtype().size();
        for rank in self.planner.arrays[&base.id].reaching(span) {
            let part = self.planner.arrays[&base.id].reach(rank).meet(span);
            if part.is_empty() {
                continue;
            }
            let piece = self.planner.piece(base.id, rank);
            if self.port.hosts(rank) && self.port.hosts(0) {
                let place: Place = Place::run(piece.base, part, piece.window)?;
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
                let place: Place = Place::run(piece.base, part, piece.window)?;
                let (state, child) = self.rank(rank);
                let unpacked = state.unpack(child, &place, &bytes).map(drop);
                self.local(unpacked)?;
            }
        }
        Ok(())
    }
}
