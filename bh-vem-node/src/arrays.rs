//! The rules of the array registry: which copies of a base exist, which are valid, and what each access does to them.
//! Nothing here calls an engine; what must be called is returned ([`Step::Transfer`]) or put off ([`Buffers::later`]).

use crate::buffer::{Buffers, NONE};
use crate::copy::gather;
use bh_bytecode::{Base, DType, View};
use bh_core::abi::{AttachmentOps, Buffer, HOST_SPACE, ReleaseFn, access, status};
use bh_core::component::{Counter, Host};
use bh_core::error::{Error, Result};
use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr;

/// Spreads consecutive ids over the table.
#[derive(Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// A lazy copy: the content is that of a view of a version of another base.
struct Alias {
    source: u32,
    view: View,
}

/// What is known about a base.
struct State {
    len: i64,
    dtype: DType,
    /// A transfer to the host buffer is under way, with the registry unlocked.
    transferring: bool,
    /// The host buffer holds the current values.
    host_valid: bool,
    /// The host buffer is the user's memory.
    adopted: bool,
    /// Dropped by the program while mapped or pinned; goes when that ends.
    discarded: bool,
    /// The host buffer, or [`NONE`].
    buffer: u32,
    pins: u32,
    maps: u32,
    /// Counts changes of the data, so that a transfer notices that it is outdated.
    version: u32,
    /// Valid copies in other spaces.
    attachments: Vec<(u32, u32)>,
    alias: Option<Box<Alias>>,
    poison: Option<Box<Error>>,
}

impl State {
    fn new(base: &Base) -> State {
        State {
            len: base.len,
            dtype: base.dtype(),
            transferring: false,
            host_valid: false,
            adopted: false,
            discarded: false,
            buffer: NONE,
            pins: 0,
            maps: 0,
            version: 0,
            attachments: Vec::new(),
            alias: None,
            poison: None,
        }
    }

    /// Must the host buffer stay where it is?
    fn is_fixed(&self) -> bool {
        self.pins > 0 || self.maps > 0 || self.adopted
    }

    fn bytes(&self) -> usize {
        self.len as usize * self.dtype.size()
    }
}

/// A copy from an engine's space to host memory, to be made with the registry unlocked.
pub struct Transfer {
    id: u64,
    version: u32,
    buffer: u32,
    attachment: u32,
    pub handle: *mut c_void,
    pub operations: AttachmentOps,
    pub data: *mut u8,
    pub bytes: usize,
}

/// What comes next in an `acquire`.
pub enum Step {
    /// It is done.
    Ready(Buffer),
    /// Make this transfer, finish it, and try again.
    Transfer(Transfer),
    /// Another thread is transferring the base; try again when it is done.
    Wait,
}

/// A base that still has data.
#[derive(Debug, PartialEq, Eq)]
pub struct Leak {
    /// Id of the base.
    pub id: u64,
    /// Element type.
    pub dtype: DType,
    /// Elements.
    pub len: i64,
}

/// All bases and their data.
pub struct Arrays {
    bases: HashMap<u64, State, BuildHasherDefault<IdHasher>>,
    pub buffers: Buffers,
    spaces: u32,
    to_host: Counter,
    alias_copies: Counter,
    renames: Counter,
}

const HOST_TOKEN: u64 = 1;

fn token_of(buffer: u32) -> u64 {
    u64::from(buffer) << 2 | HOST_TOKEN
}

fn attachment_token_of(attachment: u32) -> u64 {
    u64::from(attachment) << 2 | 2
}

fn buffer_of(token: u64) -> Option<u32> {
    (token & 3 == HOST_TOKEN).then_some((token >> 2) as u32)
}

/// The state of a base, made if need be. Fails if the base was known with another type or length.
fn state_of<'a>(
    bases: &'a mut HashMap<u64, State, BuildHasherDefault<IdHasher>>,
    base: &Base,
) -> Result<&'a mut State> {
    let state = bases.entry(base.id).or_insert_with(|| State::new(base));
    if state.len != base.len || state.dtype as u8 != base.dtype {
        return Err(mismatch(state, base));
    }
    Ok(state)
}

