//! `unintrusive`: fuses only where no other choice is taken away.
//!
//! Two blocks are fused if one of them has no other fusion to gain from, both are kept apart from the same blocks, the
//! fused block is kept apart from no others, and every other worthwhile fusion stays possible (without this last
//! condition the paper's Theorem 3 does not hold).

use crate::components::{Component, components};
use crate::deps::Dependencies;
use crate::entry::Entry;
use crate::facts::{Class, NONE};
use crate::legality::{Rules, Summary};

/// Instructions of a window. Larger components are cut into windows.
pub const WINDOW: usize = 64;

/// Partitions the batch: instructions with equal labels share a block.
pub fn run(rules: &mut Rules<'_>, dependencies: &Dependencies, labels: &mut [u32]) {
    for (op, label) in labels.iter_mut().enumerate() {
        *label = if rules.facts.ops[op].class == Class::System { NONE } else { op as u32 };
    }
    for component in components(rules.facts, dependencies) {
        for window in component.windows(WINDOW) {
            let mut graph = Graph::new(rules, &window);
            while graph.fuse_one(rules) {}
            for node in &graph.nodes {
                node.ops.iter().for_each(|&op| labels[op as usize] = node.ops[0]);
            }
        }
    }
}

#[derive(Clone)]
struct Node {
    ops: Vec<u32>,
    summary: Summary,
    entries: Vec<Entry>,
}

/// The partition graph of at most 64 blocks; sets of blocks are bit masks.
#[derive(Clone)]
struct Graph {
    nodes: Vec<Node>,
    successors: Vec<u64>,
    /// Saving of each pair, `None` if it may not share a kernel.
    saving: Vec<Vec<Option<i64>>>,
    reach: Vec<u64>,
    /// Blocks that each block cannot share a kernel with, directly or because of what lies between.
    apart: Vec<u64>,
    /// Blocks that each block would gain from, and may be fused with at once.
    edges: Vec<u64>,
}

fn bits(mask: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |bit| mask >> bit & 1 == 1)
}

impl Graph {
    fn new(rules: &mut Rules<'_>, window: &Component) -> Graph {
        let count = window.ops.len();
        let mut nodes = Vec::with_capacity(count);
        for &op in &window.ops {
            nodes.push(Node { ops: vec![op], summary: rules.summary(op), entries: rules.entries_of(&[op]) });
        }
        let mut successors = vec![0u64; count];
        for (to, before) in window.before.iter().enumerate() {
            before.iter().for_each(|&from| successors[from as usize] |= 1 << to);
        }
        let saving = vec![vec![None; count]; count];
        let mut graph = Graph { nodes, successors, saving, reach: vec![], apart: vec![], edges: vec![] };
        (0..count).for_each(|node| graph.compare(rules, node, node));
        graph.analyse();
        graph
    }

    /// Fills in the savings of a node with the nodes before `end`.
    fn compare(&mut self, rules: &mut Rules<'_>, node: usize, end: usize) {
        for other in (0..end).filter(|&other| other != node) {
            let (a, b) = (&self.nodes[node], &self.nodes[other]);
            let saving = rules.check((&a.summary, &a.entries), (&b.summary, &b.entries)).ok().map(|join| join.saving);
            self.saving[node][other] = saving;
            self.saving[other][node] = saving;
        }
    }

