//! Compiling a stage to block operations: which accesses are direct, which values are written straight to memory, and
//! which registers hold the rest.

use super::registers::Registers;
use super::{Fold, Geometry, Op, Place, Program, RowStride, SlotPlan, weight};
use crate::neutral::neutral;
use crate::primitives::Primitives;
use bh_bytecode::{DType, Opcode};
use bh_core::{Error, Result, abi::status};
use bh_fuser::lower::{Arg, Dim, Slot, SlotMode, Stage, Step};

/// Bytes of the nearest cache that registers and constants may fill.
const SCRATCH_BYTES: usize = 24 << 10;
/// The largest and smallest block, in elements.
const BLOCK: std::ops::RangeInclusive<i64> = 128..=2048;

/// Where a value is before registers are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// In a slot's memory.
    Slot(u16),
    /// In a register.
    Register,
}

/// How a slot can be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// A block is a dense run of memory.
    Direct,
    /// Every block of a line has the same elements.
    Invariant,
    /// Through a strided copy.
    Strided,
}

/// A value of the body.
#[derive(Clone, Copy, Debug)]
struct Value {
    home: Home,
    dtype: DType,
    /// The step that makes it.
    made: usize,
    /// The last step that uses it.
    last: usize,
}

/// Compiles a stage.
pub(crate) fn compile(stage: &Stage, primitives: Primitives) -> Result<Program> {
    let mut geometry = Geometry::new(&stage.kernel, &stage.parameters);
    let mut compiler = Compiler { stage, primitives, values: values(stage), geometry: geometry.clone() };
    compiler.materialise_swapped();
    compiler.store_directly();
    let width = compiler.width();
    let (registers, first_places) = compiler.allocate();
    let constants = stage.kernel.constants.len();
    let scratch = (registers + constants) * width;
    let block = if scratch == 0 { *BLOCK.end() } else { (SCRATCH_BYTES / scratch) as i64 };
    // Blocks are whole numbers of lanes, so that their length has no influence on folds.
    geometry.set_block((block.clamp(*BLOCK.start(), *BLOCK.end())) & !63);
    compiler.geometry = geometry;
    compiler.emit(registers, first_places, width)
}

/// Collects values with their uses; every load starts out in a register unless its memory can be used as it is.
fn values(stage: &Stage) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::with_capacity(stage.kernel.steps.len());
    let geometry = Geometry::new(&stage.kernel, &stage.parameters);
    for (index, step) in stage.kernel.steps.iter().enumerate() {
        for arg in step.args() {
            if let Arg::Value(value) = arg {
                values[*value as usize].last = index;
            }
        }
        if let Some(dtype) = step.output(&stage.kernel.slots) {
            let home = match *step {
                Step::Load { slot } if access(stage, &geometry, slot as usize) == Access::Direct => Home::Slot(slot),
                _ => Home::Register,
            };
            values.push(Value { home, dtype, made: index, last: index });
        }
    }
    values
}

fn access(stage: &Stage, geometry: &Geometry, slot: usize) -> Access {
    let strides = stage.parameters.stride(slot);
    let line = strides[geometry.line_dim];
    if geometry.spans() {
        let inner = strides[geometry.line_dim + 1];
        match (line, inner) {
            (0, _) => Access::Invariant,
            (_, 1) if line == geometry.row => Access::Direct,
            _ => Access::Strided,
        }
    } else {
        match line {
            _ if geometry.line == 1 => Access::Direct,
            0 => Access::Invariant,
            1 => Access::Direct,
            _ => Access::Strided,
        }
    }
}

struct Compiler<'a> {
    stage: &'a Stage,
    primitives: Primitives,
    values: Vec<Value>,
    geometry: Geometry,
}

