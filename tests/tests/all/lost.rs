//! Random programs with indices out of range: every stack loses exactly the arrays that depend on a failure, and all
//! others are right.

use bh_bytecode::compare::{Tolerance, compare};
use bh_bytecode::interp::{Interpreter, Memory};
use bh_bytecode::random::{self, Options, Program, Rng};
use bh_bytecode::{Base, Batch, DType, Extension, Instr, Kind, Opcode, Operand, View};
use bh_core::component::Collected;
use bh_core::stack::Stack;
use bh_tests::program::{LEN, Script};
use bh_tests::{quick, run, stacks};
use bh_ve_interp::usage::instr_usage;
use std::collections::HashSet;

/// Programs. `BH_TEST_PROGRAMS` sets their number, `BH_TEST_FIRST` the first one.
const PROGRAMS: u64 = 400;
/// Later programs that once lost other arrays than they should.
const FOUND: [u64; 4] = [1208, 1272, 1821, 3180];
/// The stacks without a device.
const EVERYWHERE: [&str; 10] =
    ["cpu", "cpu-linear", "cpu-plain", "direct", "shadow", "split", "interp", "cluster-2", "cluster-3", "siblings"];
/// Programs for stacks whose driver builds each kernel.
const BUILT: u64 = 12;

/// Moves some of a program's indices out of range.
fn spoiled(mut program: Program, seed: u64) -> Program {
    let mut rng = Rng::new(seed ^ 0x5ca1_ab1e);
    let batch = program.batch.as_ref();
    for instr in batch.instrs {
        if !matches!(instr.opcode, Opcode::Gather | Opcode::Scatter | Opcode::ScatterAdd | Opcode::CondScatter) {
            continue;
        }
        let Some(base) = instr.operands()[2].as_view().and_then(|view| batch.base_of(view)) else { continue };
        let Some(bytes) = program.memory.get(base.id).map(<[u8]>::to_vec).filter(|bytes| !bytes.is_empty()) else {
            continue;
        };
        if rng.chance(60) {
            let mut bytes = bytes;
            let at = 8 * rng.below(bytes.len() / 8);
            let bad = if base.dtype() == DType::I64 && rng.chance(50) { i64::MIN } else { 1 << 40 };
            bytes[at..at + 8].copy_from_slice(&bad.to_ne_bytes());
            program.memory.insert(base.id, bytes);
        }
    }
    program
}

/// The result of running operation by operation: the data, and the lost bases.
pub(super) fn expected(program: &Program) -> (Memory, HashSet<u32>) {
    let batch = program.batch.as_ref();
    let (mut memory, mut lost) = (program.memory.clone(), HashSet::new());
    let mut interpreter = Interpreter { memory: &mut memory, extensions: None, magnitudes: None };
    for (index, instr) in batch.instrs.iter().enumerate() {
        if matches!(instr.opcode, Opcode::Free | Opcode::Discard) {
            instr.operands()[0].as_view().map(|view| lost.remove(&batch.views[view as usize].base));
        }
        let mut uses = Vec::new();
        instr_usage(&batch, instr, &mut uses);
        let inherits = uses.iter().any(|used| used.needs_old && lost.contains(&used.base));
        let fails = inherits || interpreter.execute_instr(&batch, index).is_err();
        for written in uses.iter().filter(|used| used.writes) {
            if fails {
                lost.insert(written.base)
            } else {
                lost.remove(&written.base)
            };
        }
    }
    (memory, lost)
}

fn check(stack: &mut Stack, program: &Program) -> Result<usize, String> {
    let (memory, lost) = expected(program);
    let outcome = run::run_failing(stack, program).map_err(|error| format!("the program does not start: {error}"))?;
    for (index, (base, read)) in program.batch.bases.iter().zip(&outcome.bases).enumerate() {
        match (read, lost.contains(&(index as u32))) {
            (Some(Ok(_)), true) => return Err(format!("base {index} should be lost")),
            (Some(Err(error)), false) => return Err(format!("base {index} should not be lost: {error}")),
            (Some(Ok(bytes)), false) => {
                // Arrays without a write read as zeros.
                let zeros = vec![0; base.bytes() as usize];
                let right = memory.get(base.id).unwrap_or(&zeros);
                compare(base.dtype(), right, bytes, &Tolerance::Exact)
                    .map_err(|difference| format!("base {index} has wrong data: {difference}"))?;
            }
            _ => {}
        }
    }
    let left = |&&index: &&u32| outcome.bases[index as usize].is_some();
    let lost = lost.iter().filter(left).count();
    if lost > 0 && outcome.result.is_ok() {
        return Err("arrays are lost, but the batch succeeds".into());
    }
    Ok(lost)
}

