//! The functions by which a parent calls its child: C entry points of [`Link`].

use super::*;
use crate::abi::{
    Adoption, ComponentTable, Evaluation, Export, ExportRequest, HostMemory, ImmediateOperation, Residency,
    ScalarOperation, Served, Status, Wire, WireAnswer,
};
use crate::component::{Registry, Ticket, defaults, slot_answer};
use crate::for_each_slot;
use crate::foreign::raw_answer;
use crate::guard::{guard, panic_text};
use bh_bytecode::{Opcode, View};

/// A table in a static.
pub(super) struct SharedTable(pub(super) ComponentTable);

// SAFETY: the table is immutable and its pointers refer to statics.
unsafe impl Sync for SharedTable {}

macro_rules! link_slots {
    (
        special { $($special:tt)* }
        plain {
            $($(#[doc = $doc:literal])*
            $forwarding:ident $calls:ident fn $name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)? = $default:ident;)*
        }
    ) => {
        pub(super) static LINK_TABLE: SharedTable = SharedTable(ComponentTable {
            capabilities: Some(capabilities),
            supports: Some(supports),
            execute: Some(execute),
            predict: Some(predict),
            message: Some(message),
            $($name: Some($name),)*
            ..ComponentTable::empty(0, c"link".as_ptr(), c"bh".as_ptr())
        });

        $(unsafe extern "C" fn $name(
            context: *mut c_void,
            $($argument: <$kind as Wire>::Raw,)*
            $(place: *mut <$answer as WireAnswer>::Raw,)?
            error: *mut ErrorRecord,
        ) -> Status {
            // SAFETY: null, or the caller's own record.
            let error = unsafe { error.as_mut() };
            guard(error, || {
                // SAFETY: the context is a link's; arguments satisfy [`crate::abi::Received::own`] and live through the
                // call, and `place` is the caller's memory for the answer.
                unsafe { finish!(link(context)?.$name($($argument),*)?, place $($answer)?) };
                Ok(())
            })
        })*

        impl Link {
            $(forward!($forwarding $name($($argument: $kind),*) ($($answer)?) $default);)*
        }
    };
}
/// Writes the answer, if the slot has one.
macro_rules! finish {
    ($found:expr, $place:ident) => {
        $found
    };
    ($found:expr, $place:ident $answer:ty) => {
        $place.write($found)
    };
}
/// The link's implementation of a slot: its own component, else the first child, else the default.
macro_rules! forward {
    (host $name:ident($($argument:ident: $kind:ty),*) ($($answer:ty)?) $default:ident) => {};
    (forward $name:ident($($argument:ident: $kind:ty),*) ($($answer:ty)?) $default:ident) => {
        /// # Safety
        /// Arguments must satisfy [`crate::abi::Received::own`] through the call.
        pub(super) unsafe fn $name(&self, $($argument: <$kind as Wire>::Raw),*) -> Result<raw_answer!($($answer)?)> {
            // SAFETY: the contract of the component is that of `# Safety`.
            match (unsafe { self.foreign().$name($($argument),*) }, self.child()) {
                (Some(result), _) => result,
                // SAFETY: as above.
                (None, Some(child)) => unsafe { child.$name($($argument),*) },
                (None, None) => {
                    defaults::$default(self.label()).map(|answer: slot_answer!($($answer)?)| answer.to_raw())
                }
            }
        }
    };
}
for_each_slot!(link_slots);

/// # Safety
/// `context` must be null or the context of a handle whose link lives through `'a`.
unsafe fn link<'a>(context: *mut c_void) -> Result<&'a Link> {
    // SAFETY: null, or a link that lives through `'a`, as `# Safety` asks.
    unsafe { context.cast::<Link>().as_ref() }.ok_or_else(|| malformed("a child was called without its context"))
}

fn malformed(text: &str) -> Error {
    Error::new(status::BATCH, format!("a component passed on what cannot be: {text}"))
}

/// # Safety
/// `batch` must be null or point to tables that live through `'a`, each of them null or of the length that it states.
unsafe fn given<'a>(batch: *const BatchTables) -> Result<&'a BatchTables> {
    // SAFETY: null, or tables that live through `'a`, as `# Safety` asks.
    let tables = unsafe { batch.as_ref() }.ok_or_else(|| malformed("no batch"))?;
    match tables.without_data() {
        None => Ok(tables),
        Some(table) => Err(malformed(&format!("a batch whose table '{table}' has records and no address"))),
    }
}

/// # Safety
/// `blocks` must be null or point to `count` numbers that live through `'a`.
unsafe fn listed<'a>(blocks: *const u32, count: usize) -> Result<&'a [u32]> {
    match (count, blocks.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(malformed("a list of blocks without an address")),
        // SAFETY: not null, and so `count` numbers that live through `'a`, as `# Safety` asks.
        (_, false) => Ok(unsafe { std::slice::from_raw_parts(blocks, count) }),
    }
}

unsafe extern "C" fn capabilities(context: *mut c_void, capabilities: *mut Capabilities) {
    // SAFETY: a link's handle, and the caller's memory for the result.
    unsafe {
        if let Ok(link) = link(context) {
            *capabilities = link.capabilities;
        }
    }
}

unsafe extern "C" fn supports(context: *mut c_void, batch: *const BatchTables, block: u32) -> i32 {
    // SAFETY: a link's handle; the tables live through the call.
    let answer = panic_text(|| unsafe { Ok::<_, Error>(link(context)?.supports(given(batch)?, block)) });
    i32::from(answer.is_ok_and(|answer| answer.unwrap_or(false)))
}

unsafe extern "C" fn execute(
    context: *mut c_void,
    batch: *const BatchTables,
    blocks: *const u32,
    block_count: usize,
    ticket: *mut u64,
    report: *mut ReportRecord,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: null, or the caller's own record.
    let error = unsafe { error.as_mut() };
    guard(error, || {
        // SAFETY: a link's handle; the tables and the list live through the call.
        unsafe {
            let blocks = listed(blocks, block_count)?;
            let (result, begun) = link(context)?.execute(&given(batch)?.as_ref(), blocks, report);
            if let Some(ticket) = ticket.as_mut() {
                *ticket = begun;
            }
            result
        }
    })
}

unsafe extern "C" fn predict(
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
        // SAFETY: a link's handle; the tables and the list live through the call.
        unsafe {
            let blocks = listed(blocks, block_count)?;
            *prediction = link(context)?.predict(given(batch)?, blocks)?;
        }
        Ok(())
    })
}

unsafe extern "C" fn message(
    context: *mut c_void,
    text: *const c_char,
    reply: *mut c_void,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: null, or the caller's own record.
    let error = unsafe { error.as_mut() };
    // SAFETY: a link's handle; the text lives through the call.
    guard(error, || unsafe { link(context)?.message(CStr::from_ptr(text), reply) })
}
