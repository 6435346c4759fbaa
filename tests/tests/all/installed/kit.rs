//! The engine kit: its templates build outside of the repository with the installation alone, and conform.

use super::support::{Scratch, attempt, command, copy_tree, prefix, run};
use std::path::Path;
use std::process::Command;

/// A template from the installation, copied to a user's place.
fn template(scratch: &Scratch, name: &str) -> std::path::PathBuf {
    let directory = scratch.path().join(name);
    copy_tree(&prefix().join("share/bh/engine-kit").join(name), &directory);
    directory
}

fn make(directory: &Path, targets: &[&str]) -> Command {
    let mut make = command("make");
    make.arg(format!("BH_PREFIX={}", prefix().display())).args(targets).current_dir(directory);
    make
}

/// Checks the numbers in the output of `bh check-engine`.
fn assert_conforms(report: &str) {
    for stack in ["alone: ok, ", "over-cpu: ok, "] {
        let cases: u32 = report
            .split_once(stack)
            .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("no line '{stack}…' in:\n{report}"));
        assert!(cases > 1000, "{report}");
    }
}

#[test]
fn the_engine_in_c_conforms() {
    let scratch = Scratch::new("kit-c");
    let directory = template(&scratch, "c");
    assert_conforms(&run(&mut make(&directory, &["check"])));
    // 1 + √2 + √5 + √10: the kit's engine multiplies and adds, the engine below computes roots and sums.
    let printed = run(&mut make(&directory, &["run"]));
    assert!(printed.contains("sum 7.812559"), "{printed}");
    assert!(!printed.contains(" 0 instructions on the kit's engine"), "{printed}");
}

#[test]
fn the_device_in_c_conforms() {
    let scratch = Scratch::new("kit-device");
    let directory = template(&scratch, "device-c");
    // The value suites run in full on the other templates.
    let cases = ["start", "supports", "registry", "data", "failures", "memory", "contexts"];
    let cases: String = cases.iter().map(|case| format!(" --case {case}")).collect();
    let report = run(&mut make(&directory, &["check", &format!("CASES={cases}")]));
    assert!(report.contains("registry: ok") && report.contains("contexts: ok"), "{report}");
    let printed = run(&mut make(&directory, &["run"]));
    assert!(printed.contains("sum 7.812559"), "{printed}");
    assert!(!printed.contains(" 0 instructions on the kit's engine"), "{printed}");
}

#[test]
fn the_engine_in_c_has_at_most_150_lines() {
    let text = std::fs::read_to_string(prefix().join("share/bh/engine-kit/c/engine.c")).unwrap();
    assert!(text.lines().count() <= 150, "{} lines", text.lines().count());
}

#[test]
fn the_engine_in_c_builds_with_cmake_and_strict_compilers() {
    let scratch = Scratch::new("kit-cmake");
    let directory = template(&scratch, "c");
    let prefix = prefix();
    let mut configure = command("cmake");
    configure.args(["-B", "build", "."]).arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    run(configure.current_dir(&directory));
    run(command("cmake").args(["--build", "build"]).current_dir(&directory));
    let printed = run(command(directory.join("build/demo")).env("BH_CONFIG", directory.join("config.toml")));
    assert!(printed.contains("sum 7.812559"), "{printed}");
    for compiler in ["gcc", "clang"] {
        let mut command = command(compiler);
        command.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"]);
        run(command.arg(prefix.join("include")).arg(directory.join("engine.c")));
    }
}

#[test]
fn the_engine_in_rust_conforms() {
    let scratch = Scratch::new("kit-rust");
    let directory = template(&scratch, "rust");
    // The required crates were fetched to build bh; built files stay for the next run.
    let mut make = make(&directory, &["CARGOFLAGS=--offline", "check"]);
    make.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("kit-rust"));
    make.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0").env_remove("RUSTFLAGS");
    make.env("CARGO", env!("CARGO"));
    assert_conforms(&run(&mut make));
}

#[test]
fn the_filter_in_c_sees_every_batch() {
    let scratch = Scratch::new("kit-filter");
    let directory = template(&scratch, "filter-c");
    run(&mut make(&directory, &["check"]));
    let demo = template(&scratch, "c");
    run(&mut make(&demo, &["demo"]));
    let mut program = command(demo.join("demo"));
    program.env("BH_CONFIG", directory.join("config.toml")).env("BH_LOG", "info");
    let (ended, printed, log) = attempt(&mut program);
    assert!(ended && printed.contains("sum 7.812559"), "{printed}\n{log}");
    assert!(log.contains("count: a batch of "), "{log}");

    let mut program = command(demo.join("demo"));
    program.env("BH_CONFIG", directory.join("config.toml")).env("BH_COUNT_LOG_EVERY", "never");
    let (ended, _, errors) = attempt(&mut program);
    assert!(!ended && errors.contains("'log_every'"), "{errors}");
}

#[test]
fn the_method_in_c_runs_on_views() {
    let scratch = Scratch::new("kit-method");
    let directory = template(&scratch, "method-c");
    let printed = run(&mut make(&directory, &["run"]));
    assert!(printed.ends_with("[1.5 5.5 5.5 8.5 8.5]\n[3. 8. 8. 8. 8.]\n"), "{printed}");
}
