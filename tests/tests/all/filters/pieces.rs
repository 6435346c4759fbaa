//! Programs with arrays in pieces, cut into boxes: they agree with the interpreter for all sizes, with fewer copies.

use crate::lost::expected;
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, DType, Instr, Opcode, Operand, View, base_flags, validate};
use bh_core::stack::Stack;
use bh_filter::passes::{ALL, Options, Pass};
use bh_tests::data::Values;
use bh_tests::ordinary::{self, Sizes};
use bh_tests::writer::{Given, Writer};
use bh_tests::{run, stacks};

/// Programs for the pass alone, and for all passes. `BH_TEST_PROGRAMS` sets their number.
const PROGRAMS: u64 = 3_000;
/// Stacks, some of which are clusters.
const STACKS: [&str; 9] =
    ["cpu", "cpu-linear", "cpu-plain", "shadow", "split", "cluster-2", "cluster-3", "cluster-7", "siblings"];
/// Programs on each stack.
const ON_STACKS: u64 = 250;

/// Programs with folds of slices.
const FOLDS: u64 = 12;

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
        let options = Options { in_order: true, ..Options::default() };
        changes += passes.iter().map(|pass| (pass.run)(&mut batch, &options)).sum::<usize>();
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
fn arrays_in_other_shapes_keep_their_elements() {
    let pass: Vec<Pass> = ALL.iter().filter(|pass| pass.name == "copies").map(|pass| Pass { ..*pass }).collect();
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

/// Slices that are stacked along an axis, and a sum and a product along it, both of which round.
fn stacked(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let dtype = [DType::F64, DType::F32, DType::C128][rng.below(3)];
    // Of more than 8,192 elements, so that batches are planned.
    let shape = [[330, 64], [9, 2100], [2500, 8]][rng.below(3)];
    let (axis, count) = ([0, 2][rng.below(2)], rng.between(2, 18));
    let mut all = shape.to_vec();
    all.insert(axis, count);
    let kept = &shape;
    let mut writer = Writer::default();
    let x = writer.input(&mut rng, dtype, kept, Values::Tame);
    let stack = writer.empty(dtype, &all);
    for at in 0..count {
        let by = Given::Number(f64::from(1 + rng.below(9) as u8) / 7.0 - 0.6);
        let part = writer.make(Opcode::Multiply, 0, dtype, kept, &[Given::Array(x), by]);
        let slice = stack.through(stack.view.index(axis, at).unwrap());
        writer.write(slice, Opcode::Copy, 0, &[Given::Array(part)]);
    }
    let whole = writer.make(Opcode::Multiply, 0, dtype, &all, &[Given::Array(stack), Given::Number(0.3)]);
    for opcode in [Opcode::AddReduce, Opcode::MultiplyReduce] {
        let fold = writer.make(opcode, 1 << axis, dtype, kept, &[Given::Array(whole)]);
        writer.keep(fold);
    }
    writer.finish()
}

#[test]
fn folds_of_slices_keep_their_bits() {
    let device = "[components.opencl]\ndevice = 'cpu'\nplacement = '64 1'\nwhile_building = 'off'\n";
    for (engines, more) in [("'ve-cpu'", ""), ("'opencl', 've-cpu'", device)] {
        let load = |passes: &str| {
            let text = format!(
                "[stacks]\nit = ['filter', 'fuser', 'node', {engines}]\n[components.filter]\npasses = '{passes}'\npieces_from = 1\n{more}"
            );
            Stack::load(&stacks::from_text("slices.toml", &text).unwrap(), None)
        };
        let (mut divided, mut whole) = match (load("pieces,dead-code"), load("")) {
            (Ok(divided), Ok(whole)) => (divided, whole),
            (Err(error), _) | (_, Err(error)) if stacks::is_absent(&error) => continue,
            (Err(error), _) | (_, Err(error)) => panic!("{engines}: {error}"),
        };
        for seed in 0..programs(FOLDS) {
            let program = stacked(seed);
            let [found, expected] = [&mut divided, &mut whole].map(|stack| run::run(stack, &program).unwrap());
            assert!(found == expected, "{engines}, seed {seed}");
        }
        assert!(divided.stats().get("filter.pieces").unwrap() > programs(FOLDS), "{engines}");
    }
}
