//! Runs a log again, operation by operation, on arrays of its own, and finds the operation that made the first bad number which
//! the log's last batch stores.
//!
//! Each element that is worse than what it is made of is an event; elements that are made of it carry its number on. An event
//! that no stored element carries is none: what a `where` discards is not reported.

use super::elements::{copied, element, index_text, visit};
use super::faults::{Found, Suspect, wanted};
use super::guard::{Log, Past, copy_base, discard, execute};
use super::marks::{Class, Events, Marks, allowed, each_class, number, operation};
use super::numbers::{is_wanted, made_of};
use super::programs::{Tested, TestedPrograms};
use super::{name, part, picture};
use crate::record::location::marked;
use crate::stack::backend::Backend;
use bh_bytecode::{Base, Batch, BatchRef, Constant, DType, Instr, Kind, Operand, Truth, base_flags};
use bh_core::abi::status;
use bh_core::config::Checks;
use bh_core::error::{Error, Result};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// Places in the chain that an error names, at most.
const CHAIN: usize = 6;

/// A bad number that was made of better ones.
struct Event {
    /// The number of the operation.
    operation: usize,
    /// The error, without the chain.
    error: Error,
    /// The map of its array, for the report page.
    picture: Option<Value>,
}

/// An operation that ran.
struct Ran {
    /// Its name and its place in the program.
    name: String,
    place: Option<(String, u32)>,
    /// The operations that last wrote its inputs.
    inputs: Vec<usize>,
}

struct Replay<'a> {
    backend: &'a mut dyn Backend,
    checks: Checks,
    programs: &'a mut TestedPrograms,
    /// The bases of the replay, by the identities of the program's.
    bases: HashMap<u64, Base>,
    events_of: Events,
    events: Vec<Event>,
    ran: Vec<Ran>,
    /// The operation that last wrote a base.
    writers: HashMap<u64, usize>,
}

/// Fails with the operation that made the first bad number that the last batch of the log stores; does not if all were there
/// before.
pub(super) fn find(backend: &mut dyn Backend, log: &Log, checks: Checks, programs: &mut TestedPrograms) -> Result<()> {
    let mut replay = Replay {
        backend,
        checks,
        programs,
        bases: HashMap::new(),
        events_of: Events::new(),
        events: Vec::new(),
        ran: Vec::new(),
        writers: HashMap::new(),
    };
    let found = replay.run(log);
    let left: Vec<Base> = replay.bases.values().copied().collect();
    discard(replay.backend, &left)?;
    found
}

