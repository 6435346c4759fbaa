//! Shares that change while a program runs: for other kinds of work, for arrays that do not fit into a stack's memory,
//! and after the loss of a device, if all ranks are in this process.

use crate::plan::layout::Weights;
use crate::plan::rates::Mix;
use bh_bytecode::{Base, base_flags};

/// The part of a stack's memory for arrays, in percent; the rest is for temporaries of operations.
pub(crate) const MOST_PERCENT: u64 = 80;

/// The inputs of shares.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// The bytes for arrays on each rank; empty if memory imposes no limit.
    pub(super) limits: Vec<u64>,
    /// The shares without memory limits.
    pub(super) wanted: Vec<f64>,
    /// Total bytes that are known to fit.
    pub(super) fitting: u64,
    /// The number of arrays at that time.
    pub(super) arrays: usize,
    /// New shares, from the next batch on.
    pub(super) next: Option<Weights>,
    /// The program's mix of work, if shares follow it.
    pub(super) mix: Option<Mix>,
    /// How often shares have changed.
    pub(crate) changes: u64,
}

/// Totals over arrays.
pub(crate) struct ArrayTotals {
    /// Bytes of the distributed ones.
    pub bytes: u64,
    /// The number of all arrays.
    pub arrays: usize,
    /// Bytes that a batch creates and keeps.
    pub new: u64,
}

impl ArrayTotals {
    /// Bytes of new bases that are lasting and not small.
    pub fn lasting<'a>(new: impl Iterator<Item = &'a Base>, small_bytes: u64) -> u64 {
        new.filter(|base| !base.has(base_flags::DIES) && base.bytes() > small_bytes).map(|base| base.bytes()).sum()
    }
}

/// The bytes of each rank: proportional to `wanted` up to its limit. `None` if the total exceeds all limits.
pub(super) fn fitted(wanted: &[f64], limits: &[u64], total: u64) -> Option<Vec<f64>> {
    let mut full = vec![false; wanted.len()];
    loop {
        let sum: f64 = wanted.iter().zip(&full).filter(|(_, full)| !**full).map(|(wanted, _)| wanted).sum();
        let kept: f64 = limits.iter().zip(&full).filter(|(_, full)| **full).map(|(&limit, _)| limit as f64).sum();
        let rest = total as f64 - kept;
        if sum <= 0.0 {
            return (rest <= 0.0).then(|| limits.iter().map(|&limit| limit as f64).collect());
        }
        let share = |rank: usize| if full[rank] { limits[rank] as f64 } else { rest * wanted[rank] / sum };
        let shares: Vec<f64> = (0..wanted.len()).map(share).collect();
        let too_much: Vec<usize> = (0..wanted.len()).filter(|&rank| shares[rank] > limits[rank] as f64).collect();
        if too_much.is_empty() {
            return Some(shares);
        }
        too_much.into_iter().for_each(|rank| full[rank] = true);
    }
}

impl Shares {
    /// Is a change pending?
    pub(crate) fn change(&self) -> bool {
        self.next.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn shares_are_as_wanted_as_far_as_they_fit() {
        assert_eq!(fitted(&[1.0, 1.0], &[80, 40], 60), Some(vec![30.0, 30.0]));
        assert_eq!(fitted(&[1.0, 1.0], &[80, 40], 100), Some(vec![60.0, 40.0]));
        assert_eq!(fitted(&[10.0, 1.0, 1.0], &[80, 40, 40], 150), Some(vec![80.0, 35.0, 35.0]));
        assert_eq!(fitted(&[1.0, 0.0], &[80, 40], 100), None);
        assert_eq!(fitted(&[1.0, 1.0], &[80, 40], 121), None);
    }
}
