//! Random folds of columns: few elements are kept inside of many folded ones, of what is made of views that lie in memory row
//! after row, with gaps, backward, transposed, or are the same for all rows or along each.

use super::chains::Dice;
use bh_bytecode::batch::{NO_BASE, base_flags};
use bh_bytecode::compare::may_differ;
use bh_bytecode::interp::Memory;
use bh_bytecode::opcode::Signature;
use bh_bytecode::random::Program;
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View};

/// A program under construction; all of its views have one shape, but for results.
struct Columns {
    dice: Dice,
    batch: Batch,
    memory: Memory,
    dtype: DType,
    shape: Vec<i64>,
}

/// Strides that fill memory in the order of these axes, outermost first; rows of the last but one may have gaps.
fn strides(shape: &[i64], order: &[usize], gap: i64) -> Vec<i64> {
    let (mut strides, mut pitch) = (vec![0; shape.len()], 1);
    for (at, &axis) in order.iter().rev().enumerate() {
        strides[axis] = pitch;
        pitch = pitch * shape[axis] + if at == 0 { gap } else { 0 };
    }
    strides
}

impl Columns {
    /// A dense array without data, as a whole.
    fn born(&mut self, shape: &[i64]) -> Operand {
        let id = self.batch.bases.len() as u64 + 1;
        let flags = base_flags::LIVE_OUT | base_flags::BORN;
        let base = self.batch.push_base(Base { flags, ..Base::new(id, self.dtype, shape.iter().product()) });
        let order: Vec<usize> = (0..shape.len()).collect();
        Operand::view(self.batch.intern_view(base, &View::new(0, shape, &strides(shape, &order, 0)).unwrap()))
    }

    /// A new array under a view of this layout, which begins somewhere and walks some axes backward.
    fn array(&mut self, shape: &[i64], strides: &[i64]) -> Operand {
        let (mut start, mut steps, mut last) = (self.dice.pick(0, 2), strides.to_vec(), 0);
        for (step, &extent) in steps.iter_mut().zip(shape) {
            let reach = (extent - 1).max(0) * *step;
            last += reach;
            if self.dice.chance(8) {
                start += reach;
                *step = -*step;
            }
        }
        let (len, id) = (last + 3, self.batch.bases.len() as u64 + 1);
        let base = self.batch.push_base(Base { flags: base_flags::LIVE_OUT, ..Base::new(id, self.dtype, len) });
        let bytes = (0..len).flat_map(|_| self.element()).collect();
        self.memory.insert(id, bytes);
        Operand::view(self.batch.intern_view(base, &View::new(start, shape, &steps).unwrap()))
    }

    fn element(&mut self) -> Vec<u8> {
        let number = self.dice.pick(-90, 90);
        // Products of thousands of them are ordinary numbers.
        let real = 1.0 + number as f64 * 1e-3;
        match self.dtype {
            DType::F64 => real.to_ne_bytes().to_vec(),
            DType::F32 => (real as f32).to_ne_bytes().to_vec(),
            DType::C128 => [real.to_ne_bytes(), (1.0 - real).to_ne_bytes()].concat(),
            DType::C64 => [(real as f32).to_ne_bytes(), (1.0 - real as f32).to_ne_bytes()].concat(),
            DType::Bool => vec![u8::from(number > -80)],
            dtype => number.to_ne_bytes()[..dtype.size()].to_vec(),
        }
    }

    /// Something to read.
    fn input(&mut self) -> Operand {
        let shape = self.shape.clone();
        let order: Vec<usize> = (0..shape.len()).collect();
        let mut dense = strides(&shape, &order, 0);
        match self.dice.pick(0, 99) {
            0..50 => {}
            50..60 => dense = strides(&shape, &order, self.dice.pick(1, 3)),
            60..67 => dense = strides(&shape, &order.iter().rev().copied().collect::<Vec<_>>(), 0),
            67..85 => {
                // The same along some axes.
                let axes = self.dice.pick(1, (1 << shape.len()) - 1);
                dense.iter_mut().enumerate().filter(|(axis, _)| axes >> axis & 1 == 1).for_each(|(_, step)| *step = 0);
            }
            85..90 if self.dtype != DType::Bool && !self.dtype.is_complex() && !shape.contains(&0) => {
                let out = self.born(&shape);
                let axes = self.dice.pick(0, (1 << shape.len()) - 1);
                let steps: Vec<i64> = dense.iter().enumerate().map(|(axis, step)| step * (axes >> axis & 1)).collect();
                let numbers = self.batch.intern_view(NO_BASE, &View::new(0, &shape, &steps).unwrap());
                self.batch.push_instr(Instr::new(Opcode::Range, &[out, Operand::view(numbers)]));
                return out;
            }
            90..95 => {
                let bits = [self.dice.pick(1, 3) as u64, 0];
                let constant = Constant { bits, dtype: DType::I64 as u8, reserved: [0; 7] };
                return Operand::constant(self.batch.push_constant(constant.cast(self.dtype)));
            }
            _ => dense.iter_mut().for_each(|step| *step *= 2),
        }
        self.array(&shape, &dense)
    }

