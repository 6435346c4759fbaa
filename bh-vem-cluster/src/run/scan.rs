//! Running sums over ranks, by the tree of ranks: each gets those of the ranks before it, and those of all.

use crate::run::machine::Machine;
use crate::transport::Class;
use crate::transport::tree::{followers, leader};
use bh_core::error::Result;

/// Sums over some ranks.
pub struct Sums {
    /// Over those before each rank of this process.
    pub before: Vec<Vec<i64>>,
    /// Over all.
    pub all: Vec<i64>,
}

fn add(sum: &mut [i64], more: &[i64]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

fn to_bytes(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks().0.iter().map(|word| i64::from_le_bytes(*word)).collect()
}

impl Machine {
    /// Sums of as many numbers of each rank; `mine` are those of the ranks of this process.
    pub fn scan(&mut self, mine: &[Vec<i64>]) -> Result<Sums> {
        let zeros = vec![0; mine.first().map_or(0, Vec::len)];
        if self.port.is_alone() {
            let (mut before, mut all) = (Vec::with_capacity(mine.len()), zeros);
            for own in mine {
                before.push(all.clone());
                add(&mut all, own);
            }
            return Ok(Sums { before, all });
        }
        let (me, ranks) = (self.port.hosted().start, self.port.ranks());
        let (mut sum, mut others) = (mine[0].clone(), Vec::new());
        for other in followers(me, ranks).rev() {
            others.push((other, sum.clone()));
            add(&mut sum, &numbers(&self.port.receive(me, other)?));
        }
        let (mut before, mut all) = (zeros, sum);
        if me != 0 {
            self.port.send(Class::Control, me, leader(me), to_bytes(&all))?;
            let mut both = numbers(&self.port.receive(me, leader(me))?);
            all = both.split_off(before.len());
            before = both;
        }
        // Those with the most ranks behind them first.
        for (other, mut sum) in others.into_iter().rev() {
            add(&mut sum, &before);
            self.port.send(Class::Control, me, other, to_bytes(&[sum, all.clone()].concat()))?;
        }
        Ok(Sums { before: vec![before], all })
    }
}
