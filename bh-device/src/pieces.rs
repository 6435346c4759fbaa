//! Loop nests in pieces: which part of the iterations, and what of each array it uses.

use bh_bytecode::{BatchRef, DType, Opcode};
use bh_kernel::{Arg, BufferRef, Dim, Kernel, Parameters, Slot, SlotMode, Stage, Step};

/// The most pieces of a nest; more would take longer than another engine.
const MOST: usize = 4096;

/// A part of a nest: this many iterations of each dimension, from these on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) offsets: Vec<i64>,
    pub(crate) extents: Vec<i64>,
}

/// The elements of a base that a piece uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Index in the batch.
    pub(crate) base: u32,
    pub(crate) dtype: DType,
    pub(crate) first: i64,
    pub(crate) len: i64,
    /// Is any of their content needed?
    pub(crate) needed: bool,
    /// Does any of them change?
    pub(crate) written: bool,
}

impl Window {
    /// The first byte in the base.
    pub(crate) fn offset(&self) -> usize {
        self.first as usize * self.dtype.size()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.len as usize * self.dtype.size()
    }
}

/// A nest that is a part of another one. Its bases are its windows, by number, and its buffers begin where they do.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) stage: Stage,
    pub(crate) windows: Vec<Window>,
    /// Bytes of the results of each reduction, if another piece folds further elements for the same ones.
    pub(crate) partials: Vec<usize>,
    /// Puts the partial results to those of the pieces before.
    pub(crate) combine: Option<Stage>,
}

impl Part {
    /// All of a nest.
    pub(crate) fn whole(stage: &Stage) -> Part {
        let extents = stage.parameters.extents.clone();
        Part { offsets: vec![0; extents.len()], extents }
    }

    pub(crate) fn halves(&self, dim: usize) -> [Part; 2] {
        let (mut left, mut right) = (self.clone(), self.clone());
        let half = self.extents[dim] / 2;
        left.extents[dim] = half;
        right.offsets[dim] += half;
        right.extents[dim] -= half;
        [left, right]
    }

    /// Two parts that use less memory: along the dimension that saves most, the outermost of equal ones. None if it is a
    /// single iteration.
    pub(crate) fn split(&self, stage: &Stage, batch: &BatchRef<'_>) -> Option<[Part; 2]> {
        let dims = (0..self.extents.len()).filter(|&dim| self.extents[dim] > 1);
        let best = dims.min_by_key(|&dim| bytes(&windows(stage, &self.halves(dim)[1], batch)))?;
        Some(self.halves(best))
    }
}

/// Device memory for the arrays of a piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// For all of them.
    pub(crate) bytes: u64,
    /// For one.
    pub(crate) largest: u64,
}

impl Room {
    fn holds(&self, windows: &[Window]) -> bool {
        bytes(windows) <= self.bytes && windows.iter().all(|window| window.bytes() as u64 <= self.largest)
    }
}

/// The parts of a nest whose arrays have room; none if that takes too many.
pub(crate) fn parts(stage: &Stage, batch: &BatchRef<'_>, room: &Room) -> Option<Vec<Part>> {
    let (mut left, mut done) = (vec![Part::whole(stage)], Vec::new());
    while let Some(part) = left.pop() {
        if room.holds(&windows(stage, &part, batch)) {
            done.push(part);
        } else {
            let [first, second] = part.split(stage, batch)?;
            left.extend([second, first]);
        }
        if done.len() + left.len() > MOST {
            return None;
        }
    }
    Some(done)
}

fn bytes(windows: &[Window]) -> u64 {
    windows.iter().map(|window| crate::memory::capacity(window.bytes()) as u64).sum()
}

/// The offset of a slot's element at the first iteration of a part; numbers of index views may wrap.
fn start(parameters: &Parameters, slot: usize, part: &Part) -> i64 {
    let steps = parameters.stride(slot).iter().zip(&part.offsets);
    steps.fold(parameters.starts[slot], |start, (stride, offset)| start.wrapping_add(stride.wrapping_mul(*offset)))
}

