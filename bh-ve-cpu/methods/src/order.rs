//! Sorting along the last axis, and searching in what is sorted. NaN comes last, as in NumPy. Elements that are not the same
//! bits have an order, so that what comes out depends neither on the algorithm nor on the threads.

use crate::fourier::Lines;
use crate::scratch::Scratch;
use crate::{Call, Parallel, Strided};
use bh_bytecode::{Complex, c64, c128, with_dtype};
use bh_core::Result;
use rayon::slice::ParallelSliceMut;
use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError};

/// Values searched by one participant at a time.
const SEARCHED: i64 = 4096;
/// A line with fewer elements than this is sorted by one participant.
const LONG_LINE: usize = 1 << 15;

/// Elements with an order of all their values.
trait Ranked: Copy + Send + Sync {
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
ranked_whole!(bool, i8, i16, i32, i64, u8, u16, u32, u64);

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
    let dtype = call.inputs[0].dtype;
    with_dtype!(dtype, T => lines(call, threads, |at, _| read::<T>(at), T::order, |&value| value))
}

/// The positions along the last axis that put its elements in ascending order; equal elements keep theirs.
pub(crate) fn argsort(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    let dtype = call.inputs[0].dtype;
    // With its position each element differs from all others, so that nothing has to be put aside.
    with_dtype!(dtype, T => lines(
        call,
        threads,
        |at, position| (read::<T>(at), position),
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

/// Sorts each line of the input, in the output's where `take` leaves elements as they are: `load` makes what is sorted of
/// an element's address and position, and `take` makes an element of the output of that.
fn lines<F: Copy + Send, T: Copy>(
    call: &Call<'_, '_>,
    threads: &mut dyn Parallel,
    load: impl Fn(*mut u8, i64) -> F + Sync,
    order: impl Fn(&F, &F) -> Ordering + Sync,
    take: impl Fn(&F) -> T + Sync,
) -> Result<()> {
    let (input, output) = (&call.inputs[0], &call.outputs[0]);
    let length = *output.shape.last().unwrap_or(&0) as usize;
    if input.is_empty() {
        return Ok(());
    }
    let (from, to) = (Lines::new(input), Lines::new(output));
    let in_place = size_of::<F>() == size_of::<T>() && to.is_dense::<T>() && input.is_apart(output);
    let participants = threads.participants(input.len() as u64 * 100 * u64::from(length.ilog2().max(1)));
    let count = from.count() as usize;
    let one_by_one = participants > count && length >= LONG_LINE;
    let spare = if in_place { 0 } else { participants.min(count) };
    // SAFETY: elements of all types, and integers, may be zeros.
    let spare: Result<Vec<_>> = (0..spare).map(|_| unsafe { Scratch::<F>::zeros(call.memory, length) }).collect();
    let spare = Mutex::new(spare?);
    let work = |tasks: &mut dyn Iterator<Item = usize>, sort: &mut dyn FnMut(&mut [F])| {
        let mut own = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let fill = |line: &mut [F], number: i64| {
            for ((to, at), position) in line.iter_mut().zip(from.addresses(number)).zip(0..) {
                *to = load(at, position);
            }
        };
        for number in tasks.map(|task| task as i64) {
            let Some(line) = &mut own else {
                // SAFETY: the line is dense and aligned, apart from the input, and this participant's alone.
                let line = unsafe { std::slice::from_raw_parts_mut(to.first(number).cast::<F>(), length) };
                fill(line, number);
                sort(line);
                continue;
            };
            fill(line, number);
            sort(line);
            for (sorted, at) in line.iter().zip(to.addresses(number)) {
                // SAFETY: the element is inside the view.
                unsafe { at.cast::<T>().write_unaligned(take(sorted)) };
            }
        }
    };
    if one_by_one {
        work(&mut (0..count), &mut |line| {
            if !threads.install(&mut || line.par_sort_unstable_by(&order)) {
                line.sort_unstable_by(&order);
            }
        });
    } else {
        threads.run(participants, count, &|tasks| work(tasks, &mut |line| line.sort_unstable_by(&order)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::Element;
    use rayon::{ThreadPool, ThreadPoolBuilder};

    /// A pool, or none, for all work.
    struct Threads(Option<ThreadPool>);

    impl Threads {
        fn new(count: usize) -> Threads {
            Threads((count > 1).then(|| ThreadPoolBuilder::new().num_threads(count).build().unwrap()))
        }
    }

    impl Parallel for Threads {
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

    fn sorted<T: Element + Default>(values: &[T], shape: &[i64], mut threads: Threads) -> Vec<T> {
        let (mut from, mut to) = (values.to_vec(), vec![T::default(); values.len()]);
        let stride: Vec<isize> = (0..shape.len())
            .map(|axis| shape[axis + 1..].iter().product::<i64>() as isize * size_of::<T>() as isize)
            .collect();
        let view = |data: &mut Vec<T>| Strided {
            data: data.as_mut_ptr().cast(),
            dtype: T::DTYPE,
            shape,
            stride: stride.clone(),
        };
        let (inputs, outputs) = ([view(&mut from)], [view(&mut to)]);
        let call = Call { name: "sort", outputs: &outputs, inputs: &inputs, memory: None };
        sort(&call, &mut threads).unwrap();
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
        const LENGTH: usize = 3 * LONG_LINE + 7;
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
