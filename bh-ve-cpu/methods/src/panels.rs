//! Products of matrices of real numbers by the kernels of the library `gemm` for vectors of 64 bytes. The library's own function
//! first reads the system's files about the caches of each processor, which takes half a millisecond for each of them in the first
//! product of a process. Sums have at most [`TERMS`](crate::multiply::TERMS) terms here, so no size of a block changes their order,
//! and all bits are the library's.

use gemm_common::microkernel::MicroKernelFn;
use gemm_common::pack_operands::{pack_lhs, pack_rhs};
use gemm_common::simd::{MixedSimd, V4};
use gemm_common::{Parallelism, Ptr};
use std::cell::RefCell;

/// Products of more terms in all are the library's: it chooses blocks by the caches, and is faster then.
const LARGE: usize = 1 << 26;
/// Bytes of the left factor's rows that stay in a core's own cache.
const NEAR: usize = 512 << 10;
/// Blocks of rows from which on the right factor's columns are copied side by side: fewer, if its sums do not go along memory.
const FEW_BLOCKS: usize = 2;
const MANY_BLOCKS: usize = 128;
/// Blocks of columns from which on rows that lie side by side are copied, too.
const COPIED: usize = 8;

/// A line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "memory of this size")] [u8; 64]);

thread_local! {
    /// Copied rows.
    static ROWS: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// A matrix with strides in elements, between rows and between columns.
#[derive(Clone, Copy)]
pub(crate) struct Part<T> {
    pub(crate) data: *mut T,
    pub(crate) row: isize,
    pub(crate) column: isize,
}

impl<T> Part<T> {
    fn at(self, row: usize, column: usize) -> *mut T {
        self.data.wrapping_offset(row as isize * self.row + column as isize * self.column)
    }

    fn turned(self) -> Part<T> {
        Part { row: self.column, column: self.row, ..self }
    }
}

/// Elements of which the library has kernels.
pub(crate) trait Element: Copy + 'static {
    /// Elements of a vector, and the rows and columns of the largest block that a kernel computes.
    const LANES: usize;
    const ROWS: usize;
    const COLUMNS: usize;
    const ONE: Self;

    /// The kernel for as many vectors of rows, and columns.
    fn kernel(vectors: usize, columns: usize) -> MicroKernelFn<Self>;

    /// Copies rows so that those of a block lie side by side.
    ///
    /// # Safety
    /// As many elements of `from` must be readable, and `to` have room for whole blocks. The processor has the vectors.
    unsafe fn copy_rows(rows: usize, terms: usize, to: *mut Self, from: Part<Self>);

    /// The same for columns.
    ///
    /// # Safety
    /// As above.
    unsafe fn copy_columns(columns: usize, terms: usize, to: *mut Self, from: Part<Self>);
}

macro_rules! element {
    ($type:ty, $lanes:literal, $kernels:path) => {
        const _: () = {
            use $kernels as kernels;

            /// The vectors, which the processor has.
            fn vectors() -> V4 {
                <V4 as MixedSimd<$type, $type, $type, $type>>::try_new()
                    .unwrap_or_else(|| unreachable!("vectors of 64 bytes"))
            }

            impl Element for $type {
                const LANES: usize = $lanes;
                const ROWS: usize = kernels::MR_DIV_N * $lanes;
                const COLUMNS: usize = kernels::NR;
                const ONE: $type = 1.0;

                fn kernel(vectors: usize, columns: usize) -> MicroKernelFn<$type> {
                    const TABLE: &[[MicroKernelFn<$type>; kernels::NR]; kernels::MR_DIV_N] = &kernels::UKR;
                    TABLE[vectors - 1][columns - 1]
                }

                unsafe fn copy_rows(rows: usize, terms: usize, to: *mut $type, from: Part<$type>) {
                    const ROWS: usize = kernels::MR_DIV_N * $lanes;
                    let (to, data, stride) = (Ptr(to), Ptr(from.data), terms * ROWS);
                    // SAFETY: as `# Safety` asks.
                    unsafe {
                        pack_lhs::<$type, $lanes, ROWS, V4>(
                            vectors(),
                            rows,
                            terms,
                            to,
                            data,
                            from.column,
                            from.row,
                            stride,
                        )
                    }
                }

                unsafe fn copy_columns(columns: usize, terms: usize, to: *mut $type, from: Part<$type>) {
                    const COLUMNS: usize = kernels::NR;
                    let (to, data, stride) = (Ptr(to), Ptr(from.data), terms * COLUMNS);
                    // SAFETY: as `# Safety` asks.
                    unsafe {
                        pack_rhs::<$type, 1, COLUMNS, V4>(
                            vectors(),
                            columns,
                            terms,
                            to,
                            data,
                            from.column,
                            from.row,
                            stride,
                        )
                    }
                }
            }
        };
    };
}
element!(f32, 16, gemm_f32::microkernel::avx512f::f32);
element!(f64, 8, gemm_f64::microkernel::avx512f::f64);

