//! A local rank: its bases, the batches that run on them, and their elements in messages.

use crate::plan::stage::{LocalBatch, Place};
use bh_bytecode::{Base, Batch, Constant, Instr, Opcode, Operand, View, base_flags};
use bh_core::abi::{HostMemory, access, retire, status};
use bh_core::component::{Child, Report, Ticket};
use bh_core::error::{Error, Result};
use std::collections::{HashSet, VecDeque};

/// Unfinished batches per stack, at most.
const MOST_OPEN: usize = 16;

/// Deferred drops, at most, and the most bytes of such a base.
const MOST_LATER: usize = 64;
const FEW_BYTES: u64 = 4096;

/// The bytes of a stack's own memory, if its engines have one.
pub(crate) fn memory_of(child: &mut Child) -> Option<u64> {
    child.message("device memory").ok()?.trim().parse().ok()
}

/// One rank of this process.
pub struct LocalRank {
    /// Bases that the stack below knows.
    known: HashSet<u64>,
    /// Do its engines have their own memory?
    pub(crate) on_device: bool,
    /// Unfinished batches, by number.
    open: VecDeque<(u64, Ticket)>,
    /// The number of batches started.
    begun: u64,
    /// Bases to drop when no batch is unfinished: a separate batch would cost more than their memory is worth.
    later: Vec<Base>,
}

impl LocalRank {
    /// A rank above a stack.
    pub fn new(on_device: bool) -> LocalRank {
        LocalRank { known: HashSet::new(), on_device, open: VecDeque::new(), begun: 0, later: Vec::new() }
    }

    /// Starts a batch on the stack below, which may still run when this returns. The error names the failed instruction
    /// of the local batch, if known.
    pub fn run(&mut self, child: &mut Child, local: &mut LocalBatch) -> Result<()> {
        if local.batch.instrs.is_empty() {
            return Ok(());
        }
        if local.only_drops() {
            let few = local.batch.bases.iter().all(|base| base.bytes() <= FEW_BYTES);
            if self.open.is_empty() {
                return self.drop_all(child, &local.batch.bases);
            } else if few && self.later.len() < MOST_LATER {
                self.later.extend_from_slice(&local.batch.bases);
                return Ok(());
            }
        }
        let batch = &mut local.batch;
        let mut signed = !batch.key.is_empty();
        for (base, &dies) in batch.bases.iter_mut().zip(&local.dropped) {
            let born = if self.known.insert(base.id) { base_flags::BORN } else { 0 };
            let flags = born | if dies { base_flags::DIES } else { base_flags::LIVE_OUT };
            signed &= base.flags == flags;
            base.flags = flags;
            if dies {
                self.known.remove(&base.id);
            }
        }
        // Caches below use the batch's signature; a cached plan keeps it.
        if !signed {
            batch.sign();
        }
        let ticket = child.execute(&batch.as_ref(), &[], &mut Report::none())?;
        self.opened(child, ticket)
    }

    /// Records a ticket of the stack.
    pub fn opened(&mut self, child: &mut Child, ticket: Ticket) -> Result<()> {
        if ticket == Ticket::DONE {
            return Ok(());
        }
        self.begun += 1;
        self.open.push_back((self.begun, ticket));
        let old = self.begun.saturating_sub(MOST_OPEN as u64);
        self.wait(child, old)
    }

    /// The number of the last batch started; `None` if all are finished.
    pub fn mark(&self) -> Option<u64> {
        (!self.open.is_empty()).then_some(self.begun)
    }

    /// Waits until the stack has finished all batches up to a number.
    pub fn wait(&mut self, child: &mut Child, up_to: u64) -> Result<()> {
        let mut outcome = Ok(());
        while let Some((_, ticket)) = self.open.pop_front_if(|(number, _)| *number <= up_to) {
            outcome = outcome.and(child.wait(ticket));
        }
        if self.open.is_empty() && !self.later.is_empty() {
            let later = std::mem::take(&mut self.later);
            outcome = outcome.and(self.drop_all(child, &later));
        }
        outcome
    }

    /// Would [`LocalRank::wait`] return immediately?
    pub fn is_done(&self, child: &mut Child, up_to: u64) -> Result<bool> {
        let last = self.open.iter().rev().find(|(number, _)| *number <= up_to);
        last.map_or(Ok(true), |(_, ticket)| child.poll(*ticket))
    }

    /// Drops bases without a batch.
    fn drop_all(&mut self, child: &mut Child, bases: &[Base]) -> Result<()> {
        let mut outcome = Ok(());
        for base in bases.iter().filter(|base| self.known.remove(&base.id)) {
            outcome = outcome.and(child.retire(base, retire::DISCARD));
        }
        outcome
    }

    /// Drops a base, if the stack below knows it.
    pub fn forget(&mut self, child: &mut Child, base: &Base) -> Result<()> {
        self.drop_all(child, &[*base])
    }

