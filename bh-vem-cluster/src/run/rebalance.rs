//! Rebalances: shares follow the memory of stacks, the program's kinds of work, and lost devices.

use crate::plan::layout::Weights;
use crate::plan::plans::Plans;
use crate::plan::rates::{KINDS, Mix, Work, work};
use crate::run::local::memory_of;
use crate::run::machine::Machine;
use crate::run::shares::{ArrayTotals, MOST_PERCENT, Shares, fitted};
use bh_bytecode::BatchRef;

/// Nanoseconds of an exchange between siblings: with devices, kernels must end and start again; between threads it is
/// faster.
const DEVICE_EXCHANGE: f64 = 100_000.0;
const HOST_EXCHANGE: f64 = 40_000.0;

impl Machine {
    /// Limits shares by the memory of each rank's stack, unless they are configured.
    pub fn limit_shares_by_memory(&mut self, memory: &[Option<u64>], given: bool) {
        let ranks = self.port.ranks();
        let given = given && self.planner.settings.rates.is_empty();
        if ranks == 1 || memory.len() != ranks || self.locals.len() > self.children.len() {
            return;
        }
        let limits: Vec<Option<u64>> =
            memory.iter().map(|bytes| bytes.map(|bytes| bytes / 100 * MOST_PERCENT)).collect();
        if limits.iter().any(Option::is_some) && !given {
            self.shares.wanted = self.weights();
            self.shares.limits = limits.into_iter().map(|limit| limit.unwrap_or(u64::MAX / 2)).collect();
        }
    }

    /// Lets shares follow the program's kinds of work, if the ranks' rates are known. `gathers`: small work moves to
    /// one rank, because messages would take longer.
    pub fn follow_work(&mut self, gathers: bool) {
        let rates = self.planner.settings.rates.clone();
        let differ = rates.iter().any(|one| {
            let differs = |kind: usize| {
                let (mine, first) = (one.0[kind] * rates[0].0[0], one.0[0] * rates[0].0[kind]);
                (mine - first).abs() > 1e-9 * mine.max(first)
            };
            (1..KINDS.len()).any(differs)
        });
        if rates.len() != self.port.ranks() || rates.len() < 2 || !(differ || gathers) {
            return;
        }
        let device = self.locals.iter().any(|rank| rank.on_device);
        let exchange = if device { DEVICE_EXCHANGE } else { HOST_EXCHANGE };
        self.shares.mix = Some(Mix::new(rates, gathers.then_some(exchange)));
    }

    /// The shares that suit each kind of work, by its name.
    pub fn shares_by_kind(&self) -> Vec<(&'static str, Vec<f64>)> {
        let of = |mix: &Mix| KINDS.into_iter().enumerate().map(|(kind, name)| (name, mix.of_kind(kind))).collect();
        self.shares.mix.as_ref().map_or(Vec::new(), of)
    }

    /// Records bytes that the program writes or reads. Not with several processes, because only rank 0 knows of them.
    pub fn note_copies(&mut self, bytes: u64) {
        if let Some(mix) = self.shares.mix.as_mut().filter(|_| self.port.is_alone()) {
            mix.copies(bytes);
        }
    }

    /// Records how often elements moved for the last batch.
    pub(crate) fn note_exchanges(&mut self, times: usize) {
        let shared = self.planner.settings.weights.as_slice().iter().filter(|weight| **weight > 0.0).count() != 1;
        if let Some(mix) = self.shares.mix.as_mut().filter(|_| shared) {
            mix.exchanged(times);
        }
    }

    fn weights(&self) -> Vec<f64> {
        match self.planner.settings.weights.as_slice() {
            [] => vec![1.0; self.port.ranks()],
            shares => shares.to_vec(),
        }
    }

