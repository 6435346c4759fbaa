//! Calls functions of the program on each rank's own rows. Rank 0's command carries the function, encoded by the
//! program's language; each process passes it to a callback of its bridge.

use crate::command::failure::Failure;
use crate::command::wire::Writer;
use crate::plan::boxes::{Span, span_of};
use crate::plan::planner::Planner;
use crate::plan::stage::Place;
use crate::run::called::Called;
use crate::run::machine::Machine;
use crate::transport::Class;
use bh_bytecode::{Base, BatchRef, Instr, View};
use bh_core::abi::status;
use bh_core::component::Host;
use bh_core::error::{Error, Result};
use bh_core::stack::{CALL, CallFn};
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The extension method that calls the function of the last command.
pub const METHOD: &str = "cluster_call";

/// The callback of this process's bridge; null if it has none.
static FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Stores the bridge's callback.
pub fn note(host: &Host) {
    let given = host.handle(CALL);
    if !given.is_null() {
        FUNCTION.store(given, Ordering::Release);
    }
}

/// Does an instruction call a function?
pub fn is_call(batch: &BatchRef<'_>, instr: &Instr) -> bool {
    instr.opcode.is_extension() && batch.extension_name(instr.opcode) == Some(METHOD)
}

/// A rank's part of a call.
struct Part {
    rank: usize,
    /// The rows of the result, and the rows of the operands including the halo.
    own: Span,
    rows: Span,
    /// The operands: base, elements per row, and shape of a row.
    operands: Vec<(Base, i64, Vec<i64>)>,
    result: Place,
}

