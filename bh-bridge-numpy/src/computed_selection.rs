//! Selection of computed data by masks of an array's shape, and by indices of vectors, without an operation. `None` is for
//! keys that have to be recorded, errors among them.

use crate::array::{Array, derive};
use crate::error::value_error;
use crate::operand::{Operand, classify};
use crate::shared_view::contiguous;
use crate::strided::{Plain, Strided, copy_elements, hand_for, hand_for_some, is_plain, rows, sized};
use bh_bytecode::{DType, Truth, View};
use bh_recorder::Hand;
use pyo3::prelude::*;

/// Elements that are passed over together if a mask chooses none of them.
const GROUP: usize = 16;

fn count_true(mask: Strided<'_>) -> i64 {
    let one = |truth: &Truth| u8::from(truth.get());
    // As many truth values as add up within a byte.
    let count = |part: &[Truth]| part.iter().map(one).fold(0, u8::wrapping_add);
    match mask.slice::<Truth>() {
        Some(all) => all.chunks(u8::MAX.into()).map(|part| i64::from(count(part))).sum(),
        // SAFETY: they are addresses of truth values.
        None => mask.addresses::<Truth>().map(|at| i64::from(one(unsafe { &*at }))).sum(),
    }
}

/// The number of true elements of a mask.
pub fn count(mask: &Array) -> Option<i64> {
    let hand = is_plain(mask).then(|| hand_for([mask].into_iter()))??;
    // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
    unsafe { Strided::of(&hand, mask) }.map(count_true)
}

/// Copies chosen elements to `to`, which has room for `room` of them. Other threads may change a mask that they share after its
/// true elements were counted.
fn compress_into<T: Plain>(from: Strided<'_>, mask: Strided<'_>, to: *mut u8, room: usize) {
    if room == 0 {
        return;
    }
    let mut next = to.cast::<T>();
    let mut put = |at: *const T| {
        // SAFETY: no more than `room` elements are put, and each lies in its array.
        unsafe {
            next.write_unaligned(at.read_unaligned());
            next = next.add(1);
        }
    };
    match (from.slice::<T>(), mask.slice::<Truth>()) {
        (Some(from), Some(mask)) => {
            let end = next.wrapping_add(room);
            for (from, mask) in from.chunks(GROUP).zip(mask.chunks(GROUP)) {
                if !mask.iter().fold(false, |any, chosen| any | chosen.get()) {
                    continue;
                }
                for (at, chosen) in from.iter().zip(mask) {
                    // An element that is not chosen gives its place to the next one: no branch depends on the mask.
                    // SAFETY: there is room for the element before the end.
                    unsafe { next.write_unaligned(*at) };
                    next = next.wrapping_add(usize::from(chosen.get()));
                    if next == end {
                        return;
                    }
                }
            }
        }
        _ => {
            // SAFETY: it is the address of a truth value.
            let chosen = |(_, chosen): &(*const T, *const Truth)| unsafe { **chosen }.get();
            from.addresses().zip(mask.addresses::<Truth>()).filter(chosen).take(room).for_each(|(at, _)| put(at));
        }
    }
}

/// Access to an array of which a mask chooses elements, and the number of true elements.
fn hand_for_chosen(array: &Array, mask: &Array) -> Option<(Hand<'static>, i64)> {
    let true_in = |hand: &Hand<'_>| {
        // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
        unsafe { Strided::of(hand, mask) }.map(count_true)
    };
    let hand = hand_for([mask].into_iter())?;
    let count = true_in(&hand)?;
    if hand.data(array.store(), array.view.start()).is_some() {
        return Some((hand, count));
    }
    drop(hand);
    let hand = hand_for_some([(mask, mask.len()), (array, count)].into_iter())?;
    // Another thread may have changed a mask that it shares.
    let count = true_in(&hand)?;
    Some((hand, count))
}

