//! Handles: numbers in the guise of pointers, and the table of contexts that they are looked up in.
//!
//! The upper 12 bits of an array handle name the context's slot (from 1), the lower 52 the array in it, generation
//! included. A context handle holds the slot and the generation of its context. Slots and what is in them are never
//! freed, only used again, so looking up any number is safe.

use crate::error::null;
use crate::lend::LENDING;
use bh_core::abi::status;
use bh_core::services::Handles;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Recorder, hold_at_fork};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

/// An array: a view of data that the library holds.
pub struct bh_array {
    _private: [u8; 0],
}

/// A context: a stack of components and the arrays made in it. Null stands for the default context, which is made at its
/// first use.
pub struct bh_context {
    _private: [u8; 0],
}

const SLOT_SHIFT: u32 = 52;
pub(crate) const ARRAY_MASK: u64 = (1 << SLOT_SHIFT) - 1;
/// The slot number that marks constants, see [`crate::constant`].
pub(crate) const CONSTANT_SLOT: u64 = 0xFFF;
const SLOTS: usize = 0xFFE;

struct Slot {
    recorder: Arc<Recorder>,
    generation: AtomicU32,
}

static TABLE: [OnceLock<Slot>; SLOTS] = [const { OnceLock::new() }; SLOTS];
/// Slots whose contexts ended, and the number of slots ever used.
static FREE: Mutex<(Vec<usize>, usize)> = Mutex::new((Vec::new(), 0));
/// Slot of the default context, from 1; 0 if there is none.
static DEFAULT: AtomicUsize = AtomicUsize::new(0);
static MAKING_DEFAULT: Mutex<()> = Mutex::new(());

fn slot(number: u64) -> Option<&'static Slot> {
    TABLE.get(usize::try_from(number).ok()?.checked_sub(1)?)?.get()
}

/// The slot number in a handle.
#[inline]
pub(crate) fn slot_of<T>(handle: *const T) -> u64 {
    (handle.addr() as u64) >> SLOT_SHIFT
}

/// The part of a handle below the slot number.
#[inline]
pub(crate) fn payload_of<T>(handle: *const T) -> u64 {
    handle.addr() as u64 & ARRAY_MASK
}

pub(crate) fn pack<T>(slot: u64, payload: u64) -> *mut T {
    std::ptr::without_provenance_mut((slot << SLOT_SHIFT | payload) as usize)
}

/// An array handle, looked up.
#[derive(Clone, Copy)]
pub(crate) struct Array {
    pub(crate) recorder: &'static Recorder,
    pub(crate) id: ArrayId,
    pub(crate) slot: u64,
}

impl Array {
    /// A handle for another array of the same context.
    pub(crate) fn sibling(&self, id: ArrayId) -> *mut bh_array {
        pack(self.slot, id.0)
    }
}

/// The context and the number of an array; whether the array is there, the recorder finds out.
#[inline]
pub(crate) fn array(handle: *const bh_array, name: &str) -> Result<Array> {
    let number = slot_of(handle);
    match slot(number) {
        Some(slot) => Ok(Array { recorder: &slot.recorder, id: ArrayId(payload_of(handle)), slot: number }),
        None => Err(bad_array(handle, number, name)),
    }
}

#[cold]
fn bad_array(handle: *const bh_array, slot: u64, name: &str) -> Error {
    if handle.is_null() {
        return Error::new(status::HANDLE, format!("array '{name}' is null"));
    }
    let what = if slot == CONSTANT_SLOT { "is a constant, but an array is needed" } else { "is no array handle" };
    Error::new(status::HANDLE, format!("array '{name}' {what}"))
}

/// A context, looked up.
#[derive(Clone, Copy)]
pub(crate) struct Context {
    pub(crate) recorder: &'static Recorder,
    slot: u64,
}

impl Context {
    /// The number of its slot.
    pub(crate) fn slot(&self) -> u64 {
        self.slot
    }

    pub(crate) fn array(&self, id: ArrayId) -> *mut bh_array {
        pack(self.slot, id.0)
    }
}

