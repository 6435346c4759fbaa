//! The operations of a program on vectors.

use crate::arithmetic::{Operation, is_signed};
use crate::builder::{Builder, Element, Kind, Value};
use crate::complex;
use crate::mathematics::{self, Around, either, modulus_of_all, square_of_modulus};
use crate::memory::{pack, unpack};
use bh_bytecode::{Constant, DType, Opcode};
use bh_jit_abi::{Function, Level};
use bh_scalar::{Arg, Compute, Program};
use std::collections::HashMap;

/// The values that operations need, computed before the first element.
pub(super) struct Operations<'c> {
    level: Level,
    width: u16,
    scratch: Value<'c>,
    constants: HashMap<Constant, Value<'c>>,
    functions: Vec<(Function, Value<'c>)>,
}

impl<'c> Operations<'c> {
    pub(super) fn new(
        b: &Builder<'c>,
        probe: &Builder<'c>,
        (level, width): (Level, u16),
        program: &Program,
        table: Value<'c>,
        scratch: Value<'c>,
    ) -> Operations<'c> {
        let mut all = Operations { level, width, scratch, constants: HashMap::new(), functions: Vec::new() };
        all.constants = program.constants().into_iter().map(|it| (it, vector(b, &it, width))).collect();
        for compute in program.operations() {
            let (input, output) = program.types_of(compute);
            let function = Function { opcode: compute.opcode, param: compute.param, input, output };
            let known = all.functions.iter().any(|(known, _)| *known == function);
            if !known && all.calls(probe, &function) {
                let place = b.byte(table, b.index(8 * all.functions.len() as i64));
                all.functions.push((function, b.load(Kind::POINTER, place, 8)));
            }
        }
        all
    }

    /// The primitives that are called, in their order.
    pub(super) fn functions(&self) -> Vec<Option<Function>> {
        self.functions.iter().map(|(function, _)| Some(*function)).collect()
    }

    fn operation(&self, function: &Function) -> Operation {
        let &Function { opcode, param, input, output } = function;
        Operation { opcode, param, input, output, level: self.level, fast_math: false }
    }

    /// Is it, or may it be, a call of a primitive?
    fn calls(&self, probe: &Builder<'c>, function: &Function) -> bool {
        mathematics::is_inlined(function.opcode, function.input)
            || self.operation(function).instructions(probe).is_none()
    }

    /// The value of a constant.
    pub(super) fn constant(&self, constant: &Constant) -> Value<'c> {
        self.constants[constant]
    }

    /// Builds the result of an operation on vectors; only the lanes of a mask count.
    pub(super) fn compute(
        &self,
        b: &Builder<'c>,
        (compute, function): (&Compute, Function),
        operands: &[Value<'c>],
        mask: Option<Value<'c>>,
    ) -> Result<Value<'c>, String> {
        if let Some(made) = self.by_constant(b, compute, &function, operands) {
            return Ok(made);
        }
        let Function { opcode, input, output, .. } = function;
        if opcode == Opcode::Absolute && input == DType::C128 {
            return Ok(self.modulus(b, operands[0], mask));
        }
        let around = Around { scratch: self.scratch, width: self.width, mask };
        let called = self.functions.iter().find(|(known, _)| *known == function).map(|(_, address)| *address);
        let first = operands[0];
        let three = [first, operands.get(1).copied().unwrap_or(first), operands.get(2).copied().unwrap_or(first)];
        match called {
            None => self.operation(&function).emit(b, three).ok_or_else(|| format!("{opcode} of {input}")),
            Some(address) if mathematics::is_inlined(opcode, input) => {
                mathematics::ordinary(b, self.level, (opcode, input), three, address, around)
            }
            Some(address) => {
                // All operands but the mask of a choice have one type.
                let dtype = |at: usize| if opcode == Opcode::Where && at == 0 { DType::Bool } else { input };
                let stored: Vec<Value> =
                    operands.iter().enumerate().map(|(at, value)| pack(b, dtype(at), *value)).collect();
                let result = mathematics::called(b, address, &stored, Kind::memory(output, self.width), around);
                Ok(unpack(b, output, result))
            }
        }
    }

    /// The root of the sum of the parts' squares, unless that has left the range in any lane.
    fn modulus(&self, b: &Builder<'c>, x: Value<'c>, mask: Option<Value<'c>>) -> Value<'c> {
        let parts = complex::split(b, x);
        let [square, special] = square_of_modulus(b, self.level, parts);
        let root = || b.intrinsic("sqrt", &[square]);
        either(b, special, mask, root, || modulus_of_all(b, self.level, parts, square))
    }

    /// Shifts by a number of bits; quotients and remainders of whole numbers by powers of two are such, and bits.
    fn by_constant(
        &self,
        b: &Builder<'c>,
        compute: &Compute,
        function: &Function,
        operands: &[Value<'c>],
    ) -> Option<Value<'c>> {
        let [_, Arg::Constant(second)] = compute.args[..] else { return None };
        let (x, dtype) = (operands[0], function.input);
        let number = if dtype.is_int() { second.to::<i64>() } else { return None };
        let right = |bits: i64| {
            let count = b.constant(x.kind, bits);
            if is_signed(dtype) { b.ashr(x, count) } else { b.lshr(x, count) }
        };
        let is_power = number > 0 && number & (number - 1) == 0;
        match compute.opcode {
            Opcode::Divide | Opcode::FloorDivide if is_power => Some(right(i64::from(number.trailing_zeros()))),
            Opcode::Remainder if is_power => Some(b.and(x, b.constant(x.kind, number - 1))),
            Opcode::RightShift | Opcode::LeftShift if !(0..dtype.size() as i64 * 8).contains(&number) => None,
            Opcode::RightShift => Some(right(number)),
            Opcode::LeftShift => Some(b.shl(x, b.constant(x.kind, number))),
            _ => None,
        }
    }
}

/// A constant in all lanes, as a value of its own.
fn vector<'c>(b: &Builder<'c>, constant: &Constant, width: u16) -> Value<'c> {
    let kind = Kind::registers(constant.dtype(), width);
    match constant.dtype() {
        DType::F32 | DType::F64 => float(b, kind, constant.bits[0]),
        DType::C64 | DType::C128 => {
            let half = Kind::registers(constant.dtype().real_part(), width);
            let [re, im] = match constant.dtype() {
                DType::C64 => [constant.bits[0] & u64::from(u32::MAX), constant.bits[0] >> 32],
                _ => constant.bits,
            };
            b.concatenate(float(b, half, re), float(b, half, im))
        }
        DType::U64 => b.splat(kind, constant.to::<u64>() as i64),
        _ => b.splat(kind, constant.to::<i64>()),
    }
}

/// A number by its bits, so that a NaN keeps its payload.
fn float<'c>(b: &Builder<'c>, kind: Kind, bits: u64) -> Value<'c> {
    let whole = kind.with(if kind.element == Element::F64 { Element::I64 } else { Element::I32 });
    b.freeze(b.bitcast(b.constant(whole, bits as i64), kind))
}
