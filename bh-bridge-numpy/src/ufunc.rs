//! Universal functions: which opcode and which types serve a call is looked up in a table that Python fills as calls
//! come; calls that the table cannot serve go to Python.

use crate::array::Array;
use crate::context::Context;
use crate::error::exception;
use crate::location::with_location;
use crate::operand::{Operand, classify};
use bh_bytecode::{Constant, DType, Opcode, View};
use bh_recorder::{ArrayId, Input, Location};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most inputs of a function that the table serves.
const INPUTS: usize = 2;

/// How calls with operands of these types are recorded.
#[derive(Clone, Copy)]
struct Entry {
    opcode: Opcode,
    /// The type that all inputs are converted to.
    inputs: DType,
    output: DType,
}

/// Bit of an entry that is known; the others are its fields.
const KNOWN: u64 = 1 << 63;

impl Entry {
    fn pack(self) -> u64 {
        KNOWN | u64::from(self.opcode.0) << 16 | (self.inputs as u64) << 8 | self.output as u64
    }

    fn unpack(bits: u64) -> Option<Entry> {
        if bits & KNOWN == 0 {
            return None;
        }
        let inputs = DType::from_code((bits >> 8) as u8)?;
        Some(Entry { opcode: Opcode((bits >> 16) as u16), inputs, output: DType::from_code(bits as u8)? })
    }
}

/// A universal function. The Python class `bh.ufunc` completes it.
#[pyclass(frozen, module = "bh._native", subclass)]
pub struct Ufunc {
    inputs: usize,
    table: Box<[AtomicU64]>,
}

#[pymethods]
impl Ufunc {
    /// A function of so many inputs, without known calls.
    #[new]
    #[pyo3(signature = (inputs, *_arguments, **_keywords))]
    fn new(inputs: usize, _arguments: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Ufunc {
        let size = if inputs <= INPUTS { 1 << (4 * inputs) } else { 0 };
        Ufunc { inputs, table: (0..size).map(|_| AtomicU64::new(0)).collect() }
    }

    /// From now on, calls with operands of these codes convert them to the type `loop_type` and record `opcode`.
    fn _serve(&self, codes: Vec<u8>, opcode: &str, loop_type: u8, output: u8) -> PyResult<()> {
        let wrong = || PyValueError::new_err("no such opcode or type");
        let entry = Entry {
            opcode: Opcode::from_name(opcode).ok_or_else(wrong)?,
            inputs: DType::from_code(loop_type).ok_or_else(wrong)?,
            output: DType::from_code(output).ok_or_else(wrong)?,
        };
        let place = codes.iter().fold(0, |place, &code| place << 4 | usize::from(code & 15));
        self.table.get(place).ok_or_else(wrong)?.store(entry.pack(), Ordering::Relaxed);
        Ok(())
    }

    #[pyo3(signature = (*arguments, **keywords))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if keywords.is_none_or(|keywords| keywords.is_empty()) {
            let this = slf.get();
            let found = match (arguments.len(), this.inputs) {
                (1, 1) => this.call(py, [&arguments.get_item(0)?])?,
                (2, 2) => this.call(py, [&arguments.get_item(0)?, &arguments.get_item(1)?])?,
                _ => None,
            };
            if let Some(result) = found {
                return Ok(Bound::new(py, result)?.into_any());
            }
        }
        slf.call_method("_call", (arguments, keywords), None)
    }
}

/// An input as the recorder takes it; temporaries are freed once they are recorded.
struct Inputs<'a> {
    context: &'a Context,
    all: [Input; INPUTS],
    temporaries: [Option<ArrayId>; INPUTS],
}

impl Drop for Inputs<'_> {
    fn drop(&mut self) {
        for temporary in self.temporaries.into_iter().flatten() {
            self.context.recorder.free_later(temporary);
        }
    }
}

impl Ufunc {
    /// Records a call into a new array. `None` if the call needs Python.
    #[inline]
    pub fn call<'py, const N: usize>(
        &self,
        py: Python<'py>,
        arguments: [&Bound<'py, PyAny>; N],
    ) -> PyResult<Option<Array>> {
        self.prepare(arguments).map(|call| call.record_new(py)).transpose()
    }

    /// Records a call into an array. `false` if the call needs Python.
    pub fn call_into<'py, const N: usize>(
        &self,
        py: Python<'py>,
        arguments: [&Bound<'py, PyAny>; N],
        out: &Array,
    ) -> PyResult<bool> {
        match self.prepare(arguments) {
            Some(call) if call.entry.output == out.dtype && Arc::ptr_eq(&call.context, &out.context) => {
                call.record_into(py, out)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    #[inline]
    fn prepare<'py, const N: usize>(&self, arguments: [&Bound<'py, PyAny>; N]) -> Option<Call<'py, N>> {
        let mut place = 0;
        let mut operands = [const { None }; N];
        for (operand, argument) in operands.iter_mut().zip(arguments) {
            let (code, found) = classify(argument)?;
            place = place << 4 | usize::from(code);
            *operand = Some(found);
        }
        let entry = Entry::unpack(self.table.get(place)?.load(Ordering::Relaxed))?;
        let mut arrays = operands.iter().flatten().filter_map(|operand| match operand {
            Operand::Array(array) => Some(array),
            Operand::Number(_) => None,
        });
        let first = arrays.next()?.borrow();
        let same = arrays.all(|array| Arc::ptr_eq(&array.borrow().context, &first.context));
        let context = Arc::clone(&first.context);
        drop(first);
        let mut numbers = [None; N];
        for (number, operand) in numbers.iter_mut().zip(operands.iter().flatten()) {
            if let Operand::Number(value) = operand {
                *number = Some(value.constant(entry.inputs)?);
            }
        }
        same.then_some(Call { entry, operands, numbers, context })
    }
}

