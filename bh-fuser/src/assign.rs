//! The algorithms that need no graph: `singleton` and `naive`.

use crate::blocks::Blocks;
use crate::deps::Dependencies;
use crate::facts::{Class, NONE};
use crate::legality::Rules;

/// Each instruction's block is itself.
pub fn singleton(rules: &Rules<'_>, labels: &mut [u32]) {
    for (op, label) in labels.iter_mut().enumerate() {
        *label = if rules.facts.ops[op].class == Class::System { NONE } else { op as u32 };
    }
}

/// In program order, a new block whenever the next instruction does not fit into the current one.
pub fn naive(rules: &mut Rules<'_>, dependencies: &Dependencies, blocks: &mut Blocks, labels: &mut [u32]) {
    blocks.reset(rules, dependencies);
    let mut current = None;
    for op in 0..labels.len() as u32 {
        if rules.facts.ops[op as usize].class == Class::System {
            continue;
        }
        let fits = current.and_then(|block| Some((block, blocks.check(rules, block, op).ok()?)));
        current = Some(match fits {
            Some((block, join)) => blocks.fuse(rules, block, op, join.summary).0,
            None => op,
        });
    }
    for (op, label) in labels.iter_mut().enumerate() {
        *label = if rules.facts.ops[op].class == Class::System { NONE } else { blocks.find(op as u32) };
    }
}
