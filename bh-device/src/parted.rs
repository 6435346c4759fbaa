//! Blocks whose arrays do not fit the device together: how they are parted.

use crate::code::lowered;
use crate::memory::{Pool, capacity};
use crate::pieces::{self, Room};
use bh_bytecode::BatchRef;
use bh_kernel::{BaseUse, Lowered, Special, Stage, Uses};

/// The most parts; more would take longer than another engine.
const MOST: u64 = 4096;

/// A block that runs in pieces.
pub(crate) enum InPieces {
    Nests(Nests),
    Steps(Steps),
}

impl InPieces {
    /// The pieces of a block; none if it cannot be parted so that the device has room.
    pub(crate) fn of(batch: &BatchRef<'_>, block: u32, pool: &Pool) -> Option<InPieces> {
        let steps = || Steps::of(batch, block, pool.limit.min(pool.gpu.facts.largest_bytes));
        Nests::of(batch, block, pool).map(InPieces::Nests).or_else(|| steps().map(InPieces::Steps))
    }

    /// How many pieces there are, if that is known before they run.
    pub(crate) fn count(&self, batch: &BatchRef<'_>) -> Option<usize> {
        match self {
            InPieces::Nests(nests) => Some(nests.count(batch)),
            InPieces::Steps(_) => None,
        }
    }
}

/// The nests of a block that runs in pieces.
pub(crate) struct Nests {
    pub(crate) stages: Vec<Stage>,
    /// Bytes of the results of contracted reductions.
    pub(crate) temporaries: Vec<usize>,
    pub(crate) uses: Vec<BaseUse>,
    pub(crate) room: Room,
}

impl Nests {
    /// The nests of a block; none if it has none, or they cannot be parted so that the device has room.
    fn of(batch: &BatchRef<'_>, block: u32, pool: &Pool) -> Option<Nests> {
        if !batch.renames(&batch.blocks[block as usize]).is_empty() {
            return None;
        }
        // Loops come in pieces, kernels of products do not.
        let loops = match lowered(batch, block) {
            Lowered::Special(Special::Product(instr)) => bh_kernel::lower_product(batch, block, instr),
            lowered => lowered,
        };
        let Lowered::Loops(stages, between) = loops else { return None };
        // A fixed tree has no place for results of pieces.
        if stages.iter().any(|stage| stage.parameters.fixed) {
            return None;
        }
        let temporaries: Vec<usize> = between.iter().map(|it| it.len as usize * it.dtype.size()).collect();
        let taken: u64 = temporaries.iter().map(|&bytes| capacity(bytes) as u64).sum();
        // A quarter is for partial results and notes.
        let room = Room { bytes: (pool.limit / 4 * 3).checked_sub(taken)?, largest: pool.gpu.facts.largest_bytes };
        let mut uses = Uses::default();
        stages.iter().for_each(|stage| uses.stage(batch, stage));
        let fits = stages.iter().all(|stage| pieces::parts(stage, batch, &room).is_some());
        fits.then(|| Nests { stages, temporaries, uses: uses.into_vec(), room })
    }

    fn count(&self, batch: &BatchRef<'_>) -> usize {
        let parts = |stage| pieces::parts(stage, batch, &self.room).map_or(0, |parts| parts.len());
        self.stages.iter().map(parts).sum()
    }
}

/// An instruction that runs in parts.
pub(crate) struct Steps {
    /// Index in the batch.
    pub(crate) instr: u32,
    pub(crate) special: Special,
    pub(crate) uses: Vec<BaseUse>,
}

impl Steps {
    /// The instruction of a block, if it is alone and can be parted; `room` bytes are there.
    pub(crate) fn of(batch: &BatchRef<'_>, block: u32, room: u64) -> Option<Steps> {
        let Lowered::Special(special) = lowered(batch, block) else { return None };
        let (Special::Accumulate(instr) | Special::Scatter(instr)) = special else { return None };
        let record = &batch.instrs[instr as usize];
        let views: Vec<u32> = record.operands().iter().filter_map(|operand| operand.as_view()).collect();
        let base = |view: &u32| batch.views[*view as usize].base;
        let (first, rest) = views.split_first()?;
        // Reads of the written array would change meanwhile, unless they are of the same elements.
        let in_place =
            |view: &u32| matches!(special, Special::Accumulate(_)) && batch.view(*view) == batch.view(*first);
        if rest.iter().any(|view| base(view) == base(first) && !in_place(view)) {
            return None;
        }
        let bytes: u64 = views.iter().map(|view| batch.bases[base(view) as usize].bytes()).sum();
        if bytes / room.max(1) > MOST / 16 {
            return None;
        }
        let mut uses = Uses::default();
        uses.special(batch, special);
        Some(Steps { instr, special, uses: uses.into_vec() })
    }
}
