//! Partitions on disk: one file per set of options.

use crate::cache::{Entry, PartitionCache};
use crate::emit::Partition;
use bh_bytecode::hash::hash_bytes;
use bh_bytecode::planning::{Level, Work};
use bh_bytecode::{Block, Rename, ViewRec};
use bh_core::private;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"bhfuse 5";

/// The file of these options in a directory.
pub fn file_name(directory: &Path, options: [u64; 4]) -> PathBuf {
    let mut bytes = Vec::new();
    options.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes.extend(env!("CARGO_PKG_VERSION").bytes());
    directory.join(format!("partitions-{:016x}.bin", hash_bytes(&bytes) as u64))
}

/// Reads the file into the cache; a missing file is no error. Returns how many partitions it held.
pub fn load(path: &Path, cache: &mut PartitionCache) -> Result<usize, String> {
    let Some(content) = private::read(path)? else { return Ok(0) };
    let entries = read_entries(&content).ok_or("its content is malformed")?;
    let count = entries.len();
    for (key, entry) in entries {
        cache.adopt(&key, entry);
    }
    Ok(count)
}

/// Writes the cache to the file. The directory is made if need be, for the user alone.
pub fn save(path: &Path, cache: &PartitionCache) -> Result<(), String> {
    private::make_directory(path.parent().ok_or("the file has no directory")?)?;
    let mut content = Vec::from(MAGIC);
    let mut entries: Vec<_> = cache.entries().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    put(&mut content, entries.len() as u64);
    for (key, entry) in entries {
        write_entry(&mut content, key, entry);
    }
    private::write(path, content)
}

fn put(bytes: &mut Vec<u8>, word: u64) {
    bytes.extend(word.to_le_bytes());
}

fn put_all(bytes: &mut Vec<u8>, words: impl ExactSizeIterator<Item = u64>) {
    put(bytes, words.len() as u64);
    words.for_each(|word| put(bytes, word));
}

fn write_entry(bytes: &mut Vec<u8>, key: &[u64], entry: &Entry) {
    let partition = &entry.partition;
    put_all(bytes, key.iter().copied());
    put(bytes, entry.work.operations);
    put(bytes, entry.work.elements);
    put(bytes, entry.work.largest);
    for table in [&partition.block_instrs, &partition.contracted, &partition.rename_views] {
        put_all(bytes, table.iter().map(|&word| word as u64));
    }
    put_all(bytes, partition.dims.iter().map(|&word| word as u64));
    let records = |records: Vec<[u64; 6]>| records.into_iter().flatten().collect::<Vec<u64>>();
    let blocks = partition
        .blocks
        .iter()
        .map(|b| [b.instrs, b.instr_count, b.contracted, b.contracted_count, b.renames, b.rename_count].map(u64::from));
    let renames = partition
        .renames
        .iter()
        .map(|r| [r.base, r.uncovered, r.uncovered_count, r.alias, r.alias_view, 0].map(u64::from));
    let views =
        partition.views.iter().map(|v| [v.base as u64, v.rank as u64, v.start as u64, v.len as u64, v.dims as u64, 0]);
    for table in [blocks.collect(), renames.collect(), views.collect()] {
        put_all(bytes, records(table).into_iter());
    }
    partition.moved.iter().for_each(|&word| put(bytes, word));
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn words(&mut self) -> Option<Vec<u64>> {
        let count = usize::try_from(self.word()?).ok()?;
        if count > self.0.len() / 8 {
            return None;
        }
        (0..count).map(|_| self.word()).collect()
    }

    fn numbers(&mut self) -> Option<Vec<u32>> {
        self.words()?.into_iter().map(|word| u32::try_from(word).ok()).collect()
    }

    fn records(&mut self) -> Option<Vec<[u64; 6]>> {
        let words = self.words()?;
        let (records, rest) = words.as_chunks::<6>();
        rest.is_empty().then(|| records.to_vec())
    }
}

fn read_entries(content: &[u8]) -> Option<Vec<(Vec<u64>, Entry)>> {
    let mut reader = Reader(content.strip_prefix(MAGIC)?);
    let count = reader.word()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push(read_entry(&mut reader)?);
    }
    reader.0.is_empty().then_some(entries)
}

