//! Copies the elements under a strided view into a dense run, in C order.

use bh_bytecode::View;
use std::ptr;

/// Copies what `view` shows of the elements at `source` to `target`, densely in C order.
///
/// # Safety
/// Every element of the view, `size` bytes each, must lie in readable memory behind `source`; `target` must have room
/// for all of them and not overlap.
pub unsafe fn gather(view: &View, size: usize, source: *const u8, target: *mut u8) {
    if view.is_empty() {
        return;
    }
    // The longest dense tail of dimensions is one run; the dimensions before it are walked like an odometer.
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
        // SAFETY: the offset is that of an element of the view, and the run lies inside the view.
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
        // SAFETY: the view fits the source and the target has its length.
        unsafe { gather(view, 2, source.as_ptr().cast(), target.as_mut_ptr().cast()) };
        target
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
