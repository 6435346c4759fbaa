//! Folds of a few elements by the calling thread, with the bits of planned kernels: all that is folded into a result is one
//! chunk, whose elements are taken in the order that the instruction carries.

use super::elementwise::{BLOCK, Buffers, Elements, elementwise};
use crate::primitives::{JoinFn, LANES, LanesFn, PrimFn, Primitives};
use bh_bytecode::neutral::neutral_constant;
use bh_bytecode::walk::{Loop, Walk};
use bh_bytecode::{AxisOrder, Constant, DType, MAX_RANK, Opcode};
use bh_kernel::schedule::{ROW_SETS, SET_PAIRS, is_long_row, is_one_chunk};
use bh_kernel::{Dim, FoldAxes};
use std::mem::MaybeUninit;

/// The most bytes of an element.
const WIDEST: usize = 16;

/// Loops over axes of the output, the input and the second input.
type Loops = Walk<3>;

/// Places in the output, the input and the second input.
type Places = [*mut u8; 3];

/// The operation on an element before it is folded.
#[derive(Clone, Copy)]
enum Second {
    /// Nothing.
    None,
    /// It is multiplied by an element of the second input, by this primitive, or as it is folded.
    Factor(Option<PrimFn>),
    /// Where the second input is false, it is left out.
    Mask(PrimFn),
}

/// How elements are folded.
#[derive(Clone, Copy)]
struct Folding {
    primitives: Primitives,
    size: usize,
    second: Second,
    second_size: usize,
    identity: Constant,
    combine: PrimFn,
    /// Folds the elements of a block, or of the products of two, into lanes.
    into_lanes: LanesFn,
    join: JoinFn,
}

/// Can the axes of a bit mask be folded here, of an input of this shape? All that goes to a result has to be one chunk, and with a mask
/// go to lanes. An input without elements has no memory.
pub(super) fn fits(shape: &[i64], (reduced, order): (u16, u16), masked: bool) -> bool {
    let order = decoded(order, shape.len());
    fits_on(&FoldAxes::new(shape, reduced, &order), &order, shape, masked)
}

fn fits_on(fold: &FoldAxes, order: &AxisOrder, shape: &[i64], masked: bool) -> bool {
    !shape.contains(&0) && (fold.in_lanes || !masked) && is_one_chunk(fold, order)
}

fn decoded(order: u16, rank: usize) -> AxisOrder {
    AxisOrder::decode(order, rank).unwrap_or_else(|| AxisOrder::c_order(rank))
}

