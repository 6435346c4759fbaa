//! Random running sums and products along any axis, in parts and tiles of groups of any size, and folds of many short rows, of views in any
//! order, backward and with gaps. The interpreter says what they should be: numbers are whole, so that sums have no order.

use crate::support;

use bh_bytecode::order::AxisOrder;
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, View, base_flags};
use bh_core::stack::Stack;
use bh_tests::data::{Values, fill};
use bh_tests::run;
use support::{alone, count, load_with_groups};

const TYPES: [DType; 8] =
    [DType::F64, DType::I64, DType::F32, DType::C128, DType::U8, DType::C64, DType::I32, DType::Bool];

/// An operand of this shape, with its axes in any order in memory, perhaps with gaps or backward.
fn operand(program: &mut Program, rng: &mut Rng, dtype: DType, shape: &[i64], values: Values) -> Operand {
    let mut order: Vec<usize> = (0..shape.len()).collect();
    (1..order.len()).rev().for_each(|at| order.swap(at, rng.below(at + 1)));
    let (mut stride, mut step, mut start) = (vec![0; shape.len()], 1 + i64::from(rng.chance(20)), rng.between(0, 3));
    for axis in order {
        stride[axis] = step;
        step *= shape[axis];
        if rng.chance(15) {
            start += stride[axis] * (shape[axis] - 1);
            stride[axis] = -stride[axis];
        }
    }
    let (id, elements) = (program.batch.bases.len() as u64 + 1, step + 4);
    program.memory.insert(id, fill(rng, dtype, elements, values));
    let base = program.batch.push_base(Base { flags: base_flags::LIVE_OUT, ..Base::new(id, dtype, elements) });
    Operand::view(program.batch.push_view(base, &View::new(start, shape, &stride).unwrap()))
}

/// A running sum, or a running product of numbers that wrap.
fn running(seed: u64) -> (Program, String) {
    let mut rng = Rng::new(seed);
    let dtype = TYPES[seed as usize % TYPES.len()];
    let mut shape: Vec<i64> = (0..rng.below(3)).map(|_| rng.between(1, 4)).collect();
    let axis = rng.below(shape.len() + 1);
    shape.insert(axis, [rng.between(1, 70), rng.between(70, 3000), rng.between(3000, 30_000)][rng.below(3)]);
    let multiplies = !dtype.is_float() && !dtype.is_complex() && rng.chance(40);
    let opcode = if multiplies { Opcode::MultiplyAccumulate } else { Opcode::AddAccumulate };
    let values = if multiplies { Values::Wild } else { Values::Whole };
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    let operands = [0, 1].map(|_| operand(&mut program, &mut rng, dtype, &shape, values));
    program.batch.push_instr(Instr { param: 1 << axis, ..Instr::new(opcode, &operands) });
    (program, format!("seed {seed}: {opcode} of {dtype} {shape:?} along {axis}"))
}

