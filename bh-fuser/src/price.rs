//! What a finished partition costs, kernel by kernel.

use crate::cost;
use crate::facts::{Facts, NONE};
use crate::legality::{Entry, Rules, fold_entries};
use crate::options::Options;
use crate::relation::RelationCache;
use bh_bytecode::BatchRef;

/// The cost of a partition by a cost model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// The cost of each block, in bytes.
    pub blocks: Vec<i64>,
    /// What each block's instructions would cost one by one.
    pub unfused: Vec<i64>,
}

impl Price {
    /// The cost of the whole partition.
    pub fn total(&self) -> i64 {
        self.blocks.iter().sum()
    }

    /// The cost without fusion.
    pub fn total_unfused(&self) -> i64 {
        self.unfused.iter().sum()
    }
}

/// Estimates the bytes that cross the memory bus in a batch without and with its partition.
pub fn moved(batch: &BatchRef<'_>, options: &Options) -> [u64; 2] {
    let traffic = price(batch, &Options { cost: &cost::TRAFFIC, kernel_bytes: 0, ..options.clone() });
    [traffic.total_unfused(), traffic.total()].map(|bytes| u64::try_from(bytes).unwrap_or(0))
}

/// The cost of a batch's partition.
pub fn price(batch: &BatchRef<'_>, options: &Options) -> Price {
    let (mut facts, mut relations) = (Facts::default(), RelationCache::default());
    facts.gather(batch);
    relations.reset(batch.views.len());
    let rules = Rules::new(batch, &facts, options, &mut relations);
    let kernel = (options.cost.kernel)(options);
    let mut price = Price::default();
    for block in batch.blocks {
        let work = || batch.block_instrs(block).iter().filter(|&&instr| facts.ops[instr as usize].shape != NONE);
        let mut entries: Vec<Entry> = Vec::new();
        work().for_each(|&instr| rules.entries(instr, &mut entries));
        entries.sort_by_key(|entry| (entry.base, entry.view));
        fold_entries(&mut entries);
        let renamed = |base| batch.renames(block).iter().any(|rename| rename.base == base);
        let aliased = |base| batch.renames(block).iter().any(|rename| rename.alias == base);
        let contracted = |base| batch.contracted(block).contains(&base) || (options.cost.free_aliases && aliased(base));
        let cost: i64 = entries
            .chunk_by(|a, b| a.base == b.base)
            .map(|group| {
                let base = group[0].base;
                (options.cost.base)(&facts, batch, base, group, contracted(base), renamed(base))
            })
            .sum();
        let alone = |&instr: &u32| -> i64 {
            let mut own = Vec::new();
            rules.entries(instr, &mut own);
            let bases = own.chunk_by(|a, b| a.base == b.base);
            kernel + bases.map(|group| rules.base_cost_if(group[0].base, group, false)).sum::<i64>()
        };
        price.blocks.push(if work().next().is_some() { cost + kernel } else { 0 });
        price.unfused.push(work().map(alone).sum());
    }
    price
}
