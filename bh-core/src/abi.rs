//! The component ABI: the only home of everything whose layout crosses a component boundary, besides the batch records
//! of `bh-bytecode`.
//!
//! A component is a shared library that exports one function, [`ENTRY_SYMBOL`], which takes the loader's ABI version
//! and returns a [`ComponentTable`] of static lifetime, or null if it cannot serve that version. Negotiation calls
//! nothing else. Components never call each other directly: each gets [`ChildHandle`]s, whose functions the host
//! implements; the host forwards calls that a component leaves out, sends blocks past engines that refuse them, and
//! poisons what failed blocks would have written.
//!
//! Contract in short (docs/engines.md numbers every obligation): calls into one component are serialised and never
//! re-entered, except for the callbacks in [`AttachmentOps`]; nothing unwinds across; every function that can fail
//! returns a [`Status`] and fills the [`ErrorRecord`] it was given.

use bh_bytecode::{Base, BatchRef, Block, Constant, Extension, Instr, Origin, Rename, ViewRec};
use std::ffi::{c_char, c_void};

/// Version of this ABI. A component states the version it was built for; the host accepts only equal versions.
pub const ABI_VERSION: u32 = 1;

/// The one exported symbol of a component: `const ComponentTable *bh_component_entry(uint32_t loader_version)`. A library
/// that links other components' code may instead export it under its own file name, `<file stem>_component_entry`.
pub const ENTRY_SYMBOL: &str = "bh_component_entry";

/// Type of the entry function.
pub type EntryFn = unsafe extern "C" fn(loader_version: u32) -> *const ComponentTable;

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
    /// A view or an index leaves its base.
    pub const BOUNDS: i32 = 204;
    /// A handle is null, freed or of another context.
    pub const HANDLE: i32 = 205;
    /// A batch is malformed.
    pub const BATCH: i32 = 206;
    /// The context was shut down.
    pub const SHUTDOWN: i32 = 207;
    /// Nothing in the stack can do it.
    pub const UNSUPPORTED: i32 = 301;
    /// Out of memory.
    pub const MEMORY: i32 = 401;
    /// A device failed.
    pub const DEVICE: i32 = 402;
    /// An operation failed while it ran.
    pub const EXECUTION: i32 = 501;
    /// A component panicked.
    pub const PANIC: i32 = 502;
}

/// "No block" in [`ErrorRecord::block`].
pub const NO_BLOCK: u32 = u32::MAX;

/// What went wrong. The caller owns the record and sets it to "no error" (numbers as in `ErrorRecord::empty`, texts
/// empty); the callee fills in what it knows. Texts are UTF-8 and NUL-terminated.
#[derive(Clone)]
#[repr(C)]
pub struct ErrorRecord {
    /// A [`Status`].
    pub status: Status,
    /// Index of the block that failed, or [`NO_BLOCK`]. An engine that fails stops there: earlier blocks are done, later
    /// ones untouched; the host poisons what the block writes and calls again for the rest.
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
    /// Uncovered views of the renames.
    pub rename_views: Table<u32>,
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

/// Values of [`ComponentTable::kind`].
pub mod kind {
    /// Rewrites batches.
    pub const FILTER: u32 = 1;
    /// Adds the kernel partition.
    pub const FUSER: u32 = 2;
    /// Manages data (and may have several children).
    pub const VEM: u32 = 3;
    /// Runs kernels.
    pub const ENGINE: u32 = 4;
}

/// Bits of [`Capabilities::flags`].
pub mod capability {
    /// All calls must come from one thread, the executor's.
    pub const THREAD_AFFINE: u64 = 1;
    /// The engine carries out renames; the fuser adds them only then.
    pub const RENAMES: u64 = 2;
    /// The engine calls `RegistryTable::block_done` itself, as each block ends; otherwise the host does.
    pub const RETIRES_BLOCKS: u64 = 4;
    /// `execute` may return before the work is done, with a ticket.
    pub const ASYNCHRONOUS: u64 = 8;
    /// Process-bound: refuses to live on in a forked child.
    pub const NO_FORK: u64 = 16;
}

/// What a component says of itself (and of what lies below it, as far as it passes it up).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Capabilities {
    /// Bits of [`capability`].
    pub flags: u64,
    /// Threads or devices that share the work.
    pub parallelism: u32,
    /// Zero.
    pub reserved: u32,
    /// Measured or assumed memory bandwidth, bytes per second; 0 if unknown.
    pub bandwidth: f64,
    /// Fixed cost of one kernel, seconds.
    pub launch_seconds: f64,
}

/// Access modes of `map` and `acquire`, combined by or.
pub mod access {
    /// The current values are needed.
    pub const READ: u32 = 1;
    /// They will change.
    pub const WRITE: u32 = 2;
    /// None of the current values is needed: all will be overwritten. Clears poison.
    pub const DISCARD: u32 = 4;
}

