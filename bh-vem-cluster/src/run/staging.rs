//! Staging buffers between ranks of one process: two halves, used in turn.

use crate::plan::stage::Place;
use bh_core::component::Child;
use std::collections::BTreeMap;

/// Bytes of half a buffer, and the longest piece.
pub(crate) const PIECE_BYTES: usize = 8 << 20;

/// A staging buffer between two ranks.
pub(crate) struct StagingBuffer {
    pub(crate) data: *mut u8,
    /// The memory, if no engine provided pinned memory.
    pub(crate) own: Vec<u8>,
    /// How many asynchronous moves have used the buffer.
    pub(crate) taken: usize,
    /// For each half, the move that still reads it on the receiving device; 0 if none does.
    pub(crate) busy: [u64; 2],
}

// SAFETY: the memory lives as long as the stacks below, and one thread at a time uses a half.
unsafe impl Send for StagingBuffer {}

impl StagingBuffer {
    /// Creates a buffer, in an engine's pinned memory if possible.
    pub(crate) fn new(child: &mut Child) -> StagingBuffer {
        let address = child.message(&format!("pinned memory {}", 2 * PIECE_BYTES)).ok();
        let address = address.and_then(|text| text.trim().parse::<usize>().ok());
        let mut own = vec![0; if address.is_some() { 0 } else { 2 * PIECE_BYTES }];
        let data = address.map_or(own.as_mut_ptr(), std::ptr::with_exposed_provenance_mut);
        StagingBuffer { data, own, taken: 0, busy: [0; 2] }
    }

    /// One of the halves, alternating with `turn`.
    pub(crate) fn half(&self, turn: usize) -> *mut u8 {
        // SAFETY: the memory has two halves of PIECE_BYTES.
        unsafe { self.data.add(turn % 2 * PIECE_BYTES) }
    }
}

/// Staging buffers by sender and receiver.
#[derive(Default)]
pub(crate) struct StagingBuffers(pub(crate) BTreeMap<(usize, usize), StagingBuffer>);

/// A move between two ranks that is in half of their staging buffer.
pub(crate) struct StagedMove {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) places: Vec<(Place, Place)>,
    pub(crate) half: usize,
    /// The last copy that fills the half; 0 if none is pending.
    pub(crate) filling: u64,
}

impl StagedMove {
    /// The sources and targets, with the offset of each within the half.
    pub(crate) fn begins(&self) -> impl Iterator<Item = (usize, &(Place, Place))> {
        let mut behind = 0;
        self.places.iter().map(move |places| {
            behind += places.0.bytes();
            (behind - places.0.bytes(), places)
        })
    }
}
