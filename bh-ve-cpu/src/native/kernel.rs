//! A kernel that may be compiled, and its code when it is.

use super::object::Mapping;
use crate::primitives::Primitives;
use bh_jit_abi::{Artifact, Call, KernelFn, Request};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A kernel that programs with equal requests share.
pub(crate) struct NativeKernel {
    request: Request,
    work: AtomicU64,
    requested: AtomicBool,
    code: OnceLock<Code>,
}

impl std::fmt::Debug for NativeKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeKernel").field("compiled", &self.code.get().is_some()).finish_non_exhaustive()
    }
}

impl NativeKernel {
    pub(super) fn new(request: Request) -> NativeKernel {
        NativeKernel { request, work: AtomicU64::new(0), requested: AtomicBool::new(false), code: OnceLock::new() }
    }

    pub(super) fn request(&self) -> &Request {
        &self.request
    }

    /// Counts work. Is it time to compile? That is said once.
    pub(super) fn is_due(&self, work: u64, hot: u64) -> bool {
        if self.requested.load(Ordering::Relaxed) {
            return false;
        }
        let before = self.work.fetch_add(work, Ordering::Relaxed);
        before.saturating_add(work) >= hot && !self.requested.swap(true, Ordering::Relaxed)
    }

    /// Takes the code: the next run of the kernel finds it.
    pub(super) fn finish(&self, code: Code) {
        // There is one compilation for each kernel.
        let _ = self.code.set(code);
    }

    /// The code, if it is compiled.
    #[inline]
    pub(crate) fn code(&self) -> Option<&Code> {
        self.code.get()
    }
}

/// Compiled code.
pub(crate) struct Code {
    /// Owns the code's memory.
    _mapping: Mapping,
    run: KernelFn,
    functions: Vec<*const u8>,
}

// SAFETY: the pointers are to functions.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Code {
    /// Places an artifact's code in memory, with the primitives that it calls.
    pub(super) fn new(artifact: &Artifact, primitives: Primitives) -> Option<Code> {
        let function = |function: &Option<bh_jit_abi::Function>| match *function {
            None => Some(primitives.copy_streaming() as *const u8),
            Some(bh_jit_abi::Function { opcode, param, input, output }) => {
                primitives.elementwise(opcode, param, input, output).map(|run| run as *const u8)
            }
        };
        let functions = artifact.functions.iter().map(function).collect::<Option<Vec<_>>>()?;
        let mapping = Mapping::new(&artifact.object)?;
        // SAFETY: the compiler made it a function of this type.
        let run = unsafe { std::mem::transmute::<*const u8, KernelFn>(mapping.entry()) };
        Some(Code { _mapping: mapping, run, functions })
    }

    /// The primitives that the code calls, for [`Call::functions`].
    pub(crate) fn functions(&self) -> *const *const u8 {
        self.functions.as_ptr()
    }

    /// Runs the code.
    ///
    /// # Safety
    /// See [`KernelFn`].
    #[inline]
    pub(crate) unsafe fn run(&self, call: &Call) {
        // SAFETY: the call is as the compiled function wants it.
        unsafe { (self.run)(call) }
    }
}
