//! Views in memory, typed accesses to their elements, and walks over them.

use crate::parallel::Share;
use bh_bytecode::walk::{Loop, Walk};
use bh_bytecode::{BatchRef, Constant, DType, Element};
use std::marker::PhantomData;
use std::ops::{Deref, Range};

/// The type of a view's elements, and where they lie, with strides in bytes.
pub struct Layout<'a> {
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents.
    pub shape: &'a [i64],
    /// Bytes from an element to the next one of each dimension.
    pub stride: Vec<isize>,
}

/// A view in memory. Elements of it that are written are those of the outputs of a call, which overlap inputs only where they
/// are the same elements.
pub struct Strided<'a> {
    data: *mut u8,
    layout: Layout<'a>,
    is_constant: bool,
}

impl<'a> Deref for Strided<'a> {
    type Target = Layout<'a>;

    fn deref(&self) -> &Layout<'a> {
        &self.layout
    }
}

impl<'a> Strided<'a> {
    /// A view that begins at an address.
    ///
    /// # Safety
    /// The elements that the layout leads to from `data` on must lie in memory that is there while this lives, and be
    /// values of its type. Those of outputs may be written, by the one call that has them.
    pub unsafe fn at_address(data: *mut u8, layout: Layout<'a>) -> Strided<'a> {
        Strided { data, layout, is_constant: false }
    }

    /// A view of the batch, on the memory of its base.
    ///
    /// # Safety
    /// The batch must be valid, and `base_data` lead to all of the view's base, in memory as [`Strided::at_address`]
    /// asks.
    pub unsafe fn new(batch: &BatchRef<'a>, view: u32, base_data: *mut u8) -> Strided<'a> {
        let dtype = batch.base_of(view).map_or(DType::Bool, |base| base.dtype());
        let size = dtype.size() as isize;
        let start = batch.views[view as usize].start as isize;
        let stride = batch.stride(view).iter().map(|&stride| (stride as isize).wrapping_mul(size)).collect();
        let data = base_data.wrapping_offset(start.wrapping_mul(size));
        // SAFETY: a view of a valid batch lies inside of its base.
        unsafe { Strided::at_address(data, Layout { dtype, shape: batch.shape(view), stride }) }
    }

    /// A constant as a view of a shape.
    pub fn constant(constant: &'a Constant, shape: &'a [i64]) -> Strided<'a> {
        let data = constant.bits.as_ptr().cast::<u8>().cast_mut();
        let layout = Layout { dtype: constant.dtype(), shape, stride: vec![0; shape.len()] };
        Strided { data, layout, is_constant: true }
    }

    /// The address of its first element.
    pub fn data(&self) -> *mut u8 {
        self.data
    }

    /// The view with an axis as the last one; `shape` is its shape.
    pub fn with_last(&self, axis: usize, shape: &'a [i64]) -> Strided<'a> {
        let order = || (0..self.shape.len()).filter(|&dim| dim != axis).chain([axis]);
        assert!(order().map(|dim| self.shape[dim]).eq(shape.iter().copied()));
        let stride = order().map(|dim| self.stride[dim]).collect();
        Strided { data: self.data, layout: Layout { dtype: self.dtype, shape, stride }, is_constant: self.is_constant }
    }

    /// The elements behind the first axes of the view, at the place with this C-order number among them.
    pub(crate) fn part(&self, axes: usize, number: i64) -> Strided<'a> {
        let (mut rest, mut data) = (number, self.data);
        for (&extent, &stride) in self.shape[..axes].iter().zip(&self.stride).rev() {
            data = data.wrapping_offset((rest % extent) as isize * stride);
            rest /= extent;
        }
        let layout =
            Layout { dtype: self.dtype, shape: &self.layout.shape[axes..], stride: self.stride[axes..].to_vec() };
        Strided { data, layout, is_constant: self.is_constant }
    }

    /// The number of elements.
    pub fn len(&self) -> i64 {
        self.shape.iter().product()
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes from an element to the next one in C order, if that is the same for all of them.
    pub fn step(&self) -> Option<isize> {
        if self.is_empty() {
            return Some(0);
        }
        let mut long = self.shape.iter().zip(&self.stride).rev().filter(|&(&extent, _)| extent > 1);
        let Some((&extent, &step)) = long.next() else { return Some(0) };
        let mut reach = step.wrapping_mul(extent as isize);
        for (&extent, &stride) in long {
            if stride != reach {
                return None;
            }
            reach = stride.wrapping_mul(extent as isize);
        }
        Some(step)
    }

    /// Do two views use no memory in common, by their first and last addresses?
    pub fn is_apart(&self, other: &Strided<'_>) -> bool {
        let bounds = |view: &Strided<'_>| {
            let (mut first, mut last) = (view.data.addr() as i128, view.data.addr() as i128);
            for (&extent, &stride) in view.shape.iter().zip(&view.stride) {
                let reach = i128::from(extent.max(1) - 1) * stride as i128;
                if reach < 0 { first += reach } else { last += reach }
            }
            (first, last + view.dtype.size() as i128)
        };
        let ((first, end), (other_first, other_end)) = (bounds(self), bounds(other));
        end <= other_first || other_end <= first
    }

    /// The address of the element with this C-order number, which counts from the beginning again behind the last one.
    #[inline(always)]
    pub fn at(&self, number: i64) -> *mut u8 {
        let (mut rest, mut data) = (number as u64, self.data);
        for (&extent, &stride) in self.shape.iter().zip(&self.stride).rev() {
            data = data.wrapping_offset((rest % extent as u64) as isize * stride);
            rest /= extent as u64;
        }
        data
    }

    /// Elements of a line along the last axis.
    pub(crate) fn line(&self) -> i64 {
        self.shape.last().copied().unwrap_or(1)
    }

    /// The address of an element of a line along the last axis, and the bytes to the next one.
    fn along_last(&self, line: i64, element: i64) -> (*mut u8, isize) {
        let stride = self.stride.last().copied().unwrap_or(0);
        (self.at(line * self.line()).wrapping_offset(element as isize * stride), stride)
    }

    /// The elements, to be read; they are of this type.
    pub fn elements<T: Element>(&self) -> ViewRef<'_, T> {
        assert_eq!(self.dtype, T::DTYPE);
        ViewRef { view: self, of: PhantomData }
    }

