//! Collecting a chain: which nests may run in lock-step, and how far each must lag.

use super::rows::{self, Rows};
use super::{Apart, WindowOptions};
use crate::arrays::{self, Arrays, NO_ARRAY};
use crate::effort::Effort;
use crate::schedule::Schedule;
use crate::survey::{Survey, outermost_strides};
use crate::tiling::Steps;
use crate::{BufferRef, Lowered, SlotMode, Stage, Step};
use bh_bytecode::{BatchRef, Opcode};

/// The most nests of a chain, and the most that are put off.
const NESTS: usize = 128;
const PUT_OFF: usize = 16;

/// An array of a chain.
pub(super) type Array = arrays::Array<Facts>;

/// The facts that windows need of an array.
#[derive(Clone)]
pub(super) struct Facts {
    /// Elements of a row.
    pub(super) pitch: i64,
    /// Does a nest that is put off read it, or write it?
    put_off: (bool, bool),
    pub(super) accesses: Vec<Access>,
    /// The rows of the accesses, each once for each nest.
    spans: Vec<Span>,
}

impl Facts {
    fn new(survey: &Survey<'_>, base: u32) -> Facts {
        let pitch = survey.found().pitches.get(base as usize).copied().unwrap_or(1);
        Facts { pitch, put_off: (false, false), accesses: Vec::new(), spans: Vec::new() }
    }
}

/// Rows that a nest touches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    array: u32,
    nest: u32,
    write: bool,
    rows: Rows,
}

impl Array {
    /// Does a nest that is put off use it?
    pub(super) fn used_late(&self) -> bool {
        self.put_off.0 || self.put_off.1
    }
}

/// An access of a nest to an array, row by row.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) nest: u32,
    pub(super) slot: u32,
    pub(super) rows: Rows,
    pub(super) write: bool,
}

/// A nest of the chain.
#[derive(Clone)]
pub(super) struct Nest {
    pub(super) block: u32,
    pub(super) stage: Stage,
    pub(super) arrays: Vec<u32>,
    pub(super) steps: Steps,
    pub(super) late: i64,
    pub(super) early: i64,
}

/// A chain under construction.
pub(super) struct Chain<'a> {
    pub(super) batch: &'a BatchRef<'a>,
    pub(super) survey: &'a Survey<'a>,
    options: &'a WindowOptions,
    pub(super) first: u32,
    pub(super) end: u32,
    pub(super) nests: Vec<Nest>,
    pub(super) after: Vec<(u32, Stage, Vec<u32>)>,
    pub(super) arrays: Arrays<'a, Facts>,
    /// Why the first nest outside of the window did not join.
    pub(super) reason: Option<Apart>,
    /// Times at which partial results of all folds end are multiples of this.
    pub(super) unit: i64,
    /// The limit of the search.
    pub(super) effort: &'a Effort,
}

/// The lag of a nest, and the unit of its times.
struct Lag {
    late: i64,
    early: i64,
    unit: i64,
}

/// Blocks that are tried after the first nest. If none of them joins, the nest begins no chain: a longer search would cost more
/// than it finds.
const ALONE: u32 = 4;

