//! The host between a parent and a child: forwards calls that a component leaves out, stops panics and bad batches,
//! routes blocks that an engine refuses, and measures time.

// Parents hold the addresses of their children.
#![allow(clippy::vec_box)]

use crate::abi::{
    BatchTables, Capabilities, ChildHandle, ErrorRecord, Evaluation, HostMemory, ImmediateOperation, Prediction,
    Received, RegistryTable, ReplySink, ReportRecord, ScalarOperation, ViewSpec, access, capability, kind, log_level,
    status,
};
use crate::component::{Registry, defaults};
use crate::error::{Error, Result};
use crate::foreign::{Foreign, ForeignTable};
use crate::host::HostInstance;
use crate::route::{self, Target};
use crate::strided;
use bh_bytecode::{Base, BatchRef, View};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A component instance in a stack, and the host's half of every call into it. Has a fixed address.
pub(crate) struct Link {
    pub(crate) component: Arc<ForeignTable>,
    context: *mut c_void,
    host: Arc<HostInstance>,
    children: Vec<Box<Link>>,
    capabilities: Capabilities,
    registry: AtomicPtr<RegistryTable>,
    bound: AtomicBool,
    /// Whether the parent's batches need no validation.
    parent_trusted: AtomicBool,
    /// Number of calls of `execute`; shows the parent whether its component passed a batch on.
    executions: AtomicU64,
    pending: Mutex<Pending>,
    counters: Counters,
    alive: bool,
}

/// The pending work of calls, by the ticket that the parent got.
#[derive(Default)]
struct Pending {
    last: u64,
    tickets: HashMap<u64, Filed>,
}

/// The work behind a ticket.
struct Filed {
    parts: Vec<(Target, u64)>,
    /// The source lines of the batch.
    places: Places,
}

/// Counters of the stack's statistics.
struct Counters {
    batches: Arc<AtomicU64>,
    blocks: Arc<AtomicU64>,
    refused: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
    nanoseconds: Arc<AtomicU64>,
}

fn add(counter: &AtomicU64, value: u64) {
    counter.fetch_add(value, Ordering::Relaxed);
}

// SAFETY: calls into the component are serialised by the parent; fields that other threads use are atomic or locked.
unsafe impl Send for Link {}
// SAFETY: as above.
unsafe impl Sync for Link {}

impl Link {
    /// Creates an instance above these children.
    pub(crate) fn create(
        component: Arc<ForeignTable>,
        host: Arc<HostInstance>,
        children: Vec<Box<Link>>,
    ) -> Result<Box<Link>> {
        let handles: Vec<ChildHandle> = children.iter().map(|child| child.handle()).collect();
        let label = host.label().to_owned();
        let counter = |name: &str| host.services().stats().share(&format!("{label}.{name}"));
        let counters = Counters {
            batches: counter("batches"),
            blocks: counter("blocks"),
            refused: counter("refused_blocks"),
            failed: counter("failed_blocks"),
            nanoseconds: counter("execute_ns"),
        };
        for child in &children {
            child.parent_trusted.store(component.trusted(), Ordering::Relaxed);
        }
        // SAFETY: the link owns host and children, and destroys the instance before them.
        let context = unsafe { component.create(host.table(), &handles) }.map_err(|mut error| {
            error.text = format!("component '{label}' could not start: {}", error.text);
            error
        })?;
        let mut link = Box::new(Link {
            component,
            context,
            host,
            children,
            capabilities: Capabilities::default(),
            registry: AtomicPtr::new(ptr::null_mut()),
            bound: AtomicBool::new(false),
            parent_trusted: AtomicBool::new(true),
            executions: AtomicU64::new(0),
            pending: Mutex::default(),
            counters,
            alive: true,
        });
        link.capabilities =
            link.foreign().capabilities().or_else(|| link.child().map(|child| child.capabilities)).unwrap_or_default();
        Ok(link)
    }

    /// The handle for the parent.
    pub(crate) fn handle(&self) -> ChildHandle {
        ChildHandle { table: &LINK_TABLE.0, context: ptr::from_ref(self).cast_mut().cast() }
    }

    pub(crate) fn label(&self) -> &str {
        self.host.label()
    }

    pub(crate) fn children(&self) -> &[Box<Link>] {
        &self.children
    }

    /// Nanoseconds spent in `execute`, here and below.
    pub(crate) fn nanoseconds(&self) -> u64 {
        self.counters.nanoseconds.load(Ordering::Relaxed)
    }

