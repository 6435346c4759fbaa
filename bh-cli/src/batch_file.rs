//! Reading batches from files, binary or text.

use bh_bytecode::dump::{self, Dump};
use bh_core::abi::status;
use bh_core::{Error, Result};
use std::path::Path;

/// Reads a dumped batch with its data, or a batch in text form, and validates it.
pub fn read(file: &Path) -> Result<Dump> {
    let fail = |text: String| Error::new(status::FILE, format!("{}: {text}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| fail(error.to_string()))?;
    let mut dump = if dump::is_dump(&bytes) {
        dump::read(&bytes).map_err(|error| fail(error.to_string()))?
    } else {
        let text = std::str::from_utf8(&bytes).map_err(|_| fail("neither a dumped batch nor text".into()))?;
        let batch = bh_bytecode::text::parse(text).map_err(|error| fail(error.to_string()))?;
        Dump { batch, contents: Vec::new() }
    };
    bh_bytecode::validate::validate(&dump.batch.as_ref()).map_err(|error| fail(error.to_string()))?;
    for (base, bytes) in &dump.contents {
        if dump.batch.bases.get(*base as usize).is_none_or(|base| base.bytes() != bytes.len() as u64) {
            return Err(fail(format!("the contents of array {base} do not fit the array")));
        }
    }
    // A file's statements about its batch are not trusted.
    dump.batch.forget_structure();
    dump.batch.sign();
    Ok(dump)
}
