//! The file that a command names, and the methods that move elements between it and arrays.

use bh_bytecode::{BatchRef, Instr};
use bh_core::abi::status;
use bh_core::error::Error;

/// Reads a file into an array, its output.
pub const READ: &str = "cluster_file_read";
/// Writes an array, its input, to a file. The output has no meaning.
pub const WRITE: &str = "cluster_file_write";

/// The prefix of the command that names a file.
pub const COMMAND: &str = "cluster file ";

/// An array's place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRegion {
    /// The file.
    pub path: String,
    /// The byte offset of the array's first element.
    pub offset: u64,
}

impl FileRegion {
    /// Parses the command `cluster file OFFSET PATH`.
    pub fn read(command: &str) -> Option<FileRegion> {
        let (offset, path) = command.strip_prefix(COMMAND)?.split_once(' ')?;
        Some(FileRegion { path: path.to_owned(), offset: offset.parse().ok()? })
    }

    /// An error of the system, with the file's path.
    pub fn error(&self, error: &std::io::Error) -> Error {
        Error::new(status::FILE, format!("{}: {error}", self.path))
    }
}

/// Does an instruction move elements between an array and a file?
pub fn is_transfer(batch: &BatchRef<'_>, instr: &Instr) -> bool {
    instr.opcode.is_extension() && batch.extension_name(instr.opcode).is_some_and(|name| [READ, WRITE].contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_a_command() {
        let found = FileRegion::read("cluster file 128 /tmp/a b.npy").unwrap();
        assert_eq!(found, FileRegion { path: "/tmp/a b.npy".into(), offset: 128 });
        assert_eq!(FileRegion::read("cluster traffic"), None);
        assert_eq!(FileRegion::read("cluster file x y"), None);
    }
}
