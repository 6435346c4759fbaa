//! An elementwise operation on operands in memory, by the calling thread, through the primitives that planned blocks are made of.

use crate::primitives::{PrimFn, Primitives, Side};
use bh_bytecode::{DType, MAX_RANK, Opcode};
use std::mem::MaybeUninit;

/// Elements that an operation does at a time where operands have to be copied: four blocks of the largest type stay in the
/// nearest cache.
pub(super) const BLOCK: usize = 256;
/// Operands of an elementwise operation, its output among them.
pub(super) const OPERANDS: usize = 4;

/// Copies of blocks of operands.
#[repr(align(64))]
pub(super) struct Buffers(pub(super) [[MaybeUninit<u8>; BLOCK * 16]; OPERANDS]);

impl Buffers {
    pub(super) fn new() -> Buffers {
        Buffers([[MaybeUninit::uninit(); BLOCK * 16]; OPERANDS])
    }
}

/// An operand: its first element, and strides in elements along the axes of the output; none: a single element for all.
#[derive(Clone, Copy)]
pub(super) struct Elements<'a> {
    pub(super) data: *mut u8,
    pub(super) dtype: DType,
    pub(super) stride: &'a [i64],
}

/// An operand in a loop: where its next element lies, bytes of an element, and strides in bytes along the dimensions.
#[derive(Clone, Copy)]
struct OperandMemory {
    data: *mut u8,
    size: usize,
    strides: [isize; MAX_RANK],
}

