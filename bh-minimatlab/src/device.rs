//! Matrices on the recorder: creation, reading, and recorded operations.

use crate::source::{Fault, Outcome, Source, TextPosition};
use crate::value::{Matrix, Value};
use bh_bytecode::{Constant, DType, Opcode, Truth, View};
use bh_compose::Spacing;
use bh_recorder::{Array, ArrayId, Input, Location, Recorder};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Pending checks, at most; more would keep too many small arrays.
const MOST_CHECKS: usize = 64;

/// The recorder, with the program's current place.
pub struct Device {
    recorder: Arc<Recorder>,
    file: RefCell<String>,
    line: Cell<u32>,
    /// The running statement.
    statement: RefCell<Option<TextPosition>>,
    /// Conditions that must be false when values are read, and the errors otherwise.
    checks: RefCell<Vec<(Array, Fault)>>,
    /// The key of random numbers, and the first unused position.
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
    /// A device on a started recorder.
    pub fn new(recorder: Arc<Recorder>) -> Device {
        let (file, line) = (RefCell::new(String::new()), Cell::new(0));
        let statement = RefCell::default();
        Device { recorder, file, line, statement, checks: RefCell::default(), random: Cell::new((42, 0)) }
    }

    /// The recorder.
    pub fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    /// Sets the statement for the following operations.
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

    /// A matrix with its own memory.
    fn fresh(&self, id: ArrayId, rows: usize, cols: usize, logical: bool) -> Matrix {
        Matrix { array: Rc::new(self.own(id)), base: Rc::new(()), rows, cols, logical, range: false }
    }

    /// Another view of the matrix's memory.
    fn alias(&self, of: &Matrix, id: ArrayId, rows: usize, cols: usize) -> Matrix {
        Matrix { array: Rc::new(self.own(id)), base: of.base.clone(), rows, cols, logical: of.logical, range: false }
    }

    /// A matrix with equal elements.
    pub fn full(&self, value: f64, rows: usize, cols: usize) -> Outcome<Matrix> {
        let shape = shape(rows, cols)?;
        let id = self.with_place(|place| self.recorder.full(Constant::from_value(value), &shape, place))?;
        Ok(self.fresh(id, rows, cols, false))
    }

    /// A logical matrix with equal elements.
    pub fn full_truth(&self, value: bool, rows: usize, cols: usize) -> Outcome<Matrix> {
        let shape = shape(rows, cols)?;
        let id =
            self.with_place(|place| self.recorder.full(Constant::from_value(Truth::from(value)), &shape, place))?;
        Ok(self.fresh(id, rows, cols, true))
    }

    /// A matrix with these elements, in column order.
    pub fn upload(&self, values: &[f64], rows: usize, cols: usize) -> Outcome<Matrix> {
        debug_assert_eq!(values.len(), rows * cols);
        let id = self.recorder.empty(DType::F64, &shape(rows, cols)?)?;
        let matrix = self.fresh(id, rows, cols, false);
        // SAFETY: the slice has the array's number of elements, of its type.
        unsafe { self.recorder.write(id, values.as_ptr().cast(), None)? };
        Ok(matrix)
    }

    fn upload_index(&self, values: &[i64]) -> Outcome<Array> {
        let array = self.own(self.recorder.empty(DType::I64, &[values.len() as i64])?);
        // SAFETY: the slice has the array's number of elements, of its type.
        unsafe { self.recorder.write(array.id(), values.as_ptr().cast(), None)? };
        Ok(array)
    }

