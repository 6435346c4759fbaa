//! Operations that are added to a recorded batch, and the arrays that only they use.

use bh_bytecode::{Base, Batch, BatchRef, Constant, DType, Instr, Opcode, Operand, View, base_flags};
use std::sync::atomic::{AtomicU64, Ordering};

/// A copy of a batch that is written anew, with operations in between.
pub(super) struct Added<'a> {
    pub(super) batch: Batch,
    ids: &'a AtomicU64,
    /// Arrays that end with the batch.
    scrap: Vec<Operand>,
}

impl<'a> Added<'a> {
    /// The batch without its instructions, and these.
    pub(super) fn new(batch: &BatchRef<'_>, ids: &'a AtomicU64) -> (Added<'a>, Vec<Instr>) {
        let mut batch = batch.to_owned();
        batch.forget_structure();
        let instrs = std::mem::take(&mut batch.instrs);
        (Added { batch, ids, scrap: Vec::new() }, instrs)
    }

    /// A new identity of a base.
    pub(super) fn id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// The base that an operand looks at.
    pub(super) fn base_of(&self, operand: Operand) -> Option<Base> {
        self.batch.as_ref().base_of(operand.as_view()?).copied()
    }

    /// Appends an operation without a place.
    pub(super) fn op(&mut self, opcode: Opcode, param: u16, operands: &[Operand]) {
        self.batch.push_instr(Instr { param, ..Instr::new(opcode, operands) });
    }

    /// A new array that ends with the batch.
    pub(super) fn scrap(&mut self, dtype: DType, shape: &[i64]) -> Option<Operand> {
        let view = View::contiguous(shape).ok()?;
        let mut base = Base::checked(self.id(), dtype, view.len())?;
        base.flags = base_flags::BORN | base_flags::DIES;
        let base = self.batch.push_base(base);
        let operand = Operand::view(self.batch.push_view(base, &view));
        self.scrap.push(operand);
        Some(operand)
    }

    /// A new array of the results of an operation.
    pub(super) fn of(&mut self, opcode: Opcode, dtype: DType, shape: &[i64], inputs: &[Operand]) -> Option<Operand> {
        let out = self.scrap(dtype, shape)?;
        let operands: Vec<Operand> = std::iter::once(out).chain(inputs.iter().copied()).collect();
        self.op(opcode, 0, &operands);
        Some(out)
    }

    /// A number.
    pub(super) fn constant(&mut self, value: Constant) -> Operand {
        Operand::constant(self.batch.push_constant(value))
    }

    /// Folds all elements of an array into one element.
    pub(super) fn fold(&mut self, opcode: Opcode, dtype: DType, shape: &[i64], input: Operand) -> Option<Operand> {
        if shape.is_empty() {
            return Some(input);
        }
        let folded = self.scrap(dtype, &[])?;
        self.op(opcode, ((1u32 << shape.len()) - 1) as u16, &[folded, input]);
        Some(folded)
    }

    /// The batch, at whose end the arrays of the added operations are dropped.
    pub(super) fn finish(mut self) -> Batch {
        for operand in std::mem::take(&mut self.scrap) {
            self.op(Opcode::Discard, 0, &[operand]);
        }
        self.batch
    }
}
