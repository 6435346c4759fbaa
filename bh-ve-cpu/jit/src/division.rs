//! Quotients that share a divisor: one reciprocal, and a few multiplications for each of them, with the bits of divisions.
//!
//! Three Newton steps from the processor's estimate give y, the number nearest to 1/b but for at most one part in 2⁵¹ of a
//! unit in its last place. The product q₀ = a·y is less than 1.5 units from a/b; with the remainder r₀ = a − b·q₀, in one
//! rounding, q₁ = q₀ + r₀·y is a neighbour of a/b. Its remainder r₁ is exact, and q₁ + r₁·y, in one rounding, is the
//! number nearest to a/b (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990):
//! a quotient of two numbers of 53 bits is never closer to the middle of two neighbours than that y can tell. That fails
//! for divisors whose fraction is all ones, and no intermediate result may leave the range of normal numbers. So vectors
//! with such divisors, very large or small lanes, infinities or NaN are divided by the instruction.

use crate::body::unless_special;
use crate::kernel::{At, Kernel};
use crate::writer::{Value, Writer, float};
use bh_fuser::lower::Step;

/// Lanes of a vector.
const WIDTH: u16 = 8;
const KIND: &str = "<8 x double>";
const BITS: &str = "<8 x i64>";
/// Divisors and quotients are at least 2⁻⁴⁰⁰ and less than 2⁴⁰⁰ in size, as bits without the sign.
const LEAST: u64 = (1023 - 400) << 52;
const SPAN: u64 = 800 << 52;
/// A fraction of ones only: the reciprocal of such a number lies next to the middle of two others, and Newton's steps end at
/// the wrong one.
const FRACTION: u64 = (1 << 52) - 1;

/// A divisor's reciprocal in the current vector of a row.
pub(crate) struct Reciprocal {
    row: u16,
    divisor: Value,
    negative: Value,
    value: Value,
    /// The lanes whose divisor has a common size, and a fraction for which the reciprocal is near enough.
    common: Value,
}

impl Kernel<'_> {
    /// The quotient that a step makes, if it is made with the reciprocal of a vector.
    pub(crate) fn quotient(&mut self, step: &Step, [a, b, _]: [Value; 3], at: &At) -> Option<Value> {
        let fits = at.width == WIDTH;
        if !fits || !self.plan.multiplied.has_shared(step) {
            return None;
        }
        let known = self.reciprocals.iter().position(|known| (known.row, known.divisor) == (at.row, b));
        let known = known.unwrap_or_else(|| {
            let reciprocal = self.reciprocal(at.row, b);
            self.reciprocals.push(reciprocal);
            self.reciprocals.len() - 1
        });
        let Reciprocal { negative, value, common, .. } = self.reciprocals[known];
        let estimate = self.writer.value(format_args!("fmul {KIND} {a}, {value}"));
        let mut corrected = estimate;
        for _ in 0..2 {
            let remainder = self.multiply_add(negative, corrected, a);
            corrected = self.multiply_add(remainder, value, corrected);
        }
        // Of a zero the product has the right sign.
        let nothing = self.writer.value(format_args!("fcmp oeq {KIND} {a}, zeroinitializer"));
        let quotient =
            self.writer.value(format_args!("select <8 x i1> {nothing}, {KIND} {estimate}, {KIND} {corrected}"));
        let inside = self.has_common_size(quotient);
        let inside = self.writer.value(format_args!("or <8 x i1> {inside}, {nothing}"));
        let inside = self.writer.value(format_args!("and <8 x i1> {inside}, {common}"));
        let ones = self.writer.splat("i1", WIDTH, "true");
        let special = self.writer.value(format_args!("xor <8 x i1> {inside}, {ones}"));
        let exact = |writer: &mut Writer| writer.value(format_args!("fdiv {KIND} {a}, {b}"));
        Some(unless_special(&mut self.writer, KIND, quotient, special, at, exact))
    }

    fn reciprocal(&mut self, row: u16, divisor: Value) -> Reciprocal {
        let one = self.writer.splat("double", WIDTH, float(1.0));
        let negative = self.writer.value(format_args!("fneg {KIND} {divisor}"));
        let mut value = self.writer.intrinsic(
            "llvm.x86.avx512.rcp14.pd.512",
            KIND,
            &[(KIND, &divisor), (KIND, &"zeroinitializer"), ("i8", &"-1")],
        );
        for _ in 0..3 {
            let error = self.multiply_add(negative, value, one);
            value = self.multiply_add(value, error, value);
        }
        let common = self.has_common_size(divisor);
        let bits = self.writer.value(format_args!("bitcast {KIND} {divisor} to {BITS}"));
        let ones = self.writer.splat("i64", WIDTH, FRACTION);
        let fraction = self.writer.value(format_args!("and {BITS} {bits}, {ones}"));
        let other = self.writer.value(format_args!("icmp ne {BITS} {fraction}, {ones}"));
        let common = self.writer.value(format_args!("and <8 x i1> {common}, {other}"));
        Reciprocal { row, divisor, negative, value, common }
    }

    /// The lanes of a common size.
    fn has_common_size(&mut self, value: Value) -> Value {
        let bits = self.writer.value(format_args!("bitcast {KIND} {value} to {BITS}"));
        let (unsigned, least, span) = (
            self.writer.splat("i64", WIDTH, i64::MAX),
            self.writer.splat("i64", WIDTH, LEAST),
            self.writer.splat("i64", WIDTH, SPAN),
        );
        let size = self.writer.value(format_args!("and {BITS} {bits}, {unsigned}"));
        let above = self.writer.value(format_args!("sub {BITS} {size}, {least}"));
        self.writer.value(format_args!("icmp ult {BITS} {above}, {span}"))
    }

    /// a·b + c, rounded once.
    fn multiply_add(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.writer.multiply_add(KIND, "v8f64", [&a, &b, &c])
    }
}
