//! One page of HTML that shows where a program's time went, made of what it left behind: trace, statistics, explanations of
//! partitions and the doctor's findings. The page needs nothing else: no network, no other file.

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

/// The variable that names the directory into which a program leaves what only it knows.
pub const VARIABLE: &str = "BH_REPORT_DIRECTORY";

/// What ran, for the head of the page.
pub struct Run {
    /// The program with its arguments.
    pub program: String,
    /// How long it took.
    pub seconds: f64,
    /// How it ended, if not well.
    pub failure: Option<String>,
    /// It has not ended: what is there so far is shown, and nothing is measured that would disturb it.
    pub running: bool,
}

/// The variables of the environment under which a program leaves what the page shows, in this directory.
pub fn environment(directory: &Path) -> Vec<(&'static str, PathBuf)> {
    vec![
        ("BH_STATS", directory.join(STATISTICS)),
        ("BH_TRACE", directory.join(TRACE)),
        ("BH_FUSER_GRAPH_DIR", directory.join(PARTITIONS)),
        (VARIABLE, directory.to_owned()),
    ]
}

/// The file of the statistics in that directory.
pub const STATISTICS: &str = "statistics.json";
const TRACE: &str = "trace.json";
const PARTITIONS: &str = "partitions";
const DOCTOR: &str = "doctor.json";

/// Writes the page of a run that left its files in a directory.
pub fn write(directory: &Path, page: &Path, run: &Run) -> Result<(), String> {
    let data = data(directory, run)?;
    std::fs::write(page, render(&data)).map_err(|error| format!("{}: {error}", page.display()))
}

/// All that the page shows.
pub fn data(directory: &Path, run: &Run) -> Result<Value, String> {
    let counters = ranks::statistics(&directory.join(STATISTICS))?;
    let events = Events::read(&directory.join(TRACE))?;
    let doctor = match std::fs::read_to_string(directory.join(DOCTOR)) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| format!("{DOCTOR} is damaged: {error}"))?,
        Err(_) => Value::Null,
    };
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

/// How far the batch is that runs on the first rank, if one does: its kernels, and those that are done.
fn progress(counters: &Counters) -> Value {
    let count = |name: &str| counters.get(name).and_then(Value::as_u64).unwrap_or(0);
    match count("node.batch_blocks") {
        0 => Value::Null,
        kernels => json!({ "kernels": kernels, "done": count("node.batch_blocks_done").min(kernels) }),
    }
}

/// The page with its data.
fn render(data: &Value) -> String {
    // Nothing in the data may end the element that it stands in.
    with(&format!("show({});", data.to_string().replace('<', "\\u003c")))
}

/// The page that asks its server for data.
fn live_page() -> String {
    with("watch();")
}

/// The page that begins with this.
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
