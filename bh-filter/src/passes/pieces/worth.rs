//! Which clusters are cut, and where: by counts of elements, boxes and arrays that need no memory any more.

use super::clusters::{Cluster, Member};
use super::sources::{Cut, MOST, Moved, Source, boxes, copied, corners, ends};
use crate::analysis::{base_of, output_type};
use crate::losses::Losses;
use crate::passes::Options;
use bh_bytecode::{Batch, DType, Kind, Opcode, Operand, base_flags};
use std::collections::BTreeSet;

/// A box must have a share of this of the elements that a cluster must have, on average.
const SHARE: i64 = 8;
/// The most instructions that cutting a cluster may add.
const MOST_ADDED: i64 = 1 << 13;

/// The uses of a base in a batch.
#[derive(Default)]
struct Life {
    /// Which instructions write to it, and through which view the last of them.
    writers: Vec<u32>,
    view: Option<u32>,
    /// Which instructions read it, once for each operand.
    readers: Vec<u32>,
    /// Are all views of it one, which it is written through before it is read?
    aligned: bool,
}

/// Decides which clusters of a batch are worth cutting.
pub struct Worth<'a> {
    batch: &'a Batch,
    lives: Vec<Life>,
    /// The cluster of each instruction.
    cluster_of: Vec<Option<usize>>,
    /// By base, how many operands may read its sources instead.
    forwarded: Vec<usize>,
    /// The sources that are read so.
    sources: BTreeSet<u32>,
    least: i64,
    kernel_bytes: i64,
    /// Is every cluster cut that can be?
    any: bool,
}

