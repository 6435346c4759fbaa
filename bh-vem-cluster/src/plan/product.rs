//! Matrix products: the product's rows stay in place, and the right factor is sent in panels of rows, on each rank
//! beginning with its own. A rank holds only its own rows and one panel. If a grid of ranks moves less, ranks get parts
//! of panels ([`crate::plan::grid::product`]). A factor that is small compared to the ranks' memory is copied to all of
//! them.

use crate::plan::boxes::{IndexBox, span_of};
use crate::plan::fold::OwnInstr;
use crate::plan::grid::product::ProductGrid;
use crate::plan::panels::{Factor, Panel};
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::{Local, Place};
use bh_bytecode::{BatchRef, DType, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

impl Planner {
    /// Plans a product by panels. False if another way suits it.
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
        if self.arrays[&right.0].base.bytes() <= self.settings.keep_bytes {
            // The copy also serves later products.
            let at = self.fetchable(right.0);
            if self.fetch(right.0, &right.1, &whole, at)?.is_ok() {
                return Ok(false);
            }
        }
        if self.is_available(right.0, &right.1, &whole)? || !self.bring_rows((left.0, &left.1), &shares)? {
            return Ok(false);
        }
        let factors = [(target, &out.1), (left.0, &left.1), (right.0, &right.1)];
        let extents = [out.1.shape()[0], right.1.shape()[0], right.1.shape()[1]];
        match ProductGrid::best(&shares, &panels, extents) {
            Some(grid) => self.product_on_grid(batch, index, factors, (&shares, &panels), grid)?,
            None => self.by_panels(batch, index, factors, (&shares, &panels))?,
        }
        Ok(true)
    }

    /// Brings the left factor's rows to the ranks of the product's rows; false if they do not fit in one shard.
    fn bring_rows(&mut self, (id, view): Factor<'_>, shares: &[Share]) -> Result<bool> {
        let whole = IndexBox::whole(view.shape());
        let rows: Vec<Share> =
            shares.iter().map(|(rank, part)| (*rank, whole.with(0, part.first()[0], part.extent()[0]))).collect();
        let at = self.fetchable(id);
        if !self.is_available(id, view, &rows)? && self.fetch(id, view, &rows, at)?.is_err() {
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
        let add = OwnInstr::new(batch, index, Opcode::Add, 3);
        let ready = [self.arrays[&left].wrote, self.arrays[&left].arrived].map(|when| self.stage_of(when));
        let first = self.fetchable(right).max(self.after_use(target)).max(ready[0]).max(ready[1]);
        for step in 0..panels.len() {
            let stage = first + step;
            for (number, &(rank, part)) in shares.iter().enumerate() {
                let panel = panels[(number + step) % panels.len()];
                if !self.stages.hosts(rank) && !self.stages.hosts(panel.owner) {
                    continue;
                }
                let (panel_place, arrived) = self.bring_panel((right, columns), panel, rank, stage)?;
                let (from, count) = (panel.rows.first()[0], panel.rows.extent()[0]);
                let shard = self.shard(left, rank);
                let taken = IndexBox::whole(rows.shape())
                    .with(0, part.first()[0], part.extent()[0])
                    .with(1, from, count)
                    .of(rows, shard.window.low)?;
                let factor = Place { base: shard.base, view: taken };
                let shard = self.shard(target, rank);
                let sum = Place { base: shard.base, view: part.of(out, shard.window.low)? };
                let mut product = sum;
                if step > 0 {
                    let view = View::contiguous(part.extent()).map_err(|error| Error::new(status::BATCH, error.0))?;
                    product = Place { base: self.local_base(rank, &shard.base, view.len(), view.shape()[1]), view };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::Weights;
    use crate::plan::settings::Settings;
    use bh_bytecode::batch::Extension;
    use bh_bytecode::{Base, Batch, Instr, Operand};

    /// The numbers of transfers and instructions that one of many ranks plans for a product.
    fn planned(ranks: usize, rank: usize, [rows, inner, columns]: [i64; 3]) -> [usize; 2] {
        let mut batch = Batch::default();
        let (name, name_len) = batch.push_string("matmul");
        let opcode = Opcode(Opcode::FIRST_EXTENSION);
        batch.extensions.push(Extension { opcode, reserved: 0, name, name_len });
        let mut operand = |id: u64, shape: [i64; 2]| {
            let base = Base { row_hint: shape[1], ..Base::new(id, DType::F64, shape[0] * shape[1]) };
            let place = batch.push_base(base);
            Operand::view(batch.push_view(place, &View::contiguous(&shape).unwrap()))
        };
        let operands = [operand(1, [rows, columns]), operand(2, [rows, inner]), operand(3, [inner, columns])];
        batch.push_instr(Instr::new(opcode, &operands));
        let settings = Settings { weights: Weights::even(ranks), ..Settings::default(ranks) };
        let mut id = 100;
        let new_id = move || {
            id += 1;
            id
        };
        let mut planner = Planner::new(ranks, rank..rank + 1, settings, Box::new(new_id));
        planner.begin(&batch.as_ref(), &[0]);
        planner.plan(&batch.as_ref(), 0).unwrap();
        planner.end();
        let stages = planner.take_stages();
        let count = |of: &dyn Fn(&crate::plan::stage::Stage) -> usize| stages.iter().map(of).sum();
        [count(&|stage| stage.transfers.len()), count(&|stage| stage.local[0].batch.instrs.len())]
    }

    #[test]
    fn a_rank_plans_what_it_sends_gets_and_computes() {
        // Panels of the right factor come from all ranks; on a grid, from the ranks of a line.
        for ranks in [16usize, 256, 1024] {
            let line = ranks.isqrt();
            let [transfers, instrs] = planned(ranks, ranks / 2 + 1, [ranks as i64 * 2; 3]);
            let limit = 2 * ranks + 4 * line * line + 4 * line;
            assert!(transfers <= limit && instrs <= 8 * ranks, "{ranks} ranks: {transfers}, {instrs}");
            let [transfers, _] = planned(ranks, 3, [ranks as i64 * 300, 16, ranks as i64]);
            assert!(transfers <= limit, "{ranks} ranks: {transfers}");
        }
    }
}
