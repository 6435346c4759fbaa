//! Fourier transforms by the stack's methods, one dimension after the other. Little arrays whose data has been computed are
//! transformed at once.

use crate::array::{Array, derive};
use crate::call::{Call, Served};
use crate::create::{ordered, with_all};
use crate::error::{exception, value_error};
use crate::layout::{axes_in_memory, is_plain};
use crate::location::with_location;
use crate::method::Method;
use crate::record::cast_in_order;
use crate::sequence::{dimension, whole, wholes};
use crate::shared_view::contiguous;
use crate::text::intern;
use crate::warning;
use bh_bytecode::{Constant, DType, Opcode};
use bh_recorder::{Input, Made};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(transform, module)?)
}

type Lines<'py> = Bound<'py, Array>;
type Any<'py> = Bound<'py, PyAny>;

/// Where the factor of the two directions is.
#[derive(Clone, Copy, PartialEq)]
enum Norm {
    Backward,
    Ortho,
    Forward,
}

impl Norm {
    fn of(given: Option<&Any<'_>>) -> Option<Norm> {
        let Some(given) = given.filter(|given| !given.is_none()) else { return Some(Norm::Backward) };
        match given.cast::<PyString>().ok()?.to_string_lossy().as_ref() {
            "backward" => Some(Norm::Backward),
            "ortho" => Some(Norm::Ortho),
            "forward" => Some(Norm::Forward),
            _ => None,
        }
    }

    /// By which results of lines of `size` numbers are multiplied, if at all; the stack's inverse has the factor 1/n.
    fn factor(self, method: Method, size: i64) -> Option<f64> {
        let (forward, size) = (matches!(method, Method::Fft | Method::Rfft), size as f64);
        match self {
            Norm::Backward => None,
            Norm::Ortho => Some(size.powf(if forward { -0.5 } else { 0.5 })),
            Norm::Forward => Some(if forward { 1.0 / size } else { size }),
        }
    }
}

/// The type whose transform a method makes of an array.
fn operand_type(method: Method, dtype: DType) -> DType {
    match (method, dtype) {
        (Method::Rfft, DType::F32) => DType::F32,
        (Method::Rfft, _) => DType::F64,
        (_, DType::F32 | DType::C64) => DType::C64,
        _ => DType::C128,
    }
}

/// The array in the type that a method takes, with `size` elements along a dimension: the first ones, and zeros behind them.
fn operand<'py>(array: &Lines<'py>, method: Method, size: i64, axis: usize) -> PyResult<Lines<'py>> {
    let (py, extent) = (array.py(), array.get().view.shape()[axis]);
    let mut array = array.clone();
    if size < extent {
        let first = array.get().view.slice(axis, Some(0), Some(size), 1).map_err(value_error)?;
        array = Bound::new(py, derive(&array, first)?)?;
    }
    let dtype = operand_type(method, array.get().dtype);
    if array.get().dtype != dtype {
        array = Bound::new(py, cast_in_order(py, &array, dtype as u8)?)?;
    }
    if size <= extent {
        return Ok(array);
    }
    let from = array.get();
    let mut shape = from.view.shape().to_vec();
    shape[axis] = size;
    let zero = Constant::from_value(0u8).cast(dtype);
    let padded = with_all(py, Array::empty(from.context, dtype, &shape)?, zero)?;
    let first = padded.seen(padded.view.slice(axis, Some(0), Some(extent), 1).map_err(value_error)?);
    let (id, input) = (first.id(), [Input::Array(from.current(py)?)]);
    let recorder = &from.context.recorder;
    with_location(py, |place| recorder.operate(Opcode::Copy, 0, id, &input, place)).map_err(exception)?;
    drop(first);
    Bound::new(py, padded)
}

/// The dimensions of an array of this rank with one of them in the last place.
fn with_last(axis: usize, rank: usize) -> Vec<usize> {
    (0..rank).filter(|&other| other != axis).chain([axis]).collect()
}

