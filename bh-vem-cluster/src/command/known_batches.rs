//! Batches that all ranks know: a repeated batch is sent as its number and its changes.

use crate::command::wire::{Reader, Writer, get_table, malformed, put_table};
use bh_bytecode::batch::{BatchHeader, Constant};
use bh_bytecode::{Base, Batch, BatchRef, for_each_table};
use bh_core::error::Result;

/// Known batches, at most.
const KNOWN: usize = 256;

/// Iterations whose base ids are kept: enough to predict ids that advance in each iteration or in every second one.
const HISTORY: usize = 4;

/// A batch and the order of its instructions.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The batch.
    pub batch: Batch,
    /// The instructions that run, in this order.
    pub order: Vec<u32>,
    /// Identifies the batch on this rank, except for the ids of its bases and the values of its constants.
    pub shape: u64,
    slot: usize,
}

/// A known batch.
#[derive(Default)]
struct KnownBatch {
    /// The encoded shape.
    bytes: Vec<u8>,
    shape: u64,
    history: History,
    constants: Vec<Constant>,
    /// On receiving ranks: the batch itself, except while it runs.
    program: Option<Box<Program>>,
}

/// Base ids of the last iterations, latest first.
#[derive(Default)]
struct History([Vec<u64>; HISTORY]);

impl History {
    /// Predicts the base at a place. Rule 0: as in the last iteration; 1: advanced by the difference of the last two
    /// iterations; 2: the same for every second iteration.
    fn expected(&self, rule: u64, place: usize) -> u64 {
        let base = |turn: usize| self.0[turn].get(place).copied().unwrap_or_default();
        match rule {
            1 => base(0).wrapping_add(base(0).wrapping_sub(base(1))),
            2 => base(1).wrapping_add(base(1).wrapping_sub(base(3))),
            _ => base(0),
        }
    }

    /// The rule with the fewest wrong predictions, and the places where it is wrong.
    fn compare(&self, ids: &[u64]) -> (u64, Vec<u32>) {
        let wrong = |rule: u64| -> Vec<u32> {
            let places = 0..ids.len();
            places.filter(|&place| self.expected(rule, place) != ids[place]).map(|place| place as u32).collect()
        };
        let rules = (0..3).map(|rule| (rule, wrong(rule)));
        rules.min_by_key(|(_, wrong)| wrong.len()).unwrap_or_default()
    }

    fn push(&mut self, ids: Vec<u64>) {
        self.0.rotate_right(1);
        self.0[0] = ids;
    }
}

/// The batches that rank 0 and the other ranks know.
pub struct KnownBatches {
    known: Vec<KnownBatch>,
    shapes: u64,
    buffer: Vec<u8>,
}

impl Default for KnownBatches {
    fn default() -> KnownBatches {
        KnownBatches { known: (0..KNOWN).map(|_| KnownBatch::default()).collect(), shapes: 0, buffer: Vec::new() }
    }
}

impl KnownBatches {
    /// The slot of a batch, and whether the batch was known. It is known from now on.
    fn place(&mut self, batch: &BatchRef<'_>, order: &[u32]) -> (usize, bool) {
        let mut writer = Writer(std::mem::take(&mut self.buffer));
        writer.0.clear();
        put_shape(&mut writer, batch, order);
        self.buffer = writer.0;
        let slot = bh_bytecode::hash::hash_bytes(&self.buffer) as usize % KNOWN;
        let known = self.known[slot].bytes == self.buffer;
        if !known {
            self.shapes += 1;
            self.known[slot] = KnownBatch { bytes: self.buffer.clone(), shape: self.shapes, ..KnownBatch::default() };
        }
        (slot, known)
    }

    /// The number of a batch's shape.
    pub fn shape(&mut self, batch: &BatchRef<'_>, order: &[u32]) -> u64 {
        let slot = self.place(batch, order).0;
        self.known[slot].shape
    }

    /// Encodes a batch for the other ranks; returns the number of its shape.
    pub fn put_program(&mut self, writer: &mut Writer, batch: &BatchRef<'_>, order: &[u32]) -> u64 {
        let (slot, known) = self.place(batch, order);
        let known_batch = &mut self.known[slot];
        let ids: Vec<u64> = batch.bases.iter().map(|base| base.id).collect();
        writer.number((slot as u64) << 1 | u64::from(known));
        if !known {
            writer.bytes(&known_batch.bytes);
            put_table(writer, &ids);
            put_table(writer, batch.constants);
        } else {
            let (rule, wrong) = known_batch.history.compare(&ids);
            writer.number(rule | (wrong.len() as u64) << 8);
            for place in wrong {
                writer.short(place).number(ids[place as usize]);
            }
            let pairs = known_batch.constants.iter().zip(batch.constants);
            let changed: Vec<usize> =
                pairs.enumerate().filter(|(_, (old, new))| old != new).map(|(place, _)| place).collect();
            writer.number(changed.len() as u64);
            for place in changed {
                let [low, high] = batch.constants[place].bits;
                writer.short(place as u32).number(low).number(high);
            }
        }
        known_batch.history.push(ids);
        known_batch.constants = batch.constants.to_vec();
        known_batch.shape
    }

