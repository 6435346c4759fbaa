//! An HTML page that shows where a program's time went, from its trace, statistics, explanations of partitions and the
//! doctor's findings. The page is self-contained: it needs no network and no other file.

mod digits;
mod events;
mod findings;
mod fusion;
pub mod live;
pub mod ranks;
mod roof;

use events::Events;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Counters by name.
pub type Counters = Map<String, Value>;

/// The variable with the directory for a program's own findings.
pub const VARIABLE: &str = "BH_REPORT_DIRECTORY";

/// The program run, for the head of the page.
pub struct Run {
    /// The program with its arguments.
    pub program: String,
    /// Its duration.
    pub seconds: f64,
    /// Its failure, if it failed.
    pub failure: Option<String>,
    /// It is still running: the page shows the present state, without measurements that would disturb the program.
    pub running: bool,
}

/// The environment variables that make a program write the page's files to this directory.
pub fn environment(directory: &Path) -> Vec<(&'static str, PathBuf)> {
    vec![
        ("BH_STATS", directory.join(STATISTICS)),
        ("BH_TRACE", directory.join(TRACE)),
        ("BH_FUSER_GRAPH_DIR", directory.join(PARTITIONS)),
        (VARIABLE, directory.to_owned()),
    ]
}

/// The statistics file in that directory.
pub const STATISTICS: &str = "statistics.json";
const TRACE: &str = "trace.json";
const PARTITIONS: &str = "partitions";
const DOCTOR: &str = "doctor.json";
const DIGITS: &str = "digits.json";

/// Writes the page for a run with its files in a directory.
pub fn write(directory: &Path, page: &Path, run: &Run) -> Result<(), String> {
    let data = data(directory, run)?;
    std::fs::write(page, render(&data)).map_err(|error| format!("{}: {error}", page.display()))
}

/// The data of the page.
pub fn data(directory: &Path, run: &Run) -> Result<Value, String> {
    let counters = ranks::statistics(&directory.join(STATISTICS))?;
    let events = Events::read(&directory.join(TRACE))?;
    let (doctor, digits) = (left(directory, DOCTOR)?, left(directory, DIGITS)?);
    let first = counters.first().cloned().unwrap_or_default();
    Ok(json!({
        "program": run.program,
        "seconds": run.seconds,
        "failure": run.failure,
        "running": run.running,
        "batch": progress(&first),
        "version": env!("CARGO_PKG_VERSION"),
        "findings": findings::all(&first, &events, &doctor, run.seconds),
        "fusion": fusion::read(&directory.join(PARTITIONS)),
        "bad": events.bad(),
        "digits": digits::of(&digits),
        "roof": if run.running { Value::Null } else { roof::measure() },
        "timeline": events.timeline(),
        "kernels": events.kernels(),
        "programs": events.programs(),
        "memory": events.memory(),
        "transfers": events.transfers(),
        "dropped": events.dropped,
        "counters": counters,
    }))
}

/// The value that the Python package left in a file; null if there is no file.
fn left(directory: &Path, name: &str) -> Result<Value, String> {
    match std::fs::read_to_string(directory.join(name)) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| format!("{name} is damaged: {error}")),
        Err(_) => Ok(Value::Null),
    }
}

/// The progress of the first rank's running batch: its kernels, and the finished ones.
fn progress(counters: &Counters) -> Value {
    let count = |name: &str| counters.get(name).and_then(Value::as_u64).unwrap_or(0);
    match count("node.batch_blocks") {
        0 => Value::Null,
        kernels => json!({ "kernels": kernels, "done": count("node.batch_blocks_done").min(kernels) }),
    }
}

/// The page with its data.
fn render(data: &Value) -> String {
    // Data must not close the script element that contains it.
    with(&format!("show({});", data.to_string().replace('<', "\\u003c")))
}

/// The page that loads its data from the server.
fn live_page() -> String {
    with("watch();")
}

/// The page with this script.
fn with(begin: &str) -> String {
    let parts = [
        ("/*style*/", include_str!("page/style.css")),
        ("/*draw*/", include_str!("page/draw.js")),
        ("/*page*/", include_str!("page/page.js")),
        ("/*begin*/", begin),
    ];
    let mut page = String::new();
    let mut rest = include_str!("page/page.html");
    for (mark, text) in parts {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        page += before;
        page += text;
        rest = after;
    }
    page + rest
}
