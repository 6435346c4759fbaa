//! Programs with arrays in pieces, cut into boxes: they agree with the interpreter for all sizes, with fewer copies.

use crate::lost::expected;
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, DType, Instr, Opcode, Operand, View, base_flags, validate};
use bh_filter::passes::{ALL, Options, Pass};
use bh_tests::ordinary::{self, Sizes};
use bh_tests::{run, stacks};

/// Programs for the pass alone, and for all passes. `BH_TEST_PROGRAMS` sets their number.
const PROGRAMS: u64 = 3_000;
/// Stacks, some of which are clusters.
const STACKS: [&str; 9] =
    ["cpu", "cpu-linear", "cpu-plain", "shadow", "split", "cluster-2", "cluster-3", "cluster-7", "siblings"];
/// Programs on each stack.
const ON_STACKS: u64 = 250;

fn programs(default: u64) -> u64 {
    std::env::var("BH_TEST_PROGRAMS").map_or(default, |text| text.parse().unwrap())
}

/// Runs passes over random programs, and compares the interpreter's results. Returns how many instructions they
/// changed.
fn check(passes: &[Pass]) -> usize {
    let mut changes = 0;
    for seed in 0..programs(PROGRAMS) {
        let program = ordinary::moved(seed, Sizes::Small);
        validate(&program.batch.as_ref()).unwrap_or_else(|error| panic!("seed {seed}: the test's program: {error}"));
        let oracle = program.oracle().unwrap();
        let mut batch = program.batch.clone();
        changes += passes.iter().map(|pass| (pass.run)(&mut batch, &Options::default())).sum::<usize>();
        validate(&batch.as_ref()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let rewritten = Program { batch, memory: program.memory.clone() };
        let actual = rewritten.oracle().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        oracle.check(&program.batch, &actual.memory).unwrap_or_else(|difference| panic!("seed {seed}: {difference}"));
    }
    changes
}

#[test]
fn arrays_in_pieces_keep_their_elements() {
    let pass: Vec<Pass> = ALL.iter().filter(|pass| pass.name == "pieces").map(|pass| Pass { ..*pass }).collect();
    assert!(check(&pass) > programs(PROGRAMS) as usize);
}

#[test]
fn arrays_in_pieces_keep_their_elements_with_all_passes() {
    assert!(check(ALL) > programs(PROGRAMS) as usize);
}

#[test]
fn arrays_in_pieces_are_the_same_on_all_stacks() {
    for name in STACKS {
        let mut stack = stacks::load(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        for seed in 0..programs(ON_STACKS) {
            let program = ordinary::moved(seed, Sizes::Small);
            let oracle = program.oracle().unwrap();
            let memory =
                run::run(&mut stack, &program).unwrap_or_else(|error| panic!("stack {name}, seed {seed}: {error}"));
            oracle.check(&program.batch, &memory).unwrap_or_else(|text| panic!("stack {name}, seed {seed}: {text}"));
        }
    }
}

/// Loses an existing array somewhere in the program, with an index out of range.
fn spoiled(mut program: Program, seed: u64) -> Program {
    let mut rng = Rng::new(seed ^ 0x1057);
    let batch = &mut program.batch;
    let inputs: Vec<u32> =
        (0..batch.bases.len() as u32).filter(|&base| program.memory.get(u64::from(base) + 1).is_some()).collect();
    let lost = inputs[rng.below(inputs.len())];
    let dtype = batch.bases[lost as usize].dtype();
    let mut input = |dtype: DType, bytes: &[u8]| {
        let base = Base { flags: base_flags::LIVE_OUT, ..Base::new(batch.bases.len() as u64 + 1, dtype, 1) };
        program.memory.insert(base.id, bytes.to_vec());
        let base = batch.push_base(base);
        Operand::view(batch.push_view(base, &View::contiguous(&[1]).unwrap()))
    };
    let source = input(dtype, &[0; 8][..dtype.size()]);
    let index = input(DType::I64, &7i64.to_ne_bytes());
    let element = batch.intern_view(lost, &View::contiguous(&[1]).unwrap());
    let gather = Instr::new(Opcode::Gather, &[Operand::view(element), source, index]);
    let at = rng.below(batch.instrs.len() + 1);
    batch.instrs.insert(at, gather);
    program
}

#[test]
fn arrays_in_pieces_are_lost_by_the_same_causes() {
    let mut changes = 0;
    for seed in 0..programs(PROGRAMS) {
        let program = spoiled(ordinary::moved(seed, Sizes::Small), seed);
        validate(&program.batch.as_ref()).unwrap_or_else(|error| panic!("seed {seed}: the test's program: {error}"));
        let mut batch = program.batch.clone();
        for pass in ALL.iter().filter(|pass| ["pieces", "dead-code"].contains(&pass.name)) {
            let changed = (pass.run)(&mut batch, &Options::default());
            changes += if pass.name == "pieces" { changed } else { 0 };
        }
        let rewritten = Program { batch, memory: program.memory.clone() };
        let ((memory, lost), (new_memory, new_lost)) = (expected(&program), expected(&rewritten));
        for (number, base) in program.batch.bases.iter().enumerate() {
            if base.has(base_flags::DIES) {
                continue;
            }
            let is_lost = lost.contains(&(number as u32));
            assert_eq!(is_lost, new_lost.contains(&(number as u32)), "seed {seed}: base {number} should be as lost");
            assert!(is_lost || memory.get(base.id) == new_memory.get(base.id), "seed {seed}: base {number}");
        }
    }
    assert!(changes > programs(PROGRAMS) as usize);
}
