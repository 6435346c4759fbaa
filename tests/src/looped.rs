//! Random user programs: loops over whole-array statements that a recorder records, with numbers and windows that change
//! from round to round, and with values read in between. What they read must be the same bits however they are run.
//!
//! All arrays of a program come from one grid: it itself, its inside, one line of that, and a single element.

use bh_bytecode::random::Rng;
use bh_bytecode::{Constant, DType, Opcode, View, ViewError};
use bh_core::error::Result;
use bh_core::recorder::{ArrayId, Input, Location, Recorder};

/// The shape of an array, or of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// The grid.
    Grid,
    /// Without the border of one element.
    Inside,
    /// One line of the inside, along the last axis.
    Line,
    /// One element.
    Point,
}

const SHAPES: [Shape; 4] = [Shape::Grid, Shape::Inside, Shape::Line, Shape::Point];

/// A number of a statement.
#[derive(Clone, Copy, Debug)]
enum Number {
    /// The first one in so many rounds, the other one later.
    Changes(f64, u64, f64),
    /// The number of the round.
    Round,
}

/// Where a window begins in each dimension, from 0 to 2, and whether it moves on with each round.
#[derive(Clone, Copy, Debug)]
struct Window {
    first: [u8; 3],
    moves: bool,
    /// Does it go backwards along the last axis?
    reversed: bool,
}

/// An operand: a variable, seen in the shape that is needed, or a number.
#[derive(Clone, Copy, Debug)]
enum Operand {
    Variable(usize, Window),
    Number(Number),
}

#[derive(Clone, Copy, Debug)]
enum Action {
    /// The variable becomes the result, a new array.
    Make(usize, Opcode, [Operand; 2]),
    /// The variable becomes a choice between two operands: the first where it is greater than the second.
    Choose(usize, [Operand; 2]),
    /// The result is written into a variable, or into a window of the grid.
    Write(usize, Window, Opcode, [Operand; 2]),
    /// The variable becomes the fold of another one.
    Fold(usize, Opcode, usize),
    /// The variable becomes another name of the other one's array.
    Name(usize, usize),
    Free(usize),
    Read(usize),
    Flush,
}

/// An action, in every so many rounds.
#[derive(Clone, Copy, Debug)]
struct Statement {
    every: u64,
    action: Action,
}

/// A random user program.
#[derive(Clone, Debug)]
pub struct Looped {
    dtype: DType,
    grid: Vec<i64>,
    /// Do some windows go backwards? The terms of a sum of floats are grouped in the order of the memory that its batch
    /// computes them from, so there are no such sums then.
    backwards: bool,
    variables: Vec<Shape>,
    body: Vec<Statement>,
    rounds: u64,
}

const FLOATS: &[Opcode] = &[
    Opcode::Add,
    Opcode::Subtract,
    Opcode::Multiply,
    Opcode::Divide,
    Opcode::Minimum,
    Opcode::Maximum,
    Opcode::Identity,
    Opcode::Sqrt,
    Opcode::Exp,
    Opcode::Sin,
    Opcode::Absolute,
];
const INTEGERS: &[Opcode] =
    &[Opcode::Add, Opcode::Subtract, Opcode::Multiply, Opcode::Minimum, Opcode::Maximum, Opcode::Identity, Opcode::Mod];
const FOLDS: &[Opcode] = &[Opcode::AddReduce, Opcode::MinimumReduce, Opcode::MaximumReduce];
const NUMBERS: &[f64] = &[0.0, 1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 0.25, 1.5, 0.1];

/// The program of a seed.
pub fn looped(seed: u64) -> Looped {
    let mut rng = Rng::new(seed);
    let rank = 1 + rng.below(3);
    let long = if rng.chance(10) { 300 } else { [200, 40, 12][rank - 1] };
    let dtype = *rng.pick(&[DType::F64, DType::F64, DType::F32, DType::I64]).unwrap_or(&DType::F64);
    let mut grid: Vec<i64> = (0..rank).map(|_| rng.between(3, [200, 40, 12][rank - 1])).collect();
    grid[rank - 1] = rng.between(3, long);
    let mut variables = vec![Shape::Grid, Shape::Inside];
    for _ in 0..2 + rng.below(6) {
        variables.push(*rng.pick(&SHAPES).unwrap_or(&Shape::Grid));
    }
    let backwards = rng.chance(20);
    let mut program = Looped { dtype, grid, backwards, variables, body: Vec::new(), rounds: 2 + rng.below(12) as u64 };
    for _ in 0..1 + rng.below(14) {
        let action = program.action(&mut rng);
        let every = if rng.chance(15) { 2 + rng.below(3) as u64 } else { 1 };
        program.body.push(Statement { every, action });
    }
    program
}

