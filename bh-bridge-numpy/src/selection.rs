//! Selection by a mask or an index array, in the usual forms. All other keys are Python's.

use crate::advanced;
use crate::array::Array;
use crate::computed_selection;
use crate::error::{exception, value_error};
use crate::layout::{Order, is_plain};
use crate::location::with_location;
use crate::method::Method;
use crate::operand::{Operand, classify};
use crate::shared_view::contiguous;
use bh_bytecode::{Constant, DType, Opcode, View};
use bh_core::Result;
use bh_core::abi::status;
use bh_recorder::{Input, Known, Location, MOVED};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(select, module)?)
}

/// The kind of an array as a key of another one.
enum Key {
    /// A mask of the array's shape.
    Mask,
    /// Indices of the elements of a vector.
    Indices,
}

fn kind(array: &Array, key: &Array) -> Option<Key> {
    let plain = array.link.is_none() && key.link.is_none() && std::ptr::eq(array.context, key.context);
    if !crate::shortcut::taken() || !plain || key.view.rank() == 0 || key.view.is_empty() {
        return None;
    }
    match key.dtype {
        DType::Bool => (key.view.shape() == array.view.shape()).then_some(Key::Mask),
        dtype => (dtype.is_int() && array.view.rank() == 1 && !array.view.is_empty()).then_some(Key::Indices),
    }
}

/// Fails if computed indices are out of bounds.
fn check(array: &Array, key: &Array) -> PyResult<()> {
    match computed_selection::out_of_bounds(array, key) {
        Some((index, extent)) => {
            let text = format!("index {index} is out of bounds for axis 0 with size {extent}");
            Err(PyIndexError::new_err(text))
        }
        None => Ok(()),
    }
}

/// The elements that an index array, or a mask of some of the dimensions, chooses of computed data.
fn by_indices(array: &Array, key: &Array, object: &Bound<'_, PyAny>) -> Option<Array> {
    if key.dtype == DType::Bool && key.view.rank() == array.view.rank() {
        return None;
    }
    computed_selection::directly(array, key).or_else(|| advanced::get(array, object))
}

/// The elements of a vector that an index array chooses, if both are computed.
pub fn taken(array: &Array, key: &Bound<'_, Array>) -> Option<Array> {
    let fits = array.view.rank() == 1 && key.get().view.rank() > 0 && key.get().dtype.is_int();
    if fits { by_indices(array, key.get(), key.as_any()) } else { None }
}

/// Copies of the elements that a key chooses. `None` if the key needs Python.
pub fn get(py: Python<'_>, array: &Array, key: &Bound<'_, Array>) -> PyResult<Option<Array>> {
    let chosen = key.as_any();
    let key = key.get();
    if !is_plain(&key.view) {
        // The result has the order of the key.
        return Ok(None);
    }
    if let Some(result) = by_indices(array, key, chosen) {
        return Ok(Some(result));
    }
    check(array, key)?;
    match kind(array, key) {
        Some(Key::Mask) => {
            if let Some(result) = stays_chosen(py, array, key)? {
                return Ok(Some(result));
            }
            match computed_selection::compressed(array, key) {
                Some(result) => Ok(Some(result)),
                None => compressed(py, array, key),
            }
        }
        Some(Key::Indices) => gathered(py, array, key).map(Some),
        None => Ok(None),
    }
}

