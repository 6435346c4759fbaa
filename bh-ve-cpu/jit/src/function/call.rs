//! Reading the call of a kernel: once, before all rows.

use crate::builder::{Builder, Element, Kind, Value};
use crate::kernel::{Parameters, Slot, Uniform, folds, positions, slots};
use crate::non_temporal::compare_streams;
use crate::plan::Plan;
use crate::reduction::load_neutral;
use bh_bytecode::DType;
use bh_jit_abi::{Request, SlotForm, Stride};
use bh_kernel::{Arg, SlotMode};
use inkwell::IntPredicate as Int;

/// A 64-bit field of a table.
fn field<'c>(b: &Builder<'c>, table: Value<'c>, at: usize, kind: Kind) -> Value<'c> {
    b.load(kind, b.byte(table, b.index(at as i64 * 8)), 8)
}

/// Reads the call.
pub(super) fn load<'c>(b: &Builder<'c>, request: &Request, plan: &Plan) -> Parameters<'c> {
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
    load_constants(b, request, plan, &mut parameters);
    parameters
}

/// Reads constants, prepares those that divide, and fills the buffers of those that are operands of calls.
fn load_constants<'c>(b: &Builder<'c>, request: &Request, plan: &Plan, parameters: &mut Parameters<'c>) {
    for (at, &dtype) in request.constants.iter().enumerate() {
        let constant = Uniform::load(b, b.byte(parameters.table, b.index(at as i64 * 16)), dtype, plan);
        if plan.vectors.multiplied.divides_by(Arg::Constant(at as u16)) {
            let elements = b.mul(parameters.rows, parameters.count);
            parameters.divisors.extend(constant.prepare(b, request, dtype, elements));
        }
        parameters.constants.push(constant);
    }
    for (at, buffer) in plan.constant_buffers.iter().enumerate() {
        if let Some(buffer) = *buffer {
            let (dtype, buffer) = (request.constants[at], parameters.buffers[usize::from(buffer)]);
            fill(b, parameters.constants[at].scalar, dtype, buffer, plan.block);
        }
    }
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
