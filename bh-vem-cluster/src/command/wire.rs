//! Encodes commands and errors as bytes of control messages.

use crate::command::failure::Failure;
use bh_bytecode::batch::{Attribute, Constant, Extension, Instr, Origin, Rename, ViewRec};
use bh_bytecode::{Base, Block};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

/// Encodes numbers and texts.
#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// Appends a number.
    pub fn number(&mut self, value: u64) -> &mut Writer {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a 32-bit number.
    pub fn short(&mut self, value: u32) -> &mut Writer {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a byte count and the bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Writer {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }
}

/// Decodes the output of a [`Writer`].
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((mine, rest)) = self.0.split_at_checked(count) else {
            return Err(Error::new(status::EXECUTION, "a control message is cut off: do all ranks run the same bh?"));
        };
        self.0 = rest;
        Ok(mine)
    }

    /// The next number.
    pub fn number(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }

    /// The next 32-bit number.
    pub fn short(&mut self) -> Result<u32> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(bytes))
    }

    /// The next bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.number()?;
        self.take(count as usize)
    }

    /// The next text.
    pub fn text(&mut self) -> Result<String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }
}

/// Records without padding for which every bit pattern is valid.
pub trait Plain: Copy {}
impl Plain for Base {}
impl Plain for ViewRec {}
impl Plain for i64 {}
impl Plain for Instr {}
impl Plain for Constant {}
impl Plain for Origin {}
impl Plain for Extension {}
impl Plain for u8 {}
impl Plain for Block {}
impl Plain for u32 {}
impl Plain for Rename {}
impl Plain for Attribute {}
impl Plain for u64 {}

/// Appends a table.
pub fn put_table<T: Plain>(writer: &mut Writer, table: &[T]) {
    // SAFETY: `Plain` records have no padding, so all of their bytes are initialised.
    let bytes = unsafe { std::slice::from_raw_parts(table.as_ptr().cast::<u8>(), size_of_val(table)) };
    writer.bytes(bytes);
}

/// Decodes a table from [`put_table`].
pub fn get_table<T: Plain>(reader: &mut Reader<'_>) -> Result<Vec<T>> {
    let bytes = reader.bytes()?;
    let count = bytes.len() / size_of::<T>();
    let mut table = Vec::<T>::with_capacity(count);
    // SAFETY: the vector has capacity for `count` records, the source has their bytes, and every bit pattern is a valid
    // `Plain` record.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), table.as_mut_ptr().cast(), count * size_of::<T>());
        table.set_len(count);
    }
    Ok(table)
}

/// Encodes a failure; no bytes for none.
pub fn put_failure(failure: Option<&Failure>) -> Vec<u8> {
    let mut writer = Writer::default();
    let Some(Failure { instr, error, .. }) = failure else { return writer.0 };
    let (file, line) = error.origin.clone().unwrap_or_default();
    writer.number(instr.map_or(u64::MAX, u64::from)).number(error.status as u64);
    writer.number(error.rank.map_or(u64::MAX, |rank| rank as u64));
    writer.bytes(error.text.as_bytes()).bytes(file.as_bytes()).number(u64::from(line));
    writer.0
}

/// Decodes a failure from [`put_failure`].
pub fn get_failure(bytes: &[u8]) -> Result<Option<Failure>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader(bytes);
    let (instr, code, rank) = (reader.number()?, reader.number()?, reader.number()?);
    let mut error = Error::new(code as i32, reader.text()?);
    error.rank = i32::try_from(rank).ok();
    let file = reader.text()?;
    let line = reader.number()? as u32;
    error.origin = (!file.is_empty()).then_some((file, line));
    Ok(Some(Failure::new(u32::try_from(instr).ok(), error)))
}

pub(crate) fn malformed() -> Error {
    Error::new(status::EXECUTION, "a control message is none of this version: do all ranks run the same bh?")
}
