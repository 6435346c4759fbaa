//! Where something fails or was lost before, the same arrays are lost with every pass as without.

use bh_bytecode::{Batch, text};
use bh_filter::passes::{ALL, Options};

/// Arrays of eight elements. `old` and `other` live on from before and may be lost; the rest is born, and `gone` dies.
const BASES: [&str; 6] = ["old", "other", "a", "b", "c", "gone"];

/// A batch of instructions on these arrays and their halves (`a.0`, `a.1`), with the constants `#0` to `#3`; all but
/// the first are true as `bool`.
fn batch(dtype: &str, instrs: &[&str]) -> Batch {
    let (mut bases, mut views) = (String::new(), String::new());
    let mut names = Vec::new();
    for (number, name) in BASES.iter().enumerate() {
        let flags = ["live_out", "live_out", "born live_out", "born live_out", "born live_out", "born dies"][number];
        bases += &format!("base b{number} = {dtype}[8] id {} row 8 {flags}\n", number + 1);
        for (part, place) in [("", "0 [8:1]"), (".0", "0 [4:1]"), (".1", "4 [4:1]")] {
            views += &format!("view v{} = b{number} at {place}\n", names.len());
            names.push(format!("{name}{part}"));
        }
    }
    let value = |number: u32| if dtype == "bool" { (number > 0).to_string() } else { number.to_string() };
    let numbers: String = (0..4).map(|number| format!("const c{number} = {dtype} {}\n", value(number))).collect();
    let word = |word: &str| {
        let (word, comma) = word.strip_suffix(',').map_or((word, ""), |word| (word, ","));
        let view = names.iter().position(|name| name == word).map(|view| format!("v{view}"));
        format!("{}{comma}", view.unwrap_or_else(|| word.replace('#', "c")))
    };
    let line = |line: &&str| line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n";
    let instrs: String = instrs.iter().map(line).collect();
    let words = format!("bh batch 1\n{bases}{views}{numbers}{instrs}");
    text::parse(&words).unwrap_or_else(|error| panic!("{error}\n{words}"))
}

/// Does a pass change such a batch of `i64`?
fn changes(pass: &str, instrs: &[&str]) -> bool {
    run(pass, &mut batch("i64", instrs))
}

fn run(pass: &str, batch: &mut Batch) -> bool {
    let pass = ALL.iter().find(|known| known.name == pass).unwrap();
    (pass.run)(batch, &Options::default()) > 0
}

#[test]
fn operands_that_may_be_lost_are_not_dropped() {
    for rule in ["multiply X, #0", "subtract X, X", "bitwise_xor X, X", "power X, #0"] {
        let line = |output: &str, input: &str| format!("{output} = {}", rule.replace('X', input));
        let changed = |before: &[&str], output: &str, input: &str| {
            let last = line(output, input);
            changes("simplify", &[before, &[&last]].concat())
        };
        assert!(!changed(&[], "a", "old"), "{rule}");
        assert!(!changed(&["a = add old, old"], "b", "a"), "{rule}");
        // A base is lost as a whole.
        assert!(!changed(&["old.0 = copy #3"], "a.0", "old.0"), "{rule}");
        assert!(!changed(&["a = copy #3", "a.1 = add old.1, #1"], "b.0", "a.0"), "{rule}");
        // Indices may be wrong, also where all data is there.
        assert!(!changed(&["a = copy #3", "b = gather a, a"], "c", "b"), "{rule}");
        assert!(changed(&["a = copy #3"], "b", "a"), "{rule}");
        // An array whose data is all written anew is no longer lost.
        assert!(changed(&["old = copy #3"], "a", "old"), "{rule}");
        assert!(changed(&["free old"], "a", "old"), "{rule}");
        // The rest of the output is lost with the operand as it is.
        assert!(changed(&[], "old.0", "old.1"), "{rule}");
        assert!(!changed(&[], "old", "old"), "{rule}");
    }
}

