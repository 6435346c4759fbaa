//! Margins: elements before and after lines that a rename leaves unwritten. They are copied with the lines, while the caches
//! have both versions of them; a pass of their own would move a cache line for each element.

use super::program::{Margin, Program};
use crate::shape::{Schedule, SlotPlan};
use bh_bytecode::View;
use bh_bytecode::walk::{Loop, Walk};
use bh_kernel::BufferRef;

/// The most bytes of a margin.
const WIDEST: usize = 64;
/// Lines whose margins are copied together are a multiple of this, which is the number that compiled code takes side by side.
const TOGETHER: i64 = bh_jit_abi::ROW_SETS as i64;

impl Program {
    /// Takes the copy of a view from a base to its fresh buffer upon itself. False if the view does not go along the lines
    /// that are written there.
    pub(crate) fn add_margin(&mut self, base: u32, view: &View, size: usize) -> bool {
        let (schedule, dims) = (&self.schedule, self.schedule.lines().dim);
        let whole = match schedule {
            Schedule::Map(_) => schedule.lines().row_dim().is_none(),
            Schedule::Fold(loops) => loops.folds_lines(),
        };
        if !whole || dims == 0 || schedule.iterations() == 0 {
            return false;
        }
        let scaled = |stride: &i64| *stride as isize * size as isize;
        let steps: Vec<(i64, isize)> = view.shape().iter().copied().zip(view.stride().iter().map(scaled)).collect();
        // The last dimension may be along the line.
        let wide = steps.split_last().filter(|((_, stride), _)| *stride == size as isize);
        let wide = wide.map(|((count, _), outer)| (merged(outer.iter().copied()), *count as usize * size));
        let forms = [Some((merged(steps.iter().copied()), size)), wide];
        let goes_along = |slot: &SlotPlan| {
            let lines = merged((0..dims).map(|dim| (schedule.extent(dim), slot.strides[dim])));
            forms.iter().flatten().find(|(outer, bytes)| *outer == lines && *bytes <= WIDEST).map(|(_, bytes)| *bytes)
        };
        let written = self.slots.iter().filter(|slot| slot.buffer == BufferRef::Fresh(base));
        let Some((slot, bytes)) = written.filter_map(|slot| Some((slot, goes_along(slot)?))).next() else {
            return false;
        };
        let start = view.start() as isize * size as isize;
        let to = SlotPlan { start, ..slot.clone() };
        let from = SlotPlan { buffer: BufferRef::Base(base), ..to.clone() };
        self.margins.push(Margin { from: self.slots.len(), to: self.slots.len() + 1, bytes });
        self.slots.extend([from, to]);
        true
    }

    /// How many lines may run before their margins are copied: as many as keep within `cache` bytes.
    pub(crate) fn lines_of_margins(&self, cache: i64) -> i64 {
        let kernel = self.slots.len() - 2 * self.margins.len();
        let lines = self.schedule.lines();
        let bytes = |slot: &SlotPlan| lines.steps * slot.strides[lines.dim].abs() as i64;
        let line: i64 = self.slots[..kernel].iter().map(bytes).sum();
        (cache / line.max(1) / TOGETHER * TOGETHER).max(TOGETHER)
    }
}

/// Dimensions as the loops that they are.
fn merged(dims: impl Iterator<Item = (i64, isize)>) -> Walk<1> {
    Walk::merged(dims.map(|(extent, step)| Loop { extent, steps: [step] }))
}

/// Copies the margins of `lines` lines of a plane, the first of which is at `positions`.
///
/// # Safety
/// The lines must be inside the nest, and nobody else may copy their margins.
pub(crate) unsafe fn copy_margins(program: &Program, positions: &[*mut u8], lines: i64) {
    for margin in &program.margins {
        // SAFETY: the lines, and so their margins, are inside the nest, and nobody else copies these.
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

/// Has the caches fetch what [`copy_margins`] will read, while the lines run.
pub(crate) fn fetch_margins(program: &Program, positions: &[*mut u8], lines: i64) {
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
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl2keep, [{}]", in(reg) address, options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Copies a margin of one element for each line.
///
/// # Safety
/// As [`copy_margins`]; the margin has the element's size.
#[inline]
unsafe fn elements<T: Copy>(program: &Program, margin: &Margin, positions: &[*mut u8], lines: i64) {
    each(program, margin, positions, lines, |from, to| {
        // SAFETY: there is an element at both ends.
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
