//! The kernel form: what a stage computes, apart from its sizes, and the parameters that complete it.

use crate::wire::{dtype, opcode};
use bh_bytecode::neutral::neutral_constant;
use bh_bytecode::{BatchRef, Constant, DType, Opcode};
use serde::{Deserialize, Serialize};

/// The work of a block of the partition.
#[derive(Clone, Debug, PartialEq)]
pub enum Lowered {
    /// Data management only.
    Nothing,
    /// Loop nests, run one after the other.
    Loops(Vec<Stage>, Vec<Temporary>),
    /// One operation with an algorithm of its own.
    Special(Special),
}

/// An operation that is alone in its block; the engine works on the instruction itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// A running fold; index of the instruction.
    Accumulate(u32),
    /// A scatter; index of the instruction.
    Scatter(u32),
    /// A product of matrices; index of the instruction.
    Product(u32),
    /// An extension method; index of the instruction.
    Extension(u32),
}

impl Special {
    /// The index of the instruction.
    pub fn instr(self) -> u32 {
        let (Special::Accumulate(index)
        | Special::Scatter(index)
        | Special::Product(index)
        | Special::Extension(index)) = self;
        index
    }
}

/// Memory that lives between the stages of one block: the results of contracted reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Temporary {
    /// Element type.
    pub dtype: DType,
    /// Elements.
    pub len: i64,
}

/// A kernel with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// The structure.
    pub kernel: Kernel,
    /// The parameters that complete it.
    pub parameters: Parameters,
}

impl Stage {
    /// The number of elements that a slot of this mode reaches: results have none along reduced dimensions.
    pub fn elements(&self, mode: SlotMode) -> i64 {
        let dims = self.parameters.extents.iter().zip(&self.kernel.dims);
        dims.filter(|(_, dim)| mode != SlotMode::Result || **dim == Dim::Kept).map(|(extent, _)| extent).product()
    }
}

/// The role of a loop dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// Every index is an element of all outputs.
    Kept,
    /// The reductions fold it.
    Reduced,
}

/// How a slot is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SlotMode {
    /// Read once per iteration.
    Read,
    /// Written once per iteration.
    Write,
    /// Receives the result of a reduction; its strides along reduced dimensions are 0.
    Result,
    /// An index view: no memory; the number at an iteration is its offset.
    Index,
}

impl SlotMode {
    /// Does memory change?
    pub fn writes(self) -> bool {
        matches!(self, SlotMode::Write | SlotMode::Result)
    }
}

/// One access pattern: a view, or an index view, over the loop nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Element type; `I64` for index views.
    pub dtype: DType,
    /// How it is used.
    pub mode: SlotMode,
    /// The first slot that addresses exactly the same memory in the same order; this slot's own number if none does.
    pub same_as: u16,
}

/// An input of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Arg {
    /// The value with this number.
    Value(u16),
    /// The constant with this number.
    Constant(u16),
}

/// One step of the loop body. Steps that make values number them in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Step {
    /// The next value is the slot's element.
    Load {
        /// Where from.
        slot: u16,
    },
    /// The next value is an element-wise operation.
    Compute {
        /// The operation.
        #[serde(with = "opcode")]
        opcode: Opcode,
        /// The exponent of POWI, else 0.
        param: u16,
        /// Type of the last operand.
        #[serde(with = "dtype")]
        input: DType,
        /// Type of the value.
        #[serde(with = "dtype")]
        output: DType,
        /// The operands; unused ones repeat the last.
        args: [Arg; 3],
        /// How many operands there are.
        count: u8,
    },
    /// The next value is the index view's number, converted.
    Range {
        /// The index view.
        slot: u16,
        /// Type of the value.
        #[serde(with = "dtype")]
        output: DType,
    },
    /// The next value is the random number that belongs to the index view's number.
    Random {
        /// The index view.
        slot: u16,
        /// The key: its low 32 bits count.
        key: Arg,
        /// Type of the value.
        #[serde(with = "dtype")]
        output: DType,
    },
    /// The next value is the source's element at an index.
    Gather {
        /// Number of the [`GatherSource`].
        source: u16,
        /// The index, `I64` or `U64`.
        index: Arg,
        /// Type of the index.
        #[serde(with = "dtype")]
        input: DType,
        /// Type of the value.
        #[serde(with = "dtype")]
        output: DType,
    },
    /// Writes a value. Stores follow all steps that make values.
    Store {
        /// Where to.
        slot: u16,
        /// The stored value.
        arg: Arg,
    },
    /// Folds a value over the reduced dimensions.
    Reduce {
        /// The reduction.
        #[serde(with = "opcode")]
        opcode: Opcode,
        /// Where the results go.
        slot: u16,
        /// The folded value.
        arg: Arg,
    },
}

impl Step {
    /// The type of the value that the step makes; `None` for stores and reductions.
    pub fn output(&self, slots: &[Slot]) -> Option<DType> {
        match *self {
            Step::Load { slot } => Some(slots[slot as usize].dtype),
            Step::Compute { output, .. }
            | Step::Range { output, .. }
            | Step::Random { output, .. }
            | Step::Gather { output, .. } => Some(output),
            Step::Store { .. } | Step::Reduce { .. } => None,
        }
    }

