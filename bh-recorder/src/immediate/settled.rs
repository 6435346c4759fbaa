//! Settled bases: small ones that are already computed, in memory of the recorder's own.
//!
//! The program alone decides which bases are settled, never the progress of batches. A base is settled by the first operation
//! or write that gives it its data immediately, and by a read of all of it; a batch that writes it unsettles it. The stack
//! gets a copy when a batch first needs the base: as the base's first data, or, if the stack has older data, as those of a
//! base of their own, which the batch copies in its place. So immediate changes never affect data that a batch still reads.

use crate::array::small_view::SmallView;
use crate::data::{dense_stride, element_address};
use crate::state::State;
use crate::state::settled::{Home, Own, Settled};
use crate::{ArrayId, Recorder};
use bh_bytecode::batch::NO_SLOT;
use bh_bytecode::{Base, Constant, Instr, Kind, Opcode, Operand, base_flags};
use bh_core::abi::{access, status};
use bh_core::error::{Error, Result};
use bh_core::services::Services;
use bh_core::strided::{self, Side};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl State {
    /// Where the stack's memory is counted, if a base of `bytes` bytes may be settled.
    #[inline]
    pub(crate) fn settles(&self, bytes: u64) -> Option<&Arc<Services>> {
        let running = self.running.as_ref().filter(|_| !self.records_all())?;
        let immediate = running.immediate.as_ref()?;
        (bytes <= running.options.immediate_bytes && running.options.works_at_once()).then_some(&immediate.services)
    }

    /// Is an operation of a kind on so many bytes one of a long chain, which is recorded?
    #[inline]
    pub(crate) fn is_in_chain(&self, bytes: u64, kind: Kind) -> bool {
        kind == Kind::Elementwise && self.is_middling(bytes) && self.little.is_in_chain()
    }

    /// Are these more bytes than what no kernel gains much on: half of the most?
    #[inline]
    fn is_middling(&self, bytes: u64) -> bool {
        self.running.as_ref().is_some_and(|running| bytes > running.options.immediate_bytes / 2)
    }

    /// Counts an operation of a kind that was carried out at once, or an elementwise one that was recorded, by its output.
    #[inline]
    pub(crate) fn note_link(&mut self, out: u32, kind: Kind) {
        let bytes = self.handles.at(out).view.len as u64 * self.dtype(out).size() as u64;
        self.note_link_of(bytes, kind);
    }

    /// As [`State::note_link`], by the bytes of the output.
    #[inline]
    pub(crate) fn note_link_of(&mut self, bytes: u64, kind: Kind) {
        if kind != Kind::Elementwise {
            self.little.end_chain();
        } else if self.is_middling(bytes) {
            self.little.link();
        }
    }

    /// Is anything carried out where it is called?
    #[inline]
    pub(crate) fn works_at_once(&self) -> bool {
        self.settles(1).is_some()
    }

    /// May a base get data of the recorder's own, without anybody who looks at its memory, or relies on its contents?
    #[inline]
    pub(crate) fn is_free_standing(&self, base: u32) -> bool {
        let entry = self.bases.at(base);
        entry.pins == 0 && entry.maps == 0 && !entry.exported && entry.recipe.is_none() && entry.readers == 0
    }

    /// Gives a base without settled data memory of its own, whose contents are undefined.
    pub(crate) fn make_own(&self, base: u32, zeroed: bool) -> Option<Own> {
        self.make_own_of(base, zeroed, 1)
    }

    /// As [`State::make_own`], for a base of up to `times` times the bytes that a settled one may have.
    pub(crate) fn make_own_of(&self, base: u32, zeroed: bool, times: u64) -> Option<Own> {
        let entry = self.bases.at(base);
        let bytes = entry.base.bytes();
        if bytes == 0 || entry.base.len == 1 || entry.settled.is_some() || !self.is_free_standing(base) {
            return None;
        }
        Own::new(self.settles(bytes / times)?, bytes, zeroed)
    }

    /// Makes memory a base's data, which the stack has not (`given`: which it has).
    pub(crate) fn set_own(&mut self, base: u32, own: Own, given: bool) {
        self.forget_value(base);
        self.bases.at_mut(base).settled = Some(Settled { home: Home::Own(own), given });
        self.unwritten += u64::from(!given);
    }

    /// Notes that settled data is changed, if there is any.
    #[inline]
    pub(crate) fn note_change(&mut self, base: u32) {
        if let Some(settled) = &mut self.bases.at_mut(base).settled
            && std::mem::take(&mut settled.given)
        {
            self.unwritten += 1;
        }
    }

    /// Ends that a base is settled.
    #[inline]
    pub(crate) fn forget_own(&mut self, base: u32) {
        if !self.end_map(base)
            && let Some(settled) = self.bases.at_mut(base).settled.take()
        {
            self.unwritten -= u64::from(!settled.given);
        }
    }

    /// Sees to it that the stack has the data of a settled base before the batch under construction uses it.
    pub(crate) fn give(&mut self, base: u32) {
        if self.end_map(base) {
            return;
        }
        let entry = self.bases.at_mut(base);
        let Some(Settled { home: Home::Own(data), given: given @ false }) = &mut entry.settled else { return };
        *given = true;
        self.unwritten -= 1;
        // Larger data is not worth a copy.
        let is_little = data.bytes as u64 <= self.running.as_ref().map_or(0, |running| running.options.immediate_bytes);
        let mut own = if is_little || entry.maps > 0 { data.copied() } else { None };
        if own.is_none()
            && entry.maps == 0
            && let Some(Settled { home: Home::Own(data), .. }) = entry.settled.take()
        {
            // At the limit of memory the data itself goes; a user's maps keep it.
            own = Some(data);
        }
        let (record, len, known) = (entry.base, entry.base.len, std::mem::replace(&mut entry.known, true));
        self.note_use();
        let (index, epoch) = (self.enter_base(base), self.builder.epoch);
        self.bases.at_mut(base).written = epoch;
        if !known {
            self.builder.live_bytes = self.builder.live_bytes.saturating_add_unsigned(record.bytes());
            self.builder.given.push((record, own));
            return;
        }
        let view = SmallView::contiguous(&[len]);
        let id = self.running.as_ref().map_or(0, |running| running.ids.fetch_add(1, Ordering::Relaxed));
        let carrier = Base { id, ..record };
        let from = self.builder.push_base(Base { flags: base_flags::DIES, ..carrier }, NO_SLOT, base);
        let to = Operand::view(self.builder.intern_view(index, &view));
        let from = Operand::view(self.builder.intern_view(from, &view));
        self.builder.push_instr(Instr::new(Opcode::Copy, &[to, from]), view.hash);
        self.builder.push_instr(Instr::new(Opcode::Discard, &[from]), view.hash);
        self.builder.given.push((carrier, own));
    }

    /// The value of an array of one element, if it is settled.
    #[inline]
    pub(crate) fn element(&self, handle: u32) -> Option<Constant> {
        let (view, entry) = (&self.handles.at(handle).view, self.bases.at(self.handles.at(handle).base));
        let settled = entry.settled.as_ref().filter(|_| view.len == 1)?;
        let dtype = entry.base.dtype();
        let mut bytes = [0u8; 16];
        // SAFETY: views lie inside their bases.
        unsafe {
            let from = settled.data().offset(view.start as isize * dtype.size() as isize);
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), dtype.size());
        }
        Some(Constant::from_bytes(dtype, &bytes))
    }
}

