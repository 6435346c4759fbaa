//! Stages without folds: planes of lines, or the blocks of all lines, shared out in runs.

use super::queue::part;
use super::scratch::NestScratch;
use super::workers::Workers;
use crate::block::{BlockExecutor, Bound, Folding};
use bh_kernel::schedule::{LoopLevel, MapLoops, ROW_SETS};
use std::ops::Range;

/// Units that each participant should have.
const UNITS: i64 = 8;

/// One participant running lines of a nest whose slots begin at `slots`.
struct LineRunner<'a> {
    executor: BlockExecutor<'a>,
    level: &'a LoopLevel,
    slots: &'a [*mut u8],
    line: &'a mut Vec<*mut u8>,
    index: &'a mut Vec<i64>,
}

impl<'a> LineRunner<'a> {
    fn new(
        bound: Bound<'a>,
        level: &'a LoopLevel,
        slots: &'a [*mut u8],
        scratch: &'a mut NestScratch,
    ) -> LineRunner<'a> {
        let (line, index) = (&mut scratch.positions[0], &mut scratch.indices[0]);
        line.resize(bound.program.slots.len(), std::ptr::null_mut());
        LineRunner { executor: BlockExecutor::new(bound, &mut scratch.block), level, slots, line, index }
    }

    /// Runs whole lines, in planes.
    ///
    /// # Safety
    /// The lines must be inside the nest, counted from `self.slots`, and nobody else may run them.
    unsafe fn lines(&mut self, lines: Range<i64>) {
        let program = self.executor.program;
        self.level.seek(lines.start, &program.slots, self.slots, self.line, self.index);
        let mut left = lines.end - lines.start;
        while left > 0 {
            let together = self.level.ahead(self.index).min(left);
            // SAFETY: the lines from the position on are some of `lines`, inside the nest, and nobody else runs them,
            // as `# Safety` asks; there are no folds.
            unsafe {
                self.executor.lines(self.line, together, 0, program.schedule.lines().steps, Folding::None);
            }
            left -= together;
            if left > 0 {
                self.level.skip(together, &program.slots, self.line, self.index);
            }
        }
    }

    /// Runs blocks, counted through all lines.
    ///
    /// # Safety
    /// The blocks must be inside the nest, counted from `self.slots`, and nobody else may run them.
    unsafe fn blocks(&mut self, units: Range<i64>) {
        let program = self.executor.program;
        let (lines, blocks) = (program.schedule.lines(), program.schedule.lines().blocks());
        let mut at = units.start;
        self.level.seek(at / blocks, &program.slots, self.slots, self.line, self.index);
        while at < units.end {
            let block = at % blocks;
            let last = (block + units.end - at).min(blocks);
            let first = block * lines.block;
            let steps = lines.steps.min(last * lines.block) - first;
            // SAFETY: the steps of this line are those of some of `units`, inside the nest, and nobody else runs them,
            // as `# Safety` asks.
            unsafe { self.executor.lines(self.line, 1, first, steps, Folding::None) };
            at += last - block;
            if at < units.end {
                self.level.next(&program.slots, self.line, self.index);
            }
        }
    }
}

/// Runs some iterations of the outermost loop on one participant, with slots that begin at `slots`.
///
/// # Safety
/// The iterations must be inside the nest whose first one is at `slots`, and nobody else may run them.
pub(super) unsafe fn run_part(
    bound: Bound<'_>,
    map: &MapLoops,
    slots: &[*mut u8],
    scratch: &mut NestScratch,
    iterations: Range<i64>,
) {
    let mut runner = LineRunner::new(bound, &map.around, slots, scratch);
    // SAFETY: these are the steps or the lines of the iterations, which are inside the nest, and which nobody else
    // runs, as `# Safety` asks; there are no folds.
    unsafe {
        if map.around.0.is_empty() {
            let steps = iterations.end - iterations.start;
            runner.executor.lines(slots, 1, iterations.start, steps, Folding::None);
        } else {
            let lines = map.around.inner();
            runner.lines(iterations.start * lines..iterations.end * lines);
        }
    }
    runner.executor.finish();
}

/// Runs this many rows and columns, the iterations of the two outermost loops, of a nest of a tile, from where the slots are.
///
/// # Safety
/// The rows and columns from `slots` on must be inside the nest, and nobody else may run them.
pub(super) unsafe fn run_box(
    bound: Bound<'_>,
    map: &MapLoops,
    slots: &[*mut u8],
    scratch: &mut NestScratch,
    [rows, columns]: [i64; 2],
) {
    if map.around.0.len() == 1 {
        let mut executor = BlockExecutor::new(bound, &mut scratch.block);
        // SAFETY: the rows are lines and the columns their steps, which are inside the nest, and which nobody else
        // runs, as `# Safety` asks; there are no folds.
        unsafe { executor.lines(slots, rows, 0, columns, Folding::None) };
        return executor.finish();
    }
    let mut level = map.around.clone();
    (level.0[0].1, level.0[1].1) = (rows, columns);
    let mut runner = LineRunner::new(bound, &level, slots, scratch);
    // SAFETY: the level has the lines of these rows and columns, which are inside the nest, and which nobody else runs,
    // as `# Safety` asks.
    unsafe { runner.lines(0..level.count()) };
    runner.executor.finish();
}

/// The shape of a map's units.
enum UnitShape {
    Block,
    /// This number of lines.
    Lines(i64),
}

impl UnitShape {
    /// The shape of units for `participants` participants, and their number.
    fn new(map: &MapLoops, participants: usize) -> (UnitShape, i64) {
        let (lines, wanted) = (map.around.count(), participants as i64 * UNITS);
        let per_unit =
            [ROW_SETS as i64, 1].into_iter().find(|&per_unit| participants == 1 || lines >= wanted * per_unit);
        match per_unit {
            Some(per_unit) => (UnitShape::Lines(per_unit), (lines + per_unit - 1) / per_unit),
            None => (UnitShape::Block, lines * map.lines.blocks()),
        }
    }
}

/// Runs all of a map.
pub(super) fn run(bound: Bound<'_>, map: &MapLoops, workers: &mut Workers) {
    let program = bound.program;
    if program.schedule.iterations() == 0 {
        return;
    }
    let participants = workers.participants(program.work());
    let (shape, count) = UnitShape::new(map, participants);
    let shares = workers.tasks(participants, program.work(), count);
    workers.run(participants, shares as usize, |scratch, tasks| {
        let mut tasks_left = true;
        while tasks_left {
            // Code that gets ready meanwhile runs the rest: its bits are the same.
            let compiled = program.is_compiled();
            let mut runner = LineRunner::new(bound, &map.around, &bound.binding.slots, &mut scratch.nest);
            while program.is_compiled() == compiled {
                let Some(task) = tasks.take() else {
                    tasks_left = false;
                    break;
                };
                let units = part(count, shares, task as i64);
                // SAFETY: blocks are inside their lines, and lines inside the nest; each unit is run once.
                unsafe {
                    match &shape {
                        UnitShape::Block => runner.blocks(units),
                        UnitShape::Lines(each) => {
                            runner.lines(units.start * each..(units.end * each).min(map.around.count()))
                        }
                    }
                }
            }
            runner.executor.finish();
        }
    });
}
