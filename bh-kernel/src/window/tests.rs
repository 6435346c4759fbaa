//! Chains of small batches: which nests join, how far they lag, and which arrays need no memory.

use super::{Apart, SlidingWindows, WindowOptions, windows};
use crate::Survey;
use crate::tiling::{TileNest, TileSlot, Tiling};
use bh_bytecode::text::parse;

/// The windows of a batch with one kernel per instruction, rows of whose arrays fit `bytes`.
pub(super) fn plan(text: &str, bytes: i64) -> SlidingWindows {
    let mut batch = parse(&format!("bh batch 1\n{text}")).unwrap();
    for index in 0..batch.instrs.len() as u32 {
        batch.push_block(&[index], &[]);
    }
    windows(&Survey::new(&batch.as_ref()), &WindowOptions { bytes, stand_ins: true }, &[])
}

fn rolling(window: &Tiling) -> Vec<u32> {
    let mut bases = window.transient.clone();
    bases.sort_unstable();
    bases
}

/// Half steps between rows (b1) and between columns (b2), then a full step that reads both at two places and updates the
/// grid (b0).
pub(super) const TWO_STEP: &str = "base b0 = f64[10000] id 1 live_out
base b1 = f64[9702] id 2 born dies
base b2 = f64[9702] id 3 born dies
base b3 = f64[9604] id 4 born dies
view v0 = b0 at 1 [99:100, 98:1]
view v1 = b0 at 101 [99:100, 98:1]
view v2 = b1 at 0 [99:98, 98:1]
view v3 = b0 at 100 [98:100, 99:1]
view v4 = b0 at 101 [98:100, 99:1]
view v5 = b2 at 0 [98:99, 99:1]
view v6 = b1 at 0 [98:98, 98:1]
view v7 = b1 at 98 [98:98, 98:1]
view v8 = b3 at 0 [98:98, 98:1]
view v9 = b0 at 101 [98:100, 98:1]
view v10 = b2 at 1 [98:99, 98:1]
i0: v2 = add v1, v0
i1: v5 = subtract v4, v3
i2: v8 = subtract v7, v6
i3: v8 = add v8, v10
i4: v9 = add v9, v8
";

#[test]
fn two_half_steps_and_a_full_step_are_one_window() {
    let found = plan(TWO_STEP, 20_000);
    assert_eq!(found.apart, []);
    let [window] = found.found.as_slice() else { panic!("{} windows", found.found.len()) };
    assert_eq!(window.blocks, 0..5);
    assert_eq!(window.nests.len(), 5);
    assert_eq!(rolling(window), [1, 2, 3]);
    // The full step needs the faces below its row, which the half step has one position later.
    assert_eq!(window.nests[2].late - window.nests[0].late, 1);
    assert_eq!(window.nests[2].reach[0].low, window.nests[0].reach[0].low);
    // Only the grid moves: it is read once and written once.
    assert!(window.bytes <= 160_000, "{}", window.bytes);
    assert!(window.plain_bytes > 4 * window.bytes, "{}", window.plain_bytes);
}

