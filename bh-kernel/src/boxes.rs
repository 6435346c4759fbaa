//! Boxes of a grid: the first and the last value of each digit, both inclusive.

/// Adds the rest of a box without another one to `into`: the sides before and behind that along each digit.
pub fn subtract<B: Clone + AsRef<[(i64, i64)]> + AsMut<[(i64, i64)]>>(mut from: B, hole: &B, into: &mut Vec<B>) {
    if !meet(&from, hole) {
        return into.push(from);
    }
    for (digit, &(hole_low, hole_high)) in hole.as_ref().iter().enumerate() {
        let (low, high) = from.as_ref()[digit];
        for (first, last) in [(low, hole_low - 1), (hole_high + 1, high)] {
            if first <= last {
                let mut side = from.clone();
                side.as_mut()[digit] = (first, last);
                into.push(side);
            }
        }
        from.as_mut()[digit] = (low.max(hole_low), high.min(hole_high));
    }
}

/// Have two boxes an element in common?
pub(crate) fn meet<B: AsRef<[(i64, i64)]>>(one: &B, other: &B) -> bool {
    one.as_ref().iter().zip(other.as_ref()).all(|(one, other)| one.0 <= other.1 && other.0 <= one.1)
}
