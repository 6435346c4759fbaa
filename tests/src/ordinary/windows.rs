//! Arrays of different lengths, read through views of each other. Some come from a corner of a grid, so that few ranks
//! have them; most are kept and read again much later, through larger views and next to new arrays.

use super::number;
use crate::data::Values;
use crate::writer::{Given, Seen, Writer};
use bh_bytecode::random::Rng;
use bh_bytecode::{DType, Opcode, View};

/// Some arrays, each computed from views of one or two others.
pub(super) fn windows(writer: &mut Writer, rng: &mut Rng, dtype: DType, count: i64) {
    let columns = rng.between(2, 12).min(count.max(2));
    let grid = writer.input(rng, dtype, &[(count / columns).max(2), columns], Values::Tame);
    let mut lines = vec![corner(writer, rng, grid), corner(writer, rng, grid)];
    for _ in 0..4 + rng.below(9) {
        let line = match rng.below(8) {
            0 => corner(writer, rng, grid),
            1 => replaced(writer, rng, &lines),
            2 | 3 => joined(writer, rng, &lines),
            _ => combined(writer, rng, &lines),
        };
        if rng.chance(60) {
            writer.keep(line);
        }
        lines.push(line);
    }
    lines.into_iter().rev().take(2).for_each(|line| writer.keep(line));
}

/// Like [`windows`], with most lines read through growing views.
pub(super) fn growing(writer: &mut Writer, rng: &mut Rng, dtype: DType, count: i64) {
    let columns = rng.between(2, 12).min(count.max(2));
    let grid = writer.input(rng, dtype, &[(count / columns).max(2), columns], Values::Tame);
    let mut lines = vec![corner(writer, rng, grid), corner(writer, rng, grid)];
    for _ in 0..4 + rng.below(9) {
        match rng.below(4) {
            0 => lines.push(corner(writer, rng, grid)),
            1 => lines.push(combined(writer, rng, &lines)),
            _ => grown(writer, rng, &mut lines),
        }
    }
    lines.into_iter().for_each(|line| writer.keep(line));
}

/// A line read through a small view, a larger one and as a whole, each time with another line.
fn grown(writer: &mut Writer, rng: &mut Rng, lines: &mut Vec<Seen>) {
    let (line, other) = (lines[rng.below(lines.len())], lines[rng.below(lines.len())]);
    let length = line.view.len().min(other.view.len());
    for part in [4, 2, 1] {
        let count = (length / part).max(1);
        let operands = [Given::Array(window(rng, line, count)), Given::Array(window(rng, other, count))];
        let sum = writer.make(Opcode::Add, 0, line.dtype, &[count], &operands);
        if rng.chance(50) {
            lines.push(sum);
        }
    }
}

/// A line from a grid's first rows, or from all of them, plus one: part of a column, a diagonal or rows.
fn corner(writer: &mut Writer, rng: &mut Rng, grid: Seen) -> Seen {
    let rows = grid.view.shape()[0];
    let some = if rng.chance(70) { rng.between(1, (rows / 3).max(1)) } else { rng.between(1, rows) };
    let part = grid.view.slice(0, Some(0), Some(some), 1).expect("rows of the grid");
    let line = match rng.below(3) {
        0 => part.index(1, rng.below(part.shape()[1] as usize) as i64).expect("a column of the grid"),
        1 => part.diagonal(0, 0, 1).expect("grids have two axes"),
        _ => View::new(part.start(), &[part.len()], &[1]).expect("rows lie one after the other"),
    };
    let operands = [Given::Array(grid.through(line)), Given::Number(1.0)];
    writer.make(Opcode::Add, 0, grid.dtype, line.shape(), &operands)
}

