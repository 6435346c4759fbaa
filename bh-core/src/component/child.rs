//! [`Child`]: the component below, behind the host's functions.

use super::{Registry, Report, Ticket, slot_answer};
use crate::abi::{
    Adoption, BatchTables, Capabilities, ChildHandle, ComponentTable, Evaluation, Export, ExportRequest, HostMemory,
    ImmediateOperation, Prediction, ReplySink, Residency, ScalarOperation, Served, Wire, WireAnswer, capability,
    status,
};
use crate::error::{Error, RecordSpace, Result};
use crate::for_each_slot;
use crate::link::Link;
use bh_bytecode::{Base, BatchRef, Opcode, View};
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;

/// A child in the stack.
pub struct Child {
    handle: ChildHandle,
    /// The link behind the handle, if this value owns it; dropped with the last clone.
    owner: Option<Arc<Link>>,
}

// SAFETY: calls are serialised by the owner of the value, and the host's functions have no thread affinity beyond
// what capabilities announce.
unsafe impl Send for Child {}

/// The data calls of a component that accepts them from any thread while it works.
pub struct SharedChild {
    handle: ChildHandle,
    _owner: Option<Arc<Link>>,
}

// SAFETY: the component announces that these calls may come from any thread.
unsafe impl Send for SharedChild {}
// SAFETY: as above, and at the same time as others.
unsafe impl Sync for SharedChild {}

impl SharedChild {
    fn with<T>(&self, call: impl FnOnce(&mut Child) -> T) -> T {
        call(&mut Child { handle: self.handle, owner: None })
    }

    /// See [`SharedCalls::adopt`](super::SharedCalls::adopt).
    pub fn adopt(&self, base: &Base, adoption: &Adoption) -> Result<()> {
        self.with(|child| child.adopt(base, adoption))
    }

    /// See [`SharedCalls::export_data`](super::SharedCalls::export_data).
    pub fn export_data(&self, base: &Base, request: &ExportRequest) -> Result<Export> {
        self.with(|child| child.export_data(base, request))
    }

    /// See [`SharedCalls::end_export`](super::SharedCalls::end_export).
    pub fn end_export(&self, base: &Base, token: u64) -> Result<()> {
        self.with(|child| child.end_export(base, token))
    }
}

macro_rules! slot {
    ($self:ident.$name:ident) => {
        $self.table().$name.expect("the host fills every slot")
    };
}

/// Calls a plain slot.
macro_rules! call {
    ($self:ident.$name:ident($($argument:ident: $kind:ty),*)) => {{
        let mut record = RecordSpace::new();
        $(let $argument = <$kind as Wire>::keep($argument)?;)*
        // SAFETY: the referents of the arguments live through the call.
        let code = unsafe {
            slot!($self.$name)($self.handle.context, $(<$kind as Wire>::raw(&$argument),)* record.as_mut_ptr())
        };
        record.check(code)
    }};
    ($self:ident.$name:ident($($argument:ident: $kind:ty),*) -> $answer:ty) => {{
        let mut record = RecordSpace::new();
        let mut answer = <$answer as WireAnswer>::blank();
        $(let $argument = <$kind as Wire>::keep($argument)?;)*
        // SAFETY: the referents of the arguments live through the call.
        let code = unsafe {
            slot!($self.$name)(
                $self.handle.context,
                $(<$kind as Wire>::raw(&$argument),)*
                &mut answer,
                record.as_mut_ptr(),
            )
        };
        record.check(code).map(|()| <$answer as WireAnswer>::from_raw(answer))
    }};
}

macro_rules! child_methods {
    (
        special { $($special:tt)* }
        plain {
            $($(#[doc = $doc:literal])*
            $forwarding:ident $calls:ident fn $name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)? = $default:ident;)*
        }
    ) => {
        /// The plain slots, see [`Component`](super::Component).
        impl Child {
            $($(#[doc = $doc])*
            pub fn $name(&mut self, $($argument: $kind),*) -> Result<slot_answer!($($answer)?)> {
                call!(self.$name($($argument: $kind),*) $(-> $answer)?)
            })*
        }
    };
}
for_each_slot!(child_methods);

impl Child {
    /// Wraps a handle.
    ///
    /// # Safety
    /// The handle must stay valid as long as the value, or a clone from [`Child::shared`], is used, and its calls must
    /// not race with others on the same component.
    pub unsafe fn new(handle: ChildHandle) -> Child {
        Child { handle, owner: None }
    }

    /// A component with those below it; they end with this value and the results of [`Child::shared`].
    pub(crate) fn owning(link: Box<Link>) -> Child {
        let link: Arc<Link> = link.into();
        Child { handle: link.handle(), owner: Some(link) }
    }

    /// The data calls, if the component announces CONCURRENT_DATA.
    pub fn shared(&mut self) -> Option<SharedChild> {
        let allowed = self.capabilities().flags & capability::CONCURRENT_DATA != 0;
        allowed.then(|| SharedChild { handle: self.handle, _owner: self.owner.clone() })
    }

    fn table(&self) -> &ComponentTable {
        // SAFETY: the handle, and so the host's table, is valid as long as the value, as [`Child::new`] asks.
        unsafe { &*self.handle.table }
    }

    /// See [`Component::capabilities`](super::Component::capabilities).
    pub fn capabilities(&mut self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        // SAFETY: the pointers are valid for the call.
        unsafe { slot!(self.capabilities)(self.handle.context, &mut capabilities) };
        capabilities
    }

    /// See [`Component::supports`](super::Component::supports).
    pub fn supports(&mut self, batch: &BatchRef<'_>, block: u32) -> bool {
        let tables = BatchTables::new(batch);
        // SAFETY: the tables live through the call.
        unsafe { slot!(self.supports)(self.handle.context, &tables, block) != 0 }
    }

    /// See [`Component::execute`](super::Component::execute).
    pub fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
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
                report.as_ptr(),
                record.as_mut_ptr(),
            )
        };
        record.check(code).map(|()| Ticket(ticket)).map_err(|mut error| {
            error.locate(batch);
            error
        })
    }

    /// See [`Component::predict`](super::Component::predict).
    pub fn predict(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Prediction> {
        let tables = BatchTables::new(batch);
        let mut record = RecordSpace::new();
        let mut prediction = Prediction::default();
        // SAFETY: the tables live through the call.
        let code = unsafe {
            slot!(self.predict)(
                self.handle.context,
                &tables,
                blocks.as_ptr(),
                blocks.len(),
                &mut prediction,
                record.as_mut_ptr(),
            )
        };
        record.check(code).map(|()| prediction)
    }

    /// See [`Component::message`](super::Component::message).
    pub fn message(&mut self, text: &str) -> Result<String> {
        let text = CString::new(text).map_err(|_| Error::new(status::ARGUMENT, "message contains a NUL"))?;
        let mut record = RecordSpace::new();
        let mut answer = Vec::new();
        let mut reply = ReplySink { context: (&raw mut answer).cast(), append: append_bytes };
        // SAFETY: the sink and its referents live through the call.
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
