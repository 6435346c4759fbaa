//! A context's counters: messages and bytes sent by this process's ranks, and their time by activity.

use crate::run::machine::Machine;
use bh_core::component::{Counter, Host};

/// Names of the counters.
const NAMES: [&str; 9] = [
    "messages",
    "bytes",
    "control messages",
    "control_bytes",
    "compute_ns",
    "wait_ns",
    "pack_ns",
    "batches planned before",
    "changes of shares",
];

/// The counters, and the values reported so far.
pub struct Counters {
    counters: [Counter; NAMES.len()],
    reported: [u64; NAMES.len()],
}

impl Counters {
    /// Creates the counters of a stack.
    pub fn new(host: &Host) -> Counters {
        Counters { counters: NAMES.map(|name| host.counter(&format!("cluster.{name}"))), reported: [0; NAMES.len()] }
    }

    /// Updates the counters.
    pub fn report(&mut self, machine: &Machine) {
        let mut sums = [0; NAMES.len()];
        for sent in machine.port.sent() {
            sums.iter_mut().zip(sent.numbers()).for_each(|(sum, number)| *sum += number);
        }
        let spent = machine.spent;
        sums[4..].copy_from_slice(&[
            spent.compute,
            spent.wait,
            spent.pack,
            machine.planned_before,
            machine.shares.changes,
        ]);
        for (place, sum) in sums.into_iter().enumerate() {
            self.counters[place].add(sum - self.reported[place]);
            self.reported[place] = sum;
        }
    }
}
