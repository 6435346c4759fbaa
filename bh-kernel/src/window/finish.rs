//! From a chain to a window: which arrays exist as a few rows only, how high strips are, where chunks begin, and whether it
//! is worth it.

use super::chain::{Access, Array, Chain, Nest};
use super::lockstep;
use super::rows::{self, Region};
use super::{Apart, WindowOptions};
use crate::tiling::{LateNest, Reach, TileNest, TileRename, TileRows, TileSlot, Tiling};
use crate::{Dim, Stage, Temporary};
use bh_bytecode::base_flags;
use bh_bytecode::batch::NO_BASE;

/// The most chunks where nests lag.
const CHUNKS: i64 = 32;
/// A window must save one part in `LEAST_GAIN` of the bytes.
const LEAST_GAIN: u64 = 12;

/// Completes a window, or says why there is none. The outer error is a block before which the chain must end.
pub(super) fn finish(chain: Chain<'_>, options: &WindowOptions) -> Result<Result<Tiling, Apart>, u32> {
    if chain.nests.len() < 2 {
        return Ok(Err(chain.reason.unwrap_or(Apart::Unrelated)));
    }
    let rolling: Vec<bool> = chain.arrays.iter().map(|array| is_rolling(&chain, array)).collect();
    // A base has at most one fresh buffer.
    for (array, &rolling) in chain.arrays.iter().zip(&rolling) {
        if let Some(block) = array.replaced.filter(|&block| array.fresh && !rolling && block < chain.end) {
            return Err(block);
        }
    }
    Ok(complete(chain, &rolling, options).ok_or(Apart::Gain))
}

fn complete(mut chain: Chain<'_>, rolling: &[bool], options: &WindowOptions) -> Option<Tiling> {
    let (plain_bytes, bytes) = traffic(&chain, rolling);
    let counts = |array: &&Array| !array.accesses.is_empty();
    let total: i64 = chain.arrays.iter().filter(counts).map(size).sum();
    if total <= options.bytes || plain_bytes.saturating_sub(bytes) < plain_bytes / LEAST_GAIN {
        return None;
    }
    chain.share(&chain.places(rolling));
    let strip = strip(&chain, options.bytes);
    let start = chain.nests.iter().map(|nest| nest.late).min()?.div_euclid(chain.unit) * chain.unit;
    let end = chain.nests.iter().map(|nest| nest.late + nest.steps.positions).max()?;
    let borders = borders(&chain, start..end, strip);
    let homes = Homes::new(&chain, rolling);
    let mut renames: Vec<TileRename> = Vec::new();
    for &(_, rename) in &chain.arrays.renames {
        renames.retain(|known| known.base != rename.base);
        let own = |array: &Array| array.fresh && array.base == rename.base && array.made < chain.end;
        let last = chain.arrays.iter().rposition(own);
        if last.is_some_and(|at| !rolling[at]) {
            renames.push(rename);
        }
    }
    let transient = chain.arrays.iter().zip(rolling).filter(|(_, rolling)| **rolling).map(|(array, _)| array.base);
    let transient = transient.collect();
    let turns = lockstep::turns(&chain, &homes, strip);
    let (in_use, places) = (chain.bytes(strip) as u64, places(&chain));
    let blocks = chain.first..chain.end;
    let kernels = blocks.clone().filter(|&block| chain.survey.computes(block)).count() as u32;
    let Chain { nests, after, .. } = chain;
    let nests = nests.into_iter().zip(places).map(|(nest, places)| TileNest {
        reach: nest.reach(),
        slots: homes.slots(&nest.arrays),
        block: nest.block,
        stage: nest.stage,
        places,
        steps: nest.steps,
        late: nest.late,
    });
    let after = after.into_iter().map(|(_, stage, arrays)| LateNest { stage, slots: homes.slots(&arrays) });
    Some(Tiling {
        blocks,
        kernels,
        nests: nests.collect(),
        turns,
        after: after.collect(),
        rows: homes.rows,
        transient,
        temporaries: homes.temporaries,
        renames,
        area: [start..end, 0..1, 0..1],
        tile: [borders[1] - borders[0], 1, 1],
        borders: Some(borders),
        strip,
        plain_bytes,
        bytes,
        in_use,
        gain: bytes as f64 / plain_bytes as f64,
    })
}

