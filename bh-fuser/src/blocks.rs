//! Blocks that grow: what each of them does with each base, in sums that stay right as blocks are fused.
//!
//! Whether two blocks may share a kernel, and what that saves, is what [`Rules::check`] says of the accesses of both. Here it
//! costs as many steps as the *smaller* block has accesses: views of the larger one are looked up, and pairs of views that may
//! not meet are known from the dependencies ([`Clash`]), of which the larger block's are not looked at. (What is implied by
//! others on the same base need not be known: either they meet within the block, or they lie on a path between blocks.)

use crate::cost::Sums;
use crate::deps::{Clash, Conflict, Dependencies};
use crate::entry::{Entry, RENAMED};
use crate::facts::{NONE, access};
use crate::legality::{Join, Reason, Rules, Summary};
use crate::lists::Lists;
use bh_bytecode::steps;
use bh_kernel::table::Table;

/// The most views that a block uses of a base that it renames.
const MOST_RENAMED_VIEWS: usize = 256;

/// The accesses of a block to a base.
#[derive(Clone, Copy)]
struct Use {
    base: u32,
    epoch: u32,
    /// Bits of [`access`] and [`RENAMED`].
    flags: u8,
    /// Number of accesses, and of the views that are read first.
    count: u32,
    stale: u32,
    sums: Sums,
}

/// The blocks of a batch. A block is named by one of its instructions.
#[derive(Default)]
pub struct Blocks {
    parent: Vec<u32>,
    summaries: Vec<Summary>,
    /// Views that each block uses, but for those of bases that nobody else does.
    sizes: Vec<u32>,
    uses: Vec<Use>,
    /// By block, numbers of its uses; by use, numbers of its entries.
    uses_of: Lists,
    entries: Vec<Entry>,
    entries_of: Lists,
    /// By block and base, and by block and view.
    use_at: Table,
    entry_at: Table,
    clashes: Vec<Clash>,
    clashes_of: Lists,
    /// How many clashes each block's list has.
    clash_counts: Vec<u32>,
    /// Bases renamed by the last check.
    renames: Vec<u32>,
    writes: Vec<u32>,
    scratch: Vec<Entry>,
}

/// The sums of two uses together.
struct Both {
    count: u32,
    stale: u32,
    sums: Sums,
}

impl Blocks {
    /// Each instruction of a batch is a block of its own.
    pub fn reset(&mut self, rules: &Rules<'_>, dependencies: &Dependencies) {
        let (count, accesses) = (rules.facts.ops.len(), rules.facts.accesses.len());
        self.parent.clear();
        self.parent.extend(0..count as u32);
        self.summaries.clear();
        self.sizes.clear();
        self.uses.clear();
        self.entries.clear();
        self.uses_of.reset(count);
        self.entries_of.reset(accesses);
        self.use_at.reset(accesses);
        self.entry_at.reset(accesses);
        for op in 0..count as u32 {
            self.summaries.push(rules.summary(op));
            self.sizes.push(0);
            self.load(rules, op);
        }
        self.clashes.clear();
        self.clashes.extend_from_slice(&dependencies.clashes);
        self.clashes_of.reset(count);
        self.clash_counts.clear();
        self.clash_counts.resize(count, 0);
        for (number, clash) in self.clashes.iter().enumerate() {
            for op in [clash.earlier, clash.later] {
                self.clashes_of.push(op, number as u32);
                self.clash_counts[op as usize] += 1;
            }
        }
    }

    fn load(&mut self, rules: &Rules<'_>, op: u32) {
        let mut own = std::mem::take(&mut self.scratch);
        own.clear();
        rules.entries(op, &mut own);
        for group in own.chunk_by(|a, b| a.base == b.base) {
            let base = group[0].base;
            let count = group.iter().map(|entry| entry.count).sum();
            // A base that only this instruction uses matters to no other.
            if count == rules.facts.bases[base as usize].accesses {
                continue;
            }
            let number = self.uses.len() as u32;
            self.uses.push(Use {
                base,
                epoch: group[0].epoch,
                flags: group.iter().fold(0, |flags, entry| flags | entry.flags),
                count,
                stale: group.iter().filter(|entry| entry.reads_first()).count() as u32,
                sums: Sums::of(rules.facts, group),
            });
            self.uses_of.push(op, number);
            self.use_at.set(op, base, number);
            for entry in group {
                self.entry_at.set(op, entry.view, self.entries.len() as u32);
                self.entries_of.push(number, self.entries.len() as u32);
                self.entries.push(*entry);
            }
            self.sizes[op as usize] += group.len() as u32;
        }
        self.scratch = own;
    }

    /// The block of an instruction.
    pub fn find(&mut self, op: u32) -> u32 {
        let mut at = op;
        while self.parent[at as usize] != at {
            let above = self.parent[self.parent[at as usize] as usize];
            self.parent[at as usize] = above;
            at = above;
        }
        at
    }

