//! Generators: index sequences and random numbers; and whether numbers are such a sequence.

use super::levels::{at_level, entry, for_each_level};
use crate::simd::Isa;
use bh_bytecode::{CastFrom, DType, types_of};
use std::mem::MaybeUninit;

/// Element `i` of the `n` at `dst` becomes the number `start + i · stride`, computed with wrapping and converted.
///
/// # Safety
/// `dst` must be valid for `n` elements; the level must be available.
pub type IotaFn = unsafe extern "C" fn(n: usize, dst: *mut u8, start: i64, stride: i64);

/// Element `i` of the `n` at `dst` becomes the random number that belongs to `start + i · stride` under a key.
///
/// # Safety
/// `dst` must be valid for `n` elements; the level must be available.
pub type PhiloxFn = unsafe extern "C" fn(n: usize, dst: *mut u8, start: i64, stride: i64, key: u32);

/// Are the `n` 64-bit numbers at `index` each one more than the one before?
///
/// # Safety
/// `index` must be valid for `n` numbers; the level must be available.
pub type RunFn = unsafe extern "C" fn(n: usize, index: *const u8) -> bool;

/// Numbers that are compared before it is looked at whether one differed.
const COMPARED: usize = 256;

/// # Safety
/// As [`RunFn`].
#[inline(always)]
unsafe fn is_run_block(n: usize, index: *const u8) -> bool {
    // SAFETY: there are `n` numbers.
    let at = |i: usize| unsafe { index.cast::<i64>().add(i).read_unaligned() };
    (0..n).step_by(COMPARED).all(|from| {
        let differs = |i: usize| at(i).wrapping_sub(at(0)) ^ i as i64;
        (from..n.min(from + COMPARED)).fold(0, |bits, i| bits | differs(i)) == 0
    })
}

/// # Safety
/// As [`IotaFn`].
#[inline(always)]
unsafe fn iota_block<T: Copy + CastFrom<i64>>(n: usize, dst: *mut u8, start: i64, stride: i64) {
    // SAFETY: `dst` is valid for `n` elements, as [`IotaFn`] asks; MaybeUninit takes any memory.
    let out = unsafe { std::slice::from_raw_parts_mut(dst.cast::<MaybeUninit<T>>(), n) };
    for (i, out) in out.iter_mut().enumerate() {
        out.write(T::cast_from(start.wrapping_add((i as i64).wrapping_mul(stride))));
    }
}

/// [`bh_bytecode::philox::random_bits`] in 64-bit words whose upper halves hold what the next step ignores: three vector
/// instructions a round instead of the five that plain 32-bit arithmetic is compiled to.
#[inline(always)]
fn random_bits(index: u64, key: u32) -> u64 {
    const MULTIPLIER: u64 = 0xD256_D193;
    const WEYL: u32 = 0x9E37_79B9;
    let (mut left, mut right, mut key) = (index, index >> 32, key);
    for _ in 0..10 {
        let product = (left & 0xffff_ffff) * MULTIPLIER;
        left = (product >> 32) ^ u64::from(key) ^ right;
        right = product;
        key = key.wrapping_add(WEYL);
    }
    right << 32 | left & 0xffff_ffff
}

/// Element types that RANDOM produces, from 64 random bits.
trait FromBits: Copy {
    fn from_bits(bits: u64) -> Self;
}

impl FromBits for u64 {
    #[inline(always)]
    fn from_bits(bits: u64) -> u64 {
        bits
    }
}

impl FromBits for u32 {
    #[inline(always)]
    fn from_bits(bits: u64) -> u32 {
        bits as u32
    }
}

impl FromBits for f64 {
    #[inline(always)]
    fn from_bits(bits: u64) -> f64 {
        (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

impl FromBits for f32 {
    #[inline(always)]
    fn from_bits(bits: u64) -> f32 {
        // As a signed number, which every level converts with one instruction.
        ((bits as u32) >> 8) as i32 as f32 * (1.0 / (1u32 << 24) as f32)
    }
}

/// # Safety
/// As [`PhiloxFn`].
#[inline(always)]
unsafe fn philox_block<T: FromBits>(n: usize, dst: *mut u8, start: i64, stride: i64, key: u32) {
    // SAFETY: `dst` is valid for `n` elements, as [`PhiloxFn`] asks; MaybeUninit takes any memory.
    let out = unsafe { std::slice::from_raw_parts_mut(dst.cast::<MaybeUninit<T>>(), n) };
    for (i, out) in out.iter_mut().enumerate() {
        let index = start.wrapping_add((i as i64).wrapping_mul(stride));
        out.write(T::from_bits(random_bits(index as u64, key)));
    }
}

macro_rules! level {
    ($module:ident, $bytes:literal $(, $feature:literal)?) => {
        mod $module {
            use super::*;

            entry!([$($feature)?] iota [T: Copy + CastFrom<i64>](
                n: usize, dst: *mut u8, start: i64, stride: i64,
            ) = iota_block::<T>);
            entry!([$($feature)?] is_run [](n: usize, index: *const u8) -> bool = is_run_block);
            entry!([$($feature)?] philox [T: FromBits](
                n: usize, dst: *mut u8, start: i64, stride: i64, key: u32,
            ) = philox_block::<T>);
        }
    };
}
for_each_level!(level);

macro_rules! pick {
    ($isa:expr, $function:ident, $as:ty, $dtype:expr, [$(($type:ty, $variant:ident)),*]) => {
        match $dtype {
            $(DType::$variant => Some(at_level!($isa, $function::<$type> as $as)),)*
            _ => None,
        }
    };
}

/// The primitive of RANGE for a type.
pub fn iota(isa: Isa, dtype: DType) -> Option<IotaFn> {
    types_of!(REAL, pick, isa, iota, IotaFn, dtype)
}

/// Whether indices go up by one.
pub fn is_run(isa: Isa) -> RunFn {
    at_level!(isa, is_run as RunFn)
}

/// The primitive of RANDOM for a type.
pub fn philox(isa: Isa, dtype: DType) -> Option<PhiloxFn> {
    types_of!(RANDOM, pick, isa, philox, PhiloxFn, dtype)
}
