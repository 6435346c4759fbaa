//! The source lines of a batch's instructions, for errors that arrive after the batch has ended.

use crate::error::Error;
use bh_bytecode::BatchRef;
use bh_bytecode::batch::Origin;

/// The source lines of a batch.
#[derive(Default)]
pub(super) struct Places {
    /// For each instruction, as in the batch.
    instrs: Vec<u32>,
    origins: Vec<Origin>,
    strings: Vec<u8>,
}

impl Places {
    /// Those of a batch; empty if it has none.
    pub(super) fn of(batch: &BatchRef<'_>) -> Places {
        if batch.origins.is_empty() {
            return Places::default();
        }
        Places {
            instrs: batch.instrs.iter().map(|instr| instr.origin).collect(),
            origins: batch.origins.to_vec(),
            strings: batch.strings.to_vec(),
        }
    }

    /// Converts the instruction index of an error to file and line, unless it has them already. Removes the indices of
    /// block and instruction, which are meaningless afterwards.
    pub(super) fn locate(&self, mut error: Error) -> Error {
        if let (None, Some(instr)) = (&error.origin, error.instr) {
            error.origin = self.of_instr(instr);
        }
        error.unplaced()
    }

    fn of_instr(&self, instr: u32) -> Option<(String, u32)> {
        let origin = self.origins.get((*self.instrs.get(instr as usize)? as usize).checked_sub(1)?)?;
        let name = self.strings.get(origin.file as usize..)?.get(..origin.file_len as usize)?;
        Some((String::from_utf8_lossy(name).into_owned(), origin.line))
    }
}
