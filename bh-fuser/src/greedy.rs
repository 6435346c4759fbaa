//! `greedy`: fuses the two blocks that save most, again and again.
//!
//! Candidates are pairs of accesses to one base that lie near each other, in a heap. A candidate's saving is recomputed
//! when it comes up; if it fell, the candidate goes back. Blocks keep a topological order ([`Order`]), so that the search for
//! a path between two of them stays within the stretch between their places.

use crate::blocks::Blocks;
use crate::deps::Dependencies;
use crate::facts::{Class, NONE, Op};
use crate::legality::{Rules, Summary};
use crate::lists::{Cursor, Lists};
use crate::order::Order;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// How many earlier users of a base an access is paired with.
const NEIGHBOURS: usize = 2;
/// How far back it looks for them.
const LOOK_BACK: usize = 6;
/// How many candidates are renewed after a fusion.
const RENEWED: usize = 12;
/// The most elements of a box for which blocks without common data are fused: there the start of a kernel counts.
const SMALL_BOX: i64 = 1 << 18;
/// How many earlier blocks such a block is tried with.
const SMALL_TRIES: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Candidate {
    saving: i64,
    a: u32,
    b: u32,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        // Of equal savings the earliest pair comes first.
        self.saving.cmp(&other.saving).then(other.b.cmp(&self.b)).then(other.a.cmp(&self.a))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The state of the algorithm, reused from batch to batch.
#[derive(Default)]
pub struct Greedy {
    blocks: Blocks,
    order: Order,
    partners: Lists,
    heap: BinaryHeap<Candidate>,
    visited: Vec<u32>,
    visit: u32,
    recent: Vec<u32>,
    marked: Vec<u32>,
    last_access: Vec<u32>,
    links: Vec<(u32, u32)>,
    last_writer: Vec<u32>,
    last_of_view: Vec<u32>,
}

impl Greedy {
    /// Partitions the batch: instructions with equal labels share a block.
    pub fn run(&mut self, rules: &mut Rules<'_>, dependencies: &Dependencies, labels: &mut [u32]) {
        let count = rules.facts.ops.len();
        self.blocks.reset(rules, dependencies);
        self.order.reset(count, dependencies);
        self.partners.reset(count);
        self.visited.clear();
        self.visited.resize(count, 0);
        self.visit = 0;
        self.heap.clear();
        self.find_candidates(rules);
        while let Some(candidate) = self.heap.pop() {
            let (a, b) = (self.blocks.find(candidate.a), self.blocks.find(candidate.b));
            if a == b {
                continue;
            }
            let Ok(join) = self.blocks.check(rules, a, b) else { continue };
            if join.saving <= 0 {
                continue;
            }
            if join.saving < candidate.saving {
                self.heap.push(Candidate { saving: join.saving, ..candidate });
                continue;
            }
            if self.order.path_between(&mut self.blocks, a, b) {
                continue;
            }
            let (root, brought) = self.fuse(rules, a, b, join.summary);
            self.renew_candidates(rules, root, brought);
        }
        if rules.kernel_cost() > 0 {
            self.fuse_small(rules);
        }
        for (op, label) in labels.iter_mut().enumerate() {
            *label = if rules.facts.ops[op].class == Class::System { NONE } else { self.blocks.find(op as u32) };
        }
    }

    /// Pairs each access with the last ones before it on the same base that could share a kernel.
    fn find_candidates(&mut self, rules: &mut Rules<'_>) {
        let facts = rules.facts;
        self.links.clear();
        for (table, len) in [
            (&mut self.last_access, facts.bases.len()),
            (&mut self.last_writer, facts.bases.len()),
            (&mut self.last_of_view, facts.views.len()),
        ] {
            table.clear();
            table.resize(len, NONE);
        }
        let mut marked = std::mem::take(&mut self.marked);
        marked.clear();
        marked.resize(facts.ops.len(), NONE);
        for op in 0..facts.ops.len() as u32 {
            let own = facts.ops[op as usize];
            if matches!(own.class, Class::System | Class::Alone) {
                continue;
            }
            for access in facts.accesses_of(op) {
                let base = access.base as usize;
                let mut pair = |greedy: &mut Greedy, other: u32| {
                    if other == NONE || other == op || marked[other as usize] == op {
                        return false;
                    }
                    if !may_join(&facts.ops[other as usize], &own) {
                        return false;
                    }
                    marked[other as usize] = op;
                    greedy.partners.push(op, other);
                    greedy.partners.push(other, op);
                    greedy.consider(rules, other, op);
                    true
                };
                pair(self, self.last_of_view[access.view as usize]);
                pair(self, self.last_writer[base]);
                let (mut at, mut found) = (self.last_access[base], 0);
                for _ in 0..LOOK_BACK {
                    if at == NONE || found == NEIGHBOURS {
                        break;
                    }
                    let (other, previous) = self.links[at as usize];
                    found += usize::from(pair(self, other));
                    at = previous;
                }
            }
            for access in facts.accesses_of(op) {
                let base = access.base as usize;
                self.links.push((op, self.last_access[base]));
                self.last_access[base] = self.links.len() as u32 - 1;
                self.last_of_view[access.view as usize] = op;
                if access.flags & crate::facts::access::WRITE != 0 {
                    self.last_writer[base] = op;
                }
            }
        }
        self.marked = marked;
    }

    fn consider(&mut self, rules: &mut Rules<'_>, a: u32, b: u32) {
        if let Ok(join) = self.blocks.check(rules, a, b)
            && join.saving > 0
        {
            self.heap.push(Candidate { saving: join.saving, a: a.min(b), b: a.max(b) });
        }
    }

    /// Joins two blocks after [`Blocks::check`] and [`Order::path_between`] allowed it. Returns the joined block and the
    /// place where the other one's partners begin.
    fn fuse(&mut self, rules: &mut Rules<'_>, a: u32, b: u32, summary: Summary) -> (u32, Cursor) {
        let (root, other) = self.blocks.fuse(rules, a, b, summary);
        self.order.join(root, other);
        (root, self.partners.append(root, other))
    }

    /// Evaluates the candidates that the smaller part of a new block brought; for the others nothing changed.
    fn renew_candidates(&mut self, rules: &mut Rules<'_>, root: u32, brought: Cursor) {
        self.visit += 1;
        let (mut place, mut renewed) = (brought, 0);
        while renewed < RENEWED
            && let Some(partner) = self.partners.value(place)
        {
            let partner = self.blocks.find(partner);
            if partner == root || self.visited[partner as usize] == self.visit {
                // Known twice, or fused by now.
                place = self.partners.remove(root, place);
                continue;
            }
            self.visited[partner as usize] = self.visit;
            self.consider(rules, root, partner);
            renewed += 1;
            place = self.partners.after(place);
        }
    }

    /// Fuses small blocks without common data, to start fewer kernels.
    fn fuse_small(&mut self, rules: &mut Rules<'_>) {
        let mut recent = std::mem::take(&mut self.recent);
        recent.clear();
        for block in self.order.blocks() {
            let class = rules.facts.ops[block as usize].class;
            let elements = self.blocks.summary(block).elements;
            if matches!(class, Class::System | Class::Alone) || elements > SMALL_BOX {
                continue;
            }
            let mut current = block;
            for at in (recent.len().saturating_sub(SMALL_TRIES)..recent.len()).rev() {
                let earlier = recent[at];
                let Ok(join) = self.blocks.check(rules, earlier, current) else { continue };
                if join.saving > 0 && !self.order.path_between(&mut self.blocks, earlier, current) {
                    current = self.fuse(rules, earlier, current, join.summary).0;
                    recent.remove(at);
                    break;
                }
            }
            recent.push(current);
        }
        self.recent = recent;
    }
}

/// A quick test that most pairs of instructions which cannot share a kernel fail.
fn may_join(a: &Op, b: &Op) -> bool {
    a.class != Class::Alone
        && b.class != Class::Alone
        && (a.shape == b.shape || (a.kept != NONE && a.kept == b.shape) || (b.kept != NONE && b.kept == a.shape))
}
