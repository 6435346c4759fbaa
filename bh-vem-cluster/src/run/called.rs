//! The function of the program that a command names.

/// What the command that names a function begins with.
pub const COMMAND: &str = "cluster call ";

/// A function of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// Rows of its neighbours that a part gets.
    pub(crate) halo: i64,
    /// The function, in hexadecimal digits.
    pub(crate) text: String,
}

impl Called {
    /// From the command `cluster call HALO FUNCTION`.
    pub fn read(command: &str) -> Option<Called> {
        let (halo, text) = command.strip_prefix(COMMAND)?.split_once(' ')?;
        Some(Called { halo: halo.parse().ok()?, text: text.to_owned() })
    }
}