impl Looped {
    fn opcodes(&self) -> &'static [Opcode] {
        if self.dtype.is_float() { FLOATS } else { INTEGERS }
    }

    fn window(&self, rng: &mut Rng) -> Window {
        let mut first = [1; 3];
        if rng.chance(60) {
            first = std::array::from_fn(|_| rng.below(3) as u8);
        }
        Window { first, moves: rng.chance(8), reversed: self.backwards && rng.chance(25) }
    }

    fn folds(&self) -> &'static [Opcode] {
        if self.backwards && self.dtype.is_float() { &FOLDS[1..] } else { FOLDS }
    }

    /// The variables whose shape fits a test.
    fn pick(&self, rng: &mut Rng, fits: impl Fn(Shape) -> bool) -> usize {
        let known: Vec<usize> = (0..self.variables.len()).filter(|&at| fits(self.variables[at])).collect();
        rng.pick(&known).copied().unwrap_or(0)
    }

    fn number(&self, rng: &mut Rng) -> Number {
        if rng.chance(10) {
            return Number::Round;
        }
        let mut one = || NUMBERS[rng.below(NUMBERS.len())];
        let (first, later) = (one(), one());
        let after = if rng.chance(25) { 1 + rng.below(6) as u64 } else { u64::MAX };
        Number::Changes(first, after, later)
    }

    /// An operand that can be seen in a shape.
    fn operand(&self, rng: &mut Rng, shape: Shape) -> Operand {
        if rng.chance(25) {
            return Operand::Number(self.number(rng));
        }
        let fits = |other: Shape| match shape {
            Shape::Grid => matches!(other, Shape::Grid | Shape::Point),
            Shape::Inside => true,
            Shape::Line => matches!(other, Shape::Line | Shape::Inside | Shape::Point),
            Shape::Point => other == Shape::Point,
        };
        let variable = self.pick(rng, fits);
        if fits(self.variables[variable]) {
            Operand::Variable(variable, self.window(rng))
        } else {
            Operand::Number(self.number(rng))
        }
    }

    fn action(&self, rng: &mut Rng) -> Action {
        let opcode = self.opcodes()[rng.below(self.opcodes().len())];
        let any = self.pick(rng, |_| true);
        let kind = rng.below(100);
        match kind {
            0..40 => Action::Make(any, opcode, [0; 2].map(|_| self.operand(rng, self.variables[any]))),
            40..45 => Action::Choose(any, [0; 2].map(|_| self.operand(rng, self.variables[any]))),
            45..70 => {
                let seen = if self.variables[any] == Shape::Grid { Shape::Inside } else { self.variables[any] };
                Action::Write(any, self.window(rng), opcode, [0; 2].map(|_| self.operand(rng, seen)))
            }
            70..82 => {
                let of = self.pick(rng, |shape| matches!(shape, Shape::Inside | Shape::Line));
                let wanted = if self.variables[of] == Shape::Inside && self.grid.len() > 1 && rng.chance(60) {
                    Shape::Line
                } else {
                    Shape::Point
                };
                let into = self.pick(rng, |shape| shape == wanted);
                if self.variables[into] == wanted {
                    Action::Fold(into, self.folds()[rng.below(self.folds().len())], of)
                } else {
                    Action::Read(of)
                }
            }
            82..85 => Action::Name(any, self.pick(rng, |shape| shape == self.variables[any])),
            85..88 => Action::Free(any),
            88..95 => Action::Read(any),
            _ => Action::Flush,
        }
    }

    /// Smaller programs: without one of the statements, or with fewer rounds.
    pub fn smaller(&self) -> Vec<Looped> {
        let mut all: Vec<Looped> = (0..self.body.len())
            .map(|at| {
                let mut one = self.clone();
                one.body.remove(at);
                one
            })
            .collect();
        if self.rounds > 1 {
            all.push(Looped { rounds: self.rounds - 1, ..self.clone() });
        }
        all
    }

    fn shape(&self, shape: Shape) -> Vec<i64> {
        let inside: Vec<i64> = self.grid.iter().map(|extent| extent - 2).collect();
        match shape {
            Shape::Grid => self.grid.clone(),
            Shape::Inside => inside,
            Shape::Line => inside[inside.len() - 1..].to_vec(),
            Shape::Point => Vec::new(),
        }
    }

    /// Runs the program; gives what it reads: all variables in the end, too.
    pub fn run(&self, recorder: &Recorder) -> Result<Vec<Vec<u8>>> {
        let mut run =
            Run { program: self, recorder, arrays: vec![None; self.variables.len()], round: 0, read: Vec::new() };
        for round in 0..self.rounds {
            run.round = round;
            for statement in self.body.iter().filter(|statement| round % statement.every == 0) {
                run.act(statement.action)?;
            }
        }
        for variable in 0..self.variables.len() {
            run.read(variable)?;
        }
        for array in run.arrays.iter().flatten() {
            recorder.free(*array)?;
        }
        Ok(run.read)
    }
}

