//! Arrays whose elements are moved along their dimensions: rolled ones, and ones with borders.

use crate::assembly::{Assembly, Segment};
use crate::scope::Scope;
use bh_bytecode::{Constant, View};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Location, Recorder};

/// Dimensions along which elements move in one step: each doubles the number of pieces.
const MOST_MOVED: usize = 6;

/// A new array with the elements moved along the dimensions, by one distance each; elements that leave at one end enter
/// at the other. Copies each element once, or twice and more if they move along many dimensions.
pub fn roll(recorder: &Recorder, array: ArrayId, distances: &[i64], place: Location<'_>) -> Result<ArrayId> {
    let scope = Scope::new(recorder, place);
    let mut made = array;
    for distances in steps_of_roll(distances) {
        let info = recorder.info(made)?;
        made = scope.note(rolled(&info.view, &distances)?.record(recorder, info.dtype, &[made], place)?);
    }
    Ok(scope.keep(made))
}

/// The distances of each step of a roll, which moves elements along few dimensions.
pub fn steps_of_roll(distances: &[i64]) -> Vec<Vec<i64>> {
    let moved: Vec<usize> = (0..distances.len()).filter(|&dim| distances[dim] != 0).collect();
    if moved.len() <= MOST_MOVED {
        return vec![distances.to_vec()];
    }
    let step = |dims: &[usize]| {
        let distance = |(dim, &distance): (usize, &i64)| if dims.contains(&dim) { distance } else { 0 };
        distances.iter().enumerate().map(distance).collect()
    };
    moved.chunks(MOST_MOVED).map(step).collect()
}

/// The elements under a view, moved along the dimensions in one step.
pub fn rolled(view: &View, distances: &[i64]) -> Result<Assembly> {
    let shape = view.shape();
    if distances.len() != shape.len() {
        let text = format!("roll: {} distances given for {} dimensions", distances.len(), shape.len());
        return Err(Error::new(status::ARGUMENT, text));
    }
    let dims: Vec<Vec<Segment>> = shape.iter().zip(distances).map(|(&extent, &by)| turned(extent, by)).collect();
    Assembly::arranged(view, &dims)
}

fn turned(extent: i64, by: i64) -> Vec<Segment> {
    let by = if extent > 0 { by.rem_euclid(extent) } else { 0 };
    [(by, extent - by), (extent - by, 0)]
        .map(|(count, first)| Segment::Elements { count, first, step: 1 })
        .into_iter()
        .collect()
}

/// Borders of an array's own elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// The element at the edge, again and again.
    Edge,
    /// The elements in reverse order, the one at the edge first.
    Symmetric,
    /// The elements in reverse order, the one beside that at the edge first.
    Reflect,
    /// The elements at the other end.
    Wrap,
}

impl Border {
    /// The places of a dimension with such borders before and behind it. `None` for borders that repeat elements in turns.
    pub fn around(self, extent: i64, [before, behind]: [i64; 2]) -> Option<Vec<Segment>> {
        let most = match self {
            Border::Edge => i64::MAX,
            Border::Symmetric | Border::Wrap => extent,
            Border::Reflect => extent - 1,
        };
        let (lead, tail) = match self {
            Border::Edge => ((0, 0), (extent - 1, 0)),
            Border::Symmetric => ((before - 1, -1), (extent - 1, -1)),
            Border::Reflect => ((before, -1), (extent - 2, -1)),
            Border::Wrap => ((extent - before, 1), (0, 1)),
        };
        let segment = |count, (first, step)| Segment::Elements { count, first, step };
        let fits = extent > 0 && before.max(behind) <= most;
        fits.then(|| vec![segment(before, lead), segment(extent, (0, 1)), segment(behind, tail)])
    }
}

