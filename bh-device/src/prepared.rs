//! Batches that repeat, worked out once: which arrays they borrow, which memory they need besides, what each kernel's arguments are, and
//! which arrays end. Arrays that begin and end within a batch are never the registry's. A repetition borrows, launches and retires.

use crate::arrays::{Arrays, Lent, Place};
use crate::chains::BatchPlan;
use crate::code::{KernelMemory, Placement, Placements};
use crate::driver::Graph;
use crate::graphs::Graphs;
use crate::launch::Launcher;
use crate::memory::{Memory, capacity};
use crate::plan::BlockPlan;
use crate::settings::{Settings, Specialise};
use crate::start::Launch;
use crate::tune::Tuner;
use crate::whereabouts::{Verdict, Whereabouts};
use crate::work::Work;
use bh_bytecode::{BatchRef, Constant, DType, Opcode, base_flags};
use bh_core::abi::{access, retire, status};
use bh_core::{Error, Result};
use bh_kernel::{BufferRef, ConstantRef};
use std::sync::Arc;

/// Batches of more bytes run block by block: the host takes little of their time, and arrays give memory back as early as possible.
const MOST_BYTES: u64 = 64 << 20;
/// The fewest kernels of a graph.
const LEAST_KERNELS: usize = 3;

/// An array that the registry lends.
struct Borrowed {
    /// Index in the batch.
    base: u32,
    access: u32,
    /// Does the batch fill it part by part?
    filled: bool,
    /// Does a block read so little of it that the rest stays in host memory, if it is there?
    partly: bool,
}

/// Where a kernel's memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A borrowed array, by number.
    Borrowed(u32),
    /// Memory of the batch alone, by number.
    Own(u32),
}

/// A kernel, and where its memory is in the list of all kernels' memory.
struct Step {
    launch: Arc<Launch>,
    block: u32,
    memory: std::ops::Range<usize>,
}

/// A prepared batch.
pub(crate) struct Prepared {
    borrowed: Vec<Borrowed>,
    /// Bytes of memory of the batch alone.
    own: Vec<usize>,
    steps: Vec<Step>,
    sources: Vec<Source>,
    /// Bases that end or go to the host, and how: in the order of the batch.
    retired: Vec<(u32, u32)>,
    /// Counts of the chains among its kernels that run in tiles.
    tilings: u64,
    in_tiles: u64,
    /// For each kind of block, how many of them there are.
    whereabouts: Whereabouts,
    /// Was there memory for all of it so far?
    fits: bool,
    /// None if the driver has no graphs.
    graphs: Option<Graphs<Box<dyn Graph>>>,
}

/// How far a batch is from being prepared.
pub(crate) enum Preparation {
    /// Its kernels may still change.
    Later,
    /// It runs block by block.
    Never,
    Ready(Box<Prepared>),
}

/// The counts of a run.
pub(crate) struct Ran {
    pub(crate) kernels: u64,
    pub(crate) tilings: u64,
    pub(crate) in_tiles: u64,
    /// Was it a graph?
    pub(crate) graph: bool,
}

/// The preparation of a batch under construction, as far as its blocks are known.
struct Draft<'a, 'b> {
    batch: &'a BatchRef<'b>,
    filled: &'a [bool],
    /// For each base, is it dropped or freed by the batch, without going to the host?
    ends: Vec<bool>,
    /// For each base, does it live within one block?
    contracted: Vec<bool>,
    /// Where each base's memory is, once a block uses it.
    places: Vec<Option<Source>>,
    /// Bases that were retired: a later use is another array.
    gone: Vec<bool>,
    /// Own memory that no later block needs, by bytes.
    free: Vec<u32>,
    prepared: Prepared,
}

