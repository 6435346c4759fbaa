//! Operands with their dimensions in the order in which they lie in memory, and results turned back.

use crate::array::Array;
use crate::error::{exception, value_error};
use bh_bytecode::memory_order::MemoryOrder;
use pyo3::prelude::*;

/// Dimensions from the outermost in memory to the innermost.
pub struct Order(MemoryOrder);

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

    /// A result of turned operands, turned back.
    pub fn back(&self, result: Array) -> PyResult<Array> {
        let view = result.view.transpose(&self.0.places()).map_err(value_error)?;
        let id = result.context.recorder.window(result.id(), &view).map_err(exception)?;
        Ok(Array::new(result.context, id, result.dtype, view))
    }
}
