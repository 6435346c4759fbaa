//! The services that components get: those of the host, and those of the data manager above.

use super::{AttachmentOps, BatchTables, ErrorRecord, Fresh, HostMemory, Loan, Residency, Status, ViewSpec};
use bh_bytecode::Base;
use std::ffi::{c_char, c_void};

/// The destination of the answer to a `message` call; `reply` points to it. The caller provides it.
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
    /// Progress of interest to users.
    pub const INFO: u32 = 3;
    /// Details for developers.
    pub const DEBUG: u32 = 4;
}

/// Services of the host for one component instance. All may be called from any thread.
#[repr(C)]
pub struct HostTable {
    /// Bytes of this struct, for growth.
    pub struct_size: usize,
    /// First argument of the functions.
    pub context: *mut c_void,
    /// The value of a config key of this component as text, or null if it is unset. Lists are joined by commas. The
    /// text lives as long as the instance.
    pub config: unsafe extern "C" fn(context: *mut c_void, key: *const c_char) -> *const c_char,
    /// A new base id.
    pub new_base_id: unsafe extern "C" fn(context: *mut c_void) -> u64,
    /// Host memory of at least `bytes`, aligned to 64, from the reuse cache or fresh; contents are undefined, or zero
    /// if `zeroed` is 1. Null if it would exceed the memory limit, or if the system has no memory.
    pub alloc: unsafe extern "C" fn(context: *mut c_void, bytes: usize, zeroed: i32) -> *mut c_void,
    /// Gives memory back.
    pub free: unsafe extern "C" fn(context: *mut c_void, data: *mut c_void, bytes: usize),
    /// Writes a line to the log.
    pub log: unsafe extern "C" fn(context: *mut c_void, level: u32, text: *const c_char),
    /// The counter of this name, created at first use; add to it atomically. Lives as long as the instance.
    pub counter: unsafe extern "C" fn(context: *mut c_void, name: *const c_char) -> *mut u64,
    /// Nanoseconds on the clock of the trace; 0 if tracing is off.
    pub trace_clock: unsafe extern "C" fn(context: *mut c_void) -> u64,
    /// Records an event that lasted from `begin` (from `trace_clock`) until now, with a detail (may be null): a text,
    /// or a JSON object, whose entries become the arguments of the event.
    pub trace: unsafe extern "C" fn(context: *mut c_void, name: *const c_char, begin: u64, detail: *const c_char),
    /// Writes the answer to a `message` call.
    pub reply: unsafe extern "C" fn(reply: *mut c_void, text: *const c_char, bytes: usize),
    /// Lets components that announce PROGRESS handle their messages: engines call it between chunks of a long
    /// computation, a few thousand times a second at most, on the thread that called `execute`. Cheap if no component
    /// wants it.
    pub progress: unsafe extern "C" fn(context: *mut c_void),
    /// Sets the function that `progress` calls in all components of the stack; null for none. Only one component may do
    /// it.
    pub set_progress: unsafe extern "C" fn(context: *mut c_void, function: Option<ProgressFn>, argument: *mut c_void),
    /// The application's own handle of this name, given when the context was created, or null: `opencl.context` (a
    /// `cl_context`), `opencl.queue` (a `cl_command_queue`).
    pub handle: unsafe extern "C" fn(context: *mut c_void, name: *const c_char) -> *mut c_void,
    /// Bytes that `alloc` can still return before the memory limit; the largest number if there is no limit.
    pub memory_left: unsafe extern "C" fn(context: *mut c_void) -> u64,
    /// Records an event of a device from `begin` to `end`, on the clock of the trace, on the device's own row of this
    /// number. The detail may be null.
    pub trace_device: unsafe extern "C" fn(
        context: *mut c_void,
        name: *const c_char,
        row: u64,
        begin: u64,
        end: u64,
        detail: *const c_char,
    ),
}

/// The function that `HostTable::progress` calls. It may not call components.
pub type ProgressFn = unsafe extern "C" fn(argument: *mut c_void);

