//! Writes programs as the recorder does: operations on whole arrays or views, each into a new array, and a DISCARD
//! after the last use of arrays that the user does not keep.

use crate::data::{self, Values};
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::interp::Memory;
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View, base_flags};

/// An array of the program, or a view of one.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    base: u32,
    /// The view.
    pub view: View,
    /// The type of its elements.
    pub dtype: DType,
}

impl Seen {
    /// Another view of the same array.
    pub fn through(self, view: View) -> Seen {
        Seen { view, ..self }
    }

    /// Is this a view of the same array?
    pub fn is_part_of(self, other: Seen) -> bool {
        self.base == other.base
    }
}

/// An operand.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "an operand lives as long as the call that it is for")]
pub enum Given {
    /// An array of the operation's shape.
    Array(Seen),
    /// A number, converted to the operation's type.
    Number(f64),
}

/// A program under construction.
#[derive(Default)]
pub struct Writer {
    batch: Batch,
    memory: Memory,
    kept: Vec<bool>,
}

impl Writer {
    fn base(&mut self, dtype: DType, shape: &[i64], kept: bool) -> Seen {
        let view = View::contiguous(shape).expect("shapes of programs are small");
        let mut base = Base::new(self.batch.bases.len() as u64 + 1, dtype, view.len());
        base.row_hint = shape.get(1..).map_or(0, |rest| rest.iter().product());
        self.kept.push(kept);
        Seen { base: self.batch.push_base(base), view, dtype }
    }

    /// A kept array with random data.
    pub fn input(&mut self, rng: &mut Rng, dtype: DType, shape: &[i64], values: Values) -> Seen {
        let seen = self.base(dtype, shape, true);
        let bytes = data::fill(rng, dtype, seen.view.len(), values);
        self.memory.insert(u64::from(seen.base) + 1, bytes);
        seen
    }

    /// A new array with the result of an operation on arrays of one shape; `dtype` is that of the result.
    pub fn make(&mut self, opcode: Opcode, param: u16, dtype: DType, shape: &[i64], inputs: &[Given]) -> Seen {
        let out = self.base(dtype, shape, false);
        self.write(out, opcode, param, inputs);
        out
    }

    /// A new array without values.
    pub fn empty(&mut self, dtype: DType, shape: &[i64]) -> Seen {
        self.base(dtype, shape, false)
    }

    /// A new array of the numbers of an index view.
    pub fn range(&mut self, dtype: DType, numbers: &View) -> Seen {
        let out = self.base(dtype, numbers.shape(), false);
        let numbers = Operand::view(self.batch.intern_view(NO_BASE, numbers));
        let operands = [self.view(out), numbers];
        self.batch.push_instr(Instr::new(Opcode::Range, &operands));
        out
    }

    /// Writes the result of an operation into a view of an array.
    pub fn write(&mut self, out: Seen, opcode: Opcode, param: u16, inputs: &[Given]) {
        let of = inputs.iter().find_map(|input| match input {
            Given::Array(seen) if seen.dtype != DType::Bool || opcode != Opcode::Where => Some(seen.dtype),
            _ => None,
        });
        let mut operands = vec![self.view(out)];
        for input in inputs {
            operands.push(match *input {
                Given::Array(seen) => self.view(seen),
                Given::Number(number) => {
                    let number = Constant::from_value(number).cast(of.unwrap_or(out.dtype));
                    Operand::constant(self.batch.push_constant(number))
                }
            });
        }
        let mut instr = Instr::new(opcode, &operands);
        instr.param = param;
        self.batch.push_instr(instr);
    }

    fn view(&mut self, seen: Seen) -> Operand {
        Operand::view(self.batch.intern_view(seen.base, &seen.view))
    }

    /// Keeps an array for the user.
    pub fn keep(&mut self, seen: Seen) {
        self.kept[seen.base as usize] = true;
    }

    /// The program.
    pub fn finish(mut self) -> Program {
        let instrs = std::mem::take(&mut self.batch.instrs);
        let mut last = vec![None; self.kept.len()];
        for (index, instr) in instrs.iter().enumerate() {
            let views = instr.operands().iter().filter_map(|operand| operand.as_view());
            let bases = views.map(|view| self.batch.views[view as usize].base).filter(|&base| base != NO_BASE);
            bases.for_each(|base| last[base as usize] = Some(index));
        }
        for (index, instr) in instrs.into_iter().enumerate() {
            self.batch.push_instr(instr);
            let ends = |base: &usize| !self.kept[*base] && last[*base] == Some(index);
            for base in (0..self.kept.len()).filter(ends).collect::<Vec<usize>>() {
                let whole = View::contiguous(&[self.batch.bases[base].len]).unwrap_or_default();
                let operand = Operand::view(self.batch.intern_view(base as u32, &whole));
                self.batch.push_instr(Instr::new(Opcode::Discard, &[operand]));
            }
        }
        for (base, &kept) in self.batch.bases.iter_mut().zip(&self.kept) {
            let born = if self.memory.get(base.id).is_none() { base_flags::BORN } else { 0 };
            base.flags = born | if kept { base_flags::LIVE_OUT } else { base_flags::DIES };
        }
        Program { batch: self.batch, memory: self.memory }
    }
}