    /// Decodes a batch from [`KnownBatches::put_program`]. Return it with [`KnownBatches::put_back`] after it has run.
    pub fn get_program(&mut self, reader: &mut Reader<'_>) -> Result<Box<Program>> {
        let head = reader.number()?;
        let slot = (head >> 1) as usize;
        let place = self.known.get_mut(slot).ok_or_else(malformed)?;
        if head & 1 == 0 {
            self.shapes += 1;
            *place = KnownBatch { bytes: reader.bytes()?.to_vec(), shape: self.shapes, ..KnownBatch::default() };
            place.history.push(get_table(reader)?);
            place.constants = get_table(reader)?;
        } else {
            place.read_changes(reader)?;
        }
        let mut program = match place.program.take() {
            Some(program) => program,
            None => {
                let (batch, order) = get_shape(&mut Reader(&place.bytes))?;
                Box::new(Program { batch, order, shape: place.shape, slot })
            }
        };
        program.batch.constants.clone_from(&place.constants);
        if program.batch.bases.len() != place.history.0[0].len() {
            return Err(malformed());
        }
        for (base, &id) in program.batch.bases.iter_mut().zip(&place.history.0[0]) {
            base.id = id;
        }
        Ok(program)
    }

    /// Keeps a batch for its next run.
    pub fn put_back(&mut self, program: Box<Program>) {
        if let Some(place) = self.known.get_mut(program.slot).filter(|place| place.shape == program.shape) {
            place.program = Some(program);
        }
    }
}

impl KnownBatch {
    /// Reads the changes since the last iteration.
    fn read_changes(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let head = reader.number()?;
        let mut ids: Vec<u64> =
            (0..self.history.0[0].len()).map(|place| self.history.expected(head & 0xff, place)).collect();
        for _ in 0..head >> 8 {
            let place = reader.short()? as usize;
            *ids.get_mut(place).ok_or_else(malformed)? = reader.number()?;
        }
        self.history.push(ids);
        for _ in 0..reader.number()? {
            let place = reader.short()? as usize;
            self.constants.get_mut(place).ok_or_else(malformed)?.bits = [reader.number()?, reader.number()?];
        }
        Ok(())
    }
}

/// Encodes a batch without the ids of its bases and the values of its constants, which change in each iteration.
fn put_shape(writer: &mut Writer, batch: &BatchRef<'_>, order: &[u32]) {
    let bases: Vec<Base> = batch.bases.iter().map(|base| Base { id: 0, ..*base }).collect();
    // The planner does not use the batch's key and slots, which serve caches above.
    let types: Vec<u8> = batch.constants.iter().map(|constant| constant.dtype).collect();
    let batch = BatchRef { bases: &bases, constants: &[], key: &[], slots: &[], ..*batch };
    macro_rules! put {
        ($($table:ident),*) => { $(put_table(writer, batch.$table);)* };
    }
    for_each_table!(put);
    put_table(writer, order);
    put_table(writer, &types);
}

fn get_shape(reader: &mut Reader<'_>) -> Result<(Batch, Vec<u32>)> {
    macro_rules! get {
        ($($table:ident),*) => { Batch { $($table: get_table(reader)?,)* header: BatchHeader::default() } };
    }
    let batch = for_each_table!(get);
    Ok((batch, get_table(reader)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::random::{Options, program};

    /// Sends a batch to another rank; returns the message's bytes.
    fn send(here: &mut KnownBatches, there: &mut KnownBatches, batch: &Batch, order: &[u32]) -> usize {
        let mut writer = Writer::default();
        here.put_program(&mut writer, &batch.as_ref(), order);
        let received = there.get_program(&mut Reader(&writer.0)).unwrap();
        assert_eq!((&received.batch, &received.order[..]), (batch, order));
        there.put_back(received);
        writer.0.len()
    }

    #[test]
    fn batches_arrive_as_they_were_sent() {
        let (mut here, mut there) = (KnownBatches::default(), KnownBatches::default());
        for seed in 0..50 {
            let mut batch = program(seed % 40, &Options::default()).batch;
            batch.forget_structure();
            let order: Vec<u32> = (0..batch.instrs.len() as u32).collect();
            send(&mut here, &mut there, &batch, &order);
        }
    }

    #[test]
    fn messages_that_are_cut_off_are_errors() {
        let batch = program(4, &Options::default()).batch;
        let order: Vec<u32> = (0..batch.instrs.len() as u32).collect();
        let mut writer = Writer::default();
        KnownBatches::default().put_program(&mut writer, &batch.as_ref(), &order);
        for len in 0..writer.0.len() {
            assert!(KnownBatches::default().get_program(&mut Reader(&writer.0[..len])).is_err(), "{len} bytes");
        }
    }

    /// A loop creates new arrays in each iteration, with ids in constant steps, and may swap two of them.
    #[test]
    fn an_iteration_is_a_number_and_the_constants_that_changed() {
        let (mut here, mut there) = (KnownBatches::default(), KnownBatches::default());
        let seed = (0..40).find(|&seed| {
            let batch = program(seed, &Options::default()).batch;
            batch.bases.len() > 9 && !batch.constants.is_empty()
        });
        let mut batch = program(seed.expect("random programs have bases"), &Options::default()).batch;
        batch.forget_structure();
        let order: Vec<u32> = (0..batch.instrs.len() as u32).collect();
        for turn in 0..8 {
            let bytes = send(&mut here, &mut there, &batch, &order);
            // The context's number and the command's kind precede it.
            assert!(turn < 4 || bytes + 16 <= 64 + 20, "turn {turn}: {bytes} bytes");
            batch.bases.iter_mut().skip(2).step_by(2).for_each(|base| base.id += 1000);
            let [first, second] = [batch.bases[0].id, batch.bases[1].id];
            (batch.bases[0].id, batch.bases[1].id) = (second, first);
            batch.constants[0].bits[0] += 1;
        }
    }
}
