//! Which way of building a hot block's kernels is fastest: each is measured on the device, over some calls of the block that
//! come anyway, and the choice is kept on disk beside the kernels. Results are the same to the last bit: how items share
//! a reduction is not among the choices.

use crate::code::{Placement, Target};
use crate::compiler::Entry;
use crate::driver::Event;
use crate::programs::Programs;
use bh_core::{Counter, Host};
use std::collections::HashMap;
use std::sync::Arc;

/// A way of building kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Items of a group: doubled or halved so often.
    group: i32,
    without: Option<Placement>,
    with: Option<Placement>,
}

/// Calls of a block's kernels with the same sizes, whatever batch they are in, after which they are built with the sizes in
/// their texts.
pub(crate) const HOT: u32 = 2;

/// The ways that are tried, the usual one first.
pub(crate) const WAYS: [Way; 7] = [
    Way::USUAL,
    Way { group: -1, ..Way::USUAL },
    Way { group: 1, ..Way::USUAL },
    Way { without: Some(Placement::Unroll), ..Way::USUAL },
    Way { without: Some(Placement::Private), ..Way::USUAL },
    Way { group: -1, without: Some(Placement::Unroll), ..Way::USUAL },
    Way { with: Some(Placement::Vector), ..Way::USUAL },
];

/// Calls of a block before its ways are tried.
const CALLS: u32 = 16;
/// Measured calls of each way.
const REPEATS: u32 = 3;
/// By how many percent another way than the usual one has to be faster.
const GAIN: u64 = 3;
/// Blocks that are remembered; beyond, measuring begins anew.
const NAMES: usize = 1 << 12;

impl Way {
    pub(crate) const USUAL: Way = Way { group: 0, without: None, with: None };

    /// The target of a kernel that is built in this way; groups have at most `largest` items.
    pub(crate) fn target(self, usual: &Target, largest: usize, reduces: bool) -> Target {
        let mut target = *usual;
        match self.without {
            // Rows of a reduction that are folded together are another order.
            Some(Placement::Private) if reduces => {}
            Some(placement) => target.placements = target.placements.without(placement),
            None => {}
        }
        self.with.into_iter().for_each(|placement| target.placements = target.placements.with(placement));
        let group = if self.group < 0 { usual.group >> -self.group } else { usual.group << self.group };
        if !reduces && (1..=largest).contains(&group) {
            target.groups = (usual.groups * usual.group / group).max(1);
            target.group = group;
        }
        target
    }
}

/// The tuner's state for a block.
enum State {
    Trying(Trial),
    Chosen(Way),
}

struct Trial {
    /// The entries to build for each way.
    entries: Vec<Vec<Arc<Entry>>>,
    /// The way that is measured; none before all are built.
    at: Option<usize>,
    runs: u32,
    /// The least nanoseconds of each way.
    times: [u64; WAYS.len()],
    /// Kernels of a call that is measured.
    pending: Vec<Arc<dyn Event>>,
}

/// The choices of all blocks, by their names.
pub(crate) struct Tuner {
    wanted: bool,
    /// Blocks with fewer bytes are not worth it.
    least_bytes: u64,
    known: HashMap<u128, State>,
    tuned: Counter,
    remembered: Counter,
}

impl Tuner {
    pub(crate) fn new(wanted: bool, least_bytes: u64, host: &Host) -> Tuner {
        let (tuned, remembered) = (host.counter("blocks tuned"), host.counter("choices loaded"));
        Tuner { wanted, least_bytes, known: HashMap::new(), tuned, remembered }
    }

    /// Is a block with this many bytes, called so often, to be tried? Asks the disk first.
    pub(crate) fn begins(&mut self, name: u128, calls: u32, bytes: impl FnOnce() -> u64, programs: &Programs) -> bool {
        if !self.wanted || calls <= HOT || self.known.contains_key(&name) || bytes() < self.least_bytes {
            return false;
        }
        let stored = programs.choice(name).and_then(|number| WAYS.get(number).copied());
        if let Some(way) = stored {
            self.remembered.add(1);
            self.known.insert(name, State::Chosen(way));
        }
        stored.is_none() && calls > CALLS
    }

    /// A block is to be tried, with these kernels for each way.
    pub(crate) fn begin(&mut self, name: u128, entries: Vec<Vec<Arc<Entry>>>) {
        if self.known.len() >= NAMES {
            self.known.clear();
        }
        let times = [u64::MAX; WAYS.len()];
        let trial = Trial { entries, at: None, runs: 0, times, pending: Vec::new() };
        self.known.insert(name, State::Trying(trial));
    }

    /// The way in which a block runs now.
    pub(crate) fn way(&mut self, name: u128, programs: &Programs) -> Way {
        let chosen = match self.known.get_mut(&name) {
            None => return Way::USUAL,
            Some(State::Chosen(way)) => return *way,
            Some(State::Trying(trial)) => match trial.advance() {
                Ok(way) => return way,
                Err(chosen) => chosen,
            },
        };
        programs.keep_choice(name, chosen);
        self.tuned.add(1);
        self.known.insert(name, State::Chosen(WAYS[chosen]));
        WAYS[chosen]
    }

    /// Are the kernels of a call in this way to be measured?
    pub(crate) fn measures(&self, name: u128, way: Way) -> bool {
        let Some(State::Trying(trial)) = self.known.get(&name) else { return false };
        trial.pending.is_empty() && trial.at.and_then(|at| WAYS.get(at)) == Some(&way)
    }

    /// Is nothing measured of a block, now or later?
    pub(crate) fn is_settled(&self, name: u128, bytes: impl FnOnce() -> u64) -> bool {
        !self.wanted || matches!(self.known.get(&name), Some(State::Chosen(_))) || bytes() < self.least_bytes
    }

    /// The kernels of a call that is measured.
    pub(crate) fn ran(&mut self, name: u128, events: Vec<Arc<dyn Event>>) {
        if let Some(State::Trying(trial)) = self.known.get_mut(&name) {
            trial.pending = events;
        }
    }
}

impl Trial {
    /// The way of the next call; the error is the number of the fastest one when all are measured.
    fn advance(&mut self) -> Result<Way, usize> {
        let built = |entries: &Vec<Arc<Entry>>| entries.iter().all(|entry| entry.is_done());
        let usable = |entries: &Vec<Arc<Entry>>| entries.iter().all(|entry| entry.ready().is_some());
        if self.at.is_none() {
            if !self.entries.iter().all(built) {
                return Ok(Way::USUAL);
            }
            self.at = Some(0);
        }
        let mut at = self.at.unwrap_or_default();
        if !self.pending.is_empty() && self.pending.iter().all(|event| event.is_done()) {
            let time = |event: &Arc<dyn Event>| event.times().map(|times| times.end.saturating_sub(times.start));
            // A queue that takes no times leaves the usual way.
            let all: Option<u64> = self.pending.drain(..).map(|event| time(&event)).sum();
            self.times[at] = self.times[at].min(all.unwrap_or(u64::MAX));
            self.runs += 1;
        }
        while self.runs >= REPEATS || self.entries.get(at).is_some_and(|entries| !usable(entries)) {
            (at, self.runs) = (at + 1, 0);
        }
        self.at = Some(at);
        if at < WAYS.len() {
            return Ok(WAYS[at]);
        }
        let (usual, least) = (self.times[0], self.times.iter().min().copied().unwrap_or(u64::MAX));
        let gains = least < usual - usual / 100 * GAIN;
        Err(if gains { self.times.iter().position(|time| *time == least).unwrap_or(0) } else { 0 })
    }
}