    /// Removes the shares of lost devices before the next batch, if other stacks are left and all are in this process.
    pub(crate) fn exclude_lost_devices(&mut self) {
        if !self.port.is_alone() || self.pool.is_none() {
            return;
        }
        let (mut shares, mut changed) = (self.weights(), false);
        for (place, (rank, child)) in self.locals.iter_mut().zip(&mut self.children).enumerate() {
            if rank.on_device && memory_of(child).is_none() {
                (rank.on_device, shares[place], changed) = (false, 0.0, true);
                if let Some(mix) = &mut self.shares.mix {
                    mix.lose(place);
                }
                if let Some(wanted) = self.shares.wanted.get_mut(place) {
                    *wanted = 0.0;
                }
            }
        }
        if let (true, Some(left)) = (changed, Weights::given(shares)) {
            self.shares.next = Some(left);
        }
    }

    /// Changes the shares before a batch, if necessary.
    pub(crate) fn rebalance_for(&mut self, batch: &BatchRef<'_>, shape: u64, order: &[u32]) {
        if let Some(weights) = self.shares.next.take() {
            self.rebalance(weights);
        }
        let known = &self.planner.arrays;
        let shared = known.values().filter(|array| !array.small && !array.fixed);
        let new = batch.bases.iter().filter(|base| !known.contains_key(&base.id));
        let totals = ArrayTotals {
            bytes: shared.map(|array| array.base.bytes()).sum(),
            arrays: known.len(),
            new: ArrayTotals::lasting(new, self.planner.settings.small_bytes),
        };
        if let Some(weights) = self.decide(shape, || work(batch, order), &totals) {
            self.rebalance(weights);
        }
    }

    /// Will shares change before a batch? Used while one rank has all arrays; stores the change for the next planned
    /// batch.
    pub(crate) fn would_rebalance(
        &mut self,
        shape: u64,
        batch: &BatchRef<'_>,
        order: impl FnOnce() -> Vec<u32>,
        totals: &ArrayTotals,
    ) -> bool {
        if self.shares.next.is_none() {
            self.shares.next = self.decide(shape, || work(batch, &order()), totals);
        }
        self.shares.next.is_some()
    }

    /// New shares for a batch, if necessary.
    fn decide(&mut self, shape: u64, work: impl FnOnce() -> Work, totals: &ArrayTotals) -> Option<Weights> {
        let now = self.weights();
        let wanted = self.shares.mix.as_mut().and_then(|mix| mix.note(shape, work, &now, totals.bytes));
        if let Some(wanted) = &wanted {
            self.shares.wanted.clone_from(wanted);
            (self.shares.fitting, self.shares.arrays) = (0, usize::MAX);
        }
        let fitting = self.shares_that_fit(totals, wanted.as_deref());
        fitting.or(wanted).and_then(Weights::given)
    }

    /// Shares with which arrays fit into memory, if the wanted or current ones exceed it.
    fn shares_that_fit(&mut self, totals: &ArrayTotals, wanted: Option<&[f64]>) -> Option<Vec<f64>> {
        if self.shares.limits.is_empty() || totals.new == 0 && totals.arrays == self.shares.arrays {
            return None;
        }
        self.shares.arrays = totals.arrays;
        let total = totals.new.saturating_add(totals.bytes);
        if total <= self.shares.fitting {
            return None;
        }
        self.shares.fitting = total;
        let now = wanted.map_or_else(|| self.weights(), <[f64]>::to_vec);
        let Shares { limits, wanted, .. } = &self.shares;
        let fits = |share: (&f64, &u64)| *share.0 <= *share.1 as f64;
        let sum: f64 = now.iter().sum();
        let shares: Vec<f64> = now.iter().map(|weight| total as f64 * weight / sum).collect();
        if shares.iter().zip(limits).all(fits) {
            return None;
        }
        // Some extra space, so that arrays do not move for each new one.
        fitted(wanted, limits, total + total / 4).or_else(|| fitted(wanted, limits, total))
    }

    /// Redistributes all arrays. Elements that only a lost device had are lost.
    fn rebalance(&mut self, weights: Weights) {
        self.planner.settings.weights = weights;
        self.shares.changes += 1;
        self.plans = Plans::default();
        for base in self.planner.shared() {
            if let Err(error) = self.planner.redistribute(base.id).and_then(|()| self.run_planned()) {
                self.planner.lose(&base, &error.unplaced());
            }
        }
    }
}
