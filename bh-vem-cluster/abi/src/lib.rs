//! The C interface between the cluster manager and its transport libraries: one table of functions.

use std::ffi::{c_char, c_void};

/// The version of the interface. Libraries of another version are refused.
pub const VERSION: u32 = 3;

/// The function that a transport library exports, of type [`OpenFn`].
pub const OPEN_SYMBOL: &str = "bh_cluster_transport_open";

/// Return codes of the functions.
pub mod outcome {
    /// Done.
    pub const OK: i32 = 0;
    /// Failed; `error` returns the text.
    pub const FAILED: i32 = 1;
    /// Rank 0's process has ended, so no more messages will arrive.
    pub const ENDED: i32 = 2;
}

/// Options for joining the other processes.
#[repr(C)]
pub struct OpenOptions {
    /// A Fortran handle of the program's communicator; null for all processes of the launcher.
    pub communicator: *const i32,
    /// The most bytes per call of the message library; longer messages are sent in parts.
    pub part_bytes: usize,
}

/// Starts this process's transport, or returns the one that was started before. Null after a failure, with a
/// NUL-terminated text in `error`, cut to `capacity` bytes.
pub type OpenFn = unsafe extern "C" fn(
    version: u32,
    options: *const OpenOptions,
    error: *mut c_char,
    capacity: usize,
) -> *const TransportTable;

/// Releases the bytes of a message after it has been sent.
pub type ReleaseFn = unsafe extern "C" fn(owner: *mut c_void);

/// A transport. The table lives as long as the process. Any thread may call its functions, one at a time.
#[repr(C)]
pub struct TransportTable {
    /// Bytes of this struct, so that slots can be appended.
    pub struct_size: usize,
    /// The number of processes.
    pub ranks: u32,
    /// This process's number.
    pub rank: u32,
    /// 1 if the program initialised the message library and will finalise it.
    pub borrowed: u32,
    /// Name and version of the message library.
    pub library: *const c_char,
    /// First argument of the functions.
    pub context: *mut c_void,
    /// Sends a message without waiting for the receiver. Its bytes live until `release` is called with `owner`.
    pub send: unsafe extern "C" fn(
        context: *mut c_void,
        to: u32,
        data: *const u8,
        bytes: usize,
        owner: *mut c_void,
        release: ReleaseFn,
    ) -> i32,
    /// Posts a receive: the next message from a process has `bytes` bytes, and arrives directly at `data`. `receive`
    /// must follow, without `take`. The memory must live until `receive` has returned `OK`, or for ever. One receive
    /// per process may be posted at a time.
    pub expect: unsafe extern "C" fn(context: *mut c_void, from: u32, data: *mut u8, bytes: usize) -> i32,
    /// Waits for the next message from a process, and returns its length.
    pub receive: unsafe extern "C" fn(context: *mut c_void, from: u32, bytes: *mut usize) -> i32,
    /// Copies the message that `receive` has reported.
    pub take: unsafe extern "C" fn(context: *mut c_void, data: *mut u8, bytes: usize) -> i32,
    /// Waits until all sent messages have left.
    pub flush: unsafe extern "C" fn(context: *mut c_void) -> i32,
    /// The text of the last failure, NUL-terminated and cut to `capacity` bytes.
    pub error: unsafe extern "C" fn(context: *mut c_void, text: *mut c_char, capacity: usize),
    /// Prints a message and ends all processes.
    pub abort: unsafe extern "C" fn(context: *mut c_void, text: *const c_char),
    /// Sets the exit code of this process, which is about to end, and of all others.
    pub end_with: unsafe extern "C" fn(context: *mut c_void, code: i32),
}

// SAFETY: the table is immutable, and its functions may be called from any thread.
unsafe impl Sync for TransportTable {}
// SAFETY: the table is immutable, and its functions may be called from any thread.
unsafe impl Send for TransportTable {}
