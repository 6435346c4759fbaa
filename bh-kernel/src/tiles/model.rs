//! The costs of a tiling, and the sizes that cost least: bytes to and from memory, bytes within the caches, calls. Counts only.

use super::chain::Chain;
use super::draft::{self, Draft, Manner};
use super::{Model, TileOptions};
use crate::tiling::Tiling;
use crate::window::SlidingWindows;

/// The cost of an addition of a byte; all costs are in bytes between a kernel and the nearest large cache.
const ARITHMETIC: f64 = 0.1;
/// The cost of a byte to or from memory for one thread, and more for each other one, as threads share the memory.
const MEMORY: f64 = 3.0;
const SHARED: f64 = 0.3;
/// The cost of a byte of a row that is read again after it has left the nearest large cache, or, in two dimensions, the
/// small one, and the divisor of the small one for rows that are read.
const AGAIN: f64 = 3.0;
const NEAR: f64 = 1.0;
const SMALL_PART: i64 = 2;
/// The costs of a byte of a row that moves, of a call for a nest's part of a strip, and of a line of that.
const MOVE: f64 = 5.5;
const CALL: f64 = 4000.0;
const LINE: f64 = 600.0;
/// Tiles for each thread: a late thread leaves tiles to the others.
const TILES: i64 = 4;
/// Chains that cost more than this part of their kernels' cost one by one, or in windows, are no tiling.
pub(super) const LEAST_GAIN: f64 = 0.8;
/// A longer chain must gain this part more.
pub(super) const MORE_GAIN: f64 = 0.01;
/// This many kernels may follow that gain nothing before the search ends.
pub(super) const LATER: usize = 16;
/// The most rows of a strip: longer calls gain nothing.
const MOST_STRIP: i64 = 64;
/// Bytes of a line of the caches.
const LINE_BYTES: i64 = 64;
/// The fewest bytes of a tile's row.
const LEAST_ROW: i64 = 256;

/// Sizes of tiles, and their cost.
pub(super) struct Size {
    pub(super) tile: [i64; 3],
    pub(super) strip: i64,
    pub(super) cost: f64,
    pub(super) bytes: u64,
    pub(super) in_use: u64,
}

/// A length of a chain: its kernels, the block behind it, its cost, and the cost of its kernels otherwise.
pub(super) struct Length {
    pub(super) kernels: u32,
    pub(super) end: u32,
    pub(super) cost: f64,
    pub(super) plain: f64,
}

/// The first of the chains that all kernels of the last length are best cut into. A later chain costs as much as one of equally
/// many kernels at the beginning: they are iterations of a loop.
pub(super) fn shared(lengths: &[Length]) -> Option<usize> {
    let all = lengths.last()?.kernels as usize;
    let mut least: Vec<(f64, usize)> = vec![(0.0, 0)];
    for kernels in 1..=all {
        // The remaining kernels are fewer than a chain.
        let mut best = (f64::INFINITY, 0);
        for (index, length) in lengths.iter().enumerate().take_while(|(_, length)| length.kernels as usize <= kernels) {
            let cost = length.cost.min(length.plain) + least[kernels - length.kernels as usize].0;
            if cost <= best.0 {
                best = (cost, index);
            }
        }
        let single = lengths[0].plain / f64::from(lengths[0].kernels);
        least.push(if best.0.is_finite() { best } else { (single * kernels as f64, 0) });
    }
    least.last().map(|(_, index)| *index)
}

/// The costs of the blocks of a chain without tiles.
#[derive(Clone, Copy)]
pub(super) struct Running<'a> {
    options: &'a TileOptions,
    windows: &'a SlidingWindows,
    cost: f64,
    bytes: u64,
    nests: usize,
}

impl<'a> Running<'a> {
    pub(super) fn new(options: &'a TileOptions, windows: &'a SlidingWindows) -> Running<'a> {
        Running { options, windows, cost: 0.0, bytes: 0, nests: 0 }
    }
}

