//! SlidingWindows: chains of kernels that read at shifted places what others of the chain write run in lock-step over their
//! outermost loops, each lagging behind those it depends on by as much as their views demand, so that what one writes
//! is read while it is in the cache, and arrays that are born and die in the chain exist as a few rows only.
//!
//! The rule knows views only. Every array of a chain is cut into *rows* of one pitch, and every nest advances one row of
//! every written array it touches at each *position* of its outermost loop. Between two nests that touch an array which
//! one of them writes, the rows give an interval of distances between the positions that depend on each other. From the
//! intervals follow, for each nest, two numbers: how far it stays behind the front of the window (`late`), and, where the
//! window begins in the middle of the arrays, how far it must keep away from what lies before (`early`). Chunks of the
//! positions can then run at the same time: within a chunk, nest `k` runs from `begin - early` to `end - late`, which
//! asks for nothing outside of the chunk; afterwards the gaps between chunks run, nest by nest. Every position runs
//! once, after everything that it depends on, so that results are those of the plain order, bit by bit.
//!
//! A base that is renamed is a new array from there on, so that a chain may hold several time steps.
//!
//! Within a strip, nests that do the same columns may run as one (see `lockstep`).
//!
//! A fold of rows takes part: its results are rows of one element, or of those that the other axes keep, complete as soon
//! as the position that they belong to has run. Folds of the outermost loop have their results at the end of the window.
//!
//! Nests that do not fit (epilogues of such folds, for one) are put off until the end of the window if no later nest of
//! the chain depends on them.

mod chain;
mod effort;
mod finish;
mod lockstep;
mod rows;
mod share;
#[cfg(test)]
mod tests;
mod union;

use crate::kernel::Stage;
use crate::survey::Survey;
use bh_bytecode::{BatchRef, DType};
use chain::Chain;
pub(crate) use chain::gcd;
use effort::Effort;
pub use lockstep::Turn;
pub use rows::Steps;
use std::ops::Range;

/// What an engine wants of windows.
#[derive(Clone, Copy, Debug)]
pub struct WindowOptions {
    /// Bytes of rows that a window may have in use at once: what the nearest large cache holds.
    pub bytes: i64,
    /// Do small arrays stand for large ones? A window never parts the iterations that belong to one partial result of a stage's
    /// reductions, of which small arrays have too few; then each iteration has one.
    pub stand_ins: bool,
}

/// Where an array of a window lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In the buffer of its base.
    Base,
    /// In the fresh buffer of its base, which is renamed at the end.
    Fresh,
    /// A few rows at a time, in a buffer of the window. `first` is the first row, seen from the front of the window, and
    /// `end` is the number of rows behind the strip at the front; between chunks, the rows from `gap.0` up to `gap.1`, seen
    /// from the border, are needed after both chunks have run. An array that no nest uses lies in another one's place.
    Rolling {
        /// First row, from the front.
        first: i64,
        /// One past the last row, from the end of the strip at the front.
        end: i64,
        /// The rows that a gap needs, from the border.
        gap: (i64, i64),
        /// Does every slot lie in one row at each position, so that rows need not follow each other in memory? Nests
        /// that fold their outermost loop, and so need several positions at once, do not use it either.
        apart: bool,
    },
    /// A temporary of a block.
    Temporary {
        /// The block.
        block: u32,
        /// Its number there.
        number: u16,
    },
}

/// An array of a window: a version of a base, or a temporary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingArray {
    /// The base, or `NO_BASE` of temporaries and of values that one nest of the window makes for another.
    pub base: u32,
    /// Element type.
    pub dtype: DType,
    /// Elements of a row.
    pub pitch: i64,
    /// Where it lives.
    pub home: Home,
}

/// The array of a slot that addresses no memory.
pub const NO_ARRAY: u32 = u32::MAX;

/// A nest of a window.
#[derive(Clone, Debug)]
pub struct SlidingNest {
    /// The block that it belongs to.
    pub block: u32,
    /// The nest.
    pub stage: Stage,
    /// The array of each slot, or [`NO_ARRAY`].
    pub arrays: Vec<u32>,
    /// The positions of its outermost loop.
    pub steps: Steps,
    /// At time `t` the nest has run its positions below `t - late`.
    pub late: i64,
    /// In a chunk that begins at time `t` it starts at position `t - early`.
    pub early: i64,
    /// For each array that it writes: the row that it writes at position 0.
    pub writes: Vec<(u32, i64)>,
    /// The first row of each slot at position 0; 0 of slots that do not go through rows.
    pub rows: Vec<i64>,
}

/// A nest that runs after the window.
#[derive(Clone, Debug)]
pub struct LateNest {
    /// The block that it belongs to.
    pub block: u32,
    /// The nest.
    pub stage: Stage,
    /// The array of each slot, or [`NO_ARRAY`].
    pub arrays: Vec<u32>,
}

/// A rename that takes effect at the end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingRename {
    /// The base.
    pub base: u32,
    /// The base that becomes an alias of a view of it.
    pub alias: Option<(u32, u32)>,
}

