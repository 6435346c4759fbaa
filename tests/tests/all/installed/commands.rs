//! The `bh` command: drawings and explanations of partitions, and pipes that close early.

use super::support::{Scratch, attempt, command, compile, prefix, run};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Two operations that share a kernel, one that always runs alone, and two of other shapes. The file's name contains
/// all characters that drawings must escape.
const BATCH: &str = r#"bh batch 1
base b0 = f64[100] id 1 row 100
base b1 = f64[100] id 2 row 100 born
base b2 = f64[100] id 3 row 100 born
base b3 = f64[100] id 4 row 100 born
base b4 = f64[10] id 5 row 10
base b5 = f64[20] id 6 row 20
view v0 = b0 at 0 [100:1]
view v1 = b1 at 0 [100:1]
view v2 = b2 at 0 [100:1]
view v3 = b3 at 0 [100:1]
view v4 = b4 at 0 [10:1]
view v5 = b5 at 0 [20:1]
const c0 = f64 2.0
origin o1 = "<a> & \"b\"\\.c":42
i0: v1 = multiply v0, c0 @o1
i1: v2 = add v1, c0 @o1
i2: v3 = add_accumulate axes(0) v2 @o1
i3: v4 = sqrt v4 @o1
i4: v5 = sqrt v5 @o1
i5: discard v1
"#;

fn bh(arguments: &[&str]) -> Command {
    let mut command = command(prefix().join("bin/bh"));
    command.args(arguments);
    command
}

/// The kernels and arrows of a dot text, which must be well-formed: one statement per line, closed quotes, arrows
/// between existing kernels.
fn read_dot(text: &str) -> (BTreeSet<String>, Vec<(String, String)>) {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("digraph partition {"), "{text}");
    assert_eq!(lines.next_back(), Some("}"), "{text}");
    let (mut kernels, mut arrows) = (BTreeSet::new(), Vec::new());
    for line in lines {
        let statement = line.trim().strip_suffix(';').unwrap_or_else(|| panic!("no end of statement: {line}"));
        let mut quoted = false;
        let mut plain = String::new();
        let mut letters = statement.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '"' => quoted = !quoted,
                '\\' if quoted => drop(letters.next()),
                _ if !quoted => plain.push(letter),
                _ => {}
            }
        }
        assert!(!quoted, "a quote does not end: {line}");
        match (plain.split_once(" -> "), plain.split_once(" [")) {
            (Some((from, to)), _) => arrows.push((from.to_owned(), to.to_owned())),
            (None, Some((name, attributes))) => {
                assert!(attributes.ends_with(']'), "{line}");
                if name != "node" {
                    assert!(kernels.insert(name.to_owned()), "kernel {name} stands there twice");
                }
            }
            (None, None) => assert!(plain.starts_with("label="), "{line}"),
        }
    }
    for (from, to) in &arrows {
        assert!(kernels.contains(from) && kernels.contains(to), "{from} -> {to}");
    }
    (kernels, arrows)
}

/// The texts of a drawing, which must be XML.
fn read_svg(file: &Path) -> Vec<String> {
    let program = "import sys, xml.etree.ElementTree as tree\n\
                   root = tree.parse(sys.argv[1]).getroot()\n\
                   assert root.tag == '{http://www.w3.org/2000/svg}svg', root.tag\n\
                   wide, high = float(root.get('width')), float(root.get('height'))\n\
                   for box in root.iter('{http://www.w3.org/2000/svg}rect'):\n\
                   \x20   if '%' not in box.get('width'):\n\
                   \x20       assert float(box.get('x')) + float(box.get('width')) <= wide\n\
                   \x20       assert float(box.get('y')) + float(box.get('height')) <= high\n\
                   for text in root.iter('{http://www.w3.org/2000/svg}text'): print(text.text)\n";
    let printed = run(command("python3").arg("-c").arg(program).arg(file));
    printed.lines().map(str::to_owned).collect()
}

#[test]
fn graph_draws_the_kernels_of_a_batch() {
    let scratch = Scratch::new("graph");
    let batch = scratch.write("batch.txt", BATCH).display().to_string();
    let text = run(&mut bh(&["graph", &batch]));
    let (kernels, arrows) = read_dot(&text);
    assert_eq!((kernels.len(), arrows.len()), (4, 1), "{text}");
    assert!(text.contains("5 operations, 4 kernels"), "{text}");
    let together = text.lines().find(|line| line.contains("i0 multiply")).unwrap_or_default();
    assert!(together.contains("i1 add") && !together.contains("i2"), "{text}");

    // Both forms at the same time, into files, without fusion.
    let (dot, svg) = (scratch.path().join("kernels.dot"), scratch.path().join("kernels.svg"));
    let mut both = bh(&["graph", &batch, "--algorithm", "singleton"]);
    assert_eq!(run(both.arg("--dot").arg(&dot).arg("--svg").arg(&svg)), "");
    let (kernels, arrows) = read_dot(&std::fs::read_to_string(&dot).unwrap());
    assert_eq!((kernels.len(), arrows.len()), (5, 2));
    let texts = read_svg(&svg);
    assert_eq!(texts.iter().filter(|text| text.starts_with("kernel ")).count(), 5, "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("i3 sqrt") && text.contains("<a> & \"b\"\\.c:42")), "{texts:?}");
}

