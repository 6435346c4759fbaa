//! Operations on little data in host memory, carried out by the thread that calls: by the primitives and trees that kernels are
//! made of, so with their bits.

use super::elementwise::{Elements, OPERANDS, elementwise};
use crate::primitives::Primitives;
use bh_bytecode::{DType, Kind, Opcode};
use bh_core::abi::{ImmediateOperation, MethodArray};

/// Carries out an operation; false for what is left to a batch.
///
/// # Safety
/// The operands must be as [`ImmediateOperation`] says.
pub(super) unsafe fn run(primitives: Primitives, operation: &ImmediateOperation) -> bool {
    // SAFETY: promised by the caller.
    let operands = unsafe { operation.operands.as_slice() };
    let (Some(opcode), Some(out)) = (Opcode::from_code(operation.opcode), operands.first()) else { return false };
    if operands.len() > OPERANDS || opcode.kind() != Kind::Elementwise {
        return false;
    }
    let none = Elements { data: std::ptr::null_mut(), dtype: DType::Bool, stride: &[] };
    let (mut all, mut types) = ([none; OPERANDS], [DType::Bool; OPERANDS]);
    for (at, operand) in operands.iter().enumerate() {
        let Some(dtype) = u8::try_from(operand.dtype).ok().and_then(DType::from_code) else { return false };
        types[at] = dtype;
        // SAFETY: promised by the caller.
        all[at] = Elements { data: operand.data.cast(), dtype, stride: unsafe { stride(operand) } };
    }
    let count = operands.len();
    if !opcode.check_types(types[0], &types[1..count]) || opcode == Opcode::Powi && !(2..=5).contains(&operation.param)
    {
        return false;
    }
    // SAFETY: promised by the caller.
    unsafe { elementwise(primitives, (opcode, operation.param), shape(out), &all[..count]) }
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
