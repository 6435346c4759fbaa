//! Tests of the pass `pieces`: the batches that it cuts, and those that it leaves as they are.

use bh_bytecode::text;
use bh_filter::passes::{ALL, Options};
use std::fmt::Write as _;

/// The instructions of a batch after the pass and the removal of dead code, as text with views in place of their numbers.
fn after(words: &str) -> String {
    after_from(words, 0)
}

fn after_from(words: &str, pieces_from: i64) -> String {
    after_with(words, Options { pieces_from, ..Options::default() })
}

fn after_with(words: &str, options: Options) -> String {
    let mut batch = text::parse(words).unwrap_or_else(|error| panic!("{error}\n{words}"));
    for name in ["pieces", "dead-code"] {
        let pass = ALL.iter().find(|pass| pass.name == name).unwrap();
        (pass.run)(&mut batch, &options);
    }
    let tables = batch.as_ref();
    let mut lines = String::new();
    for instr in &batch.instrs {
        let mut line = instr.opcode.to_string();
        for operand in instr.operands() {
            match operand.as_view() {
                Some(view) => {
                    let dims: Vec<String> = tables
                        .shape(view)
                        .iter()
                        .zip(tables.stride(view))
                        .map(|(extent, stride)| format!("{extent}:{stride}"))
                        .collect();
                    let record = &tables.views[view as usize];
                    write!(line, " b{}@{}[{}]", record.base, record.start, dims.join(",")).unwrap();
                }
                None => write!(line, " c{}", operand.as_constant().unwrap()).unwrap(),
            }
        }
        lines += &line;
        lines.push('\n');
    }
    lines
}

/// A rolled line in b1, of which `rest` makes something. b0 is an array from before; others are born.
fn rolled(flags: &str, rest: &str) -> String {
    format!(
        "bh batch 1\nbase b0 = f64[8] id 1 row 8 live_out\nbase b1 = f64[8] id 2 row 8 {flags}\n\
         base b2 = f64[8] id 3 row 8 born live_out\nbase b3 = f64[8] id 4 row 8 born dies\n\
         base b4 = f64[1] id 5 row 1 born live_out\nbase b5 = f64[8] id 6 row 8 live_out\n\
         view v0 = b0 at 0 [8:1]\nview v1 = b1 at 0 [8:1]\nview v2 = b2 at 0 [8:1]\nview v3 = b3 at 0 [8:1]\n\
         view v4 = b4 at 0 []\nview v5 = b0 at 0 [7:1]\nview v6 = b0 at 7 [1:0]\nview v7 = b1 at 1 [7:1]\n\
         view v8 = b1 at 0 [1:0]\nview v9 = b5 at 0 [8:1]\nview v10 = b2 at 1 [7:1]\nview v11 = b0 at 0 [4:1]\n\
         const c0 = f64 3.0\ni0: v7 = copy v5\ni1: v8 = copy v6\n{rest}"
    )
}

#[test]
fn a_rolled_array_is_read_where_it_was() {
    let words = rolled("born dies", "i2: v2 = subtract v0, v1\ni3: discard v1\n");
    let expected = "subtract b2@0[1:0] b0@0[1:0] b0@7[1:0]\nsubtract b2@1[7:1] b0@1[7:1] b0@0[7:1]\n";
    assert_eq!(after(&words), expected);
}

#[test]
fn temporaries_of_a_cluster_are_made_box_by_box() {
    let words =
        rolled("born dies", "i2: v3 = subtract v0, v1\ni3: discard v1\ni4: v2 = multiply v3, c0\ni5: discard v3\n");
    let expected = "subtract b6@0[1:0] b0@0[1:0] b0@7[1:0]\nmultiply b2@0[1:0] b6@0[1:0] c0\ndiscard b6@0[1:0]\n\
                    subtract b7@0[7:1] b0@1[7:1] b0@0[7:1]\nmultiply b2@1[7:1] b7@0[7:1] c0\ndiscard b7@0[7:1]\n";
    assert_eq!(after(&words), expected);
}

