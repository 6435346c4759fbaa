//! The order in memory of results of elementwise operations: that of the operands, as NumPy's order "K" has it.

use crate::view::{MAX_RANK, View};

/// The dimensions of a result from the outermost in memory to the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOrder {
    axes: [usize; MAX_RANK],
    rank: usize,
}

/// The distance of an operand's elements along a dimension of the result, counted from the last one; 0 where it has one
/// element.
fn stride(view: &View, from_last: usize) -> i64 {
    let Some(dim) = view.rank().checked_sub(from_last + 1) else { return 0 };
    if view.shape()[dim] == 1 { 0 } else { view.stride()[dim].abs() }
}

/// Are the dimensions of a view in the order of C?
#[inline]
fn is_plain(view: &View) -> bool {
    if view.rank() < 2 {
        return true;
    }
    let all = view.shape().iter().zip(view.stride()).filter(|(extent, _)| **extent != 1);
    all.map(|(_, stride)| stride.abs()).is_sorted_by(|outer, inner| outer >= inner)
}

impl MemoryOrder {
    /// The order of what these operands give; `None` for C's.
    #[inline]
    pub fn of<'a>(operands: impl Iterator<Item = &'a View> + Clone) -> Option<MemoryOrder> {
        if operands.clone().all(is_plain) { None } else { MemoryOrder::found(&operands.collect::<Vec<_>>()) }
    }

    /// As NumPy's iterator finds it: dimensions are inserted one by one, from the last one on; where operands differ about two
    /// dimensions, these stay as in C.
    #[cold]
    fn found(views: &[&View]) -> Option<MemoryOrder> {
        let rank = views.iter().map(|view| view.rank()).max()?;
        // Dimensions counted from the last one, the innermost first.
        let mut found: Vec<usize> = Vec::with_capacity(rank);
        for next in 0..rank {
            let mut place = next;
            for before in (0..next).rev() {
                let strides = views.iter().map(|view| (stride(view, found[before]), stride(view, next)));
                let mut told = strides.filter(|(inner, outer)| *inner != 0 && *outer != 0).peekable();
                if told.peek().is_none() {
                    continue;
                }
                if !told.all(|(inner, outer)| outer < inner) {
                    break;
                }
                place = before;
            }
            found.insert(place, next);
        }
        if found.is_sorted() {
            return None;
        }
        let mut axes = [0; MAX_RANK];
        axes.iter_mut().zip(found.iter().rev()).for_each(|(axis, from_last)| *axis = rank - 1 - from_last);
        Some(MemoryOrder { axes, rank })
    }

    /// The dimensions from the outermost in memory to the innermost.
    pub fn axes(&self) -> &[usize] {
        &self.axes[..self.rank]
    }

    /// The place of each dimension in this order.
    pub fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.rank];
        self.axes().iter().enumerate().for_each(|(place, &axis)| places[axis] = place);
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(views: &[(&[i64], &[i64])]) -> Option<Vec<usize>> {
        let views: Vec<View> = views.iter().map(|(shape, stride)| View::new(0, shape, stride).unwrap()).collect();
        let order = MemoryOrder::of(views.iter());
        assert_eq!(order, MemoryOrder::found(&views.iter().collect::<Vec<_>>()));
        order.map(|order| {
            assert!(order.axes().iter().enumerate().all(|(place, &axis)| order.places()[axis] == place));
            order.axes().to_vec()
        })
    }

    #[test]
    fn orders_are_those_of_numpy() {
        let (wide, tall): (&[i64], &[i64]) = (&[4, 3, 2], &[3, 4]);
        assert_eq!(order(&[(wide, &[6, 2, 1])]), None);
        assert_eq!(order(&[(wide, &[1, 4, 12])]), Some(vec![2, 1, 0]));
        assert_eq!(order(&[(wide, &[2, 8, 1])]), Some(vec![1, 0, 2]));
        assert_eq!(order(&[(wide, &[-1, 4, -12])]), Some(vec![2, 1, 0]));
        // C's order wins, whichever operand comes first.
        assert_eq!(order(&[(wide, &[1, 4, 12]), (wide, &[6, 2, 1])]), None);
        assert_eq!(order(&[(wide, &[6, 2, 1]), (wide, &[1, 4, 12])]), None);
        // A vector says nothing about two dimensions, nor does a dimension of one element.
        assert_eq!(order(&[(wide, &[1, 4, 12]), (&[2], &[1])]), Some(vec![2, 1, 0]));
        assert_eq!(order(&[(tall, &[1, 3]), (&[3, 1], &[1, 3])]), Some(vec![1, 0]));
        assert_eq!(order(&[(&[1, 4], &[1, 1])]), None);
    }
}
