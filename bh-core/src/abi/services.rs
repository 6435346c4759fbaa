//! What components are given: the services of the host, and those of the data manager above.

use super::{BatchTables, ErrorRecord, Status, ViewSpec};
use bh_bytecode::Base;
use std::ffi::{c_char, c_void};

/// Access modes of `map` and `acquire`, combined by or.
pub mod access {
    /// The current values are needed.
    pub const READ: u32 = 1;
    /// They will change.
    pub const WRITE: u32 = 2;
    /// None of the current values is needed: all will be overwritten. Clears poison.
    pub const DISCARD: u32 = 4;
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
