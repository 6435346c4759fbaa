//! Optimal checkpoints of a chain of equal steps, from how many of its states fit into memory.
//!
//! A. Griewank and A. Walther, "Algorithm 799: revolve", ACM Transactions on Mathematical Software 26 (2000): with `s` states and
//! `r` runs of each step at most, C(s + r, s) steps can be taken back. States of a chain whose length is not known are chosen so
//! that, if it ended now, the fewest steps would have to be run again (compare P. Stumm and A. Walther, "New algorithms for optimal
//! online checkpointing", SIAM Journal on Scientific Computing 32 (2010)).

/// C(states + runs, states), or the largest number.
fn reach(states: u64, runs: u64) -> u64 {
    let mut product = 1u128;
    for run in 1..=u128::from(runs) {
        product = product * (u128::from(states) + run) / run;
        if product > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    product as u64
}

/// How many steps are run forward to take `steps` back from a stored state, with room for this many more. The run of each step that
/// records what its adjoint reads is not counted.
pub(crate) fn cost(steps: u64, free: u64) -> u64 {
    if steps < 2 {
        return 0;
    }
    if free == 0 {
        return steps * (steps - 1) / 2;
    }
    let (states, mut runs, mut reached) = (free + 1, 0, 1u128);
    while reached < u128::from(steps) {
        runs += 1;
        reached = reached * u128::from(states + runs) / u128::from(runs);
    }
    runs * steps - reach(states + 1, runs - 1)
}

/// At which of `steps` steps behind a stored state the next one is stored, if there is room for `free` more, at least one.
pub(crate) fn split(steps: u64, free: u64) -> u64 {
    let total = |at: u64| at + cost(steps - at, free - 1) + cost(at, free);
    // The sum is convex.
    let (mut low, mut high) = (1, steps.saturating_sub(1).max(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if total(middle + 1) < total(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// Which of the stored states, from one on, is given up with the least loss. `None` if there is none but the first.
pub(crate) fn dispensable(stored: &[u64], from: usize, end: u64, room: u64) -> Option<usize> {
    let length = |at: usize| stored.get(at + 1).copied().unwrap_or(end) - stored[at];
    let free = |at: usize| room.saturating_sub(at as u64 + 1);
    // Without a state, those behind it have one more free.
    let behind: Vec<u64> = (0..stored.len()).map(|at| cost(length(at), free(at.saturating_sub(1)))).collect();
    let mut later: u64 = behind.iter().skip(from.max(1)).sum();
    let mut before: u64 = (0..from.max(1) - 1).map(|at| cost(length(at), free(at))).sum();
    let mut best = None;
    for (at, own) in behind.iter().enumerate().skip(from.max(1)) {
        later -= own;
        let total = before + cost(length(at - 1) + length(at), free(at - 1)) + later;
        before += cost(length(at - 1), free(at - 1));
        if best.is_none_or(|(least, _)| total <= least) {
            best = Some((total, at));
        }
    }
    best.map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many steps are run forward to take a chain back of which these states are stored, the first at 0; `room`: for states in all.
    fn remaining(stored: &[u64], end: u64, room: u64) -> u64 {
        let ends = stored.iter().skip(1).copied().chain([end]);
        let free = |at: usize| room.saturating_sub(at as u64 + 1);
        stored.iter().zip(ends).enumerate().map(|(at, (&from, to))| cost(to - from, free(at))).sum()
    }

    /// The fewest forward steps by trying all splits.
    fn fewest(steps: usize, free: usize, known: &mut std::collections::HashMap<(usize, usize), u64>) -> u64 {
        if steps < 2 {
            return 0;
        }
        if free == 0 {
            return (steps * (steps - 1) / 2) as u64;
        }
        if let Some(&found) = known.get(&(steps, free)) {
            return found;
        }
        let each = (1..steps).map(|at| at as u64 + fewest(steps - at, free - 1, known) + fewest(at, free, known));
        let least = each.collect::<Vec<u64>>().into_iter().min().unwrap_or(0);
        known.insert((steps, free), least);
        least
    }

    #[test]
    fn costs_and_splits_are_optimal() {
        let mut known = std::collections::HashMap::new();
        for steps in 1..60 {
            for free in 0..8 {
                let least = fewest(steps, free, &mut known);
                assert_eq!(cost(steps as u64, free as u64), least, "{steps} steps, {free} free");
                if free > 0 && steps > 1 {
                    let at = split(steps as u64, free as u64);
                    let total = at + cost(steps as u64 - at, free as u64 - 1) + cost(at, free as u64);
                    assert_eq!(total, least, "{steps} steps, {free} free, split at {at}");
                }
            }
        }
        // 10,000 states of 32 MiB in 2 GiB.
        assert_eq!((cost(10_000, 61), cost(10_000, 63)), (27_920, 27_789));
    }

    #[test]
    fn the_state_given_up_is_the_one_that_costs_least() {
        for (stored, end) in [(vec![0, 3, 4, 9, 17], 20), (vec![0, 1, 2, 3], 4), (vec![0, 10, 11, 12, 30, 31], 33)] {
            let room = stored.len() as u64;
            let without = |at: usize| {
                let rest: Vec<u64> = stored.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, &s)| s).collect();
                remaining(&rest, end, room)
            };
            let found = dispensable(&stored, 1, end, room).unwrap();
            assert_eq!(without(found), (1..stored.len()).map(without).min().unwrap());
        }
    }

    #[test]
    fn states_chosen_on_the_way_are_nearly_optimal() {
        for (steps, room, per_batch) in [(1000, 20, 1), (1000, 15, 8), (300, 12, 5), (100, 8, 10)] {
            let mut stored = vec![0u64];
            for begin in (0..steps).step_by(per_batch) {
                let (old, end) = (stored.len(), (begin + per_batch as u64).min(steps));
                for at in begin.max(1)..end {
                    stored.push(at);
                    if stored.len() as u64 > room {
                        stored.remove(dispensable(&stored, old, at + 1, room).unwrap());
                    }
                }
                while stored.len() as u64 >= room {
                    stored.remove(dispensable(&stored, 1, end, room).unwrap());
                }
            }
            let (found, least) = (steps + remaining(&stored, steps, room), cost(steps, room - 1));
            assert!(found as f64 <= 1.05 * least as f64, "{steps} steps, {room} states: {found} for {least}");
        }
    }
}