/// Called when adopted memory is no longer used by bh.
pub type ReleaseFn = unsafe extern "C" fn(argument: *mut c_void, data: *mut c_void);

/// The functions and facts of a component. Null functions forward to the first child.
#[derive(Debug)]
#[repr(C)]
pub struct ComponentTable {
    /// Bytes of this struct, for growth.
    pub struct_size: usize,
    /// The [`ABI_VERSION`] it was built for.
    pub abi_version: u32,
    /// A value of [`kind`].
    pub kind: u32,
    /// Name, as in config sections: `filter`, `ve-cpu`.
    pub name: *const c_char,
    /// Version of the component.
    pub version: *const c_char,
    /// The config keys it knows, a null-terminated list of strings; null for none.
    pub keys: *const *const c_char,
    /// Makes an instance. `host` and what the children's handles lead to outlive it; the array of handles itself lives
    /// only during the call, so handles that are kept must be copied.
    pub create: Option<
        unsafe extern "C" fn(
            host: *const HostTable,
            children: *const ChildHandle,
            child_count: usize,
            context: *mut *mut c_void,
            error: *mut ErrorRecord,
        ) -> Status,
    >,
    /// Ends an instance.
    pub destroy: Option<unsafe extern "C" fn(context: *mut c_void)>,
    /// Fills in what it can do. Null: what its first child can do.
    pub capabilities: Option<unsafe extern "C" fn(context: *mut c_void, capabilities: *mut Capabilities)>,
    /// Hands over the array registry of the data manager above. Called once, before any batch.
    pub bind: Option<
        unsafe extern "C" fn(context: *mut c_void, registry: *const RegistryTable, error: *mut ErrorRecord) -> Status,
    >,
    /// Can it run this block of the partition (index)? 1 yes, 0 no. Null: yes, all. Refused blocks go to the next
    /// component; a refused block of several instructions is first split into the runs it accepts.
    pub supports: Option<unsafe extern "C" fn(context: *mut c_void, batch: *const BatchTables, block: u32) -> i32>,
    /// Runs blocks of the partition in the given order (an empty list: all of them), or the whole batch in stored order
    /// if it has none. The ticket is 0 when the work is done. Only engines that are ASYNCHRONOUS and RETIRES_BLOCKS
    /// return other tickets; they poison what later fails themselves.
    pub execute: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            batch: *const BatchTables,
            blocks: *const u32,
            block_count: usize,
            ticket: *mut u64,
            error: *mut ErrorRecord,
        ) -> Status,
    >,
    /// Waits until the work behind a ticket is done, and reports its first failure.
    pub wait: Option<unsafe extern "C" fn(context: *mut c_void, ticket: u64, error: *mut ErrorRecord) -> Status>,
    /// Makes a base (or the part that `view` covers; null: all) readable or writable in host memory and returns the
    /// address of the base's element 0.
    pub map: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            base: *const Base,
            view: *const ViewSpec,
            access: u32,
            data: *mut *mut c_void,
            error: *mut ErrorRecord,
        ) -> Status,
    >,
    /// Ends a `map`.
    pub unmap: Option<unsafe extern "C" fn(context: *mut c_void, base: *const Base, error: *mut ErrorRecord) -> Status>,
    /// Takes the caller's memory as the base's data; the base is pinned to it.
    pub adopt: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            base: *const Base,
            data: *mut c_void,
            release: Option<ReleaseFn>,
            argument: *mut c_void,
            error: *mut ErrorRecord,
        ) -> Status,
    >,
    /// Forbids (`pinned` 1) or allows (0) moving the base's host memory. Counted.
    pub pin: Option<
        unsafe extern "C" fn(context: *mut c_void, base: *const Base, pinned: i32, error: *mut ErrorRecord) -> Status,
    >,
    /// Announces that `opcode` stands for the method `name`. Sets `known` to 1 if this component or one below runs it.
    pub extmethod: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            name: *const c_char,
            opcode: u16,
            known: *mut i32,
            error: *mut ErrorRecord,
        ) -> Status,
    >,
    /// A text question or command. The answer is written to `reply`, a [`ReplySink`], by the callee through
    /// `HostTable::reply`.
    pub message: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            text: *const c_char,
            reply: *mut c_void,
            error: *mut ErrorRecord,
        ) -> Status,
    >,
}

/// A child as its parent sees it: the functions of [`ComponentTable`], none null, with the host in between.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ChildHandle {
    /// The host's functions; `create` and `destroy` are null.
    pub table: *const ComponentTable,
    /// First argument of the functions.
    pub context: *mut c_void,
}