impl Prepared {
    /// Prepares a batch whose blocks have just run on the device, in these runs.
    pub(crate) fn of(
        batch: &BatchRef<'_>,
        plans: &BatchPlan,
        runs: &[&[u32]],
        settings: &Settings,
        tuner: &Tuner,
    ) -> Preparation {
        let bytes: u64 = batch.bases.iter().map(|base| base.bytes()).sum();
        if bytes > MOST_BYTES || !batch.renames.is_empty() {
            return Preparation::Never;
        }
        let is_final = |run: &&[u32]| {
            let Some(plan) = plans.known(run) else { return false };
            let tuned = || tuner.is_settled(plan.name, || Work::of(batch, run[0]).bytes);
            let special = || settings.specialise == Specialise::Off || plan.stays || plan.is_special();
            plans.chained(run).is_some() || plan.plain.all.is_empty() || (special() && tuned())
        };
        if !runs.iter().all(is_final) {
            return Preparation::Later;
        }
        let mut draft = Draft::new(batch, &plans.filled);
        for run in runs {
            let Some(plan) = plans.known(run) else { return Preparation::Later };
            let chained = plans.chained(run);
            let failing = |launch: &Arc<Launch>| !launch.code.failing.is_empty();
            let simple = plan.in_pieces.is_none() && !plan.launches().all.iter().any(failing);
            if !simple || draft.run(run, plan).is_none() {
                return Preparation::Never;
            }
            draft.prepared.tilings += u64::from(chained.is_some());
            draft.prepared.in_tiles += u64::from(chained.unwrap_or(0));
        }
        let mut prepared = draft.prepared;
        if prepared.own.iter().map(|&bytes| bytes as u64).sum::<u64>() > MOST_BYTES {
            return Preparation::Never;
        }
        // Content that is only overwritten is given up last.
        let order = |borrowed: &Borrowed| borrowed.access & access::DISCARD != 0;
        let mut numbers: Vec<u32> = (0..prepared.borrowed.len() as u32).collect();
        numbers.sort_by_key(|&at| order(&prepared.borrowed[at as usize]));
        for source in &mut prepared.sources {
            if let Source::Borrowed(number) = source {
                *number = numbers.iter().position(|other| other == number).unwrap_or(0) as u32;
            }
        }
        prepared.borrowed.sort_by_key(order);
        Preparation::Ready(Box::new(prepared))
    }

    /// May its kernels run as a graph? Libraries decide in each call which kernels they launch.
    fn may_be_graph(&self, placements: Placements) -> bool {
        placements.has(Placement::Graphs)
            && self.steps.len() >= LEAST_KERNELS
            && self.steps.iter().all(|step| step.launch.code.library.is_none())
    }

    /// Are the values of any array that it reads on the device alone?
    pub(crate) fn is_here(&self, batch: &BatchRef<'_>, arrays: &Arrays) -> bool {
        self.borrowed.iter().any(|borrowed| arrays.place(&batch.bases[borrowed.base as usize]) == Place::Device)
    }

    /// May it run? After it has not fit, its blocks run one after the other.
    pub(crate) fn fits(&self) -> bool {
        self.fits
    }

    /// From here on it runs block by block, where an error is that of its block.
    pub(crate) fn give_up(&mut self) {
        self.fits = false;
    }

    /// Bytes of memory that it takes beyond that of arrays on the device.
    pub(crate) fn more_bytes(&self, batch: &BatchRef<'_>, arrays: &Arrays) -> u64 {
        let borrowed = self.borrowed.iter().map(|borrowed| &batch.bases[borrowed.base as usize]);
        let coming = borrowed.filter(|base| arrays.bytes_of(base.id) == 0).map(|base| base.bytes() as usize);
        self.own.iter().copied().chain(coming).map(|bytes| capacity(bytes) as u64).sum()
    }

    /// Adds its blocks to those that ran on the device.
    pub(crate) fn note(&self, whereabouts: &mut Whereabouts) {
        whereabouts.add(&self.whereabouts);
    }
}