/// Folds the axes of a bit mask; `shape` is that of the input. A second input is a mask, or, of the input's type, what it is
/// multiplied by. False, and nothing has happened, if there is no primitive for it, or it is too much.
///
/// # Safety
/// The operands must hold the elements of the shapes; the output must be apart from the inputs.
pub(super) unsafe fn fold(
    primitives: Primitives,
    opcode: Opcode,
    (reduced, order): (u16, u16),
    shape: &[i64],
    operands: &[Elements<'_>],
) -> bool {
    let (&[out, from, ..], second) = (operands, operands.get(2)) else { return false };
    let order = decoded(order, shape.len());
    let fold = FoldAxes::new(shape, reduced, &order);
    if from.dtype != out.dtype
        || !fits_on(&fold, &order, shape, second.is_some_and(|second| second.dtype == DType::Bool))
    {
        return false;
    }
    let Some(folding) = Folding::new(primitives, opcode, out.dtype, second.map(|second| second.dtype)) else {
        return false;
    };
    let FoldAxes { axes, in_lanes, .. } = fold;
    let mut at = [out.data, from.data, second.map_or(std::ptr::null_mut(), |second| second.data)];
    let (mut kept, mut folded, backward) = (Loops::default(), Loops::default(), order.backward() & reduced);
    for axis in &axes {
        let mut steps = [0, from.step(axis.source), second.map_or(0, |second| second.step(axis.source))];
        if axis.role == Dim::Kept {
            let before = (reduced | u16::MAX << axis.source).count_zeros() as usize;
            steps[0] = out.step(before);
            kept.push(Loop { extent: axis.extent, steps });
            continue;
        }
        if backward >> axis.source & 1 == 1 {
            for (at, step) in at.iter_mut().zip(&mut steps) {
                *at = at.wrapping_offset(*step * (axis.extent as isize - 1));
                *step = -*step;
            }
        }
        folded.push(Loop { extent: axis.extent, steps });
    }
    let has_rows = axes.last().is_none_or(|axis| axis.role == Dim::Reduced);
    // SAFETY: the loops go over the axes of the operands, so that they reach elements only.
    unsafe {
        match in_lanes {
            true => folding.in_lanes(&kept, folded, at, has_rows),
            false => folding.in_turn(&kept, &folded, at, out.dtype),
        }
    }
    true
}

impl Folding {
    fn new(primitives: Primitives, opcode: Opcode, dtype: DType, second: Option<DType>) -> Option<Folding> {
        let combiner = opcode.combiner()?;
        let (into_lanes, join) = primitives.lanes(combiner, dtype)?;
        let (second, second_size, into_lanes) = match second {
            None => (Second::None, 0, into_lanes),
            Some(DType::Bool) => {
                let select = primitives.elementwise(Opcode::Where, 0, dtype, dtype)?;
                (Second::Mask(select), 1, into_lanes)
            }
            Some(factor) if factor == dtype => match primitives.lanes_of(Opcode::Multiply, combiner, dtype) {
                Some(into_lanes) => (Second::Factor(None), dtype.size(), into_lanes),
                None => {
                    let multiply = primitives.elementwise(Opcode::Multiply, 0, dtype, dtype)?;
                    (Second::Factor(Some(multiply)), dtype.size(), into_lanes)
                }
            },
            Some(_) => return None,
        };
        let (identity, combine) = (neutral_constant(opcode, dtype), primitives.elementwise(combiner, 0, dtype, dtype)?);
        Some(Folding { primitives, size: dtype.size(), second, second_size, identity, combine, into_lanes, join })
    }

    /// Folds the elements of each result into lanes, and these by halving.
    ///
    /// # Safety
    /// The loops must be inside the operands. `has_rows`: long rows have lanes of their own.
    unsafe fn in_lanes(&self, kept: &Loops, mut folded: Loops, at: Places, has_rows: bool) {
        let row = folded.pop().unwrap_or(Loop { extent: 1, steps: [0; 3] });
        let outer = &folded;
        let mut sets = MaybeUninit::<Sets>::uninit();
        let sets = sets.as_mut_ptr().cast::<u8>();
        let mut buffers = Blocks::new();
        let long = has_rows && is_long_row(row.extent) && !outer.loops().is_empty();
        kept.each(at, |at| {
            // SAFETY: the loops reach elements of the operands only; there is room for the sets' lanes.
            unsafe {
                match long {
                    true => self.rows(sets, outer, &row, at, &mut buffers),
                    false => self.run(sets, outer, &row, at, &mut buffers),
                }
                (self.join)(sets, sets);
                std::ptr::copy_nonoverlapping(sets, at[0], self.size);
            }
        });
    }

    /// Folds long rows, each into the next set of lanes, and the sets into the first one.
    ///
    /// # Safety
    /// As [`Folding::in_lanes`].
    unsafe fn rows(&self, sets: *mut u8, outer: &Loops, row: &Loop<3>, at: Places, blocks: &mut Blocks) {
        let set = |number: usize| sets.wrapping_add(number % ROW_SETS * LANES * self.size);
        let mut number = 0;
        // SAFETY: the rows are inside the operands, and each set has its lanes.
        unsafe {
            self.primitives.fill(self.size)(LANES * ROW_SETS, sets, self.identity.bits.as_ptr().cast());
            outer.each(at, |at| {
                self.row(set(number), row, at, blocks);
                number += 1;
            });
            for (to, from) in SET_PAIRS {
                (self.combine)(LANES, set(to), set(to), set(from), set(from));
            }
        }
    }

    /// Folds rows as if they were one.
    ///
    /// # Safety
    /// As [`Folding::in_lanes`].
    unsafe fn run(&self, lanes: *mut u8, outer: &Loops, row: &Loop<3>, at: Places, blocks: &mut Blocks) {
        // SAFETY: the rows are inside the operands; blocks are whole numbers of lanes.
        unsafe {
            self.primitives.fill(self.size)(LANES, lanes, self.identity.bits.as_ptr().cast());
            if outer.loops().is_empty() {
                return self.row(lanes, row, at, blocks);
            }
            let mut filled = 0;
            outer.each(at, |mut at| {
                let mut left = row.extent as usize;
                while left > 0 {
                    let count = left.min(BLOCK - filled);
                    self.load(blocks, filled, count, row, at);
                    (left, filled) = (left - count, filled + count);
                    at = ahead(at, row, count);
                    if filled == BLOCK {
                        self.fold_block(lanes, blocks, filled);
                        filled = 0;
                    }
                }
            });
            if filled > 0 {
                self.fold_block(lanes, blocks, filled);
            }
        }
    }

    /// Folds a row into lanes.
    ///
    /// # Safety
    /// As [`Folding::in_lanes`].
    unsafe fn row(&self, lanes: *mut u8, row: &Loop<3>, at: Places, blocks: &mut Blocks) {
        let (count, follows) = (row.extent as usize, |step: isize| step == self.size as isize);
        // SAFETY: the row is inside the operands, and a block is loaded before it is folded.
        unsafe {
            match self.second {
                Second::None if follows(row.steps[1]) => (self.into_lanes)(count, lanes, at[1], at[1]),
                Second::Factor(None) if follows(row.steps[1]) && follows(row.steps[2]) => {
                    (self.into_lanes)(count, lanes, at[1], at[2]);
                }
                _ => {
                    for first in (0..count).step_by(BLOCK) {
                        let count = BLOCK.min(count - first);
                        self.load(blocks, 0, count, row, ahead(at, row, first));
                        self.fold_block(lanes, blocks, count);
                    }
                }
            }
        }
    }

    /// Copies elements of a row into the blocks, behind the `filled` ones that are there.
    ///
    /// # Safety
    /// `count` elements of the row from `at` on must be inside the operands, and the blocks have room for them behind
    /// the `filled` ones.
    unsafe fn load(&self, blocks: &mut Blocks, filled: usize, count: usize, row: &Loop<3>, at: Places) {
        let [elements, seconds] = blocks.all();
        let elements = elements.wrapping_add(filled * self.size);
        let seconds = seconds.wrapping_add(filled * self.second_size);
        // SAFETY: the elements are inside the operands, and there is room for them behind the filled ones.
        unsafe {
            self.primitives.gather_strided(self.size)(count, elements, at[1], row.steps[1]);
            if self.second_size > 0 {
                self.primitives.gather_strided(self.second_size)(count, seconds, at[2], row.steps[2]);
            }
        }
    }

    /// Folds what is in the blocks into lanes.
    ///
    /// # Safety
    /// `lanes` must be a set of lanes, and the first `count` elements of the blocks be loaded, `count` being a block at
    /// most.
    unsafe fn fold_block(&self, lanes: *mut u8, blocks: &mut Blocks, count: usize) {
        let [elements, seconds] = blocks.all();
        // SAFETY: `count` elements are in each block that is read, and in the lanes.
        unsafe {
            if let Second::Mask(select) = self.second {
                let mut others = Buffers::new();
                let others = others.0[0].as_mut_ptr().cast::<u8>();
                self.primitives.fill(self.size)(count, others, self.identity.bits.as_ptr().cast());
                select(count, elements, seconds, elements, others);
            }
            if let Second::Factor(Some(multiply)) = self.second {
                multiply(count, elements, elements, seconds, seconds);
            }
            (self.into_lanes)(count, lanes, elements, seconds);
        }
    }

    /// Folds elements, or products of two, into the results, those of all results before the next ones.
    ///
    /// # Safety
    /// As [`Folding::in_lanes`]. The second input must be no mask.
    unsafe fn in_turn(&self, kept: &Loops, folded: &Loops, at: Places, dtype: DType) {
        let mut shape = [0i64; MAX_RANK];
        let mut strides = [[0i64; MAX_RANK]; 3];
        let kept = kept.loops();
        for (axis, inner) in kept.iter().enumerate() {
            shape[axis] = inner.extent;
            for (strides, step) in strides.iter_mut().zip(inner.steps) {
                strides[axis] = (step / self.size as isize) as i64;
            }
        }
        let shape = &shape[..kept.len()];
        let operand = |place: usize, data: *mut u8| Elements { data, dtype, stride: &strides[place][..kept.len()] };
        let out = operand(0, at[0]);
        let identity = Elements { data: self.identity.bits.as_ptr().cast_mut().cast(), dtype, stride: &[] };
        let multiplies = matches!(self.second, Second::Factor(_));
        let is_line = !multiplies && matches!(kept, [one] if one.steps[..2] == [self.size as isize; 2]);
        let count = if multiplies { shape.iter().product::<i64>() as usize } else { 0 };
        let mut products = vec![[0u64; 2]; (count * self.size).div_ceil(WIDEST)];
        let mut dense = [0i64; MAX_RANK];
        shape.iter().enumerate().rev().fold(1, |step, (axis, extent)| {
            dense[axis] = step;
            step * extent
        });
        let products = Elements { data: products.as_mut_ptr().cast(), dtype, stride: &dense[..kept.len()] };
        // SAFETY: the loops reach elements of the operands only, and there is room for the products; there is a primitive for the
        // combiner.
        unsafe {
            elementwise(self.primitives, (Opcode::Copy, 0), shape, &[out, identity]);
            folded.each(at, |at| {
                let from = if multiplies { products } else { operand(1, at[1]) };
                if multiplies {
                    let factors = [products, operand(1, at[1]), operand(2, at[2])];
                    elementwise(self.primitives, (Opcode::Multiply, 0), shape, &factors);
                }
                if is_line {
                    (self.combine)(shape[0] as usize, out.data, out.data, at[1], at[1]);
                } else {
                    super::elementwise::strided(self.primitives, Some(self.combine), shape, &[out, out, from]);
                }
            });
        }
    }
}

/// Lanes of a long row's sets.
#[repr(align(64))]
struct Sets(#[expect(dead_code, reason = "only its size and place count")] [u8; LANES * ROW_SETS * WIDEST]);

/// Copies of elements, and of the second input's.
struct Blocks(Buffers);

impl Blocks {
    fn new() -> Blocks {
        Blocks(Buffers::new())
    }

    fn all(&mut self) -> [*mut u8; 2] {
        let [elements, seconds, ..] = self.0.0.each_mut().map(|buffer| buffer.as_mut_ptr().cast::<u8>());
        [elements, seconds]
    }
}

/// The places `elements` elements on.
fn ahead(at: Places, row: &Loop<3>, elements: usize) -> Places {
    let [out, from, second] = at;
    let [_, step, second_step] = row.steps;
    [out, from.wrapping_offset(elements as isize * step), second.wrapping_offset(elements as isize * second_step)]
}
