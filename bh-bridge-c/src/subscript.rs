//! Parts of arrays by a whole list of subscripts, as `a[1, 2:, None, ..., ::-1]` in NumPy.

use crate::error::{argument, bh_status, frame_out, null};
use crate::handle::{self, bh_array};
use bh_bytecode::View;
use bh_core::abi::status;
use bh_core::{Error, Result};

/// One subscript.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct bh_subscript {
    /// 0: the index `start`; 1: a slice; 2: a whole dimension; 3: a new dimension of extent 1; 4: all dimensions that the
    /// others leave over.
    pub kind: i32,
    /// First index of a slice; `BH_NONE` for the end where it begins.
    pub start: i64,
    /// Index that a slice ends before; `BH_NONE` for the end of the dimension.
    pub stop: i64,
    /// Distance of a slice's indices.
    pub step: i64,
}

const INDEX: i32 = 0;
const SLICE: i32 = 1;
const WHOLE: i32 = 2;
const NEW_AXIS: i32 = 3;
const ELLIPSIS: i32 = 4;

/// The part of an array that a list of subscripts names; dimensions after the list are whole. As in Python, an
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
    frame_out(out, || {
        let array = handle::array(a, "a")?;
        if subscripts.is_null() && count > 0 {
            return Err(null("subscripts"));
        }
        // SAFETY: not null, and as long as the caller promises.
        let list = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(subscripts, count) } };
        // The view of the part is found first, as its errors have codes of their own.
        let mut failure = None;
        let derived = array.recorder.derive(array.id, |view| {
            part(view, list).map_err(|error| {
                let text = error.text.clone();
                failure = Some(error);
                bh_bytecode::ViewError(text)
            })
        });
        match failure {
            Some(error) => Err(error),
            None => derived.map(|id| array.sibling(id)),
        }
    })
}

fn part(view: &View, list: &[bh_subscript]) -> Result<View> {
    let consumed = list.iter().filter(|entry| matches!(entry.kind, INDEX | SLICE | WHOLE)).count();
    let rank = view.rank();
    if consumed > rank {
        let text = format!("{consumed} subscripts are given for an array of shape {:?}", view.shape());
        return Err(Error::new(status::SHAPE, text));
    }
    let wrong = |error: bh_bytecode::ViewError| Error::new(status::BOUNDS, error.0);
    let mut now = *view;
    // Dimensions of the result so far.
    let mut dim = 0;
    let mut left_over = Some(rank - consumed);
    for entry in list {
        match entry.kind {
            INDEX => {
                now = now.index(dim, entry.start).map_err(wrong)?;
            }
            SLICE => {
                now = now.slice(dim, bound(entry.start), bound(entry.stop), entry.step).map_err(wrong)?;
                dim += 1;
            }
            WHOLE => dim += 1,
            NEW_AXIS => {
                now = now.new_axis(dim).map_err(wrong)?;
                dim += 1;
            }
            ELLIPSIS => {
                let more = left_over.take().ok_or_else(|| argument("more than one ellipsis is given".into()))?;
                dim += more;
            }
            kind => return Err(argument(format!("there is no kind {kind} of subscripts"))),
        }
    }
    Ok(now)
}

/// A bound of a slice; `None` for the end of the dimension.
fn bound(bound: i64) -> Option<i64> {
    (bound != i64::MIN).then_some(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn entry(kind: i32, start: i64, stop: i64, step: i64) -> bh_subscript {
        bh_subscript { kind, start, stop, step }
    }

    #[test]
    fn lists_of_subscripts() {
        let view = View::contiguous(&[3, 4, 5]).unwrap();
        let found =
            part(&view, &[entry(INDEX, 1, 0, 0), entry(ELLIPSIS, 0, 0, 0), entry(SLICE, i64::MIN, i64::MIN, -1)]);
        let found = found.unwrap();
        assert_eq!((found.start(), found.shape(), found.stride()), (24, &[4, 5][..], &[5, -1][..]));
        let found = part(&view, &[entry(WHOLE, 0, 0, 0), entry(NEW_AXIS, 0, 0, 0), entry(SLICE, 1, -1, 1)]).unwrap();
        assert_eq!((found.start(), found.shape()), (5, &[3, 1, 2, 5][..]));
        let found = part(&view, &[entry(SLICE, -9, 9, 2), entry(SLICE, 9, 12, 1)]).unwrap();
        assert_eq!(found.shape(), &[2, 0, 5], "bounds are clipped");
    }

    #[test]
    fn wrong_lists_are_refused() {
        let view = View::contiguous(&[3]).unwrap();
        for list in [
            &[entry(INDEX, 3, 0, 0)][..],
            &[entry(SLICE, 0, 3, 0)],
            &[entry(INDEX, 0, 0, 0), entry(INDEX, 0, 0, 0)],
            &[entry(ELLIPSIS, 0, 0, 0), entry(ELLIPSIS, 0, 0, 0)],
            &[entry(9, 0, 0, 0)],
        ] {
            assert!(part(&view, list).is_err(), "{list:?}");
        }
    }
}
