//! Constant collection: (x ∘ c₁) ∘ c₂ becomes x ∘ c, for sums, differences and products with constants.
//!
//! *Proof.* Only the outer instruction changes; the inner one stays for its other readers. The rewrite is valid
//! where the inner result is still unchanged when the outer instruction reads it, x is unchanged since the inner one
//! read it, and the outer output may stand beside x. Integers form a ring modulo 2ⁿ, so wrapping sums and products of
//! constants, computed in 64 bits and cut to the type, are exact. Floats round after each operation: they are collected
//! under `reassociate` only. bool and complex numbers are left alone.

use super::Options;
use crate::analysis::{Uses, constant, may_read_beside, output, output_type};
use crate::losses::Losses;
use bh_bytecode::{Batch, Constant, DType, Instr, Opcode, Operand};

/// Runs the pass.
pub fn run(batch: &mut Batch, options: &Options) -> usize {
    let uses = Uses::of(batch);
    let mut losses = None;
    let mut changed = 0;
    for index in 0..batch.instrs.len() as u32 {
        let Some((opcode, source, value)) = merged(batch, &uses, options, index) else { continue };
        if !losses.get_or_insert_with(|| Losses::of(batch)).keeps(batch, index, &[source]) {
            continue;
        }
        let value = Operand::constant(batch.push_constant(value));
        let instr = &mut batch.instrs[index as usize];
        instr.opcode = opcode;
        instr.operands[1] = source;
        instr.operands[2] = value;
        changed += 1;
    }
    changed
}

/// The operation that instruction `index` and the one before it come to.
fn merged(batch: &Batch, uses: &Uses, options: &Options, index: u32) -> Option<(Opcode, Operand, Constant)> {
    let outer = batch.instrs[index as usize];
    let dtype = output_type(batch, &outer)?;
    if !(dtype.is_int() || dtype.is_float() && options.reassociate) {
        return None;
    }
    let (outer_opcode, between, outer_value) = with_constant(batch, &outer)?;
    let inner_index = uses.definition(batch, between.as_view()?, index)?;
    let inner = batch.instrs[inner_index as usize];
    let (inner_opcode, source, inner_value) = with_constant(batch, &inner)?;
    let view = source.as_view()?;
    if uses.changed(batch, view, inner_index, index)
        || !may_read_beside(batch, outer.opcode.kind(), output(&outer)?, view)
    {
        return None;
    }
    // x − c is taken as x + (−c).
    let signed = |opcode, value| if opcode == Opcode::Subtract { negate(value, dtype) } else { value };
    match (inner_opcode, outer_opcode) {
        (Opcode::Multiply, Opcode::Multiply) => {
            Some((Opcode::Multiply, source, combine(inner_value, outer_value, dtype, u64::wrapping_mul, |a, b| a * b)))
        }
        (Opcode::Add | Opcode::Subtract, Opcode::Add | Opcode::Subtract) => {
            let (a, b) = (signed(inner_opcode, inner_value), signed(outer_opcode, outer_value));
            Some((Opcode::Add, source, combine(a, b, dtype, u64::wrapping_add, |a, b| a + b)))
        }
        _ => None,
    }
}

/// Splits "view ∘ constant", also "constant ∘ view" where the order does not matter.
fn with_constant(batch: &Batch, instr: &Instr) -> Option<(Opcode, Operand, Constant)> {
    let (left, right) = (instr.operands[1], instr.operands[2]);
    match instr.opcode {
        Opcode::Add | Opcode::Multiply | Opcode::Subtract if left.as_view().is_some() => {
            Some((instr.opcode, left, constant(batch, right)?))
        }
        Opcode::Add | Opcode::Multiply if right.as_view().is_some() => {
            Some((instr.opcode, right, constant(batch, left)?))
        }
        _ => None,
    }
}

fn negate(value: Constant, dtype: DType) -> Constant {
    if dtype.is_float() {
        Constant::from_value(-value.to::<f64>()).cast(dtype)
    } else {
        Constant::from_value(value.to::<u64>().wrapping_neg()).cast(dtype)
    }
}

fn combine(a: Constant, b: Constant, dtype: DType, whole: fn(u64, u64) -> u64, real: fn(f64, f64) -> f64) -> Constant {
    if dtype.is_float() {
        Constant::from_value(real(a.to::<f64>(), b.to::<f64>())).cast(dtype)
    } else {
        Constant::from_value(whole(a.to::<u64>(), b.to::<u64>())).cast(dtype)
    }
}