    fn analyse(&mut self) {
        let count = self.nodes.len();
        self.reach = self.successors.clone();
        for middle in 0..count {
            for from in 0..count {
                if self.reach[from] >> middle & 1 == 1 {
                    self.reach[from] |= self.reach[middle];
                }
            }
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&node| std::cmp::Reverse(self.reach[node].count_ones()));
        let forbidden = |a: usize, b: usize| self.saving[a][b].is_none();
        let mut apart: Vec<u64> = (0..count)
            .map(|a| (0..count).filter(|&b| b != a && forbidden(a, b)).fold(0, |mask, b| mask | 1 << b))
            .collect();
        for (at, &from) in order.iter().enumerate().rev() {
            for &to in order[at + 1..].iter().filter(|&&to| self.reach[from] >> to & 1 == 1) {
                let starts = bits(self.successors[from])
                    .any(|next| self.reach[next] >> to & 1 == 1 && apart[next] >> to & 1 == 1);
                let ends = bits(self.reach[from])
                    .any(|last| self.successors[last] >> to & 1 == 1 && apart[from] >> last & 1 == 1);
                if starts || ends {
                    apart[from] |= 1 << to;
                    apart[to] |= 1 << from;
                }
            }
        }
        self.apart = apart;
        let indirect = |from: usize, to: usize| bits(self.successors[from]).any(|next| self.reach[next] >> to & 1 == 1);
        self.edges = (0..count)
            .map(|a| {
                (0..count)
                    .filter(|&b| a != b && self.saving[a][b].is_some_and(|saving| saving > 0))
                    .filter(|&b| !indirect(a, b) && !indirect(b, a))
                    .fold(0, |mask, b| mask | 1 << b)
            })
            .collect();
    }

    /// Fuses two blocks if any two may be; the heaviest edge first.
    fn fuse_one(&mut self, rules: &mut Rules<'_>) -> bool {
        let mut candidates: Vec<(i64, usize, usize)> = Vec::new();
        for a in 0..self.nodes.len() {
            for b in bits(self.edges[a]).filter(|&b| b > a) {
                let pendant = self.edges[a].count_ones() == 1 || self.edges[b].count_ones() == 1;
                if pendant && self.apart[a] == self.apart[b] {
                    candidates.push((-self.saving[a][b].unwrap_or(0), a, b));
                }
            }
        }
        candidates.sort_unstable();
        for (_, a, b) in candidates {
            if let Some(fused) = self.fused(rules, a, b)
                && self.keeps_choices(&fused, a, b)
            {
                *self = fused;
                return true;
            }
        }
        false
    }

    /// The graph with `a` and `b` (the larger number) fused into `a`.
    fn fused(&self, rules: &mut Rules<'_>, a: usize, b: usize) -> Option<Graph> {
        let mut graph = self.clone();
        let (x, y) = (&self.nodes[a], &self.nodes[b]);
        let join = rules.check((&x.summary, &x.entries), (&y.summary, &y.entries)).ok()?;
        let mut entries = Vec::new();
        rules.join(&x.entries, &y.entries, &mut entries);
        let mut ops = [x.ops.as_slice(), &y.ops].concat();
        ops.sort_unstable();
        graph.nodes[a] = Node { ops, summary: join.summary, entries };
        graph.nodes.remove(b);
        graph.successors[a] = (self.successors[a] | self.successors[b]) & !(1 << a | 1 << b);
        graph.successors.remove(b);
        for mask in &mut graph.successors {
            *mask = without(*mask, a, b);
        }
        graph.saving.remove(b);
        graph.saving.iter_mut().for_each(|row| {
            row.remove(b);
        });
        let count = graph.nodes.len();
        graph.compare(rules, a, count);
        graph.analyse();
        Some(graph)
    }

    /// Is the fused block apart from exactly what `a` was apart from, and is every other edge still there?
    fn keeps_choices(&self, fused: &Graph, a: usize, b: usize) -> bool {
        let moved = |node: usize| if node == b { a } else { node - usize::from(node > b) };
        fused.apart[a] == without(self.apart[a], a, b)
            && (0..self.nodes.len()).all(|x| {
                bits(self.edges[x]).all(|y| {
                    let (to, from) = (moved(x), moved(y));
                    to == from || fused.edges[to] >> from & 1 == 1
                })
            })
    }
}

/// The set with `b` replaced by `a`, and the numbers above `b` moved down.
fn without(mask: u64, a: usize, b: usize) -> u64 {
    let mask = if mask >> b & 1 == 1 { mask | 1 << a } else { mask };
    let low = mask & ((1 << b) - 1);
    let high = if b == 63 { 0 } else { mask >> (b + 1) << b };
    low | high
}
