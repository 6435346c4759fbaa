//! Sorting along the last axis: the elements in ascending order, or the indices that put them there. NaN comes last, and
//! the indices of equal elements keep their order.

use crate::{Call, Methods, Parallel, Strided};
use bh_bytecode::scalar::Ordered;
use bh_bytecode::{DType, Element};
use bh_core::Result;
use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError};

/// Units of work, of about 0.04 ns, that an element of a line costs for each doubling of the line's length.
const UNITS: u64 = 50;
/// A line with fewer elements than this is sorted by one participant.
const LONG_LINE: usize = 1 << 15;

/// The elements in ascending order.
pub(crate) fn sort(_: &mut Methods, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check_counts(1..=1, 1)?;
    call.one_type()?;
    run(call, threads, Wanted::Elements)
}

/// The indices (i64) of the elements in ascending order.
pub(crate) fn argsort(_: &mut Methods, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check_counts(1..=1, 1)?;
    if call.outputs[0].dtype != DType::I64 {
        return call.type_error();
    }
    run(call, threads, Wanted::Indices)
}

/// What the output gets.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Elements,
    Indices,
}

fn run(call: &Call<'_, '_>, threads: &mut dyn Parallel, wanted: Wanted) -> Result<()> {
    let (input, output) = (&call.inputs[0], &call.outputs[0]);
    if input.shape != output.shape || input.shape.is_empty() {
        return call.shape_error();
    }
    let job = Job { input: Lines::new(input), output: Lines::new(output), wanted };
    match input.dtype {
        DType::Bool => job.run::<bool>(threads),
        DType::I8 => job.run::<i8>(threads),
        DType::I16 => job.run::<i16>(threads),
        DType::I32 => job.run::<i32>(threads),
        DType::I64 => job.run::<i64>(threads),
        DType::U8 => job.run::<u8>(threads),
        DType::U16 => job.run::<u16>(threads),
        DType::U32 => job.run::<u32>(threads),
        DType::U64 => job.run::<u64>(threads),
        DType::F32 => job.run::<f32>(threads),
        DType::F64 => job.run::<f64>(threads),
        DType::C64 | DType::C128 => return call.type_error(),
    }
    Ok(())
}

/// Ascending, with what equals nothing (NaN) last.
fn order<T: Ordered>(a: &T, b: &T) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
}

fn is_nan<T: Ordered>(value: &T) -> bool {
    value.partial_cmp(value).is_none()
}

/// The lines of a view along its last axis.
struct Lines<'a> {
    outer: Strided<'a>,
    length: usize,
    stride: isize,
}

// SAFETY: only addresses are computed from it; tasks touch the elements of different lines.
unsafe impl Sync for Lines<'_> {}

impl<'a> Lines<'a> {
    fn new(view: &Strided<'a>) -> Lines<'a> {
        let last = view.shape.len() - 1;
        let outer = Strided {
            data: view.data,
            dtype: view.dtype,
            shape: &view.shape[..last],
            stride: view.stride[..last].to_vec(),
        };
        Lines { outer, length: view.shape[last] as usize, stride: view.stride[last] }
    }

    fn read<T: Element>(&self, line: usize) -> Vec<T> {
        let first = self.outer.at(line as i64);
        // SAFETY: the addresses are those of the line's elements.
        (0..self.length)
            .map(|at| unsafe { first.wrapping_offset(at as isize * self.stride).cast::<T>().read() })
            .collect()
    }

    /// # Safety
    /// No other task may use the line.
    unsafe fn write<T: Element>(&self, line: usize, values: impl Iterator<Item = T>) {
        let first = self.outer.at(line as i64);
        for (at, value) in values.take(self.length).enumerate() {
            // SAFETY: the addresses are those of the line's elements, which are the caller's alone.
            unsafe { first.wrapping_offset(at as isize * self.stride).cast::<T>().write(value) };
        }
    }
}

struct Job<'a> {
    input: Lines<'a>,
    output: Lines<'a>,
    wanted: Wanted,
}