impl<'a> Worth<'a> {
    /// Surveys the clusters of a batch, and drops the cuts of operands that are better read from the base. Cutting a cluster takes
    /// at least `pieces_from` elements, this number of bytes saved for each added instruction (memory moves about that in some runs of
    /// the batch while an instruction is planned), and `kernel_bytes` for each box but one, which may be a kernel of its own.
    /// With a `pieces_from` of 1 or less, every cluster that can be cut is cut.
    pub fn new(batch: &'a Batch, clusters: &mut [Cluster], options: &Options) -> Worth<'a> {
        let &Options { pieces_from: least, kernel_bytes, .. } = options;
        let mut cluster_of = vec![None; batch.instrs.len()];
        for (number, cluster) in clusters.iter().enumerate() {
            cluster.members.iter().for_each(|member| cluster_of[member.at as usize] = Some(number));
        }
        let forwarded = vec![0; batch.bases.len()];
        let sources = BTreeSet::new();
        let (lives, any) = (lives(batch), least <= 1);
        let mut worth = Worth { batch, lives, cluster_of, forwarded, sources, least, kernel_bytes, any };
        for member in clusters.iter_mut().flat_map(|cluster| &mut cluster.members) {
            let instr = &batch.instrs[member.at as usize];
            for (place, &operand) in instr.operands().iter().enumerate() {
                let cut = &mut member.cuts[place];
                cut.take_if(|cut| !worth.saves(cut, operand));
                if let (Some(cut), Some(base)) = (cut, base_of(batch, operand)) {
                    worth.forwarded[base as usize] += 1;
                    worth.sources.extend(cut.sources.iter().filter_map(Source::base));
                }
            }
        }
        worth
    }

    /// Do all sources of an operand have memory in any case, or come to this place from where they are computed?
    fn saves(&self, cut: &Cut, operand: Operand) -> bool {
        let Some(view) = operand.as_view() else { return false };
        let shape = self.batch.as_ref().shape(view);
        corners(&cut.cuts).zip(&cut.sources).all(|(corner, source)| match source {
            Source::Moved(moved) => self.is_stored(moved.base) || self.is_whole(moved, &corner, cut, shape),
            _ => true,
        })
    }

    /// Does a base have memory, whether or not its pieces are read where they came from?
    fn is_stored(&self, base: u32) -> bool {
        let life = &self.lives[base as usize];
        let own = life.writers.first().map(|&writer| self.cluster_of[writer as usize]);
        let apart = |&reader: &u32| {
            self.batch.instrs[reader as usize].opcode.kind() != Kind::Reduction
                && Some(self.cluster_of[reader as usize]) != own
        };
        !self.passes_on(base) || life.readers.iter().any(apart)
    }

    /// Is a base a temporary that lives from index to equal index only?
    fn passes_on(&self, base: u32) -> bool {
        self.is_temporary(base) && self.lives[base as usize].aligned
    }

    fn is_temporary(&self, base: u32) -> bool {
        let flags = base_flags::BORN | base_flags::DIES;
        self.batch.bases[base as usize].flags & flags == flags
    }

    /// The temporaries that only members of a cluster use, from index to equal index, and that nothing reads as a source.
    pub fn own(&self, cluster: &Cluster) -> BTreeSet<u32> {
        let is_member = |at: &u32| cluster.members.binary_search_by_key(at, |member| member.at).is_ok();
        let outputs = cluster
            .members
            .iter()
            .filter_map(|member| base_of(self.batch, self.batch.instrs[member.at as usize].operands[0]));
        let is_own = |&base: &u32| {
            let life = &self.lives[base as usize];
            self.passes_on(base)
                && !self.sources.contains(&base)
                && life.readers.iter().chain(&life.writers).all(is_member)
        };
        outputs.filter(is_own).collect()
    }

    /// Is a box all of what the only writer of its source made, index by index?
    fn is_whole(&self, moved: &Moved, corner: &[i64], cut: &Cut, shape: &[i64]) -> bool {
        let Life { writers, view: Some(view), .. } = &self.lives[moved.base as usize] else { return false };
        if writers.len() > 1 {
            return false;
        }
        let offset: i64 = corner.iter().zip(&moved.stride).map(|(i, stride)| i * stride).sum();
        let end = ends(&cut.cuts, shape, corner);
        let extents = end.iter().zip(corner).map(|(end, begin)| end - begin);
        let long = |dims: &(i64, i64)| dims.0 > 1;
        let (written, batch) = (&self.batch.views[*view as usize], self.batch.as_ref());
        let steps = batch.shape(*view).iter().copied().zip(batch.stride(*view).iter().copied()).filter(long);
        written.start == moved.start + offset && extents.zip(moved.stride.iter().copied()).filter(long).eq(steps)
    }

    /// Where a cluster is cut, if that saves anything: places inside of each dimension.
    pub fn cuts(&self, cluster: &Cluster, losses: &mut Option<Losses>) -> Option<Vec<Vec<i64>>> {
        let first = cluster.members.first()?;
        let shape = self.batch.as_ref().shape(self.batch.instrs[first.at as usize].operands[0].as_view()?);
        let elements: i64 = shape.iter().product();
        let saved = self.gain(cluster) - self.loss(cluster);
        if !self.any && (elements < self.least || saved <= 0) {
            return None;
        }
        let mut cuts = vec![Vec::new(); shape.len()];
        for cut in cluster.members.iter().flat_map(|member| &member.cuts).flatten() {
            cuts.iter_mut().zip(&cut.cuts).for_each(|(all, own)| all.extend(own));
        }
        for cuts in &mut cuts {
            cuts.sort_unstable();
            cuts.dedup();
        }
        let count = boxes(&cuts);
        let added = (count as i64 - 1).saturating_mul(cluster.members.len() as i64);
        let pays = elements >= (self.least / SHARE).saturating_mul(count as i64)
            && saved >= added.saturating_mul(self.least)
            && saved >= (count as i64 - 1).saturating_mul(self.kernel_bytes)
            && (self.kernel_bytes > 0
                || cuts.iter().zip(shape).find(|(_, extent)| **extent > 1).is_none_or(|(cuts, _)| cuts.is_empty())
                || cluster.members.iter().any(|member| self.reads_afar(member)));
        let fits = (1..=MOST).contains(&count) && added <= MOST_ADDED && (pays || self.any);
        let losses = losses.get_or_insert_with(|| Losses::of(self.batch));
        let holds = |member: &Member| keeps(self.batch, member, losses) && self.has_arrays(member, &cuts);
        let is_cut = cluster.members.iter().any(|member| member.cuts.iter().any(Option::is_some));
        (is_cut && fits && cluster.members.iter().all(holds)).then_some(cuts)
    }

    /// Are neighbours in an operand of a member far from each other in its sources? Where they are not, engines that run chains of
    /// kernels in lock-step take the copies, what made their sources and what reads them row by row.
    fn reads_afar(&self, member: &Member) -> bool {
        let operands = self.batch.instrs[member.at as usize].operands();
        operands.iter().zip(&member.cuts).any(|(operand, cut)| {
            let (Some(view), Some(cut)) = (operand.as_view(), cut) else { return false };
            let (shape, len) = (self.batch.as_ref().shape(view), self.batch.views[view as usize].len);
            let large = |corner: &[i64]| {
                let end = ends(&cut.cuts, shape, corner);
                end.iter().zip(corner).map(|(end, begin)| end - begin).product::<i64>() >= len / SHARE
            };
            let place = |moved: &Moved, index: &[i64]| {
                moved.start + index.iter().zip(&moved.stride).map(|(i, stride)| i * stride).sum::<i64>()
            };
            // Neighbours on both sides of the cut at which a box begins.
            let apart = |corner: &[i64], dim: usize| {
                let mut before = corner.to_vec();
                before[dim] -= 1;
                let (one, other) = (cut.source(before.iter().copied()), cut.source(corner.iter().copied()));
                let (Source::Moved(one), Source::Moved(other)) = (one, other) else { return false };
                match one.base == other.base {
                    true => (place(one, &before) - place(other, corner)).abs() >= len / 2,
                    false => large(corner) && large(&cut.corner(&before)),
                }
            };
            corners(&cut.cuts).any(|corner| (0..corner.len()).any(|dim| corner[dim] > 0 && apart(&corner, dim)))
        })
    }

    /// Bytes that need not be written or read: both of an array whose readers all read its sources, one of another one.
    fn gain(&self, cluster: &Cluster) -> i64 {
        let mut seen = Vec::new();
        for member in &cluster.members {
            let operands = self.batch.instrs[member.at as usize].operands();
            for (&operand, _) in operands.iter().zip(&member.cuts).filter(|(_, cut)| cut.is_some()) {
                if let Some(base) = base_of(self.batch, operand)
                    && !seen.contains(&base)
                {
                    seen.push(base);
                }
            }
        }
        let gain = |base: u32| {
            let goes =
                self.is_temporary(base) && self.forwarded[base as usize] == self.lives[base as usize].readers.len();
            self.batch.bases[base as usize].bytes() as i64 * if goes { 2 } else { 1 }
        };
        seen.into_iter().map(gain).sum()
    }

    /// Bytes of temporaries that need memory because an uncut instruction reads them.
    fn loss(&self, cluster: &Cluster) -> i64 {
        let own = self.cluster_of[cluster.members[0].at as usize];
        let outputs = cluster
            .members
            .iter()
            .filter_map(|member| base_of(self.batch, self.batch.instrs[member.at as usize].operands[0]));
        let is_read_later = |&base: &u32| {
            let readers = &self.lives[base as usize].readers;
            self.passes_on(base) && readers.iter().any(|&reader| self.cluster_of[reader as usize] != own)
        };
        outputs.filter(is_read_later).map(|base| 2 * self.batch.bases[base as usize].bytes() as i64).sum()
    }

    /// Is there an array among the inputs of each box, or may its result stand in for a constant?
    fn has_arrays(&self, member: &Member, cuts: &[Vec<i64>]) -> bool {
        let instr = &self.batch.instrs[member.at as usize];
        let constant = |place: usize, corner: &[i64]| match member.cuts[place].as_ref() {
            Some(cut) => matches!(cut.source(corner.iter().copied()), Source::Constant(_)),
            None => instr.operands[place].as_constant().is_some(),
        };
        let places = instr.outputs as usize..instr.count as usize;
        instr.opcode == Opcode::Copy
            || instr.opcode.kind() != Kind::Elementwise
            || corners(cuts).all(|corner| places.clone().any(|place| !constant(place, &corner)))
            || places.clone().any(|place| stands_in(self.batch, member.at, place))
    }
}

/// May a result, filled with the constant that is read at this place, be read there?
pub fn stands_in(batch: &Batch, at: u32, place: usize) -> bool {
    let instr = &batch.instrs[at as usize];
    output_type(batch, instr).is_some_and(|dtype: DType| batch.as_ref().dtype(instr.operands[place]) == Some(dtype))
}

/// Are a member's results lost by the same causes if it reads sources, and writes box by box?
fn keeps(batch: &Batch, member: &Member, losses: &mut Losses) -> bool {
    let instr = &batch.instrs[member.at as usize];
    let mut reads = Vec::new();
    for (&operand, cut) in instr.operands().iter().zip(&member.cuts).skip(instr.outputs as usize) {
        match cut {
            Some(cut) => reads.extend(cut.sources.iter().filter_map(|source| match source {
                Source::Moved(moved) => Some((moved.base, moved.since)),
                _ => None,
            })),
            None => reads.extend(base_of(batch, operand).map(|base| (base, member.at))),
        }
    }
    losses.keeps_in_parts(batch, member.at, &reads)
}

fn lives(batch: &Batch) -> Vec<Life> {
    let mut lives: Vec<Life> = batch.bases.iter().map(|_| Life { aligned: true, ..Life::default() }).collect();
    for (at, instr) in batch.instrs.iter().enumerate() {
        if matches!(instr.opcode, Opcode::Free | Opcode::Discard) {
            continue;
        }
        for &input in instr.inputs() {
            if let (Some(view), Some(base)) = (input.as_view(), base_of(batch, input)) {
                let life = &mut lives[base as usize];
                life.readers.push(at as u32);
                life.aligned &= life.view == Some(view);
            }
        }
        for &output in instr.outputs() {
            if let (Some(view), Some(base)) = (output.as_view(), base_of(batch, output)) {
                let life = &mut lives[base as usize];
                life.aligned &= !instr.opcode.reads_output() && (life.writers.is_empty() || life.view == Some(view));
                life.writers.push(at as u32);
                life.view = Some(view);
            }
        }
    }
    lives
}

/// Does a batch copy anything to a part of a base that has at least this many elements?
pub fn has_pieces(batch: &Batch, least: i64) -> bool {
    batch.instrs.iter().any(|instr| {
        copied(batch, instr).is_some()
            && instr.operands[0].as_view().zip(base_of(batch, instr.operands[0])).is_some_and(|(view, base)| {
                let len = batch.bases[base as usize].len;
                len >= least && batch.views[view as usize].len < len
            })
    })
}
