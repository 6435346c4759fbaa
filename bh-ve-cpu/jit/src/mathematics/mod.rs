//! Mathematical functions in the code of a kernel: instructions for ordinary lanes, and a call for vectors with others.

mod lanes;
mod special;

pub(crate) use lanes::{modulus_of_all, square_of_modulus};
pub(crate) use special::{either, unless_special};

use crate::builder::{Builder, Element, Kind, Value};
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::Level;
use lanes::evaluate;

/// Where in scratch memory the second operand and the result of a call are.
const SECOND: i64 = 256;
const RESULT: i64 = 512;
const THIRD: i64 = 768;

/// Roughly how many instructions the function of an opcode is, built where it does not matter.
pub(crate) fn instructions(probe: &Builder, level: Level, opcode: Opcode, single: bool) -> usize {
    let before = probe.count();
    let any = probe.poison(Kind::vector(Element::F64, 8));
    evaluate(probe, level, (opcode, single), (any, any));
    probe.count() - before
}

/// Is the function a chain of instructions with little else in use? Trigonometric functions hold a dozen values: with two
/// vectors side by side they took a tenth longer.
pub(crate) fn is_chain(opcode: Opcode) -> bool {
    !matches!(opcode, Opcode::Sin | Opcode::Cos | Opcode::Tan)
}

/// The opcodes that are worth their code in a kernel; other functions are called.
pub(crate) fn is_inlined(opcode: Opcode, dtype: DType) -> bool {
    let both = [
        Opcode::Sin,
        Opcode::Cos,
        Opcode::Tan,
        Opcode::Sinh,
        Opcode::Cosh,
        Opcode::Tanh,
        Opcode::Arctan,
        Opcode::Arcsin,
        Opcode::Arccos,
        Opcode::Exp2,
        Opcode::Expm1,
        Opcode::Log2,
        Opcode::Log10,
        Opcode::Log1p,
        Opcode::Erf,
        Opcode::Erfc,
        Opcode::Power,
    ];
    // In f32, exp and log have lanes of their own.
    dtype.is_float() && both.contains(&opcode) || dtype == DType::F64 && [Opcode::Exp, Opcode::Log].contains(&opcode)
}

/// The context of an operation on a vector: memory for a call, and the lanes that count, if not all.
#[derive(Clone, Copy)]
pub(crate) struct Around<'c> {
    pub(crate) scratch: Value<'c>,
    pub(crate) width: u16,
    pub(crate) mask: Option<Value<'c>>,
}

/// The function of an opcode for ordinary lanes; `function` computes vectors that have others.
pub(crate) fn ordinary<'c>(
    b: &Builder<'c>,
    level: Level,
    (opcode, dtype): (Opcode, DType),
    [x, y, _]: [Value<'c>; 3],
    function: Value<'c>,
    around: Around<'c>,
) -> Result<Value<'c>, String> {
    let single = dtype == DType::F32;
    let is_binary = opcode.info().inputs == 2;
    let widen = |value| if single { b.widen(value, Element::F64) } else { value };
    let first = widen(x);
    let second = if is_binary { widen(y) } else { first };
    let result = evaluate(b, level, (opcode, single), (first, second));
    let (result, special) = result.ok_or_else(|| format!("{opcode} of {dtype}"))?;
    let result = if single { b.narrow(result, Element::F32) } else { result };
    let Some(special) = special else { return Ok(result) };
    let operands = if is_binary { &[x, y][..] } else { &[x] };
    Ok(unless_special(b, result, special, around.mask, || called(b, function, operands, x.kind, around)))
}

/// Calls a block primitive on vectors in their form in memory.
pub(crate) fn called<'c>(
    b: &Builder<'c>,
    function: Value<'c>,
    operands: &[Value<'c>],
    result: Kind,
    around: Around<'c>,
) -> Value<'c> {
    let Around { scratch, width, .. } = around;
    let [second, third, target] = [SECOND, THIRD, RESULT].map(|place| b.byte(scratch, b.index(place)));
    for (operand, place) in operands.iter().zip([scratch, second, third]) {
        b.store(*operand, place, 1);
    }
    b.call_pointer(function, &[b.index(width.into()), target, scratch, second, third]);
    b.load(result, target, 1)
}

/// The root in lanes, with the bits of the instruction, made by multiplications: that of `bh-vector`. `None` if the level has no
/// estimate to begin with.
pub(crate) fn root<'c>(b: &Builder<'c>, level: Level, x: Value<'c>, mask: Option<Value<'c>>) -> Option<Value<'c>> {
    let (root, special) = evaluate(b, level, (Opcode::Sqrt, false), (x, x))?;
    let Some(special) = special else { return Some(root) };
    Some(unless_special(b, root, special, mask, || b.intrinsic("sqrt", &[x])))
}
