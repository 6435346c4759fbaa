//! What a context knows about its arrays, and how handles come to be views of the batch under construction.

use super::builder::Builder;
use super::executor::{Executor, Job, Runner};
use super::immediate::Immediate;
use super::limit;
use super::little::Little;
use super::order::Layout;
use super::scalars::{Evaluator, Scalar};
use super::settled::Settled;
use super::shape::Shape;
use super::slab::{INDEX_BITS, Slab};
use super::slots::{Seen, Slots};
use super::small_view::SmallView;
use super::spares::Spares;
use super::trace::Trace;
use super::{ArrayId, ArrayInfo, Location, Options, Statistics};
use bh_bytecode::batch::{MAX_BASE_BYTES, NO_SLOT};
use bh_bytecode::planning::{Planning, Work};
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, base_flags};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use bh_core::reserve;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// An array handle: a view on a base.
pub(super) struct Handle {
    /// Place of the base in [`State::bases`].
    pub(super) base: u32,
    pub(super) view: SmallView,
    /// The view's index in the batch of this epoch.
    interned: u32,
    interned_epoch: u64,
}

/// A base that at least one handle or running transfer refers to.
pub(super) struct BaseEntry {
    /// As it appears in batches; of the flags only PINNED is kept here.
    pub(super) base: Base,
    pub(super) references: u32,
    /// The stack has heard of it.
    pub(super) known: bool,
    /// The number by which batches know it from its first one on, see [`bh_bytecode::Batch::slots`].
    pub(super) slot: u32,
    /// Index in the batch of `epoch`.
    pub(super) index: u32,
    pub(super) epoch: u64,
    /// The last batch that writes it.
    pub(super) written: u64,
    pub(super) pins: u32,
    /// Exported: the user may look at the memory, and change it, between any two calls.
    pub(super) exported: bool,
    /// Open maps by the user.
    pub(super) maps: u32,
    pub(super) mapped_for_writing: bool,
    /// The order in which folds take its elements.
    pub(super) layout: Layout,
    /// The value of its only element, if it is known.
    pub(super) scalar: Option<Scalar>,
    /// Its data, if that is in memory of the recorder's own. Maps of the base are then of this memory.
    pub(super) settled: Option<Settled>,
    /// Lendings of its memory, and one if that is the program's: a map for writing may have to copy it.
    pub(super) relied_on: u32,
    /// How often the program has begun to change its data elsewhere than in a batch.
    pub(super) changes: u32,
}

impl BaseEntry {
    /// As [`BaseEntry::at_hand`], if elements may be read.
    #[inline]
    pub(super) fn readable(&self, place: i64) -> Option<*const u8> {
        if self.mapped_for_writing { None } else { self.at_hand(place) }
    }

    /// The address of an element, if the data is at hand.
    #[inline]
    pub(super) fn at_hand(&self, place: i64) -> Option<*const u8> {
        match &self.settled {
            Some(settled) => {
                Some(settled.data().cast_const().wrapping_offset(place as isize * self.base.dtype().size() as isize))
            }
            // There is one element.
            None => self.scalar.as_ref().map(Scalar::data),
        }
    }
}

/// Everything behind a context's lock.
pub(super) struct State {
    pub(super) handles: Slab<Handle>,
    pub(super) bases: Slab<BaseEntry>,
    pub(super) builder: Builder,
    pub(super) running: Option<Running>,
    pub(super) extensions: Vec<String>,
    pub(super) recorded: u64,
    /// Operations that were carried out at once.
    pub(super) immediate: u64,
    /// Known values, and settled data, that no batch writes yet.
    pub(super) unwritten: u64,
    /// The program has waited for the batches up to this one.
    pub(super) waited: u64,
    pub(super) little: Little,
    /// The trace under way.
    pub(super) trace: Option<Trace>,
    pub(super) spares: Spares,
    /// An emptied batch for reuse.
    spare: Batch,
    /// Memory of a list of handles to be freed, empty.
    pub(super) freed: Vec<ArrayId>,
    slots: Slots,
    seen: Seen,
    /// Why the context ended, if not by a plain shutdown.
    pub(super) ended: Option<Error>,
}

/// What exists between start and shutdown.
pub(super) struct Running {
    pub(super) executor: Arc<Executor>,
    pub(super) ids: Arc<AtomicU64>,
    /// Computes operations on known scalars. Not to be used once the executor has ended.
    pub(super) evaluator: Option<Evaluator>,
    pub(super) immediate: Option<Immediate>,
    /// Arrays live in host memory, where maps of them cost nothing.
    pub(super) maps: bool,
    pub(super) options: Options,
}

