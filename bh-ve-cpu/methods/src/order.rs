//! Sorting along the last axis, and searching in what is sorted. NaN comes last, as in NumPy. Elements that are not the same
//! bits have an order, so that what comes out depends neither on the algorithm nor on the threads.

use crate::parallel::{Share, install, share};
use crate::scratch::{Scratch, Zeroed};
use crate::{Call, Parallel};
use bh_bytecode::{Complex, Element, Truth, c64, c128, with_dtype};
use bh_core::Result;
use rayon::slice::ParallelSliceMut;
use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError};

/// Values searched by one participant at a time.
const SEARCHED: i64 = 4096;
/// A line with fewer elements than this is sorted by one participant.
const LONG_LINE: i64 = 1 << 15;

/// Elements with an order of all their values.
trait Ranked: Element {
    /// The order of values: those that are equal are the same.
    fn rank(&self, other: &Self) -> Ordering;

    /// The order of values, and for those that are the same of their bits.
    fn order(&self, other: &Self) -> Ordering;
}

macro_rules! ranked_whole {
    ($($type:ty),*) => {$(
        impl Ranked for $type {
            fn rank(&self, other: &$type) -> Ordering {
                self.cmp(other)
            }

            fn order(&self, other: &$type) -> Ordering {
                self.cmp(other)
            }
        }
    )*};
}
ranked_whole!(Truth, i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! ranked_float {
    ($($type:ty),*) => {$(
        impl Ranked for $type {
            fn rank(&self, other: &$type) -> Ordering {
                self.partial_cmp(other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
            }

            fn order(&self, other: &$type) -> Ordering {
                self.is_nan().cmp(&other.is_nan()).then(self.total_cmp(other))
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

            fn order(&self, other: &$type) -> Ordering {
                self.rank(other).then(self.re.order(&other.re)).then(self.im.order(&other.im))
            }
        }
    )*};
}
ranked_complex!(c64, c128);

/// The elements along the last axis in ascending order.
pub(crate) fn sort(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    with_dtype!(call.inputs[0].dtype, T => sort_lines::<T>(call, threads))
}

/// The positions along the last axis that put its elements in ascending order; equal elements keep theirs.
pub(crate) fn argsort(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    // With its position each element differs from all others, so that nothing has to be put aside.
    with_dtype!(call.inputs[0].dtype, T => lines(
        call,
        threads,
        |value: T, position| (value, position),
        |a, b| a.0.rank(&b.0).then(a.1.cmp(&b.1)),
        |&(_, position)| position,
    ))
}

/// The first position in the sorted first input before which a value could stand.
pub(crate) fn search_left(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    search(call, threads, |rank| rank == Ordering::Less)
}

/// The last such position.
pub(crate) fn search_right(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    search(call, threads, |rank| rank != Ordering::Greater)
}

fn search(call: &Call<'_, '_>, threads: &mut dyn Parallel, before: fn(Ordering) -> bool) -> Result<()> {
    call.check()?;
    let (length, count) = (call.inputs[0].len(), call.inputs[1].len());
    let participants = threads.participants(count as u64 * 200);
    with_dtype!(call.inputs[1].dtype, T => {
        let (sorted, values) = (call.inputs[0].elements::<T>(), call.inputs[1].elements::<T>());
        let output = call.outputs[0].output::<i64>();
        share(threads, participants, (count, SEARCHED), &|shares| {
            for mut own in shares {
                for number in own.numbers() {
                    let value = values.get(number);
                    let (mut low, mut high) = (0, length);
                    while low < high {
                        let middle = low + (high - low) / 2;
                        if before(sorted.get(middle).rank(&value)) { low = middle + 1 } else { high = middle }
                    }
                    output.put(&mut own, number, low);
                }
            }
        });
    });
    Ok(())
}

/// Participants for the lines of a call, and whether these are so few and long that one after the other is sorted by all.
fn participants(call: &Call<'_, '_>, threads: &dyn Parallel) -> (usize, bool) {
    let (count, length) = (call.inputs[0].len(), call.inputs[0].line());
    let participants = threads.participants(count as u64 * 100 * u64::from(length.max(1).ilog2().max(1)));
    (participants, participants as i64 > count / length.max(1) && length >= LONG_LINE)
}

/// Sorts each line of the input in the output's.
fn sort_lines<T: Ranked + Zeroed>(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    let (from, to) = (call.inputs[0].elements::<T>(), call.outputs[0].output::<T>());
    if !to.has_slices() || !call.inputs[0].is_apart(&call.outputs[0]) {
        return lines(call, threads, |value: T, _| value, T::order, |&value| value);
    }
    let (count, length) = (call.inputs[0].len(), call.inputs[0].line());
    if count == 0 {
        return Ok(());
    }
    let fill = |own: &mut Share<'_>, line: i64, sort: fn(&mut [T])| {
        if let Some(values) = to.line_mut(own, line) {
            values.iter_mut().zip(from.line(line)).for_each(|(to, value)| *to = value);
            sort(values);
        }
    };
    let alone: fn(&mut [T]) = |line| line.sort_unstable_by(T::order);
    let (participants, one_by_one) = participants(call, threads);
    if one_by_one {
        let together: fn(&mut [T]) = |line| line.par_sort_unstable_by(T::order);
        for line in 0..count / length {
            install(threads, &mut |own, parallel| fill(own, line, if parallel { together } else { alone }));
        }
    } else {
        share(threads, participants, (count, length), &|shares| {
            shares.for_each(|mut own| {
                let line = own.numbers().start / length;
                fill(&mut own, line, alone);
            });
        });
    }
    Ok(())
}

/// Sorts what `load` makes of the elements of each line and their positions, and writes what `take` makes of that.
fn lines<T: Ranked, F: Copy + Send + Zeroed, O: Element>(
    call: &Call<'_, '_>,
    threads: &mut dyn Parallel,
    load: impl Fn(T, i64) -> F + Sync,
    order: impl Fn(&F, &F) -> Ordering + Sync,
    take: impl Fn(&F) -> O + Sync,
) -> Result<()> {
    let (from, to) = (call.inputs[0].elements::<T>(), call.outputs[0].output::<O>());
    let (count, length) = (call.inputs[0].len(), call.inputs[0].line());
    if count == 0 {
        return Ok(());
    }
    let (participants, one_by_one) = participants(call, threads);
    let lines = count / length;
    let spare = if one_by_one { 1 } else { participants.min(lines as usize) };
    let spare: Result<Vec<_>> = (0..spare).map(|_| Scratch::<F>::zeros(call.memory, length as usize)).collect();
    let spare = Mutex::new(spare?);
    let own_line = || spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let run = |own: &mut Share<'_>, line: i64, values: &mut [F], sort: &dyn Fn(&mut [F])| {
        for ((to, value), position) in values.iter_mut().zip(from.line(line)).zip(0..) {
            *to = load(value, position);
        }
        sort(values);
        to.put_line(own, line, values.iter().map(&take));
    };
    let alone = |values: &mut [F]| values.sort_unstable_by(&order);
    let together = |values: &mut [F]| values.par_sort_unstable_by(&order);
    if one_by_one {
        let Some(mut values) = own_line() else { return Ok(()) };
        for line in 0..lines {
            install(threads, &mut |own, parallel| {
                run(own, line, &mut values, if parallel { &together } else { &alone });
            });
        }
        return Ok(());
    }
    share(threads, participants, (count, length), &|shares| {
        let Some(mut values) = own_line() else { return };
        for mut own in shares {
            let line = own.numbers().start / length;
            run(&mut own, line, &mut values, &alone);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Strided};
    use rayon::{ThreadPool, ThreadPoolBuilder};

    /// A pool, or none, for all work.
    struct Threads(Option<ThreadPool>);

    impl Threads {
        fn new(count: usize) -> Threads {
            Threads((count > 1).then(|| ThreadPoolBuilder::new().num_threads(count).build().unwrap()))
        }
    }

    // SAFETY: it hands all numbers out once.
    unsafe impl Parallel for Threads {
        fn participants(&self, _: u64) -> usize {
            self.0.as_ref().map_or(1, ThreadPool::current_num_threads)
        }

        fn run(&mut self, _: usize, tasks: usize, body: &(dyn Fn(&mut dyn Iterator<Item = usize>) + Sync)) {
            body(&mut (0..tasks));
        }

        fn install(&mut self, work: &mut (dyn FnMut() + Send)) -> bool {
            self.0.as_ref().map(|pool| pool.install(work)).is_some()
        }
    }

    fn sorted<T: Ranked + Zeroed + Default>(values: &[T], shape: &[i64], mut threads: Threads) -> Vec<T> {
        let (mut from, mut to) = (values.to_vec(), vec![T::default(); values.len()]);
        let stride: Vec<isize> = (0..shape.len())
            .map(|axis| shape[axis + 1..].iter().product::<i64>() as isize * size_of::<T>() as isize)
            .collect();
        let view = |data: &mut Vec<T>| {
            let layout = Layout { dtype: T::DTYPE, shape, stride: stride.clone() };
            // SAFETY: the vectors have the elements of the shape, and live longer.
            unsafe { Strided::at_address(data.as_mut_ptr().cast(), layout) }
        };
        let (inputs, outputs) = ([view(&mut from)], [view(&mut to)]);
        let call = Call { name: "sort", outputs: &outputs, inputs: &inputs, memory: None };
        call.check().and_then(|()| sort_lines::<T>(&call, &mut threads)).unwrap();
        to
    }

    #[test]
    fn nan_comes_last_and_zeros_have_an_order() {
        let negative_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63);
        let values = [0.0, f64::NAN, -1.0, -0.0, negative_nan, f64::INFINITY, 0.0, f64::NEG_INFINITY];
        let found = sorted(&values, &[8], Threads::new(1)).into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let wanted = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 0.0, f64::INFINITY, negative_nan, f64::NAN].map(f64::to_bits);
        assert_eq!(found, wanted);
    }

    #[test]
    fn long_lines_are_sorted_alike_by_any_number_of_threads() {
        const LENGTH: usize = 3 * LONG_LINE as usize + 7;
        let bits = |i: usize| (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // Equal values, zeros of both signs, and some that are no numbers.
        let value = |i: usize| {
            if bits(i) % 97 == 0 { f64::NAN } else { ((bits(i) >> 54) as f64 - 512.0) * 0.0_f64.max((i % 3) as f64) }
        };
        let values: Vec<f64> = (0..2 * LENGTH).map(value).collect();
        let all = [1, 2, 5].map(|threads| sorted(&values, &[2, LENGTH as i64], Threads::new(threads)));
        let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same(&all[0], &all[1]) && same(&all[0], &all[2]));
        for line in all[0].chunks(LENGTH) {
            assert!(line.windows(2).all(|pair| pair[0].order(&pair[1]).is_le()));
        }
    }
}