    /// The block's summary.
    pub fn summary(&self, block: u32) -> &Summary {
        &self.summaries[block as usize]
    }

    /// May these blocks share a kernel, as far as their own instructions tell, and what does it save?
    pub fn check(&mut self, rules: &mut Rules<'_>, a: u32, b: u32) -> Result<Join, Reason> {
        let mut summary = rules.combine(&self.summaries[a as usize], &self.summaries[b as usize])?;
        self.renames.clear();
        self.check_clashes(rules, &summary, a, b)?;
        let (small, large) = if self.sizes[a as usize] <= self.sizes[b as usize] { (a, b) } else { (b, a) };
        let mut saving = rules.kernel_cost();
        let mut place = self.uses_of.begin(small);
        let mut looked = 1;
        while let Some(number) = self.uses_of.value(place) {
            looked += 1;
            let base = self.uses[number as usize].base;
            if base == NONE {
                place = self.uses_of.remove(small, place);
                continue;
            }
            place = self.uses_of.after(place);
            let other = self.use_at.get(large, base);
            if other != NONE {
                saving += self.check_use(rules, number, large, other)?;
                looked += 2;
            }
        }
        steps::add(looked);
        summary.renamed |= !self.renames.is_empty();
        Ok(Join { summary, saving })
    }

    /// Looks at the dependencies between two blocks that are conflicts.
    fn check_clashes(&mut self, rules: &mut Rules<'_>, summary: &Summary, a: u32, b: u32) -> Result<(), Reason> {
        let (one, two) = if self.clash_counts[a as usize] <= self.clash_counts[b as usize] { (a, b) } else { (b, a) };
        let mut place = self.clashes_of.begin(one);
        let mut looked = 0;
        while let Some(number) = self.clashes_of.value(place) {
            looked += 1;
            let clash = self.clashes[number as usize];
            let (earlier, later) = (self.find(clash.earlier), self.find(clash.later));
            if earlier == later {
                place = self.clashes_of.remove(one, place);
                self.clash_counts[one as usize] -= 1;
                continue;
            }
            place = self.clashes_of.after(place);
            if earlier == two || later == two {
                let base = clash.base;
                let outcome = match clash.conflict {
                    Conflict::ReadAfterWrite => Err(Reason::ReadAfterWrite { base }),
                    Conflict::WriteAfterWrite => Err(Reason::WriteAfterWrite { base }),
                    Conflict::Barrier => Err(Reason::Between),
                    Conflict::WriteAfterRead { read, write } => rules.may_overwrite(summary, base, read, write),
                };
                if outcome.is_err() {
                    steps::add(looked);
                    return outcome;
                }
                self.renames.push(base);
            }
        }
        steps::add(looked);
        Ok(())
    }

    /// Checks a base that two blocks use: a use of the smaller one, and the larger one with its use. Returns what is saved.
    fn check_use(&mut self, rules: &mut Rules<'_>, number: u32, large: u32, other: u32) -> Result<i64, Reason> {
        let (one, two) = (self.uses[number as usize], self.uses[other as usize]);
        let base = one.base;
        if one.epoch != two.epoch {
            return Err(Reason::Lifetime { base });
        }
        let writes_source = |a: &Use, b: &Use| a.flags & access::SOURCE != 0 && b.flags & access::WRITE != 0;
        if writes_source(&one, &two) || writes_source(&two, &one) {
            return Err(Reason::Source { base });
        }
        let both = self.both(rules, number, large, other)?;
        let renamed = (one.flags | two.flags) & RENAMED != 0 || self.renames.contains(&base);
        if renamed {
            self.gather_writes([number, other]).ok_or(Reason::TooMuchToCopy { base })?;
            rules.may_rename(base, self.writes.iter().copied())?;
            if !self.renames.contains(&base) {
                self.renames.push(base);
            }
        }
        let fact = &rules.facts.bases[base as usize];
        let cost = |count: u32, stale: u32, sums: &Sums, renamed: bool| {
            let contracted = fact.contractible && count == fact.accesses && stale == 0;
            rules.sums_cost(base, sums, contracted, renamed)
        };
        let own = |one: &Use| cost(one.count, one.stale, &one.sums, one.flags & RENAMED != 0);
        Ok(own(&one) + own(&two) - cost(both.count, both.stale, &both.sums, renamed))
    }

    /// Collects the views that uses write; `None` if they use very many views.
    fn gather_writes(&mut self, uses: [u32; 2]) -> Option<()> {
        self.writes.clear();
        let mut looked = 0;
        for list in uses {
            let mut place = self.entries_of.begin(list);
            while let Some(entry) = self.entries_of.value(place) {
                place = self.entries_of.after(place);
                looked += 1;
                let entry = &self.entries[entry as usize];
                if entry.first_write != NONE && !self.writes.contains(&entry.view) {
                    self.writes.push(entry.view);
                }
                if looked > MOST_RENAMED_VIEWS {
                    return None;
                }
            }
        }
        steps::add(looked);
        Some(())
    }

