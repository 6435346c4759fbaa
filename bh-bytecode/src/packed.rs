//! A batch in one piece of memory, to be sent, kept or compared: a copy of its words is a copy of the batch.
//!
//! The identity of arrays is left out, as it differs from process to process and from turn to turn of a loop. Bases that
//! live on are known by their slots, so the packed batches of a loop are equal but for their last part, the constants.

use crate::batch::{
    Attribute, Base, Batch, BatchHeader, BatchRef, Block, Constant, Extension, Instr, Origin, Rename, ViewRec,
};

/// A number that a packed batch begins with.
const MAGIC: u64 = u64::from_le_bytes(*b"BHPACK\x01\n");

/// The tables in the order of their places: constants last.
macro_rules! for_each_place {
    ($callback:ident) => {
        $callback! {
            bases: Base,
            views: ViewRec,
            dims: i64,
            instrs: Instr,
            origins: Origin,
            extensions: Extension,
            strings: u8,
            blocks: Block,
            block_instrs: u32,
            contracted: u32,
            renames: Rename,
            rename_views: u32,
            attributes: Attribute,
            key: u64,
            slots: u32,
            constants: Constant
        }
    };
}

const TABLES: usize = 16;
/// Words before the lengths of the tables: magic, words in all, the hash of the structure, level and number of slots.
const FIRST_LENGTH: usize = 5;
/// Words before the tables.
const HEAD: usize = FIRST_LENGTH + TABLES;
/// Words behind the constants: how often the structure came before.
const TAIL: usize = 1;

/// A packed batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    words: Vec<u64>,
}

/// Words are no packed batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packed batch: {0}")]
pub struct PackedError(String);

/// A record of plain numbers without gaps, so that any bytes of its size are one.
trait Plain: Copy {}

macro_rules! plain {
    ($($field:ident: $record:ty),*) => { $(const _: () = assert!(align_of::<$record>() <= 8);)* };
}
for_each_place!(plain);

impl Plain for Base {}
impl Plain for ViewRec {}
impl Plain for i64 {}
impl Plain for Instr {}
impl Plain for Origin {}
impl Plain for Extension {}
impl Plain for u8 {}
impl Plain for Block {}
impl Plain for u32 {}
impl Plain for Rename {}
impl Plain for u64 {}
impl Plain for Attribute {}
impl Plain for Constant {}

/// The words that `records` records take, if they can be counted.
fn words_of<T: Plain>(records: usize) -> Option<usize> {
    Some(records.checked_mul(size_of::<T>())?.div_ceil(8))
}

/// Appends the records of a table, filled up to whole words with zeros.
fn append<T: Plain>(words: &mut Vec<u64>, table: &[T]) {
    let first = words.len();
    words.resize(first + size_of_val(table).div_ceil(8), 0);
    // SAFETY: the words after `first` have room for the bytes of the table, whose records have no gaps.
    unsafe {
        let to = words.as_mut_ptr().add(first).cast::<u8>();
        std::ptr::copy_nonoverlapping(table.as_ptr().cast::<u8>(), to, size_of_val(table));
    }
}

/// The records that these words hold.
fn table<T: Plain>(words: &[u64], records: usize) -> &[T] {
    assert!(records * size_of::<T>() <= size_of_val(words));
    // SAFETY: the words have that many bytes, words are aligned for all records, and any bytes are a record.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), records) }
}

impl Packed {
    /// Packs a batch, with its partition and what is known of it.
    pub fn new(batch: &BatchRef<'_>) -> Packed {
        let mut packed = Packed::default();
        packed.pack(batch);
        packed
    }

    /// Packs another batch into the same memory.
    pub fn pack(&mut self, batch: &BatchRef<'_>) {
        let words = &mut self.words;
        words.clear();
        let BatchHeader { signature: [low, high], seen, level, slot_count, .. } = batch.header;
        words.extend([MAGIC, 0, low, high, u64::from(level) | u64::from(slot_count) << 32]);
        macro_rules! lengths {
            ($($field:ident: $record:ty),*) => { words.extend([$(batch.$field.len() as u64),*]) };
        }
        for_each_place!(lengths);
        macro_rules! put {
            (@ bases) => {
                for base in batch.bases {
                    append(words, &[Base { id: 0, ..*base }]);
                }
            };
            (@ $field:ident) => { append(words, batch.$field) };
            ($($field:ident: $record:ty),*) => { $(put!(@ $field);)* };
        }
        for_each_place!(put);
        words.push(u64::from(seen));
        words[1] = words.len() as u64;
    }

