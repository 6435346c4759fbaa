//! Arrays as the program on rank 0 reads, writes and maps them.

use super::Cluster;
use super::mapped::Mapped;
use crate::command::Command;
use crate::plan::array::Piece;
use crate::plan::boxes::{Span, span_of};
use crate::plan::mesh::lie;
use crate::run::local::dense;
use crate::run::staging::Staging;
use bh_bytecode::{Base, View};
use bh_core::abi::{HostMemory, access, status};
use bh_core::error::{Error, Result};

impl Cluster {
    /// Brings an array to rank 0's memory, where it stays.
    pub(super) fn bring_home(&mut self, base: &Base) -> Result<Piece> {
        let _turn = self.tell(&Command::Home(*base))?;
        let piece = self.machine.planner.bring_home(base)?;
        self.machine.settle()?;
        self.machine.know(0, &piece.base);
        Ok(piece)
    }

    /// Copies the elements of a view of an array that is on several ranks to the program's memory. False where that takes a map.
    pub(super) fn read_directly(&mut self, base: &Base, view: &View, memory: &HostMemory) -> Result<bool> {
        if self.is_whole(base) || self.mapped.contains_key(&base.id) {
            return Ok(false);
        }
        if self.machine.port.is_alone() && is_all(base, view, memory) {
            let bytes = base.bytes() as usize;
            // SAFETY: the program's memory is valid for the view, which is all elements in their order, until this returns.
            let into = unsafe { std::slice::from_raw_parts_mut(memory.data(), bytes) };
            let outcome = self.machine.read(base, Span::new(0, base.len), into);
            self.count();
            return outcome.map(|()| true);
        }
        self.cut_in_rows(base, view)?;
        let Some(parts) = self.machine.planner.parts_of_view(base, view, false) else { return Ok(false) };
        let _turn = self.tell(&Command::ReadView(*base, *view))?;
        let outcome = self.machine.read_view(base, view, &parts, Some(memory));
        self.count();
        outcome.map(|()| true)
    }

    /// The same the other way, of a view that is not all of the array, or where all ranks live in this process.
    pub(super) fn write_directly(&mut self, base: &Base, view: &View, memory: &HostMemory) -> Result<bool> {
        if self.machine.port.is_alone() && !self.mapped.contains_key(&base.id) && is_all(base, view, memory) {
            let array = self.machine.planner.array(base, None);
            if array.fixed || array.cuts.is_first() {
                return Ok(false);
            }
            // SAFETY: the program's memory is valid for the view, which is all elements in their order, until this returns.
            let from = unsafe { std::slice::from_raw_parts(memory.data().cast_const(), base.bytes() as usize) };
            let outcome = self.machine.write(base, Span::new(0, base.len), from);
            self.count();
            return outcome.map(|()| true);
        }
        if self.is_whole(base) || self.mapped.contains_key(&base.id) || view.len() == base.len {
            return Ok(false);
        }
        self.cut_in_rows(base, view)?;
        let Some(parts) = self.machine.planner.parts_of_view(base, view, true) else { return Ok(false) };
        let _turn = self.tell(&Command::WriteView(*base, *view))?;
        let outcome = self.machine.write_view(base, view, &parts, Some(memory));
        self.count();
        outcome.map(|()| true)
    }

    /// Lets an array that is cut on a grid of ranks be cut in rows, unless the view follows its axes.
    fn cut_in_rows(&mut self, base: &Base, view: &View) -> Result<()> {
        let array = self.machine.planner.arrays.get(&base.id);
        let mesh = array.and_then(|array| array.mesh.as_deref());
        if mesh.is_none_or(|mesh| lie(&mesh.shape, view).is_some()) {
            return Ok(());
        }
        let _turn = self.tell(&Command::Rows(*base))?;
        self.machine.cut_in_rows(base)
    }

    /// Is all of an array in rank 0's memory, or not known?
    pub(super) fn is_whole(&self, base: &Base) -> bool {
        self.machine.planner.arrays.get(&base.id).is_none_or(|array| array.fixed || array.cuts.is_first())
    }

