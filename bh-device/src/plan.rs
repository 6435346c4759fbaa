//! The plan of a block: its kernels, the bases that it uses and how, and its renames.

use crate::code::{self, Code, KernelMemory, Variant};
use crate::compiler::Entry;
use crate::counters::Counters;
use crate::driver::Region;
use crate::memory::Pool;
use crate::methods::Methods;
use crate::parted::InPieces;
use crate::regions::regions;
use crate::settings::{Settings, Specialise};
use crate::start::Launch;
use crate::tune::{HOT, WAYS, Way};
use crate::work::Work;
use bh_bytecode::BatchRef;
use bh_bytecode::batch::NO_BASE;
use bh_core::abi::access;
use bh_kernel::{BaseUse, BufferRef, ColumnTiling, Lowered, SlotMode, Special, Stage, TileSlot, Uses};
use std::ops::Range;
use std::sync::Arc;

/// A rename: the base gets other memory.
pub(crate) struct Rename {
    /// Index in the batch.
    pub(crate) base: u32,
    /// The base that becomes an alias of a view of the new memory.
    pub(crate) alias: Option<(u32, u32)>,
}

/// The kernels of a block in one variant.
pub(crate) struct Launches {
    pub(crate) all: Vec<Arc<Launch>>,
    /// Bytes of memory between the kernels.
    pub(crate) scratch: Vec<usize>,
}

impl Launches {
    /// Are all of them built?
    pub(crate) fn ready(&self) -> bool {
        self.all.iter().all(|launch| launch.is_ready())
    }
}

/// A planned block.
pub(crate) struct BlockPlan {
    pub(crate) uses: Vec<BaseUse>,
    /// For each of these, what is read of it, if that is little.
    pub(crate) parts: Vec<Vec<Region>>,
    /// Bases that get new memory.
    pub(crate) renames: Vec<Rename>,
    /// Bytes of the results of contracted reductions.
    pub(crate) temporaries: Vec<usize>,
    pub(crate) plain: Launches,
    /// With sizes in their texts, if that was asked for.
    pub(crate) special: Option<Launches>,
    /// Do its kernels keep their sizes as arguments, because others like them have enough forms?
    pub(crate) stays: bool,
    /// The way in which those are built.
    pub(crate) way: Way,
    /// Its pieces, if its arrays do not fit the device together.
    pub(crate) in_pieces: Option<InPieces>,
    /// Names its kernels and their numbers: blocks with the same name run the same.
    pub(crate) name: u128,
}

impl BlockPlan {
    /// Plans a block.
    pub(crate) fn new(batch: &BatchRef<'_>, block: u32, pool: &Pool, methods: &Methods) -> BlockPlan {
        let lowered = code::lowered(batch, block);
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
        let (uses, stages) =
            (uses.into_vec(), if let Lowered::Loops(stages, _) = &lowered { stages.as_slice() } else { &[] });
        let parts = if stages.is_empty() { vec![Vec::new(); uses.len()] } else { regions(batch, stages, &uses) };
        let renames = renames.iter().map(|rename| {
            let alias = (rename.alias != NO_BASE).then_some((rename.alias, rename.alias_view));
            Rename { base: rename.base, alias }
        });
        let in_pieces = if Work::of(batch, block).fits(pool) { None } else { InPieces::of(batch, block, pool) };
        let plain = match in_pieces {
            None => launches((batch, block), &lowered, Variant::Parameterised, Way::USUAL, pool, methods),
            Some(_) => Launches { all: Vec::new(), scratch: Vec::new() },
        };
        let words = plain.all.iter().flat_map(|launch| {
            let hash = launch.entry.hash;
            [hash as u64, (hash >> 64) as u64].into_iter().chain(launch.code.numbers.iter().map(|&it| it as u64))
        });
        let name = bh_bytecode::hash::hash_words(&words.collect::<Vec<u64>>());
        BlockPlan {
            uses,
            parts,
            renames: renames.collect(),
            temporaries,
            plain,
            special: None,
            stays: false,
            way: Way::USUAL,
            in_pieces,
            name,
        }
    }