impl Replay<'_> {
    fn run(&mut self, log: &Log) -> Result<()> {
        let Some(last) = log.batches.len().checked_sub(1) else { return Ok(()) };
        for (number, batch) in log.batches.iter().enumerate() {
            let batch = batch.as_ref();
            for base in batch.bases {
                self.begin_base(base, log)?;
            }
            let mut begun = vec![false; batch.bases.len()];
            let mut rest = batch.instrs;
            while !rest.is_empty() {
                // An operation runs alone, so that its operands are still there afterwards.
                let managed = rest.iter().take_while(|instr| instr.opcode.is_system()).count();
                let (now, later) = rest.split_at(managed.max(1));
                self.step(self.renamed(part(&batch, now, &mut begun)), number == last)?;
                rest = later;
            }
        }
        self.first_stored(&log.batches[last].as_ref())
    }

    /// Makes the base of the replay that stands for one of the program's, with the data that it had when the log began.
    fn begin_base(&mut self, base: &Base, log: &Log) -> Result<()> {
        if self.bases.contains_key(&base.id) {
            return Ok(());
        }
        let id = self.backend.base_ids().fetch_add(1, Ordering::Relaxed);
        let own = Base { id, flags: 0, ..*base };
        match log.past.get(&base.id) {
            Some(Past::Own) => copy_base(self.backend, base, &own)?,
            Some(Past::Copy(copy)) => copy_base(self.backend, copy, &own)?,
            Some(Past::Nothing) | None => {}
        }
        self.bases.insert(base.id, own);
        Ok(())
    }

    fn renamed(&self, mut batch: Batch) -> Batch {
        for base in &mut batch.bases {
            if let Some(own) = self.bases.get(&base.id) {
                base.id = own.id;
                base.flags &= !base_flags::PINNED;
            }
        }
        batch
    }

    /// Runs one operation and notes what it made.
    fn step(&mut self, batch: Batch, is_last: bool) -> Result<()> {
        let batch = batch.as_ref();
        let Some(instr) = operation(&batch) else { return execute(self.backend, &batch) };
        let place = batch.origin(instr).map(|(file, line)| (file.to_owned(), line));
        let bases = |operands: &[Operand]| -> Vec<u64> {
            operands.iter().filter_map(|operand| Some(batch.base_of(operand.as_view()?)?.id)).collect()
        };
        let inputs = bases(instr.inputs()).iter().filter_map(|base| self.writers.get(base).copied()).collect();
        let number = self.ran.len();
        self.ran.push(Ran { name: name(&batch, instr).to_owned(), place, inputs });
        let fault = wanted(&batch, instr, self.checks).filter(|_| is_last);
        let suspect = fault.and_then(|fault| Suspect::before(self.backend, &batch, fault));
        let program = if is_last { self.programs.of(self.backend, &batch, instr, self.checks) } else { None };
        let allowed = allowed(self.backend, &batch, &self.events_of);
        let operands = Operands::before(self.backend, &batch, instr);
        let found = match program {
            Some(program) => self.program(&batch, &program)?,
            None => {
                execute(self.backend, &batch)?;
                suspect.and_then(|suspect| suspect.find(self.backend, &batch))
            }
        };
        found.map_or(Ok(()), |found| self.fail(&batch, instr, &found))?;
        if let Some(allowed) = allowed {
            self.note(&batch, instr, &allowed, &operands);
        }
        for base in bases(instr.outputs()) {
            self.writers.insert(base, number);
        }
        Ok(())
    }

    /// Runs a batch with a program that has tests, and says where they failed.
    fn program(&mut self, batch: &BatchRef<'_>, program: &Tested) -> Result<Option<Found>> {
        let id = self.backend.base_ids().fetch_add(1, Ordering::Relaxed);
        let Some((tested, lost, view)) = program.instead(batch, id) else {
            return execute(self.backend, batch).map(|()| None);
        };
        execute(self.backend, &tested.as_ref())?;
        let mut all = Vec::new();
        visit::<Truth>(self.backend, &tested.as_ref(), view, |_, holds| all.push(holds.get()));
        let positions: Vec<usize> = (0..all.len()).filter(|&position| all[position]).collect();
        discard(self.backend, &[lost])?;
        let text = format!("has a sum or difference that has lost at least {} bits by cancellation", program.bits);
        Ok((!positions.is_empty()).then_some(Found { text, positions }))
    }

    /// Fails with the fault of the operation that ran last.
    fn fail(&mut self, batch: &BatchRef<'_>, instr: &Instr, found: &Found) -> Result<()> {
        let Found { text, positions } = found;
        let Some(view) = instr.operands[0].as_view() else { return Ok(()) };
        let index = index_text(batch.shape(view), positions[0]);
        let (name, count) = (name(batch, instr), positions.len());
        let text = format!("{name}: element {index} of the result {text}; elements like that: {count}");
        let error = self.chained(Error::new(status::CHECK, text), self.ran.len() - 1);
        let picture = picture::of(self.backend, batch, view, positions);
        picture::leave(self.backend, picture.as_ref(), &error);
        Err(error)
    }

    /// Notes events, and which elements carry them on.
    fn note(&mut self, batch: &BatchRef<'_>, instr: &Instr, allowed: &Marks, operands: &Operands) {
        for operand in instr.outputs() {
            let Some(view) = operand.as_view() else { continue };
            let Some(base) = batch.base_of(view) else { continue };
            let (mut position, mut first, mut bad) = (0usize, None, Vec::new());
            let next = self.events.len() as u32 + 1;
            let (checks, mut carried) = (self.checks, Vec::new());
            each_class(self.backend, batch, view, &mut |offset, class, value| {
                let limit = allowed.at(position);
                if is_wanted(class, checks) && class > limit.class {
                    bad.push(position);
                    first.get_or_insert_with(|| (position, value(), class));
                    carried.push((offset, next));
                } else {
                    carried.push((offset, if class == Class::Finite { 0 } else { limit.event }));
                }
                position += 1;
            });
            if let Some((position, value, class)) = first {
                let text = format!(
                    "{}: element {} of the result is {value}, {}{}; elements like that: {}",
                    name(batch, instr),
                    index_text(batch.shape(view), position),
                    made_of(class),
                    operands.at(self.backend, batch, position),
                    bad.len(),
                );
                let error = Error::new(status::CHECK, text);
                let picture = picture::of(self.backend, batch, view, &bad);
                self.events.push(Event { operation: self.ran.len() - 1, error, picture });
            }
            if self.events_of.contains_key(&base.id) || carried.iter().any(|&(_, event)| event != 0) {
                let events = self.events_of.entry(base.id).or_insert_with(|| vec![0; base.len as usize]);
                for (offset, event) in carried {
                    events[offset as usize] = event;
                }
            }
        }
    }

    /// Fails with the first event that an array carries which lives on behind the last batch.
    fn first_stored(&mut self, last: &BatchRef<'_>) -> Result<()> {
        let stored = last.bases.iter().filter(|base| base.has(base_flags::LIVE_OUT));
        let carried = stored.filter_map(|base| self.events_of.get(&self.bases.get(&base.id)?.id)).flatten();
        let Some(&first) = carried.filter(|&&event| event != 0).min() else { return Ok(()) };
        let event = &self.events[first as usize - 1];
        let error = self.chained(event.error.clone(), event.operation);
        picture::leave(self.backend, event.picture.as_ref(), &error);
        Err(error)
    }

    /// The error at the place of an operation, with the chain of places that made its operands.
    fn chained(&self, mut error: Error, operation: usize) -> Error {
        let ran = &self.ran[operation];
        error.origin.clone_from(&ran.place);
        let (mut chain, mut next, mut seen) = (Vec::new(), ran.inputs.clone(), vec![false; operation + 1]);
        while let Some(number) = next.iter().copied().max().filter(|_| chain.len() < CHAIN) {
            next.retain(|&other| other != number);
            if std::mem::replace(&mut seen[number], true) {
                continue;
            }
            let ran = &self.ran[number];
            next.extend(&ran.inputs);
            let Some((file, line)) = &ran.place else { continue };
            let link = format!("{} ({})", marked(file, *line), ran.name);
            if ran.place != error.origin && !chain.contains(&link) {
                chain.push(link);
            }
        }
        if !chain.is_empty() {
            error.text += &format!("; its operands come from {}", chain.join(", "));
        }
        error
    }
}

