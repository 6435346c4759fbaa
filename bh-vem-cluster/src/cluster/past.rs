//! When the way past the cluster is open: where one rank of this process has all shares, so that its child has all arrays.

use super::Cluster;
use super::mapped::Mapped;
use super::passage::{Own, order};
use crate::run::call::METHOD;
use crate::run::region::{READ, WRITE};
use crate::run::shares::Holdings;
use bh_bytecode::BatchRef;
use bh_core::abi::status;
use bh_core::component::{Report, Ticket};
use bh_core::error::Result;

impl Cluster {
    /// Runs a batch past the cluster, if that is open and stays so.
    pub(super) fn go_past(
        &mut self,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        report: &mut Report,
    ) -> Option<Result<Ticket>> {
        if !self.is_single() && self.passage.is_open() && !self.suits(batch, blocks) {
            self.close_passage();
        }
        let (outcome, gone) = self.passage.execute(batch, blocks, report)?;
        if self.is_single() {
            return Some(outcome);
        }
        self.past.add(1);
        self.machine.lose_names(&gone);
        if outcome.as_ref().is_err_and(|error| error.status == status::DEVICE) {
            self.machine.leave_lost_devices();
        }
        Some(outcome.and_then(|ticket| self.machine.began(ticket)).map(|()| self.ticket()))
    }

    /// Is a batch nothing that all ranks must do, and are shares right for it as they are?
    fn suits(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> bool {
        let of_ranks = [READ, WRITE, METHOD];
        let names = batch.extensions.iter().filter_map(|extension| batch.extension_name(extension.opcode));
        if names.into_iter().any(|name| of_ranks.contains(&name)) {
            return false;
        }
        let shape = match batch.structure() {
            Some(structure) => structure.hash as u64,
            None => self.memory.shape(batch, &order(batch, blocks)),
        };
        let small = self.machine.planner.small_bytes();
        let machine = &mut self.machine;
        let keeps = self.passage.look(|kept| {
            machine.note_copies(std::mem::take(&mut kept.copied));
            let new = batch.bases.iter().filter(|base| !kept.has(base.id));
            let holdings = Holdings { bytes: kept.bytes, arrays: kept.len(), new: Holdings::lasting(new, small) };
            !kept.may_move() || !machine.changes_for(shape, batch, || order(batch, blocks), &holdings)
        });
        keeps == Some(true)
    }

    /// Opens the way past the cluster if the first child has everything, or is brought it by that.
    pub(super) fn open_passage(&mut self) {
        if self.is_single() {
            return self.passage.open_for_good();
        }
        let busy = self.machine.region.is_some() || self.machine.called.is_some();
        if !self.passes || busy || self.passage.is_open() || !self.machine.first_has_all_shares() {
            return;
        }
        let mut maps = Vec::new();
        for (&id, mapped) in &self.mapped {
            let Mapped::Piece { piece, maps: count, .. } = mapped else { return };
            if !self.machine.planner.arrays.get(&id).is_some_and(|array| array.pieces.get(&0) == Some(&piece.base)) {
                return;
            }
            maps.push((id, *count));
        }
        let Some(mut arrays) = self.machine.give_all() else { return };
        for own in &mut arrays {
            own.maps = maps.iter().find(|(id, _)| *id == own.like.id).map_or(0, |(_, count)| *count);
        }
        self.mapped.clear();
        self.passage.open(self.machine.planner.small_bytes(), arrays);
    }

    /// Closes it: the arrays are the planner's.
    pub(super) fn close_passage(&mut self) {
        let Some(kept) = self.passage.close().filter(|_| !self.is_single()) else { return };
        for own in kept.into_arrays() {
            if !own.dead {
                self.machine.take(&own);
            }
            if own.maps > 0 {
                self.mapped.insert(own.like.id, Mapped::Piece { piece: own.piece(), maps: own.maps, changes: true });
            }
        }
    }
}

impl crate::run::machine::Machine {
    /// Gives all arrays to the first rank's stack, and forgets them; nothing happens if some are lost, or cannot be brought there.
    fn give_all(&mut self) -> Option<Vec<Own>> {
        let homes = self.planner.bring_all_home()?;
        self.settle().ok()?;
        let own = |(like, fixed): (bh_bytecode::Base, bool)| {
            let base = self.planner.leave(&like);
            Own { like, base, fixed, maps: 0, dead: false }
        };
        Some(homes.into_iter().map(own).collect())
    }

    /// Takes an array that the first rank's stack has.
    fn take(&mut self, own: &Own) {
        self.planner.take_over(&own.like, &own.base, own.fixed);
        self.know(0, &own.base);
    }
}
