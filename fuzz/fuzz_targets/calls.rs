//! Calls of the C interface as bytes choose them, right and wrong ones: each succeeds or says what is wrong. The components are
//! found as by any program, through `BH_LIBRARY_PATH`.
#![no_main]

use bh_bridge_c as _;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

/// As in `bh.h`.
type Array = *mut c_void;

unsafe extern "C" {
    fn bh_error_message() -> *const c_char;
    fn bh_memory_limit(context: *mut c_void, bytes: u64) -> i32;
    fn bh_sync(context: *mut c_void) -> i32;
    fn bh_zeros(out: *mut Array, context: *mut c_void, dtype: i32, rank: i32, shape: *const i64) -> i32;
    fn bh_from_data_sized(
        out: *mut Array,
        context: *mut c_void,
        dtype: i32,
        rank: i32,
        shape: *const i64,
        data: *const c_void,
        capacity: usize,
    ) -> i32;
    fn bh_slice(out: *mut Array, a: Array, axis: i32, start: i64, stop: i64, step: i64) -> i32;
    fn bh_view(out: *mut Array, a: Array, start: i64, rank: i32, shape: *const i64, stride: *const i64) -> i32;
    fn bh_reshape(out: *mut Array, a: Array, rank: i32, shape: *const i64) -> i32;
    fn bh_transpose_sized(out: *mut Array, a: Array, count: usize, axes: *const i32) -> i32;
    fn bh_cast(out: *mut Array, a: Array, dtype: i32) -> i32;
    fn bh_op_new(out: *mut Array, opcode: u16, param: u16, dtype: i32, count: usize, inputs: *const Array) -> i32;
    fn bh_size(out: *mut i64, a: Array) -> i32;
    fn bh_read_sized(data: *mut c_void, capacity: usize, a: Array) -> i32;
    fn bh_free(a: Array) -> i32;
}

/// The status of a panic that was caught.
const PANIC: i32 = 502;

/// Arrays that live at a time, and the largest that are worked on.
const ARRAYS: usize = 6;
const LARGEST: i64 = 4096;

/// Numbers from bytes; zeros when they are over.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    /// Mostly small; else of any size.
    fn number(&mut self) -> i64 {
        match self.byte() {
            255 => i64::from_le_bytes(std::array::from_fn(|_| self.byte())),
            byte => i64::from(byte as i8),
        }
    }

    fn numbers(&mut self) -> [i64; 4] {
        std::array::from_fn(|_| self.number())
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Bytes(bytes);
    let mut arrays = [null_mut(); ARRAYS];
    // SAFETY: the arguments are as the header asks; what may be wrong are handles that are null, and numbers.
    unsafe {
        bh_memory_limit(null_mut(), 64 << 20);
        while !bytes.0.is_empty() {
            call(&mut bytes, &mut arrays);
        }
        for array in arrays {
            answered(bh_free(array));
        }
        answered(bh_sync(null_mut()));
    }
});

/// Makes a call, and keeps what it makes in place of another array.
///
/// # Safety
/// The arrays must be handles, or null.
unsafe fn call(bytes: &mut Bytes, arrays: &mut [Array; ARRAYS]) {
    let mut made: Array = null_mut();
    let kind = bytes.byte() % 9;
    let [a, b] = std::array::from_fn(|_| arrays[bytes.byte() as usize % ARRAYS]);
    let (dtype, rank) = (i32::from(bytes.byte() % 14), i32::from(bytes.byte() % 5));
    let shape = bytes.numbers();
    let mut data = [0u8; 64];
    // SAFETY: arrays are handles or null, lists and buffers as long as is said, and places for results are there, as
    // the header asks.
    let status = unsafe {
        match kind {
            0 => bh_zeros(&mut made, null_mut(), dtype, rank, shape.as_ptr()),
            1 => {
                data.iter_mut().for_each(|byte| *byte = bytes.byte());
                let capacity = bytes.byte() as usize % 65;
                bh_from_data_sized(&mut made, null_mut(), dtype, rank, shape.as_ptr(), data.as_ptr().cast(), capacity)
            }
            2 => bh_slice(&mut made, a, rank - 2, shape[0], shape[1], shape[2]),
            3 => bh_view(&mut made, a, bytes.number(), rank, shape.as_ptr(), bytes.numbers().as_ptr()),
            4 => bh_reshape(&mut made, a, rank, shape.as_ptr()),
            5 => bh_transpose_sized(&mut made, a, rank as usize, shape.map(|axis| axis as i32).as_ptr()),
            6 => bh_cast(&mut made, a, dtype),
            7 => {
                let (opcode, param) = (u16::from(bytes.byte()), u16::from(bytes.byte()));
                bh_op_new(&mut made, opcode, param, dtype - 1, rank as usize % 3, [a, b].as_ptr())
            }
            _ => bh_read_sized(data.as_mut_ptr().cast(), data.len(), a),
        }
    };
    answered(status);
    if made.is_null() {
        return;
    }
    let mut size = 0;
    // SAFETY: `size` is a place for a number, and handles may be any.
    unsafe {
        answered(bh_size(&mut size, made));
        // Views of endless repetition are right, and take for ever.
        let place = &mut arrays[bytes.byte() as usize % ARRAYS];
        answered(bh_free(if size > LARGEST { made } else { std::mem::replace(place, made) }));
    }
}

/// A call that fails gives a message, and does not panic.
fn answered(status: i32) {
    // SAFETY: a text of the library's.
    let said = status == 0 || unsafe { !bh_error_message().is_null() && *bh_error_message() != 0 };
    assert!(said && status != PANIC, "status {status}");
}
