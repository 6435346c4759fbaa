//! Where blocks have run and why, by their first operations: what the message `where` answers.

use bh_bytecode::{BatchRef, Opcode};
use std::collections::BTreeMap;
use std::fmt;

/// Where a block runs, and why there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Device,
    Pieces,
    TooSmall,
    TooLarge,
    Unsupported,
    NotBuilt,
    Refused,
    Lost,
}

impl Verdict {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Verdict::Device => "the device",
            Verdict::Pieces => "the device, in pieces",
            Verdict::TooSmall => "the next engine: little work on data in host memory",
            Verdict::TooLarge => "the next engine: does not fit the device",
            Verdict::Unsupported => "the next engine: not supported",
            Verdict::NotBuilt => "the next engine: while kernels were built",
            Verdict::Refused => "the next engine: the device's compiler refuses its kernels",
            Verdict::Lost => "the next engine: the device is lost",
        }
    }
}

/// How many blocks ran where.
#[derive(Debug, Default)]
pub(crate) struct Whereabouts(BTreeMap<(&'static str, Verdict), u64>);

impl Whereabouts {
    pub(crate) fn note(&mut self, batch: &BatchRef<'_>, block: u32, place: Verdict) {
        let instrs = batch.block_instrs(&batch.blocks[block as usize]).iter();
        let mut opcodes = instrs.map(|&index| batch.instrs[index as usize].opcode);
        let first = opcodes.find(|opcode| !opcode.is_system());
        let Some(first) = first else { return };
        let name = if first.is_extension() { "extension method" } else { Opcode::info(first).name };
        *self.0.entry((name, place)).or_default() += 1;
    }
}

impl Whereabouts {
    /// Adds what others noted.
    pub(crate) fn add(&mut self, others: &Whereabouts) {
        others.0.iter().for_each(|(&key, count)| *self.0.entry(key).or_default() += count);
    }
}

impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((name, place), count) in &self.0 {
            writeln!(f, "{count} kernels from '{name}' on: {}", place.text())?;
        }
        Ok(())
    }
}
