//! Planned sliding windows: the programs of chains of kernels that run in lock-step, and the layout of their line buffers.

mod layout;

use super::tiles::TilePlan;
use crate::block::{Program, WindowMemory, compile, compile_in_window};
use crate::native::Tier1;
use crate::primitives::Primitives;
use bh_bytecode::BatchRef;
use bh_core::{Error, Result};
use bh_kernel::{
    Apart, BaseUse, Home, LateNest, Lowered, SlidingArray, SlidingNest, SlidingWindow, Stage, Steps, Uses,
};
use bh_kernel::{SlidingWindows, Survey, TileOptions, WindowOptions};
use std::collections::HashMap;
use std::ops::Range;

/// A nest that runs in lock-step with others.
#[derive(Debug)]
pub(crate) struct WindowNest {
    pub(crate) program: Program,
    /// The array of each slot, or `NO_ARRAY`.
    pub(crate) arrays: Vec<u32>,
    /// The line buffer of each slot.
    pub(crate) buffers: Vec<Option<usize>>,
    /// The first row of each slot at position 0.
    pub(crate) rows: Vec<i64>,
    pub(crate) steps: Steps,
    pub(crate) late: i64,
    pub(crate) early: i64,
    /// The line buffers that it writes, and the row that each gets at position 0.
    pub(crate) writes: Vec<(usize, i64)>,
}

/// What a strip does at once.
#[derive(Debug)]
pub(crate) struct WindowTurn {
    /// The nests, in order.
    pub(crate) nests: Vec<u32>,
    /// The nest that does what they do, if they are several: its number among those.
    pub(crate) joined: Option<usize>,
}

/// An array of which a participant has a few rows.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    /// Bytes of a row.
    pub(crate) pitch: isize,
    /// First row, from the front of the window.
    pub(crate) first: i64,
    /// One past the last, from the end of the strip at the front.
    pub(crate) end: i64,
    /// The rows that a gap between chunks needs, from the border.
    pub(crate) gap: (i64, i64),
    /// Where its rows are in a participant's memory, and in that of a gap.
    pub(crate) offset: usize,
    pub(crate) gap_offset: usize,
    /// The rows of a ring: a row lies where its number modulo this says. Otherwise rows that are needed again move to the
    /// beginning at the end of each strip.
    pub(crate) ring: Option<i64>,
}

/// An array is a ring if at least one in `KEPT` of its rows is needed again after a strip: else moving rows costs less than
/// calls that end where a ring does.
const KEPT: i64 = 8;

/// More threads make no kernel faster that memory limits.
const BUSY: usize = 32;

/// A sliding window, planned.
#[derive(Debug)]
pub(crate) struct WindowPlan {
    /// What it does, apart from the nests.
    pub(crate) chain: SlidingWindow,
    pub(crate) nests: Vec<WindowNest>,
    /// The order in which strips run them.
    pub(crate) turns: Vec<WindowTurn>,
    /// Nests that do what all nests of a turn do.
    pub(crate) joined: Vec<WindowNest>,
    /// What runs afterwards, with the array of each slot.
    pub(crate) after: Vec<(Program, Vec<u32>)>,
    pub(crate) buffers: Vec<LineBuffer>,
    pub(crate) buffer_bytes: usize,
    pub(crate) gap_bytes: usize,
    /// Where the temporaries of blocks begin, by array, and their bytes in all.
    pub(crate) temporaries: Vec<usize>,
    pub(crate) temporary_bytes: usize,
    /// Bases in memory.
    pub(crate) bases: Vec<BaseUse>,
}

/// The sliding windows and tilings of a batch, planned.
#[derive(Debug, Default)]
pub(crate) struct WindowPlans {
    pub(crate) windows: Vec<WindowPlan>,
    /// The chains that run tile by tile, beside these.
    pub(crate) tilings: Vec<TilePlan>,
    /// Kernels that follow each other on common arrays and cannot run in lock-step.
    pub(crate) refused: u64,
    /// Blocks in no window that were lowered and are not planned yet, by block.
    pub(crate) lowered: Vec<Option<Lowered>>,
    /// Were tilings looked for?
    pub(crate) tiled: bool,
}

