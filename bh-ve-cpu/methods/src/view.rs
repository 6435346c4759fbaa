//! Views in memory, and walks over their elements.

use bh_bytecode::{BatchRef, Constant, DType};

/// A view in memory, with strides in bytes.
pub struct Strided<'a> {
    /// Its first element.
    pub data: *mut u8,
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents.
    pub shape: &'a [i64],
    /// Bytes from an element to the next one of each dimension.
    pub stride: Vec<isize>,
}

impl<'a> Strided<'a> {
    /// A view of the batch, on the memory of its base.
    pub fn new(batch: &BatchRef<'a>, view: u32, base_data: *mut u8) -> Strided<'a> {
        let dtype = batch.base_of(view).map_or(DType::Bool, |base| base.dtype());
        let size = dtype.size() as isize;
        let start = batch.views[view as usize].start as isize;
        Strided {
            data: base_data.wrapping_offset(start.wrapping_mul(size)),
            dtype,
            shape: batch.shape(view),
            stride: batch.stride(view).iter().map(|&stride| (stride as isize).wrapping_mul(size)).collect(),
        }
    }

    /// A constant as a view of a shape.
    pub fn constant(constant: &'a Constant, shape: &'a [i64]) -> Strided<'a> {
        let data = constant.bits.as_ptr().cast::<u8>().cast_mut();
        Strided { data, dtype: constant.dtype(), shape, stride: vec![0; shape.len()] }
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

    /// The address of the element with this C-order number.
    #[inline(always)]
    pub fn at(&self, number: i64) -> *mut u8 {
        let (mut rest, mut data) = (number, self.data);
        for (&extent, &stride) in self.shape.iter().zip(&self.stride).rev() {
            data = data.wrapping_offset((rest % extent) as isize * stride);
            rest /= extent;
        }
        data
    }
}

/// Walks over the elements of several views of one shape in C order.
pub struct Walk<'a, const N: usize> {
    shape: &'a [i64],
    strides: [&'a [isize]; N],
    index: [i64; bh_bytecode::MAX_RANK],
    /// The addresses of the current elements.
    pub at: [*mut u8; N],
}

impl<'a, const N: usize> Walk<'a, N> {
    /// Starts at the first elements.
    pub fn new(shape: &'a [i64], views: [&'a Strided<'_>; N]) -> Walk<'a, N> {
        Walk {
            shape,
            strides: views.map(|view| view.stride.as_slice()),
            index: [0; bh_bytecode::MAX_RANK],
            at: views.map(|view| view.data),
        }
    }

    /// Goes to the next element.
    #[inline(always)]
    pub fn next(&mut self) {
        for dim in (0..self.shape.len()).rev() {
            self.index[dim] += 1;
            let wraps = self.index[dim] == self.shape[dim];
            for (at, stride) in self.at.iter_mut().zip(&self.strides) {
                let steps = if wraps { 1 - self.shape[dim] as isize } else { 1 };
                *at = at.wrapping_offset(steps.wrapping_mul(stride[dim]));
            }
            if !wraps {
                return;
            }
            self.index[dim] = 0;
        }
    }
}