/// Copies of the elements that a mask of the array's shape chooses.
pub fn compressed(array: &Array, mask: &Array) -> Option<Array> {
    if !is_plain(array) || !is_plain(mask) {
        return None;
    }
    let (mut hand, count) = hand_for_chosen(array, mask)?;
    // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
    let (from, mask) = (unsafe { Strided::of(&hand, array) }?, unsafe { Strided::of(&hand, mask) }?);
    let view = contiguous(&[count]).ok()?;
    let (id, to) = hand.make_moved(array.dtype, view.shape())?;
    sized!(array.dtype, compress_into(from, mask, to, count as usize));
    Some(Array::new(array.context, id, array.dtype, view))
}

/// The places of true elements in each dimension, as views of one array that has those of an element side by side, as NumPy's are.
pub fn places_in_all<'py>(py: Python<'py>, mask: &Array) -> PyResult<Option<Vec<Bound<'py, Array>>>> {
    let rank = mask.view.rank();
    let Some(whole) = all_places(mask) else { return Ok(None) };
    let whole = Bound::new(py, whole)?;
    let count = whole.get().view.shape()[0];
    let column = |axis: usize| {
        let view = View::new(axis as i64, &[count], &[rank as i64]).map_err(value_error)?;
        Bound::new(py, derive(&whole, view)?)
    };
    (0..rank).map(column).collect::<PyResult<Vec<_>>>().map(Some)
}

/// The places of true elements, a row for each. `None` where that has to be recorded.
fn all_places(mask: &Array) -> Option<Array> {
    let (shape, rank) = (mask.view.shape(), mask.view.rank());
    if !is_plain(mask) || rank < 2 || mask.view.is_empty() {
        return None;
    }
    let mut hand = hand_for([mask].into_iter())?;
    // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
    let from = unsafe { Strided::of(&hand, mask) }?;
    let count = count_true(from);
    let view = contiguous(&[count, rank as i64]).ok()?;
    let (id, to) = hand.make_moved(DType::I64, view.shape())?;
    let mut next = to.cast::<i64>();
    // SAFETY: it is the address of a truth value.
    let chosen = |(_, at): &(usize, *const Truth)| unsafe { **at }.get();
    // Other threads may change a mask that they share after its true elements were counted.
    for (place, _) in from.addresses::<Truth>().enumerate().filter(chosen).take(count as usize) {
        let mut rest = place as i64;
        for axis in (0..rank).rev() {
            // SAFETY: there is room for the places of `count` elements, a row for each.
            unsafe { next.add(axis).write(rest % shape[axis]) };
            rest /= shape[axis];
        }
        next = next.wrapping_add(rank);
    }
    Some(Array::new(mask.context, id, DType::I64, view))
}

/// The places of true elements of a vector.
pub fn places(mask: &Array) -> Option<Array> {
    let mut hand = (is_plain(mask) && mask.view.rank() == 1).then(|| hand_for([mask].into_iter()))??;
    // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
    let from = unsafe { Strided::of(&hand, mask) }?;
    let count = count_true(from);
    let view = contiguous(&[count]).ok()?;
    let (id, to) = hand.make_moved(DType::I64, view.shape())?;
    let mut next = to.cast::<i64>();
    let mut put = |place: usize| {
        // SAFETY: no more than `count` places are put, for which there is room.
        unsafe {
            *next = place as i64;
            next = next.add(1);
        }
    };
    // Other threads may change a mask that they share after its true elements were counted.
    let room = count as usize;
    match from.slice::<Truth>() {
        Some(all) => all.iter().enumerate().filter(|(_, truth)| truth.get()).take(room).for_each(|(at, _)| put(at)),
        None => {
            // SAFETY: it is the address of a truth value.
            let chosen = |(_, at): &(usize, *const Truth)| unsafe { **at }.get();
            from.addresses::<Truth>().enumerate().filter(chosen).take(room).for_each(|(place, _)| put(place));
        }
    }
    Some(Array::new(mask.context, id, DType::I64, view))
}

