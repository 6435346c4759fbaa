//! The export side of the ABI: C functions over a safe [`Component`], and the macro that exports them.

use crate::abi::{
    ABI_VERSION, BatchTables, Capabilities, ChildHandle, ComponentTable, ErrorRecord, HostTable, RegistryTable,
    ReleaseFn, Status, ViewSpec, log_level, status,
};
use crate::component::{Child, Component, Host, Registry, Ticket};
use crate::error::{Error, Result};
use crate::guard::{BLOCK, guard, panic_text};
use bh_bytecode::{Base, Opcode, View};
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

/// Exports a [`Component`] from a library crate: the entry function that the loader looks for, and
/// `component_table()` for programs that link the crate.
///
/// The symbol carries the crate's name, `<crate>_component_entry`, so that one crate may link another component's
/// library half; the loader accepts it for a library file of that name.
#[macro_export]
macro_rules! export_component {
    ($component:ty) => {
        /// The component's functions, as the loader gets them.
        pub fn component_table() -> &'static $crate::abi::ComponentTable {
            static TABLE: $crate::export::LazyTable = $crate::export::LazyTable::new();
            TABLE.get::<$component>(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
        }

        const _: () = {
            // SAFETY: the name contains the crate's, so nothing else defines it.
            #[unsafe(export_name = concat!(env!("CARGO_CRATE_NAME"), "_component_entry"))]
            extern "C" fn component_entry(loader_version: u32) -> *const $crate::abi::ComponentTable {
                $crate::export::negotiate(loader_version, component_table)
            }
        };
    };
}

/// The table of one component type, made at first use.
pub struct LazyTable(std::sync::OnceLock<&'static ComponentTable>);

// SAFETY: the table holds pointers to immutable texts of static lifetime only.
unsafe impl Sync for LazyTable {}
// SAFETY: as above.
unsafe impl Send for LazyTable {}

impl LazyTable {
    /// An empty place.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> LazyTable {
        LazyTable(std::sync::OnceLock::new())
    }

    /// The table of `C`. Packages whose names begin with `bh-` are bh's own.
    pub fn get<C: Component>(&self, package: &str, version: &str) -> &'static ComponentTable {
        self.0.get_or_init(|| {
            let family = if package.starts_with("bh-") { "bh" } else { package };
            Box::leak(Box::new(table::<C>(&format!("{family} {version}"))))
        })
    }
}

/// The body of the entry function: the table if the loader speaks this ABI version, else null.
pub fn negotiate(loader_version: u32, table: fn() -> &'static ComponentTable) -> *const ComponentTable {
    if loader_version != ABI_VERSION {
        return ptr::null();
    }
    std::panic::catch_unwind(table).map_or(ptr::null(), ptr::from_ref)
}

/// A text of static lifetime for a table; text after a NUL is cut.
fn static_text(text: &str) -> *const c_char {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default().into_raw()
}

/// The functions of `C`. Texts live as long as the process, like the library that they describe.
fn table<C: Component>(version: &str) -> ComponentTable {
    let keys: Vec<*const c_char> = C::KEYS.iter().map(|key| static_text(key)).chain([ptr::null()]).collect();
    ComponentTable {
        struct_size: size_of::<ComponentTable>(),
        abi_version: ABI_VERSION,
        kind: C::KIND,
        name: static_text(C::NAME),
        version: static_text(version),
        keys: Vec::leak(keys).as_ptr(),
        create: Some(create::<C>),
        destroy: Some(destroy::<C>),
        capabilities: Some(capabilities::<C>),
        bind: Some(bind::<C>),
        supports: Some(supports::<C>),
        execute: Some(execute::<C>),
        wait: Some(wait::<C>),
        map: Some(map::<C>),
        unmap: Some(unmap::<C>),
        adopt: Some(adopt::<C>),
        pin: Some(pin::<C>),
        extmethod: Some(extmethod::<C>),
        message: Some(message::<C>),
    }
}

/// What a context points to.
struct Instance<C> {
    host: Host,
    component: C,
}

/// The instance behind a context.
///
/// # Safety
/// `context` must come from [`create`] of the same type, and calls must be serialised.
unsafe fn instance<'a, C>(context: *mut c_void) -> &'a mut Instance<C> {
    // SAFETY: promised by the caller.
    unsafe { &mut *context.cast() }
}

unsafe extern "C" fn create<C: Component>(
    host: *const HostTable,
    children: *const ChildHandle,
    child_count: usize,
    context: *mut *mut c_void,
    error: *mut ErrorRecord,
) -> Status {
    guard(error, || {
        // SAFETY: the host keeps its table and the children alive beyond the component.
        let (host, children) = unsafe {
            let children = (0..child_count).map(|index| Child::new(*children.add(index))).collect();
            (Host::new(host), children)
        };
        let component = C::create(host, children)?;
        // SAFETY: `context` is the host's place for the result.
        unsafe { *context = Box::into_raw(Box::new(Instance { host, component })).cast() };
        Ok(())
    })
}

unsafe extern "C" fn destroy<C: Component>(context: *mut c_void) {
    // SAFETY: the context comes from `create` and is not used again.
    let instance: Box<Instance<C>> = unsafe { Box::from_raw(context.cast()) };
    let host = instance.host;
    if let Err(payload) = panic_text(|| drop(instance)) {
        host.log(log_level::ERROR, &format!("{} while shutting down: {payload}", C::NAME));
    }
}

