//! Plans what one rank does alone: what it reads comes there, and what it writes goes to its owners. Of siblings, each does some, so
//! that several are done at once.

use crate::plan::boxes::{IndexBox, span_of};
use crate::plan::layout::covers;
use crate::plan::planner::Planner;
use crate::plan::stage::{Local, Place};
use bh_bytecode::{BatchRef, Instr, Opcode, View};
use bh_core::error::Result;
use std::collections::HashMap;

/// Where a rank has an operand.
enum There {
    /// In its piece of the array.
    Piece,
    /// In memory of its own, from where it goes to the owners.
    Apart(Box<Place>),
}

impl Planner {
    /// Brings an instruction to one rank.
    pub(crate) fn bring_together(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<()> {
        let instr = &batch.instrs[index as usize];
        self.know_inputs(batch, instr);
        for output in instr.outputs().iter().filter_map(|operand| operand.as_view()) {
            if let Some(base) = batch.base_of(output) {
                self.array(base, Some(&batch.view(output)));
            }
        }
        let rank = self.doer(batch, instr);
        let (mut stage, mut there) = (0, Vec::new());
        for (place, operand) in instr.operands().iter().enumerate() {
            let Some((number, base)) = operand.as_view().and_then(|view| Some((view, batch.base_of(view)?))) else {
                there.push(There::Piece);
                continue;
            };
            let view = batch.view(number);
            if place < usize::from(instr.outputs) && self.is_apart(batch, instr, place, rank) {
                let like = self.arrays[&base.id].base;
                there.push(There::Apart(Box::new(self.scratch(rank, &like, view.shape())?)));
                continue;
            }
            there.push(There::Piece);
            self.bring_to(rank, base.id, &view, place < usize::from(instr.outputs))?;
        }
        // A window that grew for a later operand is another base.
        let mut operands = Vec::with_capacity(there.len());
        for (place, (operand, there)) in instr.operands().iter().zip(&there).enumerate() {
            operands.push(match (operand.as_view().map(|view| (view, batch.base_of(view))), there) {
                (None, _) => Local::Same(*operand),
                (Some((number, None)), _) => Local::Index(batch.view(number)),
                (_, There::Apart(place)) => Local::Data(**place),
                (Some((number, Some(base))), There::Piece) => {
                    let (view, whole) = (batch.view(number), IndexBox::whole(batch.shape(number)));
                    let (found, ready) = match place < usize::from(instr.outputs) {
                        true => {
                            let piece = self.piece(base.id, rank);
                            let view = whole.of(&view, piece.window.low)?;
                            (Place { base: piece.base, view }, self.after_use(base.id))
                        }
                        false => self.locate(base.id, &view, (rank, whole))?,
                    };
                    stage = stage.max(ready);
                    Local::Data(found)
                }
            });
        }
        self.stages.push(stage, rank, instr, index, &operands);
        self.note_alone(batch, index, stage);
        for (output, there) in instr.outputs().iter().zip(there) {
            let Some((number, base)) = output.as_view().and_then(|view| Some((view, batch.base_of(view)?))) else {
                continue;
            };
            self.give_back(base.id, &batch.view(number), (rank, there), stage)?;
        }
        Ok(())
    }

    /// Brings a view to the rank that needs all of it, and writes it if `written`.
    fn bring_to(&mut self, rank: usize, id: u64, view: &View, written: bool) -> Result<()> {
        let (span, whole) = (span_of(view), [(rank, IndexBox::whole(view.shape()))]);
        if span.is_empty()
            || self.arrays[&id].valid(rank).contains(span)
            || !written && self.is_here(id, view, &whole)?
        {
            return Ok(());
        }
        let at = self.fetchable(id);
        // A copy lets others have theirs in the same stage.
        let copies = self.shares_out && !written && !self.arrays[&id].small;
        if copies && self.pack(id, rank, view, at, &HashMap::new())? {
            return Ok(());
        }
        // All between the first and the last element is as good as the elements, and always one run.
        self.widen(id, rank, span, at, &mut HashMap::new())
    }

    /// Notes an instruction that one rank does in a stage, and that arrays which are cut were brought there for it.
    fn note_alone(&mut self, batch: &BatchRef<'_>, index: u32, stage: usize) {
        let instr = &batch.instrs[index as usize];
        let views = instr.operands().iter().filter_map(|operand| operand.as_view());
        let ids: Vec<u64> = views.filter_map(|view| Some(batch.base_of(view)?.id)).collect();
        if ids.iter().any(|id| !self.arrays[id].cuts.is_first()) {
            self.gathered.push(index);
        }
        ids.into_iter().for_each(|id| self.reads(id, stage));
    }

    /// The rank that does an instruction: of siblings the one that is done first with it, by the elements that each has.
    fn doer(&mut self, batch: &BatchRef<'_>, instr: &Instr) -> usize {
        let views = || instr.operands().iter().filter_map(|operand| operand.as_view());
        let fixed = |view: u32| batch.base_of(view).is_some_and(|base| self.arrays[&base.id].fixed);
        let outputs = usize::from(instr.outputs);
        let movable = || (0..outputs).all(|output| self.is_apart(batch, instr, output, 1)) && !views().any(fixed);
        if !self.shares_out || !movable() {
            return 0;
        }
        let elements: f64 = views().map(|view| batch.views[view as usize].len as f64).sum();
        let weights = self.settings.weights.as_slice();
        self.alone.resize(self.ranks(), 0.0);
        let ranks = (0..self.alone.len()).filter(|&rank| weights.get(rank).is_none_or(|weight| *weight > 0.0));
        let until = |&rank: &usize| (self.alone[rank] + elements) / weights.get(rank).unwrap_or(&1.0);
        let rank = ranks.min_by(|one, other| until(one).total_cmp(&until(other))).unwrap_or(0);
        self.alone[rank] += elements;
        rank
    }

    /// Is an output made in memory of its own: a run of elements, which methods write as a whole, and which is not all the rank's?
    fn is_apart(&self, batch: &BatchRef<'_>, instr: &Instr, output: usize, rank: usize) -> bool {
        let base_of = |operand: usize| Some(batch.views[instr.operands()[operand].as_view()? as usize].base);
        let (Some(number), Some(own)) = (instr.operands()[output].as_view(), base_of(output)) else { return false };
        let Some(array) = batch.base_of(number).and_then(|base| self.arrays.get(&base.id)) else { return false };
        let others = (0..instr.operands().len()).filter(|&other| other != output);
        let run = batch.view(number).is_contiguous() && !batch.view(number).is_empty();
        run && instr.opcode.is_extension()
            && !array.fixed
            && others.into_iter().all(|other| base_of(other) != Some(own))
            && (rank != 0 || !array.cuts.is_first() && (self.shares_out || covers(batch, number)))
    }

    /// Sends what a rank wrote of a view in a stage to the ranks that it belongs to.
    fn give_back(&mut self, id: u64, view: &View, (from, there): (usize, There), stage: usize) -> Result<()> {
        let span = span_of(view);
        let (source, window, apart) = match there {
            There::Piece => {
                let piece = self.piece(id, from);
                (piece.base, piece.window, false)
            }
            There::Apart(place) => (place.base, span, true),
        };
        let used = if apart { self.after_use(id).max(stage) } else { stage };
        let mut last = stage;
        for rank in self.arrays[&id].reaching(span) {
            let part = self.arrays[&id].reach(rank).meet(span);
            if part.is_empty() || (rank == from && !apart) {
                continue;
            }
            last = used + 1;
            let piece = self.piece(id, rank);
            let (source, target) = (Place::run(source, part, window)?, Place::run(piece.base, part, piece.window)?);
            self.move_data(id, from, rank, source, target, last);
        }
        if apart {
            self.stages.push_system(last, from, Opcode::Discard, &source);
        }
        self.finish(id, view, last, false);
        Ok(())
    }
}
