//! Contexts: making and ending them, flushing, and what runs in them.

use crate::error::{Out, argument, bh_status, frame, frame_out, give_text, null, read_text};
use crate::handle::{self, bh_context, context};
use bh_core::Error;
use bh_core::abi::status;
use bh_core::services::Handles;
use bh_core::stack::COMMUNICATOR;
use std::ffi::{CStr, c_char};
use std::fmt::Write;

/// Counts of a context.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct bh_statistics {
    /// Array handles alive.
    pub arrays: u64,
    /// Arrays' data blocks alive (several views may share one).
    pub bases: u64,
    /// Operations recorded.
    pub recorded: u64,
    /// Instructions recorded and not yet flushed.
    pub pending: u64,
    /// Batches run.
    pub batches: u64,
    /// Instructions run.
    pub instructions: u64,
    /// Batches that the program's own threads ran.
    pub batches_on_caller: u64,
}

/// Use of host memory by a context, in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct bh_memory {
    /// In use by arrays.
    pub in_use: u64,
    /// The most that was ever in use.
    pub peak: u64,
    /// Freed and kept for reuse.
    pub cached: u64,
    /// The most that may be in use.
    pub limit: u64,
}

/// Version of the library, as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn bh_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no NUL inside"),
    };
    VERSION.as_ptr()
}

/// Makes a context on a stack of the configuration; null for the stack that the user picked (`BH_STACK`, or the
/// configuration's default).
///
/// # Safety
/// `out` must be null or the address of a pointer, `stack` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_context_create(out: *mut *mut bh_context, stack: *const c_char) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        // SAFETY: not null, and so a C string, as `# Safety` asks; it is used within the call only.
        let stack = if stack.is_null() { None } else { Some(unsafe { read_text(stack, "stack") }?) };
        handle::create(stack, Handles::default())
    })
}

/// Makes a context on a cluster stack for a program that initialised MPI itself, with `MPI_THREAD_SERIALIZED` or more: its
/// ranks are those of a communicator, of which `communicator` is the Fortran handle (`MPI_Comm_c2f`), and which is copied.
/// All its ranks must call this. It returns at once on the communicator's rank 0. On the others it returns when rank 0 has
/// ended its last context on it, with success and null in `out`. MPI is not finalised. Calls of the program and of bh must
/// not come at the same time, unless MPI allows that (`MPI_THREAD_MULTIPLE`).
///
/// # Safety
/// `out` must be null or the address of a pointer, `stack` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_context_create_comm(
    out: *mut *mut bh_context,
    stack: *const c_char,
    communicator: i32,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        // SAFETY: not null, and so a C string, as `# Safety` asks; it is used within the call only.
        let stack = if stack.is_null() { None } else { Some(unsafe { read_text(stack, "stack") }?) };
        // Handles of communicators may be 0.
        let handle = std::ptr::without_provenance_mut(1 << 32 | communicator as u32 as usize);
        // SAFETY: it is the number of a communicator with bit 32 set, as the name asks, and no address.
        let handles = unsafe { Handles::default().with(COMMUNICATOR, handle) };
        match handle::create(stack, handles) {
            Err(error) if error.status == status::SHUTDOWN => Ok(std::ptr::null_mut()),
            made => made,
        }
    })
}

/// Finishes all work of a context and ends it with all its arrays. Null ends the default context; a later use of null
/// makes a new one. Returns the first failure that was not reported before; the context is gone in any case.
#[unsafe(no_mangle)]
pub extern "C" fn bh_context_destroy(context: *mut bh_context) -> bh_status {
    frame(|| handle::destroy(context))
}

/// Hands everything recorded to the engine, without waiting for it. Reports a failure of earlier work.
#[unsafe(no_mangle)]
pub extern "C" fn bh_flush(context: *mut bh_context) -> bh_status {
    frame(|| self::context(context)?.recorder.flush())
}