impl<'a> Chain<'a> {
    pub(super) fn new(survey: &'a Survey<'a>, options: &'a WindowOptions, first: u32, effort: &'a Effort) -> Chain<'a> {
        Chain {
            batch: survey.batch,
            survey,
            options,
            first,
            end: first,
            nests: Vec::new(),
            after: Vec::new(),
            arrays: Arrays::new(survey, Facts::new),
            reason: None,
            unit: 1,
            effort,
        }
    }

    /// Takes in blocks up to `limit`, as far as the chain goes. An error is the block whose rows are too many.
    pub(super) fn extend(&mut self, limit: u32) -> Result<(), u32> {
        for block in self.first..limit {
            let size = self.arrays.iter().map(|array| 1 + array.accesses.len()).sum::<usize>() + self.nests.len();
            if !self.effort.afford(size) {
                self.reason.get_or_insert(Apart::Effort);
                break;
            }
            let Some(windowed) = self.block(block) else {
                self.reason.get_or_insert(Apart::Special);
                break;
            };
            if windowed {
                self.end = block + 1;
                if self.nests.len() > 1 && self.exceeds(self.options.bytes) {
                    return Err(block);
                }
            }
            if self.survey.ends(block, &[Opcode::Free])
                || self.nests.len() >= NESTS
                || self.after.len() >= PUT_OFF
                || (self.nests.len() < 2 && block - self.first >= ALONE)
                || self.effort.spent()
            {
                break;
            }
        }
        // Nests that were put off behind the last block of the window are not part of it.
        let end = self.end;
        self.after.retain(|(block, ..)| *block < end);
        self.arrays.renames.retain(|(block, _)| *block < end);
        Ok(())
    }

    /// Takes in a block. Returns whether a nest of it joins the window; `None` if the chain ends before the block.
    fn block(&mut self, block: u32) -> Option<bool> {
        let (stages, temporaries) = match self.survey.block(block) {
            Lowered::Nothing => return Some(false),
            Lowered::Special(_) => return None,
            Lowered::Loops(stages, temporaries) => (stages, temporaries),
        };
        if stages.iter().any(|stage| stage.kernel.steps.iter().any(|step| matches!(step, Step::Gather { .. }))) {
            return None;
        }
        // A nest that is put off must find the arrays as they were.
        for rename in self.batch.renames(&self.batch.blocks[block as usize]) {
            let current = self.arrays.current(BufferRef::Base(rename.base));
            if current.is_some_and(|at| self.arrays[at as usize].used_late()) {
                return None;
            }
        }
        self.arrays.begin(block, temporaries);
        for (buffer, stride) in stages.iter().flat_map(outermost_strides) {
            if let (BufferRef::Temporary(_), Some(array)) = (buffer, self.arrays.current(buffer)) {
                let pitch = &mut self.arrays[array as usize].pitch;
                *pitch = stride.max(*pitch);
            }
        }
        let mut windowed = false;
        let survey = self.survey;
        for stage in survey.stages(block) {
            windowed |= self.stage(block, stage);
        }
        self.arrays.end();
        Some(windowed)
    }

    /// Takes in a nest: it joins the window (true), or is put off.
    fn stage(&mut self, block: u32, stage: &Stage) -> bool {
        let arrays = self.arrays.of_slots(stage);
        let joined = self.place(block, stage, &arrays);
        if let Err(reason) = joined {
            self.reason.get_or_insert(reason);
            self.put_off(block, stage.clone(), arrays);
        }
        joined.is_ok()
    }

    /// Lets a nest with these arrays join the window, if it can.
    fn place(&mut self, block: u32, stage: &Stage, arrays: &[u32]) -> Result<(), Apart> {
        let pitch = |slot: usize| self.arrays.get(arrays[slot] as usize).map_or(1, |array| array.pitch);
        let fitting = rows::steps(stage, pitch).filter(|_| stage.parameters.iterations() > 0);
        let steps = fitting.ok_or(Apart::Unbounded)?;
        let ways: Vec<Option<Rows>> =
            (0..arrays.len()).map(|slot| rows::rows(stage, slot, steps, pitch(slot))).collect();
        let nest = self.nests.len() as u32;
        let spans = spans(stage, nest, arrays, &ways);
        let pairs = spans.iter().map(|own| 1 + self.arrays[own.array as usize].spans.len());
        if !self.effort.afford(4 * arrays.len() + pairs.sum::<usize>()) {
            return Err(Apart::Effort);
        }
        let lag = self.lag(stage, arrays, steps, &ways, &spans)?;
        for (slot, (&array, way)) in arrays.iter().zip(ways).enumerate() {
            let Some(array) = self.arrays.get_mut(array as usize) else { continue };
            let write = stage.kernel.slots[slot].mode.writes();
            array.written |= write;
            match way {
                Some(rows) => array.accesses.push(Access { nest, slot: slot as u32, rows, write }),
                None => array.irregular = true,
            }
        }
        for span in spans {
            self.arrays[span.array as usize].spans.push(span);
        }
        self.unit = lcm(self.unit, lag.unit);
        self.nests.push(Nest {
            block,
            stage: stage.clone(),
            arrays: arrays.to_vec(),
            steps,
            late: lag.late,
            early: lag.early,
        });
        Ok(())
    }

    fn put_off(&mut self, block: u32, stage: Stage, arrays: Vec<u32>) {
        for (slot, &array) in stage.kernel.slots.iter().zip(&arrays) {
            if let Some(array) = self.arrays.get_mut(array as usize) {
                array.put_off.0 |= slot.mode == SlotMode::Read;
                array.put_off.1 |= slot.mode.writes();
            }
        }
        self.after.push((block, stage, arrays));
    }

    /// How far the nest must lag behind those of the chain, or why it cannot run in lock-step with them.
    fn lag(
        &self,
        stage: &Stage,
        arrays: &[u32],
        steps: Steps,
        ways: &[Option<Rows>],
        spans: &[Span],
    ) -> Result<Lag, Apart> {
        let unit = if stage.kernel.reduces() {
            let whole = if self.options.stand_ins { Some(1) } else { Schedule::new(stage, false).whole_units() };
            let iterations = whole.filter(|_| steps.per == 1 || steps.phase == 0);
            let iterations = iterations.ok_or(Apart::Rows)?;
            iterations / gcd(iterations, steps.per)
        } else {
            1
        };
        for (slot, (&array, way)) in arrays.iter().zip(ways).enumerate() {
            let Some(array) = self.arrays.get(array as usize) else { continue };
            let write = stage.kernel.slots[slot].mode.writes();
            if array.put_off.1 || (write && array.put_off.0) {
                return Err(Apart::Unbounded);
            }
            let unbounded = match way {
                // The nest touches any row at any time.
                None => array.written || (write && (array.irregular || !array.accesses.is_empty())),
                Some(_) => array.irregular && (write || array.written),
            };
            if unbounded {
                return Err(Apart::Unbounded);
            }
        }
        let mut depends: Option<(i64, i64)> = None;
        let mut beside: Option<i64> = None;
        let mut shares = self.nests.is_empty();
        let end = |rows: Rows, steps: Steps| rows.last + steps.positions - 1;
        for own in spans {
            for other in &self.arrays[own.array as usize].spans {
                shares = true;
                let nest = &self.nests[other.nest as usize];
                let apart = end(own.rows, steps) < other.rows.first || end(other.rows, nest.steps) < own.rows.first;
                if (own.write || other.write) && !apart {
                    let late = nest.late + own.rows.last - other.rows.first;
                    let early = nest.early + own.rows.first - other.rows.last;
                    let known = depends.unwrap_or((late, early));
                    depends = Some((known.0.max(late), known.1.min(early)));
                } else {
                    // Free to run at any time: best when the other nest is at these rows.
                    let late = nest.late + own.rows.last - other.rows.last;
                    beside = Some(beside.unwrap_or(late).max(late));
                }
            }
        }
        if !shares {
            return Err(Apart::Unrelated);
        }
        let (late, early) = depends.unwrap_or_else(|| (beside.unwrap_or(0), beside.unwrap_or(0)));
        let late = (late + unit - 1).div_euclid(unit) * unit;
        Ok(Lag { late, early: early.min(late).div_euclid(unit) * unit, unit })
    }
}

/// The rows of a nest's arrays, each once.
fn spans(stage: &Stage, nest: u32, arrays: &[u32], ways: &[Option<Rows>]) -> Vec<Span> {
    let slots = stage.kernel.slots.iter().zip(arrays).zip(ways);
    let known = slots.filter(|((_, array), _)| **array != NO_ARRAY);
    let mut spans: Vec<Span> = known
        .filter_map(|((slot, &array), way)| way.map(|rows| Span { array, nest, write: slot.mode.writes(), rows }))
        .collect();
    spans.sort_unstable();
    spans.dedup();
    spans
}

/// The greatest common divisor of numbers that are not negative.
pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn lcm(a: i64, b: i64) -> i64 {
    (a / gcd(a, b)).saturating_mul(b).min(1 << 40)
}
