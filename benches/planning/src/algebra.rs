//! Loops over rows and columns of matrices.

use crate::writer::{Array, Axis, Writer};
use bh_bytecode::{Batch, Opcode};

use Axis::{All, At, From};

/// Rows and columns of the matrices.
const N: i64 = 6000;

fn repeat(ops: usize, mut step: impl FnMut(&mut Writer, i64)) -> Batch {
    let mut writer = Writer::default();
    let mut at = 0;
    while writer.len() < ops {
        step(&mut writer, at);
        at += 1;
    }
    writer.finish()
}

/// A family over one matrix that exists before.
fn over(ops: usize, mut step: impl FnMut(&mut Writer, Array, i64)) -> Batch {
    let mut matrix = None;
    repeat(ops, |writer, at| {
        let matrix = *matrix.get_or_insert_with(|| writer.old(&[N, N]));
        step(writer, matrix, at);
    })
}

/// Elimination of whole matrices: ever smaller views of one matrix.
pub fn shrinking(ops: usize) -> Batch {
    over(ops, |writer, a, at| {
        let rest = From(at + 1, N);
        let column = a.part(&[rest, At(at)]).new_axis(1);
        writer.subtract_product(a.part(&[rest, rest]), column, a.part(&[At(at), rest]));
    })
}

/// `R(j) = dot(q, A(all, j)); A(all, j) -= q * R(j)`.
pub fn gram_schmidt(ops: usize) -> Batch {
    let mut arrays = None;
    repeat(ops, |writer, at| {
        let (a, q, r) = *arrays.get_or_insert_with(|| (writer.old(&[N, N]), writer.old(&[N]), writer.kept(&[N])));
        let (column, factor) = (a.part(&[All, At(at)]), r.part(&[At(at)]));
        writer.dot(factor, q, column);
        writer.subtract_product(column, q, factor);
    })
}

/// `A(i, k) /= A(k, k); A(i, rest) -= A(i, k) * A(k, rest)`, row by row.
pub fn lu_rows(ops: usize) -> Batch {
    const ROWS: i64 = 60;
    over(ops, |writer, a, at| {
        let (k, i) = (at / ROWS, at % ROWS);
        let (i, rest) = (k + 1 + i, From(k + 1, N));
        let factor = a.part(&[At(i), At(k)]);
        writer.binary(Opcode::Divide, factor, factor, a.part(&[At(k), At(k)]));
        writer.subtract_product(a.part(&[At(i), rest]), factor, a.part(&[At(k), rest]));
    })
}

/// `L(i, j) = (A(i, j) - dot(L(i, first), L(j, first))) / L(j, j)`.
pub fn cholesky_rows(ops: usize) -> Batch {
    over(ops, |writer, a, at| {
        let (i, j) = (40 + at / 40, at % 40);
        let (element, before) = (a.part(&[At(i), At(j)]), From(0, j + 1));
        let sum = writer.temporary(&[]);
        writer.dot(sum, a.part(&[At(i), before]), a.part(&[At(j), before]));
        writer.binary(Opcode::Subtract, element, element, sum);
        writer.drop(sum);
        writer.binary(Opcode::Divide, element, element, a.part(&[At(j), At(j)]));
    })
}

/// A row divided by its pivot, then taken from all rows above and from all below.
pub fn gauss_jordan(ops: usize) -> Batch {
    over(ops, |writer, a, k| {
        let row = a.part(&[At(k), All]);
        let pivot = writer.temporary(&[]);
        writer.unary(Opcode::Copy, pivot, a.part(&[At(k), At(k)]));
        writer.binary(Opcode::Divide, row, row, pivot);
        writer.drop(pivot);
        for (begin, end) in [(0, k), (k + 1, N)].into_iter().filter(|(begin, end)| begin < end) {
            let rows = From(begin, end);
            let column = writer.temporary(&[end - begin, 1]);
            writer.unary(Opcode::Copy, column, a.part(&[rows, At(k)]).new_axis(1));
            writer.subtract_product(a.part(&[rows, All]), column, row);
            writer.drop(column);
        }
    })
}

