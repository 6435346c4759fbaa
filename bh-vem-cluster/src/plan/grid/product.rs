//! Matrix products on a grid of ranks, which move less than panels of rows on many ranks: each rank gets the rows of
//! its line of the grid and some of the columns, and sends its block of the product to the owners of the rows (SUMMA,
//! van de Geijn and Watts 1997; here factors stay in blocks of rows).

use crate::plan::boxes::IndexBox;
use crate::plan::fold::OwnInstr;
use crate::plan::panels::{Factor, Panel};
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::{Local, Place, Transfer};
use bh_bytecode::{Base, BatchRef, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

/// The ranks of a product in lines of this many. The ranks of a line compute the same rows, each some of the columns. A
/// step multiplies as many panels, so a rank receives as much of the left factor as it owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProductGrid {
    columns: usize,
}

/// The first and last step of a product; the last sends results to the owners.
struct Steps {
    first: usize,
    last: usize,
}

/// A contiguous matrix in a new base of a rank.
fn dense(planner: &mut Planner, rank: usize, like: &Base, [rows, columns]: [i64; 2]) -> Result<Place> {
    let view = View::contiguous(&[rows, columns]).map_err(|error| Error::new(status::BATCH, error.0))?;
    Ok(Place { base: planner.local_base(rank, like, view.len(), columns), view })
}

/// A part of a place.
fn part_of(place: &Place, part: &IndexBox) -> Result<Place> {
    Ok(Place { base: place.base, view: part.of(&place.view, 0)? })
}

impl ProductGrid {
    /// The grid that moves least for a product of `rows × inner` and `inner × columns`. `None` if that has lines of one
    /// rank, or if shares or panels are not consecutive slabs of rows, one share for each rank.
    pub(crate) fn best(shares: &[Share], panels: &[Panel], [rows, inner, columns]: [i64; 3]) -> Option<ProductGrid> {
        let follows = |before: &IndexBox, after: &IndexBox| before.first()[0] + before.extent()[0] == after.first()[0];
        let in_order = shares.windows(2).all(|pair| pair[0].0 < pair[1].0 && follows(&pair[0].1, &pair[1].1))
            && panels.windows(2).all(|pair| follows(&pair[0].rows, &pair[1].rows));
        if !in_order {
            return None;
        }
        let ranks = shares.len();
        let moved = |&columns_of: &usize| {
            let (ranks, line) = (ranks as f64, columns_of as f64);
            let [rows, inner, columns] = [rows, inner, columns].map(|extent| extent as f64);
            rows * inner * (line - 1.0) + inner * columns * (ranks - 1.0) / line + rows * columns * (line - 1.0) / line
        };
        let lines = (1..=ranks).filter(|line| ranks.is_multiple_of(*line) && *line as i64 <= columns);
        let best = lines.min_by(|one, other| moved(one).total_cmp(&moved(other)))?;
        (best > 1).then_some(ProductGrid { columns: best })
    }

    /// The shares of a rank's line, and the first and the number of the `count` columns that the rank computes.
    fn part<'a>(&self, shares: &'a [Share], number: usize, count: i64) -> (&'a [Share], i64, i64) {
        let (line, place) = (number / self.columns * self.columns, (number % self.columns) as i64);
        let first = |place: i64| count * place / self.columns as i64;
        (&shares[line..][..self.columns], first(place), first(place + 1) - first(place))
    }
}

/// The first row of a line, and its number of rows.
fn rows_of(line: &[Share]) -> (i64, i64) {
    (line[0].1.first()[0], line.iter().map(|(_, part)| part.extent()[0]).sum())
}

/// The first row of consecutive panels, and their number of rows.
fn height_of(panels: &[Panel]) -> (i64, i64) {
    let first = panels.first().map_or(0, |panel| panel.rows.first()[0]);
    (first, panels.iter().map(|panel| panel.rows.extent()[0]).sum())
}

