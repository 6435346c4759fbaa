//! The plans of a batch: those of its blocks, and those of chains of blocks that run as one kernel: tile by tile, folds of the same rows, or a
//! fold of a few elements with the fold that follows it.

use crate::arrays::Arrays;
use crate::code::{Placement, Placements};
use crate::compiler::Entry;
use crate::device::Class;
use crate::filled::filled;
use crate::memory::Pool;
use crate::methods::Methods;
use crate::plan::BlockPlan;
use crate::prepared::{Preparation, Prepared};
use crate::settings::{Settings, Specialise, TimeTiles};
use crate::tune::{HOT, Tuner};
use bh_bytecode::BatchRef;
use bh_kernel::{ColumnOptions, ColumnTiling, Survey, column_tilings};
use std::ops::Range;
use std::sync::Arc;

/// Batches of fewer bytes stay in the device's caches from kernel to kernel.
const LEAST_BYTES: u64 = 16 << 20;
/// Boxes of fewer elements whose folds run apart stay in the caches, too.
const LEAST_ELEMENTS: i64 = 1 << 21;
/// Bytes of local memory of a group: some groups are to share what a unit has.
const LOCAL_BYTES: u64 = 40 << 10;

/// Columns of an item in three dimensions: more of what it reads is its own, and squares have long sides.
const COLUMNS: i64 = 4;

/// A chain with its blocks and how many of them compute.
struct Chain {
    blocks: Range<u32>,
    kernels: u32,
    plan: BlockPlan,
}

/// The plans of a batch.
pub(crate) struct BatchPlan {
    blocks: Vec<Option<BlockPlan>>,
    /// For each base, does the batch fill it part by part, so that it needs no zeros?
    pub(crate) filled: Arc<[bool]>,
    /// How often it was called.
    calls: u32,
    /// The chains, once it is time for them.
    chains: Option<Vec<Chain>>,
    /// How it runs as a whole, once that is known.
    prepared: Preparation,
}

impl BatchPlan {
    /// Nothing is planned yet.
    pub(crate) fn new(batch: &BatchRef<'_>, placements: Placements) -> BatchPlan {
        let blocks = batch.blocks.iter().map(|_| None).collect();
        let filled = match placements.has(Placement::Filled) {
            true => filled(batch),
            false => vec![false; batch.bases.len()],
        };
        BatchPlan { blocks, filled: filled.into(), calls: 0, chains: None, prepared: Preparation::Later }
    }

    /// Plans the chains if it is time for them, in the call that begins. Returns what is to be built beside the program.
    pub(crate) fn plan_chains(&mut self, batch: &BatchRef<'_>, pool: &Pool, settings: &Settings) -> Vec<Arc<Entry>> {
        self.calls = self.calls.saturating_add(1);
        let now = matches!(settings.time_tiles, TimeTiles::Kernels(_));
        if self.chains.is_some() || (self.calls <= HOT && !now) {
            return Vec::new();
        }
        let found = together(batch, pool, settings);
        let tiles = found.tilings.into_iter().map(|found| Chain {
            blocks: found.tiling.blocks.clone(),
            kernels: found.tiling.kernels,
            plan: BlockPlan::chained(batch, &found, pool),
        });
        let folds = found.folds.into_iter();
        let folds = folds.map(|(blocks, plan)| Chain { kernels: blocks.len() as u32, blocks, plan });
        let found = tiles.chain(folds).collect();
        let chains = self.chains.insert(found);
        let all = chains.iter().flat_map(|chain| &chain.plan.plain.all);
        let entries: Vec<Arc<Entry>> = all.map(|launch| launch.entry.clone()).collect();
        match now {
            // A chain that cannot be built runs block by block.
            true => {
                let _ = pool.programs.build(&entries);
                Vec::new()
            }
            false => entries,
        }
    }

    /// The chain that begins with a block, if its kernel is there.
    fn chain(&self, block: u32) -> Option<&Chain> {
        let chain = self.chains.iter().flatten().find(|chain| chain.blocks.start == block)?;
        chain.plan.plain.ready().then_some(chain)
    }

