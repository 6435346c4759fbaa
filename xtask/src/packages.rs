//! What the developer commands need from Debian and PyPI, installed if it is missing.

use crate::command::{Failure, Outcome, output, root, run, target};
use std::path::PathBuf;
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

/// Is LLVM there, with which the kernel compiler is built?
pub fn has_llvm() -> bool {
    exists("llvm-config-19")
}

/// Installs LLVM if we may; without it the kernel compiler is neither built nor tested, which is said.
pub fn ensure_llvm() {
    if !has_llvm() && ensure(&[("llvm-config-19", "llvm-19-dev")]).is_err() {
        eprintln!("xtask: without LLVM 19 (Debian package llvm-19-dev) the kernel compiler is left out");
    }
}

/// Arguments for `cargo ... --workspace`: all crates that can be built here.
pub fn workspace() -> Vec<&'static str> {
    if has_llvm() { vec!["--workspace"] } else { vec!["--workspace", "--exclude", COMPILER] }
}

/// Is there such a program on the path (or such a file)?
pub fn exists(program: &str) -> bool {
    if program.starts_with('/') {
        return std::path::Path::new(program).exists();
    }
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// A Python with NumPy and what its tests need: the system's if it has them, else a virtual environment under the target
/// directory.
pub fn python_with_numpy() -> Outcome<PathBuf> {
    let has_numpy = |python: &PathBuf| {
        Command::new(python)
            .args(["-c", "import hypothesis, numpy, pytest"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let system = PathBuf::from("python3");
    if has_numpy(&system) {
        return Ok(system);
    }
    let environment = target().join("python");
    let python = environment.join("bin/python");
    if !has_numpy(&python) {
        if run(Command::new("python3").args(["-m", "venv"]).arg(&environment)).is_err() {
            ensure(&[("/usr/lib/python3/dist-packages/ensurepip", "python3-venv")])?;
            run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        }
        let needed = ["numpy==2.4.6", "pytest==8.4.2", "hypothesis==6.142.1"];
        run(Command::new(&python).args(["-m", "pip", "install", "-q"]).args(needed).current_dir(root()))?;
    }
    Ok(python)
}