/// Assigns to the elements that a key chooses. False if that needs Python.
pub fn set(py: Python<'_>, array: &Array, key: &Bound<'_, Array>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let chosen = key.get();
    if set_chosen(py, array, chosen, value)? {
        return Ok(true);
    }
    let set = computed_selection::set(array, chosen, value)
        .or_else(|| computed_selection::set_directly(array, chosen, value))
        .or_else(|| advanced::set(array, key.as_any(), value));
    if set.is_some() {
        return Ok(true);
    }
    // Elements that share memory are Python's.
    if !array.view.is_injective() {
        return Ok(false);
    }
    let key = key.get();
    check(array, key)?;
    let (Some(kind), Some((_, value))) = (kind(array, key), classify(value)) else { return Ok(false) };
    let (input, shape) = match &value {
        Operand::Number(number) => match number.assigned(array.dtype) {
            Some(constant) => (Input::Constant(constant), [].as_slice()),
            None => return Ok(false),
        },
        Operand::Array(value) if value.dtype == array.dtype && std::ptr::eq(value.context, array.context) => {
            (Input::Array(value.id()), value.view.shape())
        }
        Operand::Array(_) => return Ok(false),
    };
    match kind {
        Key::Mask if shape.is_empty() => {
            let inputs = [Input::Array(key.id()), input, Input::Array(array.id())];
            let record =
                |place: Location<'_>| array.context.recorder.operate(Opcode::Where, 0, array.id(), &inputs, place);
            with_location(py, record).map_err(exception)?;
            Ok(true)
        }
        Key::Mask => match shape {
            &[count] => scattered_by_mask(py, array, key, (input, count)),
            _ => Ok(false),
        },
        Key::Indices if shape.is_empty() || shape == key.view.shape() => {
            let record = |place: Location<'_>| {
                with_indices(key, place, |indices| {
                    array.context.recorder.operate(Opcode::Scatter, 0, array.id(), &[input, indices], place)
                })
            };
            with_location(py, record).map_err(exception)?;
            Ok(true)
        }
        Key::Indices => Ok(false),
    }
}

/// Calls `f` with indices as whole numbers of 64 bits.
fn with_indices<R>(key: &Array, place: Location<'_>, f: impl FnOnce(Input) -> Result<R>) -> Result<R> {
    if key.dtype == DType::I64 {
        return f(Input::Array(key.id()));
    }
    let recorder = &key.context.recorder;
    let wide = recorder.operate_new(Opcode::Copy, 0, Some(DType::I64), &[Input::Array(key.id())], place)?;
    let result = f(Input::Array(wide));
    recorder.free_later(wide);
    result
}

fn gathered(py: Python<'_>, array: &Array, key: &Array) -> PyResult<Array> {
    let record = |place: Location<'_>| {
        with_indices(key, place, |indices| {
            array.context.recorder.operate_new(Opcode::Gather, 0, None, &[Input::Array(array.id()), indices], place)
        })
    };
    let id = with_location(py, record).map_err(exception)?;
    let view = contiguous(key.view.shape()).map_err(value_error)?;
    Ok(Array::new(array.context, id, array.dtype, view))
}

/// The number of true elements, which is waited for. `None` if no component of the stack counts them.
fn count(py: Python<'_>, mask: &Array) -> PyResult<Option<i64>> {
    let chosen = if mask.here().is_some() { None } else { mask.context.recorder.chosen_count(mask.id()) };
    if let Some(count) = chosen.or_else(|| computed_selection::count(mask)) {
        return Ok(Some(count));
    }
    if mask.len() as u64 <= MOVED * mask.context.little && mask.context.recorder.hand().is_some() {
        // The mask comes to hand once the program has waited for it.
        let first = View::new(mask.view.start(), &[], &[]).map_err(value_error)?;
        crate::transfer::value(py, &mask.seen(first))?;
        if let Some(count) = computed_selection::count(mask) {
            return Ok(Some(count));
        }
    }
    let total = Array::empty(mask.context, DType::I64, &[])?;
    let recorded = with_location(py, |place| {
        mask.context.call(py, Method::CountNonzero, total.id(), &[Input::Array(mask.id())], place)
    })?;
    if !recorded {
        return Ok(None);
    }
    crate::transfer::value(py, &total).map(|value| Some(value.to::<i64>()))
}

