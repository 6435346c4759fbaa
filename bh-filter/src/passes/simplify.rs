//! Operations that do nothing, or always give the same, become copies and fills, all without axes of one element ([`extents`](super::extents)); pairs of negations cancel; divisions by
//! small powers of two become products.
//!
//! *Proof.* Each rule holds for every value of the types it is limited to:
//! x·1, x/1 and x¹ are x for integers and floats (a NaN stays one); x+0 and x−0 are x for integers, x+(−0.0) and
//! x−(+0.0) for floats (x+(+0.0) is not: it loses −0.0); x·0, x−x and x^x (exclusive or) are 0 for integers only, as
//! floats have NaN, infinities and −0.0; x⁰ is 1, also for NaN; x∧x, x∨x, max(x,x), min(x,x) and where(m,x,x) are x.
//! Complex numbers are left alone, as their products mix parts. For ¬¬x, and for −(−x) spelled 0−x for integers and (−0.0)−x
//! for floats, which flips the sign alone, the inner value must still be what its definition gave, and so must x
//! ([`Uses::definition`], [`Uses::changed`]). For floats, x/2ᵏ and x·2⁻ᵏ are the one number that lies nearest to the same
//! real number, as both powers are exact; k is from 1 to 4, which the structure of a batch tells ([`ConstantClass`]). Only
//! the instruction itself changes; its output keeps its values, and is lost by the same causes as before: x·0 is 0 only where
//! x cannot be lost, or the output is lost with it in any case.

use super::Options;
use crate::analysis::{Uses, become_copy, constant, erase, may_read_beside, output, output_type};
use crate::losses::Losses;
use bh_bytecode::constant_class::ConstantClass;
use bh_bytecode::{Batch, Constant, DType, Instr, Opcode, Operand, TypeSet};

/// The simpler form of an instruction.
enum Result {
    Copy(Operand),
    Fill(u8),
    Product(Operand, f64),
}

/// Runs the pass.
pub fn run(batch: &mut Batch, _: &Options) -> usize {
    let mut changed = super::extents::run(batch);
    let uses = Uses::of(batch);
    let mut losses = None;
    for index in 0..batch.instrs.len() as u32 {
        let instr = batch.instrs[index as usize];
        let Some(dtype) = output_type(batch, &instr) else { continue };
        let found = neutral(batch, &instr, dtype)
            .or_else(|| same_operands(&instr, dtype))
            .or_else(|| double_negation(batch, &uses, &instr, index))
            .or_else(|| power_of_two(batch, &instr, dtype));
        let found = found.filter(|found| {
            let losses = losses.get_or_insert_with(|| Losses::of(batch));
            match found {
                Result::Copy(source) | Result::Product(source, _) => losses.keeps(batch, index, &[*source]),
                Result::Fill(_) => losses.keeps(batch, index, &[]),
            }
        });
        match found {
            Some(Result::Copy(source)) if is_self_copy(&instr, source) => erase(&mut batch.instrs[index as usize]),
            Some(Result::Copy(source)) => become_copy(&mut batch.instrs[index as usize], source),
            Some(Result::Fill(value)) => {
                let fill = batch.push_constant(Constant::from_value(value).cast(dtype));
                become_copy(&mut batch.instrs[index as usize], Operand::constant(fill));
            }
            Some(Result::Product(value, factor)) => {
                let factor = batch.push_constant(Constant::from_value(factor).cast(dtype));
                let instr = &mut batch.instrs[index as usize];
                instr.opcode = Opcode::Multiply;
                (instr.operands[1], instr.operands[2]) = (value, Operand::constant(factor));
            }
            None => continue,
        }
        changed += 1;
    }
    crate::analysis::sweep(batch);
    changed
}

fn is_self_copy(instr: &Instr, source: Operand) -> bool {
    source.as_view().is_some() && source == instr.operands[0]
}

