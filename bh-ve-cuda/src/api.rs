//! The functions of NVIDIA's driver that the engine calls, and what they need: a context that is current, and errors in words.

use crate::library::{Handle, functions, open};
use bh_core::abi::status;
use bh_core::{Error, Result};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// An address in the memory of a device.
pub(crate) type Address = u64;

/// A copy of rows, as the driver wants it (`CUDA_MEMCPY2D`).
#[repr(C)]
#[allow(dead_code, reason = "the driver reads them")]
pub(crate) struct Rows {
    pub(crate) from_x: usize,
    pub(crate) from_y: usize,
    pub(crate) from_kind: c_uint,
    pub(crate) from_host: *const c_void,
    pub(crate) from_device: Address,
    pub(crate) from_array: *mut c_void,
    pub(crate) from_pitch: usize,
    pub(crate) to_x: usize,
    pub(crate) to_y: usize,
    pub(crate) to_kind: c_uint,
    pub(crate) to_host: *mut c_void,
    pub(crate) to_device: Address,
    pub(crate) to_array: *mut c_void,
    pub(crate) to_pitch: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// The devices that may use a pool of memory, as the driver wants it (`CUmemAccessDesc`).
#[repr(C)]
#[allow(dead_code, reason = "the driver reads them")]
pub(crate) struct Access {
    /// `CU_MEM_LOCATION_TYPE_DEVICE`.
    pub(crate) kind: c_uint,
    pub(crate) device: c_int,
    /// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
    pub(crate) rights: c_uint,
}

functions! {
    /// The driver's functions.
    Functions {
        init: "cuInit"(c_uint);
        version: "cuDriverGetVersion"(*mut c_int);
        error_name: "cuGetErrorName"(c_int, *mut *const c_char);
        error_text: "cuGetErrorString"(c_int, *mut *const c_char);
        device_count: "cuDeviceGetCount"(*mut c_int);
        device: "cuDeviceGet"(*mut c_int, c_int);
        device_name: "cuDeviceGetName"(*mut c_char, c_int, c_int);
        device_bytes: "cuDeviceTotalMem_v2"(*mut usize, c_int);
        device_fact: "cuDeviceGetAttribute"(*mut c_int, c_int, c_int);
        retain: "cuDevicePrimaryCtxRetain"(*mut Handle, c_int);
        release: "cuDevicePrimaryCtxRelease_v2"(c_int);
        current: "cuCtxGetCurrent"(*mut Handle);
        push: "cuCtxPushCurrent_v2"(Handle);
        pop: "cuCtxPopCurrent_v2"(*mut Handle);
        wait_for_all: "cuCtxSynchronize"();
        stream: "cuStreamCreate"(*mut Handle, c_uint);
        end_stream: "cuStreamDestroy_v2"(Handle);
        wait_for_stream: "cuStreamSynchronize"(Handle);
        event: "cuEventCreate"(*mut Handle, c_uint);
        end_event: "cuEventDestroy_v2"(Handle);
        record: "cuEventRecord"(Handle, Handle);
        ask: "cuEventQuery"(Handle);
        wait_in: "cuStreamWaitEvent"(Handle, Handle, c_uint);
        wait: "cuEventSynchronize"(Handle);
        elapsed: "cuEventElapsedTime"(*mut f32, Handle, Handle);
        allocate: "cuMemAlloc_v2"(*mut Address, usize);
        free: "cuMemFree_v2"(Address);
        allocate_in: "cuMemAllocAsync"(*mut Address, usize, Handle);
        free_in: "cuMemFreeAsync"(Address, Handle);
        range: "cuMemGetAddressRange_v2"(*mut Address, *mut usize, Address);
        pointer_fact: "cuPointerGetAttribute"(*mut c_void, c_int, Address);
        host: "cuMemHostAlloc"(*mut *mut c_void, usize, c_uint);
        free_host: "cuMemFreeHost"(*mut c_void);
        upload: "cuMemcpyHtoDAsync_v2"(Address, *const c_void, usize, Handle);
        download: "cuMemcpyDtoHAsync_v2"(*mut c_void, Address, usize, Handle);
        copy: "cuMemcpyDtoDAsync_v2"(Address, Address, usize, Handle);
        copy_rows: "cuMemcpy2DAsync_v2"(*const Rows, Handle);
        copy_peer: "cuMemcpyPeerAsync"(Address, Handle, Address, Handle, usize, Handle);
        reaches: "cuDeviceCanAccessPeer"(*mut c_int, c_int, c_int);
        open_peer: "cuCtxEnablePeerAccess"(Handle, c_uint);
        pool: "cuDeviceGetDefaultMemPool"(*mut Handle, c_int);
        open_pool: "cuMemPoolSetAccess"(Handle, *const Access, usize);
        fill: "cuMemsetD32Async"(Address, c_uint, usize, Handle);
        module: "cuModuleLoadData"(*mut Handle, *const c_void);
        end_module: "cuModuleUnload"(Handle);
        kernel: "cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
        launch: "cuLaunchKernel"(
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
        );
    }
}

/// `CUDA_ERROR_OUT_OF_MEMORY`, `CUDA_ERROR_NO_DEVICE` and `CUDA_ERROR_NOT_READY`.
const OUT_OF_MEMORY: c_int = 2;
const NO_DEVICE: c_int = 100;
pub(crate) const NOT_READY: c_int = 600;

/// The driver, initialised; the error says in one sentence why there is none.
pub(crate) fn functions() -> Result<&'static Functions> {
    static FOUND: OnceLock<std::result::Result<Functions, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let Some((library, file)) = open("cuda", &[1]) else {
            return Err("no NVIDIA driver is installed (libcuda.so.1)".to_owned());
        };
        // SAFETY: the library is NVIDIA's driver, and stays loaded.
        let functions = unsafe { Functions::of(&library) };
        std::mem::forget(library);
        let functions = functions.map_err(|why| format!("the NVIDIA driver ({file}) is too old: {why}"))?;
        // SAFETY: the number is 0, as it must be.
        match unsafe { (functions.init)(0) } {
            0 => Ok(functions),
            NO_DEVICE => Err("the NVIDIA driver finds no device".to_owned()),
            code => Err(format!("the NVIDIA driver cannot be used: {}", said(&functions, code))),
        }
    });
    found.as_ref().map_err(|text| Error::new(status::DEVICE, text.as_str()))
}