#[test]
fn little_work_is_not_cut() {
    let words = rolled("born dies", "i2: v2 = subtract v0, v1\ni3: discard v1\n");
    assert!(after_from(&words, 8).contains("subtract b2@1[7:1] b0@1[7:1] b0@0[7:1]"));
    assert!(after_from(&words, 9).contains("subtract b2@0[8:1] b0@0[8:1] b1@0[8:1]"));
}

#[test]
fn arrays_that_stay_keep_their_copies() {
    let words = rolled("born live_out", "i2: v2 = subtract v0, v1\n");
    let expected = "copy b1@1[7:1] b0@0[7:1]\ncopy b1@0[1:0] b0@7[1:0]\n\
                    subtract b2@0[1:0] b0@0[1:0] b0@7[1:0]\nsubtract b2@1[7:1] b0@1[7:1] b0@0[7:1]\n";
    assert_eq!(after(&words), expected);
}

#[test]
fn sources_that_change_are_not_read_later() {
    for change in ["v0 = copy c0", "v11 = copy c0", "free v0"] {
        let words = rolled("born dies", &format!("i2: {change}\ni3: v2 = subtract v9, v1\ni4: discard v1\n"));
        assert!(after(&words).contains("subtract b2@0[8:1] b5@0[8:1] b1@0[8:1]"), "{change}");
    }
    // An instruction that changes arrays after the reader runs after all of the reader's boxes.
    let words = rolled("born dies", "i2: v2 = subtract v9, v1\ni3: v11 = copy c0\ni4: discard v1\n");
    let expected =
        "subtract b2@0[1:0] b5@0[1:0] b0@7[1:0]\nsubtract b2@1[7:1] b5@1[7:1] b0@0[7:1]\ncopy b0@0[4:1] c0\n";
    assert_eq!(after(&words), expected);
    // Nothing reads what it writes at other places.
    let words = rolled("born dies", "i2: v0 = subtract v0, v1\ni3: discard v1\n");
    assert!(after(&words).contains("subtract b0@0[8:1] b0@0[8:1] b1@0[8:1]"));
}

#[test]
fn folds_read_whole_arrays() {
    let words = rolled("born dies", "i2: v4 = add_reduce axes(0) v1\ni3: discard v1\n");
    assert!(after(&words).contains("add_reduce b4@0[] b1@0[8:1]"));
    // The input of a fold would need memory in the place of the rolled array.
    let rest = "i2: v3 = subtract v0, v1\ni3: discard v1\ni4: v4 = add_reduce axes(0) v3\ni5: discard v3\n";
    assert!(after_from(&rolled("born dies", rest), 2).contains("subtract b3@0[8:1] b0@0[8:1] b1@0[8:1]"));
}

#[test]
fn boxes_are_lost_by_the_causes_of_the_whole() {
    // Only a part is read, whose source is not all that may lose the array.
    let joined = |view: &str| {
        format!(
            "bh batch 1\nbase b0 = f64[4] id 1 row 4 live_out\nbase b1 = f64[4] id 2 row 4 live_out\n\
             base b2 = f64[8] id 3 row 8 born dies\nbase b3 = f64[8] id 4 row 8 born live_out\n\
             view v0 = b0 at 0 [4:1]\nview v1 = b1 at 0 [4:1]\nview v2 = b2 at 0 [4:1]\nview v3 = b2 at 4 [4:1]\n\
             view v4 = b2 at 0 [8:1]\nview v5 = b3 at 0 [8:1]\nview v6 = b3 at 0 [4:1]\n\
             i0: v2 = copy v0\ni1: v3 = copy v1\ni2: {view}\ni3: discard v4\n"
        )
    };
    assert_eq!(after(&joined("v5 = sqrt v4")), "sqrt b3@0[4:1] b0@0[4:1]\nsqrt b3@4[4:1] b1@0[4:1]\n");
    assert!(after(&joined("v6 = sqrt v2")).contains("sqrt b3@0[4:1] b2@0[4:1]"));
    // An array that is overwritten as a whole is not lost any more, whatever lost it before.
    let words = rolled("born dies", "i2: v9 = subtract v0, v1\ni3: discard v1\n");
    assert!(after(&words).contains("subtract b5@0[8:1] b0@0[8:1] b1@0[8:1]"));
    let words = rolled("born dies", "i2: v2 = copy v9\ni3: v2 = subtract v0, v1\ni4: discard v1\n");
    assert!(after(&words).contains("subtract b2@0[8:1] b0@0[8:1] b1@0[8:1]"));
}

