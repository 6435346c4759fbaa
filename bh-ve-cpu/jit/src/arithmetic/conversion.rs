//! Conversions between types. Integers of floats go to the nearest number of the type where there is none, and to zero for
//! NaN: LLVM does so element by element. Under the other rules of COPY they wrap as x86's or AArch64's instructions do.

use super::{Operation, is_signed};
use crate::builder::{Builder, Element, Kind, Value};
use bh_bytecode::DType;
use bh_jit_abi::Level;
use inkwell::{FloatPredicate as Float, IntPredicate as Int};

/// The number of an index view, 64 bits wide, in another type.
pub(crate) fn from_number<'c>(b: &Builder<'c>, level: Level, number: Value<'c>, output: DType) -> Value<'c> {
    match output {
        DType::I64 | DType::U64 => number,
        DType::F32 | DType::F64 => float_of(b, (level, true), number, Element::of(output)),
        _ => b.truncate(number, Element::of(output)),
    }
}

/// The floats of signed integers or of unsigned ones.
fn float_of<'c>(b: &Builder<'c>, (level, signed): (Level, bool), x: Value<'c>, to: Element) -> Value<'c> {
    let is_twice = level == Level::Neon && x.kind.element == Element::I64 && to == Element::F32;
    let x = if is_twice { rounded_to_odd(b, signed, x) } else { x };
    if signed { b.signed_to_float(x, to) } else { b.unsigned_to_float(x, to) }
}

/// 64-bit integers that `f64` has and that have the same nearest `f32` as these: NEON's vectors convert to `f32` by way of `f64`,
/// and would round twice. Bits that `f64` has no room for set the last one that it keeps (Boldo and Melquiond, "Emulation of a FMA
/// and correctly rounded sums: proved algorithms using rounding to odd", 2008).
fn rounded_to_odd<'c>(b: &Builder<'c>, signed: bool, x: Value<'c>) -> Value<'c> {
    let [low, others] = [0x7ff, !0x7ff].map(|bits| b.splat(x.kind, bits));
    let carried = b.add(b.and(x, low), low);
    let odd = b.and(b.or(x, carried), others);
    let [shift, limit] = if signed { [1 << 53, 1 << 54] } else { [0, 1 << 53] };
    let is_exact = b.compare(Int::ULT, b.add(x, b.splat(x.kind, shift)), b.splat(x.kind, limit));
    b.select(is_exact, x, odd)
}

impl Operation {
    /// A conversion of real numbers; `None` if the level lacks it.
    pub(super) fn cast<'c>(&self, b: &Builder<'c>, x: Value<'c>) -> Option<Value<'c>> {
        let (input, output, to) = (self.input, self.output, Element::of(self.output));
        Some(match (input, output) {
            _ if input == output => x,
            (DType::F64, DType::F32) => b.narrow(x, to),
            (DType::F32, DType::F64) => b.widen(x, to),
            (_, DType::Bool) => {
                let zero = b.splat(x.kind, 0.0);
                if input.is_float() { b.compare(Float::UNE, x, zero) } else { b.compare(Int::NE, x, zero) }
            }
            (DType::Bool, _) if output.is_float() => b.unsigned_to_float(x, to),
            (DType::Bool, _) => b.extend(x, to),
            _ if input.is_int() && output.is_float() => {
                let has_conversion = input.size() <= 4 || self.level.has_wide_conversions();
                return has_conversion.then(|| self.float_of(b, x, to));
            }
            _ if input.is_float() && self.param == 1 => return self.wrapped_of(b, x),
            _ if input.is_float() && self.param == 2 && output.is_int() && output.size() < input.size() => {
                let wide = if input == DType::F32 { DType::I32 } else { DType::I64 };
                return Some(b.truncate(self.integer_of(b, x, wide)?, to));
            }
            _ if input.is_float() => return self.integer_of(b, x, output),
            _ if input.size() > output.size() => b.truncate(x, to),
            _ if input.size() < output.size() && is_signed(input) => b.sign_extend(x, to),
            _ if input.size() < output.size() => b.extend(x, to),
            // Integers of one size.
            _ => x,
        })
    }

    /// The float of an integer.
    pub(super) fn float_of<'c>(&self, b: &Builder<'c>, x: Value<'c>, to: Element) -> Value<'c> {
        float_of(b, (self.level, is_signed(self.input)), x, to)
    }

