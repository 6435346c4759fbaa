//! Writing a program: each step of a stage as a block operation.

use super::analysis::{Access, Analysis, ValueHome};
use super::gather::GatherForm;
use super::program::{Fold, Op, PointerIndex, Program, RowStride, weight};
use crate::primitives::{PrimFn, Primitives};
use bh_bytecode::neutral::neutral;
use bh_bytecode::{DType, Opcode};
use bh_core::{Error, Result, abi::status};
use bh_kernel::schedule::SlotPlan;
use bh_kernel::{Arg, Dim, Slot, SlotMode, Step};

/// A program under construction.
pub(super) struct Emitter<'a> {
    analysis: &'a Analysis<'a>,
    primitives: Primitives,
    /// The register of each value.
    places: &'a [u16],
    program: Program,
}

impl<'a> Emitter<'a> {
    /// Begins a program with registers for a number of values, of elements of at most a number of bytes.
    pub(super) fn new(
        analysis: &'a Analysis<'a>,
        primitives: Primitives,
        (registers, width): (usize, usize),
        places: &'a [u16],
    ) -> Emitter<'a> {
        let (stage, kernel) = (analysis.stage, &analysis.stage.kernel);
        let program = Program {
            schedule: analysis.schedule.clone(),
            slots: slot_plans(analysis),
            splat: analysis.splat.clone(),
            constants: kernel.constants.iter().copied().zip(stage.parameters.constants.iter().copied()).collect(),
            gathers: stage.parameters.gathers.clone(),
            terms: Vec::new(),
            line_ops: Vec::new(),
            ops: Vec::with_capacity(kernel.steps.len()),
            folds: Vec::new(),
            stores: Vec::new(),
            registers,
            register_bytes: (analysis.schedule.lines().block_elements() * width).next_multiple_of(64),
            non_temporal: false,
            weight: 0,
            native: None,
        };
        Emitter { analysis, primitives, places, program }
    }

    /// The finished program.
    pub(super) fn program(mut self) -> Result<Program> {
        let (steps, slots) = (self.analysis.steps(), self.analysis.slots());
        let mut value = 0u16;
        for (index, step) in steps.iter().enumerate() {
            self.program.weight += 1;
            self.step(index, step, value)?;
            value += u16::from(step.output(slots).is_some());
        }
        for step in steps {
            if let Step::Store { slot, arg } = *step
                && self.place(arg) != self.slot_place(slot)
            {
                self.store(slot, arg);
            }
        }
        Ok(self.program)
    }

    fn slot_place(&self, slot: u16) -> PointerIndex {
        self.program.first_slot() as u16 + slot
    }

    fn place(&self, arg: Arg) -> PointerIndex {
        match arg {
            Arg::Constant(constant) => self.program.registers as u16 + constant,
            Arg::Value(value) => match self.analysis.values[value as usize].home {
                ValueHome::Slot(slot) => self.slot_place(slot),
                ValueHome::Register | ValueHome::Nowhere => self.places[value as usize],
            },
        }
    }

    /// Writes a step; what it makes, if anything, is the value of this number.
    fn step(&mut self, index: usize, step: &Step, value: u16) -> Result<()> {
        let dst = step.output(self.analysis.slots()).map_or(0, |_| self.place(Arg::Value(value)));
        match *step {
            Step::Load { slot } => {
                if self.analysis.values[value as usize].home == ValueHome::Register {
                    let access = self.analysis.access(slot);
                    let op = self.load(slot, dst, access);
                    let ops = &mut self.program;
                    if access == Access::Invariant { ops.line_ops.push(op) } else { ops.ops.push(op) }
                }
            }
            Step::Compute { opcode, param, input, output, .. } => {
                self.program.weight += weight(opcode, input);
                self.compute(index, (opcode, param, input, output), value)?;
            }
            Step::Range { slot, output } => {
                let run = self.primitives.iota(output).ok_or_else(|| missing(Opcode::Range, output))?;
                let (slot, stride, size) = (self.slot_place(slot), self.row_stride(slot), output.size());
                self.program.ops.push(Op::Range { run, dst, slot, stride, size });
            }
            Step::Random { slot, key, output } => {
                let run = self.primitives.philox(output).ok_or_else(|| missing(Opcode::Random, output))?;
                let (slot, stride, size) = (self.slot_place(slot), self.row_stride(slot), output.size());
                self.program.weight += 10;
                let key = self.place(key);
                self.program.ops.push(Op::Random { run, dst, slot, key, stride, size });
            }
            Step::Gather { source, index: numbers, input, output } => {
                self.program.weight += 4;
                let (signed, is_run) = (input == DType::I64, self.primitives.is_run());
                let form = GatherForm { size: output.size(), signed, is_run };
                let instr = self.analysis.stage.parameters.instrs[index];
                let op = Op::Gather { dst, index: self.place(numbers), gather: source, form, instr };
                self.program.ops.push(op);
            }
            Step::Store { .. } => {}
            Step::Reduce { opcode, slot, .. } => self.fold(index, opcode, slot)?,
        }
        Ok(())
    }

    /// Writes an operation on blocks, unless another one does its work.
    fn compute(&mut self, index: usize, of: (Opcode, u16, DType, DType), value: u16) -> Result<()> {
        let ((opcode, param, input, output), dst) = (of, self.place(Arg::Value(value)));
        let (form, terms) = (&self.analysis.forms[index], self.analysis.terms(index));
        if !terms.is_empty() {
            let first = self.program.terms.len() as u32;
            let places: Vec<PointerIndex> = terms.iter().map(|&term| self.place(term)).collect();
            self.program.terms.extend(places);
            let run = form.sum.ok_or_else(|| missing(opcode, input))?;
            let single = (form.count == 1).then(|| self.place(form.args[0]));
            self.program.ops.push(Op::Sum { run, dst, first, count: terms.len() as u16, single });
        } else if self.analysis.values[value as usize].home != ValueHome::Nowhere {
            let own = || self.elementwise(opcode, param, input, output);
            let run = form.run.map_or_else(own, Ok)?;
            let args = form.args.map(|arg| self.place(arg));
            self.program.ops.push(Op::Prim { run, dst, args });
        }
        Ok(())
    }

    fn fold(&mut self, index: usize, opcode: Opcode, slot: u16) -> Result<()> {
        let dtype = self.analysis.slots()[slot as usize].dtype;
        let combiner = opcode.combiner().ok_or_else(|| missing(opcode, dtype))?;
        let (lanes, join) = self.primitives.lanes(combiner, dtype).ok_or_else(|| missing(opcode, dtype))?;
        let form = &self.analysis.forms[index];
        let fold = Fold {
            combine: self.elementwise(combiner, 0, dtype, dtype)?,
            lanes: form.lanes.unwrap_or(lanes),
            join,
            identity: neutral(opcode, dtype),
            size: dtype.size(),
            args: [form.args[0], form.args[1.min(form.count - 1)]].map(|arg| self.place(arg)),
            slot: slot as usize,
        };
        self.program.folds.push(fold);
        Ok(())
    }

    /// The copy that ends a stored value's way, unless it is there already.
    fn store(&mut self, slot: u16, arg: Arg) {
        let slots = self.analysis.slots();
        let (size, src, to) = (slots[slot as usize].dtype.size(), self.place(arg), self.slot_place(slot));
        if let Arg::Value(value) = arg
            && let ValueHome::Slot(other) = self.analysis.values[value as usize].home
            && slots[other as usize].same_as == slots[slot as usize].same_as
        {
            return;
        }
        let op = if self.analysis.is_non_temporal(slot) {
            self.program.non_temporal = true;
            Op::NonTemporal { run: self.primitives.copy_streaming(), dst: to, src, size }
        } else if self.analysis.access(slot) == Access::Direct {
            Op::Copy { dst: to, src, size }
        } else {
            Op::Store { run: self.primitives.scatter_strided(size), slot: to, src, stride: self.row_stride(slot), size }
        };
        self.program.stores.push(op);
    }

    fn load(&self, slot: u16, dst: PointerIndex, access: Access) -> Op {
        let size = self.analysis.slots()[slot as usize].dtype.size();
        let (stride, slot) = (self.row_stride(slot), self.slot_place(slot));
        if access == Access::Direct {
            Op::Copy { dst, src: slot, size }
        } else if stride.inner == 0 && stride.outer == 0 {
            Op::Fill { run: self.primitives.fill(size), dst, slot }
        } else if stride.inner == 0 && self.analysis.schedule.lines().row_dim().is_some() {
            Op::Repeat { run: self.primitives.repeat(size), dst, slot, stride: stride.outer }
        } else {
            Op::Load { run: self.primitives.gather_strided(size), dst, slot, stride, size }
        }
    }

    fn row_stride(&self, slot: u16) -> RowStride {
        let (lines, scale) = (self.analysis.schedule.lines(), scale(&self.analysis.slots()[slot as usize]));
        let stride = |dim: usize| self.analysis.stage.parameters.stride(slot as usize)[dim] as isize * scale;
        match lines.row_dim() {
            Some(row) => RowStride { inner: stride(row), outer: stride(lines.dim) },
            None => RowStride { inner: stride(lines.dim), outer: 0 },
        }
    }

    fn elementwise(&self, opcode: Opcode, param: u16, input: DType, output: DType) -> Result<PrimFn> {
        self.primitives.elementwise(opcode, param, input, output).ok_or_else(|| missing(opcode, input))
    }
}

fn slot_plans(analysis: &Analysis<'_>) -> Vec<SlotPlan> {
    let stage = analysis.stage;
    let plan = |(index, slot): (usize, &Slot)| {
        let (scale, strides) = (scale(slot), stage.parameters.stride(index));
        let keep = |(stride, dim): (&i64, &Dim)| {
            // A result stays where it is while reduced dimensions pass.
            if slot.mode == SlotMode::Result && *dim == Dim::Reduced { 0 } else { *stride as isize * scale }
        };
        SlotPlan {
            buffer: stage.parameters.buffers[index],
            start: stage.parameters.starts[index] as isize * scale,
            strides: strides.iter().zip(&stage.kernel.dims).map(keep).collect(),
            plane: analysis.schedule.lines().plane_stride(strides) as isize * scale,
        }
    };
    stage.kernel.slots.iter().enumerate().map(plan).collect()
}

/// Bytes per element, or 1 for the numbers of index views.
fn scale(slot: &Slot) -> isize {
    if slot.mode == SlotMode::Index { 1 } else { slot.dtype.size() as isize }
}

fn missing(opcode: Opcode, dtype: DType) -> Error {
    Error::new(status::UNSUPPORTED, format!("the CPU engine has no {opcode} of {dtype}"))
}
