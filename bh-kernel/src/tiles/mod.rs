//! Tiles in time: chains of kernels, such as several iterations of a loop, run tile by tile, so that a tile of all their arrays
//! stays in a cache for all of them.
//!
//! The rule knows views only. Arrays are cut into rows and columns (`grid`). A nest of the chain touches, at each iteration of
//! its two outermost loops, one row and column of every array that the chain writes, at fixed distances. A tile is a
//! box of the arrays that the chain leaves in memory. From the last nest to the first, `needs` computes the halo by which each
//! nest's box is larger; neighbouring tiles both compute it. Intermediate arrays are in rows of the tile,
//! and no tile writes elements that another one reads: an array that the chain reads from memory and changes gets a fresh
//! buffer, as in a rename. So tiles run in any order, at the same time, and the same operations compute each element from
//! the same elements as in the plain order, bit by bit.
//!
//! Within a tile, nests run in lock-step along the rows, each so far behind those before it as rows that both touch
//! demand (`lags`), so that only a few rows of each array are in use.
//!
//! Folds, gathers, scatters and methods end a chain, because they do not compute elements from others at fixed distances.

mod chain;
mod columns;
mod draft;
mod finish;
mod grid;
mod lags;
mod model;
mod repeats;
mod split;
#[cfg(test)]
mod tests;
mod versions;

use crate::Survey;
use crate::effort::Effort;
use crate::tiling::Tiling;
use crate::window::SlidingWindows;
use chain::Chain;
pub use columns::{ColumnArray, ColumnNest, ColumnOptions, ColumnTiling, column_tilings};
use draft::{Draft, Manner};
pub(crate) use grid::Grid;
use model::{Length, Size};
use repeats::{Outcome, Repeats, Searched, signs};
use std::ops::Range;

/// Options of an engine for tiles.
#[derive(Clone, Copy, Debug)]
pub struct TileOptions {
    /// Bytes of rows that a tile may have in use at once: the size of the nearest large cache.
    pub bytes: i64,
    /// Bytes of the smallest cache.
    pub small: i64,
    /// Threads that tiles are for.
    pub threads: i64,
    /// Chains of this many kernels, wherever that is possible; `None`: the model chooses the number.
    pub kernels: Option<u32>,
}

/// The tilings of a batch.
#[derive(Clone, Debug, Default)]
pub struct Tilings {
    /// The tilings, in order.
    pub found: Vec<Tiling>,
    /// Chains that could run in tiles and gain too little, and their cost divided by that of their kernels otherwise.
    pub declined: Vec<(Range<u32>, f64)>,
}

/// How many nests the search for tilings may look at for each instruction of a batch, and in any case.
const EFFORT: usize = 100;
const LEAST_EFFORT: usize = 10_000;

/// The tilings of a batch, instead of windows or of kernels one by one.
pub fn tilings(survey: &Survey<'_>, options: &TileOptions, windows: &SlidingWindows) -> Tilings {
    let batch = survey.batch;
    if options.kernels.is_none() && (batch.blocks.len() < 2 || crate::footprint(batch) <= options.bytes as u64) {
        return Tilings::default();
    }
    let model = model::Running::new(options, windows);
    let (found, declined) = search(survey, &model, options.kernels, true);
    let found = found.into_iter().map(|it| it.draft.finish(&it.chain, &it.size, it.plain)).collect();
    Tilings { found, declined }
}

