//! `optimal` against all partitions there are, and greedy against `optimal`.

use crate::deps::Dependencies;
use crate::entry::Entry;
use crate::facts::{Class, Facts};
use crate::legality::{Rules, Summary};
use crate::options::{Algorithm, Options};
use crate::relation::RelationCache;
use crate::tests::small_programs;
use crate::{Partitioner, cost, price};
use bh_bytecode::random;
use bh_bytecode::validate::partition as verify;
use bh_bytecode::{Base, Batch, BatchRef, Operand};

fn options(algorithm: Algorithm, cost: &'static cost::CostModel) -> Options {
    Options { algorithm, cost, steps: 1 << 40, rename_percent: 400, threads: 1, ..Options::default() }
}

/// The cost of a partition, which must be legal.
fn cost_of(partitioner: &mut Partitioner, batch: &BatchRef<'_>, options: &Options) -> i64 {
    let partition = partitioner.partition(batch, options);
    let partitioned = partition.apply(batch);
    if let Err(text) = verify(&partitioned) {
        panic!("{:?}: {text}\n{}", options.algorithm, bh_bytecode::text::print(&partitioned));
    }
    price(&partitioned, options).total()
}

/// The least cost of all partitions: for each set of instructions whether it may be a block and what it costs, and then
/// all ways to split.
fn least_cost(batch: &BatchRef<'_>, options: &Options) -> Option<i64> {
    let (mut facts, mut relations) = (Facts::default(), RelationCache::default());
    let mut dependencies = Dependencies::default();
    facts.gather(batch);
    relations.reset(batch.views.len());
    dependencies.gather(batch, &facts, &mut relations);
    let work: Vec<u32> =
        (0..batch.instrs.len() as u32).filter(|&op| facts.ops[op as usize].class != Class::System).collect();
    if work.len() > 9 {
        return None;
    }
    let mut rules = Rules::new(batch, &facts, options, &mut relations);
    let costs: Vec<Option<i64>> = (0..1usize << work.len())
        .map(|set| {
            let mut members: Vec<u32> = (0..work.len()).filter(|at| set >> at & 1 == 1).map(|at| work[at]).collect();
            members.sort_by_key(|&op| (facts.ops[op as usize].class != Class::Reduction, op));
            let shape = members.first().map_or(0, |&op| facts.ops[op as usize].shape);
            members.sort_by_key(|&op| {
                let op = &facts.ops[op as usize];
                (op.class != Class::Reduction, op.shape != shape)
            });
            block_cost(&mut rules, &members)
        })
        .collect();
    let place = |op: u32| work.iter().position(|&known| known == op).unwrap();
    let edges: Vec<(usize, usize)> = dependencies.edges.iter().map(|&(a, b)| (place(a), place(b))).collect();
    let mut least = i64::MAX;
    split(&costs, &edges, work.len(), &mut vec![], 0, &mut least);
    Some(least)
}

fn block_cost(rules: &mut Rules<'_>, members: &[u32]) -> Option<i64> {
    let mut block: Option<(Summary, Vec<Entry>)> = None;
    let mut closed = 0;
    for &op in members {
        let mut own = Vec::new();
        rules.entries(op, &mut own);
        let summary = rules.summary(op);
        block = Some(match block {
            None => (summary, own),
            Some((before, entries)) => {
                let join = rules.check((&before, &entries), (&summary, &own)).ok()?;
                let mut all = Vec::new();
                rules.join(&entries, &own, &mut all);
                // A base that the rules drop as finished costs something unless it is contracted.
                let price = |rules: &Rules<'_>, entries: &[Entry]| -> i64 {
                    let groups = entries.chunk_by(|a, b| a.base == b.base);
                    groups.map(|group| rules.base_cost(group[0].base, group, false)).sum()
                };
                closed += price(rules, &entries) + price(rules, &own) - join.saving - price(rules, &all);
                (join.summary, all)
            }
        });
    }
    let rest = block.map_or(Vec::new(), |block| block.1);
    let groups = rest.chunk_by(|a, b| a.base == b.base);
    Some(closed + groups.map(|group| rules.base_cost(group[0].base, group, false)).sum::<i64>())
}

fn split(
    costs: &[Option<i64>],
    edges: &[(usize, usize)],
    count: usize,
    blocks: &mut Vec<usize>,
    at: usize,
    least: &mut i64,
) {
    if at == count {
        let total: Option<i64> = blocks.iter().map(|&set| costs[set]).sum();
        if let Some(total) = total.filter(|&total| total < *least)
            && is_acyclic(blocks, edges)
        {
            *least = total;
        }
        return;
    }
    for number in 0..blocks.len() {
        blocks[number] |= 1 << at;
        split(costs, edges, count, blocks, at + 1, least);
        blocks[number] &= !(1 << at);
    }
    blocks.push(1 << at);
    split(costs, edges, count, blocks, at + 1, least);
    blocks.pop();
}

