//! `bh check-engine` passes an engine that obeys the rules, and fails engines that break one, in the case for that
//! rule.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the tests' third-party engine, which breaks the rule of this number.
fn engine(wrong: u32) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libwrong_{wrong}.so"));
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared", "-ffp-contract=off"]);
    command.arg("-fexceptions").arg(format!("-DWRONG={wrong}")).arg("-I").arg(root.join("bh-bridge-c/include"));
    command.arg(root.join("tests/c/misbehaving.c")).arg("-o").arg(&file).args(["-lm", "-lgcc_s", "-lpthread"]);
    let output = command.output().unwrap_or_else(|error| panic!("a C compiler is needed for this test: cc: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    file
}

/// The directory of the components built with this program.
fn libraries() -> PathBuf {
    std::env::var_os("BH_TEST_LIBRARIES").map_or_else(
        || Path::new(env!("CARGO_BIN_EXE_bh")).parent().map(Path::to_path_buf).unwrap_or_default(),
        PathBuf::from,
    )
}

/// The time limit of a case in seconds: only against hanging, on loaded machines as well.
const LIMIT: u32 = 600;

/// Runs cases on an engine; returns the verdict and the output.
fn check(library: &Path, cases: &[&str], limit: u32) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bh"));
    command.arg("check-engine").arg(library).args(["--limit", &limit.to_string()]);
    command.args(cases.iter().flat_map(|case| ["--case", case]));
    command.env("BH_LIBRARY_PATH", libraries()).env_remove("BH_CONFIG");
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (output.status.success(), text)
}

/// Broken rules by number, the case that finds each, and its message.
const WRONG: &[(u32, &str, &str)] = &[
    (1, "registry", "does not call block_done"),
    (2, "registry", "takes blocks with renames, but does not carry their aliases out"),
    (3, "registry", "loans when its work is done"),
    (4, "registry", "retires the data management of a block twice"),
    (5, "registry", "calls block_done for block 1048576"),
    (6, "data", "instead of"),
    (7, "supports", "answers 'supports' in different ways for the same block"),
    (8, "registry", "acquires with the access bits 0x41"),
    (9, "start", "bandwidth is NaN"),
    (10, "start", "names the family bh"),
    (11, "start", "no name of 1 to 255 bytes"),
    (12, "start", "no name of 1 to 255 bytes"),
    (13, "start", "threads are left"),
    (14, "start", "the working directory of the process has changed"),
    (15, "start", "the signal handlers of the process have changed"),
    (16, "start", "prints to the terminal: third-party: hello"),
    (17, "memory", "MiB behind"),
    (18, "data", "component 'third-party' let an exception out of 'execute'"),
    (19, "data", "crashes with signal 11"),
    (20, "data", "the process ends before the case does, with exit code 3"),
    (21, "data", "does not end within 5 seconds"),
    (22, "registry", "releases a loan that has ended"),
    (23, "evaluate", "to other bits than in a batch"),
    (24, "predict", "foretells NaN seconds"),
    (25, "reports", "and NaN of running"),
    (26, "serve", "the process ends before the case does, with exit code 3"),
    (27, "exports", "the engine writes to memory that is immutable"),
    (28, "tickets", "'poll' does not say that a ticket is done"),
    (29, "methods", "says that it has a method that nobody has"),
    (30, "data", "libwrong_30.so' let an exception out of 'to_host'"),
];

#[test]
fn rules_that_are_broken_are_found() {
    for &(wrong, case, text) in WRONG {
        let (passed, printed) = check(&engine(wrong), &[case], if wrong == 21 { 5 } else { LIMIT });
        let line = format!("{case}: FAILED");
        assert!(!passed && printed.contains(&line) && printed.contains(text), "engine {wrong}: {printed}");
    }
}

#[test]
fn an_engine_that_starts_is_looked_at_in_all_cases() {
    let (passed, printed) = check(&engine(15), &["start", "predict"], LIMIT);
    assert!(!passed && printed.contains("start: FAILED") && printed.contains("predict: "), "{printed}");
    let (passed, printed) = check(&libraries().join("libbh_fuser.so"), &["start", "predict"], LIMIT);
    assert!(!passed && printed.contains("the other cases are left out") && !printed.contains("predict: "), "{printed}");
}

#[test]
fn an_engine_that_behaves_passes() {
    let cases = [
        "start", "supports", "registry", "data", "tickets", "methods", "exports", "evaluate", "predict", "reports",
        "serve", "failures", "memory", "contexts",
    ];
    let (passed, printed) = check(&engine(0), &cases, LIMIT);
    assert!(passed, "{printed}");
    let (passed, printed) = check(&engine(0), &["nothing"], LIMIT);
    assert!(!passed && printed.contains("there is no case 'nothing'; there are start, "), "{printed}");
    let (passed, printed) = check(&libraries().join("libbh_fuser.so"), &[], LIMIT);
    assert!(!passed && printed.contains("is a component, but no engine"), "{printed}");
}
