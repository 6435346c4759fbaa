//! What the nests of a sweep have the caches fetch. Rolling rows are there already. Of arrays in memory, the first nest that
//! reads them would wait for each row, if the next one that does had not fetched that while it had other things to do.

use bh_fuser::lower::{Home, SlotMode, Sweep, SweepNest};
use bh_jit_abi::Fetch;

/// Nobody fetches further ahead: the second-level cache would lose it again.
const FURTHEST: i64 = 256 << 10;

/// What is fetched while each slot of each nest is read, and how far away that is, in bytes.
pub(super) fn fetches(sweep: &Sweep) -> Vec<Vec<(Fetch, i64)>> {
    // The first nest that uses each array, and the second.
    let mut users = vec![(None, None); sweep.arrays.len()];
    for (index, nest) in sweep.nests.iter().enumerate() {
        for &array in &nest.arrays {
            match users.get_mut(array as usize) {
                Some(users @ (None, _)) => users.0 = Some(index),
                Some((Some(first), second @ None)) if *first != index => *second = Some(index),
                _ => {}
            }
        }
    }
    let fetch = |index: usize, array: u32| {
        let nothing = (Fetch::Nothing, 0);
        let Some(known) = sweep.arrays.get(array as usize) else { return nothing };
        let (Some(first), second) = users[array as usize] else { return nothing };
        if matches!(known.home, Home::Rolling { .. } | Home::Temporary { .. }) {
            return nothing;
        }
        let Some(ahead) = front(&sweep.nests[first], array) else { return nothing };
        if first == index {
            return (Fetch::Along, 0);
        }
        let Some(own) = front(&sweep.nests[index], array).filter(|_| second == Some(index)) else { return nothing };
        let bytes = (ahead + sweep.strip - own).saturating_mul(known.pitch).saturating_mul(known.dtype.size() as i64);
        if (1..=FURTHEST).contains(&bytes) { (Fetch::Beyond, bytes) } else { nothing }
    };
    let nests = sweep.nests.iter().enumerate();
    nests.map(|(index, nest)| nest.arrays.iter().map(|&array| fetch(index, array)).collect()).collect()
}

/// The furthest row that a nest reads of an array at time 0; `None` if it writes the array as well, or only.
fn front(nest: &SweepNest, array: u32) -> Option<i64> {
    let slots = || (0..nest.arrays.len()).filter(|&slot| nest.arrays[slot] == array);
    let reads = slots().all(|slot| nest.stage.kernel.slots[slot].mode == SlotMode::Read);
    let furthest = slots().map(|slot| nest.rows[slot]).max()?;
    (reads && nest.per == 1).then_some(furthest - nest.late)
}
