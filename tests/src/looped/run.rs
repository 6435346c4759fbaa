//! Runs a random user program on a recorder, round by round.

use super::memory::Held;
use super::{Action, Computation, First, Looped, Number, Operand, RANK, Seen, Shape, is_extreme, result_type};
use bh_bytecode::complex::Complex;
use bh_bytecode::{Constant, DType, Opcode, View, ViewError};
use bh_core::error::Result;
use bh_recorder::{ArrayId, Input, Location, Recorder};

/// A running program.
pub struct Run<'a> {
    pub(super) program: &'a Looped,
    pub(super) recorder: &'a Recorder,
    arrays: Vec<Option<ArrayId>>,
    pub(super) round: u64,
    read: Vec<(DType, Vec<u8>)>,
    pub(super) lent: Vec<Held>,
}

impl<'a> Run<'a> {
    /// A run at its beginning.
    pub fn new(program: &'a Looped, recorder: &'a Recorder) -> Run<'a> {
        Run {
            program,
            recorder,
            arrays: vec![None; program.variables.len()],
            round: 0,
            read: Vec::new(),
            lent: Vec::new(),
        }
    }

    /// Runs one more round, unless it was the last.
    pub fn step(&mut self) -> Result<()> {
        if self.round < self.program.rounds {
            let round = self.round;
            let statements = self.program.body.iter().filter(|statement| round.is_multiple_of(statement.every));
            statements.map(|statement| statement.action).try_for_each(|action| self.act(action))?;
            self.round += 1;
        }
        Ok(())
    }

    /// Runs the remaining rounds; returns all reads, with all variables at the end.
    pub fn finish(mut self) -> Result<Vec<(DType, Vec<u8>)>> {
        while self.round < self.program.rounds {
            self.step()?;
        }
        (0..self.program.variables.len()).try_for_each(|variable| self.read(self.whole(variable)))?;
        self.end_lending()?;
        self.arrays.iter().flatten().try_for_each(|array| self.recorder.free(*array))?;
        Ok(self.read)
    }

    fn act(&mut self, action: Action) -> Result<()> {
        match action {
            Action::Make(variable, computation) => {
                let made = self.empty(variable)?;
                self.compute(made, &computation, self.program.variables[variable])?;
                self.set(variable, made)
            }
            Action::Choose(variable, operands) => self.choose(variable, operands),
            Action::Write(seen, computation) => {
                let target = self.see(seen)?;
                self.compute(target, &computation, seen.shape)?;
                self.recorder.free(target)
            }
            Action::Fold { into, opcode, of, axes, all } => self.fold(into, opcode, of, axes, all),
            Action::Accumulate(into, opcode, axis, of) => {
                let array = self.see(of)?;
                let sums = self.made(opcode, 1 << axis, None, &[Input::Array(array)])?;
                self.recorder.free(array)?;
                self.set_cast(into, sums)
            }
            Action::Take(into, first, of) => self.take(into, first, of),
            Action::Roll(into, of, by) => {
                let array = self.see(of)?;
                let distances = vec![by; self.shape(of.shape).len()];
                let rolled = bh_compose::roll(self.recorder, array, &distances, Location::UNKNOWN)?;
                self.recorder.free(array)?;
                self.set(into, rolled)
            }
            Action::Put { into, opcode, first, step, of } => self.put(into, opcode, first, step, of),
            Action::Random(variable, key) => {
                let array = self.array(variable)?;
                self.recorder.random(array, key, self.round as i64, Location::UNKNOWN)
            }
            Action::Range(variable, first, step) => {
                let array = self.array(variable)?;
                self.recorder.range(array, first, step, Location::UNKNOWN)
            }
            Action::Name(variable, other) => {
                let array = self.see(other)?;
                self.set(variable, array)
            }
            Action::Eliminate(variable) => self.eliminate(variable),
            Action::Free(variable) => self.arrays[variable].take().map_or(Ok(()), |array| self.recorder.free(array)),
            Action::Read(variable) => {
                self.read(self.whole(variable))?;
                let bytes = self.read.last().map_or(Vec::new(), |(_, bytes)| bytes.clone());
                self.lend(variable, bytes)
            }
            Action::ReadSeen(seen) => self.read(seen),
            Action::Load(seen) => self.load(seen),
            Action::Map(seen) => self.map(seen),
            Action::Adopt(variable) => self.adopt(variable),
            Action::Pin(variable) => self.pin(variable),
            Action::Transform(into, of) => self.transform(into, of),
            Action::Flush => self.recorder.flush(),
        }
    }

    fn operate(&self, opcode: Opcode, param: u16, out: ArrayId, inputs: &[Input]) -> Result<()> {
        self.recorder.operate(opcode, param, out, inputs, Location::UNKNOWN)
    }

    fn made(&self, opcode: Opcode, param: u16, dtype: Option<DType>, inputs: &[Input]) -> Result<ArrayId> {
        self.recorder.operate_new(opcode, param, dtype, inputs, Location::UNKNOWN)
    }

    fn choose(&mut self, variable: usize, operands: [Operand; 2]) -> Result<()> {
        let (shape, dtype) = (self.program.variables[variable], self.program.dtypes[variable]);
        let made = self.empty(variable)?;
        let sources = [self.source(operands[0], shape, dtype)?, self.source(operands[1], shape, dtype)?];
        let mask = self.recorder.empty(DType::Bool, &self.shape(shape))?;
        self.operate(Opcode::Greater, 0, mask, &[sources[0].0, sources[1].0])?;
        self.operate(Opcode::Where, 0, made, &[Input::Array(mask), sources[0].0, sources[1].0])?;
        let used = sources.iter().filter_map(|source| source.1).chain([mask]);
        used.into_iter().try_for_each(|array| self.recorder.free(array))?;
        self.set(variable, made)
    }

    fn fold(&mut self, into: usize, opcode: Opcode, of: Seen, axes: u16, all: bool) -> Result<()> {
        let array = self.see(of)?;
        let rank = self.program.rank(of.shape);
        let mut fold = self.made(opcode, axes, None, &[Input::Array(array)])?;
        let mut used = vec![array];
        if all {
            let rest = self.made(opcode, (1 << (rank - 1)) - 1, None, &[Input::Array(fold)])?;
            used.push(std::mem::replace(&mut fold, rest));
        }
        let dtype = self.recorder.info(fold)?.dtype;
        if is_extreme(opcode, dtype) {
            let zero = Input::Constant(Constant::from_value(0.0).cast(dtype));
            let unsigned = self.made(Opcode::Add, 0, None, &[Input::Array(fold), zero])?;
            used.push(std::mem::replace(&mut fold, unsigned));
        }
        if let Shape::Flat(axis) = self.program.variables[into] {
            let kept = self.recorder.derive(fold, |view| view.new_axis(axis as usize))?;
            used.push(std::mem::replace(&mut fold, kept));
        }
        used.into_iter().try_for_each(|array| self.recorder.free(array))?;
        self.set_cast(into, fold)
    }

    /// Numbers from `first` on, with a step, modulo the elements of a shape.
    fn places(&self, of: Shape, first: i64, step: i64, around: Shape) -> Result<ArrayId> {
        let index = self.recorder.empty(DType::I64, &self.shape(of))?;
        self.recorder.range(index, first, step, Location::UNKNOWN)?;
        let count = Input::Constant(Constant::from_value(self.program.count(around)));
        self.operate(Opcode::Fmod, 0, index, &[Input::Array(index), count])?;
        Ok(index)
    }

    fn take(&mut self, into: usize, first: i64, of: usize) -> Result<()> {
        let (to, from) = (self.program.variables[into], self.program.variables[of]);
        if self.program.count(from) == 0 {
            return Ok(());
        }
        let source = self.array(of)?;
        let index = self.places(to, first, 3, from)?;
        let taken = self.made(Opcode::Gather, 0, None, &[Input::Array(source), Input::Array(index)])?;
        self.recorder.free(index)?;
        self.set_cast(into, taken)
    }

    fn transform(&mut self, into: usize, of: Seen) -> Result<()> {
        let array = self.see(of)?;
        let made = self.empty(into)?;
        let fourier = self.recorder.extension("fft")?;
        self.recorder.call_extension(fourier, &[made], &[Input::Array(array)], Location::UNKNOWN)?;
        self.recorder.free(array)?;
        self.set(into, made)
    }

    fn put(&mut self, into: usize, opcode: Opcode, first: i64, step: i64, of: usize) -> Result<()> {
        let (to, from) = (self.program.variables[into], self.program.variables[of]);
        if self.program.count(to) == 0 {
            return Ok(());
        }
        let target = self.array(into)?;
        let values = self.see(self.whole(of))?;
        let values = self.cast(values, self.program.dtypes[into])?;
        let index = self.places(from, first, step, to)?;
        let mut inputs = vec![Input::Array(values), Input::Array(index)];
        let mut used = vec![values, index];
        if opcode == Opcode::CondScatter {
            let one = Input::Constant(Constant::from_value(1.0).cast(self.program.dtypes[into]));
            let mask = self.made(Opcode::NotEqual, 0, None, &[Input::Array(values), one])?;
            inputs.push(Input::Array(mask));
            used.push(mask);
        }
        self.operate(opcode, 0, target, &inputs)?;
        used.into_iter().try_for_each(|array| self.recorder.free(array))
    }

    /// The extents of a shape in this round.
    pub(super) fn shape(&self, shape: Shape) -> Vec<i64> {
        self.program.shape(shape, self.round)
    }

    pub(super) fn count(&self, shape: Shape) -> i64 {
        self.shape(shape).iter().product()
    }

    /// Lines run along the last axis, and follow each other along the first.
    fn eliminate(&mut self, variable: usize) -> Result<()> {
        let shape = self.shape(self.program.variables[variable]);
        let last = shape.len() - 1;
        let least = shape[0].min(shape[last]);
        if last == 0 || least < 2 {
            return Ok(());
        }
        let array = self.array(variable)?;
        let step = (self.round as i64) % (least - 1);
        let cut = |rows: (i64, i64), columns: (i64, i64)| {
            let window = |view: &View| {
                let rows = view.slice(0, Some(rows.0), Some(rows.1), 1)?;
                rows.slice(last, Some(columns.0), Some(columns.1), 1)
            };
            self.recorder.derive(array, window)
        };
        let (one, below) = ((step, step + 1), (step + 1, shape[0]));
        let (pivot, column) = (cut(one, one)?, cut(below, one)?);
        let (line, rest) = (cut(one, (step, shape[last]))?, cut(below, (step, shape[last]))?);
        let input = Input::Array;
        let factors = self.made(Opcode::Divide, 0, None, &[input(column), input(pivot)])?;
        let multiple = self.made(Opcode::Multiply, 0, None, &[input(factors), input(line)])?;
        self.operate(Opcode::Subtract, 0, rest, &[input(rest), input(multiple)])?;
        [pivot, column, line, rest, factors, multiple].into_iter().try_for_each(|array| self.recorder.free(array))
    }

    pub(super) fn empty(&self, variable: usize) -> Result<ArrayId> {
        let shape = self.shape(self.program.variables[variable]);
        self.recorder.empty(self.program.dtypes[variable], &shape)
    }

    /// Replaces an array by its cast to a type. Complex numbers lose their imaginary part.
    fn cast(&self, array: ArrayId, dtype: DType) -> Result<ArrayId> {
        let own = self.recorder.info(array)?.dtype;
        if own == dtype {
            return Ok(array);
        }
        let cast = if own.is_complex() && !dtype.is_complex() {
            let real = self.made(Opcode::Real, 0, None, &[Input::Array(array)])?;
            self.cast(real, dtype)?
        } else {
            self.made(Opcode::Copy, 0, Some(dtype), &[Input::Array(array)])?
        };
        self.recorder.free(array)?;
        Ok(cast)
    }

    /// Sets a variable to an array of any type.
    fn set_cast(&mut self, variable: usize, array: ArrayId) -> Result<()> {
        let cast = self.cast(array, self.program.dtypes[variable])?;
        self.set(variable, cast)
    }

    pub(super) fn set(&mut self, variable: usize, array: ArrayId) -> Result<()> {
        self.arrays[variable].replace(array).map_or(Ok(()), |old| self.recorder.free(old))
    }

    /// The variable's array, created if it has none.
    pub(super) fn array(&mut self, variable: usize) -> Result<ArrayId> {
        if let Some(array) = self.arrays[variable] {
            return Ok(array);
        }
        let shape = self.shape(self.program.variables[variable]);
        let (array, dtype) = (self.empty(variable)?, self.program.dtypes[variable]);
        if self.program.first == First::Wild {
            self.fill_wildly(variable, array)?;
            self.arrays[variable] = Some(array);
            return Ok(array);
        }
        if self.program.first == First::Random {
            let numbers = self.recorder.empty(DType::F64, &shape)?;
            self.recorder.random(numbers, variable as u64, 0, Location::UNKNOWN)?;
            if !dtype.is_float() {
                let many = Input::Constant(Constant::from_value(100.0));
                self.operate(Opcode::Multiply, 0, numbers, &[Input::Array(numbers), many])?;
            }
            self.operate(Opcode::Copy, 0, array, &[Input::Array(numbers)])?;
            self.recorder.free(numbers)?;
        } else {
            let count = self.recorder.empty(DType::I64, &shape)?;
            self.recorder.range(count, variable as i64, 3, Location::UNKNOWN)?;
            let seven = Input::Constant(Constant::from_value(7i64));
            self.operate(Opcode::Fmod, 0, count, &[Input::Array(count), seven])?;
            self.operate(Opcode::Copy, 0, array, &[Input::Array(count)])?;
            self.recorder.free(count)?;
        }
        let half = Input::Constant(constant(0.5, dtype));
        self.operate(Opcode::Add, 0, array, &[Input::Array(array), half])?;
        self.arrays[variable] = Some(array);
        Ok(array)
    }

    /// All of a variable.
    fn whole(&self, variable: usize) -> Seen {
        let window = super::Window { first: [1; RANK], moves: false, reversed: false, transposed: false };
        Seen { variable, shape: self.program.variables[variable], window }
    }

    /// A variable viewed in a shape, as an array. Broadcast parts stay views.
    pub(super) fn see(&mut self, seen: Seen) -> Result<ArrayId> {
        let Seen { variable, shape, window } = seen;
        let array = self.array(variable)?;
        let (own, extents, round) = (self.program.variables[variable], self.shape(shape), self.round as i64);
        let changes_axes = matches!((own, shape), (Shape::Inside, Shape::Long) | (Shape::Long, Shape::Inside));
        if changes_axes {
            return self.recorder.reshape(array, &extents, Location::UNKNOWN);
        }
        let moved = |dim: usize| {
            let first = i64::from(window.first[dim]) + if window.moves { round } else { 0 };
            first % 3
        };
        let derive = |view: &View| -> std::result::Result<View, ViewError> {
            let mut seen = *view;
            let last = seen.rank().saturating_sub(1);
            match (own, shape) {
                (Shape::Grid, Shape::Inside) => {
                    for (dim, extent) in extents.iter().enumerate() {
                        seen = seen.slice(dim, Some(moved(dim)), Some(moved(dim) + extent), 1)?;
                    }
                }
                (Shape::Grid | Shape::Inside, Shape::Flat(axis)) => {
                    for (dim, &extent) in extents.iter().enumerate() {
                        let most = view.shape()[dim] - 1;
                        let first = match (moved(dim), own) {
                            // The first, second or last element, or that of the round.
                            _ if dim == axis as usize && window.moves => round % (most + 1),
                            (2, _) if dim == axis as usize => most,
                            (first, Shape::Grid) => first.min(most),
                            (first, _) if dim == axis as usize => first.min(most),
                            _ => 0,
                        };
                        seen = seen.slice(dim, Some(first), Some(first + extent), 1)?;
                    }
                }
                (Shape::Grid | Shape::Inside, Shape::Rest(_)) => {
                    for (dim, &extent) in extents.iter().enumerate() {
                        // At the beginning, at the end, or as far from the beginning as the view.
                        let most = view.shape()[dim] - extent;
                        let first = [0, moved(dim).min(most), most][window.first[dim] as usize];
                        seen = seen.slice(dim, Some(first), Some(first + extent), 1)?;
                    }
                }
                (Shape::Inside, Shape::Half(axis)) => {
                    let (dim, first) = (axis as usize, moved(axis as usize) % 2);
                    seen = seen.slice(dim, Some(first), Some(first + 2 * extents[dim]), 2)?;
                }
                (Shape::Inside, Shape::Diagonal) => seen = seen.diagonal(0, 0, 1)?,
                (Shape::Inside, Shape::Line) => {
                    for dim in 0..last {
                        seen = seen.index(0, moved(dim).min(view.shape()[dim] - 1))?;
                    }
                }
                _ if own != shape => seen = seen.broadcast_to(&extents)?,
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

    /// An input of a type, and the array to free after its use.
    fn source(&mut self, operand: Operand, shape: Shape, dtype: DType) -> Result<(Input, Option<ArrayId>)> {
        Ok(match operand {
            Operand::Number(Number::Changes(first, rounds, later)) => {
                let value = if self.round < rounds { first } else { later };
                (Input::Constant(constant(value, dtype)), None)
            }
            Operand::Number(Number::Last) => {
                let first = self.read.iter().rev().find(|(_, bytes)| !bytes.is_empty());
                let value = first.map(|(dtype, bytes)| Constant::from_bytes(*dtype, bytes).to::<f64>());
                (Input::Constant(constant(value.unwrap_or(1.0), dtype)), None)
            }
            Operand::Number(Number::Round) => (Input::Constant(constant(self.round as f64, dtype)), None),
            Operand::Variable(variable, window) => {
                let own = self.program.variables[variable];
                let shape = if self.program.is_window(own, shape) { shape } else { own };
                let array = self.see(Seen { variable, shape, window })?;
                let array = self.cast(array, dtype)?;
                (Input::Array(array), Some(array))
            }
        })
    }

    fn compute(&mut self, target: ArrayId, computation: &Computation, shape: Shape) -> Result<()> {
        let Computation { opcode, param, dtype, ref operands } = *computation;
        let mut inputs = Vec::new();
        let mut arrays = Vec::new();
        for (position, &operand) in operands[..opcode.info().inputs as usize].iter().enumerate() {
            let mask = opcode == Opcode::Where && position == 0;
            let (input, array) = self.source(operand, shape, if mask { DType::Bool } else { dtype })?;
            inputs.push(input);
            arrays.extend(array);
        }
        let wanted = self.recorder.info(target)?.dtype;
        let made = result_type(opcode, dtype, wanted);
        if made == wanted {
            self.operate(opcode, param, target, &inputs)?;
        } else {
            let result = self.made(opcode, param, Some(made), &inputs)?;
            let result = self.cast(result, wanted)?;
            self.operate(Opcode::Copy, 0, target, &[Input::Array(result)])?;
            arrays.push(result);
        }
        arrays.into_iter().try_for_each(|array| self.recorder.free(array))
    }

    fn read(&mut self, seen: Seen) -> Result<()> {
        let dtype = self.program.dtypes[seen.variable];
        let array = self.see(seen)?;
        let mut bytes = vec![0; self.count(seen.shape) as usize * dtype.size()];
        // SAFETY: the buffer has the array's number of elements.
        unsafe { self.recorder.read(array, bytes.as_mut_ptr(), self.user_stride(seen, dtype).as_deref())? };
        self.read.push((dtype, bytes));
        self.recorder.free(array)
    }
}

/// A number of a type; complex ones also have an imaginary part.
fn constant(value: f64, dtype: DType) -> Constant {
    let imaginary = if value.is_finite() { 0.5 * value - 0.25 } else { 0.0 };
    let number = if dtype.is_complex() {
        Constant::from_value(Complex::new(value, imaginary))
    } else {
        Constant::from_value(value)
    };
    number.cast(dtype)
}