#[test]
fn positions_that_depend_on_each_other_run_in_order() {
    let found = plan(TWO_STEP, 20_000);
    let window = &found.found[0];
    // Every row of b1 is written before it is read, in whichever chunk it is: `late` grows and `early` shrinks along a
    // chain of dependences, so that a chunk needs nothing outside of it.
    for (writer, reader, low, high) in [(0, 2, 0, 1), (1, 3, 0, 0), (2, 3, 0, 0), (3, 4, 0, 0), (0, 4, 0, 1)] {
        let (writer, reader) = (&window.nests[writer], &window.nests[reader]);
        let early = |nest: &TileNest| -nest.reach[0].low;
        assert!(reader.late >= writer.late + high && early(reader) <= early(writer) + low);
    }
    let borders = window.borders.as_ref().unwrap();
    assert!(borders.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(borders[0]..*borders.last().unwrap(), window.area[0]);
}

#[test]
fn arrays_that_others_see_stay_in_memory() {
    let seen = TWO_STEP.replace("b1 = f64[9702] id 2 born dies", "b1 = f64[9702] id 2 born live_out");
    assert_eq!(rolling(&plan(&seen, 20_000).found[0]), [2, 3]);
    // The first row is read and never written: it holds zeros, which only memory has.
    let partly = TWO_STEP
        .replace("view v2 = b1 at 0 [99:98, 98:1]", "view v2 = b1 at 98 [99:98, 98:1]")
        .replace("b1 = f64[9702]", "b1 = f64[9800]");
    assert_eq!(rolling(&plan(&partly, 20_000).found[0]), [2, 3]);
}

#[test]
fn transposed_reads_have_no_bounded_distance() {
    let text = "base b0 = f64[10000] id 1 live_out
base b1 = f64[10000] id 2 born live_out
base b2 = f64[10000] id 3 born live_out
view v0 = b0 at 0 [100:100, 99:1]
view v1 = b1 at 0 [100:100, 99:1]
view v2 = b1 at 0 [99:1, 100:100]
view v3 = b2 at 0 [99:100, 100:1]
i0: v1 = add v0, v0
i1: v3 = multiply v2, v3
";
    let found = plan(text, 20_000);
    assert!(found.found.is_empty());
    assert_eq!(found.apart, [(0, Apart::Unbounded)]);
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let found = plan(TWO_STEP, 500);
    assert!(found.found.is_empty());
    assert!(found.apart.contains(&(0, Apart::Rows)), "{:?}", found.apart);
    // Arrays that fit the cache need no window.
    assert!(plan(TWO_STEP, 1 << 20).found.is_empty());
}

/// The windows of a batch with these kernels: the instructions of each, and the bases that it contracts.
fn fused(text: &str, kernels: &[(&[u32], &[u32])]) -> SlidingWindows {
    let mut batch = parse(&format!("bh batch 1\n{text}")).unwrap();
    kernels.iter().for_each(|(instrs, contracted)| batch.push_block(instrs, contracted));
    windows(&Survey::new(&batch.as_ref()), &WindowOptions { bytes: 20_000, stand_ins: true }, &[])
}

/// Softmax of the rows of b0: their maxima (b1), exponentials (b2), sums of these (b3), and quotients (b4).
const SOFTMAX: &str = "base b0 = f64[10000] id 1 live_out
base b1 = f64[100] id 2 born dies
base b2 = f64[10000] id 3 born dies
base b3 = f64[100] id 4 born dies
base b4 = f64[10000] id 5 born live_out
view v0 = b0 at 0 [100:100, 100:1]
view v1 = b1 at 0 [100:1]
view v2 = b1 at 0 [100:1, 100:0]
view v3 = b2 at 0 [100:100, 100:1]
view v4 = b3 at 0 [100:1]
view v5 = b3 at 0 [100:1, 100:0]
view v6 = b4 at 0 [100:100, 100:1]
i0: v1 = maximum_reduce axes(1) v0
i1: v3 = subtract v0, v2
i2: v3 = exp v3
i3: v4 = add_reduce axes(1) v3
i4: v6 = divide v3, v5
";

#[test]
fn folds_of_rows_are_complete_for_what_reads_them() {
    let found = fused(SOFTMAX, &[(&[0], &[]), (&[1, 2, 3], &[]), (&[4], &[])]);
    let [window] = found.found.as_slice() else { panic!("{:?}", found.apart) };
    assert_eq!((window.blocks.clone(), window.nests.len(), window.after.len()), (0..3, 3, 0));
    assert_eq!(rolling(window), [1, 2, 3]);
    // Results are used at the row that they are made of.
    assert!(window.nests.iter().all(|nest| (nest.late, nest.reach[0].low) == (0, 0)));
    assert_eq!((window.plain_bytes, window.bytes), (5 * 80_000 + 4 * 800, 2 * 80_000));
}

#[test]
fn folds_of_other_axes_end_a_window() {
    // Columns: each result is complete when all rows are.
    let columns = SOFTMAX
        .replace("maximum_reduce axes(1)", "maximum_reduce axes(0)")
        .replace("v2 = b1 at 0 [100:1, 100:0]", "v2 = b1 at 0 [100:0, 100:1]");
    let found = fused(&columns, &[(&[0], &[]), (&[1, 2, 3], &[]), (&[4], &[])]);
    let [window] = found.found.as_slice() else { panic!("{:?}", found.apart) };
    assert_eq!(window.blocks, 1..3);
    // Another row's result, at no bounded distance.
    let last = SOFTMAX.replace("v2 = b1 at 0 [100:1, 100:0]", "v2 = b1 at 99 [100:-1, 100:0]");
    let found = fused(&last, &[(&[0], &[]), (&[1, 2, 3], &[]), (&[4], &[])]);
    let [window] = found.found.as_slice() else { panic!("{:?}", found.apart) };
    assert_eq!(window.blocks, 1..3);
}

#[test]
fn what_is_made_of_results_runs_beside_the_rows() {
    // A mean is a sum and a quotient in one kernel; its intermediate array is a temporary.
    let means = SOFTMAX
        .replace("i0: v1 = maximum_reduce axes(1) v0", "i0: v7 = add_reduce axes(1) v0\ni1: v1 = divide v7, c0")
        .replace("view v0", "base b5 = f64[100] id 6 born dies\nconst c0 = f64 100\nview v0")
        .replace("i1: v3", "i2: v3")
        .replace("i2: v3 = exp", "i3: v3 = exp")
        .replace("i3: v4", "i4: v4")
        .replace("i4: v6", "i5: v6")
        .replace("v6 = b4 at 0 [100:100, 100:1]\n", "v6 = b4 at 0 [100:100, 100:1]\nview v7 = b5 at 0 [100:1]\n");
    let found = fused(&means, &[(&[0, 1], &[5]), (&[2, 3, 4], &[]), (&[5], &[])]);
    let [window] = found.found.as_slice() else { panic!("{:?}", found.apart) };
    assert_eq!((window.blocks.clone(), window.nests.len(), window.after.len()), (0..3, 4, 0));
    assert_eq!(rolling(window), [1, 2, 3]);
}

/// Rows of b0 doubled (b1) and folded (b2), these made anew of both (b3) and folded (b4), and so again (b5, b6).
const ROUNDS: &str = "base b0 = f64[10000] id 1 live_out
base b1 = f64[10000] id 2 born dies
base b2 = f64[100] id 3 born live_out
base b3 = f64[10000] id 4 born dies
base b4 = f64[100] id 5 born live_out
base b5 = f64[10000] id 6 born dies
base b6 = f64[100] id 7 born live_out
view v0 = b0 at 0 [100:100, 100:1]
view v1 = b1 at 0 [100:100, 100:1]
view v2 = b2 at 0 [100:1]
view v3 = b2 at 0 [100:1, 100:0]
view v4 = b3 at 0 [100:100, 100:1]
view v5 = b4 at 0 [100:1]
view v6 = b4 at 0 [100:1, 100:0]
view v7 = b5 at 0 [100:100, 100:1]
view v8 = b6 at 0 [100:1]
i0: v1 = add v0, v0
i1: v2 = minimum_reduce axes(1) v1
i2: v4 = subtract v1, v3
i3: v5 = minimum_reduce axes(1) v4
i4: v7 = subtract v4, v6
i5: v8 = minimum_reduce axes(1) v7
";

/// The arrays that nests keep in a few rows.
fn kept_rows(window: &Tiling) -> Vec<TileSlot> {
    (0..window.rows.len() as u32).map(TileSlot::Rows).collect()
}

#[test]
fn rows_are_made_in_the_place_of_those_that_end() {
    let kernels: [(&[u32], &[u32]); 3] = [(&[0, 1], &[]), (&[2, 3], &[]), (&[4, 5], &[])];
    let found = fused(ROUNDS, &kernels);
    let [window] = found.found.as_slice() else { panic!("{:?}", found.apart) };
    assert_eq!((window.nests.len(), kept_rows(window).len()), (3, 1));
    // The slots that read and write it are one buffer's, at the same elements.
    let nest = &window.nests[1];
    let shared = kept_rows(window)[0];
    let slots: Vec<usize> = (0..nest.slots.len()).filter(|&slot| nest.slots[slot] == shared).collect();
    let [read, written] = slots[..] else { panic!("{slots:?}") };
    assert_eq!(nest.stage.parameters.buffers[read], nest.stage.parameters.buffers[written]);
    assert_eq!(nest.stage.kernel.slots[written].same_as, read as u16);
}

#[test]
fn rows_that_are_needed_in_another_order_or_later_keep_their_place() {
    let kernels: [(&[u32], &[u32]); 3] = [(&[0, 1], &[]), (&[2, 3], &[]), (&[4, 5], &[])];
    let places = |text: &str| kept_rows(&fused(text, &kernels).found[0]).len();
    // Row by row backward: the elements that are read of a row were overwritten. The third array has the first one's place.
    let backward = ROUNDS.replace("v4 = subtract v1, v3", "v4 = subtract v9, v3");
    let backward = backward.replace("i0:", "view v9 = b1 at 99 [100:100, 100:-1]\ni0:");
    assert_eq!(places(&backward), 2);
    // The first array is needed by the third kernel.
    assert_eq!(places(&ROUNDS.replace("v7 = subtract v4, v6", "v7 = subtract v4, v1")), 2);
}

#[test]
fn few_rows_are_a_chunk_each() {
    let rows = |count: i64| {
        let long = SOFTMAX.replace("f64[10000]", &format!("f64[{}]", 100 * count));
        let text = long.replace("f64[100]", &format!("f64[{count}]")).replace("[100:", &format!("[{count}:"));
        let found = fused(&text, &[(&[0], &[]), (&[1, 2, 3], &[]), (&[4], &[])]);
        found.found[0].borders.as_ref().unwrap().len() - 1
    };
    assert_eq!([rows(20), rows(100), rows(1000)], [20, 100, 125]);
}
