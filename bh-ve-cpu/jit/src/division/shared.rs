//! Quotients that share a divisor: one reciprocal, and a few multiplications for each of them, with the bits of divisions.
//!
//! Three Newton steps from the processor's estimate give y, the number nearest to 1/b but for at most one part in 2⁵¹ of a
//! unit in its last place. The product q₀ = a·y is less than 1.5 units from a/b; with the remainder r₀ = a − b·q₀, in one
//! rounding, q₁ = q₀ + r₀·y is a neighbour of a/b. Its remainder r₁ is exact, and q₁ + r₁·y, in one rounding, is the
//! number nearest to a/b (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990):
//! a quotient of two numbers of 53 bits is never closer to the middle of two neighbours than that y can tell. That fails
//! for divisors whose fraction is all ones, and no intermediate result may leave the range of normal numbers. So vectors
//! with such divisors, very large or small lanes, infinities or NaN are divided by the instruction.

use crate::builder::{Builder, Element, Kind, Value};
use crate::kernel::{At, Kernel};
use crate::mathematics::unless_special;
use bh_kernel::Step;
use inkwell::{FloatPredicate as Float, IntPredicate as Int};

/// A vector.
const KIND: Kind = Kind::vector(Element::F64, 8);
const BITS: Kind = Kind::vector(Element::I64, 8);
/// Divisors and quotients are at least 2⁻⁴⁰⁰ and less than 2⁴⁰⁰ in size, as bits without the sign.
const LEAST: i64 = (1023 - 400) << 52;
const SPAN: i64 = 800 << 52;
/// A fraction of ones only: the reciprocal of such a number lies next to the middle of two others, and Newton's steps end at
/// the wrong one.
const FRACTION: i64 = (1 << 52) - 1;

/// A divisor's reciprocal in the current vector of a row.
#[derive(Clone, Copy)]
pub(crate) struct Reciprocal<'c> {
    row: u16,
    divisor: Value<'c>,
    negative: Value<'c>,
    value: Value<'c>,
    /// The lanes whose divisor has a common size, and a fraction for which the reciprocal is near enough.
    common: Value<'c>,
}

/// The quotient that a step makes, if it is made with the reciprocal of a vector.
pub(crate) fn shared_quotient<'c>(
    b: &Builder<'c>,
    kernel: &mut Kernel<'c>,
    step: &Step,
    [x, y, _]: [Value<'c>; 3],
    at: &At<'c>,
) -> Option<Value<'c>> {
    if at.width != KIND.lanes || !kernel.plan.schedule.multiplied.has_shared(step) {
        return None;
    }
    let known = kernel.vector.reciprocals.iter().find(|known| (known.row, known.divisor) == (at.row, y)).copied();
    let Reciprocal { negative, value, common, .. } = known.unwrap_or_else(|| {
        let reciprocal = reciprocal(b, at.row, y);
        kernel.vector.reciprocals.push(reciprocal);
        reciprocal
    });
    let estimate = b.mul(x, value);
    let mut corrected = estimate;
    for _ in 0..2 {
        let remainder = b.multiply_add(negative, corrected, x);
        corrected = b.multiply_add(remainder, value, corrected);
    }
    // Of a zero the product has the right sign.
    let nothing = b.compare(Float::OEQ, x, b.zero(KIND));
    let quotient = b.select(nothing, estimate, corrected);
    let inside = b.or(has_common_size(b, quotient), nothing);
    let special = b.not(b.and(inside, common));
    Some(unless_special(b, quotient, special, at.mask, || b.div(x, y)))
}

fn reciprocal<'c>(b: &Builder<'c>, row: u16, divisor: Value<'c>) -> Reciprocal<'c> {
    let one = b.splat(KIND, 1.0);
    let negative = b.neg(divisor);
    let all = b.constant(Kind::scalar(Element::I8), -1);
    let mut value = b.call("llvm.x86.avx512.rcp14.pd.512", KIND, &[divisor, b.zero(KIND), all]);
    for _ in 0..3 {
        let error = b.multiply_add(negative, value, one);
        value = b.multiply_add(value, error, value);
    }
    let common = has_common_size(b, divisor);
    let bits = b.bitcast(divisor, BITS);
    let ones = b.splat(BITS, FRACTION);
    let other = b.compare(Int::NE, b.and(bits, ones), ones);
    Reciprocal { row, divisor, negative, value, common: b.and(common, other) }
}

/// The lanes of a common size.
fn has_common_size<'c>(b: &Builder<'c>, value: Value<'c>) -> Value<'c> {
    let bits = b.bitcast(value, BITS);
    let [unsigned, least, span] = [i64::MAX, LEAST, SPAN].map(|number| b.splat(BITS, number));
    b.compare(Int::ULT, b.sub(b.and(bits, unsigned), least), span)
}
