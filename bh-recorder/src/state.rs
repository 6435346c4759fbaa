//! What a context knows about its arrays, and how handles come to be views of the batch under construction.

use crate::array::shape::Shape;
use crate::array::slab::{INDEX_BITS, Slab};
use crate::array::small_view::SmallView;
use crate::batch::builder::Builder;
use crate::batch::limit;
use crate::batch::recipes::{Recipe, Recipes};
use crate::batch::slots::{Seen, Slots};
use crate::batch::trace::Trace;
use crate::batch::waiting::Waiting;
use crate::executor::{Executor, Runner};
use crate::immediate::Immediate;
use crate::immediate::little::Little;
use crate::immediate::scalars::{Evaluator, Scalar};
use crate::immediate::settled::Settled;
use crate::immediate::spares::Spares;
use crate::record::order::Layout;
use crate::{ArrayId, ArrayInfo, Location, Options, Statistics};
use bh_bytecode::batch::{MAX_BASE_BYTES, NO_SLOT};
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, base_flags};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use bh_core::reserve;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// An array handle: a view on a base.
pub(crate) struct Handle {
    /// Place of the base in [`State::bases`].
    pub(crate) base: u32,
    pub(crate) view: SmallView,
    /// The view's index in the batch of this epoch.
    interned: u32,
    interned_epoch: u64,
}

/// A base that at least one handle or running transfer refers to.
pub(crate) struct BaseEntry {
    /// As it appears in batches; of the flags only PINNED is kept here.
    pub(crate) base: Base,
    pub(crate) references: u32,
    /// The stack has heard of it.
    pub(crate) known: bool,
    /// The number by which batches know it from its first one on, see [`bh_bytecode::Batch::slots`].
    pub(crate) slot: u32,
    /// Index in the batch of `epoch`.
    pub(crate) index: u32,
    pub(crate) epoch: u64,
    /// The last batch that writes it.
    pub(crate) written: u64,
    pub(crate) pins: u32,
    /// Exported: the user may look at the memory, and change it, between any two calls.
    pub(crate) exported: bool,
    /// Open maps by the user.
    pub(crate) maps: u32,
    pub(crate) mapped_for_writing: bool,
    /// The order in which folds take its elements.
    pub(crate) layout: Layout,
    /// The value of its only element, if it is known.
    pub(crate) scalar: Option<Scalar>,
    /// Its data, if that is in memory of the recorder's own. Maps of the base are then of this memory.
    pub(crate) settled: Option<Settled>,
    /// Lendings of its memory, and one if that is the program's: a map for writing may have to copy it.
    pub(crate) relied_on: u32,
    /// How often the program has begun to change its data elsewhere than in a batch.
    pub(crate) changes: u32,
    /// How to make it, if it was not stored.
    pub(crate) recipe: Option<Box<Recipe>>,
    /// Recipes that read it.
    pub(crate) readers: u32,
    /// What it is to the history of recipes, until it is used behind the batch that made it; 0: nothing.
    pub(crate) watched: u64,
}

impl BaseEntry {
    /// As [`BaseEntry::at_hand`], if elements may be read.
    #[inline]
    pub(crate) fn readable(&self, place: i64) -> Option<*const u8> {
        if self.mapped_for_writing { None } else { self.at_hand(place) }
    }

