//! Binary dump files: a batch and, for replay, the contents of its bases.
//!
//! A file is a head of magic and version, and one section per table: a number that names the section, the number of
//! records, the bytes of the records field by field in little-endian order, and a checksum. A cut or changed file gives
//! an error that names the section and the byte.

mod records;

use crate::batch::Batch;
use crate::for_each_table;
use crate::hash::hash_bytes;
use crate::interp::Memory;
use records::Record;
use std::fmt;

const MAGIC: &[u8; 8] = b"BHBATCH\n";
const VERSION: u32 = 2;

/// A batch with contents of its bases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dump {
    /// The batch.
    pub batch: Batch,
    /// Bases (indices) and their bytes, in the byte order of the machine that wrote the file, which the head records.
    pub contents: Vec<(u32, Vec<u8>)>,
}

impl Dump {
    /// A batch with what the memory holds of its bases.
    pub fn new(batch: Batch, memory: &Memory) -> Dump {
        let bases = batch.bases.iter().enumerate();
        let contents = bases.filter_map(|(index, base)| Some((index as u32, memory.get(base.id)?.to_vec()))).collect();
        Dump { batch, contents }
    }

    /// The contents by the identity of their bases.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::new();
        for (index, bytes) in &self.contents {
            if let Some(base) = self.batch.bases.get(*index as usize) {
                memory.insert(base.id, bytes.clone());
            }
        }
        memory
    }
}

/// Why and where a file is no dump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct DumpError {
    /// The byte at which the fault was noticed.
    pub offset: usize,
    /// The section, or `head`.
    pub section: &'static str,
    /// The error.
    pub message: String,
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dump file, {} at byte {}: {}", self.section, self.offset, self.message)
    }
}

/// Does a file with these first bytes claim to be a dump?
pub fn is_dump(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The bytes of a dump file.
pub fn write(dump: &Dump) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(MAGIC);
    VERSION.put(&mut bytes);
    u32::from(cfg!(target_endian = "big")).put(&mut bytes);
    let mut number = 0u32;
    macro_rules! write_tables {
        ($($table:ident),*) => {$(
            number += 1;
            let records = dump.batch.$table.len();
            section(&mut bytes, number, records, |bytes| dump.batch.$table.iter().for_each(|record| record.put(bytes)));
        )*};
    }
    for_each_table!(write_tables);
    section(&mut bytes, number + 1, 1, |bytes| dump.batch.header.put(bytes));
    section(&mut bytes, number + 2, dump.contents.len(), |bytes| {
        for (base, contents) in &dump.contents {
            base.put(bytes);
            (contents.len() as u64).put(bytes);
            bytes.extend_from_slice(contents);
        }
    });
    bytes
}

/// Appends a section: number, count, records, checksum over all of it.
fn section(bytes: &mut Vec<u8>, number: u32, count: usize, records: impl FnOnce(&mut Vec<u8>)) {
    let first = bytes.len();
    number.put(bytes);
    (count as u64).put(bytes);
    records(bytes);
    let checksum = hash_bytes(&bytes[first..]) as u64;
    checksum.put(bytes);
}

/// Reads a dump file. The batch is not validated.
pub fn read(bytes: &[u8]) -> Result<Dump, DumpError> {
    let mut reader = Reader { bytes, at: 0, section: "head" };
    if reader.take(MAGIC.len())? != MAGIC {
        return Err(DumpError { offset: 0, section: "head", message: "this is no bh batch".into() });
    }
    let version: u32 = reader.get()?;
    if version != VERSION {
        return reader.fault(format!("version {version} is not {VERSION}, which this program reads"));
    }
    let big: u32 = reader.get()?;
    if big != u32::from(cfg!(target_endian = "big")) {
        return reader.fault("it was written on a machine with another byte order");
    }
    let mut dump = Dump::default();
    let mut number = 0u32;
    macro_rules! read_tables {
        ($($table:ident),*) => {$(
            number += 1;
            reader.section = stringify!($table);
            dump.batch.$table = reader.section(number, Reader::get)?;
        )*};
    }
    for_each_table!(read_tables);
    reader.section = "header";
    match reader.section(number + 1, Reader::get)?.as_slice() {
        [header] => dump.batch.header = *header,
        headers => return reader.fault(format!("{} headers instead of one", headers.len())),
    }
    reader.section = "contents";
    dump.contents = reader.section(number + 2, |reader| {
        let base = reader.get()?;
        let length: u64 = reader.get()?;
        Ok((base, reader.take(usize::try_from(length).unwrap_or(usize::MAX))?.to_vec()))
    })?;
    if let Some((base, _)) = dump.contents.iter().find(|(base, _)| *base as usize >= dump.batch.bases.len()) {
        return reader.fault(format!("base {base} does not exist; there are {}", dump.batch.bases.len()));
    }
    if reader.at != bytes.len() {
        return reader.fault(format!("{} bytes follow the last section", bytes.len() - reader.at));
    }
    Ok(dump)
}

