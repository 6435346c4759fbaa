//! Reading batches from files, binary or text.

use bh_bytecode::Batch;
use bh_core::abi::status;
use bh_core::{Error, Result};
use std::path::Path;

/// Reads a dumped batch or one in text form, and validates it.
pub fn read(file: &Path) -> Result<Batch> {
    let fail = |text: String| Error::new(status::FILE, format!("{}: {text}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| fail(error.to_string()))?;
    let batch = if bh_bytecode::dump::is_dump(&bytes) {
        bh_bytecode::dump::read(&bytes).map_err(|error| fail(error.to_string()))?
    } else {
        let text = std::str::from_utf8(&bytes).map_err(|_| fail("neither a dumped batch nor text".into()))?;
        bh_bytecode::text::parse(text).map_err(|error| fail(error.to_string()))?
    };
    bh_bytecode::validate::validate(&batch.as_ref()).map_err(|error| fail(error.to_string()))?;
    Ok(batch)
}
