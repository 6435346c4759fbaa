//! Random programs with much that a rewriting of batches looks for.

use super::{Options, Program, Rng, program};
use crate::compare::may_differ;
use crate::{Base, Batch, Constant, DType, Instr, Kind, Opcode, Operand, View, base_flags};

/// A random program whose constants are often small and whose operations are often repeated into arrays of their own.
pub fn sprinkled(seed: u64, options: &Options) -> Program {
    let mut program = program(seed, options);
    let mut random = Rng::new(seed ^ 0x5eed);
    for constant in &mut program.batch.constants {
        if random.chance(60) {
            let value = [0i8, 1, 2, 3, -1][random.below(5)];
            *constant = Constant::from_value(value).cast(constant.dtype());
        }
    }
    let mut next_id = program.batch.bases.iter().map(|base| base.id).max().unwrap_or(0) + 1;
    let mut index = 0;
    while index < program.batch.instrs.len() {
        if random.chance(30) {
            repeat(&mut program.batch, index, &mut next_id, &mut random);
            index += 1;
        }
        index += 1;
    }
    program
}

/// Repeats instruction `index` right after itself into a new array, or negates its result twice, or adds twice.
fn repeat(batch: &mut Batch, index: usize, next_id: &mut u64, random: &mut Rng) {
    let instr = batch.instrs[index];
    let repeatable = matches!(instr.opcode.kind(), Kind::Elementwise | Kind::Reduction);
    let Some(view) = instr.operands[0].as_view().filter(|_| repeatable) else { return };
    let shape = batch.as_ref().shape(view).to_vec();
    let Some(dtype) = batch.as_ref().dtype(instr.operands[0]) else { return };
    let Ok(whole) = View::contiguous(&shape) else { return };
    let mut base = Base::new(*next_id, dtype, whole.len());
    base.flags = base_flags::BORN | base_flags::LIVE_OUT;
    *next_id += 1;
    let base = batch.push_base(base);
    let output = Operand::view(batch.intern_view(base, &whole));
    let mut twin = instr;
    twin.operands[0] = output;
    // In place, the result is an input of its twin: then only what it gave may be read again.
    let reads_itself = instr.inputs().contains(&instr.operands[0]);
    // Nothing may read a result that is compared within a tolerance.
    let input = instr.inputs().first().and_then(|&operand| batch.as_ref().dtype(operand));
    if input.is_none_or(|input| may_differ(instr.opcode, input)) {
        if !reads_itself {
            batch.instrs.insert(index + 1, twin);
        }
        return;
    }
    if dtype.is_int() && random.chance(40) {
        let opcode = [Opcode::Add, Opcode::Subtract, Opcode::Multiply][random.below(3)];
        let mut step = |input: Operand| {
            let value = Constant::from_value(random.between(-1000, 1000)).cast(dtype);
            Instr::new(opcode, &[output, input, Operand::constant(batch.push_constant(value))])
        };
        twin = step(instr.operands[0]);
        let further = step(output);
        batch.instrs.insert(index + 1, further);
    } else if reads_itself || random.chance(40) {
        let involution = match dtype {
            DType::Bool => Opcode::LogicalNot,
            other if other.is_int() => Opcode::Invert,
            other if other.is_complex() => Opcode::Conj,
            _ => return,
        };
        twin = Instr::new(involution, &[output, instr.operands[0]]);
        let back = Instr::new(involution, &[output, output]);
        batch.instrs.insert(index + 1, back);
    }
    batch.instrs.insert(index + 1, twin);
}
