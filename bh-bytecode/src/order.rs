//! The order in which a reduction takes the elements of its input, as its instruction carries it in [`Instr::order`].
//!
//! Floats round after each operation, so the order decides about the bits of a fold. It is decided when the reduction is
//! recorded and never derived from the batch around it: neither where batches end nor what a pass makes of the input changes
//! it.
//!
//! [`Instr::order`]: crate::Instr::order

use crate::opcode::SAME_BITS;
use crate::view::MAX_RANK;
use crate::{Instr, Kind};

/// The most axes whose order and directions have codes.
const DIRECTED: usize = 6;
/// The most axes whose order has codes. The axes of higher ranks are always in C order.
const ORDERED: usize = 8;
/// Codes from here on are those of fixed trees: of orders and directions up to 5 axes, of orders of 6, of C order beyond. This one is
/// that of C order.
pub const FIXED: u16 = 0xC000;
const FIXED_DIRECTED: usize = 5;
const FIXED_ORDERED: usize = 6;

/// Does a code of an instruction ask for the fixed tree, the same on every engine and for every share of the kept axes?
pub fn is_fixed(code: u16) -> bool {
    code >= FIXED
}

impl Instr {
    /// Whether the instruction asks for the one form of its function, or for sums at indices in the recorded order, so that all engines
    /// give the same bits. Folds ask by [`is_fixed`].
    pub fn has_one_form(&self) -> bool {
        let accumulates = self.opcode.kind() == Kind::Accumulate && is_fixed(self.order);
        accumulates || self.opcode.has_variants() && self.param == SAME_BITS
    }
}

/// An order of the axes of an array, and those of them that are walked from their last index to their first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisOrder {
    axes: [u8; MAX_RANK],
    rank: u8,
    backward: u16,
    fixed: bool,
}

impl AxisOrder {
    /// C order: the last axis is the innermost, and all are walked forward. `rank` is at most [`MAX_RANK`].
    pub fn c_order(rank: usize) -> AxisOrder {
        AxisOrder { axes: std::array::from_fn(|axis| axis as u8), rank: rank as u8, backward: 0, fixed: false }
    }

    /// The order in which views of one shape lie in memory, by majority: the smallest strides come last, ties stay in C
    /// order, and an axis is walked backward if some views do so and the others stand still. Axes of extent 1 keep their
    /// place.
    pub fn of_memory(shape: &[i64], strides: &[&[i64]]) -> AxisOrder {
        let mut order = AxisOrder::c_order(shape.len());
        let mut sorted = [0u8; MAX_RANK];
        let mut count = 0;
        for axis in (0..shape.len()).filter(|&axis| shape[axis] != 1) {
            // Insertion sort: the relation need not be transitive, and there are few axes.
            let mut at = count;
            while at > 0 && lies_inside(sorted[at - 1] as usize, axis, strides) {
                sorted[at] = sorted[at - 1];
                at -= 1;
            }
            sorted[at] = axis as u8;
            count += 1;
            let along = strides.iter().map(|strides| strides[axis]);
            if along.clone().any(|stride| stride < 0) && along.clone().all(|stride| stride <= 0) {
                order.backward |= 1 << axis;
            }
        }
        let mut next = sorted[..count].iter();
        for axis in (0..shape.len()).filter(|&axis| shape[axis] != 1) {
            order.axes[axis] = next.next().copied().unwrap_or(axis as u8);
        }
        order
    }

    /// The order of these axes, outermost first, each with whether it is walked backward; none if an axis is missing.
    pub fn of_axes(axes: &[(u8, bool)]) -> Option<AxisOrder> {
        if axes.len() > MAX_RANK || (0..axes.len() as u8).any(|axis| axes.iter().all(|(named, _)| *named != axis)) {
            return None;
        }
        let mut order = AxisOrder::c_order(axes.len());
        for (place, &(axis, backward)) in order.axes.iter_mut().zip(axes) {
            *place = axis;
            order.backward |= u16::from(backward) << axis;
        }
        Some(order)
    }

    /// All axes, outermost first.
    pub fn axes(&self) -> &[u8] {
        &self.axes[..self.rank as usize]
    }

    /// Bit mask of the axes that are walked backward.
    pub fn backward(&self) -> u16 {
        self.backward
    }

    /// The same order where only axes of a mask are walked backward: the direction along kept axes is no part of a fold.
    pub fn backward_only(self, mask: u16) -> AxisOrder {
        AxisOrder { backward: self.backward & mask, ..self }
    }

    /// Strides that lie in memory in this order.
    pub fn strides(&self) -> [i64; MAX_RANK] {
        let mut strides = [0; MAX_RANK];
        for (place, &axis) in self.axes().iter().enumerate() {
            let stride = 1 << (2 * (self.rank as usize - place));
            strides[axis as usize] = if self.backward >> axis & 1 == 1 { -stride } else { stride };
        }
        strides
    }

