//! Matrix products: tiles of the output, side by side. Which tiles there are depends on the number of threads, the bits of the
//! product do not.

#[cfg(target_arch = "x86_64")]
use crate::panels::{Part, Product};
use crate::{Call, Parallel, Strided, matvec};
use bh_bytecode::scalar::Arithmetic;
use bh_bytecode::{DType, with_dtype};
use bh_core::abi::status;
use bh_core::{Error, Result};
use std::ops::Range;

/// Rows and columns of a tile, at least, unless there are fewer for each participant: what it reads of the factors is packed
/// again for each.
const TILE: i64 = 256;
/// And at least this many then.
const LEAST: i64 = 16;
/// Elements that all tiles have more of, if there are several: the library has other loops for small products.
const SMALL: i64 = 256;
/// Tiles begin at multiples of this number of rows or columns.
const ALIGN: i64 = 8;
/// Terms of sums that go to the library at a time: of more it makes several sums, in a way that depends on the tile.
pub(crate) const TERMS: i64 = 512;
/// Rows of the right factor that stay in cache while integer products run over them.
const DEPTH: i64 = 64;

/// A matrix in memory, with strides in elements.
#[derive(Clone, Copy)]
pub(crate) struct Matrix {
    pub(crate) data: *mut u8,
    pub(crate) rows: i64,
    pub(crate) columns: i64,
    pub(crate) row_stride: isize,
    pub(crate) column_stride: isize,
}

// SAFETY: participants write disjoint tiles.
unsafe impl Send for Matrix {}
// SAFETY: as above.
unsafe impl Sync for Matrix {}

impl Matrix {
    /// A view as a matrix; a vector is a row or a column. The distance between rows, or columns, means nothing where there is one of them, and
    /// views of the same elements may differ in it: the loops are chosen by strides, and bits follow from the elements alone.
    fn new(view: &Strided<'_>, vector_is_row: bool) -> Option<Matrix> {
        let size = view.dtype.size() as isize;
        let (rows, columns, row, column) = match (view.shape, view.stride.as_slice()) {
            (&[rows, columns], &[row, column]) => (rows, columns, row, column),
            (&[length], &[stride]) if vector_is_row => (1, length, 0, stride),
            (&[length], &[stride]) => (length, 1, stride, 0),
            _ => return None,
        };
        let row_stride = if rows == 1 { columns as isize } else { row / size };
        let column_stride = if columns == 1 { 1 } else { column / size };
        Some(Matrix { data: view.data(), rows, columns, row_stride, column_stride })
    }

    /// Some of its rows.
    pub(crate) fn rows(self, rows: Range<i64>, size: usize) -> Matrix {
        let data = self.data.wrapping_offset(rows.start as isize * self.row_stride * size as isize);
        Matrix { data, rows: rows.end - rows.start, ..self }
    }

    /// Some of its columns.
    pub(crate) fn columns(self, columns: Range<i64>, size: usize) -> Matrix {
        let data = self.data.wrapping_offset(columns.start as isize * self.column_stride * size as isize);
        Matrix { data, columns: columns.end - columns.start, ..self }
    }
}

/// How many tiles a product has, down and across.
pub(crate) fn tiles(rows: i64, columns: i64, participants: i64) -> [i64; 2] {
    let mut tiles = [1, 1];
    while participants > 1 && tiles[0] * tiles[1] < 4 * participants {
        let extents = [rows / tiles[0], columns / tiles[1]];
        let [axis, other] = if extents[0] >= extents[1] { [0, 1] } else { [1, 0] };
        let least = if tiles[0] * tiles[1] < participants { LEAST } else { TILE };
        let half = extents[axis] / 2;
        if half < least || (half - ALIGN) * (extents[other] - ALIGN).max(1) <= SMALL {
            break;
        }
        tiles[axis] *= 2;
    }
    tiles
}

/// The rows or columns of one of some tiles.
pub(crate) fn tile(extent: i64, tiles: i64, number: i64) -> Range<i64> {
    let edge = |number: i64| if number == tiles { extent } else { extent * number / tiles / ALIGN * ALIGN };
    edge(number)..edge(number + 1)
}

