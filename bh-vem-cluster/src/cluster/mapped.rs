//! What the program has mapped.

use crate::plan::array::Piece;
use crate::run::staging::Staging;

/// A base that the program has mapped.
pub(super) enum Mapped {
    /// The memory of rank 0's piece.
    Piece { piece: Piece, maps: u32, changes: bool },
    /// Memory of this component. Dropped by the program while mapped?
    Staged(Staging),
}
