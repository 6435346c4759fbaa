//! What the filter remembers: batches that no pass changes, and what became of those that were rewritten.

use bh_bytecode::{Batch, BatchRef};
use std::collections::HashMap;

/// Remembered batches of each kind; a memory is emptied when it is full.
const MOST: usize = 512;

/// A batch that was rewritten.
struct Rewritten {
    key: Box<[u64]>,
    /// The tables that came in.
    input: Batch,
    /// The tables that went out. Constants made by passes follow those that came in.
    output: Batch,
    /// Does the result depend on the values of constants beyond their classes, which are in the key?
    by_value: bool,
}

/// Both memories, by the hash of the key.
#[derive(Default)]
pub struct Memory {
    unchanged: HashMap<u128, Box<[u64]>>,
    rewritten: HashMap<u128, Rewritten>,
    constants: Vec<bh_bytecode::Constant>,
}

impl Memory {
    /// Is this a batch that no pass changes?
    pub fn is_unchanged(&self, hash: u128, key: &[u64]) -> bool {
        self.unchanged.get(&hash).is_some_and(|known| **known == *key)
    }

    /// Remembers that no pass changes a batch.
    pub fn keep_unchanged(&mut self, hash: u128, key: &[u64]) {
        if self.unchanged.len() == MOST {
            self.unchanged.clear();
        }
        self.unchanged.insert(hash, key.into());
    }

    /// Remembers what became of a batch.
    pub fn keep_rewritten(&mut self, hash: u128, key: &[u64], input: &BatchRef<'_>, output: &Batch, by_value: bool) {
        if self.rewritten.len() == MOST {
            self.rewritten.clear();
        }
        let entry = Rewritten { key: key.into(), input: input.to_owned(), output: output.clone(), by_value };
        self.rewritten.insert(hash, entry);
    }

    /// What a batch becomes, if one of the same structure was rewritten before: its own bases and constants under the
    /// instructions of the other. The key leaves out how tables are numbered, so they are compared here.
    pub fn rewritten<'a>(&'a mut self, hash: u128, key: &[u64], batch: &BatchRef<'a>) -> Option<BatchRef<'a>> {
        let Rewritten { key: known, input, output, by_value } = self.rewritten.get(&hash)?;
        let same = **known == *key
            && input.views == batch.views
            && input.dims == batch.dims
            && input.instrs == batch.instrs
            && input.origins == batch.origins
            && input.extensions == batch.extensions
            && input.strings == batch.strings
            && input.bases.len() == batch.bases.len()
            && input.constants.len() == batch.constants.len()
            && (!by_value || input.constants == batch.constants);
        if !same {
            return None;
        }
        self.constants.clear();
        self.constants.extend_from_slice(batch.constants);
        self.constants.extend_from_slice(&output.constants[batch.constants.len()..]);
        Some(BatchRef { bases: batch.bases, constants: &self.constants, ..output.as_ref() })
    }
}
