//! The files of a cluster's ranks after profiling: one per rank, beside that of the first.

use bh_core::abi::status;
use bh_core::{Error, Result};
use serde_json::Value;
use std::path::Path;

/// Merges the events of all ranks into the first one's trace, with ranks as processes, and removes the other files.
pub fn merge_traces(first: &Path) -> Result<usize> {
    let files = bh_report::ranks::files(first);
    if files.len() == 1 {
        return Ok(1);
    }
    let failed = |error: std::io::Error| Error::new(status::FILE, format!("{}: {error}", first.display()));
    let damaged = |error| Error::new(status::FILE, format!("the traces are damaged: {error}"));
    let mut events = Vec::new();
    for (rank, file) in files.iter().enumerate() {
        let text = std::fs::read_to_string(file).map_err(failed)?;
        let mut trace: Value = serde_json::from_str(&text).map_err(damaged)?;
        let name = serde_json::json!({"name": "process_name", "ph": "M", "pid": rank, "args": {"name": format!("rank {rank}")}});
        events.push(name);
        for mut event in trace["traceEvents"].as_array_mut().map(std::mem::take).unwrap_or_default() {
            event["pid"] = Value::from(rank);
            events.push(event);
        }
    }
    let merged = serde_json::json!({"displayTimeUnit": "ns", "traceEvents": events});
    std::fs::write(first, merged.to_string()).map_err(failed)?;
    for file in &files[1..] {
        std::fs::remove_file(file).map_err(failed)?;
    }
    Ok(files.len())
}

/// A table with a row for each rank: time of computing, waiting and packing, and messages; and the imbalance of the
/// work.
pub fn table(ranks: &[bh_report::Counters]) -> String {
    let number =
        |counters: &bh_report::Counters, name: &str| counters.get(name).and_then(Value::as_u64).unwrap_or(0) as f64;
    let mut text = format!(
        "{:>6} {:>12} {:>12} {:>12} {:>10} {:>12} {:>10}\n",
        "rank", "compute s", "wait s", "pack s", "messages", "MB", "control"
    );
    for (rank, counters) in ranks.iter().enumerate() {
        let of = |name: &str| number(counters, &format!("cluster.{name}"));
        text += &format!(
            "{rank:>6} {:>12.6} {:>12.6} {:>12.6} {:>10} {:>12.3} {:>10}\n",
            of("compute_ns") * 1e-9,
            of("wait_ns") * 1e-9,
            of("pack_ns") * 1e-9,
            of("messages"),
            of("bytes") * 1e-6,
            of("control messages"),
        );
    }
    let times: Vec<f64> = ranks.iter().map(|counters| number(counters, "cluster.compute_ns")).collect();
    let (most, mean) = (times.iter().copied().fold(0.0, f64::max), times.iter().sum::<f64>() / times.len() as f64);
    if mean > 0.0 {
        text += &format!("imbalance: the slowest rank computes {:.2} times as long as the mean\n", most / mean);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn ranks_are_rows_of_one_table() {
        let rank = |compute: u64| {
            let value =
                serde_json::json!({"cluster.compute_ns": compute, "cluster.messages": 3, "cluster.bytes": 2_000_000});
            value.as_object().unwrap().clone()
        };
        let table = table(&[rank(1_000_000_000), rank(3_000_000_000)]);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["0", "1.000000", "0.000000", "0.000000", "3", "2.000", "0"]);
        assert_eq!(rows[2][..2], ["1", "3.000000"]);
        assert!(table.ends_with("1.50 times as long as the mean\n"));
    }

    #[test]
    fn traces_of_ranks_become_one() {
        let first = std::env::temp_dir().join(format!("bh-traces-{}.json", std::process::id()));
        let second = PathBuf::from(format!("{}.rank1", first.display()));
        for (file, name) in [(&first, "a"), (&second, "b")] {
            std::fs::write(file, format!("{{\"traceEvents\":[{{\"name\":\"{name}\",\"pid\":77}}]}}")).unwrap();
        }
        assert_eq!(merge_traces(&first).unwrap(), 2);
        assert!(!second.exists());
        let merged: Value = serde_json::from_str(&std::fs::read_to_string(&first).unwrap()).unwrap();
        let events = merged["traceEvents"].as_array().unwrap();
        let found: Vec<_> =
            events.iter().map(|event| (event["name"].as_str().unwrap(), event["pid"].as_u64())).collect();
        assert_eq!(found, [("process_name", Some(0)), ("a", Some(0)), ("process_name", Some(1)), ("b", Some(1))]);
        std::fs::remove_file(first).unwrap();
    }
}
