//! Matrix products.

use crate::{Call, Methods, Parallel, Strided};
use bh_bytecode::scalar::Arithmetic;
use bh_bytecode::{DType, with_dtype};
use bh_core::Result;

/// Rows of the product that one participant computes at a time, at least, unless there are fewer for each: the right factor
/// is packed again for them.
const ROWS: i64 = 256;
/// Rows that are computed together.
const TOGETHER: i64 = 8;
/// Rows of the right factor that stay in cache while integer products run over them.
const DEPTH: i64 = 64;

/// A matrix in memory, with strides in elements.
#[derive(Clone, Copy)]
struct Matrix {
    data: *mut u8,
    rows: i64,
    columns: i64,
    row_stride: isize,
    column_stride: isize,
}

// SAFETY: participants write disjoint rows.
unsafe impl Send for Matrix {}
// SAFETY: as above.
unsafe impl Sync for Matrix {}

impl Matrix {
    /// A view as a matrix; a vector is a row or a column.
    fn new(view: &Strided<'_>, vector_is_row: bool) -> Option<Matrix> {
        let size = view.dtype.size() as isize;
        match (view.shape, view.stride.as_slice()) {
            (&[rows, columns], &[row, column]) => {
                Some(Matrix { data: view.data, rows, columns, row_stride: row / size, column_stride: column / size })
            }
            (&[length], &[stride]) if vector_is_row => {
                let column_stride = stride / size;
                Some(Matrix { data: view.data, rows: 1, columns: length, row_stride: length as isize, column_stride })
            }
            (&[length], &[stride]) => {
                Some(Matrix { data: view.data, rows: length, columns: 1, row_stride: stride / size, column_stride: 1 })
            }
            _ => None,
        }
    }

    fn part(self, row: i64, rows: i64, size: usize) -> Matrix {
        let data = self.data.wrapping_offset(row as isize * self.row_stride * size as isize);
        Matrix { data, rows, ..self }
    }
}

/// `out = a · b` for matrices, or a vector on either side.
pub(crate) fn matmul(_: &mut Methods, call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check_counts(1..=1, 2)?;
    let dtype = call.one_type()?;
    let [a, b, out] = [&call.inputs[0], &call.inputs[1], &call.outputs[0]];
    let expected: Vec<i64> = match (a.shape, b.shape) {
        (&[m, k], &[l, n]) if k == l => vec![m, n],
        (&[k], &[l, n]) if k == l => vec![n],
        (&[m, k], &[l]) if k == l => vec![m],
        _ => return call.shape_error(),
    };
    let (Some(left), Some(right), Some(product)) =
        (Matrix::new(a, true), Matrix::new(b, false), Matrix::new(out, a.shape.len() == 1))
    else {
        return call.shape_error();
    };
    if out.shape != expected {
        return call.shape_error();
    }
    let work = (product.rows * product.columns) as u64 * left.columns as u64;
    let participants = threads.participants(work / 4);
    let share = |parts: usize| (product.rows + parts as i64 - 1) / parts as i64;
    let per_task = share(4 * participants).max(ROWS).min(share(participants)).max(1);
    let per_task = (per_task + TOGETHER - 1) / TOGETHER * TOGETHER;
    let tasks = (product.rows + per_task - 1) / per_task;
    threads.run(participants, tasks as usize, &|tasks| {
        for task in tasks {
            let first = task as i64 * per_task;
            let rows = per_task.min(product.rows - first);
            let (left, product) = (left.part(first, rows, dtype.size()), product.part(first, rows, dtype.size()));
            // SAFETY: the matrices are views of validated bases, and shapes were checked.
            unsafe { multiply(dtype, left, right, product) };
        }
    });
    Ok(())
}

/// # Safety
/// The matrices must be valid and their shapes fit.
unsafe fn multiply(dtype: DType, a: Matrix, b: Matrix, out: Matrix) {
    let (m, k, n) = (out.rows as usize, a.columns as usize, out.columns as usize);
    macro_rules! call {
        ($function:ident, $type:ty, $one:expr, $zero:expr $(, $flag:expr)*) => {
            // SAFETY: promised by the caller.
            unsafe {
                matrixmultiply::$function(
                    $($flag, $flag,)* m, k, n, $one,
                    a.data.cast::<$type>(), a.row_stride, a.column_stride,
                    b.data.cast::<$type>(), b.row_stride, b.column_stride,
                    $zero,
                    out.data.cast::<$type>(), out.row_stride, out.column_stride,
                )
            }
        };
    }
    use matrixmultiply::CGemmOption::Standard;
    match dtype {
        DType::F32 => call!(sgemm, f32, 1.0, 0.0),
        DType::F64 => call!(dgemm, f64, 1.0, 0.0),
        DType::C64 => call!(cgemm, [f32; 2], [1.0, 0.0], [0.0, 0.0], Standard),
        DType::C128 => call!(zgemm, [f64; 2], [1.0, 0.0], [0.0, 0.0], Standard),
        // SAFETY: promised by the caller.
        dtype => with_dtype!(dtype, T => unsafe { plain::<T>(a, b, out) }),
    }
}

/// Sums of products in loops over rows, for integers (wrapping) and bool (or of and).
///
/// # Safety
/// As [`multiply`].
unsafe fn plain<T: Arithmetic>(a: Matrix, b: Matrix, out: Matrix) {
    let at = |matrix: &Matrix, row: i64, column: i64| {
        let offset = row as isize * matrix.row_stride + column as isize * matrix.column_stride;
        matrix.data.cast::<T>().wrapping_offset(offset)
    };
    let mut first = 0;
    // SAFETY: promised by the caller.
    unsafe {
        for row in 0..out.rows {
            (0..out.columns).for_each(|column| at(&out, row, column).write_unaligned(T::ZERO));
        }
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
