//! Running folds along one axis. Long lines are cut into chunks by their length alone; a first pass folds each chunk, a
//! second one runs through it from the fold of the chunks before, so that chunks run side by side with the same bits.

use super::workers::Workers;
use bh_bytecode::scalar::Arithmetic;
use bh_bytecode::{Opcode, with_dtype};
use bh_methods::{Share, Strided, ViewMut, ViewRef, share, share_between};
use std::sync::{Mutex, PoisonError};

/// Elements of a chunk.
const CHUNK: i64 = 65_536;

/// Writes the running sums or products of `input` along `axis` to `out`. They are of one type and shape.
pub(crate) fn accumulate(opcode: Opcode, out: &Strided<'_>, input: &Strided<'_>, axis: usize, workers: &mut Workers) {
    with_dtype!(out.dtype, T => {
        if opcode == Opcode::MultiplyAccumulate {
            run::<T>(out, input, axis, workers, T::ONE, |a, b| a.multiply(b));
        } else {
            run::<T>(out, input, axis, workers, T::ZERO, |a, b| a.add(b));
        }
    });
}

fn run<T: Arithmetic>(
    out: &Strided<'_>,
    input: &Strided<'_>,
    axis: usize,
    workers: &mut Workers,
    identity: T,
    combine: impl Fn(T, T) -> T + Copy + Sync,
) {
    let (extent, total) = (out.shape[axis], out.len());
    if total == 0 {
        return;
    }
    let mut shape = out.shape.to_vec();
    shape.remove(axis);
    shape.push(extent);
    let [out, input] = [out, input].map(|view| view.with_last(axis, &shape));
    let scan = Scan { out: out.output(), input: input.elements(), extent, identity, combine };
    let lines = total / extent;
    let participants = workers.participants(2 * total as u64);
    if participants > 1 && lines < 4 * participants as i64 && extent > CHUNK {
        return (0..lines).for_each(|line| scan.line_in_parallel(line, participants, workers));
    }
    let tasks = if participants == 1 { 1 } else { lines.min(participants as i64 * 8) };
    let per_task = (lines + tasks - 1) / tasks;
    share(workers, participants, (total, per_task * extent), &|shares| {
        for mut own in shares {
            for line in own.numbers().start / extent..own.numbers().end / extent {
                let mut before = identity;
                for first in (0..extent).step_by(CHUNK as usize) {
                    before = scan.chunk(&mut own, line, first, before);
                }
            }
        }
    });
}

/// A running fold along the lines of a view.
struct Scan<'a, T, C> {
    out: ViewMut<'a, T>,
    input: ViewRef<'a, T>,
    extent: i64,
    identity: T,
    combine: C,
}

impl<T: Arithmetic, C: Fn(T, T) -> T + Copy + Sync> Scan<'_, T, C> {
    /// Runs through the chunk of a line that begins at `first`, from the fold of the elements before it, and returns the fold up
    /// to its end.
    #[inline(always)]
    fn chunk(&self, share: &mut Share<'_>, line: i64, first: i64, before: T) -> T {
        let (mut running, mut own) = (before, self.identity);
        let chunk = first..self.extent.min(first + CHUNK);
        self.out.make_part(share, line, chunk, &self.input, |value| {
            running = (self.combine)(running, value);
            own = (self.combine)(own, value);
            running
        });
        (self.combine)(before, own)
    }

    fn line_in_parallel(&self, line: i64, participants: usize, workers: &mut Workers) {
        let &Scan { extent, identity, combine, .. } = self;
        let begin = line * extent;
        let borders: Vec<i64> =
            (0..extent).step_by(CHUNK as usize).chain([extent]).map(|first| begin + first).collect();
        let folds = Mutex::new(vec![identity; borders.len() - 1]);
        let fold = |chunk: usize| -> T { folds.lock().unwrap_or_else(PoisonError::into_inner)[chunk] };
        share_between(workers, participants, &borders, &|shares| {
            for (chunk, own) in shares {
                let elements = own.numbers().start - begin..own.numbers().end - begin;
                let sum = self.input.part(line, elements).fold(identity, combine);
                folds.lock().unwrap_or_else(PoisonError::into_inner)[chunk] = sum;
            }
        });
        let mut before = identity;
        for fold in folds.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            let own = std::mem::replace(fold, before);
            before = combine(before, own);
        }
        share_between(workers, participants, &borders, &|shares| {
            for (chunk, mut own) in shares {
                let first = own.numbers().start - begin;
                self.chunk(&mut own, line, first, fold(chunk));
            }
        });
    }
}
