//! How the cluster shares out work, as the configuration says.

use crate::plan::layout::Weights;
use crate::plan::rates::Rates;
use bh_core::keys::cluster;

/// How work is shared out.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// By rank.
    pub weights: Weights,
    /// How fast ranks are, if shares follow that; else none.
    pub rates: Vec<Rates>,
    /// Arrays of at most this many bytes are on rank 0 and, as far as they are needed, on the others.
    pub small_bytes: u64,
    /// Rows of passing arrays that ranks compute twice instead of sending them, at most.
    pub overlap_rows: i64,
    /// Rows of kept arrays that ranks compute twice instead of getting them for each turn of a loop, in percent of their own.
    pub ahead_percent: i64,
    /// Where a rank gets at least this many bytes, it computes what needs none of them meanwhile.
    pub overlap_bytes: u64,
    /// Right factors of products of at most this many bytes come to all ranks as a whole, where they stay until they change.
    pub keep_bytes: u64,
}

impl Settings {
    /// Those of a configuration that does not name them.
    pub fn default(ranks: usize) -> Settings {
        // Messages that are this long take longer than the further kernels that it costs to compute meanwhile.
        let overlap_bytes = cluster::OVERLAP_BYTES.default();
        let (small_bytes, overlap_rows) = (cluster::SMALL_BYTES.default(), cluster::OVERLAP_ROWS.default().into());
        Settings {
            weights: Weights::even(ranks),
            rates: Vec::new(),
            small_bytes,
            overlap_rows,
            ahead_percent: 0,
            overlap_bytes,
            keep_bytes: 0,
        }
    }

    /// One line, which is equal where the settings are. `weights` is what the configuration says of them.
    pub fn line(&self, weights: &str) -> String {
        let Settings { weights: _, rates: _, small_bytes, overlap_rows, ahead_percent, overlap_bytes, keep_bytes: _ } =
            self;
        let weights = if weights.is_empty() { "by default" } else { weights };
        format!(
            "weights {weights}, small_bytes {small_bytes}, overlap_rows {overlap_rows}, ahead_percent {ahead_percent}, \
             overlap_bytes {overlap_bytes}"
        )
    }
}
