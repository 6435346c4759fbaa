//! The checks `overflow`, `zero-division` and `cancellation`: faults of one operation and its operands.

use super::elements::visit;
use super::marks::{number, operation, targets};
use crate::stack::backend::Backend;
use bh_bytecode::{BatchRef, Constant, DType, Instr, Opcode, Operand, c128, with_dtype};
use bh_core::config::Checks;
use std::ops::Range;

/// A fault of an operation: of an element's own operands, or of all numbers that are folded into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Its result is an integer beyond its type.
    Overflow,
    /// It divides an integer by zero.
    ZeroDivision,
    /// Its operands cancel each other: the result has lost this many bits of them, but is not zero.
    Cancellation(u8),
}

/// The fault that the checks search for in an instruction.
pub(super) fn wanted(batch: &BatchRef<'_>, instr: &Instr, checks: Checks) -> Option<Fault> {
    let dtype = batch.dtype(*instr.operands().first()?)?;
    match instr.opcode {
        Opcode::Add | Opcode::Subtract | Opcode::AddReduce if dtype.is_float() || dtype.is_complex() => {
            checks.cancellation.limit(dtype).map(Fault::Cancellation)
        }
        _ if !dtype.is_int() => None,
        Opcode::Add | Opcode::Subtract | Opcode::Multiply | Opcode::AddReduce | Opcode::MultiplyReduce
            if checks.overflow =>
        {
            Some(Fault::Overflow)
        }
        Opcode::Divide | Opcode::FloorDivide | Opcode::Fmod | Opcode::Remainder if checks.zero_division => {
            Some(Fault::ZeroDivision)
        }
        _ => None,
    }
}

/// The elements of an operation with a fault.
pub(super) struct Found {
    /// The fault of the first one, with the values of its operands.
    pub(super) text: String,
    /// Their positions in C order, at least one.
    pub(super) positions: Vec<usize>,
}

/// The operands of an operation that may have a fault.
pub(super) struct Suspect {
    fault: Fault,
    operands: Vec<Vec<Constant>>,
}

impl Suspect {
    /// Reads the operands of the batch's operation, before it runs.
    pub(super) fn before(backend: &mut dyn Backend, batch: &BatchRef<'_>, fault: Fault) -> Option<Suspect> {
        let instr = operation(batch)?;
        let dtype = batch.dtype(instr.operands[0])?;
        let operands = instr.inputs().iter().map(|&operand| numbers(backend, batch, operand, dtype));
        Some(Suspect { fault, operands: operands.collect::<Option<_>>()? })
    }

    /// Looks for the fault, after the operation ran.
    pub(super) fn find(&self, backend: &mut dyn Backend, batch: &BatchRef<'_>) -> Option<Found> {
        let instr = operation(batch)?;
        let dtype = batch.dtype(instr.operands[0])?;
        match self.operands.as_slice() {
            [a, b] => self.elements(instr.opcode, [a, b], dtype),
            [terms] => {
                let results = numbers(backend, batch, instr.operands[0], dtype)?;
                self.folds(instr, terms, batch.shape(instr.operands[1].as_view()?), &results, dtype)
            }
            _ => None,
        }
    }

    fn elements(&self, opcode: Opcode, [a, b]: [&[Constant]; 2], dtype: DType) -> Option<Found> {
        let at = |all: &[Constant], position: usize| all.get(position).or(all.first()).copied();
        let mut found: Option<Found> = None;
        for position in 0..a.len().max(b.len()) {
            let (a, b) = (at(a, position)?, at(b, position)?);
            if let Some(found) = &mut found {
                found.positions.extend(described(opcode, self.fault, [a, b], dtype).map(|_| position));
            } else if let Some(text) = described(opcode, self.fault, [a, b], dtype) {
                found = Some(Found { text: text(), positions: vec![position] });
            }
        }
        found
    }

