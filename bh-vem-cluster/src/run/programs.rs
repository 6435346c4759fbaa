//! Runs programs: plans them instruction by instruction, or uses a cached plan.

use crate::command::failure::{Failure, first_of};
use crate::command::wire;
use crate::plan::boxes::{Span, span_of};
use crate::plan::columns::Columns;
use crate::plan::exchange::Exchange;
use crate::plan::layout::covers;
use crate::plan::planner::Planned;
use crate::plan::plans::Plans;
use crate::plan::sort_select::SortSelect;
use crate::run::call::is_call;
use crate::run::file_region::is_transfer;
use crate::run::machine::Machine;
use crate::transport::Class;
use crate::transport::tree::{broadcast, collect, parent_rank};
use bh_bytecode::{Base, BatchRef, Instr, Kind, Opcode};
use bh_core::abi::{access, status};
use bh_core::error::{Error, Result};
use std::collections::HashMap;

/// An operation whose messages depend on data, so that all earlier work must run before it.
enum DataDependent {
    Exchange(Box<Exchange>),
    SortSelect(Box<SortSelect>),
    Columns(Box<Columns>),
}

/// Planned instructions that may fail depending on data: the spans that they write, by index of the base.
#[derive(Default)]
struct Pending(HashMap<u32, Vec<Span>>);

impl Pending {
    fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    fn add(&mut self, batch: &BatchRef<'_>, instr: &Instr) {
        for view in instr.outputs().iter().filter_map(|operand| operand.as_view()) {
            self.0.entry(batch.views[view as usize].base).or_default().push(span_of(&batch.view(view)));
        }
    }

    /// Does an operation depend on their success?
    fn affects(&self, batch: &BatchRef<'_>, instr: &Instr) -> bool {
        let meets = |view: u32| {
            let written = self.0.get(&batch.views[view as usize].base);
            let span = span_of(&batch.view(view));
            written.is_some_and(|spans| spans.iter().any(|other| !other.meet(span).is_empty()))
        };
        self.is_any()
            && !instr.opcode.is_system()
            && instr.operands().iter().filter_map(|operand| operand.as_view()).any(meets)
    }
}

/// A program that is being planned and run.
struct Progress {
    /// The first error.
    outcome: Result<()>,
    pending: Pending,
    /// The plan is complete, so that it can be cached.
    replayable: bool,
}

impl Progress {
    fn keep(&mut self, error: Error) {
        if self.outcome.is_ok() {
            self.outcome = Err(error);
        }
    }
}

impl Machine {
    /// Runs instructions of a batch in this order; returns the first error, and loses what depends on it. Batches of
    /// one `shape` have equal instructions, views and order.
    pub fn execute(&mut self, shape: u64, batch: &BatchRef<'_>, order: &[u32]) -> Result<()> {
        self.rebalance_for(batch, shape, order);
        self.distribute_adopted(batch, order);
        self.go_to_grids(shape, batch, order);
        let before = self.exchanges;
        let mut plans = std::mem::take(&mut self.plans);
        // Only rank 0 reads them.
        self.planner.on_one_rank.clear();
        let outcome = match plans.find(&mut self.planner, batch, shape) {
            Some(plan) => {
                self.planned_before += 1;
                self.planner.on_one_rank.extend_from_slice(&plan.on_one_rank);
                let failed = self.run_stages(batch, &mut plan.stages);
                self.end(batch, order, failed)
            }
            None => self.plan_and_run(batch, order, &mut plans),
        };
        self.plans = plans;
        self.note_exchanges(self.exchanges - before);
        outcome
    }

    /// Plans a program, runs it, and caches its plan if it can repeat.
    fn plan_and_run(&mut self, batch: &BatchRef<'_>, order: &[u32], plans: &mut Plans) -> Result<()> {
        let mut progress = Progress { outcome: Ok(()), pending: Pending::default(), replayable: true };
        self.planner.begin(batch, order);
        for position in 0..order.len() {
            self.plan_next(batch, order, position, &mut progress)?;
        }
        self.planner.end();
        let mut stages = self.planner.take_stages();
        stages.iter_mut().for_each(|stage| stage.complete(batch));
        if progress.replayable && progress.outcome.is_ok() {
            plans.keep(&self.planner, batch, &stages);
        }
        let failed = self.run_stages(batch, &mut stages);
        progress.outcome.and(self.end(batch, order, failed))
    }

    /// Plans the instruction at a position of the order; runs it and everything before it if its messages depend on data.
    fn plan_next(
        &mut self,
        batch: &BatchRef<'_>,
        order: &[u32],
        position: usize,
        progress: &mut Progress,
    ) -> Result<()> {
        let index = order[position];
        let instr = &batch.instrs[index as usize];
        let external = is_transfer(batch, instr) || is_call(batch, instr);
        if external || matches!(instr.opcode.kind(), Kind::Index | Kind::Extension) {
            self.planner.operands_to_rows(batch, instr)?;
        }
        if progress.pending.affects(batch, instr) || external && progress.pending.is_any() {
            self.run_pending(batch, &order[..position], progress);
        }
        if external {
            self.run_external(batch, &order[..=position], index, progress);
            return Ok(());
        }
        match self.plan_data_dependent(batch, index) {
            Ok(None) => self.plan_static(batch, &order[..=position], index, progress),
            Ok(Some(dependent)) => {
                self.run_pending(batch, &order[..position], progress);
                let failed = match dependent {
                    DataDependent::Exchange(exchange) => self.exchange(batch, index, &exchange),
                    DataDependent::SortSelect(plan) => self.sort_or_select(batch, index, &plan),
                    DataDependent::Columns(columns) => self.factor(batch, index, &columns),
                };
                self.keep_failure(batch, &order[..=position], failed?, progress);
                Ok(())
            }
            Err(error) => {
                let error = error.at_instr(batch, index).unplaced();
                self.planner.lose_outputs(batch, instr, &error);
                progress.keep(error);
                Ok(())
            }
        }
    }

