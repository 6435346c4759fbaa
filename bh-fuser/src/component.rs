//! The fuser as a component of the stack.

use crate::cache::{AssignmentCache, PartitionCache};
use crate::draw;
use crate::emit::Partition;
use crate::explain;
use crate::fuse::Partitioner;
use crate::notes::Notes;
use crate::options::Options;
use crate::persist;
use bh_bytecode::BatchRef;
use bh_bytecode::planning::{Level, Planning};
use bh_core::abi::{Prediction, kind, log_level, status};
use bh_core::config::{Key, Row};
use bh_core::keys::fuser;
use bh_core::{Child, Component, Counter, Error, Host, Report, Result, Ticket};
use std::path::PathBuf;

/// Remembered assignments may take the memory that remembered partitions take, divided by this, beside it.
const ASSIGNMENTS: usize = 4;

/// The component.
pub struct Fuser {
    host: Host,
    child: Child,
    options: Options,
    adapted: bool,
    partitioner: Partitioner,
    cache: PartitionCache,
    assignments: AssignmentCache,
    file: Option<PathBuf>,
    graphs: Option<PathBuf>,
    graph_count: usize,
    counters: Counters,
}

struct Counters {
    batches: Counter,
    kernels: Counter,
    contracted: Counter,
    renames: Counter,
    hits: Counter,
    misses: Counter,
    assignment_hits: Counter,
    /// Batches that were left as they are.
    direct: Counter,
    /// Plans made in order, and in full.
    levels: [Counter; 2],
    /// Bytes that would be moved without fusion, and with it.
    moved: [Counter; 2],
}

// SAFETY: all that it is given lies in it, and ends with it; threads of a search end with the call.
unsafe impl Component for Fuser {
    const NAME: &'static str = "fuser";
    const KIND: u32 = kind::FUSER;
    const KEYS: &'static [Row] = fuser::ALL;

    fn create(host: Host, children: Vec<Child>) -> Result<Fuser> {
        let child = children
            .into_iter()
            .next()
            .ok_or_else(|| Error::new(status::CONFIG, "fuser needs a component below it"))?;
        let bytes = host.setting(&fuser::CACHE_BYTES)?;
        let directory = |key: &Key<String>| host.config(key).filter(|path| !path.is_empty()).map(PathBuf::from);
        Ok(Fuser {
            options: Options::read(&host)?,
            adapted: false,
            child,
            partitioner: Partitioner::default(),
            cache: PartitionCache::new(bytes),
            assignments: AssignmentCache::new(bytes / ASSIGNMENTS),
            file: directory(&fuser::CACHE_DIR),
            graphs: directory(&fuser::GRAPH_DIR),
            graph_count: 0,
            counters: Counters {
                batches: host.counter("fuser.batches"),
                kernels: host.counter("fuser.kernels"),
                contracted: host.counter("fuser.contracted"),
                renames: host.counter("fuser.renames"),
                hits: host.counter("fuser.cache_hits"),
                misses: host.counter("fuser.cache_misses"),
                assignment_hits: host.counter("fuser.assignment_hits"),
                direct: host.counter("fuser.left_direct"),
                levels: ["fuser.planned_linear", "fuser.planned_full"].map(|name| host.counter(name)),
                moved: ["fuser.unfused_bytes", "fuser.fused_bytes"].map(|name| host.counter(name)),
            },
            host,
        })
    }

    fn child(&mut self) -> Option<&mut Child> {
        Some(&mut self.child)
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        // A batch that was cut into kernels above is left as it is.
        if !batch.blocks.is_empty() || batch.instrs.is_empty() {
            return self.child.execute(batch, blocks, report);
        }
        if self.is_left(batch) {
            self.counters.direct.add(1);
            return self.child.execute(&at_level(*batch, Level::Direct), &[], report);
        }
        let known = self.cache.look_up(batch, self.options.planning);
        self.plan(batch, known);
        let Some((partition, level)) = self.cache.found_with_level() else {
            return self.child.execute(batch, blocks, report);
        };
        self.counters.batches.add(1);
        self.counters.kernels.add(partition.blocks.len() as u64);
        self.counters.contracted.add(partition.contracted.len() as u64);
        self.counters.renames.add(partition.renames.len() as u64);
        self.counters.moved.iter().zip(partition.moved).for_each(|(counter, bytes)| counter.add(bytes));
        // Those below plan as much as was done here.
        self.child.execute(&at_level(partition.apply(batch), level), &partition.all, report).map_err(|mut error| {
            // Block numbers mean nothing above; the instruction still does.
            error.block = None;
            error
        })
    }