/// `x(i) = (b(i) - dot(L(i, first), x(first))) / L(i, i)`.
pub fn triangular_solve(ops: usize) -> Batch {
    let mut arrays = None;
    repeat(ops, |writer, i| {
        let (l, b, x) = *arrays.get_or_insert_with(|| (writer.old(&[N, N]), writer.old(&[N]), writer.kept(&[N])));
        let (element, before) = (x.part(&[At(i)]), From(0, i.max(1)));
        let sum = writer.temporary(&[]);
        writer.dot(sum, l.part(&[At(i), before]), x.part(&[before]));
        writer.binary(Opcode::Subtract, element, b.part(&[At(i)]), sum);
        writer.drop(sum);
        writer.binary(Opcode::Divide, element, element, l.part(&[At(i), At(i)]));
    })
}

/// `u(i) = (u(i - 1) + u(i + 1)) / 2`, row by row, in sweeps of 50 rows.
pub fn gauss_seidel(ops: usize) -> Batch {
    over(ops, |writer, u, at| {
        let i = 1 + at % 50;
        let inner = From(1, N - 1);
        let sum = writer.temporary(&[N - 2]);
        let row = |i| u.part(&[At(i), inner]);
        writer.binary(Opcode::Add, sum, row(i - 1), row(i + 1));
        writer.with_constant(Opcode::Multiply, row(i), sum, 0.5);
        writer.drop(sum);
    })
}

/// `C(rows, k) += 1.5 * A(100, k) * A(rows, k)`, and the row that mirrors the column.
pub fn symmetric_updates(ops: usize) -> Batch {
    let mut arrays = None;
    repeat(ops, |writer, k| {
        let (a, c) = *arrays.get_or_insert_with(|| (writer.old(&[N, N]), writer.old(&[100])));
        let (scaled, product) = (writer.temporary(&[]), writer.temporary(&[100]));
        writer.with_constant(Opcode::Multiply, scaled, a.part(&[At(100), At(k)]), 1.5);
        writer.binary(Opcode::Multiply, product, a.part(&[From(0, 100), At(k)]), scaled);
        writer.drop(scaled);
        writer.binary(Opcode::Add, c, c, product);
        writer.drop(product);
    })
}

/// `C(i, rest) = A(i, rest) * B(rest)`, and the column that mirrors the row.
pub fn mirrored_rows(ops: usize) -> Batch {
    let mut arrays = None;
    repeat(ops, |writer, i| {
        let (a, b, c) = *arrays.get_or_insert_with(|| (writer.old(&[N, N]), writer.old(&[N]), writer.kept(&[N, N])));
        let rest = From(i + 1, N);
        let (row, column) = (c.part(&[At(i), rest]), c.part(&[rest, At(i)]));
        writer.binary(Opcode::Multiply, row, a.part(&[At(i), rest]), b.part(&[rest]));
        writer.unary(Opcode::Copy, column, row);
    })
}

/// `s(j) = sum(A(all, j)); A(all, j) /= s(j)`, after the whole matrix was written.
pub fn column_sums(ops: usize) -> Batch {
    let mut arrays = None;
    repeat(ops, |writer, j| {
        let (a, s) = *arrays.get_or_insert_with(|| {
            let arrays = (writer.old(&[N, N]), writer.kept(&[N]));
            writer.with_constant(Opcode::Multiply, arrays.0, arrays.0, 0.5);
            arrays
        });
        let (column, sum) = (a.part(&[All, At(j)]), s.part(&[At(j)]));
        writer.sum(sum, column, 1);
        writer.binary(Opcode::Divide, column, column, sum);
    })
}

/// `D = minimum(D, D(all, k) + D(k, all))`.
pub fn shortest_paths(ops: usize) -> Batch {
    over(ops, |writer, d, k| {
        let sum = writer.temporary(&[N, N]);
        writer.binary(Opcode::Add, sum, d.part(&[All, At(k)]).new_axis(1), d.part(&[At(k), All]));
        writer.binary(Opcode::Minimum, d, d, sum);
        writer.drop(sum);
    })
}

/// Two rows change places, again and again.
pub fn pivots(ops: usize) -> Batch {
    over(ops, |writer, a, at| {
        let (one, two) = (a.part(&[At(at % 1900), All]), a.part(&[At(2000 + at * 7 % 1900), All]));
        let spare = writer.temporary(&[N]);
        writer.unary(Opcode::Copy, spare, one);
        writer.unary(Opcode::Copy, one, two);
        writer.unary(Opcode::Copy, two, spare);
        writer.drop(spare);
    })
}