    /// The blocks in runs, each of which is one block or a chain that runs as one kernel.
    pub(crate) fn runs<'a>(&self, blocks: &'a [u32]) -> Vec<&'a [u32]> {
        let (mut runs, mut at) = (Vec::with_capacity(blocks.len()), 0);
        while at < blocks.len() {
            let chain = self.chain(blocks[at]).map(|chain| chain.blocks.clone());
            let here = |chain: &Range<u32>| blocks[at..].iter().copied().take(chain.len()).eq(chain.clone());
            let count = chain.filter(here).map_or(1, |chain| chain.len());
            runs.push(&blocks[at..at + count]);
            at += count;
        }
        runs
    }

    /// How many kernels a run does as one; `None` if it is none of the chains.
    pub(crate) fn chained(&self, run: &[u32]) -> Option<u32> {
        self.chain(run[0]).filter(|chain| chain.blocks.len() == run.len()).map(|chain| chain.kernels)
    }

    /// The plan of a run, if there is one.
    pub(crate) fn known(&self, run: &[u32]) -> Option<&BlockPlan> {
        match self.chained(run) {
            Some(_) => self.chain(run[0]).map(|chain| &chain.plan),
            None => self.blocks[run[0] as usize].as_ref(),
        }
    }

    /// The plan of a run, which may have to be made.
    pub(crate) fn of(&mut self, batch: &BatchRef<'_>, run: &[u32], pool: &Pool, methods: &Methods) -> &mut BlockPlan {
        let chained = self.chained(run).is_some();
        let mut chains = self.chains.iter_mut().flatten();
        if chained && let Some(chain) = chains.find(|chain| chain.blocks.start == run[0]) {
            return &mut chain.plan;
        }
        let block = run[0];
        self.blocks[block as usize].get_or_insert_with(|| BlockPlan::new(batch, block, pool, methods))
    }

    /// Bytes of memory that the batch takes as a whole beyond that of arrays on the device, if it is prepared.
    pub(crate) fn prepared_bytes(&self, batch: &BatchRef<'_>, arrays: &Arrays) -> Option<u64> {
        match &self.prepared {
            Preparation::Ready(prepared) if prepared.fits() => Some(prepared.more_bytes(batch, arrays)),
            _ => None,
        }
    }

    /// The batch as a whole, if it is prepared.
    pub(crate) fn prepared(&mut self) -> Option<&mut Prepared> {
        match &mut self.prepared {
            Preparation::Ready(prepared) if prepared.fits() => Some(prepared),
            _ => None,
        }
    }

    /// Prepares the batch, all of whose blocks have run on the device, if nothing about its kernels will change.
    pub(crate) fn prepare(
        &mut self,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        pool: &Pool,
        settings: &Settings,
        tuner: &Tuner,
    ) {
        let waits = |chain: &Chain| {
            let mut entries = chain.plan.plain.all.iter().map(|launch| &launch.entry);
            entries.any(|entry| !entry.is_done())
        };
        let chains = match &self.chains {
            Some(chains) => chains.iter().any(waits),
            None => wanted(pool, settings).is_some() || self.calls < HOT,
        };
        if matches!(self.prepared, Preparation::Later) && !chains {
            self.prepared = Prepared::of(batch, self, &self.runs(blocks), settings, tuner);
        }
    }

    /// A chain could not run, and does so block by block from now on.
    pub(crate) fn give_up(&mut self, run: &[u32]) {
        self.prepared = Preparation::Never;
        self.chains.iter_mut().for_each(|chains| chains.retain(|chain| chain.blocks.start != run[0]));
    }
}

/// The most kernels of a chain if it is given, where chains are wanted at all.
fn wanted(pool: &Pool, settings: &Settings) -> Option<Option<u32>> {
    match settings.time_tiles {
        TimeTiles::Auto if pool.gpu.facts.class == Class::Gpu && settings.specialise != Specialise::Off => Some(None),
        TimeTiles::Off | TimeTiles::Auto => None,
        TimeTiles::Kernels(kernels) => Some(Some(kernels)),
    }
}

/// The chains of a batch.
#[derive(Default)]
pub(crate) struct Together {
    /// Blocks whose folds share elements, and their plans: folds of the same rows, and pairs of folds.
    pub(crate) folds: Vec<(Range<u32>, BlockPlan)>,
    /// Blocks that run tile by tile, and those that could, with the part of the time that they would take.
    pub(crate) tilings: Vec<ColumnTiling>,
    pub(crate) declined: Vec<(Range<u32>, f64)>,
}

/// Which blocks of a batch run as one kernel. Folds of rows come first, as their elements stay in registers.
pub(crate) fn together(batch: &BatchRef<'_>, pool: &Pool, settings: &Settings) -> Together {
    let least = match wanted(pool, settings) {
        None | Some(Some(0..2)) => None,
        Some(None) => Some(LEAST_ELEMENTS),
        Some(Some(_)) => Some(0),
    };
    let mut found = Together::default();
    let rows = |first| BlockPlan::rows(batch, first, least?, pool);
    let pair = |first: u32| Some((first..first + 2, BlockPlan::paired(batch, first, least?, pool)?));
    add(&mut found, batch, &rows);
    let (tilings, declined) = tilings(batch, pool, settings);
    let free = tilings.into_iter().filter(|it| !found.takes(&it.tiling.blocks)).collect();
    (found.tilings, found.declined) = (free, declined);
    add(&mut found, batch, &pair);
    found
}

impl Together {
    /// Are any of these blocks in a chain?
    fn takes(&self, blocks: &Range<u32>) -> bool {
        let folds = self.folds.iter().map(|(blocks, _)| blocks);
        let mut taken = folds.chain(self.tilings.iter().map(|it| &it.tiling.blocks));
        taken.any(|it| it.start < blocks.end && blocks.start < it.end)
    }
}

/// Adds the chains that `plan` makes of a block and those that follow it, where no other chain has any of them.
fn add(found: &mut Together, batch: &BatchRef<'_>, plan: &dyn Fn(u32) -> Option<(Range<u32>, BlockPlan)>) {
    let mut first = 0;
    while first < batch.blocks.len() as u32 {
        let own = plan(first).filter(|(blocks, _)| !found.takes(blocks));
        first = own.as_ref().map_or(first + 1, |(blocks, _)| blocks.end);
        found.folds.extend(own);
    }
}

/// The chains of a batch that run tile by tile, and those that could.
fn tilings(batch: &BatchRef<'_>, pool: &Pool, settings: &Settings) -> (Vec<ColumnTiling>, Vec<(Range<u32>, f64)>) {
    let (facts, Some(kernels)) = (&pool.gpu.facts, wanted(pool, settings)) else { return Default::default() };
    let options = ColumnOptions {
        items: pool.target.group as i64,
        each: COLUMNS,
        groups: pool.target.groups as i64,
        local_bytes: facts.local_bytes.min(LOCAL_BYTES) as i64,
        least_bytes: LEAST_BYTES,
        kernels,
    };
    let (mut found, declined) = column_tilings(&Survey::new(batch), &options);
    found.retain(|it| kernels.is_some() || it.tiling.kernels > 1);
    (found, declined)
}