fn read_entry(reader: &mut Reader<'_>) -> Option<(Vec<u64>, Entry)> {
    let key = reader.words()?;
    let work = Work { operations: reader.word()?, elements: reader.word()?, largest: reader.word()? };
    let mut partition = Partition {
        block_instrs: reader.numbers()?,
        contracted: reader.numbers()?,
        rename_views: reader.numbers()?,
        dims: reader.words()?.into_iter().map(|word| word as i64).collect(),
        ..Partition::default()
    };
    for record in reader.records()? {
        let [instrs, instr_count, contracted, contracted_count, renames, rename_count] = small(record)?;
        partition.blocks.push(Block { instrs, instr_count, contracted, contracted_count, renames, rename_count });
    }
    for record in reader.records()? {
        let [base, uncovered, uncovered_count, alias, alias_view, _] = small(record)?;
        partition.renames.push(Rename { base, uncovered, uncovered_count, alias, alias_view });
    }
    for [base, rank, start, len, dims, _] in reader.records()? {
        let [base, rank, dims, ..] = small([base, rank, dims, 0, 0, 0])?;
        partition.views.push(ViewRec { base, rank, start: start as i64, len: len as i64, dims, reserved: 0 });
    }
    partition.moved = [reader.word()?, reader.word()?];
    partition.all = (0..partition.blocks.len() as u32).collect();
    Some((key, Entry { foreign: true, ..Entry::new(partition, Level::Full, work) }))
}

fn small(record: [u64; 6]) -> Option<[u32; 6]> {
    let mut numbers = [0; 6];
    for (number, word) in numbers.iter_mut().zip(record) {
        *number = u32::try_from(word).ok()?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Partitioner};
    use bh_bytecode::planning::Planning;
    use bh_bytecode::random;
    use std::fs;

    fn filled() -> (PartitionCache, Vec<bh_bytecode::Batch>) {
        let mut cache = PartitionCache::new(1 << 20);
        let mut partitioner = Partitioner::default();
        let batches: Vec<_> = (0..20).map(|seed| random::program(seed, &random::Options::default()).batch).collect();
        for batch in &batches {
            if !cache.look_up(&batch.as_ref(), Planning::Auto) {
                let options = Options { rename_percent: 400, ..Options::default() };
                let partition = partitioner.partition(&batch.as_ref(), &options);
                cache.insert(Entry::new(partition, Level::Full, Work::of(&batch.as_ref())));
            }
        }
        (cache, batches)
    }

    fn directory(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("bh-fuser-{name}-{}", std::process::id()))
    }

    #[test]
    fn what_is_saved_is_found_again() {
        let (cache, batches) = filled();
        let directory = directory("saved");
        let path = file_name(&directory, Options::default().key());
        assert_eq!(load(&path, &mut PartitionCache::new(1 << 20)), Ok(0));
        save(&path, &cache).unwrap();
        let mut loaded = PartitionCache::new(1 << 20);
        assert_eq!(load(&path, &mut loaded), Ok(cache.entries().count()));
        assert!(!loaded.is_changed());
        let mut original = filled().0;
        for batch in &batches {
            let known = |cache: &mut PartitionCache| cache.look_up(&batch.as_ref(), Planning::Auto);
            assert!(known(&mut loaded) && known(&mut original));
            assert_eq!(loaded.found(), original.found());
        }
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn other_options_have_another_file() {
        let name = |rename_percent| {
            let options = Options { rename_percent, ..Options::default() };
            file_name(Path::new("directory"), options.key())
        };
        assert_eq!(name(25), name(25));
        assert_ne!(name(25), name(400));
    }

    #[test]
    fn damaged_files_are_refused() {
        let (cache, _) = filled();
        let directory = directory("damaged");
        let path = file_name(&directory, Options::default().key());
        save(&path, &cache).unwrap();
        let good = fs::read(&path).unwrap();
        for at in [0, 8, 20, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 4;
            fs::write(&path, &bad).unwrap();
            assert!(load(&path, &mut PartitionCache::new(1 << 20)).unwrap_err().contains("checksum"));
        }
        for len in [0, 7, 15, 16, good.len() - 1] {
            fs::write(&path, &good[..len]).unwrap();
            assert!(load(&path, &mut PartitionCache::new(1 << 20)).is_err());
        }
        // A right checksum over nonsense.
        let mut nonsense = good[..good.len() - 24].to_vec();
        nonsense.extend(hash_bytes(&nonsense).to_le_bytes());
        fs::write(&path, &nonsense).unwrap();
        assert!(load(&path, &mut PartitionCache::new(1 << 20)).unwrap_err().contains("malformed"));
        save(&path, &cache).unwrap();
        assert!(load(&path, &mut PartitionCache::new(1 << 20)).is_ok());
        fs::remove_dir_all(directory).unwrap();
    }
}
