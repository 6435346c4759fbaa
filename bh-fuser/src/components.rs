//! Independent parts of a batch: instructions that share no base, directly or through others.

use crate::deps::Dependencies;
use crate::facts::{Class, Facts, NONE};

/// A connected part of a batch, in program order.
pub struct Component {
    /// The working instructions.
    pub ops: Vec<u32>,
    /// For each of them the places in `ops` that it depends on.
    pub before: Vec<Vec<u32>>,
}

/// The connected parts of a batch.
pub fn components(facts: &Facts, dependencies: &Dependencies) -> Vec<Component> {
    // Union-find over bases; an instruction belongs where its first base belongs.
    let mut parent: Vec<u32> = (0..facts.bases.len() as u32).collect();
    fn find(parent: &mut [u32], mut at: u32) -> u32 {
        while parent[at as usize] != at {
            parent[at as usize] = parent[parent[at as usize] as usize];
            at = parent[at as usize];
        }
        at
    }
    let work = |op: &u32| facts.ops[*op as usize].class != Class::System;
    for op in (0..facts.ops.len() as u32).filter(work) {
        for pair in facts.accesses_of(op).windows(2) {
            let (a, b) = (find(&mut parent, pair[0].base), find(&mut parent, pair[1].base));
            parent[b as usize] = a;
        }
    }
    let mut found: Vec<Component> = Vec::new();
    let mut number = vec![NONE; facts.bases.len()];
    let mut place = vec![(NONE, NONE); facts.ops.len()];
    for op in (0..facts.ops.len() as u32).filter(work) {
        let root = facts.accesses_of(op).first().map(|access| find(&mut parent, access.base));
        let index = match root {
            Some(root) if number[root as usize] != NONE => number[root as usize],
            _ => {
                found.push(Component { ops: Vec::new(), before: Vec::new() });
                let index = found.len() as u32 - 1;
                if let Some(root) = root {
                    number[root as usize] = index;
                }
                index
            }
        };
        let component = &mut found[index as usize];
        place[op as usize] = (index, component.ops.len() as u32);
        component.ops.push(op);
        component.before.push(Vec::new());
    }
    for &(earlier, later) in &dependencies.edges {
        let ((_, from), (index, to)) = (place[earlier as usize], place[later as usize]);
        found[index as usize].before[to as usize].push(from);
    }
    found
}

impl Component {
    /// Pieces of at most `size` instructions, in program order, without the dependencies between pieces.
    pub fn windows(&self, size: usize) -> Vec<Component> {
        let piece = |first: usize| {
            let end = (first + size).min(self.ops.len());
            let inside = |before: &Vec<u32>| {
                before.iter().filter(|&&at| at as usize >= first).map(|&at| at - first as u32).collect()
            };
            Component {
                ops: self.ops[first..end].to_vec(),
                before: self.before[first..end].iter().map(inside).collect(),
            }
        };
        (0..self.ops.len()).step_by(size).map(piece).collect()
    }
}
