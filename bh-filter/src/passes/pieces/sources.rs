//! Where the elements of a batch's bases come from, instruction by instruction (copies of other arrays, constants, or
//! values of their own), and where the elements of a view come from.

use super::boxes::{Grid, Place, Ranges};
use crate::analysis::{base_of, output_type};
use bh_bytecode::{Batch, Instr, Opcode, Operand, View, steps};

/// The most pieces of a base that are remembered, and the most boxes of a view.
pub const MOST: usize = 64;

/// Where the elements of a box come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The base itself holds values of its own.
    Held,
    /// All are one constant.
    Constant(Operand),
    /// Another base has them.
    Moved(Moved),
}

impl Source {
    /// The other base that has the elements.
    pub fn base(&self) -> Option<u32> {
        match self {
            Source::Moved(moved) => Some(moved.base),
            _ => None,
        }
    }
}

/// Elements of another base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The base.
    pub base: u32,
    /// Where index (0, …, 0) of the reader's view, not of the box, leads.
    pub start: i64,
    /// Strides by the reader's dimensions.
    pub stride: Vec<i64>,
    /// The instruction that read them.
    pub since: u32,
}

/// A box of a base, and what was written there last.
struct Piece {
    target: View,
    /// In terms of the dimensions of `target`.
    source: Source,
}

/// A view cut into boxes that each have one source.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The places inside of each dimension where it is cut.
    pub cuts: Vec<Vec<i64>>,
    /// The sources of the boxes, in C order. None of them is [`Source::Held`].
    pub sources: Vec<Source>,
}

impl Cut {
    /// The source of the box that holds this index.
    pub fn source(&self, index: impl Iterator<Item = i64>) -> &Source {
        let numbers = index.zip(&self.cuts).map(|(i, cuts)| (cuts.partition_point(|&cut| cut <= i), cuts.len() + 1));
        &self.sources[numbers.fold(0, |number, (own, count)| number * count + own)]
    }

    /// Where the box begins that holds this index.
    pub fn corner(&self, index: &[i64]) -> Vec<i64> {
        let begin = |(&i, cuts): (&i64, &Vec<i64>)| match cuts.partition_point(|&cut| cut <= i) {
            0 => 0,
            own => cuts[own - 1],
        };
        index.iter().zip(&self.cuts).map(begin).collect()
    }
}

/// The pieces of all bases before an instruction.
pub struct Sources {
    pieces: Vec<Vec<Piece>>,
    /// The last instruction that changed any element of a base.
    changed: Vec<Option<u32>>,
}

impl Sources {
    /// Nothing is known of any base.
    pub fn new(batch: &Batch) -> Sources {
        let count = batch.bases.len();
        Sources { pieces: (0..count).map(|_| Vec::new()).collect(), changed: vec![None; count] }
    }

    /// The sources of a view before the next instruction, if none of its elements is held by its base alone.
    pub fn of(&self, batch: &Batch, view: u32) -> Option<Cut> {
        let base = base_of(batch, Operand::view(view))?;
        let pieces = &self.pieces[base as usize];
        if batch.views[view as usize].len == 0 || pieces.iter().all(|piece| piece.source == Source::Held) {
            return None;
        }
        let view = batch.as_ref().view(view);
        let grid = Grid::of(batch.bases[base as usize].len, pieces.iter().map(|piece| &piece.target))?;
        let reader = grid.place(&view)?;
        let mut found: Vec<(&Piece, Place, Ranges)> = Vec::new();
        for piece in pieces.iter().rev() {
            steps::add(1);
            let target = grid.place(&piece.target)?;
            let Some(ranges) = reader.within(&target) else { continue };
            let whole = ranges.iter().zip(view.shape()).all(|(&range, &extent)| range == (0, extent));
            found.push((piece, target, ranges));
            if whole {
                break;
            }
        }
        let cuts: Vec<Vec<i64>> = (0..view.rank())
            .map(|dim| cuts(view.shape()[dim], found.iter().map(|(_, _, ranges)| ranges[dim])))
            .collect();
        if boxes(&cuts) > MOST {
            return None;
        }
        let mut sources = Vec::with_capacity(boxes(&cuts));
        for corner in corners(&cuts) {
            steps::add(1);
            let inside = |ranges: &Ranges| ranges.iter().zip(&corner).all(|(range, i)| (range.0..range.1).contains(i));
            let (piece, target, _) = found.iter().find(|(_, _, ranges)| inside(ranges))?;
            sources.push(match &piece.source {
                Source::Held => return None,
                Source::Constant(value) => Source::Constant(*value),
                Source::Moved(moved) => {
                    if self.changed[moved.base as usize].is_some_and(|at| at >= moved.since) {
                        return None;
                    }
                    let (start, stride) = reader.through(target, (moved.start, &moved.stride));
                    Source::Moved(Moved { start, stride, ..*moved })
                }
            });
        }
        Some(joined(cuts, sources))
    }

