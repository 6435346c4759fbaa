//! Extension methods that the package calls itself: their numbers, which each stack gives once.

use crate::error::exception;
use crate::interrupt::detached;
use bh_bytecode::Opcode;
use bh_core::abi::status;
use bh_recorder::Recorder;
use pyo3::prelude::*;
use std::sync::OnceLock;

/// A method of the package's own use.
#[derive(Clone, Copy, PartialEq)]
pub enum Method {
    Matmul,
    CountNonzero,
    Compress,
    Flatnonzero,
    Fft,
    Ifft,
    Rfft,
    Irfft,
    Sort,
    Argsort,
}

impl Method {
    const ALL: [(Method, &str); 10] = [
        (Method::Matmul, "matmul"),
        (Method::CountNonzero, "count_nonzero"),
        (Method::Compress, "compress"),
        (Method::Flatnonzero, "flatnonzero"),
        (Method::Fft, "fft"),
        (Method::Ifft, "ifft"),
        (Method::Rfft, "rfft"),
        (Method::Irfft, "irfft"),
        (Method::Sort, "sort"),
        (Method::Argsort, "argsort"),
    ];

    /// The method of this name.
    pub fn named(name: &str) -> Option<Method> {
        Method::ALL.iter().find(|(_, known)| *known == name).map(|(method, _)| *method)
    }
}

/// The numbers of methods on one stack, as far as they were asked for; `None` for those that no component has.
#[derive(Default)]
pub struct Methods([OnceLock<Option<Opcode>>; Method::ALL.len()]);

impl Methods {
    /// The number of a method.
    pub fn opcode(&self, py: Python<'_>, recorder: &Recorder, method: Method) -> PyResult<Option<Opcode>> {
        let known = &self.0[method as usize];
        if let Some(opcode) = known.get() {
            return Ok(*opcode);
        }
        let opcode = match detached(py, || recorder.extension(Method::ALL[method as usize].1)) {
            Ok(opcode) => Some(opcode),
            Err(error) if error.status == status::UNSUPPORTED => None,
            Err(error) => return Err(exception(error)),
        };
        Ok(*known.get_or_init(|| opcode))
    }
}