/// Where the answer to a `message` call goes; `reply` points to it. Whoever asks a child a question brings one.
#[repr(C)]
pub struct ReplySink {
    /// First argument of `append`.
    pub context: *mut c_void,
    /// Appends to the answer.
    pub append: unsafe extern "C" fn(context: *mut c_void, text: *const c_char, bytes: usize),
}

/// Levels of `HostTable::log`.
pub mod log_level {
    /// Something failed.
    pub const ERROR: u32 = 1;
    /// Something is wrong but handled.
    pub const WARN: u32 = 2;
    /// For the curious.
    pub const INFO: u32 = 3;
    /// For developers.
    pub const DEBUG: u32 = 4;
}

/// Services of the host for one component instance. All may be called from any thread.
#[repr(C)]
pub struct HostTable {
    /// Bytes of this struct, for growth.
    pub struct_size: usize,
    /// First argument of the functions.
    pub context: *mut c_void,
    /// The value of a config key of this component as text, or null if it is unset. Lists are joined by commas. The text
    /// lives as long as the instance.
    pub config: unsafe extern "C" fn(context: *mut c_void, key: *const c_char) -> *const c_char,
    /// A new base id.
    pub new_base_id: unsafe extern "C" fn(context: *mut c_void) -> u64,
    /// Host memory of at least `bytes`, aligned to 64, from the reuse cache or fresh; contents are undefined, or
    /// zero if `zeroed` is 1. Null if the memory limit would be passed or the system has none.
    pub alloc: unsafe extern "C" fn(context: *mut c_void, bytes: usize, zeroed: i32) -> *mut c_void,
    /// Gives memory back.
    pub free: unsafe extern "C" fn(context: *mut c_void, data: *mut c_void, bytes: usize),
    /// Writes a line to the log.
    pub log: unsafe extern "C" fn(context: *mut c_void, level: u32, text: *const c_char),
    /// The counter of this name, made at first use; add to it atomically. Lives as long as the instance.
    pub counter: unsafe extern "C" fn(context: *mut c_void, name: *const c_char) -> *mut u64,
    /// Nanoseconds on the clock of the trace; 0 when no trace is wanted.
    pub trace_clock: unsafe extern "C" fn(context: *mut c_void) -> u64,
    /// Records an event that lasted from `begin` (from `trace_clock`) until now, with a detail text (may be null).
    pub trace: unsafe extern "C" fn(context: *mut c_void, name: *const c_char, begin: u64, detail: *const c_char),
    /// Writes the answer to a `message` call.
    pub reply: unsafe extern "C" fn(reply: *mut c_void, text: *const c_char, bytes: usize),
}

/// A lent buffer of a base.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Buffer {
    /// Element 0 of the base in host memory, or the engine's own handle for other spaces.
    pub data: *mut c_void,
    /// Bytes.
    pub bytes: usize,
    /// The registry's name of the loan.
    pub token: u64,
}

/// The host memory space.
pub const HOST_SPACE: u32 = 0;

/// How the registry uses a copy of a base in an engine's own space. Callbacks may come during any call that the engine
/// makes to the registry, and while the engine itself is not called.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct AttachmentOps {
    /// First argument of the functions.
    pub context: *mut c_void,
    /// Copies the whole base to host memory; waits for pending work on it.
    pub to_host: unsafe extern "C" fn(
        context: *mut c_void,
        handle: *mut c_void,
        data: *mut c_void,
        bytes: usize,
        error: *mut ErrorRecord,
    ) -> Status,
    /// Gives up the copy.
    pub drop: unsafe extern "C" fn(context: *mut c_void, handle: *mut c_void),
}