    /// All elements, in column order. Evaluates pending checks first.
    pub fn download(&self, matrix: &Matrix) -> Outcome<Vec<f64>> {
        self.look_at_checks()?;
        let doubled = self.double(matrix)?;
        let mut values = vec![0.0f64; matrix.len()];
        // SAFETY: the vector has the array's number of elements, of its type.
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

    /// Evenly spaced numbers as a row, including both limits.
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
            // A separate key, because the composition starts its stream at position 0.
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

    /// Restarts the random numbers with this key.
    pub fn seed(&self, key: u64) {
        self.random.set((key, 0));
    }

    /// An elementwise operation. Booleans become numbers unless the operation takes booleans.
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

    /// A copy with its own memory.
    pub fn copy(&self, matrix: &Matrix) -> Outcome<Matrix> {
        self.convert(matrix, if matrix.logical { DType::Bool } else { DType::F64 })
    }

    /// With numbers as elements.
    pub fn double(&self, matrix: &Matrix) -> Outcome<Matrix> {
        if matrix.logical { self.convert(matrix, DType::F64) } else { Ok(matrix.clone()) }
    }

    /// With booleans as elements: nonzero elements are true.
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

    /// A cumulative sum or product along the first or the second dimension.
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

    /// The elements in column order with another shape.
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

    /// The elements at these positions, in column order from 0.
    pub fn gather(&self, matrix: &Matrix, places: &[i64], rows: usize, cols: usize) -> Outcome<Matrix> {
        let index = self.upload_index(places)?;
        let inputs = [Input::Array(matrix.array.id()), Input::Array(index.id())];
        let id = self.with_place(|place| self.recorder.operate_new(Opcode::Gather, 0, None, &inputs, place))?;
        let flat = self.own(id);
        let shape = shape(rows, cols)?;
        let id = self.with_place(|place| self.recorder.reshape(flat.id(), &shape, place))?;
        Ok(self.fresh(id, rows, cols, matrix.logical))
    }

    /// Overwrites the elements at these positions, with one value for each or one for all.
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

    /// Overwrites a matrix in place.
    pub fn overwrite(&self, into: &Matrix, value: &Value) -> Outcome<()> {
        let input = match value {
            Value::Number(value) => Input::Constant(Constant::from_value(*value)),
            Value::Truth(value) => Input::Constant(Constant::from_value(Truth::from(*value))),
            Value::Matrix(matrix) => Input::Array(matrix.array.id()),
            _ => return Err(Fault::new(format!("a {} cannot be an element", value.kind()))),
        };
        self.with_place(|place| self.recorder.operate(Opcode::Copy, 0, into.array.id(), &[input], place))
    }

    /// A method of the stack with two matrix operands, in memory order, and one result.
    pub fn method(&self, name: &str, a: &Matrix, b: &Matrix, rows: usize, cols: usize) -> Outcome<Matrix> {
        let opcode = self.recorder.extension(name)?;
        let out = self.fresh(self.recorder.empty(DType::F64, &shape(rows, cols)?)?, rows, cols, false);
        let inputs = [Input::Array(a.array.id()), Input::Array(b.array.id())];
        self.with_place(|place| self.recorder.call_extension(opcode, &[out.array.id()], &inputs, place))?;
        Ok(out)
    }

    /// Adds a check: a true element is an error when values are read next.
    pub fn refuse_any(&self, wrong: &Matrix, mut fault: Fault) -> Outcome<()> {
        fault.place = self.statement.borrow().clone();
        let any = self.reduce(Opcode::LogicalOrReduce, &self.truth(wrong)?, true, true)?;
        self.checks.borrow_mut().push((any.array.duplicate()?, fault));
        if self.checks.borrow().len() >= MOST_CHECKS {
            self.look_at_checks()?;
        }
        Ok(())
    }

    /// Evaluates pending checks; fails with the first condition that is true.
    pub fn look_at_checks(&self) -> Outcome<()> {
        for (any, fault) in self.checks.take() {
            if self.recorder.read_scalar(any.id())?.to::<Truth>().get() {
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Waits until all recorded operations have run.
    pub fn wait(&self) -> Outcome<()> {
        self.look_at_checks()?;
        Ok(self.recorder.sync()?)
    }

    /// Drops pending checks after an error.
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
