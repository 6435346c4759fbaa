//! The state of each base.

use crate::buffer::NONE;
use bh_bytecode::{Base, DType, View};
use bh_core::abi::{AttachmentOps, Loan, status};
use bh_core::error::{Error, Result};
use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{BuildHasherDefault, Hasher};

/// The states of all bases by id.
pub type Bases = HashMap<u64, State, BuildHasherDefault<IdHasher>>;

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

/// A lazy copy: it has the content of a view of another base's version.
#[derive(Clone)]
pub struct Alias {
    pub source: Source,
    /// The source base, which may already be dropped.
    pub of: Base,
    pub view: View,
}

/// The source of an alias.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A host buffer.
    Buffer(u32),
    /// A space and an attachment in it.
    Attachment(u32, u32),
}

/// The state of a base.
#[derive(Clone)]
pub struct State {
    pub len: i64,
    pub dtype: DType,
    /// A transfer to the host buffer is in progress, with the registry unlocked.
    pub transferring: bool,
    /// The host buffer holds the current values.
    pub host_valid: bool,
    /// The host buffer is the user's memory.
    pub adopted: bool,
    /// The program dropped it while it was mapped or pinned; its memory stays until that ends.
    pub discarded: bool,
    /// The host buffer, or [`NONE`].
    pub buffer: u32,
    pub pins: u32,
    pub maps: u32,
    /// Counts changes of the data, so that transfers detect outdated copies.
    pub version: u32,
    /// Valid copies in other spaces: space and attachment.
    pub attachments: Vec<(u32, u32)>,
    pub alias: Option<Box<Alias>>,
    pub poison: Option<Box<Error>>,
}

impl State {
    /// A base without data.
    pub fn new(base: &Base) -> State {
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
    pub fn is_fixed(&self) -> bool {
        self.pins > 0 || self.maps > 0 || self.adopted
    }

    /// Bytes of the whole base.
    pub fn bytes(&self) -> usize {
        self.len as usize * self.dtype.size()
    }
}

/// A copy from an engine's space to host memory, to run with the registry unlocked.
pub struct Transfer {
    pub id: u64,
    pub version: u32,
    pub buffer: u32,
    pub attachment: u32,
    pub handle: *mut c_void,
    pub operations: AttachmentOps,
    pub data: *mut u8,
    pub bytes: usize,
    /// A base and a view of the attachment to copy, packed; `None` for all of it.
    pub part: Option<(Base, View)>,
}

/// A copy of a part of an attachment within its space, to run with the registry unlocked.
pub struct SpaceCopy {
    pub id: u64,
    pub version: u32,
    pub space: u32,
    pub attachment: u32,
    pub handle: *mut c_void,
    pub operations: AttachmentOps,
    pub part: (Base, View),
}

/// The next step of an `acquire`.
pub enum Step {
    /// The loan.
    Ready(Loan),
    /// Run this copy within a space, end it, and try again.
    Clone(SpaceCopy),
    /// Run this transfer, end it, and try again.
    Transfer(Transfer),
    /// Another thread transfers the base; try again afterwards.
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

/// The state of a base, created if necessary. Fails if the base is known with another type or length.
pub fn state_of<'a>(bases: &'a mut Bases, base: &Base) -> Result<&'a mut State> {
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

/// The error for a base without a state.
#[cold]
pub fn unknown(id: u64) -> Error {
    Error::new(status::HANDLE, format!("base {id} is unknown"))
}
