//! Compiling a stage to block operations: registers are numbered, and steps become primitives on places.

use super::analysis::{Access, Analysis, Home};
use super::registers::Registers;
use super::tile;
use super::{Fold, Native, Op, Place, Program, Repeated, RowStride, SlotPlan, weight};
use crate::primitives::{LANES, PrimFn, Primitives};
use crate::run::{Division, GatherForm, Level, Loops};
use crate::tier1::{self, Tier1};
use bh_bytecode::neutral::neutral;
use bh_bytecode::{DType, Opcode};
use bh_core::{Error, Result, abi::status};
use bh_fuser::lower::{Arg, Dim, Slot, SlotMode, Stage, Step};
use bh_jit_abi::{Fetch, Folds, Request};

/// Bytes that registers, constants and the memory of a block may take: about the nearest cache, as measured. Smaller
/// blocks cost calls (Black-Scholes 20%), larger ones cost cache misses.
const BLOCK_BYTES: usize = 56 << 10;
/// The smallest and largest block, in elements.
const BLOCK: std::ops::RangeInclusive<i64> = 128..=2048;

/// Compiles a stage to block operations; `tier1` may compile it to machine code later.
pub(crate) fn compile(stage: &Stage, primitives: Primitives, tier1: &mut Option<Tier1>) -> Result<Program> {
    compile_in_sweep(stage, SweepMemory::default(), primitives, tier1)
}

/// What a sweep knows about the memory of its slots.
#[derive(Clone, Copy, Default)]
pub(crate) struct SweepMemory<'a> {
    /// Is it used again while the caches have it?
    pub(crate) resident: &'a [bool],
    /// A group of each slot: within one, slots are as far apart as their views, and those of different ones anywhere. Empty
    /// outside of sweeps, where the same is true of buffers.
    pub(crate) groups: &'a [u32],
    /// What the caches are to fetch while each slot is read, and for [`Fetch::Beyond`] how far away, in bytes. Empty outside
    /// of sweeps: what lies further along the row.
    pub(crate) fetches: &'a [(Fetch, i64)],
    /// Must each row be complete before the next one begins?
    pub(crate) in_order: bool,
}

impl SweepMemory<'_> {
    /// Are two slots as far apart as their views?
    fn is_same(self, stage: &Stage, a: usize, b: usize) -> bool {
        let buffers = &stage.parameters.buffers;
        buffers[a] == buffers[b] && self.groups.get(a) == self.groups.get(b)
    }
}

/// [`compile`] for a nest of a sweep.
pub(crate) fn compile_in_sweep(
    stage: &Stage,
    memory: SweepMemory<'_>,
    primitives: Primitives,
    tier1: &mut Option<Tier1>,
) -> Result<Program> {
    let mut compiler =
        Compiler { analysis: Analysis::new(stage, memory.resident, primitives), stage, primitives, memory };
    let width = compiler.width();
    let (registers, places) = compiler.allocate();
    let splat = compiler.analysis.splat.iter().filter(|&&splat| splat).count();
    let bytes = |slot: &Slot| if slot.mode == SlotMode::Index { 0 } else { slot.dtype.size() };
    let element = (registers + splat) * width + stage.kernel.slots.iter().map(bytes).sum::<usize>();
    let block = BLOCK_BYTES.checked_div(element).map_or(*BLOCK.end(), |block| block as i64);
    compiler.analysis.geometry.set_block(block.clamp(*BLOCK.start(), *BLOCK.end()));
    let mut program = compiler.emit(registers, places, width)?;
    program.native = tier1.as_mut().and_then(|tier1| compiler.native(&program, tier1));
    Ok(program)
}

struct Compiler<'a> {
    analysis: Analysis<'a>,
    stage: &'a Stage,
    primitives: Primitives,
    memory: SweepMemory<'a>,
}

