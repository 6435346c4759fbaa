//! Products of little matrices, one after the other: the second matrix and a row of the result stay in registers.
//!
//! Rows are padded to a power of two. Each element of a result is the sum of its terms in their order, in fused operations at levels
//! that have them.

use super::{Level, SIDE};
use crate::multiply::Matrix;
use bh_bytecode::{Complex, DType};

/// The elements of products.
trait Term: Copy {
    const ZERO: Self;

    /// `self + a · b`; `FUSED`: rounded once for each multiplication of real numbers.
    fn plus_product<const FUSED: bool>(self, a: Self, b: Self) -> Self;
}

macro_rules! terms {
    ($($real:ident),*) => {$(
        impl Term for $real {
            const ZERO: $real = 0.0;

            #[inline(always)]
            fn plus_product<const FUSED: bool>(self, a: $real, b: $real) -> $real {
                if FUSED { a.mul_add(b, self) } else { self + a * b }
            }
        }

        impl Term for Complex<$real> {
            const ZERO: Self = Complex { re: 0.0, im: 0.0 };

            #[inline(always)]
            fn plus_product<const FUSED: bool>(self, a: Self, b: Self) -> Self {
                Complex {
                    re: self.re.plus_product::<FUSED>(a.re, b.re).plus_product::<FUSED>(-a.im, b.im),
                    im: self.im.plus_product::<FUSED>(a.re, b.im).plus_product::<FUSED>(a.im, b.re),
                }
            }
        }
    )*};
}
terms!(f32, f64);

/// Addresses of the matrices of products: of the result, and of both factors.
pub(crate) type Places<'a> = &'a mut dyn Iterator<Item = [*mut u8; 3]>;

/// Multiplies matrices of the extents and strides of these at each of the places.
///
/// # Safety
/// All elements of the matrices at the places must be values of `dtype`, which is a floating-point or complex type, and those of
/// results be used by nobody else. The shapes must be m by n, m by k and k by n, none above [`SIDE`].
pub(crate) unsafe fn products(dtype: DType, matrices: [Matrix; 3], places: Places<'_>) {
    let level = Level::available().last().unwrap_or(Level::Plain);
    // SAFETY: as the caller says, and the level is available.
    unsafe { at_level(level, dtype, matrices, places) }
}

/// # Safety
/// As [`products`], at an available level.
pub(super) unsafe fn at_level(level: Level, dtype: DType, matrices: [Matrix; 3], places: Places<'_>) {
    // SAFETY: as the caller says.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => in_avx512(dtype, matrices, places),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => in_fma(dtype, matrices, places),
            // Every AArch64 processor has fused operations.
            Level::Plain => of_type::<{ cfg!(target_arch = "aarch64") }>(dtype, matrices, places),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
unsafe fn in_avx512(dtype: DType, matrices: [Matrix; 3], places: Places<'_>) {
    // SAFETY: as the caller says.
    unsafe { of_type::<true>(dtype, matrices, places) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn in_fma(dtype: DType, matrices: [Matrix; 3], places: Places<'_>) {
    // SAFETY: as the caller says.
    unsafe { of_type::<true>(dtype, matrices, places) }
}

/// # Safety
/// As [`products`].
#[inline(always)]
unsafe fn of_type<const FUSED: bool>(dtype: DType, matrices: [Matrix; 3], places: Places<'_>) {
    // SAFETY: as the caller says.
    unsafe {
        match dtype {
            DType::F32 => of_width::<f32, FUSED>(matrices, places),
            DType::F64 => of_width::<f64, FUSED>(matrices, places),
            DType::C64 => of_width::<Complex<f32>, FUSED>(matrices, places),
            _ => of_width::<Complex<f64>, FUSED>(matrices, places),
        }
    }
}

/// # Safety
/// As [`products`], for elements of type `T`.
#[inline(always)]
unsafe fn of_width<T: Term, const FUSED: bool>(matrices: [Matrix; 3], places: Places<'_>) {
    // SAFETY: as the caller says, and rows are not longer than the width.
    unsafe {
        match matrices[0].columns {
            ..=2 => each::<T, FUSED, 2>(matrices, places),
            3..=4 => each::<T, FUSED, 4>(matrices, places),
            5..=8 => each::<T, FUSED, 8>(matrices, places),
            _ => each::<T, FUSED, SIDE>(matrices, places),
        }
    }
}

/// # Safety
/// As [`products`], for elements of type `T` in rows of at most `WIDTH`.
#[inline(always)]
unsafe fn each<T: Term, const FUSED: bool, const WIDTH: usize>([out, a, b]: [Matrix; 3], places: Places<'_>) {
    let (inner, columns) = (a.columns as usize, out.columns as usize);
    let mut second = [[T::ZERO; WIDTH]; SIDE];
    for [to, first, from] in places {
        let (to, first, from) = (to.cast::<T>(), first.cast::<T>(), from.cast::<T>());
        for (row, line) in second[..inner].iter_mut().enumerate() {
            let from = from.wrapping_offset(row as isize * b.row_stride);
            // SAFETY: these are the elements of a row of the second factor.
            unsafe {
                if columns == WIDTH && b.column_stride == 1 {
                    *line = from.cast::<[T; WIDTH]>().read_unaligned();
                } else {
                    for (column, place) in line[..columns].iter_mut().enumerate() {
                        *place = from.wrapping_offset(column as isize * b.column_stride).read_unaligned();
                    }
                }
            }
        }
        for row in 0..out.rows as isize {
            let (first, to) = (first.wrapping_offset(row * a.row_stride), to.wrapping_offset(row * out.row_stride));
            let mut sums = [T::ZERO; WIDTH];
            for (depth, line) in second[..inner].iter().enumerate() {
                // SAFETY: it is an element of the first factor.
                let factor = unsafe { first.wrapping_offset(depth as isize * a.column_stride).read_unaligned() };
                for (sum, &term) in sums.iter_mut().zip(line) {
                    *sum = sum.plus_product::<FUSED>(factor, term);
                }
            }
            // SAFETY: these are the elements of a row of the result.
            unsafe {
                if columns == WIDTH && out.column_stride == 1 {
                    to.cast::<[T; WIDTH]>().write_unaligned(sums);
                } else {
                    for (column, &sum) in sums[..columns].iter().enumerate() {
                        to.wrapping_offset(column as isize * out.column_stride).write_unaligned(sum);
                    }
                }
            }
        }
    }
}