/// `out = a · b` for matrices, or a vector on either side.
pub(crate) fn matmul(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    let [a, b, out] = [&call.inputs[0], &call.inputs[1], &call.outputs[0]];
    let dtype = out.dtype;
    let (Some(left), Some(right), Some(product)) =
        (Matrix::new(a, true), Matrix::new(b, false), Matrix::new(out, a.shape.len() == 1))
    else {
        return Err(Error::new(status::SHAPE, "matmul: a matrix has two dimensions"));
    };
    let work = (product.rows * product.columns) as u64 * left.columns as u64;
    let participants = threads.participants(work / 4);
    let [down, across] = tiles(product.rows, product.columns, participants as i64);
    let size = dtype.size();
    threads.run(participants, (down * across) as usize, &|tasks| {
        for task in tasks {
            let rows = tile(product.rows, down, task as i64 / across);
            let columns = tile(product.columns, across, task as i64 % across);
            let (left, right) = (left.rows(rows.clone(), size), right.columns(columns.clone(), size));
            // SAFETY: the matrices are views of validated bases, and shapes were checked.
            unsafe { multiply(dtype, left, right, product.rows(rows, size).columns(columns, size)) };
        }
    });
    Ok(())
}

/// # Safety
/// All elements of the three matrices must lie in memory that is there, be values of `dtype`, and those of `out` be
/// used by nobody else. The shapes must be m by k, k by n and m by n.
unsafe fn multiply(dtype: DType, a: Matrix, b: Matrix, out: Matrix) {
    // SAFETY: each version gets matrices with the elements of their shapes, which fit.
    unsafe {
        match dtype {
            DType::F32 if by_vector::<f32>(a, b, out) => return,
            DType::F64 if by_vector::<f64>(a, b, out) => return,
            _ => {}
        }
        clear(dtype, out);
        add_product(dtype, a, b, out);
    }
}

/// Adds the product of two matrices to a third one. Sums that began with zero ([`clear`]) have the bits of no other order,
/// whichever rows and columns of a larger product these are.
///
/// # Safety
/// As [`multiply`], and the elements of `out` must be values.
pub(crate) unsafe fn add_product(dtype: DType, a: Matrix, b: Matrix, out: Matrix) {
    // SAFETY: each version gets matrices with the elements of their shapes, which fit.
    unsafe {
        match (dtype, has_long_vectors()) {
            #[cfg(target_arch = "x86_64")]
            (DType::F32, true) => in_long_vectors(a, b, out, |product: Product<f32>| product.add()),
            #[cfg(target_arch = "x86_64")]
            (DType::F64, true) => in_long_vectors(a, b, out, |product: Product<f64>| product.add()),
            #[cfg(target_arch = "x86_64")]
            (DType::C64, true) => {
                in_long_vectors(a, b, out, |product| product.add_by_library(gemm::c32::new(1.0, 0.0)))
            }
            #[cfg(target_arch = "x86_64")]
            (DType::C128, true) => {
                in_long_vectors(a, b, out, |product| product.add_by_library(gemm::c64::new(1.0, 0.0)))
            }
            (DType::F32 | DType::F64 | DType::C64 | DType::C128, _) => in_vectors(dtype, a, b, out),
            _ => with_dtype!(dtype, T => plain::<T>(a, b, out)),
        }
    }
}

/// The product if one of the factors is a vector, and the other one a matrix with lines in memory. False, and nothing has
/// happened, if they are others.
///
/// # Safety
/// As [`multiply`].
unsafe fn by_vector<T: matvec::Float>(a: Matrix, b: Matrix, out: Matrix) -> bool {
    let turned = |matrix: Matrix| Matrix {
        rows: matrix.columns,
        columns: matrix.rows,
        row_stride: matrix.column_stride,
        column_stride: matrix.row_stride,
        ..matrix
    };
    let (matrix, vector, out) = match (out.rows, out.columns) {
        (_, 1) => (a, b, out),
        (1, _) => (turned(b), turned(a), turned(out)),
        _ => return false,
    };
    let (rows, columns) = (matrix.rows as usize, matrix.columns as usize);
    // A row or a column alone has no distance to others.
    let row_stride = if rows == 1 { matrix.columns as isize } else { matrix.row_stride };
    let column_stride = if columns == 1 { 1 } else { matrix.column_stride };
    let (count, length, stride) = match (row_stride, column_stride) {
        (_, 1) => (rows, columns, row_stride),
        (1, _) => (columns, rows, column_stride),
        _ => return false,
    };
    // SAFETY: the matrices have the elements of their shapes, and the output is apart from the factors.
    let (lines, vector, out) = unsafe {
        (
            matvec::Lines::new(matrix.data.cast::<T>(), count, length, stride),
            matvec::Lines::new(vector.data.cast::<T>(), columns, 1, vector.row_stride),
            matvec::Output::new(out.data.cast::<T>(), rows, out.row_stride),
        )
    };
    matvec::multiply(lines, column_stride == 1, &vector.joined(), out);
    true
}

