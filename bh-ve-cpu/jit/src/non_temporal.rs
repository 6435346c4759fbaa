//! Writing past the caches within a loop.
//!
//! Such stores want whole, aligned vectors, but rows begin anywhere, and where lanes are folded a loop cannot begin
//! somewhere else. So each aligned vector of memory is put together from two neighbouring vectors of the loop: the end
//! of the one before and the begin of the current one. A row's first and last elements are written as usual, as their
//! cache lines belong to others as well.
//!
//! Where several arrays are written so and lie alike, which is known when the kernel is called, their rows begin at the same
//! place of a line. Then the loop begins with a part of a vector instead, and its vectors are written as they are.

use crate::builder::{Block, Builder, Element, Kind, Mostly, Phi, Value};
use crate::kernel::{At, Kernel, Slot, Stream};
use crate::memory::{LINE, pack};
use crate::plan::{Loop, Plan, unit};
use bh_jit_abi::Request;
use inkwell::IntPredicate as Int;

/// Bits of the processor's vectors.
const REGISTER: usize = 512;

/// An aligned register to be written to an address: its stream, and its number among the registers of an iteration.
struct Line<'c> {
    stream: usize,
    register: u16,
    value: Value<'c>,
    address: Value<'c>,
}

/// Tests, once for all rows, whether all outputs that bypass the caches have the same alignment, if there are loops for that case:
/// the same distance from the beginning of a line in the first row, and the same distance between rows.
pub(crate) fn compare_streams<'c>(
    b: &Builder<'c>,
    request: &Request,
    plan: &Plan,
    slots: &[Slot<'c>],
) -> Option<Value<'c>> {
    let (first, others) = plan.vectors.alike.split_first()?;
    // Parts of elements must not lie in two lines either.
    let part = request.slots[usize::from(*first)].dtype.size() as i64 - 1;
    let first = &slots[usize::from(*first)];
    let begin = b.address_of(first.position());
    let mut all = b.and(b.or(begin, first.pitch()), b.index(part));
    for other in others {
        let other = &slots[usize::from(*other)];
        let apart = b.xor(b.address_of(other.position()), begin);
        let rows_apart = b.xor(other.pitch(), first.pitch());
        all = b.or(b.or(all, apart), rows_apart);
    }
    Some(b.compare(Int::EQ, b.and(all, b.index(LINE as i64 - 1)), b.index(0)))
}

/// Prepares the outputs that a loop over whole vectors writes past the caches, from the beginning of the row.
pub(crate) fn begin_streams<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, each: Loop, from: Value<'c>) -> Vec<Stream<'c>> {
    if each.masked || each.width == 1 || from != b.index(0) {
        return Vec::new();
    }
    let mut streams = Vec::new();
    for slot in 0..kernel.request.slots.len() {
        let dtype = kernel.request.slots[slot].dtype;
        let Some(bits) = unit(dtype).filter(|_| kernel.plan.non_temporal[slot]) else { continue };
        let all = usize::from(each.width) * dtype.size() * 8;
        let registers = all.div_ceil(REGISTER) as u16;
        let kind = Kind::vector(Element::integer(bits), (all.min(REGISTER) / bits) as u16);
        for row in 0..kernel.rows.count {
            streams.push(begin_stream(b, kernel, (slot, row), (kind, registers)));
        }
    }
    streams
}

fn begin_stream<'c>(
    b: &Builder<'c>,
    kernel: &Kernel<'c>,
    (slot, row): (usize, u16),
    (kind, registers): (Kind, u16),
) -> Stream<'c> {
    let dtype = kernel.request.slots[slot].dtype;
    let (size, width) = (dtype.size().min(8), kind.lanes);
    let begin = kernel.rows.position(slot, row.into());
    let past = b.and(b.address_of(begin), b.index((usize::from(width) * size) as i64 - 1));
    let line = b.byte(begin, b.sub(b.index(0), past));
    let past = b.lshr(past, b.index(size.ilog2().into()));
    let past = b.truncate(past, Element::I32);
    let past = if size == 8 { b.extend(past, Element::I64) } else { past };
    let past = b.broadcast(past, width);
    let numbers = b.numbers(kind.element, (0..width).map(i64::from));
    let early = b.compare(Int::UGT, past, numbers);
    let order = b.sub(numbers, past);
    let all = b.splat(kind, 2 * i64::from(width) - 1);
    let order = b.add(order, b.splat(kind, i64::from(width)));
    let order = b.and(order, all);
    Stream { slot, row, dtype, kind, registers, line, order, early, before: order }
}