/// A call that the table serves.
struct Call<'py, const N: usize> {
    entry: Entry,
    operands: [Option<Operand<'py>>; N],
    numbers: [Option<Constant>; N],
    context: Arc<Context>,
}

impl<const N: usize> Call<'_, N> {
    /// The inputs, converted, and the shape that they broadcast to.
    fn inputs(&self, py: Python<'_>) -> PyResult<(Inputs<'_>, View)> {
        let nothing = Input::Constant(Constant { bits: [0; 2], dtype: 0, reserved: [0; 7] });
        let mut inputs = Inputs { context: &self.context, all: [nothing; INPUTS], temporaries: [None; INPUTS] };
        let mut shape: Option<View> = None;
        for position in 0..N {
            let array = match (&self.operands[position], self.numbers[position]) {
                (Some(Operand::Array(array)), _) => array.borrow(),
                (_, Some(number)) => {
                    inputs.all[position] = Input::Constant(number);
                    continue;
                }
                _ => continue,
            };
            let mut id = array.id;
            if array.dtype != self.entry.inputs {
                let from = [Input::Array(id)];
                let record = |place: Location<'_>| {
                    let dtype = Some(self.entry.inputs);
                    self.context.recorder.operate_new(Opcode::Copy, 0, dtype, &from, place)
                };
                id = with_location(py, record).map_err(exception)?;
                inputs.temporaries[position] = Some(id);
            }
            inputs.all[position] = Input::Array(id);
            shape = Some(match shape {
                None => array.view,
                Some(other) if other.shape() == array.view.shape() => other,
                Some(other) => broadcast(&other, &array.view)?,
            });
        }
        Ok((inputs, shape.unwrap_or_default()))
    }

    fn record_new(&self, py: Python<'_>) -> PyResult<Array> {
        let (inputs, shape) = self.inputs(py)?;
        let Entry { opcode, output, .. } = self.entry;
        let view = View::contiguous(shape.shape()).map_err(|error| PyValueError::new_err(error.0))?;
        let record =
            |place: Location<'_>| self.context.recorder.operate_new(opcode, 0, Some(output), &inputs.all[..N], place);
        let id = with_location(py, record).map_err(exception)?;
        drop(inputs);
        Ok(Array::result(Arc::clone(&self.context), id, output, view))
    }

    fn record_into(&self, py: Python<'_>, out: &Array) -> PyResult<()> {
        let (inputs, shape) = self.inputs(py)?;
        if shape.shape() != out.view.shape() {
            check_output(&shape, &out.view)?;
        }
        let record =
            |place: Location<'_>| self.context.recorder.operate(self.entry.opcode, 0, out.id, &inputs.all[..N], place);
        with_location(py, record).map_err(exception)
    }
}

/// Shapes as NumPy writes them in this message.
fn shown(view: &View) -> String {
    let extents: Vec<String> = view.shape().iter().map(i64::to_string).collect();
    format!("({}{})", extents.join(","), if view.rank() == 1 { "," } else { "" })
}

/// The shape that two shapes broadcast to, as a view of it.
#[cold]
pub fn broadcast(a: &View, b: &View) -> PyResult<View> {
    let rank = a.rank().max(b.rank());
    let extent = |view: &View, dim: usize| (dim + view.rank()).checked_sub(rank).map_or(1, |own| view.shape()[own]);
    let mut shape = Vec::with_capacity(rank);
    for dim in 0..rank {
        match (extent(a, dim), extent(b, dim)) {
            (x, y) if x == y || y == 1 => shape.push(x),
            (1, y) => shape.push(y),
            _ => {
                let text = format!("operands could not be broadcast together with shapes {} {} ", shown(a), shown(b));
                return Err(PyValueError::new_err(text));
            }
        }
    }
    View::contiguous(&shape).map_err(|error| PyValueError::new_err(error.0))
}

#[cold]
fn check_output(inputs: &View, out: &View) -> PyResult<()> {
    let fits = broadcast(inputs, out).is_ok_and(|both| both.shape() == out.shape());
    if fits {
        return Ok(());
    }
    let text = format!(
        "non-broadcastable output operand with shape {} doesn't match the broadcast shape {}",
        shown(out),
        shown(&broadcast(inputs, out)?)
    );
    Err(PyValueError::new_err(text))
}
