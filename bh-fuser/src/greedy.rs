//! `greedy`: fuses the two blocks that save most, again and again.
//!
//! Candidates are pairs of accesses to one base that lie near each other, in a heap. A candidate's saving is recomputed
//! when it comes up; if it fell, the candidate goes back. Blocks keep a topological order, so that the search for a path
//! between two of them stays within the stretch between their places.

use crate::deps::Dependencies;
use crate::facts::{Class, NONE, Op};
use crate::legality::{Entry, Rules, Summary};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// How many earlier users of a base an access is paired with.
const NEIGHBOURS: usize = 2;
/// How far back it looks for them.
const LOOK_BACK: usize = 6;
/// How many candidates are renewed after a fusion.
const RENEWED: usize = 12;
/// A search for a path gives up, and the candidate with it, after so many blocks.
const PATH_BUDGET: usize = 512;
/// Blocks without common data are fused if their box has at most so many elements: then the start of a kernel counts.
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

/// Lists of numbers that can be joined in constant time.
#[derive(Default)]
struct Lists {
    head: Vec<u32>,
    tail: Vec<u32>,
    items: Vec<(u32, u32)>,
}

impl Lists {
    fn reset(&mut self, lists: usize) {
        self.items.clear();
        for ends in [&mut self.head, &mut self.tail] {
            ends.clear();
            ends.resize(lists, NONE);
        }
    }

    fn push(&mut self, list: u32, value: u32) {
        let item = self.items.len() as u32;
        self.items.push((value, NONE));
        match self.tail[list as usize] {
            NONE => self.head[list as usize] = item,
            tail => self.items[tail as usize].1 = item,
        }
        self.tail[list as usize] = item;
    }

    fn append(&mut self, list: u32, other: u32) {
        let (list, other) = (list as usize, other as usize);
        if self.head[other] == NONE {
            return;
        }
        match self.tail[list] {
            NONE => self.head[list] = self.head[other],
            tail => self.items[tail as usize].1 = self.head[other],
        }
        self.tail[list] = self.tail[other];
    }
}

/// The state of the algorithm, reused from batch to batch.
#[derive(Default)]
pub struct Greedy {
    parent: Vec<u32>,
    summaries: Vec<Summary>,
    ranges: Vec<(u32, u32)>,
    room: Vec<u32>,
    pool: Vec<Entry>,
    successors: Lists,
    partners: Lists,
    place: Vec<u32>,
    at: Vec<u32>,
    heap: BinaryHeap<Candidate>,
    visited: Vec<u32>,
    visit: u32,
    stack: Vec<u32>,
    reached: Vec<u32>,
    shifted: Vec<u32>,
    recent: Vec<u32>,
    joined: Vec<Entry>,
    last_access: Vec<u32>,
    links: Vec<(u32, u32)>,
    last_writer: Vec<u32>,
    last_of_view: Vec<u32>,
}

impl Greedy {
    /// Partitions the batch: instructions with equal labels share a block.
    pub fn run(&mut self, rules: &mut Rules<'_>, dependencies: &Dependencies, labels: &mut [u32]) {
        self.reset(rules, dependencies);
        self.find_candidates(rules);
        while let Some(candidate) = self.heap.pop() {
            let (a, b) = (self.find(candidate.a), self.find(candidate.b));
            if a == b {
                continue;
            }
            let Ok(join) = rules.check(self.block(a), self.block(b)) else { continue };
            if join.saving <= 0 {
                continue;
            }
            if join.saving < candidate.saving {
                self.heap.push(Candidate { saving: join.saving, ..candidate });
                continue;
            }
            if self.path_between(a, b) {
                continue;
            }
            let (root, brought) = self.fuse(rules, a, b, join.summary);
            self.renew_candidates(rules, root, brought);
        }
        if (rules.options.cost.kernel)(rules.options) > 0 {
            self.fuse_small(rules);
        }
        for (op, label) in labels.iter_mut().enumerate() {
            *label = if rules.facts.ops[op].class == Class::System { NONE } else { self.find(op as u32) };
        }
    }

    fn reset(&mut self, rules: &Rules<'_>, dependencies: &Dependencies) {
        let count = rules.facts.ops.len();
        self.parent.clear();
        self.parent.extend(0..count as u32);
        self.place.clear();
        self.place.extend(0..count as u32);
        self.at.clear();
        self.at.extend(0..count as u32);
        self.visited.clear();
        self.visited.resize(count, 0);
        self.visit = 0;
        self.heap.clear();
        self.pool.clear();
        self.ranges.clear();
        self.room.clear();
        self.summaries.clear();
        for op in 0..count as u32 {
            let first = self.pool.len() as u32;
            rules.entries(op, &mut self.pool);
            self.ranges.push((first, self.pool.len() as u32));
            self.room.push(self.pool.len() as u32 - first);
            self.summaries.push(rules.summary(op));
        }
        self.successors.reset(count);
        for &(earlier, later) in &dependencies.edges {
            self.successors.push(earlier, later);
        }
        self.partners.reset(count);
    }

    fn block(&self, block: u32) -> (&Summary, &[Entry]) {
        let (first, end) = self.ranges[block as usize];
        (&self.summaries[block as usize], &self.pool[first as usize..end as usize])
    }

    fn find(&mut self, op: u32) -> u32 {
        let mut at = op;
        while self.parent[at as usize] != at {
            let above = self.parent[self.parent[at as usize] as usize];
            self.parent[at as usize] = above;
            at = above;
        }
        at
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
        let mut marked = std::mem::take(&mut self.shifted);
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
        self.shifted = marked;
    }