/// A model of the costs of chains, from their first block on.
trait Model: Clone {
    /// How tiles compute rows.
    const MANNER: Manner;
    /// The model's own facts of a block: two blocks are alike only if these are equal.
    fn beside(&self, block: u32) -> u64;
    /// Adds the cost of a chain's last block without tiles.
    fn block(&mut self, chain: &Chain<'_>);
    /// The cost of all of them, and the bytes that they move.
    fn plain(&self) -> (f64, u64);
    /// The sizes that cost least; `None` if none is possible, or none makes sense.
    fn size(&self, chain: &Chain<'_>, draft: &Draft) -> Option<Size>;
    /// Are arrays large enough for tiles to make sense?
    fn is_large(&self, chain: &Chain<'_>) -> bool;
    /// Sizes with which any chain runs that may run in tiles at all.
    fn least(&self, chain: &Chain<'_>, draft: &Draft) -> Option<Size>;
}

/// A chain that was found.
struct Found<'a> {
    chain: Chain<'a>,
    draft: Draft,
    size: Size,
    /// The cost of its kernels otherwise, and the bytes that they move.
    plain: (f64, u64),
}

/// The chains that gain, or of up to `kernels` kernels wherever that is possible; and those that gain too little. `shared`:
/// the result for one iteration of a loop holds for the others.
fn search<'a, M: Model>(
    survey: &'a Survey<'a>,
    model: &M,
    kernels: Option<u32>,
    shared: bool,
) -> (Vec<Found<'a>>, Vec<(Range<u32>, f64)>) {
    let (mut all, mut declined): (Vec<Found<'a>>, Vec<(Range<u32>, f64)>) = Default::default();
    let (batch, mut first) = (survey.batch, 0);
    let blocks = batch.blocks.len() as u32;
    let effort = Effort::new(EFFORT * batch.instrs.len() + LEAST_EFFORT);
    let mut repeats = Repeats::new(if shared { signs(survey, |block| model.beside(block)) } else { Vec::new() });
    while first < blocks && !effort.spent() {
        let outcome = repeats.find(first as usize).unwrap_or_else(|| {
            let searched = longest(survey, model, kernels, first, &effort);
            if !effort.spent() {
                repeats.note(first as usize, searched);
            }
            searched.outcome
        });
        let found = match outcome {
            Outcome::Tiles(blocks) => drafted(survey, model, kernels, first..first + blocks),
            Outcome::Declined(length, gain) => {
                // The outcome of an earlier iteration may be longer than the rest of the batch.
                let end = (first + length).min(blocks);
                if declined.last().is_none_or(|(last, _)| last.end < end) {
                    declined.push((first..end, gain));
                }
                None
            }
            Outcome::Nothing => None,
        };
        first = found.as_ref().map_or(first + 1, |found| found.chain.end);
        all.extend(found);
    }
    (all, declined)
}

/// The chain of these blocks.
fn drafted<'a, M: Model>(
    survey: &'a Survey<'a>,
    model: &M,
    kernels: Option<u32>,
    blocks: Range<u32>,
) -> Option<Found<'a>> {
    let (mut chain, mut costs) = (Chain::new(survey, M::MANNER, blocks.start), model.clone());
    while chain.end < blocks.end && chain.extend() {
        costs.block(&chain);
    }
    let draft = draft::draft(&chain).filter(|_| !chain.nests.is_empty())?;
    let size = costs.size(&chain, &draft).or_else(|| kernels.and_then(|_| costs.least(&chain, &draft)))?;
    Some(Found { chain, draft, size, plain: costs.plain() })
}

/// The chain from block `first` on that gains most; or the best one, and its cost, if it gains too little.
fn longest<M: Model>(survey: &Survey<'_>, model: &M, kernels: Option<u32>, first: u32, effort: &Effort) -> Searched {
    let mut chain = Chain::new(survey, M::MANNER, first);
    let mut lengths: Vec<Length> = Vec::new();
    let mut costs = model.clone();
    let ended = loop {
        if !chain.extend() {
            break true;
        }
        if !chain.computed || chain.nests.is_empty() {
            continue;
        }
        let Some(draft) = draft::draft(&chain).filter(|_| !effort.spent()) else { break true };
        effort.look(chain.nests.len());
        costs.block(&chain);
        let (plain, end) = (costs.plain().0, chain.end);
        if let Some(kernels) = kernels {
            if costs.size(&chain, &draft).or_else(|| costs.least(&chain, &draft)).is_some() {
                lengths = vec![Length { kernels: chain.kernels, end, cost: 0.0, plain }];
            }
            if chain.kernels >= kernels {
                break true;
            }
            continue;
        }
        let Some(size) = costs.size(&chain, &draft) else { break true };
        lengths.push(Length { kernels: chain.kernels, end, cost: size.cost, plain });
        if chain.ends {
            break true;
        }
        if best(&lengths).is_some_and(|best| lengths.len() - best > model::LATER) {
            break false;
        }
    };
    // The search has seen the block that ended the chain, or the end of the batch.
    let looked = (chain.end - first) as usize + 1;
    let nothing = Searched { outcome: Outcome::Nothing, looked, anyway: true };
    if kernels.is_none() && !costs.is_large(&chain) {
        return nothing;
    }
    let Some(chosen) = (if ended { model::shared(&lengths) } else { best(&lengths) }) else { return nothing };
    let Length { cost, plain, end, .. } = lengths[chosen];
    let (gain, blocks) = (cost / plain, end - first);
    if gain > model::LEAST_GAIN {
        let anyway = lengths.iter().all(|length| length.cost / length.plain > model::LEAST_GAIN);
        return Searched { outcome: Outcome::Declined(blocks, gain), looked, anyway };
    }
    Searched { outcome: Outcome::Tiles(blocks), looked, anyway: false }
}

/// The length that costs least, divided by the cost of its kernels otherwise.
fn best(lengths: &[Length]) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (index, length) in lengths.iter().enumerate() {
        let part = length.cost / length.plain;
        if best.is_none_or(|(_, known)| part < known * (1.0 - model::MORE_GAIN)) {
            best = Some((index, part));
        }
    }
    best.map(|(index, _)| index)
}
