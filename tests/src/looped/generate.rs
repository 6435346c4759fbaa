//! The program of a seed: its arrays, and single statements.

use super::{
    Action, Computation, First, Looped, Number, Operand, RANK, Seen, Shape, Statement, Window, is_sum, result_type,
};
use bh_bytecode::compare::{Tolerance, tolerance};
use bh_bytecode::opcode::Signature;
use bh_bytecode::random::Rng;
use bh_bytecode::{DType, Kind, Opcode, TypeSet};

/// The most common operations.
const COMMON: &[Opcode] = &[
    Opcode::Add,
    Opcode::Add,
    Opcode::Subtract,
    Opcode::Multiply,
    Opcode::Multiply,
    Opcode::Divide,
    Opcode::Minimum,
    Opcode::Maximum,
    Opcode::Copy,
    Opcode::Sqrt,
    Opcode::Exp,
    Opcode::Sin,
    Opcode::Absolute,
    Opcode::Fmod,
    Opcode::Where,
    Opcode::Greater,
    Opcode::Equal,
];
const NUMBERS: &[f64] = &[0.0, 1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 0.25, 1.5, 0.1];
/// Rarer numbers.
const ODD: &[f64] = &[-0.0, 7.0, -3.0, 10.0, 16.0, 100.0, 255.0, 1e9, -1e-3, f64::INFINITY, f64::NAN];
/// Types that are used together; half of the programs use one.
const TYPES: &[&[DType]] = &[
    &[DType::F32],
    &[DType::I64],
    &[DType::F64, DType::F32],
    &[DType::F64, DType::I64],
    &[DType::F64, DType::C128],
    &[DType::F32, DType::C64],
    &[DType::C128],
    &[DType::I8, DType::U8, DType::Bool],
    &[DType::I16, DType::U16, DType::F32],
    &[DType::I32, DType::U32, DType::U64],
    &[DType::F64, DType::F32, DType::I64, DType::I32, DType::U8],
    &[DType::F64, DType::F32, DType::I8],
    &DType::ALL,
];

/// The program of a seed.
pub fn looped(seed: u64) -> Looped {
    let mut rng = Rng::new(seed);
    let mut grid = grid(&mut rng);
    let backwards = rng.chance(20) && grid.iter().product::<i64>() < 20_000 && grid[grid.len() - 1] < 200;
    if backwards {
        grid[0] = grid[grid.len() - 1];
    }
    let size: i64 = grid.iter().product();
    let rank = grid.len();
    let mut variables = vec![Shape::Grid, Shape::Inside];
    for _ in 0..2 + rng.below(6) {
        variables.push(match rng.below(14) {
            0..3 => Shape::Grid,
            3..6 => Shape::Inside,
            6 => [Shape::Half(rng.below(rank) as u8), Shape::Diagonal][rng.below(2)],
            7..9 => Shape::Line,
            9..11 => Shape::Flat(rng.below(rank) as u8),
            11 => Shape::Long,
            _ => Shape::Point,
        });
    }
    let types = if rng.chance(40) { &[DType::F64] } else { TYPES[rng.below(TYPES.len())] };
    let dtypes = variables.iter().map(|_| types[rng.below(types.len())]).collect();
    let most = if size > 20_000 { 5 } else { 12 };
    let mut rounds = 2 + rng.below(most) as u64;
    if size < 2_000 && rng.chance(5) {
        rounds = 20 + rng.below(40) as u64;
    }
    let first =
        *rng.pick(&[First::Small, First::Small, First::Random, First::Random, First::Wild]).unwrap_or(&First::Small);
    let exact = rng.chance(30);
    let mut program = Looped { grid, backwards, exact, first, variables, dtypes, body: Vec::new(), rounds };
    // Some programs are mostly arithmetic without reads in between.
    let (phrases, silent) = (if rng.chance(20) { 40 } else { 8 }, rng.chance(50));
    let statements = if size < 5_000 && rng.chance(4) { 60 } else { 14 };
    for _ in 0..1 + rng.below(statements) {
        let actions = if rng.chance(phrases) { program.phrase(&mut rng) } else { vec![program.action(&mut rng)] };
        if silent && actions[0].is_seen() && rng.chance(90) {
            continue;
        }
        let every = if rng.chance(15) { 2 + rng.below(3) as u64 } else { 1 };
        program.body.extend(actions.into_iter().map(|action| Statement { every, action }));
    }
    program
}

