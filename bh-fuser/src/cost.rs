//! Cost models: what a partition costs, as a sum over its kernels and the bases that each of them touches.
//!
//! A model that is *monotone* never makes a partition dearer by fusing two of its blocks, which `optimal` relies on.

use crate::facts::{Facts, NONE};
use crate::legality::Entry;
use crate::options::Options;
use bh_bytecode::{BatchRef, base_flags};

/// A cost model.
#[derive(Debug)]
pub struct CostModel {
    /// Its name in configurations.
    pub name: &'static str,
    /// Does fusing never raise the cost?
    pub monotone: bool,
    /// Does a base that becomes an alias of a fresh buffer cost nothing in a finished partition?
    pub free_aliases: bool,
    /// The cost of one kernel's accesses to one base: facts, batch, base, accesses, contracted, renamed.
    pub base: fn(&Facts, &BatchRef<'_>, u32, &[Entry], bool, bool) -> i64,
    /// The cost of a kernel as such.
    pub kernel: fn(&Options) -> i64,
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

/// Outputs of at least this many bytes are written with streaming stores, which fill no cache lines.
const STREAMED_BYTES: u64 = 4 << 20;

fn no_cost(_: &Options) -> i64 {
    0
}

fn kernel_start(options: &Options) -> i64 {
    options.kernel_bytes
}

fn unique_views(facts: &Facts, _: &BatchRef<'_>, _: u32, group: &[Entry], contracted: bool, _: bool) -> i64 {
    if contracted { 0 } else { group.iter().map(|entry| facts.views[entry.view as usize].bytes as i64).sum() }
}

fn max_contraction(_: &Facts, batch: &BatchRef<'_>, base: u32, _: &[Entry], contracted: bool, _: bool) -> i64 {
    let base = &batch.bases[base as usize];
    let temporary = base.has(base_flags::BORN) && base.has(base_flags::DIES);
    if temporary && !contracted { base.bytes() as i64 } else { 0 }
}

fn traffic(facts: &Facts, batch: &BatchRef<'_>, base: u32, group: &[Entry], contracted: bool, renamed: bool) -> i64 {
    if contracted {
        return 0;
    }
    let size = batch.bases[base as usize].dtype().size() as u64;
    let (mut read, mut written, mut filled) = (0u64, 0u64, 0u64);
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for entry in group {
        let view = &facts.views[entry.view as usize];
        let reads_first = entry.first_read != NONE && entry.first_read <= entry.first_write;
        if reads_first {
            read += view.bytes;
            (low, high) = (low.min(view.low), high.max(view.high));
        }
        if entry.first_write != NONE {
            written += view.bytes;
            if !reads_first && view.bytes < STREAMED_BYTES {
                filled += view.bytes;
            }
        }
    }
    // Overlapping reads (a stencil's neighbours) fetch each line once.
    if high >= low {
        read = read.min((high - low + 1) as u64 * size);
    }
    let copied = if renamed { 2 * batch.bases[base as usize].bytes().saturating_sub(written) } else { 0 };
    (read + written + filled + copied) as i64
}
