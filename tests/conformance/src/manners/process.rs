//! State of the whole process, compared before and after.

use super::Findings;
use std::path::PathBuf;
use std::time::Duration;

/// How often to check whether threads have ended after their engine. A count instead of a time, because loaded machines
/// may stop processes.
const LOOKS: usize = 500;

/// State that an engine must not change.
pub(super) struct State {
    threads: usize,
    directory: Option<PathBuf>,
    /// The signals with handlers, and the ignored ones, as masks.
    signals: Option<(u64, u64)>,
    locale: String,
}

impl State {
    pub(super) fn now() -> State {
        State { threads: threads(), directory: std::env::current_dir().ok(), signals: signals(), locale: locale() }
    }

    /// Records the differences to the present state.
    pub(super) fn compare(&self, findings: &mut Findings) {
        for _ in 0..LOOKS {
            if threads() <= self.threads {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let after = State::now();
        if after.threads > self.threads {
            findings.fault(format!("{} threads are left when the engine has ended", after.threads - self.threads));
        }
        if after.directory != self.directory {
            findings.fault("the working directory of the process has changed");
        }
        if after.signals != self.signals {
            findings.fault("the signal handlers of the process have changed");
        }
        if after.locale != self.locale {
            findings.fault("the locale of the process has changed");
        }
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

/// The lines of `/proc/self/status` with this name.
fn status(name: &str) -> Option<String> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

fn signals() -> Option<(u64, u64)> {
    // Signals 32 and 33 belong to the C library, for threads.
    let mask = |name| Some(u64::from_str_radix(&status(name)?, 16).ok()? & !(3 << 31));
    Some((mask("SigCgt")?, mask("SigIgn")?))
}

/// The process's resident memory in bytes.
pub(super) fn resident() -> Option<u64> {
    Some(status("VmRSS")?.split(' ').next()?.parse::<u64>().ok()? << 10)
}

fn locale() -> String {
    // SAFETY: a query with a null locale; the text lives until the locale changes, which nothing does here.
    unsafe {
        let name = libc::setlocale(libc::LC_ALL, std::ptr::null());
        if name.is_null() { String::new() } else { std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned() }
    }
}
