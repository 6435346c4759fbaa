//! The conformance suite and random programs on the OpenCL engine alone, so that nothing can fall through to another
//! engine. A sample by default, as drivers take long to build kernels; all with `BH_TEST_OPENCL=all`.

use crate::support;

use bh_bytecode::compare::{Tolerance, opencl_tolerance};
use bh_bytecode::opcode::Signature;
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, Batch, DType, Instr, Kind, Opcode, Operand, View, base_flags};
use bh_core::stack::Stack;
use bh_tests::{conformance, data, random, run, stacks};
use std::io::Write;
use support::{alone, alone_and_optimised};

/// One case of the conformance suite in this many is in the sample.
const STEP: usize = 29;
/// Random programs of the sample.
const PROGRAMS: u64 = 60;

fn all() -> bool {
    std::env::var("BH_TEST_OPENCL").is_ok_and(|text| text == "all")
}

/// The stack that `BH_TEST_STACK` names, or that of the engine alone; none if the machine has no OpenCL. That is said.
fn load() -> Option<Stack> {
    match stacks::load(&std::env::var("BH_TEST_STACK").unwrap_or_else(|_| "opencl-only".into())) {
        Ok(stack) => Some(stack),
        Err(error) => {
            assert!(stacks::is_absent(&error), "{error}");
            say(format_args!("left out: {error}"));
            None
        }
    }
}

#[test]
fn conforms() {
    let _alone = alone();
    let Some(mut stack) = load() else { return };
    let step = if all() { 1 } else { std::env::var("BH_TEST_STEP").map_or(STEP, |text| text.parse().unwrap()) };
    // Operations that a driver does not have, by their names.
    let lacking = std::env::var("BH_TEST_WITHOUT").unwrap_or_default();
    let has = |opcode: &&Opcode| lacking.split(',').all(|name| name != opcode.info().name);
    let opcodes: Vec<Opcode> = Opcode::ALL.iter().filter(has).copied().collect();
    let summary = conformance::run_sample(&mut stack, &opcodes, step, &mut |line| eprintln!("{line}"));
    let kernels = stack.stats().get(&format!("{}.kernels", stacks::driver())).unwrap_or(0);
    say(format_args!("{summary}, {kernels} kernels"));
    let shown: Vec<&str> = summary.failures.iter().take(20).map(String::as_str).collect();
    assert!(summary.passed(), "{summary}\n{}", shown.join("\n"));
    assert_eq!(summary.unsupported, summary.same_bits_unsupported, "{summary}");
    assert!(kernels as usize > summary.cases / 2, "{kernels} kernels of {} cases", summary.cases);
    assert_eq!(stack.message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
}

#[test]
fn random_programs_equal_the_oracle() {
    let _alone = alone_and_optimised();
    let Some(stack) = load() else { return };
    let mut stacks = [stack];
    let programs =
        if all() { 2000 } else { std::env::var("BH_TEST_PROGRAMS").map_or(PROGRAMS, |text| text.parse().unwrap()) };
    for seed in 0..programs {
        random::check_seed(&mut stacks, seed).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(stacks[0].message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
}

/// Elements of each function's argument.
const ARGUMENTS: i64 = 20_000;

/// The elementwise operations of real numbers with results of their type.
fn operations(dtype: DType) -> impl Iterator<Item = Opcode> {
    let fits = move |opcode: &&Opcode| {
        opcode.kind() == Kind::Elementwise
            && **opcode != Opcode::Powi
            && matches!(opcode.info().signature, Signature::Same | Signature::Abs)
            && opcode.info().types.contains(dtype)
    };
    Opcode::ALL.iter().filter(fits).copied()
}

/// How many representable numbers apart; none if one is NaN or infinite.
fn distance(dtype: DType, a: &[u8], b: &[u8]) -> Option<u64> {
    let ordered = |bits: i64, sign: i64| if bits < 0 { sign.wrapping_sub(bits) } else { bits };
    let (a, b) = match dtype {
        DType::F32 => {
            let [a, b] = [a, b].map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap()));
            let bits = |x: f32| ordered(i64::from(x.to_bits() as i32), i64::from(i32::MIN));
            (a.is_finite() && b.is_finite()).then(|| (bits(a), bits(b)))?
        }
        _ => {
            let [a, b] = [a, b].map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap()));
            let bits = |x: f64| ordered(x.to_bits() as i64, i64::MIN);
            (a.is_finite() && b.is_finite()).then(|| (bits(a), bits(b)))?
        }
    };
    Some(a.abs_diff(b))
}

/// All operations of a type on the same arguments. Those that are correctly rounded give the bits of the oracle, the others are
/// within the bounds of OpenCL's conformance tests; how far they are is printed.
#[test]
fn functions_are_as_exact_as_opencl_says() {
    let _alone = alone_and_optimised();
    let Some(mut stack) = load() else { return };
    for dtype in [DType::F32, DType::F64] {
        let mut program = Program { batch: Batch::default(), memory: Default::default() };
        let mut rng = Rng::new(7);
        let mut array = |program: &mut Program, filled: bool| {
            let id = program.batch.bases.len() as u64 + 1;
            let flags = base_flags::LIVE_OUT | if filled { 0 } else { base_flags::BORN };
            if filled {
                program.memory.insert(id, data::fill(&mut rng, dtype, ARGUMENTS, data::Values::Wild));
            }
            let base = program.batch.push_base(Base { flags, ..Base::new(id, dtype, ARGUMENTS) });
            Operand::view(program.batch.push_view(base, &View::contiguous(&[ARGUMENTS]).unwrap()))
        };
        let (first, second) = (array(&mut program, true), array(&mut program, true));
        let all: Vec<Opcode> = operations(dtype).collect();
        for &opcode in &all {
            let result = array(&mut program, false);
            let operands = [result, first, second];
            program.batch.push_instr(Instr::new(opcode, &operands[..1 + usize::from(opcode.info().inputs)]));
        }
        let memory = run::run(&mut stack, &program).unwrap();
        let oracle = program.oracle().unwrap();
        oracle.check_within(&program.batch, &memory, opencl_tolerance).unwrap();
        let functions = all.iter().enumerate().filter_map(|(at, &opcode)| match opencl_tolerance(opcode, dtype) {
            Tolerance::Ulps(bound) => Some((at as u64 + 3, opcode, bound)),
            _ => None,
        });
        for (id, opcode, bound) in functions.collect::<Vec<_>>() {
            let (expected, actual) = (oracle.memory.get(id).unwrap(), memory.get(id).unwrap());
            let pairs = expected.chunks_exact(dtype.size()).zip(actual.chunks_exact(dtype.size()));
            let farthest = pairs.filter_map(|(a, b)| distance(dtype, a, b)).max().unwrap_or(0);
            say(format_args!("{opcode} {dtype}: at most {farthest} ULP of {bound}"));
        }
        assert!(all.len() > 30, "{}", all.len());
    }
}

/// Prints past the capture of the test harness: what was left out is part of the result.
fn say(text: std::fmt::Arguments<'_>) {
    let mut output = std::io::stdout();
    writeln!(output, "{text}").unwrap();
}