    /// The inputs.
    pub fn args(&self) -> &[Arg] {
        match self {
            Step::Load { .. } | Step::Range { .. } => &[],
            Step::Compute { args, count, .. } => &args[..*count as usize],
            Step::Random { key: arg, .. }
            | Step::Gather { index: arg, .. }
            | Step::Store { arg, .. }
            | Step::Reduce { arg, .. } => std::slice::from_ref(arg),
        }
    }

    /// The inputs, and what fills the places of unused ones, to be renumbered.
    pub(super) fn args_mut(&mut self) -> &mut [Arg] {
        match self {
            Step::Load { .. } | Step::Range { .. } => &mut [],
            Step::Compute { args, .. } => args,
            Step::Random { key: arg, .. }
            | Step::Gather { index: arg, .. }
            | Step::Store { arg, .. }
            | Step::Reduce { arg, .. } => std::slice::from_mut(arg),
        }
    }

    /// The slot, if the step has one, to be renumbered.
    pub(super) fn slot_mut(&mut self) -> Option<&mut u16> {
        match self {
            Step::Load { slot }
            | Step::Range { slot, .. }
            | Step::Random { slot, .. }
            | Step::Store { slot, .. }
            | Step::Reduce { slot, .. } => Some(slot),
            Step::Compute { .. } | Step::Gather { .. } => None,
        }
    }
}

/// The structure of a stage: everything but sizes, offsets and constants. Equal kernels can share generated code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// The loop nest, outermost first; at least one dimension.
    pub dims: Vec<Dim>,
    /// The accesses.
    pub slots: Vec<Slot>,
    /// Types of the constants.
    pub constants: Vec<DType>,
    /// The loop body.
    pub steps: Vec<Step>,
}

impl Kernel {
    /// The number of values that the body makes.
    pub fn values(&self) -> usize {
        self.steps.iter().filter(|step| !matches!(step, Step::Store { .. } | Step::Reduce { .. })).count()
    }

    /// Does it fold dimensions?
    pub fn reduces(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Reduce { .. }))
    }
}

/// The memory behind a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferRef {
    /// The buffer of a base (index in the batch).
    Base(u32),
    /// The fresh buffer of a renamed base (index in the batch).
    Fresh(u32),
    /// A temporary of the block.
    Temporary(u16),
    /// None: an index view.
    None,
}

/// Where a constant's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstantRef {
    /// A constant of the batch.
    Batch(u32),
    /// Zero of a type: what a base that was never written holds.
    Zero(DType),
    /// The neutral element of folds by an opcode of a type.
    Neutral(Opcode, DType),
}

impl ConstantRef {
    /// The value, in the type that the kernel has for the constant.
    pub fn value(self, batch: &BatchRef<'_>, dtype: DType) -> Constant {
        match self {
            ConstantRef::Batch(index) => {
                let constant = batch.constants[index as usize];
                if constant.dtype == dtype as u8 { constant } else { constant.cast(dtype) }
            }
            ConstantRef::Neutral(opcode, dtype) => neutral_constant(opcode, dtype),
            ConstantRef::Zero(dtype) => Constant { bits: [0; 2], dtype: dtype as u8, reserved: [0; 7] },
        }
    }
}

/// The view that a gather reads from, by its C-order element number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatherSource {
    /// Its memory.
    pub buffer: BufferRef,
    /// Offset of its first element.
    pub start: i64,
    /// Extents, merged where strides allow, outermost first.
    pub shape: Vec<i64>,
    /// Strides in elements.
    pub stride: Vec<i64>,
    /// Number of elements.
    pub len: i64,
}

/// The values that complete a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// Extents of the loop dimensions.
    pub extents: Vec<i64>,
    /// Extents of the folded axes, outermost first, before dimensions were merged: the same in every kernel that a
    /// reduction may share, and so what the order of its operations is to depend on.
    pub folded: Vec<i64>,
    /// The number of kept elements inside of the folded ones, if they are columns, whose rows are folded into sets; else 0.
    /// The same in every kernel, too; the kept elements are dimensions inside or outside of the folded ones.
    pub columns: i64,
    /// Do the folds have the fixed tree, which the number of kept elements has no part in?
    pub fixed: bool,
    /// Memory of each slot.
    pub buffers: Vec<BufferRef>,
    /// Offset in elements of each slot (the first number of an index view).
    pub starts: Vec<i64>,
    /// Strides in elements: one for each dimension, for each slot.
    pub strides: Vec<i64>,
    /// The constants.
    pub constants: Vec<ConstantRef>,
    /// The sources of gathers.
    pub gathers: Vec<GatherSource>,
    /// The instruction (index in the batch) behind each step.
    pub instrs: Vec<u32>,
}

impl Parameters {
    /// The strides of a slot, outermost dimension first.
    #[inline]
    pub fn stride(&self, slot: usize) -> &[i64] {
        let rank = self.extents.len();
        &self.strides[slot * rank..][..rank]
    }

    /// The number of iterations.
    pub fn iterations(&self) -> i64 {
        self.extents.iter().product()
    }
}
