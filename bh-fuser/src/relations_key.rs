//! The key of a batch by the dependencies between its instructions: programs over ever smaller views have equal keys, step by step.

use crate::deps::{Conflict, Dependencies};
use crate::facts::{Facts, NONE};
use crate::options::Options;
use crate::rename;
use bh_bytecode::BatchRef;

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

/// Writes the key.
///
/// It holds whatever the rules look at: opcodes and parameters, which operands are one view, one shape or one base, the
/// flags of bases, the dependencies and which of them are conflicts, and whether one of the views of a base that may be renamed
/// leaves little enough of it. That several writes together do must be looked at again.
pub fn relations_key(
    batch: &BatchRef<'_>,
    facts: &Facts,
    options: &Options,
    dependencies: &Dependencies,
    key: &mut Vec<u64>,
) {
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
    for &(earlier, later) in &dependencies.edges {
        key.push(u64::from(earlier) << 32 | u64::from(later));
    }
    let mut clashing = vec![false; batch.bases.len()];
    for clash in &dependencies.clashes {
        let code = match clash.conflict {
            Conflict::ReadAfterWrite => 0,
            Conflict::WriteAfterWrite => 1,
            Conflict::Barrier => 2,
            Conflict::WriteAfterRead { read, write } => {
                clashing[clash.base as usize] = true;
                3 + (u64::from(views.get(read).0) << 2 | u64::from(views.get(write).0) << 33)
            }
        };
        key.extend([u64::from(clash.earlier) << 32 | u64::from(clash.later), code, u64::from(bases.get(clash.base).0)]);
    }
    for base in (0..used.len()).filter(|&base| clashing[base]) {
        // Bases are walked by table index, so the index order is part of the key.
        key.push(bases.get(base as u32).0 as u64);
        let bytes = |view: &u32| facts.views[*view as usize].bytes;
        let little =
            |view: &u32| u64::from(rename::leaves_little(batch, options.rename_percent, base as u32, bytes(view)));
        key.extend(used[base].iter().map(little));
    }
}
