//! Random user programs: loops over whole-array statements that a recorder records, with numbers and windows that change
//! from round to round, and with values read in between. What they read must be the same bits however they are run.
//!
//! All arrays of a program come from one grid: it itself, its inside, every second element of that, one line, and a single
//! element.

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
    /// Every second element of the inside, along the last axis.
    Half,
    /// One line of the inside, along the last axis.
    Line,
    /// One element.
    Point,
}

const SHAPES: [Shape; 5] = [Shape::Grid, Shape::Inside, Shape::Half, Shape::Line, Shape::Point];

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
    /// Are the first and the last axis exchanged, where they are of the same length?
    transposed: bool,
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
    /// The result is written into a variable, or into a window of this shape on it.
    Write(usize, Shape, Window, Opcode, [Operand; 2]),
    /// The variable becomes the fold of another one.
    Fold(usize, Opcode, usize),
    /// The variable becomes the prefix sums of another one along an axis.
    Accumulate(usize, u16, usize),
    /// The variable becomes elements of another one: every third, from some number on, and around.
    Take(usize, i64, usize),
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
    grid: Vec<i64>,
    /// Do some windows go backwards? The terms of a sum of floats are grouped in the order of the memory that its batch
    /// computes them from, so there are no such sums then.
    backwards: bool,
    variables: Vec<Shape>,
    dtypes: Vec<DType>,
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
    // Large ones are for several threads.
    let most = if rng.chance(2) { [150_000, 400, 50] } else { [200, 40, 12] }[rank - 1];
    let long = if rng.chance(10) { most.max(300) } else { most };
    let dtype = *rng.pick(&[DType::F64, DType::F64, DType::F32, DType::I64]).unwrap_or(&DType::F64);
    let mut grid: Vec<i64> = (0..rank).map(|_| rng.between(3, most)).collect();
    grid[rank - 1] = rng.between(3, long);
    let backwards = rng.chance(20);
    if backwards {
        grid[0] = grid[rank - 1];
    }
    let mut variables = vec![Shape::Grid, Shape::Inside];
    for _ in 0..2 + rng.below(6) {
        variables.push(*rng.pick(&SHAPES).unwrap_or(&Shape::Grid));
    }
    let mixed = rng.chance(25);
    let types = [DType::F64, DType::F32, DType::I64, DType::I32, DType::U8];
    let dtypes = variables.iter().map(|_| if mixed { types[rng.below(types.len())] } else { dtype }).collect();
    let rounds = 2 + rng.below(12) as u64;
    let mut program = Looped { grid, backwards, variables, dtypes, body: Vec::new(), rounds };
    for _ in 0..1 + rng.below(14) {
        let action = program.action(&mut rng);
        let every = if rng.chance(15) { 2 + rng.below(3) as u64 } else { 1 };
        program.body.push(Statement { every, action });
    }
    program
}

impl Looped {
    fn window(&self, rng: &mut Rng) -> Window {
        let mut first = [1; 3];
        if rng.chance(60) {
            first = std::array::from_fn(|_| rng.below(3) as u8);
        }
        let [reversed, transposed] = [25, 25].map(|percent| self.backwards && rng.chance(percent));
        Window { first, moves: rng.chance(8), reversed, transposed }
    }