/// A copy between settled data and the program's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    ToProgram,
    FromProgram,
}

impl Recorder {
    /// Reads or writes the elements of an array from or to the program's memory, if it is settled. `stride`: in bytes, or `None`
    /// for C order.
    ///
    /// # Safety
    /// `stride` must be `None` or have an entry for each dimension. `data` must be valid for each element where the
    /// strides lead to: for writing those that go to the program, for reading those that come from it. It must be no
    /// part of the array's own memory.
    pub(crate) unsafe fn copy_settled(
        &self,
        array: ArrayId,
        data: *mut u8,
        stride: Option<&[i64]>,
        direction: Direction,
    ) -> Result<bool> {
        let mut state = self.state();
        if state.traces_here() {
            return Ok(false);
        }
        let handle = state.find(array)?;
        let place = state.handles.at(handle).base;
        let writes = direction == Direction::FromProgram;
        if writes && !state.takes_data(handle) {
            return Ok(false);
        }
        let entry = state.bases.at(place);
        let Some(settled) = entry.settled.as_ref().filter(|_| !entry.mapped_for_writing) else { return Ok(false) };
        let (small, base) = (&state.handles.at(handle).view, entry.base);
        let first = settled.data().wrapping_offset(small.start as isize * base.dtype().size() as isize);
        let copy = |shape: &[i64], own: &[i64], stride: &[i64]| {
            let (inside, outside) = (Side { data: first, stride: own }, Side { data, stride });
            let (to, from) = if writes { (inside, outside) } else { (outside, inside) };
            // SAFETY: views lie inside their bases, whose data stays under the lock; `data` is valid for all elements
            // in this direction, and elsewhere, as `# Safety` asks.
            unsafe { strided::copy(base.dtype(), shape, to, from) };
        };
        if small.len == 1 {
            copy(&[], &[], &[]);
        } else {
            let view = small.view();
            let own: Vec<i64> = view.stride().iter().map(|stride| stride * base.dtype().size() as i64).collect();
            let dense = dense_stride(&base, &view);
            copy(view.shape(), &own, stride.unwrap_or(&dense));
        }
        if writes {
            state.note_change(place);
            state.hint_rows(handle);
        } else {
            state.little.end_chain();
        }
        Ok(true)
    }

