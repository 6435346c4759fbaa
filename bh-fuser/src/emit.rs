//! From an assignment of instructions to blocks to the partition's tables: order, contraction, renames, aliases, and the
//! places of data management.

use crate::deps::{Conflict, Dependencies};
use crate::entry::{Entry, fold_entries, is_contracted, written};
use crate::facts::{Class, Facts, NONE, access};
use crate::legality::Rules;
use crate::relation::Relation;
use crate::rename;
use bh_bytecode::{BatchRef, Block, Opcode, Rename, View, ViewRec};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The tables that a fuser adds to a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// Kernels in a legal order.
    pub blocks: Vec<Block>,
    /// Instructions of the blocks.
    pub block_instrs: Vec<u32>,
    /// Contracted bases of the blocks.
    pub contracted: Vec<u32>,
    /// Renames of the blocks.
    pub renames: Vec<Rename>,
    /// Uncovered views of the renames.
    pub rename_views: Vec<u32>,
    /// The batch's views and those of the renames; empty if the batch's own do.
    pub views: Vec<ViewRec>,
    /// Extents and strides of `views`.
    pub dims: Vec<i64>,
    /// The numbers of all blocks in order.
    pub all: Vec<u32>,
    /// Bytes that cross the memory bus without and with fusion, as far as they were estimated.
    pub moved: [u64; 2],
}

impl Partition {
    /// The batch with this partition.
    pub fn apply<'a>(&'a self, batch: &BatchRef<'a>) -> BatchRef<'a> {
        let own_views = !self.views.is_empty();
        BatchRef {
            views: if own_views { &self.views } else { batch.views },
            dims: if own_views { &self.dims } else { batch.dims },
            blocks: &self.blocks,
            block_instrs: &self.block_instrs,
            contracted: &self.contracted,
            renames: &self.renames,
            rename_views: &self.rename_views,
            ..*batch
        }
    }

    /// Bytes of memory that the tables take, roughly.
    pub fn bytes(&self) -> usize {
        self.blocks.len() * (size_of::<Block>() + 4)
            + 4 * (self.block_instrs.len() + self.contracted.len() + self.rename_views.len())
            + self.renames.len() * size_of::<Rename>()
            + self.views.len() * size_of::<ViewRec>()
            + 8 * self.dims.len()
    }

    fn add_view(&mut self, batch: &BatchRef<'_>, base: u32, view: &View) -> u32 {
        if self.views.is_empty() {
            self.views.extend_from_slice(batch.views);
            self.dims.extend_from_slice(batch.dims);
        }
        let (dims, rank) = (self.dims.len() as u32, view.rank() as u32);
        self.dims.extend_from_slice(view.shape());
        self.dims.extend_from_slice(view.stride());
        self.views.push(ViewRec { base, rank, start: view.start(), len: view.len(), dims, reserved: 0 });
        (self.views.len() - 1) as u32
    }
}

/// Writes the tables of a partition.
#[derive(Default)]
pub struct Emitter {
    block_of: Vec<u32>,
    order: Vec<u32>,
    position: Vec<u32>,
    starts: Vec<u32>,
    members: Vec<u32>,
    entries: Vec<Entry>,
    last_use: Vec<u32>,
    systems: Vec<(u32, u32)>,
    /// Blocks, with bases that they rename.
    renamed: Vec<(u32, u32)>,
    /// Are renames that copy too much refused?
    strict: bool,
}

