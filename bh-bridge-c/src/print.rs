//! Arrays as text, in NumPy's manner.

use crate::error::{Out, bh_status, frame, give_text};
use crate::handle::{self, bh_array};
use crate::text;
use bh_bytecode::{Constant, DType};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::Inside;
use std::ffi::c_char;
use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

/// Arrays with more elements than this are shown by their edges.
const SUMMARY: i64 = 1000;
/// Elements shown at each edge then.
const EDGE: i64 = 3;
/// Elements shown in all, at most: of arrays of many dimensions less is shown at the edges of the outer ones.
const SHOWN: i64 = 10_000;

/// Prints an array to standard output, large ones by their edges.
#[unsafe(no_mangle)]
pub extern "C" fn bh_print(a: *const bh_array) -> bh_status {
    frame(|| {
        let _inside = Inside::enter();
        let mut text = format(a)?;
        text.push('\n');
        // SAFETY: the file is not closed here; Rust's own standard output says nothing of one that is closed.
        let mut output = ManuallyDrop::new(unsafe { File::from_raw_fd(1) });
        let failed = |error| Error::new(status::FILE, format!("the array cannot be printed: {error}"));
        output.write_all(text.as_bytes()).map_err(failed)
    })
}

/// The text that `bh_print` prints. It is valid until the next call of this thread that returns a text.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_format(out: *mut *const c_char, a: *const bh_array) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame(|| give_text(out, &format(a)?))
}

fn format(a: *const bh_array) -> Result<String> {
    let array = handle::array(a, "a")?;
    let info = array.recorder.info(array.id)?;
    let shape = info.view.shape();
    let summary = info.view.len() > SUMMARY;
    // Only what is shown is read: the leading edge and, if there is more, the trailing one of each dimension.
    let shown = shown(shape, summary);
    let mut elements = Vec::new();
    let mut index = Vec::new();
    let mut read = |index: &[i64]| -> Result<Constant> {
        let element =
            array.recorder.derive(array.id, |view| index.iter().try_fold(*view, |view, &at| view.index(0, at)))?;
        let value = array.recorder.read_scalar(element);
        array.recorder.free(element)?;
        value
    };
    if !summary {
        elements = all(&array, info.dtype, info.view.len())?;
    } else {
        collect(&shown, &mut index, &mut read, &mut elements)?;
    }
    Ok(text::array(&elements, info.dtype, &shown, shape))
}

/// The indices of each dimension that are shown.
fn shown(shape: &[i64], summary: bool) -> Vec<Vec<i64>> {
    let mut edges = vec![if summary { EDGE } else { i64::MAX }; shape.len()];
    let count = |edge: i64, extent: i64| if edge == 0 { 1 } else { extent.min(edge.saturating_mul(2)) };
    if summary {
        // One element at an edge, and then none but the first, of one dimension after the other.
        for (edge, dim) in [1, 0].iter().flat_map(|&edge| (0..shape.len()).map(move |dim| (edge, dim))) {
            let all =
                edges.iter().zip(shape).try_fold(1i64, |all, (&edge, &extent)| all.checked_mul(count(edge, extent)));
            if all.is_some_and(|all| all <= SHOWN) {
                break;
            }
            edges[dim] = edge;
        }
    }
    let indices = |(&edge, &extent): (&i64, &i64)| match extent > edge.saturating_mul(2) {
        true if edge == 0 => vec![0],
        true => (0..edge).chain(extent - edge..extent).collect(),
        false => (0..extent).collect(),
    };
    edges.iter().zip(shape).map(indices).collect()
}

fn all(array: &handle::Array, dtype: DType, len: i64) -> Result<Vec<Constant>> {
    let mut bytes = vec![0u8; len as usize * dtype.size()];
    // SAFETY: as many bytes as all elements have.
    unsafe { array.recorder.read(array.id, bytes.as_mut_ptr(), None)? };
    Ok(bytes.chunks_exact(dtype.size()).map(|bytes| Constant::from_bytes(dtype, bytes)).collect())
}

fn collect(
    shown: &[Vec<i64>],
    index: &mut Vec<i64>,
    read: &mut impl FnMut(&[i64]) -> Result<Constant>,
    elements: &mut Vec<Constant>,
) -> Result<()> {
    match shown.get(index.len()) {
        None => elements.push(read(index)?),
        Some(indices) => {
            for &at in indices {
                index.push(at);
                collect(shown, index, read, elements)?;
                index.pop();
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_bounded_for_all_shapes() {
        assert_eq!(shown(&[3, 2], false), [vec![0, 1, 2], vec![0, 1]]);
        assert_eq!(shown(&[1000, 2], true), [vec![0, 1, 2, 997, 998, 999], vec![0, 1]]);
        assert_eq!(shown(&[100; 5], true), [[0, 1, 2, 97, 98, 99]; 5]);
        for rank in 1..=16 {
            for extent in [2, 6, 7, 100, i64::MAX] {
                let shape = vec![extent; rank];
                let all: i64 = shown(&shape, true).iter().map(|indices| indices.len() as i64).product();
                assert!((1..=SHOWN).contains(&all), "{shape:?}: {all}");
            }
        }
        assert_eq!(shown(&[7; 16], true)[0], [0], "the outermost are cut first");
    }
}