/// A batch that was handed over, or the last one that was if there was nothing to hand over.
#[must_use = "nobody may run the batch otherwise"]
pub(super) struct Submitted {
    pub(super) executor: Arc<Executor>,
    /// What to wait for to see everything done.
    pub(super) epoch: u64,
    runner: Option<Runner>,
}

impl Submitted {
    /// Sees to it that the batch is run. Waits, helping, while too many are under way.
    pub(super) fn drive(&self) {
        if let Some(runner) = self.runner {
            self.executor.drive(runner, true);
        }
    }

    /// As [`Submitted::drive`], but never waits for another batch.
    pub(super) fn start(&self) {
        if let Some(runner) = self.runner {
            self.executor.drive(runner, false);
        }
    }
}

/// What has to follow after something was recorded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Followup {
    Nothing,
    /// Complete the batch before the call returns.
    Complete,
}

impl State {
    pub(super) fn new() -> State {
        State {
            handles: Slab::new(),
            bases: Slab::new(),
            builder: Builder::new(),
            running: None,
            extensions: Vec::new(),
            recorded: 0,
            immediate: 0,
            unwritten: 0,
            waited: 0,
            little: Little::new(),
            trace: None,
            spares: Spares::default(),
            spare: Batch::default(),
            freed: Vec::new(),
            slots: Slots::default(),
            seen: Seen::default(),
            ended: None,
        }
    }

    pub(super) fn running(&self) -> Result<&Running> {
        self.running.as_ref().ok_or_else(|| match &self.ended {
            Some(error) => error.clone(),
            None => Error::new(status::SHUTDOWN, "the context was shut down"),
        })
    }

    pub(super) fn executor(&self) -> Result<Arc<Executor>> {
        self.running().map(|running| running.executor.clone())
    }

    /// The place of a live handle.
    #[inline]
    pub(super) fn find(&self, array: ArrayId) -> Result<u32> {
        let (index, generation) = array.parts();
        match self.handles.find(index, generation) {
            Some(_) => Ok(index),
            None => Err(self.stale()),
        }
    }

    #[cold]
    fn stale(&self) -> Error {
        match self.running() {
            Ok(_) => Error::new(status::HANDLE, "the array handle is not valid: it was freed, or never made"),
            Err(error) => error,
        }
    }

    /// The public name of a place.
    pub(super) fn name(&self, handle: u32) -> ArrayId {
        ArrayId(u64::from(self.handles.generation(handle)) << INDEX_BITS | u64::from(handle))
    }

    /// Type and view of an array.
    pub(super) fn info(&self, handle: u32) -> ArrayInfo {
        let entry = self.handles.at(handle);
        let base = self.bases.at(entry.base);
        ArrayInfo {
            dtype: base.base.dtype(),
            view: entry.view.view(),
            base: base.base.id,
            base_len: base.base.len,
            pinned: base.pins > 0,
        }
    }

    #[inline]
    pub(super) fn dtype(&self, handle: u32) -> DType {
        self.bases.at(self.handles.at(handle).base).base.dtype()
    }

