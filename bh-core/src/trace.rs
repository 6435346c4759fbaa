//! A trace of events in the format of Chrome's trace viewer, kept in a bounded buffer and written at the end.

use crate::kernel_trace::arguments;
use serde_json::Value;
use std::fmt::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// The most events that are kept; later ones are only counted.
const LIMIT: usize = 1 << 20;

/// Memory levels that differ from the last one by fewer bytes are not kept.
const STEP: usize = 64 << 10;

/// The number of the first row for devices, above Linux's thread numbers.
const DEVICES: u64 = 1 << 22;

/// One event.
struct Event {
    name: String,
    component: String,
    detail: String,
    thread: u64,
    begin: u64,
    duration: u64,
}

/// The collected data.
#[derive(Default)]
pub(crate) struct Events {
    kept: Vec<Event>,
    /// Bytes of memory in use at times.
    levels: Vec<(u64, usize)>,
    dropped: u64,
}

/// Collects events. All methods may be called from any thread.
pub struct Trace {
    path: PathBuf,
    start: Instant,
    limit: usize,
    events: Mutex<Events>,
}

impl Trace {
    /// A trace to be written to this file; `%p` in its name is replaced by the process id.
    pub fn new(path: &str) -> Trace {
        let path = PathBuf::from(path.replace("%p", &std::process::id().to_string()));
        Trace { path, start: Instant::now(), limit: LIMIT, events: Mutex::default() }
    }

    /// Nanoseconds since the start, never 0.
    pub fn clock(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    /// Records an event from `begin` until now.
    pub fn record(&self, component: &str, name: &str, begin: u64, detail: &str) {
        let duration = self.clock().saturating_sub(begin);
        self.push(component, name, detail, thread(), begin..begin + duration);
    }

    /// Records work of a device on a row of its own; rows begin above the numbers of threads.
    pub fn record_device(&self, component: &str, name: &str, row: u64, time: Range<u64>, detail: &str) {
        self.push(component, name, detail, DEVICES + row, time);
    }

    /// Records how many bytes of memory are in use from now on.
    pub fn record_memory(&self, bytes: usize) {
        let clock = self.clock();
        let mut events = self.lock();
        if events.levels.last().map_or(0, |(_, last)| *last).abs_diff(bytes) < STEP {
            return;
        }
        match events.levels.len() < self.limit {
            true => events.levels.push((clock, bytes)),
            false => events.dropped += 1,
        }
    }

    fn push(&self, component: &str, name: &str, detail: &str, thread: u64, time: Range<u64>) {
        let mut events = self.lock();
        if events.kept.len() >= self.limit {
            events.dropped += 1;
            return;
        }
        let duration = time.end.saturating_sub(time.start);
        events.kept.push(Event {
            name: name.to_owned(),
            component: component.to_owned(),
            detail: detail.to_owned(),
            thread,
            begin: time.start,
            duration,
        });
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The events as JSON.
    pub fn to_json(&self) -> String {
        let events = self.lock();
        let process = std::process::id();
        let mut json = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        for (index, event) in events.kept.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            let quoted = |text: &str| Value::from(text).to_string();
            let _ = write!(
                json,
                "{separator}\n{{\"name\":{},\"cat\":{},\"ph\":\"X\",\"pid\":{process},\"tid\":{},\"ts\":{},\"dur\":{}",
                quoted(&event.name),
                quoted(&event.component),
                event.thread,
                microseconds(event.begin),
                microseconds(event.duration),
            );
            if !event.detail.is_empty() {
                let _ = write!(json, ",\"args\":{}", Value::Object(arguments(&event.detail)));
            }
            json.push('}');
        }
        for (index, &(time, bytes)) in events.levels.iter().enumerate() {
            let separator = if index == 0 && events.kept.is_empty() { "" } else { "," };
            let time = microseconds(time);
            let _ = write!(
                json,
                "{separator}\n{{\"name\":\"memory\",\"ph\":\"C\",\"pid\":{process},\"ts\":{time},\"args\":{{\"bytes\":{bytes}}}}}"
            );
        }
        let _ = write!(json, "\n],\"otherData\":{{\"dropped\":\"{}\"}}}}\n", events.dropped);
        json
    }

    /// Writes the file.
    pub fn write(&self) -> std::io::Result<()> {
        std::fs::write(&self.path, self.to_json())
    }

    /// The destination file.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }
}

/// Nanoseconds as microseconds with all digits.
fn microseconds(nanoseconds: u64) -> String {
    format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
}

/// The system's number of this thread.
#[cfg(target_os = "linux")]
fn thread() -> u64 {
    // SAFETY: `gettid` has no arguments and always succeeds.
    unsafe { libc::syscall(libc::SYS_gettid) as u64 }
}

/// As above.
#[cfg(target_os = "macos")]
fn thread() -> u64 {
    let mut number = 0;
    // SAFETY: 0 stands for this thread, whose number goes to `number`.
    unsafe { libc::pthread_threadid_np(0, &raw mut number) };
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_json_with_one_event_per_record_and_drops_are_counted() {
        let mut trace = Trace::new("unused-%p.json");
        trace.limit = 2;
        let begin = trace.clock();
        trace.record("ve-cpu", "kernel \"a\"", begin, "12 elements");
        trace.record("node", "sync", begin, "");
        trace.record("node", "sync", begin, "");
        let json: serde_json::Value = serde_json::from_str(&trace.to_json()).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 2);
        assert_eq!(events[0]["name"], "kernel \"a\"");
        assert_eq!(events[0]["args"]["detail"], "12 elements");
        assert_eq!(events[1]["cat"], "node");
        assert_eq!(json["otherData"]["dropped"], "1");
        trace.limit = 3;
        trace.record_device("opencl", "add", 1, 20..30, "");
        let json: serde_json::Value = serde_json::from_str(&trace.to_json()).unwrap();
        let event = &json["traceEvents"][2];
        assert_eq!((event["tid"].as_u64(), event["dur"].as_f64()), (Some(DEVICES + 1), Some(0.01)));
        assert_eq!(trace.path().to_str().unwrap(), format!("unused-{}.json", std::process::id()));
    }

    #[test]
    fn details_that_are_objects_are_arguments_and_memory_has_levels() {
        let trace = Trace::new("unused.json");
        trace.record_memory(1 << 20);
        trace.record_memory((1 << 20) + 1);
        trace.record_memory(0);
        let json: Value = serde_json::from_str(&trace.to_json()).unwrap();
        let levels: Vec<_> =
            json["traceEvents"].as_array().unwrap().iter().map(|event| event["args"]["bytes"].as_u64()).collect();
        assert_eq!(levels, [Some(1 << 20), Some(0)]);
        trace.record("ve-cpu", "add", trace.clock(), r#"{"kernel":3}"#);
        let json: Value = serde_json::from_str(&trace.to_json()).unwrap();
        assert_eq!(json["traceEvents"][0]["args"]["kernel"], 3);
        assert_eq!(json["traceEvents"][1]["ph"], "C");
    }
}
