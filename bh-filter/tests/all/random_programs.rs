//! Random programs, sprinkled with what the passes look for, give what the oracle gives after every pass and after all.

use bh_bytecode::random::{self, Program};
use bh_bytecode::validate::validate;
use bh_filter::passes::{ALL, Options, Pass};

/// Programs per pass.
const PROGRAMS: u64 = 2_000;

fn check(name: &str, passes: &[Pass], reassociate: bool) -> usize {
    let options = Options { reassociate, ..Options::default() };
    let mut changes = 0;
    for seed in 0..PROGRAMS {
        let program = random::sprinkled(seed, &random::Options::default());
        validate(&program.batch.as_ref()).unwrap_or_else(|error| panic!("seed {seed}: the test's program: {error}"));
        let oracle = program.oracle().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let mut batch = program.batch.clone();
        changes += passes.iter().map(|pass| (pass.run)(&mut batch, &options)).sum::<usize>();
        validate(&batch.as_ref()).unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
        let rewritten = Program { batch, memory: program.memory.clone() };
        let actual = rewritten.oracle().unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
        if let Err(difference) = oracle.check(&program.batch, &actual.memory) {
            panic!("{name}, seed {seed}: {difference}");
        }
    }
    changes
}

#[test]
fn every_pass_keeps_results() {
    for pass in ALL {
        let name = pass.name;
        let changes = check(name, std::slice::from_ref(pass), false);
        // Random programs hold no matrix products that are worth it, and no scalar programs.
        assert!(
            changes > 0 || matches!(name, "matmul" | "reduction-chain" | "programs"),
            "{name} never found anything to do"
        );
    }
}

#[test]
fn all_passes_together_keep_results() {
    assert!(check("all passes", ALL, false) > 0);
}
