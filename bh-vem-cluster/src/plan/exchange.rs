//! Plans gathers and scatters between ranks: each rank requests the elements that its indices name from their owners,
//! or sends owners the new values. Nothing else moves.

use crate::plan::boxes::{IndexBox, inside, span_of};
use crate::plan::layout::Cuts;
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::Place;
use bh_bytecode::{BatchRef, Instr, Kind, Opcode, View};
use bh_core::error::Result;
use std::collections::{BTreeMap, HashMap};

/// Bytes of an element's number in a message.
pub const NUMBER: usize = 8;

/// The values for a share of the indices.
#[derive(Clone, Debug)]
pub enum Values {
    /// Elements in a rank's memory.
    Data(Box<Place>),
    /// A constant.
    Same(Vec<u8>),
}

/// A rank's part of the indices.
#[derive(Clone, Debug)]
pub struct Part {
    pub rank: usize,
    /// The box of this part among all indices.
    pub which: IndexBox,
    pub indices: Place,
    /// The target of gathered elements, or the source of scattered ones.
    pub values: Values,
    pub mask: Option<Place>,
}

/// The parts of the indices, and the owners' elements by rank.
type Prepared = (Vec<Part>, BTreeMap<usize, Place>);

/// The plan of an exchange.
#[derive(Debug)]
pub struct Exchange {
    pub gathers: bool,
    pub opcode: Opcode,
    /// The view whose elements the indices number.
    pub view: View,
    /// The owners of its elements.
    pub cuts: Cuts,
    /// The owners' elements.
    pub owned: BTreeMap<usize, Place>,
    pub parts: Vec<Part>,
    /// The shape of all indices.
    pub shape: Vec<i64>,
    /// The output.
    pub written: (u64, View),
}

