//! Tapes under a bound of memory: all values are kept while they fit, then states of the program from which it runs again.

use crate::binomial;
use crate::disk::Disk;
use crate::history::{Alive, History};
use crate::levels::Levels;
use crate::tape::{Inserts, Tape, insert_copy};
use bh_bytecode::{Base, Batch, Operand, View};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{Ending, Errand, Recorder};
use std::collections::HashSet;
use std::sync::Arc;

/// How many times the arrays that one unit changes its adjoint takes beside the adjoints themselves: the flow, and its operands.
const TEMPORARIES: u64 = 2;

/// How many times the arrays that one unit changes are left free where there is room for more than one state: kernels in lock-step
/// keep the arrays that they read until the last of them has run.
const LOCK_STEP: u64 = 2;

/// A byte that goes to the disk and back takes as long as this many bytes of operands in fused kernels: a disk moves a tenth of what
/// memory does, and the byte goes twice; of the operands of a kernel, a quarter comes from memory.
const WAY: u64 = 80;

/// A bound of memory, and what it has led to.
pub(crate) struct Bounded {
    /// Bytes.
    bound: u64,
    /// Where states go for which there is no room in memory.
    disk: Option<Arc<Disk>>,
    pub(crate) history: History,
    /// Are all values kept that rules read?
    pub(crate) keeps_all: bool,
    /// Bytes that are alive between units.
    alive: Alive,
    /// The most bytes of values that the rules of one unit read.
    reads: u64,
}

/// How a gradient does with its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Parts of the program that are taken back one after the other, such as iterations of a loop.
    pub units: u64,
    /// States of the program that are kept, in memory and on disk; 0 if all values are kept, so that nothing runs again.
    pub states: u64,
    /// Units that run, in all: those of the program itself, and those that run again before a unit whose adjoint is next.
    pub runs: u64,
    /// Bytes that the gradient takes at most.
    pub peak: u64,
    /// The least bound under which there is a gradient.
    pub least: u64,
    /// Bytes on disk at most.
    pub disk: u64,
}

impl Bounded {
    /// `window`: as [`crate::units::Units::of`].
    pub(crate) fn new(bound: u64, disk: Option<Arc<Disk>>, window: Option<usize>) -> Bounded {
        Bounded { bound, disk, history: History::new(window), keeps_all: true, alive: Alive::default(), reads: 0 }
    }

    /// Bytes beside states: what lasts, the state that the program ends with, the adjoints, and what one unit takes while it runs or is
    /// taken back.
    fn beside(&self) -> u64 {
        let Alive { changing, lasting, active } = self.alive;
        lasting + changing + active + changing.max(self.reads + TEMPORARIES * changing)
    }

    /// For how many states there is room.
    pub(crate) fn levels(&self) -> Levels {
        let state = self.alive.changing.max(1);
        let disk = self.disk.as_ref().map_or(0, |disk| disk.bytes() / state);
        let weight = WAY.saturating_mul(state) / self.history.moved_by_unit().max(1);
        Levels { memory: self.room() / state, disk, weight }
    }

    /// Bytes for states.
    fn room(&self) -> u64 {
        let (rest, state) = (self.bound.saturating_sub(self.beside()), self.alive.changing);
        rest.saturating_sub(LOCK_STEP * state).max(rest.min(state))
    }

    /// Where states on disk are.
    pub(crate) fn disk(&self) -> Option<&Arc<Disk>> {
        self.disk.as_ref()
    }

    /// How many states are kept of the units so far, at least one.
    fn places(&self) -> u64 {
        self.levels().places(self.history.units.len() as u64).max(1)
    }

    /// Writes the arrays that only states on disk need to the disk, and frees them.
    pub(crate) fn errand(&mut self) -> Option<Errand> {
        let disk = self.disk.clone()?;
        let leaving = self.history.take_leaving();
        if leaving.is_empty() {
            return None;
        }
        let write = move |recorder: &Recorder| {
            let mut done = Ok(());
            for (array, base, stored) in leaving {
                if done.is_ok() {
                    done = disk.store(recorder, array, &base).map(|part| _ = stored.set(part));
                }
                recorder.free_later(array);
            }
            done
        };
        Some(Box::new(write))
    }

    /// The gradient's use of memory, once the program has ended.
    pub(crate) fn plan(&self, kept: u64) -> Plan {
        let units = self.history.units.len() as u64;
        let least = self.beside() + self.alive.changing;
        if self.keeps_all {
            let peak = self.all(kept);
            return Plan { units, states: 0, runs: units, peak, least: least.min(peak), disk: 0 };
        }
        let (levels, state) = (self.levels(), self.alive.changing);
        let in_memory = levels.memory.min(units);
        let states = if in_memory == 0 { 0 } else { levels.places(units).min(units) };
        let (again, on_disk) = levels.remaining(&self.history.places(), units);
        let peak = (self.beside() + (in_memory + LOCK_STEP) * state).min(self.bound);
        Plan { units, states, runs: units + again, peak, least, disk: on_disk * state }
    }

    /// Bytes if all values are kept.
    fn all(&self, kept: u64) -> u64 {
        kept + self.beside() - self.reads
    }

    /// Can the bound be kept?
    pub(crate) fn check(&self, kept: u64) -> Result<()> {
        let plan = self.plan(kept);
        if self.keeps_all || plan.states > 0 {
            return Ok(());
        }
        let text = format!(
            "memory: the gradient is to take at most {} bytes, but takes at least {} bytes: {} for one state of the program, and {} \
             for the values and adjoints of one of its {} steps",
            self.bound,
            plan.least,
            self.alive.changing,
            plan.least - self.alive.changing,
            plan.units
        );
        Err(Error::new(status::MEMORY, text))
    }
}