    fn consider(&mut self, rules: &mut Rules<'_>, a: u32, b: u32) {
        if let Ok(join) = rules.check(self.block(a), self.block(b))
            && join.saving > 0
        {
            self.heap.push(Candidate { saving: join.saving, a: a.min(b), b: a.max(b) });
        }
    }

    /// Does a path lead from one block to the other through a third? Leaves what the first one reaches before the
    /// other's place in `reached`.
    fn path_between(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = if self.place[a as usize] < self.place[b as usize] { (a, b) } else { (b, a) };
        let end = self.place[b as usize];
        self.visit += 1;
        self.reached.clear();
        self.stack.clear();
        self.stack.push(a);
        while let Some(block) = self.stack.pop() {
            let mut item = self.successors.head[block as usize];
            while item != NONE {
                let (target, next) = self.successors.items[item as usize];
                item = next;
                let target = self.find(target);
                if target == b && block != a {
                    return true;
                }
                if self.place[target as usize] >= end || target == a || self.visited[target as usize] == self.visit {
                    continue;
                }
                self.visited[target as usize] = self.visit;
                self.reached.push(target);
                if self.reached.len() > PATH_BUDGET {
                    return true;
                }
                self.stack.push(target);
            }
        }
        false
    }

    /// Joins two blocks after [`Rules::check`] and [`Greedy::path_between`] allowed it. Returns the joined block and the
    /// stretch (first and last item) of its partners that came from the smaller one.
    fn fuse(&mut self, rules: &mut Rules<'_>, a: u32, b: u32, summary: Summary) -> (u32, (u32, u32)) {
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        rules.join(self.block(a).1, self.block(b).1, &mut joined);
        let (root, other) =
            if self.summaries[a as usize].ops >= self.summaries[b as usize].ops { (a, b) } else { (b, a) };
        self.put_entries(root, &joined);
        self.joined = joined;
        self.parent[other as usize] = root;
        self.summaries[root as usize] = summary;
        self.successors.append(root, other);
        let brought = (self.partners.head[other as usize], self.partners.tail[other as usize]);
        self.partners.append(root, other);
        let (low, high) = {
            let (x, y) = (self.place[a as usize], self.place[b as usize]);
            (x.min(y), x.max(y))
        };
        self.move_to(root, low, high);
        (root, brought)
    }

    /// Writes a block's entries over its old ones, or behind all others if they grew.
    fn put_entries(&mut self, block: u32, entries: &[Entry]) {
        let (first, _) = self.ranges[block as usize];
        let room = &mut self.room[block as usize];
        let first = if entries.len() as u32 <= *room {
            self.pool[first as usize..][..entries.len()].copy_from_slice(entries);
            first
        } else {
            let first = self.pool.len() as u32;
            self.pool.extend_from_slice(entries);
            // Some room to grow in.
            *room = entries.len() as u32 * 3 / 2;
            if let Some(last) = entries.last() {
                self.pool.resize((first + *room) as usize, *last);
            }
            first
        };
        self.ranges[block as usize] = (first, first + entries.len() as u32);
    }

    /// Gives the joined block of places `low` and `high` a place behind everything that leads to it, and moves what it
    /// reaches behind it.
    fn move_to(&mut self, root: u32, low: u32, high: u32) {
        self.at[low as usize] = NONE;
        if self.reached.is_empty() {
            (self.at[high as usize], self.place[root as usize]) = (root, high);
            return;
        }
        let mut behind = std::mem::take(&mut self.shifted);
        behind.clear();
        let mut write = low;
        for read in low + 1..high {
            let block = self.at[read as usize];
            if block == NONE {
                continue;
            }
            if self.visited[block as usize] == self.visit {
                behind.push(block);
            } else {
                (self.at[write as usize], self.place[block as usize]) = (block, write);
                write += 1;
            }
        }
        for &block in std::iter::once(&root).chain(&behind) {
            (self.at[write as usize], self.place[block as usize]) = (block, write);
            write += 1;
        }
        self.at[write as usize..=high as usize].fill(NONE);
        self.shifted = behind;
    }

    /// Evaluates the candidates that the smaller part of a new block brought; for the others nothing changed.
    fn renew_candidates(&mut self, rules: &mut Rules<'_>, root: u32, brought: (u32, u32)) {
        self.visit += 1;
        let (mut item, last) = brought;
        let mut renewed = 0;
        while item != NONE && renewed < RENEWED {
            let (partner, next) = self.partners.items[item as usize];
            let partner = self.find(partner);
            if partner != root && self.visited[partner as usize] != self.visit {
                self.visited[partner as usize] = self.visit;
                self.consider(rules, root, partner);
                renewed += 1;
            }
            item = if item == last { NONE } else { next };
        }
    }

    /// Fuses small blocks without common data, to start fewer kernels.
    fn fuse_small(&mut self, rules: &mut Rules<'_>) {
        let mut recent = std::mem::take(&mut self.recent);
        recent.clear();
        let blocks: Vec<u32> = self.at.iter().copied().filter(|&block| block != NONE).collect();
        for block in blocks {
            let class = rules.facts.ops[block as usize].class;
            if matches!(class, Class::System | Class::Alone) || self.summaries[block as usize].elements > SMALL_BOX {
                continue;
            }
            let mut current = block;
            for at in (recent.len().saturating_sub(SMALL_TRIES)..recent.len()).rev() {
                let earlier = recent[at];
                let Ok(join) = rules.check(self.block(earlier), self.block(current)) else { continue };
                if join.saving > 0 && !self.path_between(earlier, current) {
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
