//! New arrays made of pieces of others, which have one type and one context: at once if this process has their data, or recorded.

use crate::array::Array;
use crate::call::Served;
use crate::error::{exception, value_error};
use crate::location::with_location;
use crate::shared_view::contiguous;
use crate::strided::{Strided, copy_elements, sized};
use bh_bytecode::DType;
use bh_compose::Assembly;
use bh_recorder::{Filling, Hand, Location, Made};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn copy_into<T: Copy>(from: Strided<'_>, to: Strided<'_>) {
    // SAFETY: both lie in their arrays, of which one is new.
    unsafe { copy_elements::<T>(to, from) };
}

/// The array, if this process has the data of all sources, and `make` makes one there.
pub fn at_hand<'h>(
    mut hand: Hand<'h>,
    sources: &[&Array],
    assembly: &Assembly,
    make: impl FnOnce(&mut Hand<'h>, DType, &[i64]) -> Option<(Made, *mut u8)>,
) -> Option<Array> {
    let first = sources.first()?;
    let (dtype, size) = (first.dtype, first.dtype.size() as i64);
    let data: Option<Vec<*const u8>> =
        sources.iter().map(|source| hand.data(source.store(), source.view.start())).collect();
    let (data, whole) = (data?, contiguous(&assembly.shape).ok()?);
    let (made, to) = make(&mut hand, dtype, &assembly.shape)?;
    for piece in &assembly.pieces {
        let to = to.wrapping_offset((piece.to.start() * size) as isize).cast_const();
        let from = match &piece.filling {
            Filling::Source(source) => {
                let begin = piece.from.start() - sources[*source].view.start();
                data[*source].wrapping_offset((begin * size) as isize)
            }
            Filling::Number(value) => value.bits.as_ptr().cast(),
        };
        // SAFETY: the views lie in their arrays, whose elements stay there while the hand is held, or repeat the number.
        let (from, to) =
            unsafe { (Strided::at(from, &piece.from, size as usize), Strided::at(to, &piece.to, size as usize)) };
        sized!(dtype, copy_into(from, to));
    }
    Some(Array::new(first.context, made, dtype, whole))
}

/// The array, recorded.
pub fn recorded(py: Python<'_>, sources: &[&Array], assembly: &Assembly) -> PyResult<Array> {
    let none = || PyValueError::new_err("need at least one array to concatenate");
    let first = sources.first().ok_or_else(none)?;
    let ids = sources.iter().map(|source| source.refresh(py).map(|()| source.anchor()));
    let ids = ids.collect::<PyResult<Vec<_>>>()?;
    let record = |place: Location<'_>| assembly.record(&first.context.recorder, first.dtype, &ids, place);
    let id = with_location(py, record).map_err(exception)?;
    let view = contiguous(&assembly.shape).map_err(value_error)?;
    Ok(Array::new(first.context, id, first.dtype, view))
}

/// As an object of Python.
pub fn served(py: Python<'_>, made: Array) -> Served<'_> {
    Ok(Some(Bound::new(py, made)?.into_any()))
}
