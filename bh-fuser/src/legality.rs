//! The rules that decide which instructions may share a kernel; they live only here.
//!
//! A kernel runs its instructions over one box S, element by element. Reductions in it share their input shape S,
//! their axes and the order of their elements; instructions of the kept shape K form an epilogue that runs after them. For each pair of accesses to one
//! base with a write the views are identical or disjoint, or the write comes after the read and a rename of the base
//! keeps the old values readable. Accesses on different levels (box and epilogue) must be disjoint, except that the
//! epilogue reads the reductions' results.

use crate::cost::Sums;
use crate::entry::{Entry, RENAMED, fold_entries, is_contracted, leading, merge_group, written};
use crate::facts::{Class, Facts, NONE, Op, access};
use crate::options::{Legality, Options};
use crate::relation::{Relation, RelationCache};
use crate::rename;
use bh_bytecode::BatchRef;

/// A block's properties, apart from its accesses.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// Never shares a kernel.
    pub alone: bool,
    /// Shape (number) of the box.
    pub shape: u32,
    /// Shape (number) of its reductions' results, or [`NONE`] without reductions.
    pub kept: u32,
    /// Axes of its reductions.
    pub mask: u16,
    /// The order in which its reductions take their elements, as their instructions have it.
    pub order: u16,
    /// Has it gathers?
    pub gather: bool,
    /// Has it renames?
    pub renamed: bool,
    /// Elements of the box.
    pub elements: i64,
    /// Number of instructions.
    pub ops: u32,
}

/// Why two blocks may not share a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// One of them is of a kind that always stands alone.
    Alone,
    /// Their iteration boxes differ.
    Shape,
    /// Their reductions fold different axes.
    Axes,
    /// Their reductions take their elements in different orders, so that one would round differently than alone.
    Order,
    /// The kernel would grow past the limit.
    TooLarge,
    /// A base is dropped or handed over in between.
    Lifetime {
        /// The base.
        base: u32,
    },
    /// A gather's source would be written.
    Source {
        /// The base.
        base: u32,
    },
    /// A read of what was written through another, overlapping view.
    ReadAfterWrite {
        /// The base.
        base: u32,
    },
    /// Two writes through overlapping views.
    WriteAfterWrite {
        /// The base.
        base: u32,
    },
    /// An overlapping write after a read, and renaming is off or cannot help there.
    WriteAfterRead {
        /// The base.
        base: u32,
    },
    /// As before, and the base is pinned.
    Pinned {
        /// The base.
        base: u32,
    },
    /// As before, and a rename would have to copy too much.
    TooMuchToCopy {
        /// The base.
        base: u32,
    },
    /// A reduction's result is used before the reduction, or written twice.
    Result {
        /// The base.
        base: u32,
    },
    /// Something between them depends on one and feeds the other.
    Between,
}

/// Two blocks that may share a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Join {
    /// The joined block.
    pub summary: Summary,
    /// The bytes that the fusion saves, by the cost model; may be negative.
    pub saving: i64,
}

/// The rules for one batch.
pub struct Rules<'a> {
    /// The batch.
    pub batch: &'a BatchRef<'a>,
    /// Its facts.
    pub facts: &'a Facts,
    /// The options.
    pub options: &'a Options,
    /// Known relations.
    pub relations: &'a mut RelationCache,
    group: Vec<Entry>,
    renames: Vec<u32>,
}

