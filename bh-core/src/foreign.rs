//! A loaded component: its negotiated table and one instance of it, with safe calls that tell null slots apart.

use crate::abi::{
    ABI_VERSION, BatchTables, Capabilities, ChildHandle, ComponentTable, EntryFn, HostTable, RegistryTable, ReleaseFn,
    ViewSpec, status,
};
use crate::error::{Error, RecordSpace, Result};
use bh_bytecode::Base;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

/// A component's table after negotiation: slots that the component's older, shorter table lacks are null.
pub struct ForeignTable {
    table: ComponentTable,
    /// Name that the component gives itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The config keys it knows.
    pub keys: Vec<String>,
}

// SAFETY: the pointers in the table lead to immutable data and code of static lifetime (libraries are never unloaded).
unsafe impl Send for ForeignTable {}
// SAFETY: as above.
unsafe impl Sync for ForeignTable {}

/// The fields that every version of the table begins with.
#[repr(C)]
struct TableHead {
    struct_size: usize,
    abi_version: u32,
}

impl ForeignTable {
    /// Calls an entry function and checks what it returns, before anything else of the component is called.
    ///
    /// # Safety
    /// `entry` must be a component's entry function.
    pub unsafe fn negotiate(library: &str, entry: EntryFn) -> Result<ForeignTable> {
        // SAFETY: promised by the caller.
        let table = unsafe { entry(ABI_VERSION) };
        // SAFETY: a component returns null or a table of static lifetime.
        unsafe { ForeignTable::read(library, table) }
    }

    /// Checks and copies a table.
    ///
    /// # Safety
    /// `table` must be null or begin with a table of the size that it states.
    pub unsafe fn read(library: &str, table: *const ComponentTable) -> Result<ForeignTable> {
        if table.is_null() {
            return Err(Error::new(
                status::VERSION,
                format!("library '{library}' does not serve ABI version {ABI_VERSION}; rebuild it for this bh"),
            ));
        }
        // SAFETY: every version begins with this head.
        let (size, version) = unsafe { ((*table.cast::<TableHead>()).struct_size, (*table).abi_version) };
        if version != ABI_VERSION {
            return Err(Error::new(
                status::VERSION,
                format!(
                    "library '{library}' was built for ABI version {version}, but this bh has ABI version \
                     {ABI_VERSION}; rebuild one of them"
                ),
            ));
        }
        if size < std::mem::offset_of!(ComponentTable, destroy) || size > 1 << 16 {
            return Err(Error::new(
                status::VERSION,
                format!("library '{library}' is damaged: its component table states a size of {size} bytes"),
            ));
        }
        // SAFETY: all-zero bytes are null pointers and empty slots; the source has `size` bytes.
        let table = unsafe {
            let mut copy: ComponentTable = std::mem::zeroed();
            let bytes = size.min(size_of::<ComponentTable>());
            ptr::copy_nonoverlapping(table.cast::<u8>(), (&raw mut copy).cast::<u8>(), bytes);
            copy
        };
        if table.create.is_none() {
            return Err(Error::new(
                status::LIBRARY,
                format!("library '{library}' is no component: its table has no 'create' function"),
            ));
        }
        // SAFETY: texts of the table are null or NUL-terminated and static.
        let (name, version, keys) = unsafe { (text(table.name), text(table.version), text_list(table.keys)) };
        Ok(ForeignTable { table, name, version, keys })
    }

    /// What it is, a value of [`crate::abi::kind`].
    pub fn kind(&self) -> u32 {
        self.table.kind
    }

    /// Is it bh's own, so that the batches it passes on need no validation?
    pub fn trusted(&self) -> bool {
        self.version.starts_with("bh ")
    }

    /// Makes an instance.
    ///
    /// # Safety
    /// `host` and the children must outlive the instance.
    pub(crate) unsafe fn create(&self, host: *const HostTable, children: &[ChildHandle]) -> Result<*mut c_void> {
        let mut record = RecordSpace::new();
        let mut context = ptr::null_mut();
        let create = self.table.create.expect("negotiation refuses tables without it");
        // SAFETY: the pointers live through the call, and beyond as promised.
        let code = unsafe { create(host, children.as_ptr(), children.len(), &mut context, record.as_mut_ptr()) };
        record.check(code).map(|()| context)
    }
}

/// # Safety
/// `text` must be null or NUL-terminated.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: promised by the caller.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// # Safety
/// `list` must be null or a null-terminated list of texts.
unsafe fn text_list(mut list: *const *const c_char) -> Vec<String> {
    let mut texts = Vec::new();
    // SAFETY: promised by the caller.
    unsafe {
        while !list.is_null() && !(*list).is_null() {
            texts.push(text(*list));
            list = list.add(1);
        }
    }
    texts
}

