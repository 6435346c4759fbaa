//! The C examples under valgrind's memcheck: no error, no leak.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where `cargo xtask test` installed bh.
fn prefix() -> PathBuf {
    std::env::var_os("BH_TEST_PREFIX")
        .map(PathBuf::from)
        .expect("run the tests by `cargo xtask test`, which sets BH_TEST_PREFIX")
}

/// Compiles an example, runs it under memcheck with small sizes, and returns what it printed.
fn check(example: &str, arguments: &[&str]) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(format!("{example}.c"));
    let program = std::env::temp_dir().join(format!("bh-memcheck-{example}-{}", std::process::id()));
    let library = prefix().join("lib");
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-g", "-O1", "-o"])
        .arg(&program)
        .arg(&source)
        .arg(format!("-I{}", prefix().join("include").display()))
        .arg(format!("-L{}", library.display()))
        .args(["-lbh_bridge_c", "-lm"])
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .status()
        .expect("cc is installed");
    assert!(compiled.success(), "{example}.c does not compile");
    let output = Command::new("valgrind")
        .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
        .args(["--show-leak-kinds=definite,indirect,possible", "--errors-for-leak-kinds=definite,indirect,possible"])
        .arg(&program)
        .args(arguments)
        .output()
        .expect("valgrind is installed");
    // Best effort: the program lies in the temporary directory.
    let _ = std::fs::remove_file(&program);
    let (said, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{example} under valgrind: {}\n{said}{complaints}", output.status);
    said.into_owned()
}

#[test]
fn heat_has_no_error_and_no_leak() {
    let said = check("heat", &["64", "4"]);
    assert!(said.contains("delta"), "{said}");
}

#[test]
fn black_scholes_has_no_error_and_no_leak() {
    let said = check("black_scholes", &["1000", "2"]);
    assert!(!said.is_empty());
}
