//! The page that shows where a script's time went.

use crate::error::exception;
use crate::interrupt::detached;
use bh_core::Error;
use bh_core::abi::status;
use bh_report::live::{Live, WATCH};
use pyo3::prelude::*;
use std::path::PathBuf;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(report_environment, module)?)?;
    module.add_function(wrap_pyfunction!(write_report, module)?)?;
    module.add_class::<LiveReport>()
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
    let run = bh_report::Run { program, seconds, failure, running: false };
    let written = detached(py, || bh_report::write(&directory, &page, &run));
    written.map_err(|text| exception(Error::new(status::FILE, text)))
}

/// Serves the page of a process that leaves its files in a directory, while it runs.
#[pyclass(frozen)]
struct LiveReport {
    program: String,
    live: Live,
}

#[pymethods]
impl LiveReport {
    #[new]
    fn new(directory: PathBuf, program: String) -> PyResult<LiveReport> {
        let live = Live::begin(directory, program.clone());
        let live =
            live.map_err(|error| exception(Error::new(status::FILE, format!("the page cannot be served: {error}"))))?;
        Ok(LiveReport { program, live })
    }

    /// The variable, and its value, under which a process writes its files while it runs.
    #[staticmethod]
    fn variable() -> (&'static str, &'static str) {
        WATCH
    }

    /// Where a browser finds the page.
    #[getter]
    fn address(&self) -> &str {
        self.live.address()
    }

    /// The process has ended: viewers see the whole report, and this returns then.
    fn end(&self, py: Python<'_>, seconds: f64, failure: Option<String>) {
        let run = bh_report::Run { program: self.program.clone(), seconds, failure, running: false };
        detached(py, || self.live.end(&run));
    }
}
