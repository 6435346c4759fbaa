//! The cost of a finished partition, kernel by kernel.

use crate::cost::{self, Sums};
use crate::entry::{Entry, fold_entries};
use crate::facts::{Facts, NONE};
use crate::legality::Rules;
use crate::options::Options;
use crate::relation::RelationCache;
use bh_bytecode::BatchRef;
use bh_kernel::table::Table;

/// The cost of a partition by a cost model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// The cost of each block, in bytes.
    pub blocks: Vec<i64>,
    /// The cost of each block's instructions if they run one by one.
    pub unfused: Vec<i64>,
}

impl Price {
    /// The cost of the whole partition.
    pub fn total(&self) -> i64 {
        sum(self.blocks.iter().copied())
    }

    /// The cost without fusion.
    pub fn total_unfused(&self) -> i64 {
        sum(self.unfused.iter().copied())
    }
}

/// A sum of costs; the arrays of a batch may be larger than any memory.
fn sum(costs: impl Iterator<Item = i64>) -> i64 {
    costs.fold(0, i64::saturating_add)
}

/// Estimates the bytes that cross the memory bus in a batch without and with its partition.
pub fn moved(batch: &BatchRef<'_>, facts: &Facts, relations: &mut RelationCache, options: &Options) -> [u64; 2] {
    let options = Options { cost: &cost::TRAFFIC, kernel_bytes: 0, ..options.clone() };
    let traffic = price_with(batch, facts, relations, &options);
    [traffic.total_unfused(), traffic.total()].map(|bytes| u64::try_from(bytes).unwrap_or(0))
}

/// The cost of a batch's partition.
pub fn price(batch: &BatchRef<'_>, options: &Options) -> Price {
    let (mut facts, mut relations) = (Facts::default(), RelationCache::default());
    facts.gather(batch);
    relations.reset(batch.views.len());
    price_with(batch, &facts, &mut relations, options)
}

fn price_with(batch: &BatchRef<'_>, facts: &Facts, relations: &mut RelationCache, options: &Options) -> Price {
    let rules = Rules::new(batch, facts, options, relations);
    let kernel = rules.kernel_cost();
    let mut price = Price::default();
    let (mut entries, mut own): (Vec<Entry>, Vec<Entry>) = (Vec::new(), Vec::new());
    let mut free = Table::default();
    for (number, block) in (0..).zip(batch.blocks) {
        let work = || batch.block_instrs(block).iter().filter(|&&instr| facts.ops[instr as usize].shape != NONE);
        entries.clear();
        work().for_each(|&instr| rules.entries(instr, &mut entries));
        let mut unfused = 0;
        for &instr in work() {
            own.clear();
            rules.entries(instr, &mut own);
            let bases = own.chunk_by(|a, b| a.base == b.base);
            let costs = bases.map(|group| rules.base_cost_if(group[0].base, group, false));
            unfused = sum(costs.chain([kernel, unfused]));
        }
        entries.sort_by_key(|entry| (entry.base, entry.view));
        fold_entries(&mut entries);
        let aliases = batch.renames(block).iter().map(|rename| &rename.alias).filter(|_| options.cost.free_aliases);
        batch.contracted(block).iter().chain(aliases).for_each(|&base| free.set(number, base, 1));
        let renamed = |base| batch.renames(block).iter().any(|rename| rename.base == base);
        let groups = entries.chunk_by(|a, b| a.base == b.base);
        let cost = groups.map(|group| {
            let base = group[0].base;
            rules.sums_cost(base, &Sums::of(facts, group), free.get(number, base) != NONE, renamed(base))
        });
        price.blocks.push(if entries.is_empty() { 0 } else { sum(cost.chain([kernel])) });
        price.unfused.push(unfused);
    }
    price
}
