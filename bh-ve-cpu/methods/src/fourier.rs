//! Discrete Fourier transforms along the last axis.

use crate::{Call, Methods, Parallel, Strided};
use bh_bytecode::DType;
use bh_core::Result;
use rustfft::num_complex::Complex;
use rustfft::{FftDirection, FftNum, FftPlanner};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of buffers that are kept from one call to the next, so that their memory is not mapped again each time.
const KEPT: usize = 64 << 20;

/// Plans of transforms, kept by length, and buffers.
#[derive(Default)]
pub(crate) struct Plans {
    single: Option<Transforms<f32>>,
    double: Option<Transforms<f64>>,
}

/// The same of one type.
struct Transforms<T: FftNum> {
    planner: FftPlanner<T>,
    buffers: Buffers<T>,
}

impl<T: FftNum> Transforms<T> {
    fn new() -> Transforms<T> {
        Transforms { planner: FftPlanner::new(), buffers: Buffers(Mutex::default()) }
    }
}

/// Buffers that nobody uses.
struct Buffers<T>(Mutex<Vec<Vec<Complex<T>>>>);

impl<T: FftNum> Buffers<T> {
    fn unused(&self) -> MutexGuard<'_, Vec<Vec<Complex<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of so many numbers, whatever they are.
    fn take(&self, length: usize) -> Vec<Complex<T>> {
        let mut buffer = self.unused().pop().unwrap_or_default();
        buffer.resize(length, Complex::new(T::zero(), T::zero()));
        buffer
    }

    /// Keeps a buffer for later, unless there is too much of them.
    fn give_back(&self, buffer: Vec<Complex<T>>) {
        let mut unused = self.unused();
        let numbers = buffer.capacity() + unused.iter().map(Vec::capacity).sum::<usize>();
        if numbers * size_of::<Complex<T>>() <= KEPT {
            unused.push(buffer);
        }
    }
}

/// X[k] = Σ x[j] exp(-2πi jk/n) along the last axis.
pub(crate) fn forward(methods: &mut Methods, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    transform(methods, call, threads, FftDirection::Forward)
}

/// The inverse of [`forward`], with the factor 1/n.
pub(crate) fn inverse(methods: &mut Methods, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    transform(methods, call, threads, FftDirection::Inverse)
}

fn transform(
    methods: &mut Methods,
    call: &Call<'_, '_>,
    threads: &mut dyn Parallel,
    direction: FftDirection,
) -> Result<()> {
    call.check_counts(1..=1, 1)?;
    let (input, output) = (&call.inputs[0], &call.outputs[0]);
    if input.shape != output.shape || input.shape.is_empty() {
        return call.shape_error();
    }
    let plans = &mut methods.plans;
    match (input.dtype, output.dtype) {
        (DType::F32 | DType::C64, DType::C64) => {
            let transforms = plans.single.get_or_insert_with(Transforms::new);
            run(transforms, input, output, input.dtype == DType::F32, threads, direction);
        }
        (DType::F64 | DType::C128, DType::C128) => {
            let transforms = plans.double.get_or_insert_with(Transforms::new);
            run(transforms, input, output, input.dtype == DType::F64, threads, direction);
        }
        _ => return call.type_error(),
    }
    Ok(())
}

/// The last axis of a view, and the address of each line along it.
struct Lines<'a> {
    outer: Strided<'a>,
    stride: isize,
}

// SAFETY: only addresses are computed from it.
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
        Lines { outer, stride: view.stride[last] }
    }

    /// The addresses of a line's elements.
    fn addresses(&self, line: i64) -> impl Iterator<Item = *mut u8> {
        let (first, stride) = (self.outer.at(line), self.stride);
        (0..).map(move |element: isize| first.wrapping_offset(element * stride))
    }

    /// The first address of a line whose elements follow each other as complex numbers in memory do.
    fn dense<T>(&self, line: i64) -> Option<*mut Complex<T>> {
        let first = self.outer.at(line).cast::<Complex<T>>();
        (self.stride == size_of::<Complex<T>>() as isize && first.is_aligned()).then_some(first)
    }
}

fn run<T: FftNum>(
    transforms: &mut Transforms<T>,
    input: &Strided<'_>,
    output: &Strided<'_>,
    real: bool,
    threads: &mut dyn Parallel,
    direction: FftDirection,
) {
    let length = *input.shape.last().unwrap_or(&0) as usize;
    if input.is_empty() {
        return;
    }
    let plan = transforms.planner.plan_fft(length, direction);
    let buffers = &transforms.buffers;
    let scale = match direction {
        FftDirection::Forward => T::one(),
        FftDirection::Inverse => T::one() / T::from_usize(length).unwrap_or_else(T::one),
    };
    let (from, to) = (Lines::new(input), Lines::new(output));
    let lines = from.outer.len();
    let apart = input.is_apart(output);
    let read = |number: i64, line: &mut [Complex<T>]| {
        for (value, at) in line.iter_mut().zip(from.addresses(number)) {
            // SAFETY: the element is inside the view, whose type has this layout.
            *value = unsafe {
                if real {
                    Complex::new(at.cast::<T>().read_unaligned(), T::zero())
                } else {
                    at.cast::<Complex<T>>().read_unaligned()
                }
            };
        }
    };
    let participants = threads.participants(20 * input.len() as u64);
    threads.run(participants, lines as usize, &|tasks| {
        let mut scratch = buffers.take(plan.get_inplace_scratch_len());
        for task in tasks {
            let number = task as i64;
            if let Some(first) = to.dense::<T>(number).filter(|_| apart) {
                // SAFETY: the line is inside the view, apart from the input; every line is one participant's.
                let line = unsafe { std::slice::from_raw_parts_mut(first, length) };
                read(number, line);
                plan.process_with_scratch(line, &mut scratch);
                if direction == FftDirection::Inverse {
                    line.iter_mut().for_each(|value| *value = value.scale(scale));
                }
                continue;
            }
            let mut line = buffers.take(length);
            read(number, &mut line);
            plan.process_with_scratch(&mut line, &mut scratch);
            for (value, at) in line.iter().zip(to.addresses(number)) {
                // SAFETY: as above.
                unsafe { at.cast::<Complex<T>>().write_unaligned(value.scale(scale)) };
            }
            buffers.give_back(line);
        }
        buffers.give_back(scratch);
    });
}
