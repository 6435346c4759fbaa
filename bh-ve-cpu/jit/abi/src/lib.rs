//! The interface between the CPU engine and its kernel compiler: how a kernel is described, compiled and called.
//!
//! The compiler is a library of its own that the engine loads if it is there. It turns a [`Request`] into an [`Artifact`]:
//! position-independent machine code in an object file without undefined symbols, so that the engine can place it in
//! memory, and keep it on disk, without the compiler.

mod artifact;
mod call;
mod request;
mod wire;

pub use artifact::{Artifact, Function};
pub use bh_kernel::Stride;
pub use bh_kernel::schedule::{LANES, ROW_SETS};
pub use call::{Call, FAILURE_AT, FAILURE_LANES, Failure, JOINED, KernelFn, RESULTS_AT, SCRATCH_BYTES, TURNS_AT};
pub use request::{Divider, Folds, LONG_ROW_BYTES, Level, Near, Request, SlotForm};

/// The version of everything in this crate.
pub const VERSION: u32 = 27;

/// The name of the one symbol that the compiler exports, of type [`EntryFn`].
pub const ENTRY_SYMBOL: &str = "bh_ve_cpu_jit_entry";

/// Gives the compiler's table.
pub type EntryFn = unsafe extern "C" fn() -> *const Api;

/// The compiler's table. The first two fields stay as they are in all versions.
#[repr(C)]
pub struct Api {
    /// [`VERSION`] of the compiler.
    pub version: u32,
    /// Zero.
    pub reserved: u32,
    /// [`fingerprint`] of the compiler.
    pub fingerprint: u64,
    /// Compiles an encoded request. The result is bytes that [`Api::free`] takes back: an encoded artifact if `ok` was set
    /// to 1, else the text of an error.
    pub compile: unsafe extern "C" fn(request: *const u8, bytes: usize, ok: *mut u32, length: *mut usize) -> *mut u8,
    /// Takes back what [`Api::compile`] gave.
    pub free: unsafe extern "C" fn(data: *mut u8, length: usize),
}

/// A number that changes with the table of opcodes and with bh's version: code is exchanged between equals only.
pub fn fingerprint() -> u64 {
    let mut bytes = Vec::from(env!("CARGO_PKG_VERSION"));
    bytes.extend(VERSION.to_le_bytes());
    for opcode in bh_bytecode::Opcode::ALL {
        let info = opcode.info();
        bytes.extend(opcode.0.to_le_bytes());
        bytes.extend(info.name.bytes());
        bytes.extend(format!("{:?}{:?}{}", info.signature, info.types, info.inputs).bytes());
    }
    bh_bytecode::hash::hash_bytes(&bytes) as u64
}