/// Operations with a neutral or an absorbing constant.
fn neutral(batch: &Batch, instr: &Instr, dtype: DType) -> Option<Result> {
    let (left, right) = (instr.operands[1], instr.operands[2]);
    if instr.opcode == Opcode::Copy {
        return is_self_copy(instr, left).then_some(Result::Copy(left));
    }
    if instr.count != 3 || dtype.is_complex() {
        return None;
    }
    let is = |operand: Operand, value: i8| {
        constant(batch, operand).is_some_and(|found| found == Constant::from_value(value).cast(dtype))
    };
    let is_negative_zero = |operand: Operand| {
        constant(batch, operand).is_some_and(|found| found == Constant::from_value(-0.0f64).cast(dtype))
    };
    let whole = TypeSet::BITS.contains(dtype);
    let commutes = matches!(instr.opcode, Opcode::Add | Opcode::Multiply);
    let mut sides = vec![(left, right)];
    if commutes {
        sides.push((right, left));
    }
    for (value, other) in sides {
        if value.as_view().is_none() {
            continue;
        }
        let found = match instr.opcode {
            Opcode::Multiply if is(other, 1) => Result::Copy(value),
            Opcode::Multiply if whole && is(other, 0) => Result::Fill(0),
            Opcode::Add if whole && is(other, 0) => Result::Copy(value),
            Opcode::Add if dtype.is_float() && is_negative_zero(other) => Result::Copy(value),
            Opcode::Subtract if is(other, 0) => Result::Copy(value),
            Opcode::Divide if is(other, 1) => Result::Copy(value),
            Opcode::FloorDivide if dtype.is_int() && is(other, 1) => Result::Copy(value),
            Opcode::Power if is(other, 1) => Result::Copy(value),
            Opcode::Power if is(other, 0) => Result::Fill(1),
            _ => continue,
        };
        return Some(found);
    }
    None
}

/// Operations on the same view twice.
fn same_operands(instr: &Instr, dtype: DType) -> Option<Result> {
    if dtype.is_complex() {
        return None;
    }
    if instr.opcode == Opcode::Where {
        let (a, b) = (instr.operands[2], instr.operands[3]);
        return (a == b && a.as_view().is_some()).then_some(Result::Copy(a));
    }
    let operand = instr.operands[1];
    if instr.count != 3 || operand.as_view().is_none() || operand != instr.operands[2] {
        return None;
    }
    match instr.opcode {
        Opcode::Subtract if dtype.is_int() => Some(Result::Fill(0)),
        Opcode::BitwiseXor | Opcode::LogicalXor => Some(Result::Fill(0)),
        Opcode::BitwiseAnd | Opcode::BitwiseOr | Opcode::LogicalAnd | Opcode::LogicalOr => Some(Result::Copy(operand)),
        Opcode::Maximum | Opcode::Minimum => Some(Result::Copy(operand)),
        _ => None,
    }
}

/// ¬¬x and −(−x), for negations that are their own inverse.
fn double_negation(batch: &Batch, uses: &Uses, instr: &Instr, index: u32) -> Option<Result> {
    let inner = uses.definition(batch, negated(batch, instr)?.as_view()?, index)?;
    let definition = batch.instrs[inner as usize];
    let source = negated(batch, &definition)?;
    let view = source.as_view()?;
    let holds = definition.opcode == instr.opcode
        && !uses.changed(batch, view, inner, index)
        && may_read_beside(batch, instr.opcode.kind(), output(instr)?, view);
    holds.then_some(Result::Copy(source))
}

/// A division by 2, 4, 8 or 16, or their negatives.
fn power_of_two(batch: &Batch, instr: &Instr, dtype: DType) -> Option<Result> {
    if instr.opcode != Opcode::Divide || !dtype.is_float() || instr.operands[1].as_view().is_none() {
        return None;
    }
    match ConstantClass::of(&constant(batch, instr.operands[2])?) {
        ConstantClass::Integer(divisor) if divisor.unsigned_abs() > 1 && divisor.unsigned_abs().is_power_of_two() => {
            Some(Result::Product(instr.operands[1], 1.0 / f64::from(divisor)))
        }
        _ => None,
    }
}

