//! The native half of `vmap`: functions that are recorded for one member, and then for all.

use crate::array::Array;
use crate::context::Shared;
use crate::derive::{Taping, names};
use crate::error::exception;
use crate::interrupt::detached;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Members>()
}

/// A function that is being recorded for one member.
#[pyclass(frozen, module = "bh")]
struct Members {
    context: Shared,
    members: Mutex<Option<bh_transform::Members>>,
}

#[pymethods]
impl Members {
    /// Begins to record what is done with these arrays of one member, each the whole of its memory in C order.
    #[new]
    fn new(py: Python<'_>, arguments: Vec<PyRef<'_, Array>>) -> PyResult<Members> {
        let first = arguments.first().ok_or_else(|| PyValueError::new_err("there are no arguments with members"))?;
        let context = first.context;
        let ids = names(context, &arguments)?;
        let members = detached(py, || bh_transform::Members::begin(&context.recorder, &ids)).map_err(exception)?;
        Ok(Members { context, members: Mutex::new(Some(members)) })
    }

    /// Lets a new array count as constant for derivatives.
    fn stop(&self, array: PyRef<'_, Array>) -> PyResult<()> {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.as_ref().map_or(Ok(()), |members| members.stop(array.id())).map_err(exception)
    }

    /// Lets a new array stand for one member's.
    fn vary(&self, py: Python<'_>, array: PyRef<'_, Array>) -> PyResult<()> {
        let id = array.id();
        let vary = || {
            let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
            members.as_mut().map_or(Ok(()), |members| members.vary(id))
        };
        detached(py, vary).map_err(exception)
    }

    /// Ends the function, and records it for all members, of whose arguments `given` has the values. Returns for each result an
    /// array with the members as the first axis, or None if they have it in common, and for each argument whether it has changed.
    fn end(
        &self,
        py: Python<'_>,
        count: i64,
        given: Vec<PyRef<'_, Array>>,
        results: Vec<PyRef<'_, Array>>,
        outer: Vec<PyRef<'_, Taping>>,
    ) -> PyResult<(Vec<Option<Array>>, Vec<bool>)> {
        let (all, ids) = (names(self.context, &given)?, names(self.context, &results)?);
        let members = self.take().ok_or_else(|| PyValueError::new_err("the function has ended"))?;
        let tapings: Vec<_> = outer.iter().map(|taping| taping.locked()).collect();
        let tapings: Vec<&bh_transform::Taping> = tapings.iter().filter_map(|taping| taping.as_ref()).collect();
        let found = detached(py, || members.end(count, &all, &ids, &tapings)).map_err(exception)?;
        let array = |(found, like): (Option<bh_recorder::Array>, &PyRef<'_, Array>)| {
            let Some(found) = found else { return Ok(None) };
            let info = self.context.recorder.info(found.id()).map_err(exception)?;
            let id = self.context.recorder.duplicate(found.id()).map_err(exception)?;
            Ok(Some(Array::new(self.context, id, like.dtype, info.view)))
        };
        let arrays = found.arrays.into_iter().zip(&results).map(array).collect::<PyResult<Vec<_>>>()?;
        Ok((arrays, found.changed))
    }

    /// Ends a function that failed.
    fn abandon(&self, py: Python<'_>) {
        let members = self.take();
        detached(py, || drop(members));
    }
}

impl Members {
    fn take(&self) -> Option<bh_transform::Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
