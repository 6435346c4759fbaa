//! Calls of foreign functions, which must not unwind but may: the process then ends with a message that names them.

use crate::abi::{AttachmentOps, ErrorRecord, HostMemory, Status, ViewSpec};
use bh_bytecode::Base;
use std::ffi::{CStr, c_void};

/// The owner of the called function.
#[derive(Clone, Copy)]
pub(crate) enum Callee<'a> {
    /// A component, by its name.
    Component(&'a str),
    /// The library that contains this function.
    LibraryOf(*const ()),
}

/// Ends the process with a message that names the callee, if a call unwinds instead of returning: a C++ exception
/// cannot be caught here, and the state that it leaves cannot be trusted.
pub(crate) struct Returns<'a> {
    pub(crate) callee: Callee<'a>,
    pub(crate) slot: &'static str,
}

impl Drop for Returns<'_> {
    fn drop(&mut self) {
        let slot = self.slot;
        let whose = match self.callee {
            Callee::Component(name) => format!("component '{name}'"),
            Callee::LibraryOf(function) => format!("library '{}'", library_of(function)),
        };
        eprintln!("bh: error: {whose} let an exception out of '{slot}'; the process ends");
        std::process::abort();
    }
}

/// The file that a function was loaded from.
fn library_of(function: *const ()) -> String {
    // SAFETY: `dladdr` fills the record for any address; the name in it stays valid.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let found = libc::dladdr(function.cast(), &mut info) != 0 && !info.dli_fname.is_null();
        if found { CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned() } else { "?".to_owned() }
    }
}

/// Calls a foreign function, which may unwind although it must not.
macro_rules! enter {
    ($callee:expr, $slot:expr, $function:expr => fn($($argument:expr => $kind:ty),* $(,)?) $(-> $result:ty)?) => {{
        // SAFETY: a function of this type; `C-unwind` does not change how it is called.
        let function: unsafe extern "C-unwind" fn($($kind),*) $(-> $result)? = std::mem::transmute($function);
        let returns = Returns { callee: $callee, slot: $slot };
        let result = function($($argument),*);
        std::mem::forget(returns);
        result
    }};
}
pub(crate) use enter;

/// A function that moves elements of a view between a copy and host memory.
type TransferFn = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *const Base,
    *const ViewSpec,
    *const HostMemory,
    *mut ErrorRecord,
) -> Status;

/// Calls of an engine's functions for a copy in its own space. Functions that it leaves out return `None`.
///
/// # Safety
/// For all of them: `handle` must be a copy that was attached with these functions, and for which `drop` has not been
/// called yet.
impl AttachmentOps {
    /// Copies the whole base to host memory.
    ///
    /// # Safety
    /// `handle` must be as described for all; `data` must be writable for `bytes` bytes, the size of the base.
    pub unsafe fn call_to_host(
        &self,
        handle: *mut c_void,
        data: *mut c_void,
        bytes: usize,
        error: &mut ErrorRecord,
    ) -> Status {
        // SAFETY: the function belongs to the copy, which is attached, and `data` is writable for the base's `bytes`,
        // as `# Safety` asks; the record lives through the call.
        unsafe {
            enter!(Callee::LibraryOf(self.to_host as *const ()), "to_host", self.to_host => fn(
                self.context => *mut c_void,
                handle => *mut c_void,
                data => *mut c_void,
                bytes => usize,
                error => *mut ErrorRecord,
            ) -> Status)
        }
    }

    /// Drops the copy.
    ///
    /// # Safety
    /// `handle` must be as described for all, and must not be used afterwards.
    pub unsafe fn call_drop(&self, handle: *mut c_void) {
        // SAFETY: the function belongs to the copy, which is attached, and this is its last use, as `# Safety` asks.
        unsafe {
            enter!(Callee::LibraryOf(self.drop as *const ()), "drop", self.drop => fn(
                self.context => *mut c_void,
                handle => *mut c_void,
            ))
        }
    }