    /// The partition that is foretold is the one that the batch will run with.
    fn predict(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Prediction> {
        if !batch.blocks.is_empty() || batch.instrs.is_empty() {
            return self.child.predict(batch, blocks);
        }
        if self.is_left(batch) {
            return self.child.predict(&at_level(*batch, Level::Direct), &[]);
        }
        let known = self.cache.foretell(batch, self.options.planning);
        self.plan(batch, known);
        let Some((partition, level)) = self.cache.found_with_level() else {
            return self.child.predict(batch, blocks);
        };
        self.child.predict(&at_level(partition.apply(batch), level), &partition.all)
    }

    /// `fuser graph DIR` draws the partition of each new batch into files there; `fuser graph` stops that.
    fn message(&mut self, text: &str) -> Result<String> {
        match text.strip_prefix("fuser graph") {
            Some(directory) if directory.is_empty() || directory.starts_with(' ') => {
                let directory = directory.trim();
                self.graphs = (!directory.is_empty()).then(|| PathBuf::from(directory));
                Ok("ok".into())
            }
            _ => self.child.message(text),
        }
    }
}

/// The batch for components below that shall plan it as much as this.
fn at_level(mut batch: BatchRef<'_>, level: Level) -> BatchRef<'_> {
    batch.header.level = level.code();
    batch
}

impl Fuser {
    /// Makes the partition of the batch that was just looked up, unless it is known.
    fn plan(&mut self, batch: &BatchRef<'_>, known: bool) {
        let begin = self.host.trace_clock();
        if known {
            self.counters.hits.add(1);
            self.host.trace("fuse", begin, "remembered");
        } else {
            self.counters.misses.add(1);
            let seen = self.cache.seen();
            let (mut entry, hit) = self.partitioner.partition_with(batch, &self.options, &mut self.assignments, seen);
            let moved = self.partitioner.moved(&entry.partition.apply(batch), &self.options);
            entry.partition.moved = moved;
            self.counters.assignment_hits.add(u64::from(hit));
            if !hit {
                self.counters.levels[usize::from(entry.level == Level::Full)].add(1);
            }
            self.host.trace("fuse", begin, if hit { "assignment remembered" } else { entry.level.name() });
            self.draw(batch, &entry.partition);
            self.cache.insert(entry);
        }
    }

    /// Is a batch to run operation by operation, so that a partition would only cost time? Not if somebody looks at partitions.
    fn is_left(&mut self, batch: &BatchRef<'_>) -> bool {
        if !self.adapted {
            self.adapt();
        }
        let options = &self.options;
        let direct = match options.planning {
            Planning::Always(level) => level == Level::Direct,
            Planning::Auto => batch.header.level == Level::Direct.code(),
        };
        direct && options.is_searched() && options.kernels_are_cheap && self.graphs.is_none()
    }

    /// Learns what the components below can do, and reads the partitions that fit it from disk.
    fn adapt(&mut self) {
        self.adapted = true;
        let capabilities = self.child.capabilities();
        self.options.adapt(&capabilities);
        if let Some(directory) = self.file.take() {
            let file = persist::file_name(&directory, self.options.key());
            if let Err(text) = persist::load(&file, &mut self.cache) {
                self.warn(&format!("partition cache {} is ignored and will be rebuilt: {text}", file.display()));
            }
            self.file = Some(file);
        }
    }

    fn warn(&self, text: &str) {
        self.host.log(log_level::WARN, text);
    }

    /// Draws a new partition if graphs are wanted.
    fn draw(&mut self, batch: &BatchRef<'_>, partition: &Partition) {
        let Some(directory) = &self.graphs else { return };
        let batch = partition.apply(batch);
        let (number, options, child) = (self.graph_count, &self.options, &mut self.child);
        let file = |kind: &str| directory.join(format!("partition-{number:04}.{kind}"));
        let mut write = || -> std::result::Result<(), String> {
            std::fs::create_dir_all(directory).map_err(|error| error.to_string())?;
            // An engine that does not answer is no reason not to draw.
            let notes = Notes::ask(&batch, &file("bhb"), |text| child.message(text)).unwrap_or_default();
            let texts = [
                ("dot", draw::dot(&batch, options, &notes)),
                ("svg", draw::svg(&batch, options, &notes)),
                ("txt", explain::explain(&batch, options, &notes)),
            ];
            let mut written = texts.iter().map(|(kind, text)| std::fs::write(file(kind), text));
            written.try_for_each(|outcome| outcome.map_err(|error| error.to_string()))
        };
        if let Err(error) = write() {
            self.warn(&format!("cannot draw the partition into {}: {error}", directory.display()));
        }
        self.graph_count += 1;
    }
}

impl Drop for Fuser {
    fn drop(&mut self) {
        if let Some(file) = self.file.as_ref().filter(|_| self.adapted && self.cache.is_changed())
            && let Err(text) = persist::save(file, &self.cache)
        {
            self.warn(&format!("partition cache {} was not written: {text}", file.display()));
        }
    }
}