    /// Takes in what instruction `at` writes. `read` is what its input consists of, if it is a copy.
    pub fn write(&mut self, batch: &Batch, at: u32, read: Option<&Cut>) {
        let instr = &batch.instrs[at as usize];
        for &output in instr.outputs() {
            let (Some(view), Some(base)) = (output.as_view(), base_of(batch, output)) else { continue };
            if batch.views[view as usize].len == 0 {
                continue;
            }
            let target = batch.as_ref().view(view);
            let pieces = match (copied(batch, instr), read) {
                (Some(_), Some(cut)) => parts(&target, cut),
                (Some(source), None) => vec![Piece { target, source: self.source(batch, at, source, base) }],
                _ => vec![Piece { target, source: Source::Held }],
            };
            let known = &mut self.pieces[base as usize];
            known.retain(|piece| target.len() != batch.bases[base as usize].len && piece.target != target);
            if known.len() + pieces.len() > MOST {
                // The base holds every element that no piece covers, which is always right.
                known.clear();
            } else {
                known.extend(pieces);
            }
            self.changed[base as usize] = Some(at);
        }
    }

    /// The base loses its data.
    pub fn free(&mut self, base: u32, at: u32) {
        self.pieces[base as usize].clear();
        self.changed[base as usize] = Some(at);
    }

    fn source(&self, batch: &Batch, at: u32, source: Operand, target: u32) -> Source {
        match (source.as_view(), base_of(batch, source)) {
            (Some(view), Some(base)) if base != target => {
                let view = batch.as_ref().view(view);
                Source::Moved(Moved { base, start: view.start(), stride: view.stride().to_vec(), since: at })
            }
            (None, _) => Source::Constant(source),
            _ => Source::Held,
        }
    }
}

/// The operand that an instruction copies without a change of type.
pub fn copied(batch: &Batch, instr: &Instr) -> Option<Operand> {
    let source = instr.operands[1];
    (instr.opcode == Opcode::Copy && batch.as_ref().dtype(source) == output_type(batch, instr)).then_some(source)
}

/// A written view, box by box as what it copies is cut.
fn parts(target: &View, cut: &Cut) -> Vec<Piece> {
    let part = |(corner, source): (Vec<i64>, &Source)| {
        let end = ends(&cut.cuts, target.shape(), &corner);
        let extents: Vec<i64> = end.iter().zip(&corner).map(|(end, begin)| end - begin).collect();
        let offset = |stride: &[i64]| corner.iter().zip(stride).map(|(i, stride)| i * stride).sum::<i64>();
        let view = View::new(target.start() + offset(target.stride()), &extents, target.stride()).ok()?;
        let source = match source {
            Source::Moved(moved) => {
                Source::Moved(Moved { start: moved.start + offset(&moved.stride), ..moved.clone() })
            }
            other => other.clone(),
        };
        Some(Piece { target: view.canonical(), source })
    };
    // A box of a legal view is one.
    corners(&cut.cuts).zip(&cut.sources).filter_map(part).collect()
}

/// The places inside of a dimension where ranges begin or end.
fn cuts(extent: i64, ranges: impl Iterator<Item = (i64, i64)>) -> Vec<i64> {
    let mut cuts: Vec<i64> = ranges.flat_map(|(begin, end)| [begin, end]).filter(|&at| at > 0 && at < extent).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// How many boxes these cuts make.
pub fn boxes(cuts: &[Vec<i64>]) -> usize {
    cuts.iter().fold(1, |count, cuts| count.saturating_mul(cuts.len() + 1))
}

/// The first index of each box, in C order.
pub fn corners(cuts: &[Vec<i64>]) -> impl Iterator<Item = Vec<i64>> + '_ {
    (0..boxes(cuts)).map(move |mut number| {
        let mut corner = vec![0; cuts.len()];
        for (dim, cuts) in cuts.iter().enumerate().rev() {
            let own = number % (cuts.len() + 1);
            number /= cuts.len() + 1;
            corner[dim] = if own == 0 { 0 } else { cuts[own - 1] };
        }
        corner
    })
}

/// Where the box that begins at `corner` ends.
pub fn ends(cuts: &[Vec<i64>], shape: &[i64], corner: &[i64]) -> Vec<i64> {
    let end = |((cuts, &extent), &begin): ((&Vec<i64>, &i64), &i64)| {
        cuts.get(cuts.partition_point(|&cut| cut <= begin)).copied().unwrap_or(extent)
    };
    cuts.iter().zip(shape).zip(corner).map(end).collect()
}

/// Without the cuts on both sides of which all boxes have equal sources.
fn joined(mut cuts: Vec<Vec<i64>>, sources: Vec<Source>) -> Cut {
    let whole = Cut { cuts: cuts.clone(), sources };
    for dim in 0..cuts.len() {
        let differs = |&cut: &i64| {
            corners(&whole.cuts).filter(|corner| corner[dim] == cut).any(|corner| {
                let before = corner.iter().enumerate().map(|(other, &i)| if other == dim { i - 1 } else { i });
                whole.source(before) != whole.source(corner.iter().copied())
            })
        };
        cuts[dim].retain(differs);
    }
    let sources = corners(&cuts).map(|corner| whole.source(corner.into_iter()).clone()).collect();
    Cut { cuts, sources }
}