impl<'a, 'b> Draft<'a, 'b> {
    fn new(batch: &'a BatchRef<'b>, filled: &'a [bool]) -> Draft<'a, 'b> {
        let mut ends = vec![false; batch.bases.len()];
        let system = |opcode: Opcode| batch.instrs.iter().filter(move |instr| instr.opcode == opcode);
        let base = |instr: &bh_bytecode::Instr| Some(batch.views[instr.operands().first()?.as_view()? as usize].base);
        let dropped = system(Opcode::Discard).chain(system(Opcode::Free)).filter_map(base);
        dropped.for_each(|base| ends[base as usize] = true);
        system(Opcode::Sync).filter_map(base).for_each(|base| ends[base as usize] = false);
        let mut contracted = vec![false; batch.bases.len()];
        let blocks = batch.blocks.iter().flat_map(|block| batch.contracted(block));
        blocks.for_each(|&base| contracted[base as usize] = true);
        Draft {
            batch,
            filled,
            ends,
            contracted,
            places: vec![None; batch.bases.len()],
            gone: vec![false; batch.bases.len()],
            free: Vec::new(),
            prepared: Prepared {
                borrowed: Vec::new(),
                own: Vec::new(),
                steps: Vec::new(),
                sources: Vec::new(),
                retired: Vec::new(),
                tilings: 0,
                in_tiles: 0,
                whereabouts: Whereabouts::default(),
                fits: true,
                graphs: Some(Graphs::new()),
            },
        }
    }

    /// Adds blocks that run together; none if the batch cannot be prepared.
    fn run(&mut self, run: &[u32], plan: &BlockPlan) -> Option<()> {
        for (used, parts) in plan.uses.iter().zip(&plan.parts) {
            self.uses(used.base, used.access, !parts.is_empty())?;
        }
        let launches = plan.launches();
        let temporaries: Vec<u32> = plan.temporaries.iter().map(|&bytes| self.take(bytes)).collect();
        let scratch: Vec<u32> = launches.scratch.iter().map(|&bytes| self.take(bytes)).collect();
        let mut nothing = None;
        for launch in &launches.all {
            let begin = self.prepared.sources.len();
            for place in launch.places() {
                let source = match *place {
                    place if plan.is_unseen(&place) => Source::Own(*nothing.get_or_insert_with(|| self.take(0))),
                    KernelMemory::Of(BufferRef::Base(base)) => self.places[base as usize]?,
                    KernelMemory::Of(BufferRef::Temporary(number)) => Source::Own(*temporaries.get(number as usize)?),
                    KernelMemory::Scratch(number) => Source::Own(*scratch.get(number as usize)?),
                    KernelMemory::Of(BufferRef::Fresh(_) | BufferRef::None) | KernelMemory::Failures => return None,
                };
                self.prepared.sources.push(source);
            }
            let memory = begin..self.prepared.sources.len();
            self.prepared.steps.push(Step { launch: launch.clone(), block: run[0], memory });
        }
        self.free.extend(temporaries.into_iter().chain(scratch).chain(nothing));
        run.iter().for_each(|&block| self.end(block));
        Some(())
    }

    /// A block uses a base; none if it was retired before.
    fn uses(&mut self, base: u32, mode: u32, partly: bool) -> Option<()> {
        let (at, record) = (base as usize, &self.batch.bases[base as usize]);
        let prepared = &mut self.prepared;
        match self.places[at] {
            _ if self.gone[at] => return None,
            None => {
                let whole = mode & access::DISCARD != 0 || self.filled[at];
                let inner = record.has(base_flags::BORN) && record.has(base_flags::DIES) && self.ends[at] && whole;
                let kept = record.has(base_flags::LIVE_OUT) || record.has(base_flags::PINNED);
                self.places[at] = Some(match inner && !kept {
                    true => Source::Own(self.take(record.bytes() as usize)),
                    false => {
                        prepared.borrowed.push(Borrowed { base, access: mode, filled: self.filled[at], partly });
                        Source::Borrowed(prepared.borrowed.len() as u32 - 1)
                    }
                });
            }
            Some(Source::Borrowed(number)) => {
                let borrowed = &mut prepared.borrowed[number as usize];
                borrowed.partly &= partly;
                // A base that is overwritten first may be read afterwards. One that is read first is kept.
                if borrowed.access & access::DISCARD == 0 {
                    borrowed.access |= mode & !access::DISCARD;
                }
            }
            Some(Source::Own(_)) => {}
        }
        Some(())
    }

