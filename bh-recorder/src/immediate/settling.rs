//! How bases become settled by access: little ones by a read of all of it, others where a small part is looked at or changed, by
//! a map of the stack's memory that is kept until a batch uses the base. Operations on small parts settle bases likewise, where
//! that waits for nothing.

use crate::data::Data;
use crate::data::elements::Held;
use crate::immediate::part_that_counts;
use crate::process::patience::Patience;
use crate::record::Input;
use crate::state::settled::{Home, Settled};
use crate::state::{Handle, State};
use crate::sync::MutexGuard;
use crate::{ArrayId, Recorder, SendPtr};
use bh_bytecode::{Constant, Kind, Opcode, View};
use bh_core::abi::{access, status};
use bh_core::error::{Error, Result};
use bh_core::strided::Side;

/// The bytes that can be copied from a device and back to it in the time of a little operation there, some 20 µs.
const LITTLE_USE: u64 = 256 << 10;

/// An array that an operation uses: all of its elements, or a number of them.
#[derive(Clone, Copy)]
pub(crate) struct Use {
    pub(crate) array: ArrayId,
    pub(crate) elements: Option<i64>,
    pub(crate) writes: bool,
}

impl Use {
    pub(crate) fn of_input(array: ArrayId, elements: Option<i64>) -> Use {
        Use { array, elements, writes: false }
    }

    pub(crate) fn of_output(array: ArrayId, elements: Option<i64>) -> Use {
        Use { array, elements, writes: true }
    }
}

/// Asks the stack for a map, or a copy.
type Mapping<'a> = dyn FnMut(&mut dyn Data) -> Result<Option<SendPtr>> + Send + 'a;

impl Recorder {
    /// Settles the base of an array that is held, if that can be done: the access can then be tried again.
    pub(crate) fn settle_by_access(&self, held: &Held, patience: &mut Patience<'_>) -> Result<bool> {
        if held.reads && self.settle_by_reading(held, |f| self.with_data(held, patience, f))? {
            return Ok(true);
        }
        self.settle_by_mapping(held, held.view.len(), !held.reads, |f| self.with_data(held, patience, f))
    }

    /// Settles a small base that is held for reading by a read of all of it. False if it cannot be settled.
    fn settle_by_reading(
        &self,
        held: &Held,
        reach: impl FnOnce(&mut Mapping<'_>) -> Result<Option<SendPtr>>,
    ) -> Result<bool> {
        let own = {
            let state = self.state();
            let place = state.handles.at(state.find(held.handle)?).base;
            if state.bases.at(place).known { state.make_own(place, false) } else { None }
        };
        let Some(own) = own else { return Ok(false) };
        let all = View::contiguous(&[held.base.len]).map_err(|error| Error::new(status::ARGUMENT, error.0))?;
        let (base, stride) = (held.base, [held.base.dtype().size() as i64]);
        let target = SendPtr(own.data());
        let read = reach(&mut |data| {
            // SAFETY: the memory is as large as the base.
            unsafe { data.read(&base, &all, Side { data: target.get(), stride: &stride })? };
            Ok(Some(SendPtr(target.get())))
        })?;
        if read.is_none() {
            return Ok(false);
        }
        let mut state = self.state();
        let handle = state.find(held.handle)?;
        Ok(state.settle_read(handle, own, (held.needed, held.changes)))
    }

    /// The state, for an operation on these inputs and with another use of an array. Where it uses small parts of
    /// bases whose batches the program has waited for, these are settled first.
    #[inline]
    pub(crate) fn state_for(&self, opcode: Opcode, inputs: &[Input], other: Option<Use>) -> MutexGuard<'_, State> {
        let whole =
            |input: &Input| if let Input::Array(array) = input { Some(Use::of_input(*array, None)) } else { None };
        self.state_to_use(opcode.kind(), inputs.iter().filter_map(whole).chain(other))
    }

