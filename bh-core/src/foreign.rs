//! A loaded component: its negotiated table and one instance of it, with safe calls that distinguish null slots.

use crate::abi::{
    ABI_VERSION, Adoption, BatchTables, Capabilities, ChildHandle, ComponentTable, EntryFn, ErrorRecord, Evaluation,
    Export, ExportRequest, HostMemory, HostTable, ImmediateOperation, Prediction, ReportRecord, Residency,
    ScalarOperation, Served, Status, Wire, WireAnswer, kind, status,
};
use crate::component::{Registry, Ticket};
use crate::error::{Error, RecordSpace, Result};
use crate::for_each_slot;
use crate::unwinding::{Callee, Returns, enter};
use bh_bytecode::{Base, Opcode, View};
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

/// A component's table after negotiation: slots that an older, shorter table lacks are null.
pub struct ForeignTable {
    table: ComponentTable,
    /// The component's own name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The config keys it knows.
    pub keys: Vec<String>,
}

// SAFETY: the pointers in the table refer to immutable data and code of static lifetime (libraries are never unloaded).
unsafe impl Send for ForeignTable {}
// SAFETY: as above.
unsafe impl Sync for ForeignTable {}

/// The leading fields of every version of the table.
#[repr(C)]
struct TableHead {
    struct_size: usize,
    abi_version: u32,
}

impl ForeignTable {
    /// Calls an entry function and checks the returned table, before any other function of the component is called.
    ///
    /// # Safety
    /// `entry` must be a component's entry function: callable with any version, and its table must satisfy
    /// [`ForeignTable::read`].
    pub unsafe fn negotiate(library: &str, entry: EntryFn) -> Result<ForeignTable> {
        // SAFETY: `entry` is an entry function, as `# Safety` asks, and may be called with any version.
        let table = unsafe { entry(ABI_VERSION) };
        // SAFETY: an entry function returns what `read` asks for, as `# Safety` says.
        unsafe { ForeignTable::read(library, table) }
    }

    /// Checks and copies a table.
    ///
    /// # Safety
    /// `table` must be null, or point to a table of the size that it states and of static lifetime. In a table of this
    /// version, texts must be null or end with a NUL, the list of keys must be null or end with null, and functions
    /// must have their slots' types.
    pub unsafe fn read(library: &str, table: *const ComponentTable) -> Result<ForeignTable> {
        if table.is_null() {
            return Err(Error::new(
                status::VERSION,
                format!("library '{library}' does not serve ABI version {ABI_VERSION}; rebuild it for this bh"),
            ));
        }
        // SAFETY: every version begins with these fields.
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
        // Only pointers follow the leading fields, so a table of any version ends between two pointers.
        let whole = size.is_multiple_of(size_of::<*const ()>());
        if size < std::mem::offset_of!(ComponentTable, destroy) || size > 1 << 16 || !whole {
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
        let damaged = |what: &str| {
            Error::new(status::LIBRARY, format!("library '{library}' is no component: its table has {what}"))
        };
        if !(kind::FILTER..=kind::ENGINE).contains(&table.kind) {
            return Err(damaged(&format!("the unknown kind {}", table.kind)));
        }
        // SAFETY: texts of the table are null or static, and NUL-terminated unless they are longer than any text may be.
        let (name, version, keys) = unsafe { (text(table.name), text(table.version), text_list(table.keys)) };
        let name = name.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| damaged(&format!("no name of 1 to {LONGEST_TEXT} bytes")))?;
        let version = version.ok_or_else(|| damaged(&format!("no version of at most {LONGEST_TEXT} bytes")))?;
        let keys = keys.ok_or_else(|| damaged(&format!("no list of at most {MOST_KEYS} short config keys")))?;
        Ok(ForeignTable { table, name, version, keys })
    }

    /// Its kind, a value of [`crate::abi::kind`].
    pub fn kind(&self) -> u32 {
        self.table.kind
    }

    /// Whether it is one of bh's own components, whose batches need no validation.
    pub fn trusted(&self) -> bool {
        self.version.starts_with("bh ")
    }

