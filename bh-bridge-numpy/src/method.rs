//! Extension methods that the package calls itself: their numbers, which each stack gives once.

use crate::error::exception;
use crate::interrupt::detached;
use bh_bytecode::Opcode;
use bh_core::abi::status;
use bh_recorder::Recorder;
use pyo3::prelude::*;
use std::sync::OnceLock;

/// A method of the package's own use.
#[derive(Clone, Copy)]
pub enum Method {
    Matmul,
    CountNonzero,
    Compress,
    Flatnonzero,
    Fft,
    Ifft,
    Rfft,
}

impl Method {
    const NAMES: [&str; 7] = ["matmul", "count_nonzero", "compress", "flatnonzero", "fft", "ifft", "rfft"];
}

/// The numbers of methods on one stack, as far as they were asked for; `None` for those that no component has.
#[derive(Default)]
pub struct Methods([OnceLock<Option<Opcode>>; Method::NAMES.len()]);

impl Methods {
    /// The number of a method.
    pub fn opcode(&self, py: Python<'_>, recorder: &Recorder, method: Method) -> PyResult<Option<Opcode>> {
        let known = &self.0[method as usize];
        if let Some(opcode) = known.get() {
            return Ok(*opcode);
        }
        let opcode = match detached(py, || recorder.extension(Method::NAMES[method as usize])) {
            Ok(opcode) => Some(opcode),
            Err(error) if error.status == status::UNSUPPORTED => None,
            Err(error) => return Err(exception(error)),
        };
        Ok(*known.get_or_init(|| opcode))
    }
}
