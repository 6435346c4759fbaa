//! The safe side of the ABI: what a component implements ([`Component`]) and what it is given ([`Host`], [`Child`],
//! [`Registry`]).

use crate::abi::{
    AttachmentOps, BatchTables, Buffer, Capabilities, ChildHandle, ComponentTable, ErrorRecord, HOST_SPACE, HostTable,
    RegistryTable, ReleaseFn, ReplySink, ViewSpec, access, status,
};
use crate::error::{Error, RecordSpace, Result};
use bh_bytecode::{Base, BatchRef, Opcode, View};
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names the work of an `execute` call; [`Ticket::DONE`] needs no waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

impl Ticket {
    /// The work is done.
    pub const DONE: Ticket = Ticket(0);
}

/// A component. Every method but `create` and `child` has a default that forwards to the child. Methods are never called
/// concurrently or re-entered on one instance. Export the type with [`crate::export_component!`].
pub trait Component: Sized + Send + 'static {
    /// Name, as in config sections: `filter`.
    const NAME: &'static str;
    /// A value of [`crate::abi::kind`].
    const KIND: u32;
    /// The config keys it knows.
    const KEYS: &'static [&'static str];

    /// Makes an instance above these children.
    fn create(host: Host, children: Vec<Child>) -> Result<Self>;

    /// The child that default methods forward to; `None` at the bottom of the stack.
    fn child(&mut self) -> Option<&mut Child>;

    /// What it can do; by default what the child can do.
    fn capabilities(&mut self) -> Capabilities {
        self.child().map_or_else(Capabilities::default, |child| child.capabilities())
    }

    /// Receives the registry of the data manager above.
    fn bind(&mut self, registry: Registry) -> Result<()> {
        self.child().map_or(Ok(()), |child| child.bind(registry))
    }

    /// Can it run this block?
    fn supports(&mut self, _batch: &BatchRef<'_>, _block: u32) -> bool {
        true
    }

    /// Runs these blocks in this order, or the batch in stored order if it has no partition. On failure: stop, name the
    /// block ([`Error::in_block`]); earlier blocks are done.
    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Ticket> {
        let name = Self::NAME;
        match self.child() {
            Some(child) => child.execute(batch, blocks),
            None => Err(Error::new(status::UNSUPPORTED, format!("{name} cannot execute and has no child"))),
        }
    }

    /// Waits for a ticket.
    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        self.child().map_or(Ok(()), |child| child.wait(ticket))
    }

    /// Makes a base (or the part under `view`) accessible in host memory; returns the address of element 0 of the base.
    fn map(&mut self, base: &Base, view: Option<&View>, access: u32) -> Result<*mut u8> {
        let name = Self::NAME;
        match self.child() {
            Some(child) => child.map(base, view, access),
            None => Err(Error::new(status::UNSUPPORTED, format!("{name} holds no arrays and has no child"))),
        }
    }

    /// Ends a `map`.
    fn unmap(&mut self, base: &Base) -> Result<()> {
        self.child().map_or(Ok(()), |child| child.unmap(base))
    }

    /// Takes the caller's memory as the base's data.
    ///
    /// # Safety
    /// `data` must hold the whole base and stay valid until `release` is called.
    unsafe fn adopt(
        &mut self,
        base: &Base,
        data: *mut u8,
        release: Option<ReleaseFn>,
        argument: *mut c_void,
    ) -> Result<()> {
        let name = Self::NAME;
        match self.child() {
            // SAFETY: passed on as promised by the caller.
            Some(child) => unsafe { child.adopt(base, data, release, argument) },
            None => Err(Error::new(status::UNSUPPORTED, format!("{name} holds no arrays and has no child"))),
        }
    }

    /// Forbids or allows moving the base's host memory.
    fn pin(&mut self, base: &Base, pinned: bool) -> Result<()> {
        self.child().map_or(Ok(()), |child| child.pin(base, pinned))
    }

    /// Learns that `opcode` stands for the method `name`; returns whether it or a component below runs it.
    fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        self.child().map_or(Ok(false), |child| child.extmethod(name, opcode))
    }

    /// Answers a text question or command; an empty answer means that nobody knew it.
    fn message(&mut self, text: &str) -> Result<String> {
        self.child().map_or(Ok(String::new()), |child| child.message(text))
    }
}

/// Notes that an engine begins with this block, so that an error or a panic is reported at its place and only this block
/// is lost.
pub fn enter_block(block: u32) {
    crate::guard::BLOCK.set(Some(block));
}

/// Services of the host.
#[derive(Clone, Copy)]
pub struct Host {
    table: *const HostTable,
}

// SAFETY: the host's functions may be called from any thread.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

/// A counter of the statistics; counting is one relaxed atomic addition.
#[derive(Clone, Copy)]
pub struct Counter(*const AtomicU64);