impl Job<'_> {
    fn run<T: Ordered>(&self, threads: &mut dyn Parallel) {
        let (lines, length) = (self.input.outer.len() as usize, self.input.length);
        if lines == 0 || length == 0 {
            return;
        }
        let doublings = u64::from(usize::BITS - length.leading_zeros());
        let units = (lines as u64).saturating_mul(length as u64).saturating_mul(UNITS * doublings);
        let participants = threads.participants(units);
        if participants > 1 && lines < participants && length >= LONG_LINE {
            (0..lines).for_each(|line| self.long_line::<T>(line, participants, threads));
        } else {
            threads.run(participants, lines, &|tasks| tasks.for_each(|line| self.line::<T>(line)));
        }
    }

    fn line<T: Ordered>(&self, line: usize) {
        let mut values = self.input.read::<T>(line);
        match self.wanted {
            Wanted::Elements => {
                values.sort_unstable_by(order);
                // SAFETY: each line is one task.
                unsafe { self.output.write(line, values.into_iter()) };
            }
            Wanted::Indices => {
                let mut pairs: Vec<(T, i64)> = values.into_iter().zip(0..).collect();
                pairs.sort_by(|a, b| order(&a.0, &b.0));
                // SAFETY: each line is one task.
                unsafe { self.output.write(line, pairs.into_iter().map(|(_, index)| index)) };
            }
        }
    }

    /// Participants sort parts of the line side by side; a stable sort of the whole then merges the ordered parts.
    fn long_line<T: Ordered>(&self, line: usize, participants: usize, threads: &mut dyn Parallel) {
        let mut pairs: Vec<(T, i64)> = self.input.read::<T>(line).into_iter().zip(0..).collect();
        let size = pairs.len().div_ceil(participants);
        {
            let parts: Vec<Mutex<&mut [(T, i64)]>> = pairs.chunks_mut(size).map(Mutex::new).collect();
            threads.run(participants, parts.len(), &|tasks| {
                for part in tasks {
                    let mut part = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
                    part.sort_by(|a, b| order(&a.0, &b.0));
                }
            });
        }
        pairs.sort_by(|a, b| order(&a.0, &b.0));
        // SAFETY: one thread writes the line.
        unsafe {
            match self.wanted {
                Wanted::Elements => self.output.write(line, pairs.into_iter().map(|(value, _)| value)),
                Wanted::Indices => self.output.write(line, pairs.into_iter().map(|(_, index)| index)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs all tasks on the calling thread, and says that there are so many participants.
    struct Pretend(usize);

    impl Parallel for Pretend {
        fn participants(&self, _: u64) -> usize {
            self.0
        }

        fn run(&mut self, _: usize, tasks: usize, body: &(dyn Fn(&mut dyn Iterator<Item = usize>) + Sync)) {
            body(&mut (0..tasks));
        }
    }

    fn view<T: Element>(data: &mut [T], shape: &'static [i64], stride: Vec<isize>) -> Strided<'static> {
        Strided { data: data.as_mut_ptr().cast(), dtype: T::DTYPE, shape, stride }
    }

    #[test]
    fn nan_comes_last_and_lines_may_have_gaps() {
        let mut from = [3.0, f64::NAN, -1.0, 2.0, 0.5, f64::NEG_INFINITY];
        let (mut to, mut places) = ([0.0f64; 6], [0i64; 6]);
        // Two columns of three elements.
        let shape: &[i64] = &[2, 3];
        let stride = || vec![8, 16];
        let (inputs, outputs) = ([view(&mut from, shape, stride())], [view(&mut to, shape, stride())]);
        sort(
            &mut Methods::default(),
            &Call { name: "sort", outputs: &outputs, inputs: &inputs, memory: None },
            &mut Pretend(1),
        )
        .unwrap();
        assert_eq!([to[0], to[2], to[4]], [-1.0, 0.5, 3.0]);
        assert!(to[1] == f64::NEG_INFINITY && to[3] == 2.0 && to[5].is_nan());
        let outputs = [view(&mut places, shape, stride())];
        argsort(
            &mut Methods::default(),
            &Call { name: "argsort", outputs: &outputs, inputs: &inputs, memory: None },
            &mut Pretend(1),
        )
        .unwrap();
        assert_eq!(places, [1, 2, 2, 1, 0, 0]);
    }

    #[test]
    fn long_lines_are_merged_from_parts_and_equal_elements_keep_their_order() {
        const LENGTH: usize = 3 * LONG_LINE;
        static SHAPE: [i64; 1] = [LENGTH as i64];
        let mut from: Vec<i32> = (0..LENGTH as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 22) as i32).collect();
        let mut places = vec![0i64; LENGTH];
        let (inputs, outputs) = ([view(&mut from, &SHAPE, vec![4])], [view(&mut places, &SHAPE, vec![8])]);
        argsort(
            &mut Methods::default(),
            &Call { name: "argsort", outputs: &outputs, inputs: &inputs, memory: None },
            &mut Pretend(4),
        )
        .unwrap();
        let pair = |at: usize| (from[places[at] as usize], places[at]);
        assert!((1..LENGTH).all(|at| pair(at - 1) < pair(at)));
    }
}