/// The extents of a grid: mostly small, some with long lines, some with very short ones, some for several threads, and
/// some without an interior.
fn grid(rng: &mut Rng) -> Vec<i64> {
    let rank = if rng.chance(10) { 4 + rng.below(2) } else { 1 + rng.below(3) };
    let kind = rng.below(100);
    let most = if kind < 2 { [150_000, 400, 50, 18, 10] } else { [200, 40, 12, 8, 6] }[rank - 1];
    let mut grid: Vec<i64> = (0..rank).map(|_| rng.between(3, most)).collect();
    let last = rank - 1;
    match kind {
        2..12 => grid[last] = rng.between(3, most.max(300)),
        12..16 => {
            grid.fill_with(|| rng.between(3, 7));
            grid[last] = rng.between(1_000, 7_000);
        }
        16..24 => {
            grid[last] = rng.between(3, 8);
            grid[0] = rng.between(3, [8, 900, 100, 30, 10][last]);
        }
        24..26 => grid[rng.below(rank)] = 2,
        _ => {}
    }
    grid
}

impl Looped {
    pub(super) fn window(&self, rng: &mut Rng) -> Window {
        let mut first = [1; RANK];
        if rng.chance(60) {
            first = std::array::from_fn(|_| rng.below(3) as u8);
        }
        let [reversed, transposed] = [25, 25].map(|percent| self.backwards && rng.chance(percent));
        Window { first, moves: rng.chance(8), reversed, transposed }
    }

    /// A variable whose number passes a test; the first one if none does.
    fn pick(&self, rng: &mut Rng, fits: impl Fn(usize) -> bool) -> usize {
        let known: Vec<usize> = (0..self.variables.len()).filter(|&at| fits(at)).collect();
        rng.pick(&known).copied().unwrap_or(0)
    }

    /// A variable of this shape and type, created if there is none.
    pub(super) fn variable(&mut self, rng: &mut Rng, shape: Shape, dtype: DType) -> usize {
        let fits = |at: usize| self.variables[at] == shape && self.dtypes[at] == dtype;
        let known = self.pick(rng, fits);
        if fits(known) {
            return known;
        }
        self.variables.push(shape);
        self.dtypes.push(dtype);
        self.variables.len() - 1
    }

    pub(super) fn number(&self, rng: &mut Rng) -> Number {
        if rng.chance(10) {
            return if rng.chance(70) { Number::Round } else { Number::Last };
        }
        let mut one = || if rng.chance(12) { ODD[rng.below(ODD.len())] } else { NUMBERS[rng.below(NUMBERS.len())] };
        let (first, later) = (one(), one());
        let after = if rng.chance(25) { 1 + rng.below(6) as u64 } else { u64::MAX };
        Number::Changes(first, after, later)
    }

    /// An operand readable in a shape.
    fn operand(&self, rng: &mut Rng, shape: Shape) -> Operand {
        if rng.chance(25) {
            return Operand::Number(self.number(rng));
        }
        let fits = |at: usize| self.is_readable(self.variables[at], shape);
        // Users often continue with the last result.
        let last = self.body.iter().rev().filter_map(|statement| statement.action.target()).find(|&at| fits(at));
        let variable = if rng.chance(40) { last } else { None }.unwrap_or_else(|| self.pick(rng, fits));
        if fits(variable) { Operand::Variable(variable, self.window(rng)) } else { Operand::Number(self.number(rng)) }
    }

    /// A view of a variable, or all of it.
    fn seen(&self, rng: &mut Rng, variable: usize) -> Seen {
        let axis = rng.below(self.grid.len()) as u8;
        let rest = Shape::Rest(1 + rng.below((1 << self.grid.len()) - 1) as u8);
        let half = Shape::Half(axis);
        let shapes = [Shape::Inside, half, Shape::Diagonal, Shape::Line, Shape::Flat(axis), rest, Shape::Long];
        let own = self.variables[variable];
        let fits = |shape: &Shape| self.is_window(own, *shape);
        let windows: Vec<Shape> = shapes.into_iter().filter(fits).collect();
        let inner = if own == Shape::Grid { 85 } else { 40 };
        let shape = if rng.chance(inner) { rng.pick(&windows).copied().unwrap_or(own) } else { own };
        let shape = if own == Shape::Grid && shape != own && rng.chance(70) { Shape::Inside } else { shape };
        Seen { variable, shape, window: self.window(rng) }
    }

