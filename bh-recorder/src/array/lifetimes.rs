//! Arrays and their bases come and go.

use crate::ArrayId;
use crate::array::slab::INDEX_BITS;
use crate::array::small_view::SmallView;
use crate::state::layout::Layout;
use crate::state::{BaseEntry, Handle, State};
use bh_bytecode::batch::{MAX_BASE_BYTES, NO_SLOT};
use bh_bytecode::{Base, DType, base_flags};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use bh_core::reserve;
use std::sync::atomic::Ordering;

impl State {
    /// A new array on a new base.
    #[inline(always)]
    pub(crate) fn new_array(&mut self, dtype: DType, view: SmallView, base_len: i64) -> Result<u32> {
        let id = self.running()?.ids.fetch_add(1, Ordering::Relaxed);
        self.new_array_of(id, dtype, view, base_len)
    }

    /// As [`State::new_array`], with the number of the base.
    #[inline(always)]
    pub(crate) fn new_array_of(&mut self, id: u64, dtype: DType, view: SmallView, base_len: i64) -> Result<u32> {
        self.running()?;
        let base = Base::checked(id, dtype, base_len).ok_or_else(|| too_large(dtype, base_len))?;
        reserve::check()?;
        let entry = BaseEntry {
            base,
            references: 0,
            known: false,
            slot: NO_SLOT,
            index: 0,
            epoch: 0,
            written: 0,
            pins: 0,
            exported: false,
            maps: 0,
            mapped_for_writing: false,
            layout: Layout::default(),
            scalar: None,
            settled: None,
            relied_on: 0,
            changes: 0,
            recipe: None,
            readers: 0,
            earned: 0,
            watched: 0,
        };
        let base = self.bases.insert(entry).map_err(|_| too_many())?;
        let handle = self.new_handle(base, view);
        if handle.is_err() {
            self.bases.remove(base);
        }
        handle
    }

    /// A new, contiguous array of a legal shape with `len` elements.
    #[inline]
    pub(crate) fn new_contiguous(&mut self, dtype: DType, shape: &[i64], len: i64) -> Result<u32> {
        self.new_array(dtype, SmallView::contiguous(shape), len)
    }

    /// One more handle on a base.
    #[inline(always)]
    pub(crate) fn new_handle(&mut self, base: u32, view: SmallView) -> Result<u32> {
        let index = self.handles.insert(Handle::new(base, view)).map_err(|_| too_many())?;
        self.bases.at_mut(base).references += 1;
        Ok(index)
    }

    /// Frees an array, if there is still one of this name.
    #[inline]
    pub(crate) fn free_now(&mut self, array: ArrayId) {
        if let Ok(handle) = self.find(array)
            && !self.postpones(array, handle)
        {
            self.give_up(handle);
        }
    }

    /// Drops a handle, and the base with its last one, which tapes may keep.
    #[inline]
    pub(crate) fn release(&mut self, handle: u32) {
        if !self.ends_later(handle) {
            self.release_now(handle);
        }
    }

    /// As [`State::release`], whether there are tapes or not.
    pub(crate) fn release_now(&mut self, handle: u32) {
        let base = self.handles.at(handle).base;
        let entry = self.bases.at_mut(base);
        let mapped = entry.maps > 0;
        if mapped && entry.references == entry.maps + 1 {
            // The last handle goes while the memory is mapped: nobody could end the maps later.
            entry.references = 1;
            let maps = std::mem::take(&mut entry.maps);
            if entry.settled.is_none() {
                self.builder.unmaps.push((entry.base, maps));
            }
        }
        let (last, known) = (entry.references == 1, entry.known);
        if last {
            self.forget_value(base);
            self.end_recipe(base, handle);
        }
        // A map ends before the batch under construction.
        if last && known && (mapped || !self.discard_in_waiting(handle)) {
            self.push_discard(handle);
        }
        self.handles.remove(handle);
        self.drop_reference(base);
    }

    /// As [`State::release`], of a handle of the program's.
    #[inline]
    pub(crate) fn give_up(&mut self, handle: u32) {
        let base = self.handles.at(handle).base;
        let entry = self.bases.at(base);
        let only_recipes = entry.readers > 0 && entry.references == entry.readers + 1;
        self.release(handle);
        if only_recipes {
            self.make_wasteful_readers(base);
        }
    }

    /// Drops a reference that is not, or no longer, a handle.
    fn drop_reference(&mut self, base: u32) {
        let entry = self.bases.at_mut(base);
        entry.references -= 1;
        if entry.references == 0 {
            self.bases.remove(base);
        }
    }

    fn push_discard(&mut self, handle: u32) {
        let view = self.intern(handle);
        let entry = self.bases.at(self.handles.at(handle).base);
        let (index, born) = (entry.index as usize, entry.epoch);
        debug_assert_eq!(born, self.builder.epoch);
        let bytes = entry.base.bytes();
        if entry.slot != NO_SLOT {
            self.builder.freed_slots.push(entry.slot);
        }
        let base = &self.builder.batch.bases[index];
        // An array that is born and dies in the batch is not held after its last use; an older one is held until then.
        self.builder.live_bytes = self.builder.live_bytes.saturating_sub_unsigned(bytes);
        let held = &mut self.builder.held_bytes;
        if base.has(base_flags::BORN) {
            *held = held.saturating_sub(bytes);
        } else {
            *held = held.saturating_add(bytes);
            self.builder.freed_bytes = self.builder.freed_bytes.saturating_add(bytes);
        }
        let structure = self.handles.at(handle).view.hash;
        self.builder.push_discard(index as u32, view, structure);
    }
}

#[cold]
fn too_many() -> Error {
    Error::new(status::MEMORY, format!("more than {} arrays at one time", 1u64 << INDEX_BITS))
}

#[cold]
fn too_large(dtype: DType, len: i64) -> Error {
    let text =
        format!("an array of {len} elements of type {} exceeds the limit of {MAX_BASE_BYTES} bytes", dtype.name());
    Error::new(status::SHAPE, text)
}
