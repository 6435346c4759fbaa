//! The tree of processes by which rank 0 reaches all, and hears of all: no process has more than a few neighbours in it. The first
//! rank of a process speaks for it.

use crate::transport::{Class, Port};
use bh_core::error::Result;

/// The process that a process but the first hears from.
pub fn leader(rank: usize) -> usize {
    rank & (rank - 1)
}

/// The processes that hear from one, those with the most behind them first: a binomial tree whose root is that of rank 0.
pub fn followers(rank: usize, ranks: usize) -> impl DoubleEndedIterator<Item = usize> {
    let bits = if rank == 0 { usize::BITS - 1 } else { rank.trailing_zeros() };
    (0..bits).rev().map(move |bit| rank + (1 << bit)).filter(move |&other| other < ranks)
}

/// The rank that this process hears from; none if it has rank 0.
pub fn above(port: &Port) -> Option<usize> {
    let own = port.process();
    (own != 0).then(|| port.processes()[leader(own)])
}

/// The ranks that hear from this process.
pub fn below(port: &Port) -> Vec<usize> {
    followers(port.process(), port.processes().len()).map(|process| port.processes()[process]).collect()
}

/// Sends a message on to those that hear from this process.
pub fn spread(port: &mut Port, bytes: &[u8]) -> Result<()> {
    let rank = port.hosted().start;
    for other in below(port) {
        port.send(Class::Control, rank, other, bytes.to_vec())?;
    }
    Ok(())
}

/// Adds what those below in the tree say to a process's own, in their order. What comes of it goes up, if there is
/// somebody, by whoever calls.
pub fn collect<T>(port: &mut Port, mine: T, mut add: impl FnMut(T, &[u8]) -> Result<T>) -> Result<T> {
    let rank = port.hosted().start;
    let mut all = mine;
    for other in below(port).into_iter().rev() {
        all = add(all, &port.receive(rank, other)?)?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_is_reached_once() {
        for ranks in 1..40 {
            let mut reached = vec![0];
            for rank in 0..ranks {
                for other in followers(rank, ranks) {
                    assert_eq!(leader(other), rank, "{other} waits for another rank");
                    reached.push(other);
                }
                assert!(followers(rank, ranks).count() <= 6);
            }
            reached.sort_unstable();
            assert_eq!(reached, (0..ranks).collect::<Vec<_>>());
        }
    }
}
