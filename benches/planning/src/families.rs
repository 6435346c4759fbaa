//! The families: each makes a batch of about the number of operations asked for.

use crate::{algebra, grids};
use bh_bytecode::Batch;

/// Makes a batch of about as many operations as its argument says.
pub type Maker = fn(usize) -> Batch;

/// The families by name. Programs of one size whose batches grow, not programs whose arrays grow.
pub const FAMILIES: &[(&str, Maker)] = &[
    ("heat", grids::heat),
    ("expressions", grids::expressions),
    ("mixed", grids::mixed),
    ("long-chain", grids::long_chain),
    ("scalar-chain", grids::scalar_chain),
    ("tree", grids::tree),
    ("windows", grids::windows),
    ("sliding-sums", grids::sliding_sums),
    ("wave", grids::wave),
    ("tiles", grids::tiles),
    ("butterflies", grids::butterflies),
    ("many-readers", grids::many_readers),
    ("shrinking", algebra::shrinking),
    ("gram-schmidt", algebra::gram_schmidt),
    ("lu-rows", algebra::lu_rows),
    ("cholesky-rows", algebra::cholesky_rows),
    ("gauss-jordan", algebra::gauss_jordan),
    ("triangular-solve", algebra::triangular_solve),
    ("gauss-seidel", algebra::gauss_seidel),
    ("symmetric-updates", algebra::symmetric_updates),
    ("mirrored-rows", algebra::mirrored_rows),
    ("column-sums", algebra::column_sums),
    ("shortest-paths", algebra::shortest_paths),
    ("pivots", algebra::pivots),
];

/// The family of this name.
pub fn find(name: &str) -> Option<Maker> {
    FAMILIES.iter().find(|(known, _)| *known == name).map(|&(_, make)| make)
}
