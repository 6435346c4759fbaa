//! Bases, views and instructions enter the batch under construction.

use crate::Location;
use crate::array::small_view::{SmallView, mix};
use crate::state::State;
use crate::state::layout::Layout;
use bh_bytecode::{Instr, Opcode, Operand, base_flags};

impl State {
    /// Asks for the base's data in the program's address space, if the pending batch writes it.
    pub(crate) fn push_sync(&mut self, handle: u32) {
        let base = self.handles.at(handle).base;
        if self.bases.at(base).written == self.builder.epoch {
            self.note_use();
            let view = self.intern(handle);
            let structure = self.handles.at(handle).view.hash;
            self.builder.push_instr(Instr::new(Opcode::Sync, &[Operand::view(view)]), structure);
        }
    }

    /// The index of a base in the batch.
    #[inline]
    pub(crate) fn enter_base(&mut self, base: u32) -> u32 {
        let epoch = self.builder.epoch;
        if self.bases.at(base).epoch != epoch {
            self.note_use();
        }
        let entry = self.bases.at_mut(base);
        if entry.epoch != epoch {
            if entry.watched != 0 {
                self.recipes.note(std::mem::take(&mut entry.watched), false);
            }
            let mut record = entry.base;
            if !entry.known {
                record.flags |= base_flags::BORN;
                entry.known = true;
            }
            entry.epoch = epoch;
            entry.index = self.builder.push_base(record, entry.slot, base);
        }
        entry.index
    }

    /// The index of a handle's view in the batch.
    #[inline]
    pub(crate) fn intern(&mut self, handle: u32) -> u32 {
        if self.unwritten > 0 {
            self.settle(self.handles.at(handle).base);
        }
        let (entry, epoch) = (self.handles.at(handle), self.builder.epoch);
        if let Some(index) = entry.interned(epoch) {
            return index;
        }
        let base = self.enter_base(entry.base);
        let entry = self.handles.at_mut(handle);
        let index = self.builder.intern_view(base, &entry.view);
        entry.set_interned(epoch, index);
        index
    }

    /// The index in the batch of another view on a handle's base.
    pub(crate) fn intern_other(&mut self, handle: u32, view: &SmallView) -> u32 {
        let base = self.handles.at(handle).base;
        self.settle(base);
        let base = self.enter_base(base);
        self.builder.intern_view(base, view)
    }

    /// Notes that the pending batch writes a handle's base. The first writing view gives the base its row hint.
    #[inline]
    pub(crate) fn mark_written(&mut self, handle: u32, layout: Layout) {
        let base = self.handles.at(handle).base;
        self.forget_value(base);
        if self.bases.at(base).readers > 0 {
            self.make_readers(base);
        }
        let entry = self.bases.at_mut(base);
        entry.layout = layout;
        entry.written = self.builder.epoch;
        if entry.base.row_hint == 0 {
            self.hint_rows(handle);
            let entry = self.bases.at(base);
            self.builder.batch.bases[entry.index as usize].row_hint = entry.base.row_hint;
        }
    }

    /// Gives a base that has no data yet its row hint, from the view that is to write it.
    pub(crate) fn hint_rows(&mut self, handle: u32) {
        let handle = self.handles.at(handle);
        let entry = self.bases.at_mut(handle.base);
        if entry.base.row_hint == 0 {
            let row = handle.view.stride().first().map_or(0, |stride| stride.abs());
            entry.base.row_hint = if row == 0 { entry.base.len.max(1) } else { row };
        }
    }

    /// Appends an instruction on `handle`'s view and does the accounts.
    #[inline]
    pub(crate) fn push_instr(&mut self, instr: Instr, location: Location<'_>, structure: u64) {
        self.note_use();
        let mut instr = instr;
        instr.origin = self.builder.intern_origin(location);
        self.recorded += 1;
        self.builder.push_instr(instr, mix(structure, u64::from(location.line)));
    }
}
