//! The operands of a program, block by block: where they lie if their elements are neighbours, else copies.

use crate::primitives::Primitives;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_methods::Strided;
use bh_scalar::Program;

/// The role of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Input,
    Output,
}

/// The operands, inputs first.
pub(super) struct Operands<'a> {
    all: Vec<&'a Strided<'a>>,
    inputs: usize,
    primitives: Primitives,
    /// Elements of each.
    pub(super) len: i64,
    /// Arrays that are read at subscripts; of each, its extents, then its strides in bytes.
    pub(super) tables: Vec<&'a Strided<'a>>,
    pub(super) numbers: Vec<i64>,
}

// SAFETY: participants write elements of their own blocks alone, and nobody else has the outputs.
unsafe impl Sync for Operands<'_> {}

impl<'a> Operands<'a> {
    /// Operands that fit a program: all have the outputs' shape, or are constants.
    pub(super) fn new(program: &Program, given: &'a [Strided<'a>], primitives: Primitives) -> Result<Operands<'a>> {
        let name = &program.name;
        let count = program.inputs + program.outputs;
        if given.len() != count + program.tables.len() {
            let text = format!("{name}: {} operands, not {}", given.len(), count + program.tables.len());
            return Err(Error::new(status::ARGUMENT, text));
        }
        let (given, tables) = given.split_at(count);
        let tables = tables_of(program, tables)?;
        let (outputs, inputs) = given.split_at(program.outputs);
        let all: Vec<&Strided<'_>> = inputs.iter().chain(outputs).collect();
        for (view, dtype) in all.iter().zip(&program.registers) {
            if view.dtype != *dtype {
                let text = format!("{name}: an operand of {} where {dtype} should be", view.dtype);
                return Err(Error::new(status::TYPE, text));
            }
        }
        let shape = outputs[0].shape;
        let is_constant = |at: usize| at < program.inputs && all[at].shape.is_empty();
        if (0..all.len()).any(|at| all[at].shape != shape && !is_constant(at)) {
            let shapes: Vec<String> = all.iter().map(|view| format!("{:?}", view.shape)).collect();
            return Err(Error::new(status::SHAPE, format!("{name}: operands of shapes {}", shapes.join(", "))));
        }
        let len = outputs[0].len();
        let strides = |table: &&Strided<'_>| table.stride.iter().map(|&stride| stride as i64).collect::<Vec<i64>>();
        let numbers = tables.iter().flat_map(|table| [table.shape.to_vec(), strides(table)].concat()).collect();
        Ok(Operands { all, inputs: program.inputs, primitives, len, tables, numbers })
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    pub(super) fn side(&self, operand: usize) -> Side {
        if operand < self.inputs { Side::Input } else { Side::Output }
    }

    /// The place of the elements from `first` on, if they are neighbours.
    fn direct(&self, operand: usize, first: i64) -> Option<*mut u8> {
        let view = self.all[operand];
        let size = view.dtype.size() as isize;
        let is_aligned = view.data().addr().is_multiple_of(view.dtype.real_part().size());
        (view.step() == Some(size) && is_aligned).then(|| view.data().wrapping_offset(first as isize * size))
    }

    /// Where `count` elements from `first` on are: in place, or in `room`, to which inputs are copied.
    ///
    /// # Safety
    /// The operand must have `count` elements from `first` on, and `room` be writable for as many.
    pub(super) unsafe fn block(&self, operand: usize, first: i64, count: usize, room: *mut u8) -> *mut u8 {
        // An operand with one element for all may look like a row of one.
        if self.all[operand].len() == self.len
            && let Some(data) = self.direct(operand, first)
        {
            return data;
        }
        if self.side(operand) == Side::Input {
            let size = self.all[operand].dtype.size();
            let gather = self.primitives.gather_strided(size);
            // SAFETY: the runs are inside of the operand.
            self.runs(operand, first, count, |at, stride, run, data| unsafe {
                gather(run, room.wrapping_add(at * size), data, stride);
            });
        }
        room
    }

    /// Puts the elements of an output's block where they belong.
    ///
    /// # Safety
    /// As [`Operands::block`], which gave `block`; nobody else uses the elements.
    pub(super) unsafe fn store(&self, operand: usize, first: i64, count: usize, block: *const u8) {
        if self.direct(operand, first).is_some() {
            return;
        }
        let size = self.all[operand].dtype.size();
        let scatter = self.primitives.scatter_strided(size);
        // SAFETY: the runs are inside of the operand, `block` has `count` elements, and nobody else uses those of the
        // runs, as `# Safety` asks.
        self.runs(operand, first, count, |at, stride, run, data| unsafe {
            scatter(run, data, block.wrapping_add(at * size), stride);
        });
    }

    /// Calls `each` for runs of elements at equal distances: their first number, distance in bytes, length, and place.
    fn runs(&self, operand: usize, first: i64, count: usize, mut each: impl FnMut(usize, isize, usize, *mut u8)) {
        let view = self.all[operand];
        if let Some(step) = view.step().filter(|_| view.len() == self.len) {
            return each(0, step, count, view.data().wrapping_offset(first as isize * step));
        }
        let (Some(&line), Some(&stride)) = (view.shape.last(), view.stride.last()) else {
            return each(0, 0, count, view.data());
        };
        let mut at = 0;
        while at < count {
            let number = first + at as i64;
            let run = (line - number % line).min((count - at) as i64) as usize;
            each(at, stride, run, view.at(number));
            at += run;
        }
    }
}

/// Tables of a program's types and dimensions.
fn tables_of<'a>(program: &Program, given: &'a [Strided<'a>]) -> Result<Vec<&'a Strided<'a>>> {
    for (view, table) in given.iter().zip(&program.tables) {
        let (dtype, rank) = (view.dtype, view.shape.len());
        if dtype != table.dtype || rank != table.rank {
            let text = format!(
                "{}: '{}' of {dtype} with {rank} dimensions where {} with {} should be",
                program.name, table.name, table.dtype, table.rank
            );
            return Err(Error::new(status::TYPE, text));
        }
    }
    Ok(given.iter().collect())
}
