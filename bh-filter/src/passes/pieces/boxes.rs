//! Where the indices of one view lead into another view of the same base, box by box.

use bh_bytecode::View;

/// A base's strides from the largest to 1, each a multiple of the next: an offset is a number with a digit for each of them.
pub struct Grid {
    /// Each stride, and how many values its digit has.
    digits: Vec<(i64, i64)>,
}

/// A view on a grid.
pub struct Place {
    /// The digits of element (0, …, 0).
    at: Vec<i64>,
    /// For each dimension, the digit that it steps in, and by how much. Dimensions that stay where they are have none.
    steps: Vec<Option<(usize, i64)>>,
    shape: Vec<i64>,
}

/// A range of indices for each dimension, from the first to beyond the last.
pub type Ranges = Vec<(i64, i64)>;

impl Grid {
    /// The grid of a base of `len` elements that such views in canonical form are boxes of; none if their strides are no
    /// multiples of each other.
    pub fn of<'a>(len: i64, views: impl Iterator<Item = &'a View>) -> Option<Grid> {
        let mut strides: Vec<i64> = vec![1];
        for view in views {
            strides.extend(view.stride().iter().map(|stride| stride.abs()).filter(|&stride| stride != 0));
        }
        strides.sort_unstable_by(|a, b| b.cmp(a));
        strides.dedup();
        let mut digits = Vec::with_capacity(strides.len());
        let mut above = len.checked_add(strides[0] - 1)? / strides[0] * strides[0];
        for stride in strides {
            if above % stride != 0 {
                return None;
            }
            digits.push((stride, above / stride));
            above = stride;
        }
        Some(Grid { digits })
    }

    /// Where a view that is not empty lies; none if it is no box, or one with steps, whose sides are digits of their own.
    pub fn place(&self, view: &View) -> Option<Place> {
        let mut rest = view.start();
        let digit = |&(stride, _): &(i64, i64)| {
            let digit = rest / stride;
            rest %= stride;
            digit
        };
        let at: Vec<i64> = self.digits.iter().map(digit).collect();
        let mut used = vec![false; at.len()];
        let mut steps = Vec::with_capacity(view.rank());
        for (&extent, &stride) in view.shape().iter().zip(view.stride()) {
            if extent == 1 || stride == 0 {
                steps.push(None);
                continue;
            }
            let digit = self.digits.iter().position(|&(unit, _)| stride % unit == 0)?;
            let (unit, values) = self.digits[digit];
            let step = stride / unit;
            let end = step.checked_mul(extent - 1)?.checked_add(at[digit])?;
            if std::mem::replace(&mut used[digit], true) || !(0..values).contains(&end) {
                return None;
            }
            steps.push(Some((digit, step)));
        }
        Some(Place { at, steps, shape: view.shape().to_vec() })
    }
}

impl Place {
    /// The first and last value of a digit, and how the dimension that steps in it does so: its number and step.
    fn digit(&self, digit: usize) -> (i64, i64, Option<(usize, i64)>) {
        let at = self.at[digit];
        let dim = self.steps.iter().position(|step| step.is_some_and(|(own, _)| own == digit));
        match dim.and_then(|dim| Some((dim, self.steps[dim]?.1))) {
            Some((dim, step)) => {
                let end = at + step * (self.shape[dim] - 1);
                (at.min(end), at.max(end), Some((dim, step)))
            }
            None => (at, at, None),
        }
    }

    /// The indices of this view that lead to elements of a view whose steps are all 1 or −1; none if there are none.
    pub fn within(&self, written: &Place) -> Option<Ranges> {
        let mut ranges: Ranges = self.shape.iter().map(|&extent| (0, extent)).collect();
        for digit in 0..self.at.len() {
            let (low, high, _) = written.digit(digit);
            let at = self.at[digit];
            let Some((dim, step)) = self.digit(digit).2 else {
                if at < low || at > high {
                    return None;
                }
                continue;
            };
            let (near, far) = if step > 0 { (low - at, high - at) } else { (at - high, at - low) };
            let step = step.abs();
            let (first, last) = (-(-near).div_euclid(step), far.div_euclid(step));
            let range = &mut ranges[dim];
            *range = (range.0.max(first), range.1.min(last + 1));
            if range.0 >= range.1 {
                return None;
            }
        }
        Some(ranges)
    }