    /// The elements of truth values as bytes.
    pub(crate) fn bytes(&self) -> ViewRef<'_, u8> {
        assert_eq!(self.dtype, DType::Bool);
        ViewRef { view: self, of: PhantomData }
    }

    /// The elements of an output, to be written; they are of this type.
    pub fn output<T: Element>(&self) -> ViewMut<'_, T> {
        assert!(self.dtype == T::DTYPE && !self.is_constant);
        ViewMut { view: self, of: PhantomData }
    }
}

/// The elements of a view, to be read.
pub struct ViewRef<'a, T> {
    view: &'a Strided<'a>,
    of: PhantomData<T>,
}

// SAFETY: its elements are written only by the thread that reads them.
unsafe impl<T: Sync> Sync for ViewRef<'_, T> {}

impl<T: Element> ViewRef<'_, T> {
    /// The element with a C-order number.
    #[inline(always)]
    pub(crate) fn get(&self, number: i64) -> T {
        // SAFETY: the address is that of an element, of this type.
        unsafe { self.view.at(number).cast::<T>().read_unaligned() }
    }

    /// The elements from a C-order number on, and then those from the first one again.
    pub(crate) fn from(&self, number: i64) -> Elements<'_, T> {
        Elements { along: Along::new(self.view, number), of: PhantomData }
    }

    /// The elements of a line along the last axis.
    pub(crate) fn line(&self, line: i64) -> impl Iterator<Item = T> {
        self.part(line, 0..self.view.line())
    }

    /// Some elements of a line along the last axis.
    #[inline(always)]
    pub fn part(&self, line: i64, elements: Range<i64>) -> impl Iterator<Item = T> {
        let length = self.view.line();
        assert!(0 <= elements.start && elements.end <= length);
        let (mut at, stride) = self.view.along_last(line, elements.start);
        (elements.start..elements.end).map(move |_| {
            // SAFETY: the address is that of an element of the line, which are of this type.
            let element = unsafe { at.cast::<T>().read_unaligned() };
            at = at.wrapping_offset(stride);
            element
        })
    }

    /// Some elements whose numbers follow each other, if they do so in memory as those of a slice do.
    pub(crate) fn slice(&self, numbers: Range<i64>) -> Option<&[T]> {
        let dense = self.view.step() == Some(size_of::<T>() as isize) && self.view.data.cast::<T>().is_aligned();
        if !dense || numbers.start < 0 || numbers.start > numbers.end || numbers.end > self.view.len() {
            return None;
        }
        let first = self.view.data.cast::<T>().wrapping_add(numbers.start as usize);
        // SAFETY: these elements are inside the view, dense and aligned.
        Some(unsafe { std::slice::from_raw_parts(first, (numbers.end - numbers.start) as usize) })
    }
}

/// Elements of a view, one after the other.
pub(crate) struct Elements<'a, T> {
    along: Along<'a>,
    of: PhantomData<T>,
}

