//! The settings that distribute work.

use crate::plan::layout::Weights;
use crate::plan::rates::Rates;
use bh_core::error::{Error, Result};
use bh_core::keys::cluster;
use std::fmt;

/// The grids of ranks on which arrays are cut along several axes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grids {
    /// Grids that move fewer bytes than rows.
    #[default]
    Auto,
    /// None: all arrays are in rows.
    Rows,
    /// This grid, for all arrays and operations that allow it: the ranks along each axis.
    Given(Vec<usize>),
}

impl Grids {
    /// Parses the key's value; a grid must have `ranks` ranks.
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

/// The settings that distribute work.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The weight of each rank.
    pub weights: Weights,
    /// The ranks' rates, if shares follow the kinds of work; otherwise empty.
    pub rates: Vec<Rates>,
    /// Arrays up to this size are on rank 0, and copied to other ranks that need them.
    pub small_bytes: u64,
    /// Rows of temporaries that ranks compute redundantly instead of receiving them, at most.
    pub overlap_rows: i64,
    /// Rows of lasting arrays that ranks compute redundantly instead of receiving them in each iteration, in percent of
    /// their own.
    pub ahead_percent: i64,
    /// The grids on which arrays are cut along several axes.
    pub grid: Grids,
    /// A rank that receives at least this many bytes computes independent parts during the transfer.
    pub overlap_bytes: u64,
    /// Right factors of products up to this size are copied to all ranks, and kept until they change.
    pub keep_bytes: u64,
}

impl Settings {
    /// The default settings.
    pub fn default(ranks: usize) -> Settings {
        // Longer messages take more time than the additional kernels of a split batch.
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

    /// The settings as one line, for comparison. `weights` and `grid`: the configured values.
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
