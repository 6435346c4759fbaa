//! Arrays in files of NumPy's `.npy` format.

mod header;

use bh_bytecode::batch::base_bytes;
use bh_bytecode::view::element_count;
use bh_bytecode::{DType, Opcode};
use bh_core::abi::{access, status};
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, ArrayInfo, Input, Location, Patience, Recorder};
use header::{MAGIC, head};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// From this size on, ranks of a cluster access their parts of a file themselves.
const SHARED_BYTES: usize = 1 << 20;
/// The longest header that is accepted.
const MAX_HEADER: usize = 1 << 20;

/// Writes an array to a file, like `numpy.save`. Waits for the elements. Copies a view that is not contiguous.
pub fn save(
    recorder: &Recorder,
    path: &str,
    array: ArrayId,
    place: Location<'_>,
    patience: &mut Patience<'_>,
) -> Result<()> {
    let info = recorder.info(array)?;
    if info.view.is_contiguous() {
        return save_whole(recorder, path, (array, &info), place, patience);
    }
    let copy = recorder.operate_new(Opcode::Copy, 0, Some(info.dtype), &[Input::Array(array)], place)?;
    let saved = save_whole(recorder, path, (copy, &info), place, patience);
    saved.and(recorder.free(copy))
}

/// Writes a contiguous array.
fn save_whole(
    recorder: &Recorder,
    path: &str,
    (array, info): (ArrayId, &ArrayInfo),
    place: Location<'_>,
    patience: &mut Patience<'_>,
) -> Result<()> {
    let bytes = info.view.len() as usize * info.dtype.size();
    let write = |data: &[u8]| {
        let mut file = File::create(path)?;
        file.write_all(&head(info.dtype, info.view.shape()))?;
        file.write_all(data)?;
        file.sync_data()
    };
    let failed = |error: std::io::Error| file_error(path, &error.to_string());
    if bytes == 0 {
        return write(&[]).map_err(failed);
    }
    // Only stacks of several ranks have the method.
    if bytes >= SHARED_BYTES
        && let Ok(method) = recorder.extension("cluster_file_write")
    {
        write(&[]).map_err(failed)?;
        let offset = head(info.dtype, info.view.shape()).len() as u64;
        let note = recorder.empty(DType::U8, &[1])?;
        let written = by_ranks(recorder, path, offset, method, &[note], &[Input::Array(array)], place);
        return written.and(recorder.free(note));
    }
    // Loans allow other threads to write to the array in the meantime; maps would not.
    let lent = recorder.lend_with(array, patience)?;
    // SAFETY: all elements are lent for reading, and they are contiguous.
    let written = write(unsafe { std::slice::from_raw_parts(lent.data, bytes) }).map_err(failed);
    written.and(recorder.end_lending(&lent))
}

/// A new array with the contents of a file, like `numpy.load`. The data is read directly into the array. Fails with the
/// status FILE for other files, and for element types that bh lacks.
pub fn load(recorder: &Recorder, path: &str, place: Location<'_>) -> Result<ArrayId> {
    let mut file = File::open(path).map_err(|error| file_error(path, &error.to_string()))?;
    let size = file.metadata().map_err(|error| file_error(path, &error.to_string()))?;
    let size = size.is_file().then_some(size.len());
    let mut head = read_head(&mut file, size).map_err(|text| file_error(path, &text))?;
    if head.fortran_order {
        head.shape.reverse();
    }
    let array = recorder.empty(head.dtype, &head.shape)?;
    let filled = fill(recorder, path, &mut file, &head, array, place);
    if !head.fortran_order || filled.is_err() {
        return match filled {
            Ok(()) => Ok(array),
            Err(error) => {
                recorder.free_later(array);
                Err(error)
            }
        };
    }
    // Fortran order: the reverse of C order.
    let order: Vec<usize> = (0..head.shape.len()).rev().collect();
    let turned = recorder.derive(array, |view| view.transpose(&order));
    recorder.free_later(array);
    turned
}

