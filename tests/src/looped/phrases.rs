//! Idioms of several statements for which filter, fuser or engines have rules.

use super::{Action, Computation, Looped, Operand, RANK, Seen, Shape, Window};
use bh_bytecode::random::Rng;
use bh_bytecode::{DType, Kind, Opcode, TypeSet};

/// A variable as it is.
fn operand(variable: usize) -> Operand {
    Operand::Variable(variable, Window { first: [1; RANK], moves: false, reversed: false, transposed: false })
}

/// All of a variable, or its interior.
fn seen(variable: usize, shape: Shape) -> Seen {
    Seen { variable, shape, window: Window { first: [1; RANK], moves: false, reversed: false, transposed: false } }
}

fn compute(opcode: Opcode, dtype: DType, operands: [Operand; 2]) -> Computation {
    Computation { opcode, param: 0, dtype, operands: [operands[0], operands[1], operands[1]] }
}

/// The variable becomes the result of an operation on whole variables.
fn make(into: usize, opcode: Opcode, dtype: DType, operands: [usize; 2]) -> Action {
    Action::Make(into, compute(opcode, dtype, operands.map(operand)))
}

impl Looped {
    /// Some related statements.
    pub(super) fn phrase(&mut self, rng: &mut Rng) -> Vec<Action> {
        let dtype = self.dtypes[rng.below(self.dtypes.len())];
        match rng.below(8) {
            0 if self.has_sums(dtype) => self.normalised(rng, dtype),
            1 if self.has_sums(dtype) && self.grid.len() == 3 => self.product(rng, dtype),
            2 => self.numbers(rng, dtype),
            3 => self.there_and_back(rng, dtype),
            4 if dtype.is_float() || (dtype.is_complex() && !self.exact) => self.dear_values(rng, dtype),
            5 if dtype.is_float() => self.power(rng, dtype),
            _ => self.stencil(rng, dtype),
        }
    }

    /// A whole power, which is a product at every planning level.
    fn power(&mut self, rng: &mut Rng, dtype: DType) -> Vec<Action> {
        let (of, into) = (self.variable(rng, Shape::Inside, dtype), self.variable(rng, Shape::Inside, dtype));
        let whole = if dtype == DType::F32 { 2.0 } else { rng.between(2, 3) as f64 };
        let exponent = Operand::Number(super::Number::Changes(whole, u64::MAX, whole));
        vec![Action::Make(into, compute(Opcode::Power, dtype, [operand(of), exponent]))]
    }

    /// A reduction along an axis, broadcast against its operand.
    fn normalised(&mut self, rng: &mut Rng, dtype: DType) -> Vec<Action> {
        let axis = rng.below(self.grid.len()) as u8;
        let inside = self.variable(rng, Shape::Inside, dtype);
        let flat = self.variable(rng, Shape::Flat(axis), dtype);
        let of = seen(inside, Shape::Inside);
        let fold = |opcode| Action::Fold { into: flat, opcode, of, axes: 1 << axis, all: false };
        let opcodes = self.folds(Kind::Reduction, dtype);
        let first = fold(opcodes[rng.below(opcodes.len())]);
        let mut all = vec![first, make(inside, Opcode::Multiply, dtype, [inside, flat])];
        if TypeSet::INEXACT.contains(dtype) {
            all.push(make(inside, Opcode::Exp, dtype, [inside; 2]));
            all.extend([fold(Opcode::AddReduce), make(inside, Opcode::Divide, dtype, [inside, flat])]);
        }
        all
    }

    /// A matrix product, with one factor as a line of matrices.
    fn product(&mut self, rng: &mut Rng, dtype: DType) -> Vec<Action> {
        let [left, right] = [2, 0].map(|axis| self.variable(rng, Shape::Flat(axis), dtype));
        let (inside, into) = (self.variable(rng, Shape::Inside, dtype), self.variable(rng, Shape::Flat(1), dtype));
        let of = seen(inside, Shape::Inside);
        let fold = Action::Fold { into, opcode: Opcode::AddReduce, of, axes: 2, all: false };
        vec![make(inside, Opcode::Multiply, dtype, [left, right]), fold, Action::Free(inside)]
    }

