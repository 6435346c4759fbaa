//! The C examples under valgrind's memcheck (no errors, no leaks) and under the profiler.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The prefix to which `cargo xtask test` installed bh.
fn prefix() -> PathBuf {
    std::env::var_os("BH_TEST_PREFIX")
        .map(PathBuf::from)
        .expect("run the tests by `cargo xtask test`, which sets BH_TEST_PREFIX")
}

/// Compiles an example to a program in the temporary directory.
fn compile(example: &str, purpose: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(format!("{example}.c"));
    let program = std::env::temp_dir().join(format!("bh-{purpose}-{example}-{}", std::process::id()));
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
    program
}

/// Rayon's queues free memory that threads dropped only when no thread can still see it (crossbeam's epochs). Each
/// thread's entry in their list stays reachable, but through interior pointers, which memcheck reports as "possibly
/// lost".
const PLACES_OF_THREADS: &str = "{
   the places of rayon's threads in the list of crossbeam's epochs
   Memcheck:Leak
   match-leak-kinds: possible
   ...
   fun:*crossbeam_epoch*Collector*register*
   ...
}
";

/// Runs an example under memcheck with small sizes; returns its output.
fn check(example: &str, arguments: &[&str]) -> String {
    let program = compile(example, "memcheck");
    let suppressions = program.with_extension("supp");
    std::fs::write(&suppressions, PLACES_OF_THREADS).unwrap();
    let output = Command::new("valgrind")
        .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
        .args(["--show-leak-kinds=definite,indirect,possible", "--errors-for-leak-kinds=definite,indirect,possible"])
        .arg(format!("--suppressions={}", suppressions.display()))
        .arg(&program)
        .args(arguments)
        .output()
        .expect("valgrind is installed");
    // Best effort: the files are in the temporary directory.
    let _ = std::fs::remove_file(&program);
    let _ = std::fs::remove_file(&suppressions);
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

#[test]
fn the_profile_shows_where_the_time_went() {
    let program = compile("heat", "profile");
    let output = Command::new(prefix().join("bin/bh"))
        .args(["run", "--profile", "--"])
        .arg(&program)
        .args(["200", "20"])
        .output()
        .expect("bh is installed");
    // Best effort: the program is in the temporary directory.
    let _ = std::fs::remove_file(&program);
    let table = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{table}");
    let row = |name: &str| -> f64 {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in\n{table}"));
        line.split_whitespace().nth(1).and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    };
    for time in ["recorder.record", "recorder.sync", "filter.own", "fuser.own", "ve-cpu.execute"] {
        assert!(row(time) > 0.0, "{time} in\n{table}");
    }
    for count in ["fuser.kernels", "fuser.cache_hits", "memory.allocations", "memory.peak_bytes"] {
        assert!(row(count) > 0.0, "{count} in\n{table}");
    }
}