/// The context of a handle; the default one for null.
pub(crate) fn context(handle: *mut bh_context) -> Result<Context> {
    if handle.is_null() {
        return default_context();
    }
    let number = slot_of(handle);
    let found = slot(number).filter(|slot| payload_of(handle) == u64::from(slot.generation.load(Ordering::Acquire)));
    match found {
        Some(slot) => Ok(Context { recorder: &slot.recorder, slot: number }),
        None => {
            Err(Error::new(status::HANDLE, "the context handle is not valid: the context was destroyed, or never made"))
        }
    }
}

/// The context that an array belongs to.
pub(crate) fn context_of(array: Array) -> Result<*mut bh_context> {
    let slot = slot(array.slot).ok_or_else(|| null("context"))?;
    Ok(pack(array.slot, u64::from(slot.generation.load(Ordering::Acquire))))
}

/// The recorder of an array's context, to be kept.
pub(crate) fn shared_recorder(array: &Array) -> Result<&'static Arc<Recorder>> {
    slot(array.slot).map(|slot| &slot.recorder).ok_or_else(|| null("context"))
}

fn default_context() -> Result<Context> {
    let number = DEFAULT.load(Ordering::Acquire) as u64;
    if let Some(slot) = slot(number) {
        return Ok(Context { recorder: &slot.recorder, slot: number });
    }
    let _making = MAKING_DEFAULT.lock().unwrap_or_else(PoisonError::into_inner);
    let number = match DEFAULT.load(Ordering::Acquire) {
        0 => {
            let number = open(None, Handles::default())?;
            DEFAULT.store(number, Ordering::Release);
            number
        }
        number => number,
    } as u64;
    slot(number).map(|slot| Context { recorder: &slot.recorder, slot: number }).ok_or_else(|| null("context"))
}

/// Makes a context on a stack and returns its handle.
pub(crate) fn create(stack: Option<&str>, handles: Handles) -> Result<*mut bh_context> {
    let number = open(stack, handles)? as u64;
    let generation = slot(number).map_or(0, |slot| slot.generation.load(Ordering::Acquire));
    Ok(pack(number, u64::from(generation)))
}

/// Starts a context in a free slot and returns the slot's number.
fn open(stack: Option<&str>, handles: Handles) -> Result<usize> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        hold_at_fork(&MAKING_DEFAULT);
        hold_at_fork(&FREE);
        hold_at_fork(&LENDING);
    });
    let taken = {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        match free.0.pop() {
            Some(slot) => slot,
            None if free.1 < SLOTS => {
                free.1 += 1;
                free.1
            }
            None => return Err(Error::new(status::MEMORY, format!("more than {SLOTS} contexts at one time"))),
        }
    };
    let slot = TABLE[taken - 1].get_or_init(|| Slot { recorder: Recorder::new(), generation: AtomicU32::new(1) });
    match slot.recorder.open_with(stack, handles) {
        Ok(()) => Ok(taken),
        Err(error) => {
            FREE.lock().unwrap_or_else(PoisonError::into_inner).0.push(taken);
            Err(error)
        }
    }
}

/// Ends a context. Its handle is invalid from now on, whatever is returned.
pub(crate) fn destroy(handle: *mut bh_context) -> Result<()> {
    let number = if handle.is_null() { DEFAULT.load(Ordering::Acquire) as u64 } else { slot_of(handle) };
    if handle.is_null() && number == 0 {
        return Ok(());
    }
    let context = context(handle)?;
    let Some(slot) = slot(number) else { return Err(null("context")) };
    let generation = slot.generation.load(Ordering::Acquire);
    // Of two threads that end the same context, one succeeds.
    if slot
        .generation
        .compare_exchange(generation, generation.wrapping_add(1), Ordering::AcqRel, Ordering::Acquire)
        .is_err()
    {
        return Err(Error::new(status::HANDLE, "the context is being destroyed by another thread"));
    }
    // Fails when this is not the default context, which is fine.
    let _ = DEFAULT.compare_exchange(number as usize, 0, Ordering::AcqRel, Ordering::Acquire);
    let result = context.recorder.shutdown();
    if generation == u32::MAX {
        // Its handles would repeat.
        return result;
    }
    FREE.lock().unwrap_or_else(PoisonError::into_inner).0.push(number as usize);
    result
}
