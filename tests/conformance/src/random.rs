//! Random programs on stacks: every stack agrees with the oracle.

use crate::run::{self, Cuts};
use crate::stacks;
use bh_bytecode::DType;
use bh_bytecode::interp::{InterpError, Memory};
use bh_bytecode::random::{Options, Oracle, Program, program, shrink};
use bh_core::stack::Stack;

/// The kind of program by seed: general ones, long chains of exact operations, and small floating-point programs.
pub fn options(seed: u64) -> Options {
    match seed % 4 {
        0 => Options { allow_inexact: false, max_rank: 3, ..Options::default() },
        1 => Options { max_rank: 3, max_instrs: 12, ..Options::default() },
        2 => Options { types: floats(), max_rank: 2, max_instrs: 40, ..Options::default() },
        _ => Options::default(),
    }
}

fn floats() -> bh_bytecode::TypeSet {
    let bit = |dtype: DType| 1 << dtype as u16;
    bh_bytecode::TypeSet(bit(DType::F64) | bit(DType::F32) | bit(DType::Bool) | bit(DType::I64))
}

/// Runs the program of a seed on each stack. The error shows the smallest program that still fails.
pub fn check_seed(stacks: &mut [Stack], seed: u64) -> Result<(), String> {
    check_program(stacks, &program(seed, &options(seed)), &format!("seed {seed}"))
}

/// Runs a program on each stack. The error names the program and shows the smallest one that still fails.
pub fn check_program(stacks: &mut [Stack], program: &Program, name: &str) -> Result<(), String> {
    check_run(stacks, program, name, run::run)
}

/// Like [`check_program`], in several batches.
pub fn check_cut(stacks: &mut [Stack], program: &Program, name: &str, cuts: Cuts) -> Result<(), String> {
    let name = format!("{name}, {cuts:?}");
    check_run(stacks, program, &name, |stack, program| run::run_cut(stack, program, cuts))
}

fn check_run(
    stacks: &mut [Stack],
    program: &Program,
    name: &str,
    run: impl Fn(&mut Stack, &Program) -> Result<Memory, bh_core::Error>,
) -> Result<(), String> {
    let oracle = program.oracle();
    for stack in stacks {
        let ran = run(stack, program);
        if let Err(error) = check(stack.name(), program, &oracle, ran) {
            let fails = |smaller: &Program| {
                let ran = run(stack, smaller);
                check(stack.name(), smaller, &smaller.oracle(), ran)
            };
            return Err(minimised(name, program, &error, fails).replacen("?", stack.name(), 1));
        }
    }
    Ok(())
}

/// The message for a failing program: the error of the smallest one that still fails.
fn minimised(
    name: &str,
    program: &Program,
    error: &str,
    mut check: impl FnMut(&Program) -> Result<(), String>,
) -> String {
    let small = shrink(program, |smaller| check(smaller).is_err());
    let cause = check(&small).err().unwrap_or_else(|| format!("{error} (vanished while shrinking)"));
    format!("stack ?, {name}: {cause}\n{}", describe(&small))
}

fn check(
    stack: &str,
    program: &Program,
    oracle: &Result<Oracle, InterpError>,
    ran: Result<Memory, bh_core::Error>,
) -> Result<(), String> {
    match (oracle, ran) {
        (Ok(oracle), Ok(memory)) => oracle.check_within(&program.batch, &memory, stacks::bounds(stack)),
        (Ok(_), Err(error)) => Err(format!("the stack fails: {error}")),
        (Err(_), Err(_)) => Ok(()),
        (Err(error), Ok(_)) => Err(format!("only the oracle fails: {error}")),
    }
}

/// A program for a message.
pub fn describe(program: &Program) -> String {
    let batch = program.batch.as_ref();
    let mut text = String::new();
    for (index, base) in batch.bases.iter().enumerate() {
        let data = if program.memory.get(base.id).is_some() { "with data" } else { "without data" };
        text += &format!("  base {index}: {}[{}] {data}, flags {:#x}\n", base.dtype(), base.len, base.flags);
    }
    for instr in batch.instrs {
        text += &format!("  {} param {:#x}", instr.opcode, instr.param);
        for operand in instr.operands() {
            text += &match (operand.as_view(), operand.as_constant()) {
                (Some(view), _) => {
                    let base = batch.views[view as usize].base as i32;
                    format!(", base {base} {:?}", batch.view(view))
                }
                (_, Some(constant)) => format!(", constant {:?}", batch.constants[constant as usize]),
                _ => ", nothing".to_owned(),
            };
        }
        text.push('\n');
    }
    text
}