/// Plans the sliding windows of a batch, and its tilings if they are to be looked for: with these options, unless they are off.
pub(crate) fn plan_windows(
    batch: &BatchRef<'_>,
    bytes: i64,
    tiles: Option<Option<TileOptions>>,
    primitives: Primitives,
    tier1: &mut Option<Tier1>,
) -> Result<WindowPlans> {
    let options = WindowOptions { bytes, stand_ins: false };
    let survey = Survey::new(batch);
    let mut windows = bh_kernel::windows(&survey, &options, &[]);
    let tiled = tiles.is_some();
    let tilings = tiles.flatten().map_or_else(Vec::new, |tiles| bh_kernel::tilings(&survey, &tiles, &windows).found);
    let taken: Vec<Range<u32>> = tilings.iter().map(|tiling| tiling.blocks.clone()).collect();
    if !taken.is_empty() {
        windows = bh_kernel::windows(&survey, &options, &taken);
    }
    let (SlidingWindows { found, apart }, lowered) = (windows, survey.into_lowered());
    let refused = |(_, reason): &&(u32, Apart)| matches!(reason, Apart::Unbounded | Apart::Rows | Apart::Gain);
    let refused = apart.iter().filter(refused).count() as u64;
    let windows = found.into_iter().map(|window| WindowPlan::new(batch, &lowered, window, primitives, tier1));
    let windows: Vec<WindowPlan> = windows.collect::<Result<_>>()?;
    let tilings = tilings.into_iter().map(|tiling| TilePlan::new(batch, tiling, primitives, tier1));
    let tilings: Vec<TilePlan> = tilings.collect::<Result<_>>()?;
    let mut lowered: Vec<Option<Lowered>> = lowered.into_iter().map(Some).collect();
    for blocks in windows.iter().map(|plan| &plan.chain.blocks).chain(&taken) {
        if let Some(planned) = lowered.get_mut(blocks.start as usize..blocks.end as usize) {
            planned.fill_with(|| None);
        }
    }
    Ok(WindowPlans { windows, tilings, refused, lowered, tiled })
}

/// The line buffers of a sliding window, and what nests need to know of them.
struct LineBuffers {
    list: Vec<LineBuffer>,
    /// The buffer of each array.
    numbers: Vec<Option<usize>>,
    /// How many nests use each array.
    users: Vec<u32>,
    bytes: usize,
    gap_bytes: usize,
}

impl LineBuffers {
    /// Lays out the buffers; `begins` has the bytes by which each begins behind a line's beginning.
    fn new(window: &SlidingWindow, begins: &[usize]) -> LineBuffers {
        let mut users = vec![0u32; window.arrays.len()];
        for nest in &window.nests {
            let mut arrays: Vec<u32> =
                nest.arrays.iter().copied().filter(|&array| array != bh_kernel::NO_ARRAY).collect();
            arrays.sort_unstable();
            arrays.dedup();
            arrays.iter().for_each(|&array| users[array as usize] += 1);
        }
        let numbers = vec![None; window.arrays.len()];
        let mut all = LineBuffers { list: Vec::new(), numbers, users, bytes: 0, gap_bytes: 0 };
        for (at, array) in window.arrays.iter().enumerate() {
            let Home::Rolling { first, end, gap, apart } = array.home else { continue };
            // Its rows are in the place of another one's.
            if all.users[at] == 0 {
                continue;
            }
            all.numbers[at] = Some(all.list.len());
            let pitch = array.pitch as usize * array.dtype.size();
            let height = (window.strip + end - first).max(0);
            let ring = (apart && (end - first).max(0) * KEPT >= height).then_some(height.max(1));
            all.list.push(LineBuffer {
                pitch: pitch as isize,
                first,
                end,
                gap,
                offset: all.bytes + begins[at],
                gap_offset: all.gap_bytes,
                ring,
            });
            // A line apart, so that rows of one number in several arrays do not compete for one place in the caches.
            all.bytes += (begins[at] + height as usize * pitch).next_multiple_of(64) + 64;
            all.gap_bytes += ((gap.1 - gap.0).max(0) as usize * pitch).next_multiple_of(64);
        }
        all
    }

    /// The buffer of an array.
    fn of(&self, array: u32) -> Option<usize> {
        self.numbers.get(array as usize).copied().flatten()
    }

    /// Is the memory of an array used again while the caches have it?
    fn is_resident(&self, array: u32) -> bool {
        self.users.get(array as usize).is_some_and(|&users| users > 1) || self.of(array).is_some()
    }

    /// Groups of slots that are as far apart as their views: rows of a ring lie anywhere, so a slot is together with others of
    /// its own row.
    fn groups(&self, nest: &SlidingNest) -> Vec<u32> {
        let is_ring = |array: u32| self.of(array).is_some_and(|buffer| self.list[buffer].ring.is_some());
        let place = |slot: usize| (nest.arrays[slot], if is_ring(nest.arrays[slot]) { nest.rows[slot] } else { 0 });
        let mut first_there = HashMap::new();
        (0..nest.arrays.len()).map(|slot| *first_there.entry(place(slot)).or_insert(slot as u32)).collect()
    }
}

/// What nests are compiled with.
struct NestCompiler<'a> {
    batch: &'a BatchRef<'a>,
    buffers: &'a LineBuffers,
    primitives: Primitives,
    tier1: &'a mut Option<Tier1>,
}

