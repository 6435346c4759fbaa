//! The checks `overflow` and `zero-division` of one operation on integers.

use super::elements::visit;
use super::marks::operation;
use crate::stack::backend::Backend;
use bh_bytecode::{BatchRef, DType, Instr, Opcode, Operand};
use bh_core::config::Checks;

/// What is wrong with an operation on integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Overflow,
    ZeroDivision,
}

/// What the checks look for in an instruction.
pub(super) fn wanted(batch: &BatchRef<'_>, instr: &Instr, checks: Checks) -> Option<Fault> {
    let dtype = batch.dtype(*instr.operands().first()?)?;
    match instr.opcode {
        _ if !dtype.is_int() => None,
        Opcode::Add | Opcode::Subtract | Opcode::Multiply if checks.overflow => Some(Fault::Overflow),
        Opcode::Divide | Opcode::FloorDivide | Opcode::Fmod | Opcode::Remainder if checks.zero_division => {
            Some(Fault::ZeroDivision)
        }
        _ => None,
    }
}

/// The first element with a fault: its position in C order, the values of its operands, and how many have one.
pub(super) type Found = (usize, [i128; 2], u64);

/// Looks for a fault in the batch's operation, before it runs.
pub(super) fn find(backend: &mut dyn Backend, batch: &BatchRef<'_>, fault: Fault) -> Option<Found> {
    let instr = operation(batch)?;
    let dtype = batch.dtype(instr.operands[0])?;
    let [a, b] = [1, 2].map(|at| numbers(backend, batch, instr.operands[at], dtype));
    let (a, b) = (a?, b?);
    let at = |all: &[i128], position: usize| all.get(position).or(all.first()).copied().unwrap_or_default();
    let mut found: Option<Found> = None;
    for position in 0..a.len().max(b.len()) {
        let (a, b) = (at(&a, position), at(&b, position));
        let is_bad = match fault {
            Fault::ZeroDivision => b == 0,
            Fault::Overflow => beyond(instr.opcode, a, b, dtype),
        };
        if is_bad {
            found.get_or_insert((position, [a, b], 0)).2 += 1;
        }
    }
    found
}

/// Is the true result beyond the type?
fn beyond(opcode: Opcode, a: i128, b: i128, dtype: DType) -> bool {
    let bits = 8 * dtype.size() as u32;
    let range = match dtype.is_signed_int() {
        true => -(1i128 << (bits - 1))..1i128 << (bits - 1),
        false => 0..1i128 << bits,
    };
    let result = match opcode {
        Opcode::Add => Some(a + b),
        Opcode::Subtract => Some(a - b),
        _ => a.checked_mul(b),
    };
    !result.is_some_and(|result| range.contains(&result))
}

/// The elements of an operand in C order, or its only value; `None` if there is no data.
fn numbers(backend: &mut dyn Backend, batch: &BatchRef<'_>, operand: Operand, dtype: DType) -> Option<Vec<i128>> {
    let Some(view) = operand.as_view() else {
        let constant = batch.constants.get(operand.as_constant()? as usize)?;
        let value = if dtype == DType::U64 { constant.to::<u64>().into() } else { constant.to::<i64>().into() };
        return Some(vec![value]);
    };
    let mut all = Vec::new();
    macro_rules! read {
        ($($variant:ident: $type:ty),*) => {
            match dtype {
                $(DType::$variant => visit::<$type>(backend, batch, view, |_, value| all.push(value.into())),)*
                _ => None,
            }
        };
    }
    read!(I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64)?;
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn true_results_are_compared_with_the_type() {
        assert!(beyond(Opcode::Add, 100, 28, DType::I8) && !beyond(Opcode::Add, 100, 27, DType::I8));
        assert!(beyond(Opcode::Subtract, 1, 2, DType::U64) && !beyond(Opcode::Subtract, -100, 28, DType::I8));
        assert!(beyond(Opcode::Multiply, 1 << 32, 1 << 31, DType::I64));
        assert!(!beyond(Opcode::Multiply, 1 << 32, 1 << 31, DType::U64));
        assert!(beyond(Opcode::Multiply, u64::MAX.into(), u64::MAX.into(), DType::U64));
    }
}