/// Runs programs on a stack.
fn check_all(name: &str, mut stack: Stack, programs: u64) {
    let mut lost = 0;
    let first = variable("BH_TEST_FIRST", 0);
    for seed in (first..first + programs).chain(FOUND) {
        let floats = random::Options { allow_inexact: false, max_rank: 3, ..Options::default() };
        // Every other one contains patterns of the filter.
        let program = if seed % 2 == 0 { random::program(seed, &floats) } else { random::sprinkled(seed, &floats) };
        let program = spoiled(program, seed);
        match check(&mut stack, &program) {
            Ok(count) => lost += count as u64,
            Err(error) => {
                let small = random::shrink(&program, |smaller| check(&mut stack, smaller).is_err());
                let cause = check(&mut stack, &small).err().unwrap_or(error);
                panic!("stack {name}, seed {seed}: {cause}\n{}", bh_tests::random::describe(&small));
            }
        }
    }
    assert!(lost > programs / 8, "stack {name}: only {lost} arrays were lost");
    println!("{name}: {lost} arrays lost in {programs} programs");
    let leaks = stack.message("leaks").unwrap();
    assert_eq!(leaks.lines().last(), Some("0 arrays alive, 0 bytes of host memory"), "stack {name}");
}

/// An operation on a lost array also loses arrays that it writes in part; users of other parts keep their data.
#[test]
fn uses_of_other_parts_stay_before_what_is_lost() {
    let words = "bh batch 1\nbase b0 = f64[4] id 1 row 4 born live_out\nbase b1 = f64[14] id 2 row 14 live_out\n\
         base b2 = i64[4] id 3 row 4 live_out\nbase b3 = f64[2] id 4 row 2 born live_out\n\
         view v0 = b0 at 0 [2:2, 2:1]\nview v1 = b1 at 12 [7:-2, 2:1]\nview v2 = b2 at 0 [2:2, 2:1]\n\
         view v3 = b1 at 12 [2:1]\nview v4 = b1 at 4 [2:2, 2:1]\nview v5 = b3 at 0 [2:1]\n\
         i0: v0 = gather v1, v2\ni1: v3 = maximum_reduce axes(0) v4\ni2: v5 = absolute v3\n\
         i3: v4 = multiply v4, v0\n";
    let batch = bh_bytecode::text::parse(words).unwrap();
    let mut memory = Memory::new();
    memory.insert(2, (0..14).flat_map(|at| f64::from(at).to_ne_bytes()).collect());
    memory.insert(3, [0, 1 << 40, 0, 0].iter().flat_map(|at: &i64| at.to_ne_bytes()).collect());
    let program = Program { batch, memory };
    for name in stacks::STACKS {
        let lost = check(&mut stacks::load(name).unwrap(), &program);
        assert_eq!(lost, Ok(2), "stack {name}");
    }
}

/// The lost array that an operand views.
const VALUE: usize = 0;
const POSITION: usize = 1;
const CHOSEN: usize = 2;

/// A program that loses an array of a type, one of positions and a mask, runs one operation on empty parts of them, and
/// copies its result: the last two arrays.
fn on_nothing(opcode: Opcode, dtype: DType, out: &[i64], inputs: &[(usize, &[i64])]) -> Program {
    let (mut batch, mut memory) = (Batch::default(), Memory::new());
    let mut whole = |batch: &mut Batch, dtype: DType, shape: &[i64]| {
        let base = Base::new(batch.bases.len() as u64 + 1, dtype, shape.iter().product());
        memory.insert(base.id, vec![1; base.bytes() as usize]);
        let base = batch.push_base(base);
        batch.push_view(base, &View::contiguous(shape).unwrap())
    };
    let index = whole(&mut batch, DType::I64, &[4]);
    let lost = [dtype, DType::I64, DType::Bool].map(|dtype| {
        let [lost, source] = [0, 1].map(|_| whole(&mut batch, dtype, &[4]));
        batch.push_instr(Instr::new(Opcode::Gather, &[lost, source, index].map(Operand::view)));
        batch.views[lost as usize].base
    });
    let [result, copy] = [0, 1].map(|_| whole(&mut batch, dtype, out));
    let mut operands = vec![Operand::view(result)];
    for (which, shape) in inputs {
        operands.push(Operand::view(batch.push_view(lost[*which], &View::contiguous(shape).unwrap())));
    }
    batch.push_instr(Instr { param: u16::from(opcode.kind() == Kind::Reduction), ..Instr::new(opcode, &operands) });
    batch.push_instr(Instr::new(Opcode::Copy, &[copy, result].map(Operand::view)));
    memory.insert(1, (1i64 << 40).to_ne_bytes().repeat(4));
    Program { batch, memory }
}

/// The stacks available on this machine, including those with a device.
fn all_stacks() -> impl Iterator<Item = (&'static str, Stack)> {
    let devices = ["opencl", "opencl-only"].into_iter().filter_map(|name| Some((name, stacks::load(name).ok()?)));
    EVERYWHERE.into_iter().map(|name| (name, stacks::load(name).unwrap())).chain(devices)
}

