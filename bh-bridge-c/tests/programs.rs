//! C programs against the built library: as C99 and as C++, with every warning an error.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where this build's libraries lie: beside the test program.
fn libraries() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.parent().unwrap().to_path_buf()
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compiles a program and runs it with these arguments and environment variables; it must succeed.
fn run(compiler: &[&str], file: &str, name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let directory = std::env::temp_dir().join(format!("bh-bridge-c-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let library = libraries().join("libbh_bridge_c.so");
    // The name that the dynamic linker looks for.
    let versioned = directory.join(concat!("libbh_bridge_c.so.", env!("CARGO_PKG_VERSION_MAJOR")));
    std::os::unix::fs::symlink(&library, &versioned).unwrap();
    let program = directory.join(name);
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-g", "-I"]);
    command.arg(source("include")).arg("-o").arg(&program).arg(source(file)).arg("-x").arg("none").arg(&library);
    command.arg(format!("-Wl,-rpath,{}", directory.display())).args(["-lm", "-lpthread", "-ldl"]);
    let compiled = command.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&program)
        .args(arguments)
        .env_clear()
        .env("BH_LIBRARY_PATH", libraries())
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(output.status.success(), "{name}: {}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

const C99: &[&str] = &["cc", "-std=c99"];
const CPP: &[&str] = &["c++", "-std=c++11", "-Wno-long-long", "-x", "c++"];

#[test]
fn the_interface_from_c99() {
    let printed = run(C99, "tests/c/api.c", "api", &[], &[]);
    assert_eq!(printed, "[[ 1.0e+000 -2.5e+000]\n [ 3.0e+000  1.0e+300]]\n");
}

#[test]
fn the_interface_from_cpp() {
    run(CPP, "tests/c/api.c", "api-cpp", &[], &[]);
}

#[test]
fn the_interface_in_eager_mode() {
    run(C99, "tests/c/api.c", "api-eager", &[], &[("BH_EAGER", "1")]);
}

#[test]
fn the_interface_under_checks() {
    run(C99, "tests/c/api.c", "api-checked", &[], &[("BH_CHECK", "bounds")]);
}

#[test]
fn checks_find_what_they_look_for() {
    run(C99, "tests/c/check.c", "check", &[], &[]);
}

#[test]
fn wrong_arguments() {
    run(C99, "tests/c/bad.c", "bad", &[], &[]);
}

#[test]
fn threads_fork_and_exit() {
    run(C99, "tests/c/process.c", "process", &[], &[]);
}

/// What the library took from the system is given back, or still known to it, when the program ends.
#[test]
fn nothing_leaks() {
    let compiler = ["cc", "-std=c99", "-fsanitize=leak"];
    // Not the one that forks: the checker waits for ever for the threads that a child does not have.
    for program in ["api", "bad", "check"] {
        run(&compiler, &format!("tests/c/{program}.c"), &format!("{program}-leaks"), &[], &[]);
    }
    // The checker itself works here: it finds what a program loses.
    let lost = std::panic::catch_unwind(|| run(&compiler, "tests/c/leak.c", "leak", &[], &[]));
    let text = lost.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("LeakSanitizer") && text.contains("77 byte"), "{text}");
}

#[test]
fn the_library_may_be_closed_at_any_time() {
    let library = libraries().join("libbh_bridge_c.so").display().to_string();
    // Not linked, so that closing it closes it for the last time.
    let compiler = ["cc", "-std=c99", "-Wl,--as-needed"];
    run(&compiler, "tests/c/dlclose.c", "dlclose", &[&library], &[]);
}

/// Each process has no kernels of earlier ones, so that it loads the compiler.
#[test]
fn a_process_may_end_while_kernels_are_compiled() {
    let nowhere = [("BH_STACK", "cpu"), ("BH_VE_CPU_JIT", "auto"), ("BH_VE_CPU_JIT_CACHE_DIR", "/dev/null/nowhere")];
    let compiler = libraries().join("libbh_ve_cpu_jit.so").exists() && has_llvm();
    let arguments: &[&str] = if compiler { &[] } else { &["without"] };
    run(C99, "tests/c/exit.c", "exit", arguments, &nowhere);
}

/// Failures while a thread or the process ends, ends from inside of the library, and cancelled threads.
#[test]
#[ignore = "ends processes at moments that depend on the machine; run it by name"]
fn ends_of_threads_and_processes_neither_hang_nor_abort() {
    for (eager, stack) in [("0", "cpu"), ("1", "cpu-plain")] {
        run(C99, "tests/c/ends.c", &format!("ends-{stack}"), &[], &[("BH_STACK", stack), ("BH_EAGER", eager)]);
    }
}

/// Whoever ends the process waits for the thread that is inside the compiler. While the compiler's library is being loaded
/// only the main thread can.
#[test]
fn the_end_of_a_process_waits_for_the_compiler() {
    let directory = std::env::temp_dir().join(format!("bh-slow-compiler-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (library, inside) = (directory.join("slow.so"), directory.join("inside"));
    let mut command = Command::new("cc");
    command.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library);
    command.arg(format!("-DVERSION={}", bh_jit_abi::VERSION));
    command.arg(format!("-DFINGERPRINT={}u", bh_jit_abi::fingerprint()));
    let compiled = command.arg(source("tests/c/slow_compiler.c")).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    for (slow, arguments) in [("load", &[][..]), ("compile", &[]), ("compile", &["thread"])] {
        let environment = [
            ("BH_STACK", "cpu"),
            ("BH_VE_CPU_JIT", "auto"),
            ("BH_VE_CPU_JIT_CACHE_DIR", ""),
            ("BH_VE_CPU_JIT_LIBRARY", library.to_str().unwrap()),
            ("BH_TEST_SLOW", slow),
            ("BH_TEST_INSIDE", inside.to_str().unwrap()),
        ];
        let name = format!("exit-{slow}-{}", arguments.len());
        run(C99, "tests/c/exit_inside.c", &name, arguments, &environment);
        std::fs::remove_file(&inside).unwrap();
    }
    std::fs::remove_dir_all(directory).unwrap();
}

/// Is there an LLVM that the compiler's library can load?
fn has_llvm() -> bool {
    ["ldconfig", "/sbin/ldconfig"].iter().any(|name| {
        let known = Command::new(name).arg("-p").output();
        known.is_ok_and(|known| String::from_utf8_lossy(&known.stdout).contains("libLLVM.so.19"))
    })
}

/// With glibc's allocator, whose functions the program counts calls of.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn a_running_loop_takes_two_grids_and_allocates_nothing() {
    let gnu = ["cc", "-std=gnu99", "-rdynamic"];
    for threads in ["1", "3"] {
        let environment = [("BH_VE_CPU_THREADS", threads), ("BH_STACK", "cpu"), ("BH_VE_CPU_JIT", "off")];
        let printed = run(&gnu, "tests/c/steady.c", &format!("steady-{threads}"), &[], &environment);
        let mut lines = printed.lines().map(|line| line.split(' ').next().unwrap().parse::<f64>().unwrap());
        let (calls, grids) = (lines.next().unwrap(), lines.next().unwrap());
        assert!(calls < 0.1, "{calls} allocations per turn of the loop, {threads} threads");
        assert!(grids <= 2.1, "{grids} grids at the peak, {threads} threads");
    }
}

#[test]
fn examples_run_on_either_stack() {
    for stack in ["cpu", "cpu-plain"] {
        let printed = run(C99, "../examples/heat.c", "heat", &["100", "10"], &[("BH_STACK", stack)]);
        assert!(printed.contains(stack), "{printed}");
        run(C99, "../examples/black_scholes.c", "black_scholes", &["1000", "3"], &[("BH_STACK", stack)]);
    }
}