#[test]
fn masks_that_may_be_lost_are_read() {
    let made = ["a = copy #1", "b = copy #0"];
    let changed = |line: &str| run("simplify", &mut batch("bool", &[made[0], made[1], line]));
    assert!(!changed("c = where old, a, a"));
    assert!(!changed("c = where old, other, other"));
    assert!(changed("c = where b, a, a"));
    assert!(changed("c = where b, old, old"));
    assert!(changed("c = where old, old, old"));
}

#[test]
fn values_are_taken_from_elsewhere_where_the_same_is_lost() {
    // The pass, what makes a value of X in Y, and what becomes a reader of X, or of Y, in Z.
    let cases = [
        ("simplify", "Y = subtract #0, X", "Z = subtract #0, Y"),
        ("collect", "Y = add X, #1", "Z = add Y, #2"),
        ("copies", "Y = copy X", "Z = add Y, #1"),
        ("common", "Y = add X, #1", "Z = add X, #1"),
    ];
    for (pass, inner, outer) in cases {
        let changed = |names: [&str; 3], before: &str, between: &str| {
            let named = |text: &str| text.replace('X', names[0]).replace('Y', names[1]).replace('Z', names[2]);
            let (inner, outer) = (named(inner), named(outer));
            let lines = [before, &inner, between, &outer];
            changes(pass, &lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>())
        };
        assert!(changed(["old", "a", "b"], "", ""), "{pass}");
        assert!(changed(["old.0", "a.0", "b.0"], "", ""), "{pass}");
        // The rest of what made the value, or of the value, is lost in between.
        assert!(!changed(["old.0", "a.0", "b.0"], "", "old.1 = add other.1, #3"), "{pass}");
        assert!(!changed(["old.0", "a.0", "b.0"], "", "a.1 = add other.1, #3"), "{pass}");
        assert!(!changed(["old.0", "a.0", "b.0"], "", "a.1 = gather old, old.1"), "{pass}");
        assert!(changed(["old.0", "a.0", "b.0"], "", "a.1 = add old.1, #3"), "{pass}");
        // The value is lost with what its base was before.
        assert!(!changed(["old.0", "other.0", "b.0"], "", ""), "{pass}");
        assert!(!changed(["a.0", "old.0", "b.0"], "a = copy #3", ""), "{pass}");
        assert!(changed(["a", "old", "b"], "a = copy #3", ""), "{pass}");
        // A reader that keeps a part of what is lost loses it anyway.
        assert!(changed(["a.0", "old.0", "old.1"], "a = copy #3", ""), "{pass}");
    }
}

#[test]
fn gathers_that_fail_alike_are_one() {
    assert!(changes("common", &["a = gather old, other", "b = gather old, other"]));
    assert!(!changes("common", &["old.0 = gather other, other.1", "a.0 = gather other, other.1"]));
}

#[test]
fn writes_that_lose_or_restore_a_base_stay() {
    let dead = |lines: &[&str]| changes("dead-code", lines);
    // Nobody reads the second half.
    assert!(!dead(&["gone.0 = copy #1", "gone.1 = copy old.1", "a.0 = copy gone.0", "discard gone"]));
    assert!(dead(&["gone.0 = copy #1", "gone.1 = copy #2", "a.0 = copy gone.0", "discard gone"]));
    assert!(dead(&["gone.0 = copy old.0", "gone.1 = copy old.1", "a.0 = copy gone.0", "discard gone"]));
    assert!(!dead(&["gone.1 = copy old.1", "gone.0 = copy #1", "a.0 = copy gone.0", "discard gone"]));
    // The first write gives data to all that was lost.
    assert!(!dead(&["old = copy #1", "old.0 = copy #2", "a.0 = copy old.0", "discard old"]));
    assert!(dead(&["gone = copy #1", "gone.0 = copy #2", "a.0 = copy gone.0", "discard gone"]));
    // It does not matter what nobody reads, and what is overwritten.
    assert!(dead(&["gone = copy old", "discard gone"]));
    assert!(dead(&["old.0 = copy other.0", "old = copy #1"]));
}