    fn opcode(&mut self, opcodes: &[Opcode]) -> Opcode {
        let fits: Vec<Opcode> =
            opcodes.iter().copied().filter(|opcode| opcode.info().types.iter().any(|it| it == self.dtype)).collect();
        fits[self.dice.pick(0, fits.len() as i64 - 1) as usize]
    }

    fn build(mut self, folded: u16) -> Program {
        let dense = strides(&self.shape, &(0..self.shape.len()).collect::<Vec<_>>(), 0);
        let shape = self.shape.clone();
        let kept: Vec<i64> = (0..shape.len()).filter(|axis| folded >> axis & 1 == 0).map(|axis| shape[axis]).collect();
        let folds: Vec<Opcode> =
            Opcode::ALL.iter().copied().filter(|opcode| opcode.info().signature == Signature::Reduce).collect();
        let first = self.input();
        // A constant has no shape to be folded.
        let mut values = if first.as_view().is_some() { vec![first] } else { vec![self.array(&shape, &dense)] };
        let elements: i64 = shape.iter().product();
        for _ in 0..self.dice.pick(0, 3.min(elements)) {
            let (left, right) = (values[self.dice.pick(0, values.len() as i64 - 1) as usize], self.input());
            let opcode = self.opcode(&[
                Opcode::Add,
                Opcode::Subtract,
                Opcode::Minimum,
                Opcode::Maximum,
                Opcode::LogicalAnd,
                Opcode::LogicalOr,
            ]);
            let out = self.born(&shape);
            self.batch.push_instr(Instr::new(opcode, &[out, left, right]));
            values.push(out);
        }
        for _ in 0..self.dice.pick(1, 2) {
            let value = values[self.dice.pick(0, values.len() as i64 - 1) as usize];
            let opcode = self.opcode(&folds);
            // Sums are no numbers near 1.
            let opcode =
                if opcode == Opcode::MultiplyReduce && value != values[0] { Opcode::AddReduce } else { opcode };
            let out = if self.dice.chance(30) && !may_differ(opcode, self.dtype) {
                let order: Vec<usize> = (0..kept.len()).collect();
                let apart: Vec<i64> = strides(&kept, &order, 0).iter().map(|step| step * 3).collect();
                self.array(&kept, &apart)
            } else {
                self.born(&kept)
            };
            self.batch.push_instr(Instr { param: folded, ..Instr::new(opcode, &[out, value]) });
        }
        Program { batch: self.batch, memory: self.memory }
    }
}

/// A program with folds of columns.
pub fn column_folds(seed: u64) -> Program {
    let mut dice = Dice(seed ^ 0xC01);
    let dtypes = [
        DType::F64,
        DType::F32,
        DType::F64,
        DType::F32,
        DType::I64,
        DType::I32,
        DType::U8,
        DType::I16,
        DType::C128,
        DType::C64,
        DType::Bool,
    ];
    let dtype = dtypes[dice.pick(0, dtypes.len() as i64 - 1) as usize];
    let columns = dice.pick(1, 40);
    let rows = match dice.pick(0, 9) {
        0 => dice.pick(0, 5),
        1..4 => dice.pick(100, 200),
        4..8 => dice.pick(129, 1000),
        _ => dice.pick(1000, 4000),
    };
    let (shape, folded) = match dice.pick(0, 9) {
        0..6 => (vec![rows, columns], 0b1),
        6 => (vec![rows, dice.pick(1, 6), dice.pick(1, 6)], 0b1),
        7 => (vec![dice.pick(1, 5), rows, columns], 0b10),
        8 => (vec![dice.pick(1, 5), rows, columns], 0b11),
        _ => (vec![dice.pick(1, 50), dice.pick(1, 40), columns.min(12)], 0b11),
    };
    Columns { dice, batch: Batch::default(), memory: Memory::new(), dtype, shape }.build(folded)
}
