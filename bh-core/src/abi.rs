//! The component ABI: every type whose layout crosses a component boundary, except the batch records of `bh-bytecode`.
//!
//! A component is a shared library that exports one function, [`ENTRY_SYMBOL`]. The function takes the loader's ABI
//! version and returns a [`ComponentTable`] of static lifetime, or null if it cannot serve that version. Negotiation
//! calls nothing else. Components never call each other directly: each gets [`ChildHandle`]s, whose functions the host
//! implements. The host forwards calls that a component leaves out, routes blocks that an engine refuses to the next
//! component, and poisons the outputs of failed blocks.
//!
//! The contract in short (docs/engines.md numbers every obligation): calls into one component are serialised and never
//! re-entered, except for the callbacks in [`AttachmentOps`] and the calls that a capability allows; nothing unwinds
//! across; every function that can fail returns a [`Status`] and fills the [`ErrorRecord`] it was given.

mod data;
mod execution;
mod records;
mod services;
mod slots;
pub(crate) mod wire;

pub use data::{
    Adoption, AttachmentOps, Export, ExportRequest, Fresh, HOST_SPACE, HostMemory, Loan, ReleaseFn, Residency, access,
    adopt, export, fork, memory, retire,
};
pub use execution::{Evaluation, ImmediateOperation, Prediction, ReportRecord, ScalarOperation, Served};
pub use records::{BatchTables, ErrorRecord, NO_BLOCK, Status, Table, ViewSpec, status};
pub use services::{HostTable, ProgressFn, RegistryTable, ReplySink, log_level};
pub use slots::{
    CapabilitiesFn, ChildHandle, ComponentTable, CreateFn, DestroyFn, ExecuteFn, MessageFn, PredictFn, SupportsFn,
};
pub use wire::{Received, Wire, WireAnswer};

use std::ffi::c_void;

/// Version of this ABI. A component states the version it was built for; the host accepts only equal versions.
pub const ABI_VERSION: u32 = 2;

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
    /// The engine performs renames. The fuser adds renames only if the engine announces this.
    pub const RENAMES: u64 = 2;
    /// The engine calls `RegistryTable::block_done` itself, as each block ends; otherwise the host does.
    pub const RETIRES_BLOCKS: u64 = 4;
    /// `execute` may return before the work is done, with a ticket.
    pub const ASYNCHRONOUS: u64 = 8;
    /// Bound to its process: cannot be used in a forked child.
    pub const NO_FORK: u64 = 16;
    /// Calls about data (read, write, map, unmap, adopt, export, pin, prefetch, detach, residency, retire) may come
    /// from other threads, and overlap `execute`, `wait` and each other.
    pub const CONCURRENT_DATA: u64 = 32;
    /// The host must call `serve`: the component also runs in processes that do not run the program.
    pub const SERVES: u64 = 64;
    /// The host must call `progress` while engines compute and while others wait.
    pub const PROGRESS: u64 = 128;
    /// `evaluate` may be called from any thread at any time.
    pub const EVALUATES: u64 = 256;
    /// `predict` is exact.
    pub const PREDICTS: u64 = 512;
    /// The engine acquires all buffers of a block before it changes any of them, so that a block that fails because
    /// data was lost can be run again in parts. If an engine does not announce this, the host looks for such blocks
    /// beforehand.
    pub const ACQUIRES_FIRST: u64 = 1024;
    /// `immediate` may be called from any thread at any time.
    pub const IMMEDIATE: u64 = 2048;
}

/// The abilities of a component, including those of the components below that it passes up.
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
    /// Bytes of the component's own memory for arrays; 0 if it uses host memory.
    pub memory_bytes: u64,
    /// Zero.
    pub reserved_bytes: u64,
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

/// An extension method of the user: the function of the method's name in the user's library. It must check types and
/// shapes itself, fill `error` and return a failing [`Status`] if they do not fit, and write all elements of the
/// outputs, which do not overlap any input. It may be called from any thread, but calls do not overlap.
pub type MethodFn = unsafe extern "C" fn(
    outputs: *const MethodArray,
    output_count: usize,
    inputs: *const MethodArray,
    input_count: usize,
    error: *mut ErrorRecord,
) -> Status;
