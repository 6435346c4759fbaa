//! Sliding windows: kernels of a chain that read each other's results at shifted places run in lock-step over their outermost
//! loops. Each lags behind the kernels that it depends on by as many rows as their views demand, so that it reads rows while
//! they are in the cache. Arrays that are born and die in the chain exist as a few rows only.
//!
//! The rule knows views only. Every array of a chain is cut into *rows* of one pitch, and every nest advances one row of
//! every written array it touches at each *position* of its outermost loop. Between two nests that touch an array which
//! one of them writes, the rows give an interval of distances between the positions that depend on each other. From the
//! intervals follow, for each nest, two numbers: how far it stays behind the front of the window (`late`), and, where the
//! window begins in the middle of the arrays, how far it must keep away from the rows before (`early`). Chunks of the
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
//! Nests that do not fit, such as epilogues of these folds, run at the end of the window if no later nest of the chain depends
//! on them.

mod chain;
mod finish;
mod lockstep;
mod rows;
mod share;
#[cfg(test)]
mod tests;
mod union;

use crate::effort::Effort;
use crate::survey::Survey;
use crate::tiling::Tiling;
use bh_bytecode::BatchRef;
use chain::Chain;
pub(crate) use chain::gcd;
use std::ops::Range;

/// Options of an engine for windows.
#[derive(Clone, Copy, Debug)]
pub struct WindowOptions {
    /// Bytes of rows that a window may have in use at once: the size of the nearest large cache.
    pub bytes: i64,
    /// Do small arrays stand for large ones? A window never parts the iterations that belong to one partial result of a stage's
    /// reductions, of which small arrays have too few; then each iteration has one.
    pub stand_ins: bool,
}

/// Why a block begins no window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// It, or the next, has an algorithm of its own, or gathers.
    Special,
    /// It shares no array with the next kernels.
    Unrelated,
    /// The next kernels read or write rows of its arrays at no bounded distance, or in another pitch.
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
    pub found: Vec<Tiling>,
    /// Blocks that begin no window though others follow, and why.
    pub apart: Vec<(u32, Apart)>,
}

impl SlidingWindows {
    /// The window that a block runs in.
    pub fn of(&self, block: u32) -> Option<&Tiling> {
        let behind = self.found.partition_point(|window| window.blocks.end <= block);
        self.found.get(behind).filter(|window| window.blocks.contains(&block))
    }
}

/// Steps of the search for windows, accesses and arrays of chains, for each instruction of a batch, and at least.
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
) -> Result<Tiling, Apart> {
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

/// Do the arrays not fit the caches?
fn worthwhile(batch: &BatchRef<'_>, bytes: i64) -> bool {
    crate::footprint(batch) > bytes as u64
}