/// Does `holds` hold for the elements of an array of whole numbers, in order up to the first for which it does not? `None` for
/// types that indices seldom have.
pub fn all_numbers(from: Strided<'_>, dtype: DType, mut holds: impl FnMut(i64) -> bool) -> Option<bool> {
    macro_rules! all {
        ($type:ty) => {
            Some(match from.slice::<$type>() {
                Some(all) => all.iter().all(|&number| holds(number.into())),
                None => from.addresses::<$type>().all(|at| {
                    // SAFETY: they are addresses of elements of this type.
                    holds(unsafe { i64::from(at.read_unaligned()) })
                }),
            })
        };
    }
    match dtype {
        DType::I8 => all!(i8),
        DType::I16 => all!(i16),
        DType::I32 => all!(i32),
        DType::I64 => all!(i64),
        DType::U8 => all!(u8),
        DType::U16 => all!(u16),
        DType::U32 => all!(u32),
        _ => None,
    }
}

/// The first index of an index array that an array has no place for, if both are computed, and the array's extent.
pub fn out_of_bounds(array: &Array, key: &Array) -> Option<(i64, i64)> {
    let (&extent, hand) = (array.view.shape().first()?, key.context.recorder.hand().filter(|_| is_plain(key))?);
    // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
    let (from, mut bad) = (unsafe { Strided::of(&hand, key) }?, None);
    all_numbers(from, key.dtype, |index| {
        bad = (!(-extent..extent).contains(&index)).then_some(index);
        bad.is_none()
    });
    bad.map(|index| (index, extent))
}

/// Copies the elements of a vector that whole numbers choose, which lie side by side. False if one of them is out of bounds.
fn gather_directly<T: Copy>(from: Strided<'_>, chosen: &[i64], to: *mut u8) -> bool {
    let (extent, step) = (from.view().shape()[0], from.view().stride()[0] as isize);
    if !chosen.iter().all(|index| (-extent..extent).contains(index)) {
        return false;
    }
    for (place, &given) in chosen.iter().enumerate() {
        let index = if given < 0 { given + extent } else { given };
        let at = from.data().cast::<T>().wrapping_offset(index as isize * step);
        // SAFETY: the element lies in the array, and there is room for as many as are chosen.
        unsafe { to.cast::<T>().add(place).write_unaligned(at.read_unaligned()) };
    }
    true
}

/// Copies of the elements of a vector that 64-bit indices choose, which lie side by side. `None` for other arrays.
pub fn directly(array: &Array, key: &Array) -> Option<Array> {
    let fits = is_plain(array) && is_plain(key) && std::ptr::eq(array.context, key.context);
    if !fits || key.dtype != DType::I64 || array.view.rank() != 1 || key.view.rank() != 1 || key.view.is_empty() {
        return None;
    }
    if key.len() as u64 * array.dtype.size() as u64 > array.context.little {
        return None;
    }
    let mut hand = hand_for_some([(array, key.len()), (key, key.len())].into_iter())?;
    // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
    let (from, chosen) = (unsafe { Strided::of(&hand, array) }?, unsafe { Strided::of(&hand, key) }?);
    let chosen = chosen.slice::<i64>()?;
    let view = contiguous(&[chosen.len() as i64]).ok()?;
    let (id, to) = hand.make(array.dtype, view.shape(), &[])?;
    let gathered = sized!(array.dtype, gather_directly(from, chosen, to));
    drop(hand);
    let made = Array::new(array.context, id, array.dtype, view);
    gathered.then_some(made)
}