impl Emitter {
    /// Writes the partition in which instructions with equal labels share a block ([`NONE`] for data management).
    /// `None` if the labels' blocks depend on each other in a cycle, or a block needs a rename that cannot be.
    pub fn emit(&mut self, rules: &mut Rules<'_>, dependencies: &Dependencies, labels: &[u32]) -> Option<Partition> {
        let count = self.number_blocks(labels);
        self.sort_blocks(count, dependencies)?;
        self.collect_members(count);
        self.find_renames(dependencies);
        self.place_systems(rules, count);
        let mut partition = Partition::default();
        let mut pending = std::mem::take(&mut self.systems).into_iter().peekable();
        let add_systems = |partition: &mut Partition, before: u32, pending: &mut std::iter::Peekable<_>| {
            while let Some((_, instr)) = pending.next_if(|&(position, _): &(u32, u32)| position < before) {
                partition.block_instrs.push(instr);
            }
        };
        if pending.peek().is_some_and(|&(position, _)| position == 0) {
            partition.blocks.push(Block::default());
            add_systems(&mut partition, 1, &mut pending);
            partition.blocks[0].instr_count = partition.block_instrs.len() as u32;
        }
        for position in 0..count as u32 {
            let block = self.order[position as usize] as usize;
            let members = &mut self.members[self.starts[block] as usize..self.starts[block + 1] as usize];
            let first = partition.block_instrs.len() as u32;
            put_epilogue_last(rules.facts, members);
            partition.block_instrs.extend_from_slice(members);
            partition.blocks.push(Block {
                instrs: first,
                contracted: partition.contracted.len() as u32,
                renames: partition.renames.len() as u32,
                ..Block::default()
            });
            let members: &[u32] = members;
            let first_rename = self.renamed.partition_point(|&(renaming, _)| renaming < block as u32);
            let renamed = &self.renamed[first_rename..];
            let renamed = &renamed[..renamed.partition_point(|&(renaming, _)| renaming == block as u32)];
            fill_block(rules, members, renamed, self.strict, &mut self.entries, &mut partition)?;
            add_systems(&mut partition, position + 2, &mut pending);
            let end = partition.block_instrs.len() as u32;
            if let Some(block) = partition.blocks.last_mut() {
                block.instr_count = end - first;
                block.contracted_count = partition.contracted.len() as u32 - block.contracted;
                block.rename_count = partition.renames.len() as u32 - block.renames;
            }
        }
        partition.all = (0..partition.blocks.len() as u32).collect();
        Some(partition)
    }

    /// As [`Emitter::emit`], and `None` as well if a rename would copy too much.
    pub fn emit_affordable(
        &mut self,
        rules: &mut Rules<'_>,
        dependencies: &Dependencies,
        labels: &[u32],
    ) -> Option<Partition> {
        self.strict = true;
        let partition = self.emit(rules, dependencies, labels);
        self.strict = false;
        partition
    }

    /// Numbers blocks by their first instruction.
    fn number_blocks(&mut self, labels: &[u32]) -> usize {
        self.block_of.clear();
        self.position.clear();
        self.position.resize(labels.len(), NONE);
        let mut count = 0;
        for &label in labels {
            if label == NONE {
                self.block_of.push(NONE);
                continue;
            }
            let number = &mut self.position[label as usize];
            if *number == NONE {
                *number = count;
                count += 1;
            }
            self.block_of.push(*number);
        }
        count as usize
    }

    /// Orders blocks by their dependencies, and by program order where these leave a choice.
    fn sort_blocks(&mut self, count: usize, dependencies: &Dependencies) -> Option<()> {
        let block_edges =
            || dependencies.edges.iter().map(|&(a, b)| (self.block_of[a as usize], self.block_of[b as usize]));
        self.order.clear();
        if block_edges().all(|(a, b)| a <= b) {
            self.order.extend(0..count as u32);
            return Some(());
        }
        let mut edges: Vec<(u32, u32)> = block_edges().filter(|(a, b)| a != b).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut waiting = vec![0u32; count];
        edges.iter().for_each(|&(_, b)| waiting[b as usize] += 1);
        let mut ready: BinaryHeap<Reverse<u32>> =
            (0..count as u32).filter(|&block| waiting[block as usize] == 0).map(Reverse).collect();
        while let Some(Reverse(block)) = ready.pop() {
            self.order.push(block);
            let first = edges.partition_point(|&(a, _)| a < block);
            for &(_, next) in edges[first..].iter().take_while(|&&(a, _)| a == block) {
                waiting[next as usize] -= 1;
                if waiting[next as usize] == 0 {
                    ready.push(Reverse(next));
                }
            }
        }
        (self.order.len() == count).then_some(())
    }

