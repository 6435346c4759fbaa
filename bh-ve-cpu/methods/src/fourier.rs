//! Discrete Fourier transforms along the last axis.

use crate::{Call, Methods, Parallel, Strided};
use bh_bytecode::DType;
use bh_core::Result;
use rustfft::num_complex::Complex;
use rustfft::{FftDirection, FftNum, FftPlanner};

/// Plans of transforms, kept by length.
#[derive(Default)]
pub(crate) struct Plans {
    single: Option<FftPlanner<f32>>,
    double: Option<FftPlanner<f64>>,
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
            let planner = plans.single.get_or_insert_with(FftPlanner::new);
            run(planner, input, output, input.dtype == DType::F32, threads, direction);
        }
        (DType::F64 | DType::C128, DType::C128) => {
            let planner = plans.double.get_or_insert_with(FftPlanner::new);
            run(planner, input, output, input.dtype == DType::F64, threads, direction);
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

    fn at(&self, line: i64, element: usize) -> *mut u8 {
        self.outer.at(line).wrapping_offset(element as isize * self.stride)
    }
}

fn run<T: FftNum>(
    planner: &mut FftPlanner<T>,
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
    let plan = planner.plan_fft(length, direction);
    let scale = match direction {
        FftDirection::Forward => T::one(),
        FftDirection::Inverse => T::one() / T::from_usize(length).unwrap_or_else(T::one),
    };
    let (from, to) = (Lines::new(input), Lines::new(output));
    let lines = from.outer.len();
    let participants = threads.participants(20 * input.len() as u64);
    threads.run(participants, lines as usize, &|tasks| {
        let mut line = vec![Complex::new(T::zero(), T::zero()); length];
        let mut scratch = vec![Complex::new(T::zero(), T::zero()); plan.get_inplace_scratch_len()];
        for task in tasks {
            for (element, value) in line.iter_mut().enumerate() {
                let at = from.at(task as i64, element);
                // SAFETY: the element is inside the view, whose type has this layout.
                *value = unsafe {
                    if real {
                        Complex::new(at.cast::<T>().read_unaligned(), T::zero())
                    } else {
                        at.cast::<Complex<T>>().read_unaligned()
                    }
                };
            }
            plan.process_with_scratch(&mut line, &mut scratch);
            for (element, value) in line.iter().enumerate() {
                // SAFETY: as above; every line is written by one participant.
                unsafe { to.at(task as i64, element).cast::<Complex<T>>().write_unaligned(value.scale(scale)) };
            }
        }
    });
}
