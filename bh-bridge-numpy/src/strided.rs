//! Elements of computed arrays, at any places.

use crate::array::Array;
use bh_bytecode::walk::{Loop, Walk};
use bh_bytecode::{Truth, View};
use bh_recorder::{Hand, MOVED};

/// Calls a function whose parameter is a word as large as an element.
macro_rules! sized {
    ($dtype:expr, $function:ident($($argument:expr),*)) => {
        match $dtype.size() {
            1 => $function::<u8>($($argument),*),
            2 => $function::<u16>($($argument),*),
            4 => $function::<u32>($($argument),*),
            8 => $function::<u64>($($argument),*),
            _ => $function::<[u64; 2]>($($argument),*),
        }
    };
}

/// Types of elements of which all bits are values.
///
/// # Safety
/// Every pattern of bits must be a value of the type, without gaps.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($type:ty),*) => {$(
        // SAFETY: a truth value or a number, or several without gaps.
        unsafe impl Plain for $type {}
    )*};
}
plain!(Truth, u8, u16, u32, u64, i8, i16, i32, i64, f32, f64, [u64; 2], [f32; 2], [f64; 2]);

/// The elements of an array: the address of the first one, how many there are, and where they lie from it. They are readable
/// while the value is used.
#[derive(Clone, Copy)]
pub struct Strided<'a> {
    data: *const u8,
    view: &'a View,
    /// Bytes of an element.
    size: usize,
}

/// The most elements of a view that repeats some: walking through a broadcast takes long, though its memory is little.
const REPEATED: i64 = 1 << 20;

impl<'a> Strided<'a> {
    /// An array's elements. `None` for arrays that are not computed, and for broadcasts of more than [`REPEATED`] elements.
    ///
    /// # Safety
    /// The hand must be held as long as the value, and what it gives, is used, and nothing be written to the array's memory while
    /// a [`Strided::slice`] is.
    pub unsafe fn of(hand: &Hand<'_>, array: &'a Array) -> Option<Strided<'a>> {
        if array.len() > REPEATED && !array.view.is_injective() {
            return None;
        }
        let data = hand.data(array.store(), array.view.start())?;
        Some(Strided { data, view: &array.view, size: array.dtype.size() })
    }

    /// Elements of `size` bytes of which the first lies at `data`.
    ///
    /// # Safety
    /// `data` must lead to the element of index 0 of the view, all elements of which are readable while the value is used, and
    /// not written to while a [`Strided::slice`] is.
    pub unsafe fn at(data: *const u8, view: &'a View, size: usize) -> Strided<'a> {
        Strided { data, view, size }
    }

    /// The address of the first element.
    pub fn data(&self) -> *const u8 {
        self.data
    }

    /// How many there are, and where they lie from the first one.
    pub fn view(&self) -> &'a View {
        self.view
    }

    /// The elements' addresses in C order.
    pub fn addresses<T>(self) -> impl Iterator<Item = *const T> {
        let (shape, stride) = (self.view.shape(), self.view.stride());
        let rank = shape.len();
        let (inner, step) = if rank == 0 { (1, 0) } else { (shape[rank - 1], stride[rank - 1] as isize) };
        let outer = &shape[..rank.saturating_sub(1)];
        let rows = if self.view.is_empty() { 0 } else { outer.iter().product() };
        (0..rows).flat_map(move |row: i64| {
            let (mut rest, mut offset) = (row, 0);
            for (extent, stride) in outer.iter().zip(stride).rev() {
                offset += rest % extent * stride;
                rest /= extent;
            }
            let first = self.data.cast::<T>().wrapping_offset(offset as isize);
            (0..inner as isize).map(move |index| first.wrapping_offset(index * step))
        })
    }

    /// The elements of an array without gaps, in C order, for types of their size.
    pub fn slice<T: Plain>(&self) -> Option<&[T]> {
        let fits = self.size == size_of::<T>() && self.view.is_contiguous() && self.data.cast::<T>().is_aligned();
        // SAFETY: the elements lie there, one after the other, as large and aligned as a `T`, for which all bits will do, and
        // stay as they are, as the makers of the value ask.
        fits.then(|| unsafe { std::slice::from_raw_parts(self.data.cast::<T>(), self.view.len() as usize) })
    }
}

/// Calls `f` with the rows of two arrays of one shape: for each its first element and the step to the next one, and the number
/// of elements.
pub fn rows<T>(a: Strided<'_>, b: Strided<'_>, mut f: impl FnMut((*const T, isize), (*const T, isize), usize)) {
    let axes = a.view.shape().iter().zip(a.view.stride()).zip(b.view.stride());
    let bytes = |stride: i64| stride as isize * size_of::<T>() as isize;
    let mut walk = Walk::merged(axes.map(|((&extent, &a), &b)| Loop { extent, steps: [bytes(a), bytes(b)] }));
    let row = walk.pop().unwrap_or(Loop { extent: 1, steps: [0; 2] });
    let [step, other_step] = row.steps.map(|step| step / size_of::<T>() as isize);
    walk.each([a.data.cast_mut(), b.data.cast_mut()], |[at, other]| {
        f((at.cast_const().cast(), step), (other.cast_const().cast(), other_step), row.extent as usize);
    });
}

/// Copies the elements of an array to those of another one of its shape, which lie elsewhere.
///
/// # Safety
/// `T` must be as large as an element of both. All elements of `from` must be readable and all of `to` writable while
/// this runs, none of them in both, and both views have one shape.
pub unsafe fn copy_elements<T: Copy>(to: Strided<'_>, from: Strided<'_>) {
    rows::<T>(to, from, |(to, to_step), (from, from_step), count| {
        let to = to.cast_mut();
        // SAFETY: a row's elements are those of the views, which are valid, and apart, as `# Safety` asks; they may be
        // less aligned than a `T`.
        unsafe {
            match (to_step, from_step) {
                (1, 1) => std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), count * size_of::<T>()),
                _ => (0..count as isize).for_each(|place| {
                    let value = from.wrapping_offset(place * from_step).read_unaligned();
                    to.wrapping_offset(place * to_step).write_unaligned(value);
                }),
            }
        }
    });
}

/// Access to computed data, for operations that only move the elements of these arrays or read each once: their data is
/// settled, if nothing has to be waited for.
pub fn hand_for<'a>(arrays: impl Iterator<Item = &'a Array> + Clone) -> Option<Hand<'static>> {
    hand_for_some(arrays.map(|array| (array, array.len())))
}

/// As [`hand_for`], for something that reads or writes so many elements of each array.
pub fn hand_for_some<'a>(arrays: impl Iterator<Item = (&'a Array, i64)> + Clone) -> Option<Hand<'static>> {
    let recorder = &arrays.clone().next()?.0.context.recorder;
    let mut others = {
        let hand = recorder.hand()?;
        let is_elsewhere = |(array, _): &(&Array, i64)| hand.data(array.store(), array.view.start()).is_none();
        if !arrays.clone().any(|array| is_elsewhere(&array)) {
            return Some(hand);
        }
        arrays.filter(is_elsewhere).collect::<Vec<(&Array, i64)>>().into_iter()
    };
    let settles = |(array, elements): (&Array, i64)| {
        let bytes = elements as u64 * array.dtype.size() as u64;
        array.link.is_none() && bytes <= MOVED * array.context.little && recorder.settle_part(array.anchor(), 1)
    };
    if others.all(settles) { recorder.hand() } else { None }
}

/// Is the array one whose data may already be computed?
pub fn is_plain(array: &Array) -> bool {
    array.link.is_none() && crate::shortcut::taken()
}

pub(crate) use sized;