    /// The address of an element, if the data is at hand.
    #[inline]
    pub(crate) fn at_hand(&self, place: i64) -> Option<*const u8> {
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
pub(crate) struct State {
    pub(crate) handles: Slab<Handle>,
    pub(crate) bases: Slab<BaseEntry>,
    pub(crate) builder: Builder,
    pub(crate) running: Option<Running>,
    pub(crate) extensions: Vec<String>,
    pub(crate) recorded: u64,
    /// Operations that were carried out at once.
    pub(crate) immediate: u64,
    /// Known values, and settled data, that no batch writes yet.
    pub(crate) unwritten: u64,
    /// The program has waited for the batches up to this one.
    pub(crate) waited: u64,
    pub(crate) little: Little,
    /// The trace under way.
    pub(crate) trace: Option<Trace>,
    pub(crate) spares: Spares,
    pub(crate) recipes: Recipes,
    /// A batch that is closed and not handed over.
    pub(crate) waiting: Option<Waiting>,
    /// An emptied batch for reuse.
    pub(crate) spare: Batch,
    /// Memory of a list of handles to be freed, empty.
    pub(crate) freed: Vec<ArrayId>,
    pub(crate) slots: Slots,
    pub(crate) seen: Seen,
    /// Why the context ended, if not by a plain shutdown.
    pub(crate) ended: Option<Error>,
}

/// What exists between start and shutdown.
pub(crate) struct Running {
    pub(crate) executor: Arc<Executor>,
    pub(crate) ids: Arc<AtomicU64>,
    /// Computes operations on known scalars. Not to be used once the executor has ended.
    pub(crate) evaluator: Option<Evaluator>,
    pub(crate) immediate: Option<Immediate>,
    /// Arrays live in host memory, where maps of them cost nothing.
    pub(crate) maps: bool,
    /// Bytes that arrays can be in, where the engines compute.
    pub(crate) memory: u64,
    /// Bytes of arrays that a short batch may hold, or one that waits for the end of a turn.
    pub(crate) step_bytes: u64,
    pub(crate) options: Options,
}

/// A batch that was handed over, or the last one that was if there was nothing to hand over.
#[must_use = "nobody may run the batch otherwise"]
pub(crate) struct Submitted {
    pub(crate) executor: Arc<Executor>,
    /// What to wait for to see everything done.
    pub(crate) epoch: u64,
    pub(crate) runner: Option<Runner>,
}

impl Submitted {
    /// Sees to it that the batch is run. Waits, helping, while too many are under way.
    pub(crate) fn drive(&self) {
        if let Some(runner) = self.runner {
            self.executor.drive(runner, true);
        }
    }

    /// As [`Submitted::drive`], but never waits for another batch.
    pub(crate) fn start(&self) {
        if let Some(runner) = self.runner {
            self.executor.drive(runner, false);
        }
    }
}

/// What has to follow after something was recorded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Followup {
    Nothing,
    /// Complete the batch before the call returns.
    Complete,
}

impl State {
    pub(crate) fn new() -> State {
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
            recipes: Recipes::default(),
            waiting: None,
            spare: Batch::default(),
            freed: Vec::new(),
            slots: Slots::default(),
            seen: Seen::default(),
            ended: None,
        }
    }

    pub(crate) fn running(&self) -> Result<&Running> {
        self.running.as_ref().ok_or_else(|| match &self.ended {
            Some(error) => error.clone(),
            None => Error::new(status::SHUTDOWN, "the context was shut down"),
        })
    }

    pub(crate) fn executor(&self) -> Result<Arc<Executor>> {
        self.running().map(|running| running.executor.clone())
    }

