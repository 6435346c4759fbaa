//! Plans of many batches in a cycle: they are there from the second round on, as long as they fit their bytes.

use crate::support;

use bh_bytecode::text;
use support::{Driver, singletons};

/// Runs `batches` different batches in turn, and gives how many had plans in each round.
fn known(batches: u64, rounds: u64, plan_bytes: &str) -> Vec<u64> {
    let mut driver = Driver::new(&[("threads", "1"), ("jit", "off"), ("plan_bytes", plan_bytes)]).unwrap();
    driver.put(1, &vec![0; 8 * batches as usize]);
    let before = |driver: &Driver| (driver.counter("plan hits"), driver.counter("plan misses"));
    let mut all = Vec::new();
    for round in 0..rounds {
        let (hits, misses) = before(&driver);
        for number in 1..=batches {
            let words = format!(
                "bh batch 1\nbase b0 = f64[{batches}] id 1\nview v0 = b0 at 0 [{number}:1]\nconst c0 = f64 1\n\
                 v0 = add v0, c0\nv0 = multiply v0, c0\n"
            );
            driver.run(&singletons(&text::parse(&words).unwrap()).as_ref()).unwrap();
        }
        let (now, new) = before(&driver);
        assert_eq!(now - hits + new - misses, batches, "round {round}");
        all.push(now - hits);
    }
    // Each round has added one to the last element once.
    let last = driver.get(1).unwrap();
    assert_eq!(f64::from_ne_bytes(*last.last_chunk().unwrap()), rounds as f64);
    all
}

#[test]
fn all_batches_of_a_long_cycle_have_plans_from_its_second_round_on() {
    assert_eq!(known(1_000, 3, "auto"), [0, 1_000, 1_000]);
    assert_eq!(known(10_000, 2, "auto"), [0, 10_000]);
}

#[test]
fn plans_take_no_more_than_they_may() {
    let found = known(200, 3, "256KiB");
    assert!(found[1] < 100 && found[2] < 100, "{found:?}");
    assert_eq!(known(50, 2, "0"), [0, 0]);
}
