//! Methods of matrices for stacks: little matrices side by side, others with a call for each. Calls for those of a middle size share
//! the threads, a large one has all of them.

use crate::at_once::Alone;
use crate::{Call, Parallel, Plain, Strided, little};
use bh_bytecode::methods::shipped;
use bh_core::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// Elements of a matrix that one thread works on.
const LITTLE: i64 = 1 << 14;
/// Matrices of a task at least: of fewer, tasks are more work than matrices.
const LEAST: i64 = 16;
/// Tasks for each participant.
const TASKS: usize = 8;

/// A call that several participants take parts of.
struct Shared<'a, 'b>(&'a Call<'a, 'b>);

// SAFETY: participants read inputs, and write parts of outputs that belong to one matrix each, whose task one of them has. Outputs
// overlap inputs only where they are the same elements, which are those of the same matrix.
unsafe impl Sync for Shared<'_, '_> {}

impl Shared<'_, '_> {
    /// Runs the method for the matrix with a number; the stack has this many axes.
    fn one(&self, (axes, number): (usize, i64), run: Plain, threads: &mut dyn Parallel) -> Result<()> {
        fn parts<'a>(views: &[Strided<'a>], axes: usize, number: i64) -> Vec<Strided<'a>> {
            views.iter().map(|view| view.part(axes, number)).collect()
        }
        let (outputs, inputs) = (parts(self.0.outputs, axes, number), parts(self.0.inputs, axes, number));
        run(&Call { outputs: &outputs, inputs: &inputs, name: self.0.name, memory: self.0.memory }, threads)
    }
}

/// Runs a method for each matrix of a stack, or for the one that is no stack. The error is that of the first matrix that has one.
pub(crate) fn each(call: &Call<'_, '_>, run: Plain, threads: &mut dyn Parallel) -> Result<()> {
    let Some(first) = call.inputs.first() else { return run(call, threads) };
    let stack = shipped(call.name).map_or(&[][..], |method| method.stack(first.shape));
    if stack.is_empty() {
        return run(call, threads);
    }
    // Then all operands begin with the stack's extents.
    call.check()?;
    if let Some(done) = little::run(call, stack.len(), threads) {
        return done;
    }
    let (axes, count) = (stack.len(), stack.iter().product::<i64>());
    let elements: i64 = first.shape[axes..].iter().product();
    let shared = Shared(call);
    if elements > LITTLE {
        return (0..count).try_for_each(|number| shared.one((axes, number), run, threads));
    }
    // A multiplication and an addition for each element and row, and what a call takes.
    let work = (elements as f64).powf(1.5) * 10.0 + 5000.0;
    let participants = threads.participants((work * count as f64) as u64);
    let tasks = (participants * TASKS).min((count / LEAST) as usize).max(1);
    let failed: Mutex<Option<(i64, Error)>> = Mutex::new(None);
    threads.run(participants, tasks, &|numbers| {
        for task in numbers {
            let edge = |task: usize| count * task as i64 / tasks as i64;
            for number in edge(task)..edge(task + 1) {
                let Err(error) = shared.one((axes, number), run, &mut Alone) else { continue };
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                if failed.as_ref().is_none_or(|(first, _)| number < *first) {
                    *failed = Some((number, error));
                }
                break;
            }
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), |(_, error)| Err(error))
}
