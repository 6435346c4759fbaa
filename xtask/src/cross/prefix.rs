//! A compiler, a linker, libraries and an emulator for AArch64 Linux: Debian's packages, unpacked into a folder under the target
//! directory. Nothing is installed into the system.

use super::TARGET;
use crate::command::{Failure, Outcome, cargo, output, target};
use crate::debian;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// The packages.
const PACKAGES: &str = include_str!("packages.txt");

/// The folder that all is unpacked into.
pub struct Prefix(PathBuf);

impl Prefix {
    /// The folder, filled if it is not yet, or if the list of packages has changed.
    pub fn ready() -> Outcome<Prefix> {
        let prefix = Prefix(target().join("cross/prefix"));
        debian::unpack(PACKAGES, &prefix.0)?;
        prefix.write_programs()?;
        Ok(prefix)
    }

    /// Programs that run those of the prefix with its libraries.
    fn write_programs(&self) -> Outcome {
        let at = self.0.display();
        let with_libraries = format!("LD_LIBRARY_PATH={at}/usr/lib/x86_64-linux-gnu exec {at}/usr/bin");
        self.write_program("rustc", &format!("{with_libraries}/rustc \"$@\""))?;
        self.write_program("clippy-driver", &format!("{with_libraries}/clippy-driver \"$@\""))?;
        self.write_program("linker", &format!("{with_libraries}/aarch64-linux-gnu-gcc --sysroot={at} \"$@\""))?;
        self.write_program("ar", &format!("{with_libraries}/aarch64-linux-gnu-ar \"$@\""))?;
        self.write_program("strip", &format!("{with_libraries}/aarch64-linux-gnu-strip \"$@\""))?;
        // Python calls itself by this file's name, so that the processes that it starts are emulated as well.
        let python = format!("-0 {at}/python {at}/usr/bin/python3.11 \"$@\"");
        self.write_program("python", &format!("PYTHONHOME={at}/usr exec {} {python}", self.emulator()))?;
        // The compiler that tests call.
        fs::create_dir_all(self.0.join("tools"))?;
        self.write_program("tools/cc", &format!("exec {at}/linker \"$@\""))?;
        // This machine's program of the same version, with the places of the other's archives.
        fs::create_dir_all(self.0.join("llvm/bin"))?;
        let line = format!("llvm-config-19 \"$@\" | sed 's,/usr/lib/llvm-19,{at}&,g'");
        self.write_program("llvm/bin/llvm-config", &line)
    }

    fn write_program(&self, name: &str, line: &str) -> Outcome {
        let (file, text) = (self.0.join(name), format!("#!/bin/sh\n{line}\n"));
        // Another run may be using it.
        if fs::read_to_string(&file).is_ok_and(|known| known == text) {
            return Ok(());
        }
        fs::write(&file, text)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).map_err(Failure::from)
    }

    /// The emulator, with the libraries of the other machine.
    fn emulator(&self) -> String {
        let at = self.0.display();
        let libraries = ["usr/lib/aarch64-linux-gnu", "lib/aarch64-linux-gnu", "usr/aarch64-linux-gnu/lib"];
        let libraries = libraries.map(|folder| format!("{at}/{folder}")).join(":");
        format!("{at}/usr/bin/qemu-aarch64-static -L {at}/usr/aarch64-linux-gnu -E LD_LIBRARY_PATH={libraries}")
    }

    /// The line that runs a program of the other machine.
    fn runner(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("/usr/bin/env PATH={}/tools:{path} {}", self.0.display(), self.emulator())
    }

    /// Python of the other machine.
    pub fn python(&self) -> PathBuf {
        self.0.join("python")
    }

    /// The program that takes what debuggers need out of the other machine's files.
    pub fn strip(&self) -> PathBuf {
        self.0.join("strip")
    }

    /// The other machine's library that unwinds the stack.
    pub fn unwinder(&self) -> PathBuf {
        self.0.join("usr/aarch64-linux-gnu/lib/libgcc_s.so.1")
    }

    /// The driver of the compiler's lints.
    pub fn lints(&self) -> PathBuf {
        self.0.join("clippy-driver")
    }

    /// A cargo that builds for the other machine with this compiler and linker, into the folder `target/cross`.
    pub fn cargo(&self) -> Command {
        let mut command = cargo();
        let key = TARGET.to_uppercase().replace('-', "_");
        command.env("RUSTC", self.0.join("rustc"));
        command.env(format!("CARGO_TARGET_{key}_LINKER"), self.0.join("linker"));
        command.env(format!("CARGO_TARGET_{key}_RUNNER"), self.runner());
        command.env("BH_TEST_RUNNER", self.emulator());
        command.env("LLVM_SYS_191_PREFIX", self.0.join("llvm"));
        for (tool, program) in [("CC", "linker"), ("CXX", "linker"), ("AR", "ar")] {
            command.env(format!("{tool}_{}", TARGET.replace('-', "_")), self.0.join(program));
        }
        command.env("CARGO_TARGET_DIR", target().join("cross")).env("CARGO_INCREMENTAL", "0");
        command
    }

    /// The compiler's name and version.
    pub fn compiler(&self) -> Outcome<String> {
        Ok(output(Command::new(self.0.join("rustc")).arg("--version"))?.trim().to_owned())
    }
}
