//! Advanced keys on data that has been computed: index arrays, lists and masks choose few elements without an operation, however
//! large the array is. `None` leaves a key to what records it, errors among it.

use crate::array::Array;
use crate::computed_selection::all_numbers;
use crate::context::Shared;
use crate::operand::{Number, Operand, classify, code};
use crate::shared_view::contiguous;
use crate::strided::{Strided, hand_for, hand_for_some, is_plain, sized};
use bh_bytecode::memory_order::MemoryOrder;
use bh_bytecode::scalar::Arithmetic;
use bh_bytecode::view::element_count;
use bh_bytecode::walk::{Loop, Walk};
use bh_bytecode::{Constant, DType, MAX_RANK, Truth, View, with_dtype};
use bh_recorder::{Hand, MOVED};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyTuple};

/// One part of a key.
enum Part<'py> {
    Whole(i64),
    List(Vec<i64>),
    Array(Bound<'py, Array>),
    Slice(Bound<'py, PySlice>),
    Ellipsis,
}

impl Part<'_> {
    /// How many dimensions of the indexed array it names.
    fn dims(&self) -> usize {
        match self {
            Part::Array(array) if array.get().dtype == DType::Bool => array.get().view.rank(),
            Part::Ellipsis => 0,
            _ => 1,
        }
    }

    fn array(&self) -> Option<&Array> {
        if let Part::Array(array) = self { Some(array.get()) } else { None }
    }

    fn is_index(&self) -> bool {
        !matches!(self, Part::Slice(_) | Part::Ellipsis)
    }

    /// At least how many elements it chooses of its dimensions.
    fn count(&self) -> i64 {
        match self {
            Part::List(list) => list.len() as i64,
            Part::Array(array) if array.get().dtype != DType::Bool => array.get().view.len(),
            _ => 1,
        }
    }
}

/// A whole number of Python or NumPy, or of an array without dimensions that has been computed.
pub fn whole(object: &Bound<'_, PyAny>) -> Option<i64> {
    if object.is_exact_instance_of::<PyInt>() {
        return object.extract().ok();
    }
    match classify(object)? {
        (code, Operand::Number(Number::Int(value))) if code < code::INT => i64::try_from(value).ok(),
        (_, Operand::Array(array)) if array.view.rank() == 0 && array.dtype.is_int() && is_plain(array) => {
            let value = hand_for([array].into_iter())?.value(array.store(), array.view.start())?;
            (array.dtype != DType::U64).then(|| value.to::<i64>())
        }
        _ => None,
    }
}

fn part<'py>(context: Shared, object: &Bound<'py, PyAny>) -> Option<Part<'py>> {
    if let Ok(array) = object.cast_exact::<Array>() {
        let index = array.get();
        let fits = index.dtype.is_int() || index.dtype == DType::Bool && index.view.rank() > 0;
        let fits = fits && is_plain(index) && std::ptr::eq(index.context, context);
        return fits.then(|| Part::Array(array.clone()));
    }
    if let Ok(slice) = object.cast_exact::<PySlice>() {
        return Some(Part::Slice(slice.clone()));
    }
    if object.is_exact_instance_of::<PyEllipsis>() {
        return Some(Part::Ellipsis);
    }
    if let Ok(list) = object.cast_exact::<PyList>() {
        let all = list.iter().map(|object| whole(&object)).collect::<Option<Vec<i64>>>();
        return all.map(Part::List).or_else(|| Some(Part::Array(mask_of(context, list)?)));
    }
    match whole(object) {
        Some(index) => Some(Part::Whole(index)),
        None => part(context, crate::foreign::copied(context, object)?.as_any()),
    }
}

/// The mask in a list of truth values of Python.
fn mask_of<'py>(context: Shared, list: &Bound<'py, PyList>) -> Option<Bound<'py, Array>> {
    let is_mask = list.iter().all(|object| object.is_exact_instance_of::<PyBool>());
    is_mask.then(|| crate::from_lists::numbers(context, list.as_any(), Some(DType::Bool)))?
}

