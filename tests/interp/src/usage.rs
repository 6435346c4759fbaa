//! How a block uses each base.

use bh_bytecode::{BatchRef, Instr, Operand};
use bh_core::abi::access;

/// How a block uses a base that is not contracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Index of the base in the batch.
    pub base: u32,
    /// Does the block need the old values, because it reads them or keeps some of them?
    pub needs_old: bool,
    /// Does the block change it?
    pub writes: bool,
}

impl Use {
    /// The access mode for acquiring the base.
    pub fn access(&self) -> u32 {
        match (self.needs_old, self.writes) {
            (false, true) => access::WRITE | access::DISCARD,
            (true, true) => access::READ | access::WRITE,
            _ => access::READ,
        }
    }
}

/// The bases that a block uses, in order of first use, except for contracted ones.
pub fn block_usage(batch: &BatchRef<'_>, block: u32) -> Vec<Use> {
    let block = &batch.blocks[block as usize];
    let mut uses = Vec::new();
    for &instr in batch.block_instrs(block) {
        instr_usage(batch, &batch.instrs[instr as usize], &mut uses);
    }
    uses.retain(|found| !batch.contracted(block).contains(&found.base));
    uses
}

/// Adds the uses of an instruction. Empty views and data management use nothing.
pub fn instr_usage(batch: &BatchRef<'_>, instr: &Instr, uses: &mut Vec<Use>) {
    if instr.opcode.is_system() {
        return;
    }
    let place = |operand: &Operand| {
        let view = operand.as_view()?;
        let record = &batch.views[view as usize];
        let base = batch.base_of(view)?;
        (record.len > 0).then_some((record.base, record.len == base.len))
    };
    for (base, _) in instr.inputs().iter().filter_map(place) {
        if !uses.iter().any(|found| found.base == base) {
            uses.push(Use { base, needs_old: true, writes: false });
        }
    }
    for (base, whole) in instr.outputs().iter().filter_map(place) {
        match uses.iter_mut().find(|found| found.base == base) {
            Some(found) => found.writes = true,
            // A view without repeated elements covers the base if it has as many elements.
            None => uses.push(Use { base, needs_old: !whole || instr.opcode.reads_output(), writes: true }),
        }
    }
}