/// Takes the vectors before at the begin of the loop's body; [`continue_streams`] adds those of the other turns.
pub(crate) fn enter_streams<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>, enter: Block<'c>) -> Vec<Phi<'c>> {
    let enter = |stream: &mut Stream<'c>| {
        let before = b.phi(stream.kind, &[(b.zero(stream.kind), enter)]);
        stream.before = before.value;
        before
    };
    kernel.streams.iter_mut().map(enter).collect()
}

/// Hands the last vectors on to the next turn.
pub(crate) fn continue_streams<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, before: &[Phi<'c>], latch: Block<'c>) {
    for (stream, phi) in kernel.streams.iter().zip(before) {
        phi.add(b.freeze(stream.before), latch);
    }
}

/// The number of the stream that writes a slot in a row.
pub(crate) fn stream(kernel: &Kernel, slot: usize, row: u16) -> Option<usize> {
    kernel.streams.iter().position(|stream| stream.slot == slot && stream.row == row)
}

/// Writes a vector of each of some streams.
pub(crate) fn write_streams<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>, values: &[(usize, Value<'c>)], at: &At<'c>) {
    if values.is_empty() {
        return;
    }
    let mut lines = Vec::with_capacity(values.len());
    for &(number, value) in values {
        let stream = &mut kernel.streams[number];
        for (register, current) in (0..).zip(registers(b, stream, value)) {
            let value = joined(b, stream, current);
            stream.before = current;
            let begin = usize::from(at.offset) * stream.dtype.size() / stream.size();
            let numbers = begin + usize::from(register * stream.kind.lanes);
            lines.push(Line { stream: number, register, value, address: line_address(b, stream, at.element, numbers) });
        }
    }
    let write = |line: &Line<'c>| {
        let bytes = usize::from(kernel.streams[line.stream].kind.lanes) * kernel.streams[line.stream].size();
        b.store_non_temporal(line.value, line.address, bytes);
    };
    if at.offset > 0 {
        return lines.iter().for_each(write);
    }
    // The row's first elements.
    let (begins, others): (Vec<Line>, Vec<Line>) = lines.into_iter().partition(|line| line.register == 0);
    let [first, rest, join] = b.blocks(["first", "rest", "written"]);
    let is_first = b.compare(Int::EQ, at.element, b.index(0));
    b.branch_mostly(Mostly::Passed, is_first, (first, rest));
    b.begin(first);
    for line in &begins {
        let stream = &kernel.streams[line.stream];
        let all = b.splat(stream.early.kind, 1);
        write_part(b, stream, line, b.xor(stream.early, all));
    }
    b.jump(join);
    b.begin(rest);
    begins.iter().for_each(write);
    b.jump(join);
    b.begin(join);
    others.iter().for_each(write);
}

/// The registers of a vector, as they lie in memory.
fn registers<'c>(b: &Builder<'c>, stream: &Stream<'c>, value: Value<'c>) -> Vec<Value<'c>> {
    let Stream { dtype, kind, registers, .. } = *stream;
    let value = b.bitcast(pack(b, dtype, value), Kind::vector(kind.element, kind.lanes * registers));
    if registers == 1 {
        return vec![value];
    }
    (0..registers).map(|register| b.shuffle(value, register * kind.lanes..(register + 1) * kind.lanes)).collect()
}

/// Writes the rest of the last vectors, after a loop that ends at element `end`.
pub(crate) fn end_streams<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>, end: Value<'c>) {
    for (number, stream) in std::mem::take(&mut kernel.streams).iter().enumerate() {
        let value = joined(b, stream, stream.before);
        let address = line_address(b, stream, end, 0);
        write_part(b, stream, &Line { stream: number, register: 0, value, address }, stream.early);
    }
}

/// The aligned register that ends in `current`.
fn joined<'c>(b: &Builder<'c>, stream: &Stream<'c>, current: Value<'c>) -> Value<'c> {
    let form = if stream.size() == 8 { "q" } else { "d" };
    let bits = usize::from(stream.kind.lanes) * stream.size() * 8;
    let name = format!("llvm.x86.avx512.vpermi2var.{form}.{bits}");
    b.call(&name, stream.kind, &[stream.before, stream.order, current])
}

/// The aligned address that belongs to an element, and the one `numbers` numbers further on.
fn line_address<'c>(b: &Builder<'c>, stream: &Stream<'c>, element: Value<'c>, numbers: usize) -> Value<'c> {
    let address = b.element(stream.line, stream.dtype, element);
    match numbers {
        0 => address,
        numbers => b.number(address, stream.kind.element, b.index(numbers as i64)),
    }
}

fn write_part<'c>(b: &Builder<'c>, stream: &Stream<'c>, line: &Line<'c>, mask: Value<'c>) {
    b.store_masked(line.value, line.address, stream.size(), mask);
}
