//! States in two levels, memory and disk: how many of them pay on disk, and which ones go there.
//!
//! With states in two levels, those that are kept longest are read and written least: they go to the slower level (P. Stumm and
//! A. Walther, "MultiStage approaches for optimal offline checkpointing", SIAM Journal on Scientific Computing 31 (2009)). A state goes
//! to the disk only where it saves more than its way there and back takes, as in G. Aupy, J. Herrmann, P. Hovland and Y. Robert,
//! "Optimal multistage algorithm for adjoint computation", SIAM Journal on Scientific Computing 38 (2016). Their optimum is by dynamic
//! programming; here the number of states on disk is chosen for each part of the chain, from the costs of binomial checkpoints.

use crate::binomial::{cost, split};

/// Room for states of a chain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Levels {
    /// For how many states there is room in memory.
    pub(crate) memory: u64,
    /// And on disk.
    pub(crate) disk: u64,
    /// A state's way to the disk and back takes as long as this many steps, at least one.
    pub(crate) weight: u64,
}

/// A state by its step, and whether it is on disk.
pub(crate) type Place = (u64, bool);

impl Levels {
    /// How many states on disk pay for a chain of steps behind a stored state. `free`: for how many more there is room in memory;
    /// `disk`: and on disk.
    fn worth(&self, steps: u64, free: u64, disk: u64) -> u64 {
        let saves = |more: u64| cost(steps, free + more - 1) - cost(steps, free + more);
        // Each further state saves less.
        let (mut low, mut high) = (0, disk.min(steps));
        while low < high {
            let middle = low + (high - low) / 2;
            if saves(middle + 1) >= self.weight.max(1) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// How many states of a chain of this length are kept.
    pub(crate) fn places(&self, steps: u64) -> u64 {
        self.memory + self.worth(steps, self.memory.saturating_sub(1), self.disk)
    }

    /// The state to be made next on the way back from `end` to a state at `begin`; `None` if the last step is to be taken back.
    /// `used`: how many states there are in memory and on disk.
    pub(crate) fn next(&self, begin: u64, end: u64, used: [u64; 2]) -> Option<Place> {
        let (free, disk) = (self.memory.saturating_sub(used[0]), self.disk.saturating_sub(used[1]));
        let steps = end - begin;
        let on_disk = self.worth(steps, free, disk);
        let states = free + on_disk;
        // The earliest is kept longest.
        (steps > 1 && states > 0).then(|| (begin + split(steps, states), on_disk > 0))
    }

    /// How many steps run forward to take a chain back of which these states are stored, without the run of each step before its own
    /// adjoint, and how many states are on disk at most.
    pub(crate) fn remaining(&self, stored: &[Place], end: u64) -> (u64, u64) {
        let mut stages = stored.to_vec();
        let mut used = [0u64; 2];
        stored.iter().for_each(|&(_, on_disk)| used[usize::from(on_disk)] += 1);
        let (mut end, mut runs, mut most) = (end, 0, used[1]);
        while end > 0 {
            if let Some((_, on_disk)) = stages.pop_if(|(step, _)| *step >= end) {
                used[usize::from(on_disk)] -= 1;
                continue;
            }
            let Some(&(begin, _)) = stages.last() else { break };
            match self.next(begin, end, used) {
                Some((step, on_disk)) => {
                    runs += step - begin;
                    used[usize::from(on_disk)] += 1;
                    most = most.max(used[1]);
                    stages.push((step, on_disk));
                }
                None => {
                    end -= 1;
                    runs += end - begin;
                }
            }
        }
        (runs, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_disk_the_runs_are_those_of_binomial_checkpoints() {
        for (steps, memory) in [(100, 5), (1000, 20), (37, 1), (2, 1), (1, 3)] {
            let levels = Levels { memory, disk: 0, weight: 1 };
            assert_eq!(levels.places(steps), memory);
            assert_eq!(levels.remaining(&[(0, false)], steps), (cost(steps, memory - 1), 0));
        }
    }

    #[test]
    fn a_disk_that_costs_nothing_is_as_good_as_memory() {
        for (steps, memory, disk) in [(100, 3, 4), (500, 5, 15), (60, 1, 6)] {
            let levels = Levels { memory, disk, weight: 1 };
            let (runs, most) = levels.remaining(&[(0, false)], steps);
            assert!(most <= disk);
            assert_eq!(runs, cost(steps, memory + disk - 1), "{steps} steps, {memory} and {disk} states");
        }
    }

    #[test]
    fn a_slow_disk_costs_no_more_than_it_saves() {
        for weight in [1, 3, 10, 100, 1 << 40] {
            let levels = Levels { memory: 4, disk: 200, weight };
            for steps in [2, 10, 100, 1000, 5000] {
                let (alone, on_disk) = (cost(steps, 3), levels.places(steps) - 4);
                let with = cost(steps, 3 + on_disk) + weight * on_disk;
                assert!(with <= alone, "{steps} steps, {on_disk} states on disk: {with} for {alone}");
                // One more or less of them is no better.
                assert!(on_disk == 0 || cost(steps, 2 + on_disk) + weight * (on_disk - 1) >= with);
                assert!(on_disk == 200 || cost(steps, 4 + on_disk) + weight * (on_disk + 1) >= with);
                assert!(levels.remaining(&[(0, false)], steps).0 <= alone);
            }
        }
    }
}
