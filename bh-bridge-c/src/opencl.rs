//! OpenCL: contexts on the program's own `cl_context`, arrays made of its buffers, and buffers lent to it. OpenCL's handles are
//! `void *` here, so that the header needs none of OpenCL's.

use crate::create::{self, bh_dtype, bh_release};
use crate::error::{Out, argument, bh_status, frame, frame_out, null, read_text};
use crate::handle::{self, bh_array, bh_context, context};
use bh_core::Result;
use bh_core::abi::{Adoption, adopt, export, memory};
use bh_core::services::Handles;
use bh_recorder::Lent;
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, PoisonError};

/// The names under which engines ask for the handles.
const CONTEXT: &str = "opencl.context";
const QUEUE: &str = "opencl.queue";

/// The context's slot and the address of the `cl_mem`.
type LentKey = (u64, usize);

/// The lent buffers.
static LENT: Mutex<Option<HashMap<LentKey, Vec<Lent>>>> = Mutex::new(None);

/// Makes a context on an OpenCL stack that works in the program's own `cl_context`, so that arrays and the program's buffers
/// can take each other's place (`bh_opencl_adopt`, `bh_opencl_lend`). With an in-order `cl_command_queue` of that context,
/// its device is used, and all commands of bh come in that queue; with null or an out-of-order one bh makes its own queue,
/// on the context's first device or that of the queue. Both are retained. `stack` as for `bh_context_create`.
///
/// # Safety
/// `out` must be null or the address of a pointer, `stack` null or a C string, `cl_context` null or a `cl_context`, and
/// `cl_command_queue` null or a `cl_command_queue`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_context_create_opencl(
    out: *mut *mut bh_context,
    stack: *const c_char,
    cl_context: *mut c_void,
    cl_command_queue: *mut c_void,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        // SAFETY: not null, and so a C string, as `# Safety` asks; it is used within the call only.
        let stack = if stack.is_null() { None } else { Some(unsafe { read_text(stack, "stack") }?) };
        if cl_context.is_null() {
            return Err(null("cl_context"));
        }
        // SAFETY: a `cl_context`, and null or a `cl_command_queue`, as `# Safety` asks; OpenCL's objects work on any thread, and
        // the engine retains them.
        let handles = unsafe { Handles::default().with(CONTEXT, cl_context).with(QUEUE, cl_command_queue) };
        handle::create(stack, handles)
    })
}

/// A new array that is made of a buffer (`cl_mem`) of the context's `cl_context`, without a copy; a buffer of another one is
/// refused. It has the elements in C order, and may be read and written by kernels. It is retained, and bh's own until
/// `release` is called with `argument` and `cl_mem`, at the latest when the context ends; what it holds then is not
/// said. The program's commands for it must be done, or come before in the context's queue.
///
/// # Safety
/// As `bh_empty`; `cl_mem` must be null or a `cl_mem` with all elements that is used as said above until `release` is
/// called, and `release` be null or work with `argument` and `cl_mem` on any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_opencl_adopt(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    rank: i32,
    shape: *const i64,
    cl_mem: *mut c_void,
    release: bh_release,
    argument: *mut c_void,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    // SAFETY: `take` asks for what `# Safety` asks.
    frame_out(out, || unsafe { take(context, (dtype, rank, shape), (adopt::DONATED, cl_mem), release, argument) })
}

/// As `bh_opencl_adopt`, in a mode. `BH_ADOPT_DONATED`: as `bh_opencl_adopt`. `BH_ADOPT_IMMUTABLE`: nobody writes to the buffer,
/// the library neither, which writes to another one. `BH_ADOPT_SHARED`: the program goes on using the buffer, which always has
/// the array's elements: what it enqueues between two calls comes after the first call's operations, and before the next
/// one's, in the context's queue, or must be done by then. Changes by `bh_write` and `bh_map` get there with the next
/// operation, or with `bh_opencl_lend_as`.
///
/// # Safety
/// As `bh_opencl_adopt`, but the buffer must be used as the mode says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_opencl_adopt_as(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    rank: i32,
    shape: *const i64,
    cl_mem: *mut c_void,
    mode: u32,
    release: bh_release,
    argument: *mut c_void,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    // SAFETY: `take` asks for what `# Safety` asks, with the mode that it gets.
    frame_out(out, || unsafe { take(context, (dtype, rank, shape), (mode, cl_mem), release, argument) })
}

