//! Lets shares follow the memory of stacks, the work that the program does, and devices that are lost.

use crate::plan::layout::Weights;
use crate::plan::plans::Plans;
use crate::plan::rates::{KINDS, Mix, Work, work};
use crate::run::local::memory_of;
use crate::run::machine::Machine;
use crate::run::shares::{Holdings, MOST_PERCENT, Shares, fitted};
use bh_bytecode::BatchRef;

/// Nanoseconds of an exchange between siblings of which some are devices: kernels end, and others begin. Between threads it is less.
const DEVICE_EXCHANGE: f64 = 100_000.0;
const HOST_EXCHANGE: f64 = 40_000.0;

impl Machine {
    /// Lets shares respect the memory of stacks, unless they are given. `memory`: what each rank has of its own.
    pub fn heed_memory(&mut self, memory: &[Option<u64>], given: bool) {
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

    /// Lets shares follow the kinds of work that the program does, if it is known how fast ranks are in them. `gathers`: what is so
    /// little that messages would take longer goes to one rank.
    pub fn heed_work(&mut self, gathers: bool) {
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

    /// Notes bytes that the program writes or reads, where all ranks hear of it.
    pub fn note_copies(&mut self, bytes: u64) {
        if let Some(mix) = self.shares.mix.as_mut().filter(|_| self.port.is_alone()) {
            mix.copies(bytes);
        }
    }

    /// Notes how often elements moved for the batch that has just run.
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

    /// Gives stacks whose device is lost no share from the next batch on, if others are left and all live in this process.
    pub(crate) fn leave_lost_devices(&mut self) {
        if !self.port.is_alone() || self.crew.is_none() {
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

    /// Changes the shares before a batch, if there is a reason.
    pub(crate) fn share_for(&mut self, batch: &BatchRef<'_>, shape: u64, order: &[u32]) {
        if let Some(weights) = self.shares.next.take() {
            self.share_anew(weights);
        }
        let known = &self.planner.arrays;
        let shared = known.values().filter(|array| !array.small && !array.fixed);
        let new = batch.bases.iter().filter(|base| !known.contains_key(&base.id));
        let holdings = Holdings {
            bytes: shared.map(|array| array.base.bytes()).sum(),
            arrays: known.len(),
            new: Holdings::lasting(new, self.planner.settings.small_bytes),
        };
        if let Some(weights) = self.decide(shape, || work(batch, order), &holdings) {
            self.share_anew(weights);
        }
    }

    /// Should shares change before a batch, while one rank has all arrays? They will before the next that is planned.
    pub(crate) fn changes_for(
        &mut self,
        shape: u64,
        batch: &BatchRef<'_>,
        order: impl FnOnce() -> Vec<u32>,
        holdings: &Holdings,
    ) -> bool {
        if self.shares.next.is_none() {
            self.shares.next = self.decide(shape, || work(batch, &order()), holdings);
        }
        self.shares.next.is_some()
    }

    /// The shares for a batch, if there is a reason for others than the present ones.
    fn decide(&mut self, shape: u64, work: impl FnOnce() -> Work, holdings: &Holdings) -> Option<Weights> {
        let now = self.weights();
        let wanted = self.shares.mix.as_mut().and_then(|mix| mix.note(shape, work, &now, holdings.bytes));
        if let Some(wanted) = &wanted {
            self.shares.wanted.clone_from(wanted);
            (self.shares.fitting, self.shares.arrays) = (0, usize::MAX);
        }
        let fitting = self.shares_that_fit(holdings, wanted.as_deref());
        fitting.or(wanted).and_then(Weights::given)
    }

    /// The shares with which arrays fit, if they do not with those that are wanted, or with the present ones.
    fn shares_that_fit(&mut self, holdings: &Holdings, wanted: Option<&[f64]>) -> Option<Vec<f64>> {
        if self.shares.limits.is_empty() || holdings.new == 0 && holdings.arrays == self.shares.arrays {
            return None;
        }
        self.shares.arrays = holdings.arrays;
        let total = holdings.new.saturating_add(holdings.bytes);
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
        // Some more, so that arrays do not move again for each new one.
        fitted(wanted, limits, total + total / 4).or_else(|| fitted(wanted, limits, total))
    }

    /// Shares out all arrays anew. What only a lost device had is lost.
    fn share_anew(&mut self, weights: Weights) {
        self.planner.settings.weights = weights;
        self.shares.changes += 1;
        self.plans = Plans::default();
        for base in self.planner.shared() {
            if let Err(error) = self.planner.recut(base.id).and_then(|()| self.settle()) {
                self.planner.lose(&base, &error.unplaced());
            }
        }
    }
}
