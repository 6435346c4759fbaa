//! Runs programs: plans one instruction after the other, or takes the plan that served before.

use crate::command::failure::{Failure, first_of};
use crate::command::wire;
use crate::plan::boxes::{Span, span_of};
use crate::plan::columns::Columns;
use crate::plan::dealing::Dealing;
use crate::plan::exchange::Exchange;
use crate::plan::layout::covers;
use crate::plan::planner::Planned;
use crate::plan::plans::Plans;
use crate::run::call::is_call;
use crate::run::machine::Machine;
use crate::run::region::is_transfer;
use crate::transport::Class;
use crate::transport::tree::{above, collect, spread};
use bh_bytecode::{Base, BatchRef, Instr, Kind, Opcode};
use bh_core::abi::{access, status};
use bh_core::error::{Error, Result};
use std::collections::HashMap;

/// What cannot be planned before data is there: who sends what depends on it.
enum Between {
    Exchange(Box<Exchange>),
    Dealing(Box<Dealing>),
    Columns(Box<Columns>),
}

/// Instructions that are planned and may fail, for reasons that lie in the data: the elements that they write, by index of the base.
#[derive(Default)]
struct Open(HashMap<u32, Vec<Span>>);

impl Open {
    fn are_some(&self) -> bool {
        !self.0.is_empty()
    }

    fn add(&mut self, batch: &BatchRef<'_>, instr: &Instr) {
        for view in instr.outputs().iter().filter_map(|operand| operand.as_view()) {
            self.0.entry(batch.views[view as usize].base).or_default().push(span_of(&batch.view(view)));
        }
    }

    /// Does an operation depend on their outcome?
    fn concern(&self, batch: &BatchRef<'_>, instr: &Instr) -> bool {
        let meets = |view: u32| {
            let written = self.0.get(&batch.views[view as usize].base);
            let span = span_of(&batch.view(view));
            written.is_some_and(|spans| spans.iter().any(|other| !other.meet(span).is_empty()))
        };
        self.are_some()
            && !instr.opcode.is_system()
            && instr.operands().iter().filter_map(|operand| operand.as_view()).any(meets)
    }
}

impl Machine {
    /// Runs instructions of a batch in this order. The first error is returned; what depends on it is lost. Batches with equal
    /// instructions on equal views in equal order are of one shape.
    pub fn execute(&mut self, shape: u64, batch: &BatchRef<'_>, order: &[u32]) -> Result<()> {
        self.share_for(batch, shape, order);
        self.leave_home(batch, order);
        self.go_to_grids(shape, batch, order);
        let before = self.exchanges;
        let mut plans = std::mem::take(&mut self.plans);
        // Only rank 0 asks for them.
        self.planner.gathered.clear();
        let outcome = match plans.find(&mut self.planner, batch, shape) {
            Some(plan) => {
                self.planned_before += 1;
                self.planner.gathered.extend_from_slice(&plan.gathered);
                let failed = self.run_stages(batch, &mut plan.stages);
                self.end(batch, order, failed)
            }
            None => self.plan_and_run(batch, order, &mut plans),
        };
        self.plans = plans;
        self.note_exchanges(self.exchanges - before);
        outcome
    }

    fn plan_and_run(&mut self, batch: &BatchRef<'_>, order: &[u32], plans: &mut Plans) -> Result<()> {
        let mut first = Ok(());
        let mut in_one_go = true;
        let mut keep = |error: Error| {
            if first.is_ok() {
                first = Err(error);
            }
        };
        let mut open = Open::default();
        self.planner.begin(batch, order);
        for (position, &index) in order.iter().enumerate() {
            let instr = &batch.instrs[index as usize];
            let outside = is_transfer(batch, instr) || is_call(batch, instr);
            if outside || matches!(instr.opcode.kind(), Kind::Index | Kind::Extension) {
                self.planner.leave_meshes(batch, instr)?;
            }
            if open.concern(batch, instr) || outside && open.are_some() {
                in_one_go = false;
                if let Some(failure) = self.close(batch, &mut open) {
                    keep(self.lose(batch, &order[..position], failure));
                }
            }
            if outside {
                in_one_go = false;
                let moved = if is_call(batch, instr) { self.call(batch, index) } else { self.transfer(batch, index) };
                match moved {
                    Ok(None) => {}
                    Ok(Some(failure)) => keep(self.lose(batch, &order[..=position], failure)),
                    Err(error) => {
                        self.planner.lose_outputs(batch, &batch.instrs[index as usize], &error);
                        keep(error);
                    }
                }
                continue;
            }
            match self.plan_between(batch, index) {
                Ok(None) => {}
                Ok(Some(between)) => {
                    in_one_go = false;
                    if let Some(failure) = self.close(batch, &mut open) {
                        keep(self.lose(batch, &order[..position], failure));
                    }
                    let failed = match between {
                        Between::Exchange(exchange) => self.exchange(batch, index, &exchange),
                        Between::Dealing(dealing) => self.deal(batch, index, &dealing),
                        Between::Columns(columns) => self.factor(batch, index, &columns),
                    };
                    if let Some(failure) = failed? {
                        keep(self.lose(batch, &order[..=position], failure));
                    }
                    continue;
                }
                Err(error) => {
                    let error = error.at_instr(batch, index).unplaced();
                    self.planner.lose_outputs(batch, &batch.instrs[index as usize], &error);
                    keep(error);
                    continue;
                }
            }
            match self.planner.plan(batch, index) {
                Ok(Planned::Done) => {}
                Ok(Planned::Risky) if self.side_by_side => open.add(batch, instr),
                Ok(Planned::Risky) => {
                    in_one_go = false;
                    let failed = self.run(batch);
                    if let Some(failure) = self.agree(failed)? {
                        keep(self.lose(batch, &order[..=position], failure));
                    }
                }
                Err(error) => keep(error),
            }
        }
        self.planner.end();
        let mut stages = self.planner.take_stages();
        stages.iter_mut().for_each(|stage| stage.complete(batch));
        if in_one_go && first.is_ok() {
            plans.keep(&self.planner, batch, &stages);
        }
        let failed = self.run_stages(batch, &mut stages);
        first.and(self.end(batch, order, failed))
    }

