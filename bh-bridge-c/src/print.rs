//! Arrays as text, in NumPy's manner.

use crate::error::{bh_status, frame, give_text};
use crate::handle::{self, bh_array};
use bh_bytecode::{Constant, DType, c128};
use bh_core::Result;
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
    let mut texts = Vec::new();
    let mut index = Vec::new();
    let mut read = |index: &[i64]| -> Result<String> {
        let element =
            array.recorder.derive(array.id, |view| index.iter().try_fold(*view, |view, &at| view.index(0, at)))?;
        let value = array.recorder.read_scalar(element);
        array.recorder.free(element)?;
        Ok(text(value?))
    };
    if !summary {
        texts = all(&array, info.dtype, info.view.len())?;
    } else {
        collect(&shown, &mut index, &mut read, &mut texts)?;
    }
    let width = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let mut next = texts.iter();
    let mut out = String::new();
    lay_out(&shown, shape, 0, width, &mut next, &mut out);
    Ok(out)
}

/// The indices of a dimension that are shown.
fn shown(extent: i64, summary: bool) -> Vec<i64> {
    if summary && extent > 2 * EDGE { (0..EDGE).chain(extent - EDGE..extent).collect() } else { (0..extent).collect() }
}

fn all(array: &handle::Array, dtype: DType, len: i64) -> Result<Vec<String>> {
    let mut bytes = vec![0u8; len as usize * dtype.size()];
    // SAFETY: as many bytes as all elements have.
    unsafe { array.recorder.read(array.id, bytes.as_mut_ptr(), None)? };
    Ok(bytes.chunks_exact(dtype.size()).map(|bytes| text(Constant::from_bytes(dtype, bytes))).collect())
}

fn collect(
    shown: &[Vec<i64>],
    index: &mut Vec<i64>,
    read: &mut impl FnMut(&[i64]) -> Result<String>,
    texts: &mut Vec<String>,
) -> Result<()> {
    match shown.get(index.len()) {
        None => texts.push(read(index)?),
        Some(indices) => {
            for &at in indices {
                index.push(at);
                collect(shown, index, read, texts)?;
                index.pop();
            }
        }
    }
    Ok(())
}

fn lay_out<'a>(
    shown: &[Vec<i64>],
    shape: &[i64],
    depth: usize,
    width: usize,
    next: &mut impl Iterator<Item = &'a String>,
    out: &mut String,
) {
    let Some(indices) = shown.get(depth) else {
        let text = next.next().map_or("", String::as_str);
        let width = if shape.is_empty() { 0 } else { width };
        out.push_str(&format!("{text:>width$}"));
        return;
    };
    let inner = depth + 1 == shape.len();
    let gap = if inner { " ".to_owned() } else { "\n".repeat(shape.len() - depth - 1) + &" ".repeat(depth + 1) };
    out.push('[');
    for (place, &at) in indices.iter().enumerate() {
        if place > 0 {
            out.push_str(&gap);
            if at != indices[place - 1] + 1 {
                out.push_str("...");
                out.push_str(&gap);
            }
        }
        lay_out(shown, shape, depth + 1, width, next, out);
    }
    out.push(']');
}

fn text(value: Constant) -> String {
    match value.dtype() {
        DType::Bool => value.to::<bool>().to_string(),
        DType::F32 => format!("{:?}", value.to::<f32>()),
        DType::F64 => format!("{:?}", value.to::<f64>()),
        DType::C64 | DType::C128 => {
            let value: c128 = value.to();
            format!("{}{:+}j", value.re, value.im)
        }
        DType::U64 => value.to::<u64>().to_string(),
        _ => value.to::<i64>().to_string(),
    }
}
