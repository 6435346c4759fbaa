//! Moves elements to other places.

use crate::scope::Scope;
use bh_bytecode::Opcode;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Input, Location, Recorder};

/// A new array with the elements moved along the dimensions, by one distance each; elements that leave at one end enter
/// at the other. Copies each element once.
pub fn roll(recorder: &Recorder, array: ArrayId, distances: &[i64], place: Location<'_>) -> Result<ArrayId> {
    let info = recorder.info(array)?;
    let shape = info.view.shape();
    if distances.len() != shape.len() {
        let text = format!("roll: {} distances given for {} dimensions", distances.len(), shape.len());
        return Err(Error::new(status::ARGUMENT, text));
    }
    let scope = Scope::new(recorder, place);
    let result = scope.empty(info.dtype, shape)?;
    // The parts of each dimension: ranges in the source, and their beginnings in the result.
    let parts: Vec<Vec<(i64, i64, i64)>> = shape.iter().zip(distances).map(|(&n, &by)| parts(n, by)).collect();
    let mut choice = vec![0; shape.len()];
    loop {
        let chosen = || choice.iter().zip(&parts).map(|(&number, parts): (&usize, _)| parts[number]).enumerate();
        let from = scope.view(array, |view| {
            chosen().try_fold(*view, |view, (dim, (begin, end, _))| view.slice(dim, Some(begin), Some(end), 1))
        })?;
        let to = scope.view(result, |view| {
            chosen()
                .try_fold(*view, |view, (dim, (begin, end, at))| view.slice(dim, Some(at), Some(at + end - begin), 1))
        })?;
        scope.operate_into(Opcode::Copy, to, &[Input::Array(from)])?;
        // The next combination of parts.
        let next = (0..choice.len()).rev().find(|&dim| choice[dim] + 1 < parts[dim].len());
        let Some(dim) = next else { return Ok(scope.keep(result)) };
        choice[dim] += 1;
        choice[dim + 1..].fill(0);
    }
}

/// The contiguous parts of a dimension: begin and end in the source, and begin in the result.
fn parts(extent: i64, by: i64) -> Vec<(i64, i64, i64)> {
    let by = if extent > 0 { by.rem_euclid(extent) } else { 0 };
    match by {
        0 => vec![(0, extent, 0)],
        _ => vec![(0, extent - by, by), (extent - by, extent, 0)],
    }
}