/// Does the processor have vectors of 64 bytes? Of the two libraries, `gemm` is faster with them (1.2 to 2.2 times), and
/// `matrixmultiply` without them (1.3 to 1.6 times).
pub(crate) fn has_long_vectors() -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    #[cfg(not(target_arch = "x86_64"))]
    let has = false;
    has
}

/// Products of floating-point numbers, a part of the terms at a time. `add` adds a product of parts of the matrices.
#[cfg(target_arch = "x86_64")]
fn in_long_vectors<T>(a: Matrix, b: Matrix, out: Matrix, add: impl Fn(Product<T>)) {
    let part =
        |matrix: Matrix| Part { data: matrix.data.cast::<T>(), row: matrix.row_stride, column: matrix.column_stride };
    let mut first = 0;
    loop {
        let terms = first..(first + TERMS).min(a.columns);
        let (left, right) = (a.columns(terms.clone(), size_of::<T>()), b.rows(terms.clone(), size_of::<T>()));
        let (rows, columns) = (out.rows as usize, out.columns as usize);
        let (terms, end) = (left.columns as usize, terms.end);
        let product = Product { rows, columns, terms, left: part(left), right: part(right), out: part(out) };
        add(product);
        first = end;
        if first == a.columns {
            return;
        }
    }
}

/// Fills a matrix with zeros, with which sums begin: products of libraries begin with a term, which may be a negative zero.
///
/// # Safety
/// All elements of the matrix must be writable, by nobody else, and of `dtype`.
pub(crate) unsafe fn clear(dtype: DType, out: Matrix) {
    let size = dtype.size();
    // Elements may begin at any byte.
    let at = |row: i64, column: i64| {
        let offset = row as isize * out.row_stride + column as isize * out.column_stride;
        out.data.wrapping_offset(offset * size as isize)
    };
    // SAFETY: each address is that of an element, for which zero bytes are a value.
    unsafe {
        if out.column_stride == 1 {
            (0..out.rows).for_each(|row| at(row, 0).write_bytes(0, out.columns as usize * size));
        } else {
            let columns = |row| (0..out.columns).for_each(|column| at(row, column).write_bytes(0, size));
            (0..out.rows).for_each(columns);
        }
    }
}

/// # Safety
/// As [`add_product`]; for floating-point and complex types.
unsafe fn in_vectors(dtype: DType, a: Matrix, b: Matrix, out: Matrix) {
    let (m, k, n) = (out.rows as usize, a.columns as usize, out.columns as usize);
    macro_rules! call {
        ($function:ident, $type:ty, $one:expr $(, $flag:expr)*) => {
            // SAFETY: the matrices have the elements of their shapes, m by k, k by n and m by n.
            unsafe {
                matrixmultiply::$function(
                    $($flag, $flag,)* m, k, n, $one,
                    a.data.cast::<$type>(), a.row_stride, a.column_stride,
                    b.data.cast::<$type>(), b.row_stride, b.column_stride,
                    $one,
                    out.data.cast::<$type>(), out.row_stride, out.column_stride,
                )
            }
        };
    }
    use matrixmultiply::CGemmOption::Standard;
    match dtype {
        DType::F32 => call!(sgemm, f32, 1.0),
        DType::F64 => call!(dgemm, f64, 1.0),
        DType::C64 => call!(cgemm, [f32; 2], [1.0, 0.0], Standard),
        _ => call!(zgemm, [f64; 2], [1.0, 0.0], Standard),
    }
}

