//! Products of a matrix and a vector, whose time is that of reading the matrix. Each element of the result is a sum of its own,
//! in an order that depends on the number of terms alone, so that it does not matter which part of the matrix a call gets.

/// A matrix in memory, with strides in elements.
#[derive(Clone, Copy)]
pub(crate) struct Rows<T> {
    pub(crate) data: *const T,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) row_stride: isize,
    pub(crate) column_stride: isize,
}

/// A vector with the distance of its elements.
#[derive(Clone, Copy)]
pub(crate) struct Elements<T> {
    pub(crate) data: *mut T,
    pub(crate) stride: isize,
}

/// Terms of a row that are added side by side.
const LANES: usize = 16;
/// Rows whose sums are made side by side.
const BESIDE: usize = 4;
/// Elements of the result that stay in the nearest cache while columns are added to them.
const BLOCK: usize = 512;

/// A floating-point number.
pub(crate) trait Float: Copy + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self> {
    const ZERO: Self;
    fn fused(self, factor: Self, sum: Self) -> Self;
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Float for $type {
            const ZERO: Self = 0.0;

            #[inline(always)]
            fn fused(self, factor: Self, sum: Self) -> Self {
                self.mul_add(factor, sum)
            }
        }
    )*};
}
floats!(f32, f64);

/// What the processor has.
#[derive(Clone, Copy)]
enum Isa {
    Avx512,
    Fma,
    Plain,
}

fn isa() -> Isa {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
            return Isa::Avx512;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Isa::Fma;
        }
    }
    Isa::Plain
}

/// Can the product be made here? The elements of each row, or of each column, must follow each other.
pub(crate) fn suits<T>(matrix: Rows<T>) -> bool {
    matrix.column_stride == 1 || matrix.row_stride == 1
}

/// `out = matrix · vector`, for a matrix that [`suits`]. The vector's elements follow each other.
///
/// # Safety
/// The matrix, a vector of as many elements as it has columns, and an output of as many as it has rows must be valid, and the
/// output apart from both.
pub(crate) unsafe fn multiply<T: Float>(matrix: Rows<T>, vector: *const T, out: Elements<T>) {
    // SAFETY: promised by the caller; the processor has what the versions need.
    unsafe {
        match isa() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => in_avx512(matrix, vector, out),
            #[cfg(target_arch = "x86_64")]
            Isa::Fma => in_fma(matrix, vector, out),
            _ => product::<T, false>(matrix, vector, out),
        }
    }
}

/// # Safety
/// As [`multiply`], on a processor with these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
unsafe fn in_avx512<T: Float>(matrix: Rows<T>, vector: *const T, out: Elements<T>) {
    // SAFETY: promised by the caller.
    unsafe { product::<T, true>(matrix, vector, out) }
}

/// # Safety
/// As [`multiply`], on a processor with these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn in_fma<T: Float>(matrix: Rows<T>, vector: *const T, out: Elements<T>) {
    // SAFETY: promised by the caller.
    unsafe { product::<T, true>(matrix, vector, out) }
}

/// # Safety
/// As [`multiply`].
#[inline(always)]
unsafe fn product<T: Float, const FUSED: bool>(matrix: Rows<T>, vector: *const T, out: Elements<T>) {
    // SAFETY: promised by the caller.
    unsafe {
        if matrix.column_stride == 1 {
            by_rows::<T, FUSED>(matrix, vector, out);
        } else {
            by_columns::<T, FUSED>(matrix, vector, out);
        }
    }
}

/// The sum and a product, rounded once if the processor does so.
#[inline(always)]
fn add<T: Float, const FUSED: bool>(a: T, b: T, sum: T) -> T {
    if FUSED { a.fused(b, sum) } else { a * b + sum }
}

