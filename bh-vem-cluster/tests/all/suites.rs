//! Conformance and random programs on in-process clusters of several sizes.

use bh_bytecode::random::{Program, program};
use bh_core::stack::Stack;
use bh_tests::ordinary::{self, Sizes};
use bh_tests::run::Cuts;
use bh_tests::{conformance, random, stacks};
use std::sync::atomic::{AtomicU32, Ordering};

/// A cluster that splits arrays of more than `small` bytes. Under a launcher it has the launched ranks, and this
/// program must run its tests one by one (`mpirun -n 3 suites --test-threads=1`).
fn cluster(ranks: usize, small: u64, more: &str) -> Stack {
    let ranks = match launched() {
        true => String::new(),
        false => format!("ranks = {ranks}\n{more}\n"),
    };
    of_text("'node', 've-interp'", small, &ranks)
}

/// Three siblings that run at the same time; one has its own memory and completes late.
fn siblings(small: u64, more: &str) -> Stack {
    let below = "[['node', 've-interp'], ['node', 'shadow', 've-interp'], ['node', 've-interp']]";
    of_text(below, small, &format!("{more}\n[components.shadow]\nrefuse = 0.3"))
}

fn of_text(below: &str, small: u64, keys: &str) -> Stack {
    let text = format!("[stacks]\nit = ['cluster', {below}]\n[components.cluster]\nsmall_bytes = {small}\n{keys}\n");
    let config = stacks::from_text("cluster.toml", &text).unwrap();
    Stack::load(&config, Some("it")).unwrap_or_else(|error| panic!("{error}"))
}

/// Did a launcher start this program?
fn launched() -> bool {
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].iter().any(|variable| std::env::var_os(variable).is_some())
}

fn nothing_left(stack: &mut Stack) {
    assert_eq!(stack.message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
}

#[test]
fn clusters_conform() {
    for (ranks, small, more) in [(2, 16, ""), (3, 0, "overlap_bytes = 0"), (7, 16, "")] {
        let mut stack = cluster(ranks, small, more);
        let summary = conformance::run(&mut stack, &mut |_| {});
        let shown: Vec<&str> = summary.failures.iter().take(10).map(String::as_str).collect();
        assert!(summary.passed(), "{ranks} ranks: {summary}\n{}", shown.join("\n"));
        assert_eq!(summary.unsupported, 0, "{ranks} ranks: {summary}");
        nothing_left(&mut stack);
    }
}

#[test]
fn random_programs_equal_the_oracle() {
    let programs: u64 = std::env::var("BH_TEST_PROGRAMS").map_or(300, |text| text.parse().unwrap());
    let mut stacks = vec![
        cluster(2, 0, ""),
        cluster(3, 16, "overlap_rows = 0\noverlap_bytes = 0"),
        cluster(4, 64, "weights = [1, 2, 0.5, 1]\nahead_percent = 100\nkeep_bytes = 1000"),
        cluster(5, 16, "weights = [0, 2, 0, 1, 0]"),
        cluster(7, 0, "overlap_rows = 5\noverlap_bytes = 0\nahead_percent = 300"),
        cluster(4, 0, "grid = '2x2'"),
        cluster(6, 16, "grid = '2x3'\noverlap_bytes = 0"),
        cluster(6, 0, "grid = '3x2'\nweights = [1, 2, 1, 2, 2, 4]"),
        cluster(5, 0, "grid = '1x5'"),
        cluster(8, 0, "grid = '2x2x2'"),
        cluster(16, 16, "grid = '4x4'\noverlap_bytes = 0"),
    ];
    if !launched() {
        stacks.push(siblings(16, "weights = [1, 2, 3]"));
        stacks.push(by_kind("programs"));
        stacks.push(of_one("programs"));
        stacks.push(of_text("[['node', 'shadow', 've-interp'], ['node', 've-interp']]", 16, "weights = [1, 0]"));
    }
    let count = stacks.len();
    for seed in 0..programs {
        if let Err(error) = random::check_seed(&mut stacks, seed) {
            let mut fails = |&number: &usize| random::check_seed(&mut stacks[number..=number], seed).is_err();
            let numbers: Vec<usize> = (0..count).filter(|number| fails(number)).collect();
            panic!("clusters {numbers:?}: {error}");
        }
    }
    if let ([.., kinds, one, first], false) = (&stacks[..], launched()) {
        let count = |stack: &Stack, name: &str| stack.stats().get(&format!("cluster.{name}")).unwrap_or(0);
        let changes = [kinds, one].map(|stack| count(stack, "changes of shares"));
        let given = [one, first].map(|stack| count(stack, "batches given to one child"));
        assert!(changes[0] > programs / 4 && given[1] >= programs, "{changes:?} {given:?}");
        assert!(changes[1] > programs / 20 && given[0] > programs / 20, "{changes:?} {given:?}");
    }
    stacks.iter_mut().for_each(nothing_left);
}

/// Siblings of very different speeds, so that shares change with each kind of work.
fn by_kind(name: &str) -> Stack {
    let rates = "0: 1e-6, 3e-6, 1e-6, 1e-6, 2e-6\n1: 3e-6, 1e-6, 1e-7, 2e-6, 1e-7\n2: 1e-7, 1e-6, 4e-6, 1e-6, 1e-5\n";
    with_rates(&format!("kind-{name}"), rates, |keys| siblings(16, &format!("{keys}\nahead_percent = 100")))
}

/// Siblings of which the first does all memory-bound work through the bypass, and all share the rest.
fn of_one(name: &str) -> Stack {
    let rates = "0: 1e-5, 1e-7, 1e-6, 1e-6, 1e-5\n1: 1e-7, 1e-7, 1e-6, 1e-7, 1e-7\n2: 1e-7, 1e-6, 4e-6, 1e-7, 1e-7\n";
    let below = "[['node', 've-interp'], ['node', 've-interp'], ['node', 've-interp']]";
    with_rates(&format!("one-{name}"), rates, |keys| of_text(below, 16, keys))
}

/// A stack whose key `weights` names a file with these rates.
fn with_rates(name: &str, rates: &str, make: impl FnOnce(&str) -> Stack) -> Stack {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("bh-rates-{name}-{number}-{}", std::process::id()));
    std::fs::write(&path, rates).unwrap();
    let stack = make(&format!("weights = '{}'", path.display()));
    std::fs::remove_file(&path).unwrap();
    stack
}

