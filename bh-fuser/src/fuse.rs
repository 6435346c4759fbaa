//! The fuser without its surroundings: a batch and options in, a partition out.

use crate::assign;
use crate::blocks::Blocks;
use crate::cache::{AssignmentCache, Entry};
use crate::deps::Dependencies;
use crate::emit::{Emitter, Partition};
use crate::facts::Facts;
use crate::greedy::Greedy;
use crate::legality::Rules;
use crate::optimal;
use crate::options::{Algorithm, Options};
use crate::price;
use crate::relation::RelationCache;
use crate::relations_key::relations_key;
use crate::sink;
use crate::unintrusive;
use bh_bytecode::BatchRef;
use bh_bytecode::planning::Level;

/// Partitions batches, reusing its memory from one to the next.
#[derive(Default)]
pub struct Partitioner {
    facts: Facts,
    dependencies: Dependencies,
    relations: RelationCache,
    labels: Vec<u32>,
    emitter: Emitter,
    blocks: Blocks,
    greedy: Greedy,
    key: Vec<u64>,
    complete: bool,
}

impl Partitioner {
    /// The partition of a validated batch that has none.
    pub fn partition(&mut self, batch: &BatchRef<'_>, options: &Options) -> Partition {
        self.gather(batch);
        self.assign(batch, options);
        self.emit(batch, options)
    }

    /// As [`Partitioner::partition`], with as much planning as the batch is worth, whose structure came `seen` times before,
    /// and with assignments to blocks remembered by the dependencies between instructions. True if this one was.
    pub fn partition_with(
        &mut self,
        batch: &BatchRef<'_>,
        options: &Options,
        assignments: &mut AssignmentCache,
        seen: u32,
    ) -> (Entry, bool) {
        self.gather(batch);
        let work = self.facts.work();
        let mut key = std::mem::take(&mut self.key);
        relations_key(batch, &self.facts, options, &self.dependencies, &mut key);
        let (times, found) = assignments.get(&key);
        let seen = seen.max(times);
        // A caller that requests a partition gets one.
        let wanted = options.planning.level_of(&batch.header, work, seen).max(Level::Linear);
        let found = found.filter(|(level, _)| *level >= wanted);
        // Relations do not tell whether all that a kernel writes leaves little enough for its renames.
        let remembered = found.and_then(|(level, labels)| {
            self.labels.clear();
            self.labels.extend_from_slice(labels);
            let mut rules = Rules::new(batch, &self.facts, options, &mut self.relations);
            let partition = self.emitter.emit_affordable(&mut rules, &self.dependencies, &self.labels)?;
            Some(Entry::new(partition, level, work))
        });
        let hit = remembered.is_some();
        let entry = remembered.unwrap_or_else(|| {
            // An algorithm requested by name runs at any level.
            let in_order = wanted == Level::Linear && options.algorithm == Algorithm::Greedy;
            let algorithm = if in_order { Algorithm::Naive } else { options.algorithm };
            self.assign(batch, &Options { algorithm, ..options.clone() });
            let partition = self.emit(batch, options);
            assignments.insert(&key, &self.labels, wanted, seen);
            Entry::new(partition, wanted, work)
        });
        self.key = key;
        (entry, hit)
    }

    /// Estimates the bytes that cross the memory bus without and with a partition of the batch partitioned last.
    pub fn moved(&mut self, batch: &BatchRef<'_>, options: &Options) -> [u64; 2] {
        price::moved(batch, &self.facts, &mut self.relations, options)
    }

    /// Was the last search of `optimal` complete? True for other algorithms.
    pub fn was_complete(&self) -> bool {
        self.complete
    }

    fn gather(&mut self, batch: &BatchRef<'_>) {
        self.facts.gather(batch);
        self.relations.reset(batch.views.len());
        self.dependencies.gather(batch, &self.facts, &mut self.relations);
    }

    fn assign(&mut self, batch: &BatchRef<'_>, options: &Options) {
        self.labels.clear();
        self.labels.resize(self.facts.ops.len(), 0);
        self.complete = true;
        let mut rules = Rules::new(batch, &self.facts, options, &mut self.relations);
        match options.algorithm {
            Algorithm::Singleton => assign::singleton(&rules, &mut self.labels),
            Algorithm::Naive => {
                assign::naive(&mut rules, &self.dependencies, &mut self.blocks, &mut self.labels);
            }
            Algorithm::Greedy => {
                self.greedy.run(&mut rules, &self.dependencies, &mut self.labels);
                sink::sink(&mut rules, &self.dependencies, &mut self.labels);
            }
            Algorithm::Unintrusive => unintrusive::run(&mut rules, &self.dependencies, &mut self.labels),
            Algorithm::Optimal => {
                self.greedy.run(&mut rules, &self.dependencies, &mut self.labels);
                sink::sink(&mut rules, &self.dependencies, &mut self.labels);
                self.complete = optimal::run(batch, &self.facts, options, &self.dependencies, &mut self.labels);
            }
        }
    }

    fn emit(&mut self, batch: &BatchRef<'_>, options: &Options) -> Partition {
        let mut rules = Rules::new(batch, &self.facts, options, &mut self.relations);
        if let Some(partition) = self.emitter.emit(&mut rules, &self.dependencies, &self.labels) {
            return partition;
        }
        debug_assert!(false, "an algorithm made an illegal partition");
        assign::singleton(&rules, &mut self.labels);
        self.emitter.emit(&mut rules, &self.dependencies, &self.labels).unwrap_or_default()
    }
}
