//! The bytes that the arrays of a batch take in memory at a time.

use bh_bytecode::batch::NO_BASE;
use bh_bytecode::{BatchRef, base_flags};

/// The most bytes of arrays that exist while one block of a batch with a partition runs. Contracted bases take none; a base
/// that the batch begins or ends exists from its first or to its last block only; a renamed one has two buffers in its block.
pub fn footprint(batch: &BatchRef<'_>) -> u64 {
    let blocks = batch.blocks.len();
    let mut lives: Vec<Option<(usize, usize)>> = vec![None; batch.bases.len()];
    let mut more = vec![0u64; blocks];
    for (at, block) in batch.blocks.iter().enumerate() {
        let operands = batch.block_instrs(block).iter().flat_map(|&instr| batch.instrs[instr as usize].operands());
        let bases = operands.filter_map(|operand| Some(batch.views[operand.as_view()? as usize].base));
        for base in bases.filter(|base| *base != NO_BASE) {
            let life = &mut lives[base as usize];
            *life = Some((life.map_or(at, |(first, _)| first), at));
        }
        more[at] = batch.renames(block).iter().map(|rename| bytes(batch, rename.base)).fold(0, u64::saturating_add);
    }
    for &base in batch.blocks.iter().flat_map(|block| batch.contracted(block)) {
        lives[base as usize] = None;
    }
    // Bytes that begin with each block, and bytes that have ended before it.
    let (mut begins, mut ended) = (vec![0u64; blocks + 1], vec![0u64; blocks + 1]);
    for (base, life) in (0..).zip(&lives) {
        let Some((first, last)) = *life else { continue };
        let record = &batch.bases[base as usize];
        let first = if record.has(base_flags::BORN) { first } else { 0 };
        let end = if record.has(base_flags::DIES) { last + 1 } else { blocks };
        begins[first] = begins[first].saturating_add(bytes(batch, base));
        ended[end] = ended[end].saturating_add(bytes(batch, base));
    }
    let (mut now, mut most) = (0u64, 0u64);
    for at in 0..blocks {
        now = now.saturating_sub(ended[at]).saturating_add(begins[at]);
        most = most.max(now.saturating_add(more[at]));
    }
    most
}

fn bytes(batch: &BatchRef<'_>, base: u32) -> u64 {
    batch.bases[base as usize].bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::text::parse;

    #[test]
    fn arrays_count_while_they_exist() {
        let text = "bh batch 1
base b0 = f64[100] id 1 live_out
base b1 = f64[200] id 2 born dies
base b2 = f64[300] id 3 born dies
base b3 = f64[400] id 4 born dies
view v0 = b0 at 0 [100:1]
view v1 = b1 at 0 [100:1]
view v2 = b2 at 0 [100:1]
view v3 = b3 at 0 [100:1]
i0: v1 = add v0, v0
i1: v2 = add v1, v0
i2: v3 = add v2, v0
i3: v0 = add v3, v3
";
        let mut batch = parse(text).unwrap();
        (0..4).for_each(|index| batch.push_block(&[index], &[]));
        assert_eq!(footprint(&batch.as_ref()), 8 * (100 + 300 + 400));
        let mut batch = parse(text).unwrap();
        batch.push_block(&[0, 1, 2], &[1, 2]);
        batch.push_block(&[3], &[]);
        assert_eq!(footprint(&batch.as_ref()), 8 * (100 + 400));
        batch.push_rename(0, &[], None);
        assert_eq!(footprint(&batch.as_ref()), 8 * (100 + 400 + 100));
    }
}
