//! Planning grows no faster than programs: the steps that each stage takes for an operation are bounded, or about as many in
//! batches of 10,000 operations as in those of 100, in every family. Counted, as clocks tell little on busy machines.

use bh_planning::families::FAMILIES;
use bh_planning::stages::Subject;

/// How many times the steps for an operation of the smallest batch a larger one may take.
const GROWTH: f64 = 2.0;

/// The sizes; unoptimised builds stop earlier.
const SIZES: &[usize] = if cfg!(debug_assertions) { &[100, 1000, 3000] } else { &[100, 1000, 10_000] };

/// `few`: this number of steps for an operation is right in any case, as each search gives up after it.
fn check(stage: &str, few: f64) {
    let mut failures = Vec::new();
    for (family, make) in FAMILIES {
        let mut least: Option<f64> = None;
        for &size in SIZES {
            let mut subject = Subject::new(make(size));
            let each = subject.steps(stage) as f64 / subject.operations() as f64;
            let first = *least.get_or_insert(each);
            if each > few.max(GROWTH * first) {
                failures.push(format!("{family}: {first:.1} steps at {}, {each:.1} at {size}", SIZES[0]));
            }
        }
    }
    assert!(failures.is_empty(), "{stage}:\n{}", failures.join("\n"));
}

#[test]
fn filtering_is_linear() {
    check("filter", 48.0);
}

#[test]
fn fusing_in_order_is_linear() {
    check("linear", 56.0);
}

#[test]
fn fusing_what_saves_most_is_linear() {
    check("fuse", 600.0);
}

#[test]
fn lowering_is_linear() {
    check("lower", 12.0);
}

#[test]
fn looking_for_windows_is_linear() {
    check("windows", 800.0);
}

#[test]
fn looking_for_tiles_is_linear() {
    check("tiles", 200.0);
}
