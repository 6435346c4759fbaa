//! Compiling a stage to block operations: registers are numbered, and steps become primitives on places.

use super::analysis::{Access, Analysis, ValueHome};
use super::emit::Emitter;
use super::program::{Native, Program, Repeated};
use super::registers::Registers;
use crate::native::{self, SlotMemory, Tier1};
use crate::primitives::{LANES, Primitives};
use bh_core::Result;
use bh_jit_abi::Folds;
use bh_kernel::schedule::LoopShape;
use bh_kernel::{Arg, Slot, SlotMode, Stage, Step};

/// Bytes that registers, constants and the memory of a block may take: about the nearest cache, as measured. Smaller
/// blocks cost calls (Black-Scholes 20%), larger ones cost cache misses.
const BLOCK_BYTES: usize = 56 << 10;
/// The smallest and largest block, in elements.
const BLOCK: std::ops::RangeInclusive<i64> = 128..=2048;

/// Compiles a stage to block operations; `tier1` may compile it to machine code later.
pub(crate) fn compile(stage: &Stage, primitives: Primitives, tier1: &mut Option<Tier1>) -> Result<Program> {
    compile_in_tile(stage, TileMemory::default(), primitives, tier1)
}

/// The memory of the slots of a nest in a chain.
#[derive(Clone, Copy, Default)]
pub(crate) struct TileMemory<'a> {
    /// Is it used again while the caches have it?
    pub(crate) resident: &'a [bool],
    /// A group of each slot: within one, slots are as far apart as their views, and those of different ones anywhere. Empty
    /// outside of chains, where the same is true of buffers.
    pub(crate) groups: &'a [u32],
    /// Must each row be complete before the next one begins?
    pub(crate) in_order: bool,
    /// Is the nest one of a tile? Its first two dimensions are rows and columns, of which it does any part.
    pub(crate) in_tile: bool,
}

/// [`compile`] for a nest of a chain.
pub(crate) fn compile_in_tile(
    stage: &Stage,
    memory: TileMemory<'_>,
    primitives: Primitives,
    tier1: &mut Option<Tier1>,
) -> Result<Program> {
    let mut compiler = ProgramCompiler { analysis: Analysis::new(stage, memory, primitives), primitives, memory };
    let width = compiler.width();
    let (registers, places) = compiler.allocate();
    let splat = compiler.analysis.splat.iter().filter(|&&splat| splat).count();
    let bytes = |slot: &Slot| if slot.mode == SlotMode::Index { 0 } else { slot.dtype.size() };
    let element = (registers + splat) * width + stage.kernel.slots.iter().map(bytes).sum::<usize>();
    let block = BLOCK_BYTES.checked_div(element).map_or(*BLOCK.end(), |block| block as i64);
    compiler.analysis.schedule.set_block(block.clamp(*BLOCK.start(), *BLOCK.end()));
    let mut program = Emitter::new(&compiler.analysis, primitives, (registers, width), &places).program()?;
    program.native = tier1.as_mut().and_then(|tier1| compiler.native(&program, tier1));
    Ok(program)
}

struct ProgramCompiler<'a> {
    analysis: Analysis<'a>,
    primitives: Primitives,
    memory: TileMemory<'a>,
}

impl SlotMemory for ProgramCompiler<'_> {
    fn is_non_temporal(&self, slot: u16) -> bool {
        self.analysis.is_non_temporal(slot)
    }

    fn are_together(&self, a: usize, b: usize) -> bool {
        let buffers = &self.analysis.stage.parameters.buffers;
        buffers[a] == buffers[b] && self.memory.groups.get(a) == self.memory.groups.get(b)
    }
}

impl ProgramCompiler<'_> {
    /// The element size of registers.
    fn width(&self) -> usize {
        let values = self.analysis.values.iter().filter(|value| value.home == ValueHome::Register);
        let constants = self.analysis.stage.kernel.constants.iter().map(|dtype| dtype.size());
        values.map(|value| value.dtype.size()).chain(constants).max().unwrap_or(1)
    }

    /// Numbers registers in one pass; returns how many there are and the register of each value. A result never shares
    /// the register of an operand, as most primitives are slower in place.
    fn allocate(&self) -> (usize, Vec<u16>) {
        let values = &self.analysis.values;
        let steps = self.analysis.steps();
        let mut registers = Registers::default();
        let mut places = vec![0u16; values.len()];
        let is_register = |value: usize| values[value].home == ValueHome::Register;
        let invariant = |value: usize| match steps[values[value].made] {
            Step::Load { slot } => self.analysis.access(slot) == Access::Invariant,
            _ => false,
        };
        for value in (0..values.len()).filter(|&value| is_register(value) && invariant(value)) {
            places[value] = registers.take();
        }
        let mut value = 0;
        for (index, step) in steps.iter().enumerate() {
            if step.output(self.analysis.slots()).is_some() {
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

    /// The program as a call of compiled code.
    fn native(&self, program: &Program, tier1: &mut Tier1) -> Option<Native> {
        let (schedule, stage) = (&program.schedule, self.analysis.stage);
        let lines = schedule.lines();
        let outer = match lines.shape {
            LoopShape::BlockRows => return None,
            LoopShape::ShortRows => Some(lines.dim),
            // Planes.
            _ => None,
        };
        let Some(request) = native::request(stage, schedule, tier1.compilation(self.memory.in_order), self) else {
            tier1.count_refused();
            return None;
        };
        let strides = |dim: usize| -> Vec<i64> { program.slots.iter().map(|slot| slot.strides[dim] as i64).collect() };
        let repeated = self.repeated(program);
        let mut inner = strides(lines.inner_dim());
        repeated.iter().for_each(|repeated| inner[repeated.slot] = repeated.size as i64);
        let planes = || program.slots.iter().map(|slot| slot.plane as i64).collect();
        Some(Native {
            joins: request.folds == Folds::Results,
            kernel: tier1.kernel(request),
            inner,
            outer: outer.map_or_else(planes, strides),
            repeated,
        })
    }

    /// The slots whose columns are repeated where rows are joined.
    fn repeated(&self, program: &Program) -> Vec<Repeated> {
        let (lines, stage) = (program.schedule.lines(), self.analysis.stage);
        let Some(row_dim) = lines.row_dim() else { return Vec::new() };
        let repeats = |&slot: &usize| {
            stage.kernel.slots[slot].mode == SlotMode::Read && lines.repeats(stage.parameters.stride(slot))
        };
        let repeated = |slot: usize| {
            let size = stage.kernel.slots[slot].dtype.size();
            Repeated {
                slot,
                run: self.primitives.gather_strided(size),
                stride: program.slots[slot].strides[row_dim],
                size,
                bytes: (lines.row as usize * LANES * size).next_multiple_of(64),
            }
        };
        (0..stage.kernel.slots.len()).filter(repeats).map(repeated).collect()
    }
}
