//! Operands with their dimensions in the order in which they lie in memory, and results turned back.

use crate::array::Array;
use crate::error::{exception, value_error};
use bh_bytecode::View;
use bh_bytecode::memory_order::MemoryOrder;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Dimensions from the outermost in memory to the innermost.
pub struct Order(MemoryOrder);

/// The dimensions of what these operands give, from the outermost in memory to the innermost; `None` for C's order.
#[pyfunction]
fn memory_order(operands: Vec<PyRef<'_, Array>>) -> Option<Vec<usize>> {
    let order = MemoryOrder::of(operands.iter().map(|operand| &*operand.view));
    order.map(|order| order.axes().to_vec())
}

/// A new array whose dimensions were put into this order before, as one with its dimensions back in place; not as a view of it.
#[pyfunction]
fn turned_back(array: PyRef<'_, Array>, order: Vec<usize>) -> PyResult<Array> {
    let mut places = vec![0; order.len()];
    for (place, &axis) in order.iter().enumerate() {
        *places
            .get_mut(axis)
            .ok_or_else(|| PyValueError::new_err("the order names a dimension that there is not"))? = place;
    }
    let view = array.view.transpose(&places).map_err(value_error)?;
    let id = array.context.recorder.window(array.id(), &view).map_err(exception)?;
    Ok(Array::new(array.context, id, array.dtype, view))
}

/// The dimensions from the outermost in memory on of a new array in the order "K" of another one with this view; `None` for C's.
pub fn axes_in_memory(view: &View) -> Option<Vec<usize>> {
    let (shape, stride) = (view.shape(), view.stride());
    if view.rank() < 2 || view.is_empty() || view.is_contiguous() {
        return None;
    }
    if view.reversed().is_contiguous() {
        return Some((0..shape.len()).rev().collect());
    }
    let mut axes: Vec<usize> = (0..shape.len()).collect();
    axes.sort_by_key(|&axis| -stride[axis].abs());
    if axes.is_sorted() { None } else { Some(axes) }
}

/// Are the dimensions of a view in the order of C?
pub fn is_plain(view: &View) -> bool {
    let several = view.shape().iter().zip(view.stride()).filter(|(extent, _)| **extent != 1);
    several.map(|(_, stride)| stride.abs()).is_sorted_by(|outer, inner| outer >= inner)
}

/// Are the dimensions of an array in C's order in memory, with gaps or without? NumPy's functions then
/// give results C's order, of the array as of a copy.
pub fn is_ordered_as_in_c(view: &View) -> bool {
    let several = view.shape().iter().zip(view.stride()).filter(|(extent, _)| **extent > 1);
    view.rank() < 2 || several.map(|(_, stride)| *stride).is_sorted_by(|outer, inner| outer > inner && *inner > 0)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(memory_order, module)?)?;
    module.add_function(wrap_pyfunction!(turned_back, module)?)
}

impl Order {
    /// The order of what these operands give; `None` for C's.
    #[inline]
    pub fn of(operands: &[Option<&Array>]) -> Option<Order> {
        MemoryOrder::of(operands.iter().flatten().map(|operand| &*operand.view)).map(Order)
    }

    /// An operand with its dimensions in this order, which lives no longer than the operand.
    pub fn turned(&self, operand: &Array) -> PyResult<Array> {
        let mut view = *operand.view;
        while view.rank() < self.0.axes().len() {
            view = view.new_axis(0).map_err(value_error)?;
        }
        Ok(operand.seen(view.transpose(self.0.axes()).map_err(value_error)?))
    }

    /// A bit mask of dimensions, for turned operands.
    pub fn turned_mask(&self, dims: u16) -> u16 {
        let places = self.0.axes().iter().enumerate();
        places.filter(|&(_, &axis)| dims >> axis & 1 == 1).fold(0, |mask, (place, _)| mask | 1 << place)
    }

    /// A result of turned operands, turned back.
    pub fn back(&self, result: Array) -> PyResult<Array> {
        let view = result.view.transpose(&self.0.places()).map_err(value_error)?;
        result.renamed(view)
    }
}
