//! From a block of the partition to stages: forwarding of values, loads, stores, reductions and the epilogue.

use crate::draft::Draft;
use crate::kernel::{Arg, BufferRef, ConstantRef, GatherSource, Lowered, SlotMode, Special, Stage, Step, Temporary};
use crate::nest::{Access, Runner};
use crate::table::{NONE, Table};
use bh_bytecode::contraction::is_product;
use bh_bytecode::{AxisOrder, BatchRef, Block, DType, Instr, Kind, Opcode, Operand, steps};

/// Lowers a block of a validated batch whose partition is legal.
pub fn lower(batch: &BatchRef<'_>, block: u32, runner: Runner) -> Lowered {
    let block = &batch.blocks[block as usize];
    let work = |&&index: &&u32| {
        let opcode = batch.instrs[index as usize].opcode;
        !opcode.is_system()
    };
    let indices: Vec<u32> = batch.block_instrs(block).iter().filter(work).copied().collect();
    let Some(&first) = indices.first() else {
        return Lowered::Nothing;
    };
    let instr = &batch.instrs[first as usize];
    match instr.opcode.kind() {
        Kind::Accumulate => return Lowered::Special(Special::Accumulate(first)),
        Kind::Index if instr.opcode != Opcode::Gather => return Lowered::Special(Special::Scatter(first)),
        Kind::Extension => return Lowered::Special(Special::Extension(first)),
        _ if is_product(batch, instr) => return Lowered::Special(Special::Product(first)),
        _ => {}
    }
    in_loops(batch, block, &indices, runner)
}

/// The loops of a block with a [`Special::Product`]: for devices that have no other way to do it.
pub fn lower_product(batch: &BatchRef<'_>, block: u32, instr: u32) -> Lowered {
    in_loops(batch, &batch.blocks[block as usize], &[instr], Runner::Items)
}

fn in_loops(batch: &BatchRef<'_>, block: &Block, indices: &[u32], runner: Runner) -> Lowered {
    let mut builder = Builder {
        batch,
        runner,
        canonical: canonical_views(batch, indices),
        contracted: Table::of(batch.contracted(block)),
        aliased: batch.renames(block).iter().map(|rename| rename.alias).collect(),
        renamed: batch.renames(block).iter().map(|rename| rename.base).collect(),
        results: Vec::new(),
        result_at: Table::default(),
        temporaries: Vec::new(),
    };
    builder.build(indices)
}

/// A stage that copies the elements of a view from one buffer to another: what a rename leaves uncovered.
pub fn copy_stage(batch: &BatchRef<'_>, view: u32, from: BufferRef, to: BufferRef) -> Stage {
    let dtype = batch.base_of(view).map_or(DType::Bool, |base| base.dtype());
    let mut draft = Draft::default();
    let access = Access { start: batch.views[view as usize].start, strides: batch.stride(view).to_vec(), memory: true };
    let source = draft.slot(dtype, SlotMode::Read, from, access.clone());
    let target = draft.slot(dtype, SlotMode::Write, to, access);
    let arg = draft.value(Step::Load { slot: source }, 0);
    draft.steps.push(Step::Store { slot: target, arg });
    draft.instrs.push(0);
    draft.finish(batch.shape(view), 0, Runner::Vectors)
}

/// The result of a reduction: where it lies until the epilogue reads it.
struct ReductionResult {
    buffer: BufferRef,
    access: Access,
}

struct Builder<'a> {
    batch: &'a BatchRef<'a>,
    runner: Runner,
    /// The first view of the block that equals each of its views.
    canonical: Table,
    contracted: Table,
    /// Bases that become aliases of a fresh buffer, so that writing them would be wasted.
    aliased: Vec<u32>,
    renamed: Vec<u32>,
    results: Vec<ReductionResult>,
    /// Where each view's result is found there.
    result_at: Table,
    temporaries: Vec<Temporary>,
}

