//! Access to the data of arrays.

use crate::context::store;
use crate::error::{Out, argument, bh_status, frame, frame_out, null};
use crate::handle::{self, bh_array};
use bh_bytecode::{Constant, DType, Truth, c128};
use bh_core::Result;
use std::ffi::c_void;

/// Copies all elements to `data` in C order. Waits for them.
///
/// # Safety
/// `data` must have place for all elements of `a`, and be no part of the array's own memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_read(data: *mut c_void, a: *const bh_array) -> bh_status {
    // SAFETY: `data` is as `# Safety` asks; null for `stride` says C order, for which `data` has place.
    unsafe { bh_read_strided(data, a, std::ptr::null()) }
}

/// As `bh_read`, into a buffer of `capacity` bytes; a smaller one than the elements need is refused, and nothing is written.
///
/// # Safety
/// `data` must have place for `capacity` bytes, and be no part of the array's own memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_read_sized(data: *mut c_void, capacity: usize, a: *const bh_array) -> bh_status {
    frame(|| {
        let array = sized(a, data, capacity)?;
        // SAFETY: `sized` saw that the elements, which go there in C order, need no more than the `capacity` bytes that
        // `# Safety` gives `data`.
        unsafe { array.recorder.read(array.id, data.cast(), None) }
    })
}

/// The array, if a buffer of `capacity` bytes has place for its elements.
fn sized(a: *const bh_array, data: *const c_void, capacity: usize) -> Result<handle::Array> {
    let array = handle::array(a, "a")?;
    array.recorder.ask(array.id, |array| fits(capacity, array.len, array.dtype))??;
    if data.is_null() && capacity != 0 { Err(null("data")) } else { Ok(array) }
}

/// Is a buffer of `capacity` bytes large enough for `len` elements?
pub(crate) fn fits(capacity: usize, len: i64, dtype: DType) -> Result<()> {
    let needed = len as u128 * dtype.size() as u128;
    if needed <= capacity as u128 {
        return Ok(());
    }
    Err(argument(format!("the buffer has {capacity} bytes, and the elements need {needed}")))
}

/// Copies all elements to `data` with these strides in bytes, one per axis. Waits for them.
///
/// # Safety
/// `stride` must be null or as many numbers as `a` has dimensions. `data` must have place for an element at the
/// distances that `stride` says for each index of `a`, or for all elements in C order if it is null, and be no part of
/// the array's own memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_read_strided(data: *mut c_void, a: *const bh_array, stride: *const i64) -> bh_status {
    frame(|| {
        let array = handle::array(a, "a")?;
        let view = array.recorder.info(array.id)?.view;
        if data.is_null() && !view.is_empty() {
            return Err(null("data"));
        }
        // SAFETY: `stride` is null or as many numbers as the array, whose rank never changes, has dimensions, and
        // `data` has place for each element there, as `# Safety` asks.
        unsafe { array.recorder.read(array.id, data.cast(), strides(stride, view.rank())) }
    })
}

/// Overwrites all elements with those at `data`, in C order.
///
/// # Safety
/// `data` must hold all elements, and be no part of the array's own memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_write(a: *mut bh_array, data: *const c_void) -> bh_status {
    // SAFETY: `data` is as `# Safety` asks; null for `stride` says C order, in which `data` holds the elements.
    unsafe { bh_write_strided(a, data, std::ptr::null()) }
}

/// As `bh_write`, from a buffer of `capacity` bytes; a smaller one than the elements need is refused, and nothing is written.
///
/// # Safety
/// `data` must hold `capacity` bytes, and be no part of the array's own memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_write_sized(a: *mut bh_array, data: *const c_void, capacity: usize) -> bh_status {
    frame(|| {
        let array = sized(a, data, capacity)?;
        // SAFETY: `sized` saw that the elements, which lie there in C order, are no more than the `capacity` bytes that
        // `data` holds, as `# Safety` asks.
        unsafe { array.recorder.write(array.id, data.cast(), None) }
    })
}

/// Overwrites all elements with those at `data`, which has these strides in bytes, one per axis.
///
/// # Safety
/// `stride` must be null or as many numbers as `a` has dimensions. `data` must hold an element at the distances that
/// `stride` says for each index of `a`, or all elements in C order if it is null, and be no part of the array's own
/// memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_write_strided(a: *mut bh_array, data: *const c_void, stride: *const i64) -> bh_status {
    frame(|| {
        let array = handle::array(a, "a")?;
        let view = array.recorder.info(array.id)?.view;
        if data.is_null() && !view.is_empty() {
            return Err(null("data"));
        }
        // SAFETY: `stride` is null or as many numbers as the array, whose rank never changes, has dimensions, and
        // `data` holds each element there, as `# Safety` asks.
        unsafe { array.recorder.write(array.id, data.cast(), strides(stride, view.rank())) }
    })
}