    /// An operation on operands of a shape, whose result has a type or is cast to it.
    fn computation(&self, rng: &mut Rng, dtype: DType, shape: Shape) -> Computation {
        loop {
            let opcodes = if rng.chance(75) { COMMON } else { Opcode::ALL };
            let opcode = opcodes[rng.below(opcodes.len())];
            let info = opcode.info();
            let own = info.signature != Signature::Test && info.types.contains(dtype) && rng.chance(95);
            let operands = if own { dtype } else { self.dtypes[rng.below(self.dtypes.len())] };
            // Float powers with small constant exponents are computed as products, which rounds differently.
            let differs = opcode == Opcode::Power && TypeSet::INEXACT.contains(operands);
            let loses = operands.is_complex() && !dtype.is_complex() && info.signature == Signature::Cast;
            let rounds = self.exact && tolerance(opcode, operands) != Tolerance::Exact;
            if info.kind != Kind::Elementwise || !info.types.contains(operands) || differs || loses || rounds {
                continue;
            }
            debug_assert!(result_type(opcode, operands, dtype) != dtype || info.types.contains(operands));
            let param = if opcode == Opcode::Powi { rng.between(2, 5) as u16 } else { 0 };
            let all = [0; 3].map(|_| self.operand(rng, shape));
            return Computation { opcode, param, dtype: operands, operands: all };
        }
    }

    /// A reduction into any suitable variable.
    fn fold(&self, rng: &mut Rng, into: usize) -> Action {
        let rank = self.grid.len();
        let wanted = self.variables[into];
        let whole = (1u16 << rank) - 1;
        let axes = match wanted {
            Shape::Flat(axis) => 1 << axis,
            Shape::Line => whole >> 1,
            _ => whole,
        };
        let takes = |shape: Shape| match wanted {
            Shape::Point => shape != Shape::Point,
            Shape::Line if rank == 1 => false,
            Shape::Flat(_) | Shape::Line => matches!(shape, Shape::Inside | Shape::Grid),
            _ => false,
        };
        // Broadcast operands may be reduced, too.
        let repeated =
            |at: usize| self.variables[at] != Shape::Inside && self.is_readable(self.variables[at], Shape::Inside);
        let of = self.pick(rng, repeated);
        if wanted != Shape::Line && repeated(of) && rng.chance(12) {
            let opcodes = self.folds(Kind::Reduction, self.dtypes[of]);
            let of = Seen { variable: of, shape: Shape::Inside, window: self.window(rng) };
            let (Some(&opcode), true) = (rng.pick(&opcodes), matches!(wanted, Shape::Flat(_) | Shape::Point)) else {
                return Action::Read(into);
            };
            return Action::Fold { into, opcode, of, axes, all: false };
        }
        let of = self.pick(rng, |at| takes(self.variables[at]));
        let own = self.variables[of];
        let opcodes = self.folds(Kind::Reduction, self.dtypes[of]);
        let (true, false) = (takes(own), opcodes.is_empty()) else { return Action::Read(into) };
        let rest = match wanted {
            Shape::Flat(axis) => Shape::Rest(1 << axis),
            Shape::Line => Shape::Rest(rng.below(1 << (rank - 1)) as u8),
            _ => Shape::Rest(rng.below(1 << rank) as u8),
        };
        let shape = match (own, wanted) {
            (Shape::Grid | Shape::Inside, _) if rng.chance(20) => rest,
            (Shape::Grid, Shape::Point) if rng.chance(50) => own,
            (Shape::Grid, _) => Shape::Inside,
            _ => own,
        };
        let of = Seen { variable: of, shape, window: self.window(rng) };
        let rank = self.rank(shape);
        let all = wanted == Shape::Point && rank > 1 && rng.chance(40);
        let axes = if all { 1 << rng.below(rank) } else { axes & ((1 << rank) - 1) };
        Action::Fold { into, opcode: opcodes[rng.below(opcodes.len())], of, axes, all }
    }

