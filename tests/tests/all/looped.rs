//! Random user programs, including loops, read the same bits lazily, fused, in windows and compiled as operation by
//! operation.

use bh_bytecode::DType;
use bh_bytecode::compare::{Tolerance, compare};
use bh_recorder::{Options, Recipes, Recorder};
use bh_tests::looped::{Looped, Run, looped};
use bh_tests::stacks;
use std::io::Write;
use std::sync::Arc;

/// Programs in total. `BH_TEST_PROGRAMS` sets their number, `BH_TEST_FIRST` the first one.
const PROGRAMS: u64 = 1_400;
/// The instruction set; `BH_TEST_ISA` sets another one.
const ISA: &str = "auto";
/// One run in `OTHERS` also uses less common stacks; `BH_TEST_OTHERS` sets the share.
const OTHERS: u64 = 11;
/// One run in `COMPILED` also uses compiled kernels; `BH_TEST_COMPILED` sets the share.
const COMPILED: u64 = 200;
/// One run in `CUT` also uses batches of several lengths; `BH_TEST_CUT` sets the share.
const CUT: u64 = 3;
/// One run in `DEVICES` also uses a device with little memory, if it is exact; `BH_TEST_DEVICES` sets the share.
const DEVICES: u64 = 2;
/// One run in `IMMEDIATE` also uses immediate operations; `BH_TEST_IMMEDIATE` sets the share.
const IMMEDIATE: u64 = 2;
/// Parallel parts, each with its own recorders.
const PARTS: u64 = 2;

/// Each operation alone.
const PLAIN: &str = r#"
[stacks]
test = ["fuser", "node", "ve-cpu"]
[components.fuser]
algorithm = "singleton"
[components.ve-cpu]
planning = "full"
threads = 1
jit = "off"
windows = "off"
time_tiles = "off"
"#;

/// The users' configuration, except for kernels compiled in the background.
const USUAL: &str = r#"
[stacks]
test = ["filter", "fuser", "node", "ve-cpu"]
[components.filter]
pieces_from = 1
[components.ve-cpu]
planning = "auto"
threads = 2
jit = "off"
"#;

/// Strips of few rows, and outputs that bypass the caches.
const TIGHT: &str = r#"
[stacks]
test = ["filter", "fuser", "node", "ve-cpu"]
[components.filter]
pieces_from = 1
[components.ve-cpu]
planning = "full"
threads = 3
jit = "off"
window_bytes = 3000
stream_bytes = 64
"#;

/// Tiles, small kernels, and renames wherever possible.
const TILES: &str = r#"
[stacks]
test = ["filter", "fuser", "node", "ve-cpu"]
[components.filter]
pieces_from = 1
[components.fuser]
algorithm = "naive"
rename_percent = 400
max_block = 5
[components.ve-cpu]
planning = "full"
threads = 2
jit = "off"
window_bytes = 2000
time_tiles = "16"
"#;

/// The largest possible kernels.
const OPTIMAL: &str = r#"
[stacks]
test = ["filter", "fuser", "node", "ve-cpu"]
[components.filter]
pieces_from = 1
[components.fuser]
algorithm = "optimal"
cost_model = "unique-views"
optimal_steps = 2000
rename_percent = 400
[components.ve-cpu]
planning = "full"
threads = 13
jit = "off"
"#;

/// The definition of every operation.
const INTERPRETED: &str = r#"
[stacks]
test = ["filter", "fuser", "node", "interp"]
[components.filter]
pieces_from = 1
[components.interp]
"#;

/// An engine with little memory of its own, which works behind tickets and adopts and lends its memory.
const DEVICE: &str = r#"
[stacks]
test = ["filter", "fuser", "node", "shadow", "ve-cpu"]
[components.filter]
pieces_from = 1
[components.fuser]
rename_percent = 400
[components.shadow]
memory_bytes = 6000
renames = true
refuse = 0.2
delay_us = 0
[components.ve-cpu]
threads = 1
jit = "off"
"#;

/// Ranks with very different shares, which compute rows of others for several rounds, in tiles.
const RANKS: &str = r#"
[stacks]
test = ["filter", "cluster", "fuser", "node", "ve-cpu"]
[components.filter]
pieces_from = 1
[components.cluster]
ranks = 5
weights = [1, 0.3, 2, 0, 1]
small_bytes = 64
ahead_percent = 300
[components.fuser]
rename_percent = 400
[components.ve-cpu]
planning = "full"
threads = 1
jit = "off"
window_bytes = 2000
time_tiles = "16"
"#;

