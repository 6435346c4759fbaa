//! Planned sweeps: the programs of chains of kernels that run in lock-step, and the layout of their rolling rows.

mod fetch;
mod layout;

use crate::primitives::Primitives;
use crate::program::{Program, SweepMemory, compile, compile_in_sweep};
use crate::run::Division;
use crate::tier1::Tier1;
use bh_bytecode::BatchRef;
use bh_core::abi::access;
use bh_core::{Error, Result};
use bh_fuser::lower::{self, Apart, BaseUse, Dim, Home, Joined, Lowered, SlotMode, Stage, Sweep, SweepArray};
use bh_fuser::lower::{SweepNest, SweepOptions, SweepRename, Sweeps};
use bh_jit_abi::Fetch;
use std::collections::HashMap;
use std::ops::Range;

/// A nest that runs in lock-step with others.
#[derive(Debug)]
pub(crate) struct NestPlan {
    pub(crate) program: Program,
    /// The array of each slot, or `NO_ARRAY`.
    pub(crate) arrays: Vec<u32>,
    /// The rolling array of each slot.
    pub(crate) rolling: Vec<Option<usize>>,
    /// The first row of each slot at position 0.
    pub(crate) rows: Vec<i64>,
    pub(crate) positions: i64,
    per: i64,
    phase: i64,
    pub(crate) late: i64,
    pub(crate) early: i64,
    /// The rolling arrays that it writes, and the row that each gets at position 0.
    pub(crate) writes: Vec<(usize, i64)>,
}

impl NestPlan {
    /// The iterations of some positions.
    pub(crate) fn iterations(&self, positions: Range<i64>) -> Range<i64> {
        let at = |position: i64| (position * self.per - self.phase).clamp(0, self.program.geometry.extents[0]);
        at(positions.start)..at(positions.end)
    }

    /// Units of work.
    pub(crate) fn work(&self) -> u64 {
        self.program.geometry.iterations() as u64 * u64::from(self.program.weight)
    }
}

/// What a strip does at once.
#[derive(Debug)]
pub(crate) struct TurnPlan {
    /// The nests, in order.
    pub(crate) nests: Vec<u32>,
    /// The nest that does what they do, if they are several: its number among those.
    pub(crate) joined: Option<usize>,
}

