//! Fetching memory before it is read.

use super::LINE;
use crate::builder::{Builder, Kind, Value};
use crate::kernel::{Ahead, At, Kernel};
use bh_jit_abi::{Request, SlotForm, Stride};
use bh_kernel::SlotMode;
use inkwell::IntPredicate as Int;

/// The distance by which memory is fetched ahead, in bytes of a row: at least, and at most. Fetched lines must leave room for those in
/// use in the nearest cache: D3Q19, which reads 19 rows, lost 5% with all of them a kilobyte ahead.
const PREFETCH: std::ops::RangeInclusive<usize> = 256..=1024;
/// Bytes on their way, for all rows.
const FETCHED: usize = 8 << 10;
/// From this number of rows on, they are fetched into the second-level cache: D3Q19 takes 5% less time than with the nearest
/// one, the 27-point stencil 7%; few rows take more.
const MANY: usize = 8;
/// How far ahead memory is fetched where it is one row only: as far as it comes in the time between two calls.
const FETCHED_ALONE: usize = 4 << 10;

/// The slots for which something is fetched.
fn prefetched(request: &Request) -> Vec<usize> {
    let fetches = |slot: &SlotForm| {
        slot.mode == SlotMode::Read && slot.stride == Stride::Unit && slot.near.is_none() && slot.fetch
    };
    let slots = request.slots.iter().enumerate();
    slots.filter(|(_, slot)| fetches(slot)).map(|(at, _)| at).collect()
}

/// How many rows are fetched.
fn rows(kernel: &Kernel) -> usize {
    prefetched(kernel.request).len() * usize::from(kernel.rows.count)
}

/// The distance from the read element to the fetched one, in bytes.
fn distance(kernel: &Kernel) -> usize {
    match rows(kernel) {
        1 => FETCHED_ALONE,
        rows => (FETCHED / rows.max(1) / LINE * LINE).clamp(*PREFETCH.start(), *PREFETCH.end()),
    }
}

/// Finds the element from which on the rows after those side by side are fetched, and their distance: memory after the end of a row
/// is the row beside it, which the cache has. The processor prefetches few rows itself, and short loops are faster without this.
pub(crate) fn place_prefetched<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>) {
    if kernel.rows.count == 1 || rows(kernel) < MANY {
        return;
    }
    for slot in prefetched(kernel.request) {
        let (size, count) = (kernel.request.slots[slot].dtype.size(), kernel.parameters.count);
        let most = b.index((distance(kernel) / size) as i64);
        let size = b.index(size as i64);
        let elements = b.select(b.compare(Int::SGT, count, most), most, count);
        let turn = b.sub(count, elements);
        let along = b.mul(elements, size);
        let group = b.mul(kernel.parameters.slots[slot].pitch(), b.index(kernel.rows.count.into()));
        let next = b.named("next.rows", b.sub(group, b.mul(turn, size)));
        kernel.rows.ahead.push(Ahead { slot, turn, along, next });
    }
}

/// How far from a row's begin that lies which is fetched while an element is read: further along the row, or along the
/// row that comes when those beside each other are done.
fn further<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, ahead: &Ahead<'c>, at: &At<'c>) -> Value<'c> {
    let size = b.index(kernel.request.slots[ahead.slot].dtype.size() as i64);
    let turns = b.compare(Int::SGE, at.element, ahead.turn);
    let further = b.select(turns, ahead.next, ahead.along);
    b.add(b.mul(at.element, size), further)
}

/// Fetches memory that the rows will read later: the rows that no earlier ones have read. The processor's own prefetching does not
/// reach far enough.
pub(crate) fn prefetch<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, at: &At<'c>) {
    if at.segment > 0 || at.mask.is_some() || at.width == 1 {
        return;
    }
    for slot in prefetched(kernel.request) {
        let size = kernel.request.slots[slot].dtype.size();
        let begins_line = (usize::from(at.offset) * size).is_multiple_of(LINE);
        if begins_line || size * usize::from(at.width) >= LINE {
            prefetch_slot(b, kernel, slot, at);
        }
    }
}

fn prefetch_slot<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, slot: usize, at: &At<'c>) {
    let near = kernel.request.slots.iter().filter_map(|slot| slot.near);
    let furthest = near.filter(|near| usize::from(near.slot) == slot).map(|near| i64::from(near.rows));
    let furthest = furthest.fold(0, i64::max);
    let dtype = kernel.request.slots[slot].dtype;
    let vector = dtype.size() * usize::from(at.width);
    let ahead = kernel.rows.ahead.iter().find(|ahead| ahead.slot == slot);
    let next = ahead.map(|ahead| further(b, kernel, ahead, at));
    let offset = usize::from(at.offset) * dtype.size();
    for row in 0..i64::from(kernel.rows.count) {
        let position = kernel.rows.position(slot, row + furthest);
        let address = match next {
            Some(next) => b.byte(position, next),
            None => b.element(position, dtype, at.element),
        };
        // `next` includes the distance. If many rows are fetched, the nearest cache is left to those in use.
        let begin = offset + if next.is_some() { 0 } else { distance(kernel) };
        let near = if rows(kernel) < MANY { 3 } else { 2 };
        for line in (begin..begin + vector).step_by(LINE) {
            let address = b.byte(address, b.index(line as i64));
            let [read, near, data] = [0, near, 1].map(|number| b.constant(Kind::I32, number));
            b.call_void("llvm.prefetch.p0", &[address, read, near, data]);
        }
    }
}
