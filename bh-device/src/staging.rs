//! Large transfers through pinned memory, which devices read and write without the processor: two pieces take turns, so
//! that one is filled or emptied while the other travels.

use crate::driver::{self, Buffer, Driver, Event};
use bh_core::Result;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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
    bytes: usize,
    /// What moves use at the moment: addresses, and whether they are filled.
    claims: Mutex<Vec<(Range<usize>, bool)>>,
}

/// The memory that engines of this process have given away.
static GIVEN: Mutex<Vec<Weak<Pinned>>> = Mutex::new(Vec::new());

/// Bytes that an engine has given away, for one move, which may be any engine's: until the value is dropped the memory lives,
/// and no other move fills them, nor reads them if this one fills them.
pub(crate) struct Claim {
    memory: Arc<Pinned>,
    place: Range<usize>,
    fills: bool,
}

impl Claim {
    /// These bytes, if an engine has given them away and no move is in the way.
    pub(crate) fn of(address: usize, bytes: usize, fills: bool) -> Option<Claim> {
        let place = address..address.checked_add(bytes)?;
        let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        let has = |memory: &Arc<Pinned>| memory.address <= place.start && place.end - memory.address <= memory.bytes;
        let memory = given.iter().filter_map(Weak::upgrade).find(has)?;
        drop(given);
        let mut claims = memory.claims();
        let meets = |other: &Range<usize>| other.start < place.end && place.start < other.end;
        if claims.iter().any(|(other, filled)| (fills || *filled) && meets(other)) {
            return None;
        }
        claims.push((place.clone(), fills));
        drop(claims);
        Some(Claim { memory, place, fills })
    }

    /// Where the bytes are. Only moves know of each other: whoever the memory was given to leaves the bytes alone meanwhile.
    pub(crate) fn data(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.place.start)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claims = self.memory.claims();
        if let Some(own) = claims.iter().position(|(place, fills)| *place == self.place && *fills == self.fills) {
            claims.swap_remove(own);
        }
    }
}

impl Pinned {
    fn claims(&self) -> MutexGuard<'_, Vec<(Range<usize>, bool)>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This many bytes; none if the device has no such memory left.
    pub(crate) fn new(driver: &dyn Driver, bytes: usize) -> Option<Pinned> {
        let memory = driver.pinned(bytes)?;
        let (address, claims) = (memory.address().expose_provenance(), Mutex::default());
        Some(Pinned { _memory: memory, address, bytes, claims })
    }

    /// Memory for others, to whom its address is told.
    pub(crate) fn given(driver: &dyn Driver, bytes: usize) -> Option<Arc<Pinned>> {
        let memory = Arc::new(Pinned::new(driver, bytes)?);
        let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        given.retain(|memory| memory.strong_count() > 0);
        given.push(Arc::downgrade(&memory));
        Some(memory)
    }
}

struct Piece {
    memory: Pinned,
    /// The upload that still reads it.
    busy: Option<Arc<dyn Event>>,
}

impl Piece {
    fn slice(&mut self, bytes: usize) -> &mut [u8] {
        // SAFETY: the mapping has as many bytes as the buffer, and whoever has the piece has it alone.
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
