//! Operations on little data in host memory, carried out by the thread that calls: by the primitives and trees that kernels are
//! made of, so with their bits.

use super::elementwise::{Elements, OPERANDS, dense, elementwise, is_dense};
use super::fold::fold;
use super::index::{accumulate, gather, scatter};
use crate::primitives::Primitives;
use bh_bytecode::contraction::is_product_of;
use bh_bytecode::{DType, Kind, Opcode};
use bh_core::abi::{ImmediateOperation, MethodArray};
use bh_core::{Host, Result};
use bh_methods::{Alone, AtOnce, Layout, PRODUCTS, Strided, contract};

/// Carries out an operation; false for what is left to a batch. Fails where an index is out of range.
///
/// # Safety
/// The operands must be as [`ImmediateOperation`] says.
pub(super) unsafe fn run(
    primitives: Primitives,
    (methods, host): (&AtOnce, Host),
    operation: &ImmediateOperation,
) -> Result<bool> {
    let operands = operation.operands();
    let Some(opcode) = Opcode::from_code(operation.opcode) else { return Ok(false) };
    if !(1..=OPERANDS).contains(&operands.len()) {
        return Ok(false);
    }
    let none = Elements { data: std::ptr::null_mut(), dtype: DType::Bool, stride: &[] };
    let (mut all, mut types, mut shapes) = ([none; OPERANDS], [DType::Bool; OPERANDS], [&[][..]; OPERANDS]);
    for (at, operand) in operands.iter().enumerate() {
        // SAFETY: the operand's lists have an entry for each dimension, and live as long as the operation.
        let Some((elements, shape)) = (unsafe { given(operand) }) else { return Ok(false) };
        (all[at], types[at], shapes[at]) = (elements, elements.dtype, shape);
    }
    let shapes = &shapes[..operands.len()];
    if opcode.is_extension() {
        // SAFETY: the operands are arrays that are lent for the call.
        return Ok(unsafe { method(methods, host, opcode, all.iter().zip(shapes)) });
    }
    let (all, kind, param) = (&all[..operands.len()], opcode.kind(), operation.param);
    let inputs = match (kind, &types[1..operands.len()]) {
        (Kind::Generator, _) => &[],
        (_, inputs) => inputs,
    };
    if !opcode.check_types(types[0], inputs) {
        return Ok(false);
    }
    let own = |at: usize| shapes.get(at).copied().unwrap_or_default();
    let shape = own(0);
    // SAFETY: each operand holds the elements of its shape.
    unsafe {
        match kind {
            Kind::Elementwise if !opcode.takes_param(param) => Ok(false),
            Kind::Elementwise => {
                let operation = (opcode, param);
                Ok(dense(primitives, operation, shape, all) || elementwise(primitives, operation, shape, all))
            }
            Kind::Reduction => {
                let told = (param, operation.order);
                match all {
                    [_, a, b] if opcode == Opcode::Contract && is_product_of(own(1), [a.stride, b.stride], told) => {
                        Ok(product(host, param, all, shapes))
                    }
                    _ => Ok(fold(primitives, opcode, told, own(1), all)),
                }
            }
            Kind::Accumulate => Ok(accumulate(opcode, param.trailing_zeros() as usize, shape, all)),
            Kind::Generator => Ok(generate(primitives, opcode, shape, all)),
            Kind::Index if opcode == Opcode::Gather => gather(shape, own(1), all),
            Kind::Index => scatter(opcode, own(2), shape, all),
            Kind::System | Kind::Extension => Ok(false),
        }
    }
}

/// Runs an extension method on operands of an [`ImmediateOperation`] with their shapes.
///
/// # Safety
/// As [`run`].
unsafe fn method<'a>(
    methods: &AtOnce,
    host: Host,
    opcode: Opcode,
    operands: impl Iterator<Item = (&'a Elements<'a>, &'a &'a [i64])>,
) -> bool {
    // SAFETY: the operands hold the elements of their shapes during the call.
    let views: Vec<Strided<'_>> = operands.map(|(operand, shape)| unsafe { strided(operand, shape) }).collect();
    methods.run(opcode, &views, host)
}

/// Multiplies matrices by the loops that batches use, if that takes no more than some microseconds.
///
/// # Safety
/// As [`run`].
unsafe fn product(host: Host, summed: u16, operands: &[Elements<'_>], shapes: &[&[i64]]) -> bool {
    let (&[out, a, b], &[to, of_a, of_b]) = (operands, shapes) else { return false };
    if of_a.iter().product::<i64>() > PRODUCTS {
        return false;
    }
    // SAFETY: the operands hold the elements of their shapes during the call.
    let [out, a, b] = unsafe { [strided(&out, to), strided(&a, of_a), strided(&b, of_b)] };
    contract::contract([&out, &a, &b], summed, host, &mut Alone).is_ok()
}

/// An operand as methods take it.
///
/// # Safety
/// The operand must hold the elements of the shape as long as the result is used.
unsafe fn strided<'a>(operand: &Elements<'_>, shape: &'a [i64]) -> Strided<'a> {
    let size = operand.dtype.size() as isize;
    let stride = operand.stride.iter().map(|&stride| stride as isize * size).collect();
    // SAFETY: as `# Safety` asks.
    unsafe { Strided::at_address(operand.data, Layout { dtype: operand.dtype, shape, stride }) }
}

/// Makes the elements of an array without gaps from numbers one step apart.
///
/// # Safety
/// As [`run`].
unsafe fn generate(primitives: Primitives, opcode: Opcode, shape: &[i64], operands: &[Elements<'_>]) -> bool {
    let (&[out, numbers, ..], key) = (operands, operands.get(2)) else { return false };
    let long = shape.iter().rposition(|&extent| extent != 1);
    let step = long.and_then(|axis| numbers.stride.get(axis).copied()).unwrap_or(0);
    if shape.contains(&0) || !is_dense(shape, out.stride, 1) || !is_dense(shape, numbers.stride, step) {
        return false;
    }
    let count = shape.iter().product::<i64>() as usize;
    // SAFETY: the first number and the key are there, and the output has `count` elements without gaps.
    unsafe {
        let first = numbers.data.cast::<i64>().read_unaligned();
        match (opcode, key) {
            (Opcode::Range, None) => {
                primitives.iota(out.dtype).map(|make| make(count, out.data, first, step)).is_some()
            }
            (Opcode::Random, Some(key)) => {
                let key = key.data.cast::<u64>().read_unaligned() as u32;
                primitives.philox(out.dtype).map(|make| make(count, out.data, first, step, key)).is_some()
            }
            _ => false,
        }
    }
}

/// An operand and its shape; `None` if there is no such type.
///
/// # Safety
/// The lists must have `rank` entries, which live as long as the result is used.
unsafe fn given<'a>(array: &MethodArray) -> Option<(Elements<'a>, &'a [i64])> {
    let (dtype, rank) = (u8::try_from(array.dtype).ok().and_then(DType::from_code)?, array.rank as usize);
    let list = |data: *const i64| {
        // SAFETY: there are `rank` numbers.
        if rank == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(data, rank) } }
    };
    Some((Elements { data: array.data.cast(), dtype, stride: list(array.stride) }, list(array.shape)))
}
