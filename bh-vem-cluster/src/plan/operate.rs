//! Plans operations: who computes what, and what must move for it.

use crate::plan::boxes::{IndexBox, span_of};
use crate::plan::layout::Parts;
use crate::plan::layout::covers;
use crate::plan::planner::{Planned, Planner, Share};
use crate::plan::stage::{Local, Place, Transfer};
use bh_bytecode::{BatchRef, Instr, Kind, Opcode, View};
use bh_core::error::Result;

/// Which indices of an operand a box of the output needs: `operand` counts from the first input.
type BoxOf<'a> = &'a dyn Fn(usize, &IndexBox) -> IndexBox;

impl Planner {
    pub(crate) fn operate(&mut self, batch: &BatchRef<'_>, index: u32, instr: &Instr) -> Result<Planned> {
        let shape = |operand: usize| instr.inputs()[operand].as_view().map_or(&[][..], |view| batch.shape(view));
        let same: BoxOf<'_> = &|_, part| *part;
        let (planned, risk) = match instr.opcode.kind() {
            Kind::Elementwise | Kind::Generator => (self.by_output(batch, index, same)?, Planned::Done),
            Kind::Reduction => (self.reduce(batch, index)?, Planned::Done),
            Kind::Accumulate => (self.accumulate(batch, index)?, Planned::Done),
            Kind::Index if instr.opcode == Opcode::Gather => {
                let source: BoxOf<'_> = &|operand, part| if operand == 0 { IndexBox::whole(shape(0)) } else { *part };
                (self.by_output(batch, index, source)?, Planned::Risky)
            }
            Kind::Extension if batch.extension_name(instr.opcode) == Some("matmul") => {
                let product: BoxOf<'_> = &|operand, part| factor(operand, part, [shape(0), shape(1)]);
                let fits = instr.count == 3 && [shape(0), shape(1)].iter().all(|shape| (1..=2).contains(&shape.len()));
                (fits && (self.product(batch, index)? || self.by_output(batch, index, product)?), Planned::Risky)
            }
            _ => (false, Planned::Risky),
        };
        if !planned {
            self.bring_together(batch, index)?;
        }
        Ok(risk)
    }

    /// How the inputs' cuts cut the work.
    pub(crate) fn input_parts(&self, batch: &BatchRef<'_>, instr: &Instr) -> Option<Parts> {
        instr.inputs().iter().filter_map(|operand| operand.as_view()).find_map(|view| {
            let array = self.arrays.get(&batch.base_of(view)?.id)?;
            Parts::of(&batch.view(view), &array.cuts)
        })
    }

    /// Can all ranks compute a small array for themselves, as they have all that it depends on?
    fn is_everywhere(&self, batch: &BatchRef<'_>, instr: &Instr, target: u64) -> bool {
        let here = |view: u32| match batch.base_of(view) {
            Some(base) => self.arrays.get(&base.id).is_some_and(|array| array.everywhere),
            None => true,
        };
        let array = &self.arrays[&target];
        let output = instr.outputs().first().and_then(|operand| operand.as_view());
        let keeps = output.is_some_and(|view| covers(batch, view)) && !instr.opcode.reads_output();
        array.small
            && !array.fixed
            && (array.everywhere || keeps)
            && instr.inputs().iter().filter_map(|operand| operand.as_view()).all(here)
    }

