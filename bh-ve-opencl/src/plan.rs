//! What a block needs to run: its kernels, the bases that it uses and how, and its renames.

use crate::code::{self, Variant};
use crate::engine::Counters;
use crate::memory::Pool;
use crate::methods::Methods;
use crate::programs::Entry;
use crate::settings::{Settings, Specialise};
use crate::start::Launch;
use crate::stream::Nests;
use crate::work::Work;
use bh_bytecode::BatchRef;
use bh_bytecode::batch::NO_BASE;
use bh_core::abi::access;
use bh_fuser::lower::{self, BaseUse, BufferRef, Lowered, Special, Stage, Uses};
use std::sync::Arc;

/// Runs of a block after which its kernels are built with their sizes in the text.
const HOT: u32 = 2;

/// A rename: the base gets other memory.
pub(crate) struct Rename {
    /// Index in the batch.
    pub(crate) base: u32,
    /// The base that becomes an alias of a view of the new memory.
    pub(crate) alias: Option<(u32, u32)>,
}

/// The kernels of a block in one variant.
pub(crate) struct Launches {
    pub(crate) all: Vec<Launch>,
    /// Bytes of memory between the kernels.
    pub(crate) scratch: Vec<usize>,
}

impl Launches {
    /// Are all of them built?
    pub(crate) fn ready(&self) -> bool {
        self.all.iter().all(|launch| launch.entry.ready().is_some())
    }
}

/// A planned block.
pub(crate) struct BlockPlan {
    pub(crate) uses: Vec<BaseUse>,
    /// Bases that get new memory.
    pub(crate) renames: Vec<Rename>,
    /// Bytes of the results of contracted reductions.
    pub(crate) temporaries: Vec<usize>,
    pub(crate) plain: Launches,
    /// With sizes in their texts, if that was asked for.
    pub(crate) special: Option<Launches>,
    /// Its nests, if its arrays do not fit the device together.
    pub(crate) in_pieces: Option<Nests>,
    /// How often it has run.
    pub(crate) runs: u32,
}

impl BlockPlan {
    /// Plans a block.
    pub(crate) fn new(batch: &BatchRef<'_>, block: u32, pool: &Pool, methods: &Methods) -> BlockPlan {
        let lowered = lower::lower(batch, block);
        let mut uses = Uses::default();
        let mut temporaries = Vec::new();
        match &lowered {
            Lowered::Nothing => {}
            Lowered::Special(special) => uses.special(batch, *special),
            Lowered::Loops(stages, between) => {
                stages.iter().for_each(|stage| uses.stage(batch, stage));
                temporaries = between.iter().map(|it| it.len as usize * it.dtype.size()).collect();
            }
        }
        let renames = batch.renames(&batch.blocks[block as usize]);
        for rename in renames {
            if rename.uncovered_count > 0 {
                uses.add(rename.base, access::READ);
            }
        }
        let renames = renames.iter().map(|rename| {
            let alias = (rename.alias != NO_BASE).then_some((rename.alias, rename.alias_view));
            Rename { base: rename.base, alias }
        });
        let in_pieces = if Work::of(batch, block).fits(pool) { None } else { Nests::of(batch, block, pool) };
        let plain = match in_pieces {
            None => launches(batch, block, &lowered, Variant::Parameterised, pool, methods),
            Some(_) => Launches { all: Vec::new(), scratch: Vec::new() },
        };
        BlockPlan {
            uses: uses.into_vec(),
            renames: renames.collect(),
            temporaries,
            plain,
            special: None,
            in_pieces,
            runs: 0,
        }
    }

    /// Plans the kernels with sizes in their texts.
    fn specialise(&mut self, batch: &BatchRef<'_>, block: u32, pool: &Pool, methods: &Methods) {
        let lowered = lower::lower(batch, block);
        self.special = Some(launches(batch, block, &lowered, Variant::Specialised, pool, methods));
    }

    /// Plans the kernels with sizes in their texts if it is time for them.
    pub(crate) fn choose_variant(
        &mut self,
        batch: &BatchRef<'_>,
        block: u32,
        pool: &Pool,
        methods: &Methods,
        settings: &Settings,
        counters: &Counters,
    ) {
        let wanted = match settings.specialise {
            Specialise::Off => false,
            Specialise::Auto => self.runs >= HOT,
            Specialise::On => true,
        };
        if !wanted || self.special.is_some() || self.in_pieces.is_some() {
            return;
        }
        self.specialise(batch, block, pool, methods);
        counters.specialised.add(1);
        if settings.specialise == Specialise::Auto {
            let all = self.special.iter().flat_map(|special| &special.all);
            all.for_each(|launch| pool.programs.build_later(&launch.entry));
        }
    }

    /// The kernels that have to be built before the block runs.
    pub(crate) fn missing(&self, settings: &Settings) -> Vec<Arc<Entry>> {
        let now = match (&self.special, settings.specialise) {
            (Some(special), Specialise::On) => special,
            (Some(special), _) if special.ready() => special,
            _ => &self.plain,
        };
        now.all.iter().filter(|it| it.entry.ready().is_none()).map(|it| it.entry.clone()).collect()
    }

    /// The kernels to run: specialised ones if they are built.
    pub(crate) fn launches(&mut self) -> &mut Launches {
        match &mut self.special {
            Some(special) if special.ready() => special,
            _ => &mut self.plain,
        }
    }
}

/// All kernels of a block.
fn launches(
    batch: &BatchRef<'_>,
    block: u32,
    lowered: &Lowered,
    variant: Variant,
    pool: &Pool,
    methods: &Methods,
) -> Launches {
    let target = &pool.target;
    let mut scratch = Vec::new();
    let mut codes = Vec::new();
    match lowered {
        Lowered::Nothing => {}
        Lowered::Loops(stages, _) => {
            stages.iter().for_each(|stage| codes.extend(code::stage(stage, target, variant, &mut scratch)));
        }
        Lowered::Special(Special::Accumulate(instr)) => {
            (codes, scratch) = code::accumulate(batch, *instr, target, variant);
        }
        Lowered::Special(Special::Scatter(instr)) => {
            (codes, scratch) = code::scatter(batch, *instr, target, variant).unwrap_or_default();
        }
        Lowered::Special(Special::Extension(instr)) => {
            codes = methods.codes(batch, *instr, target, variant, &mut scratch);
        }
    }
    for rename in batch.renames(&batch.blocks[block as usize]) {
        let copy = |view| lower::copy_stage(batch, view, BufferRef::Base(rename.base), BufferRef::Fresh(rename.base));
        let copies: Vec<Stage> = batch.uncovered(rename).iter().map(|&view| copy(view)).collect();
        codes.extend(code::together(&copies, target, variant));
    }
    Launches { all: codes.into_iter().map(|code| Launch::new(code, &pool.programs)).collect(), scratch }
}
