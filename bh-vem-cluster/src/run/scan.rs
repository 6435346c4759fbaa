//! Prefix sums over ranks along the tree of processes, together with the total.

use crate::run::machine::Machine;
use crate::transport::Class;
use crate::transport::tree::{child_ranks, parent_rank};
use bh_core::error::Result;

/// The result of a prefix sum.
pub struct Sums {
    /// The sums over all ranks before each rank of this process.
    pub before: Vec<Vec<i64>>,
    /// The sums over all ranks.
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
    /// Sums equally many numbers per rank; `mine`: those of this process's ranks.
    pub fn scan(&mut self, mine: &[Vec<i64>]) -> Result<Sums> {
        let mut own = vec![0; mine.first().map_or(0, Vec::len)];
        let mut before = Vec::with_capacity(mine.len());
        for numbers in mine {
            before.push(own.clone());
            add(&mut own, numbers);
        }
        let (me, mut others) = (self.port.hosted().start, Vec::new());
        let mut all = own;
        for other in child_ranks(&self.port).into_iter().rev() {
            others.push((other, all.clone()));
            add(&mut all, &numbers(&self.port.receive(me, other)?));
        }
        let mut earlier = vec![0; all.len()];
        if let Some(parent_rank) = parent_rank(&self.port) {
            self.port.send(Class::Control, me, parent_rank, to_bytes(&all))?;
            let mut both = numbers(&self.port.receive(me, parent_rank)?);
            all = both.split_off(earlier.len());
            earlier = both;
        }
        // Largest subtrees first.
        for (other, mut sum) in others.into_iter().rev() {
            add(&mut sum, &earlier);
            self.port.send(Class::Control, me, other, to_bytes(&[sum, all.clone()].concat()))?;
        }
        before.iter_mut().for_each(|sum| add(sum, &earlier));
        Ok(Sums { before, all })
    }
}
