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

/// Checks that what is generated is current, builds the library, its tests and its examples, and runs them against what was
/// built under a cargo profile and installed in `prefix`.
pub fn test(profile: &str, prefix: &Path) -> Outcome {
    packages::ensure(NEEDED)?;
    let mut tests = Command::new(root().join("bh-bridge-cil/tests/run"));
    tests.arg(target().join(profile)).arg(target().join("cil").join(profile)).arg(prefix);
    run(tests.current_dir(root()).env("PYTHONDONTWRITEBYTECODE", "1"))
}