/// # Safety
/// As `bh_opencl_adopt_as`.
unsafe fn take(
    context: *mut bh_context,
    (dtype, rank, shape): (bh_dtype, i32, *const i64),
    (mode, cl_mem): (u32, *mut c_void),
    release: bh_release,
    argument: *mut c_void,
) -> Result<*mut bh_array> {
    let context = self::context(context)?;
    // SAFETY: `shape` is null or `rank` numbers, as `# Safety` asks, and they are used within the call only.
    let shape = unsafe { create::numbers(rank, shape, "shape") }?;
    if cl_mem.is_null() {
        return Err(null("cl_mem"));
    }
    // SAFETY: not null, and so a `cl_mem` with all elements, which is valid, as the mode says, until `release` is
    // called, and that works with both arguments, as `# Safety` asks.
    let array = unsafe {
        let adoption = Adoption::new(cl_mem, mode, memory::OPENCL, release, argument);
        context.recorder.adopt_memory(create::dtype(dtype)?, shape, &adoption)?
    };
    Ok(context.array(array))
}

/// A buffer (`cl_mem`) of the context's `cl_context` with the elements of `a` in C order, as they are now. It is a copy on
/// the device, which the program may change, and which ends with `bh_opencl_return`. If the context has the program's queue,
/// commands that are enqueued there from now on find the elements, else all others do.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_opencl_lend(out: *mut *mut c_void, a: *const bh_array) -> bh_status {
    // SAFETY: `out` is null or the address of a pointer, as `# Safety` asks, and no more is asked for.
    frame(|| unsafe { lend(out, a, export::SNAPSHOT) })
}

/// As `bh_opencl_lend`, in a mode. `BH_EXPORT_SNAPSHOT`: as `bh_opencl_lend`. `BH_EXPORT_READ_ONLY`: the array's own buffer, without
/// a copy, which nobody writes to: later operations on the array write to another one. `BH_EXPORT_SHARED`: the array's own
/// buffer, which both sides write to, as with `BH_ADOPT_SHARED`. The last two need an array that is all of its memory, in C order.
///
/// # Safety
/// As `bh_opencl_lend`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_opencl_lend_as(out: *mut *mut c_void, a: *const bh_array, mode: u32) -> bh_status {
    // SAFETY: `out` is null or the address of a pointer, as `# Safety` asks, and no more is asked for.
    frame(|| unsafe { lend(out, a, mode) })
}

/// # Safety
/// As `bh_opencl_lend`.
unsafe fn lend(out: *mut *mut c_void, a: *const bh_array, mode: u32) -> Result<()> {
    if out.is_null() {
        return Err(null("out"));
    }
    let array = handle::array(a, "a")?;
    let info = array.recorder.info(array.id)?;
    let whole = info.view.len() == info.base_len && info.view.is_contiguous();
    let lent = if whole || mode != export::SNAPSHOT {
        array.recorder.lend_device(array.id, mode, memory::OPENCL)?
    } else {
        let dense = create::copy(&array, info.dtype)?;
        let lent = array.recorder.lend_device(dense, mode, memory::OPENCL);
        array.recorder.free(dense)?;
        lent?
    };
    let handle = lent.data.cast::<c_void>();
    let mut all = LENT.lock().unwrap_or_else(PoisonError::into_inner);
    all.get_or_insert_default().entry((array.slot, handle.addr())).or_default().push(lent);
    // SAFETY: not null, and so the address of a pointer, as `# Safety` asks.
    unsafe { out.write(handle) };
    Ok(())
}

/// Gives a buffer back that `bh_opencl_lend` or `bh_opencl_lend_as` lent. The program's commands that use it must be done, or in
/// the context's queue.
#[unsafe(no_mangle)]
pub extern "C" fn bh_opencl_return(context: *mut bh_context, cl_mem: *mut c_void) -> bh_status {
    frame(|| {
        let context = self::context(context)?;
        let mut all = LENT.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (context.slot(), cl_mem.addr());
        let open = all.get_or_insert_default();
        let found = open.get_mut(&key).and_then(Vec::pop);
        if open.get(&key).is_some_and(Vec::is_empty) {
            open.remove(&key);
        }
        drop(all);
        let lent = found.ok_or_else(|| argument("cl_mem: it is not lent by this context".into()))?;
        context.recorder.end_lending(&lent)
    })
}
