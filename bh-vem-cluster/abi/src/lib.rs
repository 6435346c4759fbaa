//! What the cluster manager and the libraries that move its messages agree on: one table of C functions.

use std::ffi::{c_char, c_void};

/// The version of this agreement; a library of another one is refused.
pub const VERSION: u32 = 3;

/// The function that a transport library exports, of type [`OpenFn`].
pub const OPEN_SYMBOL: &str = "bh_cluster_transport_open";

/// Outcomes of the functions.
pub mod outcome {
    /// Done.
    pub const OK: i32 = 0;
    /// It failed; `error` has the text.
    pub const FAILED: i32 = 1;
    /// Rank 0's process has ended: there will be no more messages.
    pub const ENDED: i32 = 2;
}

/// How a process joins the others.
#[repr(C)]
pub struct OpenOptions {
    /// Null for all processes that the launcher started, or a Fortran handle of the program's own communicator.
    pub communicator: *const i32,
    /// The most bytes that one call of the message library gets; longer messages are parted.
    pub part_bytes: usize,
}

/// Starts the transport of this process, or returns the one that was started before. Null is returned after a failure,
/// whose text is written to `error`, NUL-terminated and cut to `capacity` bytes.
pub type OpenFn = unsafe extern "C" fn(
    version: u32,
    options: *const OpenOptions,
    error: *mut c_char,
    capacity: usize,
) -> *const TransportTable;

/// Gives back the bytes of a message that has left.
pub type ReleaseFn = unsafe extern "C" fn(owner: *mut c_void);

/// A transport. The table lives as long as the process; its functions may be called from any thread, by one at a time.
#[repr(C)]
pub struct TransportTable {
    /// Bytes of this struct, for growth.
    pub struct_size: usize,
    /// How many processes there are.
    pub ranks: u32,
    /// Which of them this is.
    pub rank: u32,
    /// 1 if the program initialised the message library, and ends it.
    pub borrowed: u32,
    /// Name and version of the library behind it.
    pub library: *const c_char,
    /// First argument of the functions.
    pub context: *mut c_void,
    /// Sends a message, whose bytes live until `release` is called with `owner`. Does not wait for the receiver.
    pub send: unsafe extern "C" fn(
        context: *mut c_void,
        to: u32,
        data: *const u8,
        bytes: usize,
        owner: *mut c_void,
        release: ReleaseFn,
    ) -> i32,
    /// The next message from a process will have this many bytes: they go to `data` as soon as they come, so that nothing waits
    /// for `receive`, which follows; `take` does not. The memory must live until `receive` has returned `OK`, or for ever.
    /// Nothing else is expected from this process until then.
    pub expect: unsafe extern "C" fn(context: *mut c_void, from: u32, data: *mut u8, bytes: usize) -> i32,
    /// Waits for the next message from a process and says how long it is.
    pub receive: unsafe extern "C" fn(context: *mut c_void, from: u32, bytes: *mut usize) -> i32,
    /// Copies the message that was received last.
    pub take: unsafe extern "C" fn(context: *mut c_void, data: *mut u8, bytes: usize) -> i32,
    /// Waits until all that was sent has left.
    pub flush: unsafe extern "C" fn(context: *mut c_void) -> i32,
    /// The text of the last failure, NUL-terminated and cut to `capacity` bytes.
    pub error: unsafe extern "C" fn(context: *mut c_void, text: *mut c_char, capacity: usize),
    /// Prints a message and ends all processes.
    pub abort: unsafe extern "C" fn(context: *mut c_void, text: *const c_char),
    /// This process, which is about to end by itself, is to end with another code than it would, and all others with it.
    pub end_with: unsafe extern "C" fn(context: *mut c_void, code: i32),
}

// SAFETY: the functions may be called from any thread.
unsafe impl Sync for TransportTable {}
// SAFETY: as above.
unsafe impl Send for TransportTable {}
