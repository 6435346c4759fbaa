//! A topological order of blocks that changes little when two of them are fused.
//!
//! Each block has a label; labels grow along the order, with room between them. The search for a path between two blocks goes
//! forward from the earlier one or backward from the later one, whichever has fewer dependencies. When the two are fused, the
//! joint one takes the place of the block to which the search went, and what the search came by moves to its other side.

use crate::blocks::Blocks;
use crate::deps::Dependencies;
use crate::facts::NONE;
use crate::lists::Lists;
use bh_bytecode::steps;

/// A search for a path gives up after so many dependencies: then there may be one.
const PATH_BUDGET: usize = 512;
/// The distance of labels at the begin.
const ROOM: u64 = 1 << 32;

/// The order of a batch's blocks.
#[derive(Default)]
pub struct Order {
    labels: Vec<u64>,
    /// The neighbours in the order.
    next: Vec<u32>,
    previous: Vec<u32>,
    first: u32,
    successors: Lists,
    predecessors: Lists,
    /// Dependencies of each block: to it, and from it.
    degrees: Vec<(u32, u32)>,
    visited: Vec<u32>,
    visit: u32,
    stack: Vec<u32>,
    /// What the last search came by between the two blocks, and whether it went backward.
    reached: Vec<u32>,
    backward: bool,
}

impl Order {
    /// Program order of so many instructions, each a block.
    pub fn reset(&mut self, count: usize, dependencies: &Dependencies) {
        self.labels.clear();
        self.labels.extend((1..=count as u64).map(|at| at * ROOM));
        self.next.clear();
        self.next.extend((1..=count as u32).map(|at| if at as usize == count { NONE } else { at }));
        self.previous.clear();
        self.previous.extend((0..count as u32).map(|at| if at == 0 { NONE } else { at - 1 }));
        self.first = if count == 0 { NONE } else { 0 };
        self.visited.clear();
        self.visited.resize(count, 0);
        self.visit = 0;
        self.successors.reset(count);
        self.predecessors.reset(count);
        self.degrees.clear();
        self.degrees.resize(count, (0, 0));
        for &(earlier, later) in &dependencies.edges {
            self.successors.push(earlier, later);
            self.predecessors.push(later, earlier);
            self.degrees[earlier as usize].1 += 1;
            self.degrees[later as usize].0 += 1;
        }
    }

    /// The blocks in order.
    pub fn blocks(&self) -> Vec<u32> {
        let mut blocks = Vec::new();
        let mut at = self.first;
        while at != NONE {
            blocks.push(at);
            at = self.next[at as usize];
        }
        blocks
    }

    /// May a path lead from one block to the other through a third? Remembers what it came by.
    pub fn path_between(&mut self, blocks: &mut Blocks, a: u32, b: u32) -> bool {
        let (a, b) = if self.labels[a as usize] < self.labels[b as usize] { (a, b) } else { (b, a) };
        self.backward = self.degrees[b as usize].0 < self.degrees[a as usize].1;
        let (from, to) = if self.backward { (b, a) } else { (a, b) };
        let (low, high) = (self.labels[a as usize], self.labels[b as usize]);
        let lists = if self.backward { &mut self.predecessors } else { &mut self.successors };
        self.reached.clear();
        self.stack.clear();
        self.stack.push(from);
        self.visit += 1;
        let mut looked = 0;
        let mut found = false;
        'search: while let Some(block) = self.stack.pop() {
            let mut place = lists.begin(block);
            while let Some(target) = lists.value(place) {
                looked += 1;
                if looked > PATH_BUDGET {
                    found = true;
                    break 'search;
                }
                let next = blocks.find(target);
                if next == block {
                    place = lists.remove(block, place);
                    let degrees = &mut self.degrees[block as usize];
                    *(if self.backward { &mut degrees.0 } else { &mut degrees.1 }) -= 1;
                    continue;
                }
                lists.replace(place, next);
                place = lists.after(place);
                if next == to {
                    if block != from {
                        found = true;
                        break 'search;
                    }
                    continue;
                }
                let label = self.labels[next as usize];
                if label <= low || label >= high || self.visited[next as usize] == self.visit {
                    continue;
                }
                self.visited[next as usize] = self.visit;
                self.reached.push(next);
                self.stack.push(next);
            }
        }
        steps::add(looked);
        found
    }

    /// Joins two blocks between which [`Order::path_between`] has just found no path; `root` stands for both.
    pub fn join(&mut self, root: u32, other: u32) {
        self.successors.append(root, other);
        self.predecessors.append(root, other);
        let (to, from) = self.degrees[other as usize];
        let degrees = &mut self.degrees[root as usize];
        (degrees.0, degrees.1) = (degrees.0 + to, degrees.1 + from);
        let root_is_early = self.labels[root as usize] < self.labels[other as usize];
        let mut reached = std::mem::take(&mut self.reached);
        steps::add(reached.len());
        reached.sort_unstable_by_key(|&block| self.labels[block as usize]);
        reached.iter().for_each(|&block| self.unlink(block));
        if root_is_early == self.backward {
            self.unlink(other);
        } else {
            // It takes the other one's place.
            self.unlink(root);
            let (previous, next) = (self.previous[other as usize], self.next[other as usize]);
            self.labels[root as usize] = self.labels[other as usize];
            (self.previous[root as usize], self.next[root as usize]) = (previous, next);
            self.connect(previous, root);
            self.connect_next(root, next);
        }
        if self.backward {
            self.put_between(self.previous[root as usize], root, &reached);
        } else {
            self.put_between(root, self.next[root as usize], &reached);
        }
        reached.clear();
        self.reached = reached;
    }

    fn connect(&mut self, previous: u32, block: u32) {
        match previous {
            NONE => self.first = block,
            previous => self.next[previous as usize] = block,
        }
    }

    fn connect_next(&mut self, block: u32, next: u32) {
        if next != NONE {
            self.previous[next as usize] = block;
        }
    }

    fn unlink(&mut self, block: u32) {
        let (previous, next) = (self.previous[block as usize], self.next[block as usize]);
        self.connect(previous, next);
        if next != NONE {
            self.previous[next as usize] = previous;
        }
    }

    /// Puts blocks between two neighbours, one of which may not be there, in this order.
    fn put_between(&mut self, previous: u32, next: u32, blocks: &[u32]) {
        if blocks.is_empty() {
            return;
        }
        let mut at = previous;
        for &block in blocks {
            self.connect(at, block);
            self.previous[block as usize] = at;
            at = block;
        }
        self.next[at as usize] = next;
        self.connect_next(at, next);
        let count = blocks.len() as u64 + 1;
        let low = if previous == NONE { 0 } else { self.labels[previous as usize] };
        let high = if next == NONE { low + ROOM * count } else { self.labels[next as usize] };
        let step = (high - low) / count;
        if step == 0 {
            self.relabel();
            return;
        }
        for (number, &block) in (1..).zip(blocks) {
            self.labels[block as usize] = low + step * number;
        }
    }

    /// Gives all blocks labels with room between them again.
    fn relabel(&mut self) {
        let blocks = self.blocks();
        steps::add(blocks.len());
        for (number, block) in (1..).zip(blocks) {
            self.labels[block as usize] = number * ROOM;
        }
    }
}
