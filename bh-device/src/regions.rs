//! The parts of an array that a block reads: if they are a small share of it, and the array is in host memory, only they are
//! copied to the device.

use crate::driver::Region;
use crate::pieces::{Part, reach};
use bh_bytecode::{Base, BatchRef};
use bh_core::abi::access;
use bh_kernel::{BaseUse, BufferRef, SlotMode, Stage};

/// Arrays of fewer bytes travel as a whole.
const LEAST_BYTES: u64 = 1 << 20;
/// And those of which a block reads more than one part in this many.
const SHARE: u64 = 4;
/// Shorter rows travel with what is between them.
const ROW_BYTES: u64 = 256;

/// For each base that a block uses, the little that it reads of it; nothing where it travels as a whole.
pub(crate) fn regions(batch: &BatchRef<'_>, stages: &[Stage], uses: &[BaseUse]) -> Vec<Vec<Region>> {
    uses.iter().map(|used| of_base(batch, stages, used).unwrap_or_default()).collect()
}

fn of_base(batch: &BatchRef<'_>, stages: &[Stage], used: &BaseUse) -> Option<Vec<Region>> {
    let base = &batch.bases[used.base as usize];
    if used.access != access::READ || base.bytes() < LEAST_BYTES {
        return None;
    }
    let mut found: Vec<Region> = Vec::new();
    for stage in stages {
        if stage.parameters.gathers.iter().any(|gather| gather.buffer == BufferRef::Base(used.base)) {
            return None;
        }
        let slots = stage.parameters.buffers.iter().enumerate();
        for (slot, _) in slots.filter(|(_, buffer)| **buffer == BufferRef::Base(used.base)) {
            let region = of_slot(stage, slot, base)?;
            if !found.contains(&region) {
                found.push(region);
            }
        }
    }
    let bytes: u64 = found.iter().map(Region::bytes).sum();
    (bytes <= base.bytes() / SHARE).then_some(found)
}

/// The rows that a slot reads.
fn of_slot(stage: &Stage, slot: usize, base: &Base) -> Option<Region> {
    let (parameters, size) = (&stage.parameters, base.dtype().size());
    if stage.kernel.slots[slot].mode != SlotMode::Read {
        return None;
    }
    let (low, high, _) = reach(parameters, slot, &Part::whole(stage))?;
    let hull = Region { first: low as usize * size, len: (high - low + 1) as usize * size, rows: 1, pitch: 0 };
    let steps = parameters.stride(slot).iter().zip(&parameters.extents);
    let mut moves: Vec<(u64, u64)> = steps
        .filter(|(stride, extent)| **stride != 0 && **extent > 1)
        .map(|(s, e)| (s.unsigned_abs(), *e as u64))
        .collect();
    moves.sort_unstable();
    let [(1, width), (pitch, rows)] = moves[..] else { return Some(hull) };
    if width * (size as u64) < ROW_BYTES || pitch < width {
        return Some(hull);
    }
    let [len, rows, pitch] = [width * size as u64, rows, pitch * size as u64].map(|number| number as usize);
    Some(Region { first: hull.first, len, rows, pitch })
}
