//! The libraries that connect the ranks of a cluster: one for each MPI that is there, each with a target directory of its own.

use crate::artifacts::{self, copy};
use crate::command::{Failure, Outcome, cargo, output, root, run, target};
use crate::older::Linker;
use crate::packages::{ensure, exists};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An implementation of MPI.
pub struct Mpi {
    /// As in the name of bh's library for it.
    pub name: &'static str,
    /// Its compilers: Debian's, and what others call it.
    compilers: [&'static str; 2],
    /// Programs and files that building and testing need, with the Debian packages that have them.
    packages: &'static [(&'static str, &'static str)],
}

/// Those that bh has a library for.
pub const IMPLEMENTATIONS: &[Mpi] = &[
    Mpi {
        name: "openmpi",
        compilers: ["mpicc.openmpi", "mpicc"],
        packages: &[("mpicc.openmpi", "libopenmpi-dev"), ("mpirun.openmpi", "openmpi-bin")],
    },
    Mpi {
        name: "mpich",
        compilers: ["mpicc.mpich", "mpicc"],
        packages: &[("mpicc.mpich", "libmpich-dev"), ("mpirun.mpich", "mpich")],
    },
];

/// The crate of the libraries, which is outside of the workspace.
const SOURCE: &str = "bh-vem-cluster/mpi";

/// Packages beside it that are built otherwise for each MPI.
const OF_ONE_MPI: [&str; 2] = ["mpi-sys", "mpi"];

/// The Debian package of libclang, which the bindings to MPI are made with.
const LIBCLANG: &str = "libclang-14-dev";

impl Mpi {
    /// The compiler for it, if it is there.
    fn compiler(&self) -> Option<&'static str> {
        let [debian, plain] = self.compilers;
        if exists(debian) {
            return Some(debian);
        }
        let line = output(Command::new(plain).arg("-show")).unwrap_or_default();
        let mark = if self.name == "openmpi" { "openmpi" } else { "mpich" };
        (exists(plain) && (line.contains(mark) || line.contains(&format!("-l{}", &mark[..4])))).then_some(plain)
    }

    /// The file of bh's library for it.
    pub fn library(&self) -> String {
        format!("libbh_cluster_{}.so", self.name)
    }

    /// Builds the library, or says why not.
    fn build(&self, linker: Option<&Linker>) -> Result<PathBuf, String> {
        let compiler = self.compiler().ok_or(format!("its compiler is not there (Debian: {})", self.packages[0].1))?;
        if !has_libclang() {
            return Err(format!("libclang is not there (Debian: {LIBCLANG})"));
        }
        let directory = linker.map_or_else(target, Linker::target).join(self.name);
        self.begin_with_another(&directory);
        let mut command = cargo();
        command.args(["build", "--release", "--locked", "--target-dir"]).arg(&directory);
        command.current_dir(root().join(SOURCE)).env("MPICC", compiler);
        if let Some(linker) = linker {
            linker.set(&mut command);
        }
        run(&mut command).map_err(|failure| failure.to_string())?;
        Ok(directory.join("release/libbh_cluster_mpi.so"))
    }

    /// Begins a new target directory with the build for another MPI, most of which (the generator of the bindings) is the same for all.
    fn begin_with_another(&self, directory: &Path) {
        let of_others = IMPLEMENTATIONS.iter().filter(|other| other.name != self.name);
        let built = of_others.map(|other| directory.with_file_name(other.name)).find(|other| other.is_dir());
        let Some(built) = built.filter(|_| !directory.exists()) else { return };
        // With their times, by which cargo knows what is new.
        let copied = run(Command::new("cp").arg("-a").args([&built, directory])).and_then(|()| {
            let mut clean = cargo();
            clean.args(["clean", "--release", "--locked"]).args(OF_ONE_MPI.iter().flat_map(|name| ["-p", name]));
            run(clean.arg("--target-dir").arg(directory).current_dir(root().join(SOURCE)))
        });
        if copied.is_err() {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

/// Is a libclang where the bindings' generator looks for it?
fn has_libclang() -> bool {
    let holds = |directory: &Path| {
        std::fs::read_dir(directory).is_ok_and(|entries| {
            entries.flatten().any(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.starts_with("libclang.so") || name.starts_with("libclang-")
            })
        })
    };
    if let Some(directory) = std::env::var_os("LIBCLANG_PATH") {
        return exists(&directory.to_string_lossy());
    }
    let versions = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let versions = versions.map(|entry| entry.path()).filter(|path| path.to_string_lossy().contains("/llvm"));
    let system =
        ["/usr/lib64", "/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"].map(PathBuf::from);
    versions.map(|path| path.join("lib")).chain(system).any(|directory| holds(&directory))
}

/// Installs what the libraries and their tests need, as far as we may; what is missing is said when they are built.
pub fn ensure_packages() {
    for mpi in IMPLEMENTATIONS {
        // A failure is reported below, when the library is left out.
        let _ = ensure(mpi.packages);
    }
    if !has_libclang() {
        let _ = ensure(&[("/usr/lib/llvm-14/lib/libclang.so", LIBCLANG)]);
    }
}

/// Builds the libraries that can be built here into `directory`, and says which are left out and why. `linker` is another one than
/// this machine's.
pub fn build_into(directory: &Path, linker: Option<&Linker>) -> Outcome {
    std::fs::create_dir_all(directory)?;
    for mpi in IMPLEMENTATIONS {
        match mpi.build(linker) {
            Ok(file) => copy(&file, &directory.join(mpi.library()))?,
            Err(reason) => eprintln!("xtask: the cluster library for {} is left out: {reason}", mpi.name),
        }
    }
    Ok(())
}

/// Runs the command line `build [--profile NAME]`: all that is installed, and the libraries for MPI beside it.
pub fn run_build(arguments: &[String]) -> Outcome {
    let profile = crate::command::option(arguments, "--profile")?.unwrap_or("release");
    let built = artifacts::build(profile, &artifacts::libraries())?;
    build_into(&built, None)?;
    println!("built into {}", built.display());
    Ok(())
}

/// Runs `bench cluster`, whose measurements are scripted for machines that have only an installed bh.
pub fn bench(prefix: &Path, arguments: &[String]) -> Outcome {
    if !IMPLEMENTATIONS.iter().any(|mpi| prefix.join("lib/bh").join(mpi.library()).exists()) {
        return Err(Failure("bench cluster needs an MPI".into()));
    }
    run(Command::new("python3").arg(root().join("benches/cluster.py")).arg("--prefix").arg(prefix).args(arguments))
}
