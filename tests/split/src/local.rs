//! A rank: its child stack and the batch that is being put together for it.

use bh_bytecode::{Base, Batch, BatchRef, Instr, Opcode, Operand, View, base_flags};
use bh_core::component::{Child, Report};
use bh_core::error::Result;
use std::collections::{HashMap, HashSet};

/// One of the two ranks.
pub struct Rank {
    pub child: Child,
    batch: Batch,
    index: HashMap<u64, u32>,
    /// Local bases that have no data from before the batch.
    born: HashSet<u64>,
}

impl Rank {
    /// A rank without work.
    pub fn new(child: Child) -> Rank {
        Rank { child, batch: Batch::default(), index: HashMap::new(), born: HashSet::new() }
    }

    /// Takes over what instructions of a batch refer to by index, so that they can be copied.
    pub fn begin(&mut self, batch: &BatchRef<'_>) {
        self.batch.constants = batch.constants.to_vec();
        self.batch.origins = batch.origins.to_vec();
        self.batch.extensions = batch.extensions.to_vec();
        self.batch.attributes = batch.attributes.to_vec();
        self.batch.strings = batch.strings.to_vec();
    }

    /// Notes that a local base has no data yet, or (`false`) that it has.
    pub fn set_born(&mut self, base: &Base, born: bool) {
        if born {
            self.born.insert(base.id);
        } else {
            self.born.remove(&base.id);
        }
    }

    /// An operand for the local batch; `None` as base stands for an index view.
    pub fn operand(&mut self, base: Option<&Base>, view: &View) -> Operand {
        let index = match base {
            None => bh_bytecode::batch::NO_BASE,
            Some(base) => *self.index.entry(base.id).or_insert_with(|| self.batch.push_base(*base)),
        };
        Operand::view(self.batch.intern_view(index, view))
    }

    /// Appends an instruction like `like` on other operands.
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

    /// Runs what was appended.
    pub fn flush(&mut self) -> Result<()> {
        if self.batch.instrs.is_empty() {
            return Ok(());
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
        let child = &mut self.child;
        let outcome =
            child.execute(&self.batch.as_ref(), &[], &mut Report::none()).and_then(|ticket| child.wait(ticket));
        for base in &self.batch.bases {
            self.born.remove(&base.id);
        }
        self.batch.bases.clear();
        self.batch.views.clear();
        self.batch.dims.clear();
        self.batch.instrs.clear();
        self.index.clear();
        outcome.map_err(|mut error| {
            // Places in the local batch mean nothing to the caller; file and line do.
            error.block = None;
            error.instr = None;
            error
        })
    }
}