/// Runs an operation, given with its parameter, on at most [`OPERANDS`] operands, the output first. False, and nothing has
/// happened, if there is no primitive for it.
///
/// # Safety
/// The operands must hold the elements of the shape. Inputs must be the output's elements or apart from them.
pub(super) unsafe fn elementwise(
    primitives: Primitives,
    (opcode, param): (Opcode, u16),
    shape: &[i64],
    operands: &[Elements<'_>],
) -> bool {
    let (&[out, ..], &[.., last]) = (operands, operands) else { return false };
    if shape.contains(&0) {
        return true;
    }
    let copies = opcode == Opcode::Copy && last.dtype == out.dtype;
    let run = if copies { None } else { primitives.elementwise(opcode, param, last.dtype, out.dtype) };
    if run.is_none() && !copies {
        return false;
    }
    // SAFETY: promised by the caller.
    unsafe { strided(primitives, run, shape, operands) };
    true
}

/// As [`elementwise`], where operands lie without gaps and in one order: through no copies. False, and nothing has happened, if
/// they do not, or there is no primitive for their form.
///
/// # Safety
/// As [`elementwise`].
pub(super) unsafe fn dense(
    primitives: Primitives,
    (opcode, param): (Opcode, u16),
    shape: &[i64],
    operands: &[Elements<'_>],
) -> bool {
    let (&[out, ..], &[.., last]) = (operands, operands) else { return false };
    let single = |operand: &Elements<'_>| operand.stride.is_empty() && !shape.is_empty();
    if shape.contains(&0) || !operands.iter().all(|operand| single(operand) || is_dense(shape, operand.stride, 1)) {
        return false;
    }
    let count = shape.iter().product::<i64>() as usize;
    let args = [1, 2, 3].map(|at: usize| operands[at.min(operands.len() - 1)].data.cast_const());
    let run = match (operands.len(), operands[1..].iter().position(single)) {
        (_, None) if opcode == Opcode::Copy && last.dtype == out.dtype => {
            // SAFETY: promised by the caller.
            unsafe { std::ptr::copy(args[0], out.data, count * out.dtype.size()) };
            return true;
        }
        (_, None) => primitives.elementwise(opcode, param, last.dtype, out.dtype),
        (2, Some(_)) if opcode == Opcode::Copy && last.dtype == out.dtype => {
            // SAFETY: promised by the caller.
            unsafe { primitives.fill(out.dtype.size())(count, out.data, args[0]) };
            return true;
        }
        (3, Some(at)) if !single(&operands[2 - at]) => {
            primitives.with_scalar(opcode, [Side::Left, Side::Right][at], last.dtype)
        }
        _ => None,
    };
    // SAFETY: promised by the caller.
    run.map(|run| unsafe { run(count, out.data, args[0], args[1], args[2]) }).is_some()
}

/// Do elements of this shape follow each other in C order, one step apart?
pub(super) fn is_dense(shape: &[i64], stride: &[i64], step: i64) -> bool {
    let mut step = step;
    shape.len() == stride.len()
        && shape.iter().zip(stride).rev().all(|(&extent, &stride)| {
            let follows = extent == 1 || stride == step;
            step *= extent;
            follows
        })
}

/// Runs an operation through copies of blocks where operands are not dense.
///
/// # Safety
/// As [`elementwise`].
pub(super) unsafe fn strided(primitives: Primitives, run: Option<PrimFn>, shape: &[i64], operands: &[Elements<'_>]) {
    let none = OperandMemory { data: std::ptr::null_mut(), size: 0, strides: [0; MAX_RANK] };
    let mut sides = [none; OPERANDS];
    for (side, operand) in sides.iter_mut().zip(operands) {
        (side.data, side.size) = (operand.data, operand.dtype.size());
    }
    let sides = &mut sides[..operands.len()];
    let (extents, rank) = merge_axes(shape, operands, sides);
    let row = Row { primitives, run, inner: rank - 1, elements: extents[rank - 1] as usize };
    let mut buffers = Buffers::new();
    let mut index = [0i64; MAX_RANK];
    loop {
        // SAFETY: promised by the caller for each element of the views.
        unsafe { row.run(sides, &mut buffers) };
        let mut dim = rank - 1;
        loop {
            let Some(outer) = dim.checked_sub(1) else { return };
            dim = outer;
            index[dim] += 1;
            let back = index[dim] == extents[dim];
            let steps = if back { 1 - extents[dim] } else { 1 };
            sides.iter_mut().for_each(|side| side.data = side.data.wrapping_offset(steps as isize * side.strides[dim]));
            if !back {
                break;
            }
            index[dim] = 0;
        }
    }
}

/// The extents of an operation's loops, at least one, and their number: axes without those of one element, and as one where
/// all operands go on from one to the next. Sets the strides of the operands along them.
fn merge_axes(shape: &[i64], operands: &[Elements<'_>], sides: &mut [OperandMemory]) -> ([i64; MAX_RANK], usize) {
    let (mut extents, mut rank) = ([1i64; MAX_RANK], 0);
    for (axis, &extent) in shape.iter().enumerate().filter(|(_, extent)| **extent != 1) {
        let stride =
            |at: usize, size: usize| operands[at].stride.get(axis).map_or(0, |&stride| stride as isize * size as isize);
        let merges =
            |(at, side): (usize, &OperandMemory)| side.strides[rank - 1] == stride(at, side.size) * extent as isize;
        if rank > 0 && sides.iter().enumerate().all(merges) {
            extents[rank - 1] *= extent;
        } else {
            extents[rank] = extent;
            rank += 1;
        }
        for (at, side) in sides.iter_mut().enumerate() {
            side.strides[rank - 1] = stride(at, side.size);
        }
    }
    if rank == 0 {
        rank = 1;
        sides.iter_mut().for_each(|side| side.strides[0] = side.size as isize);
    }
    (extents, rank)
}

/// The innermost loop of an operation.
struct Row {
    primitives: Primitives,
    /// What it does; a plain copy if there is nothing.
    run: Option<PrimFn>,
    /// Its dimension.
    inner: usize,
    elements: usize,
}

impl Row {
    /// # Safety
    /// All operands must be valid for the row's elements.
    unsafe fn run(&self, sides: &[OperandMemory], buffers: &mut Buffers) {
        let is_dense = |side: &OperandMemory| side.strides[self.inner] == side.size as isize;
        let whole = sides.iter().all(is_dense);
        let block = if whole { self.elements } else { BLOCK };
        for first in (0..self.elements).step_by(block) {
            let count = block.min(self.elements - first);
            let mut places = [std::ptr::null_mut(); OPERANDS];
            for (at, side) in sides.iter().enumerate() {
                let stride = side.strides[self.inner];
                let position = side.data.wrapping_offset(first as isize * stride);
                places[at] = if is_dense(side) { position } else { buffers.0[at].as_mut_ptr().cast() };
                // What stays the same along the row is still there.
                if at > 0 && !is_dense(side) && (first == 0 || stride != 0) {
                    // SAFETY: promised by the caller; a buffer has room for a block of the largest type.
                    unsafe { self.primitives.gather_strided(side.size)(count, places[at], position, stride) };
                }
            }
            let (out, last) = (&sides[0], sides.len() - 1);
            let args = [1, 2, 3].map(|at: usize| places[at.min(last)]);
            // SAFETY: as above.
            unsafe {
                match self.run {
                    Some(run) => run(count, places[0], args[0], args[1], args[2]),
                    None => std::ptr::copy(args[0], places[0], count * out.size),
                }
                if !is_dense(out) {
                    let stride = out.strides[self.inner];
                    let position = out.data.wrapping_offset(first as isize * stride);
                    self.primitives.scatter_strided(out.size)(count, position, places[0], stride);
                }
            }
        }
    }
}