/// The lowest and the highest element that a slot reaches in a part, and how many there are if it reaches each once.
pub(crate) fn reach(parameters: &Parameters, slot: usize, part: &Part) -> Option<(i64, i64, i64)> {
    let first = start(parameters, slot, part);
    let (mut low, mut high, mut count) = (first, first, 1);
    for (&stride, &extent) in parameters.stride(slot).iter().zip(&part.extents).filter(|(stride, _)| **stride != 0) {
        if extent == 0 {
            return None;
        }
        low += (stride * (extent - 1)).min(0);
        high += (stride * (extent - 1)).max(0);
        count *= extent;
    }
    Some((low, high, count))
}

/// Have other parts other elements of a dimension that is folded?
fn shares_results(stage: &Stage, part: &Part) -> bool {
    let dims = stage.kernel.dims.iter().zip(&part.extents).zip(&stage.parameters.extents);
    stage.kernel.reduces() && dims.into_iter().any(|((dim, own), all)| *dim == Dim::Reduced && own != all)
}

/// Is this the part with the first elements of all dimensions that are folded? It comes before those with the others.
fn begins(stage: &Stage, part: &Part) -> bool {
    stage.kernel.dims.iter().zip(&part.offsets).all(|(dim, offset)| *dim == Dim::Kept || *offset == 0)
}

/// The windows of its bases that a part of a nest uses, and the window of each slot.
pub(crate) fn windows_of(stage: &Stage, part: &Part, batch: &BatchRef<'_>) -> (Vec<Window>, Vec<Option<usize>>) {
    let Uses { windows, slots, .. } = Uses::of(stage, part, batch);
    (windows, slots)
}

/// The windows of its bases that a part of a nest uses, and the window of each slot and of each gather's source. A base that
/// is written has one window; reads at places that are far apart have windows of their own.
struct Uses {
    windows: Vec<Window>,
    slots: Vec<Option<usize>>,
    gathers: Vec<Option<usize>>,
}

impl Uses {
    /// The window of elements from `low` to `high` of a base.
    fn add(&mut self, window: Window, apart: bool) -> usize {
        let meets = |known: &Window| {
            let ends = (known.first + known.len, window.first + window.len);
            known.base == window.base && (!apart || (known.first <= ends.1 && window.first <= ends.0))
        };
        let Some(at) = self.windows.iter().position(meets) else {
            self.windows.push(window);
            return self.windows.len() - 1;
        };
        let known = &mut self.windows[at];
        let end = (known.first + known.len).max(window.first + window.len);
        known.first = known.first.min(window.first);
        known.len = end - known.first;
        known.needed |= window.needed;
        known.written |= window.written;
        at
    }

    fn of(stage: &Stage, part: &Part, batch: &BatchRef<'_>) -> Uses {
        let (kernel, parameters) = (&stage.kernel, &stage.parameters);
        let mut uses = Uses { windows: Vec::new(), slots: Vec::new(), gathers: Vec::new() };
        let adds = shares_results(stage, part) && !begins(stage, part);
        let written = |base: u32| {
            let slots = kernel.slots.iter().zip(&parameters.buffers);
            slots.into_iter().any(|(slot, buffer)| slot.mode.writes() && *buffer == BufferRef::Base(base))
        };
        for (slot, buffer) in parameters.buffers.iter().enumerate() {
            let BufferRef::Base(base) = *buffer else {
                uses.slots.push(None);
                continue;
            };
            let mode = kernel.slots[slot].mode;
            let dtype = batch.bases[base as usize].dtype();
            // Without iterations results are there nevertheless, and nothing else.
            let used = mode == SlotMode::Result || !part.extents.contains(&0);
            let window = match reach(parameters, slot, part).filter(|_| used) {
                Some((low, high, _)) => Window {
                    base,
                    dtype,
                    first: low,
                    len: high - low + 1,
                    needed: !mode.writes() || (mode == SlotMode::Result && adds),
                    written: mode.writes(),
                },
                None => Window { base, dtype, first: 0, len: 0, needed: false, written: false },
            };
            let at = uses.add(window, !written(base));
            uses.slots.push(Some(at));
        }
        for gather in &parameters.gathers {
            let BufferRef::Base(base) = gather.buffer else {
                uses.gathers.push(None);
                continue;
            };
            let record = &batch.bases[base as usize];
            let seen = gather.len > 0 && !part.extents.contains(&0);
            let len = if seen { record.len } else { 0 };
            let window = Window { base, dtype: record.dtype(), first: 0, len, needed: seen, written: false };
            let at = uses.add(window, !written(base));
            uses.gathers.push(Some(at));
        }
        // Elements between the written ones stay as they are.
        for (number, window) in uses.windows.iter_mut().enumerate().filter(|(_, it)| it.written && !it.needed) {
            let covers = |slot: usize| {
                uses.slots[slot] == Some(number)
                    && kernel.slots[slot].mode.writes()
                    && reach(parameters, slot, part).is_some_and(|(.., count)| count == window.len)
            };
            window.needed = !(0..parameters.buffers.len()).any(covers);
        }
        uses
    }
}

