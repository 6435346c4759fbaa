//! Findings about a program's performance, from its counters and events, with advice.

use crate::Counters;
use crate::events::Events;
use serde_json::{Value, json};

/// Programs with fewer operations give no findings.
const FEW: u64 = 50;

/// The findings: `what`, `advice` and, if known, `place`.
pub fn all(counters: &Counters, events: &Events, doctor: &Value, seconds: f64) -> Value {
    let mut found = of_doctor(doctor);
    let mut say = |what: String, advice: &str| found.push(json!({ "what": what, "advice": advice }));
    let of = |name: &str| counters.get(name).and_then(Value::as_u64).unwrap_or(0);
    let sum =
        |end: &str| counters.iter().filter(|(name, _)| name.ends_with(end)).filter_map(|it| it.1.as_u64()).sum::<u64>();
    let (operations, kernels) = events.operations();
    let batches = of("filter.batches").max(of("fuser.batches"));
    if operations >= FEW && batches * 2 > operations {
        say(
            format!("{batches} batches for {operations} operations"),
            "something reads, or waits, after each operation: read later",
        );
    }
    if operations >= FEW && kernels * 10 > operations * 9 {
        say(
            format!("{kernels} kernels for {operations} operations: nothing fuses"),
            "see below why; often views overlap, or a name keeps an array alive",
        );
    }
    let fresh = of("memory.allocations").saturating_sub(of("memory.cache_hits"));
    if operations >= FEW && fresh * 2 > operations {
        say(
            format!("{fresh} fresh allocations"),
            "temporaries are named and kept: drop names early, or write into arrays",
        );
    }
    let planning = (of("filter.own_ns") + of("fuser.own_ns")) as f64 * 1e-9;
    if planning > 0.1 * seconds {
        say(
            format!("{planning:.3} s of {seconds:.3} s go into planning"),
            "every batch looks new: keep the operations of a loop's body the same from step to step",
        );
    }
    let refused = sum(".refused_blocks");
    if refused > 0 {
        say(format!("{refused} kernels were refused by an engine"), "the next engine ran them; see why below");
    }
    if of("memory.refused") > 0 {
        say(format!("{} allocations were refused", of("memory.refused")), "the limit of memory is low");
    }
    if events.dropped > 0 {
        say(format!("{} events are missing", events.dropped), "the trace was full: report a shorter run");
    }
    Value::Array(found)
}

/// The findings of the Python package's doctor.
fn of_doctor(doctor: &Value) -> Vec<Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let finding = |row: &Value| {
        let count = row["count"].as_u64().unwrap_or(0);
        let place = match row["line"].as_u64() {
            Some(line @ 1..) => format!("{}:{line}", text(&row["file"])),
            _ => String::new(),
        };
        json!({ "what": format!("{}, {count} times", text(&row["kind"])), "advice": row["advice"], "place": place })
    };
    doctor.as_array().into_iter().flatten().map(finding).collect()
}
