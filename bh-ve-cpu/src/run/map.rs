//! Stages without folds: planes of lines, or the blocks of all lines, shared out in runs.

use super::cursor::Level;
use super::frame::{Folding, Frame};
use super::margin;
use super::queue::part;
use super::scratch::{Parts, Scratch};
use super::{Binding, Workers};
use crate::primitives::Primitives;
use crate::program::Program;
use bh_jit_abi::ROW_SETS;
use std::ops::Range;

/// So many units should each participant have.
const UNITS: i64 = 8;

/// What lines use before their margins are copied fits second-level caches.
const MARGIN_BYTES: i64 = 192 << 10;

/// Runs some iterations of the outermost loop on one participant, with slots that begin at `slots`.
///
/// # Safety
/// As [`super::run`]; nobody else runs these iterations.
pub(super) unsafe fn run_part(
    program: &Program,
    level: &Level,
    binding: &Binding,
    slots: &[*mut u8],
    primitives: Primitives,
    scratch: Parts<'_>,
    iterations: Range<i64>,
) {
    let geometry = &program.geometry;
    let mut frame = Frame::new(program, binding, primitives, scratch.frame, geometry.block());
    let (line, index) = (&mut scratch.positions[0], &mut scratch.indices[0]);
    line.resize(program.slots.len(), std::ptr::null_mut());
    // SAFETY: the iterations are inside the nest.
    unsafe {
        if geometry.line_dim == 0 {
            frame.lines(slots, 1, iterations.start, iterations.end - iterations.start, Folding::None);
        } else {
            let lines = level.count() / geometry.extents[0];
            level.seek(iterations.start * lines, &program.slots, slots, line, index);
            planes(&mut frame, level, (line, index), (iterations.end - iterations.start) * lines);
        }
    }
    frame.finish();
}

/// Runs whole lines, in planes: from the position and index of the first one on.
///
/// # Safety
/// The lines must be inside the nest, and nobody else may run them.
unsafe fn planes(frame: &mut Frame<'_>, level: &Level, at: (&mut [*mut u8], &mut [i64]), lines: i64) {
    let (program, (line, index)) = (frame.program, at);
    let most = if program.margins.is_empty() { i64::MAX } else { program.lines_of_margins(MARGIN_BYTES) };
    let mut left = lines;
    while left > 0 {
        let together = level.ahead(index).min(left).min(most);
        margin::fetch(program, line, together);
        // SAFETY: promised by the caller.
        unsafe {
            frame.lines(line, together, 0, program.geometry.line, Folding::None);
            margin::copy(program, line, together);
        }
        left -= together;
        if left > 0 {
            level.skip(together, &program.slots, line, index);
        }
    }
}

/// How the iterations of a map are shared out: a unit is a block, a line or a few lines.
struct Shares {
    units: i64,
    tasks: i64,
    /// Lines of a unit; 0 if it is a block.
    lines: i64,
    /// Tiles of the second dimension, if there are several: a unit is a tile's lines in one iteration of the first.
    tiles: Option<Tiles>,
}

/// The lines of an iteration of the first dimension, and of a tile.
struct Tiles {
    outer: i64,
    tile: i64,
    /// Iterations of the first dimension.
    count: i64,
}

impl Tiles {
    fn new(program: &Program, level: &Level) -> Option<Tiles> {
        let (count, lines) = (program.geometry.extents[0], level.count());
        let outer = lines / count.max(1);
        let inner = outer / program.geometry.extents.get(1)?.max(&1);
        Some(Tiles { outer, tile: program.tile? * inner, count })
    }

    fn units(&self) -> i64 {
        self.count * ((self.outer + self.tile - 1) / self.tile)
    }

    /// The lines of a unit: all iterations of the first dimension come before the next tile.
    fn lines(&self, unit: i64) -> Range<i64> {
        let (first, from) = (unit % self.count * self.outer, unit / self.count * self.tile);
        first + from..first + (from + self.tile).min(self.outer)
    }
}

impl Shares {
    fn new(program: &Program, level: &Level, workers: &Workers, participants: usize) -> Shares {
        let (lines, blocks) = (level.count(), program.geometry.blocks());
        if let Some(tiles) = Tiles::new(program, level) {
            let units = tiles.units();
            let tasks = workers.tasks(participants, program.work(), units);
            return Shares { units, tasks, lines: 1, tiles: Some(tiles) };
        }
        let wanted = participants as i64 * UNITS;
        let per_unit =
            [ROW_SETS as i64, 1].into_iter().find(|&per_unit| participants == 1 || lines >= wanted * per_unit);
        let units = per_unit.map_or(lines * blocks, |per_unit| (lines + per_unit - 1) / per_unit);
        let tasks = workers.tasks(participants, program.work(), units);
        Shares { units, tasks, lines: per_unit.unwrap_or(0), tiles: None }
    }
}

/// # Safety
/// As [`super::run`].
pub(super) unsafe fn run(
    program: &Program,
    level: &Level,
    binding: &Binding,
    primitives: Primitives,
    workers: &mut Workers,
) {
    let geometry = &program.geometry;
    if geometry.iterations() == 0 {
        return;
    }
    let (lines, blocks) = (level.count(), geometry.blocks());
    let participants = workers.participants(program.work());
    let shares = Shares::new(program, level, workers, participants);
    workers.run(participants, shares.tasks as usize, |scratch, tasks| {
        let Scratch { frame: parts, positions, indices, .. } = scratch;
        let mut frame = Frame::new(program, binding, primitives, parts, geometry.block());
        let (line, index) = (&mut positions[0], &mut indices[0]);
        line.resize(program.slots.len(), std::ptr::null_mut());
        while let Some(task) = tasks.take() {
            let units = part(shares.units, shares.tasks, task as i64);
            // SAFETY: blocks are inside their lines, and lines inside the nest.
            unsafe {
                if let Some(tiles) = &shares.tiles {
                    for unit in units {
                        let lines = tiles.lines(unit);
                        level.seek(lines.start, &program.slots, &binding.slots, line, index);
                        planes(&mut frame, level, (line, index), lines.end - lines.start);
                    }
                    continue;
                }
                if shares.lines > 0 {
                    let (first, end) = (units.start * shares.lines, (units.end * shares.lines).min(lines));
                    level.seek(first, &program.slots, &binding.slots, line, index);
                    planes(&mut frame, level, (line, index), end - first);
                    continue;
                }
                let mut at = units.start;
                level.seek(at / blocks, &program.slots, &binding.slots, line, index);
                while at < units.end {
                    let block = at % blocks;
                    let last = (block + units.end - at).min(blocks);
                    let first = block * geometry.step;
                    let steps = geometry.line.min(last * geometry.step) - first;
                    frame.lines(line, 1, first, steps, Folding::None);
                    if first == 0 {
                        margin::copy(program, line, 1);
                    }
                    at += last - block;
                    if at < units.end {
                        level.next(&program.slots, line, index);
                    }
                }
            }
        }
        frame.finish();
    });
}
