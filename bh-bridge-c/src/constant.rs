//! Constants as operands: short-lived handles into a ring that each thread has.

use crate::handle::{ARRAY_MASK, CONSTANT_SLOT, bh_array, pack, payload_of, slot_of};
use bh_bytecode::{Complex, Constant, DType, Truth};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::Input;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

/// Constants of a thread that are good at one time.
const RING: u64 = 64;
/// Numbers of constants that a thread takes at once; a multiple of [`RING`].
const BLOCK: u64 = 1 << 12;

struct Ring {
    /// The number of the next constant, and where the thread's numbers end.
    next: Cell<u64>,
    end: Cell<u64>,
    /// The last constants by their numbers, which no two in the process share.
    values: RefCell<[(u64, Constant); RING as usize]>,
}

/// The next numbers that no thread has, from 1 block, so that 0 is none's.
static NUMBERS: AtomicU64 = AtomicU64::new(BLOCK);
const NOTHING: (u64, Constant) = (0, Constant { bits: [0; 2], dtype: DType::Bool as u8, reserved: [0; 7] });

thread_local! {
    static VALUES: Ring = const {
        Ring { next: Cell::new(0), end: Cell::new(0), values: RefCell::new([NOTHING; RING as usize]) }
    };
}

/// Keeps a constant and returns its handle. Threads that are ending get null.
pub(crate) fn constant(value: Constant) -> *mut bh_array {
    let keep = |ring: &Ring| {
        if ring.next.get() == ring.end.get() {
            // There are 2^52 numbers, so the first ones are long forgotten when they repeat.
            let first = NUMBERS.fetch_add(BLOCK, Ordering::Relaxed) & ARRAY_MASK;
            ring.next.set(first);
            ring.end.set(first + BLOCK);
        }
        let number = ring.next.get();
        ring.next.set(number + 1);
        ring.values.borrow_mut()[(number % RING) as usize] = (number, value);
        pack(CONSTANT_SLOT, number)
    };
    VALUES.try_with(keep).unwrap_or(std::ptr::null_mut())
}

/// The constant of a handle, if it is one.
fn find(handle: *const bh_array) -> Option<Result<Constant>> {
    if slot_of(handle) != CONSTANT_SLOT {
        return None;
    }
    let number = payload_of(handle);
    let look = |ring: &Ring| {
        let (known, value) = ring.values.borrow()[(number % RING) as usize];
        (known == number && number != 0).then_some(value)
    };
    let stale = "the constant is not valid: it is good for the operation that follows, in the thread that made it";
    let found = VALUES.try_with(look).ok().flatten();
    Some(found.ok_or_else(|| Error::new(status::HANDLE, stale)))
}

/// An operand: a constant's value, or an array's number and context slot.
#[inline]
pub(crate) fn operand(handle: *const bh_array, home: &mut Option<crate::handle::Array>, name: &str) -> Result<Input> {
    if let Some(constant) = find(handle) {
        return constant.map(Input::Constant);
    }
    let array = crate::handle::array(handle, name)?;
    match home {
        None => *home = Some(array),
        Some(first) if first.slot != array.slot => {
            let text = format!("array '{name}' belongs to another context than the operands before it");
            return Err(Error::new(status::HANDLE, text));
        }
        Some(_) => {}
    }
    Ok(Input::Array(array.id))
}

/// A constant of type bool as an operand of the operation that follows in this thread. It needs no freeing.
#[unsafe(no_mangle)]
pub extern "C" fn bh_bool(value: bool) -> *mut bh_array {
    constant(Constant::from_value(Truth::from(value)))
}

macro_rules! constants {
    ($($name:ident, $type:ty, $text:literal;)*) => {$(
        #[doc = concat!("A constant of type ", $text, " as an operand of the operation that follows in this thread. It needs no freeing.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(value: $type) -> *mut bh_array {
            constant(Constant::from_value(value))
        }
    )*};
}

constants! {
    bh_i8, i8, "i8";
    bh_i16, i16, "i16";
    bh_i32, i32, "i32";
    bh_i64, i64, "i64";
    bh_u8, u8, "u8";
    bh_u16, u16, "u16";
    bh_u32, u32, "u32";
    bh_u64, u64, "u64";
    bh_f32, f32, "f32";
    bh_f64, f64, "f64";
}

/// A constant of type c64 as an operand of the operation that follows in this thread. It needs no freeing.
#[unsafe(no_mangle)]
pub extern "C" fn bh_c64(real: f32, imaginary: f32) -> *mut bh_array {
    constant(Constant::from_value(Complex::new(real, imaginary)))
}

/// A constant of type c128 as an operand of the operation that follows in this thread. It needs no freeing.
#[unsafe(no_mangle)]
pub extern "C" fn bh_c128(real: f64, imaginary: f64) -> *mut bh_array {
    constant(Constant::from_value(Complex::new(real, imaginary)))
}
