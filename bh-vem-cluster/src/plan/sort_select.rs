//! Plans sort, argsort, flatnonzero and compress on distributed arrays: each rank computes a local result, and sends
//! every owner of the output its part of it. Nothing else moves.

use crate::plan::boxes::{Span, span_of};
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::Place;
use bh_bytecode::{BatchRef, DType, View};
use bh_core::error::Result;

/// The method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Sorted elements.
    Sort,
    /// Positions in sorted order.
    Argsort,
    /// Positions where a mask is true.
    Flatnonzero,
    /// Elements where a mask is true.
    Compress,
}

impl Method {
    fn of(method: &str) -> Option<Method> {
        Some(match method {
            "sort" => Method::Sort,
            "argsort" => Method::Argsort,
            "flatnonzero" => Method::Flatnonzero,
            "compress" => Method::Compress,
            _ => return None,
        })
    }

    /// Is the output as long as the input?
    pub fn keeps_length(self) -> bool {
        matches!(self, Method::Sort | Method::Argsort)
    }
}

/// A rank's part of the input.
#[derive(Clone, Debug)]
pub struct Part {
    pub rank: usize,
    /// The position of its first element in the whole input.
    pub first: i64,
    pub inputs: Vec<Place>,
}

/// An owner's part of the output.
#[derive(Clone, Debug)]
pub struct Owner {
    pub rank: usize,
    /// Its positions in the output.
    pub numbers: Span,
    pub place: Place,
}

/// The parts of the input and of the output, in the order of ranks, which is the order of elements.
#[derive(Debug)]
pub struct SortSelect {
    pub method: Method,
    pub dtype: DType,
    pub parts: Vec<Part>,
    pub owners: Vec<Owner>,
    /// The output.
    pub written: (u64, View),
}

impl Planner {
    /// Plans such a method; `None` if another way suits it.
    pub fn plan_sort_select(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<Option<SortSelect>> {
        let instr = &batch.instrs[index as usize];
        let method = if instr.opcode.is_extension() { batch.extension_name(instr.opcode) } else { None };
        let Some(method) = method.and_then(Method::of) else { return Ok(None) };
        let operand = |view: u32| Some((batch.base_of(view)?.id, as_line(batch.view(view))));
        let operands: Option<Vec<(u64, View)>> =
            instr.operands().iter().map(|one| operand(one.as_view()?).filter(|(_, view)| !view.is_empty())).collect();
        let (Some(operands), Some(output)) = (operands, instr.operands()[0].as_view()) else { return Ok(None) };
        let inputs = if method == Method::Compress { 2 } else { 1 };
        let written = operands[0];
        let lines = if method.keeps_length() { operands.len() } else { 1 };
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
        if !cut || method.keeps_length() && dtype.is_complex() {
            return Ok(None);
        }
        let target = self.target(batch, index, output, None)?;
        let array = &self.arrays[&target];
        if array.extension != (0, 0) || method.keeps_length() && array.cuts.is_first() {
            return Ok(None);
        }
        let Some(shares) = self.parts_in_order((id, &source), method.keeps_length().then_some(written)) else {
            return Ok(None);
        };
        for (id, view) in &operands[1..] {
            let at = self.fetchable(*id);
            if !self.is_available(*id, view, &shares)? && self.fetch(*id, view, &shares, at)?.is_err() {
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
        Ok(Some(SortSelect { method, dtype, parts, owners, written: (target, batch.view(output)) }))
    }

    /// The rows of a view by rank, if they are in the order of ranks. Otherwise the shares of `line`'s owners, if
    /// given.
    fn parts_in_order(&self, source: (u64, &View), line: Option<(u64, View)>) -> Option<Vec<Share>> {
        let ordered = |shares: &Vec<Share>| shares.windows(2).all(|pair| pair[0].1.first()[0] < pair[1].1.first()[0]);
        let slabs = self.slabs(source).filter(ordered);
        slabs.or_else(|| line.and_then(|(id, view)| self.shares(id, &view)).filter(ordered))
    }

    /// The owners of a contiguous line, with their parts.
    fn owners_of_line(&mut self, id: u64, line: &View) -> Result<Vec<Owner>> {
        let all = span_of(line);
        let mut owners = Vec::new();
        for rank in self.arrays[&id].reaching(all) {
            let part = self.arrays[&id].reach(rank).meet(all);
            if part.is_empty() {
                continue;
            }
            let shard = self.shard(id, rank);
            let place = Place::run(shard.base, part, shard.window)?;
            owners.push(Owner { rank, numbers: Span::new(part.low - all.low, part.high - all.low), place });
        }
        Ok(owners)
    }
}

/// A view with extents of 1 in all but the last dimension becomes one-dimensional.
fn as_line(view: View) -> View {
    match (view.shape().split_last(), view.stride().last()) {
        (Some((&extent, outer)), Some(&step)) if outer.iter().all(|&extent| extent == 1) => {
            View::new(view.start(), &[extent], &[step]).unwrap_or(view)
        }
        _ => view,
    }
}
