//! The binomial tree of processes for broadcasts from rank 0 and reductions to it: no process has more than a few
//! neighbours. A process's first rank represents it.

use crate::transport::{Class, Port};
use bh_core::error::Result;

/// The parent of a process other than the first.
pub fn tree_parent(rank: usize) -> usize {
    rank & (rank - 1)
}

/// The children of a process, largest subtrees first.
pub fn tree_children(rank: usize, ranks: usize) -> impl DoubleEndedIterator<Item = usize> {
    let bits = if rank == 0 { usize::BITS - 1 } else { rank.trailing_zeros() };
    (0..bits).rev().map(move |bit| rank + (1 << bit)).filter(move |&other| other < ranks)
}

/// The first rank of this process's parent; `None` on rank 0's process.
pub fn parent_rank(port: &Port) -> Option<usize> {
    let own = port.process();
    (own != 0).then(|| port.processes()[tree_parent(own)])
}

/// The first ranks of this process's children.
pub fn child_ranks(port: &Port) -> Vec<usize> {
    tree_children(port.process(), port.processes().len()).map(|process| port.processes()[process]).collect()
}

/// Sends a message to this process's children.
pub fn broadcast(port: &mut Port, bytes: &[u8]) -> Result<()> {
    let rank = port.hosted().start;
    for other in child_ranks(port) {
        port.send(Class::Control, rank, other, bytes.to_vec())?;
    }
    Ok(())
}

/// Reduces the children's messages, in their order, onto this process's value. The caller sends the result to the
/// parent, if there is one.
pub fn collect<T>(port: &mut Port, mine: T, mut add: impl FnMut(T, &[u8]) -> Result<T>) -> Result<T> {
    let rank = port.hosted().start;
    let mut all = mine;
    for other in child_ranks(port).into_iter().rev() {
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
                for other in tree_children(rank, ranks) {
                    assert_eq!(tree_parent(other), rank, "{other} waits for another rank");
                    reached.push(other);
                }
                assert!(tree_children(rank, ranks).count() <= 6);
            }
            reached.sort_unstable();
            assert_eq!(reached, (0..ranks).collect::<Vec<_>>());
        }
    }
}
