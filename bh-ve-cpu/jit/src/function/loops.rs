//! The loops over a segment's vectors.

use super::body;
use crate::builder::{Builder, Element, Kind, Phi, Value};
use crate::kernel::{At, Kernel};
use crate::memory::{LINE, unit_address};
use crate::plan::Loop;
use crate::{non_temporal, reduction};
use bh_bytecode::{DType, Opcode};
use inkwell::IntPredicate as Int;

/// Rows of fewer elements begin where they begin.
const LONG: i64 = 256;
/// The same where several arrays are written past the caches, in bytes of one: a partial vector at the beginning costs less than
/// putting vectors together would.
const LONG_STREAM: usize = 512;

/// A segment on a part of a row.
#[derive(Clone, Copy)]
struct Span<'c> {
    segment: usize,
    length: Value<'c>,
    /// The row's element where the part begins.
    base: Option<Value<'c>>,
}

/// The loops of a segment over a block of `length` elements that begins at element `base` of the row.
pub(super) fn segment<'c>(
    b: &Builder<'c>,
    kernel: &mut Kernel<'c>,
    segment: usize,
    length: Value<'c>,
    base: Option<Value<'c>>,
) -> Result<(), String> {
    let (span, vectors) = (Span { segment, length, base }, &kernel.plan.vectors);
    let loops = if kernel.rows.count > 1 { &vectors.loops_of_many } else { &vectors.loops };
    if let &[whole, masked] = loops.as_slice() {
        if let Some(guide) = vectors.aligned {
            let long = b.compare(Int::SGE, length, b.index(LONG));
            return aligned(b, kernel, span, (whole, masked), (guide, Some(long)));
        }
        if let Some(alike) = kernel.parameters.alike {
            return streams_alike(b, kernel, span, (whole, masked), alike);
        }
    }
    let mut from = b.index(0);
    for each in loops {
        from = one_loop(b, kernel, span, *each, from)?;
    }
    Ok(())
}

/// Loops that write several arrays past the caches: where these lie alike and rows are long, vectors that begin where
/// lines of all of them do; else vectors that are put together from two.
fn streams_alike<'c>(
    b: &Builder<'c>,
    kernel: &mut Kernel<'c>,
    span: Span<'c>,
    (whole, masked): (Loop, Loop),
    alike: Value<'c>,
) -> Result<(), String> {
    let guide = kernel.plan.vectors.alike[0];
    let size = kernel.request.slots[usize::from(guide)].dtype.size();
    let long = b.compare(Int::SGE, span.length, b.index((LONG_STREAM / size) as i64));
    let alike = b.and(long, alike);
    let [is_alike, is_apart, end] = b.blocks(["alike", "apart", "streamed"]);
    b.branch(alike, (is_alike, is_apart));
    b.begin(is_alike);
    kernel.in_lines = true;
    aligned(b, kernel, span, (whole, masked), (guide, None))?;
    kernel.in_lines = false;
    b.jump(end);
    b.begin(is_apart);
    let from = one_loop(b, kernel, span, whole, b.index(0))?;
    one_loop(b, kernel, span, masked, from)?;
    b.jump(end);
    b.begin(end);
    Ok(())
}

/// The loop over whole vectors, which begins where no vector of `guide` crosses a line of the caches, and the loop over the rest
/// before and after it. If a condition is given and false, the vectors begin where the row begins.
fn aligned<'c>(
    b: &Builder<'c>,
    kernel: &mut Kernel<'c>,
    span: Span<'c>,
    (whole, masked): (Loop, Loop),
    (guide, condition): (u16, Option<Value<'c>>),
) -> Result<(), String> {
    let (zero, size) = (b.index(0), kernel.request.slots[usize::from(guide)].dtype.size());
    let address = unit_address(b, kernel, guide.into(), 0, span.base.unwrap_or(zero), 0);
    let distance = b.sub(zero, b.address_of(address));
    let bytes = b.and(distance, b.index(LINE as i64 - 1));
    let elements = b.lshr(bytes, b.index(size.trailing_zeros().into()));
    let head = condition.map_or(elements, |condition| b.select(condition, elements, zero));
    let ([rest, body, back, end], before) = (b.blocks(["rest", "whole", "back", "done"]), b.current());
    b.jump(rest);
    b.begin(rest);
    let from = b.phi(Kind::I64, &[(zero, before)]);
    let to = b.phi(Kind::I64, &[(head, before), (span.length, back)]);
    let [no, yes] = [0, 1].map(|bit| b.constant(Kind::BIT, bit));
    let is_first = b.either((yes, before), (no, back));
    one_loop(b, kernel, Span { length: to.value, ..span }, masked, from.value)?;
    b.branch(is_first, (body, end));
    b.begin(body);
    let reached = one_loop(b, kernel, span, whole, head)?;
    b.jump(back);
    b.begin(back);
    // With an instruction of its own, the block stays where it is.
    from.add(b.add(reached, zero), back);
    b.jump(rest);
    b.begin(end);
    Ok(())
}

