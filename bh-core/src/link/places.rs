//! Where the instructions of a batch were recorded, for errors that come when the batch is gone.

use crate::error::Error;
use bh_bytecode::BatchRef;
use bh_bytecode::batch::Origin;

/// The source lines of a batch.
#[derive(Default)]
pub(super) struct Places {
    /// Of each instruction, as in the batch.
    instrs: Vec<u32>,
    origins: Vec<Origin>,
    strings: Vec<u8>,
}

impl Places {
    /// Those of a batch; none if it has none.
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

    /// Turns the instruction of an error into file and line, unless it has them. Numbers of blocks and instructions mean
    /// nothing afterwards.
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