impl<T: Element> Iterator for Elements<'_, T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        if self.along.view.is_empty() {
            return None;
        }
        // SAFETY: the walk is at an element, of this type.
        let element = unsafe { self.along.at.cast::<T>().read_unaligned() };
        self.along.next();
        Some(element)
    }
}

/// The elements of an output, to be written by the owner of a [`Share`] of them.
pub struct ViewMut<'a, T> {
    view: &'a Strided<'a>,
    of: PhantomData<T>,
}

// SAFETY: nobody has elements that another one has.
unsafe impl<T: Send> Sync for ViewMut<'_, T> {}

impl<T: Element> ViewMut<'_, T> {
    /// Writes the element with a C-order number.
    #[inline(always)]
    pub(crate) fn put(&self, share: &mut Share<'_>, number: i64, value: T) {
        share.check(number..number + 1);
        assert!(number < self.view.len());
        // SAFETY: the address is that of an element of this type, which nobody else has.
        unsafe { self.view.at(number).cast::<T>().write_unaligned(value) };
    }

    /// Writes a line along the last axis.
    pub(crate) fn put_line(&self, share: &mut Share<'_>, line: i64, values: impl Iterator<Item = T>) {
        let elements = self.view.line();
        share.check(line * elements..(line + 1) * elements);
        assert!((line + 1) * elements <= self.view.len());
        let (first, stride) = (self.view.at(line * elements), self.view.stride.last().copied().unwrap_or(0));
        for (element, value) in (0..elements as isize).zip(values) {
            // SAFETY: the address is that of an element of the line, which nobody else has.
            unsafe { first.wrapping_offset(element * stride).cast::<T>().write_unaligned(value) };
        }
    }

    /// Writes some elements of a line along the last axis, each made of the element at the same place of a view of this shape.
    #[inline(always)]
    pub fn make_part(
        &self,
        share: &mut Share<'_>,
        line: i64,
        elements: Range<i64>,
        from: &ViewRef<'_, T>,
        mut make: impl FnMut(T) -> T,
    ) {
        let length = self.view.line();
        share.check(line * length + elements.start..line * length + elements.end);
        assert!(0 <= elements.start && elements.end <= length && (line + 1) * length <= self.view.len());
        assert_eq!(self.view.shape, from.view.shape);
        let (mut to, stride) = self.view.along_last(line, elements.start);
        let (mut at, from_stride) = from.view.along_last(line, elements.start);
        for _ in elements {
            // SAFETY: the addresses are those of elements of the line, of this type; nobody else has those of the output.
            unsafe { to.cast::<T>().write_unaligned(make(at.cast::<T>().read_unaligned())) };
            (to, at) = (to.wrapping_offset(stride), at.wrapping_offset(from_stride));
        }
    }

    /// Do lines along the last axis lie in memory as slices do?
    pub(crate) fn has_slices(&self) -> bool {
        let Layout { stride, shape, .. } = &self.view.layout;
        let (last, outer) = stride.split_last().unwrap_or((&0, &[]));
        let whole = |stride: &isize| *stride % align_of::<T>() as isize == 0;
        !shape.is_empty()
            && *last == size_of::<T>() as isize
            && self.view.data.cast::<T>().is_aligned()
            && outer.iter().all(whole)
    }

    /// A line along the last axis.
    pub(crate) fn line_mut<'s>(&'s self, share: &'s mut Share<'_>, line: i64) -> Option<&'s mut [T]> {
        let elements = self.view.line();
        share.check(line * elements..(line + 1) * elements);
        if !self.has_slices() || (line + 1) * elements > self.view.len() {
            return None;
        }
        let first = self.view.at(line * elements).cast::<T>();
        // SAFETY: the line is dense and aligned, and nobody else has it while the share is borrowed.
        Some(unsafe { std::slice::from_raw_parts_mut(first, elements as usize) })
    }

    /// Some elements whose numbers follow each other, if they do so in memory as those of a slice do.
    pub(crate) fn slice_mut<'s>(&'s self, share: &'s mut Share<'_>) -> Option<&'s mut [T]> {
        let numbers = share.numbers();
        let dense = self.view.step() == Some(size_of::<T>() as isize) && self.view.data.cast::<T>().is_aligned();
        if !dense || numbers.start < 0 || numbers.end > self.view.len() {
            return None;
        }
        let first = self.view.data.cast::<T>().wrapping_add(numbers.start as usize);
        // SAFETY: these elements are inside the view, dense and aligned, and nobody else has them while the share is borrowed.
        Some(unsafe { std::slice::from_raw_parts_mut(first, (numbers.end - numbers.start) as usize) })
    }
}