impl Tape {
    /// A tape that keeps within a number of bytes.
    pub(crate) fn within(mut self, mut bounded: Bounded) -> Tape {
        bounded.history.units[0].active = self.snapshot();
        self.bounded = Some(Box::new(bounded));
        self
    }

    /// Takes a batch under a bound of memory. Returns the copies to be made in it.
    pub(crate) fn take_bounded(
        &mut self,
        bounded: &mut Bounded,
        ending: &Ending,
        (original, batch): (&Arc<Batch>, &mut Batch),
    ) -> Inserts {
        let (cuts, live): (Vec<usize>, Vec<u64>) = bounded.history.enter(original, ending).into_iter().unzip();
        if bounded.alive == Alive::default() {
            // Until more is known, all of it counts as changing.
            bounded.alive.changing = live.into_iter().max().unwrap_or(0);
        }
        let units = bounded.history.units.len();
        let mut copies = Vec::new();
        if bounded.keeps_all {
            let (tables, before) = ((batch.bases.len(), batch.views.len()), self.now());
            copies = self.run_units(bounded, original, &cuts, Some(&mut *batch));
            if bounded.all(self.bytes()) > bounded.bound {
                batch.bases.truncate(tables.0);
                batch.views.truncate(tables.1);
                copies.clear();
                bounded.history.units.truncate(units);
                self.go_back(before.0, before.1);
                bounded.history.let_go(self.forget_values());
                bounded.keeps_all = false;
            }
        }
        if !bounded.keeps_all {
            self.run_units(bounded, original, &cuts, None);
        }
        let keeps = if bounded.keeps_all { HashSet::new() } else { bounded.choose(units, &cuts) };
        let (saves, alive) = bounded.history.follow(ending, &cuts, &keeps);
        if let Some(most) = alive.into_iter().max_by_key(|alive| alive.changing) {
            bounded.alive = most;
        }
        bounded.give_up_some(keeps.len() as u64);
        copies.extend(saves.into_iter().map(|(at, base)| (at, whole_copy(batch, &base, at))));
        let ended = original.bases.iter().zip(&ending.bases).filter(|(_, ends)| **ends).map(|(base, _)| base.id);
        self.end_bases(ended);
        copies
    }

    /// Follows a batch from unit to unit. `batch`: where values are kept; else what rules read is counted.
    fn run_units(
        &mut self,
        bounded: &mut Bounded,
        original: &Arc<Batch>,
        cuts: &[usize],
        batch: Option<&mut Batch>,
    ) -> Inserts {
        let operations = bounded.history.last_operations().to_vec();
        let begins: Vec<(usize, usize)> =
            cuts.iter().map(|&cut| (operations.get(cut).map_or(usize::MAX, |&at| at as usize), cut)).collect();
        let counts = batch.is_none();
        let mut next = begins.into_iter().peekable();
        let mut before = |tape: &mut Tape, at: usize| {
            let written = tape.take_first_written();
            bounded.history.note_stopped(written);
            while let Some((_, cut)) = next.next_if(|(begin, _)| *begin <= at) {
                if counts {
                    bounded.reads = bounded.reads.max(tape.bytes());
                    tape.forget_values();
                }
                bounded.history.begin_unit(cut, tape.snapshot());
            }
        };
        let copies = match batch {
            Some(batch) => self.keep_all(original, batch, &mut before),
            None => {
                let mut scratch = Batch::clone(original);
                self.keep_all(original, &mut scratch, &mut before);
                Vec::new()
            }
        };
        before(self, usize::MAX);
        if counts {
            bounded.reads = bounded.reads.max(self.bytes());
            self.forget_values();
        }
        copies
    }
}

/// The copy of a whole base, which instruction `at` of the batch overwrites.
fn whole_copy(batch: &mut Batch, base: &Base, at: usize) -> bh_bytecode::Instr {
    let whole = View::contiguous(&[base.len]).unwrap_or_default();
    let index = batch.bases.iter().position(|other| other.id == base.id).unwrap_or_default();
    let from = batch.push_view(index as u32, &whole);
    let origin = batch.instrs.get(at).map_or(0, |instr| instr.origin);
    insert_copy(batch, base, &whole, (Operand::view(from), origin))
}

impl Bounded {
    /// Chooses the cuts of a batch at which states are kept, if `units` begin before it. There is room for them, as
    /// [`Bounded::give_up_some`] saw to.
    fn choose(&self, units: usize, cuts: &[usize]) -> HashSet<usize> {
        let mut stored = self.history.stored();
        let (old, room) = (stored.len(), self.places());
        for number in 0..cuts.len() {
            let unit = (units + number) as u64;
            stored.push(unit);
            if stored.len() as u64 > room
                && let Some(least) = binomial::dispensable(&stored, old, unit + 1, room)
            {
                stored.remove(least);
            }
        }
        stored[old..].iter().map(|&unit| cuts[unit as usize - units]).collect()
    }

    /// Gives states up until there is room for as many new ones as the last batch had, but at least for one.
    fn give_up_some(&mut self, new: u64) {
        if self.keeps_all {
            return;
        }
        let (room, end) = (self.places(), self.history.units.len() as u64);
        let most = |room: u64| room.saturating_sub(new.clamp(1, (room / 8).max(1))).max(1);
        while self.history.states.len() as u64 > most(room) {
            let Some(least) = binomial::dispensable(&self.history.stored(), 1, end, room) else { break };
            self.history.give_up(least);
        }
        if self.disk.is_some() {
            self.history.keep_in_memory(most(self.levels().memory));
        }
    }
}