// SAFETY: it points to an atomic that lives as long as the instance.
unsafe impl Send for Counter {}
// SAFETY: as above.
unsafe impl Sync for Counter {}

impl Counter {
    /// Adds to the counter.
    #[inline]
    pub fn add(self, count: u64) {
        // SAFETY: the host keeps counters alive as long as the instance.
        unsafe { (*self.0).fetch_add(count, Ordering::Relaxed) };
    }

    /// Raises the counter to at least `value`.
    pub fn raise(self, value: u64) {
        // SAFETY: as above.
        unsafe { (*self.0).fetch_max(value, Ordering::Relaxed) };
    }
}

impl Host {
    /// Wraps the host's table.
    ///
    /// # Safety
    /// `table` must be valid as long as the component lives.
    pub unsafe fn new(table: *const HostTable) -> Host {
        Host { table }
    }

    fn table(&self) -> &HostTable {
        // SAFETY: promised at construction.
        unsafe { &*self.table }
    }

    /// The value of a config key, if set.
    pub fn config(&self, key: &str) -> Option<String> {
        let key = CString::new(key).ok()?;
        // SAFETY: the host returns null or a text that lives as long as the instance.
        unsafe {
            let text = (self.table().config)(self.table().context, key.as_ptr());
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    }

    /// The value of a config key parsed, or `default` if unset. The error names the key and the value.
    pub fn config_or<T: std::str::FromStr>(&self, key: &str, default: T) -> Result<T> {
        match self.config(key) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| {
                let expected = std::any::type_name::<T>();
                Error::new(status::CONFIG, format!("config key '{key}': '{text}' is not a valid {expected}"))
            }),
        }
    }

    /// A new base id.
    pub fn new_base_id(&self) -> u64 {
        // SAFETY: a plain call.
        unsafe { (self.table().new_base_id)(self.table().context) }
    }

    /// Host memory, see [`HostTable::alloc`]; give it back with [`Host::free`].
    pub fn alloc(&self, bytes: usize, zeroed: bool) -> Result<*mut u8> {
        // SAFETY: a plain call.
        let data = unsafe { (self.table().alloc)(self.table().context, bytes, i32::from(zeroed)) };
        if data.is_null() {
            return Err(Error::new(
                status::MEMORY,
                format!("out of memory: {bytes} bytes of host memory are not to be had"),
            ));
        }
        Ok(data.cast())
    }

    /// Gives memory back.
    ///
    /// # Safety
    /// `data` must come from [`Host::alloc`] with the same `bytes`, and be unused.
    pub unsafe fn free(&self, data: *mut u8, bytes: usize) {
        // SAFETY: promised by the caller.
        unsafe { (self.table().free)(self.table().context, data.cast(), bytes) }
    }

    /// Writes a line to the log; see [`crate::abi::log_level`].
    pub fn log(&self, level: u32, text: &str) {
        if let Ok(text) = CString::new(text.replace('\0', " ")) {
            // SAFETY: a plain call.
            unsafe { (self.table().log)(self.table().context, level, text.as_ptr()) }
        }
    }

    /// The counter of this name.
    pub fn counter(&self, name: &str) -> Counter {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the host returns a counter that lives as long as the instance.
        Counter(unsafe { (self.table().counter)(self.table().context, name.as_ptr()) }.cast())
    }

    /// The time for the start of a trace event; 0 when no trace is wanted.
    #[inline]
    pub fn trace_clock(&self) -> u64 {
        // SAFETY: a plain call.
        unsafe { (self.table().trace_clock)(self.table().context) }
    }

    /// Records a trace event from `begin` until now; nothing if `begin` is 0.
    pub fn trace(&self, name: &str, begin: u64, detail: &str) {
        if begin == 0 {
            return;
        }
        if let (Ok(name), Ok(detail)) = (CString::new(name), CString::new(detail)) {
            // SAFETY: a plain call.
            unsafe { (self.table().trace)(self.table().context, name.as_ptr(), begin, detail.as_ptr()) }
        }
    }

    pub(crate) fn reply(&self, reply: *mut c_void, text: &str) {
        // SAFETY: `reply` is the pointer that the host passed to `message`.
        unsafe { (self.table().reply)(reply, text.as_ptr().cast(), text.len()) }
    }
}

/// A child in the stack.
pub struct Child {
    handle: ChildHandle,
}

// SAFETY: calls are serialised by the owner of the value, and the host's functions have no thread affinity beyond
// what capabilities announce.
unsafe impl Send for Child {}

macro_rules! slot {
    ($self:ident.$name:ident) => {
        $self.table().$name.expect("the host fills every slot")
    };
}

