//! Discrete Fourier transforms along the last axis.

pub(crate) mod real;

use crate::parallel::share;
use crate::scratch::Reserved;
use crate::{Call, Methods, Parallel};
use bh_bytecode::{DType, Element};
use bh_core::Result;
use rustfft::num_complex::Complex;
use rustfft::{FftDirection, FftNum, FftPlanner};
use std::collections::HashMap;
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
    roots: Roots<T>,
    buffers: Buffers<T>,
}

impl<T: FftNum> Transforms<T> {
    fn new() -> Transforms<T> {
        Transforms { planner: FftPlanner::new(), roots: Roots(HashMap::new()), buffers: Buffers(Mutex::default()) }
    }
}

/// Roots of unity for transforms of real numbers, kept by length.
struct Roots<T>(HashMap<usize, Vec<Complex<T>>>);

impl<T: Part> Roots<T> {
    /// Those for a length.
    fn of(&mut self, length: usize) -> &[Complex<T>] {
        let kept = self.0.values().map(Vec::len).sum::<usize>() * size_of::<Complex<T>>();
        if kept > KEPT && !self.0.contains_key(&length) {
            self.0.clear();
        }
        self.0.entry(length).or_insert_with(|| real::roots(length))
    }
}

/// Buffers that nobody uses.
struct Buffers<T>(Mutex<Vec<Vec<Complex<T>>>>);

impl<T: FftNum> Buffers<T> {
    fn unused(&self) -> MutexGuard<'_, Vec<Vec<Complex<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of `length` numbers, whatever they are; `None` if there is no memory.
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

/// A real number whose transforms there are.
trait Part: FftNum + Element {
    /// The complex number of such parts, as arrays have it.
    type Number: Element;

    fn of(value: Complex<Self>) -> Self::Number;
    fn from(number: Self::Number) -> Complex<Self>;

    /// The same numbers, as the library has them.
    fn as_library(numbers: &mut [Self::Number]) -> &mut [Complex<Self>];

    /// Each two neighbours as the parts of a number.
    fn as_pairs(values: &mut [Self]) -> &mut [Complex<Self>];
}

macro_rules! part {
    ($($real:ident),*) => {$(
        impl Part for $real {
            type Number = bh_bytecode::Complex<$real>;

            fn of(Complex { re, im }: Complex<$real>) -> Self::Number {
                bh_bytecode::Complex { re, im }
            }

            fn from(bh_bytecode::Complex { re, im }: Self::Number) -> Complex<$real> {
                Complex { re, im }
            }

            fn as_library(numbers: &mut [Self::Number]) -> &mut [Complex<$real>] {
                // SAFETY: both are two numbers of this type in C's layout, the real part first.
                unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), numbers.len()) }
            }

            fn as_pairs(values: &mut [$real]) -> &mut [Complex<$real>] {
                // SAFETY: a number is two of these values in C's layout, and there are half as many of them.
                unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len() / 2) }
            }
        }
    )*};
}
part!(f32, f64);

/// Memory that the library takes by itself, to be held while it works: for each participant a line and as much to work in. For a plan
/// it takes about as much as two lines have, which is there, as it was had a moment before.
fn counted<T: Part>(call: &Call<'_, '_>, length: usize, participants: usize) -> Result<Reserved> {
    drop(Reserved::new::<Complex<T>>(call.memory, length.saturating_mul(4))?);
    Reserved::new::<Complex<T>>(call.memory, length.saturating_mul(2 * participants))
}

fn run<T: Part>(
    transforms: &mut Transforms<T>,
    call: &Call<'_, '_>,
    threads: &mut dyn Parallel,
    direction: FftDirection,
) -> Result<()> {
    let (input, output) = (&call.inputs[0], &call.outputs[0]);
    let real = !input.dtype.is_complex();
    let length = input.line() as usize;
    if input.is_empty() {
        return Ok(());
    }
    let participants = threads.participants(20 * input.len() as u64);
    let _counted = counted::<T>(call, length, participants)?;
    let plan = transforms.planner.plan_fft(length, direction);
    let buffers = &transforms.buffers;
    let scale = match direction {
        FftDirection::Forward => T::one(),
        FftDirection::Inverse => T::one() / T::from_usize(length).unwrap_or_else(T::one),
    };
    let (real_from, from) = if real { (Some(input.elements::<T>()), None) } else { (None, Some(input.elements())) };
    let to = output.output::<T::Number>();
    let in_place = to.has_slices() && input.is_apart(output);
    let read = |number: i64, line: &mut [Complex<T>]| {
        if let Some(from) = &real_from {
            line.iter_mut().zip(from.line(number)).for_each(|(to, value)| *to = Complex::new(value, T::zero()));
        }
        if let Some(from) = &from {
            line.iter_mut().zip(from.line(number)).for_each(|(to, value)| *to = T::from(value));
        }
    };
    let failed = AtomicBool::new(false);
    share(threads, participants, (input.len(), length as i64), &|shares| {
        let Some(mut scratch) = buffers.take(plan.get_inplace_scratch_len()) else {
            failed.store(true, Ordering::Relaxed);
            return;
        };
        for mut own in shares {
            let number = own.numbers().start / length as i64;
            if let Some(line) = to.line_mut(&mut own, number).filter(|_| in_place) {
                let line = T::as_library(line);
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
            to.put_line(&mut own, number, line.iter().map(|value| T::of(value.scale(scale))));
            buffers.give_back(line);
        }
        buffers.give_back(scratch);
    });
    match failed.into_inner() {
        true => Err(call.no_memory(length.saturating_mul(size_of::<Complex<T>>()))),
        false => Ok(()),
    }
}
