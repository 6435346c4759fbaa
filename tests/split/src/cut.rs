//! Cuts of an instruction along its outermost dimension, so that each half uses the rows of one rank only.

use bh_bytecode::{BatchRef, Instr, Kind, View};

/// How many outermost indices of a view precede element `cut` of its base. `None` if a row has elements on both sides,
/// or the rows are not in order.
pub fn rows_before(view: &View, cut: i64) -> Option<i64> {
    let (&rows, &step) = (view.shape().first()?, view.stride().first()?);
    let row = view.index(0, 0).ok()?;
    let (low, high) = row.extent()?;
    if rows > 1 && step <= 0 {
        return None;
    }
    let before = (0..rows).take_while(|index| high + index * step < cut).count() as i64;
    (before == rows || low + before * step >= cut).then_some(before)
}

/// Rows of a view from `first` on, as a view of a base that begins at element `origin` of the whole.
pub fn part(view: &View, first: i64, count: i64, origin: i64) -> Option<View> {
    let (mut shape, mut start) = (view.shape().to_vec(), view.start());
    *shape.first_mut()? = count;
    start += first * view.stride().first()? - origin;
    View::new(start, &shape, view.stride()).ok()
}

/// Can the instruction be cut along its outermost dimension, if all operands have matching cuts?
pub fn can_be_cut(batch: &BatchRef<'_>, instr: &Instr) -> bool {
    match instr.opcode.kind() {
        Kind::Elementwise | Kind::Generator => true,
        // The outermost axis must be kept, so that it is also that of the output.
        Kind::Reduction | Kind::Accumulate => {
            let shape = instr.inputs().first().and_then(|input| input.as_view()).map(|view| batch.shape(view));
            instr.param & 1 == 0 && shape.is_some_and(|shape| !shape.is_empty())
        }
        Kind::Index | Kind::System | Kind::Extension => false,
    }
}

/// The cut of a new array: at the middle row of its first view; `None` if it cannot be cut.
pub fn place_of_cut(len: i64, row_hint: i64) -> Option<i64> {
    let rows = len.checked_div(row_hint).filter(|_| row_hint > 0)?;
    (rows >= 2).then_some(rows / 2 * row_hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fall_to_one_side_or_the_other() {
        let grid = View::contiguous(&[6, 5]).unwrap();
        assert_eq!(rows_before(&grid, 15), Some(3));
        assert_eq!(rows_before(&grid, 16), None);
        assert_eq!(rows_before(&grid, 0), Some(0));
        assert_eq!(rows_before(&grid, 30), Some(6));
        let inner = grid.slice(0, Some(1), Some(5), 1).unwrap().slice(1, Some(1), Some(4), 1).unwrap();
        assert_eq!(rows_before(&inner, 15), Some(2));
        assert_eq!(rows_before(&grid.reverse(0).unwrap(), 15), None);
        assert_eq!(rows_before(&grid.reverse(1).unwrap(), 15), Some(3));
        assert_eq!(rows_before(&grid.transpose(&[1, 0]).unwrap(), 15), None);
        let row = View::contiguous(&[5]).unwrap().broadcast_to(&[6, 5]).unwrap();
        assert_eq!(rows_before(&row, 5), None, "a repeated row has no order");
        assert_eq!(rows_before(&View::new(3, &[], &[]).unwrap(), 2), None);
    }

    #[test]
    fn parts_keep_their_elements() {
        let inner = View::new(6, &[4, 3], &[5, 1]).unwrap();
        assert_eq!(part(&inner, 0, 2, 0), View::new(6, &[2, 3], &[5, 1]).ok());
        assert_eq!(part(&inner, 2, 2, 15), View::new(1, &[2, 3], &[5, 1]).ok());
    }

    #[test]
    fn arrays_are_cut_between_rows() {
        assert_eq!(place_of_cut(30, 5), Some(15));
        assert_eq!(place_of_cut(35, 5), Some(15));
        assert_eq!(place_of_cut(5, 5), None);
        assert_eq!(place_of_cut(5, 0), None);
        assert_eq!(place_of_cut(0, 1), None);
    }
}
