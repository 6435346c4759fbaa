//! Writes the trace and the statistics periodically while a program runs, for observers.

use crate::services::Services;
use crate::threads::without_signals;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Writing takes at most 1/PARTS of the program's time.
const PARTS: u32 = 20;

/// A thread that writes until this value is dropped.
pub(crate) struct Watch {
    /// Dropped to end the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The process that owns the thread; a forked child has no such thread.
    process: u32,
}

impl Watch {
    /// Writes the trace, and the statistics as JSON to this file, pausing this long in between. `None` if no thread can
    /// be started.
    pub(crate) fn begin(services: Arc<Services>, statistics: Option<PathBuf>, pause: Duration) -> Option<Watch> {
        let (end, ended) = mpsc::channel();
        let work = move || {
            let mut next = pause;
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(next) {
                let begin = Instant::now();
                write(&services, statistics.as_deref());
                next = pause.max(begin.elapsed() * PARTS);
            }
        };
        let thread = without_signals(|| std::thread::Builder::new().name("bh-watch".into()).spawn(work)).ok()?;
        Some(Watch { end: Some(end), thread: Some(thread), process: std::process::id() })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // A forked child has no such thread, which may have held the channel's lock.
            std::mem::forget((self.end.take(), self.thread.take()));
            return;
        }
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Best effort: after a failure the older files stay, and the program reports the error at its end.
fn write(services: &Services, statistics: Option<&Path>) {
    if let Some(trace) = services.trace() {
        let _ = replace(trace.path(), &trace.to_json());
    }
    if let Some(path) = statistics {
        let _ = replace(path, &services.snapshot().to_json());
    }
}

/// Replaces a file atomically, so that nobody reads a part of it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}
