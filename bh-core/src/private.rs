//! Files of the user alone, for caches that are kept from run to run: with a checksum, replaced in one step, and believed
//! only if nobody else can have written them.

use bh_bytecode::hash::hash_bytes;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Makes a directory for the user alone if there is none; fails if others may write to it.
pub fn make_directory(path: &Path) -> Result<(), String> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| error.to_string())?;
    check_directory(path)
}

/// The content of a file; `None` if there is none. The text of an error says why it is not to be believed.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    check_directory(path.parent().ok_or("the file has no directory")?)?;
    check(path, &file.metadata().map_err(|error| error.to_string())?)?;
    let mut content = Vec::new();
    file.read_to_end(&mut content).map_err(|error| error.to_string())?;
    let (body, sum) = content.split_last_chunk::<16>().ok_or("the file is cut off")?;
    if hash_bytes(body).to_le_bytes() != *sum {
        return Err("its checksum is wrong".into());
    }
    content.truncate(content.len() - 16);
    Ok(Some(content))
}

/// Writes a file, through a temporary one beside it.
pub fn write(path: &Path, mut content: Vec<u8>) -> Result<(), String> {
    content.extend(hash_bytes(&content).to_le_bytes());
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(&content))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // The temporary file is of no use any more; that it stays is no second error.
        let _ = fs::remove_file(&temporary);
        error.to_string()
    })
}

/// Refuses a directory that another user made, links to, or may write to.
fn check_directory(path: &Path) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let (entry, directory) = (fs::symlink_metadata(path).map_err(text)?, fs::metadata(path).map_err(text)?);
    if entry.is_symlink() && !is_own(&entry) {
        return Err(format!("{} is another user's link", path.display()));
    }
    check(path, &directory)
}

fn check(path: &Path, found: &Metadata) -> Result<(), String> {
    if is_own(found) && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(format!("{} is not the user's alone", path.display()))
}

fn is_own(found: &Metadata) -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == found.uid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn only_whole_files_of_the_user_alone_are_read() {
        let directory = std::env::temp_dir().join(format!("bh-private-{}", std::process::id()));
        let inner = directory.join("inner");
        make_directory(&inner).unwrap();
        assert_eq!([&directory, &inner].map(|path| fs::metadata(path).unwrap().mode() & 0o777), [0o700; 2]);
        let file = inner.join("file.bin");
        assert_eq!(read(&file), Ok(None));
        write(&file, b"content".to_vec()).unwrap();
        assert_eq!(read(&file), Ok(Some(b"content".to_vec())));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 1, "the temporary file is gone");
        let good = fs::read(&file).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 4;
            fs::write(&file, &bad).unwrap();
            assert_eq!(read(&file), Err("its checksum is wrong".into()));
        }
        fs::write(&file, &good[..15]).unwrap();
        assert_eq!(read(&file), Err("the file is cut off".into()));
        write(&file, b"other".to_vec()).unwrap();
        assert_eq!(read(&file), Ok(Some(b"other".to_vec())), "it is replaced");
        // What others may write.
        for path in [&file, &inner] {
            let mode = fs::metadata(path).unwrap().mode();
            for wrong in [0o020, 0o002] {
                set_mode(path, mode | wrong);
                assert_eq!(read(&file), Err(format!("{} is not the user's alone", path.display())));
            }
            set_mode(path, mode);
        }
        set_mode(&inner, 0o777);
        assert!(make_directory(&inner).is_err());
        set_mode(&inner, 0o700);
        // The user's own link is as good as the directory.
        symlink(&inner, directory.join("link")).unwrap();
        assert!(make_directory(&directory.join("link")).is_ok());
        assert_eq!(read(&directory.join("link/file.bin")), Ok(Some(b"other".to_vec())));
        fs::remove_dir_all(directory).unwrap();
    }
}
