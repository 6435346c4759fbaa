//! Operands of operations that are kernels of their own.

use super::{KernelMemory, Writer, loaded};
use bh_bytecode::{BatchRef, DType, Operand};
use bh_kernel::{BufferRef, ConstantRef};

/// An operand: a view, or a constant that is the same everywhere.
pub(super) struct Access<'a> {
    pub(super) dtype: DType,
    view: Option<View<'a>>,
    operand: Operand,
}

struct View<'a> {
    base: u32,
    place: KernelMemory,
    start: i64,
    shape: &'a [i64],
    stride: Vec<i64>,
}

impl<'a> Access<'a> {
    pub(super) fn new(batch: &BatchRef<'a>, operand: Operand) -> Access<'a> {
        let view = operand.as_view().map(|view| {
            let record = &batch.views[view as usize];
            let place = KernelMemory::Of(BufferRef::Base(record.base));
            View {
                base: record.base,
                place,
                start: record.start,
                shape: batch.shape(view),
                stride: batch.stride(view).to_vec(),
            }
        });
        Access { dtype: batch.dtype(operand).unwrap_or(DType::Bool), view, operand }
    }

    /// The extents; none of a constant.
    pub(super) fn shape(&self) -> &'a [i64] {
        self.view.as_ref().map_or(&[], |view| view.shape)
    }

    /// The index of the base in the batch.
    pub(super) fn base(&self) -> Option<u32> {
        self.view.as_ref().map(|view| view.base)
    }

    /// The element at these indices, one for each dimension.
    pub(super) fn element(&self, writer: &mut Writer, indices: &[String], writes: bool) -> String {
        let Some(view) = &self.view else {
            return writer.constant(self.dtype, ConstantRef::Batch(self.operand.as_constant().unwrap_or(0)));
        };
        let buffer = writer.buffer(view.place, self.dtype, writes);
        let terms: Vec<(i64, String)> = (view.stride.iter().zip(view.shape).zip(indices))
            .map(|((stride, extent), name)| (if *extent == 1 { 0 } else { *stride }, name.clone()))
            .collect();
        let element = format!("{buffer}[{}]", writer.numbers.address(view.start, &terms));
        if writes { element } else { loaded(self.dtype, element) }
    }

    /// The same elements as a dense array in another place.
    pub(super) fn copied(self, place: KernelMemory) -> Access<'a> {
        let dense = |view: View<'a>| {
            let mut stride = vec![1; view.shape.len()];
            for dim in (1..view.shape.len()).rev() {
                stride[dim - 1] = stride[dim] * view.shape[dim];
            }
            View { place, start: 0, stride, ..view }
        };
        Access { view: self.view.map(dense), ..self }
    }
}

/// Statements that take a C-order number of an array of this shape apart, and the names of the indices.
pub(super) fn indices(writer: &mut Writer, shape: &[i64], linear: &str, prefix: &str) -> (String, Vec<String>) {
    let names: Vec<String> = (0..shape.len()).map(|dim| format!("{prefix}{dim}")).collect();
    let index = writer.index();
    (writer.numbers.split(index, linear, shape, &names), names)
}

/// Do the indices of an instruction need 64 bits?
pub(crate) fn is_wide(batch: &BatchRef<'_>, operands: &[Operand]) -> bool {
    let views = operands.iter().filter_map(|operand| operand.as_view());
    let far = |view: u32| batch.views[view as usize].len.max(batch.base_of(view).map_or(0, |base| base.len));
    views.map(far).any(|len| len > 1 << 29)
}
