//! Element-wise operations as vector instructions, with the results of the scalar functions of the opcode table.

mod conversion;
mod integer_division;
mod random;

pub(crate) use conversion::from_number;
pub(crate) use random::random;

use crate::builder::{Builder, Kind, Predicate, Value};
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::Level;
use inkwell::{FloatPredicate as Float, IntPredicate as Int};

/// An element-wise operation on vectors.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) opcode: Opcode,
    /// That of the instruction.
    pub(crate) param: u16,
    /// Type of the last operand.
    pub(crate) input: DType,
    /// Type of the result.
    pub(crate) output: DType,
    pub(crate) level: Level,
    pub(crate) fast_math: bool,
}

pub(crate) fn is_signed(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64)
}

impl Operation {
    /// An operation that is carried out as it is, of elements of one type.
    pub(crate) fn exact(opcode: Opcode, dtype: DType, level: Level) -> Operation {
        Operation { opcode, param: 0, input: dtype, output: dtype, level, fast_math: false }
    }

    /// Roughly how many instructions it is, built where it does not matter; `None` if there are none.
    pub(crate) fn instructions(&self, probe: &Builder) -> Option<usize> {
        let operand = |dtype| probe.poison(Kind::registers(dtype, 8));
        let operands = match self.opcode {
            Opcode::Where => [DType::Bool, self.output, self.output].map(operand),
            _ => [operand(self.input); 3],
        };
        let before = probe.count();
        self.emit(probe, operands)?;
        Some(probe.count() - before)
    }

    /// Is it a division of integers?
    pub(crate) fn divides_integers(&self) -> bool {
        let divides = [Opcode::Divide, Opcode::FloorDivide, Opcode::Fmod, Opcode::Remainder].contains(&self.opcode);
        divides && self.input.is_int()
    }

    /// Builds the instructions; `None` if there are none.
    pub(crate) fn emit<'c>(&self, b: &Builder<'c>, [x, y, z]: [Value<'c>; 3]) -> Option<Value<'c>> {
        if self.input.is_complex() || self.output.is_complex() {
            return self.complex(b, [x, y, z]);
        }
        match self.opcode {
            Opcode::Copy => return self.cast(b, x),
            Opcode::Where => return Some(b.select(x, y, z)),
            Opcode::Powi => return powers(self.param, x, |x, y| self.multiply(b, x, y), |x| x),
            _ => {}
        }
        if let Some(predicate) = self.predicate() {
            return Some(b.compare(predicate, x, y));
        }
        match self.input {
            DType::F32 | DType::F64 => self.float(b, x, y),
            DType::Bool => self.boolean(b, x, y),
            _ => self.integer(b, x, y),
        }
    }

    fn predicate(&self) -> Option<Predicate> {
        let (float, signed, unsigned) = match self.opcode {
            Opcode::Greater => (Float::OGT, Int::SGT, Int::UGT),
            Opcode::GreaterEqual => (Float::OGE, Int::SGE, Int::UGE),
            Opcode::Less => (Float::OLT, Int::SLT, Int::ULT),
            Opcode::LessEqual => (Float::OLE, Int::SLE, Int::ULE),
            Opcode::Equal => (Float::OEQ, Int::EQ, Int::EQ),
            Opcode::NotEqual => (Float::UNE, Int::NE, Int::NE),
            _ => return None,
        };
        Some(match self.input {
            DType::F32 | DType::F64 => float.into(),
            dtype if is_signed(dtype) => signed.into(),
            _ => unsigned.into(),
        })
    }

    pub(crate) fn add<'c>(&self, b: &Builder<'c>, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        b.relaxed(self.fast_math, b.add(x, y))
    }