/// A walk over the elements of a view in C order, from any of them on.
struct Along<'a> {
    view: &'a Strided<'a>,
    index: [i64; bh_bytecode::MAX_RANK],
    at: *mut u8,
}

impl<'a> Along<'a> {
    fn new(view: &'a Strided<'a>, first: i64) -> Along<'a> {
        let mut index = [0; bh_bytecode::MAX_RANK];
        let mut rest = first as u64;
        for (place, &extent) in index[..view.shape.len()].iter_mut().zip(view.shape).rev() {
            let extent = extent.max(1) as u64;
            *place = (rest % extent) as i64;
            rest /= extent;
        }
        Along { view, index, at: if view.is_empty() { view.data } else { view.at(first) } }
    }

    #[inline(always)]
    fn next(&mut self) {
        let Layout { shape, stride, .. } = &self.view.layout;
        for dim in (0..shape.len()).rev() {
            self.index[dim] += 1;
            if self.index[dim] < shape[dim] {
                self.at = self.at.wrapping_offset(stride[dim]);
                return;
            }
            self.at = self.at.wrapping_offset(stride[dim].wrapping_mul(1 - shape[dim] as isize));
            self.index[dim] = 0;
        }
    }
}

/// A walk along the outermost `axes` of several views, whose shapes begin alike.
pub fn walk<const N: usize>(views: [&Strided<'_>; N], axes: usize) -> Walk<N> {
    let axis = |axis: usize| Loop { extent: views[0].shape[axis], steps: views.map(|view| view.stride[axis]) };
    Walk::merged((0..axes).map(axis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::at_once::Alone;
    use crate::parallel::share;

    /// A view of elements, with its strides counted in them.
    fn view<'a>(data: &mut [f64], first: usize, shape: &'a [i64], stride: &[isize]) -> Strided<'a> {
        let layout = Layout { dtype: DType::F64, shape, stride: stride.iter().map(|stride| 8 * stride).collect() };
        // SAFETY: the tests' views lie inside of their elements, which nothing else uses meanwhile.
        unsafe { Strided::at_address(data[first..].as_mut_ptr().cast(), layout) }
    }

    const VIEWS: [(usize, [i64; 2], [isize; 2]); 5] =
        [(0, [3, 4], [4, 1]), (0, [4, 3], [1, 4]), (8, [3, 4], [-4, 1]), (3, [3, 2], [4, -2]), (11, [3, 4], [-4, -1])];

    #[test]
    fn parts_of_lines_are_read_and_written_wherever_they_lie() {
        for (first, shape, stride) in VIEWS {
            let mut elements: Vec<f64> = (0..12).map(f64::from).collect();
            let mut copies = vec![-1.0; 12];
            let (rows, length) = (shape[0], shape[1]);
            let wanted: Vec<f64> = (0..rows as isize)
                .flat_map(|row| (0..length as isize).map(move |column| (row, column)))
                .map(|(row, column)| (first as isize + row * stride[0] + column * stride[1]) as f64)
                .collect();
            let (from, to) =
                (view(&mut elements, first, &shape, &stride), view(&mut copies, 0, &shape, &[length as isize, 1]));
            let (source, target) = (from.elements::<f64>(), to.output::<f64>());
            share(&mut Alone, 1, (rows * length, length), &|shares| {
                for mut own in shares {
                    let line = own.numbers().start / length;
                    for part in [0..1, 1..length] {
                        target.make_part(&mut own, line, part, &source, |value| value);
                    }
                }
            });
            assert_eq!(source.from(0).take(wanted.len()).collect::<Vec<f64>>(), wanted, "{shape:?} {stride:?}");
            assert_eq!(copies[..wanted.len()], wanted, "{shape:?} {stride:?}");
        }
    }

    #[test]
    fn any_axis_may_be_the_last_one() {
        let mut elements: Vec<f64> = (0..12).map(f64::from).collect();
        let turned = view(&mut elements, 0, &[3, 4], &[4, 1]).with_last(0, &[4, 3]);
        assert_eq!(turned.elements::<f64>().part(1, 0..3).collect::<Vec<f64>>(), [1.0, 5.0, 9.0]);
    }

    #[test]
    #[should_panic(expected = "are not all in")]
    fn nobody_writes_what_others_have() {
        let mut elements = vec![0.0; 12];
        let out = view(&mut elements, 0, &[3, 4], &[4, 1]);
        let target = out.output::<f64>();
        share(&mut Alone, 1, (12, 4), &|shares| {
            for mut own in shares {
                target.put(&mut own, 11, 1.0);
            }
        });
    }
}
