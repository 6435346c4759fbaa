//! Stages without folds: the blocks of all lines, shared out in runs.

use super::cursor::Level;
use super::frame::{Folding, Frame};
use super::scratch::{Parts, Scratch};
use super::{Binding, Workers};
use crate::primitives::Primitives;
use crate::program::Program;
use std::ops::Range;

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
            frame.line(slots, iterations.start, iterations.end - iterations.start, Folding::None);
        } else {
            let lines = level.count() / geometry.extents[0];
            level.seek(iterations.start * lines, &program.slots, slots, line, index);
            for at in 0..(iterations.end - iterations.start) * lines {
                if at > 0 {
                    level.next(&program.slots, line, index);
                }
                frame.line(line, 0, geometry.line, Folding::None);
            }
        }
    }
    frame.finish();
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
    let blocks = geometry.blocks();
    let total = blocks * level.count();
    let participants = workers.participants(program.work());
    let tasks = if participants == 1 { 1 } else { total.min(participants as i64 * 8) };
    let per_task = (total + tasks - 1) / tasks;
    workers.run(participants, tasks as usize, |scratch, tasks| {
        let Scratch { frame: parts, positions, indices, .. } = scratch;
        let mut frame = Frame::new(program, binding, primitives, parts, geometry.block());
        let (line, index) = (&mut positions[0], &mut indices[0]);
        line.resize(program.slots.len(), std::ptr::null_mut());
        while let Some(task) = tasks.take() {
            let (mut at, end) = (task as i64 * per_task, ((task as i64 + 1) * per_task).min(total));
            if at >= end {
                continue;
            }
            level.seek(at / blocks, &program.slots, &binding.slots, line, index);
            // SAFETY: blocks are inside their lines, and lines inside the nest.
            unsafe {
                while at < end {
                    let block = at % blocks;
                    let last = (block + end - at).min(blocks);
                    let first = block * geometry.step;
                    frame.line(line, first, geometry.line.min(last * geometry.step) - first, Folding::None);
                    at += last - block;
                    if at < end {
                        level.next(&program.slots, line, index);
                    }
                }
            }
        }
        frame.finish();
    });
}
