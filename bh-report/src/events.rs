//! The events of a trace, and their totals.

use crate::ranks;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// Events drawn, at most: the longest ones.
const DRAWN: usize = 20_000;
/// Kernels, programs and levels of memory shown, at most.
const SHOWN: usize = 200;
const LEVELS: usize = 2_000;

/// One event of the timeline, in microseconds.
struct Event {
    rank: usize,
    row: u64,
    component: String,
    name: String,
    begin: f64,
    duration: f64,
    kernel: Option<usize>,
    /// Bytes of a transfer.
    bytes: u64,
}

/// A kernel by its operations and lines, with totals over its events.
#[derive(Default)]
struct Kernel {
    label: String,
    operations: String,
    lines: Vec<String>,
    ways: Vec<String>,
    device: bool,
    count: u64,
    seconds: f64,
    elements: u64,
    work: f64,
    bytes: f64,
    code: String,
}

/// Properties shared by all events of a kernel.
#[derive(Clone, Copy)]
struct Figures {
    kernel: usize,
    elements: u64,
    work: f64,
    bytes: f64,
}

/// The traces of all ranks.
#[derive(Default)]
pub struct Events {
    events: Vec<Event>,
    kernels: Vec<Kernel>,
    by_text: HashMap<(String, Vec<String>), usize>,
    programs: Vec<String>,
    memory: Vec<(usize, f64, u64)>,
    bad: Option<Value>,
    /// Events beyond the capacity of the trace.
    pub dropped: u64,
}

impl Events {
    /// Reads the traces of all ranks.
    pub fn read(first: &Path) -> Result<Events, String> {
        let mut all = Events::default();
        for (rank, file) in ranks::files(first).into_iter().enumerate() {
            let text = std::fs::read_to_string(file).map_err(|error| format!("the program left no trace ({error})"))?;
            let trace: Value = serde_json::from_str(&text).map_err(|error| format!("the trace is damaged: {error}"))?;
            let dropped = trace["otherData"]["dropped"].as_str().and_then(|text| text.parse().ok());
            all.dropped += dropped.unwrap_or(0);
            // Events are in the order of their ends, so the event that describes a kernel may follow those that only
            // name it.
            let events = trace["traceEvents"].as_array().map_or(&[][..], Vec::as_slice);
            let mut known = HashMap::new();
            events.iter().for_each(|event| all.introduce(event, &mut known));
            events.iter().for_each(|event| all.add(rank, event, &known));
        }
        Ok(all)
    }