struct Stack {
    name: &'static str,
    text: String,
    options: Options,
    recorder: Arc<Recorder>,
}

impl Stack {
    fn new(name: &'static str, text: &str, options: Options) -> Stack {
        let isa = std::env::var("BH_TEST_ISA").unwrap_or_else(|_| ISA.to_owned());
        let isa = if text == INTERPRETED { String::new() } else { format!("isa = {isa:?}\n") };
        let config = stacks::from_text("looped", &format!("{text}{isa}")).unwrap();
        let recorder = Recorder::new();
        let make = move || Ok(Box::new(bh_core::stack::Stack::load(&config, Some("test"))?) as Box<_>);
        recorder.start(options.clone(), make).unwrap();
        Stack { name, text: text.to_owned(), options, recorder }
    }

    /// A new instance of the same stack.
    fn again(&self) -> Stack {
        Stack::new(self.name, &self.text, self.options.clone())
    }
}

fn plain() -> Stack {
    Stack::new("plain", PLAIN, Options { eager: true, ..Options::default() })
}

/// Batches end at odd places, and run on the caller's thread or the recorder's.
fn options(max_instructions: usize, small_bytes: u64) -> Options {
    Options { max_instructions, small_bytes, ..Options::default() }
}

/// Results are not stored before they are read.
fn recipes(options: Options) -> Options {
    Options { recipes: Recipes::Always, ..options }
}

fn uncompiled() -> Vec<Stack> {
    vec![
        plain(),
        Stack::new("usual", USUAL, Options::default()),
        Stack::new("usual, recipes", USUAL, recipes(Options::default())),
        Stack::new("usual, short batches", USUAL, Options { max_bytes: 20_000, ..options(23, 0) }),
        Stack::new("tight", TIGHT, options(150, 1 << 18)),
    ]
}

/// Less common stacks.
fn others() -> Vec<Stack> {
    vec![
        plain(),
        Stack::new("tiles", TILES, recipes(options(300, 0))),
        Stack::new("optimal", OPTIMAL, options(40, 1 << 18)),
    ]
}

/// Compiles all kernels, if the kernel compiler is available.
fn compiled() -> Vec<Stack> {
    let text = |text: &str, divider: &str| {
        text.replace("jit = \"off\"", &format!("jit = \"on\"\njit_cache_dir = \"\"\ndivider = {divider:?}"))
    };
    vec![
        plain(),
        Stack::new("compiled", &text(USUAL, "slow"), Options::default()),
        Stack::new("compiled, tight", &text(TIGHT, "fast"), options(77, 1 << 18)),
        Stack::new("compiled, tiles", &text(TILES, "fast"), options(400, 1 << 18)),
    ]
}

/// Batches that end after one operation and after a thousand, on stacks with and without rewriting.
fn cut() -> Vec<Stack> {
    let unfiltered = USUAL.replace("\"filter\", ", "").replace("[components.filter]\npieces_from = 1\n", "");
    vec![
        plain(),
        Stack::new("1 operation", USUAL, options(1, 0)),
        Stack::new("7 operations", USUAL, recipes(options(7, 1 << 18))),
        Stack::new("7 operations, not rewritten", &unfiltered, options(7, 1 << 18)),
        Stack::new("100 operations", USUAL, options(100, 1 << 18)),
        Stack::new("30 operations at once", &USUAL.replace("auto", "direct"), options(30, 1 << 18)),
        Stack::new("1000 operations", TIGHT, options(1_000, 1 << 18)),
        Stack::new("1000 operations, not rewritten", &unfiltered, options(1_000, 1 << 18)),
    ]
}

/// Operations on none, some and all computed data run immediately.
fn at_once() -> Vec<Stack> {
    let limit = |immediate_bytes: u64| Options { immediate_bytes, ..options(30, 1 << 18) };
    vec![
        plain(),
        Stack::new("nothing at once", USUAL, limit(0)),
        Stack::new("at once up to 100 bytes", USUAL, recipes(limit(100))),
        Stack::new("at once up to 2 kB", TIGHT, limit(2_000)),
        Stack::new("all at once", USUAL, Options { immediate_bytes: u64::MAX, ..Options::default() }),
        Stack::new(
            "all at once, each batch one operation",
            USUAL,
            Options { immediate_bytes: u64::MAX, ..options(1, 0) },
        ),
    ]
}

