//! The number of operations after which a batch ends. The gain of fusion grows with elements, and the cost of planning with
//! operations; a loop that repeats is planned once, so that more of it costs nothing. Counts decide, never clocks.

/// Elements of an operation from which on fusing it saves what planning it costs, as for levels of planning.
const ELEMENTS: u64 = 1 << 14;
/// Bytes of an element, where only bytes are counted.
const ELEMENT_BYTES: u64 = 8;
/// A batch that does little and is not known to repeat ends after this part of the most operations, but not before
/// [`shortest`].
const SHORTER: usize = 4;
const SHORTEST: usize = 256;

/// Is a batch so short that it may be in the midst of a step, whose later operations drop what it holds?
#[inline]
pub(crate) fn is_short(operations: usize) -> bool {
    operations < SHORTEST
}

/// The least that [`limit`] gives, if `most` is the most.
#[inline]
pub(crate) fn shortest(most: usize) -> usize {
    (most / SHORTER).max(SHORTEST).min(most)
}

/// The limit of a batch with this number of operations on this number of bytes; `repeats`: is it part of a loop that was found?
pub(crate) fn limit(operations: usize, bytes: u64, repeats: bool, most: usize) -> usize {
    let pays = bytes / ELEMENT_BYTES >= (operations as u64).saturating_mul(ELEMENTS);
    if pays || repeats { most } else { shortest(most) }
}

/// Elements of an operation up to which a batch gains nothing from further turns of a loop: the caches hold what these pass on.
const TURN_ELEMENTS: u64 = 1 << 15;
/// The fewest operations of a batch that ends at a turn for that reason: handing it over takes about as long as planning one.
const TURNS: usize = 64;

/// May a batch be long enough to end at a turn of its loop?
#[inline]
pub(crate) fn may_end_at_turn(operations: usize) -> bool {
    operations >= TURNS
}

/// Would further turns of a loop in a batch with this number of operations on this number of bytes save traffic to memory?
pub(crate) fn gains_from_turns(operations: usize, bytes: u64) -> bool {
    bytes / ELEMENT_BYTES >= (operations as u64).saturating_mul(TURN_ELEMENTS)
}

/// How many times as many operations the next batches have when batches have come often: the fewer steps, the fewer plans.
pub(crate) const GROWTH: usize = 4;

/// Have so many batches with the same operations come, that one of [`GROWTH`] times as many pays? It is planned anew, and each of them
/// took about as long to hand over as planning an operation takes.
pub(crate) fn is_outgrown(operations: usize, came: u32) -> bool {
    came as usize >= operations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_loops_grow_when_they_have_come_often() {
        assert_eq!([63, 64].map(may_end_at_turn), [false, true]);
        let bytes = |elements: u64| 100 * elements * ELEMENT_BYTES;
        assert_eq!([TURN_ELEMENTS - 1, TURN_ELEMENTS].map(|each| gains_from_turns(100, bytes(each))), [false, true]);
        assert_eq!([0, 99, 100].map(|came| is_outgrown(100, came)), [false, false, true]);
    }

    #[test]
    fn batches_end_early_where_fusing_gains_little() {
        let bytes = |elements: u64| 300 * elements * ELEMENT_BYTES;
        assert_eq!((limit(300, bytes(10), false, 1000), limit(300, bytes(10), false, 10_000)), (256, 2500));
        assert_eq!((limit(300, bytes(10), true, 1000), limit(300, bytes(ELEMENTS), false, 1000)), (1000, 1000));
        assert_eq!((limit(300, bytes(10), false, 7), shortest(7)), (7, 7));
    }
}
