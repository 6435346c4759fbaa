//! Groups of blocks that may run at the same time: small ones that follow each other, in strands that have nothing to do
//! with each other. A strand's blocks depend on each other and run in their order, each whole on one participant, so that
//! folds have their trees. Nothing in a group can fail once its memory is there.

use crate::plan::{BlockPlan, Work, temporary_bytes};
use crate::program::Program;
use crate::run::{kernel_participants, partial_bytes};
use bh_bytecode::BatchRef;
use bh_bytecode::batch::NO_BASE;
use bh_core::abi::access;
use bh_fuser::lower::Temporary;
use std::cmp::Reverse;
use std::ops::Range;

/// The most blocks of a group, and how many may show that there are several strands.
const BLOCKS: u32 = 64;
const PATIENCE: u32 = 16;
/// The most bytes that a group writes, its working memory included: what dies within it goes at its end only.
const BYTES: u64 = 32 << 20;
/// Units of work of a participant, at least. What a group costs beside its kernels, a microsecond, is 25,000.
const PART: u64 = 50_000;
/// Units of work that a group must save.
const GAIN: u64 = 50_000;
/// Units of work of a task, at least, if there are more tasks than participants. What one takes from another's share has
/// to go from cache to cache: shares that are always the same are faster than even ones.
const TASK: u64 = 400_000;

/// A program of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) block: u32,
    /// Its number in the block.
    pub(crate) program: usize,
    /// Where the buffers of its block begin among those of the group.
    pub(crate) lent: usize,
    /// Where the temporaries of its block and its partial results begin, in bytes.
    pub(crate) temporaries: usize,
    pub(crate) partials: usize,
}

/// Blocks that may run at the same time.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) blocks: Range<u32>,
    pub(crate) steps: Vec<Step>,
    /// The steps of each task: one or more strands.
    pub(crate) tasks: Vec<Range<usize>>,
    pub(crate) participants: usize,
    /// Units of work that it saves.
    pub(crate) saved: u64,
    /// Blocks with work.
    pub(crate) kernels: u64,
    pub(crate) temporary_bytes: usize,
    pub(crate) partial_bytes: usize,
}

/// Finds the groups of a batch: those that are worth it for so many threads, or all. `None` if blocks outside of `apart`
/// have no plans yet; those inside are left alone.
pub(crate) fn plan(
    batch: &BatchRef<'_>,
    plans: &[Option<BlockPlan>],
    apart: &[Range<u32>],
    threads: usize,
    all: bool,
) -> Option<Vec<Group>> {
    let is_apart = |block: u32| apart.iter().any(|range| range.contains(&block));
    if (0..).zip(plans).any(|(block, plan)| plan.is_none() && !is_apart(block)) {
        return None;
    }
    let mut groups = Vec::new();
    let mut strands = Strands::new(batch.bases.len(), threads);
    let (mut start, count) = (0, plans.len() as u32);
    while start + 1 < count {
        strands.clear();
        let (mut best, mut end) = (0, start);
        for block in start..count.min(start + BLOCKS) {
            let Some(plan) = plans[block as usize].as_ref().filter(|_| !is_apart(block)) else { break };
            if !may_overlap(plan) || !strands.add(batch, block, plan) {
                break;
            }
            let gain = if all { strands.count().saturating_sub(1) as u64 } else { strands.saved() };
            if gain > best || all && gain == best && gain > 0 {
                (best, end) = (gain, block + 1);
            } else if best == 0 && block - start >= PATIENCE {
                break;
            }
        }
        let least = if all { 1 } else { GAIN };
        let group = (best >= least).then(|| Group::new(batch, plans, start..end, threads, all, &mut strands));
        match group.filter(|group| group.participants > 1 && (all || group.saved >= GAIN)) {
            Some(group) => {
                start = end;
                groups.push(group);
            }
            None => start += 1,
        }
    }
    Some(groups)
}