/// For programs whose operations are all exact.
fn interpreted() -> Vec<Stack> {
    let few = RANKS.replace("ranks = 5", "ranks = 2").replace("[1, 0.3, 2, 0, 1]", "[1, 1]");
    vec![
        plain(),
        Stack::new("interpreted", INTERPRETED, options(100, 1 << 18)),
        Stack::new("ranks", RANKS, options(300, 0)),
        Stack::new("two ranks", &few.replace("300", "10"), options(300, 0)),
    ]
}

/// The same with a device, emulated by the interpreter.
fn on_device() -> Vec<Stack> {
    let at_once = Options { immediate_bytes: 300, ..options(100, 0) };
    vec![plain(), Stack::new("device", DEVICE, options(100, 0)), Stack::new("device, at once", DEVICE, at_once)]
}

/// Programs that use one recorder at the same time.
#[derive(Clone, Debug)]
struct Case {
    programs: Vec<Looped>,
    /// Has each its own thread? Otherwise they alternate.
    threads: bool,
    /// Do all stacks run in parallel?
    together: bool,
}

type Read = Vec<(DType, Vec<u8>)>;

impl Case {
    fn new(seed: u64) -> Case {
        let several = seed % 10 >= 8;
        let others = several.then(|| looped(!seed));
        let programs = std::iter::once(looped(seed)).chain(others).collect();
        Case { programs, threads: seed % 10 == 9, together: seed % 10 < 4 }
    }

    fn smaller(&self) -> Vec<Case> {
        let mut all = Vec::new();
        if self.programs.len() > 1 {
            all.extend(self.programs.iter().map(|one| Case { programs: vec![one.clone()], ..self.clone() }));
        }
        for (at, program) in self.programs.iter().enumerate() {
            for smaller in program.smaller() {
                let mut one = self.clone();
                one.programs[at] = smaller;
                all.push(one);
            }
        }
        all
    }

    /// The programs' reads on each stack, one program after the other.
    fn run(&self, stacks: &[Stack]) -> Result<Vec<Read>, String> {
        if self.threads || !self.together {
            return stacks.iter().map(|stack| self.run_on(stack)).collect();
        }
        let mut runs: Vec<Vec<Run>> = stacks.iter().map(|stack| self.start(stack)).collect();
        for _ in 0..self.rounds() {
            for (stack, runs) in stacks.iter().zip(&mut runs) {
                runs.iter_mut().try_for_each(Run::step).map_err(|error| format!("{}: {error}", stack.name))?;
            }
        }
        let finish = |(stack, runs)| finish(stack, runs);
        stacks.iter().zip(runs).map(finish).collect()
    }

    fn run_on(&self, stack: &Stack) -> Result<Read, String> {
        let mut runs = self.start(stack);
        if self.threads {
            let read = |run: Run| finish(stack, vec![run]);
            return std::thread::scope(|scope| {
                let all: Vec<_> = runs.into_iter().map(|run| scope.spawn(move || read(run))).collect();
                let read: Result<Vec<Read>, String> = all.into_iter().map(|run| run.join().unwrap()).collect();
                Ok(read?.concat())
            });
        }
        for _ in 0..self.rounds() {
            runs.iter_mut().try_for_each(Run::step).map_err(|error| format!("{}: {error}", stack.name))?;
        }
        finish(stack, runs)
    }

    fn start<'a>(&'a self, stack: &'a Stack) -> Vec<Run<'a>> {
        self.programs.iter().map(|program| Run::new(program, &stack.recorder)).collect()
    }

    fn rounds(&self) -> u64 {
        self.programs.iter().map(Looped::rounds).max().unwrap_or(0)
    }
}

fn finish(stack: &Stack, runs: Vec<Run>) -> Result<Read, String> {
    let read: bh_core::error::Result<Vec<Read>> = runs.into_iter().map(Run::finish).collect();
    read.map(|read| read.concat()).map_err(|error| format!("{}: {error}", stack.name))
}

