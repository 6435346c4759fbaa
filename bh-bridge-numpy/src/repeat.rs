//! Elements repeated by one number: computed ones without an operation, others by one copy.

use crate::array::{Array, window};
use crate::call::{Call, Served};
use crate::error::{exception, value_error};
use crate::shared_view::contiguous;
use crate::strided::{Plain, Strided, hand_for, is_plain, sized};
use crate::text::intern;
use bh_bytecode::{MAX_RANK, View};
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// A repetition: of the elements under a view, in rows of some elements, each of which comes several times.
struct Repeated {
    view: View,
    axis: usize,
    times: i64,
}

impl Repeated {
    /// `None` for calls that Python serves.
    fn of(array: &Array, times: &Bound<'_, PyAny>, axis: Option<&Bound<'_, PyAny>>) -> Option<Repeated> {
        let is_whole = |object: &Bound<'_, PyAny>| object.is_exact_instance_of::<PyInt>();
        let times = is_whole(times).then(|| times.extract::<i64>().ok())?.filter(|times| *times > 0)?;
        let rank = array.view.rank() as i64;
        if !is_plain(array) || array.is_scalar() || rank == 0 || array.view.is_empty() {
            return None;
        }
        let Some(axis) = axis.filter(|axis| !axis.is_none()) else {
            let flat = array.view.reshape(&[array.len()]).ok()??;
            return Some(Repeated { view: flat, axis: 0, times });
        };
        let axis = is_whole(axis).then(|| axis.extract::<i64>().ok())??;
        let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
        (axis < rank as usize && (rank as usize) < MAX_RANK).then_some(Repeated { view: *array.view, axis, times })
    }

    fn shape(&self) -> Option<Vec<i64>> {
        let mut shape = self.view.shape().to_vec();
        shape[self.axis] = shape[self.axis].checked_mul(self.times)?;
        Some(shape)
    }

    /// The elements with a further dimension, along which they are repeated.
    fn wide(&self) -> PyResult<View> {
        let (mut shape, mut stride) = (self.view.shape().to_vec(), self.view.stride().to_vec());
        shape.insert(self.axis + 1, self.times);
        stride.insert(self.axis + 1, 0);
        View::new(self.view.start(), &shape, &stride).map_err(value_error)
    }

    fn at_hand(&self, array: &Array, shape: &[i64]) -> Option<Array> {
        let mut hand = hand_for([array].into_iter())?;
        let view = contiguous(shape).ok()?;
        let from = hand.data(array.store(), self.view.start())?;
        let (id, to) = hand.make_moved(array.dtype, shape)?;
        // SAFETY: the view has the elements of the array, which stay there while the hand is held.
        let from = unsafe { Strided::at(from, &self.view, array.dtype.size()) };
        let row = self.view.shape()[self.axis + 1..].iter().product::<i64>() as usize;
        sized!(array.dtype, repeat_into(from, row, self.times as usize, to));
        Some(Array::new(array.context, id, array.dtype, view))
    }
}

/// Copies rows of `row` elements to `to`, which has room for all of them, each `times` times.
fn repeat_into<T: Plain>(from: Strided<'_>, row: usize, times: usize, to: *mut u8) {
    let mut next = to.cast::<T>();
    let mut all = from.addresses::<T>();
    for _ in 0..from.view().len() as usize / row {
        for (place, at) in all.by_ref().take(row).enumerate() {
            // SAFETY: the element is one of the array, and there is room for all rows.
            unsafe { next.add(place).write_unaligned(at.read_unaligned()) };
        }
        let mut done = 1;
        while done < times {
            let more = done.min(times - done);
            // SAFETY: as above; the rows that are copied lie before the place that they go to.
            unsafe { std::ptr::copy_nonoverlapping(next.cast_const(), next.add(done * row), more * row) };
            done += more;
        }
        next = next.wrapping_add(times * row);
    }
}

/// Each element, or each slice along an axis, several times, one after the other.
pub fn repeat<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (py, arguments) = (call.py(), &call.arguments);
    let named = arguments.get(intern!(py, "axis"));
    let (array, times, axis) = match (arguments.unnamed(), arguments.named(), named) {
        ([array, times], 0, _) | ([array, times], 1, Some(_)) => (array, times, named),
        ([array, times, axis], 0, _) => (array, times, Some(axis.bind(py))),
        _ => return Ok(None),
    };
    let Ok(array) = array.bind(py).cast_exact::<Array>() else { return Ok(None) };
    let this = array.get();
    let Some(repeated) = Repeated::of(this, times.bind(py), axis) else { return Ok(None) };
    let Some(shape) = repeated.shape() else { return Ok(None) };
    if let Some(made) = repeated.at_hand(this, &shape) {
        return Ok(Some(Bound::new(py, made)?.into_any()));
    }
    let wide = Bound::new(py, window(array, repeated.wide()?)?)?;
    let copy = crate::record::cast(py, &wide, this.dtype as u8)?;
    let view = contiguous(&shape).map_err(value_error)?;
    let id = this.context.recorder.window(copy.id(), &view).map_err(exception)?;
    Ok(Some(Bound::new(py, Array::new(this.context, id, this.dtype, view))?.into_any()))
}
