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

mod records;
mod services;

pub use records::{BatchTables, ErrorRecord, NO_BLOCK, Status, Table, ViewSpec, status};
pub use services::{AttachmentOps, Buffer, HOST_SPACE, HostTable, RegistryTable, ReplySink, access, log_level};

use bh_bytecode::Base;
use std::ffi::{c_char, c_void};

/// Version of this ABI. A component states the version it was built for; the host accepts only equal versions.
pub const ABI_VERSION: u32 = 1;

/// The one exported symbol of a component: `const ComponentTable *bh_component_entry(uint32_t loader_version)`. A library
/// that links other components' code may instead export it under its own file name, `<file stem>_component_entry`.
pub const ENTRY_SYMBOL: &str = "bh_component_entry";

/// Type of the entry function.
pub type EntryFn = unsafe extern "C" fn(loader_version: u32) -> *const ComponentTable;

/// Values of [`ComponentTable::kind`].
pub mod kind {
    /// Rewrites batches.
    pub const FILTER: u32 = 1;
    /// Adds the kernel partition.
    pub const FUSER: u32 = 2;
    /// Manages data (and may have several children).
    pub const DATA_MANAGER: u32 = 3;
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
