//! Arrays as the program on rank 0 reads, writes and maps them.

use super::Cluster;
use super::mapped::Mapped;
use crate::command::Command;
use crate::plan::array::Shard;
use crate::plan::boxes::{Span, span_of};
use crate::plan::grid::layout::axes_of;
use crate::run::local::dense;
use crate::run::map_copy::MapCopy;
use bh_bytecode::{Base, View};
use bh_core::abi::{HostMemory, access, status};
use bh_core::error::{Error, Result};

impl Cluster {
    /// Gathers an array into rank 0's memory and keeps it there.
    pub(super) fn gather_to_rank0(&mut self, base: &Base) -> Result<Shard> {
        let _guard = self.send_command(&Command::GatherToRank0(*base))?;
        let shard = self.machine.planner.gather_to_rank0(base)?;
        self.machine.run_planned()?;
        self.machine.know(0, &shard.base);
        Ok(shard)
    }

    /// Copies a view of a distributed array to the program's memory. False if this needs a map.
    pub(super) fn read_directly(&mut self, base: &Base, view: &View, memory: &HostMemory) -> Result<bool> {
        if self.is_whole(base) || self.mapped.contains_key(&base.id) {
            return Ok(false);
        }
        if self.machine.port.is_alone() && is_all(base, view, memory) {
            let bytes = base.bytes() as usize;
            // SAFETY: `memory` is valid until this call returns, and the view is all elements, contiguous and in order.
            let into = unsafe { std::slice::from_raw_parts_mut(memory.data(), bytes) };
            let outcome = self.machine.read(base, Span::new(0, base.len), into);
            self.count();
            return outcome.map(|()| true);
        }
        self.cut_in_rows(base, view)?;
        let Some(parts) = self.machine.planner.parts_of_view(base, view, false) else { return Ok(false) };
        let _guard = self.send_command(&Command::ReadView(*base, *view))?;
        let outcome = self.machine.read_view(base, view, &parts, Some(memory));
        self.count();
        outcome.map(|()| true)
    }

    /// Copies from the program's memory to a view that is not the whole array, or to any view if all ranks are in this
    /// process. False if this needs a map.
    pub(super) fn write_directly(&mut self, base: &Base, view: &View, memory: &HostMemory) -> Result<bool> {
        if self.machine.port.is_alone() && !self.mapped.contains_key(&base.id) && is_all(base, view, memory) {
            let array = self.machine.planner.array(base, None);
            if array.fixed || array.cuts.is_first() {
                return Ok(false);
            }
            // SAFETY: `memory` is valid until this call returns, and the view is all elements, contiguous and in order.
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
        let _guard = self.send_command(&Command::WriteView(*base, *view))?;
        let outcome = self.machine.write_view(base, view, &parts, Some(memory));
        self.count();
        outcome.map(|()| true)
    }

    /// Moves an array from a grid to rows, unless the view follows the grid's axes.
    fn cut_in_rows(&mut self, base: &Base, view: &View) -> Result<()> {
        let array = self.machine.planner.arrays.get(&base.id);
        let layout = array.and_then(|array| array.layout.as_deref());
        if layout.is_none_or(|layout| axes_of(&layout.shape, view).is_some()) {
            return Ok(());
        }
        let _guard = self.send_command(&Command::ToRows(*base))?;
        self.machine.cut_in_rows(base)
    }

    /// Is all of an array in rank 0's memory, or is it unknown?
    pub(super) fn is_whole(&self, base: &Base) -> bool {
        self.machine.planner.arrays.get(&base.id).is_none_or(|array| array.fixed || array.cuts.is_first())
    }

    pub(super) fn map_base(&mut self, base: &Base, view: Option<&View>, mode: u32) -> Result<*mut u8> {
        let discards = mode & access::DISCARD != 0;
        let changes = mode & (access::WRITE | access::DISCARD) != 0;
        let all = Span::new(0, base.len);
        let span = if discards { all } else { view.map_or(all, span_of) };
        // All ranks know the arrays that this rank knows.
        let known = self.machine.planner.arrays.contains_key(&base.id);
        let guard = if known { None } else { self.send_command(&Command::Know(*base))? };
        let array = self.machine.planner.array(base, None);
        if let Some(error) = array.lost.clone().filter(|_| !discards) {
            return Err(error);
        }
        let home = array.fixed || array.cuts.is_first() && !discards;
        if home && !matches!(self.mapped.get(&base.id), Some(Mapped::Copy(_))) {
            drop(guard);
            if discards {
                let _guard = self.send_command(&Command::Renew(*base))?;
                self.machine.planner.renew(base, all)?;
            }
            let shard = self.machine.planner.shard(base.id, 0);
            self.machine.know(0, &shard.base);
            let data = self.machine.children[0].map(&shard.base, view, mode)?;
            let entry = self.mapped.entry(base.id).or_insert(Mapped::Shard { shard, maps: 0, changes: false });
            if let Mapped::Shard { maps, changes: before, .. } = entry {
                *maps += 1;
                *before |= changes;
            }
            return Ok(data);
        }
        drop(guard);
        if !self.mapped.contains_key(&base.id) {
            self.mapped.insert(base.id, Mapped::Copy(MapCopy::new(self.host, base)?));
        }
        let Some(Mapped::Copy(copy)) = self.mapped.get_mut(&base.id) else {
            return Err(Error::new(status::ARGUMENT, format!("map: base {} is mapped in another way", base.id)));
        };
        if discards {
            copy.filled = all;
        } else if !copy.filled.contains(span) {
            let wanted = copy.filled.join(span);
            let command = Command::Read(*base, wanted);
            let guard = self.coordinator.as_mut().map(|coordinator| coordinator.send_command(&command)).transpose()?;
            if let Some(guard) = &guard {
                self.machine.port.note(&guard.sent);
            }
            if let Err(error) = self.machine.read(base, wanted, copy.bytes()) {
                if copy.maps == 0 {
                    self.mapped.remove(&base.id);
                }
                return Err(error);
            }
            copy.filled = wanted;
        }
        copy.maps += 1;
        if changes {
            copy.changed = copy.changed.join(span);
        }
        Ok(copy.address())
    }

    pub(super) fn unmap_base(&mut self, base: &Base) -> Result<()> {
        let last = match self.mapped.get_mut(&base.id) {
            None => return Err(Error::new(status::ARGUMENT, format!("unmap: base {} is not mapped", base.id))),
            Some(Mapped::Copy(copy)) => &mut copy.maps,
            Some(Mapped::Shard { maps, .. }) => maps,
        };
        *last -= 1;
        if *last > 0 {
            return Ok(());
        }
        match self.mapped.remove(&base.id) {
            Some(Mapped::Shard { shard, changes, .. }) => {
                if changes && self.machine.planner.arrays.contains_key(&base.id) {
                    let _guard = self.send_command(&Command::Changed(*base))?;
                    self.machine.changed(base)?;
                }
                self.machine.children[0].unmap(&shard.base)
            }
            Some(Mapped::Copy(mut copy)) => {
                let span = copy.changed;
                if span.is_empty() || !self.machine.planner.arrays.contains_key(&base.id) {
                    return Ok(());
                }
                let _guard = self.send_command(&Command::Write(*base, span))?;
                self.machine.write(base, span, copy.bytes())
            }
            None => Ok(()),
        }
    }
}

/// Is a view the whole base in order, and contiguous in the program's memory?
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
