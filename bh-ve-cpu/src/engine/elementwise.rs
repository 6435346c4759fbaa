//! An elementwise operation on operands in memory, by the calling thread, through the primitives that planned blocks are made of.

use crate::primitives::{PrimFn, Primitives, Side};
use bh_bytecode::walk::{Loop, Walk};
use bh_bytecode::{DType, Opcode};
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

impl Elements<'_> {
    /// Bytes from one element to the next along an axis of the output.
    pub(super) fn step(&self, axis: usize) -> isize {
        self.stride.get(axis).map_or(0, |&stride| stride as isize * self.dtype.size() as isize)
    }
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
    // SAFETY: the operands hold the elements of the shape, of the types that the primitive was found by.
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
            // SAFETY: both hold `count` elements without gaps.
            unsafe { std::ptr::copy(args[0], out.data, count * out.dtype.size()) };
            return true;
        }
        (_, None) => primitives.elementwise(opcode, param, last.dtype, out.dtype),
        (2, Some(_)) if opcode == Opcode::Copy && last.dtype == out.dtype => {
            // SAFETY: the output holds `count` elements without gaps, and the input one.
            unsafe { primitives.fill(out.dtype.size())(count, out.data, args[0]) };
            return true;
        }
        (3, Some(at)) if !single(&operands[2 - at]) => {
            primitives.with_scalar(opcode, [Side::Left, Side::Right][at], last.dtype)
        }
        _ => None,
    };
    // SAFETY: all operands hold `count` elements without gaps, but the single one.
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
    let (mut data, mut sizes) = ([std::ptr::null_mut(); OPERANDS], [0; OPERANDS]);
    for (at, operand) in operands.iter().enumerate() {
        (data[at], sizes[at]) = (operand.data, operand.dtype.size());
    }
    let axis = |(axis, &extent): (usize, &i64)| {
        let step = |at: usize| operands.get(at).map_or(0, |operand| operand.step(axis));
        Loop { extent, steps: [0, 1, 2, 3].map(step) }
    };
    let mut walk = Walk::merged(shape.iter().enumerate().map(axis));
    let inner = walk.pop().unwrap_or(Loop { extent: 1, steps: sizes.map(|size| size as isize) });
    let row = Row { primitives, run, inner, sizes: &sizes[..operands.len()] };
    let mut buffers = Buffers::new();
    // SAFETY: the walk reaches elements of the operands only.
    walk.each(data, |at| unsafe { row.run(at, &mut buffers) });
}

/// The innermost loop of an operation.
struct Row<'a> {
    primitives: Primitives,
    /// The primitive that runs; a plain copy if there is none.
    run: Option<PrimFn>,
    inner: Loop<OPERANDS>,
    /// Bytes of an element of each operand.
    sizes: &'a [usize],
}

impl Row<'_> {
    /// # Safety
    /// All operands must be valid for the row's elements.
    unsafe fn run(&self, data: [*mut u8; OPERANDS], buffers: &mut Buffers) {
        let Loop { extent, steps } = self.inner;
        let (elements, sizes) = (extent as usize, self.sizes);
        let is_dense = |at: usize| steps[at] == sizes[at] as isize;
        let block = if (0..sizes.len()).all(is_dense) { elements } else { BLOCK };
        for first in (0..elements).step_by(block) {
            let count = block.min(elements - first);
            let mut places = [std::ptr::null_mut(); OPERANDS];
            let position = |at: usize| data[at].wrapping_offset(first as isize * steps[at]);
            for (at, &size) in sizes.iter().enumerate() {
                places[at] = if is_dense(at) { position(at) } else { buffers.0[at].as_mut_ptr().cast() };
                // An operand that stays the same along the row is still in its buffer.
                if at > 0 && !is_dense(at) && (first == 0 || steps[at] != 0) {
                    // SAFETY: the row's elements are there; a buffer has room for a block of the largest type.
                    unsafe { self.primitives.gather_strided(size)(count, places[at], position(at), steps[at]) };
                }
            }
            let args = [1, 2, 3].map(|at: usize| places[at.min(sizes.len() - 1)]);
            // SAFETY: each place has `count` elements of the primitive's types: in the row, or in a buffer, which has
            // room for a block.
            unsafe {
                match self.run {
                    Some(run) => run(count, places[0], args[0], args[1], args[2]),
                    None => std::ptr::copy(args[0], places[0], count * sizes[0]),
                }
                if !is_dense(0) {
                    self.primitives.scatter_strided(sizes[0])(count, position(0), places[0], steps[0]);
                }
            }
        }
    }
}