    /// Copies the elements of a view to host memory.
    ///
    /// # Safety
    /// `handle` must be as described for all. `base` must be the copy's, `view` must describe a view inside it, with
    /// `rank` extents and strides, and `memory` must be writable for its elements.
    pub unsafe fn call_read(
        &self,
        handle: *mut c_void,
        base: &Base,
        view: &ViewSpec,
        memory: &HostMemory,
        error: &mut ErrorRecord,
    ) -> Option<Status> {
        let operands = (handle, base, view, memory);
        // SAFETY: the contract of `transfer` is that of `# Safety`, and this function writes to `memory`.
        self.read.map(|read| unsafe { self.transfer(read, "read", operands, error) })
    }

    /// Overwrites the elements of a view from host memory.
    ///
    /// # Safety
    /// `handle` must be as described for all. `base` must be the copy's, `view` must describe a view inside it, with
    /// `rank` extents and strides, and `memory` must be readable for its elements.
    pub unsafe fn call_write(
        &self,
        handle: *mut c_void,
        base: &Base,
        view: &ViewSpec,
        memory: &HostMemory,
        error: &mut ErrorRecord,
    ) -> Option<Status> {
        let operands = (handle, base, view, memory);
        // SAFETY: the contract of `transfer` is that of `# Safety`, and this function reads from `memory`.
        self.write.map(|write| unsafe { self.transfer(write, "write", operands, error) })
    }

    /// Moves elements of a view between the copy and host memory.
    ///
    /// # Safety
    /// `function` must be the `read` or `write` of `self`, and the other arguments must satisfy
    /// [`AttachmentOps::call_read`] or [`AttachmentOps::call_write`].
    unsafe fn transfer(
        &self,
        function: TransferFn,
        slot: &'static str,
        (handle, base, view, memory): (*mut c_void, &Base, &ViewSpec, &HostMemory),
        error: &mut ErrorRecord,
    ) -> Status {
        // SAFETY: the function belongs to the copy, which is attached, and base, view and memory fit it, as `# Safety`
        // asks; the references live through the call.
        unsafe {
            enter!(Callee::LibraryOf(function as *const ()), slot, function => fn(
                self.context => *mut c_void,
                handle => *mut c_void,
                base => *const Base,
                view => *const ViewSpec,
                memory => *const HostMemory,
                error => *mut ErrorRecord,
            ) -> Status)
        }
    }

    /// Starts moving the elements of a view (null: all) to where a read finds them soon.
    ///
    /// # Safety
    /// `handle` must be as described for all. `base` must be the copy's, and `view` must be null or describe a view
    /// inside it, with `rank` extents and strides.
    pub unsafe fn call_prefetch(&self, handle: *mut c_void, base: &Base, view: *const ViewSpec) {
        let Some(prefetch) = self.prefetch else { return };
        // SAFETY: the function belongs to the copy, which is attached, and `view` is null or a view of it, as `#
        // Safety` asks; the references live through the call.
        unsafe {
            enter!(Callee::LibraryOf(prefetch as *const ()), "prefetch", prefetch => fn(
                self.context => *mut c_void,
                handle => *mut c_void,
                base => *const Base,
                view => *const ViewSpec,
            ))
        }
    }

    /// Copies the elements of a view within the same space.
    ///
    /// # Safety
    /// `handle` must be as described for all. `base` must be the copy's, and `view` must describe a view inside it,
    /// with `rank` extents and strides.
    pub unsafe fn call_clone(
        &self,
        handle: *mut c_void,
        base: &Base,
        view: &ViewSpec,
        copy: &mut *mut c_void,
        error: &mut ErrorRecord,
    ) -> Option<Status> {
        let clone = self.clone?;
        // SAFETY: the function belongs to the copy, which is attached, and the view is one of it, as `# Safety` asks;
        // the references live through the call.
        Some(unsafe {
            enter!(Callee::LibraryOf(clone as *const ()), "clone", clone => fn(
                self.context => *mut c_void,
                handle => *mut c_void,
                base => *const Base,
                view => *const ViewSpec,
                copy => *mut *mut c_void,
                error => *mut ErrorRecord,
            ) -> Status)
        })
    }
}