    /// Destroys the instance and then those below it.
    pub(crate) fn shutdown(&mut self) {
        if std::mem::take(&mut self.alive) {
            // SAFETY: nothing calls this link afterwards: its owner makes this call last, and the components above,
            // which call it, were destroyed before.
            unsafe { self.foreign().destroy() };
        }
        for child in &mut self.children {
            child.shutdown();
        }
    }

    /// The component's functions, and its context.
    pub(crate) fn instance(&self) -> (Arc<ForeignTable>, *mut c_void) {
        (self.component.clone(), self.context)
    }

    pub(crate) fn foreign(&self) -> Foreign<'_> {
        Foreign { component: &self.component, context: self.context }
    }

    /// The child that gets calls of null slots and refused blocks.
    pub(crate) fn child(&self) -> Option<&Link> {
        self.children.first().map(|child| &**child)
    }

    pub(crate) fn registry(&self) -> Option<Registry> {
        let table = self.registry.load(Ordering::Acquire);
        // SAFETY: the data manager keeps its registry alive as long as the components below it.
        (!table.is_null()).then(|| unsafe { Registry::new(table) })
    }

    pub(crate) fn has(&self, flag: u64) -> bool {
        self.capabilities.flags & flag != 0
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::new(status::UNSUPPORTED, format!("component '{}' {what} and has no child", self.label()))
    }

    /// # Safety
    /// Pointers must satisfy [`crate::abi::Received::own`] through the call.
    unsafe fn bind(&self, registry: *const RegistryTable) -> Result<()> {
        if registry.is_null() {
            let text = format!("the component above '{}' has no registry for it: the pointer is null", self.label());
            return Err(Error::new(status::ARGUMENT, text));
        }
        if self.bound.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.registry.store(registry.cast_mut(), Ordering::Release);
        // SAFETY: the contract of the component is that of `# Safety`.
        if let Some(result) = unsafe { self.foreign().bind(registry) } {
            result?;
        }
        // A data manager passes its own registry to the components below it; other components need not pass it on, so
        // the host does.
        if self.component.kind() != kind::DATA_MANAGER {
            for child in &self.children {
                // SAFETY: as above.
                unsafe { child.bind(registry) }?;
            }
        }
        Ok(())
    }

    /// Whether this component can run the block, or for engines, one that its blocks fall through to.
    fn supports(&self, tables: &BatchTables, block: u32) -> bool {
        let engine = self.component.kind() == kind::ENGINE;
        match self.foreign().supports(tables, block) {
            Some(true) => true,
            None if engine => true,
            Some(false) if !engine => false,
            _ => self.child().map_or(!engine, |child| child.supports(tables, block)),
        }
    }

    pub(crate) fn execute(&self, batch: &BatchRef<'_>, blocks: &[u32], report: *mut ReportRecord) -> (Result<()>, u64) {
        let clock = self.host.services().timing().then(Instant::now);
        let begin = self.host.services().trace().map_or(0, |trace| trace.clock());
        self.executions.fetch_add(1, Ordering::Relaxed);
        add(&self.counters.batches, 1);
        if let Err(error) = self.validate(batch, blocks) {
            return (Err(error), 0);
        }
        // A component that is not bh's own may have changed the tables without updating the batch's key.
        let trusted = self.parent_trusted.load(Ordering::Relaxed);
        let batch = &if trusted { *batch } else { batch.unsigned() };
        let all: Vec<u32>;
        let blocks = if blocks.is_empty() && !batch.blocks.is_empty() {
            all = (0..batch.blocks.len() as u32).collect();
            &all
        } else {
            blocks
        };
        add(&self.counters.blocks, blocks.len() as u64);
        let outcome = match self.component.kind() {
            kind::ENGINE => {
                let (result, tickets) = route::execute(self, batch, blocks, report);
                (result, self.file_tickets(tickets, batch))
            }
            kind::FILTER | kind::FUSER => self.execute_rewriter(batch, blocks, report),
            _ => self.execute_plain(batch, blocks, report),
        };
        if let Some(clock) = clock {
            add(&self.counters.nanoseconds, u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        if let Some(trace) = self.host.services().trace() {
            let detail = format!("{} instructions, {} blocks", batch.instrs.len(), blocks.len());
            trace.record(self.label(), "execute", begin, &detail);
        }
        outcome
    }

    /// Validates batches where they enter the stack, and again behind components that are not bh's own.
    fn validate(&self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<()> {
        if self.parent_trusted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let malformed = |text: &str| {
            let text = format!("the component above '{}' passed on a malformed batch: {text}", self.label());
            Error::new(status::BATCH, text)
        };
        bh_bytecode::validate::validate(batch).map_err(|found| {
            let mut error = malformed(&found.message);
            error.instr = found.instr.and_then(|instr| u32::try_from(instr).ok());
            error.origin = found.origin;
            error
        })?;
        bh_bytecode::validate::block_list(batch, blocks).map_err(|text| malformed(&text))
    }

    fn execute_plain(&self, batch: &BatchRef<'_>, blocks: &[u32], report: *mut ReportRecord) -> (Result<()>, u64) {
        match self.foreign().execute(&BatchTables::new(batch), blocks, report) {
            Some((result, ticket)) => (result.map_err(|error| self.named(error, batch)), ticket),
            None => self.execute_child(batch, blocks, report),
        }
    }

    fn execute_child(&self, batch: &BatchRef<'_>, blocks: &[u32], report: *mut ReportRecord) -> (Result<()>, u64) {
        match self.child() {
            Some(child) => child.execute(batch, blocks, report),
            None => (Err(self.unsupported("cannot execute")), 0),
        }
    }

    /// Filters and fusers only change the form of a batch. If one fails before it has passed the batch on, the host
    /// skips it, so that no data is lost, and still reports its error.
    fn execute_rewriter(&self, batch: &BatchRef<'_>, blocks: &[u32], report: *mut ReportRecord) -> (Result<()>, u64) {
        let passed_on = || self.child().map_or(1, |child| child.executions.load(Ordering::Relaxed));
        let before = passed_on();
        let (result, ticket) = self.execute_plain(batch, blocks, report);
        let nothing = || self.child().is_some() && passed_on() == before && !batch.instrs.is_empty();
        let result = match result {
            // bh's own components pass on everything that has an effect.
            Ok(()) if !self.component.trusted() && nothing() => {
                let text = format!("component '{}' did not pass a batch on", self.label());
                Err(Error::new(status::EXECUTION, text))
            }
            result => result,
        };
        let Err(mut error) = result else { return (result, ticket) };
        if self.child().is_none() || passed_on() != before {
            return (Err(error), ticket);
        }
        if error.instr.is_none() && error.origin.is_none() {
            error = error.at_instr(batch, 0);
        }
        self.host.services().log(log_level::ERROR, self.label(), &format!("{error}; the batch runs without it"));
        let (result, ticket) = self.execute_child(batch, blocks, report);
        // The caller gets the first error, so it gets no ticket; wait for the work here.
        if let Err(second) = result.and_then(|()| self.wait_target(Target::Child, ticket)) {
            self.host.services().log(log_level::ERROR, self.label(), &second.to_string());
        }
        (Err(error), 0)
    }

    /// Adds the component's name and the source line to an error that lacks them.
    fn named(&self, error: Error, batch: &BatchRef<'_>) -> Error {
        let mut error = self.described(error);
        error.locate(batch);
        error
    }

    /// Adds the component's name to an error that lacks it.
    fn described(&self, mut error: Error) -> Error {
        let blank = error.text.starts_with("status ") && error.text.ends_with(" without a message");
        if blank || error.status == status::PANIC && !error.text.starts_with("component '") {
            error.text =
                format!("component '{}' {}", self.label(), error.text.replacen("status", "returned status", 1));
        }
        error
    }

    /// Combines several tickets into one for the parent.
    fn file_tickets(&self, parts: Vec<(Target, u64)>, batch: &BatchRef<'_>) -> u64 {
        if parts.is_empty() {
            return 0;
        }
        let mut pending = self.pending.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        pending.last += 1;
        let last = pending.last;
        pending.tickets.insert(last, Filed { parts, places: Places::of(batch) });
        last
    }

    /// Waits for work on a target.
    fn wait_target(&self, target: Target, ticket: u64) -> Result<()> {
        match (target, self.child()) {
            _ if ticket == 0 => Ok(()),
            // SAFETY: a ticket is a number.
            (Target::Own, _) => match unsafe { self.foreign().wait(ticket) } {
                Some(result) => result,
                None => Err(self.unsupported("gives tickets but cannot wait")),
            },
            (Target::Child, Some(child)) => child.wait(ticket),
            (Target::Child, None) => Ok(()),
        }
    }

    fn wait(&self, ticket: u64) -> Result<()> {
        if ticket == 0 {
            return Ok(());
        }
        if self.component.kind() == kind::ENGINE {
            let filed = {
                let mut pending = self.pending.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                pending.tickets.remove(&ticket)
            };
            let Some(Filed { parts, places }) = filed else { return Ok(()) };
            let mut first = Ok(());
            for (target, ticket) in parts {
                first = first.and(self.wait_target(target, ticket));
            }
            return first.map_err(|error| places.locate(self.described(error)));
        }
        // SAFETY: a ticket is a number.
        match (unsafe { self.foreign().wait(ticket) }, self.child()) {
            (Some(result), _) => result,
            (None, Some(child)) => child.wait(ticket),
            (None, None) => Ok(()),
        }
    }

    fn poll(&self, ticket: u64) -> Result<i32> {
        if ticket == 0 {
            return Ok(1);
        }
        if self.component.kind() == kind::ENGINE {
            let pending = self.pending.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let Some(filed) = pending.tickets.get(&ticket) else { return Ok(1) };
            for &(target, ticket) in &filed.parts {
                let done = match (target, self.child()) {
                    (Target::Own, _) => {
                        // SAFETY: a ticket is a number.
                        unsafe { self.foreign().poll(ticket) }.unwrap_or_else(|| defaults::cannot_poll(self.label()))?
                    }
                    (Target::Child, Some(child)) => child.poll(ticket)?,
                    (Target::Child, None) => 1,
                };
                if done == 0 {
                    return Ok(0);
                }
            }
            return Ok(1);
        }
        // SAFETY: a ticket is a number.
        match (unsafe { self.foreign().poll(ticket) }, self.child()) {
            (Some(result), _) => result,
            (None, Some(child)) => child.poll(ticket),
            (None, None) => defaults::cannot_poll(self.label()),
        }
    }

    fn predict(&self, tables: &BatchTables, blocks: &[u32]) -> Result<Prediction> {
        match (self.foreign().predict(tables, blocks), self.child()) {
            (Some(result), _) => result,
            (None, Some(child)) => child.predict(tables, blocks),
            (None, None) => Ok(Prediction::default()),
        }
    }

    /// Calls `progress` of all components that announce it.
    fn progress(&self) -> Result<()> {
        // SAFETY: there are no arguments.
        let own = if self.has(capability::PROGRESS) { unsafe { self.foreign().progress() } } else { None };
        for child in &self.children {
            child.progress()?;
        }
        own.unwrap_or(Ok(()))
    }

    /// Calls the first component that computes it.
    ///
    /// # Safety
    /// Pointers must satisfy [`crate::abi::Received::own`] through the call.
    unsafe fn evaluate(&self, operation: *const ScalarOperation) -> Result<Evaluation> {
        if self.has(capability::EVALUATES)
            // SAFETY: the contract of the component is that of `# Safety`.
            && let Some(result) = unsafe { self.foreign().evaluate(operation) }
            && !matches!(&result, Ok(evaluation) if evaluation.known == 0)
        {
            return result;
        }
        // SAFETY: as above.
        self.child().map_or_else(|| Ok(Evaluation::default()), |child| unsafe { child.evaluate(operation) })
    }

    /// Calls the first component that performs it.
    ///
    /// # Safety
    /// Pointers must satisfy [`crate::abi::Received::own`] through the call.
    unsafe fn immediate(&self, operation: *const ImmediateOperation) -> Result<i32> {
        if self.has(capability::IMMEDIATE)
            // SAFETY: the contract of the component is that of `# Safety`.
            && let Some(result) = unsafe { self.foreign().immediate(operation) }
            && !matches!(result, Ok(0))
        {
            return result;
        }
        // SAFETY: as above.
        self.child().map_or(Ok(0), |child| unsafe { child.immediate(operation) })
    }

    /// # Safety
    /// Pointers must satisfy [`crate::abi::Received::own`] through the call.
    unsafe fn read(&self, base: *const Base, view: *const ViewSpec, memory: *const HostMemory) -> Result<()> {
        // SAFETY: the called functions have the contract of `# Safety`.
        unsafe {
            match (self.foreign().read(base, view, memory), self.child()) {
                (Some(result), _) => result,
                (None, _) if self.foreign().has_map() => self.copy(base, view, memory, false),
                (None, Some(child)) => child.read(base, view, memory),
                (None, None) => defaults::no_arrays(self.label()),
            }
        }
    }

    /// # Safety
    /// Pointers must satisfy [`crate::abi::Received::own`] through the call.
    unsafe fn write(&self, base: *const Base, view: *const ViewSpec, memory: *const HostMemory) -> Result<()> {
        // SAFETY: the called functions have the contract of `# Safety`.
        unsafe {
            match (self.foreign().write(base, view, memory), self.child()) {
                (Some(result), _) => result,
                (None, _) if self.foreign().has_map() => self.copy(base, view, memory, true),
                (None, Some(child)) => child.write(base, view, memory),
                (None, None) => defaults::no_arrays(self.label()),
            }
        }
    }

    /// Reads or writes for a component that can only map.
    ///
    /// # Safety
    /// Pointers must satisfy [`crate::abi::Received::own`] through the call.
    unsafe fn copy(
        &self,
        base: *const Base,
        spec: *const ViewSpec,
        memory: *const HostMemory,
        writes: bool,
    ) -> Result<()> {
        // SAFETY: the pointers satisfy `&Base::own`, `&View::own` and `&HostMemory::own`, as `# Safety` says.
        let (record, view, memory) = unsafe { (<&Base>::own(base)?, <&View>::own(spec)?, <&HostMemory>::own(memory)?) };
        let whole = view.len() == record.len;
        let mode = match (writes, whole) {
            (false, _) => access::READ,
            (true, false) => access::READ | access::WRITE,
            (true, true) => access::WRITE | access::DISCARD,
        };
        // SAFETY: base and view are not null, and as `# Safety` asks; the view is mapped; `memory` is valid for its
        // elements and does not overlap them, as [`HostMemory::new`] asks.
        unsafe {
            let data = self.map(base, spec, mode)?.cast::<u8>();
            match writes {
                true => strided::store(record.dtype(), &view, data, memory),
                false => strided::load(record.dtype(), &view, data, memory),
            }
            self.unmap(base)
        }
    }

    /// Engines need not know the components below them, so the host also asks their children.
    ///
    /// # Safety
    /// Pointers must satisfy [`crate::abi::Received::own`] through the call.
    unsafe fn extmethod(&self, name: *const c_char, opcode: u16) -> Result<i32> {
        // SAFETY: the contract of the component is that of `# Safety`.
        let own = unsafe { self.foreign().extmethod(name, opcode) }.transpose()?;
        if let Some(own) = own
            && self.component.kind() != kind::ENGINE
        {
            return Ok(own);
        }
        let mut known = own.is_some_and(|own| own != 0);
        for child in &self.children {
            // SAFETY: as above.
            known |= unsafe { child.extmethod(name, opcode) }? != 0;
        }
        Ok(i32::from(known))
    }

    /// As `extmethod`: if an engine has no answer, the host asks its child.
    ///
    /// # Safety
    /// `reply` must be null or point to a [`ReplySink`] that works through the call.
    unsafe fn message(&self, text: &CStr, reply: *mut c_void) -> Result<()> {
        let mut counted = CountedReply { reply, bytes: 0 };
        let mut sink = ReplySink { context: (&raw mut counted).cast(), append: append_counted };
        // SAFETY: the sink works through the call.
        if let Some(result) = unsafe { self.foreign().message(text, (&raw mut sink).cast()) } {
            result?;
            if counted.bytes > 0 || self.component.kind() != kind::ENGINE {
                return Ok(());
            }
        }
        // SAFETY: as `# Safety` asks.
        self.child().map_or(Ok(()), |child| unsafe { child.message(text, reply) })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// Forwards an answer and records whether there was one.
struct CountedReply {
    reply: *mut c_void,
    bytes: usize,
}

unsafe extern "C" fn append_counted(context: *mut c_void, text: *const c_char, bytes: usize) {
    // SAFETY: the context is a `CountedReply` on the stack of `message`, and its reply the caller's sink or null.
    unsafe {
        let counted = &mut *context.cast::<CountedReply>();
        counted.bytes += bytes;
        if let Some(sink) = counted.reply.cast::<ReplySink>().as_ref() {
            (sink.append)(sink.context, text, bytes);
        }
    }
}

mod ends;
mod places;
mod table;
use places::Places;
use table::LINK_TABLE;