/// A fold of short rows, each of several axes perhaps, of one array or of the products of two.
fn rows(seed: u64) -> (Program, String) {
    let mut rng = Rng::new(seed);
    let dtype = TYPES[seed as usize % TYPES.len()];
    let (outer, inner) = ([3000 + rng.below(3000), 30_000 + rng.below(9000)][rng.below(2)] as i64, rng.between(2, 64));
    let shape = if rng.chance(50) { vec![outer, inner] } else { vec![2, outer / 2, inner] };
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    let kept = &shape[..shape.len() - 1];
    let out = operand(&mut program, &mut rng, dtype, kept, Values::Whole);
    // Neighbours in memory are folded.
    let line = |program: &mut Program, rng: &mut Rng, all: bool| {
        let (id, elements) = (program.batch.bases.len() as u64 + 1, if all { shape.iter().product() } else { inner });
        program.memory.insert(id, fill(rng, dtype, elements, Values::Whole));
        let base = program.batch.push_base(Base { flags: base_flags::LIVE_OUT, ..Base::new(id, dtype, elements) });
        let view = match all {
            true => View::contiguous(&shape).unwrap(),
            false => {
                let mut stride = vec![0; shape.len()];
                stride[shape.len() - 1] = 1;
                View::new(0, &shape, &stride).unwrap()
            }
        };
        Operand::view(program.batch.push_view(base, &view))
    };
    let mut folded = line(&mut program, &mut rng, true);
    if rng.chance(50) {
        let by = line(&mut program, &mut rng, false);
        let id = program.batch.bases.len() as u64 + 1;
        let flags = base_flags::BORN | if rng.chance(50) { base_flags::LIVE_OUT } else { base_flags::DIES };
        let base = program.batch.push_base(Base { flags, ..Base::new(id, dtype, shape.iter().product()) });
        let made = Operand::view(program.batch.push_view(base, &View::contiguous(&shape).unwrap()));
        program.batch.push_instr(Instr::new(Opcode::Multiply, &[made, folded, by]));
        folded = made;
    }
    let param = 1 << (shape.len() - 1);
    program.batch.push_instr(Instr { param, ..Instr::new(Opcode::AddReduce, &[out, folded]) });
    let made = program.batch.bases.last().is_some_and(|base| base.has(base_flags::DIES));
    if made {
        program.batch.push_instr(Instr::new(Opcode::Discard, &[folded]));
    }
    (program, format!("seed {seed}: rows of {dtype} {shape:?}"))
}

/// Folds of many arrays of a shape, more than a group has local memory for at once.
fn many(seed: u64) -> (Program, String) {
    let mut rng = Rng::new(seed);
    let (shape, axis) = ([rng.between(2, 40), rng.between(30, 600)], rng.below(2));
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    // Half of them have the tree that is the same everywhere.
    let order = if rng.chance(50) { AxisOrder::c_order(2).fixed().code() } else { 0 };
    let kinds = &TYPES[seed as usize % TYPES.len()..][..1 + rng.below(TYPES.len() - seed as usize % TYPES.len())];
    // PoCL keeps what all items of a group fold on the stack of a thread.
    let largest = kinds.iter().map(|dtype| dtype.size()).max().unwrap_or(1);
    let count = 1 + rng.below((480 / largest).min(100));
    for at in 0..count {
        let dtype = kinds[at % kinds.len()];
        let from = operand(&mut program, &mut rng, dtype, &shape, Values::Whole);
        let to = operand(&mut program, &mut rng, dtype, &[shape[1 - axis]], Values::Whole);
        program.batch.push_instr(Instr { param: 1 << axis, order, ..Instr::new(Opcode::AddReduce, &[to, from]) });
    }
    (program, format!("seed {seed}: {count} folds of {kinds:?} {shape:?} along {axis}"))
}

fn all_equal_the_oracle(make: fn(u64) -> (Program, String)) {
    let _alone = alone();
    let programs = std::env::var("BH_TEST_PROGRAMS").map_or(8, |text| text.parse().unwrap());
    for (group, specialise) in [(16, "off"), (256, "on")] {
        let keys = format!("specialise = '{specialise}'\ncache_dir = ''\nplacement = 'device'");
        let Some(mut stack) = load_with_groups(group, "'opencl'", &keys) else { return };
        (0..programs).for_each(|seed| one_equals_the_oracle(&mut stack, make(seed), group));
        assert!(count(&stack, "kernels") >= programs);
    }
}

fn one_equals_the_oracle(stack: &mut Stack, (program, what): (Program, String), group: usize) {
    let memory = run::run(stack, &program).unwrap_or_else(|error| panic!("{what}: {error}"));
    let outcome = program.oracle().unwrap().check(&program.batch, &memory);
    outcome.unwrap_or_else(|why| panic!("groups of {group}, {what}: {why}"));
}

#[test]
fn random_running_folds_equal_the_oracle() {
    all_equal_the_oracle(running);
}

#[test]
fn random_folds_of_short_rows_equal_the_oracle() {
    all_equal_the_oracle(rows);
}

#[test]
fn many_folds_at_once_equal_the_oracle() {
    all_equal_the_oracle(many);
}
