//! The stages that chains are made of, and the rows, columns and elements that their slots touch.

use super::grid::{self, Grid, Position};
use crate::{Lowered, Stage, Step, Survey};
use bh_bytecode::base_flags;

/// The blocks of a batch as chains of tiles take them in.
pub(super) struct Parts<'a> {
    pub(super) survey: &'a Survey<'a>,
    pub(super) blocks: Vec<Block>,
    pub(super) grids: Vec<Grid>,
    /// Threads do the tiles.
    pub(super) threads: bool,
}

/// A block of the batch.
pub(super) enum Block {
    /// It computes nothing.
    Nothing,
    /// It cannot run in tiles.
    Apart,
    /// Its stages, with the copies of its renames.
    Stages(Vec<Stage>),
}

impl<'a> Parts<'a> {
    /// `threads`: threads do the tiles, so that an array that is overwritten may become a new one.
    pub(super) fn new(survey: &'a Survey<'a>, threads: bool) -> Parts<'a> {
        let batch = survey.batch;
        let blocks: Vec<Block> = (0..batch.blocks.len() as u32).map(|block| Block::new(survey, block)).collect();
        let stages = blocks.iter().flat_map(|block| match block {
            Block::Stages(stages) => stages.as_slice(),
            Block::Nothing | Block::Apart => &[],
        });
        let lengths: Vec<i64> = batch.bases.iter().map(|base| base.len).collect();
        let grids = grid::grids(&lengths, stages);
        Parts { survey, blocks, grids, threads }
    }

    /// The last block that uses a base whose content ends with the batch; `None` if it lives on.
    pub(super) fn end(&self, base: u32) -> Option<u32> {
        let found = self.survey.found();
        let dies = self.survey.batch.bases[base as usize].has(base_flags::DIES) && !found.synced[base as usize];
        dies.then(|| found.uses[base as usize].1)
    }
}

impl Block {
    fn new(survey: &Survey<'_>, block: u32) -> Block {
        let stages = match survey.block(block) {
            Lowered::Nothing => return Block::Nothing,
            Lowered::Loops(stages, temporaries) if temporaries.is_empty() => stages,
            Lowered::Loops(..) | Lowered::Special(_) => return Block::Apart,
        };
        let stages = || stages.iter().chain(&survey.found().copies[block as usize]);
        let fits = |step: &Step| !matches!(step, Step::Gather { .. } | Step::Reduce { .. });
        let fits = |stage: &Stage| stage.kernel.steps.iter().all(fits) && stage.parameters.iterations() > 0;
        if !stages().all(fits) {
            return Block::Apart;
        }
        Block::Stages(stages().cloned().collect())
    }
}

/// The first and last row, column and element of these.
pub(super) type Area = [(i64, i64); 3];

/// The rows, columns and elements of these that a slot touches, each of them; `None` if there are gaps.
pub(super) fn area(stage: &Stage, slot: usize, place: Position) -> Option<Area> {
    let parameters = &stage.parameters;
    let (mut high, mut count) = (0, 1);
    for (extent, stride) in parameters.extents.iter().zip(parameters.stride(slot)).skip(2) {
        if *stride < 0 {
            return None;
        }
        high += stride * (extent - 1);
        count *= extent;
    }
    let line = |start: i64, extent: i64| (start, start + extent - 1);
    let area = [
        line(place.row, parameters.extents[0]),
        line(place.column, parameters.extents[1]),
        (place.rest, place.rest + high),
    ];
    (count == high + 1).then_some(area)
}
