//! A rank: its child stack and its batch under construction.

use crate::wire::{Address, Pending, Seat, Wire};
use bh_bytecode::{Base, Batch, BatchRef, Instr, Opcode, Operand, View, base_flags};
use bh_core::component::{Child, Report};
use bh_core::error::Result;
use std::collections::{HashMap, HashSet};

/// One of the two ranks.
pub struct Rank {
    seat: Seat,
    batch: Batch,
    index: HashMap<u64, u32>,
    /// Local bases without data from before the batch.
    born: HashSet<u64>,
}

impl Rank {
    /// A rank without work.
    pub fn new(seat: Seat) -> Rank {
        Rank { seat, batch: Batch::default(), index: HashMap::new(), born: HashSet::new() }
    }

    /// Copies a batch's tables, so that its instructions can be copied.
    pub fn begin(&mut self, batch: &BatchRef<'_>) {
        self.batch.constants = batch.constants.to_vec();
        self.batch.origins = batch.origins.to_vec();
        self.batch.extensions = batch.extensions.to_vec();
        self.batch.attributes = batch.attributes.to_vec();
        self.batch.strings = batch.strings.to_vec();
    }

    /// Records whether a local base has no data yet.
    pub fn set_born(&mut self, base: &Base, born: bool) {
        if born {
            self.born.insert(base.id);
        } else {
            self.born.remove(&base.id);
        }
    }

    /// An operand for the local batch; without a base, it is an index view.
    pub fn operand(&mut self, base: Option<&Base>, view: &View) -> Operand {
        let index = match base {
            None => bh_bytecode::batch::NO_BASE,
            Some(base) => *self.index.entry(base.id).or_insert_with(|| self.batch.push_base(*base)),
        };
        Operand::view(self.batch.intern_view(index, view))
    }

    /// Appends a copy of `like` with other operands.
    pub fn push(&mut self, like: &Instr, operands: &[Operand]) {
        let mut instr = *like;
        instr.operands[..operands.len()].copy_from_slice(operands);
        self.batch.push_instr(instr);
    }

    /// Appends data management of a whole local base.
    pub fn push_system(&mut self, opcode: Opcode, base: &Base) {
        if let Ok(whole) = View::contiguous(&[base.len]) {
            let operand = self.operand(Some(base), &whole);
            self.batch.push_instr(Instr::new(opcode, &[operand]));
        }
    }

    /// Sends the batch to the rank, or runs it if the rank is on this thread.
    pub fn begin_flush(&mut self) -> Option<Pending<Result<()>>> {
        if self.batch.instrs.is_empty() {
            return None;
        }
        for index in 0..self.batch.bases.len() {
            let dies = self.batch.instrs.iter().any(|instr| {
                let view = instr.operands().first().and_then(|operand| operand.as_view());
                instr.opcode == Opcode::Discard
                    && view.is_some_and(|view| self.batch.views[view as usize].base == index as u32)
            });
            let base = &mut self.batch.bases[index];
            let born = if self.born.contains(&base.id) { base_flags::BORN } else { 0 };
            base.flags = born | if dies { base_flags::DIES } else { base_flags::LIVE_OUT };
        }
        let batch = self.batch.clone();
        let running = self.seat.begin(move |child| {
            child.execute(&batch.as_ref(), &[], &mut Report::none()).and_then(|ticket| child.wait(ticket))
        });
        for base in &self.batch.bases {
            self.born.remove(&base.id);
        }
        self.batch.bases.clear();
        self.batch.views.clear();
        self.batch.dims.clear();
        self.batch.instrs.clear();
        self.index.clear();
        Some(running)
    }

    /// The child stack, if it is on this thread.
    pub fn here(&mut self) -> Option<&mut Child> {
        match &mut self.seat {
            Seat::Here(child) => Some(child),
            Seat::There(_) => None,
        }
    }

    /// Makes a call and waits for its result.
    pub fn call<R: Send + 'static>(
        &mut self,
        call: impl FnOnce(&mut Child) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.seat.call(call)
    }

    /// Maps a base; returns the address of its element 0.
    pub fn map(&mut self, base: &Base, access: u32) -> Result<*mut u8> {
        let base = *base;
        self.call(move |child| child.map(&base, None, access).map(Address)).map(|address| address.0)
    }

    /// Ends a `map`.
    pub fn unmap(&mut self, base: &Base) -> Result<()> {
        let base = *base;
        self.call(move |child| child.unmap(&base))
    }

    /// Is the data of a base lost?
    pub fn has_lost(&mut self, base: &Base) -> bool {
        let base = *base;
        self.call(move |child| child.residency(&base)).is_ok_and(|found| found.lost != 0)
    }
}

/// Runs the batches of both ranks at the same time.
pub fn flush(ranks: &mut [Rank; 2], wire: &Wire) -> [Result<()>; 2] {
    let [first, second] = ranks;
    let sent = second.begin_flush();
    wire.computes(true);
    let here = first.begin_flush();
    wire.computes(false);
    [here, sent].map(|running| {
        let outcome = running.map_or(Ok(()), |running| running.wait().and_then(|outcome| outcome));
        outcome.map_err(|mut error| {
            // Places in the local batch have no meaning for the caller; file and line do.
            error.block = None;
            error.instr = None;
            error
        })
    })
}
