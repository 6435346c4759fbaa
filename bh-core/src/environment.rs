//! Environment variables, ignored in privileged processes.

use std::ffi::OsString;

/// Whether the process has more rights than its user (for example setuid). It must not trust the environment then.
#[cfg(target_os = "macos")]
pub fn privileged() -> bool {
    // SAFETY: `issetugid` has no arguments and always succeeds.
    unsafe { libc::issetugid() != 0 }
}

/// As above.
#[cfg(not(target_os = "macos"))]
pub fn privileged() -> bool {
    // SAFETY: `getauxval` takes a number and returns one.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The value of a variable; `None` if it is unset, empty or not UTF-8, or the process is privileged.
pub fn variable(name: &str) -> Option<String> {
    variable_os(name).and_then(|value| value.into_string().ok())
}

/// As [`variable`], for paths.
pub fn variable_os(name: &str) -> Option<OsString> {
    if privileged() {
        return None;
    }
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// All variables whose names begin with `BH_`; none if the process is privileged.
pub fn bh_variables() -> Vec<(String, String)> {
    if privileged() {
        return Vec::new();
    }
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text).filter(|(name, _)| name.starts_with("BH_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::process::Command;

    /// Code that reads the environment directly would skip the check for privileges.
    #[test]
    fn the_environment_is_read_here_alone() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let crates = ["bh-", "bh-ve-cpu/"].iter().flat_map(|prefix| {
            let (folder, start) = prefix.rsplit_once('/').unwrap_or(("", prefix));
            let start = start.to_owned();
            let entries = std::fs::read_dir(root.join(folder)).unwrap().flatten();
            entries.filter(move |entry| entry.file_name().to_string_lossy().starts_with(&start))
        });
        let mut folders: Vec<_> = crates.map(|entry| entry.path().join("src")).filter(|path| path.is_dir()).collect();
        let mut files = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs")
                    && !path.ends_with("environment.rs")
                {
                    let text = std::fs::read_to_string(&path).unwrap();
                    assert!(!text.contains("env::var") && !text.contains("getenv"), "{}", path.display());
                    files += 1;
                }
            }
        }
        assert!(files > 200);
    }

    /// Run by the test below in a process with more rights than its user.
    #[test]
    fn reports_what_it_sees() {
        println!(
            "privileged: {}, seen: {}",
            privileged(),
            variable("BH_CONFIG").is_some() || !bh_variables().is_empty()
        );
    }

    #[test]
    fn privileged_processes_ignore_the_environment() {
        // SAFETY: `geteuid` has no arguments and always succeeds.
        if unsafe { libc::geteuid() } != 0 {
            println!("skipped: only root can give a program to another user");
            return;
        }
        let program = std::env::temp_dir().join(format!("bh-privileged-{}", std::process::id()));
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let run = || {
            let arguments = ["environment::tests::reports_what_it_sees", "--exact", "--nocapture"];
            let output = Command::new(&program).args(arguments).env("BH_CONFIG", "/tmp/x.toml").output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let plain = run();
        chown(&program, Some(65534), Some(65534)).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
        let privileged = run();
        std::fs::remove_file(&program).unwrap();
        assert!(plain.contains("privileged: false, seen: true"), "{plain}");
        assert!(privileged.contains("privileged: true, seen: false"), "{privileged}");
    }
}
