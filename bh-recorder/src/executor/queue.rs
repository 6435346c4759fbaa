//! An executor's tasks: batches to run, tickets to wait for, calls to make on its thread, and arrays in use.

use super::super::sync::ThreadId;
use super::{Engine, ExecutorStatistics, Job};
use crate::data::{Data, SharedData};
use crate::process::patience::LIGHT;
use bh_bytecode::Batch;
use bh_core::component::Ticket;
use bh_core::error::{Error, Result};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// Batches that wait or run, at most; who hands over another one waits.
const IN_FLIGHT: usize = 2;
/// Batches that were given to the stack and are not done, at most.
const OPEN_TICKETS: usize = 8;

/// The part of the stack that a call may use.
pub(super) enum Reach<'a> {
    /// Everything, between batches.
    Engine(&'a mut Engine),
    /// Data, while a batch runs.
    Data(&'a mut dyn Data),
}

/// A call, which is also given the failure to report instead, if there is one.
pub(super) type Work<'a> = Box<dyn FnOnce(Reach<'_>, Option<Error>) + Send + 'a>;

/// Work for the executor thread that is no batch, for stacks whose calls must come from one thread.
pub(super) struct Call {
    /// It waits for these batches.
    pub(super) after: u64,
    pub(super) work: Work<'static>,
    /// The base whose data it is about, if it is about nothing else.
    pub(super) base: Option<u64>,
    /// Does it report the first failure that nobody was told of?
    pub(super) reports: bool,
}

pub(super) struct Queue {
    /// Not given to the stack yet.
    pub(super) jobs: VecDeque<Job>,
    /// Somebody gives a batch to the stack.
    pub(super) running: bool,
    /// Given to the stack and not known to be done, the oldest first.
    pub(super) tickets: VecDeque<(Ticket, u64)>,
    /// Somebody waits for the oldest ticket.
    pub(super) waiting_for_ticket: bool,
    pub(super) calls: VecDeque<Call>,
    /// Bases whose data is being read or written from outside; no batch with one of them begins.
    pub(super) accessed: Vec<u64>,
    /// Bases that the program has changed itself since the last batch was given to the stack, if they are wanted.
    pub(super) changed: HashSet<u64>,
    pub(super) notes_changes: bool,
    /// The last batch that was handed over.
    pub(super) submitted: u64,
    /// All batches up to this one are done.
    pub(super) completed: u64,
    /// Somebody waits for the batches up to this one.
    pub(super) wanted: u64,
    /// Threads that wait for progress.
    pub(super) waiting: usize,
    /// The executor thread sleeps.
    pub(super) sleeping: bool,
    pub(super) stop: bool,
    /// A wait for what is under way was ended before that was done.
    pub(super) given_up: bool,
    /// All calls must come from the executor thread.
    pub(super) affine: bool,
    /// Access to data that does not wait for a running batch.
    pub(super) shared: Option<Arc<dyn SharedData>>,
    /// The same on the executor thread, for stacks that are called from one thread only, and that thread.
    pub(super) between: Option<(Arc<dyn SharedData>, ThreadId)>,
    /// The bases of the batch that runs there.
    pub(super) running_bases: Vec<u64>,
    /// The first failure since it was last reported.
    pub(super) error: Option<Error>,
    /// Emptied batches for reuse.
    pub(super) spare: Vec<Batch>,
    pub(super) statistics: ExecutorStatistics,
}

impl Queue {
    pub(super) fn new() -> Queue {
        Queue {
            jobs: VecDeque::new(),
            running: false,
            tickets: VecDeque::new(),
            waiting_for_ticket: false,
            calls: VecDeque::new(),
            accessed: Vec::new(),
            changed: HashSet::new(),
            notes_changes: false,
            submitted: 0,
            completed: 0,
            wanted: 0,
            waiting: 0,
            sleeping: false,
            stop: false,
            given_up: false,
            affine: false,
            shared: None,
            between: None,
            running_bases: Vec::new(),
            error: None,
            spare: Vec::new(),
            statistics: ExecutorStatistics::default(),
        }
    }

    /// May somebody give the next batch to the stack now?
    pub(super) fn can_run(&self) -> bool {
        let free = |job: &Job| {
            self.accessed.is_empty() || job.batch.bases.iter().all(|base| !self.accessed.contains(&base.id))
        };
        !self.running && self.tickets.len() < OPEN_TICKETS && self.jobs.front().is_some_and(free)
    }

    /// May any thread run the next batch now, which takes no time worth speaking of?
    pub(super) fn has_light_work(&self) -> bool {
        !self.affine && self.can_run() && self.jobs.front().is_some_and(|job| job.work <= LIGHT)
    }

    /// May somebody wait for the oldest ticket now?
    pub(super) fn can_wait(&self) -> bool {
        !self.running && !self.waiting_for_ticket && !self.tickets.is_empty()
    }

    /// Is there room for another batch?
    pub(super) fn has_room(&self) -> bool {
        self.jobs.len() + usize::from(self.running) <= IN_FLIGHT
    }

    /// Is everything done?
    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty() && !self.running && self.tickets.is_empty() && self.calls.is_empty()
    }

    /// Notes a batch that was given to the stack.
    pub(super) fn begun(&mut self, ticket: Ticket, epoch: u64) {
        self.tickets.push_back((ticket, epoch));
        self.retire();
    }

    /// Notes that the oldest ticket was waited for.
    pub(super) fn ended(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.keep(error);
        }
        if let Some((ticket, _)) = self.tickets.front_mut() {
            *ticket = Ticket::DONE;
        }
        self.retire();
    }

    fn retire(&mut self) {
        while let Some((_, epoch)) = self.tickets.pop_front_if(|(ticket, _)| *ticket == Ticket::DONE) {
            self.completed = epoch;
        }
    }

    /// Keeps the first failure for the next report.
    pub(super) fn keep(&mut self, error: Error) {
        if self.error.is_none() {
            self.error = Some(error);
        }
    }

    /// Is there a call whose batches are done?
    pub(super) fn has_call(&self) -> bool {
        self.calls.iter().any(|call| call.after <= self.completed)
    }

    /// The next call whose batches are done.
    pub(super) fn take_call(&mut self) -> Option<Call> {
        let place = self.calls.iter().position(|call| call.after <= self.completed)?;
        self.calls.remove(place)
    }

    /// The next call that may come while a batch runs.
    pub(super) fn take_data_call(&mut self) -> Option<Call> {
        let may = |call: &Call| {
            call.after <= self.completed && call.base.is_some_and(|base| !self.running_bases.contains(&base))
        };
        let place = self.calls.iter().position(may)?;
        self.calls.remove(place)
    }

    /// Does somebody need the oldest ticket?
    pub(super) fn ticket_is_wanted(&self) -> bool {
        let Some(&(_, epoch)) = self.tickets.front() else { return false };
        self.stop
            || self.wanted >= epoch
            || self.tickets.len() >= OPEN_TICKETS
            || self.calls.iter().any(|call| call.after >= epoch)
    }
}