impl<'a> Builder<'a> {
    fn build(&mut self, indices: &[u32]) -> Lowered {
        let batch = self.batch;
        let reduction = indices.iter().map(|&index| &batch.instrs[index as usize]).find(|instr| is_fold(instr, batch));
        let (shape, mask) = match reduction {
            Some(instr) => {
                let input = instr.inputs().first().and_then(|operand| operand.as_view());
                let shape = input.map_or(&[][..], |view| batch.shape(view));
                (shape, instr.param & low_bits(shape.len()))
            }
            None => (output_view(&batch.instrs[indices[0] as usize]).map_or(&[][..], |view| batch.shape(view)), 0),
        };
        let kept: Vec<i64> = (0..shape.len()).filter(|&axis| mask >> axis & 1 == 0).map(|axis| shape[axis]).collect();
        let mut main = Draft::default();
        let mut epilogue = Draft::default();
        for &index in indices {
            let instr = &batch.instrs[index as usize];
            let Some(out) = output_view(instr).map(|view| self.canonical(view)) else {
                continue;
            };
            if is_fold(instr, batch) {
                self.reduce(&mut main, index, out, mask);
            } else if mask != 0 && (batch.shape(out) != shape || self.reads_result(instr, &epilogue)) {
                self.compute(&mut epilogue, index, out);
            } else {
                self.compute(&mut main, index, out);
            }
        }
        let mut stages = Vec::with_capacity(2);
        for (mut draft, shape, mask) in [(main, shape, mask), (epilogue, kept.as_slice(), 0)] {
            self.store(&mut draft);
            if !draft.steps.iter().any(|step| matches!(step, Step::Store { .. } | Step::Reduce { .. })) {
                continue;
            }
            stages.push(draft.finish(shape, mask, self.runner));
        }
        if stages.is_empty() { Lowered::Nothing } else { Lowered::Loops(stages, std::mem::take(&mut self.temporaries)) }
    }

    fn canonical(&self, view: u32) -> u32 {
        match self.canonical.get(view, 0) {
            NONE => view,
            first => first,
        }
    }

    fn is_contracted(&self, base: u32) -> bool {
        self.contracted.get(base, 0) != NONE
    }

    /// Does the instruction need a reduction's result, or what the epilogue made of one?
    fn reads_result(&self, instr: &Instr, epilogue: &Draft) -> bool {
        instr.inputs().iter().filter_map(|operand| operand.as_view()).any(|view| {
            let view = self.canonical(view);
            self.result(view).is_some() || epilogue.stores(view)
        })
    }

    /// The result of a reduction that a view shows.
    fn result(&self, view: u32) -> Option<&ReductionResult> {
        self.results.get(self.result_at.get(view, 0) as usize)
    }

    fn access(&self, view: u32) -> Access {
        let memory = self.batch.base_of(view).is_some();
        Access { start: self.batch.views[view as usize].start, strides: self.batch.stride(view).to_vec(), memory }
    }

    fn write_buffer(&self, base: u32) -> BufferRef {
        if self.renamed.contains(&base) { BufferRef::Fresh(base) } else { BufferRef::Base(base) }
    }

    fn read(&self, draft: &mut Draft, operand: Operand, instr: u32) -> Arg {
        let dtype = self.batch.dtype(operand).unwrap_or(DType::I64);
        let Some(view) = operand.as_view() else {
            return draft.constant(dtype, ConstantRef::Batch(operand.as_constant().unwrap_or(0)));
        };
        let view = self.canonical(view);
        if let Some(arg) = draft.held(view) {
            return arg;
        }
        let base = self.batch.views[view as usize].base;
        let arg = if let Some(result) = self.result(view) {
            let slot = draft.slot(dtype, SlotMode::Read, result.buffer, result.access.clone());
            draft.value(Step::Load { slot }, instr)
        } else if self.is_contracted(base) {
            draft.constant(dtype, ConstantRef::Zero(dtype))
        } else {
            let slot = draft.slot(dtype, SlotMode::Read, BufferRef::Base(base), self.access(view));
            draft.value(Step::Load { slot }, instr)
        };
        draft.set(view, arg);
        arg
    }

