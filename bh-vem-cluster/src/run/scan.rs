//! Running sums over ranks, by the tree of processes: each gets those of the ranks before it, and those of all.

use crate::run::machine::Machine;
use crate::transport::Class;
use crate::transport::tree::{above, below};
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
        let mut own = vec![0; mine.first().map_or(0, Vec::len)];
        let mut before = Vec::with_capacity(mine.len());
        for numbers in mine {
            before.push(own.clone());
            add(&mut own, numbers);
        }
        let (me, mut others) = (self.port.hosted().start, Vec::new());
        let mut all = own;
        for other in below(&self.port).into_iter().rev() {
            others.push((other, all.clone()));
            add(&mut all, &numbers(&self.port.receive(me, other)?));
        }
        let mut earlier = vec![0; all.len()];
        if let Some(above) = above(&self.port) {
            self.port.send(Class::Control, me, above, to_bytes(&all))?;
            let mut both = numbers(&self.port.receive(me, above)?);
            all = both.split_off(earlier.len());
            earlier = both;
        }
        // Those with the most processes behind them first.
        for (other, mut sum) in others.into_iter().rev() {
            add(&mut sum, &earlier);
            self.port.send(Class::Control, me, other, to_bytes(&[sum, all.clone()].concat()))?;
        }
        before.iter_mut().for_each(|sum| add(sum, &earlier));
        Ok(Sums { before, all })
    }
}