/// A file and how far it is read.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    section: &'static str,
}

impl<'a> Reader<'a> {
    fn fault<T>(&self, message: impl Into<String>) -> Result<T, DumpError> {
        Err(DumpError { offset: self.at, section: self.section, message: message.into() })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], DumpError> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..count)) {
            Some(bytes) => {
                self.at += count;
                Ok(bytes)
            }
            None => {
                let left = self.bytes.len() - self.at;
                self.fault(format!("the file is cut: {count} bytes are needed, {left} are there"))
            }
        }
    }

    fn get<R: Record>(&mut self) -> Result<R, DumpError> {
        let bytes = self.take(R::SIZE)?;
        Ok(R::get(bytes))
    }

    fn section<R>(
        &mut self,
        number: u32,
        mut record: impl FnMut(&mut Reader<'a>) -> Result<R, DumpError>,
    ) -> Result<Vec<R>, DumpError> {
        let first = self.at;
        let found: u32 = self.get()?;
        if found != number {
            return self.fault(format!("section {number} is expected, not {found}"));
        }
        let count: u64 = self.get()?;
        let mut records = Vec::new();
        for _ in 0..count {
            records.push(record(self)?);
        }
        let checksum = hash_bytes(&self.bytes[first..self.at]) as u64;
        let stored: u64 = self.get()?;
        if stored != checksum {
            return self.fault(format!("the checksum {stored:016x} does not match the bytes from {first} on"));
        }
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Options, program};

    fn sample() -> Dump {
        let program = program(11, &Options { max_instrs: 12, max_elements: 12, ..Options::default() });
        let mut batch = program.batch;
        batch.push_block(&[0], &[0]);
        batch.push_rename(0, &[0], Some((0, 0)));
        let name = batch.push_string("m");
        let opcode = crate::Opcode(crate::Opcode::FIRST_EXTENSION);
        batch.extensions.push(crate::Extension { opcode, reserved: 0, name: name.0, name_len: name.1 });
        Dump::new(batch, &program.memory)
    }

    #[test]
    fn dumps_come_back() {
        let dump = sample();
        assert!(!dump.contents.is_empty());
        let back = read(&write(&dump)).unwrap();
        assert_eq!((back.memory(), &back), (dump.memory(), &dump));
        assert_eq!(read(&write(&Dump::default())).unwrap(), Dump::default());
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = write(&sample());
        for length in 0..bytes.len() {
            let error = read(&bytes[..length]).unwrap_err();
            assert!(error.offset <= length && error.to_string().contains("at byte"), "{error}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(read(&longer).unwrap_err().message.contains("1 bytes follow"));
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let bytes = write(&sample());
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(read(&changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn faults_are_named() {
        let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert_eq!(message(b"ELF"), "dump file, head at byte 0: the file is cut: 8 bytes are needed, 3 are there");
        assert_eq!(message(b"NOTBATCHxxxx"), "dump file, head at byte 0: this is no bh batch");
        let wild = Dump { contents: vec![(3, vec![1])], ..Dump::default() };
        assert!(message(&write(&wild)).contains("contents at byte") && message(&write(&wild)).contains("base 3"));
        assert!(message(b"BHBATCH\n\x07\0\0\0").contains("version 7 is not 2"));
    }
}