/// Runs a case on all stacks and compares their reads with the first one's; returns the stack that differs.
fn check(stacks: &[Stack], case: &Case) -> Result<(), (Option<usize>, String)> {
    let all = case.run(stacks).map_err(|error| (None, error))?;
    for (at, read) in all.iter().enumerate().skip(1) {
        for (number, ((dtype, expected), (_, actual))) in all[0].iter().zip(read).enumerate() {
            compare(*dtype, expected, actual, &Tolerance::Exact).map_err(|difference| {
                (Some(at), format!("{}, array {number} that is read: {difference}", stacks[at].name))
            })?;
        }
    }
    Ok(())
}

/// Fails with the smallest case that differs. A failure may depend on earlier runs, so a case is reduced on new stacks
/// if it fails there.
fn fail(seed: u64, stacks: &[Stack], mut case: Case, at: Option<usize>, mut error: String) -> ! {
    let used = |which: usize| which == 0 || at.is_none_or(|at| at == which);
    let fresh = || -> Vec<Stack> {
        stacks.iter().enumerate().filter(|(which, _)| used(*which)).map(|(_, stack)| stack.again()).collect()
    };
    let fails = |one: Case| check(&fresh(), &one).err().map(|(_, reason)| (one, reason));
    while let Some((smaller, reason)) = case.smaller().into_iter().find_map(fails) {
        (case, error) = (smaller, reason);
    }
    panic!("seed {seed}: {error}\n{case:?}");
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Kinds of stacks.
const KINDS: usize = 7;

/// The numbers of programs checked on each kind of stack.
fn check_part(part: u64) -> [u64; KINDS] {
    let first = variable("BH_TEST_FIRST", 0);
    let shares = [
        1,
        variable("BH_TEST_OTHERS", OTHERS),
        variable("BH_TEST_COMPILED", COMPILED),
        1,
        variable("BH_TEST_CUT", CUT),
        variable("BH_TEST_DEVICES", DEVICES),
        variable("BH_TEST_IMMEDIATE", IMMEDIATE),
    ];
    let all = [uncompiled(), others(), compiled(), interpreted(), cut(), on_device(), at_once()];
    let mut count = [0; KINDS];
    for seed in (first + part..first + variable("BH_TEST_PROGRAMS", PROGRAMS)).step_by(PARTS as usize) {
        let case = Case::new(seed);
        for (kind, stacks) in all.iter().enumerate() {
            let is_exact = case.programs.iter().all(Looped::is_exact);
            if !(seed / PARTS).is_multiple_of(shares[kind]) || (matches!(kind, 3 | 5) && !is_exact) {
                continue;
            }
            if let Err((at, error)) = check(stacks, &case) {
                fail(seed, stacks, case, at, error);
            }
            count[kind] += 1;
        }
    }
    let count_of = |name: &str| {
        let count = |stack: &mut bh_core::stack::Stack| Ok(stack.stats().get(&format!("shadow.{name}")).unwrap_or(0));
        all[5][1].recorder.with_stack(count).unwrap()
    };
    for name in ["adoptions", "lendings", "evictions", "clones"] {
        // Few programs need not cover everything.
        assert!(count_of(name) > 0 || count[5] < 100, "{name}: none on the device");
    }
    let immediate: Vec<u64> = all[6].iter().map(|stack| stack.recorder.statistics().immediate).collect();
    assert!(immediate[1] == 0 && (count[6] == 0 || immediate[2..].iter().all(|&count| count > 0)), "{immediate:?}");
    all.iter().flatten().for_each(|stack| stack.recorder.shutdown().unwrap());
    count
}

#[test]
fn loops_read_the_same_bits_however_they_run() {
    let parts: Vec<[u64; KINDS]> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..PARTS).map(|part| scope.spawn(move || check_part(part))).collect();
        parts.into_iter().map(|part| part.join().unwrap()).collect()
    });
    let [all, others, compiled, interpreted, cut, on_device, at_once] =
        [0, 1, 2, 3, 4, 5, 6].map(|kind| parts.iter().map(|part| part[kind]).sum::<u64>());
    let text = format!("{all} random user programs read the same bits on 4 stacks");
    let more = format!("{others} on 2 more, {compiled} compiled, {interpreted} as they are defined");
    let more = format!("{more}, {on_device} on a device, {at_once} at once");
    let more = format!("{more}, {cut} in batches of 1 to 1000 operations");
    writeln!(std::io::stdout(), "{text}, {more}").unwrap();
    assert_eq!(all, variable("BH_TEST_PROGRAMS", PROGRAMS));
}