    /// Records that a base has data.
    pub fn know(&mut self, base: &Base) {
        self.known.insert(base.id);
    }

    /// Forgets a base that the stack below no longer has.
    pub fn lose_name(&mut self, base: u64) {
        self.known.remove(&base);
    }

    /// Appends the elements of a place to a message; zeros if they are lost.
    pub fn pack(&mut self, child: &mut Child, place: &Place, into: &mut Vec<u8>) -> Result<()> {
        let size = place.base.dtype().size();
        let first = into.len();
        into.resize(first + place.view.len() as usize * size, 0);
        if place.view.is_empty() {
            return Ok(());
        }
        self.know(&place.base);
        self.read(child, place, &mut into[first..])
    }

    /// Moves a base to host memory, if the stack has it.
    pub fn take_home(&mut self, child: &mut Child, base: &Base) -> Result<()> {
        if !self.known.contains(&base.id) {
            return Ok(());
        }
        child.map(base, None, access::READ | access::WRITE)?;
        child.unmap(base)
    }

    /// Copies the elements of a place, packed.
    pub fn read(&mut self, child: &mut Child, place: &Place, into: &mut [u8]) -> Result<()> {
        debug_assert_eq!(into.len(), place.bytes());
        self.know(&place.base);
        let stride = dense(&place.view, place.base.dtype().size());
        // SAFETY: `into` has space for the view's elements, and the strides live through the call.
        let memory = unsafe { HostMemory::new(into.as_mut_ptr(), &stride) };
        child.read(&place.base, &place.view, &memory)
    }

    /// Copies the elements of a place, packed; zeros if they are lost.
    pub fn read_or_clear(&mut self, child: &mut Child, place: &Place, into: &mut [u8]) -> Result<()> {
        self.read(child, place, into).inspect_err(|_| into.fill(0))
    }

    /// Creates a new base on the device before a part of it arrives.
    pub(crate) fn clear_first(&mut self, child: &mut Child, place: &Place) -> Result<()> {
        let new = self.known.insert(place.base.id);
        if !(new && self.on_device && place.bytes() < place.base.bytes() as usize) {
            return Ok(());
        }
        let ticket = clear(child, &place.base)?;
        self.opened(child, ticket)
    }

    /// Copies elements from a message to a place; returns the rest of the message.
    pub fn unpack<'a>(&mut self, child: &mut Child, place: &Place, from: &'a [u8]) -> Result<&'a [u8]> {
        let size = place.base.dtype().size();
        let bytes = place.view.len() as usize * size;
        let Some((mine, rest)) = from.split_at_checked(bytes) else {
            let text = format!("a message of {} bytes is too short for {bytes}", from.len());
            return Err(Error::new(status::EXECUTION, text));
        };
        if bytes == 0 {
            return Ok(rest);
        }
        // SAFETY: `mine` has the view's elements, packed, and `write` only reads them.
        unsafe { self.write(child, place, mine.as_ptr(), &dense(&place.view, size))? };
        Ok(rest)
    }

    /// Overwrites the elements of a place from memory at `from`, with strides in bytes along each axis.
    ///
    /// # Safety
    /// `stride` must have an entry for each of the view's dimensions. The elements that it addresses from `from` must
    /// be readable, and not in the base's memory.
    pub unsafe fn write(&mut self, child: &mut Child, place: &Place, from: *const u8, stride: &[i64]) -> Result<()> {
        self.clear_first(child, place)?;
        // SAFETY: the caller guarantees readable elements at these strides; memory and strides live through the call,
        // which only reads them.
        let memory = unsafe { HostMemory::new(from.cast_mut(), stride) };
        child.write(&place.base, &place.view, &memory)
    }
}

/// Creates a base of zeros with an operation, on the device. A partial write would create it in host memory and copy
/// all of it to the device.
fn clear(child: &mut Child, base: &Base) -> Result<Ticket> {
    let mut batch = Batch::default();
    let place = batch.push_base(Base { flags: base_flags::BORN | base_flags::LIVE_OUT, ..*base });
    let whole = View::contiguous(&[base.len]).map_err(|error| Error::new(status::BATCH, error.0))?;
    let (whole, zero) =
        (batch.push_view(place, &whole), batch.push_constant(Constant::from_bytes(base.dtype(), &[0; 16])));
    batch.push_instr(Instr::new(Opcode::Copy, &[Operand::view(whole), Operand::constant(zero)]));
    batch.sign();
    child.execute(&batch.as_ref(), &[], &mut Report::none())
}

/// Strides in bytes of a view's packed elements, in C order.
pub(crate) fn dense(view: &View, size: usize) -> Vec<i64> {
    let mut step = size as i64;
    let mut stride: Vec<i64> = view
        .shape()
        .iter()
        .rev()
        .map(|&extent| {
            let own = step;
            step *= extent.max(1);
            own
        })
        .collect();
    stride.reverse();
    stride
}
