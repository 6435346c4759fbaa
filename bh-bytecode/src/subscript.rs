//! Indices and slices of one dimension, as Python means them.

/// The first index of Python's `[start:stop:step]` in a dimension of this extent, and how many there are. The step is not 0.
#[inline]
pub fn sliced(extent: i64, start: Option<i64>, stop: Option<i64>, step: i64) -> (i64, i64) {
    let clip = |bound: i64, low: i64, high: i64| -> i64 {
        let bound = if bound < 0 { bound.saturating_add(extent) } else { bound };
        bound.clamp(low, high)
    };
    let (first, end) = if step > 0 {
        (start.map_or(0, |bound| clip(bound, 0, extent)), stop.map_or(extent, |bound| clip(bound, 0, extent)))
    } else {
        (
            start.map_or(extent - 1, |bound| clip(bound, -1, extent - 1)),
            stop.map_or(-1, |bound| clip(bound, -1, extent - 1)),
        )
    };
    let span = if step > 0 { end - first } else { first - end };
    let count = if span <= 0 { 0 } else { (span - 1) / step.saturating_abs() + 1 };
    (first, count)
}

/// The position of an index in a dimension of this extent, if it is there; negative ones count from the end.
#[inline]
pub fn indexed(extent: i64, index: i64) -> Option<i64> {
    let at = if index < 0 { index.saturating_add(extent) } else { index };
    (0..extent).contains(&at).then_some(at)
}
