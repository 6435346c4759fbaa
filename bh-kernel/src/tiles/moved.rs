//! Arrays that are another one moved around, as `roll` makes them piece by piece: one nest instead of a copy for each piece.
//!
//! What leaves at one end enters at the other, so that along such an axis rows, or columns, go on beyond both ends: those before
//! the first one are the last ones again.

use super::grid::{self, Grid};
use super::part::{Area, Part, area};
use super::split::split;
use crate::boxes::meet;
use crate::{BufferRef, SlotMode, Stage, Step};

/// The largest distance that something is moved by.
const SPREAD: i64 = 64;

/// A copy of a part of an array.
struct Piece {
    block: u32,
    /// The stage of the block, and the part of that.
    at: (usize, usize),
    stage: Stage,
    from: (u32, [i64; 2]),
    area: Area,
}

/// The pieces of an array so far.
struct Pieces {
    base: u32,
    pieces: Vec<Piece>,
}

/// What was found: the first and the last block of the pieces of each array.
#[derive(Default)]
pub(super) struct Moved {
    pub(super) spans: Vec<(u32, u32)>,
}

/// Puts one nest in the place of the last piece of each array that is another one moved around.
/// Blocks that are none end what has begun before them.
pub(super) fn join(blocks: &mut [Option<Vec<Part>>], grids: &[Grid], lengths: &[i64]) -> Moved {
    let (mut open, mut whole): (Vec<Pieces>, Vec<(Pieces, Part)>) = (Vec::new(), Vec::new());
    for (block, parts) in (0..).zip(blocks.iter()) {
        let Some(parts) = parts else {
            open.clear();
            continue;
        };
        for (number, part) in parts.iter().enumerate() {
            let copies = copies(&part.stage, block, number, grids, lengths);
            // What others read of an array that is not complete, or write of one that it is made of, ends it.
            let touches = |base: u32, writes: bool| {
                let parameters = &part.stage.parameters;
                let slots = part.stage.kernel.slots.iter().zip(&parameters.buffers);
                slots.into_iter().any(|(slot, buffer)| {
                    matches!(*buffer, BufferRef::Base(other) | BufferRef::Fresh(other) if other == base)
                        && (!writes || slot.mode.writes())
                })
            };
            let is_piece = |base: u32| copies.iter().flatten().any(|(own, _)| *own == base);
            open.retain(|pieces| {
                let sources = || pieces.pieces.iter().map(|piece| piece.from.0);
                (is_piece(pieces.base) || !touches(pieces.base, false)) && !sources().any(|base| touches(base, true))
            });
            for (base, piece) in copies.into_iter().flatten() {
                let at = open.iter().position(|pieces| pieces.base == base).unwrap_or_else(|| {
                    open.push(Pieces { base, pieces: Vec::new() });
                    open.len() - 1
                });
                open[at].pieces.push(piece);
                if let Some(all) = complete(&open[at].pieces, grids[base as usize], lengths[base as usize]) {
                    whole.push((open.swap_remove(at), all));
                }
            }
        }
    }
    let spans = whole.iter().map(|(pieces, _)| (pieces.pieces[0].block, last(pieces).block)).collect();
    replace(blocks, whole);
    Moved { spans }
}

fn last(pieces: &Pieces) -> &Piece {
    &pieces.pieces[pieces.pieces.len() - 1]
}

/// The copies that a stage is, with the arrays that they write; `None` if it is anything else.
fn copies(stage: &Stage, block: u32, number: usize, grids: &[Grid], lengths: &[i64]) -> Option<Vec<(u32, Piece)>> {
    let parts = split(stage);
    let piece = |(part, stage): (usize, &Stage)| {
        let [Step::Load { slot: from }, Step::Store { slot: to, .. }] = stage.kernel.steps[..] else { return None };
        let (from, to) = (usize::from(from), usize::from(to));
        let buffers = &stage.parameters.buffers;
        let (BufferRef::Base(source), BufferRef::Base(base)) = (buffers[from], buffers[to]) else { return None };
        let (grid, same) = (grids[base as usize], grids[source as usize]);
        if source == base || grid != same || lengths[base as usize] != lengths[source as usize] {
            return None;
        }
        let stage = grid::cut(stage, to, grid)?;
        let (there, here) = (grid::place(&stage, from, grid)?, grid::place(&stage, to, grid)?);
        let own = area(&stage, to, here)?;
        area(&stage, from, there)?;
        let is_column = |(low, high): (i64, i64)| low == 0 && high + 1 == grid.column;
        let distance = [there.row - here.row, there.column - here.column];
        let from = (source, distance);
        (is_column(own[2]) && there.rest == 0)
            .then_some((base, Piece { block, at: (number, part), stage, from, area: own }))
    };
    parts.iter().enumerate().map(piece).collect()
}

