//! Validation of a batch where it enters the stack. Everything below may rely on what is checked here: indices in
//! range, legal types and shapes, views inside their bases, and outputs that neither overlap themselves nor, unless
//! the views are identical, an input.
//!
//! No content of the tables, however hostile, makes validation panic.

mod instr;
mod kernels;
mod partition;
mod tables;
#[cfg(test)]
mod tests;

use crate::batch::{BatchRef, Instr};
use std::fmt;

/// Why a batch was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ValidateError {
    /// The instruction, if one is to blame.
    pub instr: Option<usize>,
    /// The name of its opcode.
    pub opcode: Option<String>,
    /// The operand, outputs first, if one is to blame.
    pub operand: Option<usize>,
    /// The file and line where the instruction was recorded, if known.
    pub origin: Option<(String, u32)>,
    /// The error.
    pub message: String,
}

impl fmt::Display for ValidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line)) = &self.origin {
            write!(f, "{file}:{line}: ")?;
        }
        if let Some(instr) = self.instr {
            write!(f, "instruction {instr}")?;
            if let Some(opcode) = &self.opcode {
                write!(f, " ({opcode})")?;
            }
            if let Some(operand) = self.operand {
                write!(f, ", operand {operand}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

/// An error of an instruction: the operand to blame, and the message.
type Fault = (Option<usize>, String);

/// Checks a whole batch, its partition included.
pub fn validate(batch: &BatchRef) -> Result<(), ValidateError> {
    tables::check(batch).map_err(table_error)?;
    let mut discarded = vec![false; batch.bases.len()];
    for (index, instr) in batch.instrs.iter().enumerate() {
        instr::check(batch, instr, &mut discarded)
            .map_err(|(operand, message)| instr_error(batch, index, instr, operand, message))?;
    }
    partition(batch).map_err(table_error)
}

/// Checks the partition of a batch whose other tables are valid: its ranges and indices, and that engines may be given its
/// blocks.
pub fn partition(batch: &BatchRef) -> Result<(), String> {
    partition::check(batch)?;
    kernels::check(batch, 0..batch.blocks.len() as u32)
}

/// Checks a list of blocks of a valid batch that are to run, in the order of the list; other blocks run at another time.
pub fn block_list(batch: &BatchRef, blocks: &[u32]) -> Result<(), String> {
    if let Some(block) = blocks.iter().find(|&&block| block as usize >= batch.blocks.len()) {
        return Err(format!("block {block} does not exist; there are {}", batch.blocks.len()));
    }
    if blocks.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    let mut listed = vec![false; batch.blocks.len()];
    if let Some(block) = blocks.iter().find(|&&block| std::mem::replace(&mut listed[block as usize], true)) {
        return Err(format!("block {block} is to run twice"));
    }
    kernels::check(batch, blocks.iter().copied())
}

fn table_error(message: String) -> ValidateError {
    ValidateError { instr: None, opcode: None, operand: None, origin: None, message }
}

fn instr_error(
    batch: &BatchRef,
    index: usize,
    instr: &Instr,
    operand: Option<usize>,
    message: String,
) -> ValidateError {
    let opcode = batch.extension_name(instr.opcode).map_or_else(|| instr.opcode.to_string(), String::from);
    let origin = batch.origin(instr).map(|(file, line)| (file.to_string(), line));
    ValidateError { instr: Some(index), opcode: Some(opcode), operand, origin, message }
}
