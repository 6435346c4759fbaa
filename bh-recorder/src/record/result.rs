//! Recording of operations into new arrays: what types and shapes results have.

use crate::array::shape::Shape;
use crate::array::small_view::SmallView;
use crate::record::check::{broadcast_error, broadcasts, check_param, result_type, type_error};
use crate::record::power::as_products;
use crate::record::{Operation, Source};
use crate::state::{Followup, State};
use bh_bytecode::view::{element_count, too_many_elements};
use bh_bytecode::{DType, Kind, Opcode};
use bh_core::abi::status;
use bh_core::error::Result;

impl State {
    /// Records an operation into a new array and returns it. `dtype` is needed where the inputs do not determine it.
    #[inline]
    pub(crate) fn record_new(
        &mut self,
        operation: Operation<'_>,
        dtype: Option<DType>,
        sources: &[Source],
    ) -> Result<(u32, Followup)> {
        if self.recipes.chosen > 0
            && let Some(recorded) = self.record_of_chosen(operation, dtype, sources)
        {
            return recorded;
        }
        let opcode = operation.opcode;
        let types = self.types(sources);
        let types = &types[..sources.len()];
        let Some(dtype) = dtype.or_else(|| result_type(opcode, types)) else {
            return Err(operation.error(status::ARGUMENT, "does not determine the type of a new result"));
        };
        if !opcode.check_types(dtype, types) {
            return Err(type_error(opcode, dtype, types));
        }
        self.over_box(operation, sources, |state, sources| state.record_into_new(operation, dtype, sources))
    }

    /// As [`State::record_new`], with operands whose types and box are settled.
    #[inline]
    fn record_into_new(
        &mut self,
        operation: Operation<'_>,
        dtype: DType,
        sources: &[Source],
    ) -> Result<(u32, Followup)> {
        let view = self.result_view(operation, sources)?;
        let (operation, sources) = as_products(operation, sources);
        let operation = self.with_rule(operation, dtype, || Some(self.type_of(sources.first()?)));
        let len = view.len;
        let value = if len == 1 { self.evaluate(operation, dtype, sources) } else { None };
        let out = self.new_array(dtype, view, len)?;
        if let Some(value) = value {
            self.set_value(out, value);
            self.recorded += 1;
            return Ok((out, Followup::Nothing));
        }
        match self.record_fitting(operation, out, sources) {
            Ok(followup) => Ok((out, followup)),
            Err(error) => {
                self.release(out);
                Err(error)
            }
        }
    }

    /// Records an operation into an array that was made for its result.
    #[inline]
    fn record_fitting(&mut self, operation: Operation<'_>, out: u32, sources: &[Source]) -> Result<Followup> {
        if operation.opcode.kind() != Kind::Elementwise {
            return self.record_typed(operation, out, sources);
        }
        check_param(operation.opcode, operation.param, 0)?;
        // The shape follows from the inputs, which a new array does not overlap.
        self.append_plain(operation, out, sources, None)
    }

    /// The view that a new result has, contiguous.
    #[inline]
    fn result_view(&self, operation: Operation<'_>, sources: &[Source]) -> Result<SmallView> {
        match operation.opcode.kind() {
            Kind::Elementwise => {
                let mut first: Option<&SmallView> = None;
                let mut equal = true;
                for source in sources {
                    if let Source::Handle(handle) = *source {
                        let view = &self.handles.at(handle).view;
                        match first {
                            None => first = Some(view),
                            Some(first) => equal &= view.shape() == first.shape(),
                        }
                    }
                }
                match first {
                    None => Ok(SmallView::contiguous(&[])),
                    Some(view) if equal => Ok(SmallView::contiguous(view.shape())),
                    Some(first) => self.broadcast_all(operation, first, sources),
                }
            }
            Kind::Reduction | Kind::Accumulate => {
                let input = self.folded_array(operation, sources)?;
                self.contiguous(operation, self.folded_shape(operation, input)?)
            }
            _ => match (operation.opcode, sources) {
                (Opcode::Gather, &[_, Source::Handle(index)]) => {
                    Ok(SmallView::contiguous(self.handles.at(index).view.shape()))
                }
                _ => Err(operation.error(status::ARGUMENT, "needs an output array")),
            },
        }
    }

    fn broadcast_all(&self, operation: Operation<'_>, first: &SmallView, sources: &[Source]) -> Result<SmallView> {
        let mut shape = Shape::of(first.shape());
        for (position, source) in sources.iter().enumerate() {
            if let Source::Handle(handle) = *source {
                let other = self.handles.at(handle).view.shape();
                if !shape.broadcast_with(other) {
                    let opcode = operation.opcode;
                    return Err(broadcast_error(opcode, position + 1, other, shape.extents(), "common"));
                }
            }
        }
        self.contiguous(operation, shape)
    }

    /// The contiguous view of a shape, if that has not too many elements.
    fn contiguous(&self, operation: Operation<'_>, shape: Shape) -> Result<SmallView> {
        match element_count(shape.extents()) {
            Some(_) => Ok(SmallView::contiguous(shape.extents())),
            None => Err(operation.error(status::SHAPE, too_many_elements(shape.extents()))),
        }
    }

    /// The array that a fold goes through; the mask of a masked one, and the other factor of a contraction, must fit it.
    pub(crate) fn folded_array(&self, operation: Operation<'_>, sources: &[Source]) -> Result<u32> {
        match *sources {
            [Source::Handle(handle)] => Ok(handle),
            [Source::Handle(handle), Source::Handle(mask)] => {
                let (shape, given) = (self.shape(handle), self.shape(mask));
                if broadcasts(given.extents(), shape.extents()) {
                    return Ok(handle);
                }
                Err(broadcast_error(operation.opcode, 2, given.extents(), shape.extents(), "folded array's"))
            }
            _ => Err(operation.error(status::ARGUMENT, "the input must be an array, not a constant")),
        }
    }

    /// The shape that a reduction or an accumulate of `input` has.
    pub(crate) fn folded_shape(&self, operation: Operation<'_>, input: u32) -> Result<Shape> {
        let shape = self.handles.at(input).view.shape();
        check_param(operation.opcode, operation.param, shape.len())?;
        if operation.opcode.kind() == Kind::Accumulate {
            return Ok(Shape::of(shape));
        }
        let mut kept = Shape::of(&[]);
        for (axis, &extent) in shape.iter().enumerate() {
            if operation.param >> axis & 1 == 0 {
                kept.push(extent);
            }
        }
        Ok(kept)
    }
}