/// A dimension: its extent, and the step from one element to the next.
type Axis = (i64, i64);

/// The indices of one part of a key: their shape, and where each leads to from the array's first element.
struct Indices {
    shape: Vec<i64>,
    places: Vec<i64>,
}

/// Where the elements of a view lie from its first one, in C order.
fn offsets(axes: impl Iterator<Item = Axis>) -> Vec<i64> {
    axes.fold(vec![0], |all, (extent, step)| {
        let mut next = Vec::with_capacity(all.len() * extent as usize);
        all.iter().for_each(|&first| next.extend((0..extent).map(|index| first + index * step)));
        next
    })
}

/// Reads the indices of a part of a key for dimensions of the array. `None` if one of them is out of bounds.
fn indices(hand: Option<&Hand<'_>>, part: &Part<'_>, axes: &[Axis]) -> Option<Indices> {
    let &[(extent, step), ..] = axes else { return None };
    let place = |given: i64| {
        let index = if given < 0 { given.saturating_add(extent) } else { given };
        (0..extent).contains(&index).then(|| index * step)
    };
    let array = match part {
        Part::Whole(index) => return Some(Indices { shape: Vec::new(), places: vec![place(*index)?] }),
        Part::List(list) => {
            let places = list.iter().map(|&index| place(index)).collect::<Option<Vec<i64>>>()?;
            return Some(Indices { shape: vec![places.len() as i64], places });
        }
        _ => part.array()?,
    };
    if array.view.is_empty() && array.dtype != DType::Bool {
        return Some(Indices { shape: array.view.shape().to_vec(), places: Vec::new() });
    }
    // SAFETY: the hand is held as long as they are used, and nothing is written meanwhile.
    let from = unsafe { Strided::of(hand?, array) }?;
    if array.dtype == DType::Bool {
        let fits = array.view.shape().iter().eq(axes.iter().map(|(extent, _)| extent));
        // SAFETY: they are addresses of truth values.
        let chosen = |(at, place): (*const Truth, i64)| unsafe { (*at).get() }.then_some(place);
        let places: Vec<i64> = match (fits, axes) {
            (false, _) => return None,
            (true, &[(extent, step)]) => {
                from.addresses().zip((0..extent).map(|index| index * step)).filter_map(chosen).collect()
            }
            (true, _) => from.addresses().zip(offsets(axes.iter().copied())).filter_map(chosen).collect(),
        };
        return Some(Indices { shape: vec![places.len() as i64], places });
    }
    let mut places = Vec::with_capacity(array.view.len() as usize);
    if let Some(all) = (array.dtype == DType::I64).then(|| from.slice::<i64>()).flatten() {
        let mut fits = true;
        places.extend(all.iter().map(|&given| {
            let index = if given < 0 { given + extent } else { given };
            fits &= (0..extent).contains(&index);
            index.wrapping_mul(step)
        }));
        return fits.then(|| Indices { shape: array.view.shape().to_vec(), places });
    }
    let all = all_numbers(from, array.dtype, |given| {
        let place = place(given);
        places.extend(place);
        place.is_some()
    });
    all?.then(|| Indices { shape: array.view.shape().to_vec(), places })
}

/// The shape that indices broadcast to, and the sums of where they lead to. `None` for more than `most` of them.
fn joined(mut all: Vec<Indices>, most: u64) -> Option<(Vec<i64>, Vec<i64>)> {
    let rank = all.iter().map(|indices| indices.shape.len()).max()?;
    let mut joint = vec![1; rank];
    for indices in &all {
        for (extent, &own) in joint.iter_mut().rev().zip(indices.shape.iter().rev()) {
            match (*extent, own) {
                (_, 1) => (),
                (1, _) => *extent = own,
                (extent, own) if extent == own => (),
                _ => return None,
            }
        }
    }
    let count = element_count(&joint).filter(|&count| count as u64 <= most)?;
    let whole = all.iter().position(|indices| indices.shape == joint);
    let mut places = whole.map_or_else(|| vec![0; count as usize], |whole| all.swap_remove(whole).places);
    for indices in all {
        if indices.shape == joint {
            places.iter_mut().zip(&indices.places).for_each(|(place, own)| *place += own);
            continue;
        }
        let stretched = contiguous(&indices.shape).ok()?.broadcast_to(&joint).ok()?;
        let own = offsets(axes_of(&stretched));
        places.iter_mut().zip(own).for_each(|(place, own)| *place += indices.places[own as usize]);
    }
    Some((joint, places))
}

