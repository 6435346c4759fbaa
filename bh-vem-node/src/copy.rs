//! Copies strided views: to packed memory in C order, or between two layouts.

use bh_bytecode::walk::{Loop, Walk};
use bh_bytecode::{DType, View};
use bh_core::abi::HostMemory;
use bh_core::strided;
use std::ptr;

/// The side of the squares of a transposed copy, in elements: small enough that a cache holds a line of each row, at
/// any distance between rows.
const SIDE: usize = 8;

/// Copies a view to the program's memory. `data`: the base's element 0. Booleans become 0 or 1.
///
/// # Safety
/// `dtype` must be the base's, and the view be within the base. Its elements must be readable, and `memory` writable
/// for them, with a stride for each dimension and without overlaps.
pub unsafe fn load(dtype: DType, view: &View, data: *const u8, memory: &HostMemory) {
    // SAFETY: the caller guarantees the conditions of both functions, which write to `memory` only.
    unsafe {
        if dtype == DType::Bool || !transpose(dtype.size(), view, data.cast_mut(), memory, true) {
            strided::load(dtype, view, data, memory);
        }
    }
}

/// Overwrites a view from the program's memory. `data`: the base's element 0. Booleans become 0 or 1.
///
/// # Safety
/// `dtype` must be the base's, and the view be within the base. Its elements must be writable, and `memory` readable
/// for them, with a stride for each dimension and without overlaps.
pub unsafe fn store(dtype: DType, view: &View, data: *mut u8, memory: &HostMemory) {
    // SAFETY: the caller guarantees the conditions of both functions, which only read `memory`.
    unsafe {
        if dtype == DType::Bool || !transpose(dtype.size(), view, data, memory, false) {
            strided::store(dtype, view, data, memory);
        }
    }
}

/// Copies elements in squares if each side is contiguous along an axis, but not along the same one: copying in order
/// would touch a cache line per element. False otherwise.
///
/// # Safety
/// As [`load`] if `loads`, otherwise as [`store`], for elements of `size` bytes.
unsafe fn transpose(size: usize, view: &View, data: *mut u8, memory: &HostMemory, loads: bool) -> bool {
    let axes = view.shape().iter().zip(view.stride()).zip(memory.stride());
    let whole = Walk::merged(axes.map(|((&extent, &own), &other)| {
        let (own, other) = (own as isize * size as isize, other as isize);
        Loop { extent, steps: if loads { [other, own] } else { [own, other] } }
    }));
    let dense = |side: usize| {
        let is_dense = |each: &Loop<2>| each.steps[side] == size as isize && each.extent >= SIDE as i64;
        whole.loops().iter().position(is_dense)
    };
    let (Some(along), Some(across)) = (dense(0), dense(1)) else { return false };
    if along == across {
        return false;
    }
    let mut rest = Walk::default();
    for (place, each) in whole.loops().iter().enumerate() {
        if place != along && place != across {
            rest.push(*each);
        }
    }
    let (along, across) = (whole.loops()[along], whole.loops()[across]);
    let own = data.wrapping_offset(view.start() as isize * size as isize);
    let begin = if loads { [memory.data(), own] } else { [own, memory.data()] };
    // SAFETY: the walk visits the first elements of planes of both sides, in which `squares` steps along the other two
    // loops. All of these are elements of the view, valid and without overlaps, as the caller guarantees.
    rest.each(begin, |at| unsafe {
        match size {
            1 => squares::<1>(at, along, across),
            2 => squares::<2>(at, along, across),
            4 => squares::<4>(at, along, across),
            8 => squares::<8>(at, along, across),
            _ => squares::<16>(at, along, across),
        }
    });
    true
}

/// Copies elements of `N` bytes between layouts that are contiguous along one loop at the target and along the other at
/// the source.
///
/// # Safety
/// For each iteration of both loops, the element of `N` bytes at their steps must be valid: from `to` for writing, from
/// `from` for reading. The two sides must not overlap.
unsafe fn squares<const N: usize>([to, from]: [*mut u8; 2], along: Loop<2>, across: Loop<2>) {
    for first in (0..along.extent as isize).step_by(SIDE) {
        let rows = first..(first + SIDE as isize).min(along.extent as isize);
        for begin in (0..across.extent as isize).step_by(SIDE) {
            for column in begin..(begin + SIDE as isize).min(across.extent as isize) {
                for row in rows.clone() {
                    let offset = |side: usize| row * along.steps[side] + column * across.steps[side];
                    // SAFETY: rows and columns are within the loops' extents, so both are elements that the caller
                    // guarantees as valid and without overlaps.
                    unsafe { ptr::copy_nonoverlapping(from.offset(offset(1)), to.offset(offset(0)), N) };
                }
            }
        }
    }
}

