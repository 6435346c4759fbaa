//! The slots of a component: the one table from which the struct, the host's forwarders, the safe trait, its export and
//! the C header expand.
//!
//! A plain slot is a call that takes a few values, returns at most one, and can fail:
//!
//! ```text
//! /// What it does.
//! FORWARDING CALLS fn name(argument: type, …) -> answer = DEFAULT;
//! ```
//!
//! `FORWARDING` is `forward` if the host passes the call to the component, or else to its first child, and `host` if
//! the host does more (`Link` has a method of this name). `CALLS` is `serial` if calls into an instance never overlap,
//! and `shared` if a capability lets them come from other threads at any time
//! ([`SharedCalls`](crate::component::SharedCalls)). `DEFAULT` is the function that answers if no component does. The
//! types are those of the safe trait; [`Wire`](super::Wire) defines their C form. The special slots have other forms,
//! which are written out. The order is that of the table in memory and never changes; new slots are appended.

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

/// Fills in what the component can do.
pub type CapabilitiesFn = unsafe extern "C" fn(context: *mut c_void, capabilities: *mut Capabilities);

/// Asks about a block of the partition, by index: 1 yes, 0 no.
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

/// A question or command as text; `reply` is a [`ReplySink`](super::ReplySink).
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
                /// Makes an instance. `host` and what the children's handles lead to outlive it; the array of handles itself
                /// lives only during the call, so handles that are kept must be copied.
                create: CreateFn;
                /// Ends an instance.
                destroy: DestroyFn;
                /// Fills in what it can do. Null: what its first child can do.
                capabilities: CapabilitiesFn;
                /// Can it run this block of the partition (index)? 1 yes, 0 no. Null: yes, all. Asked once per block and
                /// call; the answer holds for the next `execute` only. Refused blocks go to the next component; a refused
                /// block of several instructions is first split into the runs it accepts.
                supports: SupportsFn;
                /// Runs blocks of the partition in the given order (an empty list: all of them), or the whole batch in stored
                /// order if it has none. The ticket is 0 when the work is done. Only engines that are ASYNCHRONOUS and
                /// RETIRES_BLOCKS return other tickets; they poison what later fails themselves. `report` may be null; an
                /// instruction that is reported there as failed does not end the call.
                execute: ExecuteFn;
                /// Foretells what running these blocks takes. Null: what the first child foretells.
                predict: PredictFn;
                /// A text question or command. The answer is written to `reply` by the callee through `HostTable::reply`.
                message: MessageFn;
            }
            plain {
                /// Hands over the array registry of the data manager above. Called once, before any batch.
                host serial fn bind(registry: Registry) = nothing;
                /// Announces that `opcode` stands for the method `name`. The answer is 1 if this component or one below runs
                /// it.
                host serial fn extmethod(name: &str, opcode: Opcode) -> bool = nothing;
                /// Runs what a process other than the one with the program has to do, and returns when that ends; at once
                /// if this process has the program. Called with no lock of bh held. `number` tells contexts apart.
                forward serial fn serve(number: u64) -> Served = nothing;
                /// Gives a component that announces PROGRESS time for its messages, between batches and while others wait.
                host serial fn progress() = nothing;
                /// Computes an operation on scalars at once, or leaves it to a batch. Calls may come from any thread, at the
                /// same time as others, if the component announces EVALUATES; else there are none.
                host shared fn evaluate(operation: &ScalarOperation) -> Evaluation = nothing;

                /// Waits until the work behind a ticket is done, and reports its first failure.
                host serial fn wait(ticket: Ticket) = nothing;
                /// Is the work behind a ticket done, so that `wait` returns at once? Null: the host can only wait.
                host serial fn poll(ticket: Ticket) -> bool = cannot_poll;

                /// Makes a base (or the part that `view` covers; null: all) readable or writable in host memory and returns
                /// the address of the base's element 0.
                forward shared fn map(base: &Base, view: Option<&View>, access: u32) -> *mut u8 = no_arrays;
                /// Ends a `map`.
                forward shared fn unmap(base: &Base) = nothing;
                /// Copies the elements of a view to host memory. Only these are moved, and other copies stay valid. Null:
                /// the host maps and copies.
                host shared fn read(base: &Base, view: &View, memory: &HostMemory) = no_arrays;
                /// Overwrites the elements of a view, which reaches each of its elements once, from host memory. Null: the
                /// host maps and copies.
                host shared fn write(base: &Base, view: &View, memory: &HostMemory) = no_arrays;
                /// Takes the application's memory as the base's data. Memory of a device ends at the engine that knows it.
                forward shared fn adopt(base: &Base, adoption: &Adoption) = no_arrays;
                /// Lends the base's data to the application, in the memory that it asks for, until `end_export`.
                forward shared fn export_data(base: &Base, request: &ExportRequest) -> Export = no_arrays;
                /// Ends an export.
                forward shared fn end_export(base: &Base, token: u64) = no_arrays;
                /// Forbids (1) or allows (0) moving the base's host memory. Counted.
                forward shared fn pin(base: &Base, pinned: bool) = nothing;
                /// Begins to bring a view of a base (null: all) to memory of this kind, a `memory` value. Errors show when the
                /// data is used.
                forward shared fn prefetch(base: &Base, view: Option<&View>, memory: u32) = nothing;
                /// Takes a base out of the memory of all engines; what is only there is written back first.
                forward shared fn detach(base: &Base) = nothing;
                /// Says where the base's data is.
                forward shared fn residency(base: &Base) -> Residency = nothing;
                /// Carries out SYNC, FREE or DISCARD on a base: `action` is a `retire` value.
                forward shared fn retire(base: &Base, action: u32) = no_arrays;
                /// Carries out an operation on little data in host memory: 1 if it is done, 0 if it is left to a batch. Its
                /// indices are checked before anything is written. Calls may come from any thread, at the same time as
                /// others, if the component announces IMMEDIATE; else there are none.
                host shared fn immediate(operation: &ImmediateOperation) -> bool = nothing;

                /// Follows a fork of the process; `moment` is a `fork` value. All calls come from the forking thread, between
                /// others. BEFORE: its threads let go of what the child needs (the host's functions, the loader), and take
                /// it no more until PARENT; the call does not wait for long work. CHILD: its threads are gone, and their
                /// locks may be in any state, so it replaces both. PARENT or CHILD follows each BEFORE.
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
            /// Bytes of this struct, for growth.
            pub struct_size: usize,
            /// The [`ABI_VERSION`](super::ABI_VERSION) it was built for.
            pub abi_version: u32,
            /// A value of [`kind`](super::kind).
            pub kind: u32,
            /// Name, as in config sections: `filter`, `ve-cpu`.
            pub name: *const c_char,
            /// Version of the component.
            pub version: *const c_char,
            /// The config keys it knows, a null-terminated list of strings; null if there are none.
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