fn axes_of(view: &View) -> impl Iterator<Item = Axis> {
    view.shape().iter().copied().zip(view.stride().iter().copied())
}

/// The elements of an array that an advanced key chooses.
#[derive(Default)]
struct Choice {
    /// The shape of the indices, and the places that they lead to, in C order.
    joint: Vec<i64>,
    places: Vec<i64>,
    /// The dimensions that slices leave: those before the dimensions of the indices, and those behind.
    before: Vec<Axis>,
    after: Vec<Axis>,
    /// Where the slices begin.
    start: i64,
}

impl Choice {
    /// `None` for keys without indices, and for those that choose more elements than are moved at once.
    fn of(array: &Array, key: &Bound<'_, PyAny>) -> Option<Choice> {
        if !is_plain(array) || array.view.is_empty() {
            return None;
        }
        let parts = match key.cast_exact::<PyTuple>() {
            Ok(tuple) if tuple.len() > MAX_RANK + 1 => return None,
            Ok(tuple) => tuple.iter().map(|object| part(array.context, &object)).collect::<Option<Vec<_>>>()?,
            Err(_) => vec![part(array.context, key)?],
        };
        let is_several = |part: &Part<'_>| match part {
            Part::List(_) => true,
            Part::Array(array) => array.get().view.rank() > 0,
            _ => false,
        };
        if !parts.iter().any(is_several) {
            return None;
        }
        // Of a long vector, an operation may be part of a chain.
        let is_of_vector = array.view.rank() == 1 && matches!(parts[..], [Part::Array(_)]);
        let times = if is_of_vector { 1 } else { MOVED };
        let most = times * array.context.little / array.dtype.size() as u64;
        let mut choice = Choice::default();
        let indexed = choice.cut(array, &parts)?;
        let longest = parts.iter().map(Part::count).max().unwrap_or(1);
        let kept = choice.kept();
        if kept == 0 || longest.saturating_mul(kept) as u64 > most || !choice.is_in_order() {
            return None;
        }
        let arrays = parts.iter().filter_map(Part::array).filter(|array| !array.view.is_empty());
        if kept == 1 && MemoryOrder::of(arrays.clone().filter(|a| a.dtype != DType::Bool).map(|a| &*a.view)).is_some() {
            // The result has the order of the indices.
            return None;
        }
        let hand = if arrays.clone().next().is_some() { Some(hand_for(arrays)?) } else { None };
        let all = indexed.iter().map(|(part, axes)| indices(hand.as_ref(), part, axes)).collect::<Option<Vec<_>>>()?;
        drop(hand);
        (choice.joint, choice.places) = joined(all, most / kept as u64)?;
        let rank = choice.joint.len() + choice.before.len() + choice.after.len();
        (rank <= MAX_RANK).then_some(choice)
    }

    /// Finds the dimensions that slices leave. Returns the indices with the dimensions that they are of.
    fn cut<'a, 'py>(&mut self, array: &Array, parts: &'a [Part<'py>]) -> Option<Vec<(&'a Part<'py>, Vec<Axis>)>> {
        let all: Vec<Axis> = axes_of(&array.view).collect();
        let rest = all.len().checked_sub(parts.iter().map(Part::dims).sum())?;
        let ellipses = parts.iter().filter(|part| matches!(part, Part::Ellipsis)).count();
        let (mut axes, mut indexed, mut runs, mut in_run) = (all.into_iter(), Vec::new(), 0, false);
        for part in parts {
            runs += usize::from(part.is_index() && !in_run);
            in_run = part.is_index();
            let kept = if runs == 0 { &mut self.before } else { &mut self.after };
            match part {
                Part::Slice(slice) => {
                    let (extent, step) = axes.next()?;
                    let bounds = slice.indices(extent as isize).ok()?;
                    self.start += bounds.start as i64 * step;
                    kept.push((bounds.slicelength as i64, step * bounds.step as i64));
                }
                Part::Ellipsis => kept.extend(axes.by_ref().take(rest)),
                _ => indexed.push((part, axes.by_ref().take(part.dims()).collect())),
            }
        }
        match ellipses {
            0 => self.after.extend(axes),
            1 => (),
            _ => return None,
        }
        // The dimensions of indices that are apart come first.
        if runs > 1 {
            self.before.append(&mut self.after);
            self.after = std::mem::take(&mut self.before);
        }
        Some(indexed)
    }

    /// How many elements each place has.
    fn kept(&self) -> i64 {
        self.axes().fold(1i64, |count, (extent, _)| count.saturating_mul(extent))
    }

    /// The dimensions that slices leave.
    fn axes(&self) -> impl Iterator<Item = Axis> + Clone {
        self.before.iter().chain(&self.after).copied()
    }

    /// Lie the dimensions that slices leave in memory as in C?
    fn is_in_order(&self) -> bool {
        let several = self.axes().filter(|(extent, _)| *extent != 1);
        several.map(|(_, step)| step.abs()).is_sorted_by(|outer, inner| outer >= inner)
    }

    /// The number of elements.
    fn count(&self) -> i64 {
        self.places.len() as i64 * self.kept()
    }

    /// The shape of what is chosen.
    fn shape(&self) -> Vec<i64> {
        let extents = |axes: &[Axis]| axes.iter().map(|(extent, _)| *extent).collect::<Vec<i64>>();
        [extents(&self.before), self.joint.clone(), extents(&self.after)].concat()
    }
}

