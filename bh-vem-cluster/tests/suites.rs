//! Conformance and random programs on clusters of several numbers of ranks in one process.

use bh_core::stack::Stack;
use bh_tests::{conformance, random, stacks};

/// A cluster on which arrays of more than `small` bytes are split. Under a launcher it has the ranks that were started,
/// and this program must run its tests one by one (`mpirun -n 3 suites --test-threads=1`).
fn cluster(ranks: usize, small: u64, more: &str) -> Stack {
    let ranks = match launched() {
        true => String::new(),
        false => format!("ranks = {ranks}\n{more}\n"),
    };
    let text = format!(
        "[stacks]\nit = ['cluster', 'node', 've-interp']\n[components.cluster]\nsmall_bytes = {small}\n{ranks}\n"
    );
    let config = stacks::from_text("cluster.toml", &text).unwrap();
    Stack::load(&config, Some("it")).unwrap_or_else(|error| panic!("{error}"))
}

/// Did mpirun start this program?
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
    let mut stacks = [
        cluster(2, 0, ""),
        cluster(3, 16, "overlap_rows = 0\noverlap_bytes = 0"),
        cluster(4, 64, "weights = [1, 2, 0.5, 1]"),
        cluster(7, 0, "overlap_rows = 5\noverlap_bytes = 0"),
    ];
    for seed in 0..programs {
        if let Err(error) = random::check_seed(&mut stacks, seed) {
            panic!("{error}");
        }
    }
    stacks.iter_mut().for_each(nothing_left);
}
