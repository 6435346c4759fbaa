//! The arguments of calls: outcomes, errors, batches and views.

use bh_bytecode::{
    Attribute, Base, BatchHeader, BatchRef, Block, Constant, Extension, Instr, Origin, Rename, ViewRec, for_each_table,
};

/// Outcome of a call: 0 is success; 1xx environment, 2xx input, 3xx unsupported, 4xx resources, 5xx execution.
pub type Status = i32;

/// Values of [`Status`].
pub mod status {
    /// Success.
    pub const OK: i32 = 0;
    /// The configuration is wrong.
    pub const CONFIG: i32 = 101;
    /// A library could not be loaded or is no component.
    pub const LIBRARY: i32 = 102;
    /// ABI versions differ.
    pub const VERSION: i32 = 103;
    /// A component could not start.
    pub const INIT: i32 = 104;
    /// A file could not be read or written, or its content is damaged.
    pub const FILE: i32 = 105;
    /// An argument is wrong; the message names it.
    pub const ARGUMENT: i32 = 201;
    /// Element types do not fit the operation.
    pub const TYPE: i32 = 202;
    /// Shapes do not fit each other.
    pub const SHAPE: i32 = 203;
    /// A view or an index is outside its base.
    pub const BOUNDS: i32 = 204;
    /// A handle is null, freed or from another context.
    pub const HANDLE: i32 = 205;
    /// A batch is malformed.
    pub const BATCH: i32 = 206;
    /// The context was shut down.
    pub const SHUTDOWN: i32 = 207;
    /// No component of the stack supports the operation.
    pub const UNSUPPORTED: i32 = 301;
    /// Out of memory.
    pub const MEMORY: i32 = 401;
    /// A device failed.
    pub const DEVICE: i32 = 402;
    /// An operation failed while it ran.
    pub const EXECUTION: i32 = 501;
    /// A component panicked.
    pub const PANIC: i32 = 502;
    /// A check that the user asked for found an operation with a bad result.
    pub const CHECK: i32 = 503;
}

/// "No block" in [`ErrorRecord::block`].
pub const NO_BLOCK: u32 = u32::MAX;

/// An error. The caller owns the record and initialises it without an error (numbers as in `ErrorRecord::empty`, texts
/// empty); the callee fills in the parts it knows. Texts are UTF-8 and NUL-terminated.
#[derive(Clone)]
#[repr(C)]
pub struct ErrorRecord {
    /// A [`Status`].
    pub status: Status,
    /// Index of the block that failed, or [`NO_BLOCK`]. An engine that fails stops there: earlier blocks are done,
    /// later ones untouched. The host poisons the outputs of the block and calls again for the rest.
    pub block: u32,
    /// Index of the instruction that failed plus one, or 0 if unknown; the host turns it into file and line.
    pub instr: u32,
    /// Line in the user's program, or 0.
    pub line: u32,
    /// Rank of the process that failed, or -1.
    pub rank: i32,
    /// Zero.
    pub reserved: u32,
    /// File in the user's program, or empty.
    pub file: [u8; 256],
    /// The message.
    pub text: [u8; 744],
}

/// A borrowed table of records.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Table<T> {
    /// First record.
    pub data: *const T,
    /// Number of records.
    pub len: usize,
}

/// A batch as it crosses the boundary; valid until the call returns. See `bh_bytecode::Batch` for the fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BatchTables {
    /// Bytes of this struct, for growth.
    pub struct_size: usize,
    /// Bases.
    pub bases: Table<Base>,
    /// Views.
    pub views: Table<ViewRec>,
    /// Extents and strides of the views.
    pub dims: Table<i64>,
    /// Instructions.
    pub instrs: Table<Instr>,
    /// Constants.
    pub constants: Table<Constant>,
    /// Source locations.
    pub origins: Table<Origin>,
    /// Extension methods.
    pub extensions: Table<Extension>,
    /// Strings.
    pub strings: Table<u8>,
    /// Kernel partition.
    pub blocks: Table<Block>,
    /// Instructions of the blocks.
    pub block_instrs: Table<u32>,
    /// Contracted bases of the blocks.
    pub contracted: Table<u32>,
    /// Renames of the blocks.
    pub renames: Table<Rename>,
    /// Views of the renames that are not covered.
    pub rename_views: Table<u32>,
    /// Attributes of extension methods.
    pub attributes: Table<Attribute>,
    /// The key of the batch's structure; empty if there is none.
    pub key: Table<u64>,
    /// For each base a small number that is constant while the base lives; empty if there are none.
    pub slots: Table<u32>,
    /// Facts about the whole batch.
    pub header: BatchHeader,
}

/// A view outside a batch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ViewSpec {
    /// Offset of element (0,…,0), in elements.
    pub start: i64,
    /// Extents.
    pub shape: *const i64,
    /// Strides in elements.
    pub stride: *const i64,
    /// Dimensions, at most 16.
    pub rank: u32,
}

impl<T> Table<T> {
    /// Borrows a slice.
    pub fn new(slice: &[T]) -> Table<T> {
        Table { data: slice.as_ptr(), len: slice.len() }
    }

    /// The records.
    ///
    /// # Safety
    /// `len` must be 0, or `data` must point to `len` records that live, unchanged, through `'a`.
    pub unsafe fn as_slice<'a>(&self) -> &'a [T] {
        // SAFETY: where `len` is not 0, `data` points to `len` records that live through `'a`, unchanged, as `# Safety`
        // asks.
        if self.len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(self.data, self.len) } }
    }
}

impl BatchTables {
    /// Describes a batch for a call.
    pub fn new(batch: &BatchRef<'_>) -> BatchTables {
        macro_rules! describe {
            ($($table:ident),*) => {
                BatchTables {
                    struct_size: size_of::<BatchTables>(),
                    $($table: Table::new(batch.$table),)*
                    header: batch.header,
                }
            };
        }
        for_each_table!(describe)
    }

    /// The first table with a length but a null pointer.
    pub fn without_data(&self) -> Option<&'static str> {
        macro_rules! find {
            ($($table:ident),*) => {
                $(if self.$table.len > 0 && self.$table.data.is_null() {
                    return Some(stringify!($table));
                })*
            };
        }
        for_each_table!(find);
        None
    }

    /// The batch.
    ///
    /// # Safety
    /// Each table must satisfy [`Table::as_slice`]: empty, or `len` records at `data` that live, unchanged, through
    /// `'a`.
    pub unsafe fn as_ref<'a>(&self) -> BatchRef<'a> {
        macro_rules! borrow {
            ($($table:ident),*) => {
                // SAFETY: each table is as `as_slice` asks, as `# Safety` says.
                unsafe { BatchRef { $($table: self.$table.as_slice(),)* header: self.header } }
            };
        }
        for_each_table!(borrow)
    }
}