impl<'a> Rules<'a> {
    /// Rules for a batch whose facts are gathered.
    pub fn new(
        batch: &'a BatchRef<'a>,
        facts: &'a Facts,
        options: &'a Options,
        relations: &'a mut RelationCache,
    ) -> Rules<'a> {
        Rules { batch, facts, options, relations, group: Vec::new(), renames: Vec::new() }
    }

    /// The summary of one instruction.
    pub fn summary(&self, op: u32) -> Summary {
        let Op { class, shape, kept, mask, order, elements, .. } = self.facts.ops[op as usize];
        Summary {
            alone: class == Class::Alone || (kept != NONE && self.options.legality == Legality::Paper),
            shape,
            kept,
            mask,
            order,
            gather: class == Class::Gather,
            renamed: false,
            elements,
            ops: 1,
        }
    }

    /// The entries of a block of these instructions, each view once.
    pub fn entries_of(&self, members: &[u32]) -> Vec<Entry> {
        let mut entries = Vec::new();
        members.iter().for_each(|&op| self.entries(op, &mut entries));
        entries.sort_unstable_by_key(|entry| (entry.base, entry.view));
        fold_entries(&mut entries);
        entries
    }

    /// Appends the entries of one instruction, sorted by base and view.
    pub fn entries(&self, op: u32, into: &mut Vec<Entry>) {
        let first = into.len();
        for access in self.facts.accesses_of(op) {
            let reads = access.flags & access::READ != 0;
            let writes = access.flags & access::WRITE != 0;
            let result = access.flags & access::RESULT != 0;
            into.push(Entry {
                base: access.base,
                view: access.view,
                epoch: access.epoch,
                flags: access.flags,
                count: 1,
                first_read: if reads { op } else { NONE },
                last_read: if reads { op } else { 0 },
                first_write: if writes { op } else { NONE },
                last_write: if writes { op } else { 0 },
                result: if result { op } else { NONE },
            });
        }
        into[first..].sort_unstable_by_key(|entry| (entry.base, entry.view));
    }

    /// May these blocks share a kernel, as far as their own instructions tell, and what does it save? Dependencies
    /// through other blocks are not looked at.
    pub fn check(&mut self, a: (&Summary, &[Entry]), b: (&Summary, &[Entry])) -> Result<Join, Reason> {
        let summary = self.combine(a.0, b.0)?;
        self.check_accesses(summary, a.1, b.1)
    }

    /// The joined block's summary, or why there is none.
    pub fn combine(&self, a: &Summary, b: &Summary) -> Result<Summary, Reason> {
        if a.alone || b.alone {
            return Err(Reason::Alone);
        }
        if a.ops + b.ops > self.options.max_block {
            return Err(Reason::TooLarge);
        }
        // The one with reductions first.
        let (a, b) = if a.kept == NONE { (b, a) } else { (a, b) };
        if a.kept != NONE && b.kept != NONE {
            if a.shape != b.shape {
                return Err(Reason::Shape);
            }
            if a.mask != b.mask {
                return Err(Reason::Axes);
            }
            if a.order != b.order {
                return Err(Reason::Order);
            }
        } else if a.shape != b.shape {
            let epilogue = a.kept == b.shape && a.kept != NONE && !b.gather && !b.renamed;
            if !epilogue {
                return Err(Reason::Shape);
            }
        }
        Ok(Summary { ops: a.ops + b.ops, gather: a.gather || b.gather, renamed: a.renamed || b.renamed, ..*a })
    }

    /// As [`Rules::check`], for blocks whose joint summary is known.
    pub fn check_accesses(&mut self, mut summary: Summary, a: &[Entry], b: &[Entry]) -> Result<Join, Reason> {
        let mut saving = self.kernel_cost();
        self.renames.clear();
        let (small, large) = if a.len() <= b.len() { (a, b) } else { (b, a) };
        let (mut at, mut from) = (0, 0);
        while at < small.len() {
            let base = small[at].base;
            let end = at + leading(&small[at..], base);
            let skip = if large.len() > 8 * small.len() {
                large[from..].partition_point(|entry| entry.base < base)
            } else {
                large[from..].iter().take_while(|entry| entry.base < base).count()
            };
            from += skip;
            let large_end = from + leading(&large[from..], base);
            if large_end > from {
                saving += self.check_base(&summary, base, &small[at..end], &large[from..large_end])?;
            }
            (at, from) = (end, large_end);
        }
        summary.renamed |= !self.renames.is_empty();
        Ok(Join { summary, saving })
    }

    /// Appends the entries of the blocks joined by the last [`Rules::check`], leaving out bases that nobody else uses.
    pub fn join(&mut self, a: &[Entry], b: &[Entry], into: &mut Vec<Entry>) {
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            let base = match (a.get(i), b.get(j)) {
                (Some(x), Some(y)) => x.base.min(y.base),
                (Some(x), None) => x.base,
                (None, Some(y)) => y.base,
                (None, None) => return,
            };
            let (a_end, b_end) = (i + leading(&a[i..], base), j + leading(&b[j..], base));
            let first = into.len();
            merge_group(&a[i..a_end], &b[j..b_end], into);
            if a_end > i && b_end > j {
                let total: u32 = into[first..].iter().map(|entry| entry.count).sum();
                if total == self.facts.bases[base as usize].accesses {
                    into.truncate(first);
                } else if self.renames.contains(&base) {
                    into[first..].iter_mut().for_each(|entry| entry.flags |= RENAMED);
                }
            }
            (i, j) = (a_end, b_end);
        }
    }

    /// Checks one base that both blocks use, and returns the saving.
    fn check_base(&mut self, summary: &Summary, base: u32, a: &[Entry], b: &[Entry]) -> Result<i64, Reason> {
        let mut renamed = false;
        for x in a {
            for y in b {
                renamed |= self.check_pair(summary, x, y)?;
            }
        }
        let renamed_before = (a[0].flags & RENAMED != 0, b[0].flags & RENAMED != 0);
        renamed |= renamed_before.0 || renamed_before.1;
        let mut group = std::mem::take(&mut self.group);
        group.clear();
        merge_group(a, b, &mut group);
        let outcome = match group.iter().any(Entry::is_misplaced) {
            true => Err(Reason::Result { base }),
            false if renamed => self.may_rename(base, written(&group)),
            false => Ok(()),
        };
        let cost = |group: &[Entry], renamed| self.base_cost(base, group, renamed);
        let saving = outcome.map(|()| cost(a, renamed_before.0) + cost(b, renamed_before.1) - cost(&group, renamed));
        if renamed && saving.is_ok() {
            self.renames.push(base);
        }
        self.group = group;
        saving
    }

    /// Checks two views of one base; true if the base must be renamed.
    fn check_pair(&mut self, summary: &Summary, x: &Entry, y: &Entry) -> Result<bool, Reason> {
        let base = x.base;
        if x.epoch != y.epoch {
            return Err(Reason::Lifetime { base });
        }
        let (x_writes, y_writes) = (x.first_write != NONE, y.first_write != NONE);
        if !x_writes && !y_writes {
            return Ok(false);
        }
        if (x.flags | y.flags) & access::SOURCE != 0 {
            return Err(Reason::Source { base });
        }
        if x.view == y.view || self.relations.get(self.batch, x.view, y.view) == Relation::Disjoint {
            return Ok(false);
        }
        if x_writes && y_writes {
            return Err(Reason::WriteAfterWrite { base });
        }
        let (read, write) = if x_writes { (y, x) } else { (x, y) };
        if read.last_read >= write.first_write {
            return Err(Reason::ReadAfterWrite { base });
        }
        self.may_overwrite(summary, base, read.view, write.view).map(|()| true)
    }

    /// The cost of a block's accesses to one base.
    pub fn base_cost(&self, base: u32, group: &[Entry], renamed: bool) -> i64 {
        self.sums_cost(base, &Sums::of(self.facts, group), is_contracted(self.facts, base, group), renamed)
    }

    /// The cost of a block's accesses to one base without a rename, if it is contracted or not.
    pub fn base_cost_if(&self, base: u32, group: &[Entry], contracted: bool) -> i64 {
        self.sums_cost(base, &Sums::of(self.facts, group), contracted, false)
    }

    /// The cost of a block's accesses to one base, added up.
    pub fn sums_cost(&self, base: u32, sums: &Sums, contracted: bool, renamed: bool) -> i64 {
        (self.options.cost.base)(&self.batch.bases[base as usize], sums, contracted, renamed)
    }

    /// The cost of a kernel as such.
    pub fn kernel_cost(&self) -> i64 {
        (self.options.cost.kernel)(self.options.kernel_bytes)
    }

    /// May the base have a fresh buffer in a block that writes these views of it?
    pub fn may_rename(&self, base: u32, writes: impl Iterator<Item = u32> + Clone) -> Result<(), Reason> {
        if self.facts.bases[base as usize].pinned {
            return Err(Reason::Pinned { base });
        }
        if !rename::affordable(self.batch, self.facts, self.options.rename_percent, base, writes) {
            return Err(Reason::TooMuchToCopy { base });
        }
        Ok(())
    }

    /// May an overlapping write of a block with this summary come after a read, if the base is renamed?
    pub fn may_overwrite(&self, summary: &Summary, base: u32, read: u32, write: u32) -> Result<(), Reason> {
        let box_level = |view: u32| self.facts.views[view as usize].shape == summary.shape;
        let possible = self.options.renames && self.options.legality == Legality::Full;
        if possible && box_level(read) && box_level(write) { Ok(()) } else { Err(Reason::WriteAfterRead { base }) }
    }
}