/// Waits until everything recorded is done. Reports a failure of earlier work.
#[unsafe(no_mangle)]
pub extern "C" fn bh_sync(context: *mut bh_context) -> bh_status {
    frame(|| self::context(context)?.recorder.sync())
}

/// Makes each operation complete before it returns (`eager` not 0), or go back to recording (0).
#[unsafe(no_mangle)]
pub extern "C" fn bh_eager(context: *mut bh_context, eager: i32) -> bh_status {
    frame(|| self::context(context)?.recorder.set_eager(eager != 0))
}

/// The name of the context's stack. The text is valid until the next call of this thread that returns one.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_stack_name(out: *mut *const c_char, context: *mut bh_context) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame(|| {
        let name = self::context(context)?.recorder.with_stack(|stack| Ok(stack.name().to_owned()))?;
        give_text(out, &name)
    })
}

/// The stack and its components with their versions, one line each. The text is valid until the next call of this thread
/// that returns one.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_info(out: *mut *const c_char, context: *mut bh_context) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame(|| {
        let describe = |stack: &mut bh_core::Stack| {
            let mut text = format!("bh {}, stack {}\n", env!("CARGO_PKG_VERSION"), stack.name());
            for component in stack.components() {
                let indent = "  ".repeat(component.depth + 1);
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{indent}{} ({}, {})", component.label, component.name, component.version);
            }
            Ok(text)
        };
        give_text(out, &self::context(context)?.recorder.with_stack(describe)?)
    })
}

/// Sends a text question or command down the stack; the answer of the first component that knows it, else an empty text,
/// which is valid until the next call of this thread that returns one.
///
/// # Safety
/// `out` must be null or the address of a pointer, `text` a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_message(
    out: *mut *const c_char,
    context: *mut bh_context,
    text: *const c_char,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame(|| {
        // SAFETY: `text` is null, which `read_text` refuses, or a C string, as `# Safety` asks, and is used within the
        // call only.
        let text = unsafe { read_text(text, "text") }?;
        give_text(out, &self::context(context)?.recorder.message(text)?)
    })
}

/// Counts since the context was made.
///
/// # Safety
/// `out` must be null or the address of a struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_statistics_get(out: *mut bh_statistics, context: *mut bh_context) -> bh_status {
    frame(|| {
        let counts = self::context(context)?.recorder.statistics();
        let counts = bh_statistics {
            arrays: counts.arrays,
            bases: counts.bases,
            recorded: counts.recorded,
            pending: counts.pending,
            batches: counts.batches,
            instructions: counts.instructions,
            batches_on_caller: counts.batches_on_caller,
        };
        // SAFETY: `out` is null, which `store` refuses, or valid for writing, as `# Safety` asks.
        unsafe { store(out, counts) }
    })
}

/// A counter of the stack by its name, such as "memory.allocations"; 0 if nothing was counted under it.
///
/// # Safety
/// `out` must be null or the address of a number, `name` a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_counter(out: *mut u64, context: *mut bh_context, name: *const c_char) -> bh_status {
    frame(|| {
        // SAFETY: `name` is null, which `read_text` refuses, or a C string, as `# Safety` asks, and is used within the
        // call only.
        let name = unsafe { read_text(name, "name") }?;
        let value = self::context(context)?.recorder.with_stack(|stack| Ok(stack.stats().get(name)))?;
        // SAFETY: `out` is null, which `store` refuses, or valid for writing, as `# Safety` asks.
        unsafe { store(out, value.unwrap_or(0)) }
    })
}

/// Host memory in use, its peak, what is kept for reuse, and the limit.
///
/// # Safety
/// `out` must be null or the address of a struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_memory_get(out: *mut bh_memory, context: *mut bh_context) -> bh_status {
    frame(|| {
        let memory = self::context(context)?.recorder.with_stack(|stack| {
            let memory = stack.services().memory();
            let (usage, settings) = (memory.usage(), memory.settings());
            let [in_use, peak, cached, limit] =
                [usage.in_use, usage.peak, usage.cached, settings.limit].map(|bytes| bytes as u64);
            Ok(bh_memory { in_use, peak, cached, limit })
        })?;
        // SAFETY: `out` is null, which `store` refuses, or valid for writing, as `# Safety` asks.
        unsafe { store(out, memory) }
    })
}