/// Copies the view's elements from `source` to `target`, packed in C order.
///
/// # Safety
/// Every element of the view, of `size` bytes, must be readable relative to `source`. `target` must have space for all
/// of them, and not overlap.
pub unsafe fn gather(view: &View, size: usize, source: *const u8, target: *mut u8) {
    if view.is_empty() {
        return;
    }
    // The longest contiguous tail of dimensions is one run; an odometer steps through the dimensions before it.
    let (shape, stride) = (view.shape(), view.stride());
    let (mut outer, mut run) = (view.rank(), 1i64);
    while outer > 0 && (shape[outer - 1] == 1 || stride[outer - 1] == run) {
        run *= shape[outer - 1];
        outer -= 1;
    }
    let run_bytes = run as usize * size;
    let mut index = [0i64; bh_bytecode::MAX_RANK];
    let (mut offset, mut target) = (view.start(), target);
    loop {
        // SAFETY: the offset is an element of the view, and the run is within the view.
        unsafe {
            ptr::copy_nonoverlapping(source.offset(offset as isize * size as isize), target, run_bytes);
            target = target.add(run_bytes);
        }
        let mut dim = outer;
        loop {
            if dim == 0 {
                return;
            }
            dim -= 1;
            index[dim] += 1;
            offset += stride[dim];
            if index[dim] < shape[dim] {
                break;
            }
            offset -= stride[dim] * shape[dim];
            index[dim] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(view: &View) -> Vec<u16> {
        let source: Vec<u16> = (0..60).collect();
        let mut target = vec![0u16; view.len() as usize];
        assert!(view.fits(60));
        // SAFETY: the view fits the source, and the target has its length.
        unsafe { gather(view, 2, source.as_ptr().cast(), target.as_mut_ptr().cast()) };
        target
    }

    /// Copies a view to memory with these strides (in elements) and back.
    fn there_and_back(len: usize, view: &View, stride: &[i64]) {
        let source: Vec<u16> = (0..len as u16).collect();
        let (mut between, mut back) = (vec![0u16; view.len() as usize], vec![0u16; len]);
        let bytes: Vec<i64> = stride.iter().map(|stride| 2 * stride).collect();
        let data = between.as_mut_ptr();
        // SAFETY: the view fits both arrays, and `between` has as many elements.
        unsafe {
            let memory = HostMemory::new(data.cast(), &bytes);
            assert!(transpose(2, view, source.as_ptr().cast_mut().cast(), &memory, true));
            store(DType::U16, view, back.as_mut_ptr().cast(), &memory);
        }
        let mut expected = vec![0u16; view.len() as usize];
        // SAFETY: the view fits both arrays, and `between` has as many elements.
        unsafe {
            strided::load(
                DType::U16,
                view,
                source.as_ptr().cast(),
                &HostMemory::new(expected.as_mut_ptr().cast(), &bytes),
            )
        };
        assert_eq!(between, expected);
        let mut kept = vec![0u16; len];
        // SAFETY: the view fits both arrays, and `between` has as many elements.
        unsafe { strided::store(DType::U16, view, kept.as_mut_ptr().cast(), &HostMemory::new(data.cast(), &bytes)) };
        assert_eq!(back, kept);
    }

    #[test]
    fn transposed_copies_are_those_element_by_element() {
        for (rows, columns) in [(8, 8), (9, 31), (64, 17), (100, 8)] {
            let grid = View::contiguous(&[rows, columns]).unwrap();
            let turned = grid.transpose(&[1, 0]).unwrap();
            there_and_back((rows * columns) as usize, &turned, &[rows, 1]);
            there_and_back((rows * columns) as usize, &grid, &[1, rows]);
        }
        let cube = View::contiguous(&[9, 3, 10]).unwrap();
        there_and_back(270, &cube.transpose(&[2, 1, 0]).unwrap(), &[27, 9, 1]);
        there_and_back(270, &cube.transpose(&[1, 2, 0]).unwrap(), &[90, 9, 1]);
        let part =
            View::contiguous(&[20, 20]).unwrap().slice(0, Some(3), Some(15), 1).unwrap().slice(1, Some(5), Some(14), 1);
        there_and_back(400, &part.unwrap().transpose(&[1, 0]).unwrap(), &[12, 1]);
    }

    #[test]
    fn copies_in_c_order() {
        let grid = View::contiguous(&[5, 12]).unwrap();
        assert_eq!(gathered(&grid), (0..60).collect::<Vec<_>>());
        let inner = grid.slice(0, Some(1), Some(3), 1).unwrap().slice(1, Some(10), None, 1).unwrap();
        assert_eq!(gathered(&inner), [22, 23, 34, 35]);
        let backwards = grid.slice(1, Some(0), Some(1), 1).unwrap().reverse(0).unwrap();
        assert_eq!(gathered(&backwards), [48, 36, 24, 12, 0]);
        let transposed = grid.slice(0, None, Some(2), 1).unwrap().slice(1, None, Some(2), 1).unwrap();
        assert_eq!(gathered(&transposed.transpose(&[1, 0]).unwrap()), [0, 12, 1, 13]);
        assert_eq!(gathered(&View::new(7, &[], &[]).unwrap()), [7]);
        assert_eq!(gathered(&View::new(0, &[3, 0], &[1, 1]).unwrap()), [0u16; 0]);
        assert_eq!(gathered(&View::new(3, &[2, 3], &[0, 1]).unwrap()), [3, 4, 5, 3, 4, 5]);
    }
}
