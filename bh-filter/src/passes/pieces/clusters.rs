//! Clusters: operations of one shape that pass elements on to each other at equal indices, and that may run box by box, all of
//! them in one box before any of them in the next.

use super::sources::{Cut, Source, Sources};
use crate::analysis::{base_of, relation};
use bh_bytecode::{Batch, Instr, Kind, Opcode, Operand, Overlap, base_flags, steps};
use std::collections::HashMap;

/// The most operations of a cluster: about as many as a kernel may have.
const MOST_MEMBERS: usize = 512;
/// The most views of a base that a cluster tells apart.
const MOST_VIEWS: usize = 8;
/// The most open clusters that use one base: more than a grid has parts, its inner part and its borders in three dimensions.
/// If there were more, each write of a loop over the rows of an array would be compared with all rows before it.
const MOST_OPEN: usize = 32;

/// An operation of a cluster.
pub struct Member {
    /// The instruction.
    pub at: u32,
    /// For each operand, the sources of what it reads.
    pub cuts: Vec<Option<Cut>>,
}

/// Operations that run box by box.
#[derive(Default)]
pub struct Cluster {
    /// Its operations in program order. A cluster that was merged into another one has none.
    pub members: Vec<Member>,
    /// The instruction before which all of its operations must run.
    pub end: u32,
}

/// How a cluster uses a base.
#[derive(Clone, Copy)]
struct Access {
    base: u32,
    /// Through this view, index by index; none for elements at other places.
    view: Option<u32>,
    reads: bool,
    writes: bool,
}

/// The clusters of a batch, while it is gone through. No two open clusters depend on each other.
struct Open {
    clusters: Vec<Cluster>,
    /// How each open cluster uses bases.
    uses: Vec<HashMap<u32, Vec<Access>>>,
    /// Open clusters by the bases that they use.
    by_base: HashMap<u32, Vec<usize>>,
}

/// How a new instruction relates to an open cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    None,
    /// It reads or writes what the cluster does at equal indices.
    Aligned,
    Conflict,
}

/// Finds all clusters of a batch.
pub fn find(batch: &Batch) -> Vec<Cluster> {
    let mut sources = Sources::new(batch);
    let mut open = Open { clusters: Vec::new(), uses: Vec::new(), by_base: HashMap::new() };
    for (at, instr) in batch.instrs.iter().enumerate() {
        let at = at as u32;
        if instr.opcode.is_system() {
            if matches!(instr.opcode, Opcode::Free | Opcode::Sync)
                && let Some(base) = base_of(batch, instr.operands[0])
            {
                open.close_for(batch, at, &[Access { base, view: None, reads: true, writes: true }]);
                if instr.opcode == Opcode::Free {
                    sources.free(base, at);
                }
            }
            continue;
        }
        let member = can_be_cut(batch, instr).then(|| member(batch, &sources, at));
        let accesses = accesses(batch, instr, member.as_ref());
        sources.write(batch, at, member.as_ref().and_then(|member| member.cuts.get(1)?.as_ref()));
        match member {
            Some(member) => open.add(batch, member, &accesses),
            None => open.close_for(batch, at, &accesses),
        }
    }
    let mut clusters = open.clusters;
    let end = batch.instrs.len() as u32;
    clusters.iter_mut().filter(|cluster| cluster.end == 0).for_each(|cluster| cluster.end = end);
    clusters
}

/// May an instruction compute its boxes one after the other? Bases that are overwritten as a whole need none of their data,
/// which boxes would.
fn can_be_cut(batch: &Batch, instr: &Instr) -> bool {
    let kind = matches!(instr.opcode.kind(), Kind::Elementwise | Kind::Generator);
    let Some((view, base)) = instr.operands[0].as_view().zip(base_of(batch, instr.operands[0])) else { return false };
    let (len, base) = (batch.views[view as usize].len, &batch.bases[base as usize]);
    kind && len > 0 && (len < base.len || base.has(base_flags::BORN))
}

fn member(batch: &Batch, sources: &Sources, at: u32) -> Member {
    let instr = &batch.instrs[at as usize];
    let output = base_of(batch, instr.operands[0]);
    let cut = |(place, operand): (usize, &Operand)| {
        let cut = sources.of(batch, operand.as_view().filter(|_| place > 0)?)?;
        // A mask is no constant, and nothing reads elsewhere what it writes.
        let fits = |source: &Source| match source {
            Source::Moved(moved) => Some(moved.base) != output,
            _ => instr.opcode != Opcode::Where || place != 1,
        };
        cut.sources.iter().all(fits).then_some(cut)
    };
    Member { at, cuts: instr.operands().iter().enumerate().map(cut).collect() }
}