impl Compiler<'_> {
    fn slots(&self) -> &[Slot] {
        &self.stage.kernel.slots
    }

    fn access(&self, slot: u16) -> Access {
        access(self.stage, &self.geometry, slot as usize)
    }

    /// Loads whose value is stored elsewhere at the end, while their own memory is overwritten at the end as well, must
    /// be copied first.
    fn materialise_swapped(&mut self) {
        let slots = &self.stage.kernel.slots;
        let steps = &self.stage.kernel.steps;
        let written = |group: u16| {
            steps.iter().any(|step| matches!(step, Step::Store { slot, .. } if slots[*slot as usize].same_as == group))
        };
        for step in steps {
            if let Step::Store { slot: target, arg: Arg::Value(value) } = step
                && let Home::Slot(slot) = self.values[*value as usize].home
                && slots[slot as usize].same_as != slots[*target as usize].same_as
                && written(slots[slot as usize].same_as)
            {
                self.values[*value as usize].home = Home::Register;
            }
        }
    }

    /// Gives values that are stored densely the output's memory as their home, when no load still needs what is there.
    fn store_directly(&mut self) {
        let slots = &self.stage.kernel.slots;
        for step in &self.stage.kernel.steps {
            let &Step::Store { slot, arg: Arg::Value(value) } = step else { continue };
            let made = &self.stage.kernel.steps[self.values[value as usize].made];
            let home = self.values[value as usize].home;
            if home != Home::Register || matches!(made, Step::Load { .. }) || self.access(slot) != Access::Direct {
                continue;
            }
            let made = self.values[value as usize].made;
            let group = slots[slot as usize].same_as;
            let needed = self.values.iter().any(|other| {
                matches!(other.home, Home::Slot(load) if slots[load as usize].same_as == group) && other.last > made
            });
            if !needed {
                self.values[value as usize].home = Home::Slot(slot);
            }
        }
    }

    /// The element size of registers.
    fn width(&self) -> usize {
        let registers = self.values.iter().filter(|value| value.home == Home::Register).map(|value| value.dtype.size());
        registers.chain(self.stage.kernel.constants.iter().map(|dtype| dtype.size())).max().unwrap_or(1)
    }

    /// Numbers registers in one pass; returns how many there are and the register of each value.
    fn allocate(&self) -> (usize, Vec<u16>) {
        let steps = &self.stage.kernel.steps;
        let mut registers = Registers::default();
        let mut places = vec![0u16; self.values.len()];
        let is_register = |value: usize| self.values[value].home == Home::Register;
        let is_load = |value: usize| matches!(steps[self.values[value].made], Step::Load { .. });
        let invariant = |value: usize| match steps[self.values[value].made] {
            Step::Load { slot } => self.access(slot) == Access::Invariant,
            _ => false,
        };
        for value in (0..self.values.len()).filter(|&value| is_register(value) && invariant(value)) {
            places[value] = registers.take();
        }
        let mut value = 0;
        for (index, step) in steps.iter().enumerate() {
            let makes = step.output(self.slots());
            let dying = |value: usize| {
                is_register(value)
                    && !invariant(value)
                    && self.values[value].last == index
                    && self.values[value].made != index
            };
            // An operand that dies here may share its register with the result if elements have one size.
            let (mut early, mut late) = ([u16::MAX; 3], [u16::MAX; 3]);
            for (at, arg) in step.args().iter().enumerate().take(3) {
                let Arg::Value(used) = *arg else { continue };
                let used_before = step.args()[..at].contains(arg);
                if dying(used as usize) && !used_before {
                    let same = makes.is_some_and(|dtype| dtype.size() == self.values[used as usize].dtype.size());
                    let gather = matches!(step, Step::Gather { .. });
                    (if same && !gather { &mut early } else { &mut late })[at] = places[used as usize];
                }
            }
            early.iter().filter(|&&register| register != u16::MAX).for_each(|&register| registers.put(register));
            if makes.is_some() {
                if is_register(value) && !(is_load(value) && invariant(value)) {
                    places[value] = registers.take();
                    if self.values[value].last == index {
                        registers.put(places[value]);
                    }
                }
                value += 1;
            }
            late.iter().filter(|&&register| register != u16::MAX).for_each(|&register| registers.put(register));
        }
        (registers.count(), places)
    }

    fn emit(&self, registers: usize, places: Vec<u16>, width: usize) -> Result<Program> {
        let stage = self.stage;
        let kernel = &stage.kernel;
        let constants = kernel.constants.len();
        let slot_place = |slot: u16| (registers + constants) as u16 + slot;
        let place = |arg: Arg| -> Place {
            match arg {
                Arg::Constant(constant) => registers as u16 + constant,
                Arg::Value(value) => match self.values[value as usize].home {
                    Home::Slot(slot) => slot_place(slot),
                    Home::Register => places[value as usize],
                },
            }
        };
        let mut program = Program {
            geometry: self.geometry.clone(),
            slots: self.slot_plans(),
            constants: kernel.constants.iter().copied().zip(stage.parameters.constants.iter().copied()).collect(),
            gathers: stage.parameters.gathers.clone(),
            line_ops: Vec::new(),
            ops: Vec::with_capacity(kernel.steps.len()),
            folds: Vec::new(),
            stores: Vec::new(),
            registers,
            register_bytes: (self.geometry.block() * width).next_multiple_of(64),
            weight: 0,
        };
        let mut value = 0u16;
        for (index, step) in kernel.steps.iter().enumerate() {
            let instr = stage.parameters.instrs[index];
            let dst = Arg::Value(value);
            program.weight += 1;
            match *step {
                Step::Load { slot } => {
                    let home = self.values[value as usize].home;
                    if home == Home::Register {
                        let access = self.access(slot);
                        let op = self.load(slot, slot_place(slot), place(dst), access);
                        if access == Access::Invariant { program.line_ops.push(op) } else { program.ops.push(op) }
                    }
                }
                Step::Compute { opcode, param, input, output, args, .. } => {
                    let run = self.elementwise(opcode, param, input, output)?;
                    program.weight += weight(opcode, input);
                    program.ops.push(Op::Prim { run, dst: place(dst), args: args.map(place) });
                }
                Step::Range { slot, output } => {
                    let run = self.primitives.iota(output).ok_or_else(|| missing(Opcode::Range, output))?;
                    let stride = self.row_stride(slot);
                    program.ops.push(Op::Range {
                        run,
                        dst: place(dst),
                        slot: slot_place(slot),
                        stride,
                        size: output.size(),
                    });
                }
                Step::Random { slot, key, output } => {
                    let run = self.primitives.philox(output).ok_or_else(|| missing(Opcode::Random, output))?;
                    let (stride, size) = (self.row_stride(slot), output.size());
                    program.weight += 10;
                    let op = Op::Random { run, dst: place(dst), slot: slot_place(slot), key: place(key), stride, size };
                    program.ops.push(op);
                }
                Step::Gather { source, index, input, output } => {
                    program.weight += 4;
                    program.ops.push(Op::Gather {
                        dst: place(dst),
                        index: place(index),
                        gather: source,
                        size: output.size(),
                        signed: input == DType::I64,
                        instr,
                    });
                }
                Step::Store { .. } => {}
                Step::Reduce { opcode, slot, arg } => {
                    let dtype = kernel.slots[slot as usize].dtype;
                    let combiner = opcode.combiner().ok_or_else(|| missing(opcode, dtype))?;
                    let (lanes, join) = self.primitives.lanes(combiner, dtype).ok_or_else(|| missing(opcode, dtype))?;
                    program.folds.push(Fold {
                        combine: self.elementwise(combiner, 0, dtype, dtype)?,
                        lanes,
                        join,
                        neutral: neutral(opcode, dtype),
                        size: dtype.size(),
                        arg: place(arg),
                        slot: slot as usize,
                    });
                }
            }
            if step.output(self.slots()).is_some() {
                value += 1;
            }
        }
        for step in &kernel.steps {
            if let Step::Store { slot, arg } = *step
                && place(arg) != slot_place(slot)
            {
                self.store(&mut program, slot, slot_place(slot), place(arg), arg);
            }
        }
        Ok(program)
    }

    /// The copy that ends a stored value's way, unless it is there already.
    fn store(&self, program: &mut Program, slot: u16, slot_place: Place, src: Place, arg: Arg) {
        let size = self.slots()[slot as usize].dtype.size();
        if let Arg::Value(value) = arg
            && let Home::Slot(other) = self.values[value as usize].home
            && self.slots()[other as usize].same_as == self.slots()[slot as usize].same_as
        {
            return;
        }
        program.stores.push(if self.access(slot) == Access::Direct {
            Op::Copy { dst: slot_place, src, size }
        } else {
            Op::Store {
                run: self.primitives.scatter_strided(size),
                slot: slot_place,
                src,
                stride: self.row_stride(slot),
                size,
            }
        });
    }

    fn load(&self, slot: u16, slot_place: Place, dst: Place, access: Access) -> Op {
        let size = self.slots()[slot as usize].dtype.size();
        let stride = self.row_stride(slot);
        if access == Access::Direct {
            Op::Copy { dst, src: slot_place, size }
        } else if stride.inner == 0 && stride.outer == 0 {
            Op::Fill { run: self.primitives.fill(size), dst, slot: slot_place }
        } else {
            Op::Load { run: self.primitives.gather_strided(size), dst, slot: slot_place, stride, size }
        }
    }

    fn row_stride(&self, slot: u16) -> RowStride {
        let strides = self.stage.parameters.stride(slot as usize);
        let scale = scale(&self.slots()[slot as usize]);
        let line = strides[self.geometry.line_dim] as isize * scale;
        if self.geometry.spans() {
            RowStride { inner: strides[self.geometry.line_dim + 1] as isize * scale, outer: line }
        } else {
            RowStride { inner: line, outer: 0 }
        }
    }

    fn slot_plans(&self) -> Vec<SlotPlan> {
        let parameters = &self.stage.parameters;
        let plan = |(index, slot): (usize, &Slot)| {
            let scale = scale(slot);
            let keep = |(stride, dim): (&i64, &Dim)| {
                // A result stays where it is while reduced dimensions pass.
                if slot.mode == SlotMode::Result && *dim == Dim::Reduced { 0 } else { *stride as isize * scale }
            };
            SlotPlan {
                buffer: parameters.buffers[index],
                start: parameters.starts[index] as isize * scale,
                strides: parameters.stride(index).iter().zip(&self.stage.kernel.dims).map(keep).collect(),
            }
        };
        self.slots().iter().enumerate().map(plan).collect()
    }

    fn elementwise(
        &self,
        opcode: Opcode,
        param: u16,
        input: DType,
        output: DType,
    ) -> Result<crate::primitives::PrimFn> {
        self.primitives.elementwise(opcode, param, input, output).ok_or_else(|| missing(opcode, input))
    }
}

/// Bytes per element, or 1 for the numbers of index views.
fn scale(slot: &Slot) -> isize {
    if slot.mode == SlotMode::Index { 1 } else { slot.dtype.size() as isize }
}

fn missing(opcode: Opcode, dtype: DType) -> Error {
    Error::new(status::UNSUPPORTED, format!("the CPU engine has no {opcode} of {dtype}"))
}
