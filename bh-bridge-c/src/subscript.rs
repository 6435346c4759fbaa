//! Parts of arrays by a whole list of subscripts, as `a[1, 2:, None, ..., ::-1]` in NumPy.

use crate::error::{Out, argument, bh_status, frame_out, null};
use crate::handle::{self, bh_array};
use bh_core::Result;
use bh_recorder::Subscript;

/// One subscript.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct bh_subscript {
    /// 0: the index `start`; 1: a slice; 2: a whole axis; 3: a new axis of extent 1; 4: all axes that the
    /// others leave over.
    pub kind: i32,
    /// First index of a slice; `BH_NONE` for the end where it begins.
    pub start: i64,
    /// Index that a slice ends before; `BH_NONE` for the end of the axis.
    pub stop: i64,
    /// Distance of a slice's indices.
    pub step: i64,
}

const INDEX: i32 = 0;
const SLICE: i32 = 1;
const WHOLE: i32 = 2;
const NEW_AXIS: i32 = 3;
const ELLIPSIS: i32 = 4;

/// The part of an array that a list of subscripts names; axes after the list are whole. As in Python, an
/// index outside the array is an error, and bounds of slices are clipped.
///
/// # Safety
/// `out` must be null or the address of a pointer; `subscripts` must be null or `count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_part(
    out: *mut *mut bh_array,
    a: *const bh_array,
    count: usize,
    subscripts: *const bh_subscript,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let array = handle::array(a, "a")?;
        if subscripts.is_null() && count > 0 {
            return Err(null("subscripts"));
        }
        // SAFETY: not null, and so `count` structs, as `# Safety` asks, which are used within the call only.
        let list = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(subscripts, count) } };
        array.recorder.part(array.id, list.iter().map(subscript)).map(|id| array.sibling(id))
    })
}

fn subscript(entry: &bh_subscript) -> Result<Subscript> {
    Ok(match entry.kind {
        INDEX => Subscript::Index(entry.start),
        SLICE => Subscript::Slice { start: bound(entry.start), stop: bound(entry.stop), step: entry.step },
        WHOLE => Subscript::Whole,
        NEW_AXIS => Subscript::NewAxis,
        ELLIPSIS => Subscript::Ellipsis,
        kind => return Err(argument(format!("there is no kind {kind} of subscripts"))),
    })
}

/// A bound of a slice; `None` for the end of the axis.
fn bound(bound: i64) -> Option<i64> {
    (bound != i64::MIN).then_some(bound)
}