fn size(array: &Array) -> i64 {
    array.len.saturating_mul(array.dtype.size() as i64)
}

/// Does the array need no memory? It must live within the chain, and nests must write elements before others read them.
pub(super) fn is_rolling(chain: &Chain<'_>, array: &Array) -> bool {
    let Some(base) = chain.batch.bases.get(array.base as usize) else { return false };
    let found = chain.survey.found();
    let begins = array.fresh || (base.has(base_flags::BORN) && found.uses[array.base as usize].0 >= chain.first);
    let aliased = chain.arrays.renames.iter().any(|(_, rename)| rename.base == array.base && rename.alias.is_some());
    if array.accesses.is_empty()
        || array.irregular
        || array.used_late()
        || !array.dies(chain.survey, chain.end)
        || !begins
        || aliased
        || base.has(base_flags::PINNED)
        || found.synced[array.base as usize]
        || array.accesses.iter().any(|access| access.write && access.rows.first != access.rows.last)
    {
        return false;
    }
    array.fresh || reads_are_written(chain, array)
}

/// Does the chain write all elements of the array that it reads, before it reads them?
fn reads_are_written(chain: &Chain<'_>, array: &Array) -> bool {
    let mut written: Vec<Region> = Vec::new();
    for access in &array.accesses {
        let nest = &chain.nests[access.nest as usize];
        let region =
            rows::region(&nest.stage, access.slot as usize, nest.steps, access.rows, array.pitch, access.write);
        match (access.write, region) {
            (true, Some(region)) => written.push(region),
            (true, None) => {}
            // Writes of the same nest come after its reads.
            (false, Some(region)) if chain.effort.afford(written.len()) && rows::covered(region, &written) => {}
            (false, _) => return false,
        }
    }
    true
}

/// Bytes between memory and kernels: in the plain order, and with the window.
fn traffic(chain: &Chain<'_>, rolling: &[bool]) -> (u64, u64) {
    let (mut plain, mut windowed) = (0, 0);
    for (array, &rolling) in chain.arrays.iter().zip(rolling) {
        // A nest uses an array as many rows long as its positions are.
        let bytes = |access: &Access| {
            let positions = chain.nests[access.nest as usize].steps.positions;
            positions.saturating_mul(array.pitch).min(array.len) as u64 * array.dtype.size() as u64
        };
        for write in [false, true] {
            let mut most = 0;
            let mut last = None;
            for access in array.accesses.iter().filter(|access| access.write == write) {
                most = most.max(bytes(access));
                if last != Some(access.nest) {
                    plain += bytes(access);
                }
                last = Some(access.nest);
            }
            let made_here = !write && (array.fresh || array.accesses.first().is_some_and(|access| access.write));
            if !rolling && !made_here {
                windowed += most;
            }
        }
    }
    (plain, windowed)
}

/// The most times for which the rows fit, in whole partial results.
fn strip(chain: &Chain<'_>, bytes: i64) -> i64 {
    let unit = chain.unit;
    let fixed = chain.bytes(0);
    let each = (chain.bytes(1 << 20) - fixed) / (1 << 20);
    // If no row is needed again after its strip, shorter strips leave more of the cache to arrays in memory.
    let bytes = if fixed == 0 { bytes / 2 } else { bytes };
    // Strips shorter than the lags would spend their time on beginning.
    let fits = (bytes - fixed).max(fixed / 2) / each.max(1) / unit * unit;
    // Longer strips gain nothing once calls are long.
    fits.clamp(unit, (1 << 20) / unit * unit + unit)
}