    /// The address of an array's element (0, …, 0) in settled data, which stays there until [`Recorder::unmap`].
    pub(crate) fn map_settled(&self, array: ArrayId, mode: u32) -> Result<Option<*mut u8>> {
        let mut state = self.state();
        let handle = state.find(array)?;
        let writes = mode & (access::WRITE | access::DISCARD) != 0;
        let place = state.handles.at(handle).base;
        state.check_access_in_trace(place, !writes)?;
        let entry = state.bases.at(place);
        // Maps of the stack's memory are the stack's.
        if matches!(&entry.settled, Some(Settled { home: Home::Map { .. }, .. })) {
            return Ok(None);
        }
        if entry.settled.is_some() && (entry.mapped_for_writing || writes && entry.maps > 0) {
            return Err(Error::new(status::ARGUMENT, "the array is mapped; unmap it first"));
        }
        // Data in the stack is mapped there, as the parts that the program does not write must stay.
        let elsewhere = entry.settled.is_none() && entry.known && mode & access::DISCARD == 0;
        if writes && (elsewhere || !state.takes_data(handle)) {
            return Ok(None);
        }
        if writes {
            state.note_change(place);
            state.hint_rows(handle);
        }
        state.little.end_chain();
        let entry = state.bases.at_mut(place);
        let Some(settled) = &entry.settled else { return Ok(None) };
        let data = settled.data();
        entry.maps += 1;
        entry.mapped_for_writing |= writes;
        entry.references += 1;
        let base = entry.base;
        Ok(Some(element_address(data, &base, &state.handles.at(handle).view.view())))
    }
}

impl State {
    /// Can an array's elements be given data at once? A base that has none, or that is overwritten as a whole, is settled for
    /// that.
    fn takes_data(&mut self, handle: u32) -> bool {
        let (place, view) = (self.handles.at(handle).base, &self.handles.at(handle).view);
        if !view.injective || !self.is_free_standing(place) {
            return false;
        }
        let entry = self.bases.at(place);
        if let Some(settled) = &entry.settled {
            return settled.is_writable();
        }
        let whole = view.len == entry.base.len;
        if entry.known && !whole {
            return false;
        }
        match self.make_own(place, !whole) {
            Some(own) => self.set_own(place, own, false),
            None => return false,
        }
        true
    }

    /// Settles a base that was read as a whole, unless it has changed since: it had been written by this batch, and changed so
    /// often. Says whether it did.
    pub(crate) fn settle_read(&mut self, handle: u32, own: Own, before: (u64, u32)) -> bool {
        let place = self.handles.at(handle).base;
        let entry = self.bases.at(place);
        let same = (entry.written, entry.changes) == before && before.0 < self.first_pending();
        let settles = same && entry.settled.is_none() && self.is_free_standing(place);
        if settles {
            self.set_own(place, own, true);
        }
        settles
    }
}