fn windows(stage: &Stage, part: &Part, batch: &BatchRef<'_>) -> Vec<Window> {
    Uses::of(stage, part, batch).windows
}

/// A part of a nest as a nest; `temporaries` is the number of temporaries of its block, after which those come that hold
/// partial results.
pub(crate) fn piece(stage: &Stage, part: &Part, batch: &BatchRef<'_>, temporaries: usize) -> Piece {
    let Uses { windows, slots, gathers } = Uses::of(stage, part, batch);
    let mut own = stage.clone();
    own.parameters.extents.clone_from(&part.extents);
    for (slot, window) in slots.iter().enumerate() {
        let first = window.map_or(0, |number| windows[number].first);
        own.parameters.starts[slot] = start(&stage.parameters, slot, part).wrapping_sub(first);
        if let Some(number) = window {
            own.parameters.buffers[slot] = BufferRef::Base(*number as u32);
        }
    }
    for (gather, window) in own.parameters.gathers.iter_mut().zip(&gathers) {
        if let Some(number) = window {
            gather.buffer = BufferRef::Base(*number as u32);
        }
    }
    let (mut partials, mut combine) = (Vec::new(), None);
    if shares_results(stage, part) {
        (partials, combine) = apart(&mut own, temporaries, begins(stage, part));
    }
    Piece { stage: own, windows, partials, combine }
}

/// Sends the results of a nest's reductions to memory of their own; returns its bytes, and the nest that puts them to
/// those that are there, or in their place if these are the `first`.
fn apart(stage: &mut Stage, temporaries: usize, first: bool) -> (Vec<usize>, Option<Stage>) {
    let Stage { kernel, parameters } = stage;
    let (rank, roles) = (parameters.extents.len(), &kernel.dims);
    let kept: Vec<usize> = (0..rank).filter(|&dim| roles[dim] == Dim::Kept).collect();
    let mut joined = Kernel { dims: vec![Dim::Kept; kept.len().max(1)], ..Kernel::default() };
    let mut numbers =
        Parameters { extents: kept.iter().map(|&dim| parameters.extents[dim]).collect(), ..Parameters::default() };
    numbers.extents.resize(kept.len().max(1), 1);
    let outputs: i64 = numbers.extents.iter().product();
    let (mut bytes, mut values, mut stores) = (Vec::new(), 0, Vec::new());
    for step in &kernel.steps {
        let Step::Reduce { opcode, slot, .. } = *step else { continue };
        let (at, dtype) = (slot as usize, kernel.slots[slot as usize].dtype);
        let mut own = vec![0; rank];
        let mut stride = 1;
        for &dim in kept.iter().rev() {
            own[dim] = stride;
            stride *= parameters.extents[dim];
        }
        let some = |all: &[i64]| if kept.is_empty() { vec![0] } else { kept.iter().map(|&dim| all[dim]).collect() };
        let partial = BufferRef::Temporary((temporaries + bytes.len()) as u16);
        let result = (parameters.buffers[at], parameters.starts[at], some(parameters.stride(at)));
        let mut add = |mode, (buffer, start, strides): (BufferRef, i64, Vec<i64>)| {
            let number = joined.slots.len() as u16;
            joined.slots.push(Slot { dtype, mode, same_as: number });
            numbers.buffers.push(buffer);
            numbers.starts.push(start);
            numbers.strides.extend(strides);
            number
        };
        let found = add(SlotMode::Read, (partial, 0, some(&own)));
        let before = (!first).then(|| add(SlotMode::Read, result.clone()));
        let target = add(SlotMode::Write, result);
        joined.steps.push(Step::Load { slot: found });
        values += 1;
        if let Some(before) = before {
            joined.steps.push(Step::Load { slot: before });
            joined.steps.push(fold(opcode, dtype, values, values - 1));
            values += 2;
        }
        stores.push(Step::Store { slot: target, arg: Arg::Value(values - 1) });
        parameters.buffers[at] = partial;
        parameters.starts[at] = 0;
        parameters.strides[at * rank..][..rank].copy_from_slice(&own);
        bytes.push(outputs as usize * dtype.size());
    }
    joined.steps.extend(stores);
    numbers.instrs = vec![0; joined.steps.len()];
    (bytes, Some(Stage { kernel: joined, parameters: numbers }))
}

