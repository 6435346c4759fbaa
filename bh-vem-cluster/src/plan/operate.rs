//! Plans operations: the work of each rank, and the transfers for it.

use crate::plan::boxes::{IndexBox, span_of};
use crate::plan::coverage::{Coverage, CoverageRuns};
use crate::plan::layout::Parts;
use crate::plan::layout::covers;
use crate::plan::planner::{Planned, Planner, Share};
use crate::plan::stage::{Local, Place};
use crate::plan::workers::{ArrayView, BoxOf, Workers};
use bh_bytecode::methods;
use bh_bytecode::{BatchRef, Instr, Kind, Opcode, Operand, View};
use bh_core::error::Result;

impl Planner {
    pub(crate) fn operate(&mut self, batch: &BatchRef<'_>, index: u32, instr: &Instr) -> Result<Planned> {
        let shape = |operand: usize| instr.inputs()[operand].as_view().map_or(&[][..], |view| batch.shape(view));
        if self.on_grid(batch, index)? {
            return Ok(Planned::Done);
        }
        self.operands_to_rows(batch, instr)?;
        let same: BoxOf<'_> = &|_, part| *part;
        let (planned, risk) = match instr.opcode.kind() {
            Kind::Elementwise | Kind::Generator => (self.by_output(batch, index, same)?, Planned::Done),
            Kind::Reduction => (self.reduce(batch, index)?, Planned::Done),
            Kind::Accumulate => (self.accumulate(batch, index)?, Planned::Done),
            Kind::Index if instr.opcode == Opcode::Gather => {
                let source: BoxOf<'_> = &|operand, part| if operand == 0 { IndexBox::whole(shape(0)) } else { *part };
                (self.by_output(batch, index, source)?, Planned::Risky)
            }
            Kind::Index => (self.scatter_by_parts(batch, index)?, Planned::Risky),
            Kind::Extension if batch.extension_name(instr.opcode) == Some("matmul") => {
                let product: BoxOf<'_> = &|operand, part| factor(operand, part, [shape(0), shape(1)]);
                let fits = instr.count == 3 && [shape(0), shape(1)].iter().all(|shape| (1..=2).contains(&shape.len()));
                let parts = fits && self.product_by_parts(batch, index)?;
                let planned = parts || fits && self.product(batch, index)?;
                (planned || fits && self.by_output(batch, index, product)?, Planned::Risky)
            }
            Kind::Extension if batch.extension_name(instr.opcode) == Some("count_nonzero") => {
                (self.count_by_parts(batch, index)?, Planned::Risky)
            }
            Kind::Extension if ["qr", "svd"].map(Some).contains(&batch.extension_name(instr.opcode)) => {
                (self.factor_tall(batch, index)?, Planned::Risky)
            }
            Kind::Extension if is_by_element(batch, instr) => (self.by_output(batch, index, same)?, Planned::Risky),
            Kind::Extension if is_by_line(batch, instr) => {
                let last = shape(0).len() - 1;
                let line: BoxOf<'_> = &|_, part| part.with(last, 0, shape(0)[last]);
                (self.by_output(batch, index, line)?, Planned::Risky)
            }
            _ => (false, Planned::Risky),
        };
        if !planned {
            self.run_on_one_rank(batch, index)?;
        }
        Ok(risk)
    }

    /// The cuts of the work that correspond to those of the inputs.
    pub(crate) fn input_parts(&self, batch: &BatchRef<'_>, instr: &Instr) -> Option<Parts> {
        instr.inputs().iter().filter_map(|operand| operand.as_view()).find_map(|view| {
            let array = self.arrays.get(&batch.base_of(view)?.id)?;
            Parts::of(&batch.view(view), &array.cuts)
        })
    }

    /// Can all ranks compute a small array, because all have its inputs?
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

