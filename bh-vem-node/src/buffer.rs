//! Host buffers and attachments, reference-counted independently of the bases that use them.

use crate::copy::gather;
use crate::tally::Tally;
use bh_bytecode::View;
use bh_core::abi::{AttachmentOps, ReleaseFn};
use bh_core::component::{Counter, Host};
use bh_core::error::Result;
use std::ffi::c_void;
use std::ptr;

/// No buffer or attachment.
pub const NONE: u32 = u32::MAX;

/// The source of a host buffer's memory.
#[derive(Clone, Copy)]
enum Origin {
    Host,
    Adopted(Option<ReleaseFn>, *mut c_void),
}

/// A version of a base's data in host memory.
#[derive(Clone)]
pub struct HostBuffer {
    pub data: *mut u8,
    pub bytes: usize,
    /// One for the base, one per alias, one per loan.
    pub refs: u32,
    /// The bases that are aliases of a part of it.
    pub aliases: Vec<u64>,
    /// Readers that rely on its content: stable loans, read-only exports, immutable memory. Writers take another
    /// buffer.
    pub guards: u32,
    origin: Origin,
}

/// A copy of a base in an engine's own space.
#[derive(Clone)]
struct Attachment {
    handle: *mut c_void,
    operations: AttachmentOps,
    refs: u32,
    /// The bases that are aliases of a part of it.
    aliases: Vec<u64>,
}

/// Calls of engines and users, deferred until the registry is unlocked.
#[derive(Default)]
pub struct Later {
    drops: Vec<(AttachmentOps, *mut c_void)>,
    releases: Vec<(ReleaseFn, *mut c_void, *mut c_void)>,
}

impl Later {
    /// Are there no calls?
    pub fn is_empty(&self) -> bool {
        self.drops.is_empty() && self.releases.is_empty()
    }

    /// Makes the calls. The registry must be unlocked.
    pub fn run(self) {
        for (operations, handle) in self.drops {
            // SAFETY: `Registry::attach` requires functions that work until `drop` is called; this is that call, after
            // the last reference has ended.
            unsafe { operations.call_drop(handle) };
        }
        for (release, argument, data) in self.releases {
            // SAFETY: `Adoption::new` requires a function that works with this argument; the memory is no longer in
            // use.
            unsafe { release(argument, data) };
        }
    }
}

/// All host buffers and attachments.
pub struct Buffers {
    host: Host,
    buffers: Vec<HostBuffer>,
    free_buffers: Vec<u32>,
    attachments: Vec<Attachment>,
    free_attachments: Vec<u32>,
    bytes: u64,
    allocations: Counter,
    allocated_bytes: Counter,
    peak_bytes: Counter,
    pub later: Later,
    /// In rehearsals: counts memory instead of allocating it.
    tally: Option<Tally>,
}

// SAFETY: the registry's lock guards the memory behind the pointers. Handles and arguments are only passed back to the
// engines and users that gave them, whose functions may be called from any thread.
unsafe impl Send for Buffers {}

impl Buffers {
    /// No buffers; memory and counters come from the host.
    pub fn new(host: Host) -> Buffers {
        Buffers {
            host,
            buffers: Vec::new(),
            free_buffers: Vec::new(),
            attachments: Vec::new(),
            free_attachments: Vec::new(),
            bytes: 0,
            allocations: host.counter("node.allocations"),
            allocated_bytes: host.counter("node.allocated_bytes"),
            peak_bytes: host.counter("node.peak_bytes"),
            later: Later::default(),
            tally: None,
        }
    }

    /// A copy for a rehearsal that may allocate `left` bytes: without addresses or ownership.
    pub fn rehearsal(&self, left: u64) -> Buffers {
        Buffers {
            host: self.host,
            buffers: self.buffers.iter().map(|buffer| HostBuffer { data: ptr::null_mut(), ..buffer.clone() }).collect(),
            free_buffers: self.free_buffers.clone(),
            attachments: self.attachments.clone(),
            free_attachments: self.free_attachments.clone(),
            bytes: self.bytes,
            allocations: Counter::unseen(),
            allocated_bytes: Counter::unseen(),
            peak_bytes: Counter::unseen(),
            later: Later::default(),
            tally: Some(Tally::new(self.bytes, left)),
        }
    }

    /// The counts of a rehearsal.
    pub fn tally(&self) -> Tally {
        self.tally.unwrap_or_default()
    }

    /// Bytes of host memory in use, including adopted memory.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Allocates a host buffer with one reference.
    pub fn allocate(&mut self, bytes: usize, zeroed: bool) -> Result<u32> {
        // An empty base also has an address.
        let data = match &mut self.tally {
            Some(tally) => tally.take(bytes.max(1)).map(|()| ptr::null_mut())?,
            None => self.host.alloc(bytes.max(1), zeroed)?,
        };
        self.allocations.add(1);
        self.allocated_bytes.add(bytes as u64);
        Ok(self.insert(data, bytes, Origin::Host))
    }

    /// A buffer in the user's memory with one reference.
    pub fn adopt(&mut self, data: *mut u8, bytes: usize, release: Option<ReleaseFn>, argument: *mut c_void) -> u32 {
        self.insert(data, bytes, Origin::Adopted(release, argument))
    }