/// Elements that a mask chooses of a large array, as a recipe: operations on them may run on the whole array. `None` if they have to be
/// copied.
fn stays_chosen(py: Python<'_>, array: &Array, mask: &Array) -> PyResult<Option<Array>> {
    let context = &array.context;
    if array.len() as u64 * array.dtype.size() as u64 <= context.little {
        return Ok(None);
    }
    let Some(method) = context.methods.opcode(py, &context.recorder, Method::Compress)? else { return Ok(None) };
    let Some(count) = count(py, mask)? else { return Ok(None) };
    let inputs = [mask.id(), array.id()];
    let Some(id) = with_location(py, |place| context.recorder.choose(method, inputs, count, place)) else {
        return Ok(None);
    };
    let view = contiguous(&[count]).map_err(value_error)?;
    Ok(Some(Array::new(context, id, array.dtype, view)))
}

/// Assigns elements that a mask chose to those of an array that the same mask chooses, by a selection over the whole array. False for
/// any other value.
fn set_chosen(py: Python<'_>, array: &Array, mask: &Array, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(value) = value.cast_exact::<Array>().map(Bound::get) else { return Ok(false) };
    let fits = matches!(kind(array, mask), Some(Key::Mask))
        && value.link.is_none()
        && value.here().is_none()
        && value.dtype == array.dtype
        && value.view.rank() == 1
        && std::ptr::eq(value.context, array.context)
        && array.view.is_injective();
    if !fits {
        return Ok(false);
    }
    let [out, mask, value] = [array.id(), mask.id(), value.id()];
    with_location(py, |place| array.context.recorder.assign_chosen(out, mask, value, place)).map_err(exception)
}

fn compressed(py: Python<'_>, array: &Array, mask: &Array) -> PyResult<Option<Array>> {
    let Some(count) = count(py, mask)? else { return Ok(None) };
    let made = Array::empty(array.context, array.dtype, &[count])?;
    let inputs = [Input::Array(mask.id()), Input::Array(array.id())];
    let done =
        count == 0 || with_location(py, |place| array.context.call(py, Method::Compress, made.id(), &inputs, place))?;
    Ok(done.then_some(made))
}

/// Assigns a vector's elements to those of an array that a mask chooses. False if their numbers differ.
fn scattered_by_mask(py: Python<'_>, array: &Array, mask: &Array, (values, given): (Input, i64)) -> PyResult<bool> {
    if count(py, mask)? != Some(given) {
        return Ok(false);
    }
    if given == 0 {
        return Ok(true);
    }
    let (context, places) = (&array.context, Array::empty(array.context, DType::I64, &[given])?);
    with_location(py, |place| {
        if !context.call(py, Method::Flatnonzero, places.id(), &[Input::Array(mask.id())], place)? {
            return Ok(false);
        }
        let inputs = [values, Input::Array(places.id())];
        context.recorder.operate(Opcode::Scatter, 0, array.id(), &inputs, place).map_err(exception)?;
        Ok(true)
    })
}

