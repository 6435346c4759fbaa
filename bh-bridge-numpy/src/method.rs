//! Extension methods that the package calls itself: their numbers, which each stack gives once.

use crate::context::Context;
use crate::error::exception;
use bh_bytecode::Opcode;
use bh_core::abi::status;
use bh_recorder::{ArrayId, Input, Location};
use pyo3::prelude::*;
use std::sync::OnceLock;

/// A method of the package's own use.
#[derive(Clone, Copy)]
pub enum Method {
    Matmul,
    CountNonzero,
    Compress,
    Flatnonzero,
}

impl Method {
    const NAMES: [&str; 4] = ["matmul", "count_nonzero", "compress", "flatnonzero"];
}

/// The numbers of methods on one stack, as far as they were asked for; `None` for those that no component has.
#[derive(Default)]
pub struct Methods([OnceLock<Option<Opcode>>; Method::NAMES.len()]);

impl Methods {
    /// The number of a method.
    pub fn opcode(&self, py: Python<'_>, context: &Context, method: Method) -> PyResult<Option<Opcode>> {
        let known = &self.0[method as usize];
        if let Some(opcode) = known.get() {
            return Ok(*opcode);
        }
        let opcode = match py.detach(|| context.recorder.extension(Method::NAMES[method as usize])) {
            Ok(opcode) => Some(opcode),
            Err(error) if error.status == status::UNSUPPORTED => None,
            Err(error) => return Err(exception(error)),
        };
        Ok(*known.get_or_init(|| opcode))
    }
}

/// Records a call of a method. False if no component of the stack has it, or it does not take such arrays.
pub fn call(
    py: Python<'_>,
    context: &Context,
    method: Method,
    out: ArrayId,
    inputs: &[Input],
    place: Location<'_>,
) -> PyResult<bool> {
    let Some(opcode) = context.methods.opcode(py, context, method)? else { return Ok(false) };
    match context.recorder.call_extension(opcode, &[out], inputs, place) {
        Ok(()) => Ok(true),
        Err(error) if [status::UNSUPPORTED, status::TYPE, status::SHAPE].contains(&error.status) => Ok(false),
        Err(error) => Err(exception(error)),
    }
}
