//! `cargo xtask opencl-suites [NAME...]`: the suites of the OpenCL engine on the implementations of OpenCL that run on a processor. All
//! but PoCL are unpacked into the target folder; the system keeps its own.

use crate::command::{Failure, Outcome, cargo, run, target};
use crate::packages::{self, FEATURES};
use crate::test::PROFILE;
use crate::{artifacts, debian};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Debian's packages of Oclgrind and rusticl.
const PACKAGES: &str = include_str!("packages.txt");

/// PyPI's packages of Intel's implementation, whose licence is Intel's own.
const INTEL: &[&str] = &["intel-opencl-rt==2026.2.0", "intel-cmplr-lib-rt==2026.2.0", "tbb==2023.2.0", "tcmlib==1.6.0"];

/// All suites: one case of the conformance suite in `STEP`, functions of 20,000 numbers, and so many random programs.
const SUITES: &str = "test(/^suites::/)";
const STEP: &str = "150";
const PROGRAMS: &str = "25";

/// An implementation.
struct Implementation {
    name: &'static str,
    /// The library that the loader of OpenCL loads, in the folder of its packages, or in the system.
    library: &'static str,
    /// The tests that run.
    suites: &'static str,
    /// Further variables of the tests' environment.
    variables: &'static [(&'static str, &'static str)],
}

/// The folders for packages of Debian and of PyPI, in the target folder.
const DEBIAN: &str = "opencl/debian";
const PYPI: &str = "opencl/pypi";

const IMPLEMENTATIONS: &[Implementation] = &[
    Implementation { name: "pocl", library: "libpocl.so.2", suites: SUITES, variables: &[] },
    Implementation { name: "intel", library: "opencl/pypi/lib/libintelocl.so", suites: SUITES, variables: &[] },
    Implementation {
        name: "oclgrind",
        library: "opencl/debian/usr/lib/oclgrind/liboclgrind-rt-icd.so",
        suites: SUITES,
        // Its device is of no kind that others have. Its compiler calls functions that it lacks: one of the absolute value of
        // 16-bit integers, and one that shifts two words, of sin, cos and tan in the form with the same bits everywhere. The compiler
        // ends the process at loops of some random programs (docs/opencl.md).
        variables: &[
            ("BH_TEST_DEVICE", "0"),
            ("BH_TEST_WITHOUT", "absolute,sin,cos,tan"),
            ("BH_TEST_PROGRAMS", "1"),
            ("OCLGRIND_DATA_RACES", "1"),
        ],
    },
    Implementation {
        name: "rusticl",
        library: "opencl/debian/usr/lib/x86_64-linux-gnu/libRusticlOpenCL.so.1",
        // It makes 0 of subnormal results, as OpenCL allows; the other suites expect them.
        suites: "test(/^suites::conforms/)",
        // It has no f64: such kernels run on the CPU engine.
        variables: &[("BH_TEST_STACK", "opencl"), ("RUSTICL_ENABLE", "llvmpipe")],
    },
];

/// Runs the command line.
pub fn run_suites(names: &[String]) -> Outcome {
    let unknown = |name: &&String| IMPLEMENTATIONS.iter().all(|implementation| implementation.name != **name);
    if let Some(name) = names.iter().find(unknown) {
        let known: Vec<&str> = IMPLEMENTATIONS.iter().map(|implementation| implementation.name).collect();
        return Err(Failure(format!("opencl-suites takes {}, not {name}", known.join(", "))));
    }
    packages::ensure(&[("/etc/OpenCL/vendors/pocl.icd", "pocl-opencl-icd"), ("unshare", "util-linux")])?;
    packages::ensure_nextest()?;
    debian::unpack(PACKAGES, &target().join(DEBIAN))?;
    // An environment puts Intel's libraries side by side.
    packages::environment(PYPI, INTEL)?;
    let chosen = IMPLEMENTATIONS.iter().filter(|each| names.is_empty() || names.iter().any(|name| name == each.name));
    let mut failed = Vec::new();
    for implementation in chosen {
        let outcome = implementation.run();
        println!("{}: {}", implementation.name, if outcome.is_ok() { "passed" } else { "failed" });
        if let Err(failure) = outcome {
            eprintln!("xtask: {failure}");
            failed.push(implementation.name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure(format!("failed: {}", failed.join(", ")))) }
}

impl Implementation {
    /// Builds and runs the suites with this implementation alone.
    fn run(&self) -> Outcome {
        let folder = target().join("opencl").join(self.name);
        let _ = fs::remove_dir_all(&folder);
        let (reports, debian) = (folder.join("reports"), target().join(DEBIAN));
        fs::create_dir_all(&reports)?;
        let library = target().join(self.library);
        let library = if library.exists() { library } else { PathBuf::from(self.library) };
        fs::write(folder.join("vendor.icd"), library.as_os_str().as_encoded_bytes())?;
        let libraries = [target().join(PYPI).join("lib"), debian.join("usr/lib/x86_64-linux-gnu")];
        let libraries = std::env::join_paths(libraries).map_err(|error| Failure(error.to_string()))?;
        let crates: Vec<&str> = artifacts::libraries().into_iter().chain([FEATURES]).collect();
        artifacts::build_crates(PROFILE, &crates)?;
        let mut command = cargo();
        command.args(["nextest", "run", "--cargo-profile", PROFILE, "-p", "bh-ve-opencl", "-p", FEATURES]);
        command.args(["-E", self.suites, "--success-output", "immediate"]).env("OCL_ICD_VENDORS", &folder);
        command.env("BH_TEST_OPENCL", "optimised").env("BH_TEST_STEP", STEP).env("BH_TEST_PROGRAMS", PROGRAMS);
        command.envs(self.variables.iter().copied());
        command.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner(&folder, &reports, &debian, &libraries)?);
        run(command.env("BH_TEST_LIBRARIES", target().join(PROFILE)))?;
        // Oclgrind writes down races and wrong accesses.
        for entry in fs::read_dir(&reports)? {
            let file = entry?.path();
            let text = fs::read_to_string(&file)?;
            if !text.trim().is_empty() {
                return Err(Failure(format!("{}: {text}", file.display())));
            }
        }
        Ok(())
    }
}

/// A program that runs tests with the libraries of the implementations. rusticl looks for its own functions in `/usr/lib/clc`: the test
/// has a view of the file system in which the unpacked packages lie over that folder. Oclgrind's reports of each test are a file.
fn runner(folder: &Path, reports: &Path, debian: &Path, libraries: &OsStr) -> Outcome<PathBuf> {
    let (file, packages) = (folder.join("runner"), debian.join("usr/lib"));
    let view = format!("mount -t overlay overlay -o lowerdir={}:/usr/lib /usr/lib", packages.display());
    let reports = reports.display();
    let line = format!("OCLGRIND_LOG={reports}/$$ LD_LIBRARY_PATH={} exec \"$@\"", libraries.display());
    fs::write(&file, format!("#!/bin/sh\nexec unshare --mount sh -c '{view} && {line}' sh \"$@\"\n"))?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    Ok(file)
}