    /// Creates an instance.
    ///
    /// # Safety
    /// `host`, and the objects behind the children's handles, must be valid until the instance is destroyed.
    pub(crate) unsafe fn create(&self, host: *const HostTable, children: &[ChildHandle]) -> Result<*mut c_void> {
        let mut record = RecordSpace::new();
        let mut context = ptr::null_mut();
        let create = self.table.create.expect("negotiation refuses tables without it");
        // SAFETY: the pointers live through the call; the host and the children, which the instance keeps, live until
        // it is destroyed, as `# Safety` asks.
        let code = unsafe {
            enter!(Callee::Component(&self.name), "create", create => fn(
                host => *const HostTable,
                children.as_ptr() => *const ChildHandle,
                children.len() => usize,
                &mut context => *mut *mut c_void,
                record.as_mut_ptr() => *mut ErrorRecord,
            ) -> Status)
        };
        record.check(code).map(|()| context)
    }
}

/// The most bytes of a name, version or config key.
const LONGEST_TEXT: usize = 255;
/// The most config keys.
const MOST_KEYS: usize = 1000;

/// A text of a table; empty if it is null, `None` if it is too long.
///
/// # Safety
/// `text` must be null, end with a NUL, or have more than [`LONGEST_TEXT`] bytes.
unsafe fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return Some(String::new());
    }
    // SAFETY: the text ends with a NUL or has more than `LONGEST_TEXT` bytes, as `# Safety` asks; the loop reads at
    // most `LONGEST_TEXT` + 1 bytes, and none behind a NUL.
    unsafe {
        let end = (0..=LONGEST_TEXT).find(|&at| *text.add(at) == 0)?;
        let bytes = std::slice::from_raw_parts(text.cast::<u8>(), end);
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// The texts of a list; `None` if the list or a text is too long.
///
/// # Safety
/// `list` must be null, end with null, or have more than [`MOST_KEYS`] entries, and each entry must satisfy [`text`].
unsafe fn text_list(list: *const *const c_char) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    // SAFETY: the list ends with null or has more than `MOST_KEYS` entries, as `# Safety` asks; the loop reads at most
    // `MOST_KEYS` + 1 entries, and none behind a null.
    unsafe {
        while !list.is_null() && !(*list.add(texts.len())).is_null() {
            if texts.len() == MOST_KEYS {
                return None;
            }
            texts.push(text(*list.add(texts.len()))?);
        }
    }
    Some(texts)
}

/// One instance of a component. Every call returns `None` if the component leaves the function null.
pub(crate) struct Foreign<'a> {
    pub(crate) component: &'a ForeignTable,
    pub(crate) context: *mut c_void,
}

