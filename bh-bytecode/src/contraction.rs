//! The matrix product inside of a contraction: which axes of its box are rows, columns, inner axes or a stack of matrices.
//!
//! An axis that is summed over is *inner*. Of the others, one along which both operands change numbers the matrices of a *stack*;
//! one along which the second operand is constant numbers *rows* of the first, and any other one *columns* of the second.

use crate::order::is_fixed;
use crate::walk::{Loop, Walk};
use crate::{BatchRef, Instr, MAX_RANK, Opcode};

/// The role of an axis of the box in the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Different matrices, and different results.
    Stack,
    /// Rows of the first operand and of the result.
    Row,
    /// Columns of the second operand and of the result.
    Column,
    /// Columns of the first operand and rows of the second: what is summed over.
    Inner,
}

/// The role of an axis along which the operands have these strides.
pub fn role(summed: bool, strides: [i64; 2]) -> Role {
    match strides {
        _ if summed => Role::Inner,
        [_, 0] => Role::Row,
        [0, _] => Role::Column,
        _ => Role::Stack,
    }
}

/// The loops of a contraction by role. Steps are counted in elements: of the output, of the first operand, of the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loops {
    /// One matrix to the next.
    pub stack: Walk<3>,
    /// Rows.
    pub rows: Walk<3>,
    /// The summed loops.
    pub inner: Walk<3>,
    /// Columns.
    pub columns: Walk<3>,
}

impl Loops {
    /// The loops of a contraction over a box of this shape, those with long steps outside; the output has strides for the axes that
    /// are kept.
    pub fn new(shape: &[i64], out: &[i64], operands: [&[i64]; 2], summed: u16) -> Loops {
        let mut axes = [(Role::Stack, Loop { extent: 1, steps: [0; 3] }); MAX_RANK];
        let mut kept = out.iter();
        for (axis, (place, &extent)) in axes.iter_mut().zip(shape).enumerate() {
            let strides = operands.map(|stride| stride[axis]);
            let role = role(summed >> axis & 1 == 1, strides);
            let to = if role == Role::Inner { 0 } else { kept.next().copied().unwrap_or(0) };
            *place = (role, Loop { extent, steps: [to, strides[0], strides[1]].map(|step| step as isize) });
        }
        let of = |wanted: Role, order: [usize; 3]| {
            let mut own: Vec<Loop<3>> =
                axes[..shape.len()].iter().filter(|(role, _)| *role == wanted).map(|(_, axis)| *axis).collect();
            own.sort_by_key(|axis| std::cmp::Reverse(order.map(|operand| axis.steps[operand].unsigned_abs())));
            Walk::merged(own)
        };
        Loops {
            stack: of(Role::Stack, [0, 1, 2]),
            rows: of(Role::Row, [0, 1, 2]),
            inner: of(Role::Inner, [1, 2, 0]),
            columns: of(Role::Column, [0, 2, 1]),
        }
    }

    /// Those of an instruction of a validated batch that is a contraction.
    pub fn of(batch: &BatchRef<'_>, instr: &Instr) -> Loops {
        let [out, a, b] = [0, 1, 2].map(|at| instr.operands[at].as_view().unwrap_or_default());
        Loops::new(batch.shape(a), batch.stride(out), [batch.stride(a), batch.stride(b)], instr.param)
    }

    /// The one loop over rows, the one over inner elements and the one over columns, if there is but one product of two
    /// matrices whose rows and columns are each a fixed step apart.
    pub fn matrices(&self) -> Option<[Loop<3>; 3]> {
        let one = |walk: &Walk<3>| match walk.loops() {
            [] => Some(Loop { extent: 1, steps: [0; 3] }),
            &[one] => Some(one),
            _ => None,
        };
        let alone = self.stack.loops().is_empty();
        alone.then(|| Some([one(&self.rows)?, one(&self.inner)?, one(&self.columns)?]))?
    }
}

/// Multiplications of a product that is done as one, with all matrices of its stack, at least: of fewer, loops are as fast.
const LEAST_WORK: i64 = 1 << 13;
/// Rows, columns and inner elements of such a product, at least, except those of little matrices.
const LEAST_SIDE: i64 = 4;
/// Rows, columns and inner elements of little matrices, at most.
pub const LITTLE_SIDE: i64 = 16;