/// Copies of the elements that an advanced key chooses. In memory, the dimensions of the indices come first.
pub fn get(array: &Array, key: &Bound<'_, PyAny>) -> Option<Array> {
    let choice = Choice::of(array, key)?;
    let lying: Vec<i64> = choice.joint.iter().copied().chain(choice.axes().map(|(extent, _)| extent)).collect();
    let lying = contiguous(&lying).ok()?;
    let mut hand = hand_for_some([(array, choice.count())].into_iter())?;
    let from = hand.data(array.store(), array.view.start() + choice.start)?;
    let (id, to) = hand.make_moved(array.dtype, lying.shape())?;
    sized!(array.dtype, gather_into(from, &choice, to));
    drop(hand);
    let made = Array::new(array.context, id, array.dtype, lying);
    if choice.before.is_empty() {
        return Some(made);
    }
    let (joint, before) = (choice.joint.len(), choice.before.len());
    let places: Vec<usize> = (joint..joint + before).chain(0..joint).chain(joint + before..made.view.rank()).collect();
    let view = made.view.transpose(&places).ok()?;
    let id = array.context.recorder.window(made.id(), &view).ok()?;
    Some(Array::new(array.context, id, array.dtype, view))
}

/// A walk over dimensions of the array, and over what is copied from there or to there, whose steps are `others`.
fn walk<T>(axes: impl Iterator<Item = Axis>, others: &[i64]) -> Walk<2> {
    let bytes = |step: i64| step as isize * size_of::<T>() as isize;
    Walk::merged(axes.zip(others).map(|((extent, step), &other)| Loop { extent, steps: [bytes(step), bytes(other)] }))
}

/// The innermost loop of a walk, which is taken out.
fn row_of(walk: &mut Walk<2>) -> Loop<2> {
    walk.pop().unwrap_or(Loop { extent: 1, steps: [0; 2] })
}