    /// May sums of a variable be folded?
    fn has_sums(&self, variable: usize) -> bool {
        !self.backwards || !self.dtypes[variable].is_float()
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
            Shape::Inside => other != Shape::Half,
            Shape::Half => matches!(other, Shape::Half | Shape::Inside | Shape::Point),
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
        let any = self.pick(rng, |_| true);
        let (shape, dtype) = (self.variables[any], self.dtypes[any]);
        let opcodes = if dtype.is_float() { FLOATS } else { INTEGERS };
        let opcode = opcodes[rng.below(opcodes.len())];
        let operands = |rng: &mut Rng, shape: Shape| [0; 2].map(|_| self.operand(rng, shape));
        match rng.below(100) {
            0..36 => Action::Make(any, opcode, operands(rng, shape)),
            36..41 => Action::Choose(any, operands(rng, shape)),
            41..66 => {
                let seen = match shape {
                    Shape::Grid => Shape::Inside,
                    Shape::Inside if rng.chance(20) => Shape::Half,
                    Shape::Inside if rng.chance(20) => Shape::Line,
                    whole => whole,
                };
                Action::Write(any, seen, self.window(rng), opcode, operands(rng, seen))
            }
            66..78 => {
                let of = self.pick(rng, |shape| matches!(shape, Shape::Inside | Shape::Line | Shape::Half));
                let has_lines = self.variables[of] == Shape::Inside && self.grid.len() > 1;
                let wanted = if has_lines && rng.chance(60) { Shape::Line } else { Shape::Point };
                let into = self.pick(rng, |shape| shape == wanted);
                let folds = &FOLDS[usize::from(!self.has_sums(of))..];
                let fold = folds[rng.below(folds.len())];
                if self.variables[into] == wanted { Action::Fold(into, fold, of) } else { Action::Read(of) }
            }
            78..80 => {
                let of = self.pick(rng, |other| other == shape);
                let rank = self.shape(shape).len();
                if rank == 0 || !self.has_sums(of) {
                    return Action::Take(any, rng.between(0, 5), of);
                }
                Action::Accumulate(any, rng.below(rank) as u16, of)
            }
            80..82 => Action::Take(any, rng.between(0, 5), self.pick(rng, |_| true)),
            82..85 => {
                let same = |at: &usize| self.variables[*at] == shape && self.dtypes[*at] == dtype;
                let named: Vec<usize> = (0..self.variables.len()).filter(same).collect();
                Action::Name(any, named[rng.below(named.len())])
            }
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
            Shape::Half => {
                let mut half = inside;
                half.last_mut().into_iter().for_each(|extent| *extent = (*extent + 1) / 2);
                half
            }
            Shape::Line => inside[inside.len() - 1..].to_vec(),
            Shape::Point => Vec::new(),
        }
    }

    /// Runs the program; gives what it reads: all variables in the end, too.
    pub fn run(&self, recorder: &Recorder) -> Result<Vec<(DType, Vec<u8>)>> {
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
    read: Vec<(DType, Vec<u8>)>,
}

impl Run<'_> {
    fn act(&mut self, action: Action) -> Result<()> {
        let recorder = self.recorder;
        match action {
            Action::Make(variable, opcode, operands) => {
                let made = self.empty(variable)?;
                self.compute(made, opcode, &operands, self.program.variables[variable])?;
                self.set(variable, made)
            }
            Action::Choose(variable, operands) => {
                let shape = self.program.variables[variable];
                let made = self.empty(variable)?;
                let dtype = self.program.dtypes[variable];
                let sources = [self.source(operands[0], shape, dtype)?, self.source(operands[1], shape, dtype)?];
                let mask = recorder.empty(DType::Bool, &self.program.shape(shape))?;
                recorder.operate(Opcode::Greater, 0, mask, &[sources[0].0, sources[1].0], Location::UNKNOWN)?;
                let inputs = [Input::Array(mask), sources[0].0, sources[1].0];
                recorder.operate(Opcode::Where, 0, made, &inputs, Location::UNKNOWN)?;
                let used = sources.iter().filter_map(|source| source.1).chain([mask]);
                used.into_iter().try_for_each(|array| recorder.free(array))?;
                self.set(variable, made)
            }
            Action::Write(variable, shape, window, opcode, operands) => {
                let target = self.see(variable, window, shape)?;
                self.compute(target, opcode, &operands, shape)?;
                recorder.free(target)
            }
            Action::Fold(into, opcode, of) => {
                let rank = self.program.shape(self.program.variables[of]).len() as u16;
                let kept = u16::from(self.program.variables[into] == Shape::Line);
                let axes = (1 << (rank - kept)) - 1;
                let input = [Input::Array(self.array(of)?)];
                let fold = recorder.operate_new(opcode, axes, None, &input, Location::UNKNOWN)?;
                self.set_cast(into, fold)
            }
            Action::Accumulate(into, axis, of) => {
                let input = [Input::Array(self.array(of)?)];
                let sums = recorder.operate_new(Opcode::AddAccumulate, 1 << axis, None, &input, Location::UNKNOWN)?;
                self.set_cast(into, sums)
            }
            Action::Take(into, first, of) => {
                let source = self.array(of)?;
                let shape = self.program.shape(self.program.variables[into]);
                let index = recorder.empty(DType::I64, &shape)?;
                recorder.range(index, first, 3, Location::UNKNOWN)?;
                let count = self.program.shape(self.program.variables[of]).iter().product::<i64>();
                let count = Input::Constant(Constant::from_value(count));
                recorder.operate(Opcode::Mod, 0, index, &[Input::Array(index), count], Location::UNKNOWN)?;
                let inputs = [Input::Array(source), Input::Array(index)];
                let taken = recorder.operate_new(Opcode::Gather, 0, None, &inputs, Location::UNKNOWN)?;
                recorder.free(index)?;
                self.set_cast(into, taken)
            }
            Action::Name(variable, other) => {
                let other = self.array(other)?;
                let second = recorder.duplicate(other)?;
                self.set(variable, second)
            }
            Action::Free(variable) => self.arrays[variable].take().map_or(Ok(()), |array| recorder.free(array)),
            Action::Read(variable) => self.read(variable),
            Action::Flush => recorder.flush(),
        }
    }

