//! The file whose elements move next, as a command names it, and the methods that move them.

use bh_bytecode::{BatchRef, Instr};
use bh_core::abi::status;
use bh_core::error::Error;

/// The method that reads an array, its output.
pub const READ: &str = "cluster_file_read";
/// The method that writes an array, its input; the output says nothing.
pub const WRITE: &str = "cluster_file_write";

/// What the command that names a file begins with.
pub const COMMAND: &str = "cluster file ";

/// Where in which file the elements of an array lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The file.
    pub path: String,
    /// The byte at which the array begins.
    pub offset: u64,
}

impl Region {
    /// From the command `cluster file OFFSET PATH`.
    pub fn read(command: &str) -> Option<Region> {
        let (offset, path) = command.strip_prefix(COMMAND)?.split_once(' ')?;
        Some(Region { path: path.to_owned(), offset: offset.parse().ok()? })
    }

    /// Names the file in what the system says of it.
    pub fn error(&self, error: &std::io::Error) -> Error {
        Error::new(status::FILE, format!("{}: {error}", self.path))
    }
}

/// Is an instruction one of those that move elements between arrays and a file?
pub fn is_transfer(batch: &BatchRef<'_>, instr: &Instr) -> bool {
    instr.opcode.is_extension() && batch.extension_name(instr.opcode).is_some_and(|name| [READ, WRITE].contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_a_command() {
        let found = Region::read("cluster file 128 /tmp/a b.npy").unwrap();
        assert_eq!(found, Region { path: "/tmp/a b.npy".into(), offset: 128 });
        assert_eq!(Region::read("cluster traffic"), None);
        assert_eq!(Region::read("cluster file x y"), None);
    }
}