#[cold]
fn mismatch(state: &State, base: &Base) -> Error {
    let (dtype, len) = (state.dtype, state.len);
    let text = format!("base {} is {dtype}[{len}], not {}[{}]", base.id, base.dtype(), base.len);
    Error::new(status::ARGUMENT, text)
}

impl Arrays {
    /// Without bases.
    pub fn new(host: Host) -> Arrays {
        Arrays {
            bases: HashMap::default(),
            buffers: Buffers::new(host),
            spaces: HOST_SPACE,
            to_host: host.counter("node.to_host"),
            alias_copies: host.counter("node.alias_copies"),
            renames: host.counter("node.renames"),
        }
    }

    /// A number for an engine's memory space.
    pub fn new_space(&mut self) -> u32 {
        self.spaces += 1;
        self.spaces
    }

    /// One step of lending a base's buffer.
    #[inline]
    pub fn acquire(&mut self, base: &Base, space: u32, mode: u32) -> Result<Step> {
        let state = state_of(&mut self.bases, base)?;
        let discard = mode & access::DISCARD != 0;
        if let Some(error) = &state.poison {
            if !discard {
                return Err((**error).clone());
            }
            state.poison = None;
        }
        if space != HOST_SPACE {
            return self.acquire_elsewhere(base.id, space, mode).map(Step::Ready);
        }
        // The hot path: valid on the host, and neither copies nor aliases to care for.
        if state.host_valid && (mode == access::READ || state.attachments.is_empty()) {
            let index = state.buffer;
            let buffer = self.buffers.get(index);
            if mode == access::READ || buffer.aliases.is_empty() {
                buffer.refs += 1;
                state.version = state.version.wrapping_add(u32::from(mode != access::READ));
                return Ok(Step::Ready(Buffer {
                    data: buffer.data.cast(),
                    bytes: buffer.bytes,
                    token: token_of(index),
                }));
            }
        }
        self.acquire_slowly(base.id, mode)
    }

    /// Brings the host buffer up to date and lends it.
    fn acquire_slowly(&mut self, id: u64, mode: u32) -> Result<Step> {
        let discard = mode & access::DISCARD != 0;
        let Some(state) = self.bases.get(&id) else { return Err(unknown(id)) };
        if state.transferring {
            return Ok(Step::Wait);
        }
        if discard {
            self.drop_alias(id);
        } else if state.alias.is_some() {
            self.materialise(id)?;
        } else if !state.host_valid && !state.attachments.is_empty() {
            return self.begin_transfer(id).map(Step::Transfer);
        }
        if mode & (access::WRITE | access::DISCARD) != 0 {
            self.before_change(id, discard)?;
            self.drop_attachments(id, None);
        }
        let Some(state) = self.bases.get_mut(&id) else { return Err(unknown(id)) };
        if state.buffer == NONE {
            // A base that was never written reads as zeros, so that every engine gives the same results.
            state.buffer = self.buffers.allocate(state.bytes(), !discard)?;
        }
        state.host_valid = true;
        let index = state.buffer;
        let buffer = self.buffers.get(index);
        buffer.refs += 1;
        Ok(Step::Ready(Buffer { data: buffer.data.cast(), bytes: buffer.bytes, token: token_of(index) }))
    }

    /// Lends the copy in an engine's space, if there is a valid one.
    fn acquire_elsewhere(&mut self, id: u64, space: u32, mode: u32) -> Result<Buffer> {
        let Some(state) = self.bases.get(&id) else { return Err(unknown(id)) };
        let Some(&(_, index)) = state.attachments.iter().find(|(at, _)| *at == space) else {
            return Ok(Buffer { data: ptr::null_mut(), bytes: 0, token: 0 });
        };
        let bytes = state.bytes();
        if mode & (access::WRITE | access::DISCARD) != 0 {
            self.drop_attachments(id, Some(space));
            self.make_host_stale(id)?;
        }
        let (handle, _) = self.buffers.ref_attachment(index);
        Ok(Buffer { data: handle, bytes, token: attachment_token_of(index) })
    }