/// The first and last row that is needed of an array where two chunks meet.
fn gap(chain: &Chain<'_>, array: &Array) -> Option<(i64, i64)> {
    let place = |access: &Access| {
        let nest = &chain.nests[access.nest as usize];
        (access.rows.first - nest.late, access.rows.last - nest.early)
    };
    array.accesses.iter().map(place).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// The beginnings of chunks, by the shape alone: far enough from each other that gaps do not meet, and not many. Chunks are about
/// equal, as all others wait for the longest one.
fn borders(chain: &Chain<'_>, time: std::ops::Range<i64>, strip: i64) -> Vec<i64> {
    let gaps = chain.arrays.iter().filter_map(|array| gap(chain, array)).map(|(low, high)| high - low);
    let lags = chain.nests.iter().map(|nest| nest.late - nest.early);
    let apart = gaps.chain(lags).max().unwrap_or(0).max(0) + 1;
    let length = time.end - time.start;
    // Where nothing lags, chunks have no begin to lose time with: few and long rows are a chunk each.
    let (most, least) = if apart > 1 { (CHUNKS, (4 * apart).max(strip)) } else { (4 * CHUNKS, 1) };
    let wanted = ((length + most - 1) / most).max(least);
    let (units, least) = (length / chain.unit, (wanted + chain.unit - 1) / chain.unit);
    let count = (units / least).max(1);
    let begin = |number: i64| time.start + units * number / count * chain.unit;
    let mut borders: Vec<i64> = (0..count).map(begin).collect();
    borders.push(time.end);
    borders
}

/// Where the arrays of a window live.
pub(super) struct Homes {
    /// Of each array.
    arrays: Vec<TileSlot>,
    rows: Vec<TileRows>,
    temporaries: Vec<Temporary>,
}

impl Homes {
    fn new(chain: &Chain<'_>, rolling: &[bool]) -> Homes {
        let mut homes = Homes { arrays: Vec::new(), rows: Vec::new(), temporaries: Vec::new() };
        for (array, &rolling) in chain.arrays.iter().zip(rolling) {
            homes.arrays.push(if array.base == NO_BASE {
                homes.temporaries.push(Temporary { dtype: array.dtype, len: array.len });
                TileSlot::Temporary(homes.temporaries.len() as u32 - 1)
            } else if rolling {
                // Nests use no array whose rows are in the place of another one's.
                chain.in_use(array).map_or(TileSlot::Index, |(first, end)| {
                    homes.rows.push(rows_of(chain, array, first, end));
                    TileSlot::Rows(homes.rows.len() as u32 - 1)
                })
            } else if array.fresh {
                TileSlot::Fresh(array.base)
            } else {
                TileSlot::Base(array.base)
            });
        }
        homes
    }

    /// The memory of slots, by their arrays.
    pub(super) fn slots(&self, arrays: &[u32]) -> Vec<TileSlot> {
        arrays.iter().map(|&array| self.arrays.get(array as usize).copied().unwrap_or(TileSlot::Index)).collect()
    }
}

/// The rows that a window keeps of an array: from `first` on, and as many more than a strip as `end` says.
fn rows_of(chain: &Chain<'_>, array: &Array, first: i64, end: i64) -> TileRows {
    let one_row = |access: &Access| {
        let Stage { kernel, .. } = &chain.nests[access.nest as usize].stage;
        access.rows.first == access.rows.last && kernel.dims[0] == Dim::Kept
    };
    TileRows {
        size: array.dtype.size(),
        pitch: array.pitch,
        column: array.pitch,
        first,
        kept: end - first,
        left: 0,
        gap: gap(chain, array).unwrap_or_default(),
        apart: array.accesses.iter().all(one_row),
    }
}

/// The first row of each slot of all nests.
fn places(chain: &Chain<'_>) -> Vec<Vec<[i64; 3]>> {
    let mut places: Vec<Vec<[i64; 3]>> = chain.nests.iter().map(|nest| vec![[0; 3]; nest.arrays.len()]).collect();
    for access in chain.arrays.iter().flat_map(|array| &array.accesses) {
        places[access.nest as usize][access.slot as usize][0] = access.rows.first;
    }
    places
}

impl Nest {
    /// The rows that it does in a chunk without its neighbours, from the chunk's first and last time.
    pub(super) fn reach(&self) -> [Reach; 3] {
        [Reach { low: -self.early, high: -self.late }, Reach::default(), Reach::default()]
    }
}
