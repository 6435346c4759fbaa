//! The export side of the ABI: C functions around a safe [`Component`], and the macro that exports them.

use crate::abi::{
    ABI_VERSION, Adoption, BatchTables, Capabilities, ChildHandle, ComponentTable, ErrorRecord, Evaluation, Export,
    ExportRequest, HostMemory, HostTable, ImmediateOperation, Prediction, Received, ReportRecord, Residency,
    ScalarOperation, Served, Status, Wire, WireAnswer, log_level,
};
use crate::component::{Child, Component, Host, Registry, Report, SharedCalls, Ticket};
use crate::config::Row;
use crate::for_each_slot;
use crate::guard::{BLOCK, guard, panic_text};
use crate::reserve;
use bh_bytecode::{Base, Opcode, View};
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// Exports a [`Component`] from a library crate: the entry function that the loader looks for, and
/// `component_table()` for programs that link the crate.
///
/// The symbol carries the crate's name, `<crate>_component_entry`, so that one crate may link another component's
/// library half; the loader accepts it for a library file of that name.
#[macro_export]
macro_rules! export_component {
    ($component:ty) => {
        /// The component's functions, in the form that the loader reads.
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

/// The table of one component type, created at first use.
pub struct LazyTable(std::sync::OnceLock<&'static ComponentTable>);

// SAFETY: the table holds pointers to immutable texts of static lifetime only.
unsafe impl Sync for LazyTable {}
// SAFETY: as above.
unsafe impl Send for LazyTable {}

impl LazyTable {
    /// An empty cell.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> LazyTable {
        LazyTable(std::sync::OnceLock::new())
    }

    /// The table of `C`. Package names that begin with `bh-` mark bh's own components.
    pub fn get<C: Component>(&self, package: &str, version: &str) -> &'static ComponentTable {
        self.0.get_or_init(|| {
            let family = if package.starts_with("bh-") { "bh" } else { package };
            Box::leak(Box::new(table::<C>(&format!("{family} {version}"))))
        })
    }
}

/// The body of the entry function: the table if the loader has this ABI version, else null.
pub fn negotiate(loader_version: u32, table: fn() -> &'static ComponentTable) -> *const ComponentTable {
    if loader_version != ABI_VERSION {
        return ptr::null();
    }
    std::panic::catch_unwind(table).map_or(ptr::null(), ptr::from_ref)
}

/// A text of static lifetime for a table; truncated at a NUL.
fn static_text(text: &str) -> *const c_char {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default().into_raw()
}

macro_rules! export_slots {
    (
        special { $($(#[doc = $special_doc:literal])* $special:ident: $type:ident;)* }
        plain {
            $($(#[doc = $doc:literal])*
            $forwarding:ident $calls:ident fn $name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)? = $default:ident;)*
        }
    ) => {
        /// The functions of `C`. The texts live as long as the process, as the library does.
        fn table<C: Component>(version: &str) -> ComponentTable {
            let keys: Vec<*const c_char> = C::KEYS.iter().flat_map(Row::names).map(static_text).chain([ptr::null()]).collect();
            ComponentTable {
                struct_size: size_of::<ComponentTable>(),
                abi_version: ABI_VERSION,
                kind: C::KIND,
                name: static_text(C::NAME),
                version: static_text(version),
                keys: Vec::leak(keys).as_ptr(),
                $($special: Some($special::<C>),)*
                $($name: exported!($calls C, $name::<C>),)*
            }
        }

        $(unsafe extern "C" fn $name<C: Component>(
            context: *mut c_void,
            $($argument: <$kind as Wire>::Raw,)*
            $(answer: *mut <$answer as WireAnswer>::Raw,)?
            error: *mut ErrorRecord,
        ) -> Status {
            // SAFETY: null, or the caller's own record.
            let error = unsafe { error.as_mut() };
            guard(error, || {
                // SAFETY: serialised calls with our context; the referents of the arguments live through the call, and
                // the answer is written to the caller's place for it.
                unsafe {
                    $(let $argument = <$kind as Received<'_>>::own($argument)?;)*
                    let found = receiver!($calls C, context, $name($(Received::lend(&$argument)),*))?;
                    $(answer.write(<$answer as WireAnswer>::to_raw(found));)?
                    #[allow(clippy::let_unit_value)]
                    let () = done!(found $($answer)?);
                }
                Ok(())
            })
        })*
    };
}
/// Null for shared calls, if the component does not implement them.
macro_rules! exported {
    (serial $component:ident, $function:expr) => {
        Some($function)
    };
    (shared $component:ident, $function:expr) => {
        if $component::SHARED { Some($function) } else { None }
    };
}
/// Sends shared calls to the component's separate object for them; the component itself may be running.
macro_rules! receiver {
    (serial $component:ident, $context:ident, $($call:tt)*) => {
        component::<$component>($context).$($call)*
    };
    (shared $component:ident, $context:ident, $($call:tt)*) => {
        match &instance::<$component>($context).shared {
            Some(shared) => shared.$($call)*,
            None => component::<$component>($context).$($call)*,
        }
    };
}
/// Discards the result of a slot without an answer.
macro_rules! done {
    ($found:ident) => {
        $found
    };
    ($found:ident $answer:ty) => {
        ()
    };
}
for_each_slot!(export_slots);

/// The value behind a context.
struct Instance<C> {
    host: Host,
    /// Answers calls that overlap others.
    shared: Option<Arc<dyn SharedCalls>>,
    component: UnsafeCell<C>,
}

/// The instance behind a context.
///
/// # Safety
/// `context` must come from [`create`] of the same type, and [`destroy`] must not be called for it while the result is
/// used.
unsafe fn instance<'a, C>(context: *mut c_void) -> &'a Instance<C> {
    // SAFETY: `create` made the context of a box of this type, which lives while the result is used, as `# Safety`
    // asks.
    unsafe { &*context.cast() }
}

/// The component behind a context.
///
/// # Safety
/// As [`instance`]; in addition, no other call may use the component while the result is used: calls are serialised.
#[allow(clippy::mut_from_ref)]
unsafe fn component<'a, C>(context: *mut c_void) -> &'a mut C {
    // SAFETY: the context is as `instance` asks, and the component is used by this call only, as `# Safety` says;
    // shared calls use other fields.
    unsafe { &mut *instance::<C>(context).component.get() }
}

unsafe extern "C" fn create<C: Component>(
    host: *const HostTable,
    children: *const ChildHandle,
    child_count: usize,
    context: *mut *mut c_void,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: null, or the caller's own record.
    let error = unsafe { error.as_mut() };
    guard(error, || {
        // SAFETY: the host keeps its table and the children alive longer than the component.
        let (host, children) = unsafe {
            let children = (0..child_count).map(|index| Child::new(*children.add(index))).collect();
            (Host::new(host), children)
        };
        let component = C::create(host, children)?;
        let instance = Instance { host, shared: component.shared(), component: UnsafeCell::new(component) };
        // SAFETY: `context` is the host's place for the result.
        unsafe { *context = Box::into_raw(Box::new(instance)).cast() };
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
    let (instance, component) = unsafe { (instance::<C>(context), component::<C>(context)) };
    match panic_text(|| component.capabilities()) {
        // SAFETY: the caller's place for the result.
        Ok(found) => unsafe { *capabilities = found },
        Err(text) => instance.host.log(log_level::ERROR, &format!("{}: {text}", C::NAME)),
    }
}

unsafe extern "C" fn supports<C: Component>(context: *mut c_void, batch: *const BatchTables, block: u32) -> i32 {
    // SAFETY: serialised calls with our context; the tables live through the call.
    let (instance, component, batch) = unsafe { (instance::<C>(context), component::<C>(context), (*batch).as_ref()) };
    match panic_text(|| component.supports(&batch, block)) {
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
    report: *mut ReportRecord,
    error: *mut ErrorRecord,
) -> Status {
    BLOCK.set(None);
    // SAFETY: null, or the caller's own record.
    let error = unsafe { error.as_mut() };
    let code = guard(error, || {
        reserve::check()?;
        // SAFETY: serialised calls with our context; the tables and the list live through the call.
        unsafe {
            let blocks = if block_count == 0 { &[] } else { std::slice::from_raw_parts(blocks, block_count) };
            let mut report = Report::new(report);
            let outcome = component::<C>(context).execute(&(*batch).as_ref(), blocks, &mut report);
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

unsafe extern "C" fn predict<C: Component>(
    context: *mut c_void,
    batch: *const BatchTables,
    blocks: *const u32,
    block_count: usize,
    prediction: *mut Prediction,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: null, or the caller's own record.
    let error = unsafe { error.as_mut() };
    guard(error, || {
        // SAFETY: serialised calls with our context; the tables and the list live through the call.
        unsafe {
            let blocks = if block_count == 0 { &[] } else { std::slice::from_raw_parts(blocks, block_count) };
            *prediction = component::<C>(context).predict(&(*batch).as_ref(), blocks)?;
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
    // SAFETY: null, or the caller's own record.
    let error = unsafe { error.as_mut() };
    guard(error, || {
        // SAFETY: serialised calls with our context; the text lives through the call.
        let text = unsafe { CStr::from_ptr(text).to_string_lossy() };
        // SAFETY: calls with our context are serialised; the reference ends with this call.
        let (host, component) = unsafe { (instance::<C>(context).host, component::<C>(context)) };
        let answer = component.message(&text)?;
        host.reply(reply, &answer);
        Ok(())
    })
}