/// Sums of products in loops over rows, for integers (wrapping) and bool (or of and).
///
/// # Safety
/// As [`add_product`].
unsafe fn plain<T: Arithmetic>(a: Matrix, b: Matrix, out: Matrix) {
    let at = |matrix: &Matrix, row: i64, column: i64| {
        let offset = row as isize * matrix.row_stride + column as isize * matrix.column_stride;
        matrix.data.cast::<T>().wrapping_offset(offset)
    };
    let mut first = 0;
    // SAFETY: each address is that of an element of its matrix.
    unsafe {
        while first < a.columns {
            let end = (first + DEPTH).min(a.columns);
            for row in 0..out.rows {
                for depth in first..end {
                    let factor = at(&a, row, depth).read_unaligned();
                    for column in 0..out.columns {
                        let to = at(&out, row, column);
                        let product = factor.multiply(at(&b, depth, column).read_unaligned());
                        to.write_unaligned(to.read_unaligned().add(product));
                    }
                }
            }
            first = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [[i64; 3]; 11] = [
        [1, 1, 1],
        [3, 0, 2],
        [100, 30, 70],
        [64, 1100, 64],
        [66, 700, 66],
        [36, 600, 9],
        [5, 520, 40],
        [600, 513, 1],
        [1, 600, 600],
        [30, 512, 1100],
        [1100, 512, 70],
    ];

    fn matrix(elements: &mut [f64], rows: i64, columns: i64, by_columns: bool) -> Matrix {
        let (row_stride, column_stride) = if by_columns { (1, rows as isize) } else { (columns as isize, 1) };
        Matrix { data: elements.as_mut_ptr().cast(), rows, columns, row_stride, column_stride }
    }

    /// The routine that multiplies.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum By {
        Long,
        Short,
        Whatever,
    }

    /// The product, in the tiles for `participants` participants.
    fn product(by: By, a: Matrix, b: Matrix, participants: i64) -> Vec<f64> {
        let first = if by == By::Whatever { f64::NAN } else { 0.0 };
        let mut elements = vec![first; (a.rows * b.columns) as usize];
        let out = matrix(&mut elements, a.rows, b.columns, false);
        let [down, across] = tiles(out.rows, out.columns, participants);
        for task in 0..down * across {
            let (rows, columns) = (tile(out.rows, down, task / across), tile(out.columns, across, task % across));
            let (a, b) = (a.rows(rows.clone(), 8), b.columns(columns.clone(), 8));
            let out = out.rows(rows, 8).columns(columns, 8);
            // SAFETY: the matrices have the elements of their shapes.
            unsafe {
                match by {
                    #[cfg(target_arch = "x86_64")]
                    By::Long => in_long_vectors(a, b, out, |product: Product<f64>| product.add()),
                    #[cfg(not(target_arch = "x86_64"))]
                    By::Long => unreachable!("a processor without vectors of 64 bytes"),
                    By::Short => in_vectors(DType::F64, a, b, out),
                    By::Whatever => multiply(DType::F64, a, b, out),
                }
            }
        }
        elements
    }

    #[test]
    fn products_have_the_same_bits_in_any_tiles() {
        let numbers = |count: i64, step: i64| (0..count).map(move |i| ((i * step) % 1009 - 500) as f64 * 0.037);
        for ([m, k, n], layout) in SHAPES.into_iter().flat_map(|shape| (0..4).map(move |layout| (shape, layout))) {
            let (mut left, mut right): (Vec<_>, Vec<_>) =
                (numbers(m * k, 389).collect(), numbers(k * n, 577).collect());
            let (a, b) = (matrix(&mut left, m, k, layout & 1 == 1), matrix(&mut right, k, n, layout & 2 == 2));
            let mut wanted = vec![0.0f64; (m * n) as usize];
            // SAFETY: the matrices have the elements of their shapes, m by k, k by n and m by n.
            unsafe { plain::<f64>(a, b, matrix(&mut wanted, m, n, false)) };
            let known =
                if has_long_vectors() { &[By::Short, By::Long, By::Whatever][..] } else { &[By::Short, By::Whatever] };
            for &by in known {
                let one = product(by, a, b, 1);
                let near = |(found, wanted): (&f64, &f64)| (found - wanted).abs() < 1e-9;
                assert!(one.iter().zip(&wanted).all(near), "{m}x{k}x{n}, layout {layout}, {by:?}");
                for participants in [2, 3, 16] {
                    let same =
                        product(by, a, b, participants).iter().zip(&one).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "{m}x{k}x{n}, layout {layout}, {by:?}, {participants} participants");
                }
            }
        }
    }
}
