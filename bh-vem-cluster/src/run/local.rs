//! A rank's own side: its bases, the batches that run on them, and their bytes in messages.

use crate::plan::stage::{LocalBatch, Place};
use bh_bytecode::{Base, Batch, Constant, Instr, Opcode, Operand, View, base_flags};
use bh_core::abi::{HostMemory, access, retire, status};
use bh_core::component::{Child, Report, Ticket};
use bh_core::error::{Error, Result};
use std::collections::{HashSet, VecDeque};

/// The most batches that a stack has begun and not finished.
const MOST_OPEN: usize = 16;

/// Bases of few bytes that are dropped when the stack has finished what it has begun, at most, and their bytes.
const MOST_LATER: usize = 64;
const FEW_BYTES: u64 = 4096;

/// The memory that a stack's engines have of their own.
pub(crate) fn memory_of(child: &mut Child) -> Option<u64> {
    child.message("device memory").ok()?.trim().parse().ok()
}

/// One rank of this process.
pub struct LocalRank {
    /// Bases that the stack below has heard of.
    known: HashSet<u64>,
    /// Have its engines memory of their own?
    pub(crate) on_device: bool,
    /// Batches that the stack has begun and nobody has waited for, by number.
    open: VecDeque<(u64, Ticket)>,
    /// How many batches it has begun so far.
    begun: u64,
    /// Bases that are dropped when none is open: a batch of its own would take longer than they are worth.
    later: Vec<Base>,
}

impl LocalRank {
    /// A rank above a stack whose engines have memory of their own, or have none.
    pub fn new(on_device: bool) -> LocalRank {
        LocalRank { known: HashSet::new(), on_device, open: VecDeque::new(), begun: 0, later: Vec::new() }
    }

    /// Runs a batch on the stack below, which may go on with it when this returns. The error says which instruction of the
    /// local batch failed, if that is known.
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
        // The caches below look batches up by what is written down here; a plan that serves again keeps it.
        if !signed {
            batch.sign();
        }
        let ticket = child.execute(&batch.as_ref(), &[], &mut Report::none())?;
        self.opened(child, ticket)
    }

    /// Notes that the stack has begun something.
    pub fn opened(&mut self, child: &mut Child, ticket: Ticket) -> Result<()> {
        if ticket == Ticket::DONE {
            return Ok(());
        }
        self.begun += 1;
        self.open.push_back((self.begun, ticket));
        let old = self.begun.saturating_sub(MOST_OPEN as u64);
        self.wait(child, old)
    }

    /// How many batches the stack has begun; all of them if some are open, so that there is something to wait for.
    pub fn mark(&self) -> Option<u64> {
        (!self.open.is_empty()).then_some(self.begun)
    }

    /// Waits until the stack has finished the batches up to a number.
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

    /// Would [`LocalRank::wait`] return at once?
    pub fn is_done(&self, child: &mut Child, up_to: u64) -> Result<bool> {
        let last = self.open.iter().rev().find(|(number, _)| *number <= up_to);
        last.map_or(Ok(true), |(_, ticket)| child.poll(*ticket))
    }

    /// Drops data without a batch.
    fn drop_all(&mut self, child: &mut Child, bases: &[Base]) -> Result<()> {
        let mut outcome = Ok(());
        for base in bases.iter().filter(|base| self.known.remove(&base.id)) {
            outcome = outcome.and(child.retire(base, retire::DISCARD));
        }
        outcome
    }

    /// Drops a base, if the stack below has it.
    pub fn forget(&mut self, child: &mut Child, base: &Base) -> Result<()> {
        self.drop_all(child, &[*base])
    }

    /// Notes that a base has data.
    pub fn know(&mut self, base: &Base) {
        self.known.insert(base.id);
    }

    /// Forgets a base that the stack below has not got any more.
    pub fn lose_name(&mut self, base: u64) {
        self.known.remove(&base);
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
        self.read(child, place, &mut into[first..])
    }

    /// Lets a base that the stack has be in host memory, and nowhere else.
    pub fn take_home(&mut self, child: &mut Child, base: &Base) -> Result<()> {
        if !self.known.contains(&base.id) {
            return Ok(());
        }
        child.map(base, None, access::READ | access::WRITE)?;
        child.unmap(base)
    }

    /// Copies the elements of a place, one after the other.
    pub fn read(&mut self, child: &mut Child, place: &Place, into: &mut [u8]) -> Result<()> {
        debug_assert_eq!(into.len(), place.bytes());
        self.know(&place.base);
        let stride = dense(&place.view, place.base.dtype().size());
        // SAFETY: the buffer has room for the view's elements, and the strides live through the call.
        let memory = unsafe { HostMemory::new(into.as_mut_ptr(), &stride) };
        child.read(&place.base, &place.view, &memory)
    }

    /// Copies the elements of a place. Zeros stand for what is lost.
    pub fn read_or_clear(&mut self, child: &mut Child, place: &Place, into: &mut [u8]) -> Result<()> {
        self.read(child, place, into).inspect_err(|_| into.fill(0))
    }

    /// Lets a device copy elements in a row to pinned memory, or from there, while it goes on; the number of the move. None if it does
    /// not do so.
    pub fn begin_move(&mut self, child: &mut Child, place: &Place, address: usize, writes: bool) -> Option<u64> {
        if !self.on_device || place.view.is_empty() {
            return None;
        }
        self.clear_first(child, place, writes).ok()?;
        let (base, size) = (&place.base, place.base.dtype().size());
        let (begin, first) = (if writes { "writing" } else { "reading" }, place.view.start() as usize * size);
        let run = format!("{} {} {} {first} {} {address}", base.id, base.dtype() as u8, base.len, place.bytes());
        child.message(&format!("begin {begin} {run}")).ok()?.trim().parse().ok()
    }

    /// Makes a base that is not there yet, and of which a part is about to come, on the device.
    fn clear_first(&mut self, child: &mut Child, place: &Place, writes: bool) -> Result<()> {
        let new = self.known.insert(place.base.id);
        if !(new && writes && self.on_device && place.bytes() < place.base.bytes() as usize) {
            return Ok(());
        }
        let ticket = clear(child, &place.base)?;
        self.opened(child, ticket)
    }

    /// Takes the elements of a place from a message; returns the rest of it.
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
        // SAFETY: the message has the view's elements, which are only read.
        unsafe { self.write(child, place, mine.as_ptr(), &dense(&place.view, size))? };
        Ok(rest)
    }

    /// Overwrites the elements of a place with those behind an address, this many bytes from one to the next along each axis.
    ///
    /// # Safety
    /// `stride` must have an entry for each of the view's dimensions, and each element that it leads to behind `from`
    /// be readable and no part of the base's memory.
    pub unsafe fn write(&mut self, child: &mut Child, place: &Place, from: *const u8, stride: &[i64]) -> Result<()> {
        self.clear_first(child, place, true)?;
        // SAFETY: the elements are readable where the strides lead to, as `# Safety` asks; both live through the call,
        // which only reads them.
        let memory = unsafe { HostMemory::new(from.cast_mut(), stride) };
        child.write(&place.base, &place.view, &memory)
    }
}

/// Makes a base of zeros where an operation would write it. A part that came before would make it in host memory, and all of it
/// would have to be brought to the device.
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

/// Strides in bytes of a view's elements, one after the other in C order.
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
