//! The machine: plans programs and runs the stages for the ranks of this process.

use crate::boxes::{Span, span_of};
use crate::command::Command;
use crate::fetch::run;
use crate::file::{COMMAND, Region, is_transfer};
use crate::local::LocalRank;
use crate::planner::{Planned, Planner, Settings, covers};
use crate::plans::Plans;
use crate::remote::{Remote, Wire};
use crate::run::complete;
use crate::stage::Place;
use crate::transport::{Class, Port, Transport};
use crate::wire;
use bh_bytecode::{Base, BatchRef, Opcode, View};
use bh_core::component::{Child, Host};
use bh_core::error::{Error, Result};
use std::collections::HashMap;
use std::time::Instant;

/// An instruction that failed on a rank.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Which of the program, if that is known.
    pub instr: Option<u32>,
    /// Why.
    pub error: Error,
}

/// The failure of the earlier instruction; of one instruction, or of unknown ones, the first.
fn first_of(one: Option<Failure>, other: Option<Failure>) -> Option<Failure> {
    let place = |failure: &Failure| failure.instr.unwrap_or(u32::MAX);
    match (one, other) {
        (Some(one), Some(other)) => Some(if place(&other) < place(&one) { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Where the time of this process's ranks went, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// In the stacks below.
    pub compute: u64,
    /// Waiting for messages with elements.
    pub wait: u64,
    /// Putting elements into messages and taking them out.
    pub pack: u64,
}

/// The ranks of this process.
pub struct Machine {
    /// The planner that all ranks have.
    pub planner: Planner,
    /// The way to the other ranks.
    pub port: Port,
    /// The stacks below; ranks take turns if there are fewer stacks.
    pub children: Vec<Child>,
    /// Where the time went.
    pub spent: Spent,
    /// The file that elements go to or come from next.
    pub region: Option<Region>,
    locals: Vec<LocalRank>,
    plans: Plans,
    /// How many batches found a plan that served before.
    pub planned_before: u64,
}

/// Adds the time that something takes.
pub(crate) fn timed<T>(sum: &mut u64, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = work();
    *sum += begin.elapsed().as_nanos() as u64;
    result
}

impl Machine {
    /// A machine without arrays.
    pub fn new(planner: Planner, port: Port, children: Vec<Child>) -> Machine {
        let locals = port.hosted().map(|_| LocalRank::default()).collect();
        Machine {
            planner,
            port,
            children,
            spent: Spent::default(),
            region: None,
            locals,
            plans: Plans::default(),
            planned_before: 0,
        }
    }

    /// The machine of one rank among processes.
    pub fn remote(host: Host, remote: Remote, settings: Settings, children: Vec<Child>) -> Machine {
        let hosted = remote.rank()..remote.rank() + 1;
        let planner = Planner::new(remote.ranks(), hosted, settings, Box::new(move || host.new_base_id()));
        Machine::new(planner, Port::new(Box::new(Wire::new(remote))), children)
    }

    /// Notes that a base of a rank has data.
    pub fn know(&mut self, rank: usize, base: &Base) {
        self.rank(rank).0.know(base);
    }

    pub(crate) fn rank(&mut self, rank: usize) -> (&mut LocalRank, &mut Child) {
        let place = rank - self.port.hosted().start;
        let child = place % self.children.len();
        (&mut self.locals[place], &mut self.children[child])
    }

    /// Runs instructions of a batch in this order. The first error is returned; what depends on it is lost. Batches with equal
    /// instructions on equal views in equal order are of one shape.
    pub fn execute(&mut self, shape: u64, batch: &BatchRef<'_>, order: &[u32]) -> Result<()> {
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
        self.planner.begin(batch, order);
        for (position, &index) in order.iter().enumerate() {
            if is_transfer(batch, &batch.instrs[index as usize]) {
                in_one_go = false;
                match self.transfer(batch, index) {
                    Ok(None) => {}
                    Ok(Some(failure)) => keep(self.lose(batch, &order[..=position], failure)),
                    Err(error) => {
                        self.planner.lose_outputs(batch, &batch.instrs[index as usize], &error);
                        keep(error);
                    }
                }
                continue;
            }
            match self.planner.plan_exchange(batch, index) {
                Ok(None) => {}
                Ok(Some(exchange)) => {
                    in_one_go = false;
                    if let Some(failure) = self.exchange(batch, index, &exchange)? {
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
        complete(&mut stages, batch);
        if in_one_go && first.is_ok() {
            plans.keep(&self.planner, batch, &stages);
        }
        let failed = self.run_stages(batch, &mut stages);
        first.and(self.end(batch, order, failed))
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
        let (me, ranks) = (self.port.hosted().start, self.port.ranks());
        if me != 0 {
            self.port.send(Class::Control, me, 0, wire::put_failure(mine.as_ref()))?;
            let bytes = self.port.receive(me, 0)?;
            return wire::get_failure(&bytes);
        }
        let mut worst = mine;
        for rank in 1..ranks {
            let bytes = self.port.receive(0, rank)?;
            worst = first_of(worst, wire::get_failure(&bytes)?);
        }
        for rank in 1..ranks {
            self.port.send(Class::Control, 0, rank, wire::put_failure(worst.as_ref()))?;
        }
        Ok(worst)
    }

    /// Marks what a failure cost as lost: what the instruction writes, what the stacks below lost with it, and all that
    /// was computed of that.
    fn lose(&mut self, batch: &BatchRef<'_>, order: &[u32], failure: Failure) -> Error {
        let Failure { instr, error } = failure;
        let mut lost: HashMap<u32, Error> = HashMap::new();
        for &index in order {
            let instruction = &batch.instrs[index as usize];
            if instruction.opcode.is_system() {
                if let Some(view) = instruction.operands().first().and_then(|operand| operand.as_view()) {
                    lost.remove(&batch.views[view as usize].base);
                }
                continue;
            }
            let base_of = |view: u32| batch.views[view as usize].base;
            let views = |operands: &[bh_bytecode::Operand]| -> Vec<u32> {
                let views = operands.iter().filter_map(|operand| operand.as_view());
                views.filter(|&view| batch.views[view as usize].len > 0).collect()
            };
            let failed = instr == Some(index);
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
            let Some(piece) = self.planner.arrays.get(&base.id).and_then(|array| array.pieces[rank]) else { continue };
            let (state, child) = self.rank(rank);
            state.know(&piece.base);
            match child.map(&piece.base, None, bh_core::abi::access::READ) {
                // A base that was mapped can be unmapped.
                Ok(_) => drop(child.unmap(&piece.base)),
                Err(error) => return Some(error.unplaced()),
            }
        }
        None
    }

    /// Does what rank 0 told this rank to do. Errors are those that rank 0 has, too.
    pub fn obey(&mut self, command: &Command) -> Result<()> {
        match command {
            Command::Execute(program) => self.execute(program.shape, &program.batch.as_ref(), &program.order),
            Command::Read(base, span) => self.read(base, *span, &mut []),
            Command::Write(base, span) => self.write(base, *span, &[]),
            Command::Know(base) => {
                self.planner.array(base, None);
                Ok(())
            }
            Command::Renew(base) => self.planner.renew(base, Span::new(0, base.len)),
            Command::Changed(base) => self.changed(base),
            Command::Adopt(base) => {
                self.planner.adopted(base);
                self.settle()
            }
            Command::Home(base) => self.planner.bring_home(base).and_then(|_| self.settle()),
            Command::Method(name, opcode) => {
                for child in &mut self.children {
                    child.extmethod(name, Opcode(*opcode))?;
                }
                Ok(())
            }
            Command::Message(text) if text.starts_with(COMMAND) => {
                self.region = Region::read(text);
                Ok(())
            }
            Command::Message(text) => {
                for child in &mut self.children {
                    child.message(text)?;
                }
                Ok(())
            }
            Command::Open(..) | Command::Traffic | Command::Close => Ok(()),
        }
    }

    /// Notes that an array was changed in rank 0's memory, where it lives.
    pub fn changed(&mut self, base: &Base) -> Result<()> {
        let whole = View::contiguous(&[base.len]).unwrap_or_default();
        self.planner.take_in(base.id, &whole);
        self.settle()
    }

    /// Runs what is planned outside of a program.
    pub fn settle(&mut self) -> Result<()> {
        let none = bh_bytecode::Batch::default();
        let outcome = self.run(&none.as_ref()).map_or(Ok(()), |failure| Err(failure.error));
        self.local(outcome)
    }

    /// The outcome of what only one rank does. The others cannot know of a failure, and would wait for this rank.
    fn local<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if let (Err(error), false) = (&outcome, self.port.is_alone()) {
            self.port.abort(&error.to_string());
        }
        outcome
    }

    /// Copies elements of an array to rank 0. `into` has room for all of it where rank 0 is, and is empty elsewhere.
    pub fn read(&mut self, base: &Base, span: Span, into: &mut [u8]) -> Result<()> {
        let Some(array) = self.planner.arrays.get(&base.id) else { return Ok(()) };
        if let Some(error) = &array.lost {
            return Err(error.clone());
        }
        let size = base.dtype().size();
        let cuts = array.cuts.clone();
        for rank in cuts.owners(span) {
            let part = cuts.own(rank).meet(span);
            let piece = self.planner.piece(base.id, rank);
            let mut bytes = Vec::new();
            if self.port.hosts(rank) {
                let place = run(piece.base, part, piece.window)?;
                let (state, child) = self.rank(rank);
                let packed = state.pack(child, &place, &mut bytes);
                self.local(packed)?;
                if rank != 0 {
                    self.port.send(Class::Payload, rank, 0, std::mem::take(&mut bytes))?;
                }
            }
            if self.port.hosts(0) {
                if rank != 0 {
                    bytes = self.port.receive(0, rank)?;
                }
                into[part.low as usize * size..][..bytes.len()].copy_from_slice(&bytes);
            }
        }
        Ok(())
    }

    /// Overwrites elements of an array with rank 0's. `from` has all of the array where rank 0 is, and is empty elsewhere.
    pub fn write(&mut self, base: &Base, span: Span, from: &[u8]) -> Result<()> {
        let size = base.dtype().size();
        self.planner.renew(base, span)?;
        for rank in 0..self.port.ranks() {
            let part = self.planner.arrays[&base.id].reach(rank).meet(span);
            if part.is_empty() {
                continue;
            }
            let piece = self.planner.piece(base.id, rank);
            let mut bytes = Vec::new();
            if self.port.hosts(0) {
                bytes = from[part.low as usize * size..part.high as usize * size].to_vec();
                if rank != 0 {
                    self.port.send(Class::Payload, 0, rank, std::mem::take(&mut bytes))?;
                }
            }
            if self.port.hosts(rank) {
                if rank != 0 {
                    bytes = self.port.receive(rank, 0)?;
                }
                let place: Place = run(piece.base, part, piece.window)?;
                let (state, child) = self.rank(rank);
                let unpacked = state.unpack(child, &place, &bytes).map(drop);
                self.local(unpacked)?;
            }
        }
        let view = View::new(span.low, &[span.len()], &[1]).unwrap_or_default();
        self.planner.take_in(base.id, &view);
        debug_assert_eq!(span_of(&view), span);
        self.settle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_core::abi::status;

    #[test]
    fn the_failure_of_the_earliest_instruction_counts_on_the_lowest_rank() {
        let failure = |text: &str, instr| Failure { instr, error: Error::new(status::EXECUTION, text) };
        let first = |ranks: Vec<Option<Failure>>| {
            ranks.into_iter().reduce(first_of).flatten().map_or(String::new(), |failure| failure.error.text)
        };
        assert_eq!(first(vec![None, None, None]), "");
        assert_eq!(first(vec![None, Some(failure("a", Some(3))), None]), "a");
        let both = [Some(failure("a", Some(3))), Some(failure("b", Some(2)))];
        assert_eq!(first(both.to_vec()), "b");
        assert_eq!(first(vec![both[0].clone(), Some(failure("c", Some(3)))]), "a");
        assert_eq!(first(vec![Some(failure("d", None)), None, both[0].clone()]), "a");
    }
}