/// Elements of a line: consecutive or every second one, forwards or backwards.
fn window(rng: &mut Rng, of: Seen, count: i64) -> Seen {
    let length = of.view.len();
    let step = if 2 * count - 1 <= length && rng.chance(25) { 2 } else { 1 };
    let reach = (count - 1) * step + 1;
    // The ends of an array are read more often than its middle.
    let first = match rng.below(4) {
        0 => 0,
        1 => length - reach,
        _ => rng.between(0, length - reach),
    };
    let view = of.view.slice(0, Some(first), Some(first + reach), step).expect("windows are within their arrays");
    of.through(if rng.chance(20) { view.reverse(0).expect("lines have an axis") } else { view })
}

/// The number of elements that an operation uses of a line: often all or nearly all.
fn taken(rng: &mut Rng, length: i64) -> i64 {
    match rng.below(3) {
        0 => length,
        1 => (length - rng.between(0, 3)).max(1),
        _ => rng.between(1, length),
    }
}

/// An operation on views of the lines; the first operand may be an older line than the second.
fn operation(writer: &mut Writer, rng: &mut Rng, lines: &[Seen], apart: Option<Seen>) -> (Opcode, [Given; 2], i64) {
    let other = |line: &&Seen| apart.is_none_or(|apart| !line.is_part_of(apart));
    let usable: Vec<Seen> = lines.iter().filter(other).copied().collect();
    let (one, two) = (usable[rng.below(usable.len())], usable[rng.below(usable.len())]);
    let most = one.view.len().min(two.view.len()).min(apart.map_or(i64::MAX, |apart| apart.view.len()));
    let count = taken(rng, most);
    let second = if rng.chance(60) { Given::Array(window(rng, two, count)) } else { number(rng) };
    let first = window(rng, one, count);
    if rng.chance(30) {
        let mask = writer.make(Opcode::Greater, 0, DType::Bool, &[count], &[Given::Array(first), number(rng)]);
        let scaled =
            writer.make(Opcode::Where, 0, first.dtype, &[count], &[Given::Array(mask), Given::Array(first), second]);
        return (Opcode::Add, [Given::Array(scaled), number(rng)], count);
    }
    let opcodes = [Opcode::Add, Opcode::Subtract, Opcode::Maximum, Opcode::Minimum];
    (opcodes[rng.below(opcodes.len())], [Given::Array(first), second], count)
}

fn combined(writer: &mut Writer, rng: &mut Rng, lines: &[Seen]) -> Seen {
    let (opcode, operands, count) = operation(writer, rng, lines, None);
    let dtype = lines[0].dtype;
    writer.make(opcode, 0, dtype, &[count], &operands)
}

/// A line of two or three parts of equal length, as in stacking: each is a view of a line, or computed from some.
fn joined(writer: &mut Writer, rng: &mut Rng, lines: &[Seen]) -> Seen {
    let (parts, line) = (2 + rng.below(2), lines[rng.below(lines.len())]);
    let count = taken(rng, line.view.len().min(20_000));
    let all = writer.make(Opcode::Copy, 0, line.dtype, &[parts as i64 * count], &[Given::Number(0.0)]);
    for part in 0..parts as i64 {
        let target =
            all.view.slice(0, Some(part * count), Some((part + 1) * count), 1).expect("parts are within the line");
        let source = Given::Array(window(rng, line, count));
        let value = if rng.chance(50) {
            source
        } else {
            Given::Array(writer.make(Opcode::Multiply, 0, line.dtype, &[count], &[source, number(rng)]))
        };
        writer.write(all.through(target), Opcode::Copy, 0, &[value]);
    }
    all
}

/// A line with a part computed from others.
fn replaced(writer: &mut Writer, rng: &mut Rng, lines: &[Seen]) -> Seen {
    let line = lines[rng.below(lines.len())];
    if lines.iter().all(|other| other.is_part_of(line)) {
        return combined(writer, rng, lines);
    }
    let (opcode, operands, count) = operation(writer, rng, lines, Some(line));
    writer.write(window(rng, line, count), opcode, 0, &operands);
    line
}
