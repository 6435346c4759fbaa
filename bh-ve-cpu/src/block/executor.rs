//! Running a program's lines on one participant: in block operations, or by compiled code.

use super::bound::Bound;
use super::memory::BlockScratch;
use super::program::{Native, Program, Repeated};
use crate::native::Code;
use crate::primitives::LANES;
use bh_jit_abi::{Call, SCRATCH_BYTES};
use bh_kernel::schedule::{FoldTree, Lines, LoopShape};

/// The accumulators: one for each fold of the program.
#[derive(Clone, Copy)]
pub(crate) enum Folding<'a> {
    /// The program has no folds.
    None,
    /// Sets of lanes, and their number, as [`Call::sets`] says: element `i` of the part of line `r` goes to lane `i % LANES` of
    /// set `r % sets`.
    Lanes(&'a [*mut u8], usize),
    /// As many elements as the part of the line has: those of all lines, or those of one line after the other where there are
    /// sets of them, each with an accumulator for each fold.
    Elements(&'a [*mut u8]),
    /// An element for each line, in accumulators as [`Call::accumulators`] says: where [`BlockExecutor::joins`].
    Results(&'a [*mut u8]),
}

/// One participant's view of a running program.
pub(crate) struct BlockExecutor<'a> {
    pub(crate) program: &'a Program,
    pub(super) bound: Bound<'a>,
    pub(super) table: &'a mut Vec<*mut u8>,
    pub(super) line_marks: &'a mut Vec<*mut u8>,
    pub(super) first_slot: usize,
    /// Compiled code and its scratch memory, instead of block operations. Repeated columns lie behind that.
    code: Option<(&'a Code, &'a Native, *mut u8)>,
}

impl<'a> BlockExecutor<'a> {
    /// Lays out registers, and fills constants over a block.
    pub(crate) fn new(bound: Bound<'a>, scratch: &'a mut BlockScratch) -> BlockExecutor<'a> {
        let Bound { program, binding, primitives } = bound;
        let BlockScratch { registers, table, line_marks } = scratch;
        let first_slot = program.first_slot();
        table.clear();
        line_marks.clear();
        if let Some(native) = &program.native
            && let Some(code) = native.kernel.code()
        {
            table.resize(program.places(), std::ptr::null_mut());
            line_marks.resize(native.repeated.len(), std::ptr::null_mut());
            let bytes = native.repeated.iter().map(|repeated| repeated.bytes).sum::<usize>();
            let code = Some((code, native, registers.reserve(SCRATCH_BYTES + bytes)));
            return BlockExecutor { program, bound, table, line_marks, first_slot, code };
        }
        let memory = registers.reserve(first_slot * program.register_bytes);
        for place in 0..first_slot {
            table.push(memory.wrapping_add(place * program.register_bytes));
        }
        let block = program.schedule.lines().block_elements();
        for (place, (value, (dtype, _))) in binding.constants.iter().zip(&program.constants).enumerate() {
            let elements = if program.splat[place] { block } else { 1 };
            // SAFETY: the register holds a block of elements of this size.
            unsafe { primitives.fill(dtype.size())(elements, table[program.registers + place], value.as_ptr()) };
        }
        table.resize(program.places(), std::ptr::null_mut());
        line_marks.resize(program.line_ops.len(), std::ptr::null_mut());
        BlockExecutor { program, bound, table, line_marks, first_slot, code: None }
    }

    /// Elements from set to set, where rows of `columns` columns are folded into sets: these, or as many as there are lanes where
    /// code finds the place of each row's set.
    pub(crate) fn set_elements(&self, columns: i64) -> usize {
        match (self.code, self.program.schedule.lines().shape) {
            (None, _) | (_, LoopShape::JoinedColumns) => columns as usize,
            _ => LANES,
        }
    }

    /// Does the code join lanes to results?
    pub(crate) fn joins(&self) -> bool {
        self.code.is_some_and(|(_, native, _)| native.joins)
    }

    /// Runs `steps` steps, from step `first` on, of `lines` lines of a plane: computes, folds and stores. `positions` are
    /// those of the first line's first step. This is all that the drivers ask for; what order they run lines in is their
    /// affair.
    ///
    /// # Safety
    /// `positions` must have each slot's position at the first step of the first line, in memory that is valid as
    /// [`Bound::new`] asks. The steps of the lines must be inside the nest, and run by nobody else, and the
    /// accumulators have room for what [`Folding`] says.
    pub(crate) unsafe fn lines(
        &mut self,
        positions: &[*mut u8],
        lines: i64,
        first: i64,
        steps: i64,
        folding: Folding<'_>,
    ) {
        let Some((code, native, scratch)) = self.code else {
            // SAFETY: the steps are inside the nest, and the accumulators have room.
            return unsafe { self.lines_in_blocks(positions, lines, first, steps, folding) };
        };
        let Lines { shape, row, .. } = *self.program.schedule.lines();
        let rows = match shape {
            LoopShape::Lines => (lines, steps),
            LoopShape::JoinedRows | LoopShape::JoinedColumns => (lines, steps * row),
            LoopShape::ColumnRows => (lines * steps, row),
            LoopShape::ShortRows | LoopShape::BlockRows => {
                debug_assert!(lines == 1 || !matches!(folding, Folding::Lanes(..)), "rows are no lines");
                for line in 0..lines {
                    self.seek(positions, line, first);
                    let folding = self.of_line(folding, line);
                    // SAFETY: the line is inside the nest, and its accumulators have room.
                    unsafe { self.call(code, native, scratch, (steps, row), folding) };
                }
                return;
            }
        };
        self.seek(positions, 0, first);
        // SAFETY: the rows are inside the nest, and the accumulators have room.
        unsafe {
            self.repeat(native, scratch);
            self.call(code, native, scratch, rows, folding);
        }
    }

    /// [`BlockExecutor::lines`] in block operations.
    ///
    /// # Safety
    /// As [`BlockExecutor::lines`].
    unsafe fn lines_in_blocks(
        &mut self,
        positions: &[*mut u8],
        lines: i64,
        first: i64,
        steps: i64,
        folding: Folding<'_>,
    ) {
        let Lines { shape, steps: line, block, .. } = *self.program.schedule.lines();
        // Rows of one line follow each other along it, so a block may have several.
        let follow = match self.program.schedule.tree() {
            Some(FoldTree::LongRows { row }) => row < line && lines > 1 && 2 * steps <= block,
            _ => shape.has_columns(),
        };
        // SAFETY: the lines are inside the nest, and the accumulators have room.
        unsafe {
            match folding {
                _ if follow => self.rows_in_blocks(positions, lines, first, steps, folding),
                Folding::Lanes(accumulators, sets) if steps <= block && self.folds_directly() => {
                    self.fold_rows(positions, lines, (first, steps), accumulators, sets);
                }
                _ => (0..lines).for_each(|line| self.line_in_blocks(positions, line, first, steps, folding)),
            }
        }
    }

    /// Accumulators of one line of several.
    pub(super) fn of_line<'b>(&self, folding: Folding<'b>, line: i64) -> Folding<'b> {
        match folding {
            Folding::Elements(accumulators) if !accumulators.is_empty() => {
                let folds = self.program.folds.len();
                let set = line as usize % (accumulators.len() / folds);
                Folding::Elements(&accumulators[set * folds..][..folds])
            }
            _ => folding,
        }
    }

    /// Repeats what slots have in all rows as often as rows are joined, and sets the slots there.
    ///
    /// # Safety
    /// The slots must be at a row of the nest, and `scratch` be that of the code, with the bytes of all repeated
    /// columns behind it.
    unsafe fn repeat(&mut self, native: &Native, scratch: *mut u8) {
        let columns = self.program.schedule.lines().row as usize;
        let mut to = scratch.wrapping_add(SCRATCH_BYTES);
        for (&Repeated { slot, run, stride, size, bytes }, mark) in
            native.repeated.iter().zip(self.line_marks.iter_mut())
        {
            let position = &mut self.table[self.first_slot + slot];
            if *mark != *position {
                *mark = *position;
                // SAFETY: the slots are at a row; there is room for as many rows as are joined.
                unsafe {
                    run(columns, to, *position, stride);
                    let (row, mut rows) = (columns * size, 1);
                    while rows < LANES {
                        std::ptr::copy_nonoverlapping(to, to.wrapping_add(rows * row), rows * row);
                        rows *= 2;
                    }
                }
            }
            *position = to;
            to = to.wrapping_add(bytes);
        }
    }

    /// Calls compiled code for `rows` rows of `count` elements, from where the slots are.
    ///
    /// # Safety
    /// As [`BlockExecutor::lines`], for rows from where the slots are; `scratch` must be that of `code`.
    unsafe fn call(
        &mut self,
        code: &Code,
        native: &Native,
        scratch: *mut u8,
        (rows, count): (i64, i64),
        folding: Folding<'_>,
    ) {
        let (accumulators, sets): (&[_], _) = match folding {
            Folding::None => (&[], 1),
            Folding::Lanes(accumulators, sets) => (accumulators, sets as i64),
            Folding::Elements(accumulators) if self.program.schedule.tree() == Some(FoldTree::Columns) => {
                (accumulators, LANES as i64)
            }
            Folding::Elements(accumulators) | Folding::Results(accumulators) => (accumulators, 1),
        };
        let call = Call {
            rows,
            count,
            sets,
            slots: self.table[self.first_slot..].as_ptr(),
            inner: native.inner.as_ptr(),
            outer: native.outer.as_ptr(),
            constants: self.bound.binding.constants.as_ptr(),
            accumulators: accumulators.as_ptr(),
            functions: code.functions(),
            scratch,
        };
        // SAFETY: the rows are inside the nest; the code was compiled for this program.
        unsafe { code.run(&call) };
    }

    /// Sets the slots to a step of a line of a plane: `positions` are those of the first line's first step.
    #[inline]
    pub(super) fn seek(&mut self, positions: &[*mut u8], line: i64, step: i64) {
        let slots = &mut self.table[self.first_slot..];
        slots.copy_from_slice(positions);
        if line > 0 {
            for (position, slot) in slots.iter_mut().zip(&self.program.slots) {
                *position = position.wrapping_offset((line as isize).wrapping_mul(slot.plane));
            }
        }
        if step > 0 {
            self.advance(step);
        }
    }

    /// Moves all slots along the line.
    #[inline]
    pub(super) fn advance(&mut self, steps: i64) {
        let line_dim = self.program.schedule.lines().dim;
        for (position, slot) in self.table[self.first_slot..].iter_mut().zip(&self.program.slots) {
            *position = position.wrapping_offset((steps as isize).wrapping_mul(slot.strides[line_dim]));
        }
    }

    /// Makes what was written visible to the other participants.
    pub(crate) fn finish(&self) {
        if self.program.non_temporal {
            crate::prims::fence();
        }
    }
}
