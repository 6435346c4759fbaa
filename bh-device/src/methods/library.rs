//! Work by libraries of the device's maker, factors of single matrices and Fourier transforms: the task for a call, and what
//! surrounds it.

use super::Call;
use super::lines::Lines;
use crate::driver::{Direction, Factors, Subject, Task, Transforms};
use bh_bytecode::{BatchRef, DType};

/// Rows and columns that a matrix has more of, if a library factors it and kernels of ours could, too.
const FEW: i64 = 32;
/// Elements at least of lines that a library transforms: kernels of ours take no longer for fewer.
const SHORT: i64 = 1 << 14;

/// The task of a library for a call of a method for a single matrix, whose operands were checked; none if there is none for the
/// method, or no elements.
pub(super) fn task(batch: &BatchRef<'_>, instr: u32, name: &str) -> Option<Task> {
    let record = &batch.instrs[instr as usize];
    let (operands, outputs) = (record.operands(), usize::from(record.outputs));
    let shape = |at: usize| operands.get(at)?.as_view().map(|view| batch.shape(view));
    let &[rows, columns] = shape(outputs)? else { return None };
    let of = match name {
        "cholesky" => Factors::Cholesky,
        "lu" => Factors::Lu { sides: 0 },
        "solve" => Factors::Lu { sides: shape(2)?.get(1).copied().unwrap_or(1) },
        "qr" => Factors::Qr { columns: *shape(0)?.last()? },
        "eigh" => Factors::Eigen { vectors: outputs > 1 },
        "svd" if outputs == 1 => Factors::Singular { left: 0 },
        "svd" => {
            let is_full = shape(0)? == [rows; 2] && shape(2)? == [columns; 2];
            Factors::Singular { left: if is_full { rows.max(columns) } else { rows.min(columns) } }
        }
        _ => return None,
    };
    // Of a wide matrix, the library decomposes the transpose.
    let is_turned = matches!(of, Factors::Singular { .. }) && rows < columns;
    let (rows, columns) = if is_turned { (columns, rows) } else { (rows, columns) };
    let dtype = batch.dtype(operands[outputs])?;
    (rows > 0 && columns > 0).then_some(Task::Factors { dtype, rows, columns, of })
}

impl Call<'_, '_> {
    /// The task of a library for the call, and the bytes of its work space; none if kernels of ours do it.
    pub(super) fn task(&self) -> Option<(Task, usize)> {
        let libraries = self.libraries.filter(|libraries| libraries.has(Subject::Factors))?;
        let task = task(self.batch, self.instr, self.shipped.name)?;
        let Task::Factors { dtype, rows, columns, .. } = task else { return None };
        if (self.shipped.takes)(dtype) && rows.min(columns) <= FEW {
            return None;
        }
        let room = libraries.room(&task).ok()?;
        Some((task, room))
    }

    /// The task of a library for transforms into lines of other lines, both at equal distances, and the bytes of its work space; none if
    /// kernels of ours do it.
    pub(super) fn transforms(&self, direction: Direction, len: i64, lines: [&Lines; 2]) -> Option<(Task, usize)> {
        let libraries = self.libraries.filter(|libraries| libraries.has(Subject::Transforms))?;
        let [to, from] = lines;
        let count = to.count();
        let places = [to.place()?, from.place()?];
        // Libraries take real numbers where complex ones could lie.
        let is_even =
            [to, from].iter().zip(places).all(|(lines, place)| lines.dtype.is_complex() || place.first % 2 == 0);
        if len * count < SHORT || len < 2 || !is_even {
            return None;
        }
        let dtype = if to.dtype.is_complex() { to.dtype } else { from.dtype };
        let task = Task::Transforms(Transforms { dtype, direction, len, count, places });
        let room = libraries.room(&task).ok()?;
        Some((task, room))
    }
}

/// Zero in the text of a kernel.
pub(super) fn zero(dtype: DType) -> String {
    if dtype.is_complex() { format!("bh_make_{dtype}(0, 0)") } else { "0".into() }
}

/// The condition that `value` is zero.
pub(super) fn is_zero(dtype: DType) -> &'static str {
    if dtype.is_complex() { "value.re == 0 && value.im == 0" } else { "value == 0" }
}

/// The condition that `value` is finite.
pub(super) fn is_finite(dtype: DType) -> &'static str {
    if dtype.is_complex() { "isfinite(value.re) && isfinite(value.im)" } else { "isfinite(value)" }
}
