//! Copying margins beside lines.

use crate::program::{Margin, Program};

/// Copies the margins of `lines` lines of a plane, the first of which is at `positions`.
///
/// # Safety
/// The lines must be inside the nest, and nobody else may copy their margins.
pub(super) unsafe fn copy(program: &Program, positions: &[*mut u8], lines: i64) {
    for margin in &program.margins {
        // SAFETY: promised by the caller.
        unsafe {
            match margin.bytes {
                4 => elements::<u32>(program, margin, positions, lines),
                8 => elements::<u64>(program, margin, positions, lines),
                16 => elements::<[u64; 2]>(program, margin, positions, lines),
                bytes => {
                    each(program, margin, positions, lines, |from, to| std::ptr::copy_nonoverlapping(from, to, bytes));
                }
            }
        }
    }
}

/// Has the caches fetch what [`copy`] will read, while the lines run.
pub(super) fn fetch(program: &Program, positions: &[*mut u8], lines: i64) {
    for margin in &program.margins {
        each(program, margin, positions, lines, |from, _| prefetch(from));
    }
}

/// Has the second-level cache fetch a line.
#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Copies a margin of one element for each line.
///
/// # Safety
/// As [`copy`]; the margin has the element's size.
#[inline]
unsafe fn elements<T: Copy>(program: &Program, margin: &Margin, positions: &[*mut u8], lines: i64) {
    each(program, margin, positions, lines, |from, to| {
        // SAFETY: promised by the caller.
        unsafe { to.cast::<T>().write_unaligned(from.cast::<T>().read_unaligned()) };
    });
}

#[inline]
fn each(program: &Program, margin: &Margin, positions: &[*mut u8], lines: i64, copy: impl Fn(*const u8, *mut u8)) {
    let plane = program.slots[margin.to].plane;
    let (mut from, mut to) = (positions[margin.from], positions[margin.to]);
    for _ in 0..lines {
        copy(from, to);
        (from, to) = (from.wrapping_offset(plane), to.wrapping_offset(plane));
    }
}
