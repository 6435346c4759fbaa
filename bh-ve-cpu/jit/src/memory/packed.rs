//! Neighbours in memory: truth values are bytes in memory and bits in registers, and parts of complex numbers alternate in
//! memory.

use crate::builder::{Builder, Element, Kind, Value};
use crate::complex;
use bh_bytecode::DType;
use inkwell::IntPredicate;

/// From memory to registers.
pub(crate) fn unpack<'c>(b: &Builder<'c>, dtype: DType, loaded: Value<'c>) -> Value<'c> {
    match dtype {
        DType::Bool => b.compare(IntPredicate::NE, loaded, b.zero(loaded.kind)),
        DType::C64 | DType::C128 => complex::unpack(b, loaded),
        _ => loaded,
    }
}

/// From registers to memory.
pub(crate) fn pack<'c>(b: &Builder<'c>, dtype: DType, value: Value<'c>) -> Value<'c> {
    match dtype {
        DType::Bool => b.extend(value, Element::I8),
        DType::C64 | DType::C128 => complex::pack(b, value),
        _ => value,
    }
}

/// Reads elements, as they are in memory; with a mask those that count.
pub(crate) fn load_packed<'c>(
    b: &Builder<'c>,
    dtype: DType,
    address: Value<'c>,
    width: u16,
    mask: Option<Value<'c>>,
) -> Value<'c> {
    let (kind, align) = (Kind::memory(dtype, width), dtype.real_part().size());
    match mask {
        Some(mask) => b.load_masked(kind, address, align, mask_of(b, dtype, mask)),
        None => b.load(kind, address, align),
    }
}

/// Writes them.
pub(crate) fn store_packed<'c>(
    b: &Builder<'c>,
    dtype: DType,
    value: Value<'c>,
    address: Value<'c>,
    mask: Option<Value<'c>>,
) {
    let align = dtype.real_part().size();
    match mask {
        Some(mask) => b.store_masked(value, address, align, mask_of(b, dtype, mask)),
        None => b.store(value, address, align),
    }
}

/// The mask of the parts that elements have in memory.
fn mask_of<'c>(b: &Builder<'c>, dtype: DType, mask: Value<'c>) -> Value<'c> {
    if dtype.is_complex() { complex::mask_of_parts(b, mask) } else { mask }
}

/// Reads a dense vector, `offset` elements from an address.
pub(crate) fn load_vector<'c>(b: &Builder<'c>, dtype: DType, address: Value<'c>, offset: u16, width: u16) -> Value<'c> {
    let from = b.element(address, dtype, b.index(offset.into()));
    unpack(b, dtype, load_packed(b, dtype, from, width, None))
}

/// Writes a dense vector, `offset` elements from an address.
pub(crate) fn store_vector<'c>(b: &Builder<'c>, dtype: DType, address: Value<'c>, offset: u16, value: Value<'c>) {
    let value = pack(b, dtype, value);
    let to = b.element(address, dtype, b.index(offset.into()));
    store_packed(b, dtype, value, to, None);
}
