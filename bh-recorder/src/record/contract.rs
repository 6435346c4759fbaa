//! Contractions: both operands are broadcast to one box, over which the products are summed.

use crate::array::shape::Shape;
use crate::array::small_view::SmallView;
use crate::record::check::broadcast_error;
use crate::record::{Operation, Source};
use crate::state::{Followup, State};
use bh_bytecode::view::{element_count, too_many_elements};
use bh_bytecode::{AxisOrder, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

impl State {
    /// Records with the first operand of a contraction broadcast to the box that it has in common with the second one; of any
    /// other operation with the operands as they are.
    #[inline]
    pub(crate) fn over_box<R>(
        &mut self,
        operation: Operation<'_>,
        sources: &[Source],
        record: impl FnOnce(&mut State, &[Source]) -> Result<R>,
    ) -> Result<R> {
        match *sources {
            [Source::Handle(a), b] if operation.opcode == Opcode::Contract => {
                let Some(view) = self.box_view(operation, a, &b)? else { return record(self, sources) };
                let base = self.handles.at(a).base;
                let wide = self.new_handle(base, view)?;
                let recorded = record(self, &[Source::Handle(wide), b]);
                self.release(wide);
                recorded
            }
            _ => record(self, sources),
        }
    }

    /// The view of the first operand over the box; `None` if its own is that already.
    fn box_view(&self, operation: Operation<'_>, a: u32, b: &Source) -> Result<Option<SmallView>> {
        let view = &self.handles.at(a).view;
        let Source::Handle(b) = *b else { return Ok(None) };
        let other = self.handles.at(b).view.shape();
        let mut shape = Shape::of(view.shape());
        if !shape.broadcast_with(other) {
            return Err(broadcast_error(operation.opcode, 2, other, view.shape(), "first input's"));
        }
        if element_count(shape.extents()).is_none() {
            return Err(operation.error(status::SHAPE, too_many_elements(shape.extents())));
        }
        Ok((shape.extents() != view.shape()).then(|| view.broadcast_to(shape.extents())))
    }

    /// Records a product of matrices, or of a matrix and a vector, as the contraction that it is.
    pub(crate) fn record_product(&mut self, operation: Operation<'_>, out: u32, [a, b]: [u32; 2]) -> Result<Followup> {
        let [left, right] = [a, b].map(|handle| self.handles.at(handle).view.view());
        let (wide, param) = match (left.shape(), right.shape()) {
            (&[rows, inner], &[_, _]) => (with_last(&left, &[rows, inner, 1])?, 0b10),
            (&[inner], &[_, _]) => (with_last(&left, &[inner, 1])?, 0b01),
            _ => (left, 0b10),
        };
        let base = self.handles.at(a).base;
        let wide = self.new_handle(base, SmallView::new(&wide))?;
        let operation = Operation { opcode: Opcode::Contract, param, ..operation };
        let recorded = self.record(operation, out, &[Source::Handle(wide), Source::Handle(b)]);
        self.release(wide);
        recorded
    }

    /// The order in which a contraction takes the elements of its box: as both operands lie in memory.
    pub(crate) fn contraction_order(&mut self, [a, b]: [u32; 2], folded: u16) -> u16 {
        if self.is_in_c_order(a) && self.is_in_c_order(b) {
            return 0;
        }
        let shape = self.handles.at(a).view.shape();
        let wide = self.handles.at(b).view.broadcast_to(shape);
        let order = AxisOrder::of_memory(shape, &[self.handles.at(a).view.stride(), wide.stride()]);
        order.backward_only(folded).code()
    }
}

/// A view with a further last axis of one element.
fn with_last(view: &View, shape: &[i64]) -> Result<View> {
    let stride = [view.stride(), &[0]].concat();
    View::new(view.start(), shape, &stride).map_err(|error| Error::new(status::BATCH, error.0))
}
