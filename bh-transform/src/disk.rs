//! States of programs in a file without a name: it is gone once the process or the derivative is, however they end.

use bh_bytecode::{Base, View};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{Array, ArrayId, Recorder};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, remove_file};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Arrays are copied in pieces of at most this many bytes.
const PIECE: usize = 1 << 20;

/// A file for states, and how many bytes it may have.
pub struct Disk {
    file: File,
    directory: PathBuf,
    bytes: u64,
    places: Mutex<Places>,
}

/// The parts of the file that are used.
#[derive(Default)]
struct Places {
    end: u64,
    /// The unused parts before the end, by where they begin, with their lengths.
    free: BTreeMap<u64, u64>,
}

/// Values of a base in the file; another thread may still write them. They are given up with their last owner.
pub(crate) type Stored = Arc<OnceLock<Part>>;

/// A part of the file.
pub(crate) struct Part {
    disk: Arc<Disk>,
    at: u64,
    bytes: u64,
}

impl Disk {
    /// Makes the file. `directory`: where; `None` for the directory of temporary files.
    pub fn open(directory: Option<&Path>, bytes: u64) -> Result<Arc<Disk>> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("bh-states-{}-{number}", std::process::id()));
        let open = || {
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
            remove_file(&path)?;
            Ok(file)
        };
        let failed = |error| failure("there can be no file for states of the program", &directory, &error);
        let file = open().map_err(failed)?;
        Ok(Arc::new(Disk { file, directory, bytes, places: Mutex::default() }))
    }

    /// How many bytes it may have.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the values of a flat array, whose base is like this one, into the file.
    pub(crate) fn store(self: &Arc<Disk>, recorder: &Recorder, array: ArrayId, base: &Base) -> Result<Part> {
        let part = Part { disk: self.clone(), at: self.places().take(base.bytes()), bytes: base.bytes() };
        let mut buffer = Vec::new();
        pieces(base).try_for_each(|(first, place, bytes)| {
            buffer.resize(bytes, 0);
            recorder.read_kept(array, first, &mut buffer)?;
            let written = self.file.write_all_at(&buffer, part.at + place);
            written.map_err(|error| failure("a state of the program cannot be written", &self.directory, &error))
        })?;
        Ok(part)
    }
}

fn failure(what: &str, directory: &Path, error: &io::Error) -> Error {
    Error::new(status::FILE, format!("disk: {what} in {}: {error}", directory.display()))
}

/// The pieces in which a base is copied: their first elements, where they begin and how long they are, in bytes.
fn pieces(base: &Base) -> impl Iterator<Item = (i64, u64, usize)> + use<> {
    let (size, len) = (base.dtype().size(), base.len);
    let count = (PIECE / size) as i64;
    (0..len)
        .step_by(count as usize)
        .map(move |first| (first, first as u64 * size as u64, (len - first).min(count) as usize * size))
}

impl Part {
    /// A new flat array with the values.
    pub(crate) fn load(&self, recorder: &Arc<Recorder>, base: &Base) -> Result<Array> {
        let array = Array::new(recorder.clone(), recorder.empty(base.dtype(), &[base.len])?);
        let mut buffer = Vec::new();
        for (first, place, bytes) in pieces(base) {
            buffer.resize(bytes, 0);
            let read = self.disk.file.read_exact_at(&mut buffer, self.at + place);
            read.map_err(|error| failure("a state of the program cannot be read", &self.disk.directory, &error))?;
            let view = View::new(first, &[(bytes / base.dtype().size()) as i64], &[1]);
            let view = view.map_err(|error| Error::new(status::SHAPE, error.0))?;
            let to = Array::new(recorder.clone(), recorder.window(array.id(), &view)?);
            // SAFETY: `buffer` has the elements of the view, one after the other, until this returns, and is no array's memory.
            unsafe { recorder.write(to.id(), buffer.as_ptr(), None) }?;
        }
        Ok(array)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.disk.places().give(self.at, self.bytes);
    }
}

impl Places {
    /// Takes a part: the first unused one that is long enough, or a new one at the end.
    fn take(&mut self, bytes: u64) -> u64 {
        let found = self.free.iter().find(|(_, len)| **len >= bytes).map(|(&at, &len)| (at, len));
        let Some((at, len)) = found else {
            self.end += bytes;
            return self.end - bytes;
        };
        self.free.remove(&at);
        if len > bytes {
            self.free.insert(at + bytes, len - bytes);
        }
        at
    }

    /// Gives a part back, which becomes one with unused parts beside it.
    fn give(&mut self, at: u64, bytes: u64) {
        let (mut begin, mut end) = (at, at + bytes);
        if let Some((&before, &len)) = self.free.range(..at).next_back()
            && before + len == at
        {
            begin = before;
        }
        if let Some(len) = self.free.remove(&end) {
            end += len;
        }
        if end == self.end {
            self.free.remove(&begin);
            self.end = begin;
        } else {
            self.free.insert(begin, end - begin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::random::Rng;

    #[test]
    fn parts_do_not_overlap_and_leave_nothing() {
        let (mut rng, mut places, mut used) = (Rng::new(7), Places::default(), BTreeMap::new());
        for _ in 0..2000 {
            if used.len() < 20 && rng.chance(60) {
                let bytes = 1 + rng.below(9) as u64;
                let at = places.take(bytes);
                used.insert(at, bytes);
            } else if let Some((&at, &bytes)) = used.iter().nth(rng.below(used.len().max(1))) {
                used.remove(&at);
                places.give(at, bytes);
            }
            let all: BTreeMap<u64, u64> = used.iter().chain(&places.free).map(|(&at, &len)| (at, len)).collect();
            let mut end = 0;
            for (at, len) in all {
                assert_eq!(at, end, "parts lie one behind the other");
                end = at + len;
            }
            assert_eq!(end, places.end);
        }
        used.into_iter().for_each(|(at, bytes)| places.give(at, bytes));
        assert_eq!((places.end, places.free.len()), (0, 0));
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        let error = Disk::open(Some(Path::new("/no/such/directory")), 1).err().expect("there is no file");
        assert!(error.to_string().contains("/no/such/directory"), "{error}");
    }
}