/// Ranks with very different shares, and all kinds of windows and halos.
fn uneven() -> Vec<Stack> {
    let shares = ["1", "2", "0.5", "0", "3", "0.1", "1", "0.7"];
    let stack = |ranks: usize| {
        let (small, rows) = ([0, 16, 64][ranks % 3], [2, 0, 5][ranks / 2 % 3]);
        let (weights, ahead) = (shares[..ranks].join(", "), [100, 0, 30][ranks % 3]);
        let kept = [0, 300][ranks % 2];
        let rows = format!("overlap_rows = {rows}\nahead_percent = {ahead}\nkeep_bytes = {kept}");
        cluster(ranks, small, &format!("weights = [{weights}]\n{rows}\noverlap_bytes = 0"))
    };
    let on_grids = [(4, "2x2"), (6, "2x3"), (6, "3x2"), (3, "1x3"), (8, "2x2x2"), (16, "4x4")];
    let on_grid = |(ranks, grid): (usize, &str)| cluster(ranks, 0, &format!("grid = '{grid}'\noverlap_bytes = 0"));
    let siblings = siblings(0, "weights = [3, 1, 2]\noverlap_bytes = 0\nahead_percent = 100");
    (2..=8).map(stack).chain([siblings, by_kind("uneven"), of_one("uneven")]).chain(on_grids.map(on_grid)).collect()
}

/// Runs programs of this many seeds, or as many as the environment sets, each on the next cluster. `make` creates the
/// program and its order from the seed and the cluster's number.
fn equal_the_oracle(programs: u64, make: impl Fn(u64, u64) -> (Program, Cuts)) {
    let variable = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (programs, first) = (variable("BH_TEST_PROGRAMS", programs), variable("BH_TEST_FIRST", 0));
    let mut stacks = if launched() { vec![cluster(0, 0, "")] } else { uneven() };
    let count = stacks.len() as u64;
    for seed in first..first + programs {
        let stack = &mut stacks[(seed % count) as usize..][..1];
        let (program, cuts) = make(seed, count);
        if let Err(error) = random::check_cut(stack, &program, &format!("seed {seed}"), cuts) {
            panic!("{error}");
        }
    }
    stacks.iter_mut().for_each(nothing_left);
}

#[test]
fn programs_in_several_batches_equal_the_oracle() {
    equal_the_oracle(4_000, |seed, count| {
        let length = [1, 2, 3, 5, 8, 1000][(seed / count % 6) as usize];
        let cuts = Cuts { length, reads: seed / 3 % 2 == 0 };
        let program = if seed % 4 == 0 {
            program(seed, &random::options(seed / 4))
        } else {
            ordinary::program(seed, Sizes::Small)
        };
        (program, cuts)
    });
}

/// Shards of arrays grow while earlier reads of them are still in flight.
#[test]
fn windows_that_grow_equal_the_oracle() {
    equal_the_oracle(1_500, |seed, _| {
        let cuts = Cuts { length: if seed % 4 == 0 { 5 } else { 1000 }, reads: false };
        (ordinary::windowed(seed), cuts)
    });
}
