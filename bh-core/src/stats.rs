//! Named counters of one stack, and their snapshot as JSON or as a table.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Counters by name. A counter lives as long as the value.
#[derive(Default)]
pub struct Stats {
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
}

impl Stats {
    /// The counter of this name, created at first use.
    pub fn counter(&self, name: &str) -> &AtomicU64 {
        let mut counters = self.lock();
        if !counters.contains_key(name) {
            counters.insert(name.to_owned(), Arc::default());
        }
        let counter: *const AtomicU64 = &*counters[name];
        // SAFETY: entries are never removed, and each keeps its counter in place.
        unsafe { &*counter }
    }

    /// A shared reference to the counter of this name, created at first use.
    pub(crate) fn share(&self, name: &str) -> Arc<AtomicU64> {
        let mut counters = self.lock();
        Arc::clone(counters.entry(name.to_owned()).or_default())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<AtomicU64>>> {
        self.counters.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Sets a counter.
    pub fn set(&self, name: &str, value: u64) {
        self.counter(name).store(value, Ordering::Relaxed);
    }

    /// All counters with their values, sorted by name.
    pub fn snapshot(&self) -> Snapshot {
        let counters = self.lock();
        Snapshot(counters.iter().map(|(name, counter)| (name.clone(), counter.load(Ordering::Relaxed))).collect())
    }
}

/// Counters at one moment, sorted by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot(pub Vec<(String, u64)>);

impl Snapshot {
    /// The value of a counter, if there is one.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok().map(|index| self.0[index].1)
    }

    /// A JSON object from names to values.
    pub fn to_json(&self) -> String {
        let map: serde_json::Map<_, _> = self.0.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
        serde_json::Value::Object(map).to_string()
    }

    /// One line per counter that is not 0. Nanoseconds and bytes are shown in readable units.
    pub fn to_table(&self) -> String {
        let shown = || self.0.iter().filter(|(_, value)| *value > 0);
        let width = shown().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut table = String::new();
        for (name, value) in shown() {
            let _ = writeln!(table, "{name:width$}  {}", readable(name, *value));
        }
        table
    }
}

/// A value in the unit that the counter's name ends with.
fn readable(name: &str, value: u64) -> String {
    if name.ends_with("_ns") {
        format!("{:.3} ms", value as f64 / 1e6)
    } else if name.ends_with("bytes") && value >= 1 << 20 {
        format!("{:.1} MiB", value as f64 / f64::from(1 << 20))
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_keep_their_place_and_value() {
        let stats = Stats::default();
        let first = stats.counter("a");
        for index in 0..100 {
            stats.set(&format!("b{index}"), index);
        }
        first.fetch_add(3, Ordering::Relaxed);
        assert!(std::ptr::eq(first, stats.counter("a")));
        let snapshot = stats.snapshot();
        assert_eq!((snapshot.get("a"), snapshot.get("b99"), snapshot.get("none")), (Some(3), Some(99), None));
    }

    #[test]
    fn snapshots_print_as_json_and_as_a_table() {
        let stats = Stats::default();
        for (name, value) in [("node.map_ns", 1_500_000), ("memory.peak_bytes", 3 << 20), ("x", 7), ("zero", 0)] {
            stats.set(name, value);
        }
        let snapshot = stats.snapshot();
        assert_eq!(snapshot.to_json(), r#"{"memory.peak_bytes":3145728,"node.map_ns":1500000,"x":7,"zero":0}"#);
        assert_eq!(
            snapshot.to_table(),
            "memory.peak_bytes  3.0 MiB\nnode.map_ns        1.500 ms\nx                  7\n"
        );
    }
}
