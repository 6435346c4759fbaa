//! The fuser without its surroundings: a batch and options in, a partition out.

use crate::assign;
use crate::deps::Dependencies;
use crate::emit::{Emitter, Partition};
use crate::facts::Facts;
use crate::greedy::Greedy;
use crate::legality::Rules;
use crate::optimal;
use crate::options::{Algorithm, Options};
use crate::relation::RelationCache;
use crate::unintrusive;
use bh_bytecode::BatchRef;

/// Partitions batches, reusing its memory from one to the next.
#[derive(Default)]
pub struct Partitioner {
    facts: Facts,
    dependencies: Dependencies,
    relations: RelationCache,
    labels: Vec<u32>,
    emitter: Emitter,
    greedy: Greedy,
}

impl Partitioner {
    /// The partition of a validated batch that has none.
    pub fn partition(&mut self, batch: &BatchRef<'_>, options: &Options) -> Partition {
        self.facts.gather(batch);
        self.relations.reset(batch.views.len());
        self.dependencies.gather(batch, &self.facts, &mut self.relations);
        self.labels.clear();
        self.labels.resize(self.facts.ops.len(), 0);
        let mut rules = Rules::new(batch, &self.facts, options, &mut self.relations);
        match options.algorithm {
            Algorithm::Singleton => assign::singleton(&rules, &mut self.labels),
            Algorithm::Greedy => self.greedy.run(&mut rules, &self.dependencies, &mut self.labels),
            Algorithm::Naive => assign::naive(&mut rules, &mut self.labels),
            Algorithm::Unintrusive => unintrusive::run(&mut rules, &self.dependencies, &mut self.labels),
            Algorithm::Optimal => {
                self.greedy.run(&mut rules, &self.dependencies, &mut self.labels);
                optimal::run(batch, &self.facts, options, &self.dependencies, &mut self.labels);
            }
        }
        if let Some(partition) = self.emitter.emit(&mut rules, &self.dependencies, &self.labels) {
            return partition;
        }
        debug_assert!(false, "an algorithm made an illegal partition");
        assign::singleton(&rules, &mut self.labels);
        self.emitter.emit(&mut rules, &self.dependencies, &self.labels).unwrap_or_default()
    }
}