#[test]
fn sources_are_dropped_after_their_last_reader() {
    let words = "bh batch 1\nbase b0 = f64[4] id 1 row 4 dies\nbase b1 = f64[4] id 2 row 4 dies\n\
         base b2 = f64[8] id 3 row 8 born dies\nbase b3 = f64[8] id 4 row 8 born live_out\n\
         view v0 = b0 at 0 [4:1]\nview v1 = b1 at 0 [4:1]\nview v2 = b2 at 0 [4:1]\nview v3 = b2 at 4 [4:1]\n\
         view v4 = b2 at 0 [8:1]\nview v5 = b3 at 0 [8:1]\n\
         i0: v2 = copy v0\ni1: discard v0\ni2: v3 = copy v1\ni3: discard v1\ni4: v5 = sqrt v4\ni5: discard v4\n";
    let expected = "sqrt b3@0[4:1] b0@0[4:1]\nsqrt b3@4[4:1] b1@0[4:1]\ndiscard b0@0[4:1]\ndiscard b1@0[4:1]\n";
    assert_eq!(after(words), expected);
}

#[test]
fn what_is_only_a_part_of_another_array_is_not_made_in_its_place() {
    // b1 goes into the larger b2 from index to index, which is read at other indices: one of them has memory in any case.
    let words = "bh batch 1\nbase b0 = f64[4] id 1 row 4 live_out\nbase b1 = f64[4] id 2 row 4 born dies\n\
         base b2 = f64[6] id 3 row 6 born dies\nbase b3 = f64[4] id 4 row 4 born live_out\n\
         view v0 = b0 at 0 [4:1]\nview v1 = b1 at 0 [4:1]\nview v2 = b2 at 0 [6:1]\nview v3 = b2 at 1 [4:1]\n\
         view v4 = b2 at 0 [4:1]\nview v5 = b2 at 2 [4:1]\nview v6 = b3 at 0 [4:1]\nconst c0 = f64 0.0\n\
         i0: v1 = sqrt v0\ni1: v2 = copy c0\ni2: v3 = copy v1\ni3: discard v1\ni4: v6 = subtract v5, v4\ni5: discard v2\n";
    assert!(after(words).contains("subtract b3@0[4:1] b2@2[4:1] b2@0[4:1]"));
    // An array that is there in any case is read.
    let copied = words.replace("v3 = copy v1", "v3 = copy v0");
    assert!(after(&copied).contains("subtract b3@1[2:1] b0@2[2:1] b0@0[2:1]"), "{}", after(&copied));
}

#[test]
fn borders_beside_the_inside_are_left_to_windows() {
    let padded = |border: &str| {
        format!(
            "bh batch 1\nbase b0 = f64[64] id 1 row 64 live_out\nbase b1 = f64[66] id 2 row 66 born dies\n\
             base b2 = f64[64] id 3 row 64 born live_out\nview v0 = b0 at 0 [64:1]\nview v1 = b1 at 1 [64:1]\n\
             view v2 = b1 at 0 [1:0]\nview v3 = b1 at 65 [1:0]\nview v4 = b1 at 0 [64:1]\nview v5 = b1 at 2 [64:1]\n\
             view v6 = b0 at 0 [1:0]\nview v7 = b0 at 63 [1:0]\nview v8 = b2 at 0 [64:1]\nview v9 = b1 at 0 [66:1]\n\
             i0: v1 = copy v0\n{border}i3: v8 = subtract v5, v4\ni4: discard v9\n"
        )
    };
    let whole = "subtract b2@0[64:1] b1@2[64:1] b1@0[64:1]";
    let cut = |border: &str, kernel_bytes| {
        !after_with(&padded(border), Options { pieces_from: 2, kernel_bytes, ..Options::default() }).contains(whole)
    };
    let (near, far) = ("i1: v2 = copy v6\ni2: v3 = copy v7\n", "i1: v2 = copy v7\ni2: v3 = copy v6\n");
    assert!(!cut(near, 0) && cut(far, 0));
    // Engines that start each kernel by itself have no windows: the array of 528 bytes that is not made pays for two more kernels.
    assert!(cut(near, 500) && cut(far, 500));
    assert!(!cut(near, 600) && !cut(far, 600));
}