impl NestCompiler<'_> {
    /// Names the instruction of an error.
    fn located(&self, stage: &Stage, error: Error) -> Error {
        error.at_instr(self.batch, stage.parameters.instrs.last().copied().unwrap_or(0))
    }

    fn nest(&mut self, nest: SlidingNest, in_order: bool) -> Result<WindowNest> {
        let (buffers, groups) = (self.buffers, self.buffers.groups(&nest));
        let SlidingNest { stage, arrays, steps, late, early, writes, rows, .. } = nest;
        let resident: Vec<bool> = arrays.iter().map(|&array| buffers.is_resident(array)).collect();
        let memory = WindowMemory { resident: &resident, groups: &groups, in_order, in_tile: false };
        let program = compile_in_window(&stage, memory, self.primitives, self.tier1);
        Ok(WindowNest {
            program: program.map_err(|error| self.located(&stage, error))?,
            buffers: arrays.iter().map(|&array| buffers.of(array)).collect(),
            rows,
            arrays,
            steps,
            late,
            early,
            writes: writes.iter().filter_map(|&(array, row)| Some((buffers.of(array)?, row))).collect(),
        })
    }

    fn after(&mut self, late: LateNest) -> Result<(Program, Vec<u32>)> {
        let program = compile(&late.stage, self.primitives, self.tier1);
        Ok((program.map_err(|error| self.located(&late.stage, error))?, late.arrays))
    }
}

impl WindowPlan {
    fn new(
        batch: &BatchRef<'_>,
        lowered: &[Lowered],
        mut window: SlidingWindow,
        primitives: Primitives,
        tier1: &mut Option<Tier1>,
    ) -> Result<WindowPlan> {
        let begins = layout::align(&mut window);
        let buffers = LineBuffers::new(&window, &begins);
        let bases = base_uses(batch, &window);
        let (temporaries, temporary_bytes) = place_temporaries(lowered, &window);
        let mut compiler = NestCompiler { batch, buffers: &buffers, primitives, tier1 };
        let (mut turns, mut joined) = (Vec::with_capacity(window.turns.len()), Vec::new());
        for turn in std::mem::take(&mut window.turns) {
            let mut number = None;
            if let Some(all) = turn.joined {
                number = Some(joined.len());
                joined.push(compiler.nest(all, true)?);
            }
            turns.push(WindowTurn { nests: turn.nests, joined: number });
        }
        let nests = std::mem::take(&mut window.nests).into_iter().map(|nest| compiler.nest(nest, false));
        let nests = nests.collect::<Result<Vec<_>>>()?;
        let after = std::mem::take(&mut window.after)
            .into_iter()
            .map(|late| compiler.after(late))
            .collect::<Result<Vec<_>>>()?;
        Ok(WindowPlan {
            nests,
            turns,
            joined,
            after,
            buffer_bytes: buffers.bytes,
            gap_bytes: buffers.gap_bytes,
            buffers: buffers.list,
            temporaries,
            temporary_bytes,
            bases,
            chain: window,
        })
    }

    /// Bytes that need not move.
    pub(crate) fn saved(&self) -> u64 {
        self.chain.plain_bytes.saturating_sub(self.chain.bytes)
    }

    /// Is it worth it with this number of threads? If chunks are fewer, what is saved must outweigh the threads that have none.
    pub(crate) fn pays(&self, threads: usize) -> bool {
        let SlidingWindow { borders, bytes, plain_bytes, .. } = &self.chain;
        let (chunks, threads) = (borders.len() as u64 - 1, threads.min(BUSY) as u64);
        chunks >= threads || bytes.saturating_mul(threads) <= plain_bytes.saturating_mul(chunks)
    }
}

/// The bases that live in their own memory, and how each is acquired.
fn base_uses(batch: &BatchRef<'_>, window: &SlidingWindow) -> Vec<BaseUse> {
    let mut uses = Uses::default();
    let nests = window.nests.iter().map(|nest| (&nest.stage, &nest.arrays));
    for (stage, arrays) in nests.chain(window.after.iter().map(|late| (&late.stage, &late.arrays))) {
        uses.slots(batch, stage, |slot| match window.arrays.get(arrays[slot] as usize) {
            Some(&SlidingArray { base, home: Home::Base, .. }) => Some(base),
            _ => None,
        });
    }
    uses.into_vec()
}

/// Where the temporaries of blocks begin, by array, and their bytes in all.
fn place_temporaries(lowered: &[Lowered], window: &SlidingWindow) -> (Vec<usize>, usize) {
    let (mut places, mut bytes) = (vec![0; window.arrays.len()], 0);
    for (at, array) in window.arrays.iter().enumerate() {
        let Home::Temporary { block, number } = array.home else { continue };
        places[at] = bytes;
        if let Some(Lowered::Loops(_, list)) = lowered.get(block as usize) {
            let len = list.get(number as usize).map_or(0, |temporary| temporary.len);
            bytes += (len as usize * array.dtype.size()).next_multiple_of(64);
        }
    }
    (places, bytes)
}
