//! Host memory that goes either way without a copy: adoption in all modes, and lending.

use crate::context::store;
use crate::create::{bh_dtype, bh_release, dtype, numbers};
use crate::error::{Out, bh_status, frame, frame_out, null};
use crate::handle::{self, bh_array, bh_context, context};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{Lent, Patience, Recorder};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Elements of an array that the program uses where they lie, see `bh_lend`.
pub struct bh_lent {
    _private: [u8; 0],
}

/// Lent arrays, by number; no number is used twice.
pub(crate) struct Lending {
    last: usize,
    open: Option<HashMap<usize, Entry>>,
}

struct Entry {
    recorder: &'static Recorder,
    lent: Lent,
}

pub(crate) static LENDING: Mutex<Lending> = Mutex::new(Lending { last: 0, open: None });

fn lending() -> MutexGuard<'static, Lending> {
    LENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unknown<T>() -> Result<T> {
    Err(Error::new(status::HANDLE, "argument 'lent': nothing is lent under this handle, or it was given back"))
}

/// As `bh_adopt`, in a mode: `BH_ADOPT_SHARED` as `bh_adopt`; `BH_ADOPT_DONATED`: the library owns the memory until `release`, may
/// move the data elsewhere, and stays lazy; `BH_ADOPT_IMMUTABLE`: nobody writes to the memory, the library neither, which writes
/// elsewhere, and stays lazy. `release` may be called on any thread, in any call or between calls, with no lock held; it must not
/// call this library.
///
/// # Safety
/// As `bh_adopt`, and what the mode says of the memory must hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_adopt_as(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    rank: i32,
    shape: *const i64,
    data: *mut c_void,
    mode: u32,
    release: bh_release,
    argument: *mut c_void,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let context = self::context(context)?;
        // SAFETY: `shape` is null or `rank` numbers, as `# Safety` asks, and they are used within the call only.
        let shape = unsafe { numbers(rank, shape, "shape") }?;
        // SAFETY: `data` holds the elements of `shape`, as the mode says, until `release` is called, which works with
        // both arguments on any thread, as `# Safety` asks.
        let array =
            unsafe { context.recorder.adopt_as(self::dtype(dtype)?, shape, mode, data.cast(), release, argument) }?;
        Ok(context.array(array))
    })
}

/// Lends the elements of an array until `bh_end_lending`. Waits for them.
/// `BH_EXPORT_SNAPSHOT`: the elements as they are now, in a copy. `BH_EXPORT_READ_ONLY`: without a copy as long as nobody writes to
/// the array; then the writer takes other memory. `BH_EXPORT_SHARED`: the array's own memory, which stays where it is; every
/// operation on the array completes before it returns; look at it between `bh_map` and `bh_unmap`.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_lend(out: *mut *mut bh_lent, a: *mut bh_array, mode: u32) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let array = handle::array(a, "a")?;
        let lent = array.recorder.lend_as(array.id, mode, &mut Patience::endless())?;
        let mut lending = lending();
        lending.last += 1;
        let number = lending.last;
        lending.open.get_or_insert_default().insert(number, Entry { recorder: array.recorder, lent });
        Ok(std::ptr::without_provenance_mut(number))
    })
}

/// The address of the first lent element; others lie `bh_stride` apart.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_lent_data(out: *mut *mut c_void, lent: *const bh_lent) -> bh_status {
    frame(|| {
        let lending = lending();
        let Some(entry) = lending.open.as_ref().and_then(|open| open.get(&lent.addr())) else { return unknown() };
        // SAFETY: `out` is null, which `store` refuses, or valid for writing, as `# Safety` asks.
        unsafe { store(out, entry.lent.data.cast()) }
    })
}

/// Gives back what `bh_lend` lent. The array may be gone before.
#[unsafe(no_mangle)]
pub extern "C" fn bh_end_lending(lent: *mut bh_lent) -> bh_status {
    frame(|| {
        if lent.is_null() {
            return Err(null("lent"));
        }
        let Some(entry) = lending().open.as_mut().and_then(|open| open.remove(&lent.addr())) else { return unknown() };
        entry.recorder.end_lending(&entry.lent)
    })
}
