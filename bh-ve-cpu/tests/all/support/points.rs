//! Random distances: coordinates less those of one point for each row, their squares and products, and folds of these.

use super::chains::Dice;
use bh_bytecode::batch::base_flags;
use bh_bytecode::interp::Memory;
use bh_bytecode::random::Program;
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View};

/// A program under construction.
struct Points {
    dice: Dice,
    batch: Batch,
    memory: Memory,
    dtype: DType,
    /// Rows, and points of each.
    shape: [i64; 2],
    /// Operands that end with the program.
    temporaries: Vec<Operand>,
}

impl Points {
    /// An array with numbers, under a view of all rows with these strides.
    fn array(&mut self, strides: [i64; 2]) -> Operand {
        let start = self.dice.pick(0, 2);
        let len = start + 1 + (0..2).map(|axis| (self.shape[axis] - 1) * strides[axis]).sum::<i64>();
        let id = self.batch.bases.len() as u64 + 1;
        let base = self.batch.push_base(Base { flags: base_flags::LIVE_OUT, ..Base::new(id, self.dtype, len) });
        let numbers = (0..len).map(|_| self.dice.pick(-500, 500) as f64 * 0.037);
        let bytes = match self.dtype {
            DType::F64 => numbers.flat_map(f64::to_ne_bytes).collect(),
            DType::F32 => numbers.flat_map(|number| (number as f32).to_ne_bytes()).collect(),
            _ => numbers.flat_map(|number| (number as i64).to_ne_bytes()).collect(),
        };
        self.memory.insert(id, bytes);
        Operand::view(self.batch.intern_view(base, &View::new(start, &self.shape, &strides).unwrap()))
    }

    /// A new array.
    fn born(&mut self, shape: &[i64]) -> Operand {
        let id = self.batch.bases.len() as u64 + 1;
        let flags = base_flags::BORN | base_flags::LIVE_OUT;
        let base = self.batch.push_base(Base { flags, ..Base::new(id, self.dtype, shape.iter().product()) });
        let mut strides = vec![1; shape.len()];
        (1..shape.len()).rev().for_each(|axis| strides[axis - 1] = strides[axis] * shape[axis]);
        Operand::view(self.batch.intern_view(base, &View::new(0, shape, &strides).unwrap()))
    }

    /// The coordinates of all points, the same for all rows or not.
    fn coordinates(&mut self) -> Operand {
        let columns = self.shape[1];
        let strides = match self.dice.pick(0, 9) {
            0..6 => [0, 1],
            6 => [0, 2],
            7 => [1, 0],
            _ => [columns, 1],
        };
        self.array(strides)
    }

    /// One number for each row, or for all of them.
    fn single(&mut self) -> Operand {
        if self.dice.chance(75) {
            return self.array([1, 0]);
        }
        let bits = [self.dice.pick(-3, 3) as u64, 0];
        let constant = Constant { bits, dtype: DType::I64 as u8, reserved: [0; 7] };
        Operand::constant(self.batch.push_constant(constant.cast(self.dtype)))
    }

    fn compute(&mut self, opcode: Opcode, inputs: [Operand; 2]) -> Operand {
        let (shape, [a, b]) = (self.shape, inputs);
        let out = self.born(&shape);
        if self.dice.chance(96) {
            self.temporaries.push(out);
        }
        let instr = match opcode {
            Opcode::Powi => Instr { param: 2, ..Instr::new(opcode, &[out, a]) },
            Opcode::Sqrt => Instr::new(opcode, &[out, a]),
            _ => Instr::new(opcode, &if self.dice.chance(50) { [out, a, b] } else { [out, b, a] }),
        };
        self.batch.push_instr(instr);
        out
    }

    fn square(&mut self, of: Operand) -> Operand {
        let opcode = if self.dice.chance(50) { Opcode::Powi } else { Opcode::Multiply };
        self.compute(opcode, [of; 2])
    }