/// The places of a dimension with numbers before and behind it.
pub fn with_numbers(extent: i64, [before, behind]: [i64; 2], [first, last]: [Constant; 2]) -> Vec<Segment> {
    let own = Segment::Elements { count: extent, first: 0, step: 1 };
    vec![Segment::Number(before, first), own, Segment::Number(behind, last)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_recorder::{Filling, Piece};

    /// The result of an assembly of the elements 0, 1, …; numbers are negative.
    fn made(from: &View, assembly: &Assembly) -> Vec<i64> {
        let places = |view: &View| {
            let mut all = vec![view.start()];
            for (&extent, &step) in view.shape().iter().zip(view.stride()) {
                all = all.iter().flat_map(|&first| (0..extent).map(move |at| first + at * step)).collect();
            }
            all
        };
        let mut result = vec![i64::MAX; assembly.shape.iter().product::<i64>() as usize];
        for Piece { to, from: view, filling } in &assembly.pieces {
            let elements = match filling {
                Filling::Source(0) if view.fits(from.start() + from.len()) => places(view),
                Filling::Number(value) => places(view).iter().map(|_| value.to::<i64>()).collect(),
                other => panic!("{view:?} of {other:?} is outside of the source"),
            };
            places(to).into_iter().zip(elements).for_each(|(at, element)| result[at as usize] = element);
        }
        result
    }

    fn number(value: i64) -> Constant {
        Constant::from_value(value)
    }

    #[test]
    fn rolls_along_many_dimensions_take_several_steps() {
        let distances =
            |steps: Vec<Vec<i64>>| (0..8).map(|dim| steps.iter().map(|step| step[dim]).sum()).collect::<Vec<i64>>();
        let given: Vec<i64> = vec![1, 0, 2, 3, -1, 1, 1, 5];
        let steps = steps_of_roll(&given);
        let moved = |step: &Vec<i64>| step.iter().filter(|&&distance| distance != 0).count();
        assert_eq!(steps.iter().map(moved).collect::<Vec<_>>(), [6, 1]);
        assert_eq!(distances(steps), given);
        assert_eq!(steps_of_roll(&given[..6]), [&given[..6]]);
    }

    #[test]
    fn elements_are_rolled() {
        let line = View::contiguous(&[5]).unwrap();
        for (by, expected) in [(0, [0, 1, 2, 3, 4]), (2, [3, 4, 0, 1, 2]), (-1, [1, 2, 3, 4, 0]), (7, [3, 4, 0, 1, 2])]
        {
            assert_eq!(made(&line, &rolled(&line, &[by]).unwrap()), expected);
        }
        let plane = View::contiguous(&[2, 3]).unwrap();
        let both = rolled(&plane, &[1, -1]).unwrap();
        assert_eq!((made(&plane, &both), both.pieces.len()), (vec![4, 5, 3, 1, 2, 0], 4));
        assert_eq!(rolled(&plane, &[2, 0]).unwrap().pieces.len(), 1);
        assert!(rolled(&View::contiguous(&[0, 3]).unwrap(), &[1, 1]).unwrap().pieces.is_empty());
        assert!(rolled(&plane, &[1]).unwrap_err().text.contains("1 distances given for 2 dimensions"));
    }

    #[test]
    fn borders_are_made_of_elements() {
        let line = View::contiguous(&[3]).unwrap();
        let cases = [
            (Border::Edge, [2, 1], Some(vec![0, 0, 0, 1, 2, 2])),
            (Border::Symmetric, [2, 3], Some(vec![1, 0, 0, 1, 2, 2, 1, 0])),
            (Border::Symmetric, [0, 4], None),
            (Border::Reflect, [2, 1], Some(vec![2, 1, 0, 1, 2, 1])),
            (Border::Reflect, [3, 0], None),
            (Border::Wrap, [1, 3], Some(vec![2, 0, 1, 2, 0, 1, 2])),
            (Border::Wrap, [4, 0], None),
        ];
        for (border, widths, expected) in cases {
            let segments = border.around(3, widths);
            let padded = segments.map(|segments| made(&line, &Assembly::arranged(&line, &[segments]).unwrap()));
            assert_eq!(padded, expected, "{border:?} {widths:?}");
        }
    }

    #[test]
    fn numbers_of_the_last_dimension_count_at_corners() {
        let plane = View::contiguous(&[1, 2]).unwrap();
        let dims =
            [with_numbers(1, [1, 0], [number(-1), number(-2)]), with_numbers(2, [1, 1], [number(-3), number(-4)])];
        let padded = Assembly::arranged(&plane, &dims).unwrap();
        assert_eq!(made(&plane, &padded), [-3, -1, -1, -4, -3, 0, 1, -4]);
        assert_eq!(padded.pieces.len(), 4);
    }
}
