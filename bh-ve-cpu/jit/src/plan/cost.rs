//! The approximate costs of a kernel's steps: instructions, time and registers.

use super::{Form, OutputIn, Plan};
use crate::arithmetic::Operation;
use crate::builder::{Builder, parts};
use crate::{complex, mathematics};
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::Request;
use bh_kernel::{Arg, Step};

/// Roughly how many instructions a step is.
pub(super) fn cost(request: &Request, step: &Step, form: Form, probe: &Builder) -> usize {
    let (level, fast_math) = (request.level, request.fast_math);
    match (step, form) {
        (Step::Random { .. }, _) => 60,
        (Step::Compute { opcode, input, .. }, Form::Inlined(_)) => {
            mathematics::instructions(probe, level, *opcode, *input == DType::F32)
        }
        (Step::Compute { opcode, param, input, .. }, Form::Native) if input.is_complex() => {
            complex::instructions(*opcode, *param, *input)
        }
        (&Step::Compute { opcode, param, input, output, .. }, Form::Native) => {
            let operation = Operation { opcode, param, input, output, level, fast_math };
            if operation.divides_integers() { operation.instructions(probe).unwrap_or(1) } else { 1 }
        }
        // The parts are put in order.
        (Step::Load { slot } | Step::Store { slot, .. }, _) if request.slots[usize::from(*slot)].dtype.is_complex() => {
            4
        }
        // Windows, and shuffles of these.
        (Step::Load { slot }, _) if request.slots[usize::from(*slot)].stride.is_sparse() => {
            usize::from(request.slots[usize::from(*slot)].stride.step().unwrap_or(1)) * 2 - 1
        }
        _ => 1,
    }
}

/// Cycles, about, from the operands of a step to its result.
fn latency(step: &Step) -> usize {
    let Step::Compute { opcode, param, input, .. } = *step else { return 0 };
    let product = if input.is_complex() { 8 } else { 4 };
    match opcode {
        Opcode::Absolute if input == DType::C64 => 60,
        Opcode::Absolute if input == DType::C128 => 45,
        Opcode::Divide if input.is_complex() => 60,
        Opcode::Divide | Opcode::Sqrt => 20,
        Opcode::Multiply => product,
        Opcode::Powi => product * usize::from(param.div_ceil(2)),
        Opcode::Real | Opcode::Imag | Opcode::Copy if input.is_complex() => 0,
        Opcode::Where => 2,
        _ => 4,
    }
}

impl Plan {
    /// The cycles that the longest chain of steps takes, more or less.
    pub(super) fn wait(&self, request: &Request) -> usize {
        let mut ready: Vec<usize> = Vec::with_capacity(self.made.len());
        for &index in &self.made {
            let step = &request.steps[index];
            let begin = step.args().iter().map(|arg| match *arg {
                Arg::Value(value) => ready[usize::from(value)],
                Arg::Constant(_) => 0,
            });
            ready.push(begin.max().unwrap_or(0) + latency(step));
        }
        ready.into_iter().max().unwrap_or(0)
    }

    /// The most values in use at once, except temporaries inside a step.
    pub(super) fn live(&self, request: &Request) -> usize {
        let mut uses = vec![None; self.made.len()];
        for (index, step) in request.steps.iter().enumerate() {
            for arg in step.args() {
                if let Arg::Value(value) = *arg {
                    let first = uses[usize::from(value)].map_or(index, |(first, _)| first);
                    uses[usize::from(value)] = Some((first, index));
                }
            }
        }
        // Values from memory are read at their first use.
        let mut changes = vec![0; request.steps.len() + 1];
        for (value, (first, last)) in uses.iter().enumerate().filter_map(|(value, uses)| Some((value, (*uses)?))) {
            let begin = if self.is_repeatable(request, value as u16) { first } else { self.made[value] };
            let vectors = parts(request.steps[self.made[value]].output_in(request)) as isize;
            changes[begin] += vectors;
            changes[last] -= vectors;
        }
        let sums = changes.iter().scan(0_isize, |live, change| {
            *live += change;
            Some(*live)
        });
        sums.max().unwrap_or(0).unsigned_abs()
    }
}
