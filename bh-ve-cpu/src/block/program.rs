//! A lowered stage as a list of block operations on a table of pointers.
//!
//! The table holds, in this order, the scratch registers, the constants (splat over a block), and the slots' positions in
//! memory. A block operation is a primitive and the table entries it works on. The innermost loop of the nest is the
//! *line*; a block is a part of it. When the innermost dimension is short, the line is the next dimension and a block
//! spans several rows.

use super::gather::GatherForm;
use crate::native::NativeKernel;
use crate::primitives::{CopyFn, FillFn, IotaFn, JoinFn, LanesFn, PhiloxFn, PrimFn, RepeatFn, StridedFn, SumFn};
use bh_bytecode::{DType, Opcode};
use bh_kernel::schedule::{Schedule, SlotPlan};
use bh_kernel::{ConstantRef, GatherSource};
use std::sync::Arc;

/// An entry of the pointer table.
pub(crate) type PointerIndex = u16;

/// How rows of a slot lie in memory, in bytes (or in numbers, for index views).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowStride {
    /// From element to element.
    pub(crate) inner: isize,
    /// From row to row, when a block spans rows.
    pub(crate) outer: isize,
}

/// A block operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// An element-wise primitive.
    Prim { run: PrimFn, dst: PointerIndex, args: [PointerIndex; 3] },
    /// The sum of `count` blocks, the entries from `first` on of the program's terms, times the first element of `single`, or
    /// of their squares, plus that.
    Sum { run: SumFn, dst: PointerIndex, first: u32, count: u16, single: Option<PointerIndex> },
    /// A dense copy.
    Copy { dst: PointerIndex, src: PointerIndex, size: usize },
    /// A dense copy to memory that is not read again soon.
    NonTemporal { run: CopyFn, dst: PointerIndex, src: PointerIndex, size: usize },
    /// A copy from strided memory to a register.
    Load { run: StridedFn, dst: PointerIndex, slot: PointerIndex, stride: RowStride, size: usize },
    /// One element for each row, as often as a row has elements, to a register.
    Repeat { run: RepeatFn, dst: PointerIndex, slot: PointerIndex, stride: isize },
    /// A copy to strided memory.
    Store { run: StridedFn, slot: PointerIndex, src: PointerIndex, stride: RowStride, size: usize },
    /// All elements become the slot's one element.
    Fill { run: FillFn, dst: PointerIndex, slot: PointerIndex },
    /// RANGE.
    Range { run: IotaFn, dst: PointerIndex, slot: PointerIndex, stride: RowStride, size: usize },
    /// RANDOM; the key is the first element of `key`.
    Random { run: PhiloxFn, dst: PointerIndex, slot: PointerIndex, key: PointerIndex, stride: RowStride, size: usize },
    /// GATHER; `gather` numbers the source.
    Gather { dst: PointerIndex, index: PointerIndex, gather: u16, form: GatherForm, instr: u32 },
}

/// A reduction.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    /// Combines two blocks element by element.
    pub(crate) combine: PrimFn,
    /// Folds a block, or what it makes of two, into lanes.
    pub(crate) lanes: LanesFn,
    /// Folds the lanes into the first.
    pub(crate) join: JoinFn,
    /// The identity element.
    pub(crate) identity: [u8; 16],
    /// Bytes per element.
    pub(crate) size: usize,
    /// The value that is folded, or the two that [`Fold::lanes`] makes it of.
    pub(crate) args: [PointerIndex; 2],
    /// The slot (counted from the first slot) that receives the result.
    pub(crate) slot: usize,
}

/// A program for one stage with given sizes.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) schedule: Schedule,
    pub(crate) slots: Vec<SlotPlan>,
    pub(crate) constants: Vec<(DType, ConstantRef)>,
    /// Must each constant be splat over a block? If not, its first element is enough.
    pub(crate) splat: Vec<bool>,
    pub(crate) gathers: Vec<GatherSource>,
    /// Operands of sums.
    pub(crate) terms: Vec<PointerIndex>,
    /// Run at the start of each line: loads of what stays the same along it.
    pub(crate) line_ops: Vec<Op>,
    /// Run for each block.
    pub(crate) ops: Vec<Op>,
    /// Run for each block, then.
    pub(crate) folds: Vec<Fold>,
    /// Run for each block, at its end: writes of what could not be computed in place.
    pub(crate) stores: Vec<Op>,
    /// Number of scratch registers.
    pub(crate) registers: usize,
    /// Bytes of a register.
    pub(crate) register_bytes: usize,
    /// Are there stores that bypass the caches?
    pub(crate) non_temporal: bool,
    /// Rough cost of an element, in units of one vectorised addition.
    pub(crate) weight: u32,
    /// The program as a kernel that can be compiled.
    pub(crate) native: Option<Native>,
}

/// A program as a call of compiled code.
#[derive(Debug)]
pub(crate) struct Native {
    /// The code, as soon as there is any.
    pub(crate) kernel: Arc<NativeKernel>,
    /// Does it join lanes to results?
    pub(crate) joins: bool,
    /// The stride of each slot from element to element, and from row to row.
    pub(crate) inner: Vec<i64>,
    pub(crate) outer: Vec<i64>,
    /// Where rows are joined, the slots that find the same in all of them.
    pub(crate) repeated: Vec<Repeated>,
}

/// A slot whose columns are to be repeated for joined rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeated {
    /// The slot, counted from the first slot.
    pub(crate) slot: usize,
    /// Copies its columns, which lie `stride` bytes apart.
    pub(crate) run: StridedFn,
    pub(crate) stride: isize,
    /// Bytes per element, and of all that is repeated.
    pub(crate) size: usize,
    pub(crate) bytes: usize,
}

impl Program {
    /// Entries of the pointer table.
    pub(crate) fn places(&self) -> usize {
        self.first_slot() + self.slots.len()
    }

    /// Whether the kernel has compiled code by now.
    #[inline]
    pub(crate) fn is_compiled(&self) -> bool {
        self.native.as_ref().is_some_and(|native| native.kernel.code().is_some())
    }

    /// The cost of a run, in units of one vectorised addition of an element.
    pub(crate) fn work(&self) -> u64 {
        self.schedule.iterations() as u64 * u64::from(self.weight)
    }

    /// The first slot's place.
    #[inline]
    pub(crate) fn first_slot(&self) -> usize {
        self.registers + self.constants.len()
    }
}

/// Roughly how many vectorised additions an operation costs.
pub(crate) fn weight(opcode: Opcode, dtype: DType) -> u32 {
    let scale = if dtype.is_complex() { 4 } else { 1 };
    scale * opcode.info().cost
}
