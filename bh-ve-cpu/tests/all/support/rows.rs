//! Random chains of row folds: arrays of rows, results of a row or a part of it each, and what is made of both.

use super::chains::{Array, Builder, strides};
use bh_bytecode::random::Program;
use bh_bytecode::{DType, Instr, Opcode, Operand, View};

/// The result of a fold, and the axes that are folded: not the first one.
#[derive(Clone)]
struct Folded {
    array: Array,
    mask: u16,
}

/// A program under construction. Its arrays of rows are the builder's grids and temporaries.
struct Rows {
    builder: Builder,
    results: Vec<Folded>,
    /// Has it sums of floating-point numbers, which the oracle rounds in another order?
    rounds: bool,
}

impl Rows {
    fn integers(&self) -> bool {
        matches!(self.builder.dtype, DType::I64 | DType::I32)
    }

    fn shape(&self) -> Vec<i64> {
        self.builder.grids[0].shape.clone()
    }

    fn pick<T: Clone>(&mut self, arrays: &[T]) -> T {
        arrays[self.builder.dice.pick(0, arrays.len() as i64 - 1) as usize].clone()
    }

    /// An array as a whole, sometimes with its rows, or what is in them, backward.
    fn whole(&mut self) -> Operand {
        let arrays: Vec<Array> = self.builder.grids.iter().chain(&self.builder.temporaries).cloned().collect();
        // The array made last is used most.
        let last = arrays.last().filter(|_| self.builder.dice.chance(50)).cloned();
        let array = last.unwrap_or_else(|| self.pick(&arrays));
        let (mut start, mut steps) = (0, strides(&array.shape));
        if self.builder.dice.chance(15) {
            let axis = self.builder.dice.pick(0, steps.len() as i64 - 1) as usize;
            start = steps[axis] * (array.shape[axis] - 1);
            steps[axis] = -steps[axis];
        }
        self.view(&array, start, &array.shape.clone(), &steps)
    }

    fn view(&mut self, array: &Array, start: i64, shape: &[i64], strides: &[i64]) -> Operand {
        Operand::view(self.builder.batch.intern_view(array.base, &View::new(start, shape, strides).unwrap()))
    }

    /// A new array of this shape, and all of it.
    fn born(&mut self, shape: &[i64]) -> (Array, Operand) {
        let array = self.builder.born(shape);
        let view = self.view(&array, 0, shape, &strides(shape));
        (array, view)
    }

    /// A result for each row, repeated along it.
    fn spread(&mut self) -> Operand {
        let results = self.results.clone();
        let last = results.last().filter(|_| self.builder.dice.chance(60)).cloned();
        let Folded { array, mask } = last.unwrap_or_else(|| self.pick(&results));
        let mut own = strides(&array.shape).into_iter();
        let shape = self.shape();
        let stride = |axis: usize| if mask >> axis & 1 == 1 { 0 } else { own.next().unwrap() };
        let steps: Vec<i64> = (0..shape.len()).map(stride).collect();
        self.view(&array, 0, &shape, &steps)
    }

    fn opcode(&mut self) -> Opcode {
        let opcodes = [Opcode::Subtract, Opcode::Maximum, Opcode::Minimum, Opcode::Add, Opcode::Multiply];
        opcodes[self.builder.dice.pick(0, if self.integers() { 4 } else { 3 }) as usize]
    }

    fn compute(&mut self, out: Operand, left: Operand, right: Operand) {
        let opcode = self.opcode();
        let inputs = if self.builder.dice.chance(50) { [out, left, right] } else { [out, right, left] };
        self.builder.batch.push_instr(Instr::new(opcode, &inputs));
    }

    /// Folds rows; seldom other axes, whose results nobody uses but a kernel after the window.
    fn fold(&mut self) {
        let (input, shape) = (self.whole(), self.shape());
        let rank = shape.len();
        let all = (1i64 << rank) - 1;
        let mask = match self.builder.dice.pick(0, 99) {
            0..70 => 1 << (rank - 1),
            70..85 => self.builder.dice.pick(1, all / 2) as u16 * 2,
            _ => self.builder.dice.pick(1, all) as u16,
        };
        let kept: Vec<i64> = (0..rank).filter(|axis| mask >> axis & 1 == 0).map(|axis| shape[axis]).collect();
        let (array, out) = self.born(&kept);
        let sums = self.builder.dice.chance(50);
        let extreme = if self.builder.dice.chance(50) { Opcode::MaximumReduce } else { Opcode::MinimumReduce };
        let opcode = if sums { Opcode::AddReduce } else { extreme };
        self.builder.batch.push_instr(Instr { param: mask, ..Instr::new(opcode, &[out, input]) });
        self.rounds |= sums && !self.integers();
        if mask & 1 == 0 {
            self.results.push(Folded { array, mask });
            if sums {
                self.scale(out);
            }
        }
    }

