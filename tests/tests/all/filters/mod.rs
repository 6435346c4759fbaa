//! Filters and fusers together: each pass alone and all of them, before every fusion algorithm with every cost model,
//! agree with the oracle. Matrix products are found where they are, and nowhere else.

mod pieces;
mod products;

use bh_bytecode::interp::Memory;
use bh_bytecode::random::{self, Program};
use bh_bytecode::{text, validate};
use bh_core::stack::Stack;
use bh_filter::passes::{ALL, Options};
use bh_tests::{run, stacks};
use products::{Flaw, candidate};
use std::collections::HashMap;

/// Programs for each choice of passes, algorithm and cost model. `BH_TEST_PROGRAMS` sets the total number.
const PROGRAMS_EACH: u64 = 60;
/// Candidates for matrix products.
const CANDIDATES: u64 = 600;

const COST_MODELS: [&str; 3] = ["traffic", "unique-views", "max-contraction"];
const ALGORITHMS: [&str; 5] = ["singleton", "naive", "greedy", "unintrusive", "optimal"];

/// A stack with these passes, this algorithm and this cost model.
fn load(passes: &str, algorithm: &str, cost: &str, reassociate: bool) -> Stack {
    let text = format!(
        "[stacks]\ntest = [\"filter\", \"fuser\", \"node\", \"ve-cpu\"]\n\
         [components.filter]\npasses = \"{passes}\"\nreassociate = {reassociate}\n\
         [components.fuser]\nalgorithm = \"{algorithm}\"\ncost_model = \"{cost}\"\nrename_percent = 400\n\
         optimal_steps = 2000\n[components.ve-cpu]\nthreads = 1\n"
    );
    let config = stacks::from_text("filters", &text).unwrap();
    Stack::load(&config, Some("test")).unwrap_or_else(|error| panic!("{passes}, {algorithm}, {cost}: {error}"))
}

#[test]
fn every_pass_before_every_fuser_equals_the_oracle() {
    let all: Vec<&str> = ALL.iter().map(|pass| pass.name).collect();
    let all = all.join(",");
    let passes: Vec<&str> = ALL.iter().map(|pass| pass.name).chain(["", &all]).collect();
    let mut choices = Vec::new();
    for passes in passes {
        for algorithm in ALGORITHMS {
            // The optimal search supports monotone models only.
            let models = COST_MODELS.iter().filter(|&&model| algorithm != "optimal" || model != "traffic");
            choices.extend(models.map(|model| (passes, algorithm, *model)));
        }
    }
    let asked = std::env::var("BH_TEST_PROGRAMS").ok().map(|text| text.parse::<u64>().unwrap());
    let each = asked.map_or(PROGRAMS_EACH, |programs| programs.div_ceil(choices.len() as u64));
    for (number, &(passes, algorithm, model)) in choices.iter().enumerate() {
        let mut stack = load(passes, algorithm, model, false);
        for seed in (0..each).map(|seed| seed * choices.len() as u64 + number as u64) {
            let program = random::sprinkled(seed, &bh_tests::random::options(seed));
            // Programs that must fail are outside of this test.
            let Ok(oracle) = program.oracle() else { continue };
            let context = || format!("passes '{passes}', {algorithm}, {model}, seed {seed}");
            let memory = run::run(&mut stack, &program).unwrap_or_else(|error| panic!("{}: {error}", context()));
            oracle.check(&program.batch, &memory).unwrap_or_else(|text| panic!("{}: {text}", context()));
        }
    }
}

/// A batch from a program with collected operations: b1 is the intermediate of b2, and changes before b4 is computed
/// from it.
const COLLECTED: &str = "bh batch 1
base b0 = i64[8] id 1 row 8 born
base b1 = i64[8] id 2 row 8 born
base b2 = i64[8] id 3 row 8 born
base b3 = i64[8] id 4 row 8 born
base b4 = i64[8] id 5 row 8 born
view v0 = b0 at 0 [8:1]
view v1 = b1 at 0 [8:1]
view v2 = b2 at 0 [8:1]
view v3 = b3 at 0 [8:1]
view v4 = b4 at 0 [8:1]
const c0 = i64 5
const c1 = i64 2
const c2 = i64 3
i0: v0 = copy c0
i1: v1 = add v0, c1
i2: v2 = add v1, c2
i3: v3 = multiply v1, v2
i4: v1 = multiply v1, c2
i5: v4 = add v1, c2
";

#[test]
fn intermediates_read_after_constant_collection_keep_their_values() {
    let program = Program { batch: text::parse(COLLECTED).unwrap(), memory: Memory::new() };
    let collect = ALL.iter().find(|pass| pass.name == "collect").unwrap().run;
    let mut rewritten = program.batch.clone();
    assert_eq!(collect(&mut rewritten, &Options::default()), 1);
    let all: Vec<&str> = ALL.iter().map(|pass| pass.name).collect();
    let oracle = program.oracle().unwrap();
    for passes in ["collect", "collect,dead-code", &all.join(",")] {
        for algorithm in ALGORITHMS {
            let memory = run::run(&mut load(passes, algorithm, "unique-views", false), &program).unwrap();
            oracle.check(&program.batch, &memory).unwrap_or_else(|text| panic!("{passes}, {algorithm}: {text}"));
        }
    }
}

#[test]
fn matrix_products_are_found_where_they_are_and_only_there() {
    let pass = ALL.iter().find(|pass| pass.name == "matmul").unwrap().run;
    let mut stack = load("matmul,dead-code", "greedy", "traffic", true);
    let mut seen: HashMap<Flaw, u32> = HashMap::new();
    for seed in 0..CANDIDATES {
        let candidate = candidate(seed);
        let (batch, flaw, dtype) = (&candidate.program.batch, candidate.flaw, candidate.dtype);
        validate(&batch.as_ref()).unwrap_or_else(|error| panic!("seed {seed}: the test's batch: {error}"));
        *seen.entry(flaw).or_default() += 1;
        for reassociate in [false, true] {
            let shaped = matches!(flaw, Flaw::None | Flaw::ThreeAxes | Flaw::Repeated | Flaw::TwoAxes | Flaw::Small);
            let wanted = shaped && candidate.is_matrices && (dtype.is_int() || reassociate);
            let mut rewritten = batch.clone();
            let changed = pass(&mut rewritten, &Options { reassociate, ..Options::default() });
            assert_eq!(changed, usize::from(wanted), "seed {seed}, {flaw:?}, {dtype}, reassociate {reassociate}");
        }
        let oracle = candidate.program.oracle().unwrap();
        let memory = run::run(&mut stack, &candidate.program).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        oracle.check(batch, &memory).unwrap_or_else(|text| panic!("seed {seed}, {flaw:?}, {dtype}: {text}"));
    }
    assert_eq!(seen.len(), products::FLAWS.len());
    // Batches of one structure are rewritten, and counted, once.
    let found = stack.stats().get("filter.matmul").unwrap_or(0);
    assert!(found > 0 && found <= CANDIDATES, "the stack found {found} products");
}
