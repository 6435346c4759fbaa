//! An item's share of a tile of a product.

/// Terms of the sums that are in local memory at a time, at least.
pub(super) const DEPTH: usize = 8;

/// An item's share of a tile: its place, its sums, how it adds the products of the terms in local memory, the loop over
/// rows of its sums, and the loop over a row, in which each sum is the `value` with the number `at`, `row` and `column`.
pub(super) struct Own {
    pub(super) place: String,
    pub(super) sums: String,
    pub(super) add: String,
    pub(super) rows: String,
    pub(super) row: String,
    pub(super) count: usize,
}