unsafe extern "C" fn capabilities<C: Component>(context: *mut c_void, capabilities: *mut Capabilities) {
    // SAFETY: serialised calls with our context.
    let instance = unsafe { instance::<C>(context) };
    match panic_text(|| instance.component.capabilities()) {
        // SAFETY: the caller's place for the result.
        Ok(found) => unsafe { *capabilities = found },
        Err(text) => instance.host.log(log_level::ERROR, &format!("{}: {text}", C::NAME)),
    }
}

unsafe extern "C" fn bind<C: Component>(
    context: *mut c_void,
    registry: *const RegistryTable,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: serialised calls with our context; the registry outlives the component.
    guard(error, || unsafe { instance::<C>(context).component.bind(Registry::new(registry)) })
}

unsafe extern "C" fn supports<C: Component>(context: *mut c_void, batch: *const BatchTables, block: u32) -> i32 {
    // SAFETY: serialised calls with our context; the tables live through the call.
    let (instance, batch) = unsafe { (instance::<C>(context), (*batch).as_ref()) };
    match panic_text(|| instance.component.supports(&batch, block)) {
        Ok(answer) => i32::from(answer),
        Err(text) => {
            instance.host.log(log_level::ERROR, &format!("{}: {text}", C::NAME));
            0
        }
    }
}

unsafe extern "C" fn execute<C: Component>(
    context: *mut c_void,
    batch: *const BatchTables,
    blocks: *const u32,
    block_count: usize,
    ticket: *mut u64,
    error: *mut ErrorRecord,
) -> Status {
    BLOCK.set(None);
    let code = guard(error, || {
        // SAFETY: serialised calls with our context; the tables and the list live through the call.
        unsafe {
            let blocks = if block_count == 0 { &[] } else { std::slice::from_raw_parts(blocks, block_count) };
            let outcome = instance::<C>(context).component.execute(&(*batch).as_ref(), blocks);
            let placed = outcome.map_err(|mut error| {
                error.block = error.block.or(BLOCK.get());
                error
            });
            *ticket = placed?.0;
        }
        Ok(())
    });
    BLOCK.set(None);
    code
}

unsafe extern "C" fn wait<C: Component>(context: *mut c_void, ticket: u64, error: *mut ErrorRecord) -> Status {
    // SAFETY: serialised calls with our context.
    guard(error, || unsafe { instance::<C>(context).component.wait(Ticket(ticket)) })
}

/// Reads a view's description.
///
/// # Safety
/// `view` must be null or point to a description whose arrays have `rank` entries.
unsafe fn read_view(view: *const ViewSpec) -> Result<Option<View>> {
    if view.is_null() {
        return Ok(None);
    }
    // SAFETY: promised by the caller; a rank of 0 may come with null arrays.
    let (start, shape, stride) = unsafe {
        let view = &*view;
        let list = |data: *const i64| {
            if view.rank == 0 { &[][..] } else { std::slice::from_raw_parts(data, view.rank as usize) }
        };
        (view.start, list(view.shape), list(view.stride))
    };
    View::new(start, shape, stride).map(Some).map_err(|error| Error::new(status::ARGUMENT, error.0))
}

unsafe extern "C" fn map<C: Component>(
    context: *mut c_void,
    base: *const Base,
    view: *const ViewSpec,
    access: u32,
    data: *mut *mut c_void,
    error: *mut ErrorRecord,
) -> Status {
    guard(error, || {
        // SAFETY: serialised calls with our context; the pointers live through the call.
        unsafe {
            let view = read_view(view)?;
            *data = instance::<C>(context).component.map(&*base, view.as_ref(), access)?.cast();
        }
        Ok(())
    })
}

unsafe extern "C" fn unmap<C: Component>(context: *mut c_void, base: *const Base, error: *mut ErrorRecord) -> Status {
    // SAFETY: serialised calls with our context; the base lives through the call.
    guard(error, || unsafe { instance::<C>(context).component.unmap(&*base) })
}

unsafe extern "C" fn adopt<C: Component>(
    context: *mut c_void,
    base: *const Base,
    data: *mut c_void,
    release: Option<ReleaseFn>,
    argument: *mut c_void,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: serialised calls with our context; the caller promises the memory.
    guard(error, || unsafe { instance::<C>(context).component.adopt(&*base, data.cast(), release, argument) })
}

unsafe extern "C" fn pin<C: Component>(
    context: *mut c_void,
    base: *const Base,
    pinned: i32,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: serialised calls with our context; the base lives through the call.
    guard(error, || unsafe { instance::<C>(context).component.pin(&*base, pinned != 0) })
}

unsafe extern "C" fn extmethod<C: Component>(
    context: *mut c_void,
    name: *const c_char,
    opcode: u16,
    known: *mut i32,
    error: *mut ErrorRecord,
) -> Status {
    guard(error, || {
        // SAFETY: serialised calls with our context; the name lives through the call.
        unsafe {
            let name = CStr::from_ptr(name).to_string_lossy();
            *known = i32::from(instance::<C>(context).component.extmethod(&name, Opcode(opcode))?);
        }
        Ok(())
    })
}

unsafe extern "C" fn message<C: Component>(
    context: *mut c_void,
    text: *const c_char,
    reply: *mut c_void,
    error: *mut ErrorRecord,
) -> Status {
    guard(error, || {
        // SAFETY: serialised calls with our context; the text lives through the call.
        let (instance, text) = unsafe { (instance::<C>(context), CStr::from_ptr(text).to_string_lossy()) };
        let answer = instance.component.message(&text)?;
        instance.host.reply(reply, &answer);
        Ok(())
    })
}
