//! Quotients by divisors that are constant along a row: all values that depend on the divisor alone are computed before the row's
//! elements, and two multiplications for each of these give the bits of divisions.
//!
//! With h the number nearest to 1/b and l the number nearest to 1/b − h, the quotient is a·h + a·l, the product on the
//! right and the sum rounded (Brisebarre, Muller, Raina, "Accelerating correctly rounded floating-point division when the
//! divisor is known in advance", 2004). Both parts are had by division: of 1, and of the exact remainder 1 − b·h.
//!
//! Let numbers have p bits, a and b be in [1, 2), and A and B be these as integers of p bits. As l is at most 2^−(p+1), it
//! is at most 2^−(2p+2) from the exact remainder, and a·l, rounded, less than 2^−2p from a times that. So the sum is less than
//! 2^−2p from a/b before it is rounded. Then it is rounded to another number than a/b is only if the middle m of two
//! neighbours lies between. For a ≥ b, m is M·2^−p with an odd M, and its distance |2^p·A − M·B|·2^−p/B from a/b, which is
//! never zero, is at least 2^−p/B > 2^−2p. For a < b, m is M·2^−(p+1), the distance is |2^(p+1)·A − M·B|·2^−(p+1)/B, and
//! the same holds unless the difference in there is 1 or −1. So of all dividends at most two can have a wrong quotient:
//! A₁, with which the difference is 1, and B − A₁. They are found with the inverse of B modulo 2^(p+1), and tried. About one
//! divisor of eighty is *hard*: one of the two goes wrong.
//!
//! No product may leave the range of normal numbers. It is enough to look at a·l: where that is normal, the quotient and
//! everything before it are rounded as if the range had no ends, and the last rounding overflows where a division does.
//! For hard divisors and those of unusual sizes l is zero, and no a·l is normal. Vectors with such lanes are divided by
//! the instruction, unless a is zero there: then a·h is a zero or NaN, as the quotient, and a sum of two zeros may only
//! lack its sign. NaN makes NaN in any case.

use crate::builder::{Builder, Element, Kind, Mostly, Value};
use crate::mathematics::unless_special;
use bh_bytecode::DType;
use bh_jit_abi::LONG_ROW_BYTES;
use inkwell::{FloatPredicate as Float, IntPredicate as Int};

/// All classes of numbers but normal ones, for the instruction that asks for them.
const NOT_NORMAL: i64 = 0xBF;
/// a | (b ^ c), for the instruction that takes any function of three bits.
const OR_OF_XOR: i64 = 0b1111_0110;

/// The prepared form of a divisor, in vectors: scalars in all lanes.
#[derive(Clone, Copy)]
pub(crate) struct InvariantDivisor<'c> {
    /// The divisor in vectors of the loop.
    divisor: Value<'c>,
    high: Value<'c>,
    /// The rest of the reciprocal, and the divisor's sign, of exact quotients.
    rest: Option<(Value<'c>, Value<'c>)>,
}

/// A format of floats.
struct Format {
    /// The types of a number and of its bits.
    kind: Kind,
    integer: Element,
    /// Bits of a number, and of its fraction.
    size: u32,
    fraction: u32,
    bias: i64,
    /// Common divisors are from 2^−this to 2^this in size.
    range: i64,
}

const DOUBLE: Format =
    Format { kind: Kind::scalar(Element::F64), integer: Element::I64, size: 64, fraction: 52, bias: 1023, range: 900 };
const SINGLE: Format =
    Format { kind: Kind::scalar(Element::F32), integer: Element::I32, size: 32, fraction: 23, bias: 127, range: 60 };

impl Format {
    fn of(dtype: DType) -> &'static Format {
        if dtype == DType::F64 { &DOUBLE } else { &SINGLE }
    }
}

