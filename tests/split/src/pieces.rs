//! How the program's bases lie on the two ranks.

use crate::cut::place_of_cut;
use bh_bytecode::Base;
use bh_core::component::Host;
use bh_core::error::{Error, Result};

/// Where the data of a base is.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// All of it on one rank.
    Whole {
        /// The rank.
        rank: usize,
        /// The base there.
        piece: Base,
    },
    /// The first elements on rank 0, those from `cut` on on rank 1.
    Rows {
        /// First element of rank 1.
        cut: i64,
        /// The bases there.
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

/// A copy of a base in this component's memory, lent to the program.
pub struct Staging {
    host: Host,
    pub data: *mut u8,
    pub bytes: usize,
    pub maps: u32,
    pub access: u32,
}

// SAFETY: the memory is the component's own, and calls into it are serialised.
unsafe impl Send for Staging {}

impl Staging {
    /// Memory for a whole base, filled with zeros.
    pub fn new(host: Host, base: &Base) -> Result<Staging> {
        let bytes = base.bytes() as usize;
        Ok(Staging { host, data: host.alloc(bytes.max(1), true)?, bytes, maps: 0, access: 0 })
    }

    /// The bytes of a piece that begins at this element.
    pub fn part(&mut self, first: i64, piece: &Base) -> &mut [u8] {
        let first = first as usize * piece.dtype().size();
        // SAFETY: the memory is this value's, and pieces lie inside of their base.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(first), piece.bytes() as usize) }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: allocated with this size, and no longer lent.
        unsafe { self.host.free(self.data, self.bytes.max(1)) };
    }
}

/// What is known about a base of the program.
pub struct Entry {
    pub layout: Layout,
    /// Has it data, apart from the zeros that unwritten arrays read as?
    pub written: bool,
    /// The error that its data was lost to, as far as it happened between the ranks.
    pub poison: Option<Error>,
    /// Adopted or pinned: it stays whole on rank 0.
    pub fixed: bool,
    pub staging: Option<Staging>,
    /// Dropped by the program while mapped.
    pub discarded: bool,
}

impl Entry {
    /// A base without data, cut by the rows of the view that first writes it if that is known.
    pub fn new(host: &Host, base: &Base, row_hint: i64) -> Entry {
        let piece = |len: i64| Base { id: host.new_base_id(), len, flags: 0, ..*base };
        let layout = match place_of_cut(base.len, row_hint) {
            Some(cut) => Layout::Rows { cut, pieces: [piece(cut), piece(base.len - cut)] },
            // Both ranks get some of the arrays that cannot be cut.
            None => Layout::Whole { rank: base.id as usize % 2, piece: piece(base.len) },
        };
        Entry { layout, written: false, poison: None, fixed: false, staging: None, discarded: false }
    }
}