/// The nest that makes all of an array of this many elements, if these pieces are all of it, from the same elements of one array.
fn complete(pieces: &[Piece], grid: Grid, length: i64) -> Option<Part> {
    let extents = [length / grid.row, grid.row / grid.column];
    let covered: i64 = pieces
        .iter()
        .map(|piece| (0..2).map(|axis| piece.area[axis].1 - piece.area[axis].0 + 1).product::<i64>())
        .sum();
    let apart = |at: usize| pieces[..at].iter().all(|other| !meet(&other.area, &pieces[at].area));
    if length % grid.row != 0 || covered != extents[0] * extents[1] || !(0..pieces.len()).all(apart) || pieces.len() < 2
    {
        return None;
    }
    let (source, distance) = pieces[0].from;
    let nearest = |axis: usize| {
        let by = distance[axis].rem_euclid(extents[axis]);
        if 2 * by > extents[axis] { by - extents[axis] } else { by }
    };
    let by = [nearest(0), nearest(1)];
    let alike = |piece: &Piece| {
        piece.from.0 == source && (0..2).all(|axis| (piece.from.1[axis] - by[axis]).rem_euclid(extents[axis]) == 0)
    };
    if !pieces.iter().all(alike) || by.iter().any(|by| by.abs() > SPREAD) {
        return None;
    }
    // What a single row or column has as a stride means nothing, so all are as in the grid.
    let mut stage = pieces[0].stage.clone();
    let rank = stage.parameters.extents.len();
    stage.parameters.extents[..2].copy_from_slice(&extents);
    stage.parameters.starts.fill(0);
    for strides in stage.parameters.strides.chunks_exact_mut(rank) {
        strides[..2].copy_from_slice(&[grid.row, grid.column]);
    }
    let reads = |slot: &crate::Slot| if slot.mode == SlotMode::Read { by } else { [0, 0] };
    let moved = stage.kernel.slots.iter().map(reads).collect();
    Some(Part { stage, moved: Some(moved) })
}

/// Takes the pieces out of their blocks.
fn replace(blocks: &mut [Option<Vec<Part>>], whole: Vec<(Pieces, Part)>) {
    let mut taken: Vec<(u32, usize, usize)> = Vec::new();
    for piece in whole.iter().flat_map(|(pieces, _)| &pieces.pieces) {
        taken.push((piece.block, piece.at.0, piece.at.1));
    }
    let mut touched: Vec<u32> = taken.iter().map(|taken| taken.0).collect();
    touched.sort_unstable();
    touched.dedup();
    let mut whole: Vec<Option<(Pieces, Part)>> = whole.into_iter().map(Some).collect();
    for block in touched {
        let Some(parts) = &mut blocks[block as usize] else { continue };
        let mut left = Vec::with_capacity(parts.len());
        for (number, part) in std::mem::take(parts).into_iter().enumerate() {
            if taken.iter().any(|taken| (taken.0, taken.1) == (block, number)) {
                let stays = |part: &usize| !taken.contains(&(block, number, *part));
                let split = split(&part.stage).into_iter().enumerate().filter(|(part, _)| stays(part));
                left.extend(split.map(|(_, stage)| Part { stage, moved: None }));
            } else {
                left.push(part);
            }
            for slot in &mut whole {
                if slot.as_ref().is_some_and(|(pieces, _)| (last(pieces).block, last(pieces).at.0) == (block, number)) {
                    left.extend(slot.take().map(|(_, all)| all));
                }
            }
        }
        *parts = left;
    }
}