fn gather_into<T: Copy>(from: *const u8, choice: &Choice, to: *mut u8) {
    let at = |place: i64| from.cast::<T>().wrapping_offset(place as isize);
    let mut next = to.cast::<T>();
    let kept = choice.kept() as usize;
    let own = contiguous(&choice.axes().map(|(extent, _)| extent).collect::<Vec<i64>>());
    let Ok(own) = own else { return };
    let mut walk = walk::<T>(choice.axes(), own.stride());
    let row = row_of(&mut walk);
    let side_by_side = row.steps == [size_of::<T>() as isize; 2];
    for &place in &choice.places {
        if kept == 1 {
            // SAFETY: the element lies in the array, and there is room for all that are chosen.
            unsafe { next.write_unaligned(at(place).read_unaligned()) };
        } else {
            walk.each([at(place).cast_mut().cast(), next.cast()], |[from, to]| {
                // SAFETY: as above, for the elements of a row.
                unsafe {
                    if side_by_side {
                        std::ptr::copy_nonoverlapping(from, to, row.extent as usize * size_of::<T>());
                    } else {
                        copy_row::<T>((to, row.steps[1]), (from, row.steps[0]), row.extent);
                    }
                }
            });
        }
        next = next.wrapping_add(kept);
    }
}

/// Copies elements one by one, in steps of bytes.
///
/// # Safety
/// The elements must be readable on one side and writable on the other.
unsafe fn copy_row<T: Copy>((to, to_step): (*mut u8, isize), (from, from_step): (*const u8, isize), count: i64) {
    for index in 0..count as isize {
        let (to, from) = (to.wrapping_offset(index * to_step), from.wrapping_offset(index * from_step));
        // SAFETY: they are elements of both sides, as `# Safety` asks; they may be less aligned than a `T`.
        unsafe { to.cast::<T>().write_unaligned(from.cast::<T>().read_unaligned()) };
    }
}

/// Assigns a number, or an array that broadcasts to their shape, to the elements that an advanced key chooses. If a place is
/// chosen several times, the last one stays.
pub fn set(array: &Array, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Option<()> {
    let of_list = key.cast_exact::<PyList>().ok().and_then(|list| mask_of(array.context, list));
    let mask = of_list.as_ref().or(key.cast_exact::<Array>().ok()).filter(|key| key.get().dtype == DType::Bool);
    let change = Change::of(array, key, value)?;
    // Under a mask, a number is chosen element by element, whose order tells later folds theirs.
    let in_c_order = |array: &Array| change.hand.is_in_c_order(array.store(), &array.view) == Some(true);
    if mask.is_some_and(|mask| !in_c_order(mask.get()) || !in_c_order(array)) {
        return None;
    }
    sized!(array.dtype, store(change, array))
}

fn store<T: Copy>(change: Change, array: &Array) -> Option<()> {
    change.make::<T>(array, |_, new| new)
}

/// Adds a number of Python, or an array that broadcasts to their shape, to the elements that an advanced key chooses, one by one in C
/// order. False if that has to be recorded.
#[pyfunction]
fn add_at(array: &Bound<'_, Array>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> bool {
    let array = array.get();
    let Some(change) = Change::of(array, key, value) else { return false };
    let added = with_dtype!(array.dtype, T => change.make::<T>(array, Arithmetic::add));
    // Clear our flags, so that the program's next operation does not report this overflow.
    crate::warning::clear();
    added.is_some()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(add_at, module)?)
}

/// A change of the elements that an advanced key chooses, of an array whose data has been computed.
struct Change {
    choice: Choice,
    hand: Hand<'static>,
    values: Values,
    /// From one value to the next in each dimension of what is chosen.
    steps: Vec<i64>,
}

enum Values {
    Number(Constant),
    Array(*const u8),
}