/// An array of which a participant has a few rows.
#[derive(Debug)]
pub(crate) struct RollingArray {
    /// Bytes of a row.
    pub(crate) pitch: isize,
    /// First row, from the front of the sweep.
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

/// Arrays of whose rows at least one part in so many is needed again after a strip are rings: else moving rows costs
/// less than calls that end where a ring does.
const KEPT: i64 = 8;

/// More threads make no kernel faster that memory limits.
const BUSY: usize = 32;

/// A sweep, planned.
#[derive(Debug)]
pub(crate) struct SweepPlan {
    pub(crate) blocks: Range<u32>,
    pub(crate) nests: Vec<NestPlan>,
    /// The order in which strips run them.
    pub(crate) turns: Vec<TurnPlan>,
    /// Nests that do what all nests of a turn do.
    pub(crate) joined: Vec<NestPlan>,
    /// What runs afterwards, with the array of each slot.
    pub(crate) after: Vec<(Program, Vec<u32>)>,
    pub(crate) arrays: Vec<SweepArray>,
    pub(crate) rolling: Vec<RollingArray>,
    pub(crate) rolling_bytes: usize,
    pub(crate) gap_bytes: usize,
    /// Where the temporaries of blocks begin, by array, and their bytes in all.
    pub(crate) temporaries: Vec<usize>,
    pub(crate) temporary_bytes: usize,
    /// Bases in memory.
    pub(crate) bases: Vec<BaseUse>,
    /// Bases that get fresh buffers.
    pub(crate) renames: Vec<SweepRename>,
    pub(crate) strip: i64,
    pub(crate) borders: Vec<i64>,
    /// Bytes that kernels on their own would move, and those that the sweep does.
    plain_bytes: u64,
    bytes: u64,
}

/// The sweeps of a batch, planned.
#[derive(Debug, Default)]
pub(crate) struct SweepPlans {
    pub(crate) sweeps: Vec<SweepPlan>,
    /// Kernels that follow each other on common arrays and cannot run in lock-step.
    pub(crate) refused: u64,
}

/// Plans the sweeps of a batch.
pub(crate) fn plan(
    batch: &BatchRef<'_>,
    bytes: i64,
    primitives: Primitives,
    tier1: &mut Option<Tier1>,
) -> Result<SweepPlans> {
    let Sweeps { found, apart } = lower::sweeps(batch, &SweepOptions { bytes, unit: &Division::rows_of });
    let refused = |(_, reason): &&(u32, Apart)| matches!(reason, Apart::Unbounded | Apart::Rows | Apart::Gain);
    let refused = apart.iter().filter(refused).count() as u64;
    let sweeps = found.into_iter().map(|sweep| SweepPlan::new(batch, sweep, primitives, tier1));
    let sweeps = sweeps.collect::<Result<_>>()?;
    Ok(SweepPlans { sweeps, refused })
}

impl SweepPlan {
    fn new(
        batch: &BatchRef<'_>,
        mut sweep: Sweep,
        primitives: Primitives,
        tier1: &mut Option<Tier1>,
    ) -> Result<SweepPlan> {
        let begins = layout::align(&mut sweep);
        let mut users = vec![0u32; sweep.arrays.len()];
        for nest in &sweep.nests {
            let mut arrays: Vec<u32> = nest.arrays.iter().copied().filter(|&array| array != lower::NO_ARRAY).collect();
            arrays.sort_unstable();
            arrays.dedup();
            arrays.iter().for_each(|&array| users[array as usize] += 1);
        }
        let mut numbers = vec![None; sweep.arrays.len()];
        let (mut rolling, mut rolling_bytes, mut gap_bytes) = (Vec::new(), 0, 0);
        for (at, array) in sweep.arrays.iter().enumerate() {
            let Home::Rolling { first, end, gap, apart } = array.home else { continue };
            // Its rows are in the place of another one's.
            if users[at] == 0 {
                continue;
            }
            numbers[at] = Some(rolling.len());
            let pitch = array.pitch as usize * array.dtype.size();
            let height = (sweep.strip + end - first).max(0);
            let ring = (apart && (end - first).max(0) * KEPT >= height).then_some(height.max(1));
            rolling.push(RollingArray {
                pitch: pitch as isize,
                first,
                end,
                gap,
                offset: rolling_bytes + begins[at],
                gap_offset: gap_bytes,
                ring,
            });
            // A line apart, so that rows of one number in several arrays do not compete for one place in the caches.
            rolling_bytes += (begins[at] + height as usize * pitch).next_multiple_of(64) + 64;
            gap_bytes += ((gap.1 - gap.0).max(0) as usize * pitch).next_multiple_of(64);
        }
        let bases = base_uses(batch, &sweep);
        let located = |stage: &Stage, error: Error| {
            let instr = stage.parameters.instrs.last().copied().unwrap_or(0);
            error.at_instr(batch, instr)
        };
        let fetches = fetch::fetches(&sweep);
        let mut nest = |nest: SweepNest, fetches: &[(Fetch, i64)], in_order: bool| {
            let SweepNest { stage, arrays, positions, per, phase, late, early, writes, rows, .. } = nest;
            let number = |array: u32| numbers.get(array as usize).copied().flatten();
            let shared = |&array: &u32| users.get(array as usize).is_some_and(|&users| users > 1);
            let resident: Vec<bool> = arrays.iter().map(|array| shared(array) || number(*array).is_some()).collect();
            // Rows of a ring lie anywhere: a slot is together with others of its own row.
            let ring = |slot: usize| number(arrays[slot]).is_some_and(|array| rolling[array].ring.is_some());
            let place = |slot: usize| (arrays[slot], if ring(slot) { rows[slot] } else { 0 });
            let mut first_there = HashMap::new();
            let groups: Vec<u32> =
                (0..arrays.len()).map(|slot| *first_there.entry(place(slot)).or_insert(slot as u32)).collect();
            let memory = SweepMemory { resident: &resident, groups: &groups, fetches, in_order };
            let program =
                compile_in_sweep(&stage, memory, primitives, tier1).map_err(|error: Error| located(&stage, error))?;
            Ok(NestPlan {
                program,
                rolling: arrays.iter().map(|&array| number(array)).collect(),
                rows,
                arrays,
                positions,
                per,
                phase,
                late,
                early,
                writes: writes.iter().filter_map(|&(array, row)| Some((number(array)?, row))).collect(),
            })
        };
        let (mut turns, mut joined) = (Vec::with_capacity(sweep.turns.len()), Vec::new());
        for turn in sweep.turns {
            let mut number = None;
            if let Some(Joined { nest: all, origins }) = turn.joined {
                let fetches = origins.iter().map(|&(nest, slot)| fetches[nest as usize][slot as usize]);
                number = Some(joined.len());
                joined.push(nest(all, &fetches.collect::<Vec<_>>(), true)?);
            }
            turns.push(TurnPlan { nests: turn.nests, joined: number });
        }
        let nests = sweep.nests.into_iter().zip(&fetches).map(|(each, fetches)| nest(each, fetches, false));
        let nests = nests.collect::<Result<Vec<_>>>()?;
        let after = sweep.after.into_iter().map(|late| {
            let program =
                compile(&late.stage, primitives, tier1).map_err(|error: Error| located(&late.stage, error))?;
            Ok((program, late.arrays))
        });
        let after = after.collect::<Result<Vec<_>>>()?;
        let mut temporaries = vec![0; sweep.arrays.len()];
        let mut temporary_bytes = 0;
        for (at, array) in sweep.arrays.iter().enumerate() {
            let Home::Temporary { block, number } = array.home else { continue };
            temporaries[at] = temporary_bytes;
            if let Lowered::Loops(_, list) = lower::lower(batch, block) {
                let len = list.get(number as usize).map_or(0, |temporary| temporary.len);
                temporary_bytes += (len as usize * array.dtype.size()).next_multiple_of(64);
            }
        }
        Ok(SweepPlan {
            blocks: sweep.blocks,
            nests,
            turns,
            joined,
            after,
            arrays: sweep.arrays,
            rolling,
            rolling_bytes,
            gap_bytes,
            temporaries,
            temporary_bytes,
            bases,
            renames: sweep.renames,
            strip: sweep.strip,
            borders: sweep.borders,
            plain_bytes: sweep.plain_bytes,
            bytes: sweep.bytes,
        })
    }

