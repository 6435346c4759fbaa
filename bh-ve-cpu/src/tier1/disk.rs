//! Compiled kernels on disk: one file each, in a directory of the user alone. A file holds its key and a checksum; what
//! does not match is as if it were not there.

use bh_bytecode::hash::hash_bytes;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"bhkern 1";
/// The most files; beyond, the older half goes.
const FILES: usize = 4096;

/// A directory of compiled kernels.
pub(super) struct Disk {
    directory: PathBuf,
    /// What is part of every key: the compiler's build.
    identity: Vec<u8>,
}

impl Disk {
    /// The cache in a directory; `None` if that is not the user's alone and cannot be made so.
    pub(super) fn new(directory: PathBuf, identity: Vec<u8>) -> Option<Disk> {
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).ok()?;
        let disk = Disk { directory, identity };
        is_private(&disk.directory).then_some(disk)
    }

    fn key(&self, request: &[u8]) -> Vec<u8> {
        [&(request.len() as u64).to_le_bytes(), request, &self.identity].concat()
    }

    fn file(&self, key: &[u8]) -> PathBuf {
        self.directory.join(format!("{:032x}.kernel", hash_bytes(key)))
    }

    /// The artifact that was stored for a request.
    pub(super) fn read(&self, request: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(request);
        let file = self.file(&key);
        if !is_private(&file) {
            return None;
        }
        let bytes = fs::read(file).ok()?;
        let (content, sum) = bytes.split_last_chunk::<16>()?;
        if hash_bytes(content).to_le_bytes() != *sum {
            return None;
        }
        content.strip_prefix(MAGIC)?.strip_prefix(key.as_slice()).map(<[u8]>::to_vec)
    }

    /// Stores an artifact. That it cannot be stored is no error: it will be compiled again.
    pub(super) fn write(&self, request: &[u8], artifact: &[u8]) {
        let key = self.key(request);
        let file = self.file(&key);
        let mut content = [MAGIC, key.as_slice(), artifact].concat();
        let sum = hash_bytes(&content).to_le_bytes();
        content.extend(sum);
        let temporary = file.with_extension(format!("{}.tmp", std::process::id()));
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| file.write_all(&content))
            .and_then(|()| fs::rename(&temporary, file));
        if written.is_err() {
            // That the remains stay is no second error.
            let _ = fs::remove_file(&temporary);
        }
        self.make_room();
    }

    fn make_room(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let mut files: Vec<_> = entries
            .flatten()
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        if files.len() > FILES {
            files.sort();
            // Another process may have removed it already.
            files[..FILES / 2].iter().for_each(|(_, file)| drop(fs::remove_file(file)));
        }
    }
}

/// Can nobody else have written it?
fn is_private(path: &Path) -> bool {
    let own = fs::metadata("/proc/self").map(|process| process.uid());
    match (fs::symlink_metadata(path), own) {
        (Ok(found), Ok(own)) => found.uid() == own && found.mode() & 0o022 == 0 && !found.is_symlink(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_stored_is_read() {
        let directory = std::env::temp_dir().join(format!("bh-kernels-{}", std::process::id()));
        let disk = Disk::new(directory.clone(), vec![1]).unwrap();
        assert_eq!(disk.read(b"request"), None);
        disk.write(b"request", b"artifact");
        assert_eq!(disk.read(b"request").as_deref(), Some(&b"artifact"[..]));
        assert_eq!(disk.read(b"another"), None);
        let other = Disk::new(directory.clone(), vec![2]).unwrap();
        assert_eq!(other.read(b"request"), None, "another build of the compiler");
        // Damage, and files that others may write, are ignored.
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
