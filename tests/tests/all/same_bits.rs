//! Programs whose operations ask for the same bits everywhere have them on every stack: on all instruction sets, compiled or not, for
//! any number of threads, ranks and siblings, and beside a device.

use bh_bytecode::base_flags;
use bh_bytecode::compare::{Tolerance, compare};
use bh_bytecode::interp::Memory;
use bh_bytecode::random::{Options, Program, program};
use bh_bytecode::text;
use bh_core::stack::Stack;
use bh_tests::{run, stacks};

/// Programs; `BH_TEST_PROGRAMS` sets their number, `BH_TEST_FIRST` the first one.
const PROGRAMS: u64 = 80;

/// The setting whose kernels a driver builds.
const DEVICE: &str = "a device";

const RANK: &str = "'fuser', 'node', 've-cpu'";

/// A cluster of ranks in this process that splits small arrays, too.
fn ranks(count: usize) -> String {
    format!("it = ['filter', 'cluster', {RANK}]\n[components.cluster]\nranks = {count}\nsmall_bytes = 64")
}

/// The stacks: a name, and the text of a configuration behind `[stacks]`.
fn settings() -> Vec<(&'static str, String)> {
    let cpu = |keys: &str| format!("it = ['filter', {RANK}]\n[components.ve-cpu]\njit_cache_dir = ''\n{keys}");
    let siblings = "it = ['filter', 'cluster', [['fuser', 'node', 've-cpu'], ['fuser', 'node', 'other']]]\n\
                    [components.cluster]\nweights = [2, 3]\nsmall_bytes = 64\n\
                    [components.other]\nlibrary = 'bh_ve_cpu'\nisa = 'portable'";
    let device = "it = ['filter', 'fuser', 'node', 'opencl', 've-cpu']\n\
                  [components.opencl]\ndevice = 'cpu'\nplacement = 'device'\ntogether = 64";
    vec![
        ("compiled", cpu("threads = 2\njit = 'on'")),
        ("one thread, in blocks", cpu("threads = 1\njit = 'off'")),
        ("five threads, in blocks", cpu("threads = 5\njit = 'off'\nplanning = 'direct'")),
        ("the plainest instruction set", cpu("threads = 2\nisa = 'portable'")),
        ("without fusion", cpu("threads = 2\n[components.fuser]\nalgorithm = 'singleton'")),
        ("two ranks", ranks(2)),
        ("five ranks", ranks(5)),
        ("sixteen ranks", ranks(16)),
        ("siblings", siblings.into()),
        (DEVICE, device.into()),
    ]
}

/// One in this many pairs of programs runs on the device too: its driver takes a second or more for the kernels of a program.
const ON_DEVICE: usize = 3;

/// The stack of a setting; `None`, which is said, where there is no device.
fn load(name: &str, text: &str) -> Option<Stack> {
    let config = stacks::from_text("same_bits.toml", &format!("[stacks]\n{text}\n")).unwrap();
    match Stack::load(&config, Some("it")) {
        Ok(stack) => Some(stack),
        Err(error) => {
            assert!(stacks::is_absent(&error), "{name}: {error}");
            println!("left out: {error}");
            None
        }
    }
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// The program of a seed: every other one of larger arrays.
fn of(seed: u64) -> Program {
    let small = Options { same_bits: true, ..Options::default() };
    let options = match seed % 2 {
        0 => small,
        _ => Options { max_elements: 30_000, max_instrs: 12, max_rank: 4, ..small },
    };
    program(seed, &options)
}

#[test]
fn stacks_agree_on_programs_that_ask_for_the_same_bits() {
    let first = variable("BH_TEST_FIRST", 0);
    let programs: Vec<Program> = (first..first + variable("BH_TEST_PROGRAMS", PROGRAMS)).map(of).collect();
    let mut wanted: Vec<Memory> = Vec::new();
    for (name, text) in settings() {
        let Some(mut stack) = load(name, &text) else { continue };
        let share = if name == DEVICE { ON_DEVICE } else { 1 };
        for (at, program) in programs.iter().enumerate().filter(|(at, _)| at / 2 % share == 0) {
            let found = run::run(&mut stack, program).unwrap_or_else(|error| panic!("{name}: {error}"));
            if wanted.len() == at {
                wanted.push(found);
                continue;
            }
            for base in program.batch.bases.iter().filter(|base| base.has(base_flags::LIVE_OUT)) {
                let (Some(a), Some(b)) = (wanted[at].get(base.id), found.get(base.id)) else { continue };
                if let Err(difference) = compare(base.dtype(), a, b, &Tolerance::Exact) {
                    let (seed, text) = (first + at as u64, text::print(&program.batch.as_ref()));
                    panic!("{name}, seed {seed}, identity {}: {difference}\n{text}", base.id);
                }
            }
        }
    }
}
