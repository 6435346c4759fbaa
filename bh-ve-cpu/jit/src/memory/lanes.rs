//! Vectors whose lanes lie anywhere in memory.

use super::addresses::{of_lane, of_parts};
use super::{pack, unpack};
use crate::builder::{Builder, Element, Kind, Value, parts};
use crate::complex;
use crate::kernel::Kernel;
use bh_bytecode::DType;

/// The type that a lane is read and written as.
fn lane(dtype: DType) -> Kind {
    if dtype == DType::C64 { Kind::scalar(Element::F64) } else { Kind::single(dtype) }
}

/// Reads the lanes that a mask says.
pub(super) fn gather<'c>(
    b: &Builder<'c>,
    kernel: &Kernel<'c>,
    slot: usize,
    first: Value<'c>,
    mask: Value<'c>,
) -> Value<'c> {
    let (dtype, width) = (kernel.request.slots[slot].dtype, mask.lanes());
    let part = dtype.real_part();
    let gathered = (0..parts(dtype)).map(|number| {
        let lanes = of_parts(b, kernel, slot, first, (number, width));
        b.gather(Kind::memory(part, width), lanes, part.size(), mask)
    });
    match gathered.collect::<Vec<Value>>()[..] {
        [re, im] => b.concatenate(re, im),
        [all, ..] => unpack(b, dtype, all),
        [] => first,
    }
}

/// Reads all lanes, one after the other: faster than the processor's own instruction, on some by far.
pub(super) fn load<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, slot: usize, first: Value<'c>, width: u16) -> Value<'c> {
    let dtype = kernel.request.slots[slot].dtype;
    let (kind, align) = (lane(dtype), dtype.real_part().size());
    let ones = (0..width).map(|lane| b.load(kind, of_lane(b, kernel, slot, first, lane), align));
    let ones: Vec<Value> = ones.collect();
    if dtype == DType::C128 {
        return unpack(b, dtype, complex::gather(b, ones));
    }
    let mut all = b.poison(Kind::vector(kind.element, width));
    for (lane, one) in (0..).zip(ones) {
        all = b.insert(all, one, b.constant(Kind::I32, lane));
    }
    let all = b.freeze(all);
    let all = if dtype == DType::C64 { b.bitcast(all, Kind::memory(dtype, width)) } else { all };
    unpack(b, dtype, all)
}

/// Writes the lanes that a mask says.
pub(super) fn scatter<'c>(
    b: &Builder<'c>,
    kernel: &Kernel<'c>,
    slot: usize,
    value: Value<'c>,
    first: Value<'c>,
    mask: Value<'c>,
) {
    let dtype = kernel.request.slots[slot].dtype;
    let values = if dtype.is_complex() { complex::split(b, value).to_vec() } else { vec![pack(b, dtype, value)] };
    for (number, value) in (0..).zip(values) {
        let lanes = of_parts(b, kernel, slot, first, (number, mask.lanes()));
        b.scatter(value, lanes, dtype.real_part().size(), mask);
    }
}

/// Writes all lanes, one after the other.
pub(super) fn store<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, slot: usize, value: Value<'c>, first: Value<'c>) {
    let dtype = kernel.request.slots[slot].dtype;
    let (kind, align) = (lane(dtype), dtype.real_part().size());
    let value = pack(b, dtype, value);
    let width = value.lanes() / parts(dtype);
    let value = if dtype == DType::C64 { b.bitcast(value, Kind::vector(kind.element, width)) } else { value };
    for lane in 0..width {
        let address = of_lane(b, kernel, slot, first, lane);
        let one = match dtype {
            DType::C128 => b.shuffle(value, 2 * lane..2 * lane + 2),
            _ => b.extract(value, b.constant(Kind::I32, i64::from(lane))),
        };
        b.store(one, address, align);
    }
}