/// Services of the data manager for the components below it. Only the data manager decides which copy of a base is
/// valid.
#[repr(C)]
pub struct RegistryTable {
    /// Bytes of this struct, for growth.
    pub struct_size: usize,
    /// First argument of the functions.
    pub context: *mut c_void,
    /// A number for the memory space of an engine, never [`HOST_SPACE`].
    pub new_space: unsafe extern "C" fn(context: *mut c_void) -> u32,
    /// Lends the base's buffer in a space. In host space the buffer is allocated if necessary, updated if READ (or
    /// WRITE without DISCARD) is requested, and WRITE makes other spaces' copies stale. In another space: the attached
    /// handle if it is valid, else `data` is null (then acquire host memory, upload, and `attach`). A poisoned base
    /// returns its original error, unless DISCARD is requested.
    pub acquire: unsafe extern "C" fn(
        context: *mut c_void,
        base: *const Base,
        space: u32,
        access: u32,
        loan: *mut Loan,
        error: *mut ErrorRecord,
    ) -> Status,
    /// Ends a loan. A token without a current loan is refused and counted.
    pub release: unsafe extern "C" fn(context: *mut c_void, loan: *const Loan),
    /// A second, fresh host buffer for the base, for a rename. Pass it to `commit_rename` or `drop_fresh`.
    pub fresh: unsafe extern "C" fn(
        context: *mut c_void,
        base: *const Base,
        fresh: *mut Fresh,
        error: *mut ErrorRecord,
    ) -> Status,
    /// Drops a fresh buffer that is not needed.
    pub drop_fresh: unsafe extern "C" fn(context: *mut c_void, fresh: *const Fresh),
    /// Makes the fresh buffer the base's; the old one lives until its loans and aliases end. Fails only if the buffer
    /// does not come from `fresh`; it consumes the buffer in any case.
    pub commit_rename: unsafe extern "C" fn(
        context: *mut c_void,
        base: *const Base,
        fresh: *const Fresh,
        error: *mut ErrorRecord,
    ) -> Status,
    /// Gives `alias` the content of `view` of `base`'s current data, in the same place, without a copy. The first use
    /// that needs a copy, or the first change of the data, makes it; in a space with the attachment's `clone`.
    pub alias: unsafe extern "C" fn(
        context: *mut c_void,
        alias: *const Base,
        base: *const Base,
        view: *const ViewSpec,
        error: *mut ErrorRecord,
    ) -> Status,
    /// Registers the engine's copy: the only valid one (`exclusive` 1: the engine wrote it) or one more (0: the engine
    /// uploaded it). A handle that replaces another one of this space is the next version of the base, as after a
    /// rename.
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
    /// Reports that a block is done: the manager performs its SYNC, FREE and DISCARD instructions.
    pub block_done: unsafe extern "C" fn(context: *mut c_void, batch: *const BatchTables, block: u32),
    /// Performs SYNC, FREE or DISCARD (a `retire` value) on one base, possibly after the batch has ended. SYNC starts a
    /// transfer and does not wait.
    pub retire:
        unsafe extern "C" fn(context: *mut c_void, base: *const Base, action: u32, error: *mut ErrorRecord) -> Status,
    /// Evicts a base from a space to make room; data that exists only there is copied back first. Fails with status 402
    /// while a copy is on loan.
    pub detach:
        unsafe extern "C" fn(context: *mut c_void, base: *const Base, space: u32, error: *mut ErrorRecord) -> Status,
    /// Where the base's data is.
    pub residency: unsafe extern "C" fn(context: *mut c_void, base: *const Base, residency: *mut Residency),
    /// Copies the elements of a view to host memory from their current place, and no others.
    pub read: unsafe extern "C" fn(
        context: *mut c_void,
        base: *const Base,
        view: *const ViewSpec,
        memory: *const HostMemory,
        error: *mut ErrorRecord,
    ) -> Status,
    /// Overwrites the elements of a view from host memory, in their current place.
    pub write: unsafe extern "C" fn(
        context: *mut c_void,
        base: *const Base,
        view: *const ViewSpec,
        memory: *const HostMemory,
        error: *mut ErrorRecord,
    ) -> Status,
}
