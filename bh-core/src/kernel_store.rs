//! Compiled kernels on disk: one file each, in a private directory of the user. A file holds its key; a file with
//! another key counts as missing.

use crate::private;
use bh_bytecode::hash::hash_bytes;
use std::fs;
use std::path::PathBuf;

const MAGIC: &[u8; 8] = b"bhkern 1";
const EXTENSION: &str = "kernel";
/// The most files; above this number the older half is deleted.
const FILES: usize = 4096;

/// A directory of compiled kernels.
pub struct KernelStore {
    directory: PathBuf,
    /// The part common to all keys: the compiler's build, or the device and its driver.
    identity: Vec<u8>,
}

impl KernelStore {
    /// The cache in a directory; `None` if the directory is not private to the user and cannot be made so.
    pub fn new(directory: PathBuf, identity: Vec<u8>) -> Option<KernelStore> {
        private::make_directory(&directory).ok()?;
        Some(KernelStore { directory, identity })
    }

    fn key(&self, request: &[u8]) -> Vec<u8> {
        [&(request.len() as u64).to_le_bytes(), request, &self.identity].concat()
    }

    fn file(&self, key: &[u8]) -> PathBuf {
        self.directory.join(format!("{:032x}.{EXTENSION}", hash_bytes(key)))
    }

    /// The artifact that was stored for a request.
    pub fn read(&self, request: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(request);
        let content = private::read(&self.file(&key)).ok().flatten()?;
        content.strip_prefix(MAGIC)?.strip_prefix(key.as_slice()).map(<[u8]>::to_vec)
    }

    /// Stores an artifact. A failure is not an error: the kernel is compiled again.
    pub fn write(&self, request: &[u8], artifact: &[u8]) {
        let key = self.key(request);
        let _ = private::write(&self.file(&key), [MAGIC, key.as_slice(), artifact].concat());
        self.make_room();
    }

    fn make_room(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let mut files: Vec<_> = entries
            .flatten()
            // Other files of the user in this directory are not touched.
            .filter(|entry| entry.path().extension().is_some_and(|extension| extension == EXTENSION))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        if files.len() > FILES {
            files.sort();
            // Another process may have removed it already.
            files[..FILES / 2].iter().for_each(|(_, file)| drop(fs::remove_file(file)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_stored_is_read() {
        let directory = std::env::temp_dir().join(format!("bh-kernels-{}", std::process::id()));
        let disk = KernelStore::new(directory.clone(), vec![1]).unwrap();
        assert_eq!(disk.read(b"request"), None);
        disk.write(b"request", b"artifact");
        assert_eq!(disk.read(b"request").as_deref(), Some(&b"artifact"[..]));
        assert_eq!(disk.read(b"another"), None);
        let other = KernelStore::new(directory.clone(), vec![2]).unwrap();
        assert_eq!(other.read(b"request"), None, "another build of the compiler");
        // Damaged files, and files that others may write, are ignored.
        let file = disk.file(&disk.key(b"request"));
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, &bytes).unwrap();
        assert_eq!(disk.read(b"request"), None);
        disk.write(b"request", b"artifact");
        assert!(disk.read(b"request").is_some());
        let mut permissions = fs::metadata(&file).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o666);
        fs::set_permissions(&file, permissions).unwrap();
        assert_eq!(disk.read(b"request"), None);
        fs::remove_dir_all(directory).unwrap();
    }
}
