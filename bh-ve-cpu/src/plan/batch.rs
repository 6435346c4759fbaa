//! The plans of a batch: those of its blocks, made as they are needed, and those of the chains in which blocks run.

use super::blocks::BlockPlan;
use super::chains::{ChainPlans, plan_chains};
use super::tiles::TilePlan;
use crate::native::Tier1;
use crate::primitives::Primitives;
use crate::settings::{Jit, PlanningMode, Settings, TimeTiles};
use bh_bytecode::BatchRef;
use bh_bytecode::planning::{Level, Work};
use bh_core::Result;
use bh_kernel::Lowered;

/// Elements of an operation, on average, from which on a batch gains as much from tilings in one run as the search for them costs.
const TILE_ELEMENTS: u64 = 1 << 16;

/// The plans of a batch.
#[derive(Default)]
pub(crate) struct BatchPlans {
    /// By block; `None` if a block has not been planned.
    blocks: Vec<Option<BlockPlan>>,
    /// The chains, once they have been searched for.
    chains: Option<ChainPlans>,
    /// Runs with chains so far.
    runs: u32,
}

/// The plans that blocks of a batch run by, one after the other.
pub(crate) struct Planned<'a> {
    blocks: &'a mut [Option<BlockPlan>],
    /// The chains that no block has begun yet.
    chains: &'a [TilePlan],
    lowered: &'a mut [Option<Lowered>],
    /// Windows that the search refused.
    pub(crate) refused: u64,
    /// Runs with chains so far; `None` if the blocks run without.
    runs: Option<&'a mut u32>,
}

impl BatchPlans {
    pub(super) fn new(batch: &BatchRef<'_>) -> BatchPlans {
        BatchPlans { blocks: (0..batch.blocks.len()).map(|_| None).collect(), ..BatchPlans::default() }
    }

    /// The plans for these blocks; all blocks if none is named. All blocks of a batch that is planned in full may run in chains.
    pub(crate) fn of(
        &mut self,
        batch: &BatchRef<'_>,
        named: &[u32],
        level: Level,
        settings: &Settings,
        (primitives, tier1): (Primitives, &mut Option<Tier1>),
    ) -> Result<Planned<'_>> {
        let BatchPlans { blocks, chains, runs } = self;
        let whole = named.is_empty() || named.iter().copied().eq(0..batch.blocks.len() as u32);
        let Some(bytes) = settings.window_bytes.filter(|_| whole && level == Level::Full) else {
            return Ok(Planned { blocks, chains: &[], lowered: &mut [], refused: 0, runs: None });
        };
        chains.take_if(|chains| *runs > 0 && !chains.tiled);
        let ChainPlans { chains, lowered, refused, .. } = match chains {
            Some(chains) => chains,
            None => {
                let tiles = (*runs > 0 || tiles_at_first(settings, batch)).then(|| settings.tiles(bytes));
                chains.insert(plan_chains(batch, bytes, tiles, primitives, tier1)?)
            }
        };
        Ok(Planned { blocks, chains, lowered, refused: *refused, runs: Some(runs) })
    }
}

impl<'a> Planned<'a> {
    /// Counts a run.
    pub(crate) fn count_run(&mut self) {
        if let Some(runs) = &mut self.runs {
            **runs = runs.saturating_add(1);
        }
    }

    /// The chain that begins with a block. Blocks are asked for in order.
    pub(crate) fn chain(&mut self, block: u32) -> Option<&'a TilePlan> {
        let (first, others) = self.chains.split_first()?;
        (first.chain.blocks.start == block).then(|| {
            self.chains = others;
            first
        })
    }

    /// The plan of a block, made if there is none.
    pub(crate) fn block(
        &mut self,
        batch: &BatchRef<'_>,
        block: u32,
        (primitives, tier1): (Primitives, &mut Option<Tier1>),
    ) -> Result<&BlockPlan> {
        let lowered = self.lowered.get_mut(block as usize).and_then(Option::take);
        match &mut self.blocks[block as usize] {
            Some(plan) => Ok(plan),
            plan => Ok(plan.insert(BlockPlan::new(batch, block, lowered, primitives, tier1)?)),
        }
    }
}

/// Are tilings of a batch searched for before its first run? Others wait for its second one, except where all is planned.
fn tiles_at_first(settings: &Settings, batch: &BatchRef<'_>) -> bool {
    let work = Work::of(batch);
    settings.planning == PlanningMode::Full
        || settings.jit == Jit::On
        || matches!(settings.time_tiles, TimeTiles::Kernels(_))
        || work.elements >= work.operations.saturating_mul(TILE_ELEMENTS)
}
