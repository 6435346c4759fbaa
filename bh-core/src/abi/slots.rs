//! The slots of a component. The struct, the host's forwarders, the safe trait, its export and the C header expand from
//! this table.
//!
//! A plain slot is a call that takes a few values, returns at most one, and can fail:
//!
//! ```text
//! /// Summary of the call.
//! FORWARDING CALLS fn name(argument: type, …) -> answer = DEFAULT;
//! ```
//!
//! `FORWARDING` is `forward` if the host passes the call to the component, or else to its first child, and `host` if
//! the host does more (`Link` has a method of this name). `CALLS` is `serial` if calls into an instance never overlap,
//! and `shared` if a capability allows calls from any thread at any time
//! ([`SharedCalls`](crate::component::SharedCalls)). `DEFAULT` is the function that answers if no component does. The
//! safe trait has the same types; [`Wire`](super::Wire) defines their C form. The special slots write their types out.
//! The order is that of the table in memory and never changes; new slots are appended.

use super::{BatchTables, Capabilities, ErrorRecord, HostTable, Prediction, ReportRecord, Status, Wire, WireAnswer};
use bh_bytecode::{Base, Opcode, View};
use std::ffi::{c_char, c_void};

/// Creates an instance. `host` and the objects behind the children's handles outlive it; the array of handles itself
/// lives only during the call, so copy the handles that you keep.
pub type CreateFn = unsafe extern "C" fn(
    host: *const HostTable,
    children: *const ChildHandle,
    child_count: usize,
    context: *mut *mut c_void,
    error: *mut ErrorRecord,
) -> Status;

/// Ends an instance.
pub type DestroyFn = unsafe extern "C" fn(context: *mut c_void);

/// Fills in the component's capabilities.
pub type CapabilitiesFn = unsafe extern "C" fn(context: *mut c_void, capabilities: *mut Capabilities);

/// Returns 1 if the component can run the block of this index in the partition, else 0.
pub type SupportsFn = unsafe extern "C" fn(context: *mut c_void, batch: *const BatchTables, block: u32) -> i32;

/// Runs blocks of a batch; `report` may be null.
pub type ExecuteFn = unsafe extern "C" fn(
    context: *mut c_void,
    batch: *const BatchTables,
    blocks: *const u32,
    block_count: usize,
    ticket: *mut u64,
    report: *mut ReportRecord,
    error: *mut ErrorRecord,
) -> Status;

/// Predicts the cost of running blocks of a batch.
pub type PredictFn = unsafe extern "C" fn(
    context: *mut c_void,
    batch: *const BatchTables,
    blocks: *const u32,
    block_count: usize,
    prediction: *mut Prediction,
    error: *mut ErrorRecord,
) -> Status;

/// Answers a question or command in text; `reply` is a [`ReplySink`](super::ReplySink).
pub type MessageFn = unsafe extern "C" fn(
    context: *mut c_void,
    text: *const c_char,
    reply: *mut c_void,
    error: *mut ErrorRecord,
) -> Status;

