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

/// Machines without OpenCL leave this out, and say so.
#[test]
fn arrays_and_opencl_buffers_take_each_others_place() {
    let home = std::env::temp_dir().display().to_string();
    // Drivers run a linker.
    let environment = [("HOME", home.as_str()), ("PATH", "/usr/bin:/bin"), ("BH_OPENCL_CACHE_DIR", "")];
    let printed = run(C99, "tests/c/opencl.c", "opencl", &[], &environment);
    println!("{printed}");
    assert!(["done\n", "left out\n"].contains(&printed.as_str()), "{printed}");
}

#[test]
fn checks_find_what_they_look_for() {
    run(C99, "tests/c/check.c", "check", &[], &[]);
}

#[test]
fn gradients_of_a_stretch() {
    run(C99, "tests/c/gradient.c", "gradient", &[], &[]);
}

#[test]
fn wrong_arguments() {
    run(C99, "tests/c/bad.c", "bad", &[], &[]);
}

#[test]
fn bytes_of_results_do_not_wrap() {
    run(C99, "tests/c/huge.c", "huge", &[], &[]);
}

#[test]
fn threads_fork_and_exit() {
    run(C99, "tests/c/process.c", "process", &[], &[]);
}

/// Threads are in the midst of everything when the process forks: kernels compile, statistics, trace and log are written.
#[test]
fn forks_find_no_lock_taken() {
    let folder = std::env::temp_dir().join(format!("bh-forks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    let (trace, statistics) = (file("trace.json"), file("statistics.json"));
    let watched = [("BH_TRACE", &*trace), ("BH_STATS", &*statistics), ("BH_WATCH", "0.001"), ("BH_LOG", "debug")];
    let uncached = [("BH_VE_CPU_JIT_CACHE_DIR", "")];
    for environment in [&uncached[..], &[&uncached[..], &watched].concat()] {
        run(C99, "tests/c/forks.c", "forks", &[], environment);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// All memory that the library allocated is freed, or still known to it, when the program ends.
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
    let compiler = libraries().join("libbh_ve_cpu_jit.so").exists();
    let arguments: &[&str] = if compiler { &[] } else { &["without"] };
    run(C99, "tests/c/exit.c", "exit", arguments, &nowhere);
}

/// Failures while a thread or the process ends, ends from inside of the library, and cancelled threads.
#[test]
fn ends_of_threads_and_processes_neither_hang_nor_abort() {
    for (eager, stack) in [("0", "cpu"), ("1", "cpu-plain")] {
        run(C99, "tests/c/ends.c", &format!("ends-{stack}"), &[], &[("BH_STACK", stack), ("BH_EAGER", eager)]);
    }
}

/// The end of a process waits for the thread that is inside the compiler. While the compiler's library is being loaded only
/// the main thread can wait.
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
    let phases = [("load", &[][..]), ("compile", &[]), ("compile", &["thread"]), ("end", &["compiler"])];
    for (slow, arguments) in phases {
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
        let _ = std::fs::remove_file(&inside);
    }
    std::fs::remove_dir_all(directory).unwrap();
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

/// A program with the injector preloaded; its exit code and output, within a time limit.
fn injected(
    program: &Path,
    injector: &Path,
    directory: &Path,
    what: Option<&str>,
    phase: &str,
) -> (Option<i32>, String) {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "600"]).arg(program).arg(directory).arg(phase);
    command.env_clear().env("BH_LIBRARY_PATH", libraries()).env("BH_VE_CPU_JIT", "off").env("BH_VE_CPU_THREADS", "2");
    command.env("LD_PRELOAD", injector);
    if let Some(what) = what {
        command.env("BH_INJECT", what);
    }
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (output.status.code(), text)
}

/// Calls of the system fail one by one. A sample; with `BH_TEST_ALL` every one of them.
#[test]
fn failing_system_calls_are_errors() {
    let all = std::env::var_os("BH_TEST_ALL").is_some();
    let directory = std::env::temp_dir().join(format!("bh-injected-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (injector, program) = (directory.join("inject.so"), directory.join("injected"));
    let library = libraries().join("libbh_bridge_c.so");
    let versioned = directory.join(concat!("libbh_bridge_c.so.", env!("CARGO_PKG_VERSION_MAJOR")));
    std::os::unix::fs::symlink(&library, versioned).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-fPIC", "-shared", "-o"]).arg(&injector).arg(source("../tests/c/inject.c")).arg("-ldl");
    assert!(compile.status().unwrap().success());
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-g", "-I"]).arg(source("include")).arg("-o").arg(&program);
    compile.arg(source("tests/c/injected.c")).arg(&library).arg(format!("-Wl,-rpath,{}", directory.display()));
    assert!(compile.args(["-lm", "-ldl"]).status().unwrap().success());
    let mut bad = Vec::new();
    let mut runs = 0;
    for phase in ["after", "start"] {
        for kind in ["malloc", "open", "read", "write", "mmap", "dlopen", "pthread_create"] {
            // How many there are, when none fails.
            let (code, text) = injected(&program, &injector, &directory, Some(&format!("{kind}:1000000000")), phase);
            assert_eq!(code, Some(0), "{phase} {kind}: {text}");
            let calls: u64 = text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
            let step = if all { 1 } else { (calls / 7).max(1) };
            for number in (1..=calls).step_by(step as usize) {
                for plus in ["", "+"] {
                    let what = format!("{kind}:{number}{plus}");
                    let (code, text) = injected(&program, &injector, &directory, Some(&what), phase);
                    runs += 1;
                    // Rust's handles of new threads and the linker's data of threads have no reserve: a start that gets
                    // no memory for these ends, and says why.
                    let no_start = phase == "start" && kind == "malloc" && text.contains("memory");
                    if code != Some(0) && !no_start {
                        bad.push(format!("{phase} {what}: {code:?} {}", text.trim_end()));
                    }
                }
            }
        }
    }
    let (code, text) = injected(&program, &injector, &directory, None, "limits");
    assert_eq!(code, Some(0), "limits: {text}");
    std::fs::remove_dir_all(&directory).unwrap();
    println!("{runs} runs with failing calls, {} of them bad", bad.len());
    assert!(bad.is_empty(), "{} of {runs}:\n{}", bad.len(), bad.join("\n"));
}

/// Calls with random arguments. 4,000 of them; with `BH_TEST_ALL` 400,000.
#[test]
fn wrong_calls_are_refused() {
    let seeds = if std::env::var_os("BH_TEST_ALL").is_some() { "1000" } else { "10" };
    let printed = run(C99, "tests/c/wrong.c", "wrong", &["1", seeds], &[]);
    println!("{}", printed.trim_end());
}
