//! The tasks of a job, shared out among its participants: each has a share of its own, in memory of its own, and takes
//! from the others' shares when it is done.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits for the number of tasks taken from a share; the bits above have the number of the job. So nothing has been taken from a share
/// that has an earlier job's number, and shares need no preparation.
const TAKEN: u32 = 40;

/// Which tasks of a share have been taken, alone on its cache lines.
#[repr(align(128))]
#[derive(Default)]
struct Share(AtomicU64);

impl Share {
    /// Takes the next one of `count` tasks.
    #[inline]
    fn take(&self, job: u64, count: usize) -> Option<usize> {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            let taken = if state >> TAKEN == job { state & ((1 << TAKEN) - 1) } else { 0 };
            if taken >= count as u64 {
                return None;
            }
            let next = job << TAKEN | (taken + 1);
            match self.0.compare_exchange_weak(state, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(taken as usize),
                Err(now) => state = now,
            }
        }
    }
}

/// The shares of all participants.
pub(super) struct Queue {
    shares: Vec<Share>,
    job: u64,
}

impl Queue {
    /// Room for `participants` participants, at least one.
    pub(super) fn new(participants: usize) -> Queue {
        Queue { shares: (0..participants.max(1)).map(|_| Share::default()).collect(), job: 0 }
    }

    /// Shares out tasks; all of those of the last job have been taken.
    pub(super) fn start(&mut self, tasks: usize, participants: usize) -> Job<'_> {
        self.job += 1;
        if self.job >> (u64::BITS - TAKEN) > 0 {
            // Numbers begin again, so there must be no share of that number.
            self.shares.iter_mut().for_each(|share| *share.0.get_mut() = 0);
            self.job = 1;
        }
        Job { shares: &self.shares[..participants], job: self.job, tasks }
    }
}

/// The shares of a job.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    shares: &'a [Share],
    job: u64,
    tasks: usize,
}

impl<'a> Job<'a> {
    /// The tasks as one of the participants takes them. `between` is called before each.
    pub(super) fn tasks(self, participant: usize, between: Option<&'a Between>) -> Tasks<'a> {
        Tasks { job: self, participant, passed: Cell::new(0), between }
    }
}

/// The tasks of a job as one participant takes them: first its share, then the rest of the next ones.
pub(crate) struct Tasks<'a> {
    job: Job<'a>,
    participant: usize,
    /// Shares in which nothing is left.
    passed: Cell<usize>,
    between: Option<&'a Between>,
}

/// A function that is called between tasks.
pub(super) type Between = dyn Fn() + Send + Sync;

impl Tasks<'_> {
    /// The next task.
    #[inline]
    pub(crate) fn take(&self) -> Option<usize> {
        if let Some(between) = self.between {
            between();
        }
        let Job { shares, job, tasks } = self.job;
        while self.passed.get() < shares.len() {
            let owner = (self.participant + self.passed.get()) % shares.len();
            let share = part(tasks as i64, shares.len() as i64, owner as i64);
            if let Some(taken) = shares[owner].take(job, (share.end - share.start) as usize) {
                return Some(share.start as usize + taken);
            }
            self.passed.set(self.passed.get() + 1);
        }
        None
    }
}

/// Part `number` of `parts` parts of `all`, counted from 0 on; they differ by one at most.
pub(super) fn part(all: i64, parts: i64, number: i64) -> Range<i64> {
    let first = |number: i64| all / parts * number + (all % parts).min(number);
    first(number)..first(number + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_taken_once_whoever_comes() {
        let mut queue = Queue::new(3);
        for (tasks, participants, present) in [(10, 3, &[0, 1, 2][..]), (10, 3, &[2]), (2, 3, &[1]), (0, 1, &[0])] {
            for start in [None, Some((1 << 24) - 2)] {
                queue.job = start.unwrap_or(queue.job);
                for _ in 0..3 {
                    let job = queue.start(tasks, participants);
                    let all: Vec<Tasks<'_>> = present.iter().map(|&participant| job.tasks(participant, None)).collect();
                    let mut taken = Vec::new();
                    while let Some(task) = all[taken.len() % all.len()].take() {
                        taken.push(task);
                    }
                    // The tasks that others have left.
                    taken.extend(all.iter().flat_map(|tasks| std::iter::from_fn(|| tasks.take())));
                    taken.sort_unstable();
                    assert_eq!(taken, (0..tasks).collect::<Vec<_>>(), "{participants} participants, {present:?}");
                }
            }
        }
    }

    #[test]
    fn participants_begin_with_their_own_share() {
        let mut queue = Queue::new(4);
        let job = queue.start(10, 4);
        let firsts: Vec<Option<usize>> = (0..4).map(|participant| job.tasks(participant, None).take()).collect();
        assert_eq!(firsts, [Some(0), Some(3), Some(6), Some(8)]);
    }
}
