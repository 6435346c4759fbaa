//! The C++ header against an installed bh: its tests with every compiler and standard and under sanitizers, code that
//! must not compile, and every example with its result checked by NumPy.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const STRICT: &[&str] = &["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// The installation under test; `cargo xtask test` names it.
fn prefix() -> PathBuf {
    let prefix =
        std::env::var_os("BH_TEST_PREFIX").expect("BH_TEST_PREFIX names an installed bh; try `cargo xtask test`");
    PathBuf::from(prefix)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A new directory for a test's files.
fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("bh-cpp-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn succeeded(what: &str, output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}: {}\n{out}\n{err}", output.status);
    out.into_owned()
}

/// Compiles a source file to a program.
fn compile(compiler: &[&str], source: &Path, program: &Path) {
    let (include, library) = (prefix().join("include"), prefix().join("lib"));
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(STRICT).arg("-I").arg(include).arg(source).arg("-o").arg(program);
    command.arg("-L").arg(&library).args(["-lbh_bridge_c", "-lm", "-pthread"]);
    command.arg(format!("-Wl,-rpath,{}", library.display()));
    succeeded(&format!("{compiler:?} {}", source.display()), &command.output().unwrap());
}

/// A command that runs a program with the installed configuration, ignoring the user's own.
fn program(path: &Path) -> Command {
    let mut command = Command::new(path);
    command.env("BH_CONFIG", prefix().join("share/bh/config.toml")).env_remove("BH_STACK");
    command
}

