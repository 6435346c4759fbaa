//! Chains of the kernels of a batch: sliding windows and tiles in time are looked for in one survey, and planned.

use super::tiles::TilePlan;
use crate::native::Tier1;
use crate::primitives::Primitives;
use bh_bytecode::BatchRef;
use bh_core::Result;
use bh_kernel::{Apart, Lowered, SlidingWindows, Survey, TileOptions, Tiling, WindowOptions};
use std::ops::Range;

/// The chains of a batch, planned.
#[derive(Debug, Default)]
pub(crate) struct ChainPlans {
    /// In the order of their blocks.
    pub(crate) chains: Vec<TilePlan>,
    /// Kernels that follow each other on common arrays and cannot run in lock-step.
    pub(crate) refused: u64,
    /// Blocks in no chain that were lowered and are not planned yet, by block.
    pub(crate) lowered: Vec<Option<Lowered>>,
    /// Were tiles in time looked for?
    pub(crate) tiled: bool,
}

/// Plans the sliding windows of a batch, and its tiles in time if they are to be looked for: with these options, unless they are off.
pub(crate) fn plan_chains(
    batch: &BatchRef<'_>,
    bytes: i64,
    tiles: Option<Option<TileOptions>>,
    primitives: Primitives,
    tier1: &mut Option<Tier1>,
) -> Result<ChainPlans> {
    let options = WindowOptions { bytes, stand_ins: false };
    let survey = Survey::new(batch);
    let mut windows = bh_kernel::windows(&survey, &options, &[]);
    let tiled = tiles.is_some();
    let mut found = tiles.flatten().map_or_else(Vec::new, |tiles| bh_kernel::tilings(&survey, &tiles, &windows).found);
    if !found.is_empty() {
        let taken: Vec<Range<u32>> = found.iter().map(|tiling| tiling.blocks.clone()).collect();
        windows = bh_kernel::windows(&survey, &options, &taken);
    }
    let SlidingWindows { found: windows, apart } = windows;
    found.extend(windows);
    found.sort_by_key(|chain| chain.blocks.start);
    let refused = |(_, reason): &&(u32, Apart)| matches!(reason, Apart::Unbounded | Apart::Rows | Apart::Gain);
    let refused = apart.iter().filter(refused).count() as u64;
    let mut lowered: Vec<Option<Lowered>> = survey.into_lowered().into_iter().map(Some).collect();
    for Tiling { blocks, .. } in &found {
        if let Some(planned) = lowered.get_mut(blocks.start as usize..blocks.end as usize) {
            planned.fill_with(|| None);
        }
    }
    let chains = found.into_iter().map(|chain| TilePlan::new(batch, chain, primitives, tier1));
    Ok(ChainPlans { chains: chains.collect::<Result<_>>()?, refused, lowered, tiled })
}