/// Sets the most bytes of host memory that arrays may use; what would pass it fails.
#[unsafe(no_mangle)]
pub extern "C" fn bh_memory_limit(context: *mut bh_context, bytes: u64) -> bh_status {
    frame(|| {
        self::context(context)?.recorder.with_stack(|stack| {
            stack.services().memory().set_limit(usize::try_from(bytes).unwrap_or(usize::MAX));
            Ok(())
        })
    })
}

/// Gives the memory that is kept for reuse back to the system.
#[unsafe(no_mangle)]
pub extern "C" fn bh_memory_release(context: *mut bh_context) -> bh_status {
    frame(|| {
        self::context(context)?.recorder.with_stack(|stack| {
            stack.services().memory().release_cache();
            Ok(())
        })
    })
}

/// The number of threads that the engine uses.
///
/// # Safety
/// `out` must be null or the address of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_threads_get(out: *mut i32, context: *mut bh_context) -> bh_status {
    frame(|| {
        let answer = self::context(context)?.recorder.message("threads")?;
        let threads = answer.trim().parse().map_err(|_| no_threads())?;
        // SAFETY: `out` is null, which `store` refuses, or valid for writing, as `# Safety` asks.
        unsafe { store(out, threads) }
    })
}

/// Sets the number of threads that the engine uses.
#[unsafe(no_mangle)]
pub extern "C" fn bh_threads_set(context: *mut bh_context, threads: i32) -> bh_status {
    frame(|| {
        if threads < 1 {
            return Err(argument(format!("threads: {threads} is no number of threads")));
        }
        let answer = self::context(context)?.recorder.message(&format!("threads {threads}"))?;
        if answer.is_empty() { Err(no_threads()) } else { Ok(()) }
    })
}

/// The processors that the engine's threads are bound to: "none", "auto", or a list like "0,2,4". The text is valid until
/// the next call of this thread that returns one.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_affinity_get(out: *mut *const c_char, context: *mut bh_context) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame(|| {
        let answer = self::context(context)?.recorder.message("affinity")?;
        if answer.is_empty() { Err(no_affinity()) } else { give_text(out, &answer) }
    })
}

/// Binds the engine's threads to processors: a list like "0,2,4-7" for one processor per thread in turn, "auto" for all
/// that this process may use, where that helps, or "none" to leave them to the system. The calling thread stays free.
///
/// # Safety
/// `processors` must be a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_affinity_set(context: *mut bh_context, processors: *const c_char) -> bh_status {
    frame(|| {
        // SAFETY: `processors` is null, which `read_text` refuses, or a C string, as `# Safety` asks, and is used
        // within the call only.
        let processors = unsafe { read_text(processors, "processors") }?;
        if processors.trim().is_empty() {
            return Err(argument("affinity: the list of processors is empty".into()));
        }
        let answer = self::context(context)?.recorder.message(&format!("affinity {processors}"))?;
        if answer.is_empty() { Err(no_affinity()) } else { Ok(()) }
    })
}

fn no_affinity() -> Error {
    Error::new(status::UNSUPPORTED, "no component of this stack binds its threads to processors")
}

fn no_threads() -> Error {
    Error::new(status::UNSUPPORTED, "no component of this stack says how many threads it has")
}

/// Writes a result.
///
/// # Safety
/// `out` must be null or valid for writing a `T`.
pub(crate) unsafe fn store<T>(out: *mut T, value: T) -> bh_core::Result<()> {
    if out.is_null() {
        return Err(null("out"));
    }
    // SAFETY: not null, and so valid for writing a `T`, as `# Safety` asks.
    unsafe { out.write(value) };
    Ok(())
}