#[test]
fn constants_become_operands() {
    let padded = |last: &str| {
        format!(
            "bh batch 1\nbase b0 = f64[4] id 1 row 4 live_out\nbase b1 = f64[6] id 2 row 6 born dies\n\
             base b2 = f64[6] id 3 row 6 born live_out\nbase b3 = bool[6] id 4 row 6 born live_out\n\
             view v0 = b0 at 0 [4:1]\nview v1 = b1 at 0 [6:1]\nview v2 = b1 at 1 [4:1]\nview v3 = b2 at 0 [6:1]\n\
             view v4 = b3 at 0 [6:1]\nconst c0 = f64 0.5\nconst c1 = f64 2.0\n\
             i0: v1 = copy c0\ni1: v2 = copy v0\ni2: {last}\ni3: discard v1\n"
        )
    };
    let expected = "copy b2@0[1:0] c0\nmultiply b2@0[1:0] b2@0[1:0] c1\ncopy b2@5[1:0] c0\nmultiply b2@5[1:0] b2@5[1:0] c1\n\
                    multiply b2@1[4:1] b0@0[4:1] c1\n";
    assert_eq!(after(&padded("v3 = multiply v1, c1")), expected);
    // A comparison's result holds no number.
    assert!(after(&padded("v4 = less v1, c1")).contains("less b3@0[6:1] b1@0[6:1] c1"));
}

/// Rows that are computed from b0 and stacked in b3, of which `rest` makes something.
fn stacked(flags: &str, rest: &str) -> String {
    format!(
        "bh batch 1\nbase b0 = f64[1024] id 1 row 1024 live_out\nbase b1 = f64[1024] id 2 row 1024 born dies\n\
         base b2 = f64[1024] id 3 row 1024 born dies\nbase b3 = f64[2048] id 4 row 1024 {flags}\n\
         base b4 = f64[2048] id 5 row 1024 born live_out\nbase b5 = f64[1024] id 6 row 1024 born live_out\n\
         view v0 = b0 at 0 [1024:1]\nview v1 = b1 at 0 [1024:1]\nview v2 = b2 at 0 [1024:1]\nview v3 = b3 at 0 [1024:1]\n\
         view v4 = b3 at 1024 [1024:1]\nview v5 = b3 at 0 [2:1024,1024:1]\nview v6 = b4 at 0 [2:1024,1024:1]\n\
         view v7 = b5 at 0 [1024:1]\nview v8 = b3 at 0 [2048:1]\nview v9 = b4 at 0 [2048:1]\n\
         i0: v1 = sqrt v0\ni1: v2 = exp v0\ni2: v3 = copy v1\ni3: discard v1\ni4: v4 = copy v2\ni5: discard v2\n{rest}"
    )
}

#[test]
fn operations_on_stacked_slices_become_one_for_each() {
    let words = stacked("born dies", "i6: v6 = multiply v5, v5\ni7: discard v5\n");
    let expected = "sqrt b1@0[1024:1] b0@0[1024:1]\nexp b2@0[1024:1] b0@0[1024:1]\n\
                    multiply b4@0[1024:1] b1@0[1024:1] b1@0[1024:1]\nmultiply b4@1024[1024:1] b2@0[1024:1] b2@0[1024:1]\n\
                    discard b1@0[1024:1]\ndiscard b2@0[1024:1]\n";
    assert_eq!(after(&words), expected);
    // Views that have slices at no axis of their own, and arrays that stay, are cut as others are.
    let divided = "multiply b4@0[1024:1]";
    let words = stacked("born dies", "i6: v6 = multiply v5, v5\ni7: v9 = exp v8\ni8: discard v5\n");
    assert!(!after(&words).contains(divided));
    assert!(!after(&stacked("born live_out", "i6: v6 = multiply v5, v5\n")).contains(divided));
}