    fn pick(&mut self, operands: &[Operand]) -> Operand {
        operands[self.dice.pick(0, operands.len() as i64 - 1) as usize]
    }

    fn build(mut self) -> Program {
        let count = self.dice.pick(1, 4);
        let differences: Vec<Operand> = (0..count)
            .map(|_| {
                let block = self.coordinates();
                let other = if self.dice.chance(85) { self.single() } else { self.coordinates() };
                self.compute(Opcode::Subtract, [block, other])
            })
            .collect();
        let mut values = differences.clone();
        for _ in 0..self.dice.pick(0, 2) {
            let start = self.dice.chance(25).then(|| self.coordinates());
            let mut sum = start;
            for &difference in &differences {
                let square = if self.dice.chance(90) {
                    self.square(difference)
                } else {
                    self.compute(Opcode::Multiply, [difference, values[0]])
                };
                sum = Some(sum.map_or(square, |sum| self.compute(Opcode::Add, [sum, square])));
            }
            let mut sum = sum.expect("there are differences");
            if self.dice.chance(40) {
                let single = self.single();
                sum = self.compute(Opcode::Add, [sum, single]);
            }
            if self.dtype != DType::I64 && self.dice.chance(70) {
                let root = self.compute(Opcode::Sqrt, [sum; 2]);
                sum = if self.dice.chance(60) { self.compute(Opcode::Multiply, [sum, root]) } else { root };
                if self.dice.chance(30) {
                    let single = self.single();
                    sum = self.compute(Opcode::Add, [sum, single]);
                }
                if self.dice.chance(70) {
                    let dividend = if self.dice.chance(50) { self.coordinates() } else { self.single() };
                    sum = self.compute(Opcode::Divide, [dividend, sum]);
                }
            }
            values.push(sum);
        }
        for _ in 0..self.dice.pick(1, 4) {
            let difference = self.pick(&differences);
            // The value made last is used most.
            let last = values.last().copied().filter(|_| self.dice.chance(60));
            let value = last.unwrap_or_else(|| self.pick(&values));
            let folded = match self.dice.pick(0, 9) {
                0 => value,
                1..4 => self.square(difference),
                _ => self.compute(Opcode::Multiply, [difference, value]),
            };
            let mask = [2, 2, 2, 2, 1, 3][self.dice.pick(0, 5) as usize];
            let opcodes = [Opcode::AddReduce, Opcode::AddReduce, Opcode::MaximumReduce, Opcode::MinimumReduce];
            let opcode = opcodes[self.dice.pick(0, 3) as usize];
            let kept: Vec<i64> = (0..2).filter(|axis| mask >> axis & 1 == 0).map(|axis| self.shape[axis]).collect();
            let out = self.born(&kept);
            self.batch.push_instr(Instr { param: mask, ..Instr::new(opcode, &[out, folded]) });
        }
        for temporary in self.temporaries {
            let view = self.batch.views[temporary.as_view().expect("a new array") as usize];
            let base = &mut self.batch.bases[view.base as usize];
            base.flags = base.flags & !base_flags::LIVE_OUT | base_flags::DIES;
            self.batch.push_instr(Instr::new(Opcode::Discard, &[temporary]));
        }
        Program { batch: self.batch, memory: self.memory }
    }
}

/// A program with distances of points.
pub fn distances(seed: u64) -> Program {
    let mut dice = Dice(seed ^ 0xD157);
    let dtype = [DType::F64, DType::F64, DType::F32, DType::I64][dice.pick(0, 3) as usize];
    let columns = match dice.pick(0, 9) {
        0..3 => dice.pick(1, 40),
        3..9 => dice.pick(40, 700),
        _ => dice.pick(700, 9000),
    };
    let shape = [dice.pick(1, 12), columns];
    Points { dice, batch: Batch::default(), memory: Memory::new(), dtype, shape, temporaries: Vec::new() }.build()
}