    /// The order of the fixed tree of a fold along the axes of a mask: the tree depends on the extents of the folded axes and on
    /// which axes lie inside of others, and on nothing else. So axes of one element go outside, and kept ones inside of longer
    /// folded ones, too, if they have fewer than `short` elements together.
    pub fn fixed_tree(self, shape: &[i64], folded: u16, short: i64) -> AxisOrder {
        let mut order = self.backward_only(folded).fixed();
        let axes = &mut order.axes[..self.rank as usize];
        let elements = |axes: &[u8]| axes.iter().map(|&axis| shape[axis as usize]).product::<i64>();
        let is_folded = |axis: u8| folded >> axis & 1 == 1;
        axes.sort_by_key(|&axis| shape[axis as usize] != 1);
        let kept = axes.iter().rev().take_while(|&&axis| !is_folded(axis)).count();
        let inside = axes.len() - kept;
        let rows = axes[..inside].iter().rev().take_while(|&&axis| is_folded(axis)).count();
        let (few, many) = (elements(&axes[inside..]), elements(&axes[inside - rows..inside]));
        if few < short && few < many {
            axes[inside - rows..].rotate_left(rows);
        }
        order
    }

    /// The same order, of a fixed tree.
    pub fn fixed(self) -> AxisOrder {
        AxisOrder { fixed: true, ..self }
    }

    /// Is this the order of a fixed tree?
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// The code for [`Instr::order`](crate::Instr::order); 0 is C order. Up to 6 axes it tells all, up to 8 axes their order
    /// but not their direction, and for more it is that of C order. Codes of fixed trees have directions up to 5 axes and orders up
    /// to 6.
    pub fn code(&self) -> u16 {
        match self.fixed {
            true => FIXED + self.code_within(FIXED_ORDERED, FIXED_DIRECTED),
            false => self.code_within(ORDERED, DIRECTED),
        }
    }

    /// The code of an order of at most `ordered` axes, with directions if there are at most `directed` of them; else 0.
    fn code_within(&self, ordered: usize, directed: usize) -> u16 {
        let rank = self.rank as usize;
        if rank > ordered {
            return 0;
        }
        let mut code = 0u32;
        for (place, &axis) in self.axes().iter().enumerate() {
            let smaller = self.axes()[place + 1..].iter().filter(|&&later| later < axis).count();
            code = code * (rank - place) as u32 + smaller as u32;
        }
        if rank <= directed {
            code = code << rank | u32::from(self.backward);
        }
        code as u16
    }

    /// The order with this code; none if there is no such code for `rank` axes.
    pub fn decode(code: u16, rank: usize) -> Option<AxisOrder> {
        match code.checked_sub(FIXED) {
            Some(code) => AxisOrder::decode_within(code, rank, FIXED_ORDERED, FIXED_DIRECTED).map(AxisOrder::fixed),
            None => AxisOrder::decode_within(code, rank, ORDERED, DIRECTED),
        }
    }

    fn decode_within(code: u16, rank: usize, ordered: usize, directed: usize) -> Option<AxisOrder> {
        let mut order = AxisOrder::c_order(rank);
        if rank > ordered {
            return (code == 0).then_some(order);
        }
        let mut rest = u32::from(code);
        if rank <= directed {
            order.backward = (rest & ((1 << rank) - 1)) as u16;
            rest >>= rank;
        }
        // Digits from the last place, where each counts the smaller axes behind it.
        let mut smaller = [0usize; ORDERED];
        for place in (0..rank).rev() {
            let base = (rank - place) as u32;
            smaller[place] = (rest % base) as usize;
            rest /= base;
        }
        for (place, &smaller) in smaller.iter().enumerate().take(rank) {
            order.axes[place..=place + smaller].rotate_right(1);
        }
        (rest == 0).then_some(order)
    }
}

