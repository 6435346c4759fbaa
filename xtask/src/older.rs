//! A linker for systems with an older C library than this one: zig's, which knows the symbols of each version of glibc.

use crate::command::{Failure, Outcome, output, run, target};
use crate::packages;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of glibc that wheels ask for: that of RHEL 8, Debian 10 and Ubuntu 20.04.
const GLIBC: &str = "2.28";

/// The package that brings zig.
const ZIG: &[&str] = &["ziglang==0.17.1"];

/// Functions that LLVM's archives and the libraries of C++ and Rust call, and older systems lack.
const NEWER: &str = include_str!("older.c");

/// Libraries that the crate `llvm-sys` names, as a pattern of the shell.
const UNUSED: &str = "-lffi | -ledit | -ltinfo | -lxml2 | -lz3 | -lz | -lzstd | -lstdc++";

/// The linker for a processor.
pub struct Linker {
    processor: &'static str,
    program: PathBuf,
}

impl Linker {
    /// Installs zig and writes the program that cargo calls. `unwinder` is a libgcc_s.so.1 of the processor, which every system
    /// has: zig would link its own one into each library.
    pub fn ready(processor: &'static str, unwinder: &Path) -> Outcome<Linker> {
        let python = packages::environment("zig", ZIG)?;
        let compiler = format!("{} -m ziglang cc -target {processor}-linux-gnu.{GLIBC}", python.display());
        let folder = target().join("older").join(processor);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("newer.c"), NEWER)?;
        run(Command::new("sh").args(["-c", &format!("{compiler} -O2 -fPIC -c newer.c")]).current_dir(&folder))?;
        let program = folder.join("linker");
        // The unwinder may be newer than the libraries, as each system has one of its own. Libraries that LLVM might call are linked
        // from archives, or not called.
        let text = format!(
            "#!/bin/bash\nwords=()\nfor word; do\n    case $word in\n    -lgcc_s) words+=({}) ;;\n    {UNUSED}) ;;\n    \
             *) words+=(\"$word\") ;;\n    esac\ndone\n\
             exec {compiler} -Wl,--allow-shlib-undefined \"${{words[@]}}\" {}\n",
            unwinder.display(),
            folder.join("newer.o").display(),
        );
        fs::write(&program, text)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        Ok(Linker { processor, program })
    }

    /// The linker for this machine's processor.
    pub fn of_this_machine() -> Outcome<Linker> {
        let unwinder = output(Command::new("cc").arg("-print-file-name=libgcc_s.so.1"))?;
        let unwinder = Path::new(unwinder.trim());
        if !unwinder.is_absolute() {
            return Err(Failure("libgcc_s.so.1 is missing (Debian: libgcc-s1)".into()));
        }
        Linker::ready(std::env::consts::ARCH, unwinder)
    }

    /// Where cargo builds with it: what other linkers linked is not taken for its own.
    pub fn target(&self) -> PathBuf {
        target().join("older")
    }

    /// Has a cargo link with it, and build into that folder.
    pub fn set(&self, cargo: &mut Command) {
        let key = format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_LINKER", self.processor.to_uppercase());
        cargo.env(key, &self.program).env("CARGO_TARGET_DIR", self.target());
    }
}