fn is_acyclic(blocks: &[usize], edges: &[(usize, usize)]) -> bool {
    let block_of = |at: usize| blocks.iter().position(|set| set >> at & 1 == 1).unwrap();
    let edges: Vec<(usize, usize)> =
        edges.iter().map(|&(a, b)| (block_of(a), block_of(b))).filter(|(a, b)| a != b).collect();
    let mut left: Vec<usize> = (0..blocks.len()).collect();
    while !left.is_empty() {
        let free = |block: &usize| !edges.iter().any(|(a, b)| b == block && left.contains(a));
        let Some(at) = left.iter().position(free) else { return false };
        left.remove(at);
    }
    true
}

fn programs(count: u64, max_instrs: usize) -> impl Iterator<Item = Batch> {
    (0..count)
        .map(move |seed| random::program(seed + 1_000_000, &random::Options { max_instrs, ..small_programs() }).batch)
}

#[test]
fn optimal_is_the_cheapest_of_all_partitions() {
    let mut partitioner = Partitioner::default();
    let (mut compared, mut missed) = (0, 0);
    for (seed, batch) in programs(3000, 11).enumerate() {
        let batch = batch.as_ref();
        for model in [&cost::UNIQUE_VIEWS, &cost::MAX_CONTRACTION] {
            let options = options(Algorithm::Optimal, model);
            let Some(least) = least_cost(&batch, &options) else { continue };
            let found = cost_of(&mut partitioner, &batch, &options);
            assert!(partitioner.was_complete());
            // One program of 6,000 is known to end a hundredth above the least: what is fused beforehand stands in the way.
            let close = least <= found && found - least <= least / 100;
            assert!(
                close,
                "program {seed}, {}: {found}, not {least}\n{}",
                model.name,
                bh_bytecode::text::print(&batch)
            );
            missed += usize::from(found != least);
            compared += 1;
        }
    }
    assert!(missed <= 1, "{missed} of {compared} programs are not at the least cost");
    assert!(compared > 4000, "only {compared} programs were small enough");
}

/// The batch twice, each time on arrays of its own.
fn twice(batch: &BatchRef<'_>) -> Batch {
    let mut both = batch.to_owned();
    let bases = batch.bases.len() as u32;
    for base in batch.bases {
        both.push_base(Base { id: base.id + u64::from(bases) + 1, ..*base });
    }
    for instr in batch.instrs {
        let mut instr = *instr;
        for operand in instr.operands_mut() {
            if let Some(view) = operand.as_view().filter(|&view| batch.base_of(view).is_some()) {
                let base = batch.views[view as usize].base + bases;
                *operand = Operand::view(both.intern_view(base, &batch.view(view)));
            }
        }
        both.push_instr(instr);
    }
    both
}

#[test]
fn all_parts_of_a_batch_are_searched() {
    let mut partitioner = Partitioner::default();
    let mut better = 0;
    for batch in programs(8000, 24) {
        let (batch, both) = (batch.as_ref(), twice(&batch.as_ref()));
        let optimal = Options { steps: 20_000, ..options(Algorithm::Optimal, &cost::UNIQUE_VIEWS) };
        let greedy = cost_of(&mut partitioner, &batch, &options(Algorithm::Greedy, &cost::UNIQUE_VIEWS));
        let once = cost_of(&mut partitioner, &batch, &optimal);
        if partitioner.was_complete() && once < greedy {
            let optimal = Options { steps: 2 * optimal.steps, ..optimal };
            assert_eq!(cost_of(&mut partitioner, &both.as_ref(), &optimal), 2 * once);
            better += 1;
        }
    }
    assert!(better > 0, "greedy is as cheap everywhere");
}

#[test]
fn greedy_costs_at_least_as_much_as_optimal_and_little_more() {
    let mut partitioner = Partitioner::default();
    let (mut greedy_sum, mut optimal_sum, mut worse) = (0, 0, 0);
    for batch in programs(2000, 24) {
        let batch = batch.as_ref();
        let optimal = Options { steps: 20_000, ..options(Algorithm::Optimal, &cost::UNIQUE_VIEWS) };
        let greedy = cost_of(&mut partitioner, &batch, &options(Algorithm::Greedy, &cost::UNIQUE_VIEWS));
        let optimal = cost_of(&mut partitioner, &batch, &optimal);
        if partitioner.was_complete() {
            assert!(greedy >= optimal);
            worse += u32::from(greedy > optimal + optimal / 20);
            (greedy_sum, optimal_sum) = (greedy_sum + greedy, optimal_sum + optimal);
        }
    }
    println!("greedy {greedy_sum}, optimal {optimal_sum}, more than 5% above: {worse}");
    assert!(greedy_sum <= optimal_sum + optimal_sum / 50, "greedy {greedy_sum}, optimal {optimal_sum}");
}
