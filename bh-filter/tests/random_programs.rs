//! Random programs, sprinkled with what the passes look for, give what the oracle gives after every pass and after all.

use bh_bytecode::random::{Options as Programs, Program, Rng, program};
use bh_bytecode::validate::validate;
use bh_bytecode::{Base, Batch, Constant, Kind, Opcode, Operand, base_flags};
use bh_filter::passes::{ALL, Options, Pass};

/// Programs per pass.
const PROGRAMS: u64 = 2_000;

/// A random program whose constants are often small and whose operations are often repeated into arrays of their own.
fn sprinkled(seed: u64) -> Program {
    let mut program = program(seed, &Programs::default());
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
    let Ok(whole) = bh_bytecode::View::contiguous(&shape) else { return };
    let mut base = Base::new(*next_id, dtype, whole.len());
    base.flags = base_flags::BORN | base_flags::LIVE_OUT;
    *next_id += 1;
    let base = batch.push_base(base);
    let output = Operand::view(batch.intern_view(base, &whole));
    let mut twin = instr;
    twin.operands[0] = output;
    // In place, the result is an input of its twin: then only what it gave may be read again.
    let reads_itself = instr.inputs().contains(&instr.operands[0]);
    if dtype.is_int() && random.chance(40) {
        let opcode = [Opcode::Add, Opcode::Subtract, Opcode::Multiply][random.below(3)];
        let mut step = |input: Operand| {
            let value = Constant::from_value(random.between(-1000, 1000)).cast(dtype);
            bh_bytecode::Instr::new(opcode, &[output, input, Operand::constant(batch.push_constant(value))])
        };
        twin = step(instr.operands[0]);
        let further = step(output);
        batch.instrs.insert(index + 1, further);
    } else if reads_itself || random.chance(40) {
        let involution = match dtype {
            bh_bytecode::DType::Bool => Opcode::LogicalNot,
            other if other.is_int() => Opcode::Invert,
            other if other.is_complex() => Opcode::Conj,
            _ => return,
        };
        twin = bh_bytecode::Instr::new(involution, &[output, instr.operands[0]]);
        let back = bh_bytecode::Instr::new(involution, &[output, output]);
        batch.instrs.insert(index + 1, back);
    }
    batch.instrs.insert(index + 1, twin);
}

fn check(name: &str, passes: &[(&str, Pass)], reassociate: bool) -> usize {
    let options = Options { reassociate, matmul: None };
    let mut changes = 0;
    for seed in 0..PROGRAMS {
        let program = sprinkled(seed);
        validate(&program.batch.as_ref()).unwrap_or_else(|error| panic!("seed {seed}: the test's program: {error}"));
        let oracle = program.oracle().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let mut batch = program.batch.clone();
        changes += passes.iter().map(|(_, pass)| pass(&mut batch, &options)).sum::<usize>();
        validate(&batch.as_ref()).unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
        let rewritten = Program { batch, memory: program.memory.clone() };
        let actual = rewritten.oracle().unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
        if let Err(difference) = oracle.check(&program.batch, &actual.memory) {
            panic!("{name}, seed {seed}: {difference}");
        }
    }
    changes
}

#[test]
fn every_pass_keeps_results() {
    for &(name, pass) in ALL {
        let changes = check(name, &[(name, pass)], false);
        // Random programs hold no matrix products (and the method is not offered here).
        assert!(changes > 0 || matches!(name, "matmul" | "reduction-chain"), "{name} never found anything to do");
    }
}

#[test]
fn all_passes_together_keep_results() {
    assert!(check("all passes", ALL, false) > 0);
}
