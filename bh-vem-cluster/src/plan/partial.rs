//! Plans methods whose results are sums over ranks: each computes with the cut operand's elements that it owns, and a
//! fixed tree of ranks adds the results. No large array moves.

use crate::plan::boxes::{IndexBox, inside, span_of};
use crate::plan::fold::Partials;
use crate::plan::panels::Factor;
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::Local;
use crate::plan::workers::{ArrayView, Workers};
use bh_bytecode::opcode::SAME_BITS;
use bh_bytecode::{BatchRef, DType, Opcode, Operand, View};
use bh_core::error::Result;

/// The product must be this many times smaller than the cut factor, because each rank holds a partial product.
const LEAST_GAIN: i64 = 4;

/// An operand of the ranks' work.
enum Input {
    /// The ranks' shares of a view.
    Shared(Box<(u64, View)>, Vec<Share>),
    /// The same operand for all ranks.
    Same(Operand),
}

/// An operand's array and view.
fn factor_of(batch: &BatchRef<'_>, index: u32, operand: usize) -> Option<(u64, View)> {
    let view = batch.instrs[index as usize].operands().get(operand)?.as_view()?;
    Some((batch.base_of(view)?.id, batch.view(view)))
}

impl Planner {
    /// Plans a matrix product with a cut inner dimension: each rank multiplies its own rows of the right factor. False
    /// if another way suits it.
    pub(crate) fn product_by_parts(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<bool> {
        let factors = [0, 1, 2].map(|operand| factor_of(batch, index, operand));
        let [Some(out), Some(left), Some(right)] = factors else { return Ok(false) };
        let same = out.0 == left.0 || out.0 == right.0;
        if same || [&out, &left, &right].iter().any(|(_, view)| view.is_empty()) {
            return Ok(false);
        }
        self.know_inputs(batch, &batch.instrs[index as usize]);
        let gains = LEAST_GAIN * out.1.len() <= right.1.len();
        let Some(shares) = self.slabs((right.0, &right.1)).filter(|_| gains) else { return Ok(false) };
        if self.arrays[&right.0].base.dtype() == DType::Bool {
            return Ok(false);
        }
        // The columns of the left factor that match these rows.
        let (whole, inner) = (IndexBox::whole(left.1.shape()), left.1.rank() - 1);
        let beside: Vec<Share> =
            shares.iter().map(|(rank, rows)| (*rank, whole.with(inner, rows.first()[0], rows.extent()[0]))).collect();
        if left.1.len() > right.1.len() && !self.is_available(left.0, &left.1, &beside)? {
            return Ok(false);
        }
        let at = self.fetchable(left.0);
        if !self.is_available(left.0, &left.1, &beside)? && self.fetch(left.0, &left.1, &beside, at)?.is_err() {
            return Ok(false);
        }
        self.add_parts(batch, index, &[Input::Shared(Box::new(left), beside), Input::Shared(Box::new(right), shares)])
    }

    /// Plans a count of true elements. False if another way suits it.
    pub(crate) fn count_by_parts(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<bool> {
        let (Some(out), Some(source)) = (factor_of(batch, index, 0), factor_of(batch, index, 1)) else {
            return Ok(false);
        };
        if out.0 == source.0 || source.1.is_empty() {
            return Ok(false);
        }
        self.know_inputs(batch, &batch.instrs[index as usize]);
        match self.slabs((source.0, &source.1)) {
            Some(shares) => self.add_parts(batch, index, &[Input::Shared(Box::new(source), shares)]),
            None => Ok(false),
        }
    }

    /// Plans a scatter-add of whole numbers to few elements: each rank adds its own values to zeros. False if another
    /// way suits it.
    pub(crate) fn scatter_by_parts(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<bool> {
        let Some(shares) = self.scattered(batch, index) else { return Ok(false) };
        let instr = &batch.instrs[index as usize];
        let mut operands = Vec::new();
        for operand in 1..3 {
            let factor = factor_of(batch, index, operand);
            if let Some((id, view)) = &factor {
                let at = self.fetchable(*id);
                if !self.is_available(*id, view, &shares)? && self.fetch(*id, view, &shares, at)?.is_err() {
                    return Ok(false);
                }
            }
            operands.push(match factor {
                Some(factor) => Input::Shared(Box::new(factor), shares.clone()),
                None => Input::Same(instr.operands()[operand]),
            });
        }
        self.add_parts(batch, index, &operands)
    }

    /// The rows of the indices by owner, if a scatter-add moves less as a sum over ranks.
    pub(crate) fn scattered(&mut self, batch: &BatchRef<'_>, index: u32) -> Option<Vec<Share>> {
        let instr = &batch.instrs[index as usize];
        if instr.opcode != Opcode::ScatterAdd || instr.param == SAME_BITS || instr.count != 3 {
            return None;
        }
        let (out, indices) = (factor_of(batch, index, 0)?, factor_of(batch, index, 2)?);
        let values = factor_of(batch, index, 1);
        let known = values.is_some() || instr.operands()[1].as_constant().is_some();
        let same = [values.as_ref(), Some(&indices)].into_iter().flatten().any(|(id, _)| *id == out.0);
        if same || !known || indices.1.is_empty() || out.1.is_empty() {
            return None;
        }
        self.know_inputs(batch, instr);
        let base = batch.base_of(instr.operands()[0].as_view()?)?;
        let array = self.array(base, Some(&out.1));
        // Rounding makes other sums depend on the order of the indices.
        if !array.base.dtype().is_int() || array.extension != (0, 0) {
            return None;
        }
        let shares = self.slabs((indices.0, &indices.1))?;
        (out.1.len() * shares.len() as i64 <= indices.1.len()).then_some(shares)
    }

    /// The rows of a view by owner, if there are several owners and each has one box of whole rows.
    pub(crate) fn slabs(&self, (id, view): Factor<'_>) -> Option<Vec<Share>> {
        let array = self.arrays.get(&id)?;
        if array.small || array.cuts.is_first() {
            return None;
        }
        let mut shares = Vec::new();
        for rank in array.cuts.owners(span_of(view)) {
            match inside(view, array.cuts.own(rank))?[..] {
                [] => {}
                [rows] if rows.is_whole(view.shape(), !1) => shares.push((rank, rows)),
                _ => return None,
            }
        }
        (shares.len() > 1).then_some(shares)
    }

    /// Lets every rank compute with its shares of the operands, which it has, and adds the results in the order of
    /// ranks.
    fn add_parts(&mut self, batch: &BatchRef<'_>, index: u32, operands: &[Input]) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        let Some(output) = instr.operands()[0].as_view() else { return Ok(false) };
        let (target, view) = (self.target(batch, index, output, None)?, batch.view(output));
        let like = self.arrays[&target].base;
        let (mut stage, mut members, mut places) = (0, Vec::new(), Vec::new());
        for operand in operands {
            let Input::Shared(factor, shares) = operand else { continue };
            let (id, view) = &**factor;
            let mut own = Vec::with_capacity(shares.len());
            for share in shares {
                let (place, ready) = self.locate(*id, view, *share)?;
                stage = stage.max(ready);
                own.push(Local::Data(place));
            }
            places.push(own);
            members.clone_from(shares);
        }
        let mut mine = Vec::with_capacity(members.len());
        for (number, &(rank, _)) in members.iter().enumerate() {
            let result = self.scratch(rank, &like, view.shape())?;
            let mut shared = places.iter().map(|own| own[number]);
            let inputs = operands.iter().map(|operand| match operand {
                Input::Same(operand) => Local::Same(*operand),
                Input::Shared(..) => shared.next().unwrap_or(Local::Data(result)),
            });
            let locals: Vec<Local> = std::iter::once(Local::Data(result)).chain(inputs).collect();
            self.stages.push(stage, rank, instr, index, &locals);
            mine.push((rank, result));
        }
        for operand in operands {
            if let Input::Shared(factor, _) = operand {
                self.reads(factor.0, stage);
            }
        }
        let members = Workers { ranks: 0..0, uniform: 0..0, everywhere: false }.members(&members);
        let partials = Partials::of_all(members, mine, like, view.shape());
        let target = ArrayView { id: target, view: &view };
        self.combine_partials(batch, index, target, partials, stage + 1)
    }
}
