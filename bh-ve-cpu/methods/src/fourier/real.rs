//! Discrete Fourier transforms of real numbers along the last axis, and back. Those of an even number of elements are transforms of half as
//! many complex numbers, whose parts are neighbours (Cooley, Lewis and Welch 1970); the others are transforms of complex numbers.

use super::{Part, Plans, Transforms, counted};
use crate::parallel::share;
use crate::{Call, Parallel};
use bh_bytecode::DType;
use bh_core::Result;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first half of the transform of real numbers.
pub(crate) fn forward(plans: &Plans, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    transform(plans, call, threads, FftDirection::Forward)
}

/// The inverse of [`forward`], with the factor 1/n.
pub(crate) fn inverse(plans: &Plans, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    transform(plans, call, threads, FftDirection::Inverse)
}

fn transform(plans: &Plans, call: &Call<'_, '_>, threads: &mut dyn Parallel, direction: FftDirection) -> Result<()> {
    call.check()?;
    let whole = if direction == FftDirection::Forward { &call.inputs[0] } else { &call.outputs[0] };
    match whole.dtype {
        DType::F32 => run(plans.single.get_or_init(Transforms::new), call, threads, direction),
        _ => run(plans.double.get_or_init(Transforms::new), call, threads, direction),
    }
}

/// The transform of a line.
struct Line<'a, T: Part> {
    /// Real numbers.
    len: usize,
    /// The transform of complex numbers that it is made of.
    plan: &'a dyn Fft<T>,
    /// The roots exp(-2πik/len), for k up to a quarter of `len`.
    roots: &'a [Complex<T>],
}

/// Roots of unity exp(-2πik/len), for k up to a quarter of `len`.
pub(super) fn roots<T: Part>(len: usize) -> Vec<Complex<T>> {
    let part = |value: f64| T::from_f64(value).unwrap_or_else(T::zero);
    let root = |k: usize| {
        let (sine, cosine) = (2.0 * std::f64::consts::PI * k as f64 / len as f64).sin_cos();
        Complex::new(part(cosine), part(-sine))
    };
    (0..=len / 4).map(root).collect()
}

impl<T: Part> Line<'_, T> {
    /// Elements of the first half.
    fn half(&self) -> usize {
        self.len / 2 + 1
    }

    fn is_paired(&self) -> bool {
        self.len.is_multiple_of(2)
    }

    /// Elements of the transform of complex numbers.
    fn pairs(&self) -> usize {
        if self.is_paired() { self.len / 2 } else { self.len }
    }

    /// Complex numbers that the transform works on.
    fn room(&self) -> usize {
        if self.is_paired() { self.half() } else { self.len }
    }

    /// Makes the first half of a transform, in the first elements of `line`.
    fn forward(&self, mut values: impl Iterator<Item = T>, line: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        if !self.is_paired() {
            line.iter_mut().zip(values).for_each(|(to, value)| *to = Complex::new(value, T::zero()));
            return self.plan.process_with_scratch(line, scratch);
        }
        let pairs = &mut line[..self.len / 2];
        for to in pairs.iter_mut() {
            if let (Some(re), Some(im)) = (values.next(), values.next()) {
                *to = Complex::new(re, im);
            }
        }
        self.plan.process_with_scratch(pairs, scratch);
        self.unfold(line);
    }

    /// Makes the transform of real numbers of that of their pairs.
    fn unfold(&self, line: &mut [Complex<T>]) {
        let (last, half) = (line.len() - 1, T::one() / (T::one() + T::one()));
        let first = line[0];
        line[0] = Complex::new(first.re + first.im, T::zero());
        line[last] = Complex::new(first.re - first.im, T::zero());
        for k in 1..=last / 2 {
            let (a, b) = (line[k].scale(half), line[last - k].conj().scale(half));
            let turned = (a - b) * self.roots[k];
            let (even, odd) = (a + b, Complex::new(turned.im, -turned.re));
            line[k] = even + odd;
            line[last - k] = (even - odd).conj();
        }
    }

    /// Makes the pairs of the real numbers that a first half is the transform of, or, of an odd number, complex numbers of which they are
    /// the real parts.
    fn inverse(
        &self,
        mut values: impl Iterator<Item = Complex<T>>,
        line: &mut [Complex<T>],
        scratch: &mut [Complex<T>],
    ) {
        let scale = T::one() / T::from_usize(self.len).unwrap_or_else(T::one);
        let Some(first) = values.next() else { return };
        line[0] = Complex::new(first.re * scale, T::zero());
        let mut last = T::zero();
        for (k, value) in (1..self.half()).zip(values) {
            if !self.is_paired() {
                line[k] = value.scale(scale);
                line[self.len - k] = line[k].conj();
            } else if k < line.len() {
                line[k] = value.scale(scale);
            } else {
                last = value.re * scale;
            }
        }
        if self.is_paired() {
            self.fold(line, last);
        }
        self.plan.process_with_scratch(line, scratch);
    }

    /// Makes the transform of pairs of that of real numbers, whose last element is `last`.
    fn fold(&self, line: &mut [Complex<T>], last: T) {
        let (len, first) = (line.len(), line[0].re);
        line[0] = Complex::new(first + last, first - last);
        for k in 1..=(len / 2).min(len - 1) {
            let (a, b) = (line[k], line[len - k].conj());
            let turned = (a - b) * self.roots[k].conj();
            let (even, odd) = (a + b, Complex::new(-turned.im, turned.re));
            line[k] = even + odd;
            line[len - k] = (even - odd).conj();
        }
    }
}