    /// Bytes that need not move.
    pub(crate) fn saved(&self) -> u64 {
        self.plain_bytes.saturating_sub(self.bytes)
    }

    /// Is it worth it with so many threads? If chunks are fewer, what is saved must outweigh the threads that have none.
    pub(crate) fn pays(&self, threads: usize) -> bool {
        let (chunks, threads) = (self.borders.len() as u64 - 1, threads.min(BUSY) as u64);
        chunks >= threads || self.bytes.saturating_mul(threads) <= self.plain_bytes.saturating_mul(chunks)
    }
}

/// The bases that live in their own memory, and how each is acquired.
fn base_uses(batch: &BatchRef<'_>, sweep: &Sweep) -> Vec<BaseUse> {
    let mut uses: Vec<BaseUse> = Vec::new();
    let nests = sweep.nests.iter().map(|nest| (&nest.stage, &nest.arrays));
    for (stage, arrays) in nests.chain(sweep.after.iter().map(|late| (&late.stage, &late.arrays))) {
        for (slot, &array) in arrays.iter().enumerate() {
            let Some(SweepArray { base, home: Home::Base, .. }) = sweep.arrays.get(array as usize) else { continue };
            let mode = stage.kernel.slots[slot].mode;
            let known = uses.iter_mut().find(|known| known.base == *base);
            let dims = stage.parameters.extents.iter().zip(&stage.kernel.dims);
            let written = dims.filter(|(_, dim)| mode == SlotMode::Write || **dim == Dim::Kept);
            let written: i64 = written.map(|(extent, _)| extent).product();
            let whole = mode != SlotMode::Read && written == batch.bases[*base as usize].len;
            match (known, mode) {
                // What the chain has written completely is not needed from before.
                (Some(known), SlotMode::Read) if known.access & access::DISCARD == 0 => known.access |= access::READ,
                (Some(_), SlotMode::Read) => {}
                (Some(known), _) => known.access |= access::WRITE,
                (None, SlotMode::Read) => uses.push(BaseUse { base: *base, access: access::READ }),
                (None, _) if whole => uses.push(BaseUse { base: *base, access: access::WRITE | access::DISCARD }),
                (None, _) => uses.push(BaseUse { base: *base, access: access::WRITE }),
            }
        }
    }
    uses
}
