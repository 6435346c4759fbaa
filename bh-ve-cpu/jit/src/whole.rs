//! Integers of floats. Conversions go to the nearest number of the type where there is none, and to zero for NaN: LLVM does so
//! element by element.
//!
//! Quotients and remainders of integers, by floats: see the primitives of `bh-vector`, where the rules and their proof are.
//! What depends on the divisor alone comes out of loops where that stays the same.

use crate::operations::{Operation, is_signed};
use crate::writer::{Value, Writer, element, float, suffix};
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::Level;

/// 1.5·2^52 and 1.5·2^23, which leave the nearest whole number in the low bits of a sum.
const SHIFT: f64 = 6_755_399_441_055_744.0;
const SHIFT_SINGLE: f64 = 12_582_912.0;
/// The largest floats below 2^63 and 2^64.
const MOST_SIGNED: f64 = 9_223_372_036_854_774_784.0;
const MOST_UNSIGNED: f64 = 18_446_744_073_709_549_568.0;

/// Is it a division of integers?
pub(crate) fn divides(opcode: Opcode, dtype: DType) -> bool {
    let divides = matches!(opcode, Opcode::Divide | Opcode::FloorDivide | Opcode::Fmod | Opcode::Remainder);
    divides && dtype.is_int()
}

/// Roughly how many instructions such an operation is.
pub(crate) fn instructions(operation: Operation) -> usize {
    let mut writer = Writer::default();
    let any = Value::Register(0);
    operation.division(&mut writer, any, any);
    writer.instructions()
}

impl Operation {
    /// A division of integers; `None` if the level lacks conversions.
    pub(crate) fn division(&self, writer: &mut Writer, a: Value, b: Value) -> Option<Value> {
        let quotient = match self.input.size() {
            8 if self.level == Level::Avx512 => self.wide_quotient(writer, a, b),
            8 => return None,
            _ => self.narrow_quotient(writer, a, b),
        };
        if matches!(self.opcode, Opcode::Divide | Opcode::FloorDivide) {
            return Some(quotient);
        }
        let zero = self.splat(writer, 0.0);
        let product = self.plain(writer, "mul", quotient, b);
        let rest = self.plain(writer, "sub", a, product);
        let by_zero = self.compare(writer, "eq", b, zero);
        let rest = self.select(writer, by_zero, zero, rest);
        if self.opcode == Opcode::Remainder || !is_signed(self.input) {
            return Some(rest);
        }
        let signs = self.plain(writer, "xor", a, b);
        let opposed = self.compare(writer, "slt", signs, zero);
        let inexact = self.compare(writer, "ne", rest, zero);
        let moves = writer.value(format_args!("and {} {opposed}, {inexact}", self.kind(DType::Bool)));
        let moved = self.plain(writer, "sub", rest, b);
        Some(self.select(writer, moves, moved, rest))
    }

    /// The whole number of a float towards zero, as near as the output's type has it; `None` if the level lacks conversions.
    pub(crate) fn whole_number(&self, writer: &mut Writer, a: Value) -> Option<Value> {
        let (signed, bits) = (is_signed(self.output), self.output.size() as i32 * 8);
        let has_conversion = bits < 32 || (bits == 32 && signed) || self.level == Level::Avx512;
        if !self.output.is_int() || !has_conversion {
            return None;
        }
        let (floats, mask) = (self.kind(self.input), self.kind(DType::Bool));
        let choose = |writer: &mut Writer, predicate: &str, value: Value, limit: Value, chosen: Value| {
            let is = writer.value(format_args!("fcmp {predicate} {floats} {value}, {limit}"));
            (is, writer.value(format_args!("select {mask} {is}, {floats} {chosen}, {floats} {value}")))
        };
        let end = 2f64.powi(if signed { bits - 1 } else { bits });
        let zero = self.number(writer, self.input, 0.0);
        let least = self.number(writer, self.input, if signed { -end } else { 0.0 });
        let (_, number) = choose(writer, "uno", a, zero, zero);
        let (_, above) = choose(writer, "olt", number, least, least);
        // The greatest number is a float, or the end of those behind it is.
        let is_float = bits < if self.input == DType::F32 { 24 } else { 53 };
        let limit = self.number(writer, self.input, if is_float { end - 1.0 } else { end });
        let (is_beyond, inside) = choose(writer, "oge", above, limit, if is_float { limit } else { zero });
        let whole = format!("<{} x i{}>", self.width, bits.max(32));
        let name = if bits < 32 || signed { "fptosi" } else { "fptoui" };
        let number = writer.value(format_args!("{name} {floats} {inside} to {whole}"));
        let kind = self.kind(self.output);
        if bits < 32 {
            return Some(writer.value(format_args!("trunc {whole} {number} to {kind}")));
        }
        if is_float {
            return Some(number);
        }
        let greatest = if signed { i64::MAX >> (64 - bits) } else { -1 };
        let greatest = writer.splat(element(self.output), self.width, greatest);
        Some(writer.value(format_args!("select {mask} {is_beyond}, {kind} {greatest}, {kind} {number}")))
    }