/// A product: the rows and columns of `out`, to which it is added, and the terms of each sum.
#[derive(Clone, Copy)]
pub(crate) struct Product<T> {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) terms: usize,
    pub(crate) left: Part<T>,
    pub(crate) right: Part<T>,
    pub(crate) out: Part<T>,
}

impl<T: Copy + 'static> Product<T> {
    /// Adds the product by the library's function; `one`: the number 1.
    ///
    /// # Safety
    /// As [`Product::add`].
    pub(crate) unsafe fn add_by_library(self, one: T) {
        let Product { rows, columns, terms, left, right, out } = self;
        // SAFETY: as `# Safety` asks.
        unsafe {
            gemm::gemm(
                rows,
                columns,
                terms,
                out.data,
                out.column,
                out.row,
                true,
                left.data.cast_const(),
                left.column,
                left.row,
                right.data.cast_const(),
                right.column,
                right.row,
                one,
                one,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    }
}

impl<T: Element> Product<T> {
    /// Adds the product, with the bits of the library's function.
    ///
    /// # Safety
    /// The elements must be readable, and those of `out` writable by nobody else, and apart from the factors. The processor must have vectors
    /// of 64 bytes.
    pub(crate) unsafe fn add(self) {
        // SAFETY: as `# Safety` asks; the turned product has the same elements.
        unsafe {
            let turned = self.along_memory();
            match turned.is_special() {
                true => self.add_by_library(T::ONE),
                false => turned.add_by_blocks(),
            }
        }
    }

    /// The same product with rows of `out` along its memory, and no stride below zero that has elements to reach.
    fn along_memory(self) -> Product<T> {
        let mut product = self;
        if self.out.column.abs() < self.out.row.abs() {
            let (left, right, out) = (self.right.turned(), self.left.turned(), self.out.turned());
            product = Product { rows: self.columns, columns: self.rows, terms: self.terms, left, right, out };
        }
        let Product { rows, columns, terms, left, right, out } = &mut product;
        let last = |extent: usize| extent.saturating_sub(1);
        if out.row < 0 {
            (out.data, left.data) = (out.at(last(*rows), 0), left.at(last(*rows), 0));
            (out.row, left.row) = (-out.row, -left.row);
        }
        if out.column < 0 {
            (out.data, right.data) = (out.at(0, last(*columns)), right.at(0, last(*columns)));
            (out.column, right.column) = (-out.column, -right.column);
        }
        if left.column < 0 {
            (left.data, right.data) = (left.at(0, last(*terms)), right.at(last(*terms), 0));
            (left.column, right.row) = (-left.column, -right.row);
        }
        product
    }

    /// Is the product large, or one for which the library has other loops than those of blocks, and does not look at caches?
    fn is_special(&self) -> bool {
        let Product { rows, columns, terms, left, right, out } = self;
        let along = left.column == 1 && right.row == 1;
        let (down, across) = (left.row == 1 && out.row == 1, right.column == 1 && out.column == 1);
        rows * columns == 0
            || rows * columns * terms > LARGE
            || *terms <= 2
            || along && rows * columns <= 256
            || *columns == 1 && (down || along)
            || *rows == 1 && (across || along)
    }

    /// # Safety
    /// As [`Product::add`]; the product is turned, and not special.
    unsafe fn add_by_blocks(self) {
        let Product { rows, columns, terms, left, right, out } = self;
        let (block, across) = (T::ROWS, T::COLUMNS);
        let bytes = terms * size_of::<T>();
        let near = (NEAR / bytes / block * block).clamp(block, 8 * block);
        // Rows that are few, and copied in any case, are copied at once.
        let must_copy = left.row != 1 || !rows.is_multiple_of(T::LANES);
        let near = if rows <= 2 * near && must_copy { rows } else { near };
        let blocks = if right.row.abs() == 1 { MANY_BLOCKS } else { FEW_BLOCKS };
        let room = |elements: usize| (elements * size_of::<T>()).div_ceil(size_of::<Line>());
        let mut copied: Vec<Line> = Vec::new();
        let (mut right, mut step) = (right, across as isize * right.column);
        if rows > blocks * block {
            copied.reserve_exact(room(columns.next_multiple_of(across) * terms));
            let to = copied.as_mut_ptr().cast::<T>();
            // SAFETY: there is room for all blocks, and the elements are those of the factor.
            unsafe { T::copy_columns(columns, terms, to, right) };
            (right, step) = (Part { data: to, row: across as isize, column: 1 }, (terms * across) as isize);
        }
        ROWS.with_borrow_mut(|buffer| {
            let mut top = 0;
            while top < rows {
                let mut height = near.min(rows - top);
                if near < rows && height > T::LANES {
                    height -= height % T::LANES;
                }
                let mut left = Part { data: left.at(top, 0), ..left };
                let mut down = block as isize * left.row;
                if left.row != 1 || !height.is_multiple_of(T::LANES) || columns > COPIED * across {
                    buffer.reserve_exact(room(height.next_multiple_of(block) * terms));
                    let to = buffer.as_mut_ptr().cast::<T>();
                    // SAFETY: as above.
                    unsafe { T::copy_rows(height, terms, to, left) };
                    (left, down) = (Part { data: to, row: 1, column: block as isize }, (terms * block) as isize);
                }
                for (j, beside) in (0..columns).step_by(across).enumerate() {
                    for (i, below) in (0..height).step_by(block).enumerate() {
                        let (m, n) = (block.min(height - below), across.min(columns - beside));
                        let to = out.at(top + below, beside);
                        let a = left.data.wrapping_offset(i as isize * down).cast_const();
                        let b = right.data.wrapping_offset(j as isize * step).cast_const();
                        let (one, kernel) = (T::ONE, T::kernel(m.div_ceil(T::LANES), n));
                        // SAFETY: the kernel reads whole vectors of rows that are there, or copied, and writes the elements of its block.
                        unsafe {
                            #[rustfmt::skip]
                            kernel(
                                m, n, terms, to, a, b, out.column, out.row, left.column, right.row, right.column, one, one, 1, false, false, false,
                                std::ptr::null(),
                            );
                        }
                    }
                }
                top += height;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multiply::has_long_vectors;
    use std::fmt::Debug;

    const SHAPES: [[usize; 3]; 14] = [
        [2, 3, 2],
        [4, 4, 4],
        [16, 16, 16],
        [17, 5, 17],
        [33, 40, 65],
        [1, 30, 50],
        [50, 30, 1],
        [64, 512, 64],
        [96, 30, 100],
        [130, 20, 7],
        [7, 20, 300],
        [300, 301, 310],
        [1100, 512, 70],
        [40, 512, 1100],
    ];

    /// Elements and the matrix that they make with these steps between rows and columns, which may go backwards.
    fn part<T: Copy>(elements: &mut [T], rows: usize, columns: usize, layout: usize) -> Part<T> {
        let (row, column) = match layout {
            0 => (columns as isize, 1),
            1 => (1, rows as isize),
            2 => (2 * columns as isize, 2),
            3 => (-(columns as isize), 1),
            _ => (columns as isize, -1),
        };
        let back = |extent: usize, step: isize| if step < 0 { (extent as isize - 1) * -step } else { 0 };
        let first = back(rows, row) + back(columns, column);
        Part { data: elements.as_mut_ptr().wrapping_offset(first), row, column }
    }

    fn has_the_bits_of_the_library<T: Element + Debug + PartialEq>(number: impl Fn(usize) -> T) {
        for [rows, terms, columns] in SHAPES {
            for layouts in 0..60 {
                let [a, b, c] = [layouts % 5, layouts / 5 % 4, layouts / 20 * 2 % 5];
                let (mut left, mut right): (Vec<T>, Vec<T>) = (
                    (0..2 * rows * terms).map(|at| number(at * 389)).collect(),
                    (0..2 * terms * columns).map(|at| number(at * 577 + 7)).collect(),
                );
                let mut made = [(); 2].map(|()| (0..2 * rows * columns).map(|at| number(at * 211)).collect::<Vec<T>>());
                let [first, second] = &mut made;
                let (left, right) = (part(&mut left, rows, terms, a), part(&mut right, terms, columns, b));
                let product =
                    |out: &mut [T]| Product { rows, columns, terms, left, right, out: part(out, rows, columns, c) };
                // SAFETY: the matrices have the elements, and the processor the vectors.
                unsafe {
                    product(first).add();
                    product(second).add_by_library(T::ONE);
                }
                assert_eq!(made[0], made[1], "{rows}x{terms}x{columns}, layouts {a}, {b} and {c}");
            }
        }
    }

    #[test]
    fn products_have_the_bits_of_the_library() {
        if has_long_vectors() {
            let number = |at: usize| (at % 1009) as f64 * 0.037 - 18.5;
            has_the_bits_of_the_library(number);
            has_the_bits_of_the_library(|at| number(at) as f32);
        }
    }
}