    /// A new array on a new base.
    #[inline(always)]
    pub(super) fn new_array(&mut self, dtype: DType, view: SmallView, base_len: i64) -> Result<u32> {
        let id = self.running()?.ids.fetch_add(1, Ordering::Relaxed);
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
    pub(super) fn new_contiguous(&mut self, dtype: DType, shape: &[i64], len: i64) -> Result<u32> {
        self.new_array(dtype, SmallView::contiguous(shape), len)
    }

    /// One more handle on a base.
    #[inline(always)]
    pub(super) fn new_handle(&mut self, base: u32, view: SmallView) -> Result<u32> {
        let handle = Handle { base, view, interned: 0, interned_epoch: 0 };
        let index = self.handles.insert(handle).map_err(|_| too_many())?;
        self.bases.at_mut(base).references += 1;
        Ok(index)
    }

    /// Frees an array, if there is still one of this name.
    #[inline]
    pub(super) fn free_now(&mut self, array: ArrayId) {
        if let Ok(handle) = self.find(array)
            && !self.postpones(array, handle)
        {
            self.release(handle);
        }
    }

    /// Drops a handle, and the base with its last one.
    #[inline]
    pub(super) fn release(&mut self, handle: u32) {
        let base = self.handles.at(handle).base;
        let entry = self.bases.at_mut(base);
        if entry.maps > 0 && entry.references == entry.maps + 1 {
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
        }
        if last && known {
            self.push_discard(handle);
        }
        self.handles.remove(handle);
        self.drop_reference(base);
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
        let base = &mut self.builder.batch.bases[index];
        base.flags |= base_flags::DIES;
        // What is born and dies in the batch is not held after its last use; what was there before is held until then.
        self.builder.live_bytes = self.builder.live_bytes.saturating_sub_unsigned(bytes);
        let held = &mut self.builder.held_bytes;
        if base.has(base_flags::BORN) {
            *held = held.saturating_sub(bytes);
        } else {
            *held = held.saturating_add(bytes);
            self.builder.freed_bytes = self.builder.freed_bytes.saturating_add(bytes);
        }
        let structure = self.handles.at(handle).view.hash;
        self.builder.push_instr(Instr::new(Opcode::Discard, &[Operand::view(view)]), structure);
    }

    /// Asks for the base's data in the program's address space, if the pending batch writes it.
    pub(super) fn push_sync(&mut self, handle: u32) {
        let base = self.handles.at(handle).base;
        if self.bases.at(base).written == self.builder.epoch {
            let view = self.intern(handle);
            let structure = self.handles.at(handle).view.hash;
            self.builder.push_instr(Instr::new(Opcode::Sync, &[Operand::view(view)]), structure);
        }
    }

    /// The index of a base in the batch.
    #[inline]
    pub(super) fn enter_base(&mut self, base: u32) -> u32 {
        let epoch = self.builder.epoch;
        let entry = self.bases.at_mut(base);
        if entry.epoch != epoch {
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
    pub(super) fn intern(&mut self, handle: u32) -> u32 {
        if self.unwritten > 0 {
            self.settle(self.handles.at(handle).base);
        }
        let entry = self.handles.at(handle);
        if entry.interned_epoch == self.builder.epoch {
            return entry.interned;
        }
        let base = self.enter_base(entry.base);
        let entry = self.handles.at_mut(handle);
        entry.interned = self.builder.intern_view(base, &entry.view);
        entry.interned_epoch = self.builder.epoch;
        entry.interned
    }

    /// The index in the batch of another view on a handle's base.
    pub(super) fn intern_other(&mut self, handle: u32, view: &SmallView) -> u32 {
        let base = self.handles.at(handle).base;
        self.settle(base);
        let base = self.enter_base(base);
        self.builder.intern_view(base, view)
    }

    /// Notes that the pending batch writes a handle's base. The first writing view gives the base its row hint.
    #[inline]
    pub(super) fn mark_written(&mut self, handle: u32, layout: Layout) {
        let base = self.handles.at(handle).base;
        self.forget_value(base);
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
    pub(super) fn hint_rows(&mut self, handle: u32) {
        let handle = self.handles.at(handle);
        let entry = self.bases.at_mut(handle.base);
        if entry.base.row_hint == 0 {
            let row = handle.view.stride().first().map_or(0, |stride| stride.abs());
            entry.base.row_hint = if row == 0 { entry.base.len.max(1) } else { row };
        }
    }

    /// Appends an instruction on `handle`'s view and does the accounts.
    #[inline]
    pub(super) fn push_instr(&mut self, instr: Instr, location: Location<'_>, structure: u64) {
        let mut instr = instr;
        instr.origin = self.builder.intern_origin(location);
        self.recorded += 1;
        self.builder.push_instr(instr, mix_line(structure, location.line));
    }

    /// Hands the pending batch, if there is one, to the executor. What is returned goes on once the lock is open.
    pub(super) fn submit(&mut self) -> Result<Submitted> {
        let executor = self.executor()?;
        let small = self.builder.work_bytes <= self.running()?.options.small_bytes;
        let mut runner = None;
        if !self.builder.is_empty() {
            self.note_cut();
            let (epoch, work) = (self.builder.epoch, self.builder.work_bytes);
            self.little.hand_over(work);
            let exported = std::mem::take(&mut self.builder.exported);
            let unmaps = std::mem::take(&mut self.builder.unmaps);
            let given = std::mem::take(&mut self.builder.given);
            self.builder.close();
            self.give_slots();
            if !self.builder.signed {
                self.builder.batch.sign();
            }
            let header = &mut self.builder.batch.header;
            header.seen = self.seen.count(header.signature);
            let does = Work::of(&self.builder.batch.as_ref());
            let header = &mut self.builder.batch.header;
            header.level = Planning::Auto.level(does, header.seen).code();
            let batch = self.builder.take(std::mem::take(&mut self.spare));
            self.spare = executor.hand_over(Job { batch, epoch, exported, unmaps, given, work });
            // A small batch is run by the caller, as that is quicker than waking the executor.
            runner = Some(if small { Runner::Here } else { Runner::Thread });
        }
        Ok(Submitted { executor, epoch: self.builder.epoch - 1, runner })
    }

    /// Gives the bases that live on behind the closed batch their slots: first those of bases that it ends, so that each turn
    /// of a loop finds the same ones.
    fn give_slots(&mut self) {
        self.builder.freed_slots.drain(..).for_each(|slot| self.slots.free(slot));
        let batch = &mut self.builder.batch;
        for (at, slot) in batch.slots.iter_mut().enumerate() {
            if *slot == NO_SLOT && !batch.bases[at].has(base_flags::DIES) {
                *slot = self.slots.take();
                self.bases.at_mut(self.builder.places[at]).slot = *slot;
            }
        }
        batch.header.slot_count = self.slots.count();
    }

    /// Now, if times are wanted.
    #[inline]
    pub(super) fn clock(&self) -> Option<Instant> {
        self.running.as_ref().and_then(|running| running.executor.clock())
    }

    /// Counts the time since `begin` as spent on recording.
    #[inline]
    pub(super) fn count_recording(&self, begin: Option<Instant>) {
        if let (Some(_), Some(running)) = (begin, &self.running) {
            running.executor.count("recorder.record_ns", begin);
        }
    }

    /// Submits when a limit is passed, at a turn of the program's loop if one is found.
    #[inline]
    pub(super) fn check_limits(&mut self) -> Option<Submitted> {
        if self.trace.is_some() && !self.outgrows_trace() {
            return None;
        }
        let running = self.running.as_ref()?;
        let (instructions, bytes) = (self.builder.batch.instrs.len(), self.builder.held_bytes);
        let options = &running.options;
        let full = bytes >= options.max_bytes;
        if instructions < limit::shortest(options.max_instructions) && !full {
            return None;
        }
        let repeats = self.builder.period.found().is_some_and(|period| period < options.max_instructions as u64);
        let most = limit::limit(instructions, self.builder.work_bytes, repeats, options.max_instructions);
        if instructions < most && !full {
            return None;
        }
        let over = instructions >= 2 * options.max_instructions || bytes / 2 >= options.max_bytes;
        let period = &self.builder.period;
        let looping = match period.found() {
            Some(period) => period < options.max_instructions as u64,
            // A batch that ends in the middle of a turn stores all that the rest of the turn needs.
            None => period.is_likely(),
        };
        let cut = over || !looping || period.at_boundary();
        // Only a context without an executor refuses, and that was ruled out above.
        if cut { self.submit().ok() } else { None }
    }

    /// Forgets everything but the generations of handles.
    pub(super) fn reset(&mut self) {
        self.handles.clear();
        self.bases.clear();
        self.builder = Builder::new();
        self.extensions.clear();
        (self.recorded, self.immediate, self.unwritten, self.waited) = (0, 0, 0, 0);
        (self.slots, self.seen, self.little) = (Slots::default(), Seen::default(), Little::new());
        self.trace = None;
        self.spares.clear();
        self.ended = None;
    }

    /// Ends the context for a reason that every later call reports.
    pub(super) fn end(&mut self, error: Error) {
        if let Some(running) = self.running.take() {
            // The executor belongs to another process; it must not be stopped from here.
            std::mem::forget(running);
        }
        self.reset();
        self.ended = Some(error);
    }

    pub(super) fn statistics(&self) -> Statistics {
        let executor = self.running.as_ref().map(|running| running.executor.statistics()).unwrap_or_default();
        Statistics {
            arrays: self.handles.len() as u64,
            bases: self.bases.len() as u64,
            recorded: self.recorded,
            immediate: self.immediate,
            pending: self.builder.batch.instrs.len() as u64,
            batches: executor.batches,
            instructions: executor.instructions,
            batches_on_caller: executor.on_caller,
        }
    }

    /// A handle's shape, copied.
    pub(super) fn shape(&self, handle: u32) -> Shape {
        Shape::of(self.handles.at(handle).view.shape())
    }
}

#[inline]
fn mix_line(structure: u64, line: u32) -> u64 {
    super::small_view::mix(structure, u64::from(line))
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