impl Model for Running<'_> {
    const MANNER: Manner = Manner::Thread;

    fn plain(&self) -> (f64, u64) {
        (self.cost, self.bytes)
    }

    fn size(&self, _: &Chain<'_>, draft: &Draft) -> Option<Size> {
        size(draft, self.options)
    }

    fn least(&self, _: &Chain<'_>, draft: &Draft) -> Option<Size> {
        Some(least(draft, self.options))
    }

    /// Arrays that a large cache holds are not read from memory at all.
    fn is_large(&self, chain: &Chain<'_>) -> bool {
        chain.bytes() > self.options.bytes as u64
    }

    /// The window that it runs in otherwise.
    fn beside(&self, block: u32) -> u64 {
        self.windows.of(block).map_or(0, |window| 1 + 2 * share(window) + u64::from(is_joined(window)))
    }

    /// Adds the cost of a chain's last block on its own, or in its window.
    fn block(&mut self, chain: &Chain<'_>) {
        let (options, windows) = (self.options, self.windows);
        let block = chain.end - 1;
        let window = windows.of(block);
        let nests = &chain.nests[self.nests..];
        let own = nests.iter().map(|nest| draft::bytes(chain, nest)).fold(0, u64::saturating_add);
        let arithmetic: u64 =
            nests.iter().map(|nest| draft::arithmetic(nest, Manner::Thread)).fold(0, u64::saturating_add);
        let moved = window.map_or(own, |window| share(window).min(own));
        self.bytes += own;
        // Nests that run as one find each other's values in registers or in the small cache.
        let joined = window.is_some_and(is_joined);
        let (mut far, mut near) = (0, 0);
        for nest in nests {
            let rows = draft::rows(chain, nest);
            let again = rows.again.saturating_mul(nest.stage.parameters.iterations());
            // A window's rows fit the large cache.
            match rows.bytes {
                bytes if bytes > options.bytes && window.is_none() => far += again,
                bytes if bytes > small(options) && nest.stage.parameters.extents.len() == 2 && !joined => near += again,
                _ => {}
            }
        }
        self.cost += moved as f64 * memory(options)
            + far as f64 * AGAIN
            + own as f64
            + near as f64 * NEAR
            + arithmetic as f64 * ARITHMETIC;
        self.nests = chain.nests.len();
    }
}

/// Bytes to and from memory of a block of a window.
fn share(window: &Tiling) -> u64 {
    window.bytes / window.blocks.len().max(1) as u64
}

/// Do most nests of a window run as one with others?
fn is_joined(window: &Tiling) -> bool {
    let joined = window.turns.iter().filter(|turn| turn.joined.is_some());
    2 * joined.map(|turn| turn.nests.len()).sum::<usize>() > window.nests.len()
}

/// The cost of a byte to or from memory.
fn memory(options: &TileOptions) -> f64 {
    MEMORY + SHARED * (options.threads - 1) as f64
}

/// Bytes of rows that stay in the small cache while they are read.
fn small(options: &TileOptions) -> i64 {
    options.small / SMALL_PART
}

/// The sizes of tiles that cost least; `None` if no rows in use fit.
fn size(draft: &Draft, options: &TileOptions) -> Option<Size> {
    let columns = draft.area[1].end - draft.area[1].start;
    let mut best: Option<Size> = None;
    let mut width = columns;
    loop {
        // Columns of several elements are few in a tile, so that half as many are much fewer.
        let between = if least_column(draft) < LINE_BYTES { width } else { (width * 3 + 3) / 4 };
        for width in [width, between] {
            if let Some(size) = of_width(draft, options, width)
                && best.as_ref().is_none_or(|known| size.cost < known.cost)
            {
                best = Some(size);
            }
        }
        // Whole lines of the caches, where columns are elements.
        let next = (width / 2 + 7) / 8 * 8;
        let next = if least_column(draft) < LINE_BYTES { next } else { width / 2 };
        if width * least_column(draft) <= LEAST_ROW || next >= width || next == 0 {
            return best;
        }
        width = next;
    }
}

