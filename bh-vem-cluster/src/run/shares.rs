//! Who gets how much, as far as that changes while a program runs: where it does another kind of work, in which other stacks are
//! fast; where arrays would not fit a stack's memory; and where a device is lost, if all ranks live in this process.

use crate::plan::layout::Weights;
use crate::plan::rates::Mix;
use bh_bytecode::{Base, base_flags};

/// The most that arrays take of a stack's memory, in percent: the rest is for what operations need beside them.
pub(crate) const MOST_PERCENT: u64 = 80;

/// What shares follow.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// The bytes that arrays may take on each rank; none if that changes nothing.
    pub(super) limits: Vec<u64>,
    /// The shares that were asked for, where memory does not matter.
    pub(super) wanted: Vec<f64>,
    /// Arrays of this many bytes fit.
    pub(super) fitting: u64,
    /// How many arrays there were when that was looked at.
    pub(super) arrays: usize,
    /// A device was lost: the shares from the next batch on.
    pub(super) next: Option<Weights>,
    /// The kinds of work that the program does, if shares follow them.
    pub(super) mix: Option<Mix>,
    /// How often they have changed.
    pub(crate) changes: u64,
}

/// What counts of the arrays that there are.
pub(crate) struct Holdings {
    /// Bytes of those that are shared out.
    pub bytes: u64,
    /// How many there are of any kind.
    pub arrays: usize,
    /// Bytes of those that a batch makes and leaves.
    pub new: u64,
}

impl Holdings {
    /// The bytes of new bases that stay and are not small.
    pub fn lasting<'a>(new: impl Iterator<Item = &'a Base>, small_bytes: u64) -> u64 {
        new.filter(|base| !base.has(base_flags::DIES) && base.bytes() > small_bytes).map(|base| base.bytes()).sum()
    }
}

/// The bytes of each rank, shared out as is wanted as far as they fit; `None` if they do not.
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
    /// Is a change decided?
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