    /// Plans a chain of blocks that runs tile by tile. Its kernel has its sizes in the text.
    pub(crate) fn chained(batch: &BatchRef<'_>, found: &ColumnTiling, pool: &Pool) -> BlockPlan {
        let mut uses = Uses::default();
        for nest in &found.tiling.nests {
            for (slot, own) in nest.slots.iter().zip(&nest.stage.kernel.slots) {
                let &TileSlot::Base(base) = slot else { continue };
                let whole = nest.stage.parameters.iterations() == batch.bases[base as usize].len;
                let mode = match own.mode {
                    SlotMode::Read | SlotMode::Index => access::READ,
                    _ => written(whole),
                };
                uses.add(base, mode);
            }
        }
        let renames = found.tiling.renames.iter().map(|it| Rename { base: it.base, alias: it.alias }).collect();
        BlockPlan { renames, ..BlockPlan::as_one(uses, vec![code::columns(found, &pool.target)], pool) }
    }

    /// A plan of kernels that have their sizes in their texts, without memory between them.
    fn as_one(uses: Uses, codes: Vec<Code>, pool: &Pool) -> BlockPlan {
        let uses = uses.into_vec();
        let all: Vec<Arc<Launch>> = codes.into_iter().map(|code| Arc::new(Launch::new(code, &pool.programs))).collect();
        BlockPlan {
            parts: vec![Vec::new(); uses.len()],
            uses,
            renames: Vec::new(),
            temporaries: Vec::new(),
            name: all[0].entry.hash,
            plain: Launches { all, scratch: Vec::new() },
            special: None,
            stays: false,
            way: Way::USUAL,
            in_pieces: None,
        }
    }

    /// Plans a block and those that follow it and fold the same rows as one kernel, if the box has as many elements as `least`.
    pub(crate) fn rows(batch: &BatchRef<'_>, first: u32, least: i64, pool: &Pool) -> Option<(Range<u32>, BlockPlan)> {
        let found = code::rows(batch, first, &pool.target).filter(|found| found.elements >= least)?;
        let mut uses = Uses::default();
        found.reads.iter().for_each(|&base| uses.add(base, access::READ));
        found.writes.iter().for_each(|&(base, whole)| uses.add(base, written(whole)));
        Some((found.blocks, BlockPlan::as_one(uses, vec![found.code], pool)))
    }

    /// Plans a block and the next one as one kernel, if they suit each other and the box has as many elements as `least`. The kernel has
    /// its sizes in the text.
    pub(crate) fn paired(batch: &BatchRef<'_>, first: u32, least: i64, pool: &Pool) -> Option<BlockPlan> {
        let found = code::paired(batch, first, &pool.target).filter(|found| found.elements >= least)?;
        let mut uses = Uses::default();
        found.reads.iter().for_each(|&base| uses.add(base, access::READ));
        let (fold, others) = found.stages.split_first()?;
        for (slot, buffer) in fold.kernel.slots.iter().zip(&fold.parameters.buffers) {
            if let (SlotMode::Result, BufferRef::Base(base)) = (slot.mode, *buffer) {
                let whole = fold.elements(slot.mode) == batch.bases[base as usize].len;
                uses.add(base, written(whole));
            }
        }
        others.iter().for_each(|stage| uses.stage(batch, stage));
        let temporaries = found.temporaries.iter().map(|it| it.len as usize * it.dtype.size()).collect();
        let mut plan = BlockPlan { temporaries, ..BlockPlan::as_one(uses, found.codes, pool) };
        plan.plain.scratch = found.scratch;
        Some(plan)
    }

