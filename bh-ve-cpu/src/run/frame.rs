//! Running the block operations of a program on one participant.

mod operation;

use super::Binding;
use super::scratch::FrameScratch;
use crate::primitives::{LANES, Primitives};
use crate::program::{Fold, Native, Op, Place, Program, Repeated};
use crate::tier1::Code;
use bh_fuser::lower::Dim;
use bh_jit_abi::{Call, SCRATCH_BYTES};

/// What values are folded into: one accumulator for each fold of the program.
#[derive(Clone, Copy)]
pub(crate) enum Folding<'a> {
    /// The program has no folds.
    None,
    /// So many sets of lanes, as [`Call::sets`] says: element `i` of the part of line `r` goes to lane `i % LANES` of set
    /// `r % sets`.
    Lanes(&'a [*mut u8], usize),
    /// As many elements as the part of the line has: those of all lines, or those of one line after the other where there are
    /// sets of them, each with an accumulator for each fold.
    Elements(&'a [*mut u8]),
    /// An element for each line, in accumulators as [`Call::accumulators`] says: where [`Frame::joins`].
    Results(&'a [*mut u8]),
}

/// One participant's view of a running program.
pub(crate) struct Frame<'a> {
    pub(crate) program: &'a Program,
    binding: &'a Binding,
    table: &'a mut Vec<*mut u8>,
    line_marks: &'a mut Vec<*mut u8>,
    first_slot: usize,
    /// Compiled code and its scratch memory, instead of block operations. Repeated columns lie behind that.
    code: Option<(&'a Code, &'a Native, *mut u8)>,
}

impl<'a> Frame<'a> {
    /// Lays out registers, and fills constants over `elements` elements.
    pub(crate) fn new(
        program: &'a Program,
        binding: &'a Binding,
        primitives: Primitives,
        scratch: &'a mut FrameScratch,
        elements: usize,
    ) -> Frame<'a> {
        let FrameScratch { registers, table, line_marks } = scratch;
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
            return Frame { program, binding, table, line_marks, first_slot, code };
        }
        let memory = registers.reserve(first_slot * program.register_bytes);
        for place in 0..first_slot {
            table.push(memory.wrapping_add(place * program.register_bytes));
        }
        for (place, (value, (dtype, _))) in binding.constants.iter().zip(&program.constants).enumerate() {
            let elements = if program.splat[place] { elements } else { 1 };
            // SAFETY: the register holds a block of elements of this size.
            unsafe { primitives.fill(dtype.size())(elements, table[program.registers + place], value.as_ptr()) };
        }
        table.resize(program.places(), std::ptr::null_mut());
        line_marks.resize(program.line_ops.len(), std::ptr::null_mut());
        Frame { program, binding, table, line_marks, first_slot, code: None }
    }

    /// Elements from set to set, where rows of columns are folded into sets: those of a row, or as many as there are lanes where
    /// code finds the place of each row's set.
    pub(crate) fn set_elements(&self) -> usize {
        let geometry = &self.program.geometry;
        match self.code {
            Some(_) if !geometry.joins_rows() => LANES,
            _ => geometry.columns as usize,
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
    /// The steps must be inside the nest, and the accumulators have room.
    pub(crate) unsafe fn lines(
        &mut self,
        positions: &[*mut u8],
        lines: i64,
        first: i64,
        steps: i64,
        folding: Folding<'_>,
    ) {
        let geometry = &self.program.geometry;
        // SAFETY: promised by the caller.
        unsafe {
            match self.code {
                Some((code, native, scratch)) if geometry.steps.is_some() => {
                    self.seek(positions, 0, first);
                    self.repeat(native, scratch);
                    let rows = match geometry.joins_rows() {
                        true => (lines, steps * geometry.row),
                        false => (lines * steps, geometry.row),
                    };
                    self.call(code, native, scratch, rows, folding);
                }
                Some((code, native, scratch)) if geometry.flat => {
                    self.seek(positions, 0, first);
                    self.call(code, native, scratch, (lines, steps * geometry.row), folding);
                }
                Some((code, native, scratch)) if geometry.spans() => {
                    debug_assert!(lines == 1 || !matches!(folding, Folding::Lanes(..)), "rows are no lines");
                    for line in 0..lines {
                        self.seek(positions, line, first);
                        let folding = self.of_line(folding, line);
                        self.call(code, native, scratch, (steps, geometry.row), folding);
                    }
                }
                Some((code, native, scratch)) => {
                    self.seek(positions, 0, first);
                    self.call(code, native, scratch, (lines, steps), folding);
                }
                // Rows of one line follow each other along it, so a block may have several.
                None if geometry.steps.is_some()
                    || lines > 1 && 2 * steps <= geometry.step && geometry.rows_of_line() > 1 =>
                {
                    self.rows_in_blocks(positions, lines, first, steps, folding);
                }
                None => match folding {
                    Folding::Lanes(accumulators, sets) if steps <= geometry.step && self.folds_directly() => {
                        self.fold_rows(positions, lines, (first, steps), accumulators, sets);
                    }
                    _ => (0..lines).for_each(|line| self.line_in_blocks(positions, line, first, steps, folding)),
                },
            }
        }
    }

    /// Accumulators of one line of several.
    fn of_line<'b>(&self, folding: Folding<'b>, line: i64) -> Folding<'b> {
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
    /// The slots must be at a row.
    unsafe fn repeat(&mut self, native: &Native, scratch: *mut u8) {
        let columns = self.program.geometry.row as usize;
        let mut to = scratch.wrapping_add(SCRATCH_BYTES);
        for (&Repeated { slot, run, stride, size, bytes }, mark) in
            native.repeated.iter().zip(self.line_marks.iter_mut())
        {
            let position = &mut self.table[self.first_slot + slot];
            if *mark != *position {
                *mark = *position;
                // SAFETY: promised by the caller; there is room for as many rows as are joined.
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

    /// Is there nothing to do but to fold what lies in memory into lanes?
    fn folds_directly(&self) -> bool {
        let program = self.program;
        let in_memory = |fold: &Fold| fold.args.iter().all(|&arg| usize::from(arg) >= self.first_slot);
        program.line_ops.is_empty()
            && program.ops.is_empty()
            && program.stores.is_empty()
            && program.geometry.line_role() == Dim::Reduced
            && program.folds.iter().all(in_memory)
    }

    /// Rows of [`Frame::lines`] that are folded as they lie in memory: short ones take less time than it takes to begin a
    /// line in blocks.
    ///
    /// # Safety
    /// As [`Frame::lines`]; [`Frame::folds_directly`] must be true, and a row fit a block.
    unsafe fn fold_rows(
        &self,
        positions: &[*mut u8],
        rows: i64,
        (first, row): (i64, i64),
        accumulators: &[*mut u8],
        sets: usize,
    ) {
        let geometry = &self.program.geometry;
        for (fold, &lanes) in self.program.folds.iter().zip(accumulators) {
            let operand = |arg: Place| {
                let slot = usize::from(arg) - self.first_slot;
                let plan = &self.program.slots[slot];
                let start = (first as isize).wrapping_mul(plan.strides[geometry.line_dim]);
                (positions[slot].wrapping_offset(start), plan.plane)
            };
            let [a, b] = fold.args.map(operand);
            let at =
                |(start, plane): (*mut u8, isize), number: isize| start.wrapping_offset(number.wrapping_mul(plane));
            for number in 0..rows as isize {
                let lanes = lanes.wrapping_add(number as usize % sets * LANES * fold.size);
                // SAFETY: promised by the caller.
                unsafe {
                    let count = (row * geometry.row) as usize;
                    (fold.lanes)(count, lanes, at(a, number), at(b, number));
                }
            }
        }
    }

    /// A line of [`Frame::lines`] in block operations.
    ///
    /// # Safety
    /// As [`Frame::lines`].
    unsafe fn line_in_blocks(
        &mut self,
        positions: &[*mut u8],
        line: i64,
        first: i64,
        steps: i64,
        folding: Folding<'_>,
    ) {
        let geometry = &self.program.geometry;
        let mut at = 0;
        // SAFETY: promised by the caller.
        unsafe {
            self.start_line(positions, line, first);
            while at < steps {
                let block = geometry.step.min(steps - at);
                self.compute(block);
                self.fold(folding, line, ((at * geometry.row) as usize, 0), (block * geometry.row) as usize);
                self.store(block);
                self.advance(block);
                at += block;
            }
        }
    }

    /// Rows of [`Frame::lines`] that are parts of one line, in block operations on whole rows.
    ///
    /// # Safety
    /// As [`Frame::lines`]; a block must have room for a row.
    unsafe fn rows_in_blocks(&mut self, positions: &[*mut u8], rows: i64, first: i64, row: i64, folding: Folding<'_>) {
        let per_block = self.program.geometry.step / row;
        let elements = (row * self.program.geometry.row) as usize;
        let mut at = 0;
        // SAFETY: promised by the caller.
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

    /// Calls compiled code for `rows` rows of `count` elements, from where the slots are.
    ///
    /// # Safety
    /// As [`Frame::lines`].
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
            Folding::Elements(accumulators) if self.program.geometry.columns > 0 => (accumulators, LANES as i64),
            Folding::Elements(accumulators) | Folding::Results(accumulators) => (accumulators, 1),
        };
        let call = Call {
            rows,
            count,
            sets,
            slots: self.table[self.first_slot..].as_ptr(),
            inner: native.inner.as_ptr(),
            outer: native.outer.as_ptr(),
            ahead: native.ahead.as_ptr(),
            constants: self.binding.constants.as_ptr(),
            accumulators: accumulators.as_ptr(),
            functions: code.functions(),
            scratch,
        };
        // SAFETY: promised by the caller; the code was compiled for this program.
        unsafe { code.run(&call) };
    }

    /// Folds elements of a block, from the second of these offsets on. The first is how far into the part of the line
    /// that is.
    ///
    /// # Safety
    /// The block must have been computed.
    #[inline]
    unsafe fn fold(&self, folding: Folding<'_>, line: i64, (offset, from): (usize, usize), count: usize) {
        // SAFETY: promised by the caller.
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

    /// Sets the slots to a step of a line of a plane: `positions` are those of the first line's first step.
    #[inline]
    fn seek(&mut self, positions: &[*mut u8], line: i64, step: i64) {
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

    /// Goes to a step of a line, and makes the values that stay the same along it.
    ///
    /// # Safety
    /// The positions must be inside the buffers.
    #[inline]
    unsafe fn start_line(&mut self, positions: &[*mut u8], line: i64, step: i64) {
        let geometry = &self.program.geometry;
        self.seek(positions, line, 0);
        for (index, op) in self.program.line_ops.iter().enumerate() {
            let slot = match *op {
                Op::Fill { slot, .. } | Op::Load { slot, .. } | Op::Repeat { slot, .. } => slot,
                _ => continue,
            };
            let position = self.table[slot as usize];
            if self.line_marks[index] != position {
                self.line_marks[index] = position;
                // SAFETY: promised by the caller.
                unsafe { self.op(op, geometry.step as usize, geometry.block()) };
            }
        }
        if step > 0 {
            self.advance(step);
        }
    }

    /// Moves all slots along the line.
    #[inline]
    fn advance(&mut self, steps: i64) {
        let line_dim = self.program.geometry.line_dim;
        for (position, slot) in self.table[self.first_slot..].iter_mut().zip(&self.program.slots) {
            *position = position.wrapping_offset((steps as isize).wrapping_mul(slot.strides[line_dim]));
        }
    }

    /// Runs the operations that make values for a block of `steps` steps.
    ///
    /// # Safety
    /// The block must be inside the line.
    #[inline]
    unsafe fn compute(&mut self, steps: i64) {
        let count = (steps * self.program.geometry.row) as usize;
        for op in &self.program.ops {
            // SAFETY: promised by the caller.
            unsafe { self.op(op, steps as usize, count) };
        }
    }

    /// Runs the copies at the end of a block.
    ///
    /// # Safety
    /// As [`Frame::compute`].
    #[inline]
    unsafe fn store(&mut self, steps: i64) {
        let count = (steps * self.program.geometry.row) as usize;
        for op in &self.program.stores {
            // SAFETY: promised by the caller.
            unsafe { self.op(op, steps as usize, count) };
        }
    }

    /// Makes what was written visible to the other participants.
    pub(crate) fn finish(&self) {
        if self.program.streams {
            crate::prims::fence();
        }
    }
}
