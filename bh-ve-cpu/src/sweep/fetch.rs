//! What the nests of a sweep have the caches fetch. Rolling rows are there already. Of arrays in memory, the first nest that
//! reads them would wait for each row, if the next one that does had not fetched that while it had other things to do.

use bh_fuser::lower::{Home, SlotMode, Sweep, SweepNest};
use bh_jit_abi::Fetch;

/// Nobody fetches further ahead: the second-level cache would lose it again.
const FURTHEST: i64 = 256 << 10;

/// What is fetched while each slot of a nest is read, and how far away that is, in bytes.
pub(super) fn fetches(sweep: &Sweep, index: usize) -> Vec<(Fetch, i64)> {
    let nest = &sweep.nests[index];
    let nothing = (Fetch::Nothing, 0);
    let fetch = |&array: &u32| {
        let Some(known) = sweep.arrays.get(array as usize) else { return nothing };
        if matches!(known.home, Home::Rolling { .. } | Home::Temporary { .. }) {
            return nothing;
        }
        let mut users = (0..sweep.nests.len()).filter(|&nest| sweep.nests[nest].arrays.contains(&array));
        let first = users.next().unwrap_or(index);
        let Some(ahead) = front(&sweep.nests[first], array) else { return nothing };
        if first == index {
            return (Fetch::Along, 0);
        }
        let Some(own) = front(nest, array).filter(|_| users.next() == Some(index)) else { return nothing };
        let bytes = (ahead + sweep.strip - own).saturating_mul(known.pitch).saturating_mul(known.dtype.size() as i64);
        if (1..=FURTHEST).contains(&bytes) { (Fetch::Beyond, bytes) } else { nothing }
    };
    nest.arrays.iter().map(fetch).collect()
}

/// The furthest row that a nest reads of an array at time 0; `None` if it writes the array as well, or only.
fn front(nest: &SweepNest, array: u32) -> Option<i64> {
    let slots = || (0..nest.arrays.len()).filter(|&slot| nest.arrays[slot] == array);
    let reads = slots().all(|slot| nest.stage.kernel.slots[slot].mode == SlotMode::Read);
    let furthest = slots().map(|slot| nest.rows[slot]).max()?;
    (reads && nest.per == 1).then_some(furthest - nest.late)
}