impl Group {
    fn new(
        batch: &BatchRef<'_>,
        plans: &[Option<BlockPlan>],
        blocks: Range<u32>,
        threads: usize,
        all: bool,
        strands: &mut Strands,
    ) -> Group {
        strands.clear();
        let (mut steps, mut lent, mut temporary_bytes_before, mut partial_bytes_before) = (Vec::new(), 0, 0, 0);
        for block in blocks.clone() {
            let Some(plan) = &plans[block as usize] else { continue };
            strands.add(batch, block, plan);
            let (programs, temporaries) = programs(plan);
            for (program, of_block) in programs.iter().enumerate() {
                let (temporaries, partials) = (temporary_bytes_before, partial_bytes_before);
                steps.push(Step { block, program, lent, temporaries, partials });
                partial_bytes_before += partial_bytes(of_block).next_multiple_of(64);
            }
            lent += plan.bases.len();
            temporary_bytes_before += temporaries.iter().map(temporary_bytes).sum::<usize>();
        }
        let parts = if all { usize::MAX } else { (strands.work / PART) as usize };
        let participants = threads.min(strands.count()).min(parts).max(1);
        let each = (strands.work / participants as u64 / TASK).max(1) as usize;
        let (task_of, longest) = strands.shared_out(strands.count().min(participants * each));
        let task = |step: &Step| {
            let strand = strands.blocks[(step.block - blocks.start) as usize];
            strand.map_or(0, |strand| task_of[strands.find(strand)])
        };
        steps.sort_by_key(task);
        let tasks = steps.chunk_by(|a, b| task(a) == task(b)).scan(0, |end, steps| {
            let start = *end;
            *end += steps.len();
            Some(start..*end)
        });
        Group {
            tasks: tasks.collect(),
            participants,
            saved: strands.plain.saturating_sub(longest.max(strands.work / participants as u64)),
            kernels: strands.blocks.iter().flatten().count() as u64,
            temporary_bytes: temporary_bytes_before,
            partial_bytes: partial_bytes_before,
            blocks,
            steps,
        }
    }
}

/// May a block be part of a group? Not if it may fail or moves memory.
fn may_overlap(plan: &BlockPlan) -> bool {
    let never_fails = || programs(plan).0.iter().all(|program| program.gathers.is_empty());
    plan.renames.is_empty() && !matches!(plan.work, Work::Special(_)) && never_fails()
}

fn programs(plan: &BlockPlan) -> (&[Program], &[Temporary]) {
    match &plan.work {
        Work::Programs(programs, temporaries) => (programs, temporaries),
        Work::Nothing | Work::Special(_) => (&[], &[]),
    }
}

/// What the blocks of a group have done with a base.
#[derive(Clone, Default)]
struct Base {
    writer: Option<usize>,
    reader: Option<usize>,
    /// Have several strands read it?
    shared: bool,
    retired: bool,
}

/// A strand of a group that grows.
struct Strand {
    /// The one that it has become a part of, or itself.
    whole: usize,
    work: u64,
}

/// The strands of a group that grows.
struct Strands {
    threads: usize,
    bases: Vec<Base>,
    /// The bases that are not as at the beginning.
    known: Vec<u32>,
    strands: Vec<Strand>,
    /// The strand of each block that has work.
    blocks: Vec<Option<usize>>,
    /// Units of work; of the longest strand; and of the one participant that works longest in the plain order.
    work: u64,
    longest: u64,
    plain: u64,
    bytes: u64,
}

impl Strands {
    fn new(bases: usize, threads: usize) -> Strands {
        Strands {
            threads,
            bases: vec![Base::default(); bases],
            known: Vec::new(),
            strands: Vec::new(),
            blocks: Vec::new(),
            work: 0,
            longest: 0,
            plain: 0,
            bytes: 0,
        }
    }

    fn clear(&mut self) {
        self.known.drain(..).for_each(|base| self.bases[base as usize] = Base::default());
        self.strands.clear();
        self.blocks.clear();
        (self.work, self.longest, self.plain, self.bytes) = (0, 0, 0, 0);
    }

    /// What a strand is a part of.
    fn find(&self, mut strand: usize) -> usize {
        while self.strands[strand].whole != strand {
            strand = self.strands[strand].whole;
        }
        strand
    }

    fn wholes(&self) -> impl Iterator<Item = usize> {
        (0..self.strands.len()).filter(|&strand| self.strands[strand].whole == strand)
    }