/// # Safety
/// `stride` must be null or `rank` numbers that live as long as the result.
unsafe fn strides<'a>(stride: *const i64, rank: usize) -> Option<&'a [i64]> {
    // SAFETY: not null, and so `rank` numbers that live as long as the result, as `# Safety` asks.
    (!stride.is_null()).then(|| unsafe { std::slice::from_raw_parts(stride, rank) })
}

/// Gives direct access to the memory of an array until `bh_unmap`: the address of its first element; further elements lie
/// `bh_stride` apart. `access`: `BH_ACCESS_READ`, `BH_ACCESS_WRITE`, or both, with `BH_ACCESS_DISCARD` if all elements will be
/// overwritten. Meanwhile no operation may change the data, nor, if it is mapped for writing, use it.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_map(out: *mut *mut c_void, a: *mut bh_array, access: u32) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let array = handle::array(a, "a")?;
        array.recorder.map(array.id, access).map(|data| data.cast())
    })
}

/// Ends a `bh_map`.
#[unsafe(no_mangle)]
pub extern "C" fn bh_unmap(a: *mut bh_array) -> bh_status {
    frame(|| {
        let array = handle::array(a, "a")?;
        array.recorder.unmap(array.id)
    })
}

/// Forbids that the memory of an array moves, until `bh_unpin`. Every operation on it completes before it returns.
#[unsafe(no_mangle)]
pub extern "C" fn bh_pin(a: *mut bh_array) -> bh_status {
    frame(|| {
        let array = handle::array(a, "a")?;
        array.recorder.pin(array.id, true, false)
    })
}

/// Ends a `bh_pin`.
#[unsafe(no_mangle)]
pub extern "C" fn bh_unpin(a: *mut bh_array) -> bh_status {
    frame(|| {
        let array = handle::array(a, "a")?;
        array.recorder.pin(array.id, false, false)
    })
}

fn element(a: *const bh_array) -> Result<Constant> {
    let array = handle::array(a, "a")?;
    array.recorder.read_scalar(array.id)
}

/// The one element of an array of one element, converted to double (of a complex number, the real part). Waits for it.
///
/// # Safety
/// `out` must be null or the address of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_scalar_f64(out: *mut f64, a: *const bh_array) -> bh_status {
    // SAFETY: `out` is null, which `store` refuses, or valid for writing, as `# Safety` asks.
    frame(|| unsafe { store(out, element(a)?.to()) })
}

/// As `bh_scalar_f64`, converted to a signed integer.
///
/// # Safety
/// `out` must be null or the address of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_scalar_i64(out: *mut i64, a: *const bh_array) -> bh_status {
    // SAFETY: `out` is null, which `store` refuses, or valid for writing, as `# Safety` asks.
    frame(|| unsafe { store(out, element(a)?.to()) })
}

/// As `bh_scalar_f64`, converted to an unsigned integer.
///
/// # Safety
/// `out` must be null or the address of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_scalar_u64(out: *mut u64, a: *const bh_array) -> bh_status {
    // SAFETY: `out` is null, which `store` refuses, or valid for writing, as `# Safety` asks.
    frame(|| unsafe { store(out, element(a)?.to()) })
}

/// As `bh_scalar_f64`, tested for non-zero.
///
/// # Safety
/// `out` must be null or the address of a truth value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_scalar_bool(out: *mut bool, a: *const bh_array) -> bh_status {
    // SAFETY: `out` is null, which `store` refuses, or valid for writing, as `# Safety` asks.
    frame(|| unsafe { store(out, element(a)?.to::<Truth>().get()) })
}

/// As `bh_scalar_f64`, for complex numbers: real and imaginary part.
///
/// # Safety
/// `out` must be null or have place for two numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_scalar_c128(out: *mut f64, a: *const bh_array) -> bh_status {
    frame(|| {
        let value: c128 = element(a)?.to();
        // SAFETY: `out` is null, which `store` refuses, or has place for two numbers, as `# Safety` asks, which are
        // laid out as an array of two.
        unsafe { store(out.cast::<[f64; 2]>(), [value.re, value.im]) }
    })
}