/// All bases that an instruction uses, or would use if it read the sources of its operands.
fn accesses(batch: &Batch, instr: &Instr, member: Option<&Member>) -> Vec<Access> {
    let mut list = Vec::new();
    for (place, &operand) in instr.operands().iter().enumerate() {
        if let (Some(view), Some(base)) = (operand.as_view(), base_of(batch, operand)) {
            let writes = place < instr.outputs as usize;
            let reads = !writes || instr.opcode.reads_output() || instr.opcode.is_extension();
            list.push(Access { base, view: Some(view), reads, writes });
        }
    }
    for cut in member.iter().flat_map(|member| &member.cuts).flatten() {
        let sources = cut.sources.iter().filter_map(Source::base);
        list.extend(sources.map(|base| Access { base, view: None, reads: true, writes: false }));
    }
    list
}

impl Open {
    /// Closes the clusters that depend on an instruction that is in none.
    fn close_for(&mut self, batch: &Batch, at: u32, accesses: &[Access]) {
        for cluster in self.users(accesses) {
            if self.link(batch, cluster, accesses, false) != Link::None {
                self.close(cluster, at);
            }
        }
    }

    /// Adds an instruction to the clusters that it is aligned with, which become one, or opens a new one.
    fn add(&mut self, batch: &Batch, member: Member, accesses: &[Access]) {
        let mut aligned = None;
        for cluster in self.users(accesses) {
            match self.link(batch, cluster, accesses, true) {
                Link::None => {}
                Link::Conflict => self.close(cluster, member.at),
                Link::Aligned => {
                    aligned = Some(aligned.map_or(cluster, |first| self.merge(first, cluster)));
                }
            }
        }
        let own = aligned.unwrap_or_else(|| {
            self.clusters.push(Cluster::default());
            self.uses.push(HashMap::new());
            self.clusters.len() - 1
        });
        let at = member.at;
        self.clusters[own].members.push(member);
        accesses.iter().for_each(|&access| self.note(own, access));
        for access in accesses {
            let users = self.by_base.get(&access.base);
            if let Some(&oldest) = users.filter(|users| users.len() > MOST_OPEN).and_then(|users| users.first()) {
                self.close(oldest, at + 1);
            }
        }
        if self.clusters[own].members.len() >= MOST_MEMBERS {
            self.close(own, at + 1);
        }
    }

    /// The open clusters that use one of these bases.
    fn users(&self, accesses: &[Access]) -> Vec<usize> {
        let mut list: Vec<usize> =
            accesses.iter().filter_map(|access| self.by_base.get(&access.base)).flatten().copied().collect();
        list.sort_unstable();
        list.dedup();
        list
    }

    fn link(&self, batch: &Batch, cluster: usize, accesses: &[Access], may_align: bool) -> Link {
        let mut link = Link::None;
        for new in accesses {
            for old in self.uses[cluster].get(&new.base).into_iter().flatten() {
                steps::add(1);
                if !new.writes && !old.writes {
                    continue;
                }
                match (new.view, old.view) {
                    (Some(a), Some(b)) if a == b && may_align => link = Link::Aligned,
                    // An instruction that reads any part of a base is lost with all of it.
                    (Some(a), Some(b)) if !new.reads && !old.reads && relation(batch, a, b) == Overlap::Disjoint => {}
                    _ => return Link::Conflict,
                }
            }
        }
        link
    }

    fn note(&mut self, cluster: usize, access: Access) {
        let list = self.uses[cluster].entry(access.base).or_insert_with(|| {
            self.by_base.entry(access.base).or_default().push(cluster);
            Vec::new()
        });
        if let Some(known) = list.iter_mut().find(|known| known.view == access.view || known.view.is_none()) {
            known.reads |= access.reads;
            known.writes |= access.writes;
        } else if list.len() < MOST_VIEWS {
            list.push(access);
        } else {
            let writes = access.writes || list.iter().any(|known| known.writes);
            *list = vec![Access { view: None, reads: true, writes, ..access }];
        }
    }

    fn merge(&mut self, into: usize, other: usize) -> usize {
        let members = std::mem::take(&mut self.clusters[other].members);
        self.clusters[into].members.extend(members);
        self.clusters[into].members.sort_unstable_by_key(|member| member.at);
        let uses = std::mem::take(&mut self.uses[other]);
        self.forget(other, uses.keys());
        uses.into_values().flatten().for_each(|access| self.note(into, access));
        into
    }

    fn close(&mut self, cluster: usize, at: u32) {
        self.clusters[cluster].end = at;
        let uses = std::mem::take(&mut self.uses[cluster]);
        self.forget(cluster, uses.keys());
    }

    fn forget<'a>(&mut self, cluster: usize, bases: impl Iterator<Item = &'a u32>) {
        for base in bases {
            if let Some(users) = self.by_base.get_mut(base) {
                users.retain(|&user| user != cluster);
            }
        }
    }
}