/// Prepares a scalar that divides `elements` elements. The vectors of the loops have one of `divisors`, by their widths.
pub(crate) fn prepare<'c>(
    b: &Builder<'c>,
    fast_math: bool,
    dtype: DType,
    scalar: Value<'c>,
    divisors: &[(u16, Value<'c>)],
    elements: Value<'c>,
) -> Vec<InvariantDivisor<'c>> {
    let scalars = if fast_math {
        vec![b.div(b.constant(scalar.kind, 1.0), scalar)]
    } else {
        exact_parts(b, Format::of(dtype), scalar, elements).to_vec()
    };
    let divisor = |&(width, divisor): &(u16, Value<'c>)| {
        let part = if fast_math { width } else { part(dtype, width) };
        let made: Vec<Value> = scalars.iter().map(|&scalar| b.broadcast(scalar, part)).collect();
        InvariantDivisor { divisor, high: made[0], rest: made.get(1).copied().zip(made.get(2).copied()) }
    };
    divisors.iter().map(divisor).collect()
}

/// The reciprocal in two parts, and a zero with the divisor's sign. Without a common divisor, a zero or NaN is in place of
/// the first part, and zero in place of the second.
fn exact_parts<'c>(b: &Builder<'c>, format: &Format, divisor: Value<'c>, elements: Value<'c>) -> [Value<'c>; 3] {
    let zero = b.constant(format.kind, 0.0);
    let sign = b.intrinsic("copysign", &[zero, divisor]);
    let [make, instruction, made] = b.blocks(["reciprocal", "instruction", "reciprocated"]);
    let many = LONG_ROW_BYTES as i64 * 8 / i64::from(format.size);
    b.branch(b.compare(Int::SGE, elements, b.index(many)), (make, instruction));
    b.begin(make);
    let (high, low) = reciprocal_in_parts(b, format, divisor);
    let common = has_common_reciprocal(b, format, divisor, (high, low));
    b.branch_mostly(Mostly::Taken, common, (made, instruction));
    b.begin(instruction);
    // Zero divided by it.
    let none = b.compare(Float::UEQ, divisor, zero);
    let nothing = b.select(none, b.constant(format.kind, f64::NAN), sign);
    b.jump(made);
    b.begin(made);
    let high = b.either((high, make), (nothing, instruction));
    let low = b.either((low, make), (zero, instruction));
    [high, low, sign]
}

/// The number nearest to 1/b, and the one nearest to the remainder.
fn reciprocal_in_parts<'c>(b: &Builder<'c>, format: &Format, divisor: Value<'c>) -> (Value<'c>, Value<'c>) {
    let one = b.constant(format.kind, 1.0);
    let high = b.div(one, divisor);
    let remainder = b.multiply_add(b.neg(divisor), high, one);
    // Of powers of two nothing remains. Something too small to change a quotient keeps a·l from being zero.
    let small = b.constant(format.kind, (-f64::from(format.fraction + 3)).exp2());
    let none = b.compare(Float::OEQ, remainder, b.constant(format.kind, 0.0));
    let remainder = b.select(none, small, remainder);
    (high, b.div(remainder, divisor))
}

/// Is the divisor neither hard nor of an unusual size?
fn has_common_reciprocal<'c>(
    b: &Builder<'c>,
    format: &Format,
    divisor: Value<'c>,
    (high, low): (Value<'c>, Value<'c>),
) -> Value<'c> {
    let &Format { kind, integer, size, fraction, bias, range } = format;
    let bits = b.bitcast(divisor, Kind::scalar(integer));
    let bits = if size < 64 { b.extend(bits, Element::I64) } else { bits };
    let unsigned = b.and(bits, b.index(i64::MAX >> (64 - size)));
    let above = b.sub(unsigned, b.index((bias - range) << fraction));
    let common = b.compare(Int::ULT, above, b.index((2 * range) << fraction));
    let [first, second] = risky_dividends(b, fraction, bits);
    let joined = b.insert(b.poison(Kind::vector(Element::I64, 2)), first, b.index(0));
    let joined = b.insert(joined, second, b.index(1));
    let dividends = b.signed_to_float(joined, kind.element);
    let [divisors, high, low] = [divisor, high, low].map(|part| b.broadcast(part, 2));
    let product = b.mul(dividends, low);
    let tried = b.multiply_add(dividends, high, product);
    let equal = b.compare(Float::OEQ, tried, b.div(dividends, divisors));
    let [first, second] = [0, 1].map(|lane| b.extract(equal, b.index(lane)));
    b.and(common, b.and(first, second))
}