    fn count(&self) -> usize {
        self.wholes().count()
    }

    /// Units of work that are saved at most.
    fn saved(&self) -> u64 {
        self.plain.saturating_sub(self.longest.max(self.work / self.threads as u64))
    }

    /// Makes tasks of about the same work. Returns the task of each strand, and the work of the longest task.
    fn shared_out(&self, tasks: usize) -> (Vec<usize>, u64) {
        let (mut task_of, mut work) = (vec![0; self.strands.len()], vec![0; tasks.max(1)]);
        let mut wholes: Vec<usize> = self.wholes().collect();
        wholes.sort_by_key(|&strand| Reverse(self.strands[strand].work));
        for strand in wholes {
            let least = (0..work.len()).min_by_key(|&task| work[task]).unwrap_or(0);
            task_of[strand] = least;
            work[least] += self.strands[strand].work;
        }
        (task_of, work.into_iter().max().unwrap_or(0))
    }

    /// Adds the next block: to the strand that it depends on, or the strands, which become one. False if it must wait for
    /// the end of the group.
    fn add(&mut self, batch: &BatchRef<'_>, block: u32, plan: &BlockPlan) -> bool {
        let (programs, temporaries) = programs(plan);
        let writes = |mode: u32| mode & (access::WRITE | access::DISCARD) != 0;
        let written = plan.bases.iter().filter(|used| writes(used.access));
        let bytes: u64 = written.map(|used| batch.bases[used.base as usize].bytes()).sum();
        let own: usize = temporaries.iter().map(temporary_bytes).chain(programs.iter().map(partial_bytes)).sum();
        self.bytes = self.bytes.saturating_add(bytes).saturating_add(own as u64);
        let waits = |base: &Base, mode: u32| base.retired || writes(mode) && base.shared;
        if self.bytes > BYTES || plan.bases.iter().any(|used| waits(&self.bases[used.base as usize], used.access)) {
            return false;
        }
        let strand = (!programs.is_empty()).then(|| self.strand(plan, writes));
        self.blocks.push(strand);
        for program in programs {
            let work = program.work();
            self.work += work;
            self.plain += work / kernel_participants(work, self.threads) as u64;
            self.strands[strand.unwrap_or(0)].work += work;
        }
        self.longest = self.longest.max(strand.map_or(0, |strand| self.strands[strand].work));
        for &index in batch.block_instrs(&batch.blocks[block as usize]) {
            let instr = &batch.instrs[index as usize];
            let view = instr.operands().first().and_then(|operand| operand.as_view());
            let base =
                view.filter(|_| instr.opcode.is_system()).map_or(NO_BASE, |view| batch.views[view as usize].base);
            if let Some(managed) = self.bases.get_mut(base as usize) {
                managed.retired = true;
                self.known.push(base);
            }
        }
        true
    }

    /// The strand of a block: it comes after those that wrote what it uses, or read what it writes.
    fn strand(&mut self, plan: &BlockPlan, writes: impl Fn(u32) -> bool) -> usize {
        let mut strand: Option<usize> = None;
        for used in &plan.bases {
            let base = &self.bases[used.base as usize];
            for before in [base.writer, base.reader.filter(|_| writes(used.access))].into_iter().flatten() {
                let before = self.find(before);
                match strand {
                    Some(strand) if strand != before => {
                        self.strands[strand].work += self.strands[before].work;
                        self.strands[before].whole = strand;
                    }
                    _ => strand = Some(before),
                }
            }
        }
        let strand = strand.unwrap_or_else(|| {
            self.strands.push(Strand { whole: self.strands.len(), work: 0 });
            self.strands.len() - 1
        });
        for used in &plan.bases {
            let other = self.bases[used.base as usize].reader.is_some_and(|reader| self.find(reader) != strand);
            let base = &mut self.bases[used.base as usize];
            if writes(used.access) {
                base.writer = Some(strand);
            } else {
                base.shared |= other;
                base.reader = Some(strand);
            }
            self.known.push(used.base);
        }
        strand
    }
}

#[cfg(test)]
mod tests;
