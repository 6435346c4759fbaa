//! Where the elements of slots are.

use crate::builder::{Builder, Element, Value};
use crate::kernel::{At, Kernel};

/// Where a dense slot's elements are in a row: the slot whose position leads there, the row from that, and the distance
/// in elements.
pub(crate) fn place(kernel: &Kernel, slot: usize, row: u16) -> (usize, i64, i64) {
    kernel.request.slots[slot].near.map_or((slot, row.into(), 0), |near| {
        (near.slot.into(), i64::from(row) + i64::from(near.rows), near.distance.into())
    })
}

/// The address of element `element` (and some) of a dense slot in a row.
pub(crate) fn unit_address<'c>(
    b: &Builder<'c>,
    kernel: &Kernel<'c>,
    slot: usize,
    row: u16,
    element: Value<'c>,
    offset: i64,
) -> Value<'c> {
    let (base, row, distance) = place(kernel, slot, row);
    let dtype = kernel.request.slots[slot].dtype;
    let address = b.element(kernel.rows.position(base, row), dtype, element);
    match offset + distance {
        0 => address,
        distance => b.element(address, dtype, b.index(distance)),
    }
}

/// The distance of a strided slot's elements in bytes, if that is a part of the code.
fn pitch(kernel: &Kernel, slot: usize) -> Option<i64> {
    let form = kernel.request.slots[slot];
    Some(i64::from(form.stride.step()?) * form.dtype.size() as i64)
}

/// The address of a strided vector's first lane.
pub(super) fn strided<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, slot: usize, at: &At<'c>) -> Value<'c> {
    let (base, row, between) = place(kernel, slot, at.row);
    let position = kernel.rows.position(base, row);
    let element = b.add(at.element, b.index(at.offset.into()));
    let distance = match pitch(kernel, slot) {
        Some(pitch) => b.mul(element, b.index(pitch)),
        None => b.mul(element, kernel.parameters.slots[slot].stride()),
    };
    let address = b.byte(position, distance);
    match between {
        0 => address,
        _ => b.element(address, kernel.request.slots[slot].dtype, b.index(between)),
    }
}

/// The addresses of the real or of the imaginary parts of its lanes.
pub(super) fn of_parts<'c>(
    b: &Builder<'c>,
    kernel: &Kernel<'c>,
    slot: usize,
    first: Value<'c>,
    (number, width): (u16, u16),
) -> Value<'c> {
    let first = match kernel.request.slots[slot].dtype.real_part().size() as i64 * i64::from(number) {
        0 => first,
        distance => b.byte(first, b.index(distance)),
    };
    let distances = match pitch(kernel, slot) {
        Some(pitch) => b.numbers(Element::I64, (0..i64::from(width)).map(|lane| lane * pitch)),
        None => kernel.parameters.slots[slot].distances(width),
    };
    b.bytes(first, distances)
}

/// The address of one of its lanes.
pub(super) fn of_lane<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, slot: usize, first: Value<'c>, lane: u16) -> Value<'c> {
    let distance = match pitch(kernel, slot) {
        Some(pitch) => b.index(pitch * i64::from(lane)),
        None => b.mul(kernel.parameters.slots[slot].stride(), b.index(lane.into())),
    };
    b.byte(first, distance)
}
