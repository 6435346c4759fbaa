//! SCATTER, SCATTER_ADD and COND_SCATTER, in C order of the indices.
//!
//! Participants divide the elements of the output among them, and each goes through all indices: so writes to one element
//! keep their order, and the bits do not depend on the number of threads.

use super::workers::Workers;
use crate::block::{Failure, prefetch, resolve};
use bh_bytecode::scalar::Arithmetic;
use bh_bytecode::{DType, Opcode, with_dtype};
use bh_methods::{Strided, walk};
use std::hint::select_unpredictable;
use std::ops::Range;

/// Cost of an index in the units of [`Workers::participants`]: a write to a place that is in no cache.
const COST: u64 = 100;
/// Outputs of this many bytes are far away: their elements are fetched some indices before they are written.
const FAR: i64 = 256 << 10;
/// How many indices.
const AHEAD: i64 = 16;
/// Outputs of fewer bytes stay in the cache of one core, which writes them faster than several cores read all indices.
const SHARED: i64 = 2 << 20;
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
    // SAFETY: the views are valid, and those of value, index and mask have one shape.
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

impl Scatter<'_> {
    /// Bytes of the output's elements.
    fn bytes(&self) -> i64 {
        self.len * self.out.dtype.size() as i64
    }

    /// Is the output too large for the nearest caches?
    fn is_far(&self) -> bool {
        self.bytes() >= FAR
    }

    /// # Safety
    /// As [`scatter`].
    unsafe fn run<T: Arithmetic>(&self, workers: &mut Workers, combine: impl Fn(T, T) -> T + Sync) {
        let &Scatter { out, value, index, mask, .. } = self;
        let apart = [Some(value), Some(index), mask].into_iter().flatten().all(|view| out.is_apart(view));
        let parts = if apart && self.bytes() >= SHARED {
            workers.participants(index.len() as u64 * COST).min(PARTS)
        } else {
            1
        };
        let per_part = (self.len + parts as i64 - 1) / parts as i64;
        workers.run(parts, parts, |_, tasks| {
            while let Some(part) = tasks.take() {
                let first = part as i64 * per_part;
                // SAFETY: parts are disjoint, and only this call uses the output.
                unsafe { self.part(first..(first + per_part), &combine) };
            }
        });
    }

    /// Writes these elements of the output.
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
        // SAFETY: lines are inside the views; the part of the output is this participant's.
        walk(views, lines).each(views.map(Strided::data), |first| unsafe {
            match self.step {
                Some(step) if mask.is_none() && elements.start == 0 && elements.end >= self.len => {
                    self.whole_line(first, line, length, step, &combine);
                }
                Some(step) if mask.is_none() => self.shared_line(first, line, length, (step, &elements), &combine),
                _ => self.line(first, line, length, &elements, &combine),
            }
        });
    }

    /// The same for a line of values and indices without a mask, where all elements are this participant's and lie `step`
    /// bytes apart.
    ///
    /// # Safety
    /// As [`Scatter::part`].
    unsafe fn whole_line<T: Arithmetic>(
        &self,
        [value, index, _]: [*mut u8; 3],
        [value_step, index_step, _]: [isize; 3],
        length: i64,
        step: isize,
        combine: impl Fn(T, T) -> T,
    ) {
        let (len, signed) = (self.len, self.index.dtype == DType::I64);
        let element = |number: i64| self.out.data().wrapping_offset(step.wrapping_mul(number as isize));
        // SAFETY: the number is one of the line's.
        let index_at = |i: i64| unsafe {
            index.wrapping_offset(index_step.wrapping_mul(i as isize)).cast::<i64>().read_unaligned()
        };
        let write = |i: i64| {
            let bits = index_at(i);
            // Indices from the end, and bad ones, are few.
            let number = if (bits as u64) < len as u64 { Ok(bits) } else { resolve(bits, signed, len) };
            match number {
                // SAFETY: the number is one of the line's, and a resolved one that of an element of `out`.
                Ok(number) => unsafe {
                    let from = value.wrapping_offset(value_step.wrapping_mul(i as isize)).cast::<T>();
                    let to = element(number).cast::<T>();
                    to.write_unaligned(combine(to.read_unaligned(), from.read_unaligned()));
                },
                Err(bad) => self.failure.0.index(self.failure.1, bad, len),
            }
        };
        let fetched = if self.is_far() { (length - AHEAD).max(0) } else { 0 };
        for i in 0..fetched {
            // Of a bad index, any address: it is a hint.
            prefetch(element(index_at(i + AHEAD)));
            write(i);
        }
        (fetched..length).for_each(write);
    }

    /// The same where other participants own some elements. No branch depends on the owner: the processor would predict half of such
    /// branches wrong.
    ///
    /// # Safety
    /// As [`Scatter::part`].
    unsafe fn shared_line<T: Arithmetic>(
        &self,
        [value, index, _]: [*mut u8; 3],
        [value_step, index_step, _]: [isize; 3],
        length: i64,
        (step, elements): (isize, &Range<i64>),
        combine: impl Fn(T, T) -> T,
    ) {
        let (len, signed) = (self.len, self.index.dtype == DType::I64);
        // Two places stand for the elements of others, one to read, one to write. So no sum of their values overflows.
        let (mut zero, mut aside) = ([0u64; 2], [0u64; 2]);
        let (zero, aside) = ((&raw mut zero).cast::<u8>(), (&raw mut aside).cast::<u8>());
        let count = (elements.end - elements.start) as u64;
        let place = |number: i64, other: *mut u8| {
            let own = self.out.data().wrapping_offset(step.wrapping_mul(number as isize));
            select_unpredictable((number.wrapping_sub(elements.start) as u64) < count, own, other)
        };
        // SAFETY: the number is one of the line's.
        let index_at = |i: i64| unsafe {
            index.wrapping_offset(index_step.wrapping_mul(i as isize)).cast::<i64>().read_unaligned()
        };
        let write = |i: i64| {
            let bits = index_at(i);
            let number = if (bits as u64) < len as u64 { Ok(bits) } else { resolve(bits, signed, len) };
            match number {
                // SAFETY: the number is one of the line's, and a resolved one that of an element of `out`. If this participant does not
                // own it, the two places stand for it, which have room for any element.
                Ok(number) => unsafe {
                    let from = value.wrapping_offset(value_step.wrapping_mul(i as isize)).cast::<T>();
                    let (old, to) = (place(number, zero).cast::<T>(), place(number, aside).cast::<T>());
                    to.write_unaligned(combine(old.read_unaligned(), from.read_unaligned()));
                },
                Err(bad) if elements.start == 0 => self.failure.0.index(self.failure.1, bad, len),
                Err(_) => {}
            }
        };
        let fetched = if self.is_far() { (length - AHEAD).max(0) } else { 0 };
        for i in 0..fetched {
            prefetch(place(index_at(i + AHEAD), aside));
            write(i);
        }
        (fetched..length).for_each(write);
    }

    /// The same for any line of values, indices and mask: the first ones, the bytes to the next ones, and their number.
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
            Some(step) => out.data().wrapping_offset(step.wrapping_mul(number as isize)),
            None => out.at(number),
        };
        let fetched = if self.is_far() { (length - AHEAD).max(0) } else { 0 };
        for i in 0..length as isize {
            let at = |view: usize| first[view].wrapping_offset(steps[view].wrapping_mul(i));
            // SAFETY: the number is one of the line's, and a resolved one that of an element of `out`.
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