    fn compute(&self, draft: &mut Draft, index: u32, out: u32) {
        let instr = &self.batch.instrs[index as usize];
        let output = self.batch.base_of(out).map_or(DType::Bool, |base| base.dtype());
        let inputs = instr.inputs();
        let index_slot = |draft: &mut Draft| {
            let view = inputs[0].as_view().unwrap_or(0);
            draft.slot(DType::I64, SlotMode::Index, BufferRef::None, self.access(view))
        };
        let arg = match instr.opcode {
            Opcode::Range => {
                let slot = index_slot(draft);
                draft.value(Step::Range { slot, output }, index)
            }
            Opcode::Random => {
                let slot = index_slot(draft);
                let key = match inputs[1].as_constant() {
                    Some(constant) => draft.constant(DType::U64, ConstantRef::Batch(constant)),
                    None => self.read(draft, inputs[1], index),
                };
                draft.value(Step::Random { slot, key, output }, index)
            }
            Opcode::Gather => {
                let source = inputs[0].as_view().unwrap_or(0);
                let input = self.batch.dtype(inputs[1]).unwrap_or(DType::I64);
                let arg = self.read(draft, inputs[1], index);
                draft.gathers.push(self.gather_source(source));
                let source = (draft.gathers.len() - 1) as u16;
                draft.value(Step::Gather { source, index: arg, input, output }, index)
            }
            Opcode::Contract => self.product(draft, index, output),
            opcode if opcode.unmasked().is_some() => self.chosen(draft, index, output),
            opcode => {
                let count = inputs.len().min(3);
                let mut args = [Arg::Constant(0); 3];
                for (arg, &operand) in args.iter_mut().zip(inputs) {
                    *arg = self.read(draft, operand, index);
                }
                for at in count..3 {
                    args[at] = args[count.max(1) - 1];
                }
                let input = inputs.last().and_then(|&operand| self.batch.dtype(operand)).unwrap_or(output);
                // A fold over no axes is a copy.
                let (opcode, param) =
                    if opcode.kind() == Kind::Reduction { (Opcode::Copy, 0) } else { (opcode, instr.param) };
                if opcode == Opcode::Copy && input == output {
                    args[0]
                } else {
                    let step = Step::Compute { opcode, param, input, output, args, count: count as u8 };
                    draft.computed(step, index)
                }
            }
        };
        draft.set(out, arg);
        draft.store(out, arg, index);
    }

    /// The value that a masked reduction folds: the elements, and the neutral element where the mask is false.
    fn chosen(&self, draft: &mut Draft, index: u32, dtype: DType) -> Arg {
        let instr = &self.batch.instrs[index as usize];
        let [value, mask] = [0, 1].map(|at| self.read(draft, instr.inputs()[at], index));
        let neutral = draft.constant(dtype, ConstantRef::Neutral(instr.opcode, dtype));
        let args = [mask, value, neutral];
        let step = Step::Compute { opcode: Opcode::Where, param: 0, input: dtype, output: dtype, args, count: 3 };
        draft.computed(step, index)
    }

    /// The value that a contraction adds up: the products of the elements.
    fn product(&self, draft: &mut Draft, index: u32, dtype: DType) -> Arg {
        let instr = &self.batch.instrs[index as usize];
        let [a, b] = [0, 1].map(|at| self.read(draft, instr.inputs()[at], index));
        let step = Step::Compute {
            opcode: Opcode::Multiply,
            param: 0,
            input: dtype,
            output: dtype,
            args: [a, b, b],
            count: 2,
        };
        draft.computed(step, index)
    }

    fn gather_source(&self, view: u32) -> GatherSource {
        let batch = self.batch;
        let mut shape: Vec<i64> = Vec::new();
        let mut stride: Vec<i64> = Vec::new();
        for (&extent, &step) in batch.shape(view).iter().zip(batch.stride(view)).filter(|(extent, _)| **extent != 1) {
            match (shape.last_mut(), stride.last_mut()) {
                (Some(outer), Some(outer_step)) if *outer_step == step.wrapping_mul(extent) => {
                    *outer *= extent;
                    *outer_step = step;
                }
                _ => {
                    shape.push(extent);
                    stride.push(step);
                }
            }
        }
        let record = &batch.views[view as usize];
        GatherSource { buffer: BufferRef::Base(record.base), start: record.start, shape, stride, len: record.len }
    }