impl Machine {
    /// Calls the function on each rank's own rows, after all earlier work. Returns the failure of the lowest rank.
    pub fn call(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<Option<Failure>> {
        let failed = self.run(batch);
        let instr = &batch.instrs[index as usize];
        let called = self.called.clone().ok_or_else(|| Error::new(status::ARGUMENT, "no function was named"))?;
        let parts = self.planner.plan_call(batch, instr, called.halo)?;
        if let Some(failure) = self.agree(failed)? {
            return Ok(Some(failure));
        }
        let called = self.send_parts(&parts).and_then(|()| self.call_parts(&parts, &called));
        let failure = |error: Error| Failure::new(Some(index), error.at_instr(batch, index).unplaced());
        if let Some(view) = instr.outputs().first().and_then(|operand| operand.as_view())
            && let Some(target) = batch.base_of(view)
        {
            self.planner.note_external_write(target.id, &batch.view(view));
        }
        self.agree(called.err().map(failure))
    }

    /// Sends this process's rows that other ranks need.
    fn send_parts(&mut self, parts: &[Part]) -> Result<()> {
        for part in parts {
            for (base, row, _) in &part.operands {
                for (owner, span) in self.owned(base, part.rows, *row) {
                    if self.port.hosts(owner) && owner != part.rank {
                        let bytes = self.own_elements(base, owner, span)?;
                        self.port.send(Class::Payload, owner, part.rank, bytes)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The owners of rows of an array, and the elements of these rows that each owns.
    fn owned(&self, base: &Base, rows: Span, row: i64) -> Vec<(usize, Span)> {
        let span = Span::new(rows.low * row, rows.high * row);
        let cuts = &self.planner.arrays[&base.id].cuts;
        cuts.owners(span).map(|owner| (owner, cuts.own(owner).meet(span))).collect()
    }

    fn own_elements(&mut self, base: &Base, owner: usize, span: Span) -> Result<Vec<u8>> {
        let shard = self.planner.shard(base.id, owner);
        let place = Place::run(shard.base, span, shard.window)?;
        let mut bytes = Vec::new();
        let (state, child) = self.rank(owner);
        state.pack(child, &place, &mut bytes)?;
        Ok(bytes)
    }

    fn call_parts(&mut self, parts: &[Part], called: &Called) -> Result<()> {
        let mut outcome = Ok(());
        for part in parts.iter().filter(|part| self.port.hosts(part.rank)).collect::<Vec<_>>() {
            let mut request = Writer::default();
            request.number(part.rank as u64).bytes(called.text.as_bytes());
            request.number((part.own.low - part.rows.low) as u64).number(part.own.len() as u64);
            request.number(part.operands.len() as u64);
            for (base, row, shape) in &part.operands {
                let mut bytes = Vec::new();
                for (owner, span) in self.owned(base, part.rows, *row) {
                    bytes.extend(match owner == part.rank {
                        true => self.own_elements(base, owner, span)?,
                        false => self.port.receive(part.rank, owner)?,
                    });
                }
                request.bytes(base.dtype().numpy_name().as_bytes()).number(shape.len() as u64 + 1);
                request.number(part.rows.len() as u64);
                for &extent in shape {
                    request.number(extent as u64);
                }
                request.bytes(&bytes);
            }
            let result = answer(&request.0).and_then(|bytes| match bytes.len() == part.result.bytes() {
                true => Ok(bytes),
                false => Err(Error::new(status::SHAPE, "the function's result is not of the part's size")),
            });
            let stored = result.and_then(|bytes| {
                let (state, child) = self.rank(part.rank);
                state.unpack(child, &part.result, &bytes).map(drop)
            });
            outcome = outcome.and(stored.map_err(|mut error| {
                error.rank = Some(part.rank as i32);
                error
            }));
        }
        outcome
    }
}

/// Calls the bridge's callback.
fn answer(request: &[u8]) -> Result<Vec<u8>> {
    unsafe extern "C" fn append(answer: *mut c_void, data: *const u8, bytes: usize) {
        // SAFETY: `answer` is the vector that `function` was called with below, and `data` has `bytes` bytes.
        unsafe { (*answer.cast::<Vec<u8>>()).extend_from_slice(std::slice::from_raw_parts(data, bytes)) };
    }
    let function = FUNCTION.load(Ordering::Acquire);
    if function.is_null() {
        return Err(Error::new(status::UNSUPPORTED, "this process has no program of its own, to call functions of"));
    }
    // SAFETY: bridges set the handle `CALL` to a function of this type.
    let function = unsafe { std::mem::transmute::<*mut c_void, CallFn>(function) };
    let mut bytes: Vec<u8> = Vec::new();
    // SAFETY: the request and the answer live through the call.
    let code = unsafe { function(request.as_ptr(), request.len(), (&raw mut bytes).cast(), append) };
    match code {
        0 => Ok(bytes),
        _ => Err(Error::new(status::EXECUTION, String::from_utf8_lossy(&bytes).into_owned())),
    }
}

impl Planner {
    /// The parts of a call. All ranks get the same error.
    fn plan_call(&mut self, batch: &BatchRef<'_>, instr: &Instr, halo: i64) -> Result<Vec<Part>> {
        self.check_inputs(batch, instr)?;
        let unfit = || Error::new(status::ARGUMENT, "parts are rows of whole arrays with as many rows");
        let whole = |number: Option<u32>| -> Result<(Base, View)> {
            let number = number.ok_or_else(unfit)?;
            let (base, view) = (*batch.base_of(number).ok_or_else(unfit)?, batch.view(number));
            let fits = view.is_contiguous() && view.len() == base.len && view.rank() > 0;
            fits.then_some((base, view)).ok_or_else(unfit)
        };
        let (target, shape) = whole(instr.outputs().first().and_then(|operand| operand.as_view()))?;
        let count = shape.shape()[0];
        let mut operands = Vec::new();
        for operand in instr.inputs() {
            let (base, view) = whole(operand.as_view())?;
            if view.shape()[0] != count {
                return Err(unfit());
            }
            self.array(&base, Some(&view));
            operands.push((base, base.len / count.max(1), view.shape()[1..].to_vec()));
        }
        self.array(&target, Some(&shape));
        self.renew(&target, span_of(&shape))?;
        let row = (target.len / count.max(1)).max(1);
        if !self.arrays[&target.id].cuts.are_between(row) {
            return Err(unfit());
        }
        let mut parts = Vec::new();
        for rank in self.called(&target, row, halo, &operands) {
            let reach = self.arrays[&target.id].cuts.own(rank);
            if reach.is_empty() {
                continue;
            }
            let own = Span::new(reach.low / row, reach.high / row);
            let rows = Span::new(own.low - halo, own.high + halo).meet(Span::new(0, count));
            let shard = self.shard(target.id, rank);
            let result = Place::run(shard.base, reach, shard.window)?;
            parts.push(Part { rank, own, rows, operands: operands.clone(), result });
        }
        Ok(parts)
    }

    /// The ranks of this process, and those that receive its rows.
    fn called(&self, target: &Base, row: i64, halo: i64, operands: &[(Base, i64, Vec<i64>)]) -> BTreeSet<usize> {
        let mut ranks: BTreeSet<usize> = self.stages.hosted().clone().collect();
        for rank in self.stages.hosted().clone() {
            for (base, inner, _) in operands {
                let own = self.arrays[&base.id].cuts.own(rank);
                if own.is_empty() {
                    continue;
                }
                let rows =
                    Span::new(own.low.div_euclid(*inner) - halo, (own.high + inner - 1).div_euclid(*inner) + halo);
                let needed = Span::new(rows.low * row, rows.high * row).meet(Span::new(0, target.len));
                ranks.extend(self.arrays[&target.id].cuts.range(needed));
            }
        }
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::Weights;
    use crate::plan::settings::Settings;
    use bh_bytecode::{Batch, DType, Opcode, Operand};

    #[test]
    fn a_rank_examines_those_that_receive_its_rows() {
        let ranks = 4096usize;
        let base = |id: u64, row: i64| Base { row_hint: row, ..Base::new(id, DType::F64, 8192 * row) };
        let mut batch = Batch::default();
        let mut part = |base: Base, row: i64| {
            let number = batch.push_base(base);
            batch.push_view(number, &View::contiguous(&[8192, row]).unwrap())
        };
        let operands = [part(base(1, 3), 3), part(base(2, 5), 5)].map(Operand::view);
        let instr = Instr::new(Opcode::Copy, &operands);
        for rank in [0, 1, 2048, 4095] {
            let settings = Settings { weights: Weights::even(ranks), ..Settings::default(ranks) };
            let mut planner = Planner::new(ranks, rank..rank + 1, settings, Box::new(|| 7));
            let parts = planner.plan_call(&batch.as_ref(), &instr, 1).unwrap();
            let found: Vec<usize> = parts.iter().map(|part| part.rank).collect();
            assert_eq!(found, (rank.saturating_sub(1)..(rank + 2).min(ranks)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn functions_are_named_by_a_command() {
        let found = Called::read("cluster call 2 80a3").unwrap();
        assert_eq!(found, Called { halo: 2, text: "80a3".into() });
        assert_eq!(Called::read("cluster call x 80"), None);
        assert_eq!(Called::read("cluster traffic"), None);
    }
}