impl Planner {
    /// Plans an instruction with indices as an exchange; `None` if another way suits it.
    pub fn plan_exchange(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<Option<Exchange>> {
        let instr = &batch.instrs[index as usize];
        let operands: Vec<Option<u32>> = instr.operands().iter().map(|operand| operand.as_view()).collect();
        let based = |view: Option<u32>| Some((batch.base_of(view?)?, view?));
        if instr.opcode.kind() != Kind::Index
            || operands.iter().flatten().any(|&view| batch.views[view as usize].len == 0)
        {
            return Ok(None);
        }
        self.check_inputs(batch, instr)?;
        self.know_inputs(batch, instr);
        if self.scattered(batch, index).is_some() {
            return Ok(None);
        }
        let gathers = instr.opcode == Opcode::Gather;
        let (Some((base, data)), Some((_, indices))) = (based(operands[usize::from(gathers)]), based(operands[2]))
        else {
            return Ok(None);
        };
        let (id, view) = (base.id, batch.view(data));
        let array = self.array(base, Some(&view));
        if array.cuts.is_first() || array.fixed || array.small || array.extension != (0, 0) {
            return Ok(None);
        }
        let shares = match gathers {
            true => self.gather_shares(batch, index, (id, &view))?,
            false => self.scatter_shares(batch, &operands[1..]),
        };
        let Some(shares) = shares else { return Ok(None) };
        self.exchange(batch, instr, (id, view, gathers), &shares).map(|parts| {
            let (parts, owned) = parts?;
            let output = operands[0]?;
            let written = (batch.base_of(output)?.id, batch.view(output));
            let (cuts, shape) = (self.arrays[&id].cuts.clone(), batch.shape(indices).to_vec());
            Some(Exchange { gathers, opcode: instr.opcode, view, cuts, owned, parts, shape, written })
        })
    }

    /// The shares of a gather's output, if requests move fewer bytes than copying the whole source to every rank.
    fn gather_shares(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (id, view): (u64, &View),
    ) -> Result<Option<Vec<Share>>> {
        let instr = &batch.instrs[index as usize];
        let Some(output) = instr.operands()[0].as_view() else { return Ok(None) };
        let target = self.target(batch, index, output, None)?;
        if target == id {
            return Ok(None);
        }
        let whole = IndexBox::whole(view.shape());
        let Some(shares) = self.shares(target, &batch.view(output)) else { return Ok(None) };
        let all: Vec<Share> = shares.iter().map(|&(rank, _)| (rank, whole)).collect();
        let size = batch.base_of(output).map_or(1, |base| base.dtype().size() as i64);
        let most = shares.iter().map(|(_, part)| part.len()).max().unwrap_or(0);
        let worth = most * (size + NUMBER as i64) < view.len() * size;
        Ok((worth && !self.is_available(id, view, &all)?).then_some(shares))
    }

    /// The shares of a scatter's indices, in the order of ranks: the last value for an element wins.
    fn scatter_shares(&self, batch: &BatchRef<'_>, inputs: &[Option<u32>]) -> Option<Vec<Share>> {
        // Indices stay where they are. If one rank has all of them, the shares are those of the values.
        let of = |view: u32| {
            let cuts = &self.arrays.get(&batch.base_of(view)?.id)?.cuts;
            let mut shares = Vec::new();
            for rank in cuts.owners(span_of(&batch.view(view))) {
                shares.extend(inside(&batch.view(view), cuts.own(rank))?.into_iter().map(|part| (rank, part)));
            }
            Some(shares)
        };
        let indices = inputs[1].and_then(of)?;
        let values = inputs[0].and_then(of).unwrap_or_default();
        let shares = if indices.len() == 1 && values.len() > 1 { values } else { indices };
        let shape = batch.shape(inputs[1]?);
        let outer = shape.iter().position(|&extent| extent > 1);
        let ordered = shares.windows(2).all(|pair| {
            let first = |share: &Share| outer.map_or(0, |dim| share.1.first()[dim]);
            pair[0].0 < pair[1].0 && first(&pair[0]) < first(&pair[1])
        });
        let rows = outer.map_or(0, |dim| !(1u32 << dim));
        let slabs = shares.len() == 1 || shares.iter().all(|(_, part)| part.is_whole(shape, rows));
        (ordered && slabs).then_some(shares)
    }

    /// Brings indices, values and masks to the ranks of their shares, and locates the owners' elements.
    fn exchange(
        &mut self,
        batch: &BatchRef<'_>,
        instr: &Instr,
        (id, view, gathers): (u64, View, bool),
        shares: &[Share],
    ) -> Result<Option<Prepared>> {
        // Operand 0 of a gather is its output; operand 1 of a scatter is an input.
        let inputs = if gathers { &[2][..] } else { &[1, 2, 3] };
        let mut sources = Vec::new();
        for &operand in inputs.iter().filter(|&&operand| operand < instr.count as usize) {
            let Some(number) = instr.operands()[operand].as_view() else { continue };
            match batch.base_of(number) {
                Some(base) if gathers || base.id != id => sources.push((operand, base.id, batch.view(number))),
                _ => return Ok(None),
            }
        }
        for (_, from, source) in &sources {
            let at = self.fetchable(*from);
            if !self.is_available(*from, source, shares)? && self.fetch(*from, source, shares, at)?.is_err() {
                return Ok(None);
            }
        }
        let mut places: HashMap<usize, Vec<Place>> = HashMap::new();
        for (operand, from, source) in &sources {
            for &share in shares {
                let place = self.locate(*from, source, share)?.0;
                places.entry(*operand).or_default().push(place);
            }
        }
        let mut parts = Vec::new();
        for (number, &(rank, which)) in shares.iter().enumerate() {
            let values = if gathers {
                let Some(output) = instr.operands()[0].as_view() else { return Ok(None) };
                let Some(base) = batch.base_of(output) else { return Ok(None) };
                let shard = self.shard(base.id, rank);
                Values::Data(Box::new(Place {
                    base: shard.base,
                    view: which.of(&batch.view(output), shard.window.low)?,
                }))
            } else if let Some(found) = places.get(&1) {
                Values::Data(Box::new(found[number]))
            } else {
                let Some(constant) = instr.operands()[1].as_constant() else { return Ok(None) };
                let constant = &batch.constants[constant as usize];
                let bytes: Vec<u8> = constant.bits.iter().flat_map(|word| word.to_ne_bytes()).collect();
                Values::Same(bytes[..self.arrays[&id].base.dtype().size()].to_vec())
            };
            let mask = places.get(&3).map(|found| found[number]);
            parts.push(Part { rank, which, indices: places[&2][number], values, mask });
        }
        let mut owned = BTreeMap::new();
        let cuts = self.arrays[&id].cuts.clone();
        for rank in cuts.owners(span_of(&view)) {
            let shard = self.shard(id, rank);
            owned.insert(rank, Place::run(shard.base, cuts.own(rank), shard.window)?);
        }
        Ok(Some((parts, owned)))
    }
}