/// Services of the data manager for the components below it. It alone decides which copy of a base is valid.
#[repr(C)]
pub struct RegistryTable {
    /// Bytes of this struct, for growth.
    pub struct_size: usize,
    /// First argument of the functions.
    pub context: *mut c_void,
    /// A number for the memory space of an engine, never [`HOST_SPACE`].
    pub new_space: unsafe extern "C" fn(context: *mut c_void) -> u32,
    /// Lends the base's buffer in a space. In host space it is allocated if need be, brought up to date if READ (or WRITE
    /// without DISCARD) is asked, and other spaces' copies become stale on WRITE. In another space: the attached handle if
    /// it is valid, else `data` is null (then acquire host memory, upload, and `attach`). A poisoned base returns its
    /// original error, unless DISCARD is asked.
    pub acquire: unsafe extern "C" fn(
        context: *mut c_void,
        base: *const Base,
        space: u32,
        access: u32,
        buffer: *mut Buffer,
        error: *mut ErrorRecord,
    ) -> Status,
    /// Ends a loan.
    pub release: unsafe extern "C" fn(context: *mut c_void, buffer: *const Buffer),
    /// A second, fresh host buffer for the base, for a rename. Give it to `commit_rename`, or to `release` to drop it.
    pub fresh: unsafe extern "C" fn(
        context: *mut c_void,
        base: *const Base,
        buffer: *mut Buffer,
        error: *mut ErrorRecord,
    ) -> Status,
    /// The fresh buffer becomes the base's; the old one lives until its loans and aliases end.
    pub commit_rename: unsafe extern "C" fn(
        context: *mut c_void,
        base: *const Base,
        buffer: *const Buffer,
        error: *mut ErrorRecord,
    ) -> Status,
    /// `alias` now has the content of `view` of `base`'s current buffer, without a copy: whoever needs it or changes
    /// the buffer first makes the copy.
    pub alias: unsafe extern "C" fn(
        context: *mut c_void,
        alias: *const Base,
        base: *const Base,
        view: *const ViewSpec,
        error: *mut ErrorRecord,
    ) -> Status,
    /// The engine holds the only valid copy (`exclusive` 1: it was written there) or one more (0: it was uploaded).
    pub attach: unsafe extern "C" fn(
        context: *mut c_void,
        base: *const Base,
        space: u32,
        handle: *mut c_void,
        exclusive: i32,
        operations: *const AttachmentOps,
        error: *mut ErrorRecord,
    ) -> Status,
    /// Marks a base as lost to an error. Reading it returns that error until it is fully overwritten.
    pub poison: unsafe extern "C" fn(context: *mut c_void, base: *const Base, error: *const ErrorRecord),
    /// A block is done: the manager carries out its SYNC, FREE and DISCARD instructions.
    pub block_done: unsafe extern "C" fn(context: *mut c_void, batch: *const BatchTables, block: u32),
}

/// An operand of an extension method of the user: a view in host memory.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MethodArray {
    /// Address of element (0,…,0).
    pub data: *mut c_void,
    /// Extents.
    pub shape: *const i64,
    /// Strides in elements.
    pub stride: *const i64,
    /// Dimensions; 0 for a constant.
    pub rank: u32,
    /// Element type, a `DType` discriminant.
    pub dtype: u32,
}

/// An extension method of the user: the library's function of the method's name. It must check types and shapes itself,
/// fill `error` and return a failing [`Status`] if they do not fit, and write all elements of the outputs, which overlap
/// no input. It may be called from any thread, by one at a time.
pub type MethodFn = unsafe extern "C" fn(
    outputs: *const MethodArray,
    output_count: usize,
    inputs: *const MethodArray,
    input_count: usize,
    error: *mut ErrorRecord,
) -> Status;

impl<T> Table<T> {
    /// Borrows a slice.
    pub fn new(slice: &[T]) -> Table<T> {
        Table { data: slice.as_ptr(), len: slice.len() }
    }

    /// The records.
    ///
    /// # Safety
    /// `data` must point to `len` records that live through `'a`, or `len` must be 0.
    pub unsafe fn as_slice<'a>(&self) -> &'a [T] {
        // SAFETY: promised by the caller; an empty table may have a null pointer.
        if self.len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(self.data, self.len) } }
    }
}

impl BatchTables {
    /// Describes a batch for a call.
    pub fn new(batch: &BatchRef<'_>) -> BatchTables {
        BatchTables {
            struct_size: size_of::<BatchTables>(),
            bases: Table::new(batch.bases),
            views: Table::new(batch.views),
            dims: Table::new(batch.dims),
            instrs: Table::new(batch.instrs),
            constants: Table::new(batch.constants),
            origins: Table::new(batch.origins),
            extensions: Table::new(batch.extensions),
            strings: Table::new(batch.strings),
            blocks: Table::new(batch.blocks),
            block_instrs: Table::new(batch.block_instrs),
            contracted: Table::new(batch.contracted),
            renames: Table::new(batch.renames),
            rename_views: Table::new(batch.rename_views),
        }
    }

    /// The batch.
    ///
    /// # Safety
    /// All tables must be valid and live through `'a`.
    pub unsafe fn as_ref<'a>(&self) -> BatchRef<'a> {
        // SAFETY: promised by the caller, for each table.
        unsafe {
            BatchRef {
                bases: self.bases.as_slice(),
                views: self.views.as_slice(),
                dims: self.dims.as_slice(),
                instrs: self.instrs.as_slice(),
                constants: self.constants.as_slice(),
                origins: self.origins.as_slice(),
                extensions: self.extensions.as_slice(),
                strings: self.strings.as_slice(),
                blocks: self.blocks.as_slice(),
                block_instrs: self.block_instrs.as_slice(),
                contracted: self.contracted.as_slice(),
                renames: self.renames.as_slice(),
                rename_views: self.rename_views.as_slice(),
            }
        }
    }
}
