//! Plans methods whose result is one row of elements of all ranks: a sorted line, or the elements that a mask chooses. Each rank
//! makes its part of them, and each owner of the result gets what belongs to it; nothing else moves.

use crate::plan::boxes::{Span, span_of};
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::Place;
use bh_bytecode::{BatchRef, DType, View};
use bh_core::error::Result;

/// What the result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dealt {
    /// The elements in order.
    Sorted,
    /// The positions that put them in order.
    Order,
    /// The positions where a mask is true.
    Numbers,
    /// The elements there.
    Chosen,
}

impl Dealt {
    fn of(method: &str) -> Option<Dealt> {
        Some(match method {
            "sort" => Dealt::Sorted,
            "argsort" => Dealt::Order,
            "flatnonzero" => Dealt::Numbers,
            "compress" => Dealt::Chosen,
            _ => return None,
        })
    }

    /// Is it as long as what it is made of?
    pub fn keeps_all(self) -> bool {
        matches!(self, Dealt::Sorted | Dealt::Order)
    }
}

/// A rank's part of the operands.
#[derive(Clone, Debug)]
pub struct Part {
    pub rank: usize,
    /// The number of its first element among all.
    pub first: i64,
    pub inputs: Vec<Place>,
}

/// A rank's part of the result.
#[derive(Clone, Debug)]
pub struct Owner {
    pub rank: usize,
    /// Which elements of the result.
    pub numbers: Span,
    pub place: Place,
}

/// Who makes and who gets what; both in the order of ranks, which is that of elements.
#[derive(Debug)]
pub struct Dealing {
    pub dealt: Dealt,
    pub dtype: DType,
    pub parts: Vec<Part>,
    pub owners: Vec<Owner>,
    /// What is written.
    pub written: (u64, View),
}

impl Planner {
    /// How such a method is done by all ranks; `None` if that is not for this one.
    pub fn plan_dealing(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<Option<Dealing>> {
        let instr = &batch.instrs[index as usize];
        let method = if instr.opcode.is_extension() { batch.extension_name(instr.opcode) } else { None };
        let Some(dealt) = method.and_then(Dealt::of) else { return Ok(None) };
        let operand = |view: u32| Some((batch.base_of(view)?.id, as_line(batch.view(view))));
        let operands: Option<Vec<(u64, View)>> =
            instr.operands().iter().map(|one| operand(one.as_view()?).filter(|(_, view)| !view.is_empty())).collect();
        let (Some(operands), Some(output)) = (operands, instr.operands()[0].as_view()) else { return Ok(None) };
        let inputs = if dealt == Dealt::Chosen { 2 } else { 1 };
        let written = operands[0];
        let lines = if dealt.keeps_all() { operands.len() } else { 1 };
        if operands.len() != 1 + inputs
            || operands[1..].iter().any(|(id, _)| *id == written.0)
            || operands[..lines].iter().any(|(_, view)| view.rank() != 1)
            || !written.1.is_contiguous()
        {
            return Ok(None);
        }
        self.check_inputs(batch, instr)?;
        self.know_inputs(batch, instr);
        let (id, source) = operands[inputs];
        let (dtype, cut) = (self.arrays[&id].base.dtype(), !self.arrays[&id].cuts.is_first());
        if !cut || dealt.keeps_all() && dtype.is_complex() {
            return Ok(None);
        }
        let target = self.target(batch, index, output, None)?;
        let array = &self.arrays[&target];
        if array.extension != (0, 0) || dealt.keeps_all() && array.cuts.is_first() {
            return Ok(None);
        }
        let Some(shares) = self.parts_in_order((id, &source), dealt.keeps_all().then_some(written)) else {
            return Ok(None);
        };
        for (id, view) in &operands[1..] {
            let at = self.fetchable(*id);
            if !self.is_here(*id, view, &shares)? && self.fetch(*id, view, &shares, at)?.is_err() {
                return Ok(None);
            }
        }
        let inner: i64 = source.shape()[1..].iter().product();
        let mut parts = Vec::with_capacity(shares.len());
        for share in shares {
            let first = share.1.first()[0] * inner;
            let places = operands[1..].iter().map(|(id, view)| Ok(self.locate(*id, view, share)?.0));
            parts.push(Part { rank: share.0, first, inputs: places.collect::<Result<_>>()? });
        }
        let owners = self.owners_of_line(target, &written.1)?;
        Ok(Some(Dealing { dealt, dtype, parts, owners, written: (target, batch.view(output)) }))
    }

    /// The rows of a view by rank, if their order is that of ranks. Else they are brought to the owners of a line of as many elements,
    /// if there is one.
    fn parts_in_order(&self, source: (u64, &View), line: Option<(u64, View)>) -> Option<Vec<Share>> {
        let ordered = |shares: &Vec<Share>| shares.windows(2).all(|pair| pair[0].1.first()[0] < pair[1].1.first()[0]);
        let slabs = self.slabs(source).filter(ordered);
        slabs.or_else(|| line.and_then(|(id, view)| self.shares(id, &view)).filter(ordered))
    }

    /// Who owns which elements of a line without gaps.
    fn owners_of_line(&mut self, id: u64, line: &View) -> Result<Vec<Owner>> {
        let all = span_of(line);
        let mut owners = Vec::new();
        for rank in self.arrays[&id].reaching(all) {
            let part = self.arrays[&id].reach(rank).meet(all);
            if part.is_empty() {
                continue;
            }
            let piece = self.piece(id, rank);
            let place = Place::run(piece.base, part, piece.window)?;
            owners.push(Owner { rank, numbers: Span::new(part.low - all.low, part.high - all.low), place });
        }
        Ok(owners)
    }
}

/// A view of which only the last dimension has more than one index, as one with that alone.
fn as_line(view: View) -> View {
    match (view.shape().split_last(), view.stride().last()) {
        (Some((&extent, outer)), Some(&step)) if outer.iter().all(|&extent| extent == 1) => {
            View::new(view.start(), &[extent], &[step]).unwrap_or(view)
        }
        _ => view,
    }
}