    pub(super) fn map_base(&mut self, base: &Base, view: Option<&View>, mode: u32) -> Result<*mut u8> {
        let discards = mode & access::DISCARD != 0;
        let changes = mode & (access::WRITE | access::DISCARD) != 0;
        let all = Span::new(0, base.len);
        let span = if discards { all } else { view.map_or(all, span_of) };
        // What is known here is known to all ranks.
        let known = self.machine.planner.arrays.contains_key(&base.id);
        let turn = if known { None } else { self.tell(&Command::Know(*base))? };
        let array = self.machine.planner.array(base, None);
        if let Some(error) = array.lost.clone().filter(|_| !discards) {
            return Err(error);
        }
        let home = array.fixed || array.cuts.is_first() && !discards;
        if home && !matches!(self.mapped.get(&base.id), Some(Mapped::Staged(_))) {
            drop(turn);
            if discards {
                let _turn = self.tell(&Command::Renew(*base))?;
                self.machine.planner.renew(base, all)?;
            }
            let piece = self.machine.planner.piece(base.id, 0);
            self.machine.know(0, &piece.base);
            let data = self.machine.children[0].map(&piece.base, view, mode)?;
            let entry = self.mapped.entry(base.id).or_insert(Mapped::Piece { piece, maps: 0, changes: false });
            if let Mapped::Piece { maps, changes: before, .. } = entry {
                *maps += 1;
                *before |= changes;
            }
            return Ok(data);
        }
        drop(turn);
        if !self.mapped.contains_key(&base.id) {
            self.mapped.insert(base.id, Mapped::Staged(Staging::new(self.host, base)?));
        }
        let Some(Mapped::Staged(staging)) = self.mapped.get_mut(&base.id) else {
            return Err(Error::new(status::ARGUMENT, format!("map: base {} is mapped in another way", base.id)));
        };
        if discards {
            staging.filled = all;
        } else if !staging.filled.contains(span) {
            let wanted = staging.filled.join(span);
            let command = Command::Read(*base, wanted);
            let turn = self.lead.as_mut().map(|lead| lead.tell(&command)).transpose()?;
            if let Some(turn) = &turn {
                self.machine.port.note(&turn.sent);
            }
            if let Err(error) = self.machine.read(base, wanted, staging.bytes()) {
                if staging.maps == 0 {
                    self.mapped.remove(&base.id);
                }
                return Err(error);
            }
            staging.filled = wanted;
        }
        staging.maps += 1;
        if changes {
            staging.changed = staging.changed.join(span);
        }
        Ok(staging.address())
    }

    pub(super) fn unmap_base(&mut self, base: &Base) -> Result<()> {
        let last = match self.mapped.get_mut(&base.id) {
            None => return Err(Error::new(status::ARGUMENT, format!("unmap: base {} is not mapped", base.id))),
            Some(Mapped::Staged(staging)) => &mut staging.maps,
            Some(Mapped::Piece { maps, .. }) => maps,
        };
        *last -= 1;
        if *last > 0 {
            return Ok(());
        }
        match self.mapped.remove(&base.id) {
            Some(Mapped::Piece { piece, changes, .. }) => {
                if changes && self.machine.planner.arrays.contains_key(&base.id) {
                    let _turn = self.tell(&Command::Changed(*base))?;
                    self.machine.changed(base)?;
                }
                self.machine.children[0].unmap(&piece.base)
            }
            Some(Mapped::Staged(mut staging)) => {
                let span = staging.changed;
                if span.is_empty() || !self.machine.planner.arrays.contains_key(&base.id) {
                    return Ok(());
                }
                let _turn = self.tell(&Command::Write(*base, span))?;
                self.machine.write(base, span, staging.bytes())
            }
            None => Ok(()),
        }
    }
}

/// Is a view all elements of a base in their order, which lie so in the program's memory, too?
fn is_all(base: &Base, view: &View, memory: &HostMemory) -> bool {
    let size = base.dtype().size();
    let in_order = |stride: &[i64], step: &[i64]| {
        view.shape().iter().zip(stride.iter().zip(step)).all(|(&extent, (one, two))| extent <= 1 || one == two)
    };
    let packed: Vec<i64> = dense(view, size);
    let own: Vec<i64> = view.stride().iter().map(|stride| stride * size as i64).collect();
    view.start() == 0
        && view.len() == base.len
        && base.len > 0
        && in_order(&own, &packed)
        && in_order(memory.stride(), &packed)
}
