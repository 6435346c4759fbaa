//! Arrays in files of NumPy's `.npy` format.

use crate::create::filled;
use crate::error::{bh_status, frame, frame_out, read_text, with_place};
use crate::handle::{self, bh_array, bh_context, context};
use bh_bytecode::batch::base_bytes;
use bh_bytecode::view::element_count;
use bh_bytecode::{DType, Opcode};
use bh_core::abi::{access, status};
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, ArrayInfo, Input, Recorder};
use std::ffi::c_char;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Data starts at a multiple of this.
const ALIGNMENT: usize = 64;
/// From this size on, ranks of a cluster read and write their parts of a file themselves.
const SHARED_BYTES: usize = 1 << 20;
/// Longest header that is believed.
const MAX_HEADER: usize = 1 << 20;

/// Writes an array to a file in NumPy's format, as `numpy.save`. Waits for the elements. Of a view that is not in one piece
/// a copy is made for the time of the call.
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
        if info.view.is_contiguous() {
            return save(path, array.recorder, array.id, &info);
        }
        let copy = with_place(|place| {
            array.recorder.operate_new(Opcode::Copy, 0, Some(info.dtype), &[Input::Array(array.id)], place)
        })?;
        let saved = save(path, array.recorder, copy, &info);
        saved.and(array.recorder.free(copy))
    })
}

/// Writes an array whose elements are in one piece.
fn save(path: &str, recorder: &Recorder, array: ArrayId, info: &ArrayInfo) -> Result<()> {
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
        let written = by_ranks(recorder, path, offset, method, &[note], &[Input::Array(array)]);
        return written.and(recorder.free(note));
    }
    let data = recorder.map(array, access::READ)?;
    // SAFETY: the map makes all elements readable, and they are in one piece.
    let written = write(unsafe { std::slice::from_raw_parts(data, bytes) }).map_err(failed);
    written.and(recorder.unmap(array))
}

/// A new array with the contents of a file in NumPy's format, as `numpy.load`. The data goes from the file to the array
/// without detours.
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
        let Head { dtype, fortran_order, mut shape, bytes } =
            read_head(&mut file).map_err(|text| file_error(path, &text))?;
        if fortran_order {
            shape.reverse();
        }
        let offset = file.stream_position().map_err(|error| file_error(path, &error.to_string()))?;
        let loaded = filled(context, dtype, &shape, |recorder, array| {
            if bytes as usize >= SHARED_BYTES
                && dtype != DType::Bool
                && let Ok(method) = recorder.extension("cluster_file_read")
            {
                return by_ranks(recorder, path, offset, method, &[array], &[]);
            }
            let data = if bytes > 0 {
                recorder.map(array, access::WRITE | access::DISCARD)?
            } else {
                NonNull::dangling().as_ptr()
            };
            // SAFETY: the map has place for all bytes.
            let read = unsafe { read_data(&mut file, data, bytes, dtype == DType::Bool) };
            let unmapped = if bytes > 0 { recorder.unmap(array) } else { Ok(()) };
            read.map_err(|text| file_error(path, &text)).and(unmapped)
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

/// On a stack of several ranks: lets each rank move its own elements, which lie behind `offset` in the file, by a method of
/// the cluster manager.
fn by_ranks(
    recorder: &Recorder,
    path: &str,
    offset: u64,
    method: Opcode,
    outputs: &[ArrayId],
    inputs: &[Input],
) -> Result<()> {
    // The method takes the file that was named last.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let whole = std::path::absolute(path).map_err(|error| file_error(path, &error.to_string()))?;
    recorder.message(&format!("cluster file {offset} {}", whole.display()))?;
    with_place(|place| recorder.call_extension(method, outputs, inputs, place))?;
    recorder.sync()
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

/// What a file says that it holds.
#[derive(Debug, PartialEq)]
struct Head {
    dtype: DType,
    fortran_order: bool,
    shape: Vec<i64>,
    /// Bytes of data.
    bytes: u64,
}

/// Reads exactly so many bytes; the end of the file is told apart from failures.
fn exactly(file: &mut impl Read, bytes: &mut [u8], place: &str) -> std::result::Result<(), String> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => format!("the file ends {place}"),
        _ => error.to_string(),
    })
}

