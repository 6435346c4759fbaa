//! How the cluster shares out work, as the configuration says.

use crate::plan::layout::Weights;
use crate::plan::rates::Rates;
use bh_core::error::{Error, Result};
use bh_core::keys::cluster;
use std::fmt;

/// On which grids of ranks arrays are cut along several axes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grids {
    /// Where that moves less.
    #[default]
    Auto,
    /// On none: arrays are cut in rows.
    Rows,
    /// On this one, wherever operations allow it: the ranks along each axis.
    Given(Vec<usize>),
}

impl Grids {
    /// What the key says; a grid must have all ranks.
    pub fn read(text: &str, ranks: usize) -> Result<Grids> {
        let given = || {
            let axes: Option<Vec<usize>> = text.split('x').map(|axis| axis.trim().parse().ok()).collect();
            axes.filter(|axes| axes.iter().try_fold(1, |all: usize, &axis| all.checked_mul(axis)) == Some(ranks))
        };
        match text {
            "auto" => Ok(Grids::Auto),
            "rows" => Ok(Grids::Rows),
            _ => given().map(Grids::Given).ok_or_else(|| {
                Error::of_key(
                    "grid",
                    &format!("auto, rows, or numbers like 4x4 whose product is {ranks}, the ranks"),
                    text,
                )
            }),
        }
    }
}

impl fmt::Display for Grids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grids::Auto => f.write_str("auto"),
            Grids::Rows => f.write_str("rows"),
            Grids::Given(axes) => {
                let axes: Vec<String> = axes.iter().map(usize::to_string).collect();
                f.write_str(&axes.join("x"))
            }
        }
    }
}

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
    /// On which grids of ranks arrays are cut along several axes.
    pub grid: Grids,
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
            grid: Grids::default(),
            overlap_bytes,
            keep_bytes: cluster::KEEP_BYTES.default(),
        }
    }

    /// One line, which is equal where the settings are. `weights` and `grid` are what the configuration says of them.
    pub fn line(&self, weights: &str, grid: &str) -> String {
        let Settings {
            weights: _,
            rates: _,
            small_bytes,
            overlap_rows,
            ahead_percent,
            grid: _,
            overlap_bytes,
            keep_bytes,
        } = self;
        let weights = if weights.is_empty() { "by default" } else { weights };
        format!(
            "weights {weights}, small_bytes {small_bytes}, overlap_rows {overlap_rows}, ahead_percent {ahead_percent}, \
             grid {grid}, overlap_bytes {overlap_bytes}, keep_bytes {keep_bytes}"
        )
    }
}