    fn empty(&self, variable: usize) -> Result<ArrayId> {
        let shape = self.program.shape(self.program.variables[variable]);
        self.recorder.empty(self.program.dtypes[variable], &shape)
    }

    /// Sets a variable to an array of any type.
    fn set_cast(&mut self, variable: usize, array: ArrayId) -> Result<()> {
        if self.recorder.info(array)?.dtype == self.program.dtypes[variable] {
            return self.set(variable, array);
        }
        let cast = self.empty(variable)?;
        self.recorder.operate(Opcode::Identity, 0, cast, &[Input::Array(array)], Location::UNKNOWN)?;
        self.recorder.free(array)?;
        self.set(variable, cast)
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
        let (array, dtype) = (self.empty(variable)?, self.program.dtypes[variable]);
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
            let last = seen.rank().saturating_sub(1);
            match (own, shape) {
                (Shape::Grid, Shape::Inside) => {
                    for (dim, extent) in inside.iter().enumerate() {
                        seen = seen.slice(dim, Some(moved(dim)), Some(moved(dim) + extent), 1)?;
                    }
                }
                (Shape::Inside, Shape::Half) => seen = seen.slice(last, None, None, 2)?,
                (Shape::Inside, Shape::Line) => {
                    for (dim, &extent) in inside[..last].iter().enumerate() {
                        seen = seen.index(0, moved(dim).min(extent - 1))?;
                    }
                }
                _ => {}
            }
            let last = seen.rank().saturating_sub(1);
            if window.transposed && last > 0 && seen.shape()[0] == seen.shape()[last] {
                let mut axes: Vec<usize> = (0..=last).collect();
                axes.swap(0, last);
                seen = seen.transpose(&axes)?;
            }
            if window.reversed && seen.rank() > 0 { seen.reverse(last) } else { Ok(seen) }
        };
        self.recorder.derive(array, derive)
    }

    /// An input of a type, and the array that must be freed after its use.
    fn source(&mut self, operand: Operand, shape: Shape, dtype: DType) -> Result<(Input, Option<ArrayId>)> {
        Ok(match operand {
            Operand::Number(Number::Changes(first, rounds, later)) => {
                let value = if self.round < rounds { first } else { later };
                (Input::Constant(Constant::from_value(value).cast(dtype)), None)
            }
            Operand::Number(Number::Round) => (Input::Constant(Constant::from_value(self.round).cast(dtype)), None),
            Operand::Variable(variable, window) => {
                let mut array = self.see(variable, window, shape)?;
                if self.program.dtypes[variable] != dtype {
                    let input = [Input::Array(array)];
                    let cast =
                        self.recorder.operate_new(Opcode::Identity, 0, Some(dtype), &input, Location::UNKNOWN)?;
                    self.recorder.free(array)?;
                    array = cast;
                }
                (Input::Array(array), Some(array))
            }
        })
    }

    fn compute(&mut self, target: ArrayId, opcode: Opcode, operands: &[Operand; 2], shape: Shape) -> Result<()> {
        let count = opcode.info().inputs as usize;
        let dtype = self.recorder.info(target)?.dtype;
        let mut inputs = Vec::new();
        let mut arrays = Vec::new();
        for &operand in &operands[..count] {
            let (input, array) = self.source(operand, shape, dtype)?;
            inputs.push(input);
            arrays.extend(array);
        }
        self.recorder.operate(opcode, 0, target, &inputs, Location::UNKNOWN)?;
        arrays.into_iter().try_for_each(|array| self.recorder.free(array))
    }

    fn read(&mut self, variable: usize) -> Result<()> {
        let array = self.array(variable)?;
        let dtype = self.program.dtypes[variable];
        let count: i64 = self.program.shape(self.program.variables[variable]).iter().product();
        let mut bytes = vec![0; count as usize * dtype.size()];
        // SAFETY: the array has so many elements.
        unsafe { self.recorder.read(array, bytes.as_mut_ptr(), None)? };
        self.read.push((dtype, bytes));
        Ok(())
    }
}
