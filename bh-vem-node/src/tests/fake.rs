//! A host that counts its memory, and a device that counts its calls, for tests.

use crate::registry::ArrayRegistry;
use bh_bytecode::{Base, DType};
use bh_core::abi::{AttachmentOps, ErrorRecord, HostTable, ProgressFn, RegistryTable, Status, access, status};
use bh_core::component::{Host, Registry, registry_table};
use bh_core::error::Error;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The context of the host's functions.
#[derive(Default)]
struct HostState {
    live: AtomicUsize,
    limit: AtomicUsize,
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
}

/// A host that counts and frees all of its memory.
pub struct FakeHost {
    state: Arc<HostState>,
    table: Rc<HostTable>,
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 64).expect("a sane size")
}

unsafe extern "C" fn config(_: *mut c_void, _: *const c_char) -> *const c_char {
    ptr::null()
}

unsafe extern "C" fn new_base_id(_: *mut c_void) -> u64 {
    1 << 40
}

unsafe extern "C" fn host_alloc(context: *mut c_void, bytes: usize, zeroed: i32) -> *mut c_void {
    // SAFETY: the context is the host's state; sizes are never zero.
    unsafe {
        let state = &*context.cast::<HostState>();
        let live = state.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let limit = state.limit.load(Ordering::Relaxed);
        if limit > 0 && live > limit {
            state.live.fetch_sub(bytes, Ordering::Relaxed);
            return ptr::null_mut();
        }
        let data = if zeroed == 1 { alloc_zeroed(layout(bytes)) } else { alloc(layout(bytes)) };
        if zeroed == 0 {
            data.write_bytes(0xaa, bytes);
        }
        data.cast()
    }
}

unsafe extern "C" fn host_free(context: *mut c_void, data: *mut c_void, bytes: usize) {
    // SAFETY: allocated above with this size.
    unsafe {
        (*context.cast::<HostState>()).live.fetch_sub(bytes, Ordering::Relaxed);
        dealloc(data.cast(), layout(bytes));
    }
}

unsafe extern "C" fn log(_: *mut c_void, _: u32, _: *const c_char) {}

unsafe extern "C" fn counter(context: *mut c_void, name: *const c_char) -> *mut u64 {
    // SAFETY: the context is the host's state and the name a C string; counters live as long as the host.
    unsafe {
        let name = CStr::from_ptr(name).to_string_lossy().into_owned();
        let mut counters = (*context.cast::<HostState>()).counters.lock().unwrap();
        counters.entry(name).or_default().as_ptr()
    }
}

unsafe extern "C" fn trace_clock(_: *mut c_void) -> u64 {
    0
}

unsafe extern "C" fn trace(_: *mut c_void, _: *const c_char, _: u64, _: *const c_char) {}

unsafe extern "C" fn reply(_: *mut c_void, _: *const c_char, _: usize) {}

unsafe extern "C" fn progress(_: *mut c_void) {}

unsafe extern "C" fn set_progress(_: *mut c_void, _: Option<ProgressFn>, _: *mut c_void) {}

unsafe extern "C" fn handle(_: *mut c_void, _: *const c_char) -> *mut c_void {
    ptr::null_mut()
}

unsafe extern "C" fn trace_device(_: *mut c_void, _: *const c_char, _: u64, _: u64, _: u64, _: *const c_char) {}

unsafe extern "C" fn memory_left(_: *mut c_void) -> u64 {
    u64::MAX
}

impl FakeHost {
    /// A host with a memory limit of `limit` bytes; 0 for none.
    pub fn new(limit: usize) -> FakeHost {
        let state = Arc::new(HostState { limit: AtomicUsize::new(limit), ..HostState::default() });
        let table = Rc::new(HostTable {
            struct_size: size_of::<HostTable>(),
            context: Arc::as_ptr(&state).cast_mut().cast(),
            config,
            new_base_id,
            alloc: host_alloc,
            free: host_free,
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
        });
        FakeHost { state, table }
    }

    /// The host's safe interface.
    pub fn host(&self) -> Host {
        // SAFETY: the reference count keeps the table at its address; `self` outlives the host's users in tests.
        unsafe { Host::new(Rc::as_ptr(&self.table)) }
    }

    /// Bytes allocated and not freed.
    pub fn live(&self) -> usize {
        self.state.live.load(Ordering::Relaxed)
    }