    /// Every rank computes what it owns of the output, and fetches what it needs for that. False if that cannot be done
    /// box by box.
    pub(crate) fn by_output(&mut self, batch: &BatchRef<'_>, index: u32, box_of: BoxOf<'_>) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        let Some(output) = instr.outputs().first().and_then(|operand| operand.as_view()) else { return Ok(false) };
        self.know_inputs(batch, instr);
        let parts = match instr.opcode.kind() {
            Kind::Elementwise | Kind::Accumulate => self.input_parts(batch, instr),
            Kind::Reduction => self.input_parts(batch, instr).and_then(|parts| parts.without(u32::from(instr.param))),
            _ => None,
        };
        let target = self.target(batch, index, output, parts.as_ref())?;
        let view = batch.view(output);
        let everywhere = self.is_everywhere(batch, instr, target);
        let shares = match everywhere {
            true => (0..self.ranks()).map(|rank| (rank, IndexBox::whole(view.shape()))).collect(),
            false => match self.shares(target, &view) {
                Some(shares) => shares,
                None => return Ok(false),
            },
        };
        let axes = u32::from(instr.param);
        if instr.opcode.kind() == Kind::Accumulate && !shares.iter().all(|(_, part)| part.is_whole(view.shape(), axes))
        {
            return Ok(false);
        }
        self.compute(batch, index, (target, &view), &shares, box_of, everywhere)
    }

    /// Fetches the operands of shares and appends the instruction to the batches of their ranks.
    fn compute(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (target, view): (u64, &View),
        shares: &[Share],
        box_of: BoxOf<'_>,
        everywhere: bool,
    ) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        let mut stage = self.after_use(target);
        let mut inputs = Vec::with_capacity(instr.inputs().len());
        let mut wanted = Vec::new();
        for (place, operand) in instr.inputs().iter().enumerate() {
            let Some(input) = operand.as_view() else { continue };
            let needs: Vec<Share> = shares.iter().map(|(rank, part)| (*rank, box_of(place, part))).collect();
            wanted.push((place, batch.base_of(input).map(|base| base.id), batch.view(input), needs));
        }
        let mut at = 0;
        for (_, id, view, needs) in &wanted {
            if let Some(id) = id
                && !self.is_here(*id, view, needs)?
            {
                at = at.max(self.fetchable(*id));
            }
        }
        for (_, id, view, needs) in &wanted {
            if let Some(id) = id
                && !self.is_here(*id, view, needs)?
            {
                // What a piece that grew for the operand before has can be sent from one stage later.
                at = at.max(self.fetchable(*id));
                if self.fetch(*id, view, needs, at)?.is_err() {
                    return Ok(false);
                }
            }
        }
        for (place, id, view, needs) in &wanted {
            let mut locals = Vec::with_capacity(needs.len());
            for need in needs {
                locals.push(match id {
                    None => Local::Index(need.1.of(view, 0)?),
                    Some(id) => {
                        let (there, ready) = self.locate(*id, view, *need)?;
                        stage = stage.max(ready);
                        Local::Data(there)
                    }
                });
            }
            inputs.push((*place, locals));
        }
        // Fetching from the array that is written lasts until the elements are there.
        stage = stage.max(self.after_use(target));
        for (number, (rank, part)) in shares.iter().enumerate() {
            let piece = self.piece(target, *rank);
            if !self.stages.hosts(*rank) {
                continue;
            }
            let mut operands = vec![Local::Data(Place { base: piece.base, view: part.of(view, piece.window.low)? })];
            operands.extend(instr.inputs().iter().map(|&operand| Local::Same(operand)));
            for (place, locals) in &inputs {
                operands[1 + place] = locals[number];
            }
            self.stages.push(stage, *rank, instr, index, &operands);
        }
        for (_, id, ..) in &wanted {
            if let Some(id) = id {
                self.reads(*id, stage);
            }
        }
        self.finish(target, view, stage, everywhere);
        Ok(true)
    }

    /// Notes that a view of an array was written by what is no part of a plan: the program, a file, an exchange.
    pub(crate) fn take_in(&mut self, target: u64, view: &View) {
        #[cfg(debug_assertions)]
        if let Some(array) = self.arrays.get(&target) {
            self.stages.versions.take_in(array, view);
        }
        self.finish(target, view, 0, false);
    }

    /// Notes that a view of an array was written by its owners, or by all ranks.
    pub(crate) fn finish(&mut self, target: u64, view: &View, stage: usize, everywhere: bool) {
        if let Some(array) = self.arrays.get_mut(&target) {
            array.everywhere = everywhere;
            #[cfg(debug_assertions)]
            self.stages.versions.finish(array, view, everywhere);
        }
        self.wrote(target, span_of(view), stage);
        if let (true, Some(array)) = (everywhere, self.arrays.get_mut(&target)) {
            let all = array.all();
            array.pieces.iter_mut().flatten().for_each(|piece| piece.valid = all);
        }
    }

    /// Makes the arrays of the inputs known.
    pub(crate) fn know_inputs(&mut self, batch: &BatchRef<'_>, instr: &Instr) {
        for view in instr.inputs().iter().filter_map(|operand| operand.as_view()) {
            if let Some(base) = batch.base_of(view) {
                self.array(base, Some(&batch.view(view)));
            }
        }
    }

    /// Brings an instruction to rank 0: what it reads comes there, and what it writes goes to its owners.
    pub(crate) fn bring_together(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<()> {
        let instr = &batch.instrs[index as usize];
        let spread = |planner: &Planner, view: u32| {
            let array = batch.base_of(view).and_then(|base| planner.arrays.get(&base.id));
            array.is_some_and(|array| !array.cuts.is_first())
        };
        self.know_inputs(batch, instr);
        let mut stage = 0;
        let mut operands = Vec::new();
        for operand in instr.operands() {
            let Some(number) = operand.as_view() else {
                operands.push(Local::Same(*operand));
                continue;
            };
            let view = batch.view(number);
            let Some(base) = batch.base_of(number) else {
                operands.push(Local::Index(view));
                continue;
            };
            self.array(base, Some(&view));
            let span = span_of(&view);
            if !span.is_empty() && !self.arrays[&base.id].valid(0).contains(span) {
                // All between the first and the last element is as good as the elements, and always one run.
                let run = View::new(span.low, &[span.len()], &[1]).unwrap_or_default();
                let at = self.fetchable(base.id);
                self.fetch_run(base.id, &run, at)?;
            }
            let ready = self.arrays[&base.id].wrote.max(self.arrays[&base.id].arrived);
            stage = stage.max(self.stage_of(ready));
            let piece = self.piece(base.id, 0);
            let part = IndexBox::whole(view.shape()).of(&view, piece.window.low)?;
            operands.push(Local::Data(Place { base: piece.base, view: part }));
        }
        // A window that grew for a later operand is another base.
        for (place, operand) in instr.operands().iter().enumerate() {
            let Some((number, base)) = operand.as_view().and_then(|view| Some((view, batch.base_of(view)?))) else {
                continue;
            };
            let (view, piece) = (batch.view(number), self.piece(base.id, 0));
            let part = IndexBox::whole(view.shape()).of(&view, piece.window.low)?;
            operands[place] = Local::Data(Place { base: piece.base, view: part });
            stage = stage.max(if place < instr.outputs as usize { self.after_use(base.id) } else { 0 });
        }
        self.stages.push(stage, 0, instr, index, &operands);
        let views = instr.operands().iter().filter_map(|operand| operand.as_view());
        if views.clone().any(|view| spread(self, view)) {
            self.gathered.push(index);
        }
        for base in views.filter_map(|view| batch.base_of(view)) {
            self.reads(base.id, stage);
        }
        for view in instr.outputs().iter().filter_map(|operand| operand.as_view()) {
            if let Some(base) = batch.base_of(view) {
                self.give_back(base.id, &batch.view(view), stage)?;
            }
        }
        Ok(())
    }

    /// Brings a run of elements into rank 0's window, however far from its own it is.
    fn fetch_run(&mut self, id: u64, run: &View, at: usize) -> Result<()> {
        let span = span_of(run);
        self.widen(id, 0, span, at, &mut std::collections::HashMap::new())
    }

    /// Sends what rank 0 wrote of a view in a stage to the ranks that it belongs to.
    fn give_back(&mut self, id: u64, view: &View, stage: usize) -> Result<()> {
        let span = span_of(view);
        let mut last = stage;
        for rank in 1..self.ranks() {
            let part = self.arrays[&id].reach(rank).meet(span);
            if part.is_empty() {
                continue;
            }
            last = stage + 1;
            let (source, target) = (self.piece(id, 0), self.piece(id, rank));
            let source = Place::run(source.base, part, source.window)?;
            let target = Place::run(target.base, part, target.window)?;
            if self.stages.hosts(0) || self.stages.hosts(rank) {
                self.stages.transfer(last, Transfer { from: 0, to: rank, source, target });
            }
        }
        self.finish(id, view, last, false);
        Ok(())
    }
}

/// The part of a factor of a matrix product that a part of the product needs; either factor may be a vector.
fn factor(operand: usize, part: &IndexBox, shapes: [&[i64]; 2]) -> IndexBox {
    let whole = IndexBox::whole(shapes[operand]);
    let matrix = shapes[operand].len() == 2;
    // Rows of the product are rows of the left factor; its last dimension is that of the right one.
    let dim = if operand == 0 { 0 } else { part.first().len().wrapping_sub(1) };
    match (matrix, part.first().get(dim)) {
        (true, Some(&first)) => whole.with(operand, first, part.extent()[dim]),
        _ => whole,
    }
}
