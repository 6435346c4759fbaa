//! Views: new handles on the same data.

use crate::create::numbers;
use crate::error::{Out, argument, bh_status, frame_out, with_place};
use crate::handle::{self, bh_array};
use bh_bytecode::{MAX_RANK, View, ViewError};
use bh_core::Result;

/// An omitted bound of a slice.
const NONE: i64 = i64::MIN;

fn derive(a: *const bh_array, f: impl FnOnce(&View) -> std::result::Result<View, ViewError>) -> Result<*mut bh_array> {
    let array = handle::array(a, "a")?;
    array.recorder.derive(array.id, f).map(|id| array.sibling(id))
}

/// An axis, counted from the end if negative.
pub(crate) fn counted_axis(axis: i32, rank: usize) -> std::result::Result<usize, ViewError> {
    let at = if axis < 0 { i64::from(axis) + rank as i64 } else { i64::from(axis) };
    match usize::try_from(at) {
        Ok(at) if at < rank => Ok(at),
        _ => Err(ViewError(format!("axis {axis} does not exist in an array of rank {rank}"))),
    }
}

fn bound(bound: i64) -> Option<i64> {
    (bound != NONE).then_some(bound)
}

/// The elements start, start + step, … before stop along one axis, as Python's `a[start:stop:step]`: negative bounds
/// count from the end, `BH_NONE` stands for an omitted one.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_slice(
    out: *mut *mut bh_array,
    a: *const bh_array,
    axis: i32,
    start: i64,
    stop: i64,
    step: i64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || derive(a, |view| view.slice(counted_axis(axis, view.rank())?, bound(start), bound(stop), step)))
}

/// A slice of every axis at once: `start`, `stop` and `step` have an entry per axis. Null stands for all entries
/// omitted, steps for 1.
///
/// # Safety
/// `out` must be null or the address of a pointer; `start`, `stop` and `step` must each be null or as many numbers as
/// `a` has dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_window(
    out: *mut *mut bh_array,
    a: *const bh_array,
    start: *const i64,
    stop: *const i64,
    step: *const i64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        derive(a, |view| {
            (0..view.rank()).try_fold(*view, |window, dim| {
                // SAFETY: not null, and so as many numbers as the view, which is that of `a`, has dimensions, as
                // `# Safety` asks; `dim` is one of these.
                let entry = |from: *const i64| (!from.is_null()).then(|| unsafe { *from.add(dim) });
                let limit = |from| entry(from).and_then(bound);
                window.slice(dim, limit(start), limit(stop), entry(step).unwrap_or(1))
            })
        })
    })
}

/// The part at one index of an axis, which is removed. Negative indices count from the end.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_index(out: *mut *mut bh_array, a: *const bh_array, axis: i32, index: i64) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || derive(a, |view| view.index(counted_axis(axis, view.rank())?, index)))
}

/// With a new axis of extent 1 before axis `axis` (after the last one, if `axis` is the rank).
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_new_axis(out: *mut *mut bh_array, a: *const bh_array, axis: i32) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || derive(a, |view| view.new_axis(counted_axis(axis, view.rank() + 1)?)))
}

/// With its axes reordered: axis d of the result is axis `axes[d]` of `a`. Null reverses their order.
///
/// # Safety
/// `out` must be null or the address of a pointer; `axes` must be null or as many numbers as `a` has dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_transpose(out: *mut *mut bh_array, a: *const bh_array, axes: *const i32) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    // SAFETY: `axes` is null or as many numbers as `a` has dimensions, as `# Safety` asks; that is what `reordered`
    // asks for without a count.
    frame_out(out, || unsafe { reordered(a, None, axes) })
}

/// As `bh_transpose`, with the number of `axes`, which must be as many as `a` has dimensions.
///
/// # Safety
/// `out` must be null or the address of a pointer; `axes` must be null or `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_transpose_sized(
    out: *mut *mut bh_array,
    a: *const bh_array,
    count: usize,
    axes: *const i32,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    // SAFETY: `axes` is null or `count` numbers, as `# Safety` asks.
    frame_out(out, || unsafe { reordered(a, Some(count), axes) })
}

