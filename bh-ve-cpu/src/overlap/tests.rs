//! Which blocks become groups, and which must not.

use super::*;
use crate::primitives::Primitives;
use crate::simd::Isa;
use bh_bytecode::text;
use std::slice::from_ref;

/// Nine arrays of 10,000 numbers, `v0` to `v8`, with halves of the first one, `v9` and `v10`; more is up to the test.
fn batch(body: &str) -> bh_bytecode::Batch {
    let mut tables = String::from("bh batch 1\n");
    (0..9).for_each(|base| tables += &format!("base b{base} = f64[10000] id {}\n", base + 1));
    tables += "base b9 = i64[10000] id 10\nbase b10 = f64[5000000] id 11\nbase b11 = f64[5000000] id 12\n";
    tables += "base b12 = f64[1] id 13\nconst c0 = f64 2\n";
    (0..9).for_each(|base| tables += &format!("view v{base} = b{base} at 0 [10000:1]\n"));
    tables += "view v9 = b0 at 0 [5000:1]\nview v10 = b0 at 5000 [5000:1]\nview v11 = b1 at 0 [5000:1]\n";
    tables += "view v12 = b9 at 0 [10000:1]\nview v13 = b10 at 0 [5000000:1]\nview v14 = b11 at 0 [5000000:1]\n";
    tables +=
        "view v15 = b0 at 1 [9999:1]\nview v16 = b0 at 0 [9999:1]\nview v17 = b0 at 0 [1:1]\nview v18 = b12 at 0 []\n";
    text::parse(&(tables + body)).unwrap()
}

fn plans(batch: &BatchRef<'_>) -> Vec<Option<BlockPlan>> {
    let primitives = Primitives { isa: Isa::detect(), stream_bytes: u64::MAX, cache_bytes: 1 << 20 };
    let plan = |block| BlockPlan::new(batch, block, primitives, &mut None).unwrap();
    (0..batch.blocks.len() as u32).map(plan).map(Some).collect()
}

/// The blocks of each task of each group on two threads.
fn tasks(body: &str, all: bool) -> Vec<Vec<Vec<u32>>> {
    let batch = batch(body);
    let batch = batch.as_ref();
    let groups = plan(&batch, &plans(&batch), &[], 2, all).unwrap();
    let blocks = |group: &Group, task: &Range<usize>| group.steps[task.clone()].iter().map(|step| step.block).collect();
    groups.iter().map(|group| group.tasks.iter().map(|task| blocks(group, task)).collect()).collect()
}

/// A kernel of a few operations in place.
fn kernel(array: usize) -> String {
    format!("v{array} = sqrt v{array}\nv{array} = divide c0, v{array}\nv{array} = sqrt v{array}\n")
}

/// So many such kernels, in blocks of their own.
fn kernels(count: usize) -> String {
    let blocks = (0..count).map(|at| format!("block i{} i{} i{}\n", 3 * at, 3 * at + 1, 3 * at + 2));
    (0..count).map(kernel).chain(blocks).collect()
}

#[test]
fn blocks_that_have_nothing_in_common_are_shared_out_evenly() {
    assert_eq!(tasks(&kernels(6), false), [[[0, 2, 4], [1, 3, 5]]]);
    // What one array is read for only.
    assert_eq!(tasks("v1 = sqrt v0\nv2 = divide c0, v0\nblock i0\nblock i1\n", true), [[[0], [1]]]);
    // Several participants, and no more of them than strands.
    let batch = batch(&kernels(3));
    let batch = batch.as_ref();
    let groups = plan(&batch, &plans(&batch), &[], 16, false).unwrap();
    assert_eq!((groups[0].participants, groups[0].tasks.len(), groups[0].kernels), (3, 3, 3));
}

