//! Quotients by what stays the same along a row: all that depends on the divisor alone is made before the row's elements,
//! and two multiplications for each of these give the bits of divisions.
//!
//! With h the number nearest to 1/b and l the number nearest to 1/b − h, the quotient is a·h + a·l, the product on the
//! right and the sum rounded (Brisebarre, Muller, Raina, "Accelerating correctly rounded floating-point division when the
//! divisor is known in advance", 2004). Both parts are had by division: of 1, and of the exact remainder 1 − b·h.
//!
//! Let numbers have p bits, a and b be in [1, 2), and A and B be these as integers of p bits. As l is at most 2^−(p+1), it
//! is at most 2^−(2p+2) from what it stands for, and a·l, rounded, less than 2^−2p from a times that. So the sum is less than
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

use crate::body::unless_special;
use crate::kernel::{At, Kernel};
use crate::writer::{Value, Writer, element, float, suffix, vector};
use bh_bytecode::DType;
use bh_fuser::lower::Step;
use bh_jit_abi::LONG_ROW;
use std::fmt::Display;

/// All classes of numbers but normal ones, for the instruction that asks for them.
const NOT_NORMAL: u32 = 0xBF;
/// a | (b ^ c), for the instruction that takes any function of three bits.
const OR_OF_XOR: u32 = 0b1111_0110;

/// What is made of a divisor, in vectors: scalars in all lanes.
#[derive(Clone, Copy)]
pub(crate) struct Uniform {
    /// The divisor in vectors of the loop.
    divisor: Value,
    high: Value,
    /// The rest of the reciprocal, and the divisor's sign, of exact quotients.
    rest: Option<(Value, Value)>,
}

/// A format of floats.
struct Format {
    /// The types of a number and of its bits.
    kind: &'static str,
    bits: &'static str,
    /// Bits of a number, and of its fraction.
    size: u32,
    fraction: u32,
    bias: u64,
    /// Common divisors are from 2^−this to 2^this in size.
    range: u64,
}

const DOUBLE: Format = Format { kind: "double", bits: "i64", size: 64, fraction: 52, bias: 1023, range: 900 };
const SINGLE: Format = Format { kind: "float", bits: "i32", size: 32, fraction: 23, bias: 127, range: 60 };

impl Format {
    fn of(dtype: DType) -> &'static Format {
        if dtype == DType::F64 { &DOUBLE } else { &SINGLE }
    }

    fn suffix(&self) -> String {
        format!("f{}", self.size)
    }
}

