//! Plans LU and Cholesky factorizations and linear systems: the columns of the matrix, and those of right sides behind
//! them, are distributed in blocks, cyclically, so that all ranks have work until the end. The results return to the
//! owners of rows. The width of blocks depends on the matrix alone, so results have the same bits on any number of
//! ranks.

use crate::plan::boxes::{IndexBox, Span, inside, span_of};
use crate::plan::planner::Planner;
use crate::plan::stage::{Place, Transfer};
use bh_bytecode::{BatchRef, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

/// The number of blocks of a matrix, if that makes them neither too narrow nor too wide.
const BLOCKS: i64 = 32;
const NARROW: i64 = 8;
const WIDE: i64 = 128;

/// The method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factoring {
    /// L, U and the order of rows.
    Lu,
    /// L, where the matrix is L · Lᴴ.
    Cholesky,
    /// The solution for right sides.
    Solution,
}

/// A block of columns on a rank.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub rank: usize,
    /// The first column, and the number of columns.
    pub first: i64,
    pub width: i64,
    /// All rows of the block.
    pub place: Place,
}

/// The distribution of columns.
#[derive(Debug)]
pub struct Columns {
    pub factoring: Factoring,
    /// Rows of the matrix.
    pub rows: i64,
    /// The matrix's blocks in order.
    pub matrix: Vec<Block>,
    pub sides: Vec<Block>,
    /// The ranks that have blocks.
    pub members: Vec<usize>,
    /// The outputs.
    pub outputs: Vec<(u64, View)>,
}

/// An operand: its array, and the view as a matrix.
type Operand = (u64, View);

/// A view as a matrix; a vector becomes one column.
fn as_matrix(view: View) -> Option<View> {
    match (view.shape(), view.stride()) {
        (&[_, _], _) => Some(view),
        (&[rows], &[step]) => View::new(view.start(), &[rows, 1], &[step, 1]).ok(),
        _ => None,
    }
}

/// The part of a box with indices from `first` to before `end` along a dimension.
fn within(part: &IndexBox, dim: usize, first: i64, end: i64) -> IndexBox {
    let from = Span::new(part.first()[dim], part.first()[dim] + part.extent()[dim]);
    let both = from.meet(Span::new(first, end));
    part.with(dim, both.low, both.len())
}