#[test]
fn explain_names_the_reason_between_kernels() {
    let scratch = Scratch::new("explain");
    let batch = scratch.write("batch.txt", BATCH).display().to_string();
    let text = run(&mut bh(&["explain", &batch]));
    assert!(text.starts_with("4 kernels for 5 operations"), "{text}");
    let reasons: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("not fused with ")).collect();
    let alone = "one of them is of a kind that always runs alone";
    assert!(reasons.contains(&format!("kernel 1: {alone}").as_str()), "{text}");
    assert!(reasons.contains(&"kernel 3: they run over different shapes"), "{text}");
    let unfused = run(&mut bh(&["explain", &batch, "--algorithm", "singleton"]));
    assert!(unfused.starts_with("5 kernels for 5 operations"), "{unfused}");
    let asked = run(&mut bh(&["explain", &batch, "--stack", "cpu"]));
    assert!(
        asked.lines().any(|line| line.starts_with("memory: at most ") && line.contains(" 1040 of them ")),
        "{asked}"
    );
}

/// Source of a program: the sum of (x + 1)², and a cumulative sum.
const PROGRAM: &str = r#"
#include <bh.h>

int main(void) {
    const int64_t shape[] = {20000};
    bh_array *x, *square, *total, *running;
    double sum;
    bh_empty(&x, NULL, BH_TYPE_F64, 1, shape);
    bh_copy(x, bh_f64(2));
    bh_add_new(&square, x, bh_f64(1));
    bh_multiply(square, square, square);
    bh_add_reduce_new(&total, square, 0);
    bh_add_accumulate_new(&running, square, 0);
    bh_scalar_f64(&sum, total);
    return sum == 20000 * 9.0 ? 0 : 1;
}
"#;

#[test]
fn programs_are_drawn_and_explained_while_they_run() {
    let scratch = Scratch::new("graph-program");
    let program = compile(&prefix(), &scratch.write("program.c", PROGRAM)).display().to_string();
    let text = run(&mut bh(&["graph", "--", &program]));
    let (kernels, _) = read_dot(&text);
    assert_eq!(kernels.len(), 2, "{text}");
    assert!(text.contains("program.c:13"), "{text}");
    let text = run(&mut bh(&["explain", "--", &program]));
    assert!(text.contains("not fused with kernel 1: one of them is of a kind that always runs alone"), "{text}");
}

#[test]
fn damaged_partition_caches_are_ignored_with_a_warning_and_written_anew() {
    let scratch = Scratch::new("partition-cache");
    let program = compile(&prefix(), &scratch.write("program.c", PROGRAM));
    let directory = scratch.path().join("cache");
    std::fs::create_dir_all(&directory).unwrap();
    let warnings = || {
        let (ended, _, errors) =
            attempt(command(&program).env("BH_FUSER_CACHE_DIR", &directory).env("BH_FUSER_PLANNING", "full"));
        assert!(ended, "{errors}");
        errors
    };
    let file = || {
        let mut files = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        files.next().expect("the cache was not written")
    };
    assert_eq!(warnings(), "");
    let whole = std::fs::read(file()).unwrap();
    let half = whole.len() / 2;
    let flipped: Vec<u8> = whole.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == half)).collect();
    for damaged in [&whole[..half], &flipped, b"no cache"] {
        std::fs::write(file(), damaged).unwrap();
        let errors = warnings();
        assert!(errors.contains("is ignored and will be rebuilt"), "{errors}");
        assert_eq!(std::fs::read(file()).unwrap(), whole);
        assert_eq!(warnings(), "");
    }
}

#[test]
fn what_cannot_be_drawn_is_an_error() {
    let scratch = Scratch::new("graph-errors");
    let wrong = scratch.write("wrong.txt", "bh batch 1\nbase b0 = f63[100] id 1\n").display().to_string();
    let batch = scratch.write("batch.txt", BATCH).display().to_string();
    for (arguments, message) in [
        (&["graph", "/nonexistent.bhb"][..], "/nonexistent.bhb"),
        (&["graph", &wrong], "f63"),
        (&["explain", &batch, "--algorithm", "gredy"], "did you mean 'greedy'?"),
        (&["graph", "--", "/nonexistent"], "'/nonexistent' cannot be started"),
        (&["graph", "--", "true"], "the program ran no batch"),
        (&["explain"], "name a file, or a program after --"),
    ] {
        let (ended, printed, errors) = attempt(&mut bh(arguments));
        assert!(!ended && printed.is_empty() && errors.contains(message), "{arguments:?}: {printed}{errors}");
    }
}

/// As in `bh info | head -1`: the command ends silently, like others.
#[test]
fn a_reader_that_leaves_ends_the_command() {
    let scratch = Scratch::new("pipe");
    let batch = scratch.write("batch.txt", BATCH).display().to_string();
    for arguments in [&["info"][..], &["info", "--json"], &["graph", &batch], &["explain", &batch], &["replay", &batch]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        // Messages of an engine without its device are not the command's.
        let ended = bh(arguments)
            .env("BH_LOG", "error")
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{arguments:?}");
        // SIGPIPE
        assert_eq!(ended.status.signal(), Some(13), "{arguments:?}: {}", ended.status);
    }
}
