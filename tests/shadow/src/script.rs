//! Scripted faults: refusals by seed, failures by opcode, delays, little memory.

use bh_bytecode::hash::hash_words;
use bh_bytecode::{BatchRef, Opcode};
use bh_core::abi::status;
use bh_core::component::Host;
use bh_core::error::{Error, Result};
use std::collections::HashMap;
use std::time::Duration;

/// The settings of one instance.
pub struct Script {
    seed: u64,
    refuse: f64,
    delay: Duration,
    /// One of this many jobs is delayed.
    delay_every: u64,
    /// Does it perform renames?
    pub renames: bool,
    /// The most bytes on the heap.
    pub memory_bytes: usize,
    /// For each opcode, the execution that fails, counted from 1.
    fail: Vec<(Opcode, u64)>,
    executed: HashMap<u16, u64>,
}

bh_core::keys! {
    /// The configuration keys.
    pub mod keys = "shadow" {
        SEED "seed": u64 = "1", "Where the random numbers begin.";
        REFUSE "refuse": f64 = "0", "The part of all blocks that is refused.";
        DELAY_US "delay_us": u64 = "20", "How long work takes, in microseconds.";
        DELAY_EVERY "delay_every": u64 = "4", "One call of this many takes that long.";
        RENAMES "renames": bool = "false", "Can it run blocks with renames?";
        MEMORY_BYTES "memory_bytes": usize = "1099511627776", "The most bytes on the heap.";
        FAIL "fail": String = "[]", "Failures, as `opcode:n`: the n-th execution of the opcode fails.";
    }
}

impl Script {
    /// Reads the configuration. `fail` lists `opcode:n`: the n-th execution of the opcode fails.
    pub fn new(host: &Host) -> Result<Script> {
        let refuse: f64 = host.setting(&keys::REFUSE)?;
        if !(0.0..=1.0).contains(&refuse) {
            let text = format!("config key 'refuse': {refuse} is not between 0 and 1");
            return Err(Error::new(status::CONFIG, text));
        }
        let list = host.setting(&keys::FAIL)?;
        let fail = list.split(',').map(str::trim).filter(|item| !item.is_empty()).map(parse_failure);
        Ok(Script {
            seed: host.setting(&keys::SEED)?,
            refuse,
            delay: Duration::from_micros(host.setting(&keys::DELAY_US)?),
            delay_every: host.setting(&keys::DELAY_EVERY)?,
            renames: host.setting(&keys::RENAMES)?,
            memory_bytes: host.setting(&keys::MEMORY_BYTES)?,
            fail: fail.collect::<Result<_>>()?,
            executed: HashMap::new(),
        })
    }

    /// Does the script refuse any blocks?
    pub fn refuses(&self) -> bool {
        self.refuse > 0.0
    }

    /// Is this block refused? Depends only on the seed and the block's instructions, so that repeated questions get the
    /// same answer.
    pub fn is_refused(&self, batch: &BatchRef<'_>, block: u32) -> bool {
        let mut words = vec![self.seed];
        for &instr in batch.block_instrs(&batch.blocks[block as usize]) {
            let instr = &batch.instrs[instr as usize];
            if instr.opcode.is_extension() {
                return true;
            }
            if !instr.opcode.is_system() {
                words.push(u64::from(instr.opcode.0) << 32 | u64::from(instr.param));
                let views = instr.operands().iter().filter_map(|operand| operand.as_view());
                words.extend(views.map(|view| batch.views[view as usize].len as u64));
            }
        }
        // The upper 53 bits of the hash as a number in [0, 1).
        words.len() > 1 && ((hash_words(&words) as u64) >> 11) as f64 * 2f64.powi(-53) < self.refuse
    }

    /// Counts the executions in a block; returns the instruction that must fail, if any.
    pub fn failing_instr(&mut self, batch: &BatchRef<'_>, block: u32) -> Option<u32> {
        let mut failing = None;
        for &index in batch.block_instrs(&batch.blocks[block as usize]) {
            let opcode = batch.instrs[index as usize].opcode;
            let count = self.executed.entry(opcode.0).or_default();
            *count += 1;
            if failing.is_none() && self.fail.contains(&(opcode, *count)) {
                failing = Some(index);
            }
        }
        failing
    }

    /// The delay of a job; zero for most, so that jobs finish both before and after waits begin.
    pub fn delay(&self, job: u64) -> Duration {
        if (job + 1).is_multiple_of(self.delay_every.max(1)) { self.delay } else { Duration::ZERO }
    }
}

fn parse_failure(item: &str) -> Result<(Opcode, u64)> {
    let parsed = item.split_once(':').and_then(|(name, count)| {
        let count = count.trim().parse().ok().filter(|&count| count > 0)?;
        Some((Opcode::from_name(name.trim())?, count))
    });
    parsed.ok_or_else(|| {
        Error::new(
            status::CONFIG,
            format!("config key 'fail': '{item}' is not of the form 'opcode:number', as in 'exp:2'"),
        )
    })
}
