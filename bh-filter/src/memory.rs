//! The filter's memory: batches that no pass changes, and the results of those that were rewritten.

use bh_bytecode::batch::NO_SLOT;
use bh_bytecode::{Base, Batch, BatchRef, Cache, Constant, Instr, Key};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bases that passes add have identities from here on, beyond those of recorders.
pub const OWN_BASES: u64 = 1 << 63;

/// The identities that this process gave to added bases: no two batches have one in common.
static GIVEN: AtomicU64 = AtomicU64::new(OWN_BASES);

/// Bytes of remembered batches.
const BYTES: usize = 32 << 20;

/// The passes' result for a batch.
enum Outcome {
    Unchanged,
    Rewritten(Box<Rewritten>),
}

/// A batch that was rewritten.
struct Rewritten {
    /// Where its instructions come from; the key leaves that out.
    input: Batch,
    /// The tables that went out. Constants made by passes follow those that came in.
    output: Batch,
    /// Does the result depend on the values of constants beyond their classes, which are in the key?
    by_value: bool,
}

/// Batches by their structure and the classes of their constants.
pub struct Memory {
    cache: Cache<Outcome>,
    constants: Vec<Constant>,
    bases: Bases,
}

/// The bases of a batch that passes added bases to.
#[derive(Default)]
pub struct Bases {
    records: Vec<Base>,
    slots: Vec<u32>,
}

impl Memory {
    /// Without any batch.
    pub fn new() -> Memory {
        Memory { cache: Cache::new(BYTES), constants: Vec::new(), bases: Bases::default() }
    }

    /// Remembers that no pass changes a batch.
    pub fn keep_unchanged(&mut self, key: &Key<'_>) {
        // A batch that is too large to be remembered is looked at each time.
        let _ = self.cache.insert(key, Outcome::Unchanged, 0, 1);
    }

    /// Remembers what became of a batch.
    pub fn keep_rewritten(&mut self, key: &Key<'_>, input: &BatchRef<'_>, output: &Batch, by_value: bool) {
        let entry = Rewritten { input: input.unsigned().to_owned(), output: output.clone(), by_value };
        let bytes = bytes_of(&entry.input) + bytes_of(&entry.output);
        let cost = input.instrs.len() as u64;
        let _ = self.cache.insert(key, Outcome::Rewritten(Box::new(entry)), bytes, cost);
    }

    /// The result for a batch whose structure was seen before: no change, or its own bases and constants under the
    /// instructions of the other batch.
    pub fn find<'a>(&'a mut self, key: &Key<'_>, batch: &BatchRef<'a>) -> Option<Option<BatchRef<'a>>> {
        let Rewritten { input, output, by_value } = match self.cache.get(key)? {
            Outcome::Unchanged => return Some(None),
            Outcome::Rewritten(rewritten) => &**rewritten,
        };
        let same = input.instrs == batch.instrs
            && input.origins == batch.origins
            && input.strings == batch.strings
            && (!by_value || input.constants == batch.constants);
        if !same {
            return None;
        }
        self.constants.clear();
        self.constants.extend_from_slice(batch.constants);
        self.constants.extend_from_slice(&output.constants[batch.constants.len()..]);
        Some(Some(BatchRef { constants: &self.constants, ..self.bases.of(batch, output) }))
    }
}

impl Bases {
    /// The output of passes with the bases that came in and those that passes added, and with what the host says of them.
    pub fn of<'a>(&'a mut self, batch: &BatchRef<'a>, output: &'a Batch) -> BatchRef<'a> {
        let mut rewritten = BatchRef { bases: batch.bases, slots: batch.slots, ..output.as_ref() };
        rewritten.header.level = batch.header.level;
        rewritten.header.seen = batch.header.seen;
        rewritten.header.slot_count = batch.header.slot_count;
        let added = &output.bases[batch.bases.len()..];
        if !added.is_empty() {
            let first = GIVEN.fetch_add(added.len() as u64, Ordering::Relaxed);
            self.records.clear();
            self.records.extend_from_slice(batch.bases);
            self.records.extend(added.iter().zip(first..).map(|(&base, id)| Base { id, ..base }));
            self.slots.clear();
            self.slots.extend_from_slice(batch.slots);
            self.slots.resize(if batch.slots.is_empty() { 0 } else { self.records.len() }, NO_SLOT);
            (rewritten.bases, rewritten.slots) = (&self.records, &self.slots);
        }
        rewritten
    }
}

/// Bytes of the larger tables.
fn bytes_of(batch: &Batch) -> usize {
    size_of::<Batch>()
        + size_of_val(&batch.bases[..])
        + size_of_val(&batch.views[..])
        + size_of_val(&batch.dims[..])
        + batch.instrs.len() * size_of::<Instr>()
        + size_of_val(&batch.constants[..])
        + size_of_val(&batch.origins[..])
        + batch.strings.len()
        + size_of_val(&batch.key[..])
}
