//! Bases that the program has mapped.

use crate::plan::array::Shard;
use crate::run::map_copy::MapCopy;

/// A base that the program has mapped.
pub(super) enum Mapped {
    /// A map of rank 0's shard.
    Shard { shard: Shard, maps: u32, changes: bool },
    /// A copy in this component's memory.
    Copy(MapCopy),
}
