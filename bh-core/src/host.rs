//! The host's services for one component instance, in the form of the ABI.

use crate::abi::{HostTable, ProgressFn, ReplySink};
use crate::services::Services;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::{Arc, Weak};

/// The host side of one instance; its address is the `context` of the table.
pub(crate) struct HostInstance {
    table: HostTable,
    services: Arc<Services>,
    label: String,
    /// The component's own name.
    component: String,
    values: HashMap<CString, CString>,
}

impl HostInstance {
    /// Services for the instance `label` of `component` with these config values.
    pub(crate) fn new(
        services: Arc<Services>,
        label: &str,
        component: &str,
        values: &[(String, String)],
    ) -> Arc<HostInstance> {
        let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
        let values = values.iter().map(|(key, value)| (text(key), text(value))).collect();
        let table = |context: *mut c_void| HostTable {
            struct_size: size_of::<HostTable>(),
            context,
            config,
            new_base_id,
            alloc,
            free,
            log,
            counter,
            trace_clock,
            trace,
            reply,
            progress,
            set_progress,
            handle,
            memory_left,
            trace_device,
        };
        // Unlike a box, an `Arc` may be moved while the component has its address.
        Arc::new_cyclic(|own: &Weak<HostInstance>| HostInstance {
            table: table(own.as_ptr().cast_mut().cast()),
            services,
            label: label.to_owned(),
            component: component.to_owned(),
            values,
        })
    }

    /// The table for the component; valid as long as the instance.
    pub(crate) fn table(&self) -> *const HostTable {
        &self.table
    }

    pub(crate) fn services(&self) -> &Services {
        &self.services
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }
}

/// # Safety
/// `context` must be the context of a table from above whose instance lives through `'a`.
unsafe fn instance<'a>(context: *mut c_void) -> &'a HostInstance {
    // SAFETY: the context is the address of an instance that lives through `'a`, as `# Safety` asks.
    unsafe { &*context.cast::<HostInstance>() }
}

/// # Safety
/// `text` must be null or NUL-terminated and live through `'a`.
unsafe fn text<'a>(text: *const c_char) -> std::borrow::Cow<'a, str> {
    // SAFETY: not null, and so a text that ends with a NUL and lives through `'a`, as `# Safety` asks.
    if text.is_null() { "".into() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy() }
}

unsafe extern "C" fn config(context: *mut c_void, key: *const c_char) -> *const c_char {
    if key.is_null() {
        return ptr::null();
    }
    // SAFETY: callers pass the table's context, whose instance outlives them; the key lives through the call.
    unsafe { instance(context).values.get(CStr::from_ptr(key)) }.map_or(ptr::null(), |value| value.as_ptr())
}

unsafe extern "C" fn new_base_id(context: *mut c_void) -> u64 {
    // SAFETY: callers pass the table's context, whose instance outlives them.
    unsafe { instance(context) }.services.new_base_id()
}

unsafe extern "C" fn alloc(context: *mut c_void, bytes: usize, zeroed: i32) -> *mut c_void {
    // SAFETY: callers pass the table's context, whose instance outlives them.
    let services = &unsafe { instance(context) }.services;
    let data = services.memory().alloc(bytes, zeroed != 0);
    services.trace_memory();
    data.map_or(ptr::null_mut(), <*mut u8>::cast)
}

unsafe extern "C" fn free(context: *mut c_void, data: *mut c_void, bytes: usize) {
    if !data.is_null() {
        // SAFETY: callers pass the table's context, whose instance outlives them.
        let services = unsafe { &instance(context).services };
        // SAFETY: `alloc` returned `data` for these bytes, and the component frees it once.
        unsafe { services.memory().free(data.cast(), bytes) };
        services.trace_memory();
    }
}

unsafe extern "C" fn log(context: *mut c_void, level: u32, line: *const c_char) {
    // SAFETY: callers pass the table's context, whose instance outlives them; the text lives through the call.
    let (instance, line) = unsafe { (instance(context), text(line)) };
    instance.services.log(level, &instance.label, &line);
}

unsafe extern "C" fn counter(context: *mut c_void, name: *const c_char) -> *mut u64 {
    // SAFETY: callers pass the table's context, whose instance outlives them; the name lives through the call.
    let (instance, name) = unsafe { (instance(context), text(name)) };
    // The prefix is the label; a name that already begins with it is not prefixed twice.
    let name = match name.split_once('.') {
        Some((first, rest)) if first == instance.label || first == instance.component => rest,
        _ => &name,
    };
    instance.services.stats().counter(&format!("{}.{name}", instance.label)).as_ptr()
}

unsafe extern "C" fn trace_clock(context: *mut c_void) -> u64 {
    // SAFETY: callers pass the table's context, whose instance outlives them.
    unsafe { instance(context) }.services.trace().map_or(0, |trace| trace.clock())
}

unsafe extern "C" fn trace(context: *mut c_void, name: *const c_char, begin: u64, detail: *const c_char) {
    // SAFETY: callers pass the table's context, whose instance outlives them; the texts live through the call.
    let (instance, name, detail) = unsafe { (instance(context), text(name), text(detail)) };
    if let Some(trace) = instance.services.trace() {
        trace.record(&instance.label, &name, begin, &detail);
    }
}

unsafe extern "C" fn trace_device(
    context: *mut c_void,
    name: *const c_char,
    row: u64,
    begin: u64,
    end: u64,
    detail: *const c_char,
) {
    // SAFETY: callers pass the table's context, whose instance outlives them; the texts live through the call.
    let (instance, name, detail) = unsafe { (instance(context), text(name), text(detail)) };
    if let Some(trace) = instance.services.trace() {
        trace.record_device(&instance.label, &name, row, begin..end, &detail);
    }
}

unsafe extern "C" fn reply(reply: *mut c_void, text: *const c_char, bytes: usize) {
    if reply.is_null() || bytes == 0 {
        return;
    }
    // SAFETY: `reply` is the sink that came with the `message` call, and the text has this many bytes.
    unsafe {
        let sink = &*reply.cast::<ReplySink>();
        (sink.append)(sink.context, text, bytes);
    }
}

unsafe extern "C" fn progress(context: *mut c_void) {
    // SAFETY: callers pass the table's context, whose instance outlives them.
    unsafe { instance(context) }.services.progress();
}

unsafe extern "C" fn set_progress(context: *mut c_void, function: Option<ProgressFn>, argument: *mut c_void) {
    // SAFETY: callers pass the table's context, whose instance outlives them; the function works with the argument
    // until another one is set, as [`crate::component::Host::set_progress`] asks.
    unsafe { instance(context).services.set_progress(function, argument) };
}

unsafe extern "C" fn handle(context: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: callers pass the table's context, whose instance outlives them; the name lives through the call.
    let (instance, name) = unsafe { (instance(context), text(name)) };
    instance.services.handle(&name)
}

unsafe extern "C" fn memory_left(context: *mut c_void) -> u64 {
    // SAFETY: callers pass the table's context, whose instance outlives them.
    unsafe { instance(context) }.services.memory().left() as u64
}
