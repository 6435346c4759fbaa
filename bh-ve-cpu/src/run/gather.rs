//! Gathering elements by C-order index, with bounds checks.

use bh_bytecode::c128;
use bh_fuser::lower::GatherSource;

/// An index that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadIndex {
    /// Its bits.
    pub(crate) bits: i64,
    /// Is it to be read as signed?
    pub(crate) signed: bool,
}

/// The C-order number that an index stands for; negative signed indices count from the end.
#[inline(always)]
pub(crate) fn resolve(bits: i64, signed: bool, len: i64) -> Result<i64, BadIndex> {
    let index = if signed && bits < 0 { bits.wrapping_add(len) } else { bits };
    if (index as u64) < len as u64 { Ok(index) } else { Err(BadIndex { bits, signed }) }
}

/// The offset in elements of the element with this C-order number.
#[inline(always)]
pub(crate) fn offset(shape: &[i64], stride: &[i64], number: i64) -> i64 {
    match (shape, stride) {
        ([], []) => 0,
        ([_], [step]) => number * step,
        _ => {
            let (mut rest, mut offset) = (number, 0);
            for (&extent, &step) in shape.iter().zip(stride).rev() {
                offset += rest % extent * step;
                rest /= extent;
            }
            offset
        }
    }
}

/// Gathers `n` elements. Indices that are out of range give zeros, and the first of them is returned.
///
/// # Safety
/// `data` must point to the source's first element, `index` to `n` 64-bit integers and `dst` to room for `n` elements.
pub(crate) unsafe fn gather(
    source: &GatherSource,
    data: *const u8,
    size: usize,
    signed: bool,
    n: usize,
    index: *const u8,
    dst: *mut u8,
) -> Result<(), BadIndex> {
    // SAFETY: promised by the caller.
    unsafe {
        match size {
            1 => run::<u8>(source, data, signed, n, index, dst),
            2 => run::<u16>(source, data, signed, n, index, dst),
            4 => run::<u32>(source, data, signed, n, index, dst),
            8 => run::<u64>(source, data, signed, n, index, dst),
            _ => run::<c128>(source, data, signed, n, index, dst),
        }
    }
}

/// # Safety
/// As [`gather`].
unsafe fn run<T: Copy + Default>(
    source: &GatherSource,
    data: *const u8,
    signed: bool,
    n: usize,
    index: *const u8,
    dst: *mut u8,
) -> Result<(), BadIndex> {
    let (index, dst) = (index.cast::<i64>(), dst.cast::<T>());
    // SAFETY: promised by the caller; offsets are those of elements of the source.
    unsafe {
        let element = |at: i64| data.cast::<T>().offset(at as isize).read_unaligned();
        match source.stride[..] {
            [step] => each(source.len, signed, n, index, dst, |number| element(number * step)),
            _ => {
                each(source.len, signed, n, index, dst, |number| element(offset(&source.shape, &source.stride, number)))
            }
        }
    }
}

/// Writes what `element` gives for each index.
///
/// # Safety
/// As [`gather`].
#[inline(always)]
unsafe fn each<T: Copy + Default>(
    len: i64,
    signed: bool,
    n: usize,
    index: *const i64,
    dst: *mut T,
    element: impl Fn(i64) -> T,
) -> Result<(), BadIndex> {
    let mut result = Ok(());
    for i in 0..n {
        // SAFETY: promised by the caller.
        unsafe {
            let value = match resolve(index.add(i).read_unaligned(), signed, len) {
                Ok(number) => element(number),
                Err(bad) => {
                    result = result.and(Err(bad));
                    T::default()
                }
            };
            dst.add(i).write_unaligned(value);
        }
    }
    result
}