    /// Reductions or cumulative sums of a type.
    pub(super) fn folds(&self, kind: Kind, dtype: DType) -> Vec<Opcode> {
        let fits = |opcode: &Opcode| {
            let info = opcode.info();
            info.kind == kind
                && info.inputs == 1
                && info.types.contains(dtype)
                && (self.has_sums(dtype) || !is_sum(*opcode))
        };
        Opcode::ALL.iter().copied().filter(fits).collect()
    }

    fn action(&self, rng: &mut Rng) -> Action {
        let last = self.body.last().and_then(|statement| statement.action.target());
        let any = self.pick(rng, |at| Some(at) != last);
        let (shape, dtype) = (self.variables[any], self.dtypes[any]);
        match rng.below(100) {
            0..29 => Action::Make(any, self.computation(rng, dtype, shape)),
            29..34 => {
                let fits = |at: usize| self.is_window(self.variables[at], shape) && self.dtypes[at] == dtype;
                let of = Seen { variable: self.pick(rng, fits), shape, window: self.window(rng) };
                match fits(of.variable) && self.rank(shape) > 0 {
                    true => Action::Roll(any, of, rng.between(-2, 2)),
                    false => Action::Make(any, self.computation(rng, dtype, shape)),
                }
            }
            34..38 => {
                if dtype.is_complex() {
                    return Action::Read(any);
                }
                Action::Choose(any, [0; 2].map(|_| self.operand(rng, shape)))
            }
            38..63 => {
                let seen = self.seen(rng, any);
                Action::Write(seen, self.computation(rng, dtype, seen.shape))
            }
            63..75 => {
                let folded = |at: usize| matches!(self.variables[at], Shape::Line | Shape::Flat(_) | Shape::Point);
                let into = self.pick(rng, folded);
                self.fold(rng, into)
            }
            75 if dtype.is_complex() && shape == Shape::Inside && !self.exact && rng.chance(50) => {
                Action::Transform(any, Seen { variable: any, shape, window: self.window(rng) })
            }
            75..78 => {
                let of = self.pick(rng, |at| self.is_window(self.variables[at], shape));
                let rank = self.rank(shape);
                let opcodes = self.folds(Kind::Accumulate, self.dtypes[of]);
                if rank == 0 || opcodes.is_empty() || !self.is_window(self.variables[of], shape) {
                    return Action::Take(any, rng.between(0, 5), of);
                }
                let of = Seen { variable: of, shape, window: self.window(rng) };
                Action::Accumulate(any, opcodes[rng.below(opcodes.len())], rng.below(rank) as u16, of)
            }
            78..80 => Action::Take(any, rng.between(0, 5), self.pick(rng, |_| true)),
            80..82 => {
                let scatters = [Opcode::Scatter, Opcode::ScatterAdd, Opcode::CondScatter];
                let opcode = scatters[rng.below(scatters.len())];
                let (first, step) = (rng.between(0, 5), rng.between(1, 4));
                Action::Put { into: any, opcode, first, step, of: self.pick(rng, |_| true) }
            }
            82 if TypeSet::RANDOM.contains(dtype) => Action::Random(any, rng.bits() >> 32),
            82 if !dtype.is_complex() && dtype != DType::Bool => {
                Action::Range(any, rng.between(-3, 3), rng.between(-2, 3))
            }
            83..86 => {
                let same = |at: usize| self.is_window(self.variables[at], shape) && self.dtypes[at] == dtype;
                let variable = self.pick(rng, same);
                // Its axes may not merge, and broadcast views cannot be written.
                let long = shape == Shape::Long || self.variables[variable] == Shape::Long;
                let variable = if long { any } else { variable };
                Action::Name(any, Seen { variable, shape, window: self.window(rng) })
            }
            86..89 => Action::Free(any),
            89..94 => Action::Read(any),
            94..96 => Action::ReadSeen(self.seen(rng, any)),
            96 => match rng.below(10) {
                0..5 => Action::Load(self.seen(rng, any)),
                5..8 => Action::Map(self.seen(rng, any)),
                8 => Action::Adopt(any),
                _ => Action::Pin(any),
            },
            97 if matches!(shape, Shape::Grid | Shape::Inside) && TypeSet::NUMERIC.contains(dtype) => {
                Action::Eliminate(any)
            }
            _ => Action::Flush,
        }
    }
}
