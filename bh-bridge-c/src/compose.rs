//! Compositions that bridges share: positions of extremes, rolled arrays.

use crate::create::numbers;
use crate::error::{argument, bh_status, frame_out, with_place};
use crate::handle::{self, bh_array};
use crate::view::counted_axis;
use bh_compose::Extreme;
use bh_core::Result;

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
    frame_out(out, || position(a, axis, Extreme::Greatest, keep))
}

/// The position along an axis of the first smallest element, or of the first NaN; otherwise as `bh_argmax`.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_argmin(out: *mut *mut bh_array, a: *const bh_array, axis: i32, keep: i32) -> bh_status {
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
    frame_out(out, || {
        let array = handle::array(a, "a")?;
        // SAFETY: promised by the caller.
        let distances = unsafe { numbers(rank, distances, "distances") }?;
        let rolled = with_place(|place| bh_compose::roll(array.recorder, array.id, distances, place))?;
        Ok(array.sibling(rolled))
    })
}
