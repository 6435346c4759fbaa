//! The order in memory of results of elementwise operations: that of the operands, as NumPy's order "K" has it.

use crate::array::Array;
use crate::error::{exception, value_error};
use bh_bytecode::{MAX_RANK, View};
use pyo3::prelude::*;

/// Dimensions from the outermost in memory to the innermost.
pub struct Order {
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

impl Order {
    /// The order of what these operands give; `None` for C's.
    #[inline]
    pub fn of(operands: &[Option<&Array>]) -> Option<Order> {
        let views = || operands.iter().flatten().map(|operand| &*operand.view);
        if views().all(is_plain) { None } else { Order::found(&views().collect::<Vec<_>>()) }
    }

    /// As NumPy's iterator finds it: dimensions are inserted one by one, from the last one on; where operands differ about two
    /// dimensions, these stay as in C.
    #[cold]
    fn found(views: &[&View]) -> Option<Order> {
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
        Some(Order { axes, rank })
    }

    /// An operand with its dimensions in this order, which lives no longer than the operand.
    pub fn turned(&self, operand: &Array) -> PyResult<Array> {
        let mut view = *operand.view;
        while view.rank() < self.rank {
            view = view.new_axis(0).map_err(value_error)?;
        }
        Ok(operand.seen(view.transpose(&self.axes[..self.rank]).map_err(value_error)?))
    }

    /// A result of turned operands, turned back.
    pub fn back(&self, result: Array) -> PyResult<Array> {
        let mut places = [0; MAX_RANK];
        (0..self.rank).for_each(|place| places[self.axes[place]] = place);
        let view = result.view.transpose(&places[..self.rank]).map_err(value_error)?;
        let id = result.context.recorder.window(result.id(), &view).map_err(exception)?;
        Ok(Array::new(result.context, id, result.dtype, view))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(views: &[(&[i64], &[i64])]) -> Option<Vec<usize>> {
        let views: Vec<View> = views.iter().map(|(shape, stride)| View::new(0, shape, stride).unwrap()).collect();
        Order::found(&views.iter().collect::<Vec<_>>()).map(|order| order.axes[..order.rank].to_vec())
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
