//! Environment variables, ignored in privileged processes.

use std::ffi::OsString;

/// Does the process have more rights than its user (setuid and the like)? Then the environment is not to be trusted.
pub fn privileged() -> bool {
    // SAFETY: a plain system query.
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
