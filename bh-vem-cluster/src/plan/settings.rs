//! How the cluster shares out work, as the configuration says.

use crate::plan::layout::Weights;

/// How work is shared out.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// By rank.
    pub weights: Weights,
    /// Arrays of at most so many bytes are on rank 0 and, as far as they are needed, on the others.
    pub small_bytes: u64,
    /// Rows of passing arrays that ranks compute twice instead of sending them, at most.
    pub overlap_rows: i64,
    /// Where a rank gets at least so many bytes, it computes what needs none of them meanwhile.
    pub overlap_bytes: u64,
}