    /// Plans an instruction whose messages do not depend on data. `done` ends with it.
    fn plan_static(&mut self, batch: &BatchRef<'_>, done: &[u32], index: u32, progress: &mut Progress) -> Result<()> {
        match self.planner.plan(batch, index) {
            Ok(Planned::Done) => {}
            Ok(Planned::Risky) if self.side_by_side => progress.pending.add(batch, &batch.instrs[index as usize]),
            Ok(Planned::Risky) => {
                progress.replayable = false;
                let failed = self.run(batch);
                let failed = self.agree(failed)?;
                self.keep_failure(batch, done, failed, progress);
            }
            Err(error) => progress.keep(error),
        }
        Ok(())
    }

    /// Runs an instruction that transfers a file or calls a function. `done` ends with it.
    fn run_external(&mut self, batch: &BatchRef<'_>, done: &[u32], index: u32, progress: &mut Progress) {
        progress.replayable = false;
        let instr = &batch.instrs[index as usize];
        let outcome = if is_call(batch, instr) { self.call(batch, index) } else { self.transfer(batch, index) };
        match outcome {
            Ok(failed) => self.keep_failure(batch, done, failed, progress),
            Err(error) => {
                self.planner.lose_outputs(batch, instr, &error);
                progress.keep(error);
            }
        }
    }

    /// Runs the plan with the instructions that may fail, after those in `done`. Only for siblings, which know each
    /// other's failures.
    fn run_pending(&mut self, batch: &BatchRef<'_>, done: &[u32], progress: &mut Progress) {
        progress.replayable = false;
        if std::mem::take(&mut progress.pending).is_any() {
            let failed = self.run(batch);
            self.keep_failure(batch, done, failed, progress);
        }
    }

    /// Loses what depends on a failure among the instructions in `done`, and keeps its error.
    fn keep_failure(&mut self, batch: &BatchRef<'_>, done: &[u32], failed: Option<Failure>, progress: &mut Progress) {
        if let Some(failure) = failed {
            progress.keep(self.lose(batch, done, failure));
        }
    }

    /// Plans an instruction as an operation whose messages depend on data, if it is one.
    fn plan_data_dependent(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<Option<DataDependent>> {
        if let Some(exchange) = self.planner.plan_exchange(batch, index)? {
            return Ok(Some(DataDependent::Exchange(Box::new(exchange))));
        }
        if let Some(plan) = self.planner.plan_sort_select(batch, index)? {
            return Ok(Some(DataDependent::SortSelect(Box::new(plan))));
        }
        let columns = self.planner.plan_columns(batch, index)?;
        Ok(columns.map(|columns| DataDependent::Columns(Box::new(columns))))
    }

    /// Ends a batch. Other processes cannot know of a failure here, so it aborts the job unless all ranks are in this
    /// process.
    fn end(&mut self, batch: &BatchRef<'_>, order: &[u32], failed: Option<Failure>) -> Result<()> {
        let Some(failure) = failed else { return Ok(()) };
        if !self.port.is_alone() {
            self.port.abort(&failure.error.to_string());
        }
        Err(self.lose(batch, order, failure))
    }

    /// The failure that counts on all ranks: that of the earliest instruction, on the lowest rank.
    pub(crate) fn agree(&mut self, mine: Option<Failure>) -> Result<Option<Failure>> {
        if self.port.is_alone() {
            return Ok(mine);
        }
        // A reduction up the tree of processes, and a broadcast down.
        let me = self.port.hosted().start;
        let mut worst = collect(&mut self.port, mine, |all, bytes| Ok(first_of(all, wire::get_failure(bytes)?)))?;
        if let Some(parent_rank) = parent_rank(&self.port) {
            self.port.send(Class::Control, me, parent_rank, wire::put_failure(worst.as_ref()))?;
            worst = wire::get_failure(&self.port.receive(me, parent_rank)?)?;
        }
        broadcast(&mut self.port, &wire::put_failure(worst.as_ref()))?;
        Ok(worst)
    }

    /// Marks arrays as lost after a failure: the outputs of failed instructions, data that stacks below lost, and
    /// everything computed from them. Returns the error.
    fn lose(&mut self, batch: &BatchRef<'_>, order: &[u32], failure: Failure) -> Error {
        let error = failure.error.clone();
        if error.status == status::DEVICE {
            self.exclude_lost_devices();
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
                    // It needs no lost data, and overwrites the lost base as a whole.
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

    /// The error of an array's shards on this process's ranks, if one is lost.
    fn probe(&mut self, base: &Base) -> Option<Error> {
        for rank in self.port.hosted() {
            let Some(shard) = self.planner.arrays.get(&base.id).and_then(|array| array.shard(rank)) else { continue };
            let lost = self.probe_rank(rank, &shard.base);
            if lost.is_some() {
                return lost;
            }
        }
        None
    }

    /// The error of a rank's base, if it is lost.
    pub(crate) fn probe_rank(&mut self, rank: usize, base: &Base) -> Option<Error> {
        let (state, child) = self.rank(rank);
        state.know(base);
        match child.map(base, None, access::READ) {
            Ok(_) => {
                // A base that could be mapped can be unmapped.
                drop(child.unmap(base));
                None
            }
            Err(error) => Some(error.unplaced()),
        }
    }
}