    /// Memory of the batch alone.
    fn take(&mut self, bytes: usize) -> u32 {
        let own = &mut self.prepared.own;
        let fits = |&number: &u32| capacity(own[number as usize]) == capacity(bytes);
        if let Some(at) = self.free.iter().rposition(fits) {
            return self.free.swap_remove(at);
        }
        own.push(bytes);
        own.len() as u32 - 1
    }

    /// A block ends.
    fn end(&mut self, block: u32) {
        let batch = self.batch;
        let record = &batch.blocks[block as usize];
        self.prepared.whereabouts.note(batch, block, Verdict::Device);
        for &index in batch.block_instrs(record) {
            let instr = &batch.instrs[index as usize];
            let action = match instr.opcode {
                Opcode::Sync => retire::SYNC,
                Opcode::Free => retire::FREE,
                Opcode::Discard => retire::DISCARD,
                _ => continue,
            };
            let view = instr.operands().first().and_then(|operand| operand.as_view());
            let Some(view) = view.filter(|&view| batch.base_of(view).is_some()) else { continue };
            let base = batch.views[view as usize].base;
            match self.places[base as usize] {
                // The registry knows nothing of it. It may be freed first and dropped later.
                Some(Source::Own(number)) if !self.gone[base as usize] => self.free.push(number),
                Some(Source::Own(_)) => {}
                // Contracted arrays have no data.
                _ if self.contracted[base as usize] => {}
                _ => self.prepared.retired.push((base, action)),
            }
            self.gone[base as usize] = true;
        }
    }
}

impl Launcher {
    /// Runs a prepared batch. None if it has to run block by block, with the same effect; nothing has begun then. An error names no
    /// block, as arrays between blocks are lost.
    pub(crate) fn prepared(
        &mut self,
        batch: &BatchRef<'_>,
        prepared: &mut Prepared,
        placements: Placements,
    ) -> Result<Option<Ran>> {
        self.arrays.tick();
        let (lent, mut own) = match self.borrow(batch, prepared) {
            Ok(Some(memory)) => memory,
            Ok(None) => return Ok(None),
            // Blocks, one after the other, need less memory, or name the array that has none.
            Err(error) => {
                // A loss for lack of memory that an earlier operation had says nothing of this batch.
                prepared.fits = error.status != status::MEMORY || error.origin.is_some();
                return Ok(None);
            }
        };
        let mut all = prepared.borrowed.iter().zip(&lent);
        // A copy that others need may find no room. Nothing that a block reads is lost then: each claims its own arrays.
        if all.any(|(borrowed, lent)| self.arrays.claim(&batch.bases[borrowed.base as usize], lent).is_err()) {
            prepared.give_up();
            return Ok(None);
        }
        let memory: Vec<&Memory> = prepared
            .sources
            .iter()
            .map(|source| match *source {
                Source::Borrowed(number) => lent[number as usize].memory.as_ref(),
                Source::Own(number) => &own[number as usize],
            })
            .collect();
        let constant = |dtype, name: ConstantRef| name.value(batch, dtype);
        let first = prepared.steps.first().map_or(0, |step| step.block);
        let graph = prepared.may_be_graph(placements)
            && self.graph(prepared, &memory, &constant).map_err(|error| of_block(error, batch, first))?;
        if !graph {
            for step in &prepared.steps {
                let event =
                    step.launch.start_with(&self.arrays.pool.gpu, &memory[step.memory.clone()], &constant, false);
                self.timing.started(event.map_err(|error| of_block(error, batch, step.block))?);
            }
        }
        drop(memory);
        // Memory that is taken first goes back last, so that the next repetition gets the same.
        while own.pop().is_some() {}
        drop(lent);
        for &(base, action) in &prepared.retired {
            let base = &batch.bases[base as usize];
            // The only failure is a base that is known under another type, which has no data to manage.
            let _ = self.arrays.registry.retire(base, action);
            if action == retire::DISCARD {
                self.arrays.forget(base);
            }
        }
        let &mut Prepared { tilings, in_tiles, .. } = prepared;
        Ok(Some(Ran { kernels: prepared.steps.len() as u64, tilings, in_tiles, graph }))
    }

