//! Arrays as text, in NumPy's manner.

use crate::error::{bh_status, frame, give_text};
use crate::handle::{self, bh_array};
use crate::text;
use bh_bytecode::{Constant, DType};
use bh_core::Result;
use bh_recorder::Inside;
use std::ffi::c_char;
use std::io::Write;

/// Arrays with more elements than this are shown by their edges.
const SUMMARY: i64 = 1000;
/// Elements shown at each edge then.
const EDGE: i64 = 3;

/// Prints an array to standard output, large ones by their edges.
#[unsafe(no_mangle)]
pub extern "C" fn bh_print(a: *const bh_array) -> bh_status {
    frame(|| {
        let _inside = Inside::enter();
        let mut text = format(a)?;
        text.push('\n');
        // A closed standard output is no concern of the array.
        let _ = std::io::stdout().write_all(text.as_bytes());
        Ok(())
    })
}

/// The text that `bh_print` prints. It is valid until the next call of this thread that returns a text.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_format(out: *mut *const c_char, a: *const bh_array) -> bh_status {
    frame(|| give_text(out, &format(a)?))
}

fn format(a: *const bh_array) -> Result<String> {
    let array = handle::array(a, "a")?;
    let info = array.recorder.info(array.id)?;
    let shape = info.view.shape();
    let summary = info.view.len() > SUMMARY;
    // Only what is shown is read: the leading edge and, if there is more, the trailing one of each dimension.
    let shown: Vec<Vec<i64>> = shape.iter().map(|&extent| shown(extent, summary)).collect();
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

/// The indices of a dimension that are shown.
fn shown(extent: i64, summary: bool) -> Vec<i64> {
    if summary && extent > 2 * EDGE { (0..EDGE).chain(extent - EDGE..extent).collect() } else { (0..extent).collect() }
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
