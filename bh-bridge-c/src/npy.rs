//! Arrays in files of NumPy's `.npy` format.

use crate::create::filled;
use crate::error::{bh_status, frame, frame_out, read_text};
use crate::handle::{self, bh_array, bh_context, context};
use bh_bytecode::view::element_count;
use bh_bytecode::{DType, MAX_RANK};
use bh_core::Error;
use bh_core::abi::status;
use std::ffi::c_char;
use std::fs::File;
use std::io::{Read, Write};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Data starts at a multiple of this.
const ALIGNMENT: usize = 64;
/// Longest header that is believed.
const MAX_HEADER: usize = 1 << 20;

/// Writes an array to a file in NumPy's format, as `numpy.save`. Waits for the elements.
///
/// # Safety
/// `path` must be a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_save(path: *const c_char, a: *const bh_array) -> bh_status {
    frame(|| {
        // SAFETY: promised by the caller.
        let path = unsafe { read_text(path, "path") }?;
        let array = handle::array(a, "a")?;
        let info = array.recorder.info(array.id)?;
        let mut bytes = vec![0u8; info.view.len() as usize * info.dtype.size()];
        // SAFETY: as many bytes as all elements have.
        unsafe { array.recorder.read(array.id, bytes.as_mut_ptr(), None)? };
        let write = || {
            let mut file = File::create(path)?;
            file.write_all(&head(info.dtype, info.view.shape()))?;
            file.write_all(&bytes)?;
            file.sync_data()
        };
        write().map_err(|error| file_error(path, &error.to_string()))
    })
}

/// A new array with the contents of a file in NumPy's format, as `numpy.load`.
///
/// # Safety
/// `out` must be null or the address of a pointer, `path` a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_load(out: *mut *mut bh_array, context: *mut bh_context, path: *const c_char) -> bh_status {
    frame_out(out, || {
        // SAFETY: promised by the caller.
        let path = unsafe { read_text(path, "path") }?;
        let context = self::context(context)?;
        let mut file = File::open(path).map_err(|error| file_error(path, &error.to_string()))?;
        let Contents { dtype, fortran_order, mut shape, bytes } =
            read(&mut file).map_err(|text| file_error(path, &text))?;
        if fortran_order {
            shape.reverse();
        }
        let loaded = filled(context, dtype, &shape, |recorder, array| {
            // SAFETY: as many bytes as all elements have.
            unsafe { recorder.write(array, bytes.as_ptr(), None) }
        })?;
        if !fortran_order {
            return Ok(loaded);
        }
        // The first dimension runs fastest: the reverse of C order.
        let array = handle::array(loaded, "out")?;
        let order: Vec<usize> = (0..shape.len()).rev().collect();
        let turned = array.recorder.derive(array.id, |view| view.transpose(&order));
        array.recorder.free(array.id)?;
        turned.map(|id| array.sibling(id))
    })
}

fn file_error(path: &str, text: &str) -> Error {
    Error::new(status::FILE, format!("{path}: {text}"))
}

/// NumPy's name of a type.
fn descriptor(dtype: DType) -> String {
    let kind = match dtype {
        DType::Bool => 'b',
        _ if dtype.is_complex() => 'c',
        _ if dtype.is_float() => 'f',
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 'u',
        _ => 'i',
    };
    let order = if dtype.size() == 1 { '|' } else { '<' };
    format!("{order}{kind}{}", dtype.size())
}

/// All that comes before the data.
fn head(dtype: DType, shape: &[i64]) -> Vec<u8> {
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let mut text =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descriptor(dtype), extents.trim_end());
    let before = MAGIC.len() + 4;
    let padding = ALIGNMENT - (before + text.len() + 1) % ALIGNMENT;
    text.push_str(&" ".repeat(padding % ALIGNMENT));
    text.push('\n');
    let mut head = MAGIC.to_vec();
    head.extend([1, 0]);
    head.extend((text.len() as u16).to_le_bytes());
    head.extend(text.as_bytes());
    head
}

/// What a file holds.
struct Contents {
    dtype: DType,
    fortran_order: bool,
    shape: Vec<i64>,
    bytes: Vec<u8>,
}

fn read(file: &mut File) -> std::result::Result<Contents, String> {
    let mut fixed = [0u8; 8];
    file.read_exact(&mut fixed).map_err(|_| "the file ends before its header".to_owned())?;
    if !fixed.starts_with(MAGIC) {
        return Err("this is no file in NumPy's format".into());
    }
    let wide = match fixed[6] {
        1 => false,
        2 | 3 => true,
        version => return Err(format!("version {version} of the format is not known")),
    };
    let mut length = [0u8; 4];
    let digits = if wide { 4 } else { 2 };
    file.read_exact(&mut length[..digits]).map_err(|_| "the file ends in its header".to_owned())?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_HEADER {
        return Err(format!("a header of {length} bytes is too long"));
    }
    let mut text = vec![0u8; length];
    file.read_exact(&mut text).map_err(|_| "the file ends in its header".to_owned())?;
    let text = String::from_utf8_lossy(&text);
    let (dtype, fortran_order, shape) = parse(&text)?;
    let wanted = element_count(&shape).and_then(|count| usize::try_from(count).ok()?.checked_mul(dtype.size()));
    let wanted = wanted.ok_or_else(|| format!("shape {shape:?} has too many elements"))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() != wanted {
        return Err(format!(
            "the file holds {} bytes of data, but shape {shape:?} of {dtype} has {wanted}",
            bytes.len()
        ));
    }
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
    Ok(Contents { dtype, fortran_order, shape, bytes })
}

/// Reads the header's dictionary.
fn parse(text: &str) -> std::result::Result<(DType, bool, Vec<i64>), String> {
    let value = |key: &str| {
        let rest = text.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
        rest.ok_or_else(|| format!("the header has no '{key}'"))
    };
    let name = value("descr")?.split('\'').nth(1).unwrap_or_default();
    let little = name.starts_with(['<', '|', '=']);
    let found = DType::ALL.into_iter().find(|&dtype| little && descriptor(dtype)[1..] == name[1..]);
    let dtype = found.ok_or_else(|| format!("element type '{name}' is not supported"))?;
    let fortran_order = value("fortran_order")?.starts_with("True");
    let shape = value("shape")?;
    let list = shape.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(list, _)| list);
    let extents = list.ok_or("the header's shape is no tuple")?.split(',').map(str::trim);
    let shape: Vec<i64> = extents
        .filter(|extent| !extent.is_empty())
        .map(|extent| {
            extent.parse().ok().filter(|&extent| extent >= 0).ok_or_else(|| format!("'{extent}' is no extent"))
        })
        .collect::<std::result::Result<_, String>>()?;
    if shape.len() > MAX_RANK {
        return Err(format!("{} dimensions are more than {MAX_RANK}", shape.len()));
    }
    Ok((dtype, fortran_order, shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_back() {
        for (dtype, shape) in
            [(DType::F64, vec![3, 4]), (DType::Bool, vec![]), (DType::C64, vec![7]), (DType::U16, vec![0, 2])]
        {
            let head = head(dtype, &shape);
            assert_eq!(head.len() % ALIGNMENT, 0);
            let text = String::from_utf8_lossy(&head[10..]).into_owned();
            assert_eq!(parse(&text), Ok((dtype, false, shape)));
        }
    }

    #[test]
    fn wrong_heads_are_refused() {
        for text in [
            "{}",
            "{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }",
            "{'descr': '', 'fortran_order': False, 'shape': (3,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': 3, }",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