#[test]
fn sums_of_slices_are_chains_where_engines_take_them_in_order() {
    let words = stacked("born dies", "i6: v7 = add_reduce axes(0) v5\ni7: discard v5\n");
    let in_order = Options { in_order: true, ..Options::default() };
    let expected = "add b5@0[1024:1] c0 b1@0[1024:1]\nadd b5@0[1024:1] b5@0[1024:1] b2@0[1024:1]\n";
    assert!(after_with(&words, in_order).contains(expected));
    let whole = "add_reduce b5@0[1024:1] b3@0[2:1024,1024:1]";
    assert!(after(&words).contains(whole));
    // The largest of two is the same in any order.
    let largest = words.replace("add_reduce", "maximum_reduce");
    assert!(after(&largest).contains("maximum b5@0[1024:1] b1@0[1024:1] b2@0[1024:1]\n"));
    // Along the slices, the whole array is folded.
    let along = words
        .replace("v7 = add_reduce axes(0)", "v10 = add_reduce axes(1)")
        .replace("i0:", "base b6 = f64[2] id 7 row 2 born live_out\nview v10 = b6 at 0 [2:1]\ni0:");
    assert!(after_with(&along, Options { in_order: true, ..Options::default() }).contains("b3@0[2:1024,1024:1]"));
}

/// The bases that are written and die, without those that a DISCARD drops.
fn kept(lines: &str) -> Vec<&str> {
    let written = lines.lines().filter(|line| !line.starts_with("discard")).map(|line| {
        let out = line.split(' ').find(|word| word.starts_with('b')).unwrap();
        &out[..out.find('@').unwrap()]
    });
    written.filter(|base| !["b4", "b5"].contains(base) && !lines.contains(&format!("discard {base}@"))).collect()
}

#[test]
fn slices_that_are_copied_to_each_other_are_dropped() {
    let words = stacked("born dies", "i6: v4 = copy v3\ni7: v4 = sqrt v4\ni8: v6 = multiply v5, v5\ni9: discard v5\n");
    let lines = after(&words);
    assert!(lines.contains("multiply b4@1024[1024:1]"), "{lines}");
    assert_eq!(kept(&lines), [""; 0], "{lines}");
    // Two arrays of which each has a slice of the other.
    let other = "base b6 = f64[2048] id 7 row 1024 born dies\nview v10 = b6 at 0 [1024:1]\nview v11 = b6 at 1024 [1024:1]\n\
                 view v12 = b6 at 0 [2:1024,1024:1]\ni0:";
    let rest = "i6: v10 = copy v3\ni7: v11 = exp v0\ni8: v4 = copy v11\ni9: v4 = sqrt v4\ni10: v6 = multiply v5, v12\n\
                i11: discard v5\ni12: discard v12\n";
    let lines = after(&stacked("born dies", rest).replace("i0:", other));
    assert!(lines.contains("multiply b4@1024[1024:1]"), "{lines}");
    assert_eq!(kept(&lines), [""; 0], "{lines}");
}

#[test]
fn arrays_of_unequal_parts_are_not_divided() {
    // b1 is written in parts of three, three and two elements. A view with gaps that repeats elements has the length of all of b1.
    let words = "bh batch 1\nbase b0 = f64[8] id 1 row 8 live_out\nbase b1 = f64[8] id 2 row 8 born dies\n\
                 base b2 = f64[8] id 3 row 8 born dies\nbase b3 = f64[8] id 4 row 8 born live_out\n\
                 view v0 = b0 at 0 [3:1]\nview v1 = b0 at 0 [2:1]\nview v2 = b1 at 0 [3:1]\nview v3 = b1 at 3 [3:1]\n\
                 view v4 = b1 at 6 [2:1]\nview v5 = b2 at 0 [2:2,2:1]\nview v6 = b2 at 4 [2:2,2:1]\nview v7 = b0 at 0 [2:2,2:1]\n\
                 view v8 = b2 at 0 [2:4,2:2,2:1]\nview v9 = b1 at 0 [2:3,2:1,2:0]\nview v10 = b3 at 0 [2:4,2:2,2:1]\n\
                 i0: v2 = sqrt v0\ni1: v3 = exp v0\ni2: v4 = sqrt v1\ni3: v5 = exp v7\ni4: v6 = sqrt v7\n\
                 i5: v10 = multiply v8, v9\ni6: discard v4\ni7: discard v8\n";
    let lines = after(words);
    assert!(lines.contains(" b1@3[2:1,2:0]"), "{lines}");
}

