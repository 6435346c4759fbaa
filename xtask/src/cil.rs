//! The .NET library: built and tested with Debian's Mono.

use crate::command::{Outcome, root, run, target};
use crate::packages;
use std::path::Path;
use std::process::Command;

/// Programs and assemblies the build needs, with the Debian packages that have them.
const NEEDED: &[(&str, &str)] = &[
    ("mcs", "mono-mcs"),
    ("mono", "mono-runtime"),
    ("/usr/lib/mono/4.5/System.Core.dll", "libmono-system-core4.0-cil"),
    ("/usr/lib/mono/4.5/System.Numerics.dll", "libmono-system-numerics4.0-cil"),
];

/// Installs what the library needs.
pub fn ensure_packages() -> Outcome {
    packages::ensure(NEEDED)
}

/// Checks that what is generated is current, builds the library with its tests, and runs them against what was built under a
/// cargo profile; then compares the papers' programs, in .NET and in MiniMatlab, with their C++ versions.
pub fn test(profile: &str, prefix: &Path) -> Outcome {
    ensure_packages()?;
    let (libraries, out) = (target().join(profile), target().join("cil").join(profile));
    let mut tests = Command::new(root().join("bh-bridge-cil/tests/run"));
    run(tests.arg(&libraries).arg(&out).current_dir(root()).env("PYTHONDONTWRITEBYTECODE", "1"))?;
    let mut fronts = Command::new("python3");
    fronts.arg(root().join("benches/fronts.py")).arg(&libraries).arg(&out).arg("--check").arg("--prefix").arg(prefix);
    run(&mut fronts)
}