impl Planner {
    /// Plans a product on a grid. The left factor must have the rows of the product on the same ranks.
    pub(crate) fn product_on_grid(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        [product, left, right]: [Factor<'_>; 3],
        (shares, panels): (&[Share], &[Panel]),
        grid: ProductGrid,
    ) -> Result<()> {
        let ready = [self.arrays[&left.0].wrote, self.arrays[&left.0].arrived, self.arrays[&right.0].wrote];
        let first = ready.map(|when| self.sendable(when)).into_iter().fold(0, usize::max);
        // Results of other ranks must arrive before the other instructions of their stage run.
        let last = (first + panels.len().div_ceil(grid.columns)).max(self.after_use(product.0) + 1);
        let steps = Steps { first, last };
        for number in 0..shares.len() {
            self.compute_block(batch, index, [product, left, right], (shares, panels), (grid, number, &steps))?;
        }
        self.reads(left.0, last);
        self.reads(right.0, last);
        self.finish(product.0, product.1, last, false);
        Ok(())
    }

    /// Plans one rank's block of the product, and sends it to the owners of its rows.
    fn compute_block(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        [product, left, right]: [Factor<'_>; 3],
        (shares, panels): (&[Share], &[Panel]),
        (grid, number, steps): (ProductGrid, usize, &Steps),
    ) -> Result<()> {
        let (instr, rank) = (&batch.instrs[index as usize], shares[number].0);
        let (line, from, width) = grid.part(shares, number, product.1.shape()[1]);
        let rows = rows_of(line);
        // This process plans only the transfers that involve it.
        let near = line.iter().any(|(rank, _)| self.stages.hosts(*rank));
        let add = OwnInstr::new(batch, index, Opcode::Add, 3);
        let like = self.arrays[&product.0].base;
        let sum = dense(self, rank, &like, [rows.1, width])?;
        let groups = panels.len().div_ceil(grid.columns);
        for step in 0..groups {
            let (stage, group) = (steps.first + step, (number + step) % groups);
            let group = panels.chunks(grid.columns).nth(group).unwrap_or_default();
            if !near && !group.iter().any(|panel| self.stages.hosts(panel.owner)) {
                continue;
            }
            let beside = self.bring_line(batch, index, left, (line, rank), group, stage)?;
            let below = self.bring_columns(batch, index, right, (group, rank), (from, width), stage)?;
            let block = if step == 0 { sum } else { dense(self, rank, &like, [rows.1, width])? };
            self.stages.push(stage, rank, instr, index, &[block, beside, below].map(Local::Data));
            for base in [beside.base, below.base] {
                self.stages.push_system(stage, rank, Opcode::Discard, &base);
            }
            if step > 0 {
                self.stages.push(stage, rank, &add.instr, add.index, &[sum, sum, block].map(Local::Data));
                self.stages.push_system(stage, rank, Opcode::Discard, &block.base);
            }
        }
        for &(owner, part) in line {
            let mine = IndexBox::whole(sum.view.shape()).with(0, part.first()[0] - rows.0, part.extent()[0]);
            let shard = self.shard(product.0, owner);
            let target = Place { base: shard.base, view: part.with(1, from, width).of(product.1, shard.window.low)? };
            self.put(batch, index, steps.last, (rank, part_of(&sum, &mine)?), (owner, target));
        }
        self.stages.push_system(steps.last, rank, Opcode::Discard, &sum.base);
        Ok(())
    }

    /// Brings the left factor's columns that match some panels from a line's ranks.
    fn bring_line(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (id, view): Factor<'_>,
        (line, rank): (&[Share], usize),
        panels: &[Panel],
        stage: usize,
    ) -> Result<Place> {
        let ((first, count), (from, width)) = (rows_of(line), height_of(panels));
        let like = self.arrays[&id].base;
        let all = dense(self, rank, &like, [count, width])?;
        for &(owner, part) in line {
            if !self.stages.hosts(owner) && !self.stages.hosts(rank) {
                continue;
            }
            let shard = self.shard(id, owner);
            let rows = IndexBox::whole(view.shape()).with(0, part.first()[0], part.extent()[0]);
            let source = Place { base: shard.base, view: rows.with(1, from, width).of(view, shard.window.low)? };
            let here = IndexBox::whole(all.view.shape()).with(0, part.first()[0] - first, part.extent()[0]);
            self.put(batch, index, stage, (owner, source), (rank, part_of(&all, &here)?));
        }
        Ok(all)
    }

    /// Brings some columns of the right factor's panels from their owners.
    fn bring_columns(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (id, view): Factor<'_>,
        (panels, rank): (&[Panel], usize),
        (from, width): (i64, i64),
        stage: usize,
    ) -> Result<Place> {
        let (first, count) = height_of(panels);
        let like = self.arrays[&id].base;
        let all = dense(self, rank, &like, [count, width])?;
        for panel in panels {
            if !self.stages.hosts(panel.owner) && !self.stages.hosts(rank) {
                continue;
            }
            let shard = self.shard(id, panel.owner);
            let source = Place { base: shard.base, view: panel.rows.with(1, from, width).of(view, shard.window.low)? };
            let (start, rows) = (panel.rows.first()[0] - first, panel.rows.extent()[0]);
            let here = IndexBox::whole(all.view.shape()).with(0, start, rows);
            self.put(batch, index, stage, (panel.owner, source), (rank, part_of(&all, &here)?));
        }
        Ok(all)
    }

    /// Copies elements within a rank, or sends them to another.
    fn put(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        stage: usize,
        (from, source): (usize, Place),
        (to, target): (usize, Place),
    ) {
        if from == to {
            let copy = OwnInstr::new(batch, index, Opcode::Copy, 2);
            self.stages.push(stage, to, &copy.instr, copy.index, &[target, source].map(Local::Data));
        } else if self.stages.hosts(from) || self.stages.hosts(to) {
            self.stages.transfer(stage, Transfer { from, to, source, target });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(ranks: usize, rows: i64) -> Vec<Share> {
        let whole = IndexBox::whole(&[rows, 1]);
        let each = rows / ranks as i64;
        (0..ranks).map(|rank| (rank, whole.with(0, rank as i64 * each, each))).collect()
    }

    #[test]
    fn the_grid_follows_from_what_moves() {
        let columns = |ranks, extents: [i64; 3]| {
            ProductGrid::best(&shares(ranks, extents[0]), &[], extents).map_or(1, |grid| grid.columns)
        };
        assert_eq!(columns(16, [1600; 3]), 4);
        assert_eq!(columns(64, [6400; 3]), 8);
        assert_eq!(columns(7, [700; 3]), 1);
        assert_eq!(columns(2, [200; 3]), 1);
        // A tall left factor stays in place; a wide right one is not sent as a whole.
        assert_eq!(columns(16, [160_000, 16, 16]), 1);
        assert_eq!(columns(16, [16, 16, 160_000]), 16);
        let gap: Vec<Share> = shares(16, 1600).into_iter().skip(1).step_by(2).collect();
        assert_eq!(ProductGrid::best(&gap, &[], [1600; 3]), None);
        let panel = |&(owner, rows): &Share| Panel { owner, rows };
        let backwards: Vec<Panel> = shares(16, 1600).iter().rev().map(panel).collect();
        assert_eq!(ProductGrid::best(&shares(16, 1600), &backwards, [1600; 3]), None);
    }
}
