//! The page that shows where a script's time went.

use crate::error::exception;
use bh_core::Error;
use bh_core::abi::status;
use pyo3::prelude::*;
use std::path::PathBuf;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(report_environment, module)?)?;
    module.add_function(wrap_pyfunction!(write_report, module)?)
}

/// The variables under which a process leaves what the page shows, in this directory.
#[pyfunction]
fn report_environment(directory: PathBuf) -> Vec<(&'static str, PathBuf)> {
    bh_report::environment(&directory)
}

/// Writes the page of a process that left its files in a directory.
#[pyfunction]
fn write_report(
    py: Python<'_>,
    directory: PathBuf,
    page: PathBuf,
    program: String,
    seconds: f64,
    failure: Option<String>,
) -> PyResult<()> {
    let run = bh_report::Run { program, seconds, failure };
    let written = py.detach(|| bh_report::write(&directory, &page, &run));
    written.map_err(|text| exception(Error::new(status::FILE, text)))
}
