//! Compositions that bridges share: positions of extremes, rolled and joined arrays, unit matrices.

use crate::create::{bh_dtype, dtype, numbers};
use crate::error::{Out, argument, bh_status, frame_out, null, with_place};
use crate::handle::{self, Array, bh_array, bh_context, context};
use crate::view::counted_axis;
use bh_compose::Extreme;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::ArrayId;

/// The position of the extreme element along an axis.
fn position(a: *const bh_array, axis: i32, extreme: Extreme, keep: i32) -> Result<*mut bh_array> {
    let array = handle::array(a, "a")?;
    let rank = array.recorder.ask(array.id, |array| array.view.shape.len())?;
    let counted = counted_axis(axis, rank).map_err(|error| argument(error.0))?;
    let found = with_place(|place| {
        bh_compose::position_of_extreme(array.recorder, array.id, counted, extreme, keep != 0, place)
    })?;
    Ok(array.sibling(found))
}

/// The position along an axis of the first largest element, or of the first NaN, as i64. Negative axes count from the end.
/// `keep`: not 0 if the axis stays, with extent 1. An axis without elements and complex numbers are errors.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_argmax(out: *mut *mut bh_array, a: *const bh_array, axis: i32, keep: i32) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || position(a, axis, Extreme::Greatest, keep))
}

/// The position along an axis of the first smallest element, or of the first NaN; otherwise as `bh_argmax`.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_argmin(out: *mut *mut bh_array, a: *const bh_array, axis: i32, keep: i32) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || position(a, axis, Extreme::Least, keep))
}

/// A new array with the elements moved along the axes, by as many `distances` as `a` has dimensions; what leaves at
/// one end enters at the other.
///
/// # Safety
/// `out` must be null or the address of a pointer; `distances` must be null or `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_roll(
    out: *mut *mut bh_array,
    a: *const bh_array,
    rank: i32,
    distances: *const i64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let array = handle::array(a, "a")?;
        // SAFETY: `distances` is null or `rank` numbers, as `# Safety` asks, and they are used within the call only.
        let distances = unsafe { numbers(rank, distances, "distances") }?;
        let rolled = with_place(|place| bh_compose::roll(array.recorder, array.id, distances, place))?;
        Ok(array.sibling(rolled))
    })
}

/// The arrays of a list, and the first of them, whose context they are all of.
///
/// # Safety
/// `parts` must be null or `count` handles that live through the call.
pub(crate) unsafe fn listed(count: usize, parts: *const *const bh_array, name: &str) -> Result<(Array, Vec<ArrayId>)> {
    if parts.is_null() && count > 0 {
        return Err(null(name));
    }
    // SAFETY: not null, and so `count` handles, as `# Safety` asks, which are copied before this returns.
    let parts = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(parts, count) } };
    let arrays = parts.iter().map(|&part| handle::array(part, name)).collect::<Result<Vec<Array>>>()?;
    let first =
        *arrays.first().ok_or_else(|| argument(format!("argument '{name}': there must be an array at least")))?;
    if arrays.iter().any(|array| array.slot != first.slot) {
        let text = format!("argument '{name}': the arrays belong to several contexts");
        return Err(Error::new(status::HANDLE, text));
    }
    Ok((first, arrays.iter().map(|array| array.id).collect()))
}

/// The number of dimensions of an array.
fn rank(array: &Array) -> Result<usize> {
    array.recorder.ask(array.id, |array| array.view.shape.len())
}

/// A new array with `count` parts one after the other along an axis; negative axes count from the end. The parts have one type,
/// and the same extents along other axes.
///
/// # Safety
/// `out` must be null or the address of a pointer; `parts` must be null or `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_concatenate(
    out: *mut *mut bh_array,
    count: usize,
    parts: *const *const bh_array,
    axis: i32,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        // SAFETY: `parts` is null or `count` handles, as `# Safety` asks.
        let (first, parts) = unsafe { listed(count, parts, "parts") }?;
        let axis = counted_axis(axis, rank(&first)?).map_err(|error| argument(error.0))?;
        let joined = with_place(|place| bh_compose::concatenate(first.recorder, &parts, axis, place))?;
        Ok(first.sibling(joined))
    })
}

/// A new array with `count` parts beside each other along a new axis; negative axes count from the end of the result's. The parts
/// have one type and one shape.
///
/// # Safety
/// As `bh_concatenate`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_stack(
    out: *mut *mut bh_array,
    count: usize,
    parts: *const *const bh_array,
    axis: i32,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        // SAFETY: `parts` is null or `count` handles, as `# Safety` asks.
        let (first, parts) = unsafe { listed(count, parts, "parts") }?;
        let axis = counted_axis(axis, rank(&first)? + 1).map_err(|error| argument(error.0))?;
        let joined = with_place(|place| bh_compose::stack(first.recorder, &parts, axis, place))?;
        Ok(first.sibling(joined))
    })
}

/// A new matrix with ones on a diagonal and zeros elsewhere. `diagonal` counts from the main diagonal upwards.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_eye(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    rows: i64,
    columns: i64,
    diagonal: i64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let (context, dtype) = (self::context(context)?, self::dtype(dtype)?);
        let made = with_place(|place| bh_compose::eye(context.recorder, dtype, (rows, columns), diagonal, place))?;
        Ok(context.array(made))
    })
}