    /// Ends a loan.
    #[inline]
    pub fn release(&mut self, buffer: &Buffer) {
        match buffer_of(buffer.token) {
            Some(index) => self.buffers.unref(index),
            None if buffer.token != 0 => self.buffers.unref_attachment((buffer.token >> 2) as u32),
            None => {}
        }
    }

    /// Gets ready for a change of the host buffer: aliases made from it are copied out, or keep it while the base gets
    /// another one if all of it will be overwritten.
    fn before_change(&mut self, id: u64, discard: bool) -> Result<()> {
        let Some(state) = self.bases.get_mut(&id) else { return Ok(()) };
        state.version = state.version.wrapping_add(1);
        let index = state.buffer;
        if index == NONE || self.buffers.get(index).aliases.is_empty() {
            return Ok(());
        }
        if discard && !state.is_fixed() && !self.buffers.is_lent(index) {
            (state.buffer, state.host_valid) = (NONE, false);
            self.buffers.unref(index);
            return Ok(());
        }
        self.copy_out_aliases(index)
    }

    /// Gives every alias of a buffer its own memory.
    fn copy_out_aliases(&mut self, index: u32) -> Result<()> {
        while let Some(&alias) = self.buffers.get(index).aliases.last() {
            self.materialise(alias)?;
        }
        Ok(())
    }

    /// Turns an alias into an array of its own.
    fn materialise(&mut self, id: u64) -> Result<()> {
        let Some(state) = self.bases.get_mut(&id) else { return Ok(()) };
        let Some(alias) = &state.alias else { return Ok(()) };
        let target = self.buffers.allocate(state.bytes(), false)?;
        let source = self.buffers.get(alias.source).data;
        let data = self.buffers.get(target).data;
        // SAFETY: the view was checked against the source buffer, which the alias keeps alive; the target has the
        // alias's size, which equals the view's.
        unsafe { gather(&alias.view, state.dtype.size(), source, data) };
        self.drop_alias(id);
        self.alias_copies.add(1);
        if let Some(state) = self.bases.get_mut(&id) {
            (state.buffer, state.host_valid) = (target, true);
        }
        Ok(())
    }

    /// Forgets that a base is an alias.
    fn drop_alias(&mut self, id: u64) {
        let Some(alias) = self.bases.get_mut(&id).and_then(|state| state.alias.take()) else { return };
        self.buffers.get(alias.source).aliases.retain(|&other| other != id);
        self.buffers.unref(alias.source);
    }

    /// Drops the copies in engines' spaces, but for one space.
    fn drop_attachments(&mut self, id: u64, keep: Option<u32>) {
        let Some(state) = self.bases.get_mut(&id) else { return };
        let buffers = &mut self.buffers;
        state.attachments.retain(|&(space, index)| {
            let kept = keep == Some(space);
            if !kept {
                buffers.unref_attachment(index);
            }
            kept
        });
    }

    /// The host buffer no longer holds the current values: it goes, unless it must stay where it is.
    fn make_host_stale(&mut self, id: u64) -> Result<()> {
        self.drop_alias(id);
        let Some(state) = self.bases.get_mut(&id) else { return Ok(()) };
        state.version = state.version.wrapping_add(1);
        let (index, fixed, was_valid) = (state.buffer, state.is_fixed(), state.host_valid);
        if index == NONE {
            return Ok(());
        }
        if fixed {
            // A later transfer will write here.
            if was_valid {
                self.copy_out_aliases(index)?;
            }
        } else {
            self.buffers.unref(index);
        }
        if let Some(state) = self.bases.get_mut(&id) {
            state.host_valid = false;
            if !fixed {
                state.buffer = NONE;
            }
        }
        Ok(())
    }