    /// Plans an operation by the owners of its output, which fetch the operands. False if this takes too many boxes.
    pub(crate) fn by_output(&mut self, batch: &BatchRef<'_>, index: u32, box_of: BoxOf<'_>) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        let Some(output) = instr.outputs().first().and_then(|operand| operand.as_view()) else { return Ok(false) };
        self.know_inputs(batch, instr);
        let parts = match instr.opcode.kind() {
            Kind::Elementwise | Kind::Accumulate => self.input_parts(batch, instr),
            Kind::Extension if is_by_line(batch, instr) || is_by_element(batch, instr) => {
                self.input_parts(batch, instr)
            }
            Kind::Reduction => self.input_parts(batch, instr).and_then(|parts| parts.without(u32::from(instr.param))),
            _ => None,
        };
        let fresh = batch.base_of(output).is_some_and(|base| !self.arrays.contains_key(&base.id));
        let target = self.target(batch, index, output, parts.as_ref())?;
        match self.go_ahead(batch, index, target, fresh) {
            None => self.by_reach(batch, index, (target, output), parts.as_ref(), box_of),
            Some(valid_runs) => {
                let planned = self.by_reach(batch, index, (target, output), parts.as_ref(), box_of);
                if let Some(array) = self.arrays.get_mut(&target) {
                    array.draw_back();
                    if !matches!(planned, Ok(true)) {
                        array.valid_runs = valid_runs;
                    }
                }
                planned
            }
        }
    }

    /// Lets ranks also write elements of their neighbours that later instructions read. Returns the valid elements
    /// before; `None` if ranks write only their own.
    fn go_ahead(&mut self, batch: &BatchRef<'_>, index: u32, target: u64, fresh: bool) -> Option<CoverageRuns> {
        let (up, down) = self.hints.ahead(index)?;
        let instr = &batch.instrs[index as usize];
        let output = instr.outputs().first()?.as_view()?;
        let base = |view: u32| batch.views[view as usize].base;
        let mut inputs = instr.inputs().iter().filter_map(|operand| operand.as_view());
        let reads = instr.opcode.reads_output() || inputs.any(|view| base(view) == base(output));
        let array = self.arrays.get_mut(&target)?;
        if array.small || array.fixed || array.temporary || array.extension != (0, 0) || array.cuts.is_first() {
            return None;
        }
        let (valid_runs, rows) = (array.valid_runs.clone(), (up * array.row, down * array.row));
        array.reach_out(rows, fresh, covers(batch, output) && !reads).then_some(valid_runs)
    }

    /// Plans the elements that ranks own of the output, and their extension.
    fn by_reach(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (target, output): (u64, u32),
        parts: Option<&Parts>,
        box_of: BoxOf<'_>,
    ) -> Result<bool> {
        let (instr, view) = (&batch.instrs[index as usize], batch.view(output));
        let aim = ArrayView { id: target, view: &view };
        let everywhere = self.is_everywhere(batch, instr, target);
        let workers = match everywhere {
            true => Workers::everywhere(self.ranks()),
            false => self.workers(batch, instr, aim, box_of),
        };
        let Some(shares) = self.representative_shares(&workers, aim) else { return Ok(false) };
        let mut others = Vec::new();
        for other in instr.outputs()[1..].iter().filter_map(|operand| operand.as_view()) {
            let (id, view) = (self.target(batch, index, other, parts)?, batch.view(other));
            // Each rank must compute the same box of all outputs, and all ranks know that.
            let (one, own) = (&self.arrays[&id], &self.arrays[&target]);
            let uniform = view == batch.view(output)
                && one.cuts == own.cuts
                && (one.small, one.extension) == (own.small, own.extension)
                && self.is_everywhere(batch, instr, id) == everywhere;
            if !uniform {
                return Ok(false);
            }
            others.push((id, view));
        }
        let axes = match instr.opcode.kind() {
            Kind::Accumulate => u32::from(instr.param),
            Kind::Extension if is_by_line(batch, instr) => 1 << (view.rank() - 1),
            _ => 0,
        };
        if !shares.iter().all(|(_, part)| part.is_whole(view.shape(), axes)) {
            return Ok(false);
        }
        self.compute(batch, index, (aim, &others), (&workers, &shares), box_of)
    }

    /// Fetches the operands of shares, and appends the instruction to the ranks' batches. `others`: further outputs.
    fn compute(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (target, others): (ArrayView<'_>, &[(u64, View)]),
        (workers, shares): (&Workers, &[Share]),
        box_of: BoxOf<'_>,
    ) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        let mine: Vec<Share> = shares.iter().copied().filter(|(rank, _)| self.stages.hosts(*rank)).collect();
        let (mut sources, mut inputs) = (Vec::new(), Vec::with_capacity(instr.inputs().len()));
        for (place, operand) in instr.inputs().iter().enumerate() {
            let Some(input) = operand.as_view() else { continue };
            match batch.base_of(input) {
                Some(base) => sources.push((place, base.id, batch.view(input))),
                None => {
                    let view = batch.view(input);
                    let index_of = |(_, part): &Share| Ok(Local::Index(box_of(place, part).of(&view, 0)?));
                    inputs.push((place, mine.iter().map(index_of).collect::<Result<Vec<Local>>>()?));
                }
            }
        }
        if !self.bring(workers, target, &sources, box_of)? {
            return Ok(false);
        }
        let mut stage = self.after_use(target.id);
        for (place, id, view) in &sources {
            let Some(needs) = self.needs(workers, target, (*place, ArrayView { id: *id, view }), box_of)? else {
                return Ok(false);
            };
            let mut locals = Vec::with_capacity(mine.len());
            for need in needs.shares {
                let (there, ready) = self.locate(*id, view, need)?;
                stage = stage.max(ready);
                if self.stages.hosts(need.0) {
                    locals.push(Local::Data(there));
                }
            }
            inputs.push((*place, locals));
        }
        let written: Vec<(u64, View)> =
            std::iter::once((target.id, *target.view)).chain(others.iter().copied()).collect();
        // A fetch from an output must end before the output changes.
        stage = written.iter().map(|(id, _)| self.after_use(*id)).fold(stage, usize::max);
        for (number, share) in mine.iter().enumerate() {
            let locals: Vec<(usize, Local)> = inputs.iter().map(|(place, all)| (*place, all[number])).collect();
            self.push_share(batch, index, (*share, stage), &written, &locals)?;
        }
        for (_, id, _) in &sources {
            self.reads(*id, stage);
        }
        for (id, view) in &written {
            self.finish(*id, view, stage, workers.everywhere);
        }
        Ok(true)
    }

    /// Appends the instruction for a share to its rank's batch of a stage. `inputs`: the operands that differ from the
    /// program's, by place among the inputs.
    fn push_share(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        ((rank, part), stage): (Share, usize),
        written: &[(u64, View)],
        inputs: &[(usize, Local)],
    ) -> Result<()> {
        let instr = &batch.instrs[index as usize];
        let mut operands = Vec::with_capacity(instr.operands().len());
        for (id, view) in written {
            let shard = self.shard(*id, rank);
            operands.push(Local::Data(Place { base: shard.base, view: part.of(view, shard.window.low)? }));
        }
        operands.extend(instr.inputs().iter().map(|&operand| Local::Same(operand)));
        for &(place, local) in inputs {
            operands[written.len() + place] = local;
        }
        self.stages.push(stage, rank, instr, index, &operands);
        Ok(())
    }

    /// Brings operands to the ranks that need them; false if this takes too many boxes.
    fn bring(
        &mut self,
        workers: &Workers,
        target: ArrayView<'_>,
        sources: &[(usize, u64, View)],
        box_of: BoxOf<'_>,
    ) -> Result<bool> {
        let mut at = None;
        for (place, id, view) in sources {
            let Some(needs) = self.needs(workers, target, (*place, ArrayView { id: *id, view }), box_of)? else {
                return Ok(false);
            };
            if !self.is_available(*id, view, &needs.shares)? {
                at = at.max(Some(self.fetchable(*id)));
            }
        }
        let Some(mut at) = at else { return Ok(true) };
        for (place, id, view) in sources {
            let Some(needs) = self.needs(workers, target, (*place, ArrayView { id: *id, view }), box_of)? else {
                return Ok(false);
            };
            if !self.is_available(*id, view, &needs.shares)? {
                // A shard that grew for an earlier operand can be sent one stage later.
                at = at.max(self.fetchable(*id));
                if self.fetch_needs(*id, view, &needs, at)?.is_err() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Records a write that is no part of a plan: by the program, a file or an exchange.
    pub(crate) fn note_external_write(&mut self, target: u64, view: &View) {
        #[cfg(debug_assertions)]
        if let Some(array) = self.arrays.get(&target) {
            self.stages.versions.note_external_write(array, view);
        }
        self.finish(target, view, 0, false);
    }

    /// Records that owners, or all ranks if `everywhere`, wrote a view.
    pub(crate) fn finish(&mut self, target: u64, view: &View, stage: usize, everywhere: bool) {
        if let Some(array) = self.arrays.get_mut(&target) {
            array.everywhere = everywhere;
            #[cfg(debug_assertions)]
            self.stages.versions.finish(array, view, everywhere);
        }
        self.wrote(target, span_of(view), stage);
        if let (true, Some(array)) = (everywhere, self.arrays.get_mut(&target)) {
            array.valid_runs = CoverageRuns::new(array.cuts.ranks(), Coverage::Around(0, 0));
        }
    }

    /// Registers the arrays of the inputs.
    pub(crate) fn know_inputs(&mut self, batch: &BatchRef<'_>, instr: &Instr) {
        for view in instr.inputs().iter().filter_map(|operand| operand.as_view()) {
            if let Some(base) = batch.base_of(view) {
                self.array(base, Some(&batch.view(view)));
            }
        }
    }
}

/// Is it a scalar program whose outputs and inputs are in different bases?
fn is_by_element(batch: &BatchRef<'_>, instr: &Instr) -> bool {
    let base = |operand: &Operand| operand.as_view().map(|view| batch.views[view as usize].base);
    let apart = |output: &Operand| instr.inputs().iter().all(|input| base(input) != base(output));
    instr.opcode.is_extension()
        && batch.extension_name(instr.opcode).is_some_and(methods::is_by_element)
        && instr.outputs().iter().all(apart)
}

/// Do all ranks compute a part of an operation, from the inputs' elements that they own?
pub(crate) fn is_done_by_all(batch: &BatchRef<'_>, instr: &Instr, small_bytes: u64) -> bool {
    let parted = match instr.opcode.kind() {
        Kind::System => false,
        Kind::Extension => {
            is_by_line(batch, instr)
                || is_by_element(batch, instr)
                || batch.extension_name(instr.opcode) == Some("matmul")
        }
        _ => true,
    };
    let mut outputs = instr.outputs().iter().filter_map(|operand| batch.base_of(operand.as_view()?));
    parted && outputs.any(|base| base.bytes() > small_bytes)
}

/// Does a method compute each line of its output, along the last axis, from the same line of its input?
fn is_by_line(batch: &BatchRef<'_>, instr: &Instr) -> bool {
    const METHODS: [&str; 6] = ["sort", "argsort", "fft", "ifft", "rfft", "irfft"];
    let named =
        instr.opcode.is_extension() && batch.extension_name(instr.opcode).is_some_and(|name| METHODS.contains(&name));
    let views: Vec<u32> = instr.operands().iter().filter_map(|operand| operand.as_view()).collect();
    let [output, input] = views[..] else { return false };
    let (Some((to, rows)), Some((from, others))) = (batch.shape(output).split_last(), batch.shape(input).split_last())
    else {
        return false;
    };
    // A single line is cut along its elements, of which input and output may have different numbers.
    let several = rows.iter().any(|&extent| extent > 1) || to == from && !rows.is_empty();
    named
        && instr.count == 2
        && batch.views[output as usize].base != batch.views[input as usize].base
        && rows == others
        && several
}

/// The box of a factor that a box of a matrix product needs. Either factor may be a vector.
fn factor(operand: usize, part: &IndexBox, shapes: [&[i64]; 2]) -> IndexBox {
    let whole = IndexBox::whole(shapes[operand]);
    let matrix = shapes[operand].len() == 2;
    // Rows of the product are rows of the left factor; its last dimension is the right factor's.
    let dim = if operand == 0 { 0 } else { part.first().len().wrapping_sub(1) };
    match (matrix, part.first().get(dim)) {
        (true, Some(&first)) => whole.with(operand, first, part.extent()[dim]),
        _ => whole,
    }
}