/// The operands of an elementwise operation, for messages.
enum Shown {
    Constant(Constant),
    View(u32),
    /// The elements in C order of what the operation overwrites, as they were before it ran.
    Before(DType, Vec<u8>),
}

struct Operands(Vec<Shown>);

impl Operands {
    /// The operands of an operation that is about to run; none if it is not elementwise.
    fn before(backend: &mut dyn Backend, batch: &BatchRef<'_>, instr: &Instr) -> Operands {
        if instr.opcode.kind() != Kind::Elementwise {
            return Operands(Vec::new());
        }
        let base = |operand: Operand| operand.as_view().map(|view| batch.views[view as usize].base);
        let target = base(instr.operands[0]);
        let mut shown = |operand: &Operand| match operand.as_view() {
            None => operand.as_constant().map(|constant| Shown::Constant(batch.constants[constant as usize])),
            Some(view) if base(*operand) == target => {
                Some(Shown::Before(batch.dtype(*operand)?, copied(backend, batch, view)?))
            }
            Some(view) => Some(Shown::View(view)),
        };
        Operands(instr.inputs().iter().filter_map(&mut shown).collect())
    }

    /// Their values for the element at a position, as a message names them; nothing without operands.
    fn at(&self, backend: &mut dyn Backend, batch: &BatchRef<'_>, position: usize) -> String {
        let mut value = |shown: &Shown| {
            Some(match shown {
                Shown::Constant(constant) => *constant,
                Shown::View(view) => element(backend, batch, *view, position)?,
                Shown::Before(dtype, bytes) => Constant::from_bytes(*dtype, bytes.get(position * dtype.size()..)?),
            })
        };
        let values: Vec<String> = self.0.iter().filter_map(&mut value).map(number).collect();
        if values.is_empty() { String::new() } else { format!(" (operands: {})", values.join(", ")) }
    }
}