    /// Prepares the copy of a device's data to the host.
    fn begin_transfer(&mut self, id: u64) -> Result<Transfer> {
        let Some(state) = self.bases.get_mut(&id) else { return Err(unknown(id)) };
        let Some(&(_, attachment)) = state.attachments.first() else { return Err(unknown(id)) };
        if state.buffer == NONE {
            state.buffer = self.buffers.allocate(state.bytes(), false)?;
        }
        state.transferring = true;
        let (version, index) = (state.version, state.buffer);
        let (handle, operations) = self.buffers.ref_attachment(attachment);
        let buffer = self.buffers.get(index);
        buffer.refs += 1;
        let (data, bytes) = (buffer.data, buffer.bytes);
        Ok(Transfer { id, version, buffer: index, attachment, handle, operations, data, bytes })
    }

    /// Ends a transfer; the host buffer is valid unless the base changed meanwhile or the transfer failed.
    pub fn end_transfer(&mut self, transfer: &Transfer, success: bool) {
        if let Some(state) = self.bases.get_mut(&transfer.id) {
            state.transferring = false;
            if success && state.buffer == transfer.buffer && state.version == transfer.version {
                state.host_valid = true;
            }
        }
        self.to_host.add(1);
        self.buffers.unref(transfer.buffer);
        self.buffers.unref_attachment(transfer.attachment);
    }

    /// A second buffer for a base.
    pub fn fresh(&mut self, base: &Base) -> Result<Buffer> {
        let bytes = state_of(&mut self.bases, base)?.bytes();
        let index = self.buffers.allocate(bytes, false)?;
        let data = self.buffers.get(index).data.cast();
        Ok(Buffer { data, bytes, token: token_of(index) })
    }

    /// Replaces a base's buffer by a fresh one, whose loan ends. A buffer that must stay gets the content instead.
    pub fn commit_rename(&mut self, base: &Base, fresh: &Buffer) -> Result<()> {
        let state = state_of(&mut self.bases, base)?;
        let Some(index) = buffer_of(fresh.token).filter(|&index| self.buffers.exists(index)) else {
            return Err(Error::new(status::HANDLE, format!("rename of base {}: no buffer of `fresh`", base.id)));
        };
        if self.buffers.get(index).bytes != state.bytes() {
            return Err(Error::new(status::ARGUMENT, format!("rename of base {}: the buffer's size differs", base.id)));
        }
        state.version = state.version.wrapping_add(1);
        state.poison = None;
        self.renames.add(1);
        self.drop_alias(base.id);
        self.drop_attachments(base.id, None);
        let Some(state) = self.bases.get_mut(&base.id) else { return Ok(()) };
        let (old, fixed, bytes) = (state.buffer, state.is_fixed(), state.bytes());
        if fixed && old != NONE {
            state.host_valid = true;
            self.copy_out_aliases(old)?;
            let (from, to) = (self.buffers.get(index).data, self.buffers.get(old).data);
            // SAFETY: two live buffers of this size.
            unsafe { ptr::copy_nonoverlapping(from, to, bytes) };
            self.buffers.unref(index);
        } else {
            (state.buffer, state.host_valid) = (index, true);
            self.buffers.unref(old);
        }
        Ok(())
    }

