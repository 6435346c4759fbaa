//! Matrices on the recorder: making, reading, and recording operations.

use crate::source::{Fault, Outcome, Source, TextPosition};
use crate::value::{Matrix, Value};
use bh_bytecode::{Constant, DType, Opcode, Truth, View};
use bh_compose::Spacing;
use bh_recorder::{Array, ArrayId, Input, Location, Recorder};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Conditions that are looked at together; more would keep too many small arrays.
const MOST_CHECKS: usize = 64;

/// The recorder, with the place in the program that operations are recorded for.
pub struct Device {
    recorder: Arc<Recorder>,
    file: RefCell<String>,
    line: Cell<u32>,
    /// The statement that runs.
    statement: RefCell<Option<TextPosition>>,
    /// Truth values that must be false when somebody looks at values, and what is wrong otherwise.
    checks: RefCell<Vec<(Array, Fault)>>,
    /// Key of random numbers, and the first one that was not used.
    random: Cell<(u64, i64)>,
}

/// An elementwise operand.
pub enum Item<'a> {
    /// A number.
    Number(f64),
    /// A truth value.
    Truth(bool),
    /// A matrix.
    Matrix(&'a Matrix),
}

impl Device {
    /// On a recorder that is started.
    pub fn new(recorder: Arc<Recorder>) -> Device {
        let (file, line) = (RefCell::new(String::new()), Cell::new(0));
        let statement = RefCell::default();
        Device { recorder, file, line, statement, checks: RefCell::default(), random: Cell::new((42, 0)) }
    }

    /// The recorder.
    pub fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    /// The statement that the following operations are recorded for.
    pub fn set_place(&self, source: &Rc<Source>, offset: usize) {
        let place = TextPosition { source: source.clone(), offset };
        self.line.set(source.text[..offset].bytes().filter(|byte| *byte == b'\n').count() as u32 + 1);
        if *self.file.borrow() != source.name {
            source.name.clone_into(&mut self.file.borrow_mut());
        }
        *self.statement.borrow_mut() = Some(place);
    }