    /// Start and strides by which this view's indices reach, in a source with a stride for each dimension of `written`, what
    /// `written` copied from there.
    pub fn through(&self, written: &Place, (start, stride): (i64, &[i64])) -> (i64, Vec<i64>) {
        let (mut first, mut strides) = (start, vec![0; self.shape.len()]);
        for (step, &source) in written.steps.iter().zip(stride) {
            let Some((digit, sign)) = *step else { continue };
            first += sign * (self.at[digit] - written.at[digit]) * source;
            if let (_, _, Some((dim, step))) = self.digit(digit) {
                strides[dim] = step * sign * source;
            }
        }
        (first, strides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(start: i64, shape: &[i64], stride: &[i64]) -> View {
        View::new(start, shape, stride).unwrap().canonical()
    }

    /// Where `reader` finds what was written through `written` out of a source with the strides `source`, on a base of `len`.
    fn found(len: i64, reader: &View, written: &View, source: (i64, &[i64])) -> Option<(Ranges, (i64, Vec<i64>))> {
        let grid = Grid::of(len, [written].into_iter())?;
        let (reader, written) = (grid.place(reader)?, grid.place(written)?);
        Some((reader.within(&written)?, reader.through(&written, source)))
    }

    /// The result that [`found`] must give: for each index of the reader that leads to an element of `written`, that
    /// element's source.
    fn check(len: i64, reader: &View, written: &View, source: (i64, &[i64])) {
        let elements = |view: &View| -> Vec<(Vec<i64>, i64)> {
            (0..view.len())
                .map(|number| {
                    let (mut rest, mut index) = (number, vec![0; view.rank()]);
                    for dim in (0..view.rank()).rev() {
                        index[dim] = rest % view.shape()[dim];
                        rest /= view.shape()[dim];
                    }
                    let offset = view.start() + index.iter().zip(view.stride()).map(|(i, s)| i * s).sum::<i64>();
                    (index, offset)
                })
                .collect()
        };
        let reach = |(start, stride): (i64, &[i64]), index: &[i64]| {
            start + index.iter().zip(stride).map(|(i, s)| i * s).sum::<i64>()
        };
        let grid = Grid::of(len, [written].into_iter()).unwrap();
        let (Some(at), Some(target)) = (grid.place(reader), grid.place(written)) else { return };
        let ranges = at.within(&target);
        let (start, strides) = at.through(&target, source);
        let known = elements(written);
        for (index, offset) in elements(reader) {
            let inside = ranges
                .as_ref()
                .is_some_and(|ranges| ranges.iter().zip(&index).all(|(&(low, high), &i)| (low..high).contains(&i)));
            let there = known.iter().find(|(_, other)| *other == offset);
            assert_eq!(inside, there.is_some(), "{reader:?} {written:?} {index:?}");
            if let Some((from, _)) = there {
                assert_eq!(reach((start, &strides), &index), reach(source, from), "{reader:?} {written:?} {index:?}");
            }
        }
    }

    #[test]
    fn a_rolled_matrix_is_read_where_it_was() {
        // b[1:, :] = a[:-1, :] of 4 × 6, read as a whole.
        let (whole, part) = (view(0, &[4, 6], &[6, 1]), view(6, &[3, 6], &[6, 1]));
        let expected = (vec![(1, 4), (0, 6)], (-6, vec![6, 1]));
        assert_eq!(found(24, &whole, &part, (0, &[6, 1])), Some(expected));
        // Its transpose, and every second column backwards.
        let transposed = view(0, &[6, 4], &[1, 6]);
        assert_eq!(found(24, &transposed, &part, (0, &[6, 1])), Some((vec![(0, 6), (1, 4)], (-6, vec![1, 6]))));
        let steps = view(5, &[4, 3], &[6, -2]);
        assert_eq!(found(24, &steps, &part, (0, &[6, 1])), Some((vec![(1, 4), (0, 3)], (-1, vec![6, -2]))));
    }

    #[test]
    fn views_across_rows_have_no_place() {
        let part = view(6, &[3, 6], &[6, 1]);
        let grid = Grid::of(24, [&part].into_iter()).unwrap();
        assert!(grid.place(&view(0, &[24], &[1])).is_none());
        assert!(grid.place(&view(0, &[4], &[7])).is_none());
        assert!(Grid::of(24, [&part, &view(0, &[4], &[4])].into_iter()).is_none());
    }

    #[test]
    fn places_are_those_of_the_elements() {
        let mut random = bh_bytecode::random::Rng::new(5);
        for _ in 0..3000 {
            let (rows, columns) = (1 + random.below(5) as i64, 1 + random.below(6) as i64);
            let mut part = |extent: i64, steps: bool| {
                let (first, step) =
                    (random.below(extent as usize) as i64, if steps { 1 + random.below(2) as i64 } else { 1 });
                let count = 1 + random.below(((extent - first - 1) / step + 1) as usize) as i64;
                match random.chance(30) {
                    true => (first + (count - 1) * step, count, -step),
                    false => (first, count, step),
                }
            };
            let mut random_view = |steps: bool, transposed: bool| {
                let ((row, height, down), (column, width, right)) = (part(rows, steps), part(columns, steps));
                let start = row * columns + column;
                match transposed {
                    true => view(start, &[width, height], &[right, down * columns]),
                    false => view(start, &[height, width], &[down * columns, right]),
                }
            };
            let written = random_view(false, false);
            let transposed = written.start() % 2 == 0;
            let reader = random_view(true, transposed);
            check(rows * columns, &reader, &written, (7, &[100, -3]));
        }
    }
}
