//! Random programs behave like in GNU Octave: they print the same and leave the same variables, or fail.
//!
//! `programs.octave` has programs with Octave's answers; `BH_TEST_OCTAVE=write` makes this test write it.
//! `BH_TEST_ALL=1` compares other programs with the installed Octave.

use crate::support;

use std::path::{Path, PathBuf};
use support::octave::{Case, answers, difference, is_installed, read};

/// Stored programs.
const STORED: u64 = 500;
/// Further programs to compare with an installed Octave.
const LIVE: u64 = 3000;

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn compare(cases: &[Case]) {
    let (mut run, output) = support::interpreter();
    let mut different = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        if let Some(text) = difference(&mut run, &output, case) {
            different.push(format!("program {number}:\n{}{text}\n", case.program));
        }
    }
    let shown = different.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(different.is_empty(), "{} of {} programs differ\n{shown}", different.len(), cases.len());
}

#[test]
fn stored_programs_do_what_octave_did() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs.octave");
    if std::env::var("BH_TEST_OCTAVE").is_ok_and(|word| word == "write") {
        std::fs::write(&file, answers(0..STORED, &scratch("octave-stored"))).expect("the answers are written");
    }
    let cases = read(&std::fs::read_to_string(&file).expect("programs with answers"));
    assert!(cases.len() as u64 > STORED * 9 / 10, "{} cases", cases.len());
    let right = cases.iter().filter(|case| !case.answer.fails).count();
    assert!(right > cases.len() * 3 / 4, "{right} of {} programs are right", cases.len());
    compare(&cases);
}

#[test]
fn programs_do_what_octave_does() {
    if std::env::var_os("BH_TEST_ALL").is_none() {
        return;
    }
    if !is_installed() {
        eprintln!("left out: octave-cli is not installed");
        return;
    }
    let first = std::env::var("BH_TEST_PROGRAMS").ok().and_then(|first| first.parse().ok()).unwrap_or(STORED);
    compare(&read(&answers(first..first + LIVE, &scratch("octave-live"))));
}