impl Foreign<'_> {
    fn table(&self) -> &ComponentTable {
        &self.component.table
    }

    /// # Safety
    /// Neither the instance nor a copy of this value may be used afterwards.
    pub(crate) unsafe fn destroy(&self) {
        if let Some(destroy) = self.table().destroy {
            // SAFETY: the instance is not used afterwards, as `# Safety` asks.
            unsafe {
                enter!(Callee::Component(&self.component.name), "destroy", destroy => fn(self.context => *mut c_void))
            }
        }
    }

    pub(crate) fn capabilities(&self) -> Option<Capabilities> {
        let mut capabilities = Capabilities::default();
        // SAFETY: the pointer lives through the call.
        unsafe {
            enter!(Callee::Component(&self.component.name), "capabilities", self.table().capabilities? => fn(
                self.context => *mut c_void,
                &mut capabilities => *mut Capabilities,
            ));
        }
        Some(capabilities)
    }

    pub(crate) fn has_immediate(&self) -> bool {
        self.table().immediate.is_some()
    }

    pub(crate) fn has_map(&self) -> bool {
        self.table().map.is_some()
    }

    pub(crate) fn has_supports(&self) -> bool {
        self.table().supports.is_some()
    }

    pub(crate) fn supports(&self, tables: &BatchTables, block: u32) -> Option<bool> {
        // SAFETY: the tables live through the call.
        let answer = unsafe {
            enter!(Callee::Component(&self.component.name), "supports", self.table().supports? => fn(
                self.context => *mut c_void,
                tables => *const BatchTables,
                block => u32,
            ) -> i32)
        };
        Some(answer != 0)
    }

    /// The result and the ticket, which an asynchronous engine may return even with an error.
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
            enter!(Callee::Component(&self.component.name), "execute", self.table().execute? => fn(
                self.context => *mut c_void,
                tables => *const BatchTables,
                blocks.as_ptr() => *const u32,
                blocks.len() => usize,
                &mut ticket => *mut u64,
                report => *mut ReportRecord,
                record.as_mut_ptr() => *mut ErrorRecord,
            ) -> Status)
        };
        Some((record.check(code), ticket))
    }

    pub(crate) fn predict(&self, tables: &BatchTables, blocks: &[u32]) -> Option<Result<Prediction>> {
        let mut record = RecordSpace::new();
        let mut prediction = Prediction::default();
        // SAFETY: the tables and the list live through the call.
        let code = unsafe {
            enter!(Callee::Component(&self.component.name), "predict", self.table().predict? => fn(
                self.context => *mut c_void,
                tables => *const BatchTables,
                blocks.as_ptr() => *const u32,
                blocks.len() => usize,
                &mut prediction => *mut Prediction,
                record.as_mut_ptr() => *mut ErrorRecord,
            ) -> Status)
        };
        Some(record.check(code).map(|()| prediction))
    }

    /// # Safety
    /// `reply` must be null or point to a [`crate::abi::ReplySink`] that works through the call.
    pub(crate) unsafe fn message(&self, text: &CStr, reply: *mut c_void) -> Option<Result<()>> {
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call, `reply` as `# Safety` asks.
        let code = unsafe {
            enter!(Callee::Component(&self.component.name), "message", self.table().message? => fn(
                self.context => *mut c_void,
                text.as_ptr() => *const c_char,
                reply => *mut c_void,
                record.as_mut_ptr() => *mut ErrorRecord,
            ) -> Status)
        };
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
        /// The plain slots, with arguments in their C form.
        impl Foreign<'_> {
            $(
            /// # Safety
            /// Arguments must satisfy [`crate::abi::Received::own`] through the call.
            pub(crate) unsafe fn $name(
                &self,
                $($argument: <$kind as Wire>::Raw),*
            ) -> Option<Result<raw_answer!($($answer)?)>> {
                let function = self.table().$name?;
                let mut record = RecordSpace::new();
                let mut answer = <slot_answer!($($answer)?) as WireAnswer>::blank();
                // SAFETY: the arguments satisfy [`crate::abi::Received::own`] through the call, as `# Safety` says; the
                // answer and the record are local variables.
                let code = unsafe {
                    let name = &self.component.name;
                    foreign_call!(name, $name, function, self.context, answer, record, ($($argument: $kind)*) $($answer)?)
                };
                Some(record.check(code).map(|()| answer))
            })*
        }
    };
}
macro_rules! foreign_call {
    (
        $component:ident, $name:ident, $function:ident, $context:expr, $answer:ident, $record:ident,
        ($($argument:ident: $kind:ty)*)
    ) => {{
        let () = &mut $answer;
        enter!(Callee::Component($component), stringify!($name), $function => fn(
            $context => *mut c_void,
            $($argument => <$kind as Wire>::Raw,)*
            $record.as_mut_ptr() => *mut ErrorRecord,
        ) -> Status)
    }};
    (
        $component:ident, $name:ident, $function:ident, $context:expr, $answer:ident, $record:ident,
        ($($argument:ident: $kind:ty)*) $result:ty
    ) => {
        enter!(Callee::Component($component), stringify!($name), $function => fn(
            $context => *mut c_void,
            $($argument => <$kind as Wire>::Raw,)*
            &mut $answer => *mut <$result as WireAnswer>::Raw,
            $record.as_mut_ptr() => *mut ErrorRecord,
        ) -> Status)
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
