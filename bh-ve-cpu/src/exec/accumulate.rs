//! Running folds along one axis. Long lines are cut into chunks by their length alone; a first pass folds each chunk, a
//! second one runs through it from what lies before, so that chunks can be done side by side with the same bits.

use super::workers::Workers;
use bh_bytecode::scalar::Arithmetic;
use bh_bytecode::{MAX_RANK, Opcode, with_dtype};
use bh_methods::{Strided, walk};

/// Elements of a chunk.
const CHUNK: i64 = 65_536;

/// Writes the running sums or products of `input` along `axis` to `out`.
///
/// # Safety
/// Both views must be valid, of one type and shape, and identical or disjoint.
pub(crate) unsafe fn accumulate(
    opcode: Opcode,
    out: &Strided<'_>,
    input: &Strided<'_>,
    axis: usize,
    workers: &mut Workers,
) {
    // SAFETY: promised by the caller.
    with_dtype!(out.dtype, T => unsafe {
        if opcode == Opcode::MultiplyAccumulate {
            run::<T>(out, input, axis, workers, T::ONE, |a, b| a.multiply(b));
        } else {
            run::<T>(out, input, axis, workers, T::ZERO, |a, b| a.add(b));
        }
    });
}

/// One line in memory.
#[derive(Clone, Copy)]
struct Line {
    out: *mut u8,
    input: *mut u8,
    out_stride: isize,
    input_stride: isize,
}

// SAFETY: participants work on disjoint parts.
unsafe impl Send for Line {}
// SAFETY: as above.
unsafe impl Sync for Line {}

impl Line {
    fn at(self, element: i64) -> Line {
        Line {
            out: self.out.wrapping_offset(element as isize * self.out_stride),
            input: self.input.wrapping_offset(element as isize * self.input_stride),
            ..self
        }
    }
}

/// # Safety
/// As [`accumulate`].
unsafe fn run<T: Arithmetic>(
    out: &Strided<'_>,
    input: &Strided<'_>,
    axis: usize,
    workers: &mut Workers,
    identity: T,
    combine: impl Fn(T, T) -> T + Copy + Sync,
) {
    let extent = out.shape[axis];
    let total = out.len();
    if total == 0 {
        return;
    }
    let shape: Vec<i64> =
        out.shape.iter().enumerate().filter(|&(dim, _)| dim != axis).map(|(_, &extent)| extent).collect();
    let starts = [out, input].map(|view| view.first_along(axis, &shape));
    let line =
        Line { out: out.data(), input: input.data(), out_stride: out.stride[axis], input_stride: input.stride[axis] };
    let lines = total / extent;
    let participants = workers.participants(2 * total as u64);
    if participants > 1 && lines < 4 * participants as i64 && extent > CHUNK {
        let [outs, inputs] = &starts;
        walk([outs, inputs], shape.len()).each([outs.data(), inputs.data()], |[out, input]| {
            let line = Line { out, input, ..line };
            // SAFETY: promised by the caller.
            unsafe { line_in_parallel(line, extent, participants, workers, identity, combine) };
        });
        return;
    }
    debug_assert!(shape.len() < MAX_RANK);
    let tasks = if participants == 1 { 1 } else { lines.min(participants as i64 * 8) };
    let per_task = (lines + tasks - 1) / tasks;
    let [outs, inputs] = &starts;
    let (outs, inputs) = (SharedView(outs), SharedView(inputs));
    workers.run(participants, tasks as usize, |_, tasks| {
        while let Some(task) = tasks.take() {
            for number in task as i64 * per_task..((task as i64 + 1) * per_task).min(lines) {
                let mut line = Line { out: outs.view().at(number), input: inputs.view().at(number), ..line };
                let (mut before, mut left) = (identity, extent);
                while left > 0 {
                    let count = left.min(CHUNK);
                    // SAFETY: the chunk is inside the line.
                    unsafe { before = chunk(line, count, before, identity, combine) };
                    line = line.at(count);
                    left -= count;
                }
            }
        }
    });
}

struct SharedView<'a>(&'a Strided<'a>);

impl SharedView<'_> {
    fn view(&self) -> &Strided<'_> {
        self.0
    }
}

// SAFETY: only addresses are computed from it.
unsafe impl Sync for SharedView<'_> {}

/// Runs through a chunk from the fold of what lies before it, and returns the fold up to its end.
///
/// # Safety
/// The chunk must be inside the line.
#[inline(always)]
unsafe fn chunk<T: Arithmetic>(line: Line, count: i64, before: T, identity: T, combine: impl Fn(T, T) -> T) -> T {
    let (mut running, mut own) = (before, identity);
    let (mut out, mut input) = (line.out, line.input);
    for _ in 0..count {
        // SAFETY: promised by the caller.
        unsafe {
            let value = input.cast::<T>().read_unaligned();
            running = combine(running, value);
            own = combine(own, value);
            out.cast::<T>().write_unaligned(running);
        }
        out = out.wrapping_offset(line.out_stride);
        input = input.wrapping_offset(line.input_stride);
    }
    combine(before, own)
}

/// # Safety
/// The line must be valid.
unsafe fn line_in_parallel<T: Arithmetic>(
    line: Line,
    extent: i64,
    participants: usize,
    workers: &mut Workers,
    identity: T,
    combine: impl Fn(T, T) -> T + Copy + Sync,
) {
    let chunks = ((extent + CHUNK - 1) / CHUNK) as usize;
    let mut folds = vec![identity; chunks];
    let shared = SharedFolds(folds.as_mut_ptr());
    workers.run(participants, chunks, |_, tasks| {
        while let Some(task) = tasks.take() {
            let first = task as i64 * CHUNK;
            let part = line.at(first);
            let (mut own, mut input) = (identity, part.input);
            for _ in 0..CHUNK.min(extent - first) {
                // SAFETY: the chunk is inside the line.
                own = combine(own, unsafe { input.cast::<T>().read_unaligned() });
                input = input.wrapping_offset(part.input_stride);
            }
            // SAFETY: each task has its own place.
            unsafe { shared.place(task).write(own) };
        }
    });
    let mut before = identity;
    for fold in &mut folds {
        let own = *fold;
        *fold = before;
        before = combine(before, own);
    }
    let shared = SharedFolds(folds.as_mut_ptr());
    workers.run(participants, chunks, |_, tasks| {
        while let Some(task) = tasks.take() {
            let first = task as i64 * CHUNK;
            // SAFETY: each task has its own place and its own chunk.
            unsafe {
                let before = shared.place(task).read();
                chunk(line.at(first), CHUNK.min(extent - first), before, identity, combine);
            }
        }
    });
}

struct SharedFolds<T>(*mut T);

impl<T> SharedFolds<T> {
    fn place(&self, task: usize) -> *mut T {
        self.0.wrapping_add(task)
    }
}

// SAFETY: each task uses its own place.
unsafe impl<T: Send> Sync for SharedFolds<T> {}
