//! Data: access modes, loans, copies in engines' own memory, adopted and exported memory.

use super::{ErrorRecord, Status, ViewSpec};
use bh_bytecode::Base;
pub use bh_bytecode::batch::access;
use std::ffi::c_void;

/// Kinds of memory that an application hands over or asks for.
pub mod memory {
    /// Host memory; the handle is an address.
    pub const HOST: u32 = 0;
    /// OpenCL; the handle is a `cl_mem`.
    pub const OPENCL: u32 = 1;
    /// CUDA; the handle is an address of a device's memory (`CUdeviceptr`).
    pub const CUDA: u32 = 2;
    /// Kinds from this number up belong to an engine, which agrees on them with its users.
    pub const FIRST_PRIVATE: u32 = 65536;
}

/// Modes of [`Adoption`].
pub mod adopt {
    /// The owner keeps using the memory: every operation on it is complete when the call returns.
    pub const SHARED: u32 = 0;
    /// bh owns the memory until `release`: it may move the data elsewhere, and operations stay lazy.
    pub const DONATED: u32 = 1;
    /// Neither the owner nor bh writes to the memory: writers copy first. Operations stay lazy.
    pub const IMMUTABLE: u32 = 2;
}

/// Modes of an export.
pub mod export {
    /// The current data; later writers do not change it.
    pub const SNAPSHOT: u32 = 0;
    /// As SNAPSHOT, but without a copy until somebody writes: later writers copy first.
    pub const READ_ONLY: u32 = 1;
    /// The array's own memory, which does not move; both sides write.
    pub const SHARED: u32 = 2;
}

/// Actions of `retire` on a base.
pub mod retire {
    /// Copies its data to host memory: starts the transfer, and waits for it only if the host memory must not move.
    pub const SYNC: u32 = 1;
    /// Frees its data; the base stays and reads as zeros.
    pub const FREE: u32 = 2;
    /// Removes the base.
    pub const DISCARD: u32 = 3;
}

/// The moments of a fork of the process.
pub mod fork {
    /// The process is about to fork.
    pub const BEFORE: u32 = 0;
    /// It has forked, and this is the parent.
    pub const PARENT: u32 = 1;
    /// It has forked, and this is the child.
    pub const CHILD: u32 = 2;
}

/// The host memory space.
pub const HOST_SPACE: u32 = 0;

/// Called when bh no longer uses adopted memory: on any thread, while bh holds no lock. It may not call bh.
pub type ReleaseFn = unsafe extern "C" fn(argument: *mut c_void, data: *mut c_void);

/// A lent buffer of a base; `release` ends the loan.
#[derive(Debug)]
#[repr(C)]
pub struct Loan {
    /// Element 0 of the base in host memory, or the engine's own handle for other spaces.
    pub data: *mut c_void,
    /// Bytes.
    pub bytes: usize,
    /// The registry's number for the loan, never reused; 0 if there is none.
    pub token: u64,
}

/// A second host buffer of a base for its next version, until `commit_rename` or `drop_fresh`.
#[derive(Debug)]
#[repr(C)]
pub struct Fresh {
    /// Element 0.
    pub data: *mut c_void,
    /// Bytes.
    pub bytes: usize,
    /// The registry's number for the buffer, never reused.
    pub token: u64,
}

/// Elements in host memory with their own layout: source or destination of a `read` or `write` of a view.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HostMemory {
    /// Address of the element for index (0,…,0) of the view.
    data: *mut c_void,
    /// Strides in bytes, one for each dimension of the view; may be null if there are none.
    stride: *const i64,
    /// Dimensions.
    rank: u32,
}

impl HostMemory {
    /// Elements at this address, with strides in bytes.
    ///
    /// # Safety
    /// `stride` must live as long as the value is used. For every view of this rank with the agreed extents, all
    /// elements must be valid: for writing if the value is passed to a read, for reading if it is passed to a write.
    /// They must not overlap the memory of the view's base.
    pub unsafe fn new(data: *mut u8, stride: &[i64]) -> HostMemory {
        HostMemory { data: data.cast(), stride: stride.as_ptr(), rank: stride.len() as u32 }
    }

    /// Address of the element for index (0,…,0) of the view.
    pub fn data(&self) -> *mut u8 {
        self.data.cast()
    }

    /// Strides in bytes.
    pub fn stride(&self) -> &[i64] {
        if self.rank == 0 || self.stride.is_null() {
            return &[];
        }
        // SAFETY: `HostMemory::new` asks that the strides, which were `rank` ones, live while the value is used.
        unsafe { std::slice::from_raw_parts(self.stride, self.rank as usize) }
    }
}

