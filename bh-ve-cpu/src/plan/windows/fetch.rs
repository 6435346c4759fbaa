//! What the nests of a sliding window have the caches fetch. Line buffers are there already. Of arrays in memory, the first nest that
//! reads them would wait for each row, if the next one that does had not fetched that while it had other things to do.

use bh_jit_abi::Fetch;
use bh_kernel::{Home, SlidingNest, SlidingWindow, SlotMode};

/// Nobody fetches further ahead: the second-level cache would lose it again.
const FURTHEST: i64 = 256 << 10;

/// What is fetched while each slot of each nest is read, and how far away that is, in bytes.
pub(super) fn fetches(window: &SlidingWindow) -> Vec<Vec<(Fetch, i64)>> {
    let mut fetches: Vec<Vec<(Fetch, i64)>> =
        window.nests.iter().map(|nest| vec![(Fetch::Nothing, 0); nest.arrays.len()]).collect();
    // How many arrays each nest fetches for others.
    let mut counts = vec![0; window.nests.len()];
    for (number, array) in (0..).zip(&window.arrays) {
        if matches!(array.home, Home::Rolling { .. } | Home::Temporary { .. }) {
            continue;
        }
        let mut users = (0..window.nests.len()).filter(|&nest| window.nests[nest].arrays.contains(&number));
        let Some(first) = users.next() else { continue };
        let Some(ahead) = front(&window.nests[first], number) else { continue };
        let mut set = |nest: usize, fetch: (Fetch, i64)| {
            let slots = fetches[nest].iter_mut().zip(&window.nests[nest].arrays);
            slots.filter(|(_, array)| **array == number).for_each(|(known, _)| *known = fetch);
        };
        set(first, (Fetch::Along, 0));
        let distance = |nest: usize| {
            let rows = ahead + window.strip - front(&window.nests[nest], number)?;
            let bytes = rows.saturating_mul(array.pitch).saturating_mul(array.dtype.size() as i64);
            (1..=FURTHEST).contains(&bytes).then_some(bytes)
        };
        // Memory is best busy all the time.
        let others = users.filter_map(|nest| Some((nest, distance(nest)?)));
        if let Some((nest, bytes)) = others.min_by_key(|&(nest, _)| counts[nest]) {
            counts[nest] += 1;
            set(nest, (Fetch::Beyond, bytes));
        }
    }
    fetches
}

/// The furthest row that a nest reads of an array at time 0; `None` if it writes the array as well, or only.
fn front(nest: &SlidingNest, array: u32) -> Option<i64> {
    let slots = || (0..nest.arrays.len()).filter(|&slot| nest.arrays[slot] == array);
    let reads = slots().all(|slot| nest.stage.kernel.slots[slot].mode == SlotMode::Read);
    let furthest = slots().map(|slot| nest.rows[slot]).max()?;
    (reads && nest.per == 1).then_some(furthest - nest.late)
}
