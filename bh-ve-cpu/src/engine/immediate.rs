//! Operations on little data in host memory, carried out by the thread that calls: by the primitives and trees that kernels are
//! made of, so with their bits.

use super::elementwise::{Elements, OPERANDS, dense, elementwise, is_dense};
use super::fold::fold;
use super::index::{accumulate, gather, scatter};
use crate::primitives::Primitives;
use bh_bytecode::{DType, Kind, Opcode};
use bh_core::abi::{ImmediateOperation, MethodArray};
use bh_core::{Host, Result};
use bh_methods::{AtOnce, Layout, Strided};

/// Carries out an operation; false for what is left to a batch. Fails where an index is out of range.
///
/// # Safety
/// The operands must be as [`ImmediateOperation`] says.
pub(super) unsafe fn run(
    primitives: Primitives,
    (methods, host): (&AtOnce, Host),
    operation: &ImmediateOperation,
) -> Result<bool> {
    // SAFETY: promised by the caller.
    let operands = unsafe { operation.operands.as_slice() };
    let (Some(opcode), Some(out)) = (Opcode::from_code(operation.opcode), operands.first()) else { return Ok(false) };
    if operands.len() > OPERANDS {
        return Ok(false);
    }
    if opcode.is_extension() {
        // SAFETY: promised by the caller.
        return Ok(unsafe { method(methods, host, opcode, operands) });
    }
    let none = Elements { data: std::ptr::null_mut(), dtype: DType::Bool, stride: &[] };
    let (mut all, mut types) = ([none; OPERANDS], [DType::Bool; OPERANDS]);
    for (at, operand) in operands.iter().enumerate() {
        let Some(dtype) = u8::try_from(operand.dtype).ok().and_then(DType::from_code) else { return Ok(false) };
        types[at] = dtype;
        // SAFETY: promised by the caller.
        all[at] = Elements { data: operand.data.cast(), dtype, stride: unsafe { stride(operand) } };
    }
    let (all, kind, param) = (&all[..operands.len()], opcode.kind(), operation.param);
    let inputs = match (kind, &types[1..operands.len()]) {
        (Kind::Generator, _) => &[],
        (Kind::Reduction, [input, factor]) if input == factor && *factor != DType::Bool => &types[1..2],
        (_, inputs) => inputs,
    };
    if !opcode.check_types(types[0], inputs) {
        return Ok(false);
    }
    // SAFETY: promised by the caller.
    unsafe {
        let own = |at: usize| operands.get(at).map_or(&[][..], |operand| shape(operand));
        let shape = shape(out);
        match kind {
            Kind::Elementwise if opcode == Opcode::Powi && !(2..=5).contains(&param) => Ok(false),
            Kind::Elementwise => {
                let operation = (opcode, param);
                Ok(dense(primitives, operation, shape, all) || elementwise(primitives, operation, shape, all))
            }
            Kind::Reduction => Ok(fold(primitives, opcode, (param, operation.order), own(1), all)),
            Kind::Accumulate => Ok(accumulate(opcode, param.trailing_zeros() as usize, shape, all)),
            Kind::Generator => Ok(generate(primitives, opcode, shape, all)),
            Kind::Index if opcode == Opcode::Gather => gather(shape, own(1), all),
            Kind::Index => scatter(opcode, own(2), shape, all),
            Kind::System | Kind::Extension => Ok(false),
        }
    }
}

/// Runs an extension method.
///
/// # Safety
/// As [`run`].
unsafe fn method(methods: &AtOnce, host: Host, opcode: Opcode, operands: &[MethodArray]) -> bool {
    fn view(operand: &MethodArray) -> Option<Strided<'_>> {
        let dtype = u8::try_from(operand.dtype).ok().and_then(DType::from_code)?;
        // SAFETY: promised by the caller.
        let (shape, stride) = unsafe { (shape(operand), stride(operand)) };
        let stride = stride.iter().map(|&stride| stride as isize * dtype.size() as isize).collect();
        // SAFETY: the operand describes an array that is lent for the call.
        Some(unsafe { Strided::at_address(operand.data.cast(), Layout { dtype, shape, stride }) })
    }
    let views: Option<Vec<Strided<'_>>> = operands.iter().map(view).collect();
    views.is_some_and(|views| methods.run(opcode, &views, host))
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
    // SAFETY: promised by the caller: the first number, and the key.
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

/// # Safety
/// The array's lists must have `rank` entries.
unsafe fn shape(array: &MethodArray) -> &[i64] {
    // SAFETY: promised by the caller.
    unsafe { list(array.shape, array.rank) }
}

/// # Safety
/// As [`shape`].
unsafe fn stride(array: &MethodArray) -> &[i64] {
    // SAFETY: promised by the caller.
    unsafe { list(array.stride, array.rank) }
}

/// # Safety
/// `data` must lead to `rank` numbers, which live as long as the result is used.
unsafe fn list<'a>(data: *const i64, rank: u32) -> &'a [i64] {
    // SAFETY: promised by the caller.
    if rank == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, rank as usize) } }
}