/// # Safety
/// `axes` must be null, or `count` numbers; without a count, as many as `a` has dimensions.
unsafe fn reordered(a: *const bh_array, count: Option<usize>, axes: *const i32) -> Result<*mut bh_array> {
    derive(a, |view| {
        let rank = view.rank();
        if let Some(count) = count.filter(|&count| count != rank && !axes.is_null()) {
            return Err(ViewError(format!("{count} axes are given for an array of rank {rank}")));
        }
        let mut order = [0usize; MAX_RANK];
        for (at, place) in order[..rank].iter_mut().enumerate() {
            // SAFETY: not null, and so as many numbers as the rank, as `# Safety` asks, since a count is the rank here;
            // `at` is below it.
            *place = if axes.is_null() { rank - 1 - at } else { counted_axis(unsafe { *axes.add(at) }, rank)? };
        }
        view.transpose(&order[..rank])
    })
}

/// The elements in C order under another shape; one extent may be -1 and is worked out. A view where the strides allow it,
/// else a copy.
///
/// # Safety
/// `out` must be null or the address of a pointer; `shape` must be null or `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_reshape(
    out: *mut *mut bh_array,
    a: *const bh_array,
    rank: i32,
    shape: *const i64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let array = handle::array(a, "a")?;
        // SAFETY: `shape` is null or `rank` numbers, as `# Safety` asks, and they are used within the call only.
        let mut shape = unsafe { numbers(rank, shape, "shape") }?.to_vec();
        if let Some(open) = shape.iter().position(|&extent| extent == -1) {
            let len = array.recorder.ask(array.id, |array| array.len)?;
            shape[open] = 1;
            let rest = bh_bytecode::view::element_count(&shape).unwrap_or(0);
            if rest <= 0 || len % rest != 0 {
                let text = format!(
                    "reshape: {len} elements cannot be divided into a shape of {rest} elements and one more dimension"
                );
                return Err(argument(text));
            }
            shape[open] = len / rest;
        }
        let reshaped = with_place(|place| array.recorder.reshape(array.id, &shape, place))?;
        Ok(array.sibling(reshaped))
    })
}

/// Stretched to a larger shape by NumPy's broadcasting. The result can be read only.
///
/// # Safety
/// `out` must be null or the address of a pointer; `shape` must be null or `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_broadcast(
    out: *mut *mut bh_array,
    a: *const bh_array,
    rank: i32,
    shape: *const i64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        // SAFETY: `shape` is null or `rank` numbers, as `# Safety` asks, and they are used within the call only.
        let shape = unsafe { numbers(rank, shape, "shape") }?;
        derive(a, |view| view.broadcast_to(shape))
    })
}

/// The diagonal of two axes as a last axis, shifted by `offset` towards the second.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_diagonal(
    out: *mut *mut bh_array,
    a: *const bh_array,
    offset: i64,
    first: i32,
    second: i32,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        derive(a, |view| view.diagonal(offset, counted_axis(first, view.rank())?, counted_axis(second, view.rank())?))
    })
}

/// With one axis walked backwards.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_reverse(out: *mut *mut bh_array, a: *const bh_array, axis: i32) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || derive(a, |view| view.reverse(counted_axis(axis, view.rank())?)))
}

/// Any window on the data behind `a`: `start` and `stride` in elements of it, counted from its first element. It must not
/// leave the data.
///
/// # Safety
/// `out` must be null or the address of a pointer; `shape` and `stride` must be null or `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_view(
    out: *mut *mut bh_array,
    a: *const bh_array,
    start: i64,
    rank: i32,
    shape: *const i64,
    stride: *const i64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        // SAFETY: `shape` and `stride` are each null or `rank` numbers, as `# Safety` asks, and are used within the
        // call only.
        let (shape, stride) = unsafe { (numbers(rank, shape, "shape")?, numbers(rank, stride, "stride")?) };
        derive(a, |_| View::new(start, shape, stride))
    })
}