/// Sums of rows whose elements follow each other.
///
/// # Safety
/// As [`multiply`].
#[inline(always)]
unsafe fn by_rows<T: Float, const FUSED: bool>(matrix: Rows<T>, vector: *const T, out: Elements<T>) {
    let row = |number: usize| matrix.data.wrapping_offset(number as isize * matrix.row_stride);
    let put = |number: usize, sum: T| {
        // SAFETY: promised by the caller.
        unsafe { out.data.wrapping_offset(number as isize * out.stride).write_unaligned(sum) };
    };
    let mut next = 0;
    // SAFETY: promised by the caller.
    unsafe {
        while next + BESIDE <= matrix.rows {
            let rows: [*const T; BESIDE] = std::array::from_fn(|beside| row(next + beside));
            let sums = sums::<T, FUSED, BESIDE>(rows, vector, matrix.columns);
            sums.into_iter().enumerate().for_each(|(beside, sum)| put(next + beside, sum));
            next += BESIDE;
        }
        while next < matrix.rows {
            let [sum] = sums::<T, FUSED, 1>([row(next)], vector, matrix.columns);
            put(next, sum);
            next += 1;
        }
    }
}

/// The sums of products of some rows with a vector.
///
/// # Safety
/// All must have `count` elements.
#[inline(always)]
unsafe fn sums<T: Float, const FUSED: bool, const N: usize>(
    rows: [*const T; N],
    vector: *const T,
    count: usize,
) -> [T; N] {
    let mut lanes = [[T::ZERO; LANES]; N];
    let whole = count / LANES * LANES;
    // SAFETY: promised by the caller.
    unsafe {
        for first in (0..whole).step_by(LANES) {
            let factors = vector.add(first).cast::<[T; LANES]>().read_unaligned();
            for (lanes, row) in lanes.iter_mut().zip(rows) {
                let terms = row.add(first).cast::<[T; LANES]>().read_unaligned();
                for ((lane, term), factor) in lanes.iter_mut().zip(terms).zip(factors) {
                    *lane = add::<T, FUSED>(term, factor, *lane);
                }
            }
        }
        for (lanes, row) in lanes.iter_mut().zip(rows) {
            for (lane, place) in lanes.iter_mut().zip(whole..count) {
                *lane = add::<T, FUSED>(row.add(place).read_unaligned(), vector.add(place).read_unaligned(), *lane);
            }
        }
    }
    lanes.map(|mut lanes| {
        let mut half = LANES / 2;
        while half > 0 {
            for lane in 0..half {
                lanes[lane] = lanes[lane] + lanes[lane + half];
            }
            half /= 2;
        }
        lanes[0]
    })
}

/// Adds columns whose elements follow each other, one after the other.
///
/// # Safety
/// As [`multiply`].
#[inline(always)]
unsafe fn by_columns<T: Float, const FUSED: bool>(matrix: Rows<T>, vector: *const T, out: Elements<T>) {
    let mut block = [T::ZERO; BLOCK];
    for first in (0..matrix.rows).step_by(BLOCK) {
        let sums = &mut block[..BLOCK.min(matrix.rows - first)];
        sums.fill(T::ZERO);
        let column =
            |number: usize| matrix.data.wrapping_add(first).wrapping_offset(number as isize * matrix.column_stride);
        let mut next = 0;
        // SAFETY: promised by the caller.
        unsafe {
            while next + BESIDE <= matrix.columns {
                let columns: [*const T; BESIDE] = std::array::from_fn(|beside| column(next + beside));
                let factors: [T; BESIDE] = std::array::from_fn(|beside| vector.add(next + beside).read_unaligned());
                for (place, sum) in sums.iter_mut().enumerate() {
                    for beside in 0..BESIDE {
                        *sum = add::<T, FUSED>(columns[beside].add(place).read_unaligned(), factors[beside], *sum);
                    }
                }
                next += BESIDE;
            }
            while next < matrix.columns {
                let (column, factor) = (column(next), vector.add(next).read_unaligned());
                for (place, sum) in sums.iter_mut().enumerate() {
                    *sum = add::<T, FUSED>(column.add(place).read_unaligned(), factor, *sum);
                }
                next += 1;
            }
            for (place, sum) in sums.iter().enumerate() {
                out.data.wrapping_offset((first + place) as isize * out.stride).write_unaligned(*sum);
            }
        }
    }
}