/// Assigns a number, or a vector of as many elements, to the elements of a vector that 64-bit indices choose, which lie side by side: of
/// elements that are chosen several times, the last value stays. `None` for other arrays.
pub fn set_directly(array: &Array, key: &Array, value: &Bound<'_, PyAny>) -> Option<()> {
    let fits = is_plain(array) && is_plain(key) && std::ptr::eq(array.context, key.context);
    if !fits || key.dtype != DType::I64 || array.view.rank() != 1 || key.view.rank() != 1 || key.view.is_empty() {
        return None;
    }
    if !array.view.is_injective() || key.len() as u64 * array.dtype.size() as u64 > array.context.little {
        return None;
    }
    let value = classify(value)?.1;
    let (number, values) = match &value {
        Operand::Number(number) => (Some(number.assigned(array.dtype)?), None),
        Operand::Array(values) => (None, Some(*values)),
    };
    if let Some(values) = values {
        let same = values.dtype == array.dtype && std::ptr::eq(values.context, array.context) && is_plain(values);
        if !same || values.view.shape() != key.view.shape() {
            return None;
        }
    }
    let used = [Some(array), Some(key), values];
    let mut hand = hand_for_some(used.into_iter().flatten().map(|one| (one, key.len())))?;
    for other in [Some(key), values].into_iter().flatten() {
        hand.are_apart(array.store(), other.store()).filter(|apart| *apart)?;
    }
    // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
    let chosen = unsafe { Strided::of(&hand, key) }?;
    let (chosen, extent) = (chosen.slice::<i64>()?, array.view.shape()[0]);
    if !chosen.iter().all(|index| (-extent..extent).contains(index)) {
        return None;
    }
    let from = match (values, &number) {
        (Some(values), _) => (hand.data(values.store(), values.view.start())?, values.view.stride()[0] as isize),
        (None, number) => (number.as_ref()?.bits.as_ptr().cast(), 0),
    };
    let to = hand.change(array.store(), array.view.start(), &[])?;
    // SAFETY: they stay there while the hand is held, and are no part of the indices and values, which lie elsewhere.
    let to = unsafe { Strided::at(to, &array.view, array.dtype.size()) };
    sized!(array.dtype, fill_directly(to, chosen, from));
    Some(())
}

/// Overwrites the elements of a vector that whole numbers choose, all of which it has, by values of which the first one and the step to
/// the next one are given.
fn fill_directly<T: Copy>(to: Strided<'_>, chosen: &[i64], (from, by): (*const u8, isize)) {
    let (extent, step) = (to.view().shape()[0], to.view().stride()[0] as isize);
    for (place, &given) in chosen.iter().enumerate() {
        let index = if given < 0 { given + extent } else { given };
        let at = to.data().cast::<T>().wrapping_offset(index as isize * step).cast_mut();
        let from = from.cast::<T>().wrapping_offset(place as isize * by);
        // SAFETY: the element lies in the array, and the value in its own, which has one for each index, or is a number.
        unsafe { at.write_unaligned(from.read_unaligned()) };
    }
}

fn scatter_into<T: Copy>(to: Strided<'_>, mask: Strided<'_>, values: impl Iterator<Item = *const T>) {
    let put = |(to, from): (*const T, *const T)| {
        // SAFETY: both lie in their arrays.
        unsafe { to.cast_mut().write_unaligned(from.read_unaligned()) };
    };
    if let (true, Some(mask)) = (to.view().is_contiguous(), mask.slice::<Truth>()) {
        let first = to.data().cast::<T>();
        let chosen = mask.iter().enumerate().filter(|(_, at)| at.get());
        return chosen.map(|(place, _)| first.wrapping_add(place)).zip(values).for_each(put);
    }
    // SAFETY: it is the address of a truth value.
    let chosen = |(_, at): &(*const T, *const Truth)| unsafe { **at }.get();
    let all = to.addresses::<T>().zip(mask.addresses::<Truth>()).filter(chosen);
    all.map(|(to, _)| to).zip(values).for_each(put);
}

fn scatter_strided<T: Copy>(to: Strided<'_>, mask: Strided<'_>, values: Strided<'_>) {
    scatter_into::<T>(to, mask, values.addresses());
}

fn scatter_number<T: Copy>(to: Strided<'_>, mask: Strided<'_>, value: *const u8) {
    if let (true, Some(mask)) = (to.view().is_contiguous(), mask.slice::<Truth>()) {
        let first = to.data().cast::<T>().cast_mut();
        // SAFETY: the number has as many bytes as an element.
        let value = unsafe { value.cast::<T>().read_unaligned() };
        for (place, chosen) in mask.iter().enumerate() {
            let at = first.wrapping_add(place);
            // SAFETY: the address is that of an element of the array. The others keep their values: no branch depends on the mask.
            unsafe { at.write_unaligned(if chosen.get() { value } else { at.read_unaligned() }) };
        }
        return;
    }
    scatter_into::<T>(to, mask, std::iter::repeat(value.cast()));
}

/// Is it a little array, or a part of one, whose elements are used in the order of its memory?
fn is_in_order(array: &Array) -> bool {
    array.here().is_some() && array.view.is_contiguous()
}

