//! Sorting along the last axis, and searching in what is sorted. NaN comes last, as in NumPy.

use crate::fourier::Lines;
use crate::scratch::Scratch;
use crate::{Call, Methods, Parallel, Strided};
use bh_bytecode::{Complex, DType, c64, c128, with_dtype};
use bh_core::Result;
use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError};

/// Values searched by one participant at a time.
const SEARCHED: i64 = 4096;

/// Elements with an order of all their values.
trait Ranked: Copy + Send + Sync {
    fn rank(&self, other: &Self) -> Ordering;
}

macro_rules! ranked_whole {
    ($($type:ty),*) => {$(
        impl Ranked for $type {
            fn rank(&self, other: &$type) -> Ordering {
                self.cmp(other)
            }
        }
    )*};
}
ranked_whole!(bool, i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! ranked_float {
    ($($type:ty),*) => {$(
        impl Ranked for $type {
            fn rank(&self, other: &$type) -> Ordering {
                self.partial_cmp(other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
            }
        }
    )*};
}
ranked_float!(f32, f64);

/// By real and then imaginary parts; numbers with a NaN after all others, those with a real one last.
macro_rules! ranked_complex {
    ($($type:ty),*) => {$(
        impl Ranked for $type {
            fn rank(&self, other: &$type) -> Ordering {
                let class = |z: &$type| (z.re.is_nan(), z.im.is_nan());
                let Complex { re, im } = self;
                class(self).cmp(&class(other)).then(re.rank(&other.re)).then(im.rank(&other.im))
            }
        }
    )*};
}
ranked_complex!(c64, c128);

/// The elements along the last axis in ascending order.
pub(crate) fn sort(_: &mut Methods, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    let (dtype, step) = last_axis(call);
    with_dtype!(dtype, T => lines(call, threads, |line: &mut [T], first| {
        line.iter_mut().zip(0..).for_each(|(to, position)| *to = read(first.wrapping_offset(position * step)));
        line.sort_unstable_by(Ranked::rank);
    }))
}

/// The positions along the last axis that put its elements in ascending order; equal elements keep theirs.
pub(crate) fn argsort(_: &mut Methods, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    let (dtype, step) = last_axis(call);
    with_dtype!(dtype, T => lines(call, threads, |line: &mut [i64], first| {
        let key = |&position: &i64| read::<T>(first.wrapping_offset(position as isize * step));
        line.iter_mut().zip(0..).for_each(|(to, position)| *to = position);
        // With its position each element differs from all others, so that nothing has to be put aside.
        line.sort_unstable_by(|a, b| key(a).rank(&key(b)).then(a.cmp(b)));
    }))
}

/// The type of the input's elements, and the bytes from one to the next of its last axis.
fn last_axis(call: &Call<'_, '_>) -> (DType, isize) {
    let input = &call.inputs[0];
    (input.dtype, input.stride.last().copied().unwrap_or(0))
}

/// The first position in the sorted first input before which a value could stand.
pub(crate) fn search_left(_: &mut Methods, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    search(call, threads, |rank| rank == Ordering::Less)
}

/// The last such position.
pub(crate) fn search_right(_: &mut Methods, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    search(call, threads, |rank| rank != Ordering::Greater)
}

fn search(call: &Call<'_, '_>, threads: &mut dyn Parallel, before: fn(Ordering) -> bool) -> Result<()> {
    call.check()?;
    let (sorted, values, output) = (Shared(&call.inputs[0]), Shared(&call.inputs[1]), Shared(&call.outputs[0]));
    let (length, count) = (sorted.0.shape[0], values.0.len());
    let participants = threads.participants(count as u64 * 200);
    threads.run(participants, (count as u64).div_ceil(SEARCHED as u64) as usize, &|tasks| {
        for task in tasks {
            let first = task as i64 * SEARCHED;
            for number in first..(first + SEARCHED).min(count) {
                let position = with_dtype!(values.get().dtype, T => {
                    let value: T = read(values.get().at(number));
                    let (mut low, mut high) = (0, length);
                    while low < high {
                        let middle = low + (high - low) / 2;
                        let at = read::<T>(sorted.get().at(middle));
                        if before(at.rank(&value)) { low = middle + 1 } else { high = middle }
                    }
                    low
                });
                // SAFETY: the element is inside the output, whose type is i64, and this participant's.
                unsafe { output.get().at(number).cast::<i64>().write_unaligned(position) };
            }
        }
    });
    Ok(())
}

/// A view that participants share.
struct Shared<'a, 'b>(&'a Strided<'b>);

// SAFETY: inputs are read, and of an output participants write different elements.
unsafe impl Sync for Shared<'_, '_> {}

impl<'a, 'b> Shared<'a, 'b> {
    fn get(&self) -> &'a Strided<'b> {
        self.0
    }
}

fn read<T: Copy>(at: *mut u8) -> T {
    // SAFETY: addresses are those of elements of views of this type.
    unsafe { at.cast::<T>().read_unaligned() }
}

/// Fills each line of the output from the first address of the input's line, in place where its elements follow each other.
fn lines<T: Copy + Send>(
    call: &Call<'_, '_>,
    threads: &mut dyn Parallel,
    fill: impl Fn(&mut [T], *mut u8) + Sync,
) -> Result<()> {
    let (input, output) = (&call.inputs[0], &call.outputs[0]);
    let length = *output.shape.last().unwrap_or(&0) as usize;
    if input.is_empty() {
        return Ok(());
    }
    let (from, to) = (Lines::new(input), Lines::new(output));
    let dense = to.is_dense::<T>() && input.is_apart(output);
    let participants = threads.participants(input.len() as u64 * 100 * u64::from(length.ilog2().max(1)));
    let spare = if dense { 0 } else { participants };
    // SAFETY: elements of all types may be zeros.
    let spare: Result<Vec<_>> = (0..spare).map(|_| unsafe { Scratch::<T>::zeros(call.memory, length) }).collect();
    let spare = Mutex::new(spare?);
    threads.run(participants, from.count() as usize, &|tasks| {
        let mut own = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        for task in tasks {
            let number = task as i64;
            let Some(line) = &mut own else {
                // SAFETY: the line is dense and aligned, apart from the input, and this participant's alone.
                let line = unsafe { std::slice::from_raw_parts_mut(to.first(number).cast::<T>(), length) };
                fill(line, from.first(number));
                continue;
            };
            fill(line, from.first(number));
            for (&value, at) in line.iter().zip(to.addresses(number)) {
                // SAFETY: the element is inside the view.
                unsafe { at.cast::<T>().write_unaligned(value) };
            }
        }
    });
    Ok(())
}