    /// The integer of a float towards zero, as near as a type has it; `None` if the level lacks conversions.
    fn integer_of<'c>(&self, b: &Builder<'c>, x: Value<'c>, output: DType) -> Option<Value<'c>> {
        let (signed, bits) = (is_signed(output), output.size() as i32 * 8);
        let has_conversion = bits < 32 || (bits == 32 && signed) || self.level.has_wide_conversions();
        if !output.is_int() || !has_conversion {
            return None;
        }
        let end = 2f64.powi(if signed { bits - 1 } else { bits });
        let zero = b.splat(x.kind, 0.0);
        let least = b.splat(x.kind, if signed { -end } else { 0.0 });
        let number = b.select(b.compare(Float::UNO, x, zero), zero, x);
        let above = b.select(b.compare(Float::OLT, number, least), least, number);
        // The greatest number is a float, or the end of those behind it is.
        let is_float = bits < if self.input == DType::F32 { 24 } else { 53 };
        let limit = b.splat(x.kind, if is_float { end - 1.0 } else { end });
        let is_beyond = b.compare(Float::OGE, above, limit);
        let inside = b.select(is_beyond, if is_float { limit } else { zero }, above);
        let wide = Element::integer(bits.max(32) as usize);
        let number =
            if bits < 32 || signed { b.float_to_signed(inside, wide) } else { b.float_to_unsigned(inside, wide) };
        let to = Element::of(output);
        if bits < 32 {
            return Some(b.truncate(number, to));
        }
        if is_float {
            return Some(number);
        }
        let greatest = b.splat(Kind::vector(to, x.lanes()), if signed { i64::MAX >> (64 - bits) } else { -1 });
        Some(b.select(is_beyond, greatest, number))
    }

    /// The integer of a float towards zero by x86's rule: values beyond the type in between become its smallest number, whose low
    /// bits are the result; `None` if the level lacks conversions.
    fn wrapped_of<'c>(&self, b: &Builder<'c>, x: Value<'c>) -> Option<Value<'c>> {
        let is_small = self.output.size() < 4 || self.output == DType::I32;
        let has_conversion = is_small || self.level == Level::Avx512;
        if !self.output.is_int() || !has_conversion {
            return None;
        }
        let bits = if is_small { 32 } else { 64 };
        let (end, through) = (2f64.powi(bits - 1), Element::integer(bits as usize));
        let [high, low] = [end, -end].map(|number| b.splat(x.kind, number));
        let convert = |x: Value<'c>| {
            let below = b.select(b.compare(Float::OLT, x, high), x, low);
            let inside = b.select(b.compare(Float::OLT, below, low), low, below);
            b.float_to_signed(inside, through)
        };
        let number = convert(x);
        if self.output == DType::U64 {
            // The upper half of the type is made from the lower one.
            let upper = convert(b.sub(x, high));
            let sign = b.splat(Kind::vector(through, x.lanes()), i64::MIN);
            return Some(b.select(b.compare(Float::OGE, x, high), b.xor(upper, sign), number));
        }
        let to = Element::of(self.output);
        Some(if self.output.size() * 8 < bits as usize { b.truncate(number, to) } else { number })
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use bh_bytecode::Opcode;
    use bh_kernel::{Arg, SlotMode, Step};

    #[test]
    fn conversions_have_no_instruction_for_single_numbers() {
        for (output, level) in [(DType::I32, Level::Avx2), (DType::U8, Level::Avx2), (DType::I64, Level::Avx512)] {
            let args = [Arg::Value(0); 3];
            let cast = Step::Compute { opcode: Opcode::Copy, param: 0, input: DType::F64, output, args, count: 1 };
            let steps = vec![Step::Load { slot: 0 }, cast, Step::Store { slot: 1, arg: Arg::Value(1) }];
            let mut request = crate::request(level, &[SlotMode::Read, SlotMode::Write], steps);
            request.slots[1].dtype = output;
            // Without masks, the rest of a row is computed element by element.
            let assembly = crate::assembly(&request).unwrap();
            assert!(assembly.contains("vcvttpd2"), "{assembly}");
            assert!(level == Level::Avx2 || !assembly.contains("cvttsd2si"), "{assembly}");
        }
    }
}