impl Change {
    fn of(array: &Array, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Option<Change> {
        let (_, value) = classify(value)?;
        // Elements that share memory are Python's.
        let choice = if array.view.is_injective() { Choice::of(array, key)? } else { return None };
        let (shape, count) = (choice.shape(), choice.count());
        match &value {
            Operand::Number(given) => {
                let values = Values::Number(given.assigned(array.dtype)?);
                let hand = hand_for_some([(array, count)].into_iter())?;
                Some(Change { choice, hand, values, steps: vec![0; shape.len()] })
            }
            Operand::Array(values) => {
                let same = values.dtype == array.dtype && std::ptr::eq(values.context, array.context);
                if !same || !is_plain(values) {
                    return None;
                }
                let view = values.view.broadcast_to(&shape).ok()?;
                if view.is_empty() {
                    // No value is read.
                    let (hand, values) = (hand_for_some([(array, 0)].into_iter())?, std::ptr::dangling());
                    return Some(Change { choice, hand, values: Values::Array(values), steps: vec![0; shape.len()] });
                }
                let hand = hand_for_some([(array, count), (*values, values.len())].into_iter())?;
                hand.are_apart(array.store(), values.store()).filter(|apart| *apart)?;
                let values = Values::Array(hand.data(values.store(), view.start())?);
                Some(Change { choice, hand, values, steps: view.stride().to_vec() })
            }
        }
    }

    /// Each chosen element becomes what `combine` makes of it and its value, in C order.
    fn make<T: Copy>(mut self, array: &Array, combine: impl Fn(T, T) -> T) -> Option<()> {
        let to = self.hand.change(array.store(), array.view.start() + self.choice.start, &[])?;
        let from = match &self.values {
            Values::Number(number) => number.bits.as_ptr().cast::<u8>(),
            Values::Array(data) => *data,
        };
        let (outer, rest) = self.steps.split_at(self.choice.before.len());
        let (own, inner) = rest.split_at(self.choice.joint.len());
        let values = offsets(self.choice.joint.iter().copied().zip(own.iter().copied()));
        let first = walk::<T>(self.choice.before.iter().copied(), outer);
        let mut second = walk::<T>(self.choice.after.iter().copied(), inner);
        let row = row_of(&mut second);
        let offset = |place: i64| place as isize * size_of::<T>() as isize;
        if self.choice.kept() == 1 {
            let single = Loop { extent: 1, steps: [0; 2] };
            for (&place, &value) in self.choice.places.iter().zip(&values) {
                let (to, from) = (to.wrapping_offset(offset(place)), from.wrapping_offset(offset(value)));
                // SAFETY: the elements lie in the array, and the values in another one; both stay there while the hand is held.
                unsafe { change_row::<T>(to, from, &single, &combine) };
            }
            return Some(());
        }
        first.each([to, from.cast_mut()], |[to, from]| {
            for (&place, &value) in self.choice.places.iter().zip(&values) {
                second.each([to.wrapping_offset(offset(place)), from.wrapping_offset(offset(value))], |[to, from]| {
                    // SAFETY: the elements lie in the array, whose type `T` stands for, and the values in theirs, which is
                    // another one; both stay there while the hand is held.
                    unsafe { change_row::<T>(to, from, &row, &combine) };
                });
            }
        });
        Some(())
    }
}

/// Changes elements one by one.
///
/// # Safety
/// The elements that the loop leads to from `to` must be valid for reading and writing, and those from `from` for reading.
unsafe fn change_row<T: Copy>(to: *mut u8, from: *const u8, row: &Loop<2>, combine: &impl Fn(T, T) -> T) {
    for index in 0..row.extent as isize {
        let to = to.wrapping_offset(index * row.steps[0]).cast::<T>();
        let from = from.wrapping_offset(index * row.steps[1]).cast::<T>();
        // SAFETY: they are elements of both sides, as `# Safety` asks; they may be less aligned than a `T`.
        unsafe { to.write_unaligned(combine(to.read_unaligned(), from.read_unaligned())) };
    }
}
