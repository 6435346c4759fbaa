//! Elements of views in C order, from the memory that the stack maps.

use crate::stack::backend::Backend;
use bh_bytecode::{BatchRef, Constant, Element, MAX_RANK, View, with_dtype};
use bh_core::abi::access;

/// Calls `each` with the offset and the value of every element of a view in C order; does not if the stack has no data for it.
pub(super) fn visit<T: Element>(
    backend: &mut dyn Backend,
    batch: &BatchRef<'_>,
    view: u32,
    mut each: impl FnMut(i64, T),
) -> Option<()> {
    let base = batch.base_of(view)?;
    let window = batch.view(view);
    if window.is_empty() {
        return Some(());
    }
    let data = backend.map(base, Some(&window), access::READ).ok()?;
    let size = size_of::<T>();
    offsets(&window, |offset| {
        let place = data.wrapping_offset(offset as isize * size as isize);
        // SAFETY: the batch's views lie inside their bases, and a mapped base holds all elements of the view.
        each(offset, T::read(unsafe { std::slice::from_raw_parts(place, size) }));
    });
    backend.unmap(base).ok()
}

/// The element of a view at a position in C order, if the stack has data for it.
pub(super) fn element(backend: &mut dyn Backend, batch: &BatchRef<'_>, view: u32, position: usize) -> Option<Constant> {
    let (base, window) = (batch.base_of(view)?, batch.view(view));
    let (mut rest, mut offset) = (position as i64, window.start());
    for (&extent, &stride) in window.shape().iter().zip(window.stride()).rev() {
        offset += rest % extent.max(1) * stride;
        rest /= extent.max(1);
    }
    let (dtype, size) = (base.dtype(), base.dtype().size());
    let data = backend.map(base, Some(&window), access::READ).ok()?;
    // SAFETY: the batch's views lie inside their bases, and a mapped base holds all elements of the view.
    let bytes = unsafe { std::slice::from_raw_parts(data.wrapping_offset(offset as isize * size as isize), size) };
    let value = Constant::from_bytes(dtype, bytes);
    backend.unmap(base).ok()?;
    Some(value)
}

/// The bytes of a view's elements in C order, if the stack has data for it.
pub(super) fn copied(backend: &mut dyn Backend, batch: &BatchRef<'_>, view: u32) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    with_dtype!(batch.base_of(view)?.dtype(), T => visit::<T>(backend, batch, view, |_, value| {
        let mut bytes = [0; 16];
        value.write(&mut bytes);
        all.extend_from_slice(&bytes[..size_of::<T>()]);
    }))?;
    Some(all)
}

/// Calls `each` with the offsets of a view's elements in C order; there is at least one.
fn offsets(view: &View, mut each: impl FnMut(i64)) {
    let (shape, stride) = (view.shape(), view.stride());
    let mut index = [0i64; MAX_RANK];
    let mut offset = view.start();
    loop {
        each(offset);
        let mut dim = shape.len();
        loop {
            let Some(next) = dim.checked_sub(1) else { return };
            dim = next;
            index[dim] += 1;
            offset += stride[dim];
            if index[dim] < shape[dim] {
                break;
            }
            offset -= shape[dim] * stride[dim];
            index[dim] = 0;
        }
    }
}

/// The index of the element at a position in C order, as users write it: "(1, 2)", "3", or "()" of a number.
pub(super) fn index_text(shape: &[i64], position: usize) -> String {
    let mut rest = position as i64;
    let mut index: Vec<String> = Vec::with_capacity(shape.len());
    for &extent in shape.iter().rev() {
        index.push((rest % extent.max(1)).to_string());
        rest /= extent.max(1);
    }
    index.reverse();
    match index.as_slice() {
        [only] => only.clone(),
        all => format!("({})", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(view: &View) -> Vec<i64> {
        let mut found = Vec::new();
        offsets(view, |offset| found.push(offset));
        found
    }

    #[test]
    fn offsets_come_in_c_order() {
        assert_eq!(all(&View::contiguous(&[2, 3]).unwrap()), [0, 1, 2, 3, 4, 5]);
        assert_eq!(all(&View::new(5, &[2, 2], &[-4, 1]).unwrap()), [5, 6, 1, 2]);
        assert_eq!(all(&View::new(7, &[], &[]).unwrap()), [7]);
        assert_eq!(all(&View::new(1, &[2, 2], &[0, 3]).unwrap()), [1, 4, 1, 4]);
    }

    #[test]
    fn indices_read_as_written() {
        assert_eq!(index_text(&[3, 4], 6), "(1, 2)");
        assert_eq!(index_text(&[9], 6), "6");
        assert_eq!(index_text(&[], 0), "()");
    }
}
