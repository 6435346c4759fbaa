//! Reading and writing the slots of a kernel.

mod addresses;
mod deinterleave;
mod lanes;
mod packed;
mod prefetch;

pub(crate) use addresses::{place, unit_address};
pub(crate) use packed::{load_packed, load_vector, pack, store_packed, store_vector, unpack};
pub(crate) use prefetch::{place_prefetched, prefetch};

use crate::builder::{Builder, Value};
use crate::kernel::{At, Kernel};
use bh_bytecode::DType;
use bh_jit_abi::Stride;

/// Bytes of a line of the caches.
pub(crate) const LINE: usize = 64;

/// The numbers of an index view.
pub(crate) fn numbers<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, slot: u16, at: &At<'c>) -> Value<'c> {
    let position = kernel.rows.position(slot.into(), at.row.into());
    let element = b.add(at.element, b.index(at.offset.into()));
    let slot = &kernel.parameters.slots[usize::from(slot)];
    let first = b.add(position, b.mul(element, slot.stride()));
    b.add(b.broadcast(first, at.width), slot.distances(at.width))
}

/// Reads a vector of a slot, unless the rows side by side have read it.
pub(crate) fn load<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>, slot: u16, at: &At<'c>) -> Value<'c> {
    let form = kernel.request.slots[usize::from(slot)];
    match form.stride {
        Stride::Zero => kernel.rows.invariant(slot, at.width, at.row),
        Stride::Unit => {
            let place = place(kernel, slot.into(), at.row);
            kernel.vector.read(place).unwrap_or_else(|| {
                let address = unit_address(b, kernel, slot.into(), at.row, at.element, at.offset.into());
                let loaded = unpack(b, form.dtype, load_packed(b, form.dtype, address, at.width, at.mask));
                kernel.vector.keep(place, loaded)
            })
        }
        Stride::Again | Stride::Cycle => deinterleave::load_repeated(b, kernel, slot, at),
        Stride::Two | Stride::Three | Stride::Four if at.width > 1 => deinterleave::load_sparse(b, kernel, slot, at),
        Stride::Two | Stride::Three | Stride::Four | Stride::Other => {
            let first = addresses::strided(b, kernel, slot.into(), at);
            match at.mask {
                Some(mask) => lanes::gather(b, kernel, slot.into(), first, mask),
                None => lanes::load(b, kernel, slot.into(), first, at.width),
            }
        }
    }
}

/// Writes a vector of a slot.
pub(crate) fn store<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, slot: usize, value: Value<'c>, at: &At<'c>) {
    let form = kernel.request.slots[slot];
    let dtype = form.dtype;
    if let Some(buffer) = kernel.plan.slot_buffers[slot] {
        return store_buffer(b, kernel, (buffer, dtype), value, at);
    }
    if form.stride == Stride::Unit {
        let value = pack(b, dtype, value);
        let address = unit_address(b, kernel, slot, at.row, at.element, at.offset.into());
        if at.mask.is_none() && kernel.in_lines && kernel.plan.non_temporal[slot] {
            return b.store_non_temporal(value, address, LINE.min(dtype.size() * usize::from(at.width)));
        }
        return store_packed(b, dtype, value, address, at.mask);
    }
    let first = addresses::strided(b, kernel, slot, at);
    match at.mask {
        Some(mask) => lanes::scatter(b, kernel, slot, value, first, mask),
        None => lanes::store(b, kernel, slot, value, first),
    }
}

/// Where a buffer of the block has the elements of a vector.
fn buffer_address<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, (buffer, dtype): (u16, DType), at: &At<'c>) -> Value<'c> {
    let address = b.element(kernel.parameters.buffers[usize::from(buffer)], dtype, at.index);
    b.element(address, dtype, b.index(at.offset.into()))
}

/// Reads a vector of a buffer.
pub(crate) fn load_buffer<'c>(
    b: &Builder<'c>,
    kernel: &Kernel<'c>,
    (buffer, dtype): (u16, DType),
    at: &At<'c>,
) -> Value<'c> {
    let address = buffer_address(b, kernel, (buffer, dtype), at);
    load_vector(b, dtype, address, 0, at.width)
}

/// Writes a vector of a buffer.
pub(crate) fn store_buffer<'c>(
    b: &Builder<'c>,
    kernel: &Kernel<'c>,
    (buffer, dtype): (u16, DType),
    value: Value<'c>,
    at: &At<'c>,
) {
    let address = buffer_address(b, kernel, (buffer, dtype), at);
    store_vector(b, dtype, address, 0, value);
}