/// Memory that the application gives to a base.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Adoption {
    /// Bytes of this struct, for growth.
    struct_size: usize,
    /// Address of element 0, or the handle of a device's memory.
    data: *mut c_void,
    /// A value of [`adopt`].
    mode: u32,
    /// A value of [`memory`].
    memory: u32,
    /// Called when the memory is no longer used, or null.
    release: Option<ReleaseFn>,
    /// First argument of `release`.
    argument: *mut c_void,
}

// SAFETY: the pointers are only passed on, and `release` may be called from any thread.
unsafe impl Send for Adoption {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Adoption {}

impl Adoption {
    /// Memory of a kind ([`memory`]), adopted in a mode ([`adopt`]).
    ///
    /// # Safety
    /// The value must be given to one base only, once. `data` must hold all elements of that base and stay valid, as
    /// the mode requires, until `release` is called with `argument` and `data`; `release` must work on any thread.
    pub unsafe fn new(
        data: *mut c_void,
        mode: u32,
        memory: u32,
        release: Option<ReleaseFn>,
        argument: *mut c_void,
    ) -> Adoption {
        Adoption { struct_size: size_of::<Adoption>(), data, mode, memory, release, argument }
    }

    /// Address of element 0, or the handle of a device's memory.
    pub fn data(&self) -> *mut c_void {
        self.data
    }

    /// A value of [`adopt`].
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// A value of [`memory`].
    pub fn memory(&self) -> u32 {
        self.memory
    }

    /// The function to call when the memory is no longer used, and its first argument.
    pub fn release(&self) -> (Option<ReleaseFn>, *mut c_void) {
        (self.release, self.argument)
    }
}

impl ExportRequest {
    /// An export in a mode ([`export`]) for an application that can use a kind of memory ([`memory`]).
    pub fn new(mode: u32, memory: u32) -> ExportRequest {
        ExportRequest { struct_size: size_of::<ExportRequest>(), mode, memory }
    }
}

/// The requested form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ExportRequest {
    /// Bytes of this struct, for growth.
    pub struct_size: usize,
    /// A value of [`export`].
    pub mode: u32,
    /// A value of [`memory`]: the kind of memory that the application can use.
    pub memory: u32,
}

/// Memory of bh that the application uses until `end_export`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Export {
    /// Address of element 0, or the handle of a device's memory.
    pub data: *mut c_void,
    /// Bytes.
    pub bytes: usize,
    /// The number of the export, never reused.
    pub token: u64,
}

/// Where the data of a base is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Residency {
    /// 1 if host memory holds the current values.
    pub host: u32,
    /// How many spaces of engines hold them.
    pub spaces: u32,
    /// The space of an engine that holds them: if several do, the one that wrote them; 0 if none does.
    pub space: u32,
    /// 1 if the base is an alias of a part of another base that has not been copied yet.
    pub alias: u32,
    /// 1 if the values were lost to an error.
    pub lost: u32,
    /// Zero.
    pub reserved: [u32; 3],
}

/// How the registry uses a copy of a base in an engine's own space. Callbacks may come from any thread, also during the
/// engine's own calls to the registry, and while the engine itself is idle. Each waits only for pending work on its
/// copy. The registry replaces null functions by others: a read of a view by `to_host`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct AttachmentOps {
    /// Bytes of this struct, for growth.
    pub struct_size: usize,
    /// First argument of the functions.
    pub context: *mut c_void,
    /// Copies the whole base to host memory. Never null.
    pub to_host: unsafe extern "C" fn(
        context: *mut c_void,
        handle: *mut c_void,
        data: *mut c_void,
        bytes: usize,
        error: *mut ErrorRecord,
    ) -> Status,
    /// Drops the copy. Never null.
    pub drop: unsafe extern "C" fn(context: *mut c_void, handle: *mut c_void),
    /// Copies the elements of a view to host memory.
    pub read: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            handle: *mut c_void,
            base: *const Base,
            view: *const ViewSpec,
            memory: *const HostMemory,
            error: *mut ErrorRecord,
        ) -> Status,
    >,
    /// Overwrites the elements of a view from host memory.
    pub write: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            handle: *mut c_void,
            base: *const Base,
            view: *const ViewSpec,
            memory: *const HostMemory,
            error: *mut ErrorRecord,
        ) -> Status,
    >,
    /// Starts moving the elements of a view (null: all) to where a later `read` or `to_host` finds them soon.
    pub prefetch: Option<
        unsafe extern "C" fn(context: *mut c_void, handle: *mut c_void, base: *const Base, view: *const ViewSpec),
    >,
    /// Copies the elements of a view, dense in C order, within the same space and stores the handle in `copy`. The same
    /// `drop` frees it.
    pub clone: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            handle: *mut c_void,
            base: *const Base,
            view: *const ViewSpec,
            copy: *mut *mut c_void,
            error: *mut ErrorRecord,
        ) -> Status,
    >,
}
