//! Reading every second, third or fourth element of memory in whole vectors, and elements that repeat.

use super::addresses::strided;
use super::{load_packed, place, unpack};
use crate::builder::{Builder, Value};
use crate::kernel::{At, Kernel};
use bh_bytecode::DType;
use bh_jit_abi::{SlotForm, Stride};
use bh_kernel::SlotMode;

/// Windows of memory: vectors of neighbours, of which every `step`th counts.
struct Windows<'c> {
    dtype: DType,
    step: u16,
    width: u16,
    /// The slot and the row that they are counted from, and its first element's address.
    slot: usize,
    row: i64,
    first: Value<'c>,
}

/// Reads a sparse vector: whole vectors of memory, from which its lanes are selected. If all lanes count, at least one more element
/// must follow in the row, so that the memory between it and the last lane exists.
pub(super) fn load_sparse<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>, slot: u16, at: &At<'c>) -> Value<'c> {
    let SlotForm { dtype, stride, .. } = kernel.request.slots[usize::from(slot)];
    let step = stride.step().unwrap_or(1);
    let (base, row, between) = place(kernel, slot.into(), at.row);
    let width = at.width.min((kernel.request.level.bytes() / dtype.size()) as u16);
    let windows = Windows { dtype, step, width, slot: base, row, first: strided(b, kernel, base, at) };
    let parts = (0..at.width * step).step_by((width * step).into()).map(|part| {
        let begins = (part..part + width * step).step_by(width.into());
        let loaded: Vec<Value> = begins.map(|begin| window(b, kernel, &windows, begin, at)).collect();
        choose(b, &loaded, between as u16, step)
    });
    let parts: Vec<Value> = parts.collect();
    unpack(b, dtype, b.join(&parts))
}

/// Reads the window that begins at an element, once for all that choose from it.
fn window<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>, windows: &Windows<'c>, begin: u16, at: &At<'c>) -> Value<'c> {
    let &Windows { dtype, step, width, slot, row, first } = windows;
    let place = (slot, row, begin.into());
    if let Some(known) = kernel.vector.read(place) {
        return known;
    }
    let mask = at.mask.map(|mask| {
        // The memory before the last lane that counts, for the slots that begin here: the lane after each element.
        let slots = kernel.request.slots.iter().filter(|slot| slot.mode == SlotMode::Read);
        let near = slots.filter_map(|slot| slot.near).filter(|near| usize::from(near.slot) == slot);
        let furthest = near.map(|near| near.distance).max().unwrap_or(0) as u16;
        let lane = |element: u16| element.saturating_sub(furthest).div_ceil(step).min(at.width);
        b.shuffle_two(mask, b.zero(mask.kind), (begin..begin + width).map(|element| Some(lane(element))))
    });
    let address = b.element(first, dtype, b.index(begin.into()));
    let loaded = load_packed(b, dtype, address, width, mask);
    kernel.vector.keep(place, loaded)
}

/// The elements of some windows that lie `step` apart from element `begin` on.
fn choose<'c>(b: &Builder<'c>, windows: &[Value<'c>], begin: u16, step: u16) -> Value<'c> {
    let (mut chosen, width) = (windows[0], windows[0].lanes());
    for (window, &value) in (1..).zip(&windows[1..]) {
        let lane = |lane: u16| {
            let element = begin + lane * step;
            match element / width {
                of if of == window => Some(width + element % width),
                0 if window == 1 => Some(element),
                of if of < window => Some(lane),
                _ => None,
            }
        };
        chosen = b.shuffle_two(chosen, value, (0..width).map(lane));
    }
    chosen
}

/// Reads a vector of which each element, or several of them, repeat. Vectors begin at multiples of their
/// width, which is a power of two as well.
pub(super) fn load_repeated<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, slot: u16, at: &At<'c>) -> Value<'c> {
    let SlotForm { dtype, stride, .. } = kernel.request.slots[usize::from(slot)];
    let (width, repeat, is_cycle) = (at.width, u16::from(kernel.request.repeat), stride == Stride::Cycle);
    let position = kernel.rows.position(slot.into(), at.row.into());
    let element = b.add(at.element, b.index(at.offset.into()));
    let element = match is_cycle {
        true => b.and(element, b.index(i64::from(repeat) - 1)),
        false => b.lshr(element, b.index(repeat.trailing_zeros().into())),
    };
    let address = b.element(position, dtype, element);
    let count = if is_cycle { repeat.min(width) } else { (width / repeat).max(1) };
    // All elements of a cycle exist; of repeated ones only those of lanes that count.
    let mask = at.mask.filter(|_| !is_cycle && count > 1);
    let mask = mask.map(|mask| b.shuffle(mask, (0..count).map(|lane| lane * repeat)));
    let loaded = load_packed(b, dtype, address, count, mask);
    let all = b.shuffle(loaded, (0..width).map(|lane| if is_cycle { lane % count } else { lane * count / width }));
    unpack(b, dtype, all)
}

#[cfg(test)]
mod tests {
    use bh_jit_abi::{Level, Near, Stride};
    use bh_kernel::{Arg, SlotMode, Step};

    #[test]
    fn what_alternates_in_memory_is_read_once() {
        let modes = [SlotMode::Read, SlotMode::Read, SlotMode::Write];
        let steps = vec![
            Step::Load { slot: 0 },
            Step::Load { slot: 1 },
            Step::Store { slot: 2, arg: Arg::Value(0) },
            Step::Store { slot: 2, arg: Arg::Value(1) },
        ];
        let loads = |near| {
            let mut request = crate::request(Level::Avx512, &modes, steps.clone());
            for slot in &mut request.slots[..2] {
                slot.stride = Stride::Two;
            }
            request.slots[1].near = near;
            crate::text(&request).unwrap().matches(" = load <8 x double>").count()
        };
        assert_eq!(2 * loads(Some(Near { slot: 0, rows: 0, distance: 1 })), loads(None));
    }
}
