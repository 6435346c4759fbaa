//! Discrete Fourier transforms along the last axis.

pub(crate) mod real;

use crate::parallel::share;
use crate::scratch::Reserved;
use crate::{Call, Parallel};
use bh_bytecode::{DType, Element};
use bh_core::Result;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of buffers that are kept from one call to the next, so that their memory is not mapped again each time.
const KEPT: usize = 64 << 20;

/// Plans of transforms, kept by length, and buffers.
#[derive(Default)]
pub(crate) struct Plans {
    single: OnceLock<Transforms<f32>>,
    double: OnceLock<Transforms<f64>>,
}

/// The same of one type. No lock is held while a transform runs.
struct Transforms<T: FftNum> {
    planner: Mutex<FftPlanner<T>>,
    roots: Roots<T>,
    buffers: Buffers<T>,
}

impl<T: Part> Transforms<T> {
    fn new() -> Transforms<T> {
        Transforms {
            planner: Mutex::new(FftPlanner::new()),
            roots: Roots(Mutex::default()),
            buffers: Buffers(Mutex::default()),
        }
    }

    /// The transform of this many complex numbers.
    fn plan(&self, length: usize, direction: FftDirection) -> Arc<dyn Fft<T>> {
        locked(&self.planner).plan_fft(length, direction)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Roots of unity for transforms of real numbers, kept by length.
struct Roots<T>(Mutex<HashMap<usize, Arc<[Complex<T>]>>>);

impl<T: Part> Roots<T> {
    /// Those for a length.
    fn of(&self, length: usize) -> Arc<[Complex<T>]> {
        let mut all = locked(&self.0);
        let kept = all.values().map(|roots| roots.len()).sum::<usize>() * size_of::<Complex<T>>();
        if kept > KEPT && !all.contains_key(&length) {
            all.clear();
        }
        Arc::clone(all.entry(length).or_insert_with(|| real::roots(length).into()))
    }
}

/// Buffers that nobody uses.
struct Buffers<T>(Mutex<Vec<Vec<Complex<T>>>>);

impl<T: FftNum> Buffers<T> {
    /// A buffer of `length` numbers, whatever they are; `None` if there is no memory.
    fn take(&self, length: usize) -> Option<Vec<Complex<T>>> {
        let mut buffer = locked(&self.0).pop().unwrap_or_default();
        buffer.try_reserve_exact(length.saturating_sub(buffer.len())).ok()?;
        buffer.resize(length, Complex::new(T::zero(), T::zero()));
        Some(buffer)
    }

    /// Keeps a buffer for later, unless there is too much of them.
    fn give_back(&self, buffer: Vec<Complex<T>>) {
        let mut unused = locked(&self.0);
        let numbers = buffer.capacity() + unused.iter().map(Vec::capacity).sum::<usize>();
        if numbers * size_of::<Complex<T>>() <= KEPT {
            unused.push(buffer);
        }
    }
}

/// X[k] = Σ x[j] exp(-2πi jk/n) along the last axis.
pub(crate) fn forward(plans: &Plans, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    transform(plans, call, threads, FftDirection::Forward)
}

/// The inverse of [`forward`], with the factor 1/n.
pub(crate) fn inverse(plans: &Plans, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    transform(plans, call, threads, FftDirection::Inverse)
}

fn transform(plans: &Plans, call: &Call<'_, '_>, threads: &mut dyn Parallel, direction: FftDirection) -> Result<()> {
    call.check()?;
    match call.outputs[0].dtype {
        DType::C64 => run(plans.single.get_or_init(Transforms::new), call, threads, direction),
        _ => run(plans.double.get_or_init(Transforms::new), call, threads, direction),
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
    transforms: &Transforms<T>,
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
    let plan = transforms.plan(length, direction);
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