    fn reduce(&mut self, draft: &mut Draft, index: u32, out: u32, mask: u16) {
        let batch = self.batch;
        let instr = &batch.instrs[index as usize];
        let record = &batch.views[out as usize];
        let base = record.base;
        let dtype = batch.bases[base as usize].dtype();
        let arg = match instr.opcode {
            Opcode::Contract => self.product(draft, index, dtype),
            opcode if opcode.unmasked().is_some() => self.chosen(draft, index, dtype),
            _ => self.read(draft, instr.inputs()[0], index),
        };
        let input = instr.inputs()[0].as_view();
        let rank = input.map_or(0, |view| batch.shape(view).len());
        // All reductions of a block have one order.
        draft.folded = AxisOrder::decode(instr.order, rank).or(Some(AxisOrder::c_order(rank)));
        let (buffer, access) = if self.is_contracted(base) {
            self.temporaries.push(Temporary { dtype, len: record.len });
            let mut strides = batch.shape(out).to_vec();
            let mut step = 1;
            for stride in strides.iter_mut().rev() {
                (*stride, step) = (step, step * *stride);
            }
            let buffer = BufferRef::Temporary((self.temporaries.len() - 1) as u16);
            (buffer, Access { start: 0, strides, memory: true })
        } else {
            (self.write_buffer(base), self.access(out))
        };
        // Over the box the result has stride 0 along reduced axes.
        let mut kept = access.strides.iter();
        let strides =
            (0..rank).map(|axis| if mask >> axis & 1 == 1 { 0 } else { kept.next().copied().unwrap_or(0) }).collect();
        let slot = draft.slot(dtype, SlotMode::Result, buffer, Access { start: access.start, strides, memory: true });
        let opcode = instr.opcode.fold_of_one();
        draft.steps.push(Step::Reduce { opcode, slot, arg });
        draft.instrs.push(index);
        if self.result(out).is_none() {
            self.result_at.set(out, 0, self.results.len() as u32);
        }
        self.results.push(ReductionResult { buffer, access });
    }

    /// Adds the stores that somebody outside the block can see, and moves reductions behind them.
    fn store(&self, draft: &mut Draft) {
        for (view, arg, instr) in draft.take_stores() {
            let base = self.batch.views[view as usize].base;
            if self.is_contracted(base) || self.aliased.contains(&base) {
                continue;
            }
            let dtype = self.batch.bases[base as usize].dtype();
            // A value that was only loaded from this very view need not be written back, unless into a fresh buffer.
            let slot = draft.slot(dtype, SlotMode::Write, self.write_buffer(base), self.access(view));
            draft.steps.push(Step::Store { slot, arg });
            draft.instrs.push(instr);
        }
        let is_end = |step: &Step| matches!(step, Step::Store { .. } | Step::Reduce { .. });
        let mut pairs: Vec<(Step, u32)> = draft.steps.drain(..).zip(draft.instrs.drain(..)).collect();
        pairs.sort_by_key(|(step, _)| is_end(step));
        (draft.steps, draft.instrs) = pairs.into_iter().unzip();
        draft.remove_unused();
    }
}

fn low_bits(count: usize) -> u16 {
    if count >= 16 { u16::MAX } else { (1 << count) - 1 }
}

fn output_view(instr: &Instr) -> Option<u32> {
    instr.outputs().first()?.as_view()
}

/// Is it a reduction over at least one axis?
fn is_fold(instr: &Instr, batch: &BatchRef<'_>) -> bool {
    if instr.opcode.kind() != Kind::Reduction {
        return false;
    }
    let rank = instr.inputs()[0].as_view().map_or(0, |view| batch.shape(view).len());
    instr.param & low_bits(rank) != 0
}

/// For each view that the instructions use, the first of them that equals it: interned batches have one entry per view,
/// but a foreign batch may repeat entries.
fn canonical_views(batch: &BatchRef<'_>, instrs: &[u32]) -> Table {
    let (mut views, mut first) = (Table::default(), Table::default());
    views.reset(3 * instrs.len());
    first.reset(3 * instrs.len());
    for &instr in instrs {
        for view in batch.instrs[instr as usize].operands().iter().filter_map(|operand| operand.as_view()) {
            if views.get(view, 0) != NONE {
                continue;
            }
            steps::add(1);
            let record = &batch.views[view as usize];
            let same = |other: u32| {
                let candidate = &batch.views[other as usize];
                candidate.base == record.base
                    && candidate.start == record.start
                    && candidate.rank == record.rank
                    && batch.shape(other) == batch.shape(view)
                    && batch.stride(other) == batch.stride(view)
            };
            let words = batch.shape(view).iter().chain(batch.stride(view)).chain([&record.start]);
            let mix = |hash: u32, word: &i64| (hash ^ *word as u32 ^ (*word >> 32) as u32).wrapping_mul(0x9e37_79b9);
            let mut place = words.fold(record.rank, mix);
            let known = loop {
                match first.get(record.base, place) {
                    NONE => break view,
                    other if same(other) => break other,
                    _ => place = place.wrapping_add(1),
                }
            };
            first.set(record.base, place, known);
            views.set(view, 0, known);
        }
    }
    views
}
