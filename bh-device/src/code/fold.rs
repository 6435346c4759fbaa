//! How the items of the device share a reduction.

use super::Target;
use bh_kernel::IN_ORDER;

/// The shares of a reduction: `lanes` items of a work-group fold one result together, and so do `splits` groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fold {
    /// Items of a group.
    pub(crate) group: usize,
    /// Items of a group that share a result, a power of two.
    pub(crate) lanes: usize,
    /// Do neighbouring items share a result, or belong to neighbouring results?
    pub(crate) inner: bool,
    /// Groups that share a result.
    pub(crate) splits: i64,
}

/// The least elements for an item, where a result is shared by several groups.
const LEAST: i64 = 4;
/// The most groups that share a result.
const SPLITS: i64 = 4096;
/// Groups beyond those that fill the device, so that none of its units waits long for the last one.
const TURNS: i64 = 4;
/// Neighbours that read memory together.
const WARP: i64 = 32;
/// Elements of a row of its own that an item folds, as far as a group has items: so few leave registers for other groups, which work while one waits.
const EACH: i64 = 16;

impl Fold {
    /// The shares for `kept` results of `reduced` elements each; `inner` says that neighbours in memory are folded.
    pub(crate) fn choose(target: &Target, kept: i64, reduced: i64, inner: bool) -> Fold {
        Fold::limited(target, kept, reduced, inner, i64::MAX)
    }

    /// The shares for `kept` rows of `reduced` neighbours, each of which one result alone reads.
    pub(crate) fn of_rows(target: &Target, kept: i64, reduced: i64) -> Fold {
        Fold::limited(target, kept, reduced, true, EACH)
    }

    /// The shares where an item folds at most `each` elements, as far as a group has items.
    fn limited(target: &Target, kept: i64, reduced: i64, inner: bool, each: i64) -> Fold {
        let (group, fill) = (target.group as i64, target.items());
        let up = |count: i64| (count.max(1) as u64).next_power_of_two() as i64;
        let useful = up(reduced).min(group);
        let lanes = if inner {
            // A warp for a row where rows are many and short; otherwise enough items to fill the device.
            let wanted = up(fill / kept.max(1)).max(up((reduced as u64).div_ceil(each as u64) as i64));
            let wanted = wanted.clamp(WARP.min(group), group);
            wanted.min(useful)
        } else {
            // Neighbours take neighbouring results; the rest of the group shares them.
            let across = up(kept).min(group);
            (group / across).min(useful)
        };
        let tiles = (kept * lanes).div_euclid(group).max(1);
        // Rows that fill half of the device have no need of a second kernel.
        let fills = each == EACH && 2 * tiles >= target.groups as i64;
        let missing = if fills { 1 } else { TURNS * target.groups as i64 / tiles };
        // So short folds go in order ([`bh_kernel::folds_in_order`]).
        let enough = if !inner && reduced <= IN_ORDER { 1 } else { reduced / (lanes * LEAST) };
        let splits = missing.min(enough).clamp(1, SPLITS);
        Fold { group: target.group, lanes: lanes.max(1) as usize, inner, splits }
    }

    /// Results of one group.
    pub(crate) fn results(&self) -> usize {
        self.group / self.lanes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::tests::PLAIN;

    const TARGET: Target = Target {
        language: &PLAIN,
        group: 256,
        largest: 1024,
        groups: 1024,
        parameter_bytes: 1024,
        square: 8,
        local_bytes: 48 << 10,
        placements: crate::code::Placements::ALL,
    };

    #[test]
    fn few_results_are_shared_by_groups_and_many_by_nobody() {
        let all = Fold::choose(&TARGET, 1, 1 << 27, true);
        assert_eq!((all.lanes, all.splits), (256, 4096));
        let columns = Fold::choose(&TARGET, 1 << 20, 1000, false);
        assert_eq!((columns.lanes, columns.splits), (1, 1));
        let rows = Fold::of_rows(&TARGET, 1 << 20, 1000);
        assert_eq!((rows.lanes, rows.splits), (64, 1));
        let short = Fold::of_rows(&TARGET, 1 << 20, 100);
        assert_eq!((short.lanes, short.splits), (32, 1));
        let bodies = Fold::choose(&TARGET, 8192, 8192, false);
        assert_eq!((bodies.lanes, bodies.splits), (1, 128));
        let few = Fold::choose(&TARGET, 3, 1 << 20, false);
        assert!(few.lanes >= 64 && few.splits > 100, "{few:?}");
        for (kept, reduced) in [(0, 5), (5, 0), (1, 1), (7, 3), (300, 2)] {
            for inner in [false, true] {
                let fold = Fold::choose(&TARGET, kept, reduced, inner);
                assert!(fold.lanes.is_power_of_two() && fold.lanes <= fold.group && fold.splits >= 1, "{fold:?}");
            }
        }
    }
}
