//! A rank's own side: its bases, the batches that run on them, and their bytes in messages.

use crate::stage::{LocalBatch, Place};
use bh_bytecode::{Base, Opcode, View, base_flags};
use bh_core::abi::access;
use bh_core::component::{Child, Report};
use bh_core::error::{Error, Result};
use std::collections::HashSet;

/// One rank of this process.
#[derive(Default)]
pub struct LocalRank {
    /// Bases that the stack below has heard of.
    known: HashSet<u64>,
}

impl LocalRank {
    /// Runs a batch on the stack below. The error says which instruction of the local batch failed, if that is known.
    pub fn run(&mut self, child: &mut Child, mut local: LocalBatch) -> Result<()> {
        let batch = &mut local.batch;
        let dropped: HashSet<u32> = batch
            .instrs
            .iter()
            .filter(|instr| instr.opcode == Opcode::Discard)
            .filter_map(|instr| Some(batch.views[instr.operands()[0].as_view()? as usize].base))
            .collect();
        for (index, base) in batch.bases.iter_mut().enumerate() {
            let born = if self.known.insert(base.id) { base_flags::BORN } else { 0 };
            let dies = dropped.contains(&(index as u32));
            base.flags = born | if dies { base_flags::DIES } else { base_flags::LIVE_OUT };
            if dies {
                self.known.remove(&base.id);
            }
        }
        child.execute(&batch.as_ref(), &[], &mut Report::none()).and_then(|ticket| child.wait(ticket))
    }

    /// Notes that a base has data.
    pub fn know(&mut self, base: &Base) {
        self.known.insert(base.id);
    }

    /// Appends the elements of a place to a message. If they are lost, zeros stand for them.
    pub fn pack(&mut self, child: &mut Child, place: &Place, into: &mut Vec<u8>) -> Result<()> {
        let size = place.base.dtype().size();
        let first = into.len();
        into.resize(first + place.view.len() as usize * size, 0);
        if place.view.is_empty() {
            return Ok(());
        }
        self.know(&place.base);
        let data = child.map(&place.base, Some(&place.view), access::READ)?;
        let mut at = first;
        runs(&place.view, |start, count| {
            let bytes = count as usize * size;
            // SAFETY: the map gives the view's elements until `unmap`, and the buffer was made for them.
            unsafe { std::ptr::copy_nonoverlapping(data.add(start as usize * size), into[at..].as_mut_ptr(), bytes) };
            at += bytes;
        });
        child.unmap(&place.base)
    }

    /// Takes the elements of a place from a message; returns the rest of it.
    pub fn unpack<'a>(&mut self, child: &mut Child, place: &Place, from: &'a [u8]) -> Result<&'a [u8]> {
        let size = place.base.dtype().size();
        let bytes = place.view.len() as usize * size;
        let Some((mine, rest)) = from.split_at_checked(bytes) else {
            let text = format!("a message of {} bytes is too short for {bytes}", from.len());
            return Err(Error::new(bh_core::abi::status::EXECUTION, text));
        };
        if bytes == 0 {
            return Ok(rest);
        }
        self.know(&place.base);
        let whole = place.view.len() == place.base.len;
        let mode = access::WRITE | if whole { access::DISCARD } else { 0 };
        let data = child.map(&place.base, Some(&place.view), mode)?;
        let mut at = 0;
        runs(&place.view, |start, count| {
            let bytes = count as usize * size;
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(mine[at..].as_ptr(), data.add(start as usize * size), bytes) };
            at += bytes;
        });
        child.unmap(&place.base)?;
        Ok(rest)
    }
}

/// Calls `each` with the first element and the length of each dense run of a view, in C order.
fn runs(view: &View, mut each: impl FnMut(i64, i64)) {
    // The inner dimensions that follow each other in memory are one run.
    let (mut inner, mut count) = (view.rank(), 1);
    while inner > 0 && (view.shape()[inner - 1] == 1 || view.stride()[inner - 1] == count) {
        count *= view.shape()[inner - 1];
        inner -= 1;
    }
    for start in bh_bytecode::interp::offsets(view.start(), &view.shape()[..inner], &view.stride()[..inner]) {
        each(start, count);
    }
}