    /// The value of a counter.
    pub fn count(&self, name: &str) -> u64 {
        self.state.counters.lock().unwrap().get(name).map_or(0, |value| value.load(Ordering::Relaxed))
    }
}

/// A registry with a fake host, and its C table.
pub struct Fixture {
    table: Rc<RegistryTable>,
    pub registry: Arc<ArrayRegistry>,
    pub fake: FakeHost,
}

impl Fixture {
    /// Without a memory limit.
    pub fn new() -> Fixture {
        Fixture::with_limit(0)
    }

    /// With a limit of host memory in bytes.
    pub fn with_limit(limit: usize) -> Fixture {
        let fake = FakeHost::new(limit);
        let registry = Arc::new(ArrayRegistry::new(fake.host()));
        // SAFETY: the reference count keeps the registry at its address, and the fixture keeps it alive.
        let table = Rc::new(unsafe { registry_table::<ArrayRegistry>(Arc::as_ptr(&registry)) });
        Fixture { table, registry, fake }
    }

    /// The engines' interface.
    pub fn engine(&self) -> Registry {
        // SAFETY: the reference count keeps the table at its address, and the fixture keeps it alive.
        unsafe { Registry::new(Rc::as_ptr(&self.table)) }
    }

    /// The values of an i32 base, as an engine reads them.
    pub fn values(&self, base: &Base) -> Result<Vec<i32>, Error> {
        values(&self.engine(), base)
    }

    /// Writes values at the start of an i32 base.
    pub fn write(&self, base: &Base, access: u32, values: &[i32]) {
        let loan = self.engine().acquire(base, access).unwrap();
        // SAFETY: the loan has space for the base's elements.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), loan.data().cast::<i32>(), values.len()) };
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.registry.with(|arrays| arrays.clear());
        assert_eq!(self.fake.live(), 0, "the registry gives all memory back");
    }
}

/// The values of an i32 base, as an engine reads them.
pub fn values(engine: &Registry, base: &Base) -> Result<Vec<i32>, Error> {
    let loan = engine.acquire(base, access::READ)?;
    // SAFETY: the loan has the base's elements.
    let values = unsafe { std::slice::from_raw_parts(loan.data().cast::<i32>(), base.len as usize) }.to_vec();
    Ok(values)
}

/// A base of `len` 32-bit integers.
pub fn ints(id: u64, len: i64) -> Base {
    Base::new(id, DType::I32, len)
}

/// A copy on a device, filled with one value.
pub struct DeviceCopy {
    pub value: i32,
    pub downloads: AtomicUsize,
    pub drops: AtomicUsize,
    pub fail: bool,
}

impl DeviceCopy {
    pub fn new(value: i32) -> DeviceCopy {
        DeviceCopy { value, downloads: AtomicUsize::new(0), drops: AtomicUsize::new(0), fail: false }
    }

    pub fn handle(&self) -> *mut c_void {
        ptr::from_ref(self).cast_mut().cast()
    }

    pub fn uses(&self) -> (usize, usize) {
        (self.downloads.load(Ordering::Relaxed), self.drops.load(Ordering::Relaxed))
    }
}

unsafe extern "C" fn to_host(
    _: *mut c_void,
    handle: *mut c_void,
    data: *mut c_void,
    bytes: usize,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the handle is a `DeviceCopy`, and the registry provides space for the base.
    unsafe {
        let copy = &*handle.cast::<DeviceCopy>();
        copy.downloads.fetch_add(1, Ordering::Relaxed);
        if copy.fail {
            return Error::new(status::DEVICE, "the device is on fire").write(&mut *error);
        }
        std::slice::from_raw_parts_mut(data.cast::<i32>(), bytes / 4).fill(copy.value);
    }
    status::OK
}

unsafe extern "C" fn drop_copy(_: *mut c_void, handle: *mut c_void) {
    // SAFETY: the handle is a `DeviceCopy`.
    unsafe { (*handle.cast::<DeviceCopy>()).drops.fetch_add(1, Ordering::Relaxed) };
}

/// The device's operations.
pub const DEVICE: AttachmentOps = AttachmentOps {
    struct_size: size_of::<AttachmentOps>(),
    context: ptr::null_mut(),
    to_host,
    drop: drop_copy,
    read: None,
    write: None,
    prefetch: None,
    clone: None,
};