/// Calls `callback!` with the table of slots.
#[macro_export]
macro_rules! for_each_slot {
    ($callback:ident) => {
        $callback! {
            special {
                /// Creates an instance. `host` and the objects behind the children's handles outlive it; the array of
                /// handles itself lives only during the call, so copy the handles that you keep.
                create: CreateFn;
                /// Ends an instance.
                destroy: DestroyFn;
                /// Fills in the capabilities. Null: those of the first child.
                capabilities: CapabilitiesFn;
                /// Returns 1 if it can run the block of this index in the partition, else 0. Null: 1 for all. The host asks
                /// once per block and call; the answer holds for the next `execute` only. The next component gets refused
                /// blocks; the host first splits a refused block of several instructions into the runs that are accepted.
                supports: SupportsFn;
                /// Runs blocks of the partition in the given order (an empty list: all of them). Without a partition it
                /// runs the whole batch in stored order. The ticket is 0 when the work is done. Only engines that are
                /// ASYNCHRONOUS and RETIRES_BLOCKS return other tickets; they poison the results of later failures
                /// themselves. `report` may be null; an instruction that it reports as failed does not end the call.
                execute: ExecuteFn;
                /// Predicts the cost of running these blocks. Null: the first child's prediction.
                predict: PredictFn;
                /// Answers a question or command in text. The callee writes to `reply` through `HostTable::reply`.
                message: MessageFn;
            }
            plain {
                /// Receives the array registry of the data manager above. The host calls it once, before any batch.
                host serial fn bind(registry: Registry) = nothing;
                /// Binds `opcode` to the method `name`. Returns 1 if this component or one below runs the method.
                host serial fn extmethod(name: &str, opcode: Opcode) -> bool = nothing;
                /// Runs the work of a process that does not run the program, and returns when that work ends. Returns at
                /// once in the process that runs the program. The host holds no lock of bh meanwhile. `number` identifies
                /// the context.
                forward serial fn serve(number: u64) -> Served = nothing;
                /// Lets a component that announces PROGRESS handle its messages, between batches and while others wait.
                host serial fn progress() = nothing;
                /// Computes an operation on scalars immediately, or leaves it to a batch. A component that announces
                /// EVALUATES gets these calls from any thread, at the same time as others; another component gets none.
                host shared fn evaluate(operation: &ScalarOperation) -> Evaluation = nothing;

                /// Waits until the work of a ticket is done, and reports its first failure.
                host serial fn wait(ticket: Ticket) = nothing;
                /// Returns whether the work of a ticket is done, so that `wait` returns immediately. Null: the host can
                /// only wait.
                host serial fn poll(ticket: Ticket) -> bool = cannot_poll;

                /// Makes a base (or the part that `view` covers; null: all) readable or writable in host memory and returns
                /// the address of the base's element 0.
                forward shared fn map(base: &Base, view: Option<&View>, access: u32) -> *mut u8 = no_arrays;
                /// Ends a `map`.
                forward shared fn unmap(base: &Base) = nothing;
                /// Copies the elements of a view to host memory, and no others; copies elsewhere stay valid. Null: the host
                /// maps and copies.
                host shared fn read(base: &Base, view: &View, memory: &HostMemory) = no_arrays;
                /// Overwrites the elements of a view from host memory. No two of the view's indices share an element. Null: the host maps
                /// and copies.
                host shared fn write(base: &Base, view: &View, memory: &HostMemory) = no_arrays;
                /// Uses the application's memory as the base's data. The engine of a device takes memory of that device.
                forward shared fn adopt(base: &Base, adoption: &Adoption) = no_arrays;
                /// Lends the base's data to the application, in the kind of memory that it requests, until `end_export`.
                forward shared fn export_data(base: &Base, request: &ExportRequest) -> Export = no_arrays;
                /// Ends an export.
                forward shared fn end_export(base: &Base, token: u64) = no_arrays;
                /// Forbids (1) or allows (0) moving the base's host memory. Counted.
                forward shared fn pin(base: &Base, pinned: bool) = nothing;
                /// Starts to copy a view of a base (null: all) to memory of this kind, a `memory` value. A later use of the
                /// data reports errors.
                forward shared fn prefetch(base: &Base, view: Option<&View>, memory: u32) = nothing;
                /// Removes a base from the memory of all engines, after data that exists only there is written back.
                forward shared fn detach(base: &Base) = nothing;
                /// Returns where the base's data is.
                forward shared fn residency(base: &Base) -> Residency = nothing;
                /// Runs SYNC, FREE or DISCARD on a base: `action` is a `retire` value.
                forward shared fn retire(base: &Base, action: u32) = no_arrays;
                /// Runs an operation on small arrays in host memory. Returns 1 if it is done, 0 if a batch must run it.
                /// Indices are checked before anything is written. A component that announces IMMEDIATE gets these calls
                /// from any thread, at the same time as others; another component gets none.
                host shared fn immediate(operation: &ImmediateOperation) -> bool = nothing;

                /// Handles a fork of the process; `moment` is a `fork` value. All calls come from the forking thread,
                /// between other calls. BEFORE: the component's threads release the host's functions and the loader, which
                /// the child needs, and use neither until PARENT; the call does not wait for long work. CHILD: the threads
                /// are gone, and their locks may be in any state, so the component replaces both. PARENT or CHILD follows
                /// each BEFORE.
                forward serial fn fork(moment: u32) = nothing;
            }
        }
    };
}

macro_rules! component_table {
    (
        special { $($(#[doc = $special_doc:literal])* $special:ident: $type:ident;)* }
        plain {
            $($(#[doc = $doc:literal])*
            $forwarding:ident $calls:ident fn $name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)? = $default:ident;)*
        }
    ) => {
        /// The functions and facts of a component. Null functions forward to the first child.
        #[derive(Debug)]
        #[repr(C)]
        pub struct ComponentTable {
            /// Bytes of this struct; later versions append fields.
            pub struct_size: usize,
            /// The component's [`ABI_VERSION`](super::ABI_VERSION).
            pub abi_version: u32,
            /// A value of [`kind`](super::kind).
            pub kind: u32,
            /// Name, as in config sections: `filter`, `ve-cpu`.
            pub name: *const c_char,
            /// Version of the component.
            pub version: *const c_char,
            /// The component's config keys, a null-terminated list of strings; null if there are none.
            pub keys: *const *const c_char,
            $($(#[doc = $special_doc])* pub $special: Option<$type>,)*
            $($(#[doc = $doc])* pub $name: Option<
                unsafe extern "C" fn(
                    context: *mut c_void,
                    $($argument: <$kind as Wire>::Raw,)*
                    $(answer: *mut <$answer as WireAnswer>::Raw,)?
                    error: *mut ErrorRecord,
                ) -> Status,
            >,)*
        }

        impl ComponentTable {
            /// A table of this kind without functions.
            pub const fn empty(kind: u32, name: *const c_char, version: *const c_char) -> ComponentTable {
                ComponentTable {
                    struct_size: size_of::<ComponentTable>(),
                    abi_version: super::ABI_VERSION,
                    kind,
                    name,
                    version,
                    keys: std::ptr::null(),
                    $($special: None,)*
                    $($name: None,)*
                }
            }
        }
    };
}
use super::{
    Adoption, Evaluation, Export, ExportRequest, HostMemory, ImmediateOperation, Residency, ScalarOperation, Served,
};
use crate::component::{Registry, Ticket};
for_each_slot!(component_table);

/// A child as its parent sees it: the functions of [`ComponentTable`], none of them null, with the host in between.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ChildHandle {
    /// The host's functions; `create` and `destroy` are null.
    pub table: *const ComponentTable,
    /// First argument of the functions.
    pub context: *mut c_void,
}
