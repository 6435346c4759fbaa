//! The code of programs whose lanes take other elements: in each turn, lanes that are free take the next ones, and those that
//! wait in the loop go on.

use super::flow::Flow;
use super::lanes::{Exit, Mask, State};
use super::operation::Operations;
use super::refill::{Path, Refill, bits, count};
use super::tables::Tables;
use crate::builder::{Block, Builder, Element, Kind, Phi, Value};
use crate::complex;
use crate::memory::{pack, unpack};
use bh_bytecode::DType;
use bh_scalar::Program;
use inkwell::IntPredicate as Int;

/// Of each lane, how many lanes of a mask are before it.
fn before<'c>(b: &Builder<'c>, mask: Value<'c>) -> Value<'c> {
    let width = mask.lanes();
    let bits = bits(b, mask);
    let lower = b.numbers(Element::I64, (0..width).map(|lane| (1 << lane) - 1));
    b.intrinsic("ctpop", &[b.and(b.broadcast(bits, width), lower)])
}

/// The addresses of a part of elements.
fn addresses<'c>(b: &Builder<'c>, place: Value<'c>, dtype: DType, elements: Value<'c>, number: u16) -> Value<'c> {
    let size = b.numbers(Element::I64, (0..elements.lanes()).map(|_| dtype.size() as i64));
    let first = b.byte(place, b.index(i64::from(number) * dtype.real_part().size() as i64));
    b.bytes(first, b.mul(elements, size))
}

/// Reads elements in the lanes of a mask.
fn load<'c>(b: &Builder<'c>, place: Value<'c>, dtype: DType, elements: Value<'c>, mask: Value<'c>) -> Value<'c> {
    let part = dtype.real_part();
    let read = |number| {
        let from = addresses(b, place, dtype, elements, number);
        b.gather(Kind::memory(part, mask.lanes()), from, part.size(), mask)
    };
    if dtype.is_complex() { b.concatenate(read(0), read(1)) } else { unpack(b, dtype, read(0)) }
}

/// Writes elements in the lanes of a mask.
fn store<'c>(
    b: &Builder<'c>,
    value: Value<'c>,
    (place, dtype): (Value<'c>, DType),
    elements: Value<'c>,
    mask: Value<'c>,
) {
    let parts = if dtype.is_complex() { complex::split(b, value).to_vec() } else { vec![pack(b, dtype, value)] };
    for (number, value) in (0..).zip(parts) {
        b.scatter(value, addresses(b, place, dtype, elements, number), dtype.real_part().size(), mask);
    }
}

/// Builds the code for at least one element after the current block, and a jump to a block at the end. If few lanes are active, the
/// second form of the code at the end continues; returns its beginning.
pub(super) fn build<'a, 'c>(
    b: &'a Builder<'c>,
    program: &'a Program,
    path: Path,
    (operations, tables): (Operations<'c>, Tables<'c>),
    (places, all, width, turns): (&[Value<'c>], Value<'c>, u16, Value<'c>),
    exit: Block<'c>,
) -> Result<(Operations<'c>, Tables<'c>, Value<'c>), String> {
    let (entry, none) = (b.current(), b.index(0));
    let [turn, rest, more] = b.blocks(["elements", "rest", "more"]);
    let zeros: Vec<Value> = program.registers.iter().map(|dtype| b.zero(Kind::registers(*dtype, width))).collect();
    let (numbers, lanes) = (b.zero(Kind::vector(Element::I64, width)), b.zero(Kind::vector(Element::Bit, width)));
    b.jump(turn);
    b.begin(turn);
    let next = b.phi(Kind::I64, &[(none, entry)]);
    let (held, stay) = (b.phi(numbers.kind, &[(numbers, entry)]), b.phi(lanes.kind, &[(lanes, entry)]));
    let kept: Vec<Phi> = zeros.iter().map(|zero| b.phi(zero.kind, &[(*zero, entry)])).collect();
    let is_first = b.compare(Int::EQ, next.value, none);
    let free = b.not(stay.value);
    let taken = b.add(b.broadcast(next.value, width), before(b, free));
    let fresh = b.and(free, b.compare(Int::SLT, taken, b.broadcast(all, width)));
    let elements = b.select(free, taken, held.value);
    let following = b.add(next.value, count(b, free));
    let is_more = b.compare(Int::SLT, following, all);
    let waits = b.and(is_more, b.not(is_first));
    let least = b.select(waits, b.index(i64::from(width) / 2), none);
    let mut registers = zeros.clone();
    for (register, &dtype) in program.input_types().iter().enumerate() {
        registers[register] = load(b, places[register], dtype, elements, fresh);
    }
    let carried = kept.iter().map(|phi| phi.value).collect();
    let mut flow = Flow::new(b, program, (operations, tables), (fresh, turns));
    flow.refill = Some(Refill { path, stay: stay.value, kept: carried, least, left: None });
    let mut state = State { registers, active: Mask::Some(fresh), exits: Vec::<Exit>::new() };
    flow.list(&mut state, &program.body)?;
    let done = match state.active {
        Mask::Some(done) => done,
        Mask::All => fresh,
        Mask::Nobody => lanes,
    };
    for (at, &dtype) in program.output_types().iter().enumerate() {
        let register = program.inputs + at;
        store(b, state.registers[register], (places[register], dtype), elements, done);
    }
    let left = flow.refill.take().and_then(|refill| refill.left);
    // Nobody may ever come to the loop.
    let (waiting, values, sum) = left.unwrap_or((lanes, zeros, none));
    // Loops that never end have been given up.
    let goes_on = b.compare(Int::SGE, b.load(Kind::I64, turns, 8), none);
    let goes_on = b.and(goes_on, b.or(is_more, b.any(waiting)));
    b.branch(goes_on, (more, exit));
    b.begin(more);
    let pays = b.or(b.not(is_first), b.compare(Int::SLT, sum, none));
    let end = b.current();
    next.add(following, end);
    held.add(elements, end);
    stay.add(waiting, end);
    kept.iter().zip(values).for_each(|(phi, value)| phi.add(value, end));
    b.branch(pays, (turn, rest));
    b.begin(rest);
    Ok((flow.operations, flow.tables, following))
}
