//! The distribution of the program's bases over the two ranks.

use crate::cut::place_of_cut;
use bh_bytecode::Base;
use bh_core::component::Host;
use bh_core::error::{Error, Result};

/// The place of a base's data.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// All of it on one rank.
    Whole {
        /// The rank.
        rank: usize,
        /// The base on that rank.
        piece: Base,
    },
    /// Elements before `cut` on rank 0, the others on rank 1.
    Rows {
        /// First element of rank 1.
        cut: i64,
        /// The ranks' bases.
        pieces: [Base; 2],
    },
}

impl Layout {
    /// The rank, the first element and the local base of each piece.
    pub fn pieces(&self) -> Vec<(usize, i64, Base)> {
        match *self {
            Layout::Whole { rank, piece } => vec![(rank, 0, piece)],
            Layout::Rows { cut, pieces } => vec![(0, 0, pieces[0]), (1, cut, pieces[1])],
        }
    }
}

/// A copy of a base in this component's memory, for the program's maps.
pub struct Staging {
    host: Host,
    pub data: *mut u8,
    pub bytes: usize,
    pub maps: u32,
    pub access: u32,
}

// SAFETY: the value owns its memory, and calls into the component are serialised.
unsafe impl Send for Staging {}

impl Staging {
    /// Zeroed memory for a whole base.
    pub fn new(host: Host, base: &Base) -> Result<Staging> {
        let bytes = base.bytes() as usize;
        Ok(Staging { host, data: host.alloc(bytes.max(1), true)?, bytes, maps: 0, access: 0 })
    }

    /// The bytes of a piece that begins at this element.
    pub fn part(&mut self, first: i64, piece: &Base) -> &mut [u8] {
        let first = first as usize * piece.dtype().size();
        // SAFETY: the value owns the memory, and pieces are within their base.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(first), piece.bytes() as usize) }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: `alloc` returned this address for this size, and the program's maps have ended.
        unsafe { self.host.free(self.data, self.bytes.max(1)) };
    }
}

/// The state of a base of the program.
pub struct Entry {
    pub layout: Layout,
    /// Has it data other than the zeros of unwritten arrays?
    pub written: bool,
    /// The error that lost its data, if that happened between the ranks.
    pub poison: Option<Error>,
    /// Adopted or pinned: it stays on rank 0 as a whole.
    pub fixed: bool,
    pub staging: Option<Staging>,
    /// The program dropped it while it was mapped.
    pub discarded: bool,
}

impl Entry {
    /// A base without data, cut by the rows of its first view if that is known.
    pub fn new(host: &Host, base: &Base, row_hint: i64) -> Entry {
        let piece = |len: i64| Base { id: host.new_base_id(), len, flags: 0, ..*base };
        let layout = match place_of_cut(base.len, row_hint) {
            Some(cut) => Layout::Rows { cut, pieces: [piece(cut), piece(base.len - cut)] },
            // Arrays that cannot be cut are distributed over both ranks.
            None => Layout::Whole { rank: base.id as usize % 2, piece: piece(base.len) },
        };
        Entry { layout, written: false, poison: None, fixed: false, staging: None, discarded: false }
    }
}