    /// Keeps sums of sums small.
    fn scale(&mut self, out: Operand) {
        if !self.integers() {
            let constant = bh_bytecode::Constant {
                bits: [(1.0f64 / 128.0).to_bits(), 0],
                dtype: DType::F64 as u8,
                reserved: [0; 7],
            };
            let small = Operand::constant(self.builder.batch.push_constant(constant.cast(self.builder.dtype)));
            self.builder.batch.push_instr(Instr::new(Opcode::Multiply, &[out, out, small]));
        }
    }

    /// A result of results, as means and variances have.
    fn epilogue(&mut self) {
        let results = self.results.clone();
        let (left, right) = (self.pick(&results), self.pick(&results));
        let (shape, mask) = (left.array.shape.clone(), left.mask);
        let whole = strides(&shape);
        let (array, out) = self.born(&shape);
        let left = self.view(&left.array, 0, &shape, &whole);
        let right = if right.mask != mask || self.builder.dice.chance(50) {
            self.builder.constant()
        } else {
            self.view(&right.array, 0, &shape, &whole)
        };
        self.compute(out, left, right);
        self.results.push(Folded { array, mask });
    }

    /// A new array of rows, of another one and of results or a second one.
    fn rows(&mut self) {
        let left = self.whole();
        let right = match self.builder.dice.pick(0, 9) {
            0..7 => self.spread(),
            7 => self.builder.constant(),
            _ => self.whole(),
        };
        let (array, out) = self.born(&self.shape());
        self.compute(out, left, right);
        self.builder.temporaries.push(array);
    }

    /// Updates an array of rows in place.
    fn update(&mut self) {
        let grids = self.builder.grids.clone();
        let grid = self.pick(&grids);
        let (shape, whole) = (self.shape(), strides(&self.shape()));
        let out = self.view(&grid, 0, &shape, &whole);
        let other = self.spread();
        self.compute(out, out, other);
    }

    /// Computes with two neighbouring rows, beside each other.
    fn neighbours(&mut self) {
        let shape = self.shape();
        if shape[0] < 2 {
            return;
        }
        let arrays: Vec<Array> = self.builder.grids.iter().chain(&self.builder.temporaries).cloned().collect();
        let array = self.pick(&arrays);
        let (mut inner, whole) = (shape.clone(), strides(&shape));
        inner[0] -= 1;
        let (result, all) = self.born(&shape);
        let first = self.view(&array, 0, &shape, &whole);
        self.builder.batch.push_instr(Instr::new(Opcode::Copy, &[all, first]));
        let out = self.view(&result, whole[0], &inner, &whole);
        let (above, own) = (self.view(&array, 0, &inner, &whole), self.view(&array, whole[0], &inner, &whole));
        self.compute(out, above, own);
        self.builder.temporaries.push(result);
    }

    fn build(mut self, operations: usize) -> (Program, bool) {
        self.fold();
        for _ in 0..operations {
            if self.results.is_empty() {
                self.fold();
                continue;
            }
            match self.builder.dice.pick(0, 99) {
                0..35 => self.rows(),
                35..65 => self.fold(),
                65..75 => self.epilogue(),
                75..83 => self.update(),
                83..90 => self.neighbours(),
                _ => self.builder.drop_temporary(),
            }
        }
        let results = std::mem::take(&mut self.results).into_iter().map(|result| result.array);
        for array in std::mem::take(&mut self.builder.temporaries).into_iter().chain(results) {
            if self.builder.dice.chance(75) {
                self.builder.drop_base(&array);
            }
        }
        let Builder { batch, memory, .. } = self.builder;
        (Program { batch, memory }, self.rounds)
    }
}

/// A chain of kernels that fold rows of arrays of this shape, and whether the oracle may round it in another way.
pub fn row_chain(seed: u64, shape: &[i64], operations: usize) -> (Program, bool) {
    let builder = Builder::new(seed, shape, &[DType::F64, DType::F32, DType::I64, DType::I32]);
    Rows { builder, results: Vec::new(), rounds: false }.build(operations)
}
