//! Properties of an array: type, shape, strides, context.

use crate::context::store;
use crate::create::bh_dtype;
use crate::error::{Out, argument, bh_status, frame, frame_out, null};
use crate::handle::{self, bh_array, bh_context};
use bh_core::Result;
use bh_recorder::ArrayRef;

#[inline]
fn ask<R>(a: *const bh_array, question: impl FnOnce(ArrayRef<'_>) -> R) -> Result<R> {
    let array = handle::array(a, "a")?;
    array.recorder.ask(array.id, question)
}

/// The number of dimensions.
///
/// # Safety
/// `out` must be null or the address of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_rank(out: *mut i32, a: *const bh_array) -> bh_status {
    // SAFETY: `out` is null, which `store` refuses, or valid for writing, as `# Safety` asks.
    frame(|| unsafe { store(out, ask(a, |array| array.view.shape.len() as i32)?) })
}

/// The extents, as many as the array has dimensions.
///
/// # Safety
/// `out` must be null or have place for as many numbers as `a` has dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_shape(out: *mut i64, a: *const bh_array) -> bh_status {
    // SAFETY: `out` is null or has place for as many numbers as there are dimensions, as `# Safety` asks, and that many
    // are stored.
    frame(|| unsafe { ask(a, |array| store_all(out, array.view.shape))? })
}

/// The strides in elements, as many as the array has dimensions.
///
/// # Safety
/// `out` must be null or have place for as many numbers as `a` has dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_stride(out: *mut i64, a: *const bh_array) -> bh_status {
    // SAFETY: `out` is null or has place for as many numbers as there are dimensions, as `# Safety` asks, and that many
    // are stored.
    frame(|| unsafe { ask(a, |array| store_all(out, array.view.stride))? })
}

/// As `bh_shape`, into a buffer of `capacity` numbers; of an array of more dimensions it is refused, and nothing is written.
///
/// # Safety
/// `out` must be null or have place for `capacity` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_shape_sized(out: *mut i64, capacity: usize, a: *const bh_array) -> bh_status {
    // SAFETY: `out` is null or has place for `capacity` numbers, as `# Safety` asks, and `within` lets no more through.
    frame(|| unsafe { ask(a, |array| store_all(out, within(capacity, array.view.shape)?))? })
}

/// As `bh_stride`, into a buffer of `capacity` numbers; of an array of more dimensions it is refused, and nothing is written.
///
/// # Safety
/// `out` must be null or have place for `capacity` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_stride_sized(out: *mut i64, capacity: usize, a: *const bh_array) -> bh_status {
    // SAFETY: `out` is null or has place for `capacity` numbers, as `# Safety` asks, and `within` lets no more through.
    frame(|| unsafe { ask(a, |array| store_all(out, within(capacity, array.view.stride)?))? })
}

/// Numbers for a buffer of a capacity, if they fit.
fn within(capacity: usize, numbers: &[i64]) -> Result<&[i64]> {
    if numbers.len() <= capacity {
        return Ok(numbers);
    }
    Err(argument(format!(
        "the buffer has place for {capacity} numbers, and the array has {} dimensions",
        numbers.len()
    )))
}

/// The offset of the first element in the data behind the array, in elements.
///
/// # Safety
/// `out` must be null or the address of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_offset(out: *mut i64, a: *const bh_array) -> bh_status {
    // SAFETY: `out` is null, which `store` refuses, or valid for writing, as `# Safety` asks.
    frame(|| unsafe { store(out, ask(a, |array| array.view.start)?) })
}

/// The number of elements.
///
/// # Safety
/// `out` must be null or the address of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_size(out: *mut i64, a: *const bh_array) -> bh_status {
    // SAFETY: `out` is null, which `store` refuses, or valid for writing, as `# Safety` asks.
    frame(|| unsafe { store(out, ask(a, |array| array.len)?) })
}

/// The element type.
///
/// # Safety
/// `out` must be null or the address of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_dtype_of(out: *mut bh_dtype, a: *const bh_array) -> bh_status {
    // SAFETY: `out` is null, which `store` refuses, or valid for writing, as `# Safety` asks.
    frame(|| unsafe { store(out, ask(a, |array| array.dtype)? as bh_dtype) })
}

/// The context that the array belongs to.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_context_of(out: *mut *mut bh_context, a: *const bh_array) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        ask(a, |_| ())?;
        handle::context_of(handle::array(a, "a")?)
    })
}

/// Bytes per element of a type; 0 if there is no such type.
#[unsafe(no_mangle)]
pub extern "C" fn bh_dtype_size(dtype: bh_dtype) -> usize {
    crate::create::dtype(dtype).map_or(0, |dtype| dtype.size())
}

/// # Safety
/// `out` must be null or have place for all `numbers`, and be no part of them.
unsafe fn store_all(out: *mut i64, numbers: &[i64]) -> Result<()> {
    if numbers.is_empty() {
        return Ok(());
    }
    if out.is_null() {
        return Err(null("out"));
    }
    // SAFETY: not null, and so a place for all numbers that is no part of them, as `# Safety` asks.
    unsafe { std::ptr::copy_nonoverlapping(numbers.as_ptr(), out, numbers.len()) };
    Ok(())
}