/// The operand that the instruction negates, if it is a negation.
fn negated(batch: &Batch, instr: &Instr) -> Option<Operand> {
    match instr.opcode {
        Opcode::LogicalNot | Opcode::Invert | Opcode::Conj => Some(instr.operands[1]),
        Opcode::Subtract => {
            let dtype = output_type(batch, instr)?;
            if dtype.is_complex() {
                return None;
            }
            let zero = if dtype.is_float() { Constant::from_value(-0.0f64) } else { Constant::from_value(0u8) };
            (constant(batch, instr.operands[1])? == zero.cast(dtype)).then_some(instr.operands[2])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::text;

    /// −(−x) with this constant for both differences: what is left of the second one.
    fn twice_negated(dtype: DType, zero: Constant) -> Opcode {
        let words = format!(
            "bh batch 1\nbase b0 = {dtype}[4] id 1 row 4\nbase b1 = {dtype}[4] id 2 row 4 born\n\
             base b2 = {dtype}[4] id 3 row 4 born\nview v0 = b0 at 0 [4:1]\nview v1 = b1 at 0 [4:1]\n\
             view v2 = b2 at 0 [4:1]\ni0: v1 = copy v0\ni1: v2 = copy v1\n"
        );
        let mut batch = text::parse(&words).unwrap();
        let zero = Operand::constant(batch.push_constant(zero.cast(dtype)));
        for instr in &mut batch.instrs {
            *instr = Instr::new(Opcode::Subtract, &[instr.operands[0], zero, instr.operands[1]]);
        }
        run(&mut batch, &Options::default());
        assert_eq!(batch.instrs[0].opcode, Opcode::Subtract);
        let last = batch.instrs[1];
        assert!(last.opcode == Opcode::Subtract || last.operands[1] == batch.instrs[0].operands[2]);
        last.opcode
    }

    #[test]
    fn a_negative_of_a_negative_is_a_copy_where_signs_of_zeros_allow() {
        let (plus, minus) = (Constant::from_value(0.0f64), Constant::from_value(-0.0f64));
        assert_eq!(twice_negated(DType::I32, plus), Opcode::Copy);
        assert_eq!(twice_negated(DType::U64, plus), Opcode::Copy);
        assert_eq!(twice_negated(DType::F64, minus), Opcode::Copy);
        assert_eq!(twice_negated(DType::F32, minus), Opcode::Copy);
        // 0 − (0 − (−0.0)) is 0.0.
        assert_eq!(twice_negated(DType::F64, plus), Opcode::Subtract);
        assert_eq!(twice_negated(DType::C128, minus), Opcode::Subtract);
        assert_eq!(twice_negated(DType::I16, Constant::from_value(1u8)), Opcode::Subtract);
    }

    #[test]
    fn a_division_by_a_power_of_two_is_a_product() {
        let divided = |dtype: DType, divisor: f64| {
            let words = format!(
                "bh batch 1\nbase b0 = {dtype}[4] id 1 row 4\nbase b1 = {dtype}[4] id 2 row 4 born\n\
                 view v0 = b0 at 0 [4:1]\nview v1 = b1 at 0 [4:1]\ni0: v1 = divide v0, v0\n"
            );
            let mut batch = text::parse(&words).unwrap();
            let constant = batch.push_constant(Constant::from_value(divisor).cast(dtype));
            batch.instrs[0].operands[2] = Operand::constant(constant);
            run(&mut batch, &Options::default());
            let instr = batch.instrs[0];
            (instr.opcode, constant_of(&batch, instr).to::<f64>())
        };
        assert_eq!(divided(DType::F64, 2.0), (Opcode::Multiply, 0.5));
        assert_eq!(divided(DType::F32, -16.0), (Opcode::Multiply, -0.0625));
        // Others have no exact reciprocal, or are not told by the structure of a batch.
        for divisor in [3.0, 0.5, 0.0, 32.0] {
            assert_eq!(divided(DType::F64, divisor), (Opcode::Divide, divisor));
        }
        assert_eq!(divided(DType::I32, 2.0).0, Opcode::Divide);
        assert_eq!(divided(DType::C128, 2.0).0, Opcode::Divide);
    }

    fn constant_of(batch: &Batch, instr: Instr) -> Constant {
        constant(batch, instr.operands[2]).unwrap()
    }
}