    /// Runs what is planned, and with it what may fail. Only where all ranks are siblings, which know of each other's failures.
    fn close(&mut self, batch: &BatchRef<'_>, open: &mut Open) -> Option<Failure> {
        std::mem::take(open).are_some().then(|| self.run(batch))?
    }

    /// How an instruction is done by what depends on data, if it is.
    fn plan_between(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<Option<Between>> {
        if let Some(exchange) = self.planner.plan_exchange(batch, index)? {
            return Ok(Some(Between::Exchange(Box::new(exchange))));
        }
        if let Some(dealing) = self.planner.plan_dealing(batch, index)? {
            return Ok(Some(Between::Dealing(Box::new(dealing))));
        }
        let columns = self.planner.plan_columns(batch, index)?;
        Ok(columns.map(|columns| Between::Columns(Box::new(columns))))
    }

    /// What goes wrong on one rank only at the end of a batch is not known to the others.
    fn end(&mut self, batch: &BatchRef<'_>, order: &[u32], failed: Option<Failure>) -> Result<()> {
        let Some(failure) = failed else { return Ok(()) };
        if !self.port.is_alone() {
            self.port.abort(&failure.error.to_string());
        }
        Err(self.lose(batch, order, failure))
    }

    /// The failure that counts for all ranks: that of the earliest instruction, on the lowest rank.
    pub(crate) fn agree(&mut self, mine: Option<Failure>) -> Result<Option<Failure>> {
        if self.port.is_alone() {
            return Ok(mine);
        }
        // Up the tree of processes and down again.
        let me = self.port.hosted().start;
        let mut worst = collect(&mut self.port, mine, |all, bytes| Ok(first_of(all, wire::get_failure(bytes)?)))?;
        if let Some(above) = above(&self.port) {
            self.port.send(Class::Control, me, above, wire::put_failure(worst.as_ref()))?;
            worst = wire::get_failure(&self.port.receive(me, above)?)?;
        }
        spread(&mut self.port, &wire::put_failure(worst.as_ref()))?;
        Ok(worst)
    }

    /// Marks what a failure cost as lost: what the instruction writes, what the stacks below lost with it, and all that
    /// was computed of that.
    fn lose(&mut self, batch: &BatchRef<'_>, order: &[u32], failure: Failure) -> Error {
        let error = failure.error.clone();
        if error.status == status::DEVICE {
            self.leave_lost_devices();
        }
        let mut lost: HashMap<u32, Error> = HashMap::new();
        for &index in order {
            let instruction = &batch.instrs[index as usize];
            if instruction.opcode.is_system() {
                let drops = matches!(instruction.opcode, Opcode::Free | Opcode::Discard);
                if let (true, Some(view)) =
                    (drops, instruction.operands().first().and_then(|operand| operand.as_view()))
                {
                    lost.remove(&batch.views[view as usize].base);
                }
                continue;
            }
            let base_of = |view: u32| batch.views[view as usize].base;
            let views = |operands: &[bh_bytecode::Operand]| -> Vec<u32> {
                let views = operands.iter().filter_map(|operand| operand.as_view());
                views.filter(|&view| batch.views[view as usize].len > 0).collect()
            };
            let failed = failure.concerns(index);
            let outputs = views(instruction.outputs());
            let keeps = |view: &&u32| !covers(batch, **view) || instruction.opcode.reads_output();
            let inputs = views(instruction.inputs());
            let mut needed = inputs.iter().chain(outputs.iter().filter(keeps));
            let cause = needed.find_map(|&view| lost.get(&base_of(view)).cloned());
            let cause = if failed { Some(error.clone()) } else { cause };
            for view in outputs {
                match &cause {
                    Some(error) => drop(lost.entry(base_of(view)).or_insert_with(|| error.clone())),
                    // It needs nothing that is lost, so it overwrites all of a lost base.
                    None => drop(lost.remove(&base_of(view))),
                }
            }
        }
        for (number, base) in batch.bases.iter().enumerate() {
            let known = self.planner.arrays.contains_key(&base.id);
            let found = lost.get(&(number as u32)).cloned().or_else(|| if known { self.probe(base) } else { None });
            if let (true, Some(error)) = (known, found) {
                self.planner.lose(base, &error);
            }
        }
        error
    }

    /// The error of a rank's piece of an array, if it is lost there.
    fn probe(&mut self, base: &Base) -> Option<Error> {
        for rank in self.port.hosted() {
            let Some(piece) = self.planner.arrays.get(&base.id).and_then(|array| array.piece(rank)) else { continue };
            let lost = self.probe_rank(rank, &piece.base);
            if lost.is_some() {
                return lost;
            }
        }
        None
    }

    /// The error of a rank's base, if it is lost there.
    pub(crate) fn probe_rank(&mut self, rank: usize, base: &Base) -> Option<Error> {
        let (state, child) = self.rank(rank);
        state.know(base);
        match child.map(base, None, access::READ) {
            Ok(_) => {
                // A base that was mapped can be unmapped.
                drop(child.unmap(base));
                None
            }
            Err(error) => Some(error.unplaced()),
        }
    }
}
