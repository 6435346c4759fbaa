//! Kernels at the limits of devices: many folds, whose places in local memory a group does not have, and many arrays. The compiler takes
//! them; a block that it refuses runs on the next engine.

use crate::texts::{load, none_is_refused, refusing};
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, View, base_flags};
use bh_tests::run;

/// Rows and columns of the arrays.
const SHAPES: [[i64; 2]; 2] = [[20, 75], [3, 4000]];

/// An array of ones that lives on, of so many elements.
fn array(program: &mut Program, dtype: DType, shape: &[i64], filled: bool) -> Operand {
    let (id, elements) = (program.batch.bases.len() as u64 + 1, shape.iter().product::<i64>());
    let flags = base_flags::LIVE_OUT | if filled { 0 } else { base_flags::BORN };
    let base = program.batch.push_base(Base { flags, ..Base::new(id, dtype, elements) });
    if filled {
        program.memory.insert(id, vec![0; elements as usize * dtype.size()]);
    }
    Operand::view(program.batch.push_view(base, &View::contiguous(shape).unwrap()))
}

/// Folds of so many arrays along an axis, of one type or of several.
fn folds(seed: u64, count: usize) -> Program {
    let mut rng = Rng::new(seed);
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    let (shape, axis) = (SHAPES[rng.below(2)], rng.below(2));
    let kinds = [&[DType::F32][..], &[DType::F64], &[DType::C128], &[DType::F32, DType::I64, DType::U8]][rng.below(4)];
    for at in 0..count {
        let dtype = kinds[at % kinds.len()];
        let from = array(&mut program, dtype, &shape, true);
        let to = array(&mut program, dtype, &[shape[1 - axis]], false);
        program.batch.push_instr(Instr { param: 1 << axis, ..Instr::new(Opcode::AddReduce, &[to, from]) });
    }
    program
}

/// The sum of so many arrays, element by element.
fn sum(count: usize) -> Program {
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    let mut last = array(&mut program, DType::F32, &[1000], true);
    for _ in 1..count {
        let (other, to) =
            (array(&mut program, DType::F32, &[1000], true), array(&mut program, DType::F32, &[1000], false));
        program.batch.push_instr(Instr::new(Opcode::Add, &[to, last, other]));
        last = to;
    }
    program
}

#[test]
fn the_compiler_takes_kernels_of_many_folds_and_many_arrays() {
    for keys in ["specialise = 'on'", "group = 512"] {
        let Some(mut stack) = load(keys) else { return };
        for (seed, count) in [25, 49, 100].into_iter().enumerate() {
            run::run(&mut stack, &folds(seed as u64, count)).unwrap();
        }
        run::run(&mut stack, &sum(250)).unwrap();
        none_is_refused();
    }
}

#[test]
fn the_next_engine_runs_what_the_compiler_refuses() {
    let mut stack = refusing("'interp'");
    let program = folds(1, 4);
    let memory = run::run(&mut stack, &program).unwrap();
    program.oracle().unwrap().check(&program.batch, &memory).unwrap();
    assert!(stack.message("where").unwrap().contains("refuses"), "{}", stack.message("where").unwrap());
    // Without one the error has the compiler's words.
    let error = run::run(&mut refusing(""), &program).err().unwrap().to_string();
    assert!(error.contains("no text is to its taste"), "{error}");
}
