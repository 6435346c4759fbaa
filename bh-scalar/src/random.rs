//! Programs for tests: a known one, and random ones with nested branches, blocks and terminating loops, from operations
//! with the same bits on all engines.

use crate::{Arg, Compute, Load, Program, Statement, Table};
use bh_bytecode::{Complex, Constant, DType, Opcode};

/// The number of steps of Collatz's rule from a number to 1, as text: a loop with a different length for each element.
pub const STEPS: &str = "program steps (i64) -> (i64) with (bool i64 bool) { block { loop { r2 = not_equal r0 i64:1; \
    if r2 { } else { leave 0 } r3 = remainder r0 i64:2; r4 = equal r3 i64:0; if r4 { r0 = floor_divide r0 i64:2; } \
    else { r0 = multiply r0 i64:3; r0 = add r0 i64:1; } r1 = add r1 i64:1; } } }";

/// The types of registers, in order.
pub const TYPES: [DType; 9] =
    [DType::F64, DType::I64, DType::Bool, DType::C128, DType::F32, DType::I32, DType::U8, DType::U64, DType::C64];
/// Registers of each type that statements use.
const EACH: usize = 3;

/// Operations on two operands of one type that give the same type.
const BINARY: [Opcode; 15] = [
    Opcode::Add,
    Opcode::Subtract,
    Opcode::Multiply,
    Opcode::Divide,
    Opcode::FloorDivide,
    Opcode::Remainder,
    Opcode::Maximum,
    Opcode::Minimum,
    Opcode::BitwiseAnd,
    Opcode::BitwiseOr,
    Opcode::BitwiseXor,
    Opcode::LeftShift,
    Opcode::RightShift,
    Opcode::LogicalAnd,
    Opcode::LogicalOr,
];
const TESTS: [Opcode; 6] =
    [Opcode::Less, Opcode::LessEqual, Opcode::Greater, Opcode::GreaterEqual, Opcode::Equal, Opcode::NotEqual];
const PARTS: [Opcode; 2] = [Opcode::Real, Opcode::Imag];
const UNARY: [Opcode; 10] = [
    Opcode::Conj,
    Opcode::Absolute,
    Opcode::Sign,
    Opcode::Sqrt,
    Opcode::Floor,
    Opcode::Ceil,
    Opcode::Trunc,
    Opcode::Rint,
    Opcode::Invert,
    Opcode::LogicalNot,
];

/// Numbers from a seed.
pub struct Numbers(u64);

impl Numbers {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below another one.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A constant of a type: small, or at the limits of its range.
    pub fn constant(&mut self, dtype: DType) -> Constant {
        let floats = [0.0, -0.0, 1.0, -1.5, 0.25, 3.0, 1e10, -7.25, f64::INFINITY, f64::NAN];
        let wholes = [0, 1, -1, 2, 3, 7, 10, -5, 100, i64::MAX, i64::MIN, 1 << 33];
        match dtype {
            DType::F32 | DType::F64 => Constant::from_value(self.pick(&floats)).cast(dtype),
            DType::C64 | DType::C128 => {
                let [re, im] = [0, 1].map(|_| self.pick(&floats));
                Constant::from_value(Complex::new(re, im)).cast(dtype)
            }
            _ => Constant::from_value(self.pick(&wholes)).cast(dtype),
        }
    }
}

/// A program under construction.
struct Maker {
    numbers: Numbers,
    registers: Vec<DType>,
    /// The number of registers for statements; loop counters follow them.
    own: usize,
    tables: Vec<Table>,
    blocks: u16,
}

/// A random program with these inputs. Engines must support operations on all of the types.
pub fn program(seed: u64, inputs: &[DType], outputs: &[DType], types: &[DType]) -> Program {
    reading(seed, inputs, outputs, types, Vec::new())
}

/// The least extent of the tables of [`reading`].
pub const EXTENT: i64 = 4;

/// Like [`program`], with loads from tables.
pub fn reading(seed: u64, inputs: &[DType], outputs: &[DType], types: &[DType], tables: Vec<Table>) -> Program {
    let mut registers = [inputs, outputs].concat();
    for dtype in TYPES.iter().filter(|dtype| types.contains(dtype)) {
        registers.extend([*dtype; EACH]);
    }
    let own = registers.len();
    let mut maker = Maker { numbers: Numbers::new(seed), registers, own, tables, blocks: 0 };
    let mut body = maker.list(4, 12);
    for (at, &dtype) in outputs.iter().enumerate() {
        if let Some(from) = maker.register(dtype) {
            let target = (inputs.len() + at) as u16;
            body.push(compute(Opcode::Copy, target, vec![Arg::Register(from)]));
        }
    }
    let name = format!("random_{seed}");
    Program {
        name,
        inputs: inputs.len(),
        outputs: outputs.len(),
        registers: maker.registers,
        tables: maker.tables,
        body,
    }
}

fn compute(opcode: Opcode, target: u16, args: Vec<Arg>) -> Statement {
    Statement::Compute(Compute { opcode, param: 0, target, args })
}