fn run<T: Part>(
    transforms: &Transforms<T>,
    call: &Call<'_, '_>,
    threads: &mut dyn Parallel,
    direction: FftDirection,
) -> Result<()> {
    let (input, output) = (&call.inputs[0], &call.outputs[0]);
    if output.is_empty() {
        return Ok(());
    }
    let len = if direction == FftDirection::Forward { input.line() } else { output.line() } as usize;
    let participants = threads.participants(10 * input.len().max(output.len()) as u64);
    let _counted = counted::<T>(call, len, participants)?;
    let plan = transforms.plan(if len.is_multiple_of(2) { len / 2 } else { len }, direction);
    let roots = transforms.roots.of(len);
    let line = Line { len, plan: &*plan, roots: &roots };
    let failed = AtomicBool::new(false);
    let buffers = &transforms.buffers;
    let in_place = line.is_paired() && input.is_apart(output);
    let each = output.line();
    let is_forward = direction == FftDirection::Forward;
    let there = is_forward.then(|| (input.elements::<T>(), output.output::<T::Number>()));
    let back = (!is_forward).then(|| (input.elements::<T::Number>(), output.output::<T>()));
    share(threads, participants, (output.len(), each), &|shares| {
        let (scratch, room) = (buffers.take(plan.get_inplace_scratch_len()), buffers.take(line.room()));
        let (Some(mut scratch), Some(mut room)) = (scratch, room) else {
            failed.store(true, Ordering::Relaxed);
            return;
        };
        for mut own in shares {
            let number = own.numbers().start / each;
            if let Some((from, to)) = &there {
                if let Some(to) = to.line_mut(&mut own, number).filter(|_| in_place) {
                    line.forward(from.line(number), T::as_library(to), &mut scratch);
                    continue;
                }
                line.forward(from.line(number), &mut room, &mut scratch);
                to.put_line(&mut own, number, room.iter().map(|&value| T::of(value)));
            }
            if let Some((from, to)) = &back {
                let values = from.line(number).map(T::from);
                if let Some(to) = to.line_mut(&mut own, number).filter(|_| in_place) {
                    line.inverse(values, T::as_pairs(to), &mut scratch);
                    continue;
                }
                let found = &mut room[..line.pairs()];
                line.inverse(values, found, &mut scratch);
                match line.is_paired() {
                    true => to.put_line(&mut own, number, found.iter().flat_map(|value| [value.re, value.im])),
                    false => to.put_line(&mut own, number, found.iter().map(|value| value.re)),
                }
            }
        }
        buffers.give_back(room);
        buffers.give_back(scratch);
    });
    match failed.into_inner() {
        true => Err(call.no_memory(len.saturating_mul(size_of::<Complex<T>>()))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustfft::algorithm::Dft;

    /// Numbers without a pattern.
    fn numbers(len: usize) -> Vec<f64> {
        (0..len).map(|at| ((at * at * 7 + at * 3 + 1) % 101) as f64 / 101.0 - 0.4).collect()
    }

    #[test]
    fn halves_are_those_of_the_transforms_of_complex_numbers_and_lead_back() {
        for len in (1..40).chain([64, 125, 1000, 1 << 12]) {
            let values = numbers(len);
            let mut wanted: Vec<Complex<f64>> = values.iter().map(|&value| Complex::new(value, 0.0)).collect();
            // By the definition: the library's planner would have all of its transforms compiled for this test.
            Dft::new(len, FftDirection::Forward).process(&mut wanted);
            let (each, roots) = (if len % 2 == 0 { len / 2 } else { len }, roots(len));
            let plan = Dft::new(each, FftDirection::Forward);
            let forward = Line { len, plan: &plan, roots: &roots };
            let zeros = |len: usize| vec![Complex::new(0.0, 0.0); len];
            let (mut line, mut scratch) = (zeros(forward.room()), zeros(plan.get_inplace_scratch_len()));
            forward.forward(values.iter().copied(), &mut line, &mut scratch);
            let found = &line[..forward.half()];
            let error = found.iter().zip(&wanted).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
            assert!(error < 1e-12 * len as f64, "{len}: {error}");
            let plan = Dft::new(each, FftDirection::Inverse);
            let inverse = Line { len, plan: &plan, roots: &roots };
            let (mut back, mut scratch) = (zeros(each), zeros(plan.get_inplace_scratch_len()));
            inverse.inverse(found.iter().copied(), &mut back, &mut scratch);
            let back: Vec<f64> = match inverse.is_paired() {
                true => back.iter().flat_map(|value| [value.re, value.im]).collect(),
                false => back.iter().map(|value| value.re).collect(),
            };
            let error = back.iter().zip(&values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(back.len() == len && error < 1e-14 * len as f64, "{len}: {error}");
        }
    }
}