    /// Makes a base a lazy copy of a view of another one, which must be valid on the host.
    pub fn alias(&mut self, alias: &Base, base: &Base, view: &View) -> Result<()> {
        let refuse = |text: &str| Err(Error::new(status::ARGUMENT, format!("alias of base {}: {text}", base.id)));
        if alias.id == base.id {
            return refuse("it cannot be its own alias");
        }
        if alias.dtype != base.dtype || view.len() != alias.len || !view.fits(base.len) {
            return refuse("type, length or view do not fit");
        }
        let source = state_of(&mut self.bases, base)?;
        let (index, valid, is_alias) = (source.buffer, source.host_valid, source.alias.is_some());
        if is_alias || !valid || index == NONE {
            return refuse("its data is not in host memory");
        }
        self.drop_data(alias, false)?;
        let state = state_of(&mut self.bases, alias)?;
        state.poison = None;
        state.version = state.version.wrapping_add(1);
        if state.buffer != NONE {
            // The alias must stay where it is: copy now.
            let (target, size) = (state.buffer, state.dtype.size());
            state.host_valid = true;
            self.copy_out_aliases(target)?;
            let (from, to) = (self.buffers.get(index).data, self.buffers.get(target).data);
            // SAFETY: the view fits the source buffer, and the target has as many elements.
            unsafe { gather(view, size, from, to) };
            return Ok(());
        }
        state.alias = Some(Box::new(Alias { source: index, view: *view }));
        let buffer = self.buffers.get(index);
        buffer.refs += 1;
        buffer.aliases.push(alias.id);
        Ok(())
    }

    /// Registers a copy in an engine's space.
    pub fn attach(
        &mut self,
        base: &Base,
        space: u32,
        handle: *mut c_void,
        exclusive: bool,
        operations: AttachmentOps,
    ) -> Result<()> {
        if space == HOST_SPACE || space > self.spaces {
            return Err(Error::new(status::ARGUMENT, format!("attach: there is no memory space {space}")));
        }
        let state = state_of(&mut self.bases, base)?;
        if exclusive {
            state.poison = None;
            // This may fail, so it comes before the registry takes the handle.
            self.make_host_stale(base.id)?;
            self.drop_attachments(base.id, Some(space));
        }
        let state = state_of(&mut self.bases, base)?;
        let held = state.attachments.iter_mut().find(|(at, _)| *at == space);
        match held {
            Some((_, index)) if self.buffers.handle(*index) == handle => {}
            Some((_, index)) => {
                let old = std::mem::replace(index, self.buffers.attach(handle, operations));
                self.buffers.unref_attachment(old);
            }
            None => state.attachments.push((space, self.buffers.attach(handle, operations))),
        }
        Ok(())
    }

    /// Marks a base as lost; its first error stays.
    pub fn poison(&mut self, base: &Base, error: Error) {
        // Indices into the batch that failed mean nothing to those who read the base later; file and line do.
        let error = Error { block: None, instr: None, ..error };
        if self.drop_data(base, false).is_err() {
            return;
        }
        if let Ok(state) = state_of(&mut self.bases, base)
            && state.poison.is_none()
        {
            state.poison = Some(Box::new(error));
        }
    }

    /// Takes the user's memory as a base's data.
    pub fn adopt(
        &mut self,
        base: &Base,
        data: *mut u8,
        release: Option<ReleaseFn>,
        argument: *mut c_void,
    ) -> Result<()> {
        if data.is_null() && base.len > 0 {
            return Err(Error::new(status::ARGUMENT, "adopt: the data pointer is null"));
        }
        let state = state_of(&mut self.bases, base)?;
        if state.is_fixed() {
            return Err(Error::new(status::ARGUMENT, format!("adopt: the data of base {} may not move", base.id)));
        }
        self.drop_data(base, false)?;
        let state = state_of(&mut self.bases, base)?;
        state.poison = None;
        state.adopted = true;
        state.host_valid = true;
        state.version = state.version.wrapping_add(1);
        state.buffer = self.buffers.adopt(data, state.bytes(), release, argument);
        Ok(())
    }

    /// Counts the reasons why a base's memory must stay.
    pub fn pin(&mut self, base: &Base, pinned: bool) -> Result<()> {
        let state = state_of(&mut self.bases, base)?;
        match (pinned, state.pins) {
            (true, _) => state.pins += 1,
            (false, 0) => return Err(Error::new(status::ARGUMENT, format!("unpin: base {} is not pinned", base.id))),
            (false, _) => state.pins -= 1,
        }
        self.finish_discard(base.id);
        Ok(())
    }