    /// As [`Recorder::state_for`], for operations with these uses.
    #[inline]
    pub(crate) fn state_to_use(
        &self,
        kind: Kind,
        mut used: impl Iterator<Item = Use> + Clone,
    ) -> MutexGuard<'_, State> {
        let state = self.state();
        if !used.clone().any(|used| state.wants_settling(used, kind)) {
            return state;
        }
        drop(state);
        // An operation whose arrays are not settled is recorded.
        let _ = used.try_for_each(|used| self.settle_waited(used, kind).map(drop));
        self.state()
    }

    /// Settles an array's base before `elements` of its elements are read, if the program has waited for all batches that use it.
    /// Says whether it did.
    #[inline]
    pub fn settle_part(&self, array: ArrayId, elements: i64) -> bool {
        self.settle_waited(Use::of_input(array, Some(elements)), Kind::Elementwise).unwrap_or(false)
    }

    /// As [`Recorder::settle_part`], before they are written.
    #[inline]
    pub fn settle_part_to_write(&self, array: ArrayId, elements: i64) -> bool {
        self.settle_waited(Use::of_output(array, Some(elements)), Kind::Elementwise).unwrap_or(false)
    }

    fn settle_waited(&self, used: Use, kind: Kind) -> Result<bool> {
        if !self.state().wants_settling(used, kind) {
            return Ok(false);
        }
        let Use { array, elements, writes } = used;
        let held = self.hold(array, access::READ)?;
        let elements = part_that_counts(elements.unwrap_or_else(|| held.view.len()), kind);
        // Nothing is waited for, so failures of other operations stay where they are.
        let reach = |f: &mut Mapping<'_>| match self.begin_access(&held, held.needed)? {
            None => held.executor.access(held.base.id, f),
            Some(_) => Ok(None),
        };
        let settled = match held.base.len {
            1 => self.learn_value(array, &held, reach),
            _ => match self.settle_by_reading(&held, reach) {
                Ok(false) => self.settle_by_mapping(&held, elements, writes, reach),
                settled => settled,
            },
        };
        self.let_go(held);
        settled
    }

    /// Learns the value of an array of one element.
    fn learn_value(
        &self,
        array: ArrayId,
        held: &Held,
        reach: impl FnOnce(&mut Mapping<'_>) -> Result<Option<SendPtr>>,
    ) -> Result<bool> {
        let (base, mut bytes) = (held.base, [0u8; 16]);
        let (all, target) = (View::default(), SendPtr(bytes.as_mut_ptr()));
        let read = reach(&mut |data| {
            // SAFETY: an element has at most 16 bytes.
            unsafe { data.read(&base, &all, Side { data: target.get(), stride: &[] })? };
            Ok(Some(SendPtr(target.get())))
        })?;
        let mut state = self.state();
        if let (Some(_), Ok(handle)) = (read, state.find(array)) {
            state.note_value(handle, Constant::from_bytes(base.dtype(), &bytes));
        }
        Ok(read.is_some())
    }

    /// Settles a base of which a small part is held, by a map of it that `reach` makes: for writing, if that changes nothing for
    /// others and the use writes or there is no copy on a device that it would end. False if it cannot be settled.
    fn settle_by_mapping(
        &self,
        held: &Held,
        elements: i64,
        writes: bool,
        reach: impl FnOnce(&mut Mapping<'_>) -> Result<Option<SendPtr>>,
    ) -> Result<bool> {
        let (writable, earned) = {
            let mut state = self.state();
            let handle = state.find(held.handle)?;
            match state.takes_map(handle, elements) && (held.reads || held.view.is_injective()) {
                true => {
                    let wanted = writes || !state.is_on_device();
                    (state.may_be_written(handle, held.needed) && wanted, state.earns_map(handle))
                }
                false => return Ok(false),
            }
        };
        let mode = if writable { access::READ | access::WRITE } else { access::READ };
        if !held.reads && !writable {
            return Ok(false);
        }
        let base = held.base;
        // A base that cannot be mapped fails again in the access itself.
        let mapped = reach(&mut |data| {
            let pays = earned || data.is_at_host(&base, mode)?;
            Ok(if pays { data.map(&base, None, mode).ok().map(SendPtr) } else { None })
        })?;
        let Some(data) = mapped else { return Ok(false) };
        let mut state = self.state();
        if let Ok(handle) = state.find(held.handle)
            && state.settle_map(handle, (data, writable), elements, held)
        {
            return Ok(true);
        }
        drop(state);
        held.executor.note_access(base.id);
        held.executor.access(base.id, |data| data.unmap(&base))?;
        Ok(false)
    }

    /// Ends the map by which the base of an array is settled.
    pub(crate) fn end_settled_map(&self, array: ArrayId) -> Result<()> {
        let mut state = self.state();
        let handle = state.find(array)?;
        let place = state.handles.at(handle).base;
        if !state.drop_map(place) {
            return Ok(());
        }
        let (executor, base) = (state.executor()?, state.bases.at(place).base);
        executor.note_access(base.id);
        drop(state);
        executor.access(base.id, |data| data.unmap(&base))
    }
}

impl State {
    /// Is what was recorded to be waited for now, so that little operations can be carried out at once?
    #[cold]
    pub(crate) fn waits_for_little(&mut self) -> bool {
        let is_short = self.little.waits(self.at_once_so_far(), self.builder.work_bytes, self.is_on_device());
        is_short && self.works_at_once() && self.running.as_ref().is_some_and(|running| running.maps)
    }

    /// Does an engine of a device compute?
    #[inline]
    pub(crate) fn is_on_device(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.device)
    }

    /// May the base of an array be settled for a use without waiting for a batch?
    #[inline]
    fn wants_settling(&self, Use { array, elements, writes }: Use, kind: Kind) -> bool {
        let Ok(handle) = self.find(array) else { return false };
        let Handle { base, view, .. } = self.handles.at(handle);
        let entry = self.bases.at(*base);
        if let Some(settled) = &entry.settled {
            // A map for reading makes room for one for writing.
            return writes && !settled.is_writable() && entry.epoch <= self.waited && entry.relied_on == 0;
        }
        if entry.scalar.is_some() || !entry.known || entry.epoch > self.waited {
            return false;
        }
        let elements = elements.unwrap_or(view.len);
        let records = self.is_in_chain(elements as u64 * entry.base.dtype().size() as u64, kind);
        !records && (self.takes_copy(*base) || self.takes_map(handle, part_that_counts(elements, kind)))
    }

    /// May a base be settled by a read of all of it, before it is used?
    fn takes_copy(&self, base: u32) -> bool {
        self.settles(self.bases.at(base).base.bytes()).is_some()
            && self.running.as_ref().is_some_and(|running| running.maps)
            && self.is_free_standing(base)
    }

    /// May an array's base be settled by a map? It must be known to the stack, too large for memory of the recorder's own, and
    /// the elements that are used few.
    fn takes_map(&self, handle: u32, elements: i64) -> bool {
        let place = self.handles.at(handle).base;
        let entry = self.bases.at(place);
        let size = entry.base.dtype().size() as u64;
        entry.settled.is_none()
            && entry.known
            && self.running.as_ref().is_some_and(|running| running.maps)
            && self.is_free_standing(place)
            && entry.base.len > 1
            && self.settles(entry.base.bytes()).is_none()
            && self.settles(elements as u64 * size).is_some()
    }

    /// Counts a little use of an array's base. Has it been used in this way so often that a copy of all of it to host memory pays, as none has
    /// to be made or the uses on the device have taken as long? Counts of the program decide, so that results have the same bits in
    /// each run.
    fn earns_map(&mut self, handle: u32) -> bool {
        let on_device = self.is_on_device();
        if on_device {
            self.weigh_use(handle, true);
        }
        let entry = self.bases.at(self.handles.at(handle).base);
        !on_device || entry.earned >= entry.base.bytes()
    }

    /// Notes that a recorded operation uses an array: with little work, which the host would do faster, or with much, so that its base is
    /// best where the engine computes.
    #[inline]
    pub(crate) fn weigh_use(&mut self, handle: u32, is_little: bool) {
        let entry = self.bases.at_mut(self.handles.at(handle).base);
        entry.earned = if is_little { entry.earned.saturating_add(LITTLE_USE) } else { 0 };
    }

    /// Is nobody left who relies on the data of an array as it is, once `waited` batches are waited for?
    fn may_be_written(&mut self, handle: u32, waited: u64) -> bool {
        self.note_waited(waited);
        let entry = self.bases.at(self.handles.at(handle).base);
        entry.epoch <= self.waited && entry.relied_on == 0
    }

    /// Notes that the program has waited for the batches up to this one.
    pub(crate) fn note_waited(&mut self, epoch: u64) {
        self.little.end_chain();
        self.waited = self.waited.max(epoch);
        self.little.note_wait(self.waited);
        if self.waited + 1 >= self.builder.epoch {
            self.little.note_end();
        }
    }

    /// Settles a base that was mapped, unless something has changed since it was held. Says whether it did.
    fn settle_map(&mut self, handle: u32, (data, writable): (SendPtr, bool), elements: i64, held: &Held) -> bool {
        let settles = self.takes_map(handle, elements) && (!writable || self.may_be_written(handle, held.needed));
        let place = self.handles.at(handle).base;
        let entry = self.bases.at_mut(place);
        let same = entry.written <= held.needed && entry.changes == held.changes;
        if settles && same {
            entry.settled = Some(Settled { home: Home::Map { data, writable }, given: false });
            self.unwritten += 1;
        }
        settles && same
    }

    /// Forgets the map by which a base is settled, which is still to be ended. Says whether there was one.
    pub(crate) fn drop_map(&mut self, base: u32) -> bool {
        let entry = self.bases.at_mut(base);
        let found = matches!(&entry.settled, Some(Settled { home: Home::Map { .. }, .. }));
        if found {
            entry.settled = None;
            self.unwritten -= 1;
        }
        found
    }

    /// Ends the map by which a base is settled before the batch under construction runs. Says whether there was one.
    pub(crate) fn end_map(&mut self, base: u32) -> bool {
        let found = self.drop_map(base);
        if found {
            self.builder.unmaps.push((self.bases.at(base).base, 1));
        }
        found
    }
}