#[test]
fn blocks_that_depend_on_each_other_stay_in_their_order() {
    for (dependence, first, second) in [
        ("flow", "v1 = sqrt v0", "v2 = sqrt v1"),
        ("anti", "v1 = sqrt v0", "v0 = sqrt v2"),
        ("output", "v1 = sqrt v0", "v1 = sqrt v2"),
        ("part of an output", "v0 = sqrt v1", "v9 = sqrt v11"),
        ("views that have nothing in common", "v9 = sqrt v11", "v10 = sqrt v11"),
        ("a view of what is folded", "v18 = add_reduce axes(0) v9", "v10 = sqrt v11"),
        ("a result of a fold", "v18 = add_reduce axes(0) v9", "v1 = add v2, v18"),
    ] {
        let second = second.replace("v18", if second.contains("v18") { "v19" } else { "v18" });
        let body = format!("view v19 = b12 at 0 [10000:0]\n{first}\n{second}\nblock i0\nblock i1\n");
        assert_eq!(tasks(&body, true), Vec::<Vec<Vec<u32>>>::new(), "{dependence}");
        // Beside something else, they are one task.
        let body =
            format!("view v19 = b12 at 0 [10000:0]\n{first}\n{second}\nv8 = sqrt v7\nblock i0\nblock i1\nblock i2\n");
        let found = tasks(&body, true);
        assert!(
            found.len() == 1 && found[0].contains(&vec![0, 1]) && found[0].contains(&vec![2]),
            "{dependence}: {found:?}"
        );
    }
}

#[test]
fn what_several_strands_wait_for_comes_after_the_group() {
    for last in ["v6 = add v1, v2", "v0 = sqrt v3"] {
        let body = format!("v1 = sqrt v0\nv2 = divide c0, v0\n{last}\nblock i0\nblock i1\nblock i2\n");
        assert_eq!(tasks(&body, true), [[[0], [1]]], "{last}");
    }
}

#[test]
fn work_that_joins_strands_counts_as_one() {
    let batch =
        batch("v1 = sqrt v0\nv3 = sqrt v2\nv4 = add v1, v3\nv6 = sqrt v5\nblock i0\nblock i1\nblock i2\nblock i3\n");
    let batch = batch.as_ref();
    let plans = plans(&batch);
    let mut strands = Strands::new(batch.bases.len(), 2);
    let counts: Vec<usize> = (0..)
        .zip(plans.iter().flatten())
        .map(|(block, plan)| {
            assert!(strands.add(&batch, block, plan));
            strands.count()
        })
        .collect();
    assert_eq!(counts, [1, 2, 1, 2]);
    let work = |block: usize| -> u64 { programs(plans[block].as_ref().unwrap()).0.iter().map(Program::work).sum() };
    assert_eq!(strands.longest, work(0) + work(1) + work(2));
    assert_eq!(strands.work, strands.longest + work(3));
}

#[test]
fn what_may_fail_or_moves_memory_is_alone() {
    for (what, body) in [
        ("gather", "v1 = gather v0, v12\nv2 = sqrt v3\nblock i0\nblock i1\n"),
        ("scatter", "v1 = scatter v0, v12\nv2 = sqrt v3\nblock i0\nblock i1\n"),
        ("accumulate", "v1 = add_accumulate axes(0) v0\nv2 = sqrt v3\nblock i0\nblock i1\n"),
        ("rename", "v15 = sqrt v16\nv2 = sqrt v3\nblock i0\nrename b0 uncovered v17\nblock i1\n"),
        ("alias", "v1 = sqrt v0\nv2 = copy v1\nv3 = sqrt v4\nblock i0 i1\nrename b2 alias b1 v2\nblock i2\n"),
    ] {
        assert!(tasks(body, true).is_empty(), "{what}");
    }
}