fn unit_tests(name: &str, compiler: &[&str], source: &str, environment: &[(&str, String)]) {
    let directory = scratch(name);
    let tests = directory.join("tests");
    compile(compiler, &root().join("tests/cpp").join(source), &tests);
    let text = succeeded(name, &program(&tests).envs(environment.iter().cloned()).output().unwrap());
    assert!(text.contains("Status: SUCCESS!"), "{text}");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn unit_tests_with_gcc_in_cpp17() {
    unit_tests("gcc17", &["g++", "-std=c++17"], "all.cpp", &[]);
}

#[test]
fn unit_tests_with_gcc_in_cpp20() {
    unit_tests("gcc20", &["g++", "-std=c++20"], "all.cpp", &[]);
}

#[test]
fn unit_tests_with_clang_in_cpp17() {
    unit_tests("clang17", &["clang++", "-std=c++17"], "all.cpp", &[]);
}

#[test]
fn unit_tests_with_clang_in_cpp20() {
    unit_tests("clang20", &["clang++", "-std=c++20"], "all.cpp", &[]);
}

/// Address, leak and undefined-behaviour sanitizers.
const SANITIZED: &[&str] = &["g++", "-std=c++17", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

#[test]
fn unit_tests_under_sanitizers_of_addresses_leaks_and_undefined_behaviour() {
    unit_tests("asan", SANITIZED, "all.cpp", &[("ASAN_OPTIONS", "detect_leaks=1".into())]);
}

/// The leak checker works: it finds a leak.
#[test]
fn examples_leak_nothing() {
    let directory = scratch("leaks");
    let leaking = directory.join("leaking.cpp");
    std::fs::write(&leaking, "#include <bh.hpp>\nint main() { bh::ones({9}); new int *volatile(new int(7)); }\n")
        .unwrap();
    let example = root().join("examples/nbody.cpp");
    for (source, leaks) in [(&leaking, true), (&example, false)] {
        let built = directory.join("program");
        compile(SANITIZED, source, &built);
        let output = program(&built).args(["20", "2"]).env("ASAN_OPTIONS", "detect_leaks=1").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(errors.contains("LeakSanitizer: detected"), leaks, "{}: {errors}", source.display());
        assert_eq!(output.status.success(), !leaks, "{errors}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn threads_under_the_thread_sanitizer() {
    let suppressions = root().join("tests/cpp/threads.supp");
    let options = format!("halt_on_error=1 suppressions={}", suppressions.display());
    let compiler = ["g++", "-std=c++17", "-g", "-O1", "-fsanitize=thread"];
    unit_tests("tsan", &compiler, "threads.cpp", &[("TSAN_OPTIONS", options)]);
}

#[test]
fn mistakes_are_refused_when_compiling_with_a_hint() {
    for (file, hint) in [
        ("traced_if.cpp", "bh::where"),
        ("traced_choice.cpp", "bh::where"),
        ("array_if.cpp", "bh::where"),
        ("complex_to_real.cpp", "bh::real"),
        ("selection_renamed.cpp", "x.fill(value)"),
        ("task_with_state.cpp", "keeps no state"),
    ] {
        for compiler in ["g++", "clang++"] {
            let source = root().join("tests/cpp/fail").join(file);
            let include = prefix().join("include");
            let mut command = Command::new(compiler);
            command.args(["-std=c++17", "-fsyntax-only", "-I"]).arg(include).arg(source);
            let output = command.output().unwrap();
            assert!(!output.status.success(), "{compiler} accepts {file}");
            let text = String::from_utf8_lossy(&output.stderr);
            let stated = text.lines().any(|line| line.contains("static") && line.contains(hint));
            assert!(stated, "{compiler}, {file}: no static assertion names {hint}:\n{text}");
        }
    }
}

/// The names of macros defined after including a header.
fn macros(include: &str, language: &str) -> Vec<String> {
    let file = scratch("macros").join(format!("macros-{language}"));
    std::fs::write(&file, format!("#include <{include}>\n")).unwrap();
    let mut command = Command::new("g++");
    command.args(["-x", language, "-dM", "-E", "-I"]).arg(prefix().join("include")).arg(&file);
    let text = succeeded("preprocessing", &command.output().unwrap());
    text.lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .map(|name| name.split('(').next().unwrap_or(name).to_owned())
        .collect()
}

#[test]
fn the_cpp_header_leaves_no_macros_behind() {
    let of_c = macros("bh.h", "c");
    let of_cpp = macros("bh.hpp", "c++");
    let ours = |name: &&String| name.to_lowercase().starts_with("bh");
    let left: Vec<&String> = of_cpp.iter().filter(ours).filter(|name| !of_c.contains(name)).collect();
    assert!(left.is_empty(), "{left:?}");
    // Nor the C header's macros that wrap functions.
    assert!(!of_cpp.iter().any(|name| name == "bh_add"));
}

/// Compiles and runs an example, and checks its output and files with NumPy.
fn example(file: &str, compiler: &[&str], arguments: &[&str]) {
    let directory = scratch(file);
    let built = directory.join("example");
    compile(compiler, &root().join("examples").join(file), &built);
    let output = program(&built).args(arguments).current_dir(&directory).output().unwrap();
    let text = succeeded(file, &output);
    std::fs::write(directory.join("output"), text).unwrap();
    let mut check = python();
    check.arg(root().join("tests/cpp/examples.py")).arg(file).arg(&directory).args(arguments);
    check.stdin(Stdio::from(std::fs::File::open(directory.join("output")).unwrap()));
    succeeded(file, &check.output().unwrap());
    std::fs::remove_dir_all(directory).unwrap();
}

fn python() -> Command {
    Command::new(std::env::var_os("BH_TEST_PYTHON").unwrap_or_else(|| "python3".into()))
}

/// Random programs over whole arrays, their parts, masks and reductions. `BH_TEST_PROGRAMS` sets their number.
#[test]
fn random_programs_print_what_numpy_prints() {
    let directory = scratch("random");
    let built = directory.join("random");
    compile(&["g++", "-std=c++17"], &root().join("tests/cpp/random_programs.cpp"), &built);
    let programs = std::env::var("BH_TEST_PROGRAMS").unwrap_or_else(|_| "600".into());
    for kind in ["int64", "double"] {
        let mut check = python();
        check.env("BH_CONFIG", prefix().join("share/bh/config.toml")).env_remove("BH_STACK");
        check.arg(root().join("tests/cpp/random_programs.py")).arg(&built).args([kind, "0", &programs]);
        let text = succeeded("random_programs.py", &check.output().unwrap());
        assert!(text.contains("print what NumPy prints"), "{text}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

/// Lines of code, without empty ones and comments.
fn code(text: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn the_heat_program_is_no_longer_than_the_papers() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let paper = read("tests/cpp/paper.inc");
    let printed = paper.split_once("namespace printed {").unwrap().1.split_once("} // namespace printed").unwrap().0;
    // As printed in the paper: with its include, without the missing return.
    let figure = code(printed) + 1 - printed.matches("return").count();
    assert_eq!(figure, 16);
    let ours = read("examples/heat.cpp");
    // The paper's program would also need the main function and its headers.
    let (solver, _) = ours.split_once("int main(").unwrap();
    let of_main = solver.lines().filter(|line| line.starts_with("#include <") && !line.contains("bh.hpp")).count();
    assert!(code(solver) - of_main <= figure, "{} lines, but the paper's program has {figure}", code(solver) - of_main);
}

const C: &[&str] = &["cc", "-std=c99", "-O1"];
const CPP: &[&str] = &["g++", "-std=c++17"];

#[test]
fn heat_in_c() {
    example("heat.c", C, &["60", "50", "field"]);
}

#[test]
fn black_scholes_in_c() {
    example("black_scholes.c", C, &["5000", "3"]);
}

#[test]
fn heat_in_cpp() {
    example("heat.cpp", CPP, &["60", "50"]);
}

#[test]
fn black_scholes_in_cpp() {
    example("black_scholes.cpp", CPP, &["5000", "3"]);
}

#[test]
fn shallow_water_in_cpp() {
    example("shallow_water.cpp", CPP, &["40", "20"]);
}

#[test]
fn nbody_in_cpp() {
    example("nbody.cpp", CPP, &["60", "5"]);
}

#[test]
fn game_of_life_in_cpp() {
    example("game_of_life.cpp", CPP, &["40", "20", "picture.pgm"]);
}

#[test]
fn descent_in_cpp() {
    example("descent.cpp", CPP, &["60", "20"]);
}

#[test]
fn lu_in_cpp() {
    example("lu.cpp", CPP, &["30"]);
}