/// Elements of `x` where a mask is true, else of `y`, of equal types or numbers that fit. None for what Python has to look at.
#[pyfunction]
pub fn select(
    py: Python<'_>,
    mask: &Bound<'_, PyAny>,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
) -> PyResult<Option<Array>> {
    let Ok(mask) = mask.cast_exact::<Array>() else { return Ok(None) };
    let mask = mask.get();
    let (Some((x_code, x)), Some((y_code, y))) = (classify(x), classify(y)) else { return Ok(None) };
    if !crate::shortcut::taken() || mask.dtype != DType::Bool || mask.link.is_some() {
        return Ok(None);
    }
    let dtype = match (&x, &y) {
        (Operand::Array(x), Operand::Array(y)) if x.dtype == y.dtype => x.dtype,
        // Numbers of Python give way to the array's type, where that holds them.
        (Operand::Array(x), Operand::Number(_)) if gives_way(y_code, x.dtype) => x.dtype,
        (Operand::Number(_), Operand::Array(y)) if gives_way(x_code, y.dtype) => y.dtype,
        (Operand::Number(_), Operand::Number(_)) => match common_type(x_code, y_code) {
            Some(dtype) => dtype,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Some(order) = Order::of(&[Some(mask), x.array(), y.array()]) else {
        return select_plain(py, mask, [&x, &y], dtype);
    };
    let turn = |operand: &Operand<'_>| operand.array().map(|array| order.turned(array)).transpose();
    let turned = [turn(&x)?, turn(&y)?];
    let [x, y] = [(&turned[0], x), (&turned[1], y)].map(|(turned, own)| turned.as_ref().map_or(own, Operand::Array));
    let selected = select_plain(py, &order.turned(mask)?, [&x, &y], dtype)?;
    selected.map(|selected| order.back(selected)).transpose()
}

/// As [`select`], of operands whose dimensions lie in memory as in C.
fn select_plain(py: Python<'_>, mask: &Array, [x, y]: [&Operand<'_>; 2], dtype: DType) -> PyResult<Option<Array>> {
    let input = |operand: &Operand<'_>| match operand {
        Operand::Array(array) => std::ptr::eq(array.context, mask.context).then_some(Input::Array(array.id())),
        Operand::Number(number) => number.assigned(dtype).map(Input::Constant),
    };
    if let Some(made) = select_at_hand(mask, [x, y], dtype) {
        return Ok(Some(made));
    }
    if x.array().or(y.array()).is_none() {
        return Ok(None);
    }
    let (Some(first), Some(second)) = (input(x), input(y)) else { return Ok(None) };
    let inputs = [Input::Array(mask.id()), first, second];
    let recorder = &mask.context.recorder;
    let made = with_location(py, |place| recorder.operate_described(Opcode::Where, 0, None, &inputs, place));
    let (id, info) = match made {
        Ok(made) => made,
        // For Python to tell.
        Err(error) if error.status == status::SHAPE => return Ok(None),
        Err(error) => return Err(exception(error)),
    };
    // Also without dimensions it is no scalar, as in NumPy.
    Ok(Some(Array::new(mask.context, id, info.dtype, info.view)))
}

/// As [`select`], of little computed data, where the mask has the shape of the result.
fn select_at_hand(mask: &Array, values: [&Operand<'_>; 2], dtype: DType) -> Option<Array> {
    let none = Constant { bits: [0; 2], dtype: 0, reserved: [0; 7] };
    let mut numbers = [none; 2];
    for (constant, value) in numbers.iter_mut().zip(values) {
        if let Operand::Number(number) = value {
            *constant = number.assigned(dtype)?;
        }
    }
    let mut inputs = [Known::Part(mask.store(), &mask.view); 3];
    for (input, (value, number)) in inputs[1..].iter_mut().zip(values.into_iter().zip(&numbers)) {
        *input = match value {
            Operand::Array(array)
                if array.view.shape() == mask.view.shape() && std::ptr::eq(array.context, mask.context) =>
            {
                Known::Part(array.store(), &array.view)
            }
            Operand::Array(_) => return None,
            Operand::Number(_) => Known::Number(number),
        };
    }
    if mask.len() as u64 * dtype.size() as u64 > mask.context.little {
        return None;
    }
    let id = mask.context.recorder.make_at_hand(Opcode::Where, dtype, &inputs, mask.view.shape())?;
    let view = contiguous(mask.view.shape()).ok()?;
    Some(Array::new(mask.context, id, dtype, view))
}

/// The type of a choice between two numbers with these codes.
fn common_type(x: u8, y: u8) -> Option<DType> {
    use crate::operand::code::{FLOAT, INT};
    match (x, y) {
        (INT, INT) => Some(DType::I64),
        (FLOAT | INT, FLOAT | INT) => Some(DType::F64),
        _ => DType::from_code(x).filter(|_| x == y),
    }
}

/// Does a number of this code take an array's type?
fn gives_way(code: u8, dtype: DType) -> bool {
    use crate::operand::code::{COMPLEX, FLOAT, INT};
    code == dtype as u8
        || code == INT && dtype != DType::Bool
        || code == FLOAT && (dtype.is_float() || dtype.is_complex())
        || code == COMPLEX && dtype.is_complex()
}