    /// Takes over words, such as those that another process sent. The batch is not validated.
    pub fn from_words(words: Vec<u64>) -> Result<Packed, PackedError> {
        let fault = |text: String| Err(PackedError(text));
        if words.len() < HEAD + TAIL || words[0] != MAGIC {
            return fault("the first words are not those of a packed batch of this version".into());
        }
        let mut total = Some(HEAD + TAIL);
        let mut lengths = words[FIRST_LENGTH..HEAD].iter();
        macro_rules! count {
            ($($field:ident: $record:ty),*) => {$(
                let length = lengths.next().and_then(|&length| usize::try_from(length).ok());
                let more = length.and_then(words_of::<$record>);
                total = total.zip(more).and_then(|(total, more)| total.checked_add(more));
            )*};
        }
        for_each_place!(count);
        if total != Some(words.len()) || words[1] != words.len() as u64 {
            return fault(format!("{} words, but the head tells of another number", words.len()));
        }
        Ok(Packed { words })
    }

    /// All words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The words before the constants, which are those of all batches of a loop.
    pub fn words_before_constants(&self) -> &[u64] {
        let constants = self.words.get(HEAD - 1).map_or(0, |&count| count as usize);
        let after = if self.words.is_empty() { 0 } else { TAIL + constants * size_of::<Constant>() / 8 };
        &self.words[..self.words.len() - after]
    }

    /// The batch, without a copy. The identity of all bases is 0; see [`Packed::to_batch`].
    pub fn as_ref(&self) -> BatchRef<'_> {
        let Some((head, mut rest)) = self.words.split_at_checked(HEAD) else {
            return BatchRef::default();
        };
        let mut batch = BatchRef::default();
        let mut lengths = head[FIRST_LENGTH..].iter();
        macro_rules! take {
            ($($field:ident: $record:ty),*) => {$(
                let length = lengths.next().map_or(0, |&length| length as usize);
                let (words, after) = rest.split_at(words_of::<$record>(length).unwrap_or(0));
                batch.$field = table::<$record>(words, length);
                rest = after;
            )*};
        }
        for_each_place!(take);
        debug_assert_eq!(rest.len(), TAIL);
        batch.header = BatchHeader {
            signature: [head[2], head[3]],
            seen: rest[0] as u32,
            level: head[4] as u32,
            slot_count: (head[4] >> 32) as u32,
            reserved: 0,
        };
        batch
    }

    /// The batch with tables of its own. `identity` is asked for each base by its index in turn.
    pub fn to_batch(&self, mut identity: impl FnMut(usize) -> u64) -> Batch {
        let mut batch = self.as_ref().to_owned();
        for (index, base) in batch.bases.iter_mut().enumerate() {
            base.id = identity(index);
        }
        batch
    }
}

impl Default for BatchRef<'_> {
    fn default() -> Self {
        macro_rules! empty {
            ($($table:ident),*) => {
                BatchRef { $($table: &[],)* header: BatchHeader::default() }
            };
        }
        crate::for_each_table!(empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{self, Options};

    fn batches() -> impl Iterator<Item = Batch> {
        (0..50).map(|seed| random::program(seed, &Options::default()).batch)
    }

    #[test]
    fn what_is_packed_comes_back() {
        let mut packed = Packed::default();
        for mut batch in batches() {
            batch.sign();
            batch.slots = (0..batch.bases.len() as u32).collect();
            batch.header = BatchHeader { level: 2, seen: 7, slot_count: 90, ..batch.header };
            packed.pack(&batch.as_ref());
            let again = Packed::from_words(packed.words().to_vec()).unwrap().to_batch(|index| batch.bases[index].id);
            assert_eq!(again, batch);
        }
        assert_eq!(Packed::default().as_ref().to_owned(), Batch::default());
    }

    #[test]
    fn constants_are_the_last_part() {
        for batch in batches().filter(|batch| !batch.constants.is_empty()) {
            let first = Packed::new(&batch.as_ref());
            let mut other = batch.clone();
            other.constants[0].bits[0] ^= 1;
            other.bases[0].id += 1;
            other.header.seen += 1;
            let second = Packed::new(&other.as_ref());
            assert_ne!(first, second);
            assert_eq!(first.words_before_constants(), second.words_before_constants());
        }
    }

    #[test]
    fn damaged_heads_are_refused() {
        let batch = batches().next().unwrap();
        let words = Packed::new(&batch.as_ref()).words().to_vec();
        for place in (0..HEAD).filter(|place| !(2..FIRST_LENGTH).contains(place)) {
            for change in [1, 1 << 40, u64::MAX] {
                let mut damaged = words.clone();
                damaged[place] = damaged[place].wrapping_add(change);
                // Lengths in bytes are filled up to words, so a small change may be none; then the tables still fit.
                if let Ok(packed) = Packed::from_words(damaged) {
                    packed.as_ref();
                }
            }
            let mut damaged = words.clone();
            damaged[place] = u64::MAX;
            assert!(Packed::from_words(damaged).is_err(), "{place}");
        }
        assert!(Packed::from_words(words[..words.len() - 1].to_vec()).is_err());
        assert!(Packed::from_words(Vec::new()).is_err());
    }
}
