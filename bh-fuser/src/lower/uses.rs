//! Which bases a lowered block uses and how an engine has to acquire them.

use super::{BufferRef, Dim, SlotMode, Special, Stage};
use bh_bytecode::{BatchRef, Operand};
use bh_core::abi::access;

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

    /// Adds what a stage uses; stages come in the order in which they run.
    pub fn stage(&mut self, batch: &BatchRef<'_>, stage: &Stage) {
        // What an earlier stage writes completely is not needed from before the block.
        let written: Vec<u32> =
            self.0.iter().filter(|known| known.access & access::DISCARD != 0).map(|known| known.base).collect();
        for (slot, buffer) in stage.kernel.slots.iter().zip(&stage.parameters.buffers) {
            let BufferRef::Base(base) = *buffer else { continue };
            let mode = match slot.mode {
                SlotMode::Read | SlotMode::Index if written.contains(&base) => continue,
                SlotMode::Read | SlotMode::Index => access::READ,
                SlotMode::Write | SlotMode::Result => {
                    let dims = stage.parameters.extents.iter().zip(&stage.kernel.dims);
                    let kept = dims.filter(|(_, dim)| slot.mode == SlotMode::Write || **dim == Dim::Kept);
                    let whole = kept.map(|(extent, _)| extent).product::<i64>() == batch.bases[base as usize].len;
                    output(whole)
                }
            };
            self.add(base, mode);
        }
        for gather in &stage.parameters.gathers {
            if let BufferRef::Base(base) = gather.buffer {
                self.add(base, access::READ);
            }
        }
    }

    /// Adds what an operation with an algorithm of its own uses.
    pub fn special(&mut self, batch: &BatchRef<'_>, special: Special) {
        let (Special::Accumulate(index) | Special::Scatter(index) | Special::Extension(index)) = special;
        let instr = &batch.instrs[index as usize];
        let base = |operand: &Operand| operand.as_view().map(|view| (view, batch.views[view as usize].base));
        for (_, base) in instr.inputs().iter().filter_map(base) {
            self.add(base, access::READ);
        }
        for (view, base) in instr.outputs().iter().filter_map(base) {
            let whole = batch.views[view as usize].len == batch.bases[base as usize].len;
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