    fn with_place<T>(&self, call: impl FnOnce(Location<'_>) -> bh_core::Result<T>) -> Outcome<T> {
        Ok(call(Location { file: self.file.borrow().as_bytes(), line: self.line.get() })?)
    }

    fn own(&self, id: ArrayId) -> Array {
        Array::new(self.recorder.clone(), id)
    }

    /// A matrix with memory of its own.
    fn fresh(&self, id: ArrayId, rows: usize, cols: usize, logical: bool) -> Matrix {
        Matrix { array: Rc::new(self.own(id)), base: Rc::new(()), rows, cols, logical, range: false }
    }

    /// Another view on the matrix's memory.
    fn alias(&self, of: &Matrix, id: ArrayId, rows: usize, cols: usize) -> Matrix {
        Matrix { array: Rc::new(self.own(id)), base: of.base.clone(), rows, cols, logical: of.logical, range: false }
    }

    /// A matrix with all elements equal.
    pub fn full(&self, value: f64, rows: usize, cols: usize) -> Outcome<Matrix> {
        let shape = shape(rows, cols)?;
        let id = self.with_place(|place| self.recorder.full(Constant::from_value(value), &shape, place))?;
        Ok(self.fresh(id, rows, cols, false))
    }

    /// A logical matrix with all elements equal.
    pub fn full_truth(&self, value: bool, rows: usize, cols: usize) -> Outcome<Matrix> {
        let shape = shape(rows, cols)?;
        let id =
            self.with_place(|place| self.recorder.full(Constant::from_value(Truth::from(value)), &shape, place))?;
        Ok(self.fresh(id, rows, cols, true))
    }

    /// A matrix of these elements, column by column.
    pub fn upload(&self, values: &[f64], rows: usize, cols: usize) -> Outcome<Matrix> {
        debug_assert_eq!(values.len(), rows * cols);
        let id = self.recorder.empty(DType::F64, &shape(rows, cols)?)?;
        let matrix = self.fresh(id, rows, cols, false);
        // SAFETY: the slice has as many elements as the array.
        unsafe { self.recorder.write(id, values.as_ptr().cast(), None)? };
        Ok(matrix)
    }

    fn upload_index(&self, values: &[i64]) -> Outcome<Array> {
        let array = self.own(self.recorder.empty(DType::I64, &[values.len() as i64])?);
        // SAFETY: the slice has as many elements as the array.
        unsafe { self.recorder.write(array.id(), values.as_ptr().cast(), None)? };
        Ok(array)
    }

    /// All elements, column by column. Looks at conditions first.
    pub fn download(&self, matrix: &Matrix) -> Outcome<Vec<f64>> {
        self.look_at_checks()?;
        let doubled = self.double(matrix)?;
        let mut values = vec![0.0f64; matrix.len()];
        // SAFETY: the vector has as many elements as the array, of its type.
        unsafe { self.recorder.read(doubled.array.id(), values.as_mut_ptr().cast(), None)? };
        Ok(values)
    }

    /// `first + i·step` as a row.
    pub fn range(&self, first: f64, step: f64, count: usize) -> Outcome<Matrix> {
        let shape = shape(1, count)?;
        let whole = |value: f64| value.fract() == 0.0 && value.abs() < 9e15;
        if whole(first) && whole(step) {
            let matrix = self.fresh(self.recorder.empty(DType::F64, &shape)?, 1, count, false);
            self.with_place(|place| self.recorder.range(matrix.array.id(), first as i64, step as i64, place))?;
            return Ok(matrix);
        }
        let made =
            self.with_place(|place| bh_compose::steps(&self.recorder, DType::F64, &shape, (first, step), place))?;
        Ok(Matrix { range: true, ..self.fresh(made, 1, count, false) })
    }

    /// Numbers at equal distances, both limits included, as a row.
    pub fn linspace(&self, low: f64, high: f64, count: usize) -> Outcome<Matrix> {
        let shape = shape(1, count)?;
        let spacing = Spacing { start: low, stop: high, count: count as i64, endpoint: true };
        let made = self.with_place(|place| bh_compose::linspace(&self.recorder, DType::F64, &shape, spacing, place))?;
        Ok(self.fresh(made, 1, count, false))
    }

    /// Uniform numbers in [0, 1), or normal ones.
    pub fn random(&self, rows: usize, cols: usize, normal: bool) -> Outcome<Matrix> {
        let shape = shape(rows, cols)?;
        let (key, first) = self.random.get();
        if normal {
            // A key of its own, as the composition starts its stream at the first number.
            let own = key ^ (first as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995;
            self.random.set((key, first + 1));
            let id = self.with_place(|place| bh_compose::normal(&self.recorder, DType::F64, &shape, own, place))?;
            return Ok(self.fresh(id, rows, cols, false));
        }
        self.random.set((key, first + (rows * cols) as i64));
        let matrix = self.fresh(self.recorder.empty(DType::F64, &shape)?, rows, cols, false);
        self.with_place(|place| self.recorder.random(matrix.array.id(), key, first, place))?;
        Ok(matrix)
    }

    /// Starts the random numbers of this key.
    pub fn seed(&self, key: u64) {
        self.random.set((key, 0));
    }

    /// An elementwise operation; truth values become numbers unless the operation is on them.
    pub fn apply(&self, opcode: Opcode, items: &[Item<'_>]) -> Outcome<Matrix> {
        let on_truth =
            matches!(opcode, Opcode::LogicalAnd | Opcode::LogicalOr | Opcode::LogicalNot | Opcode::LogicalXor);
        let (mut rows, mut cols) = (1, 1);
        let mut kept = Vec::new();
        for (number, item) in items.iter().enumerate() {
            let wants_truth = on_truth || opcode == Opcode::Where && number == 0;
            let Item::Matrix(matrix) = item else { continue };
            (rows, cols) = (stretched(rows, matrix.rows)?, stretched(cols, matrix.cols)?);
            kept.push(if wants_truth { self.truth(matrix)? } else { self.double(matrix)? });
        }
        let mut matrices = kept.iter();
        let inputs: Vec<Input> = items
            .iter()
            .map(|item| match item {
                Item::Number(value) => Input::Constant(Constant::from_value(*value)),
                Item::Truth(value) => Input::Constant(Constant::from_value(Truth::from(*value))),
                Item::Matrix(_) => Input::Array(matrices.next().map_or(ArrayId(0), |matrix| matrix.array.id())),
            })
            .collect();
        let (id, info) = self.with_place(|place| self.recorder.operate_described(opcode, 0, None, &inputs, place))?;
        Ok(self.fresh(id, rows, cols, info.dtype == DType::Bool))
    }

    fn convert(&self, matrix: &Matrix, dtype: DType) -> Outcome<Matrix> {
        let input = [Input::Array(matrix.array.id())];
        let id = self.with_place(|place| self.recorder.operate_new(Opcode::Copy, 0, Some(dtype), &input, place))?;
        Ok(self.fresh(id, matrix.rows, matrix.cols, dtype == DType::Bool))
    }

    /// A copy with memory of its own.
    pub fn copy(&self, matrix: &Matrix) -> Outcome<Matrix> {
        self.convert(matrix, if matrix.logical { DType::Bool } else { DType::F64 })
    }

    /// With numbers as elements.
    pub fn double(&self, matrix: &Matrix) -> Outcome<Matrix> {
        if matrix.logical { self.convert(matrix, DType::F64) } else { Ok(matrix.clone()) }
    }

    /// With truth values as elements: what is not 0 is true.
    pub fn truth(&self, matrix: &Matrix) -> Outcome<Matrix> {
        if matrix.logical { Ok(matrix.clone()) } else { self.convert(matrix, DType::Bool) }
    }

    /// A reduction: over rows (along the first dimension), over columns, or over both.
    pub fn reduce(&self, opcode: Opcode, matrix: &Matrix, over_rows: bool, over_cols: bool) -> Outcome<Matrix> {
        let axes = u16::from(over_cols) | u16::from(over_rows) << 1;
        let input = [Input::Array(matrix.array.id())];
        let id = self.with_place(|place| self.recorder.operate_new(opcode, axes, None, &input, place))?;
        let reduced = self.own(id);
        let rows = if over_rows { 1 } else { matrix.rows };
        let cols = if over_cols { 1 } else { matrix.cols };
        let shape = shape(rows, cols)?;
        let id = self.with_place(|place| self.recorder.reshape(reduced.id(), &shape, place))?;
        Ok(self.fresh(id, rows, cols, matrix.logical))
    }

    /// A running sum or product along the first dimension, or along the second.
    pub fn accumulate(&self, opcode: Opcode, matrix: &Matrix, along_rows: bool) -> Outcome<Matrix> {
        let input = [Input::Array(matrix.array.id())];
        let axis = if along_rows { 2 } else { 1 };
        let id = self.with_place(|place| self.recorder.operate_new(opcode, axis, None, &input, place))?;
        Ok(self.fresh(id, matrix.rows, matrix.cols, false))
    }

    /// The transpose, as a view.
    pub fn transpose(&self, matrix: &Matrix) -> Outcome<Matrix> {
        let id = self.recorder.derive(matrix.array.id(), |view| view.transpose(&[1, 0]))?;
        Ok(self.alias(matrix, id, matrix.cols, matrix.rows))
    }

    /// The elements column by column under another shape.
    pub fn reshape(&self, matrix: &Matrix, rows: usize, cols: usize) -> Outcome<Matrix> {
        let shape = shape(rows, cols)?;
        let id = self.with_place(|place| self.recorder.reshape(matrix.array.id(), &shape, place))?;
        Ok(self.alias(matrix, id, rows, cols))
    }

    /// A window: first, step and count of rows, and of columns.
    pub fn window(&self, matrix: &Matrix, rows: (i64, i64, usize), cols: (i64, i64, usize)) -> Outcome<Matrix> {
        let id = self.recorder.derive(matrix.array.id(), |view| {
            let stride = view.stride();
            let empty = rows.2 == 0 || cols.2 == 0;
            let start = if empty { 0 } else { view.start() + cols.0 * stride[0] + rows.0 * stride[1] };
            View::new(start, &[cols.2 as i64, rows.2 as i64], &[cols.1 * stride[0], rows.1 * stride[1]])
        })?;
        Ok(self.alias(matrix, id, rows.2, cols.2))
    }

    /// The elements at these places, counted column by column from 0.
    pub fn gather(&self, matrix: &Matrix, places: &[i64], rows: usize, cols: usize) -> Outcome<Matrix> {
        let index = self.upload_index(places)?;
        let inputs = [Input::Array(matrix.array.id()), Input::Array(index.id())];
        let id = self.with_place(|place| self.recorder.operate_new(Opcode::Gather, 0, None, &inputs, place))?;
        let flat = self.own(id);
        let shape = shape(rows, cols)?;
        let id = self.with_place(|place| self.recorder.reshape(flat.id(), &shape, place))?;
        Ok(self.fresh(id, rows, cols, matrix.logical))
    }

    /// Overwrites the elements at these places, with one for each or one for all.
    pub fn scatter(&self, into: &Matrix, places: &[i64], value: &Matrix) -> Outcome<()> {
        let index = self.upload_index(places)?;
        let count = places.len();
        let spread = if value.len() == count { value.clone() } else { self.window(value, (0, 0, count), (0, 1, 1))? };
        let flat = self.reshape(&spread, count, 1)?;
        let line = self.with_place(|place| self.recorder.reshape(flat.array.id(), &[count as i64], place))?;
        let line = self.own(line);
        let inputs = [Input::Array(line.id()), Input::Array(index.id())];
        self.with_place(|place| self.recorder.operate(Opcode::Scatter, 0, into.array.id(), &inputs, place))
    }

    /// Overwrites a matrix that may be overwritten.
    pub fn overwrite(&self, into: &Matrix, value: &Value) -> Outcome<()> {
        let input = match value {
            Value::Number(value) => Input::Constant(Constant::from_value(*value)),
            Value::Truth(value) => Input::Constant(Constant::from_value(Truth::from(*value))),
            Value::Matrix(matrix) => Input::Array(matrix.array.id()),
            _ => return Err(Fault::new(format!("a {} cannot be an element", value.kind()))),
        };
        self.with_place(|place| self.recorder.operate(Opcode::Copy, 0, into.array.id(), &[input], place))
    }

    /// A method of the stack with two matrices in, in memory order, and one out.
    pub fn method(&self, name: &str, a: &Matrix, b: &Matrix, rows: usize, cols: usize) -> Outcome<Matrix> {
        let opcode = self.recorder.extension(name)?;
        let out = self.fresh(self.recorder.empty(DType::F64, &shape(rows, cols)?)?, rows, cols, false);
        let inputs = [Input::Array(a.array.id()), Input::Array(b.array.id())];
        self.with_place(|place| self.recorder.call_extension(opcode, &[out.array.id()], &inputs, place))?;
        Ok(out)
    }

    /// Any of these truth values is an error, which is found when values are looked at next.
    pub fn refuse_any(&self, wrong: &Matrix, mut fault: Fault) -> Outcome<()> {
        fault.place = self.statement.borrow().clone();
        let any = self.reduce(Opcode::LogicalOrReduce, &self.truth(wrong)?, true, true)?;
        self.checks.borrow_mut().push((any.array.duplicate()?, fault));
        if self.checks.borrow().len() >= MOST_CHECKS {
            self.look_at_checks()?;
        }
        Ok(())
    }

    /// Fails with the first condition that is true.
    pub fn look_at_checks(&self) -> Outcome<()> {
        for (any, fault) in self.checks.take() {
            if self.recorder.read_scalar(any.id())?.to::<Truth>().get() {
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Waits until all that was recorded is done.
    pub fn wait(&self) -> Outcome<()> {
        self.look_at_checks()?;
        Ok(self.recorder.sync()?)
    }

    /// Forgets the conditions, after an error.
    pub fn forget_checks(&self) {
        self.checks.take();
    }
}

fn shape(rows: usize, cols: usize) -> Outcome<[i64; 2]> {
    match (i64::try_from(rows), i64::try_from(cols)) {
        (Ok(rows), Ok(cols)) if rows.checked_mul(cols).is_some_and(|len| len < 1 << 48) => Ok([cols, rows]),
        _ => Err(Fault::new("out of memory or dimension too large")),
    }
}

fn stretched(a: usize, b: usize) -> Outcome<usize> {
    match (a, b) {
        (1, other) | (other, 1) => Ok(other),
        _ if a == b => Ok(a),
        _ => Err(Fault::new(format!("nonconformant sizes {a} and {b}"))),
    }
}