/// An operation on an empty view of a lost array runs.
#[test]
fn operands_without_elements_are_not_missed() {
    let mut programs = Vec::new();
    for &opcode in Opcode::ALL {
        let types = opcode.info().types;
        let dtype = [DType::F64, DType::I64, DType::Bool].into_iter().find(|&dtype| types.contains(dtype));
        let (none, of_none): (&[i64], &[i64]) = (&[0], &[0, 3]);
        let operands = match opcode.kind() {
            Kind::Reduction if opcode == Opcode::Contract => [(VALUE, of_none), (VALUE, of_none), (CHOSEN, of_none)],
            Kind::Reduction => [(VALUE, of_none), (CHOSEN, of_none), (CHOSEN, of_none)],
            Kind::Index if opcode.reads_output() => [(VALUE, none), (POSITION, none), (CHOSEN, none)],
            _ => continue,
        };
        let inputs = &operands[..opcode.info().inputs as usize];
        programs.push((opcode, on_nothing(opcode, dtype.unwrap(), &[3], inputs)));
    }
    assert!(programs.len() >= 11, "{}", programs.len());
    for (name, mut stack) in all_stacks() {
        for (opcode, program) in &programs {
            assert_eq!(check(&mut stack, program), Ok(3), "stack {name}, {opcode}");
        }
    }
}

/// The same for a method: a product over no elements is zero.
#[test]
fn methods_do_not_miss_operands_without_elements() {
    let opcode = Opcode(Opcode::FIRST_EXTENSION);
    let mut program = on_nothing(opcode, DType::F64, &[2, 2], &[(VALUE, &[2, 0]), (VALUE, &[0, 2])]);
    let (name, name_len) = program.batch.push_string("matmul");
    program.batch.extensions.push(Extension { opcode, reserved: 0, name, name_len });
    for (name, mut stack) in all_stacks() {
        if !stack.extmethod("matmul", opcode).unwrap() {
            continue;
        }
        let outcome = run::run_failing(&mut stack, &program).unwrap();
        let lost = |read: &&Option<bh_core::Result<Vec<u8>>>| matches!(read, Some(Err(_)));
        assert_eq!(outcome.bases.iter().filter(lost).count(), 3, "stack {name}");
        for read in &outcome.bases[outcome.bases.len() - 2..] {
            assert_eq!(read.as_ref().and_then(|it| it.as_ref().ok()), Some(&vec![0; 32]), "stack {name}");
        }
    }
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn every_stack_loses_the_same_arrays() {
    for name in EVERYWHERE {
        check_all(name, stacks::load(name).unwrap(), variable("BH_TEST_PROGRAMS", PROGRAMS));
    }
}

#[test]
fn a_manager_of_ranks_reports_which_instructions_failed() {
    let text = "[stacks]\nit = ['split', ['fuser', 'fuser'], 'node', 've-cpu']\n";
    let mut stack = Stack::load(&stacks::from_text("ranks.toml", text).unwrap(), Some("it")).unwrap();
    let mut script = Script::new(&stack, 5);
    script.bases[1].dtype = DType::I64 as u8;
    let indices: Vec<u8> = (0..LEN).flat_map(|index| (2 * index).to_ne_bytes()).collect();
    run::write(&mut stack, &script.bases[1], &indices).unwrap();
    script.clear().fill(0, 1.5).op(Opcode::Gather, &[2, 0, 1]).op(Opcode::Add, &[3, 2, 0]).op(Opcode::Add, &[4, 0, 0]);
    let mut reported = Collected::default();
    let error = stack.execute_reported(&script.batch().as_ref(), &[], &mut reported).unwrap_err();
    assert_eq!(error.origin, Some(("program.c".to_owned(), 2)), "{error}");
    // Dependent instructions lose their results, but have not failed.
    let failed: Vec<u32> = reported.failures().iter().map(|failure| failure.instr).collect();
    assert_eq!(failed, [1]);
    for array in [2, 3] {
        assert_eq!(script.values(&mut stack, array).unwrap_err().origin, error.origin, "array {array}");
    }
    assert_eq!(script.values(&mut stack, 4).unwrap(), [3.0; LEN as usize]);
    script.discard(&mut stack).unwrap();
}

/// Skipped, with a message, on machines without OpenCL.
#[test]
fn devices_lose_the_same_arrays() {
    // SAFETY: each test has a process of its own, whose other threads read the environment through `std::env`.
    unsafe { quick::build_quickly(true) };
    for name in ["opencl", "opencl-only"] {
        match stacks::load(name) {
            Ok(stack) => check_all(name, stack, variable("BH_TEST_PROGRAMS", BUILT)),
            Err(error) => {
                assert!(error.to_string().contains("OpenCL"), "{error}");
                println!("left out: {error}");
            }
        }
    }
}
