//! A program's block operations, run one after the other.

use super::executor::{BlockExecutor, Folding};
use super::gather;
use super::program::{Fold, Op, PointerIndex, RowStride};
use super::sums::SUM_TERMS;
use crate::primitives::LANES;
use bh_kernel::schedule::FoldTree;
use std::mem::MaybeUninit;

impl BlockExecutor<'_> {
    /// Is there nothing to do but to fold what lies in memory into lanes?
    pub(super) fn folds_directly(&self) -> bool {
        let program = self.program;
        let in_memory = |fold: &Fold| fold.args.iter().all(|&arg| usize::from(arg) >= self.first_slot);
        program.line_ops.is_empty()
            && program.ops.is_empty()
            && program.stores.is_empty()
            && program.schedule.tree().is_some_and(FoldTree::has_lanes)
            && program.folds.iter().all(in_memory)
    }

    /// Rows of [`BlockExecutor::lines`] that are folded as they lie in memory: short ones take less time than it takes to begin a
    /// line in blocks.
    ///
    /// # Safety
    /// As [`BlockExecutor::lines`]; [`BlockExecutor::folds_directly`] must be true, and a row fit a block.
    pub(super) unsafe fn fold_rows(
        &self,
        positions: &[*mut u8],
        rows: i64,
        (first, row): (i64, i64),
        accumulators: &[*mut u8],
        sets: usize,
    ) {
        let lines = self.program.schedule.lines();
        for (fold, &lanes) in self.program.folds.iter().zip(accumulators) {
            let operand = |arg: PointerIndex| {
                let slot = usize::from(arg) - self.first_slot;
                let plan = &self.program.slots[slot];
                let start = (first as isize).wrapping_mul(plan.strides[lines.dim]);
                (positions[slot].wrapping_offset(start), plan.plane)
            };
            let [a, b] = fold.args.map(operand);
            let at =
                |(start, plane): (*mut u8, isize), number: isize| start.wrapping_offset(number.wrapping_mul(plane));
            for number in 0..rows as isize {
                let lanes = lanes.wrapping_add(number as usize % sets * LANES * fold.size);
                // SAFETY: the rows are inside the nest, and each has its set of lanes.
                unsafe {
                    let count = (row * lines.row) as usize;
                    (fold.lanes)(count, lanes, at(a, number), at(b, number));
                }
            }
        }
    }

    /// A line of [`BlockExecutor::lines`] in block operations.
    ///
    /// # Safety
    /// As [`BlockExecutor::lines`].
    pub(super) unsafe fn line_in_blocks(
        &mut self,
        positions: &[*mut u8],
        line: i64,
        first: i64,
        steps: i64,
        folding: Folding<'_>,
    ) {
        let lines = self.program.schedule.lines();
        let mut at = 0;
        // SAFETY: the steps are inside the nest, and the accumulators have room.
        unsafe {
            self.start_line(positions, line, first);
            while at < steps {
                let block = lines.block.min(steps - at);
                self.compute(block);
                self.fold(folding, line, ((at * lines.row) as usize, 0), (block * lines.row) as usize);
                self.store(block);
                self.advance(block);
                at += block;
            }
        }
    }

    /// Rows of [`BlockExecutor::lines`] that are parts of one line, in block operations on whole rows.
    ///
    /// # Safety
    /// As [`BlockExecutor::lines`]; a block must have room for a row.
    pub(super) unsafe fn rows_in_blocks(
        &mut self,
        positions: &[*mut u8],
        rows: i64,
        first: i64,
        row: i64,
        folding: Folding<'_>,
    ) {
        let lines = self.program.schedule.lines();
        let (per_block, elements) = (lines.block / row, (row * lines.row) as usize);
        let mut at = 0;
        // SAFETY: the rows are inside the nest, and a block has room for each.
        unsafe {
            self.start_line(positions, 0, first);
            while at < rows {
                let block = per_block.min(rows - at);
                self.compute(block * row);
                for number in 0..block {
                    self.fold(folding, at + number, (0, number as usize * elements), elements);
                }
                self.store(block * row);
                self.advance(block * row);
                at += block;
            }
        }
    }

    /// Folds elements of a block, from the second of these offsets on. The first is how far into the part of the line
    /// that is.
    ///
    /// # Safety
    /// [`BlockExecutor::compute`] must have made `from + count` elements of the block, and the accumulators have room
    /// for `count` from `offset` on.
    #[inline]
    unsafe fn fold(&self, folding: Folding<'_>, line: i64, (offset, from): (usize, usize), count: usize) {
        // SAFETY: the block has been computed, and the accumulators have room for its elements.
        unsafe {
            match folding {
                // Compiled code alone has results.
                Folding::None | Folding::Results(_) => {}
                Folding::Lanes(accumulators, sets) => {
                    let set = line as usize % sets;
                    for (fold, &lanes) in self.program.folds.iter().zip(accumulators) {
                        let lanes = lanes.wrapping_add(set * LANES * fold.size);
                        let [a, b] = fold.args.map(|arg| self.at(arg).wrapping_add(from * fold.size));
                        (fold.lanes)(count, lanes, a, b);
                    }
                }
                Folding::Elements(_) => {
                    let Folding::Elements(accumulators) = self.of_line(folding, line) else { return };
                    for (fold, &elements) in self.program.folds.iter().zip(accumulators) {
                        let elements = elements.wrapping_add(offset * fold.size);
                        let value = self.at(fold.args[0]).wrapping_add(from * fold.size);
                        (fold.combine)(count, elements, elements, value, value);
                    }
                }
            }
        }
    }

    /// Goes to a step of a line, and makes the values that stay the same along it.
    ///
    /// # Safety
    /// The positions must be as [`BlockExecutor::lines`] asks, and the line be one of its lines.
    #[inline]
    unsafe fn start_line(&mut self, positions: &[*mut u8], line: i64, step: i64) {
        let lines = self.program.schedule.lines();
        self.seek(positions, line, 0);
        for (index, op) in self.program.line_ops.iter().enumerate() {
            let slot = match *op {
                Op::Fill { slot, .. } | Op::Load { slot, .. } | Op::Repeat { slot, .. } => slot,
                _ => continue,
            };
            let position = self.table[slot as usize];
            if self.line_marks[index] != position {
                self.line_marks[index] = position;
                // SAFETY: the positions are inside the buffers, and registers have room for a block.
                unsafe { self.op(op, lines.block as usize, lines.block_elements()) };
            }
        }
        if step > 0 {
            self.advance(step);
        }
    }

    /// Runs the operations that make values for a block of `steps` steps.
    ///
    /// # Safety
    /// `steps` must be at most those of a block, and as many from where the slots are be inside the line.
    #[inline]
    unsafe fn compute(&mut self, steps: i64) {
        let count = (steps * self.program.schedule.lines().row) as usize;
        for op in &self.program.ops {
            // SAFETY: the block is inside the line.
            unsafe { self.op(op, steps as usize, count) };
        }
    }

    /// Runs the copies at the end of a block.
    ///
    /// # Safety
    /// As [`BlockExecutor::compute`].
    #[inline]
    unsafe fn store(&mut self, steps: i64) {
        let count = (steps * self.program.schedule.lines().row) as usize;
        for op in &self.program.stores {
            // SAFETY: the block is inside the line, and has been computed.
            unsafe { self.op(op, steps as usize, count) };
        }
    }

    #[inline]
    fn at(&self, place: PointerIndex) -> *mut u8 {
        self.table[place as usize]
    }

    /// # Safety
    /// The operation's places must be valid for `count` elements of its types: registers are blocks, and slots lie
    /// where `steps` steps are inside the nest.
    #[inline]
    unsafe fn op(&self, op: &Op, steps: usize, count: usize) {
        // SAFETY: all places are valid for `count` elements in `steps` steps.
        unsafe {
            match *op {
                Op::Prim { run, dst, args } => {
                    run(count, self.at(dst), self.at(args[0]), self.at(args[1]), self.at(args[2]));
                }
                Op::Sum { run, dst, first, count: terms, single } => {
                    let mut pointers = [const { MaybeUninit::uninit() }; SUM_TERMS];
                    let list = &self.program.terms[first as usize..][..terms as usize];
                    for (pointer, &term) in pointers.iter_mut().zip(list) {
                        pointer.write(self.at(term).cast_const());
                    }
                    let single = single.map_or(std::ptr::null(), |place| self.at(place).cast_const());
                    run(count, self.at(dst), pointers.as_ptr().cast(), list.len(), single);
                }
                Op::Copy { dst, src, size } => std::ptr::copy(self.at(src), self.at(dst), count * size),
                Op::NonTemporal { run, dst, src, size } => run(count * size, self.at(dst), self.at(src)),
                Op::Load { run, dst, slot, stride, size } => {
                    let (mut dst, row) = (self.at(dst), count / steps);
                    self.rows(slot, stride, steps, count, |src, elements| {
                        run(elements, dst, src, stride.inner);
                        dst = dst.wrapping_add(row * size);
                    });
                }
                Op::Repeat { run, dst, slot, stride } => run(steps, count / steps, self.at(dst), self.at(slot), stride),
                Op::Store { run, slot, src, stride, size } => {
                    let (mut src, row) = (self.at(src), count / steps);
                    self.rows(slot, stride, steps, count, |dst, elements| {
                        run(elements, dst, src, stride.inner);
                        src = src.wrapping_add(row * size);
                    });
                }
                Op::Fill { run, dst, slot } => run(count, self.at(dst), self.at(slot)),
                Op::Range { run, dst, slot, stride, size } => {
                    let (mut dst, row) = (self.at(dst), count / steps);
                    self.rows(slot, stride, steps, count, |number, elements| {
                        run(elements, dst, number.addr() as i64, stride.inner as i64);
                        dst = dst.wrapping_add(row * size);
                    });
                }
                Op::Random { run, dst, slot, key, stride, size } => {
                    let key = self.at(key).cast::<u64>().read_unaligned() as u32;
                    let (mut dst, row) = (self.at(dst), count / steps);
                    self.rows(slot, stride, steps, count, |number, elements| {
                        run(elements, dst, number.addr() as i64, stride.inner as i64, key);
                        dst = dst.wrapping_add(row * size);
                    });
                }
                Op::Gather { dst, index, gather, form, instr } => {
                    let source = &self.program.gathers[gather as usize];
                    let data = self.bound.binding.gathers[gather as usize];
                    let (index, dst) = (self.at(index), self.at(dst));
                    let result = gather::gather(source, data, form, (count, count / steps), index, dst);
                    if let Err(index) = result {
                        self.bound.binding.failure.index(instr, index, source.len);
                    }
                }
            }
        }
    }

    /// Calls `f` with the position and length of each run of elements with one stride: once, or once per row.
    #[inline]
    fn rows(
        &self,
        slot: PointerIndex,
        stride: RowStride,
        steps: usize,
        count: usize,
        mut f: impl FnMut(*mut u8, usize),
    ) {
        let mut position = self.at(slot);
        if self.program.schedule.lines().row_dim().is_none() {
            return f(position, count);
        }
        for _ in 0..steps {
            f(position, count / steps);
            position = position.wrapping_offset(stride.outer);
        }
    }
}