/// A run of a program.
struct Run<'a> {
    program: &'a Looped,
    recorder: &'a Recorder,
    arrays: Vec<Option<ArrayId>>,
    round: u64,
    read: Vec<Vec<u8>>,
}

impl Run<'_> {
    fn act(&mut self, action: Action) -> Result<()> {
        match action {
            Action::Make(variable, opcode, operands) => {
                let shape = self.program.variables[variable];
                let made = self.recorder.empty(self.program.dtype, &self.program.shape(shape))?;
                self.compute(made, opcode, &operands, shape)?;
                self.set(variable, made)
            }
            Action::Choose(variable, operands) => {
                let shape = self.program.variables[variable];
                let mask = self.recorder.empty(DType::Bool, &self.program.shape(shape))?;
                self.compute(mask, Opcode::Greater, &operands, shape)?;
                let made = self.recorder.empty(self.program.dtype, &self.program.shape(shape))?;
                let sources = [self.source(operands[0], shape)?, self.source(operands[1], shape)?];
                let inputs = [Input::Array(mask), sources[0].0, sources[1].0];
                self.recorder.operate(Opcode::Where, 0, made, &inputs, Location::UNKNOWN)?;
                self.recorder.free(mask)?;
                sources.iter().filter_map(|source| source.1).try_for_each(|array| self.recorder.free(array))?;
                self.set(variable, made)
            }
            Action::Write(variable, window, opcode, operands) => {
                let shape = match self.program.variables[variable] {
                    Shape::Grid => Shape::Inside,
                    other => other,
                };
                let target = self.see(variable, window, shape)?;
                self.compute(target, opcode, &operands, shape)?;
                self.recorder.free(target)
            }
            Action::Fold(into, opcode, of) => {
                let rank = self.program.shape(self.program.variables[of]).len() as u16;
                let kept = u16::from(self.program.variables[into] == Shape::Line);
                let axes = (1 << (rank - kept)) - 1;
                let source = self.array(of)?;
                let dtype = Some(self.program.dtype);
                let input = [Input::Array(source)];
                let made = self.recorder.operate_new(opcode, axes, dtype, &input, Location::UNKNOWN)?;
                self.set(into, made)
            }
            Action::Name(variable, other) => {
                let other = self.array(other)?;
                let second = self.recorder.duplicate(other)?;
                self.set(variable, second)
            }
            Action::Free(variable) => self.arrays[variable].take().map_or(Ok(()), |array| self.recorder.free(array)),
            Action::Read(variable) => self.read(variable),
            Action::Flush => self.recorder.flush(),
        }
    }

    fn set(&mut self, variable: usize, array: ArrayId) -> Result<()> {
        self.arrays[variable].replace(array).map_or(Ok(()), |old| self.recorder.free(old))
    }

    /// The variable's array; a new one, if it has none.
    fn array(&mut self, variable: usize) -> Result<ArrayId> {
        if let Some(array) = self.arrays[variable] {
            return Ok(array);
        }
        let shape = self.program.shape(self.program.variables[variable]);
        let (array, dtype) = (self.recorder.empty(self.program.dtype, &shape)?, self.program.dtype);
        let count = self.recorder.empty(DType::I64, &shape)?;
        self.recorder.range(count, variable as i64, 3, Location::UNKNOWN)?;
        let seven = Input::Constant(Constant::from_value(7i64));
        self.recorder.operate(Opcode::Mod, 0, count, &[Input::Array(count), seven], Location::UNKNOWN)?;
        self.recorder.operate(Opcode::Identity, 0, array, &[Input::Array(count)], Location::UNKNOWN)?;
        self.recorder.free(count)?;
        let half = Input::Constant(Constant::from_value(0.5).cast(dtype));
        self.recorder.operate(Opcode::Add, 0, array, &[Input::Array(array), half], Location::UNKNOWN)?;
        self.arrays[variable] = Some(array);
        Ok(array)
    }

    /// A variable in a shape, as an array of its own.
    fn see(&mut self, variable: usize, window: Window, shape: Shape) -> Result<ArrayId> {
        let array = self.array(variable)?;
        let (own, inside) = (self.program.variables[variable], self.program.shape(Shape::Inside));
        let moved = |dim: usize| {
            let first = i64::from(window.first[dim]) + if window.moves { self.round as i64 } else { 0 };
            first % 3
        };
        let derive = |view: &View| -> std::result::Result<View, ViewError> {
            let mut seen = *view;
            match (own, shape) {
                (Shape::Grid, Shape::Inside) => {
                    for (dim, extent) in inside.iter().enumerate() {
                        seen = seen.slice(dim, Some(moved(dim)), Some(moved(dim) + extent), 1)?;
                    }
                }
                (Shape::Inside, Shape::Line) => {
                    for (dim, &extent) in inside[..inside.len() - 1].iter().enumerate() {
                        seen = seen.index(0, moved(dim).min(extent - 1))?;
                    }
                }
                _ => {}
            }
            let last = seen.rank().checked_sub(1).filter(|_| window.reversed);
            last.map_or(Ok(seen), |last| seen.reverse(last))
        };
        self.recorder.derive(array, derive)
    }

    /// An input, and the array that must be freed after its use.
    fn source(&mut self, operand: Operand, shape: Shape) -> Result<(Input, Option<ArrayId>)> {
        Ok(match operand {
            Operand::Number(Number::Changes(first, rounds, later)) => {
                let value = if self.round < rounds { first } else { later };
                (Input::Constant(Constant::from_value(value).cast(self.program.dtype)), None)
            }
            Operand::Number(Number::Round) => {
                (Input::Constant(Constant::from_value(self.round).cast(self.program.dtype)), None)
            }
            Operand::Variable(variable, window) => {
                let array = self.see(variable, window, shape)?;
                (Input::Array(array), Some(array))
            }
        })
    }

    fn compute(&mut self, target: ArrayId, opcode: Opcode, operands: &[Operand; 2], shape: Shape) -> Result<()> {
        let count = opcode.info().inputs as usize;
        let mut inputs = Vec::new();
        let mut arrays = Vec::new();
        for &operand in &operands[..count] {
            let (input, array) = self.source(operand, shape)?;
            inputs.push(input);
            arrays.extend(array);
        }
        self.recorder.operate(opcode, 0, target, &inputs, Location::UNKNOWN)?;
        arrays.into_iter().try_for_each(|array| self.recorder.free(array))
    }

    fn read(&mut self, variable: usize) -> Result<()> {
        let array = self.array(variable)?;
        let count: i64 = self.program.shape(self.program.variables[variable]).iter().product();
        let mut bytes = vec![0; count as usize * self.program.dtype.size()];
        // SAFETY: the array has so many elements.
        unsafe { self.recorder.read(array, bytes.as_mut_ptr(), None)? };
        self.read.push(bytes);
        Ok(())
    }
}

impl Looped {
    /// The type of all that is read.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
}
