//! Random chains of nonlinear operations in place and over slices: every value that a rule reads is overwritten sooner or later.

use super::programs::{Case, check};
use bh_bytecode::interp::Memory;
use bh_bytecode::random::Rng;
use bh_bytecode::view::overlap;
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, Overlap, View};

const ROWS: i64 = 4;
const COLUMNS: i64 = 5;
const BASES: u32 = 3;

/// Functions that stay within small numbers.
const ONE: &[Opcode] =
    &[Opcode::Sin, Opcode::Cos, Opcode::Tanh, Opcode::Arctan, Opcode::Erf, Opcode::Copy, Opcode::Arcsinh];
const TWO: &[Opcode] = &[Opcode::Add, Opcode::Subtract, Opcode::Multiply, Opcode::Arctan2, Opcode::Maximum];

struct Chain {
    rng: Rng,
    batch: Batch,
}

impl Chain {
    /// A view of two axes, of a shape with this many rows and columns.
    fn view(&mut self, rows: i64, columns: i64, repeats: bool) -> View {
        let start = self.rng.between(0, ROWS - rows) * COLUMNS + self.rng.between(0, COLUMNS - columns);
        let stride = match (repeats, self.rng.below(5)) {
            (true, 0) => [0, 1],
            (true, 1) => [COLUMNS, 0],
            _ => [COLUMNS, 1],
        };
        let view = View::new(start, &[rows, columns], &stride).expect("the slice is inside").canonical();
        if self.rng.chance(20) { view.reverse(1).expect("there are columns").canonical() } else { view }
    }

    fn push(&mut self, opcode: Opcode, operands: &[Operand]) {
        self.batch.push_instr(Instr::new(opcode, operands));
    }

    fn operation(&mut self) {
        let (rows, columns) = (self.rng.between(1, ROWS), self.rng.between(1, COLUMNS));
        let whole = self.rng.chance(30);
        let (rows, columns) = if whole { (ROWS, COLUMNS) } else { (rows, columns) };
        let (out, to) = (self.rng.below(BASES as usize) as u32, self.view(rows, columns, false));
        let choice = if self.rng.chance(50) { ONE } else { TWO };
        let opcode = *self.rng.pick(choice).expect("there are some");
        let mut inputs = vec![Operand::view(self.batch.push_view(out, &to))];
        for _ in 0..opcode.info().inputs {
            inputs.push(self.input(out, &to, rows, columns));
        }
        self.push(opcode, &inputs);
    }

    /// An input that does not overlap the output in another view, as a recorder has it.
    fn input(&mut self, out: u32, to: &View, rows: i64, columns: i64) -> Operand {
        if self.rng.chance(10) {
            return Operand::constant(self.batch.push_constant(Constant::from_value(0.7)));
        }
        if self.rng.chance(40) {
            return Operand::view(self.batch.push_view(out, to));
        }
        let (base, from) = (self.rng.below(BASES as usize) as u32, self.view(rows, columns, true));
        let from = if base == out && overlap(&from, to) == Overlap::Overlapping { *to } else { from };
        Operand::view(self.batch.push_view(base, &from))
    }
}

#[test]
fn adjoints_of_chains_in_place_pair_with_tangents() {
    let mut compared = 0;
    for seed in 0..4000 {
        let mut chain = Chain { rng: Rng::new(seed), batch: Batch::default() };
        for base in 0..BASES {
            chain.batch.push_base(Base::new(u64::from(base) + 1, DType::F64, ROWS * COLUMNS));
        }
        let length = 2 + chain.rng.below(20);
        (0..length).for_each(|_| chain.operation());
        let mut memory = Memory::new();
        for base in 0..BASES {
            memory.insert(u64::from(base) + 1, vec![0; (8 * ROWS * COLUMNS) as usize]);
        }
        compared += usize::from(check(seed, &Case { batch: chain.batch, memory }).is_ok());
    }
    println!("{compared} chains compared");
    assert!(compared > 3000, "only {compared} chains could be compared");
}
