//! Reads and writes by bridges, without an operation, of computed arrays: those that are settled or have a known value.
//!
//! A [`Hand`] holds the recorder's lock, so its uses must be short. They change the recorder as the operation would have,
//! orders of folds included.

use crate::array::small_view::goes_in_c_order;
use crate::immediate::here::{Here, Made, Store};
use crate::record::{INPUTS, Source};
use crate::state::State;
use crate::state::gate::takes;
use crate::sync::MutexGuard;
use crate::{ArrayId, Recorder};
use bh_bytecode::view::element_count;
use bh_bytecode::{Constant, DType, View};

/// Operations that only move elements, or read each once, run immediately on up to this many times the bytes of other
/// operations.
pub const MOVED: u64 = 4;

/// Access to computed arrays, and how many more may be made.
pub struct Hand<'a>(MutexGuard<'a, State>, usize);

/// The most arrays that may be made while a hand is held.
const MADE: usize = 8;

impl Recorder {
    /// Access to computed data; `None` where the configuration disables immediate operations.
    #[inline]
    pub fn hand(&self) -> Option<Hand<'_>> {
        let mut state = self.state();
        // Known scalars lie among the bases, and must stay where they are while results are made.
        state.bases.reserve(MADE);
        state.works_at_once().then_some(Hand(state, MADE))
    }
}

impl Hand<'_> {
    /// The address of an element of an array's base, if its data is computed. It stays there while this is held.
    #[inline]
    pub fn data(&self, array: Store<'_>, place: i64) -> Option<*const u8> {
        match array {
            Store::Handle(array) => self.0.readable(self.0.find(array).ok()?, place),
            Store::Here(here) => Some(here.data(place)),
        }
    }

    /// Are these arrays on different bases?
    #[inline]
    pub fn are_apart(&self, first: Store<'_>, second: Store<'_>) -> Option<bool> {
        let base = |array| self.0.find(array).ok().map(|handle| self.0.handles.at(handle).base);
        match (first, second) {
            (Store::Handle(first), Store::Handle(second)) => Some(base(first)? != base(second)?),
            (Store::Here(first), Store::Here(second)) => Some(!std::ptr::eq(first, second)),
            _ => Some(true),
        }
    }

    /// Do folds of a view of an array's base take its elements in C's order?
    #[inline]
    pub fn is_in_c_order(&self, array: Store<'_>, view: &View) -> Option<bool> {
        let Store::Handle(array) = array else { return Some(goes_in_c_order(view.shape(), view.stride())) };
        let base = self.0.handles.at(self.0.find(array).ok()?).base;
        Some(goes_in_c_order(view.shape(), view.stride()) && self.0.bases.at(base).layout.is_own())
    }

    /// The element of an array's base at a place that one of the array's views has.
    #[inline]
    pub fn element(&mut self, array: Store<'_>, place: i64) -> Option<Constant> {
        let value = self.value(array, place)?;
        if let Store::Handle(array) = array {
            let handle = self.0.find(array).ok()?;
            self.0.note_read(handle);
        }
        self.0.little.end_chain();
        Some(value)
    }

    /// Overwrites an element of an array's base at a place that the array's view has. `None` if that has to be recorded.
    #[inline]
    pub fn set_element(&mut self, array: Store<'_>, place: i64, value: Constant) -> Option<()> {
        let dtype = match array {
            Store::Handle(array) => self.0.dtype(self.0.find(array).ok()?),
            Store::Here(here) => here.dtype(),
        };
        if dtype != value.dtype() {
            return None;
        }
        let to = self.change(array, place, &[])?;
        // SAFETY: views lie inside their bases, whose data does not move under the lock.
        unsafe { copy_element(value.dtype(), value.bits.as_ptr().cast(), to) };
        Some(())
    }

    /// The address of an element of an array's base, for a change of some elements at once, as by an elementwise operation on
    /// `inputs`; those of index operations do not count. `None` if that has to be recorded.
    #[inline]
    pub fn change(&mut self, array: Store<'_>, place: i64, inputs: &[ArrayId]) -> Option<*mut u8> {
        let array = match array {
            Store::Handle(array) => array,
            Store::Here(here) => {
                self.0.note_work();
                return here.has_place(place).then(|| here.data(place));
            }
        };
        let handle = self.0.find(array).ok()?;
        let base = self.0.handles.at(handle).base;
        if !self.0.has_place(base, place) || !self.0.is_free_standing(base) || !self.0.handles.at(handle).view.injective
        {
            return None;
        }
        let data = if let Some(settled) = &self.0.bases.at(base).settled {
            if !settled.is_writable() {
                return None;
            }
            self.0.note_change(base);
            self.0.readable(handle, place)?.cast_mut()
        } else {
            let value = self.0.known_value(handle).filter(|_| self.0.takes_value(handle))?;
            self.0.set_value(handle, value);
            self.0.bases.at_mut(base).scalar.as_mut()?.data_mut()
        };
        self.0.note_at_once(handle, inputs);
        Some(data)
    }

    /// A new array and the address of its elements in C order, which are all to be written while this is held, as by an
    /// elementwise operation on `inputs` of the same shape; those of other operations do not count. `None` if it cannot be made
    /// at once.
    #[inline]
    pub fn make(&mut self, dtype: DType, shape: &[i64], inputs: &[ArrayId]) -> Option<(Made, *mut u8)> {
        self.make_of(dtype, shape, inputs, 1)
    }

    /// As [`Hand::make`], for elements that are only moved, which is done at once with [`MOVED`] times as many bytes.
    #[inline]
    pub fn make_moved(&mut self, dtype: DType, shape: &[i64]) -> Option<(Made, *mut u8)> {
        self.make_of(dtype, shape, &[], MOVED)
    }

    #[inline]
    fn make_of(&mut self, dtype: DType, shape: &[i64], inputs: &[ArrayId], times: u64) -> Option<(Made, *mut u8)> {
        self.1 = self.1.checked_sub(1)?;
        let state = &mut *self.0;
        let len = element_count(shape)?;
        if let Some(engine) = state.running.as_ref().filter(|_| inputs.is_empty())
            && let (Some(immediate), bytes) = (&engine.immediate, len as u64 * dtype.size() as u64)
            && takes(&engine.options, bytes)
        {
            let made = Here::new(&immediate.services, &engine.ids, dtype, len)?;
            let data = made.data(0);
            state.note_work();
            return Some((Made::Here(made), data));
        }
        let handle = state.new_contiguous(dtype, shape, len).ok()?;
        let base = state.handles.at(handle).base;
        let data = match len {
            0 => std::ptr::dangling_mut::<u128>().cast(),
            1 => {
                state.set_value(handle, Constant::from_bytes(dtype, &[0; 16]));
                state.bases.at_mut(base).scalar.as_mut()?.data_mut()
            }
            _ => match state.make_own_of(base, false, times) {
                Some(own) => {
                    let data = own.data();
                    state.set_own(base, own, false);
                    data
                }
                None => {
                    state.release(handle);
                    return None;
                }
            },
        };
        state.hint_rows(handle);
        state.note_at_once(handle, inputs);
        Some((Made::Handle(state.name(handle)), data))
    }

    /// As [`Hand::element`], of what no program reads.
    #[inline]
    pub fn value(&self, array: Store<'_>, place: i64) -> Option<Constant> {
        match array {
            Store::Handle(array) => self.0.value_at(self.0.find(array).ok()?, place),
            Store::Here(here) => here.value(place),
        }
    }
}

