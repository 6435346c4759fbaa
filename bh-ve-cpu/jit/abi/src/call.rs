//! How compiled kernels are called.

use crate::LANES;

/// Bytes of scratch memory that a kernel may use.
pub const SCRATCH_BYTES: usize = 48 << 10;

/// Where in scratch memory the code of a scalar program finds how many turns all of its loops may have together, an `i64`: it
/// leaves what is left of them, less than 0 if it gave up.
pub const TURNS_AT: usize = 1024;

/// Where in scratch memory that code notes an element of a table that is not there, a [`Failure`] whose table was 0 before.
pub const FAILURE_AT: usize = 2048;

/// Lanes of a [`Failure`], at most.
pub const FAILURE_LANES: usize = 16;

/// Subscripts that are out of range for a table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// The number of the table and one more; 0 for none.
    pub table: i64,
    /// Not 0 for lanes whose subscript is out of range.
    pub lanes: [i64; FAILURE_LANES],
    /// Their subscripts, and what dimensions these are for.
    pub subscripts: [i64; FAILURE_LANES],
    /// See `subscripts`.
    pub dimensions: [i64; FAILURE_LANES],
}

/// Rows whose lanes are joined side by side, with [`crate::Folds::Results`].
pub const JOINED: usize = 8;

/// The element from which on the accumulators of [`crate::Folds::Results`] are results: after neutral elements, the lanes of
/// a row, and what is left of the lanes of [`JOINED`] rows when each has as many.
pub const RESULTS_AT: usize = LANES + LANES + JOINED * JOINED;

/// The arguments of a compiled kernel: `rows` rows of `count` elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Rows, at least one.
    pub rows: i64,
    /// Elements of a row.
    pub count: i64,
    /// Sets of lanes, with [`crate::Folds::Lanes`]: a power of two, at least [`crate::ROW_SETS`] if there are several rows; or sets of
    /// elements, with [`crate::Folds::Sets`].
    pub sets: i64,
    /// The position of each slot's first element; for index views, the first number.
    pub slots: *const *mut u8,
    /// The stride of each slot from element to element, in bytes (in numbers, for index views). For scalar programs: of each
    /// table its extents, then its strides in bytes.
    pub inner: *const i64,
    /// The stride of each slot from row to row.
    pub outer: *const i64,
    /// The constants, each in the first of 16 bytes.
    pub constants: *const [u8; 16],
    /// The accumulators of each fold. With [`crate::Folds::Lanes`] they are sets of [`LANES`] lanes, one set after the
    /// other: element `i` of row `r` goes to lane `i % LANES` of set `r % sets`, so that a call with one row leaves all
    /// sets but the first alone. With [`crate::Folds::Elements`] they are one element for each element of the rows, row
    /// after row, and with [`crate::Folds::Columns`] those of one row, for all. With [`crate::Folds::Sets`] they are
    /// sets of [`LANES`] elements, row `r` going to set `r % sets`: what is read and written for a row, whole vectors on some
    /// processors, is apart from what was written for the row before. With [`crate::Folds::Results`] they begin with
    /// [`LANES`] neutral elements, and from [`RESULTS_AT`] on they are the results of the rows; there is room for those of a
    /// multiple of [`JOINED`] rows.
    pub accumulators: *const *mut u8,
    /// The block primitives that the artifact names, in its order.
    pub functions: *const *const u8,
    /// [`SCRATCH_BYTES`] bytes on a boundary of 64.
    pub scratch: *mut u8,
}

/// A compiled kernel.
///
/// # Safety
/// Everything that the call points to must be valid for the kernel and the sizes in it.
pub type KernelFn = unsafe extern "C" fn(call: *const Call);
