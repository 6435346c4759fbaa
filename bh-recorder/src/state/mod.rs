//! The state of a context's arrays: their data, and how it is kept. The other modules change it.

pub(crate) mod gate;
pub(crate) mod layout;
pub(crate) mod little;
pub(crate) mod recipe;
pub(crate) mod scalar;
pub(crate) mod settled;
pub(crate) mod trace;
pub(crate) mod waiting;
pub(crate) mod word;

use crate::array::shape::Shape;
use crate::array::slab::{INDEX_BITS, Slab};
use crate::array::small_view::SmallView;
use crate::batch::builder::Builder;
use crate::batch::slots::{Seen, Slots};
use crate::batch::tape::Tapes;
use crate::executor::Executor;
use crate::{ArrayId, ArrayInfo, Options, Statistics};
use bh_bytecode::{Base, Batch, DType};
use bh_core::abi::status;
use bh_core::component::SharedCalls;
use bh_core::error::{Error, Result};
use bh_core::services::Services;
use gate::Gate;
use layout::Layout;
use little::Little;
use recipe::{Recipe, Recipes};
use scalar::{Evaluator, Scalar};
use settled::Settled;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use trace::Trace;
use waiting::Waiting;

/// An array handle: a view on a base.
pub(crate) struct Handle {
    /// Place of the base in [`State::bases`].
    pub(crate) base: u32,
    pub(crate) view: SmallView,
    /// The view's index in the batch of this epoch.
    interned: u32,
    interned_epoch: u64,
}

impl Handle {
    pub(crate) fn new(base: u32, view: SmallView) -> Handle {
        Handle { base, view, interned: 0, interned_epoch: 0 }
    }

    /// The view's index in the batch of an epoch, if it has one.
    #[inline]
    pub(crate) fn interned(&self, epoch: u64) -> Option<u32> {
        (self.interned_epoch == epoch).then_some(self.interned)
    }

    /// Notes the view's index in the batch of an epoch.
    #[inline]
    pub(crate) fn set_interned(&mut self, epoch: u64, index: u32) {
        (self.interned, self.interned_epoch) = (index, epoch);
    }
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
    /// Bytes that little uses of it on a device have cost so far, see [`State::earns_map`].
    pub(crate) earned: u64,
    /// Its key in the history of recipes, until it is used behind the batch that made it; 0: none.
    pub(crate) watched: u64,
}

impl BaseEntry {
    /// As [`BaseEntry::at_hand`], if elements may be read.
    #[inline]
    pub(crate) fn readable(&self, place: i64) -> Option<*const u8> {
        if self.mapped_for_writing { None } else { self.at_hand(place) }
    }

    /// The address of an element, if the data is settled or a known value.
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
    /// Shared with the recorder, which asks it without the lock.
    pub(crate) gate: Arc<Gate>,
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
    /// Observers of batches before they are handed over.
    pub(crate) tapes: Tapes,
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

/// The state between start and shutdown.
pub(crate) struct Running {
    pub(crate) executor: Arc<Executor>,
    pub(crate) ids: Arc<AtomicU64>,
    /// Computes operations on known scalars. Not to be used once the executor has ended.
    pub(crate) evaluator: Option<Evaluator>,
    pub(crate) immediate: Option<Immediate>,
    /// Arrays live in this process, where they can be mapped.
    pub(crate) maps: bool,
    /// They may be in memory of a device, which maps copy as a whole.
    pub(crate) device: bool,
    /// Bytes that arrays can be in, where the engines compute.
    pub(crate) memory: u64,
    /// Bytes of arrays that a short batch may hold, or one that waits for the end of a turn.
    pub(crate) step_bytes: u64,
    pub(crate) options: Options,
}

/// The calls that run operations immediately. Not to be used once the executor has ended.
pub(crate) struct Immediate {
    pub(crate) calls: Arc<dyn SharedCalls>,
    pub(crate) services: Arc<Services>,
}

/// The follow-up of a recorded operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Followup {
    Nothing,
    /// Complete the batch before the call returns.
    Complete,
}

impl State {
    pub(crate) fn new() -> State {
        State {
            gate: Arc::default(),
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
            tapes: Tapes::default(),
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

    /// Forgets everything but the generations of handles.
    pub(crate) fn reset(&mut self) {
        self.handles.clear();
        self.bases.clear();
        self.builder = Builder::new();
        self.extensions.clear();
        (self.recorded, self.immediate, self.unwritten, self.waited) = (0, 0, 0, 0);
        (self.slots, self.seen, self.little) = (Slots::default(), Seen::default(), Little::new());
        (self.trace, self.waiting) = (None, None);
        self.tapes.end_all();
        self.recipes = Recipes::default();
        self.ended = None;
        self.gate.done.store(0, Ordering::Relaxed);
        self.set_gate();
    }

    /// Opens or closes the gate, as it applies now.
    pub(crate) fn set_gate(&self) {
        self.gate.set(self.works_at_once());
    }

    /// Operations that were carried out at once so far.
    pub(crate) fn at_once_so_far(&self) -> u64 {
        self.immediate + self.gate.done.load(Ordering::Relaxed)
    }

    /// Ends the context for a reason that every later call reports.
    pub(crate) fn end(&mut self, error: Error) {
        if let Some(running) = self.running.take() {
            // The executor belongs to another process; it must not be stopped from here.
            std::mem::forget(running);
        }
        self.gate.forget_threads();
        self.reset();
        self.ended = Some(error);
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let executor = self.running.as_ref().map(|running| running.executor.statistics()).unwrap_or_default();
        Statistics {
            arrays: self.handles.len() as u64,
            bases: self.bases.len() as u64,
            recorded: self.recorded + self.gate.done.load(Ordering::Relaxed),
            immediate: self.at_once_so_far(),
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

    /// The first batch that was not handed over.
    #[inline]
    pub(crate) fn first_pending(&self) -> u64 {
        self.waiting.as_ref().map_or(self.builder.epoch, |waiting| waiting.closed.job.epoch)
    }

    /// Instructions that were not handed over.
    pub(crate) fn pending(&self) -> u64 {
        let waiting = self.waiting.as_ref().map_or(0, |waiting| waiting.closed.job.batch.instrs.len());
        (self.builder.batch.instrs.len() + waiting) as u64
    }
}