    /// Adds two uses up.
    fn both(&self, rules: &Rules<'_>, number: u32, large: u32, other: u32) -> Result<Both, Reason> {
        let (one, two) = (&self.uses[number as usize], &self.uses[other as usize]);
        let mut both =
            Both { count: one.count + two.count, stale: one.stale + two.stale, sums: one.sums.with(&two.sums) };
        let mut place = self.entries_of.begin(number);
        while let Some(entry) = self.entries_of.value(place) {
            place = self.entries_of.after(place);
            let entry = &self.entries[entry as usize];
            let same = self.entry_at.get(large, entry.view);
            if same == NONE {
                continue;
            }
            let known = &self.entries[same as usize];
            let mut joined = *known;
            joined.absorb(entry);
            if joined.is_misplaced() {
                return Err(Reason::Result { base: one.base });
            }
            both.stale -= u32::from(known.reads_first()) + u32::from(entry.reads_first());
            both.stale += u32::from(joined.reads_first());
            let [a, b, sums] = [known, entry, &joined].map(|entry| Sums::of_one(rules.facts, entry));
            both.sums = both.sums.without(&a).without(&b).with(&sums);
        }
        Ok(both)
    }

    /// Joins two blocks after [`Blocks::check`] allowed it. Returns the joined block and the other one, which is no more.
    pub fn fuse(&mut self, rules: &mut Rules<'_>, a: u32, b: u32, summary: Summary) -> (u32, u32) {
        let (other, root) = if self.sizes[a as usize] <= self.sizes[b as usize] { (a, b) } else { (b, a) };
        let mut place = self.uses_of.begin(other);
        let mut moved = 0;
        while let Some(number) = self.uses_of.value(place) {
            place = self.uses_of.remove(other, place);
            if self.uses[number as usize].base != NONE {
                moved += self.move_use(rules, number, root);
            }
        }
        steps::add(moved as usize);
        for at in 0..self.renames.len() {
            let number = self.use_at.get(root, self.renames[at]);
            if number != NONE {
                self.uses[number as usize].flags |= RENAMED;
            }
        }
        self.parent[other as usize] = root;
        self.summaries[root as usize] = summary;
        self.clashes_of.append(root, other);
        self.clash_counts[root as usize] += self.clash_counts[other as usize];
        (root, other)
    }

    /// Moves a use to another block. Returns the number of its views.
    fn move_use(&mut self, rules: &Rules<'_>, number: u32, root: u32) -> u32 {
        let base = self.uses[number as usize].base;
        let known = self.use_at.get(root, base);
        let mut moved = 0;
        if known == NONE {
            self.use_at.set(root, base, number);
            self.uses_of.push(root, number);
            let mut place = self.entries_of.begin(number);
            while let Some(entry) = self.entries_of.value(place) {
                place = self.entries_of.after(place);
                self.entry_at.set(root, self.entries[entry as usize].view, entry);
                moved += 1;
            }
            self.sizes[root as usize] += moved;
            return moved;
        }
        if let Ok(both) = self.both(rules, number, root, known) {
            let flags = self.uses[number as usize].flags;
            let target = &mut self.uses[known as usize];
            (target.count, target.stale, target.sums) = (both.count, both.stale, both.sums);
            target.flags |= flags;
        }
        let mut place = self.entries_of.begin(number);
        while let Some(at) = self.entries_of.value(place) {
            place = self.entries_of.remove(number, place);
            let entry = self.entries[at as usize];
            let same = self.entry_at.get(root, entry.view);
            if same == NONE {
                self.entry_at.set(root, entry.view, at);
                self.entries_of.push(known, at);
                self.sizes[root as usize] += 1;
            } else {
                self.entries[same as usize].absorb(&entry);
            }
            moved += 1;
        }
        if self.uses[known as usize].count == rules.facts.bases[base as usize].accesses {
            self.close(root, known);
        }
        moved
    }

    /// Leaves out a base that nobody else uses. Its number leaves the block's list when somebody walks along it.
    fn close(&mut self, block: u32, number: u32) {
        let base = std::mem::replace(&mut self.uses[number as usize].base, NONE);
        self.use_at.set(block, base, NONE);
        let mut place = self.entries_of.begin(number);
        while let Some(entry) = self.entries_of.value(place) {
            place = self.entries_of.remove(number, place);
            self.entry_at.set(block, self.entries[entry as usize].view, NONE);
            self.sizes[block as usize] -= 1;
        }
    }
}
