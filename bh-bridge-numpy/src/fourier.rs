//! Fourier transforms along the last dimension of little arrays whose data has been computed.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::error::value_error;
use crate::layout;
use crate::method::Method;
use crate::shared_view::contiguous;
use crate::warning;
use bh_bytecode::DType;
use bh_recorder::Made;
use pyo3::prelude::*;

/// The transform of the one argument by the stack's method. `None` for calls that Python serves.
fn transformed<'py>(call: &Call<'_, 'py>, method: Method) -> Served<'py> {
    let (py, Some(array)) = (call.py(), call.array()) else { return Ok(None) };
    let this = array.get();
    let dtype = match this.dtype {
        DType::F32 | DType::C64 => DType::C64,
        DType::F64 | DType::C128 => DType::C128,
        _ => return Ok(None),
    };
    let (view, recorder) = (&this.view, &this.context.recorder);
    let is_little = this.len() as u64 * dtype.size() as u64 <= this.context.little;
    let fits = is_little && view.rank() > 0 && !view.is_empty() && layout::is_plain(view) && !this.is_scalar();
    if !fits || warning::errors_asked() || this.here().is_none() {
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
    Ok(Some(Bound::new(py, Array::new(this.context, Made::Here(made), dtype, view))?.into_any()))
}

pub fn fft<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    transformed(call, Method::Fft)
}

pub fn ifft<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    transformed(call, Method::Ifft)
}

/// The first half of the transform of real numbers.
pub fn rfft<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let is_real = call.array().is_some_and(|array| array.get().dtype.is_float());
    if is_real { transformed(call, Method::Rfft) } else { Ok(None) }
}
