//! The plan cache: a batch of a known shape whose arrays are in the same state as before needs the same messages and
//! local batches, on other bases.

use crate::plan::array::Array;
use crate::plan::planner::Planner;
use crate::plan::stage::Stage;
use bh_bytecode::BatchRef;
use bh_bytecode::cache::{Cache, Key};
use std::collections::HashMap;

/// Bytes of plans per context, at most.
const MOST_BYTES: usize = 32 << 20;

/// The plan cache of a context.
pub struct Plans {
    cache: Cache<Plan>,
    words: Vec<u64>,
    /// Can the plan of this batch repeat?
    lasting: bool,
    /// The bases of the arrays before the current batch.
    before: Vec<u64>,
}

impl Default for Plans {
    fn default() -> Plans {
        Plans { cache: Cache::new(MOST_BYTES), words: Vec::new(), lasting: false, before: Vec::new() }
    }
}

impl Plans {
    /// The plan for a batch of this shape, on the current bases; moves the planner's arrays to their state after it.
    pub fn find(&mut self, planner: &mut Planner, batch: &BatchRef<'_>, shape: u64) -> Option<&mut Plan> {
        self.words.clear();
        self.words.push(shape);
        self.lasting = planner.describe(batch, &mut self.words);
        if !self.lasting {
            return None;
        }
        planner.bases_of(batch, &mut self.before);
        let plan = self.cache.get(&Key::of_words(&self.words))?;
        plan.renew(planner, batch, &mut self.before);
        Some(plan)
    }

    /// Caches the plan of the batch that was looked up last, if it can repeat.
    pub fn keep(&mut self, planner: &Planner, batch: &BatchRef<'_>, stages: &[Stage]) {
        if self.lasting {
            let plan = Plan::new(planner, batch, stages, &self.before);
            let (bytes, cost) = (plan.bytes(), batch.instrs.len() as u64);
            // A plan above the limit is not cached.
            drop(self.cache.insert(&Key::of_words(&self.words), plan, bytes, cost));
        }
    }
}

/// Numbers for base ids; 0 for bases of other processes.
struct Numbers(HashMap<u64, u64>);

impl Numbers {
    fn of(&mut self, id: u64) -> u64 {
        if id == 0 {
            return 0;
        }
        let next = self.0.len() as u64 + 1;
        *self.0.entry(id).or_insert(next)
    }
}

/// The bases of a stage as numbers.
struct Names {
    /// By local batch, early ones first, and base.
    local: Vec<Vec<u64>>,
    /// Sources and targets of transfers.
    moved: Vec<[u64; 2]>,
}

/// A batch's plan for this process's ranks.
pub struct Plan {
    /// The stages, on the bases of the last run.
    pub stages: Vec<Stage>,
    /// Instructions that run on one rank.
    pub on_one_rank: Vec<u32>,
    names: Vec<Names>,
    /// How many bases the plan creates.
    fresh: usize,
    /// The arrays of the batch after it, with numbers as base ids; `None` for dropped ones.
    after: Vec<Option<Array>>,
}

impl Plan {
    fn new(planner: &Planner, batch: &BatchRef<'_>, stages: &[Stage], before: &[u64]) -> Plan {
        let mut numbers = Numbers(HashMap::new());
        for &id in before {
            numbers.of(id);
        }
        let old = numbers.0.len();
        let mut names = Vec::with_capacity(stages.len());
        for stage in stages {
            let local = stage.early.iter().chain(&stage.local);
            let local = local.map(|local| local.batch.bases.iter().map(|base| numbers.of(base.id)).collect()).collect();
            let moved = stage.transfers.iter();
            let moved = moved.map(|one| [numbers.of(one.source.base.id), numbers.of(one.target.base.id)]).collect();
            names.push(Names { local, moved });
        }
        let mut after: Vec<Option<Array>> =
            batch.bases.iter().map(|base| planner.arrays.get(&base.id).map(Array::settled)).collect();
        for array in after.iter_mut().flatten() {
            array.each_base(|id| *id = numbers.of(*id));
        }
        let fresh = numbers.0.len() - old;
        Plan { stages: stages.to_vec(), on_one_rank: planner.on_one_rank.clone(), names, fresh, after }
    }

    /// Substitutes the current bases. `bases`: those of the arrays before the batch.
    fn renew(&mut self, planner: &mut Planner, batch: &BatchRef<'_>, bases: &mut Vec<u64>) {
        bases.extend((0..self.fresh).map(|_| planner.new_base()));
        let id_of = |number: u64| if number == 0 { 0 } else { bases[number as usize - 1] };
        for (stage, names) in self.stages.iter_mut().zip(&self.names) {
            let all = stage.early.iter_mut().chain(&mut stage.local);
            for (local, names) in all.zip(&names.local) {
                local.renew(batch.constants);
                local.batch.bases.iter_mut().zip(names).for_each(|(base, &number)| base.id = id_of(number));
            }
            for (transfer, &[source, target]) in stage.transfers.iter_mut().zip(&names.moved) {
                (transfer.source.base.id, transfer.target.base.id) = (id_of(source), id_of(target));
            }
        }
        planner.program += 1;
        for (base, after) in batch.bases.iter().zip(&self.after) {
            let Some(after) = after else {
                planner.arrays.remove(&base.id);
                continue;
            };
            let mut array = Array { base: *base, ..after.clone() };
            array.each_base(|id| *id = id_of(*id));
            planner.restore(array);
        }
    }

    fn bytes(&self) -> usize {
        let local = self
            .stages
            .iter()
            .flat_map(|stage| stage.early.iter().chain(&stage.local))
            .map(|local| local.bytes())
            .sum::<usize>();
        let moved = self.stages.iter().map(|stage| size_of_val(&stage.transfers[..])).sum::<usize>();
        let arrays = self.after.iter().flatten().map(Array::bytes).sum::<usize>();
        local + moved + arrays + size_of_val(&self.names[..]) + size_of_val(&self.on_one_rank[..])
    }
}
