//! Which bases a lowered block uses and how an engine has to acquire them. A base of which the block uses no element is not
//! acquired: losing it costs nothing.

use crate::{BufferRef, SlotMode, Special, Stage};
use bh_bytecode::batch::access;
use bh_bytecode::{BatchRef, Operand};

/// A base in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseUse {
    /// Index in the batch.
    pub base: u32,
    /// How it is acquired: a set of bits of [`access`].
    pub access: u32,
}

impl BaseUse {
    /// Is the base only overwritten, so that its content is given up when it is acquired?
    pub fn discards(&self) -> bool {
        self.access & access::DISCARD != 0
    }
}

/// The bases in use so far, each once.
#[derive(Debug, Default)]
pub struct Uses(Vec<BaseUse>);

impl Uses {
    /// The collected uses, in the order of their first appearance.
    pub fn into_vec(self) -> Vec<BaseUse> {
        self.0
    }

    /// Adds a use of a base.
    pub fn add(&mut self, base: u32, mode: u32) {
        match self.0.iter_mut().find(|known| known.base == base) {
            Some(known) => {
                // Some of the old values are needed if any use needs them: DISCARD only while nothing reads, and
                // a partial write beside a full one loses nothing.
                known.access |= mode;
                if known.access & access::READ != 0 {
                    known.access &= !access::DISCARD;
                }
            }
            None => self.0.push(BaseUse { base, access: mode }),
        }
    }

    /// Adds the bases of a stage; stages come in the order in which they run.
    pub fn stage(&mut self, batch: &BatchRef<'_>, stage: &Stage) {
        self.slots(batch, stage, |slot| match stage.parameters.buffers[slot] {
            BufferRef::Base(base) => Some(base),
            BufferRef::Fresh(_) | BufferRef::Temporary(_) | BufferRef::None => None,
        });
        for gather in &stage.parameters.gathers {
            if let (BufferRef::Base(base), true) = (gather.buffer, gather.len > 0 && stage.parameters.iterations() > 0)
            {
                self.add(base, access::READ);
            }
        }
    }

    /// Adds the bases that a stage's slots use, those whose buffers they are in; stages come in the order in which they run.
    pub fn slots(&mut self, batch: &BatchRef<'_>, stage: &Stage, base: impl Fn(usize) -> Option<u32>) {
        // Values from before a stage that writes all of a base are not needed.
        let written: Vec<u32> = self.0.iter().filter(|known| known.discards()).map(|known| known.base).collect();
        for (number, slot) in stage.kernel.slots.iter().enumerate() {
            let Some(base) = base(number) else { continue };
            let elements = stage.elements(slot.mode);
            let mode = match slot.mode {
                _ if elements == 0 => continue,
                SlotMode::Read | SlotMode::Index if written.contains(&base) => continue,
                SlotMode::Read | SlotMode::Index => access::READ,
                SlotMode::Write | SlotMode::Result => output(elements == batch.bases[base as usize].len),
            };
            self.add(base, mode);
        }
    }

    /// Adds the bases of an operation with an algorithm of its own.
    pub fn special(&mut self, batch: &BatchRef<'_>, special: Special) {
        let index = special.instr();
        let instr = &batch.instrs[index as usize];
        let seen = |operand: &Operand| {
            let view = &batch.views[operand.as_view()? as usize];
            (view.len > 0).then_some((view.base, view.len))
        };
        for (base, _) in instr.inputs().iter().filter_map(seen) {
            self.add(base, access::READ);
        }
        for (base, elements) in instr.outputs().iter().filter_map(seen) {
            let whole = elements == batch.bases[base as usize].len;
            // A scatter leaves elements as they are.
            let reads = matches!(special, Special::Scatter(_));
            self.add(base, if reads { access::READ | access::WRITE } else { output(whole) });
        }
    }
}

/// The access of an output that covers the whole base or a part of it.
fn output(whole: bool) -> u32 {
    if whole { access::WRITE | access::DISCARD } else { access::WRITE }
}
