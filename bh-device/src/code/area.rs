//! Blocks that work on one box of elements, instruction by instruction: where operands lie in the box, which axis a block folds, and which
//! bases nobody else sees.

use bh_bytecode::c::has_expression;
use bh_bytecode::{AxisOrder, BatchRef, DType, Instr, Kind, Opcode, base_flags};
use std::ops::Range;

/// Where an operand lies: base, start and a stride for each axis of the box.
pub(super) type Place = (u32, i64, Vec<i64>);

/// An axis that a block folds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Folded {
    pub(super) mask: u16,
    pub(super) axis: usize,
}

/// Blocks of a batch and the box that they work on.
pub(super) struct Area<'a, 'b> {
    pub(super) batch: &'a BatchRef<'b>,
    pub(super) blocks: Range<u32>,
    pub(super) shape: Vec<i64>,
}

/// The one axis of more than one element that all folds of a block fold, forward and with the others in C order, and the shape of the
/// box.
pub(super) fn folded(batch: &BatchRef<'_>, block: u32) -> Option<(Folded, Vec<i64>)> {
    let block = batch.blocks.get(block as usize)?;
    if !batch.renames(block).is_empty() {
        return None;
    }
    let mut folds = batch.block_instrs(block).iter().map(|&at| &batch.instrs[at as usize]);
    let fold = folds.find(|instr| instr.opcode.kind() == Kind::Reduction)?;
    let shape = batch.shape(fold.inputs()[0].as_view()?).to_vec();
    let order = AxisOrder::decode(fold.order, shape.len())?;
    let mask = fold.param & all_axes(&shape);
    let long: Vec<usize> = (0..shape.len()).filter(|&axis| mask >> axis & 1 == 1 && shape[axis] > 1).collect();
    let [axis] = long[..] else { return None };
    let in_order = order.axes().iter().enumerate().all(|(at, &axis)| at == axis as usize);
    (in_order && !order.is_fixed() && order.backward() & mask == 0).then_some((Folded { mask, axis }, shape))
}

/// The mask of all axes.
fn all_axes(shape: &[i64]) -> u16 {
    ((1u32 << shape.len().min(16)) - 1) as u16
}

impl Area<'_, '_> {
    /// The shape of the box without the axes of a mask.
    pub(super) fn without(&self, mask: u16) -> Vec<i64> {
        (0..self.shape.len()).filter(|axis| mask >> axis & 1 == 0).map(|axis| self.shape[axis]).collect()
    }

    /// Where a view lies that has the box's shape without the axes of a mask, or with one element along them.
    pub(super) fn place(&self, view: u32, mask: u16) -> Option<Place> {
        let (record, shape) = (&self.batch.views[view as usize], self.batch.shape(view));
        let extent = |axis: usize| if mask >> axis & 1 == 1 { 1 } else { self.shape[axis] };
        let has_all = shape.len() == self.shape.len() && (0..shape.len()).all(|axis| shape[axis] == extent(axis));
        if self.batch.base_of(view).is_none() || (!has_all && shape != self.without(mask)) {
            return None;
        }
        let mut strides = self.batch.stride(view).iter();
        let along = (0..self.shape.len()).map(|axis| {
            let stride = if has_all || mask >> axis & 1 == 0 { *strides.next()? } else { 0 };
            Some(if extent(axis) == 1 { 0 } else { stride })
        });
        Some((record.base, record.start, along.collect::<Option<Vec<i64>>>()?))
    }

    /// The instructions of a block that compute.
    pub(super) fn instrs(&self, block: u32) -> Vec<Instr> {
        let instrs = self.batch.block_instrs(&self.batch.blocks[block as usize]);
        instrs.iter().map(|&at| self.batch.instrs[at as usize]).filter(|instr| !instr.opcode.is_system()).collect()
    }

    /// Does an instruction fold one operand over just these axes?
    pub(super) fn folds(&self, instr: &Instr, mask: u16) -> bool {
        let plain = instr.opcode.fold_of_one() == instr.opcode && instr.inputs().len() == 1;
        plain && instr.param & all_axes(&self.shape) == mask
    }

    /// The parameter of the expression of an elementwise operation with one result and its types, if it has one.
    pub(super) fn elementwise(&self, instr: &Instr, out: u32) -> Option<(u16, DType, DType)> {
        let plain = instr.opcode.kind() == Kind::Elementwise && instr.outputs().len() == 1;
        if !plain || !has_expression(instr.opcode) || instr.has_one_form() {
            return None;
        }
        let (input, output) = (self.batch.dtype(*instr.inputs().last()?)?, self.batch.base_of(out)?.dtype());
        Some((if instr.opcode == Opcode::Powi { instr.param } else { 0 }, input, output))
    }

    /// Does a base live within the blocks?
    pub(super) fn is_own(&self, base: u32) -> bool {
        let of_blocks = |at: u32| {
            let mut own = self.blocks.clone().map(|block| self.batch.block_instrs(&self.batch.blocks[block as usize]));
            own.any(|instrs| instrs.contains(&at))
        };
        let uses = |instr: &Instr| {
            let mut views = instr.operands().iter().filter_map(|operand| operand.as_view());
            views.any(|view| self.batch.views[view as usize].base == base)
        };
        let all = || self.batch.instrs.iter().zip(0u32..).filter(|(instr, _)| uses(instr));
        [base_flags::BORN, base_flags::DIES].iter().all(|&flag| self.batch.bases[base as usize].has(flag))
            && all().all(|(instr, at)| of_blocks(at) && instr.opcode != Opcode::Sync)
            && all().any(|(instr, _)| matches!(instr.opcode, Opcode::Free | Opcode::Discard))
    }
}
