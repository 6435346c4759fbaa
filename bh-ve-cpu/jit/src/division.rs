//! Quotients that share a divisor: one reciprocal, and a few multiplications for each of them, with the bits of divisions.
//!
//! Three Newton steps from the processor's estimate give y, the number nearest to 1/b but for at most one part in 2⁵¹ of a
//! unit in its last place. The product q₀ = a·y is less than 1.5 units from a/b; with the remainder r₀ = a − b·q₀, in one
//! rounding, q₁ = q₀ + r₀·y is a neighbour of a/b. Its remainder r₁ is exact, and q₁ + r₁·y, in one rounding, is the
//! number nearest to a/b (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990):
//! a quotient of two numbers of 53 bits is never closer to the middle of two neighbours than that y can tell. That fails
//! for divisors whose fraction is all ones, and no intermediate result may leave the range of normal numbers. So vectors
//! with such divisors, very large or small lanes, infinities or NaN are divided by the instruction.

use crate::body::is_special;
use crate::kernel::{At, Kernel};
use crate::writer::{Value, float};
use bh_bytecode::{DType, Opcode};
use bh_fuser::lower::{Arg, Step};
use bh_jit_abi::{Level, Request};

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
    /// The quotient that a step makes, if it is made with a reciprocal.
    pub(crate) fn quotient(&mut self, step: &Step, [a, b, _]: [Value; 3], at: &At) -> Option<Value> {
        let fits = at.width == WIDTH;
        if !fits || !by_reciprocal(&self.plan.reciprocals, step) {
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
        let any = is_special(&mut self.writer, special, at);
        let (slow, join) = (self.writer.label("slow"), self.writer.label("join"));
        let fast = self.writer.block().to_owned();
        self.writer.line(format_args!("br i1 {any}, label %{slow}, label %{join}, !prof !0"));
        self.writer.begin(&slow);
        let exact = self.writer.value(format_args!("fdiv {KIND} {a}, {b}"));
        self.writer.line(format_args!("br label %{join}"));
        self.writer.begin(&join);
        Some(self.writer.value(format_args!("phi {KIND} [ {quotient}, %{fast} ], [ {exact}, %{slow} ]")))
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
        self.writer.intrinsic("llvm.fma.v8f64", KIND, &[(KIND, &a), (KIND, &b), (KIND, &c)])
    }
}

/// Cycles in which the divider does nothing else, for a vector of eight quotients or roots.
const QUOTIENT_CYCLES: usize = 16;
const ROOT_CYCLES: usize = 24;
/// Vector instructions of eight lanes that begin in a cycle.
const PER_CYCLE: usize = 2;
/// Instructions of a reciprocal, and of each quotient made with it.
const RECIPROCAL_INSTRUCTIONS: usize = 13;
const QUOTIENT_INSTRUCTIONS: usize = 15;

/// The divisors that are divided by with their reciprocals, in a kernel of so many instructions. The divider works while
/// other instructions run, so that reciprocals pay only as long as it would be the last to end.
pub(crate) fn reciprocals(request: &Request, instructions: usize) -> Vec<Arg> {
    let mut chosen = Vec::new();
    if request.level != Level::Avx512 || request.fast_math {
        return chosen;
    }
    let mut divisors: Vec<(Arg, usize)> = Vec::new();
    for divisor in request.steps.iter().filter_map(divisor) {
        match divisors.iter_mut().find(|(known, _)| *known == divisor) {
            Some((_, count)) => *count += 1,
            None => divisors.push((divisor, 1)),
        }
    }
    let is_root = |step: &&Step| matches!(step, Step::Compute { opcode: Opcode::Sqrt, input: DType::F64, .. });
    let quotients: usize = divisors.iter().map(|(_, count)| count).sum();
    let roots = request.steps.iter().filter(is_root).count();
    let mut divider = quotients * QUOTIENT_CYCLES + roots * ROOT_CYCLES;
    let mut others = instructions;
    // Those that save most come first.
    divisors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (divisor, count) in divisors.into_iter().filter(|(_, count)| *count > 1) {
        let without = divider - count * QUOTIENT_CYCLES;
        let with = others + RECIPROCAL_INSTRUCTIONS + count * QUOTIENT_INSTRUCTIONS;
        if without.max(with / PER_CYCLE) < divider.max(others / PER_CYCLE) {
            (divider, others) = (without, with);
            chosen.push(divisor);
        }
    }
    chosen
}

/// Does a step divide by one of these divisors?
pub(crate) fn by_reciprocal(reciprocals: &[Arg], step: &Step) -> bool {
    divisor(step).is_some_and(|divisor| reciprocals.contains(&divisor))
}

/// What a step divides by, if it makes a quotient of 64-bit floats.
fn divisor(step: &Step) -> Option<Arg> {
    match step {
        Step::Compute { opcode: Opcode::Divide, input: DType::F64, output: DType::F64, args, .. } => Some(args[1]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_fuser::lower::SlotMode;
    use bh_jit_abi::{Folds, SlotForm, Stride};

    /// The kernel of a / b, and of that by b again or of b / a.
    fn kernel(shared: bool) -> Request {
        let slot = |mode| SlotForm { dtype: DType::F64, mode, stride: Stride::Unit, streams: false, near: None };
        let divide = |args: [u16; 2]| Step::Compute {
            opcode: Opcode::Divide,
            param: 0,
            input: DType::F64,
            output: DType::F64,
            args: [Arg::Value(args[0]), Arg::Value(args[1]), Arg::Value(args[1])],
            count: 2,
        };
        let modes = [SlotMode::Read, SlotMode::Read, SlotMode::Write, SlotMode::Write];
        Request {
            level: Level::Avx512,
            fast_math: false,
            folds: Folds::None,
            slots: modes.map(slot).to_vec(),
            constants: Vec::new(),
            steps: vec![
                Step::Load { slot: 0 },
                Step::Load { slot: 1 },
                divide([0, 1]),
                divide(if shared { [2, 1] } else { [1, 0] }),
                Step::Store { slot: 2, arg: Arg::Value(2) },
                Step::Store { slot: 3, arg: Arg::Value(3) },
            ],
        }
    }

    #[test]
    fn shared_divisors_have_reciprocals() {
        assert!(crate::text(&kernel(true)).unwrap().contains("rcp14"));
        assert!(!crate::text(&kernel(false)).unwrap().contains("rcp14"));
    }

    #[test]
    fn reciprocals_give_way_to_other_instructions() {
        let request = kernel(true);
        assert_eq!(reciprocals(&request, 10), [Arg::Value(1)]);
        assert_eq!(reciprocals(&request, 100), []);
        assert_eq!(reciprocals(&Request { fast_math: true, ..request }, 10), []);
    }
}