/// Does axis `a`, which is outside of `b`, belong inside by most of the views?
fn lies_inside(a: usize, b: usize, strides: &[&[i64]]) -> bool {
    let mut votes = 0i32;
    for strides in strides {
        let (a, b) = (strides[a].unsigned_abs(), strides[b].unsigned_abs());
        if a != 0 && b != 0 && a != b {
            votes += if a < b { 1 } else { -1 };
        }
    }
    votes > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_come_back() {
        for rank in 0..=5usize {
            let count = (1..=rank).product::<usize>() << rank;
            for code in 0..count as u16 {
                let order = AxisOrder::decode(code, rank).unwrap();
                assert_eq!(order.code(), code, "rank {rank}");
                let mut axes = order.axes().to_vec();
                axes.sort_unstable();
                assert!(axes.iter().enumerate().all(|(at, &axis)| at == axis as usize));
            }
            assert_eq!(AxisOrder::decode(count as u16, rank), None);
        }
        assert_eq!(AxisOrder::decode(0, 9), Some(AxisOrder::c_order(9)));
        assert_eq!(AxisOrder::decode(1, 9), None);
        assert_eq!(AxisOrder::decode(46_079, 6).unwrap().axes(), [5, 4, 3, 2, 1, 0]);
        assert_eq!((AxisOrder::decode(46_080, 6), AxisOrder::decode(40_320, 8)), (None, None));
        assert_eq!(AxisOrder::decode(40_319, 8).unwrap().axes(), [7, 6, 5, 4, 3, 2, 1, 0]);
    }

    #[test]
    fn what_has_no_code_is_walked_forward_or_in_c_order() {
        let back = AxisOrder::of_memory(&[2; 7], &[&[-1, 2, 4, 8, 16, 32, 64]]);
        assert_eq!((back.axes(), back.backward()), (&[6, 5, 4, 3, 2, 1, 0][..], 1));
        let coded = AxisOrder::decode(back.code(), 7).unwrap();
        assert_eq!((coded.axes(), coded.backward()), (back.axes(), 0));
        let stride: Vec<i64> = (0..9).map(|axis| 1 << axis).collect();
        assert_eq!(AxisOrder::of_memory(&[2; 9], &[&stride]).code(), 0);
    }

    #[test]
    fn codes_of_fixed_trees_are_others_and_come_back() {
        for rank in 0..=5usize {
            for code in 0..((1..=rank).product::<usize>() << rank) as u16 {
                let order = AxisOrder::decode(code, rank).unwrap();
                assert!(!order.is_fixed() && !is_fixed(code));
                let fixed = order.fixed().code();
                assert!(is_fixed(fixed));
                assert_eq!(AxisOrder::decode(fixed, rank), Some(order.fixed()), "rank {rank}, code {code}");
            }
        }
        for rank in 6..=8usize {
            let all = (1..=rank).product::<usize>() << if rank == 6 { rank } else { 0 };
            assert!(!is_fixed((all - 1) as u16), "rank {rank}");
        }
        let turned =
            AxisOrder::of_axes(&[(1, false), (0, true), (2, false), (3, false), (4, false), (5, false)]).unwrap();
        let coded = AxisOrder::decode(turned.fixed().code(), 6).unwrap();
        assert_eq!((coded.axes(), coded.backward()), (turned.axes(), 0));
        assert_eq!(AxisOrder::c_order(9).fixed().code(), FIXED);
        assert_eq!(AxisOrder::decode(FIXED + 1, 9), None);
    }

    #[test]
    fn fixed_trees_have_short_kept_axes_outside() {
        let tree = |shape: &[i64], folded| AxisOrder::c_order(shape.len()).fixed_tree(shape, folded, 8).axes().to_vec();
        assert_eq!(tree(&[100, 8], 0b01), [0, 1]);
        assert_eq!(tree(&[100, 7], 0b01), [1, 0]);
        assert_eq!(tree(&[4, 7], 0b01), [0, 1]);
        assert_eq!(tree(&[100, 1], 0b01), [1, 0]);
        assert_eq!(tree(&[100, 7], 0b10), [0, 1]);
        assert_eq!(tree(&[5, 100, 2, 3], 0b0010), [0, 2, 3, 1]);
    }

    #[test]
    fn strides_tell_the_order() {
        let order = |shape: &[i64], strides: &[&[i64]]| AxisOrder::of_memory(shape, strides);
        assert_eq!(order(&[4, 5], &[&[5, 1], &[5, 1], &[1, 4]]), AxisOrder::c_order(2));
        assert_eq!(order(&[4, 5], &[&[5, 1], &[1, 4]]), AxisOrder::c_order(2));
        assert_eq!(order(&[4, 5], &[&[1, -4]]).code(), 0b110);
        assert_eq!(order(&[4, 5], &[&[1, -4]]).backward_only(0b01).code(), 0b100);
        // A factor that repeats along an axis says nothing about it, and axes of one element keep their place.
        assert_eq!(order(&[3, 4, 5], &[&[5, 0, 1], &[0, 1, 4]]).axes(), [0, 2, 1]);
        assert_eq!(order(&[4, 1, 5], &[&[1, 0, 4]]).axes(), [2, 1, 0]);
        assert_eq!(order(&[1, 4, 1], &[&[0, 7, 0]]), AxisOrder::c_order(3));
        for code in 0..48 {
            let order = AxisOrder::decode(code, 3).unwrap();
            assert_eq!(AxisOrder::of_memory(&[2, 2, 2], &[&order.strides()[..3]]), order);
        }
    }
}