    /// All memory of a batch. None if a part of an array in host memory is enough.
    fn borrow(&mut self, batch: &BatchRef<'_>, prepared: &Prepared) -> Result<Option<(Vec<Lent>, Vec<Memory>)>> {
        let mut lent = Vec::with_capacity(prepared.borrowed.len());
        for borrowed in &prepared.borrowed {
            let base = &batch.bases[borrowed.base as usize];
            if borrowed.partly && !self.arrays.is_known(base) {
                return Ok(None);
            }
            if borrowed.filled && borrowed.access & access::DISCARD == 0 {
                self.arrays.begin(base)?;
            }
            lent.push(self.arrays.lend(base, borrowed.access)?);
        }
        for step in &prepared.steps {
            // Kernels that got ready after their block had run with others have not brought them.
            step.launch.bring_numbers(|bytes| self.arrays.take(bytes))?;
        }
        let own: Result<Vec<Memory>> = prepared.own.iter().map(|&bytes| self.arrays.take(bytes)).collect();
        Ok(Some((lent, own?)))
    }

    /// Runs the kernels as a graph, if there is one for their arguments.
    fn graph(
        &mut self,
        prepared: &mut Prepared,
        memory: &[&Memory],
        constant: &dyn Fn(DType, ConstantRef) -> Constant,
    ) -> Result<bool> {
        let Prepared { steps, graphs, .. } = prepared;
        let Some(known) = graphs else { return Ok(false) };
        let mut arguments: Vec<u64> =
            memory.iter().map(|memory| memory.buffer().handle().expose_provenance() as u64).collect();
        for step in steps.iter() {
            let constants = step.launch.code.constants.iter();
            arguments.extend(constants.flat_map(|&(dtype, name)| constant(dtype, name).bits));
        }
        let gpu = self.arrays.pool.gpu.clone();
        let mut has_none = false;
        let make = || {
            let made = gpu.driver.graph();
            has_none = made.is_none();
            let mut graph = made?;
            let mut add = |step: &Step| {
                let kernel = step.launch.set(&memory[step.memory.clone()], constant)?;
                graph.add(&**kernel, step.launch.code.groups, step.launch.code.group)
            };
            steps.iter().try_for_each(&mut add).ok()?;
            graph.finish().ok()?;
            Some(graph)
        };
        let Some(graph) = known.of(&arguments, make) else {
            if has_none {
                *graphs = None;
            }
            return Ok(false);
        };
        steps.iter().try_for_each(|_| gpu.kernel_starts())?;
        // SAFETY: the graph's kernels have these arguments, as their places and constants are equal: memory that is borrowed, which has what
        // the kernels use, as their views were validated, and numbers, which the launches keep.
        let launched = unsafe { graph.launch() };
        match launched {
            Ok(()) => self.timing.started(None),
            // The driver had no memory for it, and has begun nothing.
            Err(error) if error.status == status::MEMORY => *graphs = None,
            Err(error) => return Err(error),
        }
        Ok(graphs.is_some())
    }
}

/// An error of a kernel with the first operation of its block. It names no block.
fn of_block(error: Error, batch: &BatchRef<'_>, block: u32) -> Error {
    let instrs = batch.block_instrs(&batch.blocks[block as usize]);
    let first = instrs.iter().find(|&&index| !batch.instrs[index as usize].opcode.is_system());
    match first {
        Some(&first) => error.at_instr(batch, first),
        None => error,
    }
}
