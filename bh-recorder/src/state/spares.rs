//! Memory of settled bases that ended, for the next ones: little of it, so that the stack's memory is asked seldom.

use super::settled::Own;
use std::cell::RefCell;

/// Sizes are multiples of this many bytes.
const STEP: usize = 64;
/// Larger memory is not kept.
const LARGEST: usize = 64 << 10;
/// Bytes that are kept, at most.
const MOST: usize = 256 << 10;

/// Unused memory by size.
pub(crate) struct Spares(RefCell<Lists>);

struct Lists {
    by_size: [Vec<Own>; LARGEST / STEP + 1],
    bytes: usize,
}

impl Default for Spares {
    fn default() -> Spares {
        Spares(RefCell::new(Lists { by_size: [const { Vec::new() }; LARGEST / STEP + 1], bytes: 0 }))
    }
}

/// The place of a size in the lists: all sizes of one place are served by the same memory.
fn place(bytes: usize) -> Option<usize> {
    (bytes <= LARGEST).then(|| bytes.div_ceil(STEP))
}

impl Spares {
    /// Memory of `bytes` bytes, with any contents.
    #[inline]
    pub(crate) fn take(&self, bytes: u64) -> Option<Own> {
        let bytes = usize::try_from(bytes).ok()?;
        let place = place(bytes)?;
        let lists = &mut *self.0.borrow_mut();
        let mut own = lists.by_size[place].pop()?;
        lists.bytes -= place * STEP;
        own.bytes = bytes;
        Some(own)
    }

    /// Keeps memory, if there is room.
    #[inline]
    pub(crate) fn put(&self, own: Own) {
        let lists = &mut *self.0.borrow_mut();
        if let Some(place) = place(own.bytes)
            && lists.bytes + place * STEP <= MOST
        {
            lists.bytes += place * STEP;
            lists.by_size[place].push(own);
        }
    }

    /// Gives everything back.
    pub(crate) fn clear(&self) {
        let lists = &mut *self.0.borrow_mut();
        lists.by_size.iter_mut().for_each(Vec::clear);
        lists.bytes = 0;
    }
}
