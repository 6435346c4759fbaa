//! Links LLVM's code generator for the target's architecture into the library, from LLVM's archives, so that users need no LLVM.

use std::path::Path;
use std::process::Command;

/// Debian's name, and what others call it; `LLVM_SYS_191_PREFIX` names an LLVM of one's own, as for the crate `llvm-sys`.
const NAMES: [&str; 2] = ["llvm-config-19", "llvm-config"];

/// Libraries that the archives may need for compressed sections. Their checker of manifests for Windows (libxml2) and
/// their theorem prover (z3) are never called, and the linker leaves them out.
const COMPRESSION: [&str; 2] = ["z", "zstd"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=LLVM_SYS_191_PREFIX");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let generator = match variable("CARGO_CFG_TARGET_ARCH").as_str() {
        "x86_64" => "x86",
        "aarch64" => "aarch64",
        other => panic!("the kernel compiler has no level of instructions for {other}"),
    };
    // The target's compiler of C++, named as for the crate `cc`.
    let named = format!("CXX_{}", variable("TARGET").replace('-', "_"));
    println!("cargo:rerun-if-env-changed={named}");
    let compiler = std::env::var(&named).unwrap_or("c++".into());
    let config = program();
    let archives = ask(&config, &["--link-static", "--libfiles", generator, "executionengine"]);
    let mut archives: Vec<String> = archives.split_whitespace().map(str::to_owned).collect();
    let wanted = ask(&config, &["--link-static", "--system-libs"]);
    if variable("CARGO_CFG_TARGET_OS") == "macos" {
        // Its linker takes archives in any order and has no `--wrap`; the library of C++ is the system's, the others Homebrew's.
        let libraries = wanted.split_whitespace().chain(["-L/opt/homebrew/lib", "-lc++"]);
        for argument in archives.iter().map(String::as_str).chain(libraries) {
            println!("cargo:rustc-link-arg={argument}");
        }
        return;
    }
    let wants = |name: &&str| wanted.split_whitespace().any(|word| word.strip_prefix("-l") == Some(*name));
    // Code of a C++ compiler calls its library for atomic operations that not all of AArch64's processors have.
    let atomics = (generator == "aarch64").then_some("gcc");
    for name in COMPRESSION.into_iter().filter(wants).chain(["stdc++"]).chain(atomics) {
        let file = ask(&compiler, &[&format!("-print-file-name=lib{name}.a")]);
        assert!(Path::new(&file).is_absolute(), "lib{name}.a is missing (Debian: zlib1g-dev, libzstd-dev, g++)");
        archives.push(file);
    }
    // At the end of the linker's line, after the crate that calls LLVM; archives may need earlier ones.
    for argument in std::iter::once("-Wl,--start-group").chain(archives.iter().map(String::as_str)) {
        println!("cargo:rustc-link-arg={argument}");
    }
    println!("cargo:rustc-link-arg=-Wl,--end-group");
    // Functions that LLVM registers for the end of the process go to a function of ours: see `src/statics.rs`.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap=__cxa_atexit");
    // A component of LLVM's that is missing here is an error of the linker, not of the loader.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
}

/// The program that knows LLVM 19's places.
fn program() -> String {
    let own = std::env::var("LLVM_SYS_191_PREFIX").map(|prefix| format!("{prefix}/bin/llvm-config"));
    let names = NAMES.map(str::to_owned);
    let fits = |name: &String| {
        let output = Command::new(name).arg("--version").output();
        output.is_ok_and(|output| output.stdout.starts_with(b"19."))
    };
    own.into_iter().chain(names).find(fits).expect("LLVM 19 is missing (Debian: llvm-19-dev, libzstd-dev)")
}

fn ask(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let line = format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{line}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
