//! The consequences of failed instructions: the bases that depend on them by data flow, as if each instruction were a
//! block.

use super::{Ends, is_system};
use crate::abi::{ErrorRecord, ReportRecord, log_level};
use crate::component::Registry;
use crate::error::Error;
use bh_bytecode::{BatchRef, Instr};
use std::collections::HashSet;
use std::ffi::c_void;

/// A base of an instruction, and whether the instruction covers all of it.
fn reached(batch: &BatchRef<'_>, view: u32) -> Option<(u32, bool)> {
    let (record, base) = (&batch.views[view as usize], batch.base_of(view)?);
    (record.len > 0).then_some((record.base, record.len == base.len))
}

/// The bases whose earlier data an instruction needs: its inputs, and outputs that it overwrites only partly.
fn needed<'a>(batch: &'a BatchRef<'_>, instr: &'a Instr) -> impl Iterator<Item = u32> + 'a {
    let inputs = instr.inputs().iter().filter_map(|operand| reached(batch, operand.as_view()?));
    let kept = move |&(_, whole): &(u32, bool)| !whole || instr.opcode.reads_output();
    let outputs = instr.outputs().iter().filter_map(|operand| reached(batch, operand.as_view()?)).filter(kept);
    inputs.chain(outputs).map(|(base, _)| base)
}

/// The bases that an instruction writes.
pub(super) fn written<'a>(batch: &'a BatchRef<'_>, instr: &'a Instr) -> impl Iterator<Item = u32> + 'a {
    instr.outputs().iter().filter_map(|operand| reached(batch, operand.as_view()?)).map(|(base, _)| base)
}

/// Whether a block uses a base whose data was lost earlier, other than by overwriting all of it.
pub(super) fn needs_lost(registry: Registry, batch: &BatchRef<'_>, block: u32) -> bool {
    let block = &batch.blocks[block as usize];
    let mut made: HashSet<u32> = batch.contracted(block).iter().copied().collect();
    batch.block_instrs(block).iter().filter(|&&instr| !is_system(batch, instr)).any(|&instr| {
        let instr = &batch.instrs[instr as usize];
        let lost = needed(batch, instr)
            .any(|base| made.insert(base) && registry.residency(&batch.bases[base as usize]).lost != 0);
        made.extend(written(batch, instr));
        lost
    })
}

/// The bases that are lost if these instructions of a block fail and everything else runs, each with the index of its
/// cause among the failures.
fn lost_with(batch: &BatchRef<'_>, block: u32, failed: &[(u32, u32, Error)]) -> Vec<(u32, usize)> {
    let mut lost: Vec<(u32, usize)> = Vec::new();
    for &index in batch.block_instrs(&batch.blocks[block as usize]).iter().filter(|&&instr| !is_system(batch, instr)) {
        let instr = &batch.instrs[index as usize];
        let inherited = needed(batch, instr).find_map(|base| lost.iter().find(|(other, _)| *other == base));
        let own = || failed.iter().position(|&(at, failed, _)| (at, failed) == (block, index));
        let cause = inherited.map(|&(_, cause)| cause).or_else(own);
        for base in written(batch, instr) {
            let known = lost.iter().position(|&(other, _)| other == base);
            match (cause, known) {
                (Some(cause), None) => lost.push((base, cause)),
                // An instruction that needs no lost base and writes all of a lost base overwrites it.
                (None, Some(known)) => drop(lost.swap_remove(known)),
                _ => {}
            }
        }
    }
    lost
}

/// The failed instructions of a call, handled as they are reported.
pub(super) struct Failures<'a> {
    link: &'a dyn Ends,
    batch: &'a BatchRef<'a>,
    failed: Vec<(u32, u32, Error)>,
    /// The caller's report.
    above: *mut ReportRecord,
}

impl<'a> Failures<'a> {
    pub(super) fn new(link: &'a dyn Ends, batch: &'a BatchRef<'a>, above: *mut ReportRecord) -> Failures<'a> {
        Failures { link, batch, failed: Vec::new(), above }
    }

    /// Makes a call with a report of its own, and adds the times to the caller's.
    pub(super) fn during<T>(&mut self, call: impl FnOnce(*mut ReportRecord) -> T) -> T {
        let mut record = ReportRecord {
            struct_size: size_of::<ReportRecord>(),
            context: std::ptr::from_mut(self).cast(),
            failed,
            planning_seconds: 0.0,
            running_seconds: 0.0,
        };
        let answer = call(&raw mut record);
        // SAFETY: the caller's record is null or lives through its call, within which this one is.
        if let Some(above) = unsafe { self.above.as_mut() } {
            above.planning_seconds += record.planning_seconds;
            above.running_seconds += record.running_seconds;
        }
        answer
    }

    /// The failure of the first instruction.
    pub(super) fn first(&self) -> Option<Error> {
        self.failed.first().map(|(_, _, error)| error.clone())
    }

    fn add(&mut self, block: u32, instr: u32, error: Error) {
        let batch = self.batch;
        let known = batch.blocks.get(block as usize).is_some_and(|it| batch.block_instrs(it).contains(&instr));
        if !known {
            let text =
                format!("reported the failure of instruction {instr} in block {block}, where it is not: {error}");
            return self.link.log(log_level::ERROR, &text);
        }
        let error = self.link.named(error.in_block(block).at_instr(batch, instr), batch);
        self.link.count_failed();
        self.failed.push((block, instr, error));
        let Some(registry) = self.link.registry() else { return };
        let contracted = batch.contracted(&batch.blocks[block as usize]);
        for (base, cause) in lost_with(batch, block, &self.failed) {
            if !contracted.contains(&base) {
                registry.poison(&batch.bases[base as usize], &self.failed[cause].2);
            }
        }
    }
}

unsafe extern "C" fn failed(context: *mut c_void, block: u32, instr: u32, error: *const ErrorRecord) {
    if error.is_null() {
        return;
    }
    // SAFETY: the context is the value whose `during` makes the call, and nobody else uses it meanwhile; the error is the
    // callee's.
    unsafe {
        let failures = &mut *context.cast::<Failures<'_>>();
        failures.add(block, instr, Error::read((*error).status, &*error));
        if let Some(above) = failures.above.as_ref() {
            (above.failed)(above.context, block, instr, error);
        }
    }
}
