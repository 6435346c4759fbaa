//! Copies between strided memory of two layouts.

use crate::abi::HostMemory;
use bh_bytecode::walk::{Loop, Walk};
use bh_bytecode::{DType, MAX_RANK, View};

/// One side of a copy: the address of element (0, …, 0) and byte strides.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The address.
    pub data: *mut u8,
    /// The strides.
    pub stride: &'a [i64],
}

/// Copies all elements of `shape`. Bool values become 0 or 1, because memory from outside may hold any byte.
///
/// # Safety
/// Both sides must have a stride for each extent, and no extent may be negative. For each index, the addressed element
/// must be valid: of `to` for writing, of `from` for reading. The two sides must not overlap.
pub unsafe fn copy(dtype: DType, shape: &[i64], to: Side<'_>, from: Side<'_>) {
    let axes = shape.iter().zip(to.stride).zip(from.stride);
    let mut walk =
        Walk::merged(axes.map(|((&extent, &to), &from)| Loop { extent, steps: [to as isize, from as isize] }));
    let row = walk.pop().unwrap_or(Loop { extent: 1, steps: [0; 2] });
    // SAFETY: the walk visits the first element of each row, and all elements of rows are elements of the two sides,
    // which are valid and do not overlap, as `# Safety` asks.
    walk.each([to.data, from.data], |[to, from]| unsafe { copy_row(dtype, row, to, from) });
}

/// Copies the elements of a view of a base whose element 0 is at `data` to host memory.
///
/// # Safety
/// `dtype` must be the base's. All elements of the view must be readable, and `memory` writable for them, with a stride
/// for each dimension, and it must overlap none of them.
pub unsafe fn load(dtype: DType, view: &View, data: *const u8, memory: &HostMemory) {
    let (stride, first) = in_bytes(dtype, view);
    let from = Side { data: data.cast_mut().wrapping_offset(first), stride: &stride[..view.rank()] };
    // SAFETY: the view's elements are readable at its strides, and the memory is writable for them and does not overlap
    // them, as `# Safety` asks.
    unsafe { copy(dtype, view.shape(), Side { data: memory.data(), stride: memory.stride() }, from) }
}

/// Overwrites the elements of a view of a base whose element 0 is at `data` from host memory.
///
/// # Safety
/// `dtype` must be the base's. All elements of the view must be writable, and `memory` readable for them, with a stride
/// for each dimension, and it must overlap none of them.
pub unsafe fn store(dtype: DType, view: &View, data: *mut u8, memory: &HostMemory) {
    let (stride, first) = in_bytes(dtype, view);
    let to = Side { data: data.wrapping_offset(first), stride: &stride[..view.rank()] };
    // SAFETY: the view's elements are writable at its strides, and the memory is readable for them and does not overlap
    // them, as `# Safety` asks.
    unsafe { copy(dtype, view.shape(), to, Side { data: memory.data(), stride: memory.stride() }) }
}

/// Strides and offset of a view in bytes.
fn in_bytes(dtype: DType, view: &View) -> ([i64; MAX_RANK], isize) {
    let size = dtype.size() as i64;
    let mut bytes = [0; MAX_RANK];
    for (bytes, stride) in bytes.iter_mut().zip(view.stride()) {
        *bytes = stride * size;
    }
    (bytes, (view.start() * size) as isize)
}

/// # Safety
/// `extent` must not be negative. `extent` elements must be valid for writing at multiples of the first step from `to`,
/// and for reading at multiples of the second step from `from`. The two must not overlap.
unsafe fn copy_row(dtype: DType, row: Loop<2>, to: *mut u8, from: *const u8) {
    let Loop { extent, steps: [to_step, from_step] } = row;
    let size = dtype.size();
    let dense = to_step == size as isize && from_step == size as isize;
    // SAFETY: `at` stays below `extent`, so each element is one of the row's, which are valid and do not overlap, as
    // `# Safety` asks; at steps of an element's size they are one run.
    unsafe {
        if dtype == DType::Bool && dense {
            for at in 0..extent as isize {
                *to.offset(at) = u8::from(*from.offset(at) != 0);
            }
        } else if dtype == DType::Bool {
            for at in 0..extent as isize {
                *to.offset(at * to_step) = u8::from(*from.offset(at * from_step) != 0);
            }
        } else if dense {
            std::ptr::copy_nonoverlapping(from, to, extent as usize * size);
        } else {
            for at in 0..extent as isize {
                std::ptr::copy_nonoverlapping(from.offset(at * from_step), to.offset(at * to_step), size);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(shape: &[i64], to_stride: &[i64], from_stride: &[i64], first: usize) -> Vec<u16> {
        let mut source: Vec<u16> = (0..24).collect();
        let mut target = vec![0u16; 24];
        let bytes = |stride: &[i64]| stride.iter().map(|&stride| stride * 2).collect::<Vec<i64>>();
        let (to_stride, from_stride) = (bytes(to_stride), bytes(from_stride));
        let to = Side { data: target.as_mut_ptr().cast(), stride: &to_stride };
        let from = Side { data: source.as_mut_ptr().wrapping_add(first).cast(), stride: &from_stride };
        // SAFETY: the tests below stay inside 24 elements.
        unsafe { copy(DType::U16, shape, to, from) };
        target
    }

    #[test]
    fn copies_any_layout() {
        assert_eq!(copied(&[2, 3, 4], &[12, 4, 1], &[12, 4, 1], 0), (0..24).collect::<Vec<u16>>());
        assert_eq!(copied(&[4, 3], &[3, 1], &[1, 4], 0)[..12], [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
        assert_eq!(copied(&[3, 1, 2], &[2, 9, 1], &[-4, 7, 2], 20)[..6], [20, 22, 16, 18, 12, 14]);
        assert_eq!(copied(&[], &[], &[], 5)[0], 5);
        assert_eq!(copied(&[0, 3], &[3, 1], &[3, 1], 5), [0; 24]);
    }

    #[test]
    fn truth_values_are_normalised() {
        let (mut from, mut to) = ([0u8, 7, 1, 255], [9u8; 4]);
        let (from, to_side) = (Side { data: from.as_mut_ptr(), stride: &[1] }, to.as_mut_ptr());
        // SAFETY: four bytes each.
        unsafe { copy(DType::Bool, &[4], Side { data: to_side, stride: &[1] }, from) };
        assert_eq!(to, [0, 1, 1, 1]);
    }
}