fn read_head(file: &mut File) -> std::result::Result<Head, String> {
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
    // The size of the file tells before any memory is taken, where it is known.
    let found = file.metadata().map_err(|error| error.to_string())?;
    let head = (8 + digits + length) as u64;
    if found.is_file() && found.len() != head.saturating_add(bytes) {
        let there = found.len().saturating_sub(head);
        return Err(format!("the file holds {there} bytes of data, but shape {shape:?} of {dtype} has {bytes}"));
    }
    Ok(Head { dtype, fortran_order, shape, bytes })
}

/// Reads the data to memory, and makes truth values of what is not 0.
///
/// # Safety
/// `data` must have place for so many bytes.
unsafe fn read_data(file: &mut impl Read, data: *mut u8, bytes: u64, truth: bool) -> std::result::Result<(), String> {
    let mut chunk = [0u8; 1 << 16];
    let mut done = 0;
    while done < bytes {
        let part = &mut chunk[..(bytes - done).min(1 << 16) as usize];
        exactly(file, part, "in its data")?;
        if truth {
            part.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        // SAFETY: promised by the caller.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), data.add(done as usize), part.len()) };
        done += part.len() as u64;
    }
    match file.read(&mut chunk[..1]) {
        Ok(0) => Ok(()),
        Ok(_) => Err("data follows the last element".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// The dictionary in the header: a Python literal with exactly three keys.
mod header {
    use super::descriptor;
    use bh_bytecode::{DType, MAX_RANK};

    type Found<T> = std::result::Result<T, String>;

    /// What is left of the text.
    struct Cursor<'a>(&'a str);

    impl<'a> Cursor<'a> {
        fn skip_space(&mut self) {
            self.0 = self.0.trim_start_matches([' ', '\t', '\n', '\r']);
        }

        /// Takes a token if it comes next.
        fn accept(&mut self, token: &str) -> bool {
            self.skip_space();
            match self.0.strip_prefix(token) {
                Some(rest) => {
                    self.0 = rest;
                    true
                }
                None => false,
            }
        }

        fn expect(&mut self, token: &str) -> Found<()> {
            if self.accept(token) {
                Ok(())
            } else {
                Err(format!("the header has no {token} before '{}'", self.start()))
            }
        }

        /// Some characters, for messages.
        fn start(&self) -> String {
            self.0.trim_end().chars().take(20).collect()
        }

        /// A string in quotes.
        fn string(&mut self) -> Found<&'a str> {
            self.skip_space();
            let quote = self.0.chars().next().filter(|quote| "'\"".contains(*quote));
            let end = quote.and_then(|quote| self.0[1..].find(quote));
            let end = end.ok_or_else(|| format!("the header has no string at '{}'", self.start()))?;
            let text = &self.0[1..=end];
            self.0 = &self.0[end + 2..];
            Ok(text)
        }

        fn truth(&mut self) -> Found<bool> {
            match (self.accept("True"), self.accept("False")) {
                (true, false) => Ok(true),
                (false, true) => Ok(false),
                _ => Err(format!("'fortran_order' is neither True nor False at '{}'", self.start())),
            }
        }

        /// A tuple of extents: a comma follows each but the last of several.
        fn tuple(&mut self) -> Found<Vec<i64>> {
            self.expect("(")?;
            let mut extents = Vec::new();
            let mut comma = true;
            while !self.accept(")") {
                if !comma {
                    return Err(format!("the header's shape is no tuple at '{}'", self.start()));
                }
                self.skip_space();
                let digits = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
                let (number, rest) = self.0.split_at(digits);
                // Python 2 wrote long integers with an L.
                self.0 = rest.strip_prefix('L').unwrap_or(rest);
                let number = number.parse().map_err(|_| format!("there is no extent at '{number}{}'", self.start()))?;
                if extents.len() == MAX_RANK {
                    return Err(format!("there are more than {MAX_RANK} dimensions"));
                }
                extents.push(number);
                comma = self.accept(",");
            }
            if extents.len() == 1 && !comma {
                return Err("the header's shape is a number in brackets, no tuple".into());
            }
            Ok(extents)
        }
    }

    /// Type, order and shape.
    pub(super) fn parse(text: &str) -> Found<(DType, bool, Vec<i64>)> {
        let mut cursor = Cursor(text);
        let (mut dtype, mut fortran_order, mut shape) = (None, None, None);
        cursor.expect("{")?;
        let mut comma = true;
        while !cursor.accept("}") {
            if !comma {
                return Err(format!("a comma is missing in the header before '{}'", cursor.start()));
            }
            let key = cursor.string()?;
            cursor.expect(":")?;
            let again = match key {
                "descr" => dtype.replace(element(cursor.string()?)?).is_some(),
                "fortran_order" => fortran_order.replace(cursor.truth()?).is_some(),
                "shape" => shape.replace(cursor.tuple()?).is_some(),
                _ => return Err(format!("the header has an unknown key '{key}'")),
            };
            if again {
                return Err(format!("the header has '{key}' twice"));
            }
            comma = cursor.accept(",");
        }
        cursor.skip_space();
        if !cursor.0.is_empty() {
            return Err(format!("'{}' follows the header's end", cursor.start()));
        }
        let missing = |key: &str| format!("the header has no '{key}'");
        Ok((
            dtype.ok_or_else(|| missing("descr"))?,
            fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape.ok_or_else(|| missing("shape"))?,
        ))
    }

    fn element(name: &str) -> Found<DType> {
        let little = name.starts_with(['<', '|', '=']);
        let found = DType::ALL.into_iter().find(|&dtype| little && descriptor(dtype)[1..] == name[1..]);
        found.ok_or_else(|| format!("element type '{name}' is not supported"))
    }
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
            assert_eq!(header::parse(&text), Ok((dtype, false, shape)));
        }
    }

    #[test]
    fn other_ways_to_write_a_head_are_read() {
        for text in [
            "{\"shape\": (2, 3), \"descr\": \"<f8\", \"fortran_order\": True}",
            "  { 'fortran_order' :True,'shape':( 2L,3L ,) , 'descr':'=f8' ,}\n",
        ] {
            assert_eq!(header::parse(text), Ok((DType::F64, true, vec![2, 3])), "{text}");
        }
        let parsed = header::parse("{'descr': '|b1', 'fortran_order': False, 'shape': ()}");
        assert_eq!(parsed, Ok((DType::Bool, false, vec![])));
    }

    #[test]
    fn damaged_heads_are_no_panic() {
        let good = String::from_utf8(head(DType::F32, &[3, 40, 5])[10..].to_vec()).unwrap();
        for at in 0..good.len() {
            for byte in [b'\'', b'(', b')', b',', b'9', b'-', b'{', b'}', b'L', b' '] {
                let mut bytes = good.clone().into_bytes();
                bytes[at] = byte;
                let _ = header::parse(std::str::from_utf8(&bytes).unwrap());
                bytes.remove(at);
                let _ = header::parse(std::str::from_utf8(&bytes).unwrap());
            }
            let _ = header::parse(&good[..at]);
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
            "{'descr': '<f8', 'fortran_order': Falsehood, 'shape': (3,), }",
            "{'descr': '<f8', 'fortran_order': Trueish, 'shape': (3,), }",
            "{'descr': '<f8', 'fortran_order': 1, 'shape': (3,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3 4), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3,,4), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (+3,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (0x3,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), ",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), } x",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'shape': (3,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'more': 1}",
            "{'descr': '<f8' 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f8', 'shape': (3,)}",
            "{'descr: '<f8', 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1), }",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }",
        ] {
            assert!(header::parse(text).is_err(), "{text}");
        }
    }
}
