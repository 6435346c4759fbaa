//! SCATTER, SCATTER_ADD and COND_SCATTER, in C order of the indices.

use super::{Strided, Walk};
use crate::run::{Failure, resolve};
use bh_bytecode::scalar::Arithmetic;
use bh_bytecode::{DType, Opcode, with_dtype};

/// Writes `value[i]` to the element of `out` that `index[i]` numbers, where `mask[i]`, for all `i` in C order.
///
/// # Safety
/// All views must be valid; the shapes of value, index and mask must be equal.
pub(crate) unsafe fn scatter(
    opcode: Opcode,
    out: &Strided<'_>,
    value: &Strided<'_>,
    index: &Strided<'_>,
    mask: Option<&Strided<'_>>,
    (failure, instr): (&Failure, u32),
) {
    // SAFETY: promised by the caller.
    with_dtype!(out.dtype, T => unsafe {
        match (opcode, mask) {
            (Opcode::ScatterAdd, _) => {
                run::<T>(out, value, index, None, (failure, instr), |old, new| old.add(new))
            }
            (_, mask) => run::<T>(out, value, index, mask, (failure, instr), |_, new| new),
        }
    });
}

/// # Safety
/// As [`scatter`].
unsafe fn run<T: Arithmetic>(
    out: &Strided<'_>,
    value: &Strided<'_>,
    index: &Strided<'_>,
    mask: Option<&Strided<'_>>,
    (failure, instr): (&Failure, u32),
    combine: impl Fn(T, T) -> T,
) {
    let (len, signed) = (out.len(), index.dtype == DType::I64);
    let count = index.len();
    let mut walk = Walk::new(index.shape, [value, index, mask.unwrap_or(index)]);
    for _ in 0..count {
        let [value, index, flag] = walk.at;
        walk.next();
        // SAFETY: promised by the caller; a resolved number is an element of `out`.
        unsafe {
            if mask.is_some() && *flag == 0 {
                continue;
            }
            match resolve(index.cast::<i64>().read_unaligned(), signed, len) {
                Ok(number) => {
                    let to = out.at(number).cast::<T>();
                    to.write_unaligned(combine(to.read_unaligned(), value.cast::<T>().read_unaligned()));
                }
                Err(bad) => failure.index(instr, bad, len),
            }
        }
    }
}