    pub(crate) fn subtract<'c>(&self, b: &Builder<'c>, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        b.relaxed(self.fast_math, b.sub(x, y))
    }

    pub(crate) fn multiply<'c>(&self, b: &Builder<'c>, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        b.relaxed(self.fast_math, b.mul(x, y))
    }

    pub(crate) fn divide<'c>(&self, b: &Builder<'c>, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        b.relaxed(self.fast_math, b.div(x, y))
    }

    fn float<'c>(&self, b: &Builder<'c>, x: Value<'c>, y: Value<'c>) -> Option<Value<'c>> {
        Some(match self.opcode {
            Opcode::Add => self.add(b, x, y),
            Opcode::Subtract => self.subtract(b, x, y),
            Opcode::Multiply => self.multiply(b, x, y),
            Opcode::Divide => self.divide(b, x, y),
            Opcode::Maximum | Opcode::Minimum => {
                // The first of equal operands, and any operand that is NaN.
                let second = b.compare(if self.opcode == Opcode::Maximum { Float::OGT } else { Float::OLT }, y, x);
                let chosen = b.select(second, y, x);
                b.select(b.compare(Float::UNO, y, y), y, chosen)
            }
            Opcode::Absolute => b.intrinsic("fabs", &[x]),
            Opcode::Sqrt => b.intrinsic("sqrt", &[x]),
            Opcode::Floor => b.intrinsic("floor", &[x]),
            Opcode::Ceil => b.intrinsic("ceil", &[x]),
            Opcode::Trunc => b.intrinsic("trunc", &[x]),
            Opcode::Rint => b.intrinsic("roundeven", &[x]),
            Opcode::Sign => {
                let [zero, one, minus] = [0.0, 1.0, -1.0].map(|number| b.splat(x.kind, number));
                let [above, below, equal] =
                    [Float::OGT, Float::OLT, Float::OEQ].map(|predicate| b.compare(predicate, x, zero));
                let rest = b.select(equal, zero, x);
                b.select(above, one, b.select(below, minus, rest))
            }
            Opcode::Isnan => b.compare(Float::UNO, x, x),
            Opcode::Signbit => {
                let [one, zero] = [1.0, 0.0].map(|number| b.splat(x.kind, number));
                b.compare(Float::OLT, b.intrinsic("copysign", &[one, x]), zero)
            }
            Opcode::Isinf | Opcode::Isfinite => {
                let size = b.intrinsic("fabs", &[x]);
                let infinite = b.splat(x.kind, f64::INFINITY);
                b.compare(if self.opcode == Opcode::Isinf { Float::OEQ } else { Float::OLT }, size, infinite)
            }
            _ => return None,
        })
    }

    fn boolean<'c>(&self, b: &Builder<'c>, x: Value<'c>, y: Value<'c>) -> Option<Value<'c>> {
        Some(match self.opcode {
            Opcode::Add | Opcode::LogicalOr | Opcode::BitwiseOr | Opcode::Maximum => b.or(x, y),
            Opcode::Multiply | Opcode::LogicalAnd | Opcode::BitwiseAnd | Opcode::Minimum => b.and(x, y),
            Opcode::LogicalXor | Opcode::BitwiseXor => b.xor(x, y),
            Opcode::LogicalNot | Opcode::Invert => b.not(x),
            _ => return self.classify(b, x),
        })
    }

    /// Tests for special values that integers do not have.
    fn classify<'c>(&self, b: &Builder<'c>, x: Value<'c>) -> Option<Value<'c>> {
        let answer = match self.opcode {
            Opcode::Isnan | Opcode::Isinf => 0,
            Opcode::Isfinite => 1,
            _ => return None,
        };
        Some(b.splat(Kind::registers(DType::Bool, x.lanes()), answer))
    }

    fn integer<'c>(&self, b: &Builder<'c>, x: Value<'c>, y: Value<'c>) -> Option<Value<'c>> {
        let signed = is_signed(self.input);
        Some(match self.opcode {
            Opcode::Add => b.add(x, y),
            Opcode::Subtract => b.sub(x, y),
            Opcode::Multiply => b.mul(x, y),
            Opcode::BitwiseAnd => b.and(x, y),
            Opcode::BitwiseOr => b.or(x, y),
            Opcode::BitwiseXor => b.xor(x, y),
            Opcode::Invert => b.not(x),
            Opcode::Maximum => b.intrinsic(if signed { "smax" } else { "umax" }, &[x, y]),
            Opcode::Minimum => b.intrinsic(if signed { "smin" } else { "umin" }, &[x, y]),
            Opcode::Absolute if signed => b.intrinsic("abs", &[x, b.constant(Kind::BIT, 0)]),
            Opcode::Absolute => x,
            Opcode::Sign => {
                let [zero, one] = [0, 1].map(|number| b.splat(x.kind, number));
                if !signed {
                    return Some(b.select(b.compare(Int::NE, x, zero), one, zero));
                }
                let minus = b.splat(x.kind, -1);
                let [above, below] = [Int::SGT, Int::SLT].map(|predicate| b.compare(predicate, x, zero));
                b.select(above, one, b.select(below, minus, zero))
            }
            Opcode::LeftShift | Opcode::RightShift => self.shift(b, x, y),
            _ if self.divides_integers() => return self.integer_division(b, x, y),
            _ => return self.classify(b, x),
        })
    }

    /// Shifts by any count: too large ones, and negative ones, shift everything out.
    fn shift<'c>(&self, b: &Builder<'c>, x: Value<'c>, count: Value<'c>) -> Value<'c> {
        let size = self.input.size() as i64 * 8;
        let bits = b.splat(x.kind, size);
        let inside = b.compare(Int::ULT, count, bits);
        if self.opcode == Opcode::RightShift && is_signed(self.input) {
            let most = b.splat(x.kind, size - 1);
            return b.ashr(x, b.select(inside, count, most));
        }
        let zero = b.splat(x.kind, 0);
        // The instruction's result for a count out of range is not selected.
        let confined = b.select(inside, count, zero);
        let shifted = if self.opcode == Opcode::LeftShift { b.shl(x, confined) } else { b.lshr(x, confined) };
        b.select(inside, shifted, zero)
    }
}

/// x², x²·x, 1·(x²·x²), x⁴·(1·x), as products; `by_one` is the product by one.
pub(crate) fn powers<'c>(
    exponent: u16,
    x: Value<'c>,
    multiply: impl Fn(Value<'c>, Value<'c>) -> Value<'c>,
    by_one: impl Fn(Value<'c>) -> Value<'c>,
) -> Option<Value<'c>> {
    let square = multiply(x, x);
    Some(match exponent {
        2 => square,
        3 => multiply(square, x),
        4 => by_one(multiply(square, square)),
        5 => multiply(multiply(square, square), by_one(x)),
        _ => return None,
    })
}
