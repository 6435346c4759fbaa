//! [`Child`]: the component below, behind the host's functions.

use super::{Registry, Ticket};
use crate::abi::{BatchTables, Capabilities, ChildHandle, ComponentTable, ReleaseFn, ReplySink, ViewSpec, status};
use crate::error::{Error, RecordSpace, Result};
use bh_bytecode::{Base, BatchRef, Opcode, View};
use std::ffi::{CString, c_char, c_void};
use std::ptr;

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
pub(super) fn with_view_spec<T>(view: Option<&View>, f: impl FnOnce(*const ViewSpec) -> T) -> T {
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

    /// See [`Component::capabilities`](super::Component::capabilities).
    pub fn capabilities(&mut self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        // SAFETY: the pointers are valid for the call.
        unsafe { slot!(self.capabilities)(self.handle.context, &mut capabilities) };
        capabilities
    }

    /// See [`Component::bind`](super::Component::bind).
    pub fn bind(&mut self, registry: Registry) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the registry outlives the components below it.
        let code = unsafe { slot!(self.bind)(self.handle.context, registry.table, record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`Component::supports`](super::Component::supports).
    pub fn supports(&mut self, batch: &BatchRef<'_>, block: u32) -> bool {
        let tables = BatchTables::new(batch);
        // SAFETY: the tables live through the call.
        unsafe { slot!(self.supports)(self.handle.context, &tables, block) != 0 }
    }

    /// See [`Component::execute`](super::Component::execute).
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

    /// See [`Component::wait`](super::Component::wait).
    pub fn wait(&mut self, ticket: Ticket) -> Result<()> {
        if ticket == Ticket::DONE {
            return Ok(());
        }
        let mut record = RecordSpace::new();
        // SAFETY: a plain call.
        let code = unsafe { slot!(self.wait)(self.handle.context, ticket.0, record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`Component::map`](super::Component::map).
    pub fn map(&mut self, base: &Base, view: Option<&View>, access: u32) -> Result<*mut u8> {
        let mut record = RecordSpace::new();
        let mut data = ptr::null_mut();
        let code = with_view_spec(view, |view| {
            // SAFETY: the pointers live through the call.
            unsafe { slot!(self.map)(self.handle.context, base, view, access, &mut data, record.as_mut_ptr()) }
        });
        record.check(code).map(|()| data.cast())
    }

    /// See [`Component::unmap`](super::Component::unmap).
    pub fn unmap(&mut self, base: &Base) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe { slot!(self.unmap)(self.handle.context, base, record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`Component::adopt`](super::Component::adopt).
    ///
    /// # Safety
    /// As [`Component::adopt`](super::Component::adopt).
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

    /// See [`Component::pin`](super::Component::pin).
    pub fn pin(&mut self, base: &Base, pinned: bool) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe { slot!(self.pin)(self.handle.context, base, i32::from(pinned), record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`Component::extmethod`](super::Component::extmethod).
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

    /// See [`Component::message`](super::Component::message).
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
