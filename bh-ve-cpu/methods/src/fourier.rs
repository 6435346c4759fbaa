//! Discrete Fourier transforms along the last axis.

use crate::scratch::Scratch;
use crate::{Call, Methods, Parallel, Strided};
use bh_bytecode::DType;
use bh_core::Result;
use rustfft::num_complex::Complex;
use rustfft::{FftDirection, FftNum, FftPlanner};
use std::sync::atomic::{AtomicBool, Ordering};
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

    /// A buffer of so many numbers, whatever they are; `None` if there is no memory.
    fn take(&self, length: usize) -> Option<Vec<Complex<T>>> {
        let mut buffer = self.unused().pop().unwrap_or_default();
        buffer.try_reserve_exact(length.saturating_sub(buffer.len())).ok()?;
        buffer.resize(length, Complex::new(T::zero(), T::zero()));
        Some(buffer)
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
    call.check()?;
    let plans = &mut methods.plans;
    match call.outputs[0].dtype {
        DType::C64 => run(plans.single.get_or_insert_with(Transforms::new), call, threads, direction),
        _ => run(plans.double.get_or_insert_with(Transforms::new), call, threads, direction),
    }
}

/// The last axis of a view, and the address of each line along it.
pub(crate) struct Lines<'a> {
    outer: Strided<'a>,
    stride: isize,
}

// SAFETY: only addresses are computed from it.
unsafe impl Sync for Lines<'_> {}

impl<'a> Lines<'a> {
    pub(crate) fn new(view: &Strided<'a>) -> Lines<'a> {
        let last = view.shape.len() - 1;
        let outer = Strided {
            data: view.data,
            dtype: view.dtype,
            shape: &view.shape[..last],
            stride: view.stride[..last].to_vec(),
        };
        Lines { outer, stride: view.stride[last] }
    }

    /// How many lines there are.
    pub(crate) fn count(&self) -> i64 {
        self.outer.len()
    }

    /// The address of a line's first element.
    pub(crate) fn first(&self, line: i64) -> *mut u8 {
        self.outer.at(line)
    }

    /// Do the elements of each line follow each other in memory as those of a slice do?
    pub(crate) fn is_dense<T>(&self) -> bool {
        let whole = |stride: &isize| *stride % align_of::<T>() as isize == 0;
        self.stride == size_of::<T>() as isize
            && self.outer.data.cast::<T>().is_aligned()
            && self.outer.stride.iter().all(whole)
    }

    /// The addresses of a line's elements.
    pub(crate) fn addresses(&self, line: i64) -> impl Iterator<Item = *mut u8> {
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
    call: &Call<'_, '_>,
    threads: &mut dyn Parallel,
    direction: FftDirection,
) -> Result<()> {
    let (input, output) = (&call.inputs[0], &call.outputs[0]);
    let real = !input.dtype.is_complex();
    let length = *input.shape.last().unwrap_or(&0) as usize;
    if input.is_empty() {
        return Ok(());
    }
    let participants = threads.participants(20 * input.len() as u64);
    // The library takes memory by itself: for a plan about as much as two lines have, and for each participant a line and
    // as much to work in. It is counted meanwhile; that of the plan is there, as it was had a moment before.
    drop(Scratch::<Complex<T>>::reserve(call.memory, length.saturating_mul(4))?);
    let _counted = Scratch::<Complex<T>>::reserve(call.memory, length.saturating_mul(2 * participants))?;
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
    let failed = AtomicBool::new(false);
    threads.run(participants, lines as usize, &|tasks| {
        let Some(mut scratch) = buffers.take(plan.get_inplace_scratch_len()) else {
            failed.store(true, Ordering::Relaxed);
            return;
        };
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
            let Some(mut line) = buffers.take(length) else {
                failed.store(true, Ordering::Relaxed);
                return;
            };
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
    match failed.into_inner() {
        true => Err(call.no_memory(length.saturating_mul(size_of::<Complex<T>>()))),
        false => Ok(()),
    }
}
