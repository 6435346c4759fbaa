//! New arrays that are made of boxes: elements of one array moved along its dimensions, with borders of elements or of numbers, and
//! arrays joined along a dimension.

use crate::scope::check_axis;
use bh_bytecode::{Constant, DType, MAX_RANK, View, ViewError};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Filling, Location, Piece, Recorder};

/// Places of a dimension of the result, one after the other.
#[derive(Clone, Copy, Debug)]
pub enum Segment {
    /// This many places: the elements from `first` on, `step` apart.
    Elements {
        /// Number of places.
        count: i64,
        /// The element in the first place.
        first: i64,
        /// From the element of a place to that of the next one.
        step: i64,
    },
    /// This many places with one number, of the type of the array.
    Number(i64, Constant),
}

/// A new array as the pieces that it is made of.
#[derive(Debug)]
pub struct Assembly {
    /// Its extents.
    pub shape: Vec<i64>,
    /// Pieces, which cover it.
    pub pieces: Vec<Piece>,
}

/// Consecutive places of one dimension: from an element on, or all with one number.
#[derive(Clone, Copy)]
struct Span {
    place: i64,
    count: i64,
    first: i64,
    step: i64,
    number: Option<Constant>,
}

/// The boxes of the product of spans, of which each dimension has one list.
struct Boxes<'a> {
    from: &'a View,
    whole: &'a View,
    spans: Vec<Vec<Span>>,
    pieces: Vec<Piece>,
}

/// A box whose first dimensions are chosen: its extents and its steps in the source.
struct Chosen {
    shape: [i64; MAX_RANK],
    stride: [i64; MAX_RANK],
    number: Option<Constant>,
}

impl Boxes<'_> {
    /// Adds the boxes of all combinations of spans from a dimension on, which begin at these places of the result and the source.
    fn add(&mut self, chosen: &mut Chosen, dim: usize, (to, from): (i64, i64)) -> std::result::Result<(), ViewError> {
        let rank = self.spans.len();
        if dim == rank {
            let (shape, stride) = (&chosen.shape[..rank], &chosen.stride[..rank]);
            let filling = chosen.number.map_or(Filling::Source(0), Filling::Number);
            // Filled in place, as views are large to move.
            self.pieces.push(Piece { to: View::default(), from: View::default(), filling });
            let Some(piece) = self.pieces.last_mut() else { return Ok(()) };
            match filling {
                Filling::Source(_) => piece.from.put(from, shape, stride)?,
                Filling::Number(_) => piece.from.put(0, shape, &[0; MAX_RANK][..rank])?,
            }
            return piece.to.put(to, shape, self.whole.stride());
        }
        let (step, new_step, before) = (self.from.stride()[dim], self.whole.stride()[dim], chosen.number);
        for at in 0..self.spans[dim].len() {
            let span = self.spans[dim][at];
            (chosen.shape[dim], chosen.stride[dim]) = (span.count, span.step * step);
            chosen.number = span.number.or(before);
            self.add(chosen, dim + 1, (to + span.place * new_step, from + span.first * step))?;
        }
        chosen.number = before;
        Ok(())
    }

    fn add_all(&mut self) -> Result<()> {
        let mut nothing = Chosen { shape: [0; MAX_RANK], stride: [0; MAX_RANK], number: None };
        self.pieces.reserve(self.spans.iter().map(Vec::len).product());
        self.add(&mut nothing, 0, (0, self.from.start())).map_err(shape_error)
    }
}

/// The spans of a dimension with elements, or those with numbers.
fn spans(segments: &[Segment], numbers: bool) -> Vec<Span> {
    let mut place = 0;
    let span = |segment: &Segment| {
        let (begin, count) = (place, segment.count());
        place += count;
        match *segment {
            Segment::Elements { first, step, .. } => Span { place: begin, count, first, step, number: None },
            Segment::Number(_, value) => Span { place: begin, count, first: 0, step: 0, number: Some(value) },
        }
    };
    segments.iter().map(span).filter(|span| span.count > 0 && span.number.is_some() == numbers).collect()
}

impl Assembly {
    /// The elements under a view, arranged by the segments of each dimension. Where numbers of several dimensions meet, those of the
    /// last one count.
    pub fn arranged(from: &View, dims: &[Vec<Segment>]) -> Result<Assembly> {
        let shape: Vec<i64> = dims.iter().map(|segments| segments.iter().map(Segment::count).sum()).collect();
        let whole = View::contiguous(&shape).map_err(shape_error)?;
        let elements = dims.iter().map(|segments| spans(segments, false)).collect();
        let mut boxes = Boxes { from, whole: &whole, spans: elements, pieces: Vec::new() };
        boxes.add_all()?;
        let has_numbers = dims.iter().flatten().any(|segment| matches!(segment, Segment::Number(..)));
        for (dim, segments) in dims.iter().enumerate().filter(|_| has_numbers) {
            let numbers = spans(segments, true);
            if !numbers.is_empty() {
                boxes.spans[dim] = numbers;
                boxes.add_all()?;
            }
            // For the numbers of later dimensions.
            boxes.spans[dim] = vec![Span { place: 0, count: shape[dim], first: 0, step: 0, number: None }];
        }
        let pieces = boxes.pieces;
        Ok(Assembly { shape, pieces })
    }

    /// The elements under views one after the other along a dimension. `name`: the function, for errors.
    pub fn joined(name: &str, views: &[View], axis: usize) -> Result<Assembly> {
        let shape = views.first().map_or(&[][..], View::shape);
        check_axis(name, axis, shape.len())?;
        let mut extents = shape.to_vec();
        extents[axis] = 0;
        for view in views {
            let other = view.shape();
            if other.len() != shape.len() || (0..shape.len()).any(|at| at != axis && other[at] != shape[at]) {
                let text = format!("{name}: shape {other:?} does not fit {shape:?} along axis {axis}");
                return Err(Error::new(status::SHAPE, text));
            }
            extents[axis] += other[axis];
        }
        let whole = View::contiguous(&extents).map_err(shape_error)?;
        let mut place = 0;
        let mut pieces = Vec::with_capacity(views.len());
        for (source, view) in views.iter().enumerate() {
            if !view.is_empty() {
                pieces.push(Piece { to: View::default(), from: *view, filling: Filling::Source(source) });
                let begin = place * whole.stride()[axis];
                let put = |piece: &mut Piece| piece.to.put(begin, view.shape(), whole.stride());
                pieces.last_mut().map_or(Ok(()), put).map_err(shape_error)?;
            }
            place += view.shape()[axis];
        }
        Ok(Assembly { shape: extents, pieces })
    }

    /// Records it as a new array of elements of `sources`, by their numbers in the pieces.
    pub fn record(
        &self,
        recorder: &Recorder,
        dtype: DType,
        sources: &[ArrayId],
        place: Location<'_>,
    ) -> Result<ArrayId> {
        recorder.assemble((dtype, &self.shape), sources, &self.pieces, place)
    }
}

impl Segment {
    pub(crate) fn count(&self) -> i64 {
        match *self {
            Segment::Elements { count, .. } | Segment::Number(count, _) => count,
        }
    }
}

pub(crate) fn shape_error(error: ViewError) -> Error {
    Error::new(status::SHAPE, error.0)
}