/// Assigns a number, or the elements of a vector, to the elements that a mask of the array's shape chooses.
pub fn set(array: &Array, mask: &Array, value: &Bound<'_, PyAny>) -> Option<()> {
    let (_, value) = classify(value)?;
    let same = |other: &Array| std::ptr::eq(array.context, other.context) && is_plain(other);
    if mask.dtype != DType::Bool || mask.view.shape() != array.view.shape() || !same(array) || !same(mask) {
        return None;
    }
    let (mut hand, values, inputs);
    match &value {
        Operand::Number(number) => {
            // It is chosen element by element.
            inputs = if is_in_order(array) && is_in_order(mask) { Vec::new() } else { vec![mask.id(), array.id()] };
            values = Err(number.assigned(array.dtype)?);
            hand = hand_for_chosen(array, mask)?.0;
        }
        Operand::Array(vector) => {
            let &[given] = vector.view.shape() else { return None };
            if vector.dtype != array.dtype || !same(vector) {
                return None;
            }
            inputs = Vec::new();
            hand = hand_for_some([(mask, mask.len()), (array, given), (*vector, given)].into_iter())?;
            // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
            let count = count_true(unsafe { Strided::of(&hand, mask) }?);
            if count != given {
                return None;
            }
            hand.are_apart(array.store(), vector.store()).filter(|apart| *apart)?;
            // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
            values = Ok(unsafe { Strided::of(&hand, vector) }?);
        }
    }
    // The masked array may share the mask's memory.
    hand.are_apart(array.store(), mask.store()).filter(|apart| *apart)?;
    // SAFETY: as above.
    let mask = unsafe { Strided::of(&hand, mask) }?;
    let to = hand.change(array.store(), array.view.start(), &inputs)?;
    // SAFETY: they stay there while the hand is held, and are no part of the mask and the values, which lie elsewhere.
    let to = unsafe { Strided::at(to, &array.view, array.dtype.size()) };
    match values {
        Ok(values) => sized!(array.dtype, scatter_strided(to, mask, values)),
        Err(number) => sized!(array.dtype, scatter_number(to, mask, number.bits.as_ptr().cast())),
    }
    Some(())
}

fn fill_into<T: Copy>(to: *mut u8, view: &View, value: *const u8) {
    // SAFETY: the number has as many bytes as an element.
    let value = unsafe { value.cast::<T>().read_unaligned() };
    // SAFETY: the view lies in its array.
    let to = unsafe { Strided::at(to, view, size_of::<T>()) };
    rows::<T>(to, to, |(to, step), _, count| {
        let to = to.cast_mut();
        // SAFETY: the view lies in its array.
        (0..count as isize).for_each(|place| unsafe { to.wrapping_offset(place * step).write_unaligned(value) });
    });
}

fn copy_into<T: Copy>(to: *mut u8, view: &View, from: Strided<'_>) {
    // SAFETY: both lie in their arrays, which are different ones.
    unsafe { copy_elements::<T>(Strided::at(to, view, size_of::<T>()), from) };
}

/// Assigns a number, or an array of the same shape, to a part of an array, a view of its memory.
pub fn assign(array: &Array, view: &View, value: &Bound<'_, PyAny>) -> Option<()> {
    let (_, value) = classify(value)?;
    let mut hand = array.context.recorder.hand().filter(|_| is_plain(array))?;
    let values = match &value {
        Operand::Number(number) => Err(number.assigned(array.dtype)?),
        Operand::Array(values) => {
            let same = values.dtype == array.dtype && std::ptr::eq(values.context, array.context);
            let fits = same && is_plain(values) && values.view.shape() == view.shape();
            // Elements that lie in another order tell later folds theirs.
            let plain = fits
                && hand.are_apart(array.store(), values.store())?
                && hand.is_in_c_order(values.store(), &values.view)?;
            // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
            Ok(plain.then(|| unsafe { Strided::of(&hand, values) })??)
        }
    };
    let to = hand.change(array.store(), view.start(), &[])?;
    match values {
        Ok(values) => sized!(array.dtype, copy_into(to, view, values)),
        Err(number) => sized!(array.dtype, fill_into(to, view, number.bits.as_ptr().cast())),
    }
    Some(())
}