    /// Notes that a loan of the host buffer lasts until `unmap`.
    pub fn mapped(&mut self, id: u64) {
        if let Some(state) = self.bases.get_mut(&id) {
            state.maps += 1;
        }
    }

    /// Ends a map.
    pub fn unmap(&mut self, base: &Base) -> Result<()> {
        let state = state_of(&mut self.bases, base)?;
        if state.maps == 0 {
            return Err(Error::new(status::ARGUMENT, format!("unmap: base {} is not mapped", base.id)));
        }
        state.maps -= 1;
        self.buffers.unref(state.buffer);
        self.finish_discard(base.id);
        Ok(())
    }

    /// Drops a base's data. Pinned and mapped memory stays in place, and so does adopted memory unless it is given back.
    fn drop_data(&mut self, base: &Base, give_back_adopted: bool) -> Result<()> {
        let state = state_of(&mut self.bases, base)?;
        state.version = state.version.wrapping_add(1);
        let stays = state.pins > 0 || state.maps > 0 || (state.adopted && !give_back_adopted);
        if !stays {
            let index = state.buffer;
            (state.buffer, state.host_valid, state.adopted) = (NONE, false, false);
            self.buffers.unref(index);
        }
        self.drop_alias(base.id);
        self.drop_attachments(base.id, None);
        Ok(())
    }

    /// FREE: drops the data; the base stays.
    pub fn free(&mut self, base: &Base) -> Result<()> {
        // Contracted bases have no state and shall not get one.
        if !self.bases.contains_key(&base.id) {
            return Ok(());
        }
        self.drop_data(base, true)?;
        state_of(&mut self.bases, base)?.poison = None;
        Ok(())
    }

    /// DISCARD: drops the base; while it is mapped or pinned, its memory stays.
    pub fn discard(&mut self, base: &Base) -> Result<()> {
        self.free(base)?;
        if let Some(state) = self.bases.get_mut(&base.id) {
            state.discarded = true;
        }
        self.finish_discard(base.id);
        Ok(())
    }

    fn finish_discard(&mut self, id: u64) {
        if let Some(state) = self.bases.get_mut(&id)
            && state.discarded
            && state.pins == 0
            && state.maps == 0
        {
            let index = std::mem::replace(&mut state.buffer, NONE);
            self.buffers.unref(index);
            self.bases.remove(&id);
        }
    }

    /// Is the base's data lost, absent or already on the host, so that SYNC has nothing to do?
    pub fn is_synced(&self, base: &Base) -> bool {
        self.bases.get(&base.id).is_none_or(|state| {
            state.poison.is_some() || state.host_valid || (state.attachments.is_empty() && state.alias.is_none())
        })
    }

    /// The bases that still have data, by id.
    pub fn leaks(&self) -> Vec<Leak> {
        let has_data = |state: &State| state.buffer != NONE || !state.attachments.is_empty() || state.alias.is_some();
        let mut leaks: Vec<Leak> = self
            .bases
            .iter()
            .filter(|(_, state)| has_data(state))
            .map(|(&id, state)| Leak { id, dtype: state.dtype, len: state.len })
            .collect();
        leaks.sort_by_key(|leak| leak.id);
        leaks
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        let ids: Vec<u64> = self.bases.keys().copied().collect();
        for id in ids {
            self.drop_alias(id);
            self.drop_attachments(id, None);
            if let Some(state) = self.bases.remove(&id) {
                // A buffer that is still mapped loses that loan as well.
                for _ in 0..=state.maps {
                    self.buffers.unref(state.buffer);
                }
            }
        }
    }
}

#[cold]
fn unknown(id: u64) -> Error {
    Error::new(status::HANDLE, format!("base {id} is unknown"))
}