/// One instance of a component. Every call returns `None` if the component leaves the function out.
pub(crate) struct Foreign<'a> {
    pub(crate) component: &'a ForeignTable,
    pub(crate) context: *mut c_void,
}

impl Foreign<'_> {
    fn table(&self) -> &ComponentTable {
        &self.component.table
    }

    pub(crate) fn destroy(&self) {
        if let Some(destroy) = self.table().destroy {
            // SAFETY: the owner calls this once, last.
            unsafe { destroy(self.context) }
        }
    }

    pub(crate) fn capabilities(&self) -> Option<Capabilities> {
        let mut capabilities = Capabilities::default();
        // SAFETY: the pointer lives through the call.
        unsafe { self.table().capabilities?(self.context, &mut capabilities) };
        Some(capabilities)
    }

    pub(crate) fn bind(&self, registry: *const RegistryTable) -> Option<Result<()>> {
        let mut record = RecordSpace::new();
        // SAFETY: the registry outlives the instance.
        let code = unsafe { self.table().bind?(self.context, registry, record.as_mut_ptr()) };
        Some(record.check(code))
    }

    pub(crate) fn has_supports(&self) -> bool {
        self.table().supports.is_some()
    }

    pub(crate) fn supports(&self, tables: &BatchTables, block: u32) -> Option<bool> {
        // SAFETY: the tables live through the call.
        Some(unsafe { self.table().supports?(self.context, tables, block) } != 0)
    }

    /// The result and the ticket, which an asynchronous engine may give even with an error.
    pub(crate) fn execute(&self, tables: &BatchTables, blocks: &[u32]) -> Option<(Result<()>, u64)> {
        let mut record = RecordSpace::new();
        let mut ticket = 0;
        // SAFETY: the tables and the list live through the call.
        let code = unsafe {
            self.table().execute?(self.context, tables, blocks.as_ptr(), blocks.len(), &mut ticket, record.as_mut_ptr())
        };
        Some((record.check(code), ticket))
    }

    pub(crate) fn wait(&self, ticket: u64) -> Option<Result<()>> {
        let mut record = RecordSpace::new();
        // SAFETY: a plain call.
        let code = unsafe { self.table().wait?(self.context, ticket, record.as_mut_ptr()) };
        Some(record.check(code))
    }

    pub(crate) fn map(&self, base: &Base, view: *const ViewSpec, access: u32) -> Option<Result<*mut c_void>> {
        let mut record = RecordSpace::new();
        let mut data = ptr::null_mut();
        // SAFETY: the pointers live through the call.
        let code = unsafe { self.table().map?(self.context, base, view, access, &mut data, record.as_mut_ptr()) };
        Some(record.check(code).map(|()| data))
    }

    pub(crate) fn unmap(&self, base: &Base) -> Option<Result<()>> {
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe { self.table().unmap?(self.context, base, record.as_mut_ptr()) };
        Some(record.check(code))
    }

    /// # Safety
    /// As `Component::adopt`.
    pub(crate) unsafe fn adopt(
        &self,
        base: &Base,
        data: *mut c_void,
        release: Option<ReleaseFn>,
        argument: *mut c_void,
    ) -> Option<Result<()>> {
        let mut record = RecordSpace::new();
        // SAFETY: promised by the caller.
        let code = unsafe { self.table().adopt?(self.context, base, data, release, argument, record.as_mut_ptr()) };
        Some(record.check(code))
    }

    pub(crate) fn pin(&self, base: &Base, pinned: i32) -> Option<Result<()>> {
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe { self.table().pin?(self.context, base, pinned, record.as_mut_ptr()) };
        Some(record.check(code))
    }

    pub(crate) fn extmethod(&self, name: &CStr, opcode: u16) -> Option<Result<bool>> {
        let mut record = RecordSpace::new();
        let mut known = 0;
        // SAFETY: the pointers live through the call.
        let code =
            unsafe { self.table().extmethod?(self.context, name.as_ptr(), opcode, &mut known, record.as_mut_ptr()) };
        Some(record.check(code).map(|()| known != 0))
    }

    pub(crate) fn message(&self, text: &CStr, reply: *mut c_void) -> Option<Result<()>> {
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe { self.table().message?(self.context, text.as_ptr(), reply, record.as_mut_ptr()) };
        Some(record.check(code))
    }
}
