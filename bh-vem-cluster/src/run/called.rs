//! The function that a command names.

/// The prefix of the command that names a function.
pub const COMMAND: &str = "cluster call ";

/// A function of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// Halo rows on each side of a part.
    pub(crate) halo: i64,
    /// The encoded function, in hexadecimal digits.
    pub(crate) text: String,
}

impl Called {
    /// Parses the command `cluster call HALO FUNCTION`.
    pub fn read(command: &str) -> Option<Called> {
        let (halo, text) = command.strip_prefix(COMMAND)?.split_once(' ')?;
        Some(Called { halo: halo.parse().ok()?, text: text.to_owned() })
    }
}