/// The element where the last whole group of vectors ends.
fn end_of_groups<'c>(
    b: &Builder<'c>,
    kernel: &Kernel<'c>,
    length: Value<'c>,
    from: Value<'c>,
    group: i64,
) -> Value<'c> {
    let mut left = b.sub(length, from);
    if kernel.request.slots.iter().any(|slot| slot.stride.is_sparse()) {
        // They need an element after the last vector.
        let before = b.sub(left, b.index(1));
        let none = b.compare(Int::EQ, left, b.index(0));
        left = b.select(none, b.index(0), before);
    }
    b.add(b.and(left, b.index(-group)), from)
}

/// One loop, from element `from` of the block on; gives the element where it ends.
fn one_loop<'c>(
    b: &Builder<'c>,
    kernel: &mut Kernel<'c>,
    span: Span<'c>,
    each: Loop,
    from: Value<'c>,
) -> Result<Value<'c>, String> {
    let group = i64::from(each.width * each.unroll);
    let is_exact = each.masked || group == 1;
    let end = if is_exact { span.length } else { end_of_groups(b, kernel, span.length, from, group) };
    let [enter, body, latch, leave, after] = b.blocks(["enter", "loop", "loop.end", "leave", "after"]);
    let (some, before) = (b.compare(Int::SLT, from, end), b.current());
    b.branch(some, (enter, after));
    b.begin(enter);
    let carries = kernel.plan.vectors.carries;
    let folds = folds_in_registers(kernel, span, each);
    let starts = if carries { kernel.carried.clone() } else { reduction::load_lanes(b, kernel, &folds, each) };
    kernel.streams = non_temporal::begin_streams(b, kernel, each, from);
    b.jump(body);
    b.begin(body);
    let index = b.phi(Kind::I64, &[(from, enter)]);
    let lanes: Vec<Phi> = starts.iter().map(|&start| b.phi(start.kind, &[(start, enter)])).collect();
    kernel.sums = nested(&lanes, folds.len(), each.unroll);
    let streams = non_temporal::enter_streams(b, kernel, enter);
    vectors(b, kernel, span, each, (index.value, !folds.is_empty()))?;
    b.jump(latch);
    b.begin(latch);
    let next = b.add(index.value, b.index(group));
    index.add(next, latch);
    for (phi, &sum) in lanes.iter().zip(kernel.sums.iter().flatten().flatten()) {
        phi.add(b.freeze(sum), latch);
    }
    non_temporal::continue_streams(b, kernel, &streams, latch);
    // With carried lanes it is the rest of one group, so the mask can be computed before all rows.
    let once = carries && each.masked;
    let more = if once { b.constant(Kind::BIT, 0) } else { b.compare(Int::SLT, next, end) };
    b.branch(more, (body, leave));
    b.begin(leave);
    if !carries {
        reduction::store_lanes(b, kernel, &folds, each);
    }
    non_temporal::end_streams(b, kernel, end);
    let left = b.current();
    b.jump(after);
    b.begin(after);
    if carries {
        let sums = kernel.sums.iter().flatten().flatten();
        let carried = starts.iter().zip(sums).map(|(&start, &sum)| b.either((start, before), (sum, left)));
        kernel.carried = carried.collect();
    }
    Ok(end)
}

/// The folds whose lanes a loop holds in registers.
fn folds_in_registers(kernel: &Kernel, span: Span, each: Loop) -> Vec<(Opcode, DType)> {
    let is_last = span.segment + 1 == kernel.plan.segments;
    let is_whole = each.width * each.unroll == 32 && (kernel.plan.vectors.carries || !each.masked);
    if is_whole && is_last && kernel.request.folds.has_lanes() { kernel.folds() } else { Vec::new() }
}

/// Lanes by row, fold and vector.
fn nested<'c>(lanes: &[Phi<'c>], folds: usize, unroll: u16) -> Vec<Vec<Vec<Value<'c>>>> {
    let vectors: Vec<Vec<Value>> =
        lanes.chunks(unroll.into()).map(|chunk| chunk.iter().map(|phi| phi.value).collect()).collect();
    vectors.chunks(folds.max(1)).map(<[_]>::to_vec).collect()
}

/// The vectors of one turn of a loop at an element of the block.
fn vectors<'c>(
    b: &Builder<'c>,
    kernel: &mut Kernel<'c>,
    span: Span<'c>,
    each: Loop,
    (index, in_registers): (Value<'c>, bool),
) -> Result<(), String> {
    let element = span.base.map_or(index, |base| b.add(base, index));
    let limit = each.masked.then(|| {
        let left = b.truncate(b.sub(span.length, index), Element::I32);
        b.broadcast(left, each.width)
    });
    for vector in 0..each.unroll {
        let (offset, width) = (vector * each.width, each.width);
        let mask = limit.map(|limit| {
            let lanes = b.numbers(Element::I32, (offset..offset + width).map(i64::from));
            b.compare(Int::UGT, limit, lanes)
        });
        let register = in_registers.then_some(usize::from(vector));
        body::vectors(b, kernel, &At { element, index, offset, width, mask, segment: span.segment, register, row: 0 })?;
    }
    Ok(())
}
