//! The parameters of a kernel's call.

use crate::builder::{Builder, Kind, Value};
use crate::complex;
use crate::division::{InvariantDivisor, prepare};
use crate::plan::Plan;
use bh_bytecode::DType;
use bh_jit_abi::{Request, SlotForm};
use bh_kernel::SlotMode;
use inkwell::IntPredicate as Int;

/// The parameters of the call.
pub(crate) struct Parameters<'c> {
    pub(crate) rows: Value<'c>,
    pub(crate) count: Value<'c>,
    /// The number of the last set of lanes.
    pub(crate) last_set: Value<'c>,
    /// The table of constants.
    pub(crate) table: Value<'c>,
    pub(crate) scratch: Value<'c>,
    pub(crate) slots: Vec<Slot<'c>>,
    /// The accumulators of each fold.
    pub(crate) folds: Vec<Value<'c>>,
    /// With [`bh_jit_abi::Folds::Results`], the neutral elements of each fold, in vectors of as many elements as rows are
    /// joined.
    pub(crate) neutral: Vec<Value<'c>>,
    pub(crate) functions: Vec<Value<'c>>,
    pub(crate) buffers: Vec<Value<'c>>,
    pub(crate) constants: Vec<Uniform<'c>>,
    /// The prepared forms of constants that divide.
    pub(crate) divisors: Vec<InvariantDivisor<'c>>,
    /// Does all that is written past the caches lie alike?
    pub(crate) alike: Option<Value<'c>>,
}

/// The position of a slot; unused fields are not read.
#[derive(Default)]
pub(crate) struct Slot<'c> {
    pub(crate) position: Option<Value<'c>>,
    pub(crate) pitch: Option<Value<'c>>,
    pub(crate) stride: Option<Value<'c>>,
    pub(crate) distances: Vec<Value<'c>>,
}

impl<'c> Slot<'c> {
    /// The first element's address; for index views, the first number.
    pub(crate) fn position(&self) -> Value<'c> {
        self.position.expect("the slot has a position of its own")
    }

    /// The distance from row to row.
    pub(crate) fn pitch(&self) -> Value<'c> {
        self.pitch.expect("the slot has a position of its own")
    }

    /// The distance from element to element.
    pub(crate) fn stride(&self) -> Value<'c> {
        self.stride.expect("the slot's elements may be any distance apart")
    }

    /// The distances of vectors' lanes from the first one.
    pub(crate) fn distances(&self, width: u16) -> Value<'c> {
        let distances = self.distances.iter().find(|distances| distances.lanes() == width);
        *distances.expect("loops have vectors of this width")
    }
}

/// One value in vectors of the loops' widths.
pub(crate) struct Uniform<'c> {
    pub(crate) scalar: Value<'c>,
    vectors: Vec<(u16, Value<'c>)>,
}

impl<'c> Uniform<'c> {
    /// Reads an element.
    pub(crate) fn load(b: &Builder<'c>, address: Value<'c>, dtype: DType, plan: &Plan) -> Uniform<'c> {
        let scalar = b.load(Kind::single(dtype), address, dtype.real_part().size());
        let scalar = if dtype == DType::Bool { b.compare(Int::NE, scalar, b.zero(scalar.kind)) } else { scalar };
        let vector = |width| (width, b.freeze(complex::broadcast(b, dtype, width, scalar)));
        Uniform { scalar, vectors: plan.widths().into_iter().map(vector).collect() }
    }

    pub(crate) fn of_width(&self, width: u16) -> Value<'c> {
        let vector = self.vectors.iter().find(|(known, _)| *known == width);
        vector.map(|(_, value)| *value).expect("loops have vectors of this width")
    }

    /// Prepares quotients by it, of which there are `elements`.
    pub(crate) fn prepare(
        &self,
        b: &Builder<'c>,
        request: &Request,
        dtype: DType,
        elements: Value<'c>,
    ) -> Vec<InvariantDivisor<'c>> {
        prepare(b, request.fast_math, dtype, self.scalar, &self.vectors, elements)
    }
}

/// The slots that have something in memory or are numbers.
pub(crate) fn slots(request: &Request) -> impl Iterator<Item = (usize, &SlotForm)> {
    request.slots.iter().enumerate().filter(|(_, slot)| slot.mode != SlotMode::Result)
}

/// The slots that have a position of their own, and its type.
pub(crate) fn positions(request: &Request) -> Vec<(usize, Kind)> {
    let kind = |mode| if mode == SlotMode::Index { Kind::I64 } else { Kind::POINTER };
    slots(request).filter(|(_, slot)| slot.near.is_none()).map(|(at, slot)| (at, kind(slot.mode))).collect()
}