    fn conversion(&self, signed: &'static str, unsigned: &'static str) -> &'static str {
        if is_signed(self.input) { signed } else { unsigned }
    }

    /// A float of a type in all lanes.
    fn number(&self, writer: &mut Writer, dtype: DType, number: f64) -> Value {
        writer.splat(element(dtype), self.width, float(number))
    }

    /// The reciprocal of a divisor, and ½ that has its sign.
    fn reciprocal(&self, writer: &mut Writer, dtype: DType, divisor: Value) -> (Value, Value) {
        let (kind, floats) = (self.kind(self.input), self.kind(dtype));
        let convert = self.conversion("sitofp", "uitofp");
        let by = writer.value(format_args!("{convert} {kind} {divisor} to {floats}"));
        let one = self.number(writer, dtype, 1.0);
        let inverse = writer.value(format_args!("fdiv {floats} {one}, {by}"));
        let half = self.number(writer, dtype, 0.5);
        let name = format!("llvm.copysign.{}", suffix(dtype, self.width));
        let half = writer.intrinsic(&name, &floats, &[(&floats, &half), (&floats, &by)]);
        (inverse, half)
    }

    fn narrow_quotient(&self, writer: &mut Writer, a: Value, b: Value) -> Value {
        let (dtype, bits, shift) = match self.input.size() {
            4 => (DType::F64, DType::I64, SHIFT),
            _ => (DType::F32, DType::I32, SHIFT_SINGLE),
        };
        let (kind, floats, bits) = (self.kind(self.input), self.kind(dtype), self.kind(bits));
        let (inverse, half) = self.reciprocal(writer, dtype, b);
        let convert = self.conversion("sitofp", "uitofp");
        let dividend = writer.value(format_args!("{convert} {kind} {a} to {floats}"));
        let moved = writer.value(format_args!("fadd {floats} {dividend}, {half}"));
        let quotient = writer.value(format_args!("fmul {floats} {moved}, {inverse}"));
        let shift = self.number(writer, dtype, shift);
        let shifted = writer.value(format_args!("fadd {floats} {quotient}, {shift}"));
        let nearest = writer.value(format_args!("fsub {floats} {shifted}, {shift}"));
        let is_above = writer.value(format_args!("fcmp ogt {floats} {nearest}, {quotient}"));
        let shifted = writer.value(format_args!("bitcast {floats} {shifted} to {bits}"));
        let low = writer.value(format_args!("trunc {bits} {shifted} to {kind}"));
        let mask = self.kind(DType::Bool);
        let minus = writer.value(format_args!("sext {mask} {is_above} to {kind}"));
        self.plain(writer, "add", low, minus)
    }

    fn wide_quotient(&self, writer: &mut Writer, a: Value, b: Value) -> Value {
        let (kind, floats) = (self.kind(self.input), self.kind(DType::F64));
        let call = |writer: &mut Writer, name: &str, value: Value| {
            writer.intrinsic(&format!("llvm.{name}.{}", suffix(DType::F64, self.width)), &floats, &[(&floats, &value)])
        };
        let (zero, one) = (self.splat(writer, 0.0), self.splat(writer, 1.0));
        let by_zero = self.compare(writer, "eq", b, zero);
        let divisor = self.select(writer, by_zero, one, b);
        let (inverse, half) = self.reciprocal(writer, DType::F64, divisor);
        let convert = self.conversion("sitofp", "uitofp");
        let dividend = writer.value(format_args!("{convert} {kind} {a} to {floats}"));
        let near = writer.value(format_args!("fmul {floats} {dividend}, {inverse}"));
        let near = call(writer, "roundeven", near);
        let most = if is_signed(self.input) { MOST_SIGNED } else { MOST_UNSIGNED };
        let most = self.number(writer, DType::F64, most);
        let beyond = writer.value(format_args!("fcmp ogt {floats} {near}, {most}"));
        let mask = self.kind(DType::Bool);
        let near = writer.value(format_args!("select {mask} {beyond}, {floats} {most}, {floats} {near}"));
        let whole = self.conversion("fptosi", "fptoui");
        let near = writer.value(format_args!("{whole} {floats} {near} to {kind}"));
        let product = self.plain(writer, "mul", near, divisor);
        let rest = self.plain(writer, "sub", a, product);
        let rest = writer.value(format_args!("sitofp {kind} {rest} to {floats}"));
        let moved = writer.value(format_args!("fadd {floats} {rest}, {half}"));
        let correction = writer.value(format_args!("fmul {floats} {moved}, {inverse}"));
        let correction = call(writer, "floor", correction);
        let correction = writer.value(format_args!("fptosi {floats} {correction} to {kind}"));
        let mut quotient = self.plain(writer, "add", near, correction);
        if !is_signed(self.input) {
            // The rest of such a division needs 65 bits.
            let is_large = self.compare(writer, "slt", b, zero);
            let fits = self.compare(writer, "uge", a, b);
            let large = self.select(writer, fits, one, zero);
            quotient = self.select(writer, is_large, large, quotient);
        }
        self.select(writer, by_zero, zero, quotient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_fuser::lower::{Arg, SlotMode, Step};

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

    #[test]
    fn conversions_have_no_instruction_for_single_numbers() {
        for (output, level) in [(DType::I32, Level::Avx2), (DType::U8, Level::Avx2), (DType::I64, Level::Avx512)] {
            let args = [Arg::Value(0); 3];
            let cast = Step::Compute { opcode: Opcode::Copy, param: 0, input: DType::F64, output, args, count: 1 };
            let steps = vec![Step::Load { slot: 0 }, cast, Step::Store { slot: 1, arg: Arg::Value(1) }];
            let mut request = crate::request(level, &[SlotMode::Read, SlotMode::Write], steps);
            request.slots[1].dtype = output;
            // What is left of a row is done one by one without masks.
            let assembly = crate::assembly(&request).unwrap();
            assert!(assembly.contains("vcvttpd2"), "{assembly}");
            assert!(level == Level::Avx2 || !assembly.contains("cvttsd2si"), "{assembly}");
        }
    }
}
