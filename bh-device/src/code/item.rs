//! An item's share of a tile of a product.

/// Terms of the sums that are in local memory at a time, at least.
pub(super) const DEPTH: usize = 8;

/// An item's share of a tile: its place, its sums, how it adds the products of the terms in local memory, the loop over
/// rows of its sums, and that over a row of so many, each of which is the `value` with the number `at`, with `row` and
/// `column`.
pub(super) struct Own {
    pub(super) place: String,
    pub(super) sums: String,
    pub(super) add: String,
    pub(super) rows: String,
    pub(super) row: String,
    pub(super) count: usize,
}
