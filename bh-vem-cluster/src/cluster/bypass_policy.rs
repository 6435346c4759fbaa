//! When the bypass is open: one rank of this process has all shares, so that its child owns every array.

use super::Cluster;
use super::bypass::{ChildArray, order};
use super::mapped::Mapped;
use crate::run::call::METHOD;
use crate::run::file_region::{READ, WRITE};
use crate::run::shares::ArrayTotals;
use bh_bytecode::BatchRef;
use bh_core::abi::status;
use bh_core::component::{Report, Ticket};
use bh_core::error::Result;

impl Cluster {
    /// Runs a batch through the bypass, unless it is closed or the batch closes it.
    pub(super) fn execute_bypassing(
        &mut self,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        report: &mut Report,
    ) -> Option<Result<Ticket>> {
        if !self.is_single() && self.bypass.is_open() && !self.may_stay_bypassed(batch, blocks) {
            self.close_bypass();
        }
        let (outcome, gone) = self.bypass.execute(batch, blocks, report)?;
        if self.is_single() {
            return Some(outcome);
        }
        self.bypassed.add(1);
        self.machine.lose_names(&gone);
        if outcome.as_ref().is_err_and(|error| error.status == status::DEVICE) {
            self.machine.exclude_lost_devices();
        }
        Some(outcome.and_then(|ticket| self.machine.began(ticket)).map(|()| self.ticket()))
    }

    /// May the bypass stay open for a batch? Not if all ranks must take part, or if other shares would suit it better.
    fn may_stay_bypassed(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> bool {
        let of_ranks = [READ, WRITE, METHOD];
        let names = batch.extensions.iter().filter_map(|extension| batch.extension_name(extension.opcode));
        if names.into_iter().any(|name| of_ranks.contains(&name)) {
            return false;
        }
        let shape = match batch.structure() {
            Some(structure) => structure.hash as u64,
            None => self.known_batches.shape(batch, &order(batch, blocks)),
        };
        let small = self.machine.planner.small_bytes();
        let machine = &mut self.machine;
        let keeps = self.bypass.inspect(|arrays_of_child| {
            machine.note_copies(std::mem::take(&mut arrays_of_child.copied));
            let new = batch.bases.iter().filter(|base| !arrays_of_child.has(base.id));
            let totals = ArrayTotals {
                bytes: arrays_of_child.bytes,
                arrays: arrays_of_child.len(),
                new: ArrayTotals::lasting(new, small),
            };
            !arrays_of_child.may_move() || !machine.would_rebalance(shape, batch, || order(batch, blocks), &totals)
        });
        keeps == Some(true)
    }

    /// Opens the bypass if the first rank has all shares and all arrays can be moved to it.
    pub(super) fn open_bypass(&mut self) {
        if self.is_single() {
            return self.bypass.open_for_good();
        }
        let busy = self.machine.region.is_some() || self.machine.called.is_some();
        if !self.may_bypass || busy || self.bypass.is_open() || !self.machine.first_has_all_shares() {
            return;
        }
        let mut maps = Vec::new();
        for (&id, mapped) in &self.mapped {
            let Mapped::Shard { shard, maps: count, .. } = mapped else { return };
            if !self.machine.planner.arrays.get(&id).is_some_and(|array| array.shards.get(&0) == Some(&shard.base)) {
                return;
            }
            maps.push((id, *count));
        }
        let Some(mut arrays) = self.machine.release_all() else { return };
        for own in &mut arrays {
            own.maps = maps.iter().find(|(id, _)| *id == own.like.id).map_or(0, |(_, count)| *count);
        }
        self.mapped.clear();
        self.bypass.open(self.machine.planner.small_bytes(), arrays);
    }

    /// Closes the bypass; the planner takes over the arrays.
    pub(super) fn close_bypass(&mut self) {
        let Some(arrays_of_child) = self.bypass.close().filter(|_| !self.is_single()) else { return };
        for own in arrays_of_child.into_arrays() {
            if !own.dead {
                self.machine.take_over(&own);
            }
            if own.maps > 0 {
                self.mapped.insert(own.like.id, Mapped::Shard { shard: own.shard(), maps: own.maps, changes: true });
            }
        }
    }
}

impl crate::run::machine::Machine {
    /// Releases all arrays to the first rank's stack. `None`, without a change, if an array is lost or cannot be moved
    /// there.
    fn release_all(&mut self) -> Option<Vec<ChildArray>> {
        let adopted = self.planner.gather_all_to_rank0()?;
        self.run_planned().ok()?;
        let own = |(like, fixed): (bh_bytecode::Base, bool)| {
            let base = self.planner.release(&like);
            ChildArray { like, base, fixed, maps: 0, dead: false }
        };
        Some(adopted.into_iter().map(own).collect())
    }

    /// Takes over an array of the first rank's stack.
    fn take_over(&mut self, own: &ChildArray) {
        self.planner.take_over(&own.like, &own.base, own.fixed);
        self.know(0, &own.base);
    }
}