impl Planner {
    /// Distributes the columns for such a method; `None` if another way suits the instruction.
    pub fn plan_columns(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<Option<Columns>> {
        let instr = &batch.instrs[index as usize];
        let method = if instr.opcode.is_extension() { batch.extension_name(instr.opcode) } else { None };
        let factoring = match method {
            Some("lu") => Factoring::Lu,
            Some("cholesky") => Factoring::Cholesky,
            Some("solve") => Factoring::Solution,
            _ => return Ok(None),
        };
        let operand = |view: u32| Some((batch.base_of(view)?.id, as_matrix(batch.view(view))?));
        let operands: Option<Vec<Operand>> = instr.operands().iter().map(|one| operand(one.as_view()?)).collect();
        let Some(operands) = operands else { return Ok(None) };
        let (outputs, inputs) = operands.split_at(usize::from(instr.outputs));
        let apart = outputs
            .iter()
            .enumerate()
            .all(|(place, (id, _))| outputs[..place].iter().chain(inputs).all(|(other, _)| other != id));
        let &[rows, columns] = inputs[0].1.shape() else { return Ok(None) };
        let width = (rows / BLOCKS / NARROW * NARROW).clamp(NARROW, WIDE);
        if !self.solves || !apart || rows != columns || rows <= width || inputs.iter().any(|(_, view)| view.is_empty())
        {
            return Ok(None);
        }
        self.check_inputs(batch, instr)?;
        self.know_inputs(batch, instr);
        if self.arrays[&inputs[0].0].cuts.is_first() {
            return Ok(None);
        }
        let Some(parts) = inputs.iter().map(|input| self.owned_boxes(input)).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        for operand in instr.outputs() {
            let view = operand.as_view().ok_or_else(|| Error::new(status::BATCH, "an output is no view"))?;
            self.target(batch, index, view, None)?;
        }
        let ranks = self.sharing_ranks();
        let (mut dealt, mut blocks) = (0, [Vec::new(), Vec::new()]);
        for (number, (input, parts)) in inputs.iter().zip(&parts).enumerate() {
            for first in (0..input.1.shape()[1]).step_by(width as usize) {
                let (rank, width) = (ranks[dealt % ranks.len()], width.min(input.1.shape()[1] - first));
                let like = self.arrays[&input.0].base;
                let block = Block { rank, first, width, place: self.scratch(rank, &like, &[rows, width])? };
                // Nothing reads the elements above the diagonal.
                let from = if factoring == Factoring::Cholesky { first } else { 0 };
                self.bring_block(input, parts, &block, from)?;
                blocks[number].push(block);
                dealt += 1;
            }
        }
        let [matrix, sides] = blocks;
        let members = ranks[..dealt.min(ranks.len())].to_vec();
        Ok(Some(Columns { factoring, rows, matrix, sides, members, outputs: outputs.to_vec() }))
    }

    /// The ranks with a share of the work.
    fn sharing_ranks(&self) -> Vec<usize> {
        let weights = self.settings.weights.as_slice();
        (0..self.ranks()).filter(|&rank| weights.get(rank).is_none_or(|&weight| weight > 0.0)).collect()
    }

    /// The boxes of a view by owner; `None` if there are too many.
    fn owned_boxes(&self, (id, view): &Operand) -> Option<Vec<(usize, IndexBox)>> {
        let cuts = &self.arrays[id].cuts;
        let mut parts = Vec::new();
        for rank in cuts.owners(span_of(view)) {
            parts.extend(inside(view, cuts.own(rank))?.into_iter().map(|part| (rank, part)));
        }
        Some(parts)
    }

    /// Sends a block's columns, from row `from` on, to its rank.
    fn bring_block(
        &mut self,
        (id, view): &Operand,
        parts: &[(usize, IndexBox)],
        block: &Block,
        from: i64,
    ) -> Result<()> {
        let at = self.fetchable(*id);
        for (owner, part) in parts {
            let part = within(&within(part, 0, from, view.shape()[0]), 1, block.first, block.first + block.width);
            if part.len() == 0 || !self.stages.hosts(*owner) && !self.stages.hosts(block.rank) {
                continue;
            }
            let shard = self.shard(*id, *owner);
            let source = Place { base: shard.base, view: part.of(view, shard.window.low)? };
            let here = part.with(1, part.first()[1] - block.first, part.extent()[1]);
            let target = Place { base: block.place.base, view: here.of(&block.place.view, 0)? };
            self.move_data(*id, *owner, block.rank, source, target, at);
        }
        self.reads(*id, at);
        Ok(())
    }

    /// Sends blocks of columns to the owners of an output.
    pub fn send_columns(&mut self, (id, view): &Operand, blocks: &[Block]) -> Result<()> {
        let at = self.after_use(*id);
        let unfit = || Error::new(status::BATCH, "a factor is cut into too many parts");
        let shares = self.shares(*id, view).ok_or_else(unfit)?;
        #[cfg(debug_assertions)]
        blocks.iter().for_each(|block| self.stages.versions.result(&block.place));
        for block in blocks {
            for (owner, part) in &shares {
                let part = within(part, 1, block.first, block.first + block.width);
                if part.len() == 0 || !self.stages.hosts(*owner) && !self.stages.hosts(block.rank) {
                    continue;
                }
                let here = part.with(1, part.first()[1] - block.first, part.extent()[1]);
                let source = Place { base: block.place.base, view: here.of(&block.place.view, 0)? };
                let shard = self.shard(*id, *owner);
                let target = Place { base: shard.base, view: part.of(view, shard.window.low)? };
                self.moved(at, (block.rank, source), (*owner, target));
            }
        }
        self.finish(*id, view, at, false);
        Ok(())
    }

    /// Sends elements from one rank to another, or copies them within a rank.
    fn moved(&mut self, at: usize, (from, source): (usize, Place), (to, target): (usize, Place)) {
        match from == to {
            true => self.copy(at, to, target, source),
            false => self.stages.transfer(at, Transfer { from, to, source, target }),
        }
    }

    /// Drops all blocks after the last planned use of the outputs.
    pub fn drop_columns(&mut self, work: &Columns) {
        let at = work.outputs.iter().map(|(id, _)| self.after_use(*id)).max().unwrap_or(0);
        for block in work.matrix.iter().chain(&work.sides) {
            self.stages.push_system(at, block.rank, Opcode::Discard, &block.place.base);
        }
    }
}
