//! The checks of `BH_CHECK`. Those of fused programs are the guard's; for the others, batches run one operation at a time, and what
//! goes into each and comes out of it is looked at.

mod elements;
mod faults;
pub(crate) mod guard;
mod indices;
mod instrument;
mod marks;
mod numbers;
mod picture;
mod programs;
mod replay;

use crate::stack::backend::Backend;
use bh_bytecode::batch::{MAX_OPERANDS, NO_BASE};
use bh_bytecode::{Batch, BatchRef, Instr, Opcode, Operand, base_flags, validate};
use bh_core::abi::status;
use bh_core::component::Ticket;
use bh_core::config::Checks;
use bh_core::error::{Error, Result};

/// Runs a batch operation by operation, all of it; returns the first failure. Nothing is under way afterwards.
pub(crate) fn run(backend: &mut dyn Backend, batch: &BatchRef<'_>, checks: Checks) -> Result<()> {
    let mut first = Ok(());
    let mut begun = vec![false; batch.bases.len()];
    let mut rest = batch.instrs;
    while !rest.is_empty() {
        // Data management goes with the work after it: an array that dies is looked at before.
        let work = rest.iter().position(|instr| !instr.opcode.is_system());
        let (now, later) = rest.split_at(work.map_or(rest.len(), |work| work + 1));
        let part = part(batch, now, &mut begun);
        let result = step(backend, &part.as_ref(), checks);
        first = first.and(result);
        rest = later;
    }
    first
}

/// Some instructions of a batch as a batch of their own. `begun`: the bases that earlier parts had.
fn part(batch: &BatchRef<'_>, instrs: &[Instr], begun: &mut [bool]) -> Batch {
    let mut part = Batch {
        origins: batch.origins.to_vec(),
        strings: batch.strings.to_vec(),
        extensions: batch.extensions.to_vec(),
        attributes: batch.attributes.to_vec(),
        ..Batch::default()
    };
    let mut places: Vec<u32> = Vec::new();
    for instr in instrs {
        let mut instr = *instr;
        for operand in &mut instr.operands[..usize::from(instr.count).min(MAX_OPERANDS)] {
            if let Some(constant) = operand.as_constant() {
                *operand = Operand::constant(part.push_constant(batch.constants[constant as usize]));
            } else if let Some(view) = operand.as_view() {
                let base = batch.views[view as usize].base;
                let place = match places.iter().position(|&known| known == base) {
                    _ if base == NO_BASE => NO_BASE,
                    Some(place) => place as u32,
                    None => {
                        let mut record = batch.bases[base as usize];
                        let born = record.has(base_flags::BORN) && !std::mem::replace(&mut begun[base as usize], true);
                        record.flags &= base_flags::PINNED;
                        record.flags |= base_flags::LIVE_OUT | if born { base_flags::BORN } else { 0 };
                        places.push(base);
                        part.push_base(record)
                    }
                };
                *operand = Operand::view(part.intern_view(place, &batch.view(view)));
                if matches!(instr.opcode, Opcode::Free | Opcode::Discard) {
                    let flags = &mut part.bases[place as usize].flags;
                    *flags = *flags & !base_flags::LIVE_OUT | base_flags::DIES;
                }
            }
        }
        part.push_instr(instr);
    }
    part
}

/// Runs a batch of one operation, if that many, between its checks.
fn step(backend: &mut dyn Backend, batch: &BatchRef<'_>, checks: Checks) -> Result<()> {
    let work = batch.instrs.iter().position(|instr| !instr.opcode.is_system());
    let at = |error: Error| work.map_or(error.clone(), |work| error.at_instr(batch, work as u32).unplaced());
    let mut failure = Ok(());
    if checks.bounds {
        let malformed = |error: bh_bytecode::ValidateError| Error::new(status::BATCH, error.message);
        failure = validate(batch).map_err(malformed).and_then(|()| indices::check(backend, batch));
    }
    let limit = match (checks.nan || checks.inf || checks.nan_all) && failure.is_ok() {
        true => numbers::Limit::of(backend, batch),
        false => None,
    };
    // A bad operation runs, too: its engine refuses it by itself and marks what it should have written as lost.
    let ran = match backend.execute(batch, &[]) {
        Ok(Ticket::DONE) => Ok(()),
        Ok(ticket) => backend.wait(ticket),
        Err(error) => Err(error),
    };
    failure.map_err(at).and(ran)?;
    limit.map_or(Ok(()), |limit| limit.check(backend, batch, checks)).map_err(at)
}

/// The name that messages give to an instruction.
fn name<'a>(batch: &BatchRef<'a>, instr: &Instr) -> &'a str {
    batch.operation_name(instr.opcode)
}
