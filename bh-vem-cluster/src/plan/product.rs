//! Matrix products: rows of the product stay where they are, and the right factor comes by in panels of rows, each rank
//! beginning with its own. No rank ever has more of it than its own rows and a panel. Where less moves on a grid of ranks,
//! each rank gets a part of each panel only ([`crate::plan::grid`]).

use crate::plan::boxes::{IndexBox, span_of};
use crate::plan::fold::Own;
use crate::plan::grid::Grid;
use crate::plan::panels::{Factor, Panel};
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::{Local, Place};
use bh_bytecode::{BatchRef, DType, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

impl Planner {
    /// Plans a product by panels. False if another way is better, or the only one.
    pub(crate) fn product(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        let operands: Option<Vec<(u64, View)>> = instr
            .operands()
            .iter()
            .map(|operand| {
                let view = operand.as_view()?;
                Some((batch.base_of(view)?.id, batch.view(view)))
            })
            .collect();
        let Some([out, left, right]) = operands.as_deref().and_then(|operands| <&[_; 3]>::try_from(operands).ok())
        else {
            return Ok(false);
        };
        let same = out.0 == left.0 || out.0 == right.0;
        if same || [out, left, right].iter().any(|(_, view)| view.rank() != 2 || view.is_empty()) {
            return Ok(false);
        }
        self.know_inputs(batch, instr);
        let Some(panels) = self.panels((right.0, &right.1)) else { return Ok(false) };
        let Some(output) = instr.operands()[0].as_view() else { return Ok(false) };
        let target = self.target(batch, index, output, None)?;
        let Some(shares) = self.shares(target, &out.1) else { return Ok(false) };
        if shares.iter().any(|(_, part)| part.extent()[1] != out.1.shape()[1])
            || self.arrays[&target].base.dtype() == DType::Bool
        {
            return Ok(false);
        }
        let whole: Vec<Share> = shares.iter().map(|&(rank, _)| (rank, IndexBox::whole(right.1.shape()))).collect();
        if self.is_here(right.0, &right.1, &whole)? || !self.bring_rows((left.0, &left.1), &shares)? {
            return Ok(false);
        }
        let factors = [(target, &out.1), (left.0, &left.1), (right.0, &right.1)];
        let extents = [out.1.shape()[0], right.1.shape()[0], right.1.shape()[1]];
        match Grid::best(&shares, &panels, extents) {
            Some(grid) => self.on_grid(batch, index, factors, (&shares, &panels), grid)?,
            None => self.by_panels(batch, index, factors, (&shares, &panels))?,
        }
        Ok(true)
    }

    /// Brings the rows of the left factor to the ranks of the product's; false if they cannot be kept in one piece.
    fn bring_rows(&mut self, (id, view): Factor<'_>, shares: &[Share]) -> Result<bool> {
        let whole = IndexBox::whole(view.shape());
        let rows: Vec<Share> =
            shares.iter().map(|(rank, part)| (*rank, whole.with(0, part.first()[0], part.extent()[0]))).collect();
        let at = self.fetchable(id);
        if !self.is_here(id, view, &rows)? && self.fetch(id, view, &rows, at)?.is_err() {
            return Ok(false);
        }
        for (rank, part) in &rows {
            if !self.arrays[&id].valid(*rank).contains(span_of(&part.of(view, 0)?)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn by_panels(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        [(target, out), (left, rows), (right, columns)]: [Factor<'_>; 3],
        (shares, panels): (&[Share], &[Panel]),
    ) -> Result<()> {
        let instr = &batch.instrs[index as usize];
        let add = Own::new(batch, index, Opcode::Add, 3);
        let ready = [self.arrays[&left].wrote, self.arrays[&left].arrived].map(|when| self.stage_of(when));
        let first = self.fetchable(right).max(self.after_use(target)).max(ready[0]).max(ready[1]);
        for step in 0..panels.len() {
            let stage = first + step;
            for (number, &(rank, part)) in shares.iter().enumerate() {
                let panel = panels[(number + step) % panels.len()];
                let (panel_place, arrived) = self.bring_panel((right, columns), panel, rank, stage)?;
                let (from, count) = (panel.rows.first()[0], panel.rows.extent()[0]);
                let piece = self.piece(left, rank);
                let taken = IndexBox::whole(rows.shape())
                    .with(0, part.first()[0], part.extent()[0])
                    .with(1, from, count)
                    .of(rows, piece.window.low)?;
                let factor = Place { base: piece.base, view: taken };
                let piece = self.piece(target, rank);
                let sum = Place { base: piece.base, view: part.of(out, piece.window.low)? };
                let mut product = sum;
                if step > 0 {
                    let view = View::contiguous(part.extent()).map_err(|error| Error::new(status::BATCH, error.0))?;
                    product = Place { base: self.local_base(rank, &piece.base, view.len(), view.shape()[1]), view };
                }
                self.stages.push(stage, rank, instr, index, &[product, factor, panel_place].map(Local::Data));
                if step > 0 {
                    self.stages.push(stage, rank, &add.instr, add.index, &[sum, sum, product].map(Local::Data));
                    self.stages.push_system(stage, rank, Opcode::Discard, &product.base);
                }
                if arrived {
                    self.stages.push_system(stage, rank, Opcode::Discard, &panel_place.base);
                }
            }
        }
        let last = first + panels.len() - 1;
        self.reads(left, last);
        self.reads(right, last);
        self.finish(target, out, last, false);
        Ok(())
    }
}
