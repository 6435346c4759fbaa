//! The memory between ranks of one process, in pieces that take turns.

use crate::plan::stage::Place;
use bh_core::component::Child;
use std::collections::BTreeMap;

/// Bytes of a piece.
pub(crate) const PIECE: usize = 8 << 20;

/// Memory between two ranks: two pieces, which take turns.
pub(crate) struct Room {
    pub(crate) data: *mut u8,
    /// The memory, where no engine gave it.
    pub(crate) own: Vec<u8>,
    /// How often a piece was taken.
    pub(crate) taken: usize,
    /// By piece, the move of the rank that gets it, which may still read it; 0 for none.
    pub(crate) busy: [u64; 2],
}

// SAFETY: the memory lives as long as the stacks below, and pieces are used by one thread at a time.
unsafe impl Send for Room {}

impl Room {
    /// Asks an engine for memory that devices reach by themselves.
    pub(crate) fn new(child: &mut Child) -> Room {
        let address = child.message(&format!("pinned memory {}", 2 * PIECE)).ok();
        let address = address.and_then(|text| text.trim().parse::<usize>().ok());
        let mut own = vec![0; if address.is_some() { 0 } else { 2 * PIECE }];
        let data = address.map_or(own.as_mut_ptr(), std::ptr::with_exposed_provenance_mut);
        Room { data, own, taken: 0, busy: [0; 2] }
    }

    /// A piece, by the number of its turn.
    pub(crate) fn piece(&self, turn: usize) -> *mut u8 {
        // SAFETY: there are two.
        unsafe { self.data.add(turn % 2 * PIECE) }
    }
}

/// The memory between ranks, by sender and receiver.
#[derive(Default)]
pub(crate) struct Rooms(pub(crate) BTreeMap<(usize, usize), Room>);

/// What is on its way from one rank to another, in a piece of the memory between them.
pub(crate) struct Underway {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) places: Vec<(Place, Place)>,
    pub(crate) piece: usize,
    /// The last move that fills the piece; 0 for none.
    pub(crate) filling: u64,
}

impl Underway {
    /// The places of the piece: where each begins in it.
    pub(crate) fn begins(&self) -> impl Iterator<Item = (usize, &(Place, Place))> {
        let mut behind = 0;
        self.places.iter().map(move |places| {
            behind += places.0.bytes();
            (behind - places.0.bytes(), places)
        })
    }
}