/// The integers A₁ and B − A₁ of the divisor with these bits. Of an even B they are of no use, and harmless.
fn risky_dividends<'c>(b: &Builder<'c>, fraction: u32, bits: Value<'c>) -> [Value<'c>; 2] {
    let significand = b.and(bits, b.index((1 << fraction) - 1));
    let integer = b.or(significand, b.index(1 << fraction));
    // Newton's steps for the inverse of an odd integer, from one that is right in five bits: 10, 20, 40, 80.
    let mut inverse = b.xor(b.mul(integer, b.index(3)), b.index(2));
    for _ in 0..4 {
        let factor = b.sub(b.index(2), b.mul(inverse, integer));
        inverse = b.mul(inverse, factor);
    }
    // 2^(p+1)·A₁ = M·B + 1.
    let shift = i64::from(fraction + 2);
    let negative = b.sub(b.index(0), inverse);
    let middle = b.and(negative, b.index((1 << shift) - 1));
    let [wide, factor] = [middle, integer].map(|value| b.extend(value, Element::I128));
    let product = b.mul(wide, factor);
    let below = b.truncate(b.lshr(product, b.constant(product.kind, shift)), Element::I64);
    let first = b.add(below, b.index(1));
    [first, b.sub(integer, first)]
}

/// The quotient of two vectors by multiplications, if the second one is among the divisors.
pub(crate) fn invariant_quotient<'c>(
    b: &Builder<'c>,
    dtype: DType,
    [x, y]: [Value<'c>; 2],
    mut divisors: impl Iterator<Item = InvariantDivisor<'c>>,
    mask: Option<Value<'c>>,
) -> Option<Value<'c>> {
    let InvariantDivisor { high, rest, .. } = divisors.find(|known| known.divisor == y)?;
    let Some((low, sign)) = rest else { return Some(b.mul(x, high)) };
    // The processor's vectors one after the other, and one question for all.
    let width = part(dtype, x.lanes());
    let (mut quotients, mut special) = (Vec::new(), None);
    for begin in (0..x.lanes()).step_by(width.into()) {
        let dividend = if width == x.lanes() { x } else { b.shuffle(x, begin..begin + width) };
        let (quotient, exact) = two_products(b, dtype, dividend, (high, low, sign));
        quotients.push(quotient);
        special = Some(special.map_or(exact, |before| b.or(before, exact)));
    }
    let quotient = b.join(&quotients);
    special.map(|special| unless_special(b, quotient, special, mask, || b.div(x, y)))
}

/// The quotient in one of the processor's vectors, and the lanes that have to be divided.
fn two_products<'c>(
    b: &Builder<'c>,
    dtype: DType,
    x: Value<'c>,
    (high, low, sign): (Value<'c>, Value<'c>, Value<'c>),
) -> (Value<'c>, Value<'c>) {
    let format = Format::of(dtype);
    let (kind, bits) = (x.kind, x.kind.with(format.integer));
    let size = u32::from(x.lanes()) * format.size;
    let (class, logic) = if dtype == DType::F64 { ("pd", "q") } else { ("ps", "d") };
    let product = b.mul(x, low);
    let sum = b.multiply_add(x, high, product);
    let name = format!("llvm.x86.avx512.fpclass.{class}.{size}");
    let unusual = b.call(&name, kind.with(Element::Bit), &[product, b.constant(Kind::I32, NOT_NORMAL)]);
    let something = b.compare(Float::ONE, x, b.zero(kind));
    let special = b.and(unusual, something);
    let [sum, x, sign] = [sum, x, sign].map(|value| b.bitcast(value, bits));
    let name = format!("llvm.x86.avx512.pternlog.{logic}.{size}");
    let signed = b.call(&name, bits, &[sum, x, sign, b.constant(Kind::I32, OR_OF_XOR)]);
    (b.bitcast(b.select(unusual, signed, sum), kind), special)
}

/// Lanes of the processor's vectors in a vector of `width` lanes.
fn part(dtype: DType, width: u16) -> u16 {
    width.min(64 / dtype.size() as u16)
}