    /// Records the kernel that an event describes.
    fn introduce(&mut self, event: &Value, known: &mut HashMap<(String, u64), Figures>) {
        let arguments = &event["args"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (Some(operations), Some(number)) = (arguments["operations"].as_str(), arguments["kernel"].as_u64()) else {
            return;
        };
        let lines: Vec<String> = arguments["lines"].as_array().into_iter().flatten().map(text).collect();
        let next = self.kernels.len();
        let kernel = *self.by_text.entry((operations.to_owned(), lines.clone())).or_insert(next);
        if kernel == next {
            let (label, code) = (text(&event["name"]), text(&arguments["code"]));
            self.kernels.push(Kernel { label, operations: operations.to_owned(), lines, code, ..Kernel::default() });
        }
        let elements = arguments["elements"].as_u64().unwrap_or(0);
        let figure = |name: &str| arguments[name].as_f64().unwrap_or(0.0);
        let figures = Figures { kernel, elements, work: figure("work"), bytes: figure("bytes") };
        known.insert((text(&event["cat"]), number), figures);
    }

    fn add(&mut self, rank: usize, event: &Value, known: &HashMap<(String, u64), Figures>) {
        let arguments = &event["args"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let begin = event["ts"].as_f64().unwrap_or(0.0);
        if event["ph"] == "C" {
            self.memory.push((rank, begin, arguments["bytes"].as_u64().unwrap_or(0)));
            return;
        }
        let (component, name) = (text(&event["cat"]), text(&event["name"]));
        let (row, duration) = (event["tid"].as_u64().unwrap_or(0), event["dur"].as_f64().unwrap_or(0.0));
        if let (true, Some(code)) = (name == "compile", arguments["code"].as_str()) {
            self.programs.push(code.to_owned());
        }
        if name == "bad number" && self.bad.is_none() {
            self.bad = Some(arguments.clone());
        }
        let figures = arguments["kernel"].as_u64().and_then(|number| known.get(&(component.clone(), number)));
        if let Some(figures) = figures {
            let kernel = &mut self.kernels[figures.kernel];
            kernel.seconds += duration * 1e-6;
            kernel.device |= row >= FIRST_DEVICE;
            if arguments["more"] != true {
                kernel.count += 1;
                kernel.elements = kernel.elements.max(figures.elements);
                kernel.work += figures.work;
                kernel.bytes += figures.bytes;
            }
            if let Some(how) = arguments["how"].as_str()
                && !kernel.ways.iter().any(|way| way == how)
            {
                kernel.ways.push(how.to_owned());
            }
        }
        let kernel = figures.map(|figures| figures.kernel);
        let bytes = arguments["bytes"].as_u64().unwrap_or(0);
        self.events.push(Event { rank, row, component, name, begin, duration, kernel, bytes });
    }

    /// The numbers of operations that ran, and of their kernels.
    pub fn operations(&self) -> (u64, u64) {
        let operations = |kernel: &Kernel| kernel.operations.split(", ").count() as u64 * kernel.count;
        (self.kernels.iter().map(operations).sum(), self.kernels.iter().map(|kernel| kernel.count).sum())
    }

    /// Kernels by time, longest first, each with the text of its lines.
    pub fn kernels(&self) -> Value {
        let mut order: Vec<usize> = (0..self.kernels.len()).collect();
        order.sort_by(|&a, &b| self.kernels[b].seconds.total_cmp(&self.kernels[a].seconds));
        let mut sources = Sources::default();
        let shown = order.iter().take(SHOWN).map(|&number| {
            let kernel = &self.kernels[number];
            let lines: Vec<Value> =
                kernel.lines.iter().map(|place| json!({ "place": place, "text": sources.line(place) })).collect();
            json!({
                "number": number, "label": kernel.label, "operations": kernel.operations, "lines": lines,
                "how": kernel.ways.join("; then "), "device": kernel.device, "count": kernel.count,
                "seconds": kernel.seconds, "elements": kernel.elements, "work": kernel.work, "bytes": kernel.bytes,
                "code": kernel.code,
            })
        });
        Value::Array(shown.collect())
    }

    /// The sources compiled for devices.
    pub fn programs(&self) -> Value {
        self.programs.iter().take(SHOWN).cloned().collect()
    }

    /// The map of the array with the first bad number that a check has found, and the text of the error.
    pub fn bad(&self) -> Value {
        self.bad.clone().unwrap_or_default()
    }

    /// Levels of memory: rank, microseconds, bytes. Thinned to the highest of each interval.
    pub fn memory(&self) -> Value {
        let each = self.memory.len().div_ceil(LEVELS).max(1);
        let highest =
            |levels: &[(usize, f64, u64)]| levels.iter().max_by_key(|level| level.2).map(|level| json!(level));
        self.memory.chunks(each).filter_map(highest).collect()
    }

    /// Transfers with devices: kind, count, bytes, seconds.
    pub fn transfers(&self) -> Value {
        let mut kinds: BTreeMap<&str, (u64, u64, f64)> = BTreeMap::new();
        for event in self.events.iter().filter(|event| event.name == "upload" || event.name == "download") {
            let (count, bytes, seconds) = kinds.entry(&event.name).or_default();
            *count += 1;
            *bytes += event.bytes;
            *seconds += event.duration * 1e-6;
        }
        let row = |(kind, (count, bytes, seconds))| json!({ "kind": kind, "count": count, "bytes": bytes, "seconds": seconds });
        kinds.into_iter().map(row).collect()
    }

    /// Rows for threads and devices of ranks, with their longest events: begin, duration, depth, name, kernel.
    pub fn timeline(&self) -> Value {
        let mut order: Vec<usize> = (0..self.events.len()).collect();
        order.sort_by(|&a, &b| self.events[b].duration.total_cmp(&self.events[a].duration));
        let left_out = order.len().saturating_sub(DRAWN);
        let drawn: HashSet<usize> = order.into_iter().take(DRAWN).collect();
        let mut rows: BTreeMap<(usize, u64), Vec<&Event>> = BTreeMap::new();
        for event in drawn.iter().map(|&number| &self.events[number]) {
            rows.entry((event.rank, event.row)).or_default().push(event);
        }
        let several = rows.keys().any(|(rank, _)| *rank > 0);
        let mut threads = 0;
        let rows: Vec<Value> = rows
            .into_iter()
            .map(|((rank, row), mut events)| {
                threads += 1;
                let what = match row.checked_sub(FIRST_DEVICE) {
                    Some(device) => format!("device {device}"),
                    None => format!("thread {threads}"),
                };
                let label = if several { format!("rank {rank}, {what}") } else { what };
                events.sort_by(|a, b| a.begin.total_cmp(&b.begin).then(b.duration.total_cmp(&a.duration)));
                json!({ "label": label, "events": nested(&events) })
            })
            .collect();
        json!({ "rows": rows, "left_out": left_out })
    }
}

/// Rows from this number on are devices.
const FIRST_DEVICE: u64 = 1 << 22;

/// Events in order, with the number of events that enclose each.
fn nested(events: &[&Event]) -> Vec<Value> {
    let mut ends: Vec<f64> = Vec::new();
    let place = |event: &&Event| {
        let end = event.begin + event.duration;
        // Separate clock readings can make an inner event seem to end slightly later.
        while ends.last().is_some_and(|&last| last <= event.begin || last + 1.0 < end) {
            ends.pop();
        }
        ends.push(end);
        let name = match event.kernel {
            Some(_) => event.name.clone(),
            None => format!("{} {}", event.component, event.name),
        };
        json!([event.begin, event.duration, ends.len() - 1, name, event.kernel])
    };
    events.iter().map(place).collect()
}

/// The program's source files, read once.
#[derive(Default)]
pub struct Sources(HashMap<String, Vec<String>>);

impl Sources {
    /// The text of a line at a place such as "program.py:3", without its indentation, if its file exists.
    fn line(&mut self, place: &str) -> Option<String> {
        let (file, line) = place.rsplit_once(':')?;
        self.text(file, line.parse().ok()?).map(|text| text.trim().to_owned())
    }

    /// The text of a line of a file, counted from 1, if the file exists.
    pub fn text(&mut self, file: &str, line: usize) -> Option<&str> {
        let read = |file: &String| {
            std::fs::read_to_string(file).unwrap_or_default().lines().map(|line| line.trim_end().to_owned()).collect()
        };
        let lines: &Vec<String> = self.0.entry(file.to_owned()).or_insert_with_key(read);
        lines.get(line.checked_sub(1)?).map(String::as_str)
    }
}