/// Calls `f` with a view's description, or null.
pub(crate) fn with_view_spec<T>(view: Option<&View>, f: impl FnOnce(*const ViewSpec) -> T) -> T {
    match view {
        None => f(ptr::null()),
        Some(view) => f(&ViewSpec {
            start: view.start(),
            shape: view.shape().as_ptr(),
            stride: view.stride().as_ptr(),
            rank: view.rank() as u32,
        }),
    }
}

impl Child {
    /// Wraps a handle.
    ///
    /// # Safety
    /// The handle must stay valid as long as the value, and its calls must not race with others on the same component.
    pub unsafe fn new(handle: ChildHandle) -> Child {
        Child { handle }
    }

    fn table(&self) -> &ComponentTable {
        // SAFETY: the host's table outlives the component.
        unsafe { &*self.handle.table }
    }

    /// See [`Component::capabilities`].
    pub fn capabilities(&mut self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        // SAFETY: the pointers are valid for the call.
        unsafe { slot!(self.capabilities)(self.handle.context, &mut capabilities) };
        capabilities
    }

    /// See [`Component::bind`].
    pub fn bind(&mut self, registry: Registry) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the registry outlives the components below it.
        let code = unsafe { slot!(self.bind)(self.handle.context, registry.table, record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`Component::supports`].
    pub fn supports(&mut self, batch: &BatchRef<'_>, block: u32) -> bool {
        let tables = BatchTables::new(batch);
        // SAFETY: the tables live through the call.
        unsafe { slot!(self.supports)(self.handle.context, &tables, block) != 0 }
    }

    /// See [`Component::execute`].
    pub fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Ticket> {
        let tables = BatchTables::new(batch);
        let mut record = RecordSpace::new();
        let mut ticket = 0;
        // SAFETY: the tables live through the call.
        let code = unsafe {
            slot!(self.execute)(
                self.handle.context,
                &tables,
                blocks.as_ptr(),
                blocks.len(),
                &mut ticket,
                record.as_mut_ptr(),
            )
        };
        record.check(code).map(|()| Ticket(ticket)).map_err(|mut error| {
            error.locate(batch);
            error
        })
    }

    /// See [`Component::wait`].
    pub fn wait(&mut self, ticket: Ticket) -> Result<()> {
        if ticket == Ticket::DONE {
            return Ok(());
        }
        let mut record = RecordSpace::new();
        // SAFETY: a plain call.
        let code = unsafe { slot!(self.wait)(self.handle.context, ticket.0, record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`Component::map`].
    pub fn map(&mut self, base: &Base, view: Option<&View>, access: u32) -> Result<*mut u8> {
        let mut record = RecordSpace::new();
        let mut data = ptr::null_mut();
        let code = with_view_spec(view, |view| {
            // SAFETY: the pointers live through the call.
            unsafe { slot!(self.map)(self.handle.context, base, view, access, &mut data, record.as_mut_ptr()) }
        });
        record.check(code).map(|()| data.cast())
    }

    /// See [`Component::unmap`].
    pub fn unmap(&mut self, base: &Base) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe { slot!(self.unmap)(self.handle.context, base, record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`Component::adopt`].
    ///
    /// # Safety
    /// As [`Component::adopt`].
    pub unsafe fn adopt(
        &mut self,
        base: &Base,
        data: *mut u8,
        release: Option<ReleaseFn>,
        argument: *mut c_void,
    ) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: promised by the caller.
        let code = unsafe {
            slot!(self.adopt)(self.handle.context, base, data.cast(), release, argument, record.as_mut_ptr())
        };
        record.check(code)
    }

    /// See [`Component::pin`].
    pub fn pin(&mut self, base: &Base, pinned: bool) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe { slot!(self.pin)(self.handle.context, base, i32::from(pinned), record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`Component::extmethod`].
    pub fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        let text = CString::new(name)
            .map_err(|_| Error::new(status::ARGUMENT, format!("method name {name:?} contains a NUL")))?;
        let mut record = RecordSpace::new();
        let mut known = 0;
        // SAFETY: the pointers live through the call.
        let code = unsafe {
            slot!(self.extmethod)(self.handle.context, text.as_ptr(), opcode.0, &mut known, record.as_mut_ptr())
        };
        record.check(code).map(|()| known != 0)
    }

    /// See [`Component::message`].
    pub fn message(&mut self, text: &str) -> Result<String> {
        let text = CString::new(text).map_err(|_| Error::new(status::ARGUMENT, "message contains a NUL"))?;
        let mut record = RecordSpace::new();
        let mut answer = Vec::new();
        let mut reply = ReplySink { context: (&raw mut answer).cast(), append: append_bytes };
        // SAFETY: the sink and what it points to live through the call.
        let code = unsafe {
            slot!(self.message)(self.handle.context, text.as_ptr(), (&raw mut reply).cast(), record.as_mut_ptr())
        };
        record.check(code).map(|()| String::from_utf8_lossy(&answer).into_owned())
    }
}

/// [`ReplySink::append`] for a `Vec<u8>`.
unsafe extern "C" fn append_bytes(context: *mut c_void, text: *const c_char, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the context is the vector given with the sink, and the text has this many bytes.
        unsafe { (*context.cast::<Vec<u8>>()).extend_from_slice(std::slice::from_raw_parts(text.cast(), bytes)) }
    }
}

/// The data manager's services for the components below it. May be used from any thread that the component owns.
#[derive(Clone, Copy)]
pub struct Registry {
    table: *const RegistryTable,
}

// SAFETY: the registry's functions may be called from any thread.
unsafe impl Send for Registry {}
// SAFETY: as above.
unsafe impl Sync for Registry {}

impl Registry {
    /// Wraps the registry's table.
    ///
    /// # Safety
    /// `table` must stay valid as long as the components below live.
    pub unsafe fn new(table: *const RegistryTable) -> Registry {
        Registry { table }
    }

    fn table(&self) -> &RegistryTable {
        // SAFETY: promised at construction.
        unsafe { &*self.table }
    }

    /// See [`RegistryTable::new_space`].
    pub fn new_space(&self) -> u32 {
        // SAFETY: a plain call.
        unsafe { (self.table().new_space)(self.table().context) }
    }

    /// Lends the host buffer of a base; see [`RegistryTable::acquire`] and [`access`].
    #[inline]
    pub fn acquire(&self, base: &Base, access: u32) -> Result<Buffer> {
        self.acquire_in(base, HOST_SPACE, access)
    }

    /// Lends the buffer of a base in a space; `data` is null if no valid copy is attached there.
    pub fn acquire_in(&self, base: &Base, space: u32, access: u32) -> Result<Buffer> {
        let mut buffer = Buffer { data: ptr::null_mut(), bytes: 0, token: 0 };
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe {
            (self.table().acquire)(self.table().context, base, space, access, &mut buffer, record.as_mut_ptr())
        };
        // A poisoned base's error comes from another batch, whose block and instruction numbers mean nothing here.
        record.check(code).map(|()| buffer).map_err(Error::unplaced)
    }

    /// Ends a loan.
    #[inline]
    pub fn release(&self, buffer: &Buffer) {
        // SAFETY: a plain call.
        unsafe { (self.table().release)(self.table().context, buffer) }
    }

    /// See [`RegistryTable::fresh`].
    pub fn fresh(&self, base: &Base) -> Result<Buffer> {
        let mut buffer = Buffer { data: ptr::null_mut(), bytes: 0, token: 0 };
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe { (self.table().fresh)(self.table().context, base, &mut buffer, record.as_mut_ptr()) };
        record.check(code).map(|()| buffer)
    }

    /// See [`RegistryTable::commit_rename`].
    pub fn commit_rename(&self, base: &Base, buffer: &Buffer) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe { (self.table().commit_rename)(self.table().context, base, buffer, record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`RegistryTable::alias`].
    pub fn alias(&self, alias: &Base, base: &Base, view: &View) -> Result<()> {
        let mut record = RecordSpace::new();
        let code = with_view_spec(Some(view), |view| {
            // SAFETY: the pointers live through the call.
            unsafe { (self.table().alias)(self.table().context, alias, base, view, record.as_mut_ptr()) }
        });
        record.check(code)
    }

    /// See [`RegistryTable::attach`].
    ///
    /// # Safety
    /// `handle` and `operations` must work until `operations.drop` is called for the handle.
    pub unsafe fn attach(
        &self,
        base: &Base,
        space: u32,
        handle: *mut c_void,
        exclusive: bool,
        operations: &AttachmentOps,
    ) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: promised by the caller.
        let code = unsafe {
            (self.table().attach)(
                self.table().context,
                base,
                space,
                handle,
                i32::from(exclusive),
                operations,
                record.as_mut_ptr(),
            )
        };
        record.check(code)
    }

    /// See [`RegistryTable::poison`].
    pub fn poison(&self, base: &Base, error: &Error) {
        let mut record = ErrorRecord::empty();
        error.clone().unplaced().write(&mut record);
        // SAFETY: the pointers live through the call.
        unsafe { (self.table().poison)(self.table().context, base, &record) }
    }

    /// See [`RegistryTable::block_done`].
    pub fn block_done(&self, batch: &BatchRef<'_>, block: u32) {
        let tables = BatchTables::new(batch);
        // SAFETY: the tables live through the call.
        unsafe { (self.table().block_done)(self.table().context, &tables, block) }
    }

    /// The access of an output that covers the whole base (`whole`) or a part of it.
    pub fn output_access(whole: bool) -> u32 {
        if whole { access::WRITE | access::DISCARD } else { access::WRITE }
    }
}