#[test]
fn slices_are_lost_by_the_causes_of_the_whole() {
    // Of two arrays that may be lost, a part that is read needs one.
    let words = stacked("born dies", "i6: v6 = multiply v5, v5\ni7: v7 = sqrt v3\ni8: discard v5\n");
    assert!(after(&words).contains("sqrt b5@0[1024:1] b1@0[1024:1]"));
    let other = words
        .replace("i1: v2 = exp v0", "i1: v2 = exp v11")
        .replace("i0:", "base b7 = f64[1024] id 8 row 1024 live_out\nview v11 = b7 at 0 [1024:1]\ni0:");
    let other = other.replace("view v11", "view v10").replace("exp v11", "exp v10");
    let other = other.replace("base b7", "base b6").replace("v10 = b7", "v10 = b6");
    assert!(after(&other).contains("sqrt b5@0[1024:1] b3@0[1024:1]"));
}

#[test]
fn axes_of_one_element_are_dropped() {
    let mut batch = text::parse(
        "bh batch 1\nbase b0 = f64[8] id 1 row 8 live_out\nbase b1 = f64[8] id 2 row 8 live_out\n\
         view v0 = b0 at 0 [1:0,8:1]\nview v1 = b1 at 0 [1:0,8:1]\ni0: v1 = exp v0\n",
    )
    .unwrap();
    let pass = ALL.iter().find(|pass| pass.name == "simplify").unwrap();
    assert_eq!((pass.run)(&mut batch, &Options::default()), 1);
    let shapes: Vec<&[i64]> =
        batch.instrs[0].operands().iter().map(|operand| batch.as_ref().shape(operand.as_view().unwrap())).collect();
    assert_eq!(shapes, [[8], [8]]);
    assert_eq!((pass.run)(&mut batch, &Options::default()), 0);
}

#[test]
fn work_grows_as_batches_do() {
    let program = |turns: usize| {
        let (mut bases, mut views, mut instrs) = (String::new(), String::new(), String::new());
        for turn in 0..=turns {
            let (new, moved) = (2 * turn, 2 * turn + 1);
            let flags = if turn == 0 { "dies" } else { "born dies" };
            bases += &format!("base b{new} = f64[8] id {} row 8 {flags}\n", new + 1);
            bases += &format!("base b{moved} = f64[8] id {} row 8 born dies\n", moved + 1);
            for (number, (base, place)) in [
                (new, "0 [8:1]"),
                (moved, "0 [8:1]"),
                (new, "0 [7:1]"),
                (new, "7 [1:0]"),
                (moved, "1 [7:1]"),
                (moved, "0 [1:0]"),
            ]
            .iter()
            .enumerate()
            {
                views += &format!("view v{} = b{base} at {place}\n", 6 * turn + number);
            }
            if turn < turns {
                let v = |number: usize| format!("v{}", 6 * turn + number);
                let at = 5 * turn;
                instrs += &format!("i{at}: {} = copy {}\n", v(4), v(2));
                instrs += &format!("i{}: {} = copy {}\n", at + 1, v(5), v(3));
                instrs += &format!("i{}: v{} = subtract {}, {}\n", at + 2, 6 * turn + 6, v(0), v(1));
                instrs += &format!("i{}: discard {}\ni{}: discard {}\n", at + 3, v(0), at + 4, v(1));
            }
        }
        format!("bh batch 1\n{bases}{views}{instrs}")
    };
    let steps = |turns: usize| {
        let mut batch = text::parse(&program(turns)).unwrap();
        let pass = ALL.iter().find(|pass| pass.name == "pieces").unwrap();
        let before = bh_bytecode::steps::taken();
        assert_eq!((pass.run)(&mut batch, &Options::default()), turns);
        bh_bytecode::steps::taken() - before
    };
    let (few, many) = (steps(50), steps(400));
    assert!(many < 9 * few, "{many} steps for 8 times the work of {few}");
}
