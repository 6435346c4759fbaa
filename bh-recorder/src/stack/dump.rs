//! `BH_DUMP`: each batch is written to a file before it runs, with the data that it starts from, for `bh replay`.

use crate::stack::backend::Backend;
use bh_bytecode::dump::{self, Dump};
use bh_bytecode::{BatchRef, base_flags};
use bh_core::abi::{access, status};
use bh_core::error::{Error, Result};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers the files of this process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Data past this many bytes per array is left out; `bh replay` starts such arrays from zeros.
const MAX_CONTENTS: u64 = 1 << 28;

/// Writes a batch to `directory` as `batch-PROCESS-NUMBER.bhb`.
pub(crate) fn write(directory: &Path, backend: &mut dyn Backend, batch: &BatchRef<'_>) -> Result<()> {
    let mut contents = Vec::new();
    for (index, base) in batch.bases.iter().enumerate() {
        if base.has(base_flags::BORN) || base.bytes() == 0 || base.bytes() > MAX_CONTENTS {
            continue;
        }
        // A base without valid data (poisoned) is dumped without.
        let Ok(data) = backend.map(base, None, access::READ) else { continue };
        // SAFETY: a mapped base holds all its bytes.
        contents.push((index as u32, unsafe { std::slice::from_raw_parts(data, base.bytes() as usize) }.to_vec()));
        backend.unmap(base)?;
    }
    let bytes = dump::write(&Dump { batch: batch.to_owned(), contents });
    let fail = |path: &Path, error: std::io::Error| {
        Error::new(status::FILE, format!("BH_DUMP: cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| fail(directory, error))?;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("batch-{}-{number:06}.bhb", std::process::id()));
        match File::create_new(&path).and_then(|mut file| file.write_all(&bytes)) {
            // An earlier process of this number left it, or somebody planted a link.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            written => return written.map_err(|error| fail(&path, error)),
        }
    }
}
