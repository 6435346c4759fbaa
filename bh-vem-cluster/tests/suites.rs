//! Conformance and random programs on clusters of several numbers of ranks in one process.

use bh_core::stack::Stack;
use bh_tests::{conformance, random, stacks};

/// A cluster on which arrays of more than `small` bytes are split.
fn cluster(ranks: usize, small: u64, more: &str) -> Stack {
    let text = format!(
        "[stacks]\nit = ['cluster', 'node', 've-interp']\n[components.cluster]\nranks = {ranks}\n\
         small_bytes = {small}\n{more}\n"
    );
    let config = stacks::from_text("cluster.toml", &text).unwrap();
    Stack::load(&config, Some("it")).unwrap_or_else(|error| panic!("{error}"))
}

fn nothing_left(stack: &mut Stack) {
    assert_eq!(stack.message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
}

#[test]
fn clusters_conform() {
    for (ranks, small) in [(1, 16), (2, 16), (3, 0), (4, 64), (7, 16)] {
        let mut stack = cluster(ranks, small, "");
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
    let mut stacks = [
        cluster(2, 0, ""),
        cluster(3, 16, "overlap_rows = 0"),
        cluster(4, 64, "weights = [1, 2, 0.5, 1]"),
        cluster(7, 0, "overlap_rows = 5"),
    ];
    for seed in 0..programs {
        if let Err(error) = random::check_seed(&mut stacks, seed) {
            panic!("{error}");
        }
    }
    stacks.iter_mut().for_each(nothing_left);
}