/// Reads a file's data into an array of the file's order.
fn fill(
    recorder: &Recorder,
    path: &str,
    file: &mut File,
    head: &Head,
    array: ArrayId,
    place: Location<'_>,
) -> Result<()> {
    let (truth, bytes) = (head.dtype == DType::Bool, head.bytes);
    let offset = file.stream_position().map_err(|error| file_error(path, &error.to_string()))?;
    if bytes as usize >= SHARED_BYTES
        && !truth
        && let Ok(method) = recorder.extension("cluster_file_read")
    {
        return by_ranks(recorder, path, offset, method, &[array], &[], place);
    }
    let data = match bytes {
        0 => NonNull::dangling().as_ptr(),
        _ => recorder.map(array, access::WRITE | access::DISCARD)?,
    };
    // SAFETY: the map exposes `bytes` writable bytes.
    let read = unsafe { read_data(file, data, bytes, truth) };
    let unmapped = if bytes > 0 { recorder.unmap(array) } else { Ok(()) };
    read.map_err(|text| file_error(path, &text)).and(unmapped)
}

/// On a stack of several ranks: lets each rank transfer its own elements, at `offset` in the file, by a method of the
/// cluster manager.
fn by_ranks(
    recorder: &Recorder,
    path: &str,
    offset: u64,
    method: Opcode,
    outputs: &[ArrayId],
    inputs: &[Input],
    place: Location<'_>,
) -> Result<()> {
    // The method uses the file that was named last.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let whole = std::path::absolute(path).map_err(|error| file_error(path, &error.to_string()))?;
    recorder.message(&format!("cluster file {offset} {}", whole.display()))?;
    recorder.call_extension(method, outputs, inputs, place)?;
    recorder.sync()
}

fn file_error(path: &str, text: &str) -> Error {
    Error::new(status::FILE, format!("{path}: {text}"))
}

/// The contents of a file according to its header.
#[derive(Debug, PartialEq)]
struct Head {
    dtype: DType,
    fortran_order: bool,
    shape: Vec<i64>,
    /// Bytes of data.
    bytes: u64,
}

/// Fills `bytes` from the file; distinguishes the end of the file from failures.
fn exactly(file: &mut impl Read, bytes: &mut [u8], place: &str) -> std::result::Result<(), String> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => format!("the file ends {place}"),
        _ => error.to_string(),
    })
}

/// The type and shape of the array in a file with these contents, in the file's order.
pub fn npy_shape(mut contents: &[u8]) -> std::result::Result<(DType, Vec<i64>), String> {
    let size = contents.len() as u64;
    read_head(&mut contents, Some(size)).map(|head| (head.dtype, head.shape))
}

/// Reads everything before the data of a file. `size`: the file's size, if known.
fn read_head(file: &mut impl Read, size: Option<u64>) -> std::result::Result<Head, String> {
    let mut fixed = [0u8; 8];
    exactly(file, &mut fixed, "before its header")?;
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
    exactly(file, &mut length[..digits], "in its header")?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_HEADER {
        return Err(format!("a header of {length} bytes is too long"));
    }
    let mut text = vec![0u8; length];
    exactly(file, &mut text, "in its header")?;
    let text = std::str::from_utf8(&text).map_err(|_| "the header is no text")?;
    let (dtype, fortran_order, shape) = header::parse(text)?;
    let bytes = element_count(&shape).and_then(|count| base_bytes(dtype, count));
    let bytes = bytes.ok_or_else(|| format!("shape {shape:?} has too many elements"))?;
    // With a known size, the check needs no memory.
    let head = (8 + digits + length) as u64;
    if let Some(size) = size.filter(|&size| size != head.saturating_add(bytes)) {
        let there = size.saturating_sub(head);
        return Err(format!("the file holds {there} bytes of data, but shape {shape:?} of {dtype} has {bytes}"));
    }
    Ok(Head { dtype, fortran_order, shape, bytes })
}

/// Reads the data to memory; turns nonzero booleans into 1.
///
/// # Safety
/// `data` must be writable for `bytes` bytes.
unsafe fn read_data(file: &mut impl Read, data: *mut u8, bytes: u64, truth: bool) -> std::result::Result<(), String> {
    let mut chunk = [0u8; 1 << 16];
    let mut done = 0;
    while done < bytes {
        let part = &mut chunk[..(bytes - done).min(1 << 16) as usize];
        exactly(file, part, "in its data")?;
        if truth {
            part.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        // SAFETY: the part ends at most `bytes` bytes behind `data`, which the caller guarantees as writable; the chunk
        // is separate memory.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), data.add(done as usize), part.len()) };
        done += part.len() as u64;
    }
    match file.read(&mut chunk[..1]) {
        Ok(0) => Ok(()),
        Ok(_) => Err("data follows the last element".into()),
        Err(error) => Err(error.to_string()),
    }
}
