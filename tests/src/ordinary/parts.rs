//! Arrays assembled from parts of others: stacked, concatenated, rolled, reversed, diagonals and halves.

use super::number;
use crate::data::Values;
use crate::writer::{Given, Seen, Writer};
use bh_bytecode::random::Rng;
use bh_bytecode::{DType, Opcode, View};

/// The elements from `first` to `stop` of a line, with a step.
fn cut(of: Seen, first: i64, stop: i64, step: i64) -> Seen {
    of.through(of.view.slice(0, Some(first), Some(stop), step).expect("parts are within their arrays"))
}

/// An array as a line.
fn flat(of: Seen) -> Seen {
    of.through(View::contiguous(&[of.view.len()]).expect("as many elements as before"))
}

/// Several arrays, each assembled from the last ones.
pub(super) fn put_together(writer: &mut Writer, rng: &mut Rng, dtype: DType, count: i64) {
    let square = [4, 7, 30, 90].into_iter().rfind(|side| side * side <= count).unwrap_or(1);
    let columns = (count / square).max(1);
    let grid = writer.input(rng, dtype, &[columns, square], Values::Tame);
    let mut lines = vec![flat(grid)];
    for _ in 0..2 + rng.below(5) {
        let of = lines[rng.below(lines.len())];
        let line = match rng.below(8) {
            0 => stacked(writer, rng, of),
            1 => rolled(writer, rng, of),
            2 => diagonal(writer, grid),
            3 => column(writer, rng, grid),
            4 => reversed(writer, rng, of),
            5 => halves(writer, of),
            6 => differences(writer, of),
            _ => positive(writer, rng, of),
        };
        if rng.chance(50) {
            writer.keep(line);
        }
        lines.push(line);
    }
    lines.last().into_iter().for_each(|&line| writer.keep(line));
}

fn each(writer: &mut Writer, opcode: Opcode, a: Seen, b: Given) -> Seen {
    writer.make(opcode, 0, a.dtype, a.view.shape(), &[Given::Array(a), b])
}

/// Two stacked rows; the second is a multiple of the first.
fn stacked(writer: &mut Writer, rng: &mut Rng, of: Seen) -> Seen {
    let count = of.view.len().min(60_000);
    let of = cut(of, 0, count, 1);
    let multiple = each(writer, Opcode::Multiply, of, number(rng));
    let both = writer.make(Opcode::Copy, 0, of.dtype, &[2 * count], &[Given::Number(0.0)]);
    writer.write(cut(both, 0, count, 1), Opcode::Copy, 0, &[Given::Array(of)]);
    writer.write(cut(both, count, 2 * count, 1), Opcode::Copy, 0, &[Given::Array(multiple)]);
    both
}

fn rolled(writer: &mut Writer, rng: &mut Rng, of: Seen) -> Seen {
    let count = of.view.len();
    let by = rng.below(count as usize) as i64;
    let rolled = writer.make(Opcode::Copy, 0, of.dtype, &[count], &[Given::Number(0.0)]);
    if by > 0 {
        writer.write(cut(rolled, 0, by, 1), Opcode::Copy, 0, &[Given::Array(cut(of, count - by, count, 1))]);
    }
    writer.write(cut(rolled, by, count, 1), Opcode::Copy, 0, &[Given::Array(cut(of, 0, count - by, 1))]);
    rolled
}

fn diagonal(writer: &mut Writer, grid: Seen) -> Seen {
    let view = grid.view.diagonal(0, 0, 1).expect("grids have two axes");
    each(writer, Opcode::Add, grid.through(view), Given::Number(1.0))
}

/// Part of a column.
fn column(writer: &mut Writer, rng: &mut Rng, grid: Seen) -> Seen {
    let (rows, columns) = (grid.view.shape()[0], grid.view.shape()[1]);
    let of = grid.view.index(1, rng.below(columns as usize) as i64).expect("a column of the grid");
    let stop = rng.between(1, rows);
    each(writer, Opcode::Add, cut(grid.through(of), 0, stop, 1), Given::Number(1.0))
}

/// An array reversed, in place or into another one.
fn reversed(writer: &mut Writer, rng: &mut Rng, of: Seen) -> Seen {
    let backwards = of.through(of.view.reverse(0).expect("lines have an axis"));
    let copy = each(writer, Opcode::Add, of, Given::Number(0.5));
    let back = copy.through(backwards.view);
    match rng.below(2) {
        // A statement that reads its output through another view copies it first, as bridges do.
        0 => {
            let old = writer.make(Opcode::Copy, 0, of.dtype, back.view.shape(), &[Given::Array(back)]);
            writer.write(copy, Opcode::Copy, 0, &[Given::Array(old)]);
        }
        _ => writer.write(back, Opcode::Multiply, 0, &[Given::Array(of), number(rng)]),
    }
    copy
}

/// The elements at even and odd positions, exchanged.
fn halves(writer: &mut Writer, of: Seen) -> Seen {
    let count = of.view.len() / 2 * 2;
    let swapped = each(writer, Opcode::Multiply, of, Given::Number(2.0));
    if count > 0 {
        let [even, odd] = [0, 1].map(|first| cut(of, first, count, 2));
        writer.write(cut(swapped, 0, count, 2), Opcode::Copy, 0, &[Given::Array(odd)]);
        writer.write(cut(swapped, 1, count, 2), Opcode::Copy, 0, &[Given::Array(even)]);
    }
    swapped
}

fn differences(writer: &mut Writer, of: Seen) -> Seen {
    let count = of.view.len();
    if count < 2 {
        return each(writer, Opcode::Subtract, of, Given::Number(1.0));
    }
    each(writer, Opcode::Subtract, cut(of, 1, count, 1), Given::Array(cut(of, 0, count - 1, 1)))
}

/// The elements above a number, and the number elsewhere; every third element differs.
fn positive(writer: &mut Writer, rng: &mut Rng, of: Seen) -> Seen {
    let limit = number(rng);
    let shape = of.view.shape().to_vec();
    let mask = writer.make(Opcode::Greater, 0, DType::Bool, &shape, &[Given::Array(of), limit]);
    let chosen = writer.make(Opcode::Where, 0, of.dtype, &shape, &[Given::Array(mask), Given::Array(of), limit]);
    writer.write(cut(chosen, 0, of.view.len(), 3), Opcode::Copy, 0, &[Given::Number(4.0)]);
    chosen
}
