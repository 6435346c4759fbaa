//! A compiler, a linker, libraries and an emulator for AArch64 Linux: Debian's packages, unpacked into a folder under the target
//! directory. Nothing is installed into the system.

use super::TARGET;
use crate::command::{Failure, Outcome, cargo, output, run, target};
use crate::packages;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages with their versions, as Debian 12 (bookworm, and its security updates) has them. If Debian replaces a version, the
/// download fails and names the package.
const PACKAGES: &[&str] = &[
    // The compiler, and the standard library for both machines.
    "rustc-web=1.96.0+dfsg1-1~deb12u2",
    "libstd-rust-web-1.96=1.96.0+dfsg1-1~deb12u2",
    "libstd-rust-web-dev=1.96.0+dfsg1-1~deb12u2",
    "libstd-rust-web-dev:arm64=1.96.0+dfsg1-1~deb12u2",
    "libllvm22=1:22.1.8-1~deb12u1",
    // The compiler of C, the linker, and C's library.
    "gcc-aarch64-linux-gnu=4:12.2.0-3",
    "gcc-12-aarch64-linux-gnu=12.2.0-14cross1",
    "gcc-12-aarch64-linux-gnu-base=12.2.0-14cross1",
    "cpp-12-aarch64-linux-gnu=12.2.0-14cross1",
    "binutils-aarch64-linux-gnu=2.40-2",
    "libgcc-12-dev-arm64-cross=12.2.0-14cross1",
    "libgcc-s1-arm64-cross=12.2.0-14cross1",
    "libc6-arm64-cross=2.36-8cross1",
    "libc6-dev-arm64-cross=2.36-8cross1",
    "linux-libc-dev-arm64-cross=6.1.4-1cross1",
    "libstdc++6-arm64-cross=12.2.0-14cross1",
    "libatomic1-arm64-cross=12.2.0-14cross1",
    "libasan8-arm64-cross=12.2.0-14cross1",
    "libgomp1-arm64-cross=12.2.0-14cross1",
    // LLVM's archives for the kernel compiler, and what they need.
    "llvm-19-dev:arm64=1:19.1.7-3~deb12u1",
    "libzstd-dev:arm64=1.5.4+dfsg2-5",
    "zlib1g-dev:arm64=1:1.2.13.dfsg-1",
    "libstdc++-12-dev-arm64-cross=12.2.0-14cross1",
    // The emulator, and the libraries that the tests of accuracy compare with.
    "qemu-user-static=1:7.2+dfsg-7+deb12u18+b3",
    "libgmp10:arm64=2:6.2.1+dfsg1-1.1",
    "libmpfr6:arm64=4.2.0-1",
    "libmpc3:arm64=1.3.1-1",
];

/// The lists of sources that apt reads: Debian's own, without those of others, which may have nothing for this machine.
const SOURCES: [&str; 2] = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"];

/// The folder that all is unpacked into.
pub struct Prefix(PathBuf);

impl Prefix {
    /// The folder, filled if it is not yet, or if the list of packages has changed.
    pub fn ready() -> Outcome<Prefix> {
        packages::ensure(&[("apt-get", "apt"), ("dpkg-deb", "dpkg")])?;
        let prefix = Prefix(target().join("cross/prefix"));
        let (mark, list) = (prefix.0.join("packages"), PACKAGES.join("\n"));
        if fs::read_to_string(&mark).is_ok_and(|known| known == list) {
            return Ok(prefix);
        }
        let _ = fs::remove_dir_all(&prefix.0);
        fs::create_dir_all(&prefix.0)?;
        prefix.unpack()?;
        prefix.write_programs()?;
        fs::write(mark, list)?;
        Ok(prefix)
    }

