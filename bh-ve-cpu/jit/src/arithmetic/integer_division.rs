//! Quotients and remainders of integers, by floats: see the primitives of `bh-vector`, where the rules and their proof are.
//! If the divisor is constant in a loop, the values that depend on it alone are computed before the loop.

use super::{Operation, is_signed};
use crate::builder::{Builder, Element, Value};
use bh_bytecode::Opcode;
use bh_jit_abi::Level;
use inkwell::{FloatPredicate as Float, IntPredicate as Int};

/// 1.5·2^52 and 1.5·2^23, which leave the nearest integer in the low bits of a sum.
const SHIFT: f64 = 6_755_399_441_055_744.0;
const SHIFT_SINGLE: f64 = 12_582_912.0;
/// The largest floats below 2^63 and 2^64.
const MOST_SIGNED: f64 = 9_223_372_036_854_774_784.0;
const MOST_UNSIGNED: f64 = 18_446_744_073_709_549_568.0;

impl Operation {
    /// A division of integers; `None` if the level lacks conversions.
    pub(super) fn integer_division<'c>(&self, b: &Builder<'c>, x: Value<'c>, y: Value<'c>) -> Option<Value<'c>> {
        let quotient = match self.input.size() {
            8 if self.level == Level::Avx512 => self.wide_quotient(b, x, y),
            8 => return None,
            _ => self.narrow_quotient(b, x, y),
        };
        if matches!(self.opcode, Opcode::Divide | Opcode::FloorDivide) {
            return Some(quotient);
        }
        let zero = b.splat(x.kind, 0);
        let rest = b.sub(x, b.mul(quotient, y));
        let rest = b.select(b.compare(Int::EQ, y, zero), zero, rest);
        if self.opcode == Opcode::Remainder || !is_signed(self.input) {
            return Some(rest);
        }
        let opposed = b.compare(Int::SLT, b.xor(x, y), zero);
        let inexact = b.compare(Int::NE, rest, zero);
        let moves = b.and(opposed, inexact);
        Some(b.select(moves, b.sub(rest, y), rest))
    }

    /// The reciprocal of a divisor, and ½ that has its sign.
    fn reciprocal<'c>(&self, b: &Builder<'c>, divisor: Value<'c>, float: Element) -> (Value<'c>, Value<'c>) {
        let by = self.float_of(b, divisor, float);
        let inverse = b.div(b.splat(by.kind, 1.0), by);
        (inverse, b.intrinsic("copysign", &[b.splat(by.kind, 0.5), by]))
    }

    fn narrow_quotient<'c>(&self, b: &Builder<'c>, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        let (float, bits, shift) = match self.input.size() {
            4 => (Element::F64, Element::I64, SHIFT),
            _ => (Element::F32, Element::I32, SHIFT_SINGLE),
        };
        let (inverse, half) = self.reciprocal(b, y, float);
        let dividend = self.float_of(b, x, float);
        let quotient = b.mul(b.add(dividend, half), inverse);
        let shift = b.splat(quotient.kind, shift);
        let shifted = b.add(quotient, shift);
        let nearest = b.sub(shifted, shift);
        let is_above = b.compare(Float::OGT, nearest, quotient);
        let low = b.truncate(b.bitcast(shifted, x.kind.with(bits)), x.kind.element);
        b.add(low, b.sign_extend(is_above, x.kind.element))
    }

    fn wide_quotient<'c>(&self, b: &Builder<'c>, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        let (integer, signed) = (x.kind.element, is_signed(self.input));
        let [zero, one] = [0, 1].map(|number| b.splat(x.kind, number));
        let by_zero = b.compare(Int::EQ, y, zero);
        let divisor = b.select(by_zero, one, y);
        let (inverse, half) = self.reciprocal(b, divisor, Element::F64);
        let near = b.mul(self.float_of(b, x, Element::F64), inverse);
        let near = b.intrinsic("roundeven", &[near]);
        let most = b.splat(near.kind, if signed { MOST_SIGNED } else { MOST_UNSIGNED });
        let near = b.select(b.compare(Float::OGT, near, most), most, near);
        let near = if signed { b.float_to_signed(near, integer) } else { b.float_to_unsigned(near, integer) };
        let rest = b.sub(x, b.mul(near, divisor));
        let rest = b.signed_to_float(rest, Element::F64);
        let correction = b.mul(b.add(rest, half), inverse);
        let correction = b.float_to_signed(b.intrinsic("floor", &[correction]), integer);
        let mut quotient = b.add(near, correction);
        if !signed {
            // The rest of such a division needs 65 bits.
            let is_large = b.compare(Int::SLT, y, zero);
            let large = b.select(b.compare(Int::UGE, x, y), one, zero);
            quotient = b.select(is_large, large, quotient);
        }
        b.select(by_zero, zero, quotient)
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use bh_bytecode::DType;
    use bh_kernel::{Arg, SlotMode, Step};

    #[test]
    fn divisions_have_no_instruction_for_single_numbers() {
        for (dtype, level) in [(DType::I32, Level::Avx2), (DType::I16, Level::Avx512), (DType::U64, Level::Avx512)] {
            let args = [Arg::Value(0), Arg::Value(0), Arg::Value(0)];
            let divide =
                Step::Compute { opcode: Opcode::Remainder, param: 0, input: dtype, output: dtype, args, count: 2 };
            let steps = vec![Step::Load { slot: 0 }, divide, Step::Store { slot: 1, arg: Arg::Value(1) }];
            let mut request = crate::request(level, &[SlotMode::Read, SlotMode::Write], steps);
            request.slots.iter_mut().for_each(|slot| slot.dtype = dtype);
            let assembly = crate::assembly(&request).unwrap();
            assert!(assembly.contains("vdivp") && !assembly.contains("idiv"), "{assembly}");
        }
    }
}