impl Maker {
    /// A register of a type.
    fn register(&mut self, dtype: DType) -> Option<u16> {
        let all: Vec<u16> = (0..self.own as u16).filter(|at| self.registers[usize::from(*at)] == dtype).collect();
        (!all.is_empty()).then(|| self.numbers.pick(&all))
    }

    fn arg(&mut self, dtype: DType) -> Arg {
        match self.register(dtype) {
            Some(register) if self.numbers.below(4) > 0 => Arg::Register(register),
            _ => Arg::Constant(self.numbers.constant(dtype)),
        }
    }

    fn list(&mut self, depth: u32, most: usize) -> Vec<Statement> {
        let count = 1 + self.numbers.below(most);
        let mut all: Vec<Statement> = (0..count).map(|_| self.statement(depth)).collect();
        if self.blocks > 0 && self.numbers.below(6) == 0 {
            all.push(Statement::Leave(self.numbers.below(usize::from(self.blocks)) as u16));
        }
        all
    }

    fn statement(&mut self, depth: u32) -> Statement {
        let condition = self.register(DType::Bool);
        match (depth, self.numbers.below(10), condition) {
            (1.., 0..2, Some(condition)) => {
                let then = self.list(depth - 1, 4);
                let orelse = if self.numbers.below(2) == 0 { self.list(depth - 1, 4) } else { Vec::new() };
                Statement::If(condition, then, orelse)
            }
            (1.., 2, _) => {
                self.blocks += 1;
                let body = self.list(depth - 1, 5);
                self.blocks -= 1;
                Statement::Block(body)
            }
            (1.., 3, _) => self.counted(depth),
            (1.., 4, _) if !self.tables.is_empty() => self.load(),
            _ => self.operation(),
        }
    }

    /// A load at a valid subscript, which may count from the end.
    fn load(&mut self) -> Statement {
        let at = self.numbers.below(self.tables.len());
        let Table { dtype, rank, .. } = self.tables[at];
        let Some(target) = self.register(dtype) else { return self.operation() };
        let (mut body, mut subscripts) = (Vec::new(), Vec::new());
        for _ in 0..rank {
            let place = self.registers.len() as u16;
            self.registers.push(DType::I64);
            let args = vec![self.arg(DType::I64), Arg::Constant(Constant::from_value(EXTENT))];
            body.push(compute(Opcode::Remainder, place, args));
            if self.numbers.below(3) == 0 {
                let args = vec![Arg::Register(place), Arg::Constant(Constant::from_value(EXTENT))];
                body.push(compute(Opcode::Subtract, place, args));
            }
            subscripts.push(Arg::Register(place));
        }
        body.push(Statement::Load(Load { target, table: at as u16, subscripts }));
        Statement::Block(body)
    }

    /// A loop with a fixed number of iterations.
    fn counted(&mut self, depth: u32) -> Statement {
        let (counter, goes_on) = (self.registers.len() as u16, self.registers.len() as u16 + 1);
        self.registers.extend([DType::I64, DType::Bool]);
        self.blocks += 1;
        let number = |value: i64| Arg::Constant(Constant::from_value(value));
        let turns = self.numbers.below(6) as i64;
        let mut body = vec![
            compute(Opcode::Less, goes_on, vec![Arg::Register(counter), number(turns)]),
            Statement::If(goes_on, Vec::new(), vec![Statement::Leave(0)]),
            compute(Opcode::Add, counter, vec![Arg::Register(counter), number(1)]),
        ];
        body.extend(self.list(depth - 1, 5));
        self.blocks -= 1;
        let start = compute(Opcode::Copy, counter, vec![number(0)]);
        Statement::Block(vec![start, Statement::Block(vec![Statement::Loop(body)])])
    }

    fn operation(&mut self) -> Statement {
        loop {
            let target = self.numbers.below(self.own) as u16;
            let dtype = self.registers[usize::from(target)];
            let (kind, other) = (self.numbers.below(8), self.numbers.pick(&TYPES));
            let (opcode, inputs) = match kind {
                0..4 => (self.numbers.pick(&BINARY), vec![dtype, dtype]),
                4 if dtype == DType::Bool => (self.numbers.pick(&TESTS), vec![other, other]),
                4 => (Opcode::Where, vec![DType::Bool, dtype, dtype]),
                5 if dtype.is_float() && self.numbers.below(2) == 0 => (self.numbers.pick(&PARTS), vec![other]),
                5 => (self.numbers.pick(&UNARY), vec![dtype]),
                6 => (Opcode::Copy, vec![other]),
                _ => (Opcode::Copy, vec![dtype]),
            };
            // Other functions of complex numbers differ in their last bits.
            let exact = !dtype.is_complex() || ![Opcode::Sign, Opcode::Sqrt].contains(&opcode);
            if exact
                && opcode.check_types(dtype, &inputs)
                && inputs.iter().all(|dtype| self.registers[..self.own].contains(dtype))
            {
                let args = inputs.iter().map(|&dtype| self.arg(dtype)).collect();
                return compute(opcode, target, args);
            }
        }
    }
}
