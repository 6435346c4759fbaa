//! `bh check`: programs whose batches agree with the interpreter, and one that differs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Checks a MiniMatlab program with these environment variables; returns the verdict and the output.
fn check(name: &str, text: &str, variables: &[(&str, &str)]) -> (bool, String) {
    let program = env!("CARGO_BIN_EXE_bh");
    let minimatlab = Path::new(program).with_file_name("minimatlab");
    let built = || Path::new(program).parent().map(Path::to_path_buf).unwrap_or_default();
    let libraries = std::env::var_os("BH_TEST_LIBRARIES").map_or_else(built, PathBuf::from);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("main.m"), text).unwrap();
    let mut command = Command::new(program);
    command.args(["check", "--", minimatlab.to_str().unwrap(), "main.m"]).current_dir(&folder).env("HOME", &folder);
    command.env("BH_LIBRARY_PATH", libraries).env_remove("BH_CONFIG").env_remove("BH_STACK");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_right_program_is_said_to_be_right() {
    let (is_right, text) =
        check("right", "x = ones(30, 4) * 2;\ny = exp(x) + 1;\nprintf('%g\\n', sum(sum(y)));\n", &[]);
    assert!(is_right && text.contains("all as the interpreter has them"), "{text}");
}

#[test]
fn another_rounding_of_sums_is_told_with_its_line() {
    let text = "x = ones(300, 400) * 0.1;\ny = x + 0.2;\nz = y + 0.3;\nprintf('%g\\n', z(1, 1));\n";
    assert!(check("rounding", text, &[]).0);
    let (is_right, told) = check("rounding", text, &[("BH_FILTER_REASSOCIATE", "true")]);
    assert!(!is_right && told.contains("main.m:3: the array that 'add' writes"), "{told}");
}

/// `bh tune` writes a file that serves as weights.
#[test]
fn shares_are_measured_once_and_used() {
    let program = env!("CARGO_BIN_EXE_bh");
    let built = || Path::new(program).parent().map(Path::to_path_buf).unwrap_or_default();
    let libraries = std::env::var_os("BH_TEST_LIBRARIES").map_or_else(built, PathBuf::from);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tune");
    std::fs::create_dir_all(&folder).unwrap();
    let stacks = "[stacks]\ntwo = ['filter', 'cluster', [['fuser', 'node', 've-cpu'], ['node', 've-interp']]]\n";
    std::fs::write(folder.join("two.toml"), stacks).unwrap();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&folder).env("BH_LIBRARY_PATH", &libraries).env_remove("BH_STACK");
        command.env("BH_CONFIG", folder.join("two.toml")).envs(variables.iter().copied());
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let (done, text) = run(&["tune", "--stack", "two", "--write", "shares"], &[]);
    assert!(done && text.contains("BH_CLUSTER_WEIGHTS=shares"), "{text}");
    let written = std::fs::read_to_string(folder.join("shares")).unwrap();
    let rates = |line: &str| line.split_once(": ").unwrap().1.split(", ").map(|rate| rate.parse().unwrap()).collect();
    let rates: Vec<Vec<f64>> = written.lines().filter(|line| !line.starts_with('#')).map(rates).collect();
    // The interpreter is much slower than the engine at each kind of work.
    let [engine, interpreter] = &rates[..] else { panic!("{written}") };
    assert!(engine.len() == 5 && engine.iter().zip(interpreter).take(4).all(|(a, b)| *b < a / 2.0), "{written}");
    let (_, text) = run(&["info"], &[("BH_CLUSTER_WEIGHTS", "shares")]);
    let shown = format!("{:.1}%", 100.0 * engine[0] / (engine[0] + interpreter[0]));
    assert!(text.contains(&format!("cluster: 2 ranks, shares {shown}")), "{text}");
    let (done, text) = run(&["tune", "--stack", "cpu"], &[("BH_CONFIG", "")]);
    assert!(!done && text.contains("shares nothing out"), "{text}");
}

#[test]
fn a_program_that_cannot_be_started_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_bh")).args(["check", "--", "/nonexistent"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("'/nonexistent' cannot be started"));
}