    /// The kernels with sizes in their texts for each way of building them, all of which are to be built.
    pub(crate) fn ways(&self, at: (&BatchRef<'_>, u32), pool: &Pool, methods: &Methods) -> Vec<Vec<Arc<Entry>>> {
        let lowered = code::lowered(at.0, at.1);
        let entries = |way| {
            let found = launches(at, &lowered, Variant::Specialised, way, pool, methods);
            found.all.iter().filter_map(|launch| launch.kernel()).cloned().collect()
        };
        WAYS.into_iter().map(entries).collect()
    }

    /// Plans the kernels with sizes in their texts if it is time for them: at the call with this number. Returns those that
    /// are to be built beside the program.
    pub(crate) fn choose_variant(
        &mut self,
        at: (&BatchRef<'_>, u32),
        (calls, way): (u32, Way),
        pool: &Pool,
        methods: &Methods,
        settings: &Settings,
        counters: &Counters,
    ) -> Vec<Arc<Entry>> {
        let wanted = match settings.specialise {
            Specialise::Off => false,
            Specialise::Auto => calls > HOT && !self.stays,
            Specialise::On => true,
        };
        let nothing = self.in_pieces.is_some() || self.plain.all.is_empty();
        if !wanted || nothing || (self.special.is_some() && self.way == way) {
            return Vec::new();
        }
        counters.specialised.add(u64::from(self.special.is_none()));
        let lowered = code::lowered(at.0, at.1);
        self.special = Some(launches(at, &lowered, Variant::Specialised, way, pool, methods));
        self.way = way;
        let all = self.special.iter().flat_map(|special| &special.all);
        match settings.specialise {
            Specialise::Auto => all.filter_map(|launch| launch.kernel()).cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// A hash of the kernels without their numbers.
    pub(crate) fn kernels(&self) -> u128 {
        let hashes = self.plain.all.iter().map(|launch| launch.entry.hash);
        let words: Vec<u64> = hashes.flat_map(|hash| [hash as u64, (hash >> 64) as u64]).collect();
        bh_bytecode::hash::hash_words(&words)
    }

    /// The kernels that have to be built before the block runs.
    pub(crate) fn missing(&self, settings: &Settings) -> Vec<Arc<Entry>> {
        let now = match (&self.special, settings.specialise) {
            (Some(special), Specialise::On) => special,
            (Some(special), _) if special.ready() => special,
            _ => &self.plain,
        };
        now.all.iter().filter_map(|launch| launch.kernel()).filter(|entry| entry.ready().is_none()).cloned().collect()
    }

    /// Is this the memory of a base that the block sees no element of?
    pub(crate) fn is_unseen(&self, place: &KernelMemory) -> bool {
        matches!(*place, KernelMemory::Of(BufferRef::Base(base)) if self.uses.iter().all(|used| used.base != base))
    }

    /// Do kernels with sizes in their texts run?
    pub(crate) fn is_special(&self) -> bool {
        self.special.as_ref().is_some_and(Launches::ready)
    }

    /// The kernels to run: specialised ones if they are built.
    pub(crate) fn launches(&self) -> &Launches {
        self.chosen(self.is_special())
    }

    /// The specialised kernels, or the others. A launch asks [`BlockPlan::is_special`] once: kernels that are built beside the program may
    /// get ready at any time, and need other memory.
    pub(crate) fn chosen(&self, special: bool) -> &Launches {
        self.special.as_ref().filter(|_| special).unwrap_or(&self.plain)
    }
}

/// How a kernel uses a base that it writes all of, or a part.
fn written(whole: bool) -> u32 {
    if whole { access::WRITE | access::DISCARD } else { access::WRITE }
}

/// All kernels of a block, built in this way.
fn launches(
    (batch, block): (&BatchRef<'_>, u32),
    lowered: &Lowered,
    variant: Variant,
    way: Way,
    pool: &Pool,
    methods: &Methods,
) -> Launches {
    let target = &pool.target;
    let mut scratch = Vec::new();
    let mut codes = Vec::new();
    match lowered {
        Lowered::Nothing => {}
        Lowered::Loops(stages, _) => {
            for stage in stages {
                let target = way.target(target, pool.gpu.facts.largest_group, stage.kernel.reduces());
                codes.extend(code::stage(stage, &target, variant, &mut scratch));
            }
        }
        Lowered::Special(Special::Accumulate(instr)) => {
            (codes, scratch) = code::accumulate(batch, *instr, target, variant);
        }
        Lowered::Special(Special::Scatter(instr)) => {
            (codes, scratch) = code::scatter(batch, *instr, target, variant).unwrap_or_default();
        }
        Lowered::Special(Special::Product(instr)) => {
            let libraries = pool.programs.driver().libraries();
            codes = code::product(batch, *instr, target, variant, libraries, &mut scratch);
        }
        Lowered::Special(Special::Extension(instr)) => {
            codes = methods.codes(batch, *instr, target, variant, &mut scratch);
        }
    }
    for rename in batch.renames(&batch.blocks[block as usize]) {
        let copy =
            |view| bh_kernel::copy_stage(batch, view, BufferRef::Base(rename.base), BufferRef::Fresh(rename.base));
        let copies: Vec<Stage> = batch.uncovered(rename).iter().map(|&view| copy(view)).collect();
        codes.extend(code::together(&copies, target, variant));
    }
    Launches { all: codes.into_iter().map(|code| Arc::new(Launch::new(code, &pool.programs))).collect(), scratch }
}
