//! All ranks in one process: messages wait in queues. Ranks run one after the other, so a receive never waits.

use crate::transport::Transport;
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// Queues between the ranks of one process.
pub struct InProcess {
    ranks: usize,
    queues: HashMap<(usize, usize), VecDeque<Vec<u8>>>,
}

impl InProcess {
    /// Queues between this many ranks.
    pub fn new(ranks: usize) -> InProcess {
        InProcess { ranks, queues: HashMap::new() }
    }
}

impl InProcess {
    /// Is a message from `from` to `at` queued?
    pub fn has(&self, at: usize, from: usize) -> bool {
        self.queues.get(&(from, at)).is_some_and(|queue| !queue.is_empty())
    }
}

impl Transport for InProcess {
    fn ranks(&self) -> usize {
        self.ranks
    }

    fn hosted(&self) -> Range<usize> {
        0..self.ranks
    }

    fn processes(&self) -> Vec<usize> {
        vec![0]
    }

    fn send(&mut self, from: usize, to: usize, bytes: Vec<u8>) -> Result<()> {
        self.queues.entry((from, to)).or_default().push_back(bytes);
        Ok(())
    }

    fn receive(&mut self, at: usize, from: usize) -> Result<Vec<u8>> {
        let message = self.queues.get_mut(&(from, at)).and_then(VecDeque::pop_front);
        message.ok_or_else(|| {
            Error::new(status::EXECUTION, format!("rank {at} waits for rank {from}, which sent nothing"))
        })
    }

    fn abort(&mut self, _text: &str) {}
}