    /// Downloads the packages and unpacks them. apt checks their signatures.
    fn unpack(&self) -> Outcome {
        let apt = target().join("cross/apt");
        let archives = apt.join("archives");
        for folder in ["lists/partial", "cache/archives/partial", "archives"] {
            fs::create_dir_all(apt.join(folder))?;
        }
        let sources = SOURCES.into_iter().find(|path| Path::new(path).exists());
        let sources = sources.ok_or_else(|| Failure(format!("apt has no {}", SOURCES.join(" or "))))?;
        let at = apt.display();
        let settings = format!(
            "Dir::State::Lists \"{at}/lists\";\nDir::Cache \"{at}/cache\";\nDir::Etc::SourceList \"{sources}\";\n\
             Dir::Etc::SourceParts \"-\";\nAPT::Architectures {{ \"amd64\"; \"arm64\"; }};\nAPT::Sandbox::User \"root\";\n"
        );
        fs::write(apt.join("apt.conf"), settings)?;
        let get = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            run(command.arg("-qq").args(arguments).env("APT_CONFIG", apt.join("apt.conf")).current_dir(&archives))
        };
        get(&["update"])?;
        get(&[&["download"], PACKAGES].concat())?;
        for entry in fs::read_dir(&archives)? {
            run(Command::new("dpkg-deb").arg("-x").arg(entry?.path()).arg(&self.0))?;
        }
        fs::remove_dir_all(&archives).map_err(Failure::from)
    }

    /// Programs that run those of the prefix with its libraries.
    fn write_programs(&self) -> Outcome {
        let at = self.0.display();
        let with_libraries = format!("LD_LIBRARY_PATH={at}/usr/lib/x86_64-linux-gnu exec {at}/usr/bin");
        self.write_program("rustc", &format!("{with_libraries}/rustc \"$@\""))?;
        self.write_program("linker", &format!("{with_libraries}/aarch64-linux-gnu-gcc --sysroot={at} \"$@\""))?;
        self.write_program("ar", &format!("{with_libraries}/aarch64-linux-gnu-ar \"$@\""))?;
        // What tests call to compile programs.
        fs::create_dir_all(self.0.join("tools"))?;
        self.write_program("tools/cc", &format!("exec {at}/linker \"$@\""))?;
        // This machine's program of the same version, with the places of the other's archives.
        fs::create_dir_all(self.0.join("llvm/bin"))?;
        let line = format!("llvm-config-19 \"$@\" | sed 's,/usr/lib/llvm-19,{at}&,g'");
        self.write_program("llvm/bin/llvm-config", &line)
    }

    fn write_program(&self, name: &str, line: &str) -> Outcome {
        let file = self.0.join(name);
        fs::write(&file, format!("#!/bin/sh\n{line}\n"))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).map_err(Failure::from)
    }

    /// The line that runs a program of the other machine.
    fn runner(&self) -> String {
        let at = self.0.display();
        let libraries = format!("{at}/usr/lib/aarch64-linux-gnu:{at}/usr/aarch64-linux-gnu/lib");
        let path = std::env::var("PATH").unwrap_or_default();
        format!(
            "/usr/bin/env PATH={at}/tools:{path} {at}/usr/bin/qemu-aarch64-static -L {at}/usr/aarch64-linux-gnu \
             -E LD_LIBRARY_PATH={libraries}"
        )
    }

    /// A cargo that builds for the other machine with this compiler and linker, into the folder `target/cross`.
    pub fn cargo(&self) -> Command {
        let mut command = cargo();
        let key = TARGET.to_uppercase().replace('-', "_");
        command.env("RUSTC", self.0.join("rustc"));
        command.env(format!("CARGO_TARGET_{key}_LINKER"), self.0.join("linker"));
        command.env(format!("CARGO_TARGET_{key}_RUNNER"), self.runner());
        command.env("LLVM_SYS_191_PREFIX", self.0.join("llvm"));
        for (tool, program) in [("CC", "linker"), ("CXX", "linker"), ("AR", "ar")] {
            command.env(format!("{tool}_{}", TARGET.replace('-', "_")), self.0.join(program));
        }
        command.env("CARGO_TARGET_DIR", target().join("cross")).env("CARGO_INCREMENTAL", "0");
        command
    }

    /// What the compiler calls itself.
    pub fn compiler(&self) -> Outcome<String> {
        Ok(output(Command::new(self.0.join("rustc")).arg("--version"))?.trim().to_owned())
    }
}