/// The step of a reduction with one further element.
fn fold(opcode: Opcode, dtype: DType, before: u16, found: u16) -> Step {
    let (before, found) = (Arg::Value(before), Arg::Value(found));
    Step::Compute { opcode, param: 0, input: dtype, output: dtype, args: [before, found, found], count: 2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::{Base, Batch, Instr, Operand, View};
    use bh_kernel::{Lowered, Runner, lower};

    /// A sum of the rows or columns of a matrix.
    fn sum(axis: u16, height: i64, width: i64) -> (Batch, Stage) {
        let mut batch = Batch::default();
        let source = batch.push_base(Base::new(1, DType::F64, height * width));
        let kept = if axis == 0 { width } else { height };
        let result = batch.push_base(Base::new(2, DType::F64, kept));
        let from = batch.push_view(source, &View::contiguous(&[height, width]).unwrap());
        let to = batch.push_view(result, &View::contiguous(&[kept]).unwrap());
        let mut instr = Instr::new(Opcode::AddReduce, &[Operand::view(to), Operand::view(from)]);
        instr.param = 1 << axis;
        batch.push_instr(instr);
        batch.push_block(&[0], &[]);
        let Lowered::Loops(mut stages, _) = lower(&batch.as_ref(), 0, Runner::Items) else { panic!("no loops") };
        let stage = stages.remove(0);
        (batch, stage)
    }

    #[test]
    fn parts_have_each_iteration_once_and_fit() {
        for axis in [0, 1] {
            let (batch, stage) = sum(axis, 300, 70);
            let batch = batch.as_ref();
            let budget = 20_000;
            let parts = parts(&stage, &batch, &Room { bytes: budget, largest: u64::MAX }).unwrap();
            assert!(parts.len() >= 300 * 70 * 8 / budget as usize, "{} parts", parts.len());
            let iterations: i64 = parts.iter().map(|part| part.extents.iter().product::<i64>()).sum();
            assert_eq!(iterations, 300 * 70);
            for part in &parts {
                let piece = piece(&stage, part, &batch, 0);
                assert!(piece.windows.iter().map(|window| window.bytes() as u64).sum::<u64>() <= budget);
                assert_eq!(piece.combine.is_some(), shares_results(&stage, part));
            }
            assert!(begins(&stage, &parts[0]));
        }
    }

    #[test]
    fn no_budget_is_no_plan() {
        let (batch, stage) = sum(1, 30, 7);
        assert_eq!(parts(&stage, &batch.as_ref(), &Room { bytes: 100, largest: 1000 }), None);
        assert!(parts(&stage, &batch.as_ref(), &Room { bytes: 1000, largest: 1000 }).is_some());
    }
}
