//! Operations that run immediately, one by one, give the bits of planned ones.

use crate::support;

use bh_bytecode::compare::{Tolerance, compare as bits};
use bh_bytecode::random::{self, Program};
use bh_bytecode::{base_flags, text};
use bh_fuser::{Algorithm, Options, Partitioner};
use support::{Driver, singletons};

/// Compares all that programs leave, byte for byte; gives how many operations ran without a plan.
fn compare(options: &random::Options, seeds: std::ops::Range<u64>, algorithm: Option<Algorithm>) -> u64 {
    let mut planned = Driver::new(&[("threads", "2"), ("jit", "off")]).unwrap();
    let mut direct = Driver::new(&[("threads", "2"), ("jit", "off"), ("planning", "direct")]).unwrap();
    let mut first = Driver::new(&[("threads", "2"), ("jit", "off"), ("planning", "auto")]).unwrap();
    for seed in seeds {
        let Program { batch, memory } = random::program(seed, options);
        let tables = batch.as_ref();
        let partition = algorithm
            .map(|algorithm| Partitioner::default().partition(&tables, &Options { algorithm, ..Options::default() }));
        let whole = singletons(&batch);
        let cut = partition.as_ref().map_or(whole.as_ref(), |partition| partition.apply(&tables));
        let Ok(wanted) = planned.run_on(&cut, &memory) else { continue };
        // The third run of a batch of little work has plans, the first one has none.
        for (name, driver) in [("direct", &mut direct), ("first", &mut first)] {
            for round in 0..3 {
                let found = driver.run_on(&cut, &memory).unwrap();
                for base in batch.bases.iter().filter(|base| base.flags & base_flags::LIVE_OUT != 0) {
                    let (Some(found), Some(wanted)) = (found.get(base.id), wanted.get(base.id)) else { continue };
                    if let Err(difference) = bits(base.dtype(), wanted, found, &Tolerance::Exact) {
                        panic!("{name} {round}, seed {seed}: {base:?}: {difference}\n{}", text::print(&tables));
                    }
                }
            }
        }
    }
    assert!(first.counter("kernels run at once") > 0 && first.counter("plan hits") > 0);
    direct.counter("kernels run at once")
}

#[test]
fn random_programs_have_the_same_bits() {
    let all = random::Options::default();
    assert!(compare(&all, 0..300, None) > 1_000);
    assert!(compare(&all, 300..600, Some(Algorithm::Greedy)) > 1_000);
    let larger = random::Options { max_elements: 3_000, max_rank: 4, ..all };
    assert!(compare(&larger, 600..700, Some(Algorithm::Greedy)) > 300);
}