/// Copies an element of a type, by words of its size, as that is known at compile time.
///
/// # Safety
/// `from` must be valid for reading an element of the type, and `to` for writing one, wherever they lie.
#[inline]
pub(crate) unsafe fn copy_element(dtype: DType, from: *const u8, to: *mut u8) {
    // SAFETY: an element has as many bytes as are moved, and is valid at both places, as `# Safety` asks, which need
    // not be aligned.
    unsafe {
        match dtype.size() {
            1 => to.write(from.read()),
            2 => to.cast::<u16>().write_unaligned(from.cast::<u16>().read_unaligned()),
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            _ => to.cast::<[u64; 2]>().write_unaligned(from.cast::<[u64; 2]>().read_unaligned()),
        }
    }
}

/// An element as a number.
///
/// # Safety
/// `data` must be valid for reading an element of the type.
#[inline]
pub(crate) unsafe fn read_element(dtype: DType, data: *const u8) -> Constant {
    let mut value = Constant { bits: [0; 2], dtype: dtype as u8, reserved: [0; 7] };
    // SAFETY: `data` is valid, as `# Safety` asks; a constant has room for any element.
    unsafe { copy_element(dtype, data, value.bits.as_mut_ptr().cast()) };
    // In memory any byte but 0 is true.
    if dtype == DType::Bool { Constant::from_bytes(dtype, &value.bytes()) } else { value }
}

impl State {
    /// The address of an element of an array's base, if its elements may be read at once.
    #[inline]
    fn readable(&self, handle: u32, place: i64) -> Option<*const u8> {
        self.bases.at(self.handles.at(handle).base).readable(place)
    }

    /// An element of an array's base, if it may be read at once.
    #[inline]
    fn value_at(&self, handle: u32, place: i64) -> Option<Constant> {
        if !self.has_place(self.handles.at(handle).base, place) {
            return None;
        }
        let data = self.readable(handle, place)?;
        // SAFETY: views lie inside their bases, whose data does not move under the lock.
        Some(unsafe { read_element(self.dtype(handle), data) })
    }

    /// Has a base an element at a place?
    #[inline]
    fn has_place(&self, base: u32, place: i64) -> bool {
        (0..self.bases.at(base).base.len).contains(&place)
    }

    /// Notes what an operation on these inputs would.
    #[inline]
    fn note_at_once(&mut self, out: u32, inputs: &[ArrayId]) {
        let mut sources = [Source::Handle(out); INPUTS];
        let handles = inputs.iter().filter_map(|input| self.find(*input).ok());
        sources.iter_mut().zip(handles).for_each(|(source, handle)| *source = Source::Handle(handle));
        let layout = self.result_layout(out, &sources[..inputs.len().min(INPUTS)]);
        let base = self.handles.at(out).base;
        self.bases.at_mut(base).layout = layout;
        self.note_work();
    }

    /// Counts work that is done at once, and is no link of a chain.
    #[inline]
    fn note_work(&mut self) {
        self.little.end_chain();
        self.recorded += 1;
        self.immediate += 1;
    }
}