/// The transform along a dimension of lines of `size` numbers, of which a line of the result has as many or, beside real numbers,
/// half. `None` if no component of the stack transforms.
fn along<'py>(array: &Lines<'py>, method: Method, size: i64, axis: usize, norm: Norm) -> PyResult<Option<Lines<'py>>> {
    let (py, this) = (array.py(), array.get());
    let (read, made_extent) = match method {
        Method::Irfft => (size / 2 + 1, size),
        Method::Rfft => (size, size / 2 + 1),
        _ => (size, size),
    };
    let (context, rank) = (this.context, this.view.rank());
    let last = with_last(axis, rank);
    let given = operand(array, method, read, axis)?;
    let from = given.get();
    let dtype = match (method, from.dtype) {
        (Method::Irfft, dtype) => dtype.real_part(),
        (_, DType::F32 | DType::C64) => DType::C64,
        _ => DType::C128,
    };
    let mut shape = this.view.shape().to_vec();
    shape[axis] = made_extent;
    // Lines that several ranks have stay where they are transformed; others have the operand's order in memory.
    let order = if context.ranks(py)? > 1 { Some(last.clone()) } else { axes_in_memory(&this.view) };
    let result = ordered(context, dtype, &shape, order.as_deref())?;
    if !result.view.is_empty() {
        let lines = from.seen(from.view.transpose(&last).map_err(value_error)?);
        let made = result.seen(result.view.transpose(&last).map_err(value_error)?);
        let (id, input) = (made.id(), [Input::Array(if axis + 1 == rank { from } else { &lines }.current(py)?)]);
        if !with_location(py, |place| context.call(py, method, id, &input, place))? {
            return Ok(None);
        }
    }
    let result = Bound::new(py, result)?;
    match norm.factor(method, size) {
        None => Ok(Some(result)),
        Some(factor) => Ok(Some(result.as_any().mul(factor)?.cast_into()?)),
    }
}

/// The transform by a method along a dimension, of lines cut or filled to `size` numbers. `None` if no component of the stack
/// transforms.
#[pyfunction]
fn transform<'py>(
    array: &Lines<'py>,
    method: &str,
    size: i64,
    axis: usize,
    norm: Option<&Any<'py>>,
) -> PyResult<Option<Lines<'py>>> {
    let method = Method::named(method).ok_or_else(|| PyValueError::new_err(format!("no method '{method}'")))?;
    let norm = Norm::of(norm).ok_or_else(|| PyValueError::new_err("no such norm"))?;
    if axis >= array.get().view.rank() || size < 1 {
        return Err(PyTypeError::new_err("the array has no such lines"));
    }
    along(array, method, size, axis, norm)
}

/// The transform of a little array along its last dimension, at once. `None` for others.
fn at_once<'py>(array: &Lines<'py>, method: Method) -> PyResult<Option<Lines<'py>>> {
    let (py, this) = (array.py(), array.get());
    let dtype = match this.dtype {
        DType::F32 | DType::C64 => DType::C64,
        DType::F64 | DType::C128 => DType::C128,
        _ => return Ok(None),
    };
    let (view, recorder) = (&this.view, &this.context.recorder);
    let is_little = this.len() as u64 * dtype.size() as u64 <= this.context.little;
    let fits = is_little && view.rank() > 0 && !view.is_empty() && is_plain(view) && !this.is_scalar();
    if !fits || method == Method::Irfft || method == Method::Rfft && !this.dtype.is_float() || this.here().is_none() {
        return Ok(None);
    }
    let Some(opcode) = this.context.methods.opcode(py, recorder, method)? else { return Ok(None) };
    // Looked up only now: the first question for a number lets go of the interpreter's lock.
    let Some(here) = this.here() else { return Ok(None) };
    let mut shape = view.shape().to_vec();
    if let (Method::Rfft, Some(extent)) = (method, shape.last_mut()) {
        *extent = *extent / 2 + 1;
    }
    let Some(made) = recorder.method_here(opcode, (here, view), dtype, &shape) else { return Ok(None) };
    let view = contiguous(&shape).map_err(value_error)?;
    Bound::new(py, Array::new(this.context, Made::Here(made), dtype, view)).map(Some)
}

/// A step of a transform: its method, the numbers of a line, and the dimension of the lines.
type Step = (Method, i64, usize);

/// Carries out steps, after each of which comes the next one's operand. `None` for calls that Python serves from the beginning; steps that were
/// recorded by then are forgotten with their results.
fn transformed<'py>(array: &Any<'py>, steps: &[Step], norm: Norm) -> Served<'py> {
    let Ok(array) = array.cast_exact::<Array>() else { return Ok(None) };
    let (py, this) = (array.py(), array.get());
    let real = steps.iter().any(|step| step.0 == Method::Rfft);
    if steps.is_empty() || this.is_scalar() || real && this.dtype.is_complex() || warning::errors_asked() {
        return Ok(None);
    }
    let mut made = array.clone();
    for &(method, size, axis) in steps {
        let (extent, rank) = (made.get().view.shape()[axis], made.get().view.rank());
        let is_plain = size == extent && axis + 1 == rank && norm == Norm::Backward;
        let next = if is_plain { at_once(&made, method)? } else { None };
        // Python shares lines among ranks.
        let is_shared = next.is_none() && this.context.ranks(py)? > 1;
        let next = if next.is_some() || is_shared { next } else { along(&made, method, size, axis, norm)? };
        let Some(next) = next else { return Ok(None) };
        made = next;
    }
    Ok(Some(made.into_any()))
}