    /// Several constants in a row, on either side.
    fn numbers(&mut self, rng: &mut Rng, dtype: DType) -> Vec<Action> {
        let shape = if rng.chance(50) { Shape::Inside } else { Shape::Line };
        let mut last = self.variable(rng, shape, dtype);
        let mut all = Vec::new();
        for _ in 0..2 + rng.below(3) {
            let into = if rng.chance(50) { last } else { self.variable(rng, shape, dtype) };
            let opcodes: &[Opcode] = match dtype {
                DType::Bool => &[Opcode::LogicalAnd, Opcode::LogicalXor, Opcode::Add],
                _ => &[Opcode::Add, Opcode::Subtract, Opcode::Multiply, Opcode::Multiply, Opcode::Divide],
            };
            let mut operands = [operand(last), Operand::Number(self.number(rng))];
            if rng.chance(30) {
                operands.reverse();
            }
            all.push(Action::Make(into, compute(opcodes[rng.below(opcodes.len())], dtype, operands)));
            last = into;
        }
        all
    }

    /// A cast to another type and back, or a double negation.
    fn there_and_back(&mut self, rng: &mut Rng, dtype: DType) -> Vec<Action> {
        let of = self.variable(rng, Shape::Inside, dtype);
        let through = self.dtypes[rng.below(self.dtypes.len())];
        if through != dtype && !dtype.is_complex() && rng.chance(60) {
            let other = self.variable(rng, Shape::Inside, through);
            let there = make(other, Opcode::Copy, dtype, [of; 2]);
            let back = if through.is_complex() { Opcode::Real } else { Opcode::Copy };
            return vec![there, make(of, back, through, [other; 2])];
        }
        let opcode = match dtype {
            DType::Bool => Opcode::LogicalNot,
            _ if dtype.is_complex() => Opcode::Conj,
            _ if dtype.is_int() && rng.chance(50) => Opcode::Invert,
            _ => Opcode::Subtract,
        };
        let zero = if dtype.is_float() { -0.0 } else { 0.0 };
        let zero = Operand::Number(super::Number::Changes(zero, u64::MAX, zero));
        let between = self.variable(rng, Shape::Inside, dtype);
        let negate = |into, of| {
            let operands = if opcode == Opcode::Subtract { [zero, operand(of)] } else { [operand(of); 2] };
            Action::Make(into, compute(opcode, dtype, operands))
        };
        vec![negate(between, of), negate(of, between)]
    }

    /// An expensive function at several places of a grid, combined into a result.
    fn dear_values(&mut self, rng: &mut Rng, dtype: DType) -> Vec<Action> {
        let grid = self.variable(rng, Shape::Grid, dtype);
        let [first, second, third] = [0; 3].map(|_| {
            self.variables.push(Shape::Inside);
            self.dtypes.push(dtype);
            self.variables.len() - 1
        });
        let opcodes = &[Opcode::Sqrt, Opcode::Divide, Opcode::Exp, Opcode::Sin][..if self.exact { 2 } else { 4 }];
        let opcode = opcodes[rng.below(opcodes.len())];
        let divisor = Operand::Variable(self.variable(rng, Shape::Grid, dtype), self.window(rng));
        let mut all = Vec::new();
        for into in [first, second] {
            let window = Operand::Variable(grid, self.window(rng));
            all.push(Action::Make(into, compute(opcode, dtype, [window, divisor])));
        }
        let joins = [Opcode::Add, Opcode::Subtract, Opcode::Multiply];
        all.push(make(third, joins[rng.below(joins.len())], dtype, [first, second]));
        let quarter = Operand::Number(super::Number::Changes(0.25, u64::MAX, 0.25));
        let target = if rng.chance(70) { grid } else { self.variable(rng, Shape::Grid, dtype) };
        let write = compute(Opcode::Multiply, dtype, [operand(third), quarter]);
        all.push(Action::Write(seen(target, Shape::Inside), write));
        if rng.chance(70) {
            all.extend([first, second, third].map(Action::Free));
        }
        all
    }

    /// A stencil step into a second array, which then overwrites the first one.
    fn stencil(&mut self, rng: &mut Rng, dtype: DType) -> Vec<Action> {
        let (grid, second) = (self.variable(rng, Shape::Grid, dtype), self.variable(rng, Shape::Inside, dtype));
        let mut all = vec![make(second, Opcode::Add, dtype, [grid; 2])];
        for _ in 0..1 + rng.below(4) {
            let neighbours = Operand::Variable(grid, self.window(rng));
            all.push(Action::Make(second, compute(Opcode::Add, dtype, [operand(second), neighbours])));
        }
        let less = Operand::Number(self.number(rng));
        let opcode = if rng.chance(50) || dtype == DType::Bool { Opcode::Multiply } else { Opcode::Divide };
        all.push(Action::Write(seen(grid, Shape::Inside), compute(opcode, dtype, [operand(second), less])));
        all
    }
}
