//! What the call of a kernel says: it is read once, before all rows.

use super::folds;
use crate::builder::{Builder, Element, Kind, Value};
use crate::complex;
use crate::division::{InvariantDivisor, prepare};
use crate::non_temporal::compare_streams;
use crate::plan::Plan;
use crate::reduction::load_neutral;
use bh_bytecode::DType;
use bh_jit_abi::{Request, SlotForm, Stride};
use bh_kernel::{Arg, SlotMode};
use inkwell::IntPredicate as Int;

/// What the call says.
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
    /// What is made of constants that divide.
    pub(crate) divisors: Vec<InvariantDivisor<'c>>,
    /// Does all that is written past the caches lie alike?
    pub(crate) alike: Option<Value<'c>>,
}

/// Where a slot is; only what it needs is read.
#[derive(Default)]
pub(crate) struct Slot<'c> {
    position: Option<Value<'c>>,
    pitch: Option<Value<'c>>,
    stride: Option<Value<'c>>,
    distances: Vec<Value<'c>>,
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
    scalar: Value<'c>,
    vectors: Vec<(u16, Value<'c>)>,
}

impl<'c> Uniform<'c> {
    /// Reads an element.
    pub(super) fn load(b: &Builder<'c>, address: Value<'c>, dtype: DType, plan: &Plan) -> Uniform<'c> {
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
    pub(super) fn prepare(
        &self,
        b: &Builder<'c>,
        request: &Request,
        dtype: DType,
        elements: Value<'c>,
    ) -> Vec<InvariantDivisor<'c>> {
        prepare(b, request.fast_math, dtype, self.scalar, &self.vectors, elements)
    }
}

/// A 64-bit field of a table.
fn field<'c>(b: &Builder<'c>, table: Value<'c>, at: usize, kind: Kind) -> Value<'c> {
    b.load(kind, b.byte(table, b.index(at as i64 * 8)), 8)
}

impl<'c> Parameters<'c> {
    /// Reads a call.
    pub(super) fn load(b: &Builder<'c>, request: &Request, plan: &Plan) -> Parameters<'c> {
        let call = b.argument();
        let [rows, count, sets] = [0, 1, 2].map(|at| field(b, call, at, Kind::I64));
        let tables = [3, 4, 5, 6, 7, 8, 9].map(|at| field(b, call, at, Kind::POINTER));
        let [places, inner, outer, table, accumulators, addresses, scratch] = tables;
        let last_set = b.sub(sets, b.index(1));
        let mut slots: Vec<Slot> = request.slots.iter().map(|_| Slot::default()).collect();
        for (at, kind) in positions(request) {
            slots[at].position = Some(field(b, places, at, kind));
            slots[at].pitch = Some(field(b, outer, at, Kind::I64));
        }
        let alike = compare_streams(b, request, plan, &slots);
        load_strides(b, request, plan, inner, &mut slots);
        let folds = folds(request);
        let accumulators: Vec<Value> = (0..folds.len()).map(|at| field(b, accumulators, at, Kind::POINTER)).collect();
        let neutral = load_neutral(b, request, &accumulators);
        let functions = (0..plan.functions.len()).map(|at| field(b, addresses, at, Kind::POINTER)).collect();
        let buffers = plan.buffers.iter().map(|&offset| b.byte(scratch, b.index(offset as i64))).collect();
        let mut parameters = Parameters {
            rows,
            count,
            last_set,
            table,
            scratch,
            slots,
            folds: accumulators,
            neutral,
            functions,
            buffers,
            constants: Vec::new(),
            divisors: Vec::new(),
            alike,
        };
        parameters.load_constants(b, request, plan);
        parameters
    }

    fn load_constants(&mut self, b: &Builder<'c>, request: &Request, plan: &Plan) {
        for (at, &dtype) in request.constants.iter().enumerate() {
            let constant = Uniform::load(b, b.byte(self.table, b.index(at as i64 * 16)), dtype, plan);
            if plan.schedule.multiplied.divides_by(Arg::Constant(at as u16)) {
                let elements = b.mul(self.rows, self.count);
                self.divisors.extend(constant.prepare(b, request, dtype, elements));
            }
            self.constants.push(constant);
        }
        for (at, buffer) in plan.constant_buffers.iter().enumerate() {
            if let Some(buffer) = *buffer {
                let (dtype, buffer) = (request.constants[at], self.buffers[usize::from(buffer)]);
                fill(b, self.constants[at].scalar, dtype, buffer, plan.block);
            }
        }
    }
}

/// The slots that have something in memory or are numbers.
pub(super) fn slots(request: &Request) -> impl Iterator<Item = (usize, &SlotForm)> {
    request.slots.iter().enumerate().filter(|(_, slot)| slot.mode != SlotMode::Result)
}

/// The slots that have a position of their own, and its type.
pub(super) fn positions(request: &Request) -> Vec<(usize, Kind)> {
    let kind = |mode| if mode == SlotMode::Index { Kind::I64 } else { Kind::POINTER };
    slots(request).filter(|(_, slot)| slot.near.is_none()).map(|(at, slot)| (at, kind(slot.mode))).collect()
}

/// Reads the distances of elements where they are no part of the code.
fn load_strides<'c>(b: &Builder<'c>, request: &Request, plan: &Plan, inner: Value<'c>, all: &mut [Slot<'c>]) {
    let is_strided = |slot: &SlotForm| slot.stride == Stride::Other || slot.mode == SlotMode::Index;
    for (at, _) in slots(request).filter(|(_, slot)| is_strided(slot)) {
        let stride = field(b, inner, at, Kind::I64);
        let distances = plan.widths().into_iter().map(|width| {
            let lanes = b.numbers(Element::I64, (0..width).map(i64::from));
            b.mul(b.broadcast(stride, width), lanes)
        });
        all[at].distances = distances.collect();
        all[at].stride = Some(stride);
    }
}

/// Fills a buffer with a constant.
fn fill<'c>(b: &Builder<'c>, constant: Value<'c>, dtype: DType, buffer: Value<'c>, block: usize) {
    let value = if dtype == DType::Bool { b.extend(constant, Element::I8) } else { constant };
    let ([body, after], before) = (b.blocks(["fill", "filled"]), b.current());
    b.jump(body);
    b.begin(body);
    let at = b.phi(Kind::I64, &[(b.index(0), before)]);
    b.store(value, b.element(buffer, dtype, at.value), dtype.real_part().size());
    let next = b.add(at.value, b.index(1));
    at.add(next, body);
    b.branch(b.compare(Int::SLT, next, b.index(block as i64)), (body, after));
    b.begin(after);
}
