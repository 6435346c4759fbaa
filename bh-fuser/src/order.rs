//! A topological order of blocks that changes little when two of them are fused.
//!
//! Each block has a label; labels grow along the order, with room between them. When two blocks are fused, the joint one takes
//! the later one's place, and what it leads to before that place moves right behind it.

use crate::blocks::Blocks;
use crate::deps::Dependencies;
use crate::facts::NONE;
use crate::lists::Lists;
use bh_bytecode::steps;

/// The dependencies that a search for a path looks at. If it ends there, there may be a path.
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
    visited: Vec<u32>,
    visit: u32,
    stack: Vec<u32>,
    /// The blocks that the last search found behind the earlier block, before the later one's place.
    reached: Vec<u32>,
}

impl Order {
    /// Program order of `count` instructions, each a block.
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
        for &(earlier, later) in &dependencies.edges {
            self.successors.push(earlier, later);
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

    /// May a path lead from one block to the other through a third? Remembers what the earlier one reaches.
    pub fn path_between(&mut self, blocks: &mut Blocks, a: u32, b: u32) -> bool {
        let (a, b) = if self.labels[a as usize] < self.labels[b as usize] { (a, b) } else { (b, a) };
        let end = self.labels[b as usize];
        self.reached.clear();
        self.stack.clear();
        self.stack.push(a);
        self.visit += 1;
        let mut looked = 0;
        let mut found = false;
        'search: while let Some(block) = self.stack.pop() {
            let mut place = self.successors.begin(block);
            while let Some(target) = self.successors.value(place) {
                looked += 1;
                if looked > PATH_BUDGET {
                    found = true;
                    break 'search;
                }
                let block_of = blocks.find(target);
                if block_of == block {
                    place = self.successors.remove(block, place);
                    continue;
                }
                self.successors.replace(place, block_of);
                place = self.successors.after(place);
                if block_of == b && block != a {
                    found = true;
                    break 'search;
                }
                if self.labels[block_of as usize] >= end
                    || block_of == a
                    || self.visited[block_of as usize] == self.visit
                {
                    continue;
                }
                self.visited[block_of as usize] = self.visit;
                self.reached.push(block_of);
                self.stack.push(block_of);
            }
        }
        steps::add(looked);
        found
    }

    /// Joins two blocks between which [`Order::path_between`] has just found no path; `root` stands for both.
    pub fn join(&mut self, root: u32, other: u32) {
        self.successors.append(root, other);
        let (early, late) =
            if self.labels[root as usize] < self.labels[other as usize] { (root, other) } else { (other, root) };
        // The blocks reached are between the two.
        let mut behind = std::mem::take(&mut self.reached);
        steps::add(behind.len());
        behind.sort_unstable_by_key(|&block| self.labels[block as usize]);
        behind.iter().for_each(|&block| self.unlink(block));
        if early == root {
            // It takes the later one's place.
            self.unlink(root);
            let (previous, next) = (self.previous[late as usize], self.next[late as usize]);
            self.labels[root as usize] = self.labels[late as usize];
            (self.previous[root as usize], self.next[root as usize]) = (previous, next);
            self.connect(previous, root);
            self.connect_next(root, next);
        } else {
            self.unlink(early);
        }
        self.put_behind(root, &behind);
        behind.clear();
        self.reached = behind;
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

    /// Puts blocks behind another one, in this order.
    fn put_behind(&mut self, block: u32, behind: &[u32]) {
        if behind.is_empty() {
            return;
        }
        let mut at = block;
        let end = self.next[block as usize];
        for &next in behind {
            self.next[at as usize] = next;
            self.previous[next as usize] = at;
            at = next;
        }
        self.next[at as usize] = end;
        self.connect_next(at, end);
        let low = self.labels[block as usize];
        let high = if end == NONE { low + ROOM * (behind.len() as u64 + 1) } else { self.labels[end as usize] };
        let step = (high - low) / (behind.len() as u64 + 1);
        if step == 0 {
            self.relabel();
            return;
        }
        for (number, &next) in (1..).zip(behind) {
            self.labels[next as usize] = low + step * number;
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
