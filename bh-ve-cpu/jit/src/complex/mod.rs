//! Complex numbers in the code of a kernel.
//!
//! In memory real and imaginary parts alternate. In registers a vector has all real parts and then all imaginary ones, as
//! one value: sums are one instruction, and operations that mix the parts take the halves, which are whole registers.

mod operations;

use crate::builder::{Builder, Value};
use crate::mathematics::{either, modulus_of_all, square_of_modulus};
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::Level;
use bh_kernel::Step;

/// One element in all lanes.
pub(crate) fn broadcast<'c>(b: &Builder<'c>, dtype: DType, width: u16, one: Value<'c>) -> Value<'c> {
    if dtype.is_complex() { b.shuffle(one, (0..2 * width).map(|lane| lane / width)) } else { b.broadcast(one, width) }
}

/// From the order in memory to that in registers.
pub(crate) fn unpack<'c>(b: &Builder<'c>, value: Value<'c>) -> Value<'c> {
    let width = value.lanes() / 2;
    b.shuffle(value, (0..2 * width).map(|lane| lane % width * 2 + lane / width))
}

/// From the order in registers to that in memory.
pub(crate) fn pack<'c>(b: &Builder<'c>, value: Value<'c>) -> Value<'c> {
    let width = value.lanes() / 2;
    b.shuffle(value, (0..2 * width).map(|lane| lane % 2 * width + lane / 2))
}

/// The mask of elements as one of the parts in memory.
pub(crate) fn mask_of_parts<'c>(b: &Builder<'c>, mask: Value<'c>) -> Value<'c> {
    b.shuffle(mask, (0..2 * mask.lanes()).map(|lane| lane / 2))
}

/// The real and the imaginary parts.
pub(crate) fn split<'c>(b: &Builder<'c>, value: Value<'c>) -> [Value<'c>; 2] {
    let width = value.lanes() / 2;
    [0, width].map(|first| b.shuffle(value, first..first + width))
}

/// Elements, each a pair of parts, as a vector in the order of memory. Their number is a power of two.
pub(crate) fn gather<'c>(b: &Builder<'c>, mut elements: Vec<Value<'c>>) -> Value<'c> {
    while elements.len() > 1 {
        elements = elements.chunks(2).map(|pair| b.concatenate(pair[0], pair[1])).collect();
    }
    elements[0]
}

/// Roughly how many instructions an operation of complex numbers is, for vectors of their parts.
pub(crate) fn instructions(opcode: Opcode, param: u16, dtype: DType) -> usize {
    match opcode {
        Opcode::Real | Opcode::Imag => 0,
        Opcode::Multiply => 6,
        Opcode::Powi => 6 * usize::from(param).div_ceil(2),
        Opcode::Divide => 25,
        Opcode::Absolute if dtype == DType::C64 => 20,
        Opcode::Absolute => 10,
        _ => 2,
    }
}

/// The modulus that a step makes of numbers with `f64` parts: the root of the sum of squares, unless that has left the
/// range in any lane.
pub(crate) fn modulus<'c>(
    b: &Builder<'c>,
    level: Level,
    step: &Step,
    x: Value<'c>,
    mask: Option<Value<'c>>,
) -> Option<Value<'c>> {
    if !matches!(step, Step::Compute { opcode: Opcode::Absolute, input: DType::C128, .. }) {
        return None;
    }
    let parts = split(b, x);
    let [square, special] = square_of_modulus(b, level, parts);
    let root = || b.intrinsic("sqrt", &[square]);
    Some(either(b, special, mask, root, || modulus_of_all(b, level, parts, square)))
}
