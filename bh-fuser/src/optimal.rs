//! `optimal`: the cheapest legal partition by branch and bound, within a number of steps.
//!
//! Instructions are put into blocks in program order. The bound is what the blocks so far cost at least: a base counts
//! in each block that touches it, as contracted while that is still possible, and a base not yet touched as if all its
//! accesses met in one kernel. Both hold for monotone cost models only. The search starts from greedy's partition and
//! returns the best one found when all steps are taken, of which each part of a batch has a share of its own.

use crate::components::{Component, components};
use crate::deps::Dependencies;
use crate::entry::{Entry, group_of, merge_group};
use crate::facts::{Facts, NONE};
use crate::legality::{Rules, Summary};
use crate::options::Options;
use crate::relation::RelationCache;
use bh_bytecode::BatchRef;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Larger components keep greedy's partition.
const MOST_OPS: usize = 128;

/// Improves greedy's labels; true if the result is known to be the cheapest.
pub fn run(
    batch: &BatchRef<'_>,
    facts: &Facts,
    options: &Options,
    dependencies: &Dependencies,
    labels: &mut [u32],
) -> bool {
    let parts = components(facts, dependencies);
    let searched = |part: &&Component| (2..=MOST_OPS).contains(&part.ops.len());
    let total: usize = parts.iter().filter(searched).map(|part| part.ops.len()).sum();
    let next = AtomicUsize::new(0);
    let shared = Mutex::new((labels, true));
    let start: Vec<u32> = shared.lock().map(|guard| guard.0.to_vec()).unwrap_or_default();
    let work = || {
        let mut relations = RelationCache::default();
        relations.reset(batch.views.len());
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let rules = Rules::new(batch, facts, options, &mut relations);
            let share = options.steps.saturating_mul(part.ops.len() as u64) / total.max(1) as u64;
            let (found, complete) = solve(rules, part, &start, share);
            if let Ok(mut guard) = shared.lock() {
                guard.1 &= complete;
                if let Some(found) = found {
                    for (&op, &block) in part.ops.iter().zip(&found) {
                        // A block's label is its first instruction.
                        let first = found.iter().position(|&other| other == block).unwrap_or(0);
                        guard.0[op as usize] = part.ops[first];
                    }
                }
            }
        }
    };
    let threads = options.threads.min(parts.iter().filter(|part| part.ops.len() > 1).count());
    if threads > 1 {
        std::thread::scope(|scope| {
            (0..threads).for_each(|_| {
                scope.spawn(work);
            });
        });
    } else {
        work();
    }
    shared.into_inner().map(|(_, complete)| complete).unwrap_or(false)
}

/// A better assignment of the component's instructions to blocks, if there is one, and whether the search was complete.
fn solve(rules: Rules<'_>, part: &Component, labels: &[u32], most: u64) -> (Option<Vec<u32>>, bool) {
    if part.ops.len() > MOST_OPS {
        return (None, false);
    }
    let mut search = Search::new(rules, part, most);
    search.best = search.price(labels);
    let start = search.best;
    search.place(0);
    let complete = !search.expired;
    ((search.best < start).then_some(search.best_blocks), complete)
}

struct Part {
    summary: Summary,
    entries: Vec<Entry>,
    /// Waits for a reduction that makes one of its two shapes the epilogue's.
    promised: bool,
}

struct Search<'a> {
    rules: Rules<'a>,
    part: &'a Component,
    /// Steps that are left.
    left: u64,
    expired: bool,
    own: Vec<Vec<Entry>>,
    blocks: Vec<Part>,
    assigned: Vec<u32>,
    /// The blocks that each block leads to.
    reach: Vec<u128>,
    /// Accesses placed, lowest cost possible and cost so far, by base.
    seen: Vec<u32>,
    least: Vec<i64>,
    cost: Vec<i64>,
    total: i64,
    best: i64,
    best_blocks: Vec<u32>,
}

struct Choice {
    block: usize,
    summary: Summary,
    promised: bool,
    bound: i64,
}