/// A status in words.
fn said(functions: &Functions, code: c_int) -> String {
    let text = |read: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int| {
        let mut text = std::ptr::null();
        // SAFETY: `text` takes the address of a text that is constant, or null.
        unsafe {
            read(code, &mut text);
            if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
        }
    };
    match (text(functions.error_name), text(functions.error_text)) {
        (name, _) if name.is_empty() => format!("status {code}"),
        (name, text) => format!("{name} ({text})"),
    }
}

impl Functions {
    /// The error of a call that failed.
    pub(crate) fn check(&self, what: &str, code: c_int) -> Result<()> {
        match code {
            0 => Ok(()),
            OUT_OF_MEMORY => Err(Error::new(status::MEMORY, format!("CUDA: {what} failed: {}", said(self, code)))),
            _ => Err(Error::new(status::DEVICE, format!("CUDA: {what} failed: {}", said(self, code)))),
        }
    }
}

/// The context of a device that all libraries of a process share.
pub(crate) struct Context {
    pub(crate) functions: &'static Functions,
    pub(crate) device: c_int,
    pub(crate) handle: Handle,
}

impl Context {
    /// That of a device, which it keeps.
    pub(crate) fn new(device: c_int) -> Result<Context> {
        let functions = functions()?;
        let mut handle = Handle::NULL;
        // SAFETY: `handle` takes the context.
        functions.check("making a context", unsafe { (functions.retain)(&mut handle, device) })?;
        Ok(Context { functions, device, handle })
    }

    /// Makes it the thread's own, until the value ends. The context that a program has chosen for its thread is back then.
    pub(crate) fn enter(&self) -> Result<Entered> {
        let mut current = Handle::NULL;
        // SAFETY: `current` takes the thread's context, and ours lives.
        let code = unsafe {
            (self.functions.current)(&mut current);
            if current == self.handle {
                return Ok(Entered(None));
            }
            (self.functions.push)(self.handle)
        };
        self.functions.check("using a context", code).map(|()| Entered(Some(self.functions)))
    }

    /// Runs a call in the context; the error says what failed.
    pub(crate) fn call(&self, what: &str, call: impl FnOnce(&Functions) -> c_int) -> Result<()> {
        let _entered = self.enter()?;
        self.functions.check(what, call(self.functions))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: nothing of the context is used any more by who has it.
        unsafe { (self.functions.release)(self.device) };
    }
}

/// While it lives, a context is the thread's.
pub(crate) struct Entered(Option<&'static Functions>);

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(functions) = self.0 {
            // SAFETY: our context was pushed, and calls of ours leave the stack as it was.
            unsafe { (functions.pop)(&mut Handle::NULL.clone()) };
        }
    }
}
