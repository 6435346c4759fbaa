//! A loaded component: its negotiated table and one instance of it, with safe calls that tell null slots apart.

use crate::abi::{
    ABI_VERSION, Adoption, BatchTables, Capabilities, ChildHandle, ComponentTable, EntryFn, Evaluation, Export,
    ExportRequest, HostMemory, HostTable, Prediction, ReportRecord, Residency, ScalarOperation, Served, Wire,
    WireAnswer, status,
};
use crate::component::{Registry, Ticket};
use crate::error::{Error, RecordSpace, Result};
use crate::for_each_slot;
use bh_bytecode::{Base, Opcode, View};
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

    pub(crate) fn has_map(&self) -> bool {
        self.table().map.is_some()
    }

    pub(crate) fn has_supports(&self) -> bool {
        self.table().supports.is_some()
    }

    pub(crate) fn supports(&self, tables: &BatchTables, block: u32) -> Option<bool> {
        // SAFETY: the tables live through the call.
        Some(unsafe { self.table().supports?(self.context, tables, block) } != 0)
    }

    /// The result and the ticket, which an asynchronous engine may give even with an error.
    pub(crate) fn execute(
        &self,
        tables: &BatchTables,
        blocks: &[u32],
        report: *mut ReportRecord,
    ) -> Option<(Result<()>, u64)> {
        let mut record = RecordSpace::new();
        let mut ticket = 0;
        // SAFETY: the tables and the list live through the call.
        let code = unsafe {
            self.table().execute?(
                self.context,
                tables,
                blocks.as_ptr(),
                blocks.len(),
                &mut ticket,
                report,
                record.as_mut_ptr(),
            )
        };
        Some((record.check(code), ticket))
    }

    pub(crate) fn predict(&self, tables: &BatchTables, blocks: &[u32]) -> Option<Result<Prediction>> {
        let mut record = RecordSpace::new();
        let mut prediction = Prediction::default();
        // SAFETY: the tables and the list live through the call.
        let code = unsafe {
            self.table().predict?(
                self.context,
                tables,
                blocks.as_ptr(),
                blocks.len(),
                &mut prediction,
                record.as_mut_ptr(),
            )
        };
        Some(record.check(code).map(|()| prediction))
    }

    pub(crate) fn message(&self, text: &CStr, reply: *mut c_void) -> Option<Result<()>> {
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe { self.table().message?(self.context, text.as_ptr(), reply, record.as_mut_ptr()) };
        Some(record.check(code))
    }
}

macro_rules! foreign_slots {
    (
        special { $($special:tt)* }
        plain {
            $($(#[doc = $doc:literal])*
            $forwarding:ident $calls:ident fn $name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)? = $default:ident;)*
        }
    ) => {
        /// The plain slots, with arguments as they cross.
        impl Foreign<'_> {
            $(pub(crate) fn $name(
                &self,
                $($argument: <$kind as Wire>::Raw),*
            ) -> Option<Result<raw_answer!($($answer)?)>> {
                let function = self.table().$name?;
                let mut record = RecordSpace::new();
                let mut answer = <slot_answer!($($answer)?) as WireAnswer>::blank();
                // SAFETY: whoever calls the host vouches for the arguments; the answer has its place.
                let code = unsafe { foreign_call!(function, self.context, answer, record, ($($argument)*) $($answer)?) };
                Some(record.check(code).map(|()| answer))
            })*
        }
    };
}
macro_rules! foreign_call {
    ($function:ident, $context:expr, $answer:ident, $record:ident, ($($argument:ident)*)) => {{
        let () = &mut $answer;
        $function($context, $($argument,)* $record.as_mut_ptr())
    }};
    ($function:ident, $context:expr, $answer:ident, $record:ident, ($($argument:ident)*) $kind:ty) => {
        $function($context, $($argument,)* &mut $answer, $record.as_mut_ptr())
    };
}
/// The C type of an answer.
macro_rules! raw_answer {
    () => {
        ()
    };
    ($answer:ty) => {
        <$answer as crate::abi::WireAnswer>::Raw
    };
}
use crate::component::slot_answer;
pub(crate) use raw_answer;
for_each_slot!(foreign_slots);
