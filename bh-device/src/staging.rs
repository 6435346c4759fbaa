//! Large transfers through pinned memory, which devices read and write without the processor: two pieces take turns, so
//! that one is filled or emptied while the other travels.

use crate::driver::{self, Buffer, Driver, Event};
use bh_core::Result;
use std::sync::Arc;

/// Threads that copy a piece together.
const COPIERS: usize = 4;
/// Bytes that are worth a further thread.
const SHARE: usize = 4 << 20;

/// Pinned memory.
pub(crate) struct Staging {
    pieces: Vec<Piece>,
    bytes: usize,
}

/// Memory of the host that stays where it is, so that devices read and write it by themselves.
pub(crate) struct Pinned {
    _memory: Box<dyn driver::Pinned>,
    /// Where it is.
    pub(crate) address: usize,
}

impl Pinned {
    /// This many bytes; none if the device has no such memory left.
    pub(crate) fn new(driver: &dyn Driver, bytes: usize) -> Option<Pinned> {
        let memory = driver.pinned(bytes)?;
        let address = memory.address().expose_provenance();
        Some(Pinned { _memory: memory, address })
    }
}

struct Piece {
    memory: Pinned,
    /// The upload that still reads it.
    busy: Option<Arc<dyn Event>>,
}

impl Piece {
    fn slice(&mut self, bytes: usize) -> &mut [u8] {
        // SAFETY: the mapping has as many bytes as the buffer, and the piece has one owner.
        unsafe { std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(self.memory.address), bytes) }
    }

    /// Waits until nobody uses the piece.
    fn free(&mut self) -> Result<()> {
        self.busy.take().map_or(Ok(()), |event| event.wait("copying to the device"))
    }
}

impl Staging {
    /// Two pieces of this many bytes; none if the device has no such memory left.
    pub(crate) fn new(driver: &dyn Driver, bytes: usize) -> Option<Staging> {
        let piece = || Some(Piece { memory: Pinned::new(driver, bytes)?, busy: None });
        Some(Staging { pieces: vec![piece()?, piece()?], bytes })
    }

    /// Copies bytes to a buffer from `offset` on; they may change when this returns.
    pub(crate) fn upload(
        &mut self,
        driver: &dyn Driver,
        target: &dyn Buffer,
        offset: usize,
        bytes: &[u8],
    ) -> Result<()> {
        let mut at = offset;
        for part in bytes.chunks(self.bytes) {
            self.pieces.rotate_left(1);
            let piece = &mut self.pieces[0];
            piece.free()?;
            copy(piece.slice(part.len()), part);
            let staged = piece.slice(part.len());
            // SAFETY: the caller's buffer has these bytes, and the piece is not touched before the event has come.
            piece.busy = Some(unsafe { driver.begin_upload(target, at, staged.as_ptr(), staged.len())? });
            at += part.len();
        }
        Ok(())
    }

    /// Copies bytes of a buffer from `offset` on to host memory, after everything that is in the queue.
    pub(crate) fn download(
        &mut self,
        driver: &dyn Driver,
        source: &dyn Buffer,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<()> {
        let size = self.bytes;
        let begin = |piece: &mut Piece, at: usize, len: usize| -> Result<()> {
            piece.free()?;
            let staged = piece.slice(len);
            // SAFETY: the caller's buffer has these bytes, and the piece is not touched before the event has come.
            piece.busy = Some(unsafe { driver.begin_download(source, offset + at, staged.as_mut_ptr(), len)? });
            Ok(())
        };
        let total = bytes.len();
        begin(&mut self.pieces[0], 0, total.min(size))?;
        for (number, part) in bytes.chunks_mut(size).enumerate() {
            let next = (number + 1) * size;
            if next < total {
                begin(&mut self.pieces[1], next, (total - next).min(size))?;
            }
            self.pieces[0].free()?;
            copy(part, self.pieces[0].slice(part.len()));
            self.pieces.rotate_left(1);
        }
        Ok(())
    }
}

/// Copies bytes, several threads together if there are many.
fn copy(to: &mut [u8], from: &[u8]) {
    let shares = (to.len() / SHARE).clamp(1, COPIERS);
    let share = to.len().div_ceil(shares).max(1);
    std::thread::scope(|scope| {
        let mut parts = to.chunks_mut(share).zip(from.chunks(share));
        let own = parts.next();
        for (to, from) in parts {
            scope.spawn(move || to.copy_from_slice(from));
        }
        if let Some((to, from)) = own {
            to.copy_from_slice(from);
        }
    });
}