    /// Finds the bases that blocks overwrite after they read them through other views.
    fn find_renames(&mut self, dependencies: &Dependencies) {
        self.renamed.clear();
        for clash in &dependencies.clashes {
            let block = self.block_of[clash.earlier as usize];
            if block == self.block_of[clash.later as usize] && matches!(clash.conflict, Conflict::WriteAfterRead { .. })
            {
                self.renamed.push((block, clash.base));
            }
        }
        self.renamed.sort_unstable();
        self.renamed.dedup();
    }

    /// Lists each block's instructions in program order.
    fn collect_members(&mut self, count: usize) {
        self.starts.clear();
        self.starts.resize(count + 1, 0);
        for &block in self.block_of.iter().filter(|&&block| block != NONE) {
            self.starts[block as usize + 1] += 1;
        }
        for block in 0..count {
            self.starts[block + 1] += self.starts[block];
        }
        self.members.clear();
        self.members.resize(self.starts[count] as usize, 0);
        let mut next = self.starts.clone();
        for (op, &block) in self.block_of.iter().enumerate().filter(|(_, block)| **block != NONE) {
            self.members[next[block as usize] as usize] = op as u32;
            next[block as usize] += 1;
        }
    }

    /// Finds for each data-management instruction the block of its base's last use: (position + 1 in the order, or 0 for
    /// a block of its own before all others; instruction), sorted.
    fn place_systems(&mut self, rules: &Rules<'_>, count: usize) {
        let facts = rules.facts;
        self.systems.clear();
        if facts.systems.is_empty() {
            return;
        }
        self.position.clear();
        self.position.resize(count, 0);
        for (position, &block) in self.order.iter().enumerate() {
            self.position[block as usize] = position as u32 + 1;
        }
        self.last_use.clear();
        self.last_use.resize(facts.bases.len(), 0);
        let mut by_epoch: Vec<(u32, u32, u32)> = Vec::new();
        for (op, &block) in self.block_of.iter().enumerate().filter(|(_, block)| **block != NONE) {
            let position = self.position[block as usize];
            for access in facts.accesses_of(op as u32) {
                let last = &mut self.last_use[access.base as usize];
                *last = position.max(*last);
                if facts.bases[access.base as usize].has_epochs() {
                    by_epoch.push((access.base, access.epoch, position));
                }
            }
        }
        for system in &facts.systems {
            let place = match facts.bases.get(system.base as usize) {
                Some(base) if base.has_epochs() => by_epoch
                    .iter()
                    .filter(|&&(base, epoch, _)| base == system.base && epoch <= system.epoch)
                    .map(|&(.., position)| position)
                    .max()
                    .unwrap_or(0),
                Some(base) if base.accesses > 0 => self.last_use[system.base as usize],
                _ => u32::from(count > 0),
            };
            self.systems.push((place, system.instr));
        }
        self.systems.sort_unstable();
    }
}

/// Moves instructions of the kept shape behind the others, so that the order stays one of legal execution.
fn put_epilogue_last(facts: &Facts, members: &mut [u32]) {
    let reduction = members.iter().find(|&&op| facts.ops[op as usize].class == Class::Reduction);
    if let Some(&reduction) = reduction {
        let shape = facts.ops[reduction as usize].shape;
        members.sort_by_key(|&op| facts.ops[op as usize].shape != shape);
    }
}

