//! Private files of the user, for caches that persist between runs: with a checksum, replaced atomically, and trusted
//! only if nobody else can have written them.
//!
//! A directory is opened once and checked through its handle, and files are opened relative to that handle only, so
//! later changes to the path have no effect. Files are opened without following links and without blocking, so a
//! planted link, fifo or device is refused.

use bh_bytecode::hash::hash_bytes;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest file that is read, in bytes.
const LONGEST: u64 = 1 << 30;

/// Creates a private directory if there is none; fails if others may write to it.
pub fn make_directory(path: &Path) -> Result<(), String> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| error.to_string())?;
    open_directory(path).map(drop)
}

/// Creates a new private directory among the temporary files; the caller removes it.
pub fn temporary_directory(name: &str) -> Result<PathBuf, String> {
    let process = std::process::id();
    for number in 0..1000 {
        let path = std::env::temp_dir().join(format!("{name}-{process}-{number}"));
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("{}: {error}", path.display())),
            Ok(()) => return Ok(path),
        }
    }
    Err(format!("{} has a thousand directories {name}-{process}", std::env::temp_dir().display()))
}

/// The content of a file; `None` if there is none. The error says why the file is not trusted.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let (directory, name) = parts(path)?;
    let directory = match open_directory(directory) {
        Ok(handle) => handle,
        Err(_) if !directory.exists() => return Ok(None),
        Err(error) => return Err(error),
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(&directory, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(format!("{} is a link", path.display())),
        Err(error) => return Err(error.to_string()),
    };
    let found = fstat(&file).map_err(text)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(format!("{} is no regular file", path.display()));
    }
    check(path, &found)?;
    let mut content = Vec::new();
    if found.st_size as u64 > LONGEST {
        return Err("it is too long".into());
    }
    content.try_reserve_exact(found.st_size as usize).map_err(text)?;
    // If the file grows meanwhile, read only the checked length.
    File::from(file).take(found.st_size as u64).read_to_end(&mut content).map_err(text)?;
    let (body, sum) = content.split_last_chunk::<16>().ok_or("the file is cut off")?;
    if hash_bytes(body).to_le_bytes() != *sum {
        return Err("its checksum is wrong".into());
    }
    content.truncate(content.len() - 16);
    Ok(Some(content))
}

/// Writes a file through a temporary one beside it. The directory must exist and be private to the user.
pub fn write(path: &Path, mut content: Vec<u8>) -> Result<(), String> {
    content.extend(hash_bytes(&content).to_le_bytes());
    let (directory, name) = parts(path)?;
    let directory = open_directory(directory)?;
    let (temporary, mut file) = create_new(&directory)?;
    let written = file.write_all(&content).map_err(text);
    written.and_then(|()| renameat(&directory, &temporary, &directory, name).map_err(text)).inspect_err(|_| {
        // Remove the useless temporary file; a failure here is not a second error.
        let _ = unlinkat(&directory, &temporary, AtFlags::empty());
    })
}

/// A file that did not exist before, and its name.
fn create_new(directory: &OwnedFd) -> Result<(String, File), String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for _ in 0..1000 {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}.tmp", std::process::id());
        match openat(directory, &name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => return Ok((name, file.into())),
            // Left by a killed process with the same number, or planted before the directory was private.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("a thousand temporary files are in the way".into())
}

fn parts(path: &Path) -> Result<(&Path, &OsStr), String> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    directory.zip(path.file_name()).ok_or_else(|| format!("{} names no file in a directory", path.display()))
}

/// Opens a private directory of the user; refuses one that another user owns, links to, or may write to.
fn open_directory(path: &Path) -> Result<OwnedFd, String> {
    let entry = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(text)?;
    if FileType::from_raw_mode(entry.st_mode) == FileType::Symlink && !is_own(&entry) {
        return Err(format!("{} is another user's link", path.display()));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let handle = openat(CWD, path, flags, Mode::empty()).map_err(text)?;
    check(path, &fstat(&handle).map_err(text)?)?;
    Ok(handle)
}

fn check(path: &Path, found: &Stat) -> Result<(), String> {
    if is_own(found) && found.st_mode & 0o022 == 0 {
        return Ok(());
    }
    Err(format!("{} is not the user's alone", path.display()))
}

fn is_own(found: &Stat) -> bool {
    found.st_uid == rustix::process::geteuid().as_raw()
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

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
        // Files that others may write.
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
        // The user's own link counts as the directory.
        symlink(&inner, directory.join("link")).unwrap();
        assert!(make_directory(&directory.join("link")).is_ok());
        assert_eq!(read(&directory.join("link/file.bin")), Ok(Some(b"other".to_vec())));
        fs::remove_dir_all(directory).unwrap();
    }

    /// Objects that another user may have put in place of a file, or of the temporary one, before the directory was
    /// private.
    #[test]
    fn what_was_planted_is_neither_used_nor_harmed() {
        let directory = temporary_directory("bh-planted").unwrap();
        let [file, victim] = ["file.bin", "victim"].map(|name| directory.join(name));
        let fifo = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
        // SAFETY: the path is a C string.
        assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
        assert_eq!(read(&file), Err(format!("{} is no regular file", file.display())), "and does not hang");
        write(&file, b"content".to_vec()).unwrap();
        assert_eq!(read(&file), Ok(Some(b"content".to_vec())), "it takes the place of the fifo");
        for whole in [b"a good file".to_vec(), b"secret".to_vec()] {
            write(&victim, whole.clone()).unwrap();
            let before = fs::read(&victim).unwrap();
            fs::remove_file(&file).unwrap();
            symlink(&victim, &file).unwrap();
            assert_eq!(read(&file), Err(format!("{} is a link", file.display())));
            for number in 0..8000 {
                let _ = symlink(&victim, directory.join(format!("{}-{number}.tmp", std::process::id())));
            }
            assert_eq!(write(&file, b"other".to_vec()), Err("a thousand temporary files are in the way".into()));
            assert_eq!(fs::read(&victim).unwrap(), before);
            fs::read_dir(&directory).unwrap().flatten().map(|entry| entry.path()).for_each(|path| {
                if path.extension().is_some_and(|extension| extension == "tmp") {
                    fs::remove_file(path).unwrap();
                }
            });
            write(&file, b"other".to_vec()).unwrap();
            assert_eq!(fs::read(&victim).unwrap(), before, "the link is replaced, not followed");
        }
        assert!(read(Path::new("/dev/zero")).is_err());
        fs::remove_dir_all(directory).unwrap();
    }

    /// Swaps the directory for a link to another one, repeatedly, while files are written.
    #[test]
    fn a_directory_that_is_swapped_meanwhile_leads_nowhere_else() {
        let outer = temporary_directory("bh-swapped").unwrap();
        let [own, other, place] = ["own", "other", "place"].map(|name| outer.join(name));
        make_directory(&own).unwrap();
        fs::create_dir(&other).unwrap();
        set_mode(&other, 0o777);
        let swap = |target: &Path| {
            let _ = fs::remove_file(&place);
            symlink(target, &place).unwrap();
        };
        std::thread::scope(|scope| {
            let swapper = scope.spawn(|| (0..2000).for_each(|turn| swap(if turn % 2 == 0 { &own } else { &other })));
            while !swapper.is_finished() {
                // It may fail, but must not write to the directory that is writable for everybody.
                let _ = write(&place.join("file.bin"), b"content".to_vec());
                assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
            }
        });
        fs::remove_dir_all(outer).unwrap();
    }
}