#[test]
fn what_goes_within_a_group_is_not_used_again_there() {
    let free = |operation: &str, later: &str| {
        let body = format!("v1 = sqrt v0\n{operation} v1\nv3 = sqrt v2\n{later}\nblock i0 i1\nblock i2\nblock i3\n");
        tasks(&body, true)
    };
    for operation in ["discard", "free", "sync"] {
        // Nobody else uses it.
        assert_eq!(free(operation, "v5 = sqrt v4").iter().flatten().flatten().count(), 3, "{operation}");
        for later in ["v4 = sqrt v1", "v1 = sqrt v4"] {
            assert_eq!(free(operation, later), [[[0], [1]]], "{operation}, {later}");
        }
    }
    // Blocks of data management alone.
    let body = "v1 = sqrt v0\ndiscard v1\nv3 = sqrt v2\nv5 = sqrt v4\nblock i0\nblock i1\nblock i2\nblock i3\n";
    assert_eq!(tasks(body, true).iter().flatten().flatten().count(), 3);
}

#[test]
fn groups_are_worth_it() {
    // Too little, and too uneven.
    assert!(tasks("v1 = copy v0\nv3 = copy v2\nblock i0\nblock i1\n", false).is_empty());
    let chain: String = (0..8).map(|_| kernel(0)).collect();
    let blocks: String = (0..8).map(|at| format!("block i{} i{} i{}\n", 3 * at, 3 * at + 1, 3 * at + 2)).collect();
    assert!(tasks(&format!("{chain}v1 = copy v2\n{blocks}block i24\n"), false).is_empty());
    // Kernels that are large enough to be shared, each.
    let large = "v13 = sqrt v13\nv14 = sqrt v14\nblock i0\nblock i1\n";
    assert!(tasks(large, false).is_empty());
    // More than a group may write.
    assert!(tasks(large, true).is_empty());
}

#[test]
fn what_all_depend_on_is_before_the_group() {
    let mut body = String::from("v0 = sqrt v8\n");
    (1..7).for_each(|at| body += &format!("v{at} = divide v0, c0\nv{at} = sqrt v{at}\n"));
    body += "block i0\n";
    (0..6).for_each(|at| body += &format!("block i{} i{}\n", 1 + 2 * at, 2 + 2 * at));
    assert_eq!(tasks(&body, false), [[[1, 3, 5], [2, 4, 6]]]);
}

#[test]
fn sweeps_and_blocks_without_plans_are_left_alone() {
    let batch = batch(&kernels(6));
    let batch = batch.as_ref();
    let mut plans = plans(&batch);
    let ranges = |groups: Vec<Group>| groups.into_iter().map(|group| group.blocks).collect::<Vec<_>>();
    assert_eq!(ranges(plan(&batch, &plans, from_ref(&(2..4)), 2, false).unwrap()), [0..2, 4..6]);
    plans[3] = None;
    assert!(plan(&batch, &plans, &[], 2, false).is_none());
    assert_eq!(ranges(plan(&batch, &plans, from_ref(&(2..4)), 2, false).unwrap()), [0..2, 4..6]);
}

#[test]
fn memory_of_steps_does_not_overlap() {
    // Three folds in several chunks each.
    let body = "view v19 = b12 at 0 []\nbase b13 = f64[1] id 14\nview v20 = b13 at 0 []\nv18 = add_reduce axes(0) v13
v20 = add_reduce axes(0) v14\nblock i0\nblock i1\n";
    let batch = batch(body);
    let batch = batch.as_ref();
    let plans = plans(&batch);
    let groups = plan(&batch, &plans, &[], 2, true).unwrap();
    let group = &groups[0];
    let bytes = |block: usize| partial_bytes(&programs(plans[block].as_ref().unwrap()).0[0]);
    assert!(bytes(0) > 0);
    let mut places: Vec<(usize, usize)> = group.steps.iter().map(|step| (step.partials, step.lent)).collect();
    places.sort_unstable();
    assert_eq!(places, [(0, 0), (bytes(0).next_multiple_of(64), 2)]);
    assert!(group.partial_bytes >= bytes(0) + bytes(1));
}
