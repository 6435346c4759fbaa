//! The functions through which a parent calls its child: C entry points of [`Link`].

use super::*;
use crate::abi::{ABI_VERSION, ComponentTable, Status};
use crate::guard::{guard, panic_text};

/// A table in a static.
pub(super) struct SharedTable(pub(super) ComponentTable);

// SAFETY: the table is immutable and its pointers lead to statics.
unsafe impl Sync for SharedTable {}

pub(super) static LINK_TABLE: SharedTable = SharedTable(ComponentTable {
    struct_size: size_of::<ComponentTable>(),
    abi_version: ABI_VERSION,
    kind: 0,
    name: c"link".as_ptr(),
    version: c"bh".as_ptr(),
    keys: ptr::null(),
    create: None,
    destroy: None,
    capabilities: Some(capabilities),
    bind: Some(bind),
    supports: Some(supports),
    execute: Some(execute),
    wait: Some(wait),
    map: Some(map),
    unmap: Some(unmap),
    adopt: Some(adopt),
    pin: Some(pin),
    extmethod: Some(extmethod),
    message: Some(message),
});

/// # Safety
/// `context` must be the context of a handle whose link still lives.
unsafe fn link<'a>(context: *mut c_void) -> &'a Link {
    // SAFETY: promised by the caller.
    unsafe { &*context.cast::<Link>() }
}

unsafe extern "C" fn capabilities(context: *mut c_void, capabilities: *mut Capabilities) {
    // SAFETY: a link's handle, and the caller's place for the result.
    unsafe { *capabilities = link(context).capabilities }
}

unsafe extern "C" fn bind(context: *mut c_void, registry: *const RegistryTable, error: *mut ErrorRecord) -> Status {
    // SAFETY: a link's handle.
    guard(error, || unsafe { link(context) }.bind(registry))
}

unsafe extern "C" fn supports(context: *mut c_void, batch: *const BatchTables, block: u32) -> i32 {
    // SAFETY: a link's handle; the tables live through the call.
    let answer = panic_text(|| unsafe { link(context).supports(&*batch, block) });
    i32::from(answer.unwrap_or(false))
}

unsafe extern "C" fn execute(
    context: *mut c_void,
    batch: *const BatchTables,
    blocks: *const u32,
    block_count: usize,
    ticket: *mut u64,
    error: *mut ErrorRecord,
) -> Status {
    guard(error, || {
        // SAFETY: a link's handle; the tables and the list live through the call.
        unsafe {
            let blocks = if block_count == 0 { &[] } else { std::slice::from_raw_parts(blocks, block_count) };
            let (result, given) = link(context).execute(&(*batch).as_ref(), blocks);
            *ticket = given;
            result
        }
    })
}

unsafe extern "C" fn wait(context: *mut c_void, ticket: u64, error: *mut ErrorRecord) -> Status {
    // SAFETY: a link's handle.
    guard(error, || unsafe { link(context) }.wait(ticket))
}

unsafe extern "C" fn map(
    context: *mut c_void,
    base: *const Base,
    view: *const ViewSpec,
    access: u32,
    data: *mut *mut c_void,
    error: *mut ErrorRecord,
) -> Status {
    guard(error, || {
        // SAFETY: a link's handle; the pointers live through the call.
        unsafe { *data = link(context).map(&*base, view, access)? };
        Ok(())
    })
}

unsafe extern "C" fn unmap(context: *mut c_void, base: *const Base, error: *mut ErrorRecord) -> Status {
    // SAFETY: a link's handle; the base lives through the call.
    guard(error, || unsafe { link(context).unmap(&*base) })
}

unsafe extern "C" fn adopt(
    context: *mut c_void,
    base: *const Base,
    data: *mut c_void,
    release: Option<ReleaseFn>,
    argument: *mut c_void,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: a link's handle; the base lives through the call.
    guard(error, || unsafe { link(context).adopt(&*base, data, release, argument) })
}

unsafe extern "C" fn pin(context: *mut c_void, base: *const Base, pinned: i32, error: *mut ErrorRecord) -> Status {
    // SAFETY: a link's handle; the base lives through the call.
    guard(error, || unsafe { link(context).pin(&*base, pinned) })
}

unsafe extern "C" fn extmethod(
    context: *mut c_void,
    name: *const c_char,
    opcode: u16,
    known: *mut i32,
    error: *mut ErrorRecord,
) -> Status {
    guard(error, || {
        // SAFETY: a link's handle; the pointers live through the call.
        unsafe { *known = i32::from(link(context).extmethod(CStr::from_ptr(name), opcode)?) };
        Ok(())
    })
}

unsafe extern "C" fn message(
    context: *mut c_void,
    text: *const c_char,
    reply: *mut c_void,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: a link's handle; the text lives through the call.
    guard(error, || unsafe { link(context).message(CStr::from_ptr(text), reply) })
}
