//! The key of a batch by the relations between its views: programs over ever smaller views have equal keys, step by step.

use crate::facts::{Facts, NONE};
use crate::options::Options;
use crate::relation::{Relation, RelationCache};
use crate::rename;
use bh_bytecode::BatchRef;

/// The most pairs of views that a key may hold.
const MOST_PAIRS: usize = 4096;

/// Numbers things in the order of their first use.
struct Numbers(Vec<u32>, u32);

impl Numbers {
    fn new(len: usize) -> Numbers {
        Numbers(vec![NONE; len], 0)
    }

    fn get(&mut self, index: u32) -> (u32, bool) {
        let number = &mut self.0[index as usize];
        let new = *number == NONE;
        if new {
            *number = self.1;
            self.1 += 1;
        }
        (*number, new)
    }
}

/// Writes the key; false if there are too many pairs of views.
///
/// It holds whatever the rules look at: opcodes and parameters, which operands are one view, one shape or one base, the
/// flags of bases, how the views of each written base relate, and whether one of these views leaves little enough of its
/// base for a rename. That several writes together do must be looked at again.
pub fn relations_key(
    batch: &BatchRef<'_>,
    facts: &Facts,
    options: &Options,
    relations: &mut RelationCache,
    key: &mut Vec<u64>,
) -> bool {
    key.clear();
    let (mut views, mut bases) = (Numbers::new(batch.views.len()), Numbers::new(batch.bases.len()));
    let mut shapes = Numbers::new(batch.views.len());
    let mut used: Vec<Vec<u32>> = vec![Vec::new(); batch.bases.len()];
    key.push(batch.instrs.len() as u64);
    for (instr, op) in batch.instrs.iter().zip(&facts.ops) {
        let counts = (instr.count as u64) << 32 | (instr.outputs as u64) << 40;
        key.push(instr.opcode.0 as u64 | (instr.param as u64) << 16 | counts | (op.order as u64) << 48);
        for operand in instr.operands() {
            let Some(view) = operand.as_view() else {
                key.push(u64::MAX - batch.dtype(*operand).map_or(0, |dtype| dtype as u64));
                continue;
            };
            let (number, new) = views.get(view);
            key.push(number as u64);
            if !new {
                continue;
            }
            let fact = &facts.views[view as usize];
            let base = batch.views[view as usize].base;
            let (shape, _) = shapes.get(fact.shape);
            let empty = batch.views[view as usize].len == 0;
            let mut word = shape as u64 | (fact.whole as u64) << 32 | (empty as u64) << 33;
            if let Some(record) = batch.bases.get(base as usize) {
                used[base as usize].push(view);
                let (number, new) = bases.get(base);
                word |= (number as u64 + 1) << 34;
                if new {
                    key.push((record.flags as u64) << 8 | record.dtype as u64);
                }
            }
            key.push(word);
        }
    }
    let written = |base: &usize| facts.bases[*base].written;
    let pairs: usize = (0..used.len()).filter(written).map(|base| used[base].len().pow(2) / 2).sum();
    if pairs > MOST_PAIRS {
        return false;
    }
    for base in (0..used.len()).filter(written) {
        // Bases are walked by table index, so the index order is part of the key.
        key.push(bases.get(base as u32).0 as u64);
        let mut overlaps = false;
        for (at, &a) in used[base].iter().enumerate() {
            for &b in &used[base][..at] {
                let code = match relations.get(batch, a, b) {
                    Relation::Identical => 0,
                    Relation::Disjoint => 1,
                    Relation::Contains => 2,
                    Relation::Inside => 3,
                    Relation::Overlapping => 4,
                };
                overlaps |= code > 1;
                key.push(code);
            }
        }
        if overlaps {
            let bytes = |view: &u32| facts.views[*view as usize].bytes;
            let little = |view: &u32| u64::from(rename::leaves_little(batch, options, base as u32, bytes(view)));
            key.extend(used[base].iter().map(little));
        }
    }
    true
}