/// Adds contraction and renames of the block of these instructions.
fn fill_block(
    rules: &mut Rules<'_>,
    members: &[u32],
    renamed: &[(u32, u32)],
    strict: bool,
    entries: &mut Vec<Entry>,
    partition: &mut Partition,
) -> Option<()> {
    if members.iter().any(|&op| rules.facts.ops[op as usize].class == Class::Alone) {
        return Some(());
    }
    entries.clear();
    members.iter().for_each(|&op| rules.entries(op, entries));
    if members.len() > 1 {
        entries.sort_by_key(|entry| (entry.base, entry.view));
        fold_entries(entries);
    }
    for group in entries.chunk_by(|a, b| a.base == b.base) {
        let base = group[0].base;
        if is_contracted(rules.facts, base, group) {
            partition.contracted.push(base);
        } else if renamed.iter().any(|&(_, renamed)| renamed == base) {
            if strict
                && !rename::affordable(rules.batch, rules.facts, rules.options.rename_percent, base, written(group))
            {
                return None;
            }
            let pieces = rename::uncovered(rules.batch, base, written(group))?;
            let alias = find_alias(rules, members, base, group);
            let (alias, alias_view) = alias.unwrap_or((NONE, 0));
            let uncovered = partition.rename_views.len() as u32;
            for piece in &pieces {
                let view = partition.add_view(rules.batch, base, piece);
                partition.rename_views.push(view);
            }
            let uncovered_count = pieces.len() as u32;
            partition.renames.push(Rename { base, uncovered, uncovered_count, alias, alias_view });
        }
    }
    Some(())
}

/// Does a write of the block overlap an earlier read through another view?
pub fn needs_rename(rules: &mut Rules<'_>, group: &[Entry]) -> bool {
    group.iter().filter(|write| write.first_write != NONE).any(|write| {
        group.iter().any(|read| {
            read.first_read != NONE
                && read.view != write.view
                && read.last_read < write.first_write
                && rules.relations.get(rules.batch, read.view, write.view) != Relation::Disjoint
        })
    })
}

/// A base whose whole content the block copies into `base` as its last word on both, and that nobody reads later in the
/// batch: it can be an alias of the copy. Returns it and the copy's view.
fn find_alias(rules: &Rules<'_>, members: &[u32], base: u32, group: &[Entry]) -> Option<(u32, u32)> {
    let (batch, facts) = (rules.batch, rules.facts);
    members.iter().find_map(|&op| {
        let instr = &batch.instrs[op as usize];
        if instr.opcode != Opcode::Copy {
            return None;
        }
        let (to, from) = (instr.outputs().first()?.as_view()?, instr.inputs().first()?.as_view()?);
        let alias = batch.views[from as usize].base;
        let last_word = group.iter().any(|entry| entry.view == to && entry.last_write == op);
        let fact = facts.bases.get(alias as usize)?;
        let fits = last_word
            && alias != base
            && batch.views[to as usize].base == base
            && facts.views[from as usize].whole
            && batch.dtype(instr.inputs()[0]) == batch.dtype(instr.outputs()[0])
            && !fact.pinned
            && !fact.synced
            && !is_contracted_by(rules, members, alias)
            && vanishes(rules, members, alias, from, op);
        fits.then_some((alias, to))
    })
}

fn is_contracted_by(rules: &Rules<'_>, members: &[u32], base: u32) -> bool {
    let uses = |op: &u32| rules.facts.accesses_of(*op).iter().filter(|access| access.base == base).count() as u32;
    let fact = &rules.facts.bases[base as usize];
    fact.contractible && members.iter().map(uses).sum::<u32>() == fact.accesses
}

/// Is the base written as a whole (`view`) in the block before all its reads there, not written after `copy`, and
/// overwritten as a whole by its next use after the block, if there is one?
fn vanishes(rules: &Rules<'_>, members: &[u32], base: u32, view: u32, copy: u32) -> bool {
    let facts = rules.facts;
    let mut written = false;
    for &op in members {
        for access in facts.accesses_of(op).iter().filter(|access| access.base == base) {
            let (reads, writes) = (access.flags & access::READ != 0, access.flags & access::WRITE != 0);
            if access.view != view || (reads && !written) || (writes && op > copy) {
                return false;
            }
            written |= writes;
        }
    }
    let uses = |op: &u32| facts.accesses_of(*op).iter().any(|access| access.base == base);
    let later = (copy + 1..=facts.bases[base as usize].last)
        .find(|op| uses(op) && !members.contains(op))
        .and_then(|op| facts.accesses_of(op).iter().find(|access| access.base == base));
    // Data management drops the alias like any array.
    written && later.is_none_or(|access| access.flags & access::READ == 0 && facts.views[access.view as usize].whole)
}