impl Kernel<'_> {
    /// Makes what quotients by the scalar `name` need, of which there are as many as `elements` says. In vectors of the loops
    /// it is `divisor(width)`.
    pub(crate) fn place_uniform(
        &mut self,
        dtype: DType,
        name: &str,
        divisor: impl Fn(u16) -> Value,
        elements: impl Display,
    ) {
        let format = Format::of(dtype);
        let one = float(1.0);
        let scalars = if self.request.fast_math {
            vec![self.writer.value(format_args!("fdiv {} {one}, {name}", format.kind))]
        } else {
            self.exact_parts(format, name, elements).to_vec()
        };
        for width in self.widths() {
            let part = if self.request.fast_math { width } else { part(dtype, width) };
            let made: Vec<Value> =
                scalars.iter().map(|scalar| self.writer.broadcast(format.kind, part, scalar)).collect();
            let rest = made.get(1).copied().zip(made.get(2).copied());
            self.uniforms.push(Uniform { divisor: divisor(width), high: made[0], rest });
        }
    }

    /// The reciprocal in two parts, and a zero with the divisor's sign. Without a common divisor, a zero or NaN is in place of
    /// the first part, and zero in place of the second.
    fn exact_parts(&mut self, format: &Format, divisor: &str, elements: impl Display) -> [Value; 3] {
        let kind = format.kind;
        let sign = self.writer.intrinsic(
            &format!("llvm.copysign.{}", format.suffix()),
            kind,
            &[(kind, &float(0.0)), (kind, &divisor)],
        );
        let labels = ["reciprocal", "instruction", "reciprocated"].map(|purpose| self.writer.label(purpose));
        let [make, instruction, made] = &labels;
        let many = LONG_ROW * 8 / format.size as usize;
        let wanted = self.writer.value(format_args!("icmp sge i64 {elements}, {many}"));
        self.writer.line(format_args!("br i1 {wanted}, label %{make}, label %{instruction}"));
        self.writer.begin(make);
        let (high, low) = self.reciprocal_in_parts(format, divisor);
        let common = self.has_common_reciprocal(format, divisor, (high, low));
        self.writer.line(format_args!("br i1 {common}, label %{made}, label %{instruction}, !prof !2"));
        self.writer.begin(instruction);
        // Zero divided by it.
        let none = self.writer.value(format_args!("fcmp ueq {kind} {divisor}, {}", float(0.0)));
        let nothing = self.writer.value(format_args!("select i1 {none}, {kind} {}, {kind} {sign}", float(f64::NAN)));
        self.writer.line(format_args!("br label %{made}"));
        self.writer.begin(made);
        let high = self.writer.value(format_args!("phi {kind} [ {high}, %{make} ], [ {nothing}, %{instruction} ]"));
        let low = self.writer.value(format_args!("phi {kind} [ {low}, %{make} ], [ {}, %{instruction} ]", float(0.0)));
        [high, low, sign]
    }

    /// The number nearest to 1/b, and the one nearest to what remains.
    fn reciprocal_in_parts(&mut self, format: &Format, divisor: &str) -> (Value, Value) {
        let kind = format.kind;
        let one = float(1.0);
        let high = self.writer.value(format_args!("fdiv {kind} {one}, {divisor}"));
        let negative = self.writer.value(format_args!("fneg {kind} {divisor}"));
        let remainder = self.writer.multiply_add(kind, &format.suffix(), [&negative, &high, &one]);
        // Of powers of two nothing remains. Something too small to change a quotient keeps a·l from being zero.
        let small = float((-f64::from(format.fraction + 3)).exp2());
        let none = self.writer.value(format_args!("fcmp oeq {kind} {remainder}, {}", float(0.0)));
        let remainder = self.writer.value(format_args!("select i1 {none}, {kind} {small}, {kind} {remainder}"));
        (high, self.writer.value(format_args!("fdiv {kind} {remainder}, {divisor}")))
    }

    /// Is the divisor neither hard nor of an unusual size?
    fn has_common_reciprocal(&mut self, format: &Format, divisor: &str, (high, low): (Value, Value)) -> Value {
        let &Format { kind, bits: integer, size, fraction, bias, range } = format;
        let bits = self.writer.value(format_args!("bitcast {kind} {divisor} to {integer}"));
        let bits = if size < 64 { self.writer.value(format_args!("zext {integer} {bits} to i64")) } else { bits };
        let unsigned = self.writer.value(format_args!("and i64 {bits}, {}", (1_u64 << (size - 1)) - 1));
        let above = self.writer.value(format_args!("sub i64 {unsigned}, {}", (bias - range) << fraction));
        let common = self.writer.value(format_args!("icmp ult i64 {above}, {}", (2 * range) << fraction));
        let [first, second] = self.risky_dividends(fraction, bits);
        let joined = self.writer.value(format_args!("insertelement <2 x i64> poison, i64 {first}, i64 0"));
        let joined = self.writer.value(format_args!("insertelement <2 x i64> {joined}, i64 {second}, i64 1"));
        let pair = format!("<2 x {kind}>");
        let dividends = self.writer.value(format_args!("sitofp <2 x i64> {joined} to {pair}"));
        let [divisors, high, low] =
            [divisor.to_owned(), high.to_string(), low.to_string()].map(|part| self.writer.broadcast(kind, 2, part));
        let product = self.writer.value(format_args!("fmul {pair} {dividends}, {low}"));
        let tried = self.writer.multiply_add(&pair, &format!("v2{}", format.suffix()), [&dividends, &high, &product]);
        let wanted = self.writer.value(format_args!("fdiv {pair} {dividends}, {divisors}"));
        let equal = self.writer.value(format_args!("fcmp oeq {pair} {tried}, {wanted}"));
        let [first, second] =
            [0, 1].map(|lane| self.writer.value(format_args!("extractelement <2 x i1> {equal}, i64 {lane}")));
        let both = self.writer.value(format_args!("and i1 {first}, {second}"));
        self.writer.value(format_args!("and i1 {common}, {both}"))
    }

    /// The integers A₁ and B − A₁ of the divisor with these bits. Of an even B they are of no use, and harmless.
    fn risky_dividends(&mut self, fraction: u32, bits: Value) -> [Value; 2] {
        let significand = self.writer.value(format_args!("and i64 {bits}, {}", (1_u64 << fraction) - 1));
        let integer = self.writer.value(format_args!("or i64 {significand}, {}", 1_u64 << fraction));
        // Newton's steps for the inverse of an odd integer, from one that is right in five bits: 10, 20, 40, 80.
        let triple = self.writer.value(format_args!("mul i64 {integer}, 3"));
        let mut inverse = self.writer.value(format_args!("xor i64 {triple}, 2"));
        for _ in 0..4 {
            let product = self.writer.value(format_args!("mul i64 {inverse}, {integer}"));
            let factor = self.writer.value(format_args!("sub i64 2, {product}"));
            inverse = self.writer.value(format_args!("mul i64 {inverse}, {factor}"));
        }
        // 2^(p+1)·A₁ = M·B + 1.
        let shift = fraction + 2;
        let negative = self.writer.value(format_args!("sub i64 0, {inverse}"));
        let middle = self.writer.value(format_args!("and i64 {negative}, {}", (1_u64 << shift) - 1));
        let [wide, factor] = [middle, integer].map(|value| self.writer.value(format_args!("zext i64 {value} to i128")));
        let product = self.writer.value(format_args!("mul i128 {wide}, {factor}"));
        let shifted = self.writer.value(format_args!("lshr i128 {product}, {shift}"));
        let below = self.writer.value(format_args!("trunc i128 {shifted} to i64"));
        let first = self.writer.value(format_args!("add i64 {below}, 1"));
        [first, self.writer.value(format_args!("sub i64 {integer}, {first}"))]
    }

    /// The quotient that a step makes, if its divisor stays the same along a row and it is made by multiplications.
    pub(crate) fn uniform_quotient(&mut self, step: &Step, [a, b, _]: [Value; 3], at: &At) -> Option<Value> {
        let Step::Compute { input: dtype, .. } = *step else { return None };
        if !self.plan.multiplied.has_uniform(step) {
            return None;
        }
        let &Uniform { high, rest, .. } = self.uniforms.iter().find(|known| known.divisor == b)?;
        let Some((low, sign)) = rest else {
            return Some(self.writer.value(format_args!("fmul {} {a}, {high}", vector(dtype, at.width))));
        };
        // The processor's vectors one after the other, and one question for all.
        let width = part(dtype, at.width);
        let whole = vector(dtype, at.width);
        let (mut quotients, mut special) = (Vec::new(), None);
        for begin in (0..at.width).step_by(width.into()) {
            let dividend = if width == at.width { a } else { self.writer.part(&whole, a, begin..begin + width) };
            let (quotient, exact) = self.two_products(dtype, width, dividend, (high, low, sign));
            quotients.push(quotient);
            special = Some(match special {
                None => exact,
                Some(before) => self.writer.value(format_args!("or <{width} x i1> {before}, {exact}")),
            });
        }
        let quotient = self.writer.join(element(dtype), width, &quotients);
        let exact = |writer: &mut Writer| writer.value(format_args!("fdiv {whole} {a}, {b}"));
        let parts = At { width, ..at.clone() };
        special.map(|special| unless_special(&mut self.writer, &whole, quotient, special, &parts, exact))
    }

    /// The quotient in one of the processor's vectors, and the lanes that have to be divided.
    fn two_products(
        &mut self,
        dtype: DType,
        width: u16,
        a: Value,
        (high, low, sign): (Value, Value, Value),
    ) -> (Value, Value) {
        let (kind, name) = (vector(dtype, width), suffix(dtype, width));
        let format = Format::of(dtype);
        let (bits, bytes) = (format!("<{width} x {}>", format.bits), u32::from(width) * format.size);
        let (class, logic) = if dtype == DType::F64 { ("pd", "q") } else { ("ps", "d") };
        let product = self.writer.value(format_args!("fmul {kind} {a}, {low}"));
        let sum = self.writer.multiply_add(&kind, &name, [&a, &high, &product]);
        let unusual = self.writer.intrinsic(
            &format!("llvm.x86.avx512.fpclass.{class}.{bytes}"),
            &format!("<{width} x i1>"),
            &[(&kind, &product), ("i32", &NOT_NORMAL)],
        );
        let something = self.writer.value(format_args!("fcmp one {kind} {a}, zeroinitializer"));
        let special = self.writer.value(format_args!("and <{width} x i1> {unusual}, {something}"));
        let [sum, a, sign] =
            [sum, a, sign].map(|value| self.writer.value(format_args!("bitcast {kind} {value} to {bits}")));
        let signed = self.writer.intrinsic(
            &format!("llvm.x86.avx512.pternlog.{logic}.{bytes}"),
            &bits,
            &[(&bits, &sum), (&bits, &a), (&bits, &sign), ("i32", &OR_OF_XOR)],
        );
        let chosen = self.writer.value(format_args!("select <{width} x i1> {unusual}, {bits} {signed}, {bits} {sum}"));
        (self.writer.value(format_args!("bitcast {bits} {chosen} to {kind}")), special)
    }
}

/// Lanes of the processor's vectors in a vector of `width` lanes.
fn part(dtype: DType, width: u16) -> u16 {
    width.min(64 / dtype.size() as u16)
}
