//! Cost models: what a partition costs, as a sum over its kernels and the bases that each of them touches.
//!
//! A model that is *monotone* never makes a partition dearer by fusing two of its blocks, which `optimal` relies on.

use crate::entry::Entry;
use crate::facts::{Facts, NONE};
use bh_bytecode::{Base, base_flags};
use bh_core::machine::STREAM_BYTES;

/// Bytes and accesses of one base in a kernel, added up over the views that it uses.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    /// Bytes of the distinct views.
    pub views: u64,
    /// Bytes of the views that are read before they are written.
    pub read: u64,
    /// Bytes of the views that are written.
    pub written: u64,
    /// Bytes of the written views whose cache lines are filled first.
    pub filled: u64,
    /// Lowest offset of what is read before it is written.
    pub low: i64,
    /// Highest offset of it; below `low` if nothing is.
    pub high: i64,
}

impl Default for Sums {
    fn default() -> Sums {
        Sums { views: 0, read: 0, written: 0, filled: 0, low: i64::MAX, high: i64::MIN }
    }
}

impl Sums {
    /// The sums of accesses to distinct views of one base.
    pub fn of(facts: &Facts, group: &[Entry]) -> Sums {
        group.iter().fold(Sums::default(), |sums, entry| sums.with(&Sums::of_one(facts, entry)))
    }

    /// The sums of one view's accesses.
    pub fn of_one(facts: &Facts, entry: &Entry) -> Sums {
        let view = &facts.views[entry.view as usize];
        let mut sums = Sums { views: view.bytes, ..Sums::default() };
        let reads_first = entry.reads_first();
        if reads_first {
            sums.read = view.bytes;
            (sums.low, sums.high) = (view.low, view.high);
        }
        if entry.first_write != NONE {
            sums.written = view.bytes;
            if !reads_first && view.bytes < STREAM_BYTES {
                sums.filled = view.bytes;
            }
        }
        sums
    }

    /// Both together, of distinct views.
    pub fn with(&self, other: &Sums) -> Sums {
        Sums {
            views: self.views + other.views,
            read: self.read + other.read,
            written: self.written + other.written,
            filled: self.filled + other.filled,
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    /// Without a view that is part of it. The range of what is read stays, which may be more than is left.
    pub fn without(&self, other: &Sums) -> Sums {
        Sums {
            views: self.views - other.views,
            read: self.read - other.read,
            written: self.written - other.written,
            filled: self.filled - other.filled,
            ..*self
        }
    }
}

/// A cost model.
#[derive(Debug)]
pub struct CostModel {
    /// Its name in configurations.
    pub name: &'static str,
    /// Does fusing never raise the cost?
    pub monotone: bool,
    /// Does a base that becomes an alias of a fresh buffer cost nothing in a finished partition?
    pub free_aliases: bool,
    /// The cost of one kernel's accesses to one base: base, accesses, contracted, renamed.
    pub base: fn(&Base, &Sums, bool, bool) -> i64,
    /// The cost of a kernel as such, given what starting one costs in bytes of memory traffic.
    pub kernel: fn(i64) -> i64,
}

/// Names and values of the models.
pub const MODELS: &[(&str, &CostModel)] =
    &[(UNIQUE_VIEWS.name, &UNIQUE_VIEWS), (MAX_CONTRACTION.name, &MAX_CONTRACTION), (TRAFFIC.name, &TRAFFIC)];

/// The paper's Definition 11: bytes of the distinct views of each kernel, contracted arrays left out.
pub static UNIQUE_VIEWS: CostModel =
    CostModel { name: "unique-views", monotone: true, free_aliases: false, base: unique_views, kernel: no_cost };

/// Bytes of temporaries that exist in memory, once for each kernel that touches them.
pub static MAX_CONTRACTION: CostModel =
    CostModel { name: "max-contraction", monotone: true, free_aliases: false, base: max_contraction, kernel: no_cost };

/// The bytes that cross the memory bus: what is read before it is written, what is written (with the line fill where
/// stores are not streamed), what renames copy, and the start of each kernel.
pub static TRAFFIC: CostModel =
    CostModel { name: "traffic", monotone: false, free_aliases: true, base: traffic, kernel: kernel_start };

fn no_cost(_: i64) -> i64 {
    0
}

fn kernel_start(bytes: i64) -> i64 {
    bytes
}

fn unique_views(_: &Base, sums: &Sums, contracted: bool, _: bool) -> i64 {
    if contracted { 0 } else { sums.views as i64 }
}

fn max_contraction(base: &Base, _: &Sums, contracted: bool, _: bool) -> i64 {
    let temporary = base.has(base_flags::BORN) && base.has(base_flags::DIES);
    if temporary && !contracted { base.bytes() as i64 } else { 0 }
}

fn traffic(base: &Base, sums: &Sums, contracted: bool, renamed: bool) -> i64 {
    if contracted {
        return 0;
    }
    let mut read = sums.read;
    // Overlapping reads (a stencil's neighbours) fetch each line once.
    if sums.high >= sums.low {
        read = read.min((sums.high - sums.low + 1) as u64 * base.dtype().size() as u64);
    }
    let copied = if renamed { 2 * base.bytes().saturating_sub(sums.written) } else { 0 };
    (read + sums.written + sums.filled + copied) as i64
}