impl Compiler<'_> {
    fn slots(&self) -> &[Slot] {
        &self.stage.kernel.slots
    }

    fn access(&self, slot: u16) -> Access {
        self.analysis.access(slot)
    }

    /// The element size of registers.
    fn width(&self) -> usize {
        let values = self.analysis.values.iter().filter(|value| value.home == Home::Register);
        let constants = self.stage.kernel.constants.iter().map(|dtype| dtype.size());
        values.map(|value| value.dtype.size()).chain(constants).max().unwrap_or(1)
    }

    /// Numbers registers in one pass; returns how many there are and the register of each value. A result never shares
    /// the register of an operand, as most primitives are slower in place.
    fn allocate(&self) -> (usize, Vec<u16>) {
        let values = &self.analysis.values;
        let steps = &self.stage.kernel.steps;
        let mut registers = Registers::default();
        let mut places = vec![0u16; values.len()];
        let is_register = |value: usize| values[value].home == Home::Register;
        let invariant = |value: usize| match steps[values[value].made] {
            Step::Load { slot } => self.access(slot) == Access::Invariant,
            _ => false,
        };
        for value in (0..values.len()).filter(|&value| is_register(value) && invariant(value)) {
            places[value] = registers.take();
        }
        let mut value = 0;
        for (index, step) in steps.iter().enumerate() {
            if step.output(self.slots()).is_some() {
                if is_register(value) && !invariant(value) {
                    places[value] = registers.take();
                    if values[value].last == index {
                        registers.put(places[value]);
                    }
                }
                value += 1;
            }
            let inputs: Vec<Arg> = self.analysis.inputs(index).collect();
            for (at, arg) in inputs.iter().enumerate() {
                let Arg::Value(used) = *arg else { continue };
                let used = used as usize;
                let first = !inputs[..at].contains(arg);
                if first && is_register(used) && !invariant(used) && values[used].last == index {
                    registers.put(places[used]);
                }
            }
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
                Arg::Value(value) => match self.analysis.values[value as usize].home {
                    Home::Slot(slot) => slot_place(slot),
                    Home::Register | Home::Nowhere => places[value as usize],
                },
            }
        };
        let mut program = Program {
            geometry: self.analysis.geometry.clone(),
            loops: match kernel.reduces() {
                true => {
                    Loops::Fold(Division::new(&self.analysis.geometry, tile::folded(stage, &self.analysis.geometry)))
                }
                false => Loops::Map(Level::around(&self.analysis.geometry)),
            },
            slots: self.slot_plans(),
            splat: self.analysis.splat.clone(),
            constants: kernel.constants.iter().copied().zip(stage.parameters.constants.iter().copied()).collect(),
            gathers: stage.parameters.gathers.clone(),
            terms: Vec::new(),
            line_ops: Vec::new(),
            ops: Vec::with_capacity(kernel.steps.len()),
            folds: Vec::new(),
            stores: Vec::new(),
            registers,
            register_bytes: (self.analysis.geometry.block() * width).next_multiple_of(64),
            tile: tile::choose(stage, &self.analysis.geometry, self.primitives.cache_bytes),
            streams: false,
            weight: 0,
            margins: Vec::new(),
            native: None,
        };
        let mut value = 0u16;
        for (index, step) in kernel.steps.iter().enumerate() {
            let instr = stage.parameters.instrs[index];
            let dst = Arg::Value(value);
            program.weight += 1;
            match *step {
                Step::Load { slot } => {
                    let home = self.analysis.values[value as usize].home;
                    if home == Home::Register {
                        let access = self.access(slot);
                        let op = self.load(slot, slot_place(slot), place(dst), access);
                        if access == Access::Invariant { program.line_ops.push(op) } else { program.ops.push(op) }
                    }
                }
                Step::Compute { opcode, param, input, output, .. } => {
                    program.weight += weight(opcode, input);
                    let (form, terms) = (&self.analysis.forms[index], self.analysis.terms(index));
                    if !terms.is_empty() {
                        let first = program.terms.len() as u32;
                        program.terms.extend(terms.iter().map(|&term| place(term)));
                        program.ops.push(Op::Sum {
                            run: form.sum.ok_or_else(|| missing(opcode, input))?,
                            dst: place(dst),
                            first,
                            count: terms.len() as u16,
                            single: (form.count == 1).then(|| place(form.args[0])),
                        });
                    } else if self.analysis.values[value as usize].home != Home::Nowhere {
                        let own = || self.elementwise(opcode, param, input, output);
                        let run = form.run.map_or_else(own, Ok)?;
                        program.ops.push(Op::Prim { run, dst: place(dst), args: form.args.map(place) });
                    }
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
                        form: GatherForm {
                            size: output.size(),
                            signed: input == DType::I64,
                            is_run: self.primitives.is_run(),
                        },
                        instr,
                    });
                }
                Step::Store { .. } => {}
                Step::Reduce { opcode, slot, .. } => {
                    let dtype = kernel.slots[slot as usize].dtype;
                    let combiner = opcode.combiner().ok_or_else(|| missing(opcode, dtype))?;
                    let (lanes, join) = self.primitives.lanes(combiner, dtype).ok_or_else(|| missing(opcode, dtype))?;
                    let form = &self.analysis.forms[index];
                    program.folds.push(Fold {
                        combine: self.elementwise(combiner, 0, dtype, dtype)?,
                        lanes: form.lanes.unwrap_or(lanes),
                        join,
                        neutral: neutral(opcode, dtype),
                        size: dtype.size(),
                        args: [form.args[0], form.args[1.min(form.count - 1)]].map(place),
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
            && let Home::Slot(other) = self.analysis.values[value as usize].home
            && self.slots()[other as usize].same_as == self.slots()[slot as usize].same_as
        {
            return;
        }
        if self.analysis.streams(slot) {
            program.streams = true;
            program.stores.push(Op::Stream { run: self.primitives.copy_streaming(), dst: slot_place, src, size });
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
        } else if stride.inner == 0 && self.analysis.geometry.spans() {
            Op::Repeat { run: self.primitives.repeat(size), dst, slot: slot_place, stride: stride.outer }
        } else {
            Op::Load { run: self.primitives.gather_strided(size), dst, slot: slot_place, stride, size }
        }
    }

    fn row_stride(&self, slot: u16) -> RowStride {
        let strides = self.stage.parameters.stride(slot as usize);
        let scale = scale(&self.slots()[slot as usize]);
        let line = strides[self.analysis.geometry.line_dim] as isize * scale;
        if self.analysis.geometry.spans() {
            RowStride { inner: strides[self.analysis.geometry.line_dim + 1] as isize * scale, outer: line }
        } else {
            RowStride { inner: line, outer: 0 }
        }
    }

    /// The program as a call of compiled code.
    fn native(&self, program: &Program, tier1: &mut Tier1) -> Option<Native> {
        let (geometry, isa) = (&program.geometry, self.primitives.isa);
        if geometry.for_blocks {
            return None;
        }
        let processor = (tier1.divider(), tier1.fast_math());
        let streams = |slot| self.analysis.streams(slot);
        let fetch = |slot: usize| self.memory.fetches.get(slot).map_or(Fetch::Along, |(fetch, _)| *fetch);
        let together = |a: usize, b: usize| self.memory.is_same(self.stage, a, b);
        let Some(request) = tier1::request(self.stage, geometry, isa, processor, streams, fetch, together) else {
            tier1.count_refused();
            return None;
        };
        let mut request = Request { in_order: self.memory.in_order, ..request };
        let lines = match &program.loops {
            Loops::Fold(division) => division.has_lines_for_results(geometry) || geometry.chunk().is_some(),
            Loops::Map(_) => false,
        };
        if lines && tier1::can_join(&request) {
            request.folds = Folds::Results;
        }
        let joins = request.folds == Folds::Results;
        let strides = |dim: usize| -> Vec<i64> { program.slots.iter().map(|slot| slot.strides[dim] as i64).collect() };
        let planes = || program.slots.iter().map(|slot| slot.plane as i64).collect();
        let repeated = self.repeated(program);
        let (inner, outer) = if geometry.steps.is_some() {
            let mut inner = strides(geometry.line_dim + 1);
            repeated.iter().for_each(|repeated| inner[repeated.slot] = repeated.size as i64);
            (inner, planes())
        } else if geometry.flat {
            (strides(geometry.line_dim + 1), planes())
        } else if geometry.spans() {
            (strides(geometry.line_dim + 1), strides(geometry.line_dim))
        } else {
            (strides(geometry.line_dim), planes())
        };
        let ahead = |slot: usize| self.memory.fetches.get(slot).map_or(0, |(_, bytes)| *bytes);
        let ahead = (0..program.slots.len()).map(ahead).collect();
        Some(Native { kernel: tier1.kernel(request), joins, inner, outer, ahead, repeated })
    }

    /// The slots whose columns are repeated where rows are joined.
    fn repeated(&self, program: &Program) -> Vec<Repeated> {
        let geometry = &program.geometry;
        let repeats = |&slot: &usize| {
            self.slots()[slot].mode == SlotMode::Read && geometry.repeats(self.stage.parameters.stride(slot))
        };
        let repeated = |slot: usize| {
            let size = self.slots()[slot].dtype.size();
            Repeated {
                slot,
                run: self.primitives.gather_strided(size),
                stride: program.slots[slot].strides[geometry.line_dim + 1],
                size,
                bytes: (geometry.row as usize * LANES * size).next_multiple_of(64),
            }
        };
        (0..self.slots().len()).filter(repeats).map(repeated).collect()
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
                plane: self.analysis.geometry.plane_stride(parameters.stride(index)) as isize * scale,
            }
        };
        self.slots().iter().enumerate().map(plan).collect()
    }

    fn elementwise(&self, opcode: Opcode, param: u16, input: DType, output: DType) -> Result<PrimFn> {
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
