//! The kernel compiler of the CPU engine: from a kernel's description to machine code, with LLVM.
//!
//! The description ([`bh_jit_abi::Request`]) becomes a module of LLVM's with vector types, as it is to run: no optimising
//! passes, only LLVM's code generator. The engine loads this library if it is there; everything crosses
//! the boundary as bytes.

mod arithmetic;
mod builder;
mod complex;
mod division;
mod function;
mod kernel;
mod mathematics;
mod memory;
mod non_temporal;
mod object;
mod plan;
mod program;
mod reduction;
mod statics;

use bh_jit_abi::{Api, Artifact, Function, Request, VERSION, fingerprint};
use bh_scalar::Program;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::FileType;
use plan::Plan;
use std::panic::catch_unwind;
use std::sync::LazyLock;

/// Compiles a kernel; an error names the part that cannot be compiled.
pub fn compile(request: &Request) -> Result<Artifact, String> {
    built(request, |module, functions| {
        let object = object::compile(module, request.level, FileType::Object)?;
        Ok(Artifact { functions, object })
    })
}

/// Builds the module of a request, and makes something of it and of the primitives that it calls.
fn built<T>(
    request: &Request,
    make: impl FnOnce(&Module, Vec<Option<Function>>) -> Result<T, String>,
) -> Result<T, String> {
    let context = Context::create();
    if !request.program.is_empty() {
        let (module, functions) = program::build(&context, request.level, &Program::parse(&request.program)?)?;
        return make(&module, functions);
    }
    let plan = Plan::new(request)?;
    let module = function::build(&context, request, &plan)?;
    make(&module, plan.functions.clone())
}

/// The kernel in LLVM's language, for people.
pub fn text(request: &Request) -> Result<String, String> {
    built(request, |module, _| Ok(module.print_to_string().to_string()))
}

/// The kernel in assembly language, for people.
pub fn assembly(request: &Request) -> Result<String, String> {
    let bytes = built(request, |module, _| object::compile(module, request.level, FileType::Assembly))?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// # Safety
/// As [`Api::compile`] says: `request` is valid for `bytes` bytes, and the others for a value each.
unsafe extern "C" fn compile_bytes(request: *const u8, bytes: usize, ok: *mut u32, length: *mut usize) -> *mut u8 {
    // SAFETY: the request has `bytes` bytes.
    let request = unsafe { std::slice::from_raw_parts(request, bytes) };
    let result = catch_unwind(|| match Request::decode(request) {
        Some(request) => compile(&request).map(|artifact| artifact.encode()),
        None => Err("the request is malformed".to_owned()),
    });
    let result = result.unwrap_or_else(|_| Err("the compiler panicked".to_owned()));
    let succeeded = result.is_ok();
    let data = result.unwrap_or_else(String::into_bytes).into_boxed_slice();
    // SAFETY: both places take a value.
    unsafe {
        ok.write(u32::from(succeeded));
        length.write(data.len());
    }
    Box::into_raw(data).cast()
}

/// # Safety
/// `data` and `length` must come from [`compile_bytes`].
unsafe extern "C" fn free_bytes(data: *mut u8, length: usize) {
    // SAFETY: it is the box that [`compile_bytes`] gave away.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, length)) });
}

/// The one symbol of the library.
#[unsafe(no_mangle)]
pub extern "C" fn bh_ve_cpu_jit_entry() -> *const Api {
    static API: LazyLock<Api> = LazyLock::new(|| Api {
        version: VERSION,
        reserved: 0,
        fingerprint: fingerprint(),
        compile: compile_bytes,
        free: free_bytes,
    });
    &*API
}

/// The levels that this library makes machine code for.
#[cfg(test)]
const LEVELS: &[bh_jit_abi::Level] = {
    use bh_jit_abi::Level;
    if cfg!(target_arch = "aarch64") { &[Level::Neon] } else { &[Level::Avx2, Level::Avx512] }
};

/// A kernel over dense `f64` slots, for tests.
#[cfg(test)]
fn request(level: bh_jit_abi::Level, modes: &[bh_kernel::SlotMode], steps: Vec<bh_kernel::Step>) -> Request {
    use bh_jit_abi::{Divider, Folds, SlotForm, Stride};
    let slot = |&mode| SlotForm {
        dtype: bh_bytecode::DType::F64,
        mode,
        stride: Stride::Unit,
        non_temporal: false,
        fetch: true,
        near: None,
    };
    Request {
        level,
        divider: Divider::Slow,
        fast_math: false,
        in_order: false,
        short: false,
        repeat: 0,
        folds: Folds::None,
        slots: modes.iter().map(slot).collect(),
        constants: Vec::new(),
        steps,
        program: String::new(),
    }
}
