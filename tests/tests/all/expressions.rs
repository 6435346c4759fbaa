//! Small expressions, exhaustively, and engines' patterns with arbitrary neighbours agree with the interpreter.

use bh_bytecode::random::Rng;
use bh_bytecode::{DType, Opcode};
use bh_core::stack::Stack;
use bh_tests::expressions::{self, Expression};
use bh_tests::{random, stacks};
use std::io::Write;

/// Sizes that run operation by operation, and sizes that are planned by default; both span several blocks.
const SIZES: [i64; 2] = [1_037, 10_007];
/// Random chains and patterns. `BH_TEST_PROGRAMS` sets their number, `BH_TEST_FIRST` the first one.
const PROGRAMS: u64 = 3_000;
/// One expression in `SAMPLE` runs on compiled kernels and alone; all of them with `BH_TEST_ALL`.
const SAMPLE: usize = 16;
/// Expressions per batch.
const TOGETHER: usize = 200;
/// Parallel parts, each with its own stacks.
const PARTS: usize = 2;

/// Tiers and planning levels of the CPU engine, as sections of configurations.
const TIERS: &[(&str, &str)] = &[
    ("default", ""),
    ("threads", "[components.ve-cpu]\nthreads = 2\njit = 'off'\n"),
    (
        "planned",
        "[components.ve-cpu]\nthreads = 1\nplanning = 'full'\njit = 'off'\n[components.fuser]\nplanning = 'full'\n",
    ),
    ("direct", "[components.ve-cpu]\nplanning = 'direct'\n[components.fuser]\nplanning = 'direct'\n"),
];
const COMPILED: (&str, &str) = (
    "compiled",
    "[components.ve-cpu]\nplanning = 'full'\njit = 'on'\njit_cache_dir = ''\n[components.fuser]\nplanning = 'full'\n",
);

fn load(&(name, sections): &(&str, &str)) -> Stack {
    let text = format!("[stacks]\n{name} = ['filter', 'fuser', 'node', 've-cpu']\n{sections}");
    let config = stacks::from_text("expressions.toml", &text).unwrap();
    Stack::load(&config, Some(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn load_all() -> Vec<Stack> {
    TIERS.iter().chain([&COMPILED]).map(load).collect()
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Runs one part of the work on each thread; returns the number of programs.
fn in_parts(part: impl Fn(usize, &mut [Stack]) -> u64 + Sync) -> u64 {
    std::thread::scope(|scope| {
        let run = |at| {
            let mut stacks = load_all();
            let count = part(at, &mut stacks);
            for stack in &mut stacks {
                let leaks = stack.message("leaks").unwrap();
                assert_eq!(leaks.lines().last(), Some("0 arrays alive, 0 bytes of host memory"), "{}", stack.name());
            }
            count
        };
        let parts: Vec<_> = (0..PARTS).map(|at| scope.spawn(move || run(at))).collect();
        parts.into_iter().map(|part| part.join().unwrap()).sum()
    })
}

fn check(stacks: &mut [Stack], of: &[Expression], fold: Option<Opcode>, dtype: DType, elements: i64, name: &str) {
    let program = expressions::program(of, fold, dtype, elements);
    let shown = if let [one] = of { one.to_string() } else { String::new() };
    if let Err(error) = random::check_program(stacks, &program, &format!("{name} {shown}, {elements} elements")) {
        panic!("{error}");
    }
}

#[test]
fn all_small_expressions_equal_the_interpreter() {
    let every = if std::env::var_os("BH_TEST_ALL").is_some() { 1 } else { SAMPLE };
    let all: Vec<Expression> = (1..=3).flat_map(expressions::all).collect();
    let together = |at: usize| if at.is_multiple_of(4 * every) { 1 } else { 0 };
    let groups: Vec<&[Expression]> = all.chunks(TOGETHER).collect();
    let programs = in_parts(|part, stacks| {
        let mut count = 0;
        for (at, group) in groups.iter().enumerate().skip(part).step_by(PARTS) {
            let used = TIERS.len() + together(at / PARTS);
            for elements in SIZES {
                check(&mut stacks[..used], group, None, DType::F64, elements, &format!("group {at}"));
                count += used as u64;
            }
        }
        for (at, one) in all.iter().enumerate().skip(part).step_by(PARTS * every) {
            let dtype = [DType::F64, DType::F64, DType::F32][at / (PARTS * every) % 3];
            for elements in SIZES {
                check(stacks, std::slice::from_ref(one), None, dtype, elements, "expression");
                count += stacks.len() as u64;
            }
        }
        count
    });
    let text = format!("{} expressions of up to three operations equal the interpreter", all.len());
    writeln!(std::io::stdout(), "{text} in {programs} programs on stacks").unwrap();
    assert!(programs > all.len() as u64 / TOGETHER as u64);
}

#[test]
fn patterns_equal_the_interpreter_beside_whatever_stands_there() {
    let (programs, first) = (variable("BH_TEST_PROGRAMS", PROGRAMS), variable("BH_TEST_FIRST", 0));
    let checked = in_parts(|part, stacks| {
        for seed in (first..first + programs).skip(part).step_by(PARTS) {
            let mut rng = Rng::new(seed);
            let it = if rng.chance(40) { expressions::chain(&mut rng) } else { expressions::pattern(&mut rng) };
            let fold = [None, None, None, Some(Opcode::AddReduce), Some(Opcode::MaximumReduce)][rng.below(5)];
            let dtype = if rng.chance(80) { DType::F64 } else { DType::F32 };
            let elements = SIZES[rng.below(2)] + rng.between(-40, 40);
            // Compilation takes longer than the rest.
            let used = if seed % 8 == 0 { stacks.len() } else { TIERS.len() };
            check(&mut stacks[..used], &[it], fold, dtype, elements, &format!("seed {seed}"));
        }
        programs / PARTS as u64
    });
    writeln!(std::io::stdout(), "{checked} chains and patterns equal the interpreter on {} stacks", TIERS.len())
        .unwrap();
}
