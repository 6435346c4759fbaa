//! The stages that chains are made of, and the rows, columns and elements that their slots touch.

use super::grid::Position;
use crate::Stage;

/// A stage of a block.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) stage: Stage,
    /// By how many rows and columns what each slot reads lies elsewhere than its start says, going around at the ends.
    pub(super) moved: Option<Vec<[i64; 2]>>,
}

/// The first and last row, column and element of these.
pub(super) type Area = [(i64, i64); 3];

/// Have two of them an element in common?
pub(super) fn meet(one: &Area, other: &Area) -> bool {
    one.iter().zip(other).all(|(one, other)| one.0 <= other.1 && other.0 <= one.1)
}

/// The rows, columns and elements of these that a slot touches, each of them; `None` if there are gaps.
pub(super) fn area(stage: &Stage, slot: usize, place: Position) -> Option<Area> {
    let parameters = &stage.parameters;
    let (mut high, mut count) = (0, 1);
    for (extent, stride) in parameters.extents.iter().zip(parameters.stride(slot)).skip(2) {
        if *stride < 0 {
            return None;
        }
        high += stride * (extent - 1);
        count *= extent;
    }
    let line = |start: i64, extent: i64| (start, start + extent - 1);
    let area = [
        line(place.row, parameters.extents[0]),
        line(place.column, parameters.extents[1]),
        (place.rest, place.rest + high),
    ];
    (count == high + 1).then_some(area)
}