    fn folds(
        &self,
        instr: &Instr,
        terms: &[Constant],
        shape: &[i64],
        results: &[Constant],
        dtype: DType,
    ) -> Option<Found> {
        let mut folded = vec![Folded::default(); results.len()];
        for (&term, target) in terms.iter().zip(targets(shape, instr.param)) {
            folded.get_mut(target)?.take(instr.opcode, term, dtype);
        }
        let mut found: Option<Found> = None;
        for (position, (folded, &result)) in folded.iter().zip(results).enumerate() {
            let Some(text) = folded.described(self.fault, instr.opcode, result, dtype) else { continue };
            found.get_or_insert_with(|| Found { text: text(), positions: Vec::new() }).positions.push(position);
        }
        found
    }
}

/// The numbers that a sum or product is made of.
#[derive(Clone, Default)]
struct Folded {
    count: usize,
    /// The true result of integers; `None` if it has more than 128 bits.
    whole: Option<i128>,
    /// Of floats, the sum of their magnitudes, and the largest one.
    size: f64,
    largest: Option<(f64, Constant)>,
}

impl Folded {
    fn take(&mut self, opcode: Opcode, term: Constant, dtype: DType) {
        if dtype.is_int() {
            let term = whole(term);
            self.whole = match (self.whole, opcode) {
                _ if self.count == 0 => Some(term),
                (Some(so_far), Opcode::AddReduce) => so_far.checked_add(term),
                (Some(so_far), _) => so_far.checked_mul(term),
                // However large a product is, zero makes it zero.
                (None, _) => (term == 0 && opcode != Opcode::AddReduce).then_some(0),
            };
        } else {
            let size = magnitude(term);
            self.size += size;
            if self.largest.is_none_or(|(largest, _)| size > largest) {
                self.largest = Some((size, term));
            }
        }
        self.count += 1;
    }

    /// Has the result the fault? If so, what makes the text that says it.
    fn described(&self, fault: Fault, opcode: Opcode, result: Constant, dtype: DType) -> Option<impl Fn() -> String> {
        let lost = match fault {
            Fault::Overflow => {
                let beyond = self.whole.is_none_or(|whole| !range(dtype).contains(&whole));
                (beyond && self.count > 0).then_some(0)
            }
            Fault::ZeroDivision => None,
            Fault::Cancellation(bits) => lost_bits(self.size, magnitude(result)).filter(|&lost| lost >= bits.into()),
        }?;
        let (count, largest) = (self.count, self.largest);
        Some(move || match (fault, largest) {
            (Fault::Cancellation(_), Some((_, largest))) => {
                let all = precision(dtype);
                let largest = number(largest);
                format!(
                    "has lost {lost} of its {all} bits by cancellation (numbers added: {count}; the largest: {largest})"
                )
            }
            _ if opcode == Opcode::AddReduce => format!("is beyond its type (numbers added: {count})"),
            _ => format!("is beyond its type (numbers multiplied: {count})"),
        })
    }
}

/// Does an operation on these two numbers have the fault? If so, what makes the text that says it.
fn described(opcode: Opcode, fault: Fault, [a, b]: [Constant; 2], dtype: DType) -> Option<impl Fn() -> String> {
    let lost = match fault {
        Fault::Overflow => beyond(opcode, [a, b].map(whole), dtype).then_some(0),
        Fault::ZeroDivision => (whole(b) == 0).then_some(0),
        Fault::Cancellation(bits) => cancelled(opcode, [a, b], dtype).filter(|&lost| lost >= bits.into()),
    }?;
    Some(move || {
        let (a, b) = (number(a), number(b));
        match fault {
            Fault::Overflow => format!("is beyond its type (operands: {a}, {b})"),
            Fault::ZeroDivision => format!("is divided by zero (operands: {a}, {b})"),
            Fault::Cancellation(_) => {
                format!("has lost {lost} of its {} bits by cancellation (operands: {a}, {b})", precision(dtype))
            }
        }
    })
}

fn whole(number: Constant) -> i128 {
    if number.dtype() == DType::U64 { number.to::<u64>().into() } else { number.to::<i64>().into() }
}

/// The bits of a float's significand.
fn precision(dtype: DType) -> u32 {
    if dtype.real_part() == DType::F32 { f32::MANTISSA_DIGITS } else { f64::MANTISSA_DIGITS }
}

