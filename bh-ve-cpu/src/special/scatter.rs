//! SCATTER, SCATTER_ADD and COND_SCATTER, in C order of the indices.
//!
//! Participants divide the elements of the output among them, and each goes through all indices: so writes to one element
//! keep their order, and the bits do not depend on the number of threads.

use super::{Strided, Walk};
use crate::run::{Failure, Workers, prefetch, resolve};
use bh_bytecode::scalar::Arithmetic;
use bh_bytecode::{DType, Opcode, with_dtype};
use std::ops::Range;

/// Cost of an index in the units of [`Workers::participants`]: a write to a place that is in no cache.
const COST: u64 = 100;
/// Outputs of this many bytes are far away: their elements are fetched some indices before they are written.
const FAR: i64 = 256 << 10;
/// How many indices.
const AHEAD: i64 = 16;
/// The most parts of an output. Reading all indices costs each participant about a tenth of the writes.
const PARTS: usize = 8;

/// Writes `value[i]` to the element of `out` that `index[i]` numbers, where `mask[i]`, for all `i` in C order.
///
/// # Safety
/// All views must be valid; the shapes of value, index and mask must be equal.
pub(crate) unsafe fn scatter(
    opcode: Opcode,
    out: &Strided<'_>,
    value: &Strided<'_>,
    index: &Strided<'_>,
    mask: Option<&Strided<'_>>,
    failure: (&Failure, u32),
    workers: &mut Workers,
) {
    let mask = mask.filter(|_| opcode != Opcode::ScatterAdd);
    let scatter = Scatter { out, len: out.len(), step: out.step(), value, index, mask, failure };
    // SAFETY: promised by the caller.
    with_dtype!(out.dtype, T => unsafe {
        match opcode {
            Opcode::ScatterAdd => scatter.run::<T>(workers, |old, new| old.add(new)),
            _ => scatter.run::<T>(workers, |_, new| new),
        }
    });
}

/// The views of a scatter, and where failures go.
struct Scatter<'a> {
    out: &'a Strided<'a>,
    /// Its elements, and the bytes from one to the next if that is the same for all.
    len: i64,
    step: Option<isize>,
    value: &'a Strided<'a>,
    index: &'a Strided<'a>,
    mask: Option<&'a Strided<'a>>,
    failure: (&'a Failure, u32),
}

// SAFETY: participants write disjoint elements of the output; there are several only if no other view overlaps it.
unsafe impl Sync for Scatter<'_> {}

/// Do two views use no memory in common, by their first and last addresses?
fn apart(a: &Strided<'_>, b: &Strided<'_>) -> bool {
    let bounds = |view: &Strided<'_>| {
        let (mut first, mut last) = (view.data.addr() as i128, view.data.addr() as i128);
        for (&extent, &stride) in view.shape.iter().zip(&view.stride) {
            let reach = i128::from(extent.max(1) - 1) * stride as i128;
            if reach < 0 { first += reach } else { last += reach }
        }
        (first, last + view.dtype.size() as i128)
    };
    let ((a_first, a_end), (b_first, b_end)) = (bounds(a), bounds(b));
    a_end <= b_first || b_end <= a_first
}

impl Scatter<'_> {
    /// Is the output too large for the nearest caches?
    fn is_far(&self) -> bool {
        self.len * self.out.dtype.size() as i64 >= FAR
    }

    /// # Safety
    /// As [`scatter`].
    unsafe fn run<T: Arithmetic>(&self, workers: &mut Workers, combine: impl Fn(T, T) -> T + Sync) {
        let &Scatter { out, value, index, mask, .. } = self;
        let apart = [Some(value), Some(index), mask].into_iter().flatten().all(|view| apart(out, view));
        // Elements in a near cache are written as fast as indices are told apart that others have.
        let parts = if apart && self.is_far() { workers.participants(index.len() as u64 * COST).min(PARTS) } else { 1 };
        let per_part = (self.len + parts as i64 - 1) / parts as i64;
        workers.run(parts, parts, |_, tasks| {
            while let Some(part) = tasks.take() {
                let first = part as i64 * per_part;
                // SAFETY: promised by the caller; parts are disjoint.
                unsafe { self.part(first..(first + per_part), &combine) };
            }
        });
    }

    /// Writes what goes to these elements of the output.
    ///
    /// # Safety
    /// As [`scatter`]; nobody else may use these elements.
    unsafe fn part<T: Arithmetic>(&self, elements: Range<i64>, combine: impl Fn(T, T) -> T) {
        let &Scatter { value, index, mask, .. } = self;
        let views = [value, index, mask.unwrap_or(index)];
        let last = index.shape.len().saturating_sub(1);
        // All elements are one line, or those along the last axis are.
        let (lines, line) = match views.map(Strided::step) {
            [Some(value), Some(index), Some(mask)] => (0, [value, index, mask]),
            _ => (last, views.map(|view| view.stride[last])),
        };
        let length = index.shape[lines..].iter().product();
        let mut walk = Walk::new(&index.shape[..lines], views);
        for _ in 0..index.shape[..lines].iter().product() {
            // SAFETY: promised by the caller.
            unsafe { self.line(walk.at, line, length, &elements, &combine) };
            walk.next();
        }
    }

    /// The same for a line of values, indices and mask: the first ones, the bytes to the next ones, and their number.
    ///
    /// # Safety
    /// As [`Scatter::part`].
    unsafe fn line<T: Arithmetic>(
        &self,
        first: [*mut u8; 3],
        steps: [isize; 3],
        length: i64,
        elements: &Range<i64>,
        combine: impl Fn(T, T) -> T,
    ) {
        let &Scatter { out, len, step, index, mask, failure: (failure, instr), .. } = self;
        let (signed, masked) = (index.dtype == DType::I64, mask.is_some());
        let count = (elements.end - elements.start) as u64;
        let is_own = |number: i64| (number.wrapping_sub(elements.start) as u64) < count;
        let place = |number: i64| match step {
            Some(step) => out.data.wrapping_offset(step.wrapping_mul(number as isize)),
            None => out.at(number),
        };
        let fetched = if self.is_far() { (length - AHEAD).max(0) } else { 0 };
        for i in 0..length as isize {
            let at = |view: usize| first[view].wrapping_offset(steps[view].wrapping_mul(i));
            // SAFETY: promised by the caller; a resolved number is an element of `out`.
            unsafe {
                if (i as i64) < fetched
                    && let later = at(1).wrapping_offset(steps[1].wrapping_mul(AHEAD as isize))
                    && let Ok(number) = resolve(later.cast::<i64>().read_unaligned(), signed, len)
                    && is_own(number)
                {
                    prefetch(place(number));
                }
                if masked && *at(2) == 0 {
                    continue;
                }
                match resolve(at(1).cast::<i64>().read_unaligned(), signed, len) {
                    Ok(number) if is_own(number) => {
                        let to = place(number).cast::<T>();
                        to.write_unaligned(combine(to.read_unaligned(), at(0).cast::<T>().read_unaligned()));
                    }
                    Ok(_) => {}
                    Err(bad) if elements.start == 0 => failure.index(instr, bad, len),
                    Err(_) => {}
                }
            }
        }
    }
}