    /// The place of a live handle.
    #[inline]
    pub(crate) fn find(&self, array: ArrayId) -> Result<u32> {
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
    pub(crate) fn name(&self, handle: u32) -> ArrayId {
        ArrayId(u64::from(self.handles.generation(handle)) << INDEX_BITS | u64::from(handle))
    }

    /// Type and view of an array.
    pub(crate) fn info(&self, handle: u32) -> ArrayInfo {
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
    pub(crate) fn dtype(&self, handle: u32) -> DType {
        self.bases.at(self.handles.at(handle).base).base.dtype()
    }

    /// A new array on a new base.
    #[inline(always)]
    pub(crate) fn new_array(&mut self, dtype: DType, view: SmallView, base_len: i64) -> Result<u32> {
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
            recipe: None,
            readers: 0,
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
        let handle = Handle { base, view, interned: 0, interned_epoch: 0 };
        let index = self.handles.insert(handle).map_err(|_| too_many())?;
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

    /// Drops a handle, and the base with its last one.
    #[inline]
    pub(crate) fn release(&mut self, handle: u32) {
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
        self.builder.push_discard(index as u32, view, structure);
    }

    /// Asks for the base's data in the program's address space, if the pending batch writes it.
    pub(crate) fn push_sync(&mut self, handle: u32) {
        let base = self.handles.at(handle).base;
        if self.bases.at(base).written == self.builder.epoch {
            let view = self.intern(handle);
            let structure = self.handles.at(handle).view.hash;
            self.builder.push_instr(Instr::new(Opcode::Sync, &[Operand::view(view)]), structure);
        }
    }

    /// The index of a base in the batch.
    #[inline]
    pub(crate) fn enter_base(&mut self, base: u32) -> u32 {
        let epoch = self.builder.epoch;
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
        let mut instr = instr;
        instr.origin = self.builder.intern_origin(location);
        self.recorded += 1;
        self.builder.push_instr(instr, mix_line(structure, location.line));
    }

    /// Hands the pending batch over, as something of it is asked for or it is large. What else it makes may stay a recipe.
    pub(crate) fn submit_part(&mut self) -> Result<Submitted> {
        self.bound_recipes();
        self.keep_recipes();
        self.submit()
    }

    /// Hands the pending batch over, as everything is asked for.
    pub(crate) fn submit_all(&mut self) -> Result<Submitted> {
        self.make_all_recipes();
        self.submit()
    }

    /// Hands what is pending, if there is something, to the executor. What is returned goes on once the lock is open.
    pub(crate) fn submit(&mut self) -> Result<Submitted> {
        let executor = self.executor()?;
        let mut runner = self.end_wait(&executor)?;
        if !self.builder.is_empty() {
            let closed = self.close_batch();
            runner = Some(self.hand_over(&executor, closed)?);
        }
        Ok(Submitted { executor, epoch: self.builder.epoch - 1, runner })
    }

    /// Gives the bases that live on behind the closed batch their slots: first those of bases that it ends, so that each turn
    /// of a loop finds the same ones.
    pub(crate) fn give_slots(&mut self) {
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
    pub(crate) fn clock(&self) -> Option<Instant> {
        self.running.as_ref().and_then(|running| running.executor.clock())
    }

    /// Counts the time since `begin` as spent on recording.
    #[inline]
    pub(crate) fn count_recording(&self, begin: Option<Instant>) {
        if let (Some(_), Some(running)) = (begin, &self.running) {
            running.executor.count("recorder.record_ns", begin);
        }
    }

    /// Submits when a limit is passed, at a turn of the program's loop if one is found.
    #[inline]
    pub(crate) fn check_limits(&mut self) -> Option<Submitted> {
        if self.trace.is_some() && !self.outgrows_trace() {
            return None;
        }
        if self.waiting.as_ref().is_some_and(|waiting| self.builder.batch.instrs.len() >= waiting.turn) {
            return self.submit_waiting().ok();
        }
        let running = self.running.as_ref()?;
        let (instructions, bytes) = (self.builder.batch.instrs.len(), self.builder.held_bytes);
        let options = &running.options;
        let full = bytes >= if limit::is_short(instructions) { running.step_bytes } else { options.max_bytes };
        if instructions < limit::shortest(options.max_instructions) && !full {
            return None;
        }
        let repeats = self.builder.period.found().is_some_and(|period| period < options.max_instructions as u64);
        let most = limit::limit(instructions, self.builder.work_bytes, repeats, options.max_instructions);
        if instructions < most && !full {
            return None;
        }
        let over = instructions >= 2 * options.max_instructions
            || bytes >= running.step_bytes.max(options.max_bytes.saturating_mul(2));
        let period = &self.builder.period;
        let found = period.found().filter(|_| repeats);
        let looping = match period.found() {
            Some(_) => repeats,
            // A batch that ends in the middle of a turn stores all that the rest of the turn needs.
            None => period.is_likely(),
        };
        let at_turn = looping && period.at_boundary();
        if !over && looping && !at_turn {
            return None;
        }
        if let Some(turn) = found
            && at_turn
            && !full
            && self.wait_a_turn(turn)
        {
            return None;
        }
        // Only a context without an executor refuses, and that was ruled out above.
        self.submit_part().ok()
    }

    /// Forgets everything but the generations of handles.
    pub(crate) fn reset(&mut self) {
        self.handles.clear();
        self.bases.clear();
        self.builder = Builder::new();
        self.extensions.clear();
        (self.recorded, self.immediate, self.unwritten, self.waited) = (0, 0, 0, 0);
        (self.slots, self.seen, self.little) = (Slots::default(), Seen::default(), Little::new());
        (self.trace, self.waiting) = (None, None);
        self.spares.clear();
        self.recipes = Recipes::default();
        self.ended = None;
    }

    /// Ends the context for a reason that every later call reports.
    pub(crate) fn end(&mut self, error: Error) {
        if let Some(running) = self.running.take() {
            // The executor belongs to another process; it must not be stopped from here.
            std::mem::forget(running);
        }
        self.reset();
        self.ended = Some(error);
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let executor = self.running.as_ref().map(|running| running.executor.statistics()).unwrap_or_default();
        Statistics {
            arrays: self.handles.len() as u64,
            bases: self.bases.len() as u64,
            recorded: self.recorded,
            immediate: self.immediate,
            pending: self.pending(),
            batches: executor.batches,
            instructions: executor.instructions,
            batches_on_caller: executor.on_caller,
            recipes: self.recipes.made,
            recomputed: self.recipes.recomputed,
        }
    }

    /// A handle's shape, copied.
    pub(crate) fn shape(&self, handle: u32) -> Shape {
        Shape::of(self.handles.at(handle).view.shape())
    }
}

#[inline]
fn mix_line(structure: u64, line: u32) -> u64 {
    crate::array::small_view::mix(structure, u64::from(line))
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