    fn insert(&mut self, data: *mut u8, bytes: usize, origin: Origin) -> u32 {
        self.bytes += bytes as u64;
        self.peak_bytes.raise(self.bytes);
        if let Some(tally) = &mut self.tally {
            tally.raise(self.bytes);
        }
        if let Some(index) = self.free_buffers.pop() {
            let buffer = &mut self.buffers[index as usize];
            (buffer.data, buffer.bytes, buffer.refs, buffer.guards, buffer.origin) = (data, bytes, 1, 0, origin);
            return index;
        }
        self.buffers.push(HostBuffer { data, bytes, refs: 1, aliases: Vec::new(), guards: 0, origin });
        (self.buffers.len() - 1) as u32
    }

    /// Copies the content of a buffer to another one.
    pub fn copy(&mut self, from: u32, to: u32) {
        let (from, to) = (&self.buffers[from as usize], &self.buffers[to as usize]);
        assert_eq!(from.bytes, to.bytes, "buffers of one size");
        if self.tally.is_none() {
            // SAFETY: both are live buffers with this many bytes, and each has its own memory.
            unsafe { ptr::copy_nonoverlapping(from.data, to.data, to.bytes) };
        }
    }

    /// Copies a view of elements of `size` bytes to another buffer, packed.
    ///
    /// # Safety
    /// The view must be within the first buffer, whose elements have `size` bytes. The second buffer must be another
    /// one with space for the view's elements.
    pub unsafe fn gather(&mut self, view: &View, size: usize, from: u32, to: u32) {
        let (from, to) = (self.buffers[from as usize].data, self.buffers[to as usize].data);
        if self.tally.is_none() {
            // SAFETY: the caller guarantees a view within the first buffer, and space for its elements in the second,
            // which is another one.
            unsafe { gather(view, size, from, to) };
        }
    }

    /// A buffer in use.
    #[inline]
    pub fn get(&mut self, index: u32) -> &mut HostBuffer {
        &mut self.buffers[index as usize]
    }

    /// Is a loan of the buffer outstanding, besides the references of its base and its aliases?
    pub fn is_lent(&self, index: u32) -> bool {
        let buffer = &self.buffers[index as usize];
        buffer.refs as usize > 1 + buffer.aliases.len()
    }

    /// Ends a reference to a buffer; the last one frees it. No effect for [`NONE`].
    #[inline]
    pub fn unref(&mut self, index: u32) {
        if index == NONE {
            return;
        }
        let buffer = &mut self.buffers[index as usize];
        buffer.refs -= 1;
        if buffer.refs > 0 {
            return;
        }
        self.bytes -= buffer.bytes as u64;
        match (buffer.origin, &mut self.tally) {
            (Origin::Host, Some(tally)) => tally.give_back(buffer.bytes.max(1)),
            (Origin::Adopted(..), Some(_)) => {}
            // SAFETY: allocated with this size; this was the last reference.
            (Origin::Host, None) => unsafe { self.host.free(buffer.data, buffer.bytes.max(1)) },
            (Origin::Adopted(Some(release), argument), None) => {
                self.later.releases.push((release, argument, buffer.data.cast()));
            }
            (Origin::Adopted(None, _), None) => {}
        }
        self.free_buffers.push(index);
    }

    /// Registers a copy in an engine's space, with one reference.
    pub fn attach(&mut self, handle: *mut c_void, operations: AttachmentOps) -> u32 {
        let attachment = Attachment { handle, operations, refs: 1, aliases: Vec::new() };
        if let Some(index) = self.free_attachments.pop() {
            self.attachments[index as usize] = attachment;
            return index;
        }
        self.attachments.push(attachment);
        (self.attachments.len() - 1) as u32
    }

    /// Adds a reference to an attachment; returns its handle and operations.
    pub fn ref_attachment(&mut self, index: u32) -> (*mut c_void, AttachmentOps) {
        let attachment = &mut self.attachments[index as usize];
        attachment.refs += 1;
        (attachment.handle, attachment.operations)
    }

    /// The bases that are aliases of a part of an attachment.
    pub fn attachment_aliases(&mut self, index: u32) -> &mut Vec<u64> {
        &mut self.attachments[index as usize].aliases
    }

    /// Is a loan of the attachment outstanding, besides the references of its base and its aliases?
    pub fn is_attachment_lent(&self, index: u32) -> bool {
        let attachment = &self.attachments[index as usize];
        attachment.refs as usize > 1 + attachment.aliases.len()
    }

    /// The operations of an attachment.
    pub fn operations(&self, index: u32) -> &AttachmentOps {
        &self.attachments[index as usize].operations
    }

    /// The handle of an attachment.
    pub fn handle(&self, index: u32) -> *mut c_void {
        self.attachments[index as usize].handle
    }

    /// Ends a reference to an attachment; the last one drops it once the registry is unlocked.
    pub fn unref_attachment(&mut self, index: u32) {
        let attachment = &mut self.attachments[index as usize];
        attachment.refs -= 1;
        if attachment.refs == 0 {
            if self.tally.is_none() {
                self.later.drops.push((attachment.operations, attachment.handle));
            }
            self.free_attachments.push(index);
        }
    }
}