/// A chain of kernels that run in lock-step.
#[derive(Clone, Debug)]
pub struct SlidingWindow {
    /// The blocks of the partition that it carries out.
    pub blocks: Range<u32>,
    /// What runs in lock-step, in order.
    pub nests: Vec<SlidingNest>,
    /// The order in which each strip runs them; between chunks they run one by one.
    pub turns: Vec<Turn>,
    /// What runs afterwards, in order.
    pub after: Vec<LateNest>,
    /// The arrays.
    pub arrays: Vec<SlidingArray>,
    /// Renames, in order.
    pub renames: Vec<SlidingRename>,
    /// The first and one past the last time.
    pub time: Range<i64>,
    /// Times of a strip, which all nests run before the next: as many as keep the rows in the cache.
    pub strip: i64,
    /// Where the chunks begin: the first at the start; one entry more than there are chunks.
    pub borders: Vec<i64>,
    /// Bytes to and from memory in the plain order, each array counted once per kernel that reads it and once per kernel
    /// that writes it.
    pub plain_bytes: u64,
    /// The same for the window: each array that lives in memory counts once if it is read and once if it is written.
    pub bytes: u64,
}

/// Why a block begins no window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// It, or the next, has an algorithm of its own, or gathers.
    Special,
    /// It shares no array with what follows.
    Unrelated,
    /// What follows reads or writes rows of its arrays in no bounded distance, or in another pitch.
    Unbounded,
    /// The rows in use would not fit the cache.
    Rows,
    /// A window would save too little.
    Gain,
    /// Looking for more windows would cost more than it is likely to save.
    Effort,
}

impl Apart {
    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            Apart::Special => "one of them has an algorithm of its own",
            Apart::Unrelated => "they have no array in common",
            Apart::Unbounded => "one needs rows of the other's arrays at no bounded distance",
            Apart::Rows => "the rows in use at once would not fit the cache",
            Apart::Gain => "it would save too little",
            Apart::Effort => "looking for more windows in so long a batch would cost too much",
        }
    }
}

/// The windows of a batch.
#[derive(Clone, Debug, Default)]
pub struct SlidingWindows {
    /// In order; their blocks do not overlap. Blocks in none run as usual.
    pub found: Vec<SlidingWindow>,
    /// Blocks that begin no window though others follow, and why.
    pub apart: Vec<(u32, Apart)>,
}

impl SlidingWindows {
    /// The window that a block runs in.
    pub fn of(&self, block: u32) -> Option<&SlidingWindow> {
        let behind = self.found.partition_point(|window| window.blocks.end <= block);
        self.found.get(behind).filter(|window| window.blocks.contains(&block))
    }
}

/// What the search for windows may look at, accesses and arrays of chains, for each instruction of a batch and in any case.
const EFFORT: usize = 200;
const LEAST_EFFORT: usize = 20_000;

/// The windows of a batch beside these blocks, which are in order.
pub fn windows(survey: &Survey<'_>, options: &WindowOptions, taken: &[Range<u32>]) -> SlidingWindows {
    let (mut windows, batch) = (SlidingWindows::default(), survey.batch);
    let blocks = batch.blocks.len() as u32;
    if blocks < 2 || !worthwhile(batch, options.bytes) {
        return windows;
    }
    let mut first = 0;
    let effort = Effort::new(EFFORT * batch.instrs.len() + LEAST_EFFORT);
    while first + 1 < blocks {
        if effort.spent() {
            windows.apart.push((first, Apart::Effort));
            break;
        }
        let next = taken.iter().find(|taken| first < taken.end);
        if let Some(next) = next.filter(|next| next.contains(&first)) {
            first = next.end;
            continue;
        }
        let limit = next.map_or(blocks, |next| next.start);
        let outcome = longest(survey, options, first, limit, &effort);
        first = match outcome {
            Ok(window) => {
                let end = window.blocks.end;
                windows.found.push(window);
                end
            }
            Err(reason) => {
                if survey.computes(first) {
                    windows.apart.push((first, reason));
                }
                first + 1
            }
        };
    }
    windows
}

/// The longest window from block `first` on that ends before block `limit`.
fn longest(
    survey: &Survey<'_>,
    options: &WindowOptions,
    first: u32,
    limit: u32,
    effort: &Effort,
) -> Result<SlidingWindow, Apart> {
    let mut end = limit;
    loop {
        let mut chain = Chain::new(survey, options, first, effort);
        let extended = chain.extend(end);
        match extended.and_then(|()| finish::finish(chain, options)) {
            Err(block) if block > first && block < end && !effort.spent() => end = block,
            Err(_) => return Err(Apart::Rows),
            // A chain that was cut until nothing was left.
            Ok(Err(_)) if end < limit => return Err(Apart::Rows),
            Ok(outcome) => return outcome,
        }
    }
}

/// Do the arrays pass what the caches hold anyway?
fn worthwhile(batch: &BatchRef<'_>, bytes: i64) -> bool {
    crate::footprint(batch) > bytes as u64
}