/// Extents of a contraction: matrices, rows, inner elements, columns. They follow from shape and strides alone.
pub fn extents(shape: &[i64], strides: [&[i64]; 2], summed: u16) -> [i64; 4] {
    let [mut matrices, mut rows, mut inner, mut columns] = [1i64; 4];
    for (axis, &extent) in shape.iter().enumerate() {
        let side = match role(summed >> axis & 1 == 1, strides.map(|stride| stride[axis])) {
            Role::Row => &mut rows,
            Role::Inner => &mut inner,
            Role::Column => &mut columns,
            Role::Stack => &mut matrices,
        };
        *side = side.saturating_mul(extent);
    }
    [matrices, rows, inner, columns]
}

fn work(extents: &[i64]) -> i64 {
    extents.iter().fold(1i64, |work, &extent| work.saturating_mul(extent))
}

/// Are matrices of this many rows, inner elements and columns large enough for a product of two of them to be done as one?
pub fn are_large(sides: &[i64; 3]) -> bool {
    work(sides) >= LEAST_WORK && sides.iter().all(|&side| side >= LEAST_SIDE)
}

/// Is the instruction a contraction that engines with products of matrices do as one, so that it is alone in its kernel? It multiplies
/// matrices that are not narrow, or a stack of little ones. Any other one is a fold of products, which runs in the loops of a kernel,
/// and so is one with a fixed tree.
pub fn is_product(batch: &BatchRef<'_>, instr: &Instr) -> bool {
    let (Opcode::Contract, Some(a), Some(b)) = (instr.opcode, instr.operands[1].as_view(), instr.operands[2].as_view())
    else {
        return false;
    };
    is_product_of(batch.shape(a), [batch.stride(a), batch.stride(b)], (instr.param, instr.order))
}

/// As [`is_product`], of a contraction over a box of this shape, in which the operands have these strides, with the summed axes and the order of
/// the instruction.
pub fn is_product_of(shape: &[i64], strides: [&[i64]; 2], (summed, order): (u16, u16)) -> bool {
    if is_fixed(order) {
        return false;
    }
    let extents = extents(shape, strides, summed);
    let within = |least: i64, most: i64| extents[1..].iter().all(|side| (least..=most).contains(side));
    work(&extents) >= LEAST_WORK && (within(LEAST_SIDE, i64::MAX) || within(2, LITTLE_SIDE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_rows_columns_inner_or_a_stack() {
        // Σ over k of a[s, i, k] · b[s, k, j], with j behind k in the box.
        let (shape, a, b) = ([5, 6, 7, 8], [42, 7, 1, 0], [56, 0, 8, 1]);
        assert_eq!(extents(&shape, [&a, &b], 0b0100), [5, 6, 7, 8]);
        assert_eq!(extents(&shape, [&b, &a], 0b0100), [5, 8, 7, 6]);
        // An axis that both lack is a row, and an axis that one lacks is summed over all the same.
        assert_eq!(extents(&[3, 4], [&[0, 0], &[0, 1]], 0b10), [1, 3, 4, 1]);
        assert_eq!(role(false, [0, 0]), Role::Row);
    }

    #[test]
    fn axes_that_follow_each_other_are_one_loop() {
        // Σ over k, l of a[i, j, k, l] · b[k, l, n]: rows and inner axes merge.
        let (shape, summed) = ([2, 3, 4, 5, 6], 0b01100);
        let loops = Loops::new(&shape, &[18, 6, 1], [&[60, 20, 5, 1, 0], &[0, 0, 30, 6, 1]], summed);
        let step = |extent, steps| Loop { extent, steps };
        assert_eq!(loops.matrices(), Some([step(6, [6, 20, 0]), step(20, [0, 1, 6]), step(6, [1, 0, 1])]));
        // Not if the second operand has them the other way round.
        let loops = Loops::new(&shape, &[18, 6, 1], [&[60, 20, 5, 1, 0], &[0, 0, 6, 24, 1]], summed);
        assert_eq!((loops.inner.loops().len(), loops.matrices()), (2, None));
        let loops = Loops::new(&[7, 2], &[1], [&[2, 1], &[2, 1]], 0b10);
        assert_eq!((loops.stack.loops(), loops.matrices()), (&[step(7, [1, 2, 2])][..], None));
    }
}
