//! Products of vectors and matrices that are computed already, into little arrays. Their factors need no handles of their own.

use crate::array::small_view::goes_in_c_order;
use crate::immediate::at_hand::Known;
use crate::immediate::here::{Here, Store, made_by};
use crate::immediate::{Found, NOTHING, Part, array_of};
use crate::record::Operation;
use crate::{Location, Recorder};
use bh_bytecode::view::{ViewRef, element_count};
use bh_bytecode::{AxisOrder, Opcode, View};

impl Recorder {
    /// The product of views of two arrays, of their type and of this shape: by the method `opcode`, or a contraction of two
    /// arrays of one shape over the axes of a mask. `None` if it has to be recorded.
    pub fn product_at_hand(
        &self,
        what: (Opcode, u16),
        factors: [(Store<'_>, &View); 2],
        shape: &[i64],
    ) -> Option<Box<Here>> {
        if let [(Store::Here(a), left), (Store::Here(b), right)] = factors {
            let made = self.multiply(what, [Found::here(a, left.into()), Found::here(b, right.into())], shape)?;
            self.gate.end_chain();
            return Some(made);
        }
        let mut state = self.state();
        let begin = state.clock();
        let [a, b, ..] = state.found(&factors.map(|(store, view)| Known::Part(store, view)))?;
        // The lock is held, so nobody closes the gate meanwhile.
        let made = self.multiply(what, [a, b], shape)?;
        state.little.end_chain();
        state.count_recording(begin);
        Some(made)
    }

    fn multiply(&self, (opcode, axes): (Opcode, u16), factors: [Found<'_>; 2], shape: &[i64]) -> Option<Box<Here>> {
        let [Found::Part(a), Found::Part(b)] = factors else { return None };
        let (dtype, len) = (a.dtype, element_count(shape)?);
        let inside = self.gate.enter()?;
        let engine = inside.engine()?;
        let bytes = |elements: i64| (elements as u64).saturating_mul(dtype.size() as u64);
        let is_little = |part: &Part<'_>| {
            part.dtype == dtype && bytes(part.view.shape.iter().product()) <= engine.options.immediate_bytes
        };
        // The order of results that have the same bits everywhere is the recorder's.
        if engine.options.reproducible || !engine.takes(bytes(len)) || ![a, b].iter().all(is_little) {
            return None;
        }
        let order = if opcode.is_extension() { 0 } else { contraction_order([&a, &b], axes)? };
        let operation = Operation { opcode, param: axes, location: Location::UNKNOWN };
        let factor = |part: &Part<'_>| Some(array_of(part.view.shape, part.view.stride, part.data?, dtype));
        let made = made_by(engine, (operation, order), &[NOTHING, factor(&a)?, factor(&b)?], (dtype, len), shape)?;
        inside.count();
        Some(made)
    }
}

/// The order in which a contraction of parts of one shape takes their elements; `None` if it depends on more than their strides.
fn contraction_order([a, b]: [&Part<'_>; 2], folded: u16) -> Option<u16> {
    let (left, right): (ViewRef<'_>, ViewRef<'_>) = (a.view, b.view);
    if !a.is_own || !b.is_own || left.shape != right.shape {
        return None;
    }
    if goes_in_c_order(left.shape, left.stride) && goes_in_c_order(right.shape, right.stride) {
        return Some(0);
    }
    Some(AxisOrder::of_memory(left.shape, &[left.stride, right.stride]).backward_only(folded).code())
}