/// Small tiles, whether their rows fit or not.
fn least(draft: &Draft, options: &TileOptions) -> Size {
    let columns = draft.area[1].end - draft.area[1].start;
    let width = (LEAST_ROW / least_column(draft)).clamp(1, columns.max(1));
    let unlimited = TileOptions { bytes: i64::MAX / 2, ..*options };
    of_width(draft, &unlimited, width).unwrap_or_else(|| unreachable!("everything fits"))
}

/// Bytes of the smallest column.
fn least_column(draft: &Draft) -> i64 {
    draft.columns.iter().map(|(column, size)| column * size).min().unwrap_or(1)
}

/// The sizes and the cost of a tiling with tiles of this many columns.
fn of_width(draft: &Draft, options: &TileOptions, width: i64) -> Option<Size> {
    let (rows, columns) = (draft.area[0].end - draft.area[0].start, draft.area[1].end - draft.area[1].start);
    // Bytes of a row in use, and of those that are kept.
    let (mut each, mut kept, mut moved) = (0, 0, 0);
    for (array, used) in draft.uses.iter().enumerate() {
        let Some(used) = used else { continue };
        let row = draft.pitch(array, width).saturating_mul(draft.columns[array].1);
        each += row;
        kept += row.saturating_mul(used.kept);
        moved += if draft.in_rows(array) { row.saturating_mul(used.kept) } else { 0 };
    }
    let rings = draft.rings();
    let strip = ((options.bytes - kept) / each.max(1)).min(if rings { 1 } else { MOST_STRIP });
    if strip < 1 {
        return None;
    }
    let across = (columns + width - 1) / width;
    let most = draft.nests.iter().map(|nest| nest.reach[0].extra()).max().unwrap_or(0);
    let parts = (TILES * options.threads + across - 1) / across;
    let height = ((rows + parts - 1) / parts.max(1)).max(4 * most).clamp(1, rows.max(1));
    let more = |extra: i64, own: i64| 1.0 + extra as f64 / own.max(1) as f64;
    let (mut cached, mut calls) = (0.0, 0.0);
    for nest in &draft.nests {
        let area = (nest.extents[0] * nest.extents[1]) as f64;
        let again = more(nest.reach[0].extra(), height) * more(nest.reach[1].extra(), width);
        let near =
            if nest.flat && nest.rows.bytes / columns.max(1) * width > small(options) { nest.rows.again } else { 0 };
        let each = nest.bytes as f64 + near as f64 * NEAR + nest.arithmetic as f64 * ARITHMETIC;
        cached += area * each * again;
        let lines = if nest.flat { 1.0 } else { (nest.extents[1].min(width) * nest.inner) as f64 / 64.0 };
        let strips = nest.extents[0] as f64 / strip as f64 * (nest.extents[1] as f64 / width as f64).ceil();
        calls += strips * (CALL + LINE * lines * strip.min(nest.extents[0]) as f64);
    }
    let tiles = ((rows + height - 1) / height * across) as f64;
    let strips = tiles * (height as f64 / strip as f64).max(1.0);
    let bytes = draft.memory_bytes([height, width, 1]);
    let kernels = cached + calls + if rings { 0.0 } else { strips * moved as f64 * MOVE };
    // Threads without a tile wait for the others.
    let threads = options.threads as f64;
    let idle = (tiles / threads).ceil() * threads / tiles;
    let cost = (bytes * memory(options) + kernels) * idle;
    Some(Size { tile: [height, width, 1], strip, cost, bytes: bytes as u64, in_use: (kept + each * strip) as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths of one kernel after the other, with these costs; each kernel costs 10 otherwise.
    fn lengths(costs: &[f64]) -> Vec<Length> {
        (1..)
            .zip(costs)
            .map(|(kernels, &cost)| Length { kernels, end: kernels, cost, plain: f64::from(kernels) * 10.0 })
            .collect()
    }

    #[test]
    fn what_a_chain_leaves_over_counts() {
        // Three kernels cost the least part, but two and two less than three and one.
        assert_eq!(shared(&lengths(&[10.0, 14.0, 19.0, 29.0])), Some(1));
        // One chain of all is best where a longer one costs little more.
        assert_eq!(shared(&lengths(&[10.0, 14.0, 18.0, 22.0])), Some(3));
    }
}