/// Serves a transform along one dimension.
fn of_lines<'py>(call: &Call<'_, 'py>, method: Method) -> Served<'py> {
    let py = call.py();
    let plan = || {
        let Some(([array], [size, axis, norm])) =
            call.options(1, [intern!(py, "n"), intern!(py, "axis"), intern!(py, "norm")])
        else {
            return None;
        };
        let array = array.bind(py);
        let shape = array.cast_exact::<Array>().ok()?.get().view.shape();
        let axis = dimension(axis.map_or(Some(-1), whole)?, shape.len())?;
        let usual = if method == Method::Irfft { 2 * (shape[axis] - 1) } else { shape[axis] };
        let size = size.filter(|size| !size.is_none()).map_or(Some(usual), whole)?;
        (size > 0).then_some((array, (method, size, axis), Norm::of(norm)?))
    };
    plan().map_or(Ok(None), |(array, step, norm)| transformed(array, &[step], norm))
}

/// Serves a transform along several dimensions, by default `usual` ones or all: the last step by one method, the first one by
/// another one.
fn of_several<'py>(call: &Call<'_, 'py>, [first, others, last]: [Method; 3], usual: Option<[i64; 2]>) -> Served<'py> {
    let py = call.py();
    let plan = || {
        let Some(([array], [sizes, axes, norm])) =
            call.options(1, [intern!(py, "s"), intern!(py, "axes"), intern!(py, "norm")])
        else {
            return None;
        };
        let array = array.bind(py);
        let shape = array.cast_exact::<Array>().ok()?.get().view.shape();
        let axes = match (axes, usual) {
            (None, Some(usual)) => usual.to_vec(),
            (Some(axes), _) if !axes.is_none() => wholes(axes)?,
            // Sizes without axes are Python's to warn of.
            _ if sizes.is_some_and(|sizes| !sizes.is_none()) => return None,
            _ => (0..shape.len() as i64).collect(),
        };
        let axes = axes.into_iter().map(|axis| dimension(axis, shape.len())).collect::<Option<Vec<usize>>>()?;
        let given = sizes.filter(|sizes| !sizes.is_none());
        let mut sizes: Vec<i64> = axes.iter().map(|&axis| shape[axis]).collect();
        if let Some(given) = given {
            let given = wholes(given).filter(|given| given.len() == sizes.len())?;
            sizes.iter_mut().zip(given).filter(|(_, given)| *given != -1).for_each(|(size, given)| *size = given);
        } else if let (Method::Irfft, Some(size)) = (last, sizes.last_mut()) {
            *size = 2 * (*size - 1);
        }
        // The transform to real numbers goes along the last dimension at the end; all others begin there.
        let mut steps: Vec<Step> = axes.iter().zip(&sizes).map(|(&axis, &size)| (others, size, axis)).collect();
        if last == Method::Irfft {
            steps.last_mut()?.0 = last;
        } else {
            steps.reverse();
            steps.first_mut()?.0 = first;
        }
        sizes.iter().all(|&size| size > 0).then_some((array, steps, Norm::of(norm)?))
    };
    plan().map_or(Ok(None), |(array, steps, norm)| transformed(array, &steps, norm))
}

const PLANE: Option<[i64; 2]> = Some([-2, -1]);

/// A function that serves calls by methods along one dimension, or along several ones.
macro_rules! serve {
    ($($name:ident: $serve:ident($($argument:expr),*);)*) => {$(
        pub fn $name<'py>(call: &Call<'_, 'py>) -> Served<'py> {
            $serve(call, $($argument),*)
        }
    )*};
}
serve! {
    fft: of_lines(Method::Fft);
    ifft: of_lines(Method::Ifft);
    rfft: of_lines(Method::Rfft);
    irfft: of_lines(Method::Irfft);
    fft2: of_several([Method::Fft; 3], PLANE);
    ifft2: of_several([Method::Ifft; 3], PLANE);
    rfft2: of_several([Method::Rfft, Method::Fft, Method::Fft], PLANE);
    irfft2: of_several([Method::Ifft, Method::Ifft, Method::Irfft], PLANE);
    fftn: of_several([Method::Fft; 3], None);
    ifftn: of_several([Method::Ifft; 3], None);
    rfftn: of_several([Method::Rfft, Method::Fft, Method::Fft], None);
    irfftn: of_several([Method::Ifft, Method::Ifft, Method::Irfft], None);
}