impl<'a> Search<'a> {
    fn new(rules: Rules<'a>, part: &'a Component, most: u64) -> Search<'a> {
        let bases = rules.facts.bases.len();
        let mut least = vec![0; bases];
        for group in rules.entries_of(&part.ops).chunk_by(|a, b| a.base == b.base) {
            least[group[0].base as usize] = rules.base_cost(group[0].base, group, false);
        }
        Search {
            left: most,
            expired: false,
            own: part.ops.iter().map(|&op| rules.entries_of(&[op])).collect(),
            blocks: Vec::new(),
            assigned: Vec::new(),
            reach: Vec::new(),
            seen: vec![0; bases],
            cost: least.clone(),
            total: least.iter().sum(),
            least,
            best: i64::MAX,
            best_blocks: Vec::new(),
            rules,
            part,
        }
    }

    /// The cost of a given partition.
    fn price(&self, labels: &[u32]) -> i64 {
        let mut blocks: Vec<(u32, Vec<Entry>)> = Vec::new();
        for (&op, own) in self.part.ops.iter().zip(&self.own) {
            let label = labels[op as usize];
            match blocks.iter_mut().find(|(known, _)| *known == label) {
                Some((_, entries)) => *entries = union(entries, own),
                None => blocks.push((label, own.clone())),
            }
        }
        let group_cost = |group: &[Entry]| self.rules.base_cost(group[0].base, group, false);
        blocks.iter().flat_map(|(_, entries)| entries.chunk_by(|a, b| a.base == b.base)).map(group_cost).sum()
    }

    /// Places the instruction number `at` and all after it.
    fn place(&mut self, at: usize) {
        self.expired |= self.left == 0;
        if self.expired || self.total >= self.best {
            return;
        }
        if at == self.part.ops.len() {
            if self.blocks.iter().all(|block| !block.promised) {
                self.best = self.total;
                self.best_blocks = self.assigned.clone();
            }
            return;
        }
        let mut choices = self.choices(at);
        choices.sort_by_key(|choice| choice.bound);
        for choice in choices {
            if choice.bound >= self.best {
                break;
            }
            self.descend(at, &choice);
        }
    }

    fn choices(&mut self, at: usize) -> Vec<Choice> {
        let op = self.part.ops[at];
        let summary = self.rules.summary(op);
        let mut choices = Vec::new();
        let leading =
            self.part.before[at].iter().fold(0u128, |mask, &before| mask | 1 << self.assigned[before as usize]);
        for block in 0..self.blocks.len() {
            if self.reach[block] & leading & !(1 << block) != 0 {
                continue;
            }
            for joined in self.joined_summaries(at, block, &summary) {
                let fits = self.rules.check_accesses(joined, &self.blocks[block].entries, &self.own[at]);
                let Ok(join) = fits else { continue };
                let promised = join.summary.kept != NONE
                    && summary.kept == NONE
                    && (self.blocks[block].promised || self.blocks[block].summary.kept == NONE);
                choices.push(Choice { block, summary: join.summary, promised, bound: 0 });
            }
        }
        choices.push(Choice { block: self.blocks.len(), summary, promised: false, bound: 0 });
        self.left = self.left.saturating_sub(choices.len() as u64);
        for choice in &mut choices {
            choice.bound = self.bound_with(at, choice.block);
        }
        choices
    }

    /// The summaries that a block may have with this instruction: its shapes may wait for a reduction to come.
    fn joined_summaries(&self, at: usize, block: usize, summary: &Summary) -> Vec<Summary> {
        let block = &self.blocks[block].summary;
        if let Ok(joined) = self.rules.combine(block, summary) {
            return vec![joined];
        }
        if block.kept != NONE || summary.kept != NONE || block.alone || summary.alone {
            return Vec::new();
        }
        let mut found: Vec<Summary> = Vec::new();
        for &later in &self.part.ops[at + 1..] {
            let reduction = Summary { ops: 0, ..self.rules.summary(later) };
            let known = found.iter().any(|other| (other.shape, other.mask) == (reduction.shape, reduction.mask));
            if reduction.kept == NONE || known {
                continue;
            }
            let joined = self.rules.combine(&reduction, block).and_then(|joined| self.rules.combine(&joined, summary));
            found.extend(joined);
        }
        found
    }

    /// The cost of the base if the instruction goes into a block, counting the other blocks as they are.
    fn base_bound(&mut self, at: usize, block: usize, base: u32) -> i64 {
        let facts = self.rules.facts;
        let own: Vec<Entry> = group_of(&self.own[at], base).to_vec();
        let seen = self.seen[base as usize] + own.iter().map(|entry| entry.count).sum::<u32>();
        let mut cost = 0;
        let mut merged = Vec::new();
        for number in 0..=self.blocks.len() {
            let group = self.blocks.get(number).map_or(&[][..], |part| group_of(&part.entries, base));
            let group = if number == block {
                merged.clear();
                merge_group(group, &own, &mut merged);
                &merged
            } else {
                group
            };
            if group.is_empty() {
                continue;
            }
            let here: u32 = group.iter().map(|entry| entry.count).sum();
            let may_vanish = facts.bases[base as usize].contractible
                && here == seen
                && group.iter().all(|entry| entry.first_read == NONE || entry.first_write < entry.first_read);
            cost += self.rules.base_cost_if(base, group, may_vanish);
        }
        cost.max(self.least[base as usize])
    }

    fn bound_with(&mut self, at: usize, block: usize) -> i64 {
        let mut bound = self.total;
        for base in bases_of(&self.own[at]) {
            bound += self.base_bound(at, block, base) - self.cost[base as usize];
        }
        bound
    }

    fn descend(&mut self, at: usize, choice: &Choice) {
        let (total, reach) = (self.total, self.reach.clone());
        let bases = bases_of(&self.own[at]);
        let costs: Vec<i64> = bases.iter().map(|&base| self.cost[base as usize]).collect();
        for &base in &bases {
            let cost = self.base_bound(at, choice.block, base);
            self.total += cost - self.cost[base as usize];
            self.cost[base as usize] = cost;
        }
        for entry in &self.own[at] {
            self.seen[entry.base as usize] += entry.count;
        }
        if choice.block == self.blocks.len() {
            self.reach.push(0);
        }
        self.connect(at, choice.block);
        let part = Part { summary: choice.summary, entries: Vec::new(), promised: choice.promised };
        let old = if choice.block == self.blocks.len() {
            self.blocks.push(Part { entries: self.own[at].clone(), ..part });
            None
        } else {
            let entries = union(&self.blocks[choice.block].entries, &self.own[at]);
            Some(std::mem::replace(&mut self.blocks[choice.block], Part { entries, ..part }))
        };
        self.assigned.push(choice.block as u32);
        self.place(at + 1);
        self.assigned.pop();
        match old {
            Some(old) => self.blocks[choice.block] = old,
            None => {
                self.blocks.pop();
            }
        }
        for entry in &self.own[at] {
            self.seen[entry.base as usize] -= entry.count;
        }
        for (&base, &cost) in bases.iter().zip(&costs) {
            self.cost[base as usize] = cost;
        }
        (self.total, self.reach) = (total, reach);
    }

    /// Records that the blocks of what the instruction depends on lead to its block.
    fn connect(&mut self, at: usize, block: usize) {
        let target = self.reach[block] | 1 << block;
        for &before in &self.part.before[at] {
            let from = self.assigned[before as usize] as usize;
            if from == block || self.reach[from] >> block & 1 == 1 {
                continue;
            }
            for number in 0..self.reach.len() {
                if number == from || self.reach[number] >> from & 1 == 1 {
                    self.reach[number] |= target;
                }
            }
        }
    }
}

fn bases_of(entries: &[Entry]) -> Vec<u32> {
    entries.chunk_by(|a, b| a.base == b.base).map(|group| group[0].base).collect()
}

/// The entries of two blocks together.
fn union(a: &[Entry], b: &[Entry]) -> Vec<Entry> {
    let mut joined = Vec::with_capacity(a.len() + b.len());
    let mut at = 0;
    for group in b.chunk_by(|x, y| x.base == y.base) {
        let base = group[0].base;
        let first = at + a[at..].partition_point(|entry| entry.base < base);
        joined.extend_from_slice(&a[at..first]);
        let end = first + a[first..].partition_point(|entry| entry.base == base);
        merge_group(&a[first..end], group, &mut joined);
        at = end;
    }
    joined.extend_from_slice(&a[at..]);
    joined
}
