//! Several ranks in each of several processes: messages within a process are queued; those between processes carry the
//! numbers of sender and receiver.

use crate::transport::Transport;
use crate::transport::inprocess::InProcess;
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::ops::Range;

/// Bytes of the two rank numbers.
const NAMES: usize = 8;

/// All ranks, on a transport with one rank per process.
pub struct Multiplexed {
    processes: Box<dyn Transport>,
    /// The first rank of each process, and the total number.
    firsts: Vec<usize>,
    /// Queued messages for this process's ranks.
    here: InProcess,
}

impl Multiplexed {
    /// Creates a transport for this many ranks in each process, on the transport between the processes.
    pub fn new(processes: Box<dyn Transport>, counts: &[usize]) -> Multiplexed {
        let mut firsts = vec![0];
        firsts.extend(counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }));
        let ranks = firsts[counts.len()];
        Multiplexed { processes, firsts, here: InProcess::new(ranks) }
    }

    fn process_of(&self, rank: usize) -> usize {
        self.firsts.partition_point(|&first| first <= rank) - 1
    }

    fn own(&self) -> usize {
        self.processes.hosted().start
    }
}

impl Transport for Multiplexed {
    fn ranks(&self) -> usize {
        self.firsts[self.firsts.len() - 1]
    }

    fn hosted(&self) -> Range<usize> {
        self.firsts[self.own()]..self.firsts[self.own() + 1]
    }

    fn processes(&self) -> Vec<usize> {
        self.firsts[..self.firsts.len() - 1].to_vec()
    }

    fn send(&mut self, from: usize, to: usize, mut bytes: Vec<u8>) -> Result<()> {
        let (own, process) = (self.own(), self.process_of(to));
        if process == own {
            return self.here.send(from, to, bytes);
        }
        bytes.extend([from, to].iter().flat_map(|&rank| (rank as u32).to_le_bytes()));
        self.processes.send(own, process, bytes)
    }

    fn receive(&mut self, at: usize, from: usize) -> Result<Vec<u8>> {
        let (own, process) = (self.own(), self.process_of(from));
        while process != own && !self.here.has(at, from) {
            let mut bytes = self.processes.receive(own, process)?;
            let cut = || Error::new(status::EXECUTION, "a message names no ranks: do all ranks run the same bh?");
            let names = bytes.len().checked_sub(NAMES).ok_or_else(cut)?;
            let rank = |at: usize| {
                let mut word = [0; 4];
                word.copy_from_slice(&bytes[names + at..][..4]);
                u32::from_le_bytes(word) as usize
            };
            let (sender, receiver) = (rank(0), rank(4));
            bytes.truncate(names);
            self.here.send(sender, receiver, bytes)?;
        }
        self.here.receive(at, from)
    }

    fn abort(&mut self, text: &str) {
        self.processes.abort(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// One of two processes.
    struct Pair(usize, Sender<Vec<u8>>, Receiver<Vec<u8>>);

    impl Transport for Pair {
        fn ranks(&self) -> usize {
            2
        }

        fn hosted(&self) -> Range<usize> {
            self.0..self.0 + 1
        }

        fn send(&mut self, _from: usize, _to: usize, bytes: Vec<u8>) -> Result<()> {
            self.1.send(bytes).map_err(|_| Error::new(status::EXECUTION, "gone"))
        }

        fn receive(&mut self, _at: usize, _from: usize) -> Result<Vec<u8>> {
            self.2.recv().map_err(|_| Error::new(status::EXECUTION, "gone"))
        }

        fn abort(&mut self, _text: &str) {}
    }

    #[test]
    fn messages_find_their_ranks() {
        let (there, here) = (channel(), channel());
        let mut first = Multiplexed::new(Box::new(Pair(0, there.0, here.1)), &[2, 3]);
        let mut second = Multiplexed::new(Box::new(Pair(1, here.0, there.1)), &[2, 3]);
        assert_eq!((first.hosted(), second.hosted(), first.processes()), (0..2, 2..5, vec![0, 2]));
        for (from, to, text) in [(0, 3, "a"), (1, 4, "b"), (1, 3, "c"), (0, 3, "d")] {
            first.send(from, to, text.into()).unwrap();
        }
        second.send(2, 4, b"within".to_vec()).unwrap();
        second.send(4, 0, Vec::new()).unwrap();
        // Received in another order than sent; messages of one pair of ranks stay in order.
        for (at, from, text) in [(3, 1, "c"), (4, 2, "within"), (3, 0, "a"), (4, 1, "b"), (3, 0, "d")] {
            assert_eq!(second.receive(at, from).unwrap(), text.as_bytes());
        }
        assert_eq!(first.receive(0, 4).unwrap(), b"");
        assert!(second.receive(3, 2).unwrap_err().text.contains("sent nothing"));
    }
}
