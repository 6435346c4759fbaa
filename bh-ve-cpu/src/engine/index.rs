//! Operations with indices, and running folds, by the calling thread: one element after the other in C order, as batches do it.

use super::elementwise::Elements;
use crate::block::{BadIndex, offset, resolve};
use bh_bytecode::scalar::Arithmetic;
use bh_bytecode::walk::{Loop, Walk};
use bh_bytecode::{DType, MAX_RANK, Opcode, with_dtype};
use bh_core::Result;

/// Goes through the elements of a shape in C order, with where those of the operands lie, until one is refused. Says whether
/// none was.
fn each<const N: usize>(
    shape: &[i64],
    operands: [&Elements<'_>; N],
    element: impl FnMut([*mut u8; N]) -> bool,
) -> bool {
    let axis = |(axis, &extent): (usize, &i64)| Loop { extent, steps: operands.map(|operand| operand.step(axis)) };
    Walk::merged(shape.iter().enumerate().map(axis)).all(operands.map(|operand| operand.data), element)
}

/// Elements that are chosen by their numbers in C order.
struct Chosen<'a> {
    of: &'a Elements<'a>,
    shape: &'a [i64],
    len: i64,
    signed: bool,
}

impl<'a> Chosen<'a> {
    fn new(of: &'a Elements<'a>, shape: &'a [i64], index: &Elements<'_>) -> Chosen<'a> {
        Chosen { of, shape, len: shape.iter().product(), signed: index.dtype == DType::I64 }
    }

    /// The address of the element that the index at an address chooses; an error if there is none.
    ///
    /// # Safety
    /// `index` must be the address of a 64-bit integer.
    unsafe fn at(&self, index: *mut u8) -> std::result::Result<*mut u8, BadIndex> {
        // SAFETY: there is an index at the address.
        let number = resolve(unsafe { index.cast::<i64>().read_unaligned() }, self.signed, self.len)?;
        let steps = offset(self.shape, self.of.stride, number);
        Ok(self.of.data.wrapping_offset(steps as isize * self.of.dtype.size() as isize))
    }

    /// Fails with the first of the indices that chooses none; those with a mask that is false do not count.
    ///
    /// # Safety
    /// `index` and `mask` must hold the elements of `shape`: 64-bit integers, and truth values.
    unsafe fn check(&self, shape: &[i64], index: &Elements<'_>, mask: &Elements<'_>) -> Result<()> {
        let mut bad = None;
        each(shape, [index, mask], |[index, mask]| {
            // SAFETY: the walk goes over the elements of `shape`, which both operands hold, as `# Safety` asks.
            bad = unsafe { if *mask == 0 { None } else { self.at(index).err() } };
            bad.is_none()
        });
        bad.map_or(Ok(()), |bad| Err(bad.error(self.len)))
    }
}

/// `out[i]` becomes the element of the source that `index[i]` chooses. Fails, and nothing has happened, if there is none.
///
/// # Safety
/// The operands must hold the elements of their shapes, and the output must lie apart from the others.
pub(super) unsafe fn gather(shape: &[i64], source_shape: &[i64], operands: &[Elements<'_>]) -> Result<bool> {
    let [out, source, index] = operands else { return Ok(false) };
    let chosen = Chosen::new(source, source_shape, index);
    let size = out.dtype.size();
    // SAFETY: the walk goes over the output and the indices; chosen addresses are those of elements of the source.
    unsafe {
        chosen.check(shape, index, &always(&1))?;
        Ok(each(shape, [out, index], |[out, index]| {
            let found = chosen.at(index);
            found.inspect(|from| std::ptr::copy_nonoverlapping(*from, out, size)).is_ok()
        }))
    }
}

/// The element of the output that `index[i]` chooses becomes `value[i]`, or the sum of both, where the mask is true. Fails, and
/// nothing has happened, if there is no such element. `shape`: of the indices.
///
/// # Safety
/// As [`gather`].
pub(super) unsafe fn scatter(
    opcode: Opcode,
    shape: &[i64],
    out_shape: &[i64],
    operands: &[Elements<'_>],
) -> Result<bool> {
    let ([out, value, index], mask) = (&operands[..3], operands.get(3)) else { return Ok(false) };
    let every = always(&1);
    let mask = mask.unwrap_or(&every);
    let chosen = Chosen::new(out, out_shape, index);
    let size = out.dtype.size();
    let adds = opcode == Opcode::ScatterAdd;
    // SAFETY: the walk goes over values, indices and masks; chosen addresses are those of elements of `out`, which has their type.
    unsafe {
        chosen.check(shape, index, mask)?;
        Ok(each(shape, [value, index, mask], |[value, index, mask]| {
            if *mask == 0 {
                return true;
            }
            let Ok(to) = chosen.at(index) else { return false };
            if adds {
                add(out.dtype, to, value);
            } else {
                std::ptr::copy_nonoverlapping(value, to, size);
            }
            true
        }))
    }
}

/// A mask that is true everywhere.
fn always(yes: &u8) -> Elements<'static> {
    Elements { data: std::ptr::from_ref(yes).cast_mut(), dtype: DType::Bool, stride: &[] }
}

/// # Safety
/// `to` must be valid for reading and writing an element of the type, and `value` for reading one, wherever they lie.
unsafe fn add(dtype: DType, to: *mut u8, value: *const u8) {
    // SAFETY: both addresses are those of elements of this type.
    with_dtype!(dtype, T => unsafe {
        let sum = Arithmetic::add(to.cast::<T>().read_unaligned(), value.cast::<T>().read_unaligned());
        to.cast::<T>().write_unaligned(sum);
    });
}

/// Writes the running sums or products along an axis. False, and nothing has happened, for another operation.
///
/// # Safety
/// The operands must hold the elements of the shape, and be identical or apart.
pub(super) unsafe fn accumulate(opcode: Opcode, axis: usize, shape: &[i64], operands: &[Elements<'_>]) -> bool {
    let [out, input] = operands else { return false };
    if axis >= shape.len() || shape.contains(&0) {
        return false;
    }
    let mut starts = [1i64; MAX_RANK];
    starts[..shape.len()].copy_from_slice(shape);
    starts[axis] = 1;
    // SAFETY: the walk goes over the beginnings of lines, and steps stay inside each.
    with_dtype!(out.dtype, T => unsafe {
        let (first, combine): (T, fn(T, T) -> T) = match opcode {
            Opcode::AddAccumulate => (Arithmetic::ZERO, Arithmetic::add),
            Opcode::MultiplyAccumulate => (Arithmetic::ONE, Arithmetic::multiply),
            _ => return false,
        };
        let steps = (out.step(axis), input.step(axis));
        each(&starts[..shape.len()], [out, input], |[mut to, mut from]| {
            let mut running = first;
            for _ in 0..shape[axis] {
                running = combine(running, from.cast::<T>().read_unaligned());
                to.cast::<T>().write_unaligned(running);
                (to, from) = (to.wrapping_offset(steps.0), from.wrapping_offset(steps.1));
            }
            true
        })
    })
}
