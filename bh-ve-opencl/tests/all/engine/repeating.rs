//! Batches that repeat and run as a whole, as they were prepared: with other arrays, other values, arrays that the program
//! changes in between, and too little memory.

use super::{Build, apart, check};
use crate::support::{alone, alone_and_optimised, count, load};
use bh_bytecode::interp::Memory;
use bh_bytecode::random::{Options, Program, program};
use bh_bytecode::{Constant, DType, Opcode, Operand};
use bh_core::stack::Stack;
use bh_tests::{run, stacks};

/// Keys with which a batch is prepared in its second call.
const KEYS: &str = "placement = 'device'\nspecialise = 'on'\ncache_dir = ''\nwhile_building = 'off'";

/// Each program runs some times alone, and then with the results of earlier runs alive, so that its arrays are in other places.
#[test]
fn random_programs_that_repeat_equal_the_oracle() {
    let _alone = alone_and_optimised();
    let Some(mut stack) = load("'opencl'", KEYS) else { return };
    let options = Options { max_instrs: 12, max_rank: 3, ..Options::default() };
    let programs = std::env::var("BH_TEST_PROGRAMS").map_or(24, |text| text.parse().unwrap());
    for seed in 0..programs {
        let random = program(seed, &options);
        (0..3).for_each(|_| check(&mut stack, &random));
        let oracle = random.oracle().unwrap();
        let together: Vec<_> = (0..3).map(|_| run::bring(&mut stack, &random).unwrap()).collect();
        for batch in &together {
            stack.execute(&batch.as_ref(), &[]).and_then(|ticket| stack.wait(ticket)).unwrap();
        }
        for batch in &together {
            let mut memory = Memory::new();
            for (at, base) in batch.bases.iter().enumerate() {
                if !run::is_dropped(batch, at as u32) {
                    memory.insert(random.batch.bases[at].id, run::read(&mut stack, base).unwrap());
                }
            }
            let bounds = stacks::bounds(&stacks::driver());
            oracle.check_within(&random.batch, &memory, bounds).unwrap_or_else(|why| panic!("program {seed}: {why}"));
        }
        together.iter().for_each(|batch| run::discard(&mut stack, batch).unwrap());
    }
    let prepared = count(&stack, "batches prepared");
    assert!(prepared > programs, "{prepared} batches of {programs} programs");
    assert_eq!(stack.message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
}

/// Two arrays that are made of each other, in place, with a factor that is no part of the kernels.
fn in_place(len: i64) -> Program {
    let mut build = Build::default();
    let bases = [0, 1].map(|_| build.base(DType::I64, len, true));
    let [one, two] = bases.map(|base| build.view(base, 0, &[len], &[1]));
    let part = build.view(bases[1], 1, &[len - 1], &[1]);
    let by = Operand::constant(build.program().batch.push_constant(Constant::from_value(3i64)));
    build.push(Opcode::Multiply, &[one, one, by]);
    build.push(Opcode::Add, &[two, two, one]);
    let shifted = build.view(bases[0], 0, &[len - 1], &[1]);
    build.push(Opcode::Subtract, &[shifted, shifted, part]);
    build.program.unwrap()
}

/// Runs a program on the values that its arrays have, with this factor, and compares the results with the definition's.
fn step(stack: &mut Stack, program: &mut Program, batch: &bh_bytecode::Batch, by: i64) {
    let mut batch = batch.clone();
    batch.constants[0] = Constant::from_value(by);
    program.batch.constants[0] = Constant::from_value(by);
    let expected = program.oracle().unwrap().memory;
    stack.execute(&batch.as_ref(), &[]).and_then(|ticket| stack.wait(ticket)).unwrap();
    for (own, base) in program.batch.bases.iter().zip(&batch.bases) {
        let found = run::read(stack, base).unwrap();
        assert!(expected.get(own.id).unwrap() == found, "base {}", own.id);
        program.memory.insert(own.id, found);
    }
}

#[test]
fn other_constants_and_values_that_the_program_writes_are_seen() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", KEYS) else { return };
    let mut program = in_place(300);
    let batch = run::bring(&mut stack, &program).unwrap();
    for turn in 0..9 {
        step(&mut stack, &mut program, &batch, 1 + turn % 3);
        if turn % 2 == 1 {
            let bytes: Vec<u8> = (0..300i64).flat_map(|at| (at * turn).to_ne_bytes()).collect();
            run::write(&mut stack, &batch.bases[0], &bytes).unwrap();
            program.memory.insert(program.batch.bases[0].id, bytes);
        }
    }
    assert!(count(&stack, "batches prepared") >= 5, "{}", count(&stack, "batches prepared"));
    run::discard(&mut stack, &batch).unwrap();
}

#[test]
fn batches_that_repeat_and_do_not_fit_run_block_by_block() {
    let _alone = alone();
    // 24 arrays of 64 KiB, of which 6 fit.
    let Some(mut stack) = load("'opencl'", &format!("{KEYS}\nmemory = '512KiB'")) else { return };
    (0..4).for_each(|_| check(&mut stack, &apart(8, 8192)));
    assert!(count(&stack, "device peak_bytes") <= 512 << 10);
    assert_eq!(count(&stack, "batches prepared"), 0);
    // Those that fit find memory that others have left.
    (0..4).for_each(|_| check(&mut stack, &apart(1, 8192)));
    assert!(count(&stack, "batches prepared") >= 2, "{}", count(&stack, "batches prepared"));
}

#[test]
fn a_placement_disables_prepared_batches() {
    let _alone = alone();
    let keys = format!("{KEYS}\nplacements = 'private,local,padding,unroll,filled'");
    let Some(mut stack) = load("'opencl'", &keys) else { return };
    (0..4).for_each(|_| check(&mut stack, &apart(3, 100)));
    assert_eq!((count(&stack, "batches prepared"), count(&stack, "kernels")), (0, 12));
}