/// The integers of a type.
fn range(dtype: DType) -> Range<i128> {
    let bits = 8 * dtype.size() as u32;
    match dtype.is_signed_int() {
        true => -(1i128 << (bits - 1))..1i128 << (bits - 1),
        false => 0..1i128 << bits,
    }
}

/// Is the true result beyond the type?
fn beyond(opcode: Opcode, [a, b]: [i128; 2], dtype: DType) -> bool {
    let result = match opcode {
        Opcode::Add => Some(a + b),
        Opcode::Subtract => Some(a - b),
        _ => a.checked_mul(b),
    };
    !result.is_some_and(|result| range(dtype).contains(&result))
}

/// By how many powers of two a sum or difference is smaller than its larger operand; `None` if it is zero or not finite.
fn cancelled(opcode: Opcode, operands: [Constant; 2], dtype: DType) -> Option<i32> {
    let [a, b] = operands.map(|operand| operand.to::<c128>());
    let sign = if opcode == Opcode::Add { 1.0 } else { -1.0 };
    let result = Constant::from_value(c128 { re: a.re + sign * b.re, im: a.im + sign * b.im });
    // A magnitude that the type rounds to zero is zero.
    let [result, a, b] = [result.cast(dtype), operands[0], operands[1]].map(magnitude);
    lost_bits(a.max(b), result)
}

/// The distance of a number from zero.
fn magnitude(number: Constant) -> f64 {
    let z = number.to::<c128>();
    z.re.hypot(z.im)
}

/// By how many powers of two a result is smaller than what it is made of; `None` if it is zero or not finite.
fn lost_bits(size: f64, result: f64) -> Option<i32> {
    let ratio = size / result;
    (result > 0.0 && ratio.is_finite()).then(|| ratio.log2().floor() as i32)
}

/// The elements of an operand in C order, or its only value; `None` if there is no data.
fn numbers(backend: &mut dyn Backend, batch: &BatchRef<'_>, operand: Operand, dtype: DType) -> Option<Vec<Constant>> {
    let Some(view) = operand.as_view() else {
        let constant = batch.constants.get(operand.as_constant()? as usize)?;
        return Some(vec![constant.cast(dtype)]);
    };
    let mut all = Vec::new();
    with_dtype!(dtype, T => {
        visit::<T>(backend, batch, view, |_, value| all.push(Constant::from_value(value)))
    })?;
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn true_results_are_compared_with_the_type() {
        let beyond = |opcode, a, b, dtype| beyond(opcode, [a, b], dtype);
        assert!(beyond(Opcode::Add, 100, 28, DType::I8) && !beyond(Opcode::Add, 100, 27, DType::I8));
        assert!(beyond(Opcode::Subtract, 1, 2, DType::U64) && !beyond(Opcode::Subtract, -100, 28, DType::I8));
        assert!(beyond(Opcode::Multiply, 1 << 32, 1 << 31, DType::I64));
        assert!(!beyond(Opcode::Multiply, 1 << 32, 1 << 31, DType::U64));
        assert!(beyond(Opcode::Multiply, u64::MAX.into(), u64::MAX.into(), DType::U64));
    }

    #[test]
    fn lost_bits_are_the_distance_of_exponents() {
        let lost = |opcode, a: f64, b: f64| cancelled(opcode, [a, b].map(Constant::from_value), DType::F64);
        assert_eq!(lost(Opcode::Subtract, 1.0 + 2f64.powi(-30), 1.0), Some(30));
        assert_eq!(lost(Opcode::Add, -1.0, 1.0 + f64::EPSILON), Some(52));
        assert_eq!(lost(Opcode::Add, 3.0, 1.0), Some(-1));
        assert_eq!([lost(Opcode::Subtract, 5.0, 5.0), lost(Opcode::Add, f64::INFINITY, 1.0)], [None; 2]);
        let complex = [c128 { re: 1.0, im: 1e-9 }, c128 { re: 1.0, im: 2e-9 }].map(Constant::from_value);
        assert_eq!(cancelled(Opcode::Subtract, complex, DType::C128), Some(29));
    }
}
